"""Products of asynchronous tensor cores, and reductions of arrays: computations that an engine may replace.

`sim` locates operands and handles results; the `Products` object that the engine provides to the launch
(`Launch.products`) computes. The base class uses NumPy, and follows `semantics` in decoding, sums and updates; the
reference engine uses it as it is. A faster engine overrides methods, and may take over whole instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.records import NamedTuple, dataclass, replace
from ptxtools.semantics import tensorcore
from ptxtools.semantics.accumulation import Rule
from ptxtools.semantics.atomic import combine
from ptxtools.semantics.tensorcore import LEAST, ElementsA, ElementsB, Factors
from ptxtools.semantics.types import bits_of

from .arrays import NumpyAlgebra, quiet

if TYPE_CHECKING:
    from ptxtools.program.program import Ref

    from .events import View

Array: TypeAlias = npt.NDArray[Any]
#: Memory = operation(memory, data), for bytes of whole elements in arrays of one shape.
Update: TypeAlias = Callable[[Array, Array], None]

#: For "a" or "b" and a descriptor, the offsets of the matrix's chunks from the multiple of 1024 bytes below its
#: address, and the end of the last.
Places: TypeAlias = "Callable[[str, int], tuple[Array, int]]"

_A = NumpyAlgebra()


@dataclass(frozen=True)
class Numbers:
    """A matrix, rows x K: `values`, and `powers`, 2 to the exponent of each value. A subnormal number has the least
    exponent of its type, zero has power 0, infinities and NaN have power infinity. Both are f64 here; an engine may
    choose other types."""

    values: Array
    powers: Array

    @property
    def finite(self) -> bool:
        return bool(self.powers.max(initial=0) < np.inf)

    def negated(self) -> Numbers:
        return replace(self, values=-self.values)

    def part(self, rows: slice | Array) -> Numbers:
        return replace(self, values=self.values[rows], powers=self.powers[rows])


#: Rows (of A; columns of B) that stand together in `Chunks.offsets`, and their order in each 16 of wgmma's B where K
#: leads: even ones of eight, then odd ones, as the registers of an accumulator have its columns.
GROUP = 16
PAIRS = tuple(8 * (i // 8) + 2 * (i % 4) + i % 8 // 4 for i in range(GROUP))


class Chunks(NamedTuple):
    """A factor in memory, in chunks of 16 bytes.

    type: of an element; those of 6 and 4 bits have bytes of their own, or with ".packed" the layout of shared memory
    (9.7.16.10.4.4). memory: u8 or u32; start: the byte of it that `offsets` (i32, bytes) count from; major: "k" for
    chunks along K (offsets: [group of rows][32 bytes of K][row][2]), "mn" for chunks across it ([group][k][chunk]).
    """

    type: str
    major: str
    memory: Array
    start: int
    offsets: Array


class Metadata(NamedTuple):
    """Where a sparse A's metadata is, for each stored element: [group of 16 rows][stored column][row].

    words: byte offsets (i32) of the words from the first; bit: of the word, at which the element's field of two bits
    begins; base: the column that 0 means; step: columns between two values; half: whether only the upper bit counts.
    """

    words: Array
    bit: Array
    base: Array
    step: int
    half: bool


class Factor(NamedTuple):
    """Rows of A, or columns of B, of one product. metadata: of a sparse A, with the memory that its words are in.
    scales: copies of the factor's scale factors, which may be equal: memory and byte offsets, [factor along K][row]."""

    chunks: Chunks
    rows: int
    metadata: tuple[Metadata, Array] | None = None
    scales: tuple[tuple[Array, Array], ...] = ()


class Block(NamedTuple):
    """Neighbouring rows of D, in 32-bit cells. cells: [lane][column]; lane: of the first; rows; first: the row of A
    that goes with it; columns from `column` on; a, b: numbers of the factors; kept: rows that stay as they are."""

    cells: Array
    lane: int
    rows: int
    first: int
    column: int
    width: int
    a: int
    b: int
    kept: tuple[int, ...] = ()


