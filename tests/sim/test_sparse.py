"""spcompress, spdecompress and tcgen05.ld.spcompress on both engines, against Python's numbers."""

from __future__ import annotations

import functools
import math
import struct
from itertools import product

import numpy as np
import pytest

import ptxtools
from ptxtools import isa

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
LANES = 32
FACTORS = ("1:2", "1:4", "1:8", "1:16", "2:4", "2:8", "2:16", "4:8", "4:16")

# --- a model, one thread at a time ------------------------------------------------------------------------------------


def small(bits: int, exponent: int, fraction: int, bias: int) -> float:
    """A float without infinities; of e4m3 the largest pattern is NaN."""
    sign = -1.0 if bits >> (exponent + fraction) & 1 else 1.0
    e, f = bits >> fraction & (1 << exponent) - 1, bits & (1 << fraction) - 1
    if exponent == 4 and e == 15 and f == 7:
        return math.nan
    return sign * (f / 2**fraction * 2.0 ** (1 - bias) if e == 0 else (1 + f / 2**fraction) * 2.0 ** (e - bias))


def half(bits: int) -> float:
    return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])


def single(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


VALUES = {
    (16, 0): half,
    (16, 1): lambda bits: single(bits << 16),
    (8, 0): lambda bits: bits,
    (8, 1): lambda bits: bits - 256 if bits > 127 else bits,
    (8, 2): lambda bits: half(bits << 8),
    (8, 3): lambda bits: small(bits, 4, 3, 7),
    (8, 4): lambda bits: small(bits & 63, 3, 2, 3),
    (8, 5): lambda bits: small(bits & 63, 2, 3, 1),
}


def pick(values: list[float], operation: int) -> list[int]:
    """Two of four: 0 greatest, 1 greatest magnitudes, 2 least, 3 least magnitudes; NaN first, then the earlier one."""

    def before(i: int, j: int) -> int:
        a, b = values[i], values[j]
        if math.isnan(a) or math.isnan(b):
            return math.isnan(b) - math.isnan(a) or i - j
        if operation & 1:
            a, b = abs(a), abs(b)
        order = (a > b) - (a < b) or int(math.copysign(1, a) - math.copysign(1, b))
        return (order if operation & 2 else -order) or i - j

    return sorted(sorted(range(4), key=functools.cmp_to_key(before))[:2])


def unpack(words: list[int], bits: int) -> list[int]:
    whole = sum(word << 32 * n for n, word in enumerate(words))
    return [whole >> bits * n & (1 << bits) - 1 for n in range(32 * len(words) // bits)]


def pack(elements: list[int], bits: int) -> list[int]:
    whole = sum(element << bits * n for n, element in enumerate(elements))
    return [whole >> 32 * n & 0xFFFF_FFFF for n in range(-(-bits * len(elements) // 32))]


# --- kernels ----------------------------------------------------------------------------------------------------------


def names(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(count)) + "}"


def run(engine: str, body: str, given: np.ndarray, results: int) -> np.ndarray:
    """Words of each thread in registers %i…, the body, and registers %o… of each thread."""
    loads = "\n".join(f"ld.global.u32 %i{n}, [%d0+{4 * n}];" for n in range(given.shape[1]))
    stores = "\n".join(f"st.global.u32 [%d1+{4 * n}], %o{n};" for n in range(results))
    text = f""".version 9.4
.target sm_107a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to) {{
    .reg .b32 %t, %i<{given.shape[1] + 1}>, %o<{results + 1}>; .reg .b64 %d<2>; .shared .align 4 .b32 place;
    mov.u32 %t, %tid.x; ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to];
    mad.wide.u32 %d0, %t, {4 * given.shape[1]}, %d0; mad.wide.u32 %d1, %t, {4 * results}, %d1;
{loads}
{body}
{stores}
    ret; }}"""
    out = np.zeros((LANES, results), np.uint32)
    ptxtools.Device("sm_107a", engine=engine).launch(ptxtools.loads(text)["k"], 1, LANES, [given, out])
    return out


def registers(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(first, first + count)) + "}"


@pytest.mark.share(3)
@ENGINES
@pytest.mark.parametrize(("element", "index"), list(product((8, 16), (2, 4))))
def test_compression(element: int, index: int, engine: str) -> None:
    """Each number of repetitions; each thread has another descriptor."""
    rng = np.random.default_rng(element + index)
    kinds = [kind for size, kind in VALUES if size == element]
    for number in (1, 2, 4, 8, 16, 32, 64):
        given = rng.integers(0, 1 << 32, (LANES, 2 * number + 1), dtype=np.uint32)
        few = rng.integers(0, 1 << element, 6)  # often equal, with zeros and a NaN
        few[:3] = 0, 1 << element - 1, (1 << element - 1) - 1
        chosen = rng.choice(few, (LANES, 64 // element * number))
        given[::2, :-1] = [pack(row, element) for row in chosen[::2].tolist()]
        given[:, -1] = [lane % 4 | kinds[lane // 4 % len(kinds)] << 2 for lane in range(LANES)]
        words = -(-number * index // element)
        out = run(
            engine,
            f"spcompress.b{element}.b{index}.sp::2:4.x{number} {registers('o', 0, words)}, "
            f"{registers('o', words, number)}, {registers('i', 0, 2 * number)}, %i{2 * number};",
            given, words + number,
        )  # fmt: skip
        for lane in range(LANES):
            elements, descriptor = unpack(given[lane, :-1].tolist(), element), int(given[lane, -1])
            value = VALUES[element, descriptor >> 2]
            groups = [elements[n : n + 4] for n in range(0, len(elements), 4)]
            places = [pick([value(e) for e in group], descriptor & 3) for group in groups]
            kept = [group[i] for group, both in zip(groups, places, strict=True) for i in both]
            indices = [i for both in places for i in both]
            assert out[lane].tolist() == pack(indices, index) + pack(kept, element), (number, lane, descriptor)


@ENGINES
@pytest.mark.parametrize("descriptor", [0x8, 0x14, 0x18, 0x20])
def test_descriptors_of_other_elements(descriptor: int, engine: str) -> None:
    """A type of 8 bits for 16, or of none; reserved bits."""
    element = 16 if descriptor in (0x8, 0x14) else 8
    body = f"spcompress.b{element}.b2.sp::2:4.x1 {{%o0}}, {{%o1}}, {{%i0, %i0}}, %i0;"
    given = np.full((LANES, 1), descriptor, np.uint32)
    with pytest.raises(ptxtools.Trap, match=rf"descriptor {descriptor:#x} does not fit elements of {element} bits"):
        run(engine, body, given, 2)


def shapes() -> list[tuple[int, int, str, int]]:
    """Valid forms of spdecompress: of each factor, element and index the first, and one of several repetitions."""
    found = []
    for element, index, factor in product((8, 16), (2, 4), FACTORS):
        valid = []
        for number in (1, 2, 4, 8, 16, 32, 64):
            try:
                isa.resolve(f"spdecompress.b{element}.b{index}.sp::{factor}.x{number}")
            except isa.OpcodeError:
                continue
            valid.append((element, index, factor, number))
        found += [valid[0], *valid[3:4], *valid[-1:]] if valid else []
    return list(dict.fromkeys(found))


@ENGINES
def test_decompression(engine: str) -> None:
    assert len(shapes()) == 66
    for element, index, factor, number in shapes():
        kept, group = map(int, factor.split(":"))
        rng = np.random.default_rng([element, index, kept, group, number])
        values = rng.integers(0, 1 << element, (LANES, kept * number))
        places = np.array([[rng.permutation(group)[:kept] for _ in range(number)] for _ in range(LANES)])
        given = [
            [*pack(places[lane].reshape(-1).tolist(), index), *pack(values[lane].tolist(), element)]
            for lane in range(LANES)
        ]
        words = -(-kept * index * number // 32)
        dense = group * element * number // 32
        out = run(
            engine,
            f"spdecompress.b{element}.b{index}.sp::{factor}.x{number} {registers('o', 0, dense)}, "
            f"{registers('i', 0, words)}, {registers('i', words, len(given[0]) - words)};",
            np.array(given, np.uint32), dense,
        )  # fmt: skip
        for lane in range(LANES):
            wanted = [0] * (group * number)
            for n, (value, place) in enumerate(zip(values[lane], places[lane].reshape(-1), strict=True)):
                wanted[n // kept * group + place] = int(value)
            assert out[lane].tolist() == pack(wanted, element), (element, index, factor, number)


@ENGINES
def test_an_index_beyond_the_group(engine: str) -> None:
    given = np.full((LANES, 1), 0x2, np.uint32)
    with pytest.raises(ptxtools.Trap, match="an index is 2 in a group of 2"):
        run(engine, "spdecompress.b16.b2.sp::1:2.x1 {%o0}, {%i0}, {%i0};", given, 1)


@ENGINES
@pytest.mark.parametrize(("number", "operation", "red"), [
    (4, 0, ""), (8, 1, ".NaN"), (32, 2, None), (64, 3, ""), (128, 2, ".NaN"),
])  # fmt: skip
def test_loads_from_tensor_memory(number: int, operation: int, red: str | None, engine: str) -> None:
    """red: how the reduction treats NaN, None without one."""
    rng = np.random.default_rng(number)
    given = rng.integers(0, 1 << 32, (LANES, number), dtype=np.uint32)
    few = np.array([0, 1 << 31, 0x3F80_0000, 0xBF80_0000, 0x7FC0_0000, 5, 0xFF80_0000], np.uint32)
    given[::2] = rng.choice(few, (LANES // 2, number))
    words, abs_ = -(-number // 32), ".abs" if operation & 1 else ""
    head = "tcgen05.ld.red" if red is not None else "tcgen05.ld"
    results = words + number // 2
    last = f"%o{results}, " if red is not None else ""
    out = run(
        engine,
        f"""tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 128; bar.sync 0; ld.shared.u32 %t, [place];
    tcgen05.st.sync.aligned.32x32b.x{number}.b32 [%t], {names("i", number)}; tcgen05.wait::st.sync.aligned;
    {head}.spcompress.sync.aligned.32x32b.x{number}.{"min" if operation & 2 else "max"}.sp::2:4{abs_}{red or ""}.f32.b2
        {registers("o", 0, words)}, {registers("o", words, number // 2)}, {last}[%t];
    tcgen05.wait::ld.sync.aligned; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, 128;""",
        given, results + (red is not None),
    )  # fmt: skip
    for lane in range(LANES):
        row = given[lane].tolist()
        places = [pick([single(e) for e in row[n : n + 4]], operation) for n in range(0, number, 4)]
        kept = [row[4 * n + i] for n, both in enumerate(places) for i in both]
        wanted = pack([i for both in places for i in both], 2) + kept
        if red is not None:
            wanted.append(reduction(row, operation, propagate=red == ".NaN"))
        assert out[lane].tolist() == wanted, lane


def reduction(row: list[int], operation: int, *, propagate: bool) -> int:
    """The least or greatest of all: NaN if one is and it propagates, or all are."""
    bits = [word & 0x7FFF_FFFF if operation & 1 else word for word in row]
    numbers = [word for word in bits if not math.isnan(single(word))]
    if not numbers or (propagate and len(numbers) < len(bits)):
        return 0x7FFF_FFFF
    key = lambda word: (single(word), math.copysign(1, single(word)))  # noqa: E731
    return min(numbers, key=key) if operation & 2 else max(numbers, key=key)
