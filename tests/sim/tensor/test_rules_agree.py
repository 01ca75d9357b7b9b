"""Native tiles against the definition of the sum (`semantics.tensorcore`): every rule with every format it adds."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np

from ptxtools.machine.products import GROUP, Block, Chunks, Factor, Products, TensorProduct
from ptxtools.native.tiles import interface as tiles
from ptxtools.native.tiles.products import PRODUCTS
from ptxtools.semantics.accumulation import IEEE, Rule, Sum, rule_of
from tests.rows import rows

BITS = {"tf32": 32, "f16": 16, "bf16": 16}
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
GENERATIONS = ("volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx_blackwell", IEEE)
ROWS, COLUMNS = 8, 24
DEFINED = Products()


def k_of(t: str) -> int:
    return 256 // BITS.get(t, 8)


def sums() -> Iterator[Sum]:
    """What asynchronous tensor cores add, and what mma does where it has such types."""
    for unit in ("mma", "wgmma", "tcgen05"):
        for t in (*BITS, *NARROW):
            for dtype in ("f32",) if t in ("tf32", "bf16") else ("f32", "f16"):
                for sparse in (False, True):
                    yield Sum(unit, t, dtype, (1 + sparse) * k_of(t), sparse)
    for t in NARROW:
        yield Sum("tcgen05", t, "f32", 32, scale="ue8m0")
    for scale, k in (("ue8m0", 64), ("ue4m3", 64), ("ue4m3", 128)):
        yield Sum("tcgen05", "fp4", "f32", k, scale=scale)


CASES = sorted(
    {(s, rule_of(s, numerics)) for s in sums() for numerics in GENERATIONS}, key=repr,
)  # fmt: skip


class Operands:
    """Codes of A and B, C, and bytes of scale factors."""

    def __init__(self, s: Sum, rule: Rule, rows: int = ROWS, columns: int = COLUMNS) -> None:
        self.sum, self.bits, self.rows, self.columns = s, BITS.get(s.atype, 8), rows, columns
        self.rng = np.random.default_rng(zlib.crc32(repr((s, rule)).encode()))
        self.a, self.b = (self.any_codes((count, s.k)) for count in (rows, columns))
        self.real = np.float16 if rule.result == "f16" else np.float32
        self.c = self.addends(-12, 12)
        self.scales = None
        if s.scale:
            blocks = {"ue8m0": s.k // 32, "ue4m3": s.k // 16}[s.scale]
            low, high = (120, 134) if s.scale == "ue8m0" else (1, 127)
            self.scales = [self.rng.integers(low, high, (count, blocks), dtype=np.uint8) for count in (rows, columns)]

    def any_codes(self, shape: tuple[int, int]) -> np.ndarray:
        dtype = {8: np.uint8, 16: np.uint16, 32: np.uint32}[self.bits]
        return self.rng.integers(0, 1 << self.bits, shape, dtype=np.uint64).astype(dtype)

    def addends(self, low: int, high: int) -> np.ndarray:
        shape = (self.rows, self.columns)
        with np.errstate(over="ignore"):
            found = (self.rng.uniform(-2, 2, shape) * 2.0 ** self.rng.integers(low, high + 1, shape)).astype(self.real)
        found[self.rng.random(shape) < 0.2] = 0
        return found

    def values(self, products: Products) -> tuple[np.ndarray, np.ndarray]:
        return tuple(products.numbers(self.sum.atype, m).values.astype(np.float64) for m in (self.a, self.b))  # type: ignore[return-value]

    def keep(self, good: Callable[[np.ndarray], np.ndarray]) -> None:
        """Zeros where the values are not as wanted."""
        for codes, values in zip((self.a, self.b), self.values(DEFINED), strict=True):
            with np.errstate(invalid="ignore"):
                codes[~good(np.abs(values))] = 0


def anything(o: Operands) -> None:
    """All bits, infinities and NaN included, and addends of all sizes."""
    o.c = o.addends(-150, 127)
    o.c[0, :3] = np.inf, -np.inf, np.nan
    for scales in o.scales or ():
        scales[::5, 0], scales[1::5, -1] = {"ue8m0": (255, 0), "ue4m3": (0x7F, 0)}[o.sum.scale]


def finite(o: Operands) -> None:
    o.keep(np.isfinite)
    o.c = o.addends(-140, 120)
    o.c[1, :3] = np.inf, -np.inf, np.nan


def near(o: Operands) -> None:
    """Sizes not far from each other."""
    o.keep(lambda size: (size > 2.0**-6) & (size < 2.0**6))


def cancelled(o: Operands) -> None:
    """Neighbours of opposite sign, and an addend that takes away what is left but for its last bits."""
    near(o)
    sign = {"e3m2": 0x20, "e2m3": 0x20, "e2m1": 0x20, "fp4": 8}.get(o.sum.atype, 1 << o.bits - 1)
    o.a[:, 1::2] = o.a[:, ::2] ^ o.a.dtype.type(sign)
    o.b[:, 1::2] = o.b[:, ::2]
    o.b[:, 1] ^= o.b.dtype.type(1 if o.bits < 32 else 1 << 13)
    a, b = o.values(DEFINED)
    with np.errstate(all="ignore"):
        o.c = np.nan_to_num(-(a @ b.T) * (1 + 2.0**-9)).astype(o.real)


def tiny(o: Operands) -> None:
    """The smallest numbers of the format, and nothing else in some rows."""
    o.keep(lambda size: (size < 2.0**-60) if BITS.get(o.sum.atype) and o.sum.atype != "f16" else size < 2.0**-1)
    o.a[::2] = 0
    o.c = o.addends(-149, -100)


def huge(o: Operands) -> None:
    o.keep(lambda size: np.isfinite(size) & (size > 2.0**60 if o.sum.atype in ("bf16", "tf32") else size > 1))
    o.c = o.addends(100, 127)


MAKERS = (anything, finite, near, cancelled, tiny, huge)


def bits_of(found: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(found).view(np.uint16 if found.dtype == np.float16 else np.uint32)


def result(products: Products, o: Operands, rule: Rule, c: np.ndarray | None) -> np.ndarray:
    a, b = (products.numbers(o.sum.atype, codes) for codes in (o.a, o.b))
    scales = None if o.scales is None else tuple(products.scales(o.sum.scale, s) for s in o.scales)
    return bits_of(products.multiply(a, b, c, rule, scales))  # type: ignore[arg-type]


@rows(("s", "rule"), CASES, ids=str, share=15)
def test_native_tiles_are_what_is_defined(s: Sum, rule: Rule) -> None:
    for make in MAKERS:
        o = Operands(s, rule)
        make(o)
        for c in (o.c, None):
            with np.errstate(all="ignore"):
                found, wanted = result(PRODUCTS, o, rule, c), result(DEFINED, o, rule, c)
            np.testing.assert_array_equal(found, wanted, err_msg=make.__name__)


def chunks(t: str, codes: np.ndarray) -> Chunks:
    """A factor that lies row by row, 32 bytes each."""
    groups = len(codes) // GROUP
    offsets = 32 * np.arange(len(codes)).reshape(groups, 1, GROUP, 1) + 16 * np.arange(2)
    return Chunks(t, "k", codes.reshape(-1).view(np.uint8), 0, np.ascontiguousarray(offsets, np.int32))


DIRECT = [(s, rule) for s, rule in CASES if s.atype != "fp4" and not s.scale and not s.sparse
          and tiles.suits(rule, s.k)]  # fmt: skip


@rows(("s", "rule"), DIRECT, ids=str, share=3)
def test_products_in_memory_are_what_is_defined(s: Sum, rule: Rule) -> None:
    """The same for code that takes factors from memory by itself; with factors that are not finite it does nothing."""
    for make in MAKERS:
        o = Operands(s, rule, 16, 32)
        make(o)
        for accumulate in (True, False):
            cells = np.full((o.rows, 64), 77, np.uint32)
            cells[:, 16:48] = bits_of(o.c)
            before = cells.copy()
            a, b = (Factor(chunks(s.atype, codes), len(codes)) for codes in (o.a, o.b))
            block = Block(cells, 0, o.rows, 0, 16, o.columns, 0, 0)
            compute = PRODUCTS.tensor_product(TensorProduct((a,), (b,), (block,), s.k, s.dtype, accumulate), rule)
            assert compute is not None
            done = compute()
            assert done == all(np.isfinite(m).all() for m in o.values(DEFINED))
            if done:
                with np.errstate(all="ignore"):
                    before[:, 16:48] = result(DEFINED, o, rule, o.c if accumulate else None)
            np.testing.assert_array_equal(cells, before, err_msg=make.__name__)


def test_native_code_has_most_rules() -> None:
    """All of wgmma and tcgen05; what mma adds in several steps is left to the handlers of mma."""
    assert all(tiles.suits(rule, s.k) for s, rule in CASES if s.unit != "mma")
    assert any(not tiles.suits(rule, s.k) for s, rule in CASES)
    assert {rule.result for _, rule in CASES} == {"f32", "e8m13", "f16"}
    assert {rule.fraction for _, rule in CASES} == {0, 13, 23, 24, 25, 35}