class TensorProduct(NamedTuple):
    """D = A * B, plus D where `accumulate`, in tensor memory. a, b: the factors; d: all of D, each block a product of
    two of them. k: logical columns of A, of which a sparse A has stored half; dtype: of D; scale: type of scale factors
    or ""; factors: how many there are along K; divisor: D is divided by 2**divisor before, where that is exact."""

    a: tuple[Factor, ...]
    b: tuple[Factor, ...]
    d: tuple[Block, ...]
    k: int
    dtype: str
    accumulate: bool
    saturate: bool = False
    negated: bool = False
    scale: str = ""
    factors: int = 0
    divisor: int = 0


@dataclass(frozen=True)
class WarpgroupProduct:
    """A wgmma.mma_async as written. k: logical columns of A, of which a sparse A has stored half. d: slots of D's
    registers; a: slots of A's registers, or of its descriptor; scale: the predicate that says whether D is added;
    mn_major: of A, of B; layout: a bit that goes with B's descriptor into the key of an issue; metadata: of a sparse A,
    with the slot of its register. places: for "a" or "b" and a descriptor, the offsets of its chunks (as in `Chunks`, B
    along K in the order of `PAIRS`) from the multiple of 1024 bytes below its address, and the end of the last."""

    n: int
    k: int
    atype: str
    btype: str
    dtype: str
    saturate: bool
    negated: bool
    d: Array
    a: Array | Ref
    b: Ref
    scale: Ref
    mn_major: tuple[bool, bool]
    layout: int
    metadata: tuple[Metadata, int] | None
    places: Places


class Products:
    """Products and updates as `semantics` defines them, in NumPy."""

    #: Whether `tensor_product` can do anything.
    direct: ClassVar[bool] = False

    # --- decoding -----------------------------------------------------------------------------------------------------

    def numbers(self, t: str, codes: Array) -> Numbers:
        """Elements from their bits: u32 for tf32, u16 for 16-bit types, u8 for all others (of "fp4" one a byte)."""
        if codes.dtype == np.uint8:
            values, powers = _table(t)
            return Numbers(values[codes], powers[codes])
        return Numbers(*_decoded(t, codes))

    def scales(self, t: str, codes: Array) -> Numbers:
        """Scale factors "ue8m0" or "ue4m3" from bytes (5.2.3), in f64."""
        values, powers = _scale_table(t)
        return Numbers(values[codes], powers[codes])

    def whole(self, t: str, codes: Array) -> Array:
        """Whole numbers from bytes (type b1: bytes of 0 or 1), in the form that `multiply_whole` takes."""
        with quiet():
            found: Array = tensorcore.decode_whole(_A, t, codes.astype(np.uint32))
        return found

    # --- products -----------------------------------------------------------------------------------------------------

    def multiply(
        self, a: Numbers, b: Numbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers] | None = None
    ) -> Array:
        """A (M x K) * B (N x K, so that rows of both meet) + c.

        c: M x N, f32, f16 or f64, or None for zero. scales: factors of A's rows and of B's, M x blocks and N x blocks.
        Returns M x N of f16 or f32, by the rule's result.
        """
        shape, k = (len(a.values), len(b.values)), a.values.shape[1]
        addend = np.zeros(shape) if c is None else c.astype(np.float64)
        (x, y), (px, py) = _columns(_bits(a.values), _bits(b.values)), _columns(_bits(a.powers), _bits(b.powers))
        factors = Factors(x, px, y, py) if scales is None else Factors(x, px, y, py, *_blocks(scales, k))
        with quiet():
            addends = [_bits(addend)]
            results = tensorcore.accumulate(_A, rule, k, factors, addends)
            if not (all(m.finite for m in (a, b, *(scales or ()))) and np.isfinite(addend).all()):
                results = tensorcore.exceptional(_A, rule, k, factors, addends, results)
        bits = np.ascontiguousarray(np.broadcast_to(results[0], shape))
        return bits.view(np.float16 if bits.dtype == np.uint16 else np.float32)

    def multiply_whole(self, a: Array, b: Array, c: Array | None, *, saturate: bool) -> Array:
        """Likewise for matrices from `whole`; c and the result are u32 holding s32, wrapped or saturated once."""
        addend = np.zeros((len(a), len(b)), np.uint32) if c is None else c
        with quiet():
            results = tensorcore.accumulate_whole(_A, a.shape[1], *_columns(a, b), [addend], saturate=saturate)
        found: Array = results[0]
        return found

    # --- memory -------------------------------------------------------------------------------------------------------

    def update(self, operation: str, type_: str, *, flushes: bool, alone: bool) -> Update:
        """Memory = operation(memory, data). flushes: f32 subnormals count as zeros; alone: no other worker uses the
        memory meanwhile; otherwise each element must be updated atomically. (This class has one thread, so it always
        is.)"""
        word = f"u{bits_of(type_) // 8}"

        def update(target: Array, data: Array) -> None:
            old = np.ascontiguousarray(target).reshape(-1).view(word)
            with quiet():
                new = combine(_A, operation, type_, old, data.reshape(-1).view(word), flushes=flushes)
            target[...] = np.ascontiguousarray(new).astype(word, copy=False).view(np.uint8).reshape(target.shape)

        return update

    # --- what an engine may do by itself ------------------------------------------------------------------------------

    def tensor_product(self, product: TensorProduct, rule: Rule) -> Callable[[], bool] | None:
        """A function that computes D in tensor memory at each call, always on the same thread. It returns False, with
        nothing changed, if the factors do not allow that. None if no factors do."""
        return None

    def take_over_tensor_product(self, view: View, lane: int, compute: Callable[[], bool], stamps: list[Array]) -> None:
        """A service has executed an instruction of a lane by a function of `tensor_product`: from now on the engine may
        do so without the service, as long as the stamps (u32, one for each CTA) are what they are now."""

    def take_over_product(self, view: View, product: Callable[[], WarpgroupProduct], rule: Rule) -> None:
        """A service has executed an instruction: from now on the engine may execute it without the service."""

    def take_over_reads(self, view: View, a: Ref | None, b: Ref, places: Places) -> None:
        """Observers of an instruction have looked at what it reads of shared memory (`filters.MATRICES`): from now on
        the engine may look itself. a, b: the slots of its descriptors, None where A is in registers."""

    def take_over_commit(self, view: View) -> None:
        """Likewise for wgmma.commit_group."""

    def take_over_wait(self, view: View, n: Ref | None) -> None:
        """Likewise for wgmma.wait_group; n: the slot of its operand."""


def _bits(numbers: Array) -> Array:
    with quiet():
        return np.ascontiguousarray(numbers, np.float64).view(np.uint64)


def _columns(a: Array, b: Array) -> tuple[ElementsA, ElementsB]:
    """What column k of both gives each element of D."""
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    return lambda _, k: left[k][:, None], lambda k: right[k][None, :]


def _blocks(scales: tuple[Numbers, Numbers], k: int) -> tuple[Callable[[int, int], tuple[Any, Any]], int]:
    """Scale factors as `Factors` has them."""
    a, b = scales
    blocks = a.values.shape[1]

    def scale(row: int, column: int) -> tuple[Any, Any]:
        block = column * blocks // k
        values, powers = (
            np.multiply.outer(x[:, block], y[:, block]) for x, y in ((a.values, b.values), (a.powers, b.powers))
        )
        return _bits(values), _bits(powers)

    return scale, blocks


def _decoded(t: str, codes: Array) -> tuple[Array, Array]:
    with quiet():
        values = tensorcore.decode(_A, t, codes.astype(np.uint32))
        powers = tensorcore.power(_A, values, LEAST[t])
    return values.view(np.float64), powers.view(np.float64)


_EVERY_BYTE = np.arange(256, dtype=np.uint32)


@cache
def _table(t: str) -> tuple[Array, Array]:
    """Value and power for each byte."""
    return _decoded(t, _EVERY_BYTE)


@cache
def _scale_table(t: str) -> tuple[Array, Array]:
    with quiet():
        values = tensorcore.decode_scale(_A, t, _EVERY_BYTE)
        powers = tensorcore.power(_A, values, LEAST[t])
    return values.view(np.float64), powers.view(np.float64)
