"""9.7.10.30 and 9.7.10.31 of PTX 9.4: vectors with a few elements of each group, and the places of those elements."""

from .conditions import Context

PAGES = """
# 9.7.9.30 spcompress
    spcompress.elemsize.idxsize.spfactor.num
        =mdata:b32*metadata(whole), =cdata:b32*kept(whole), data:b32*dense, spdesc:b32(reg);
    .elemsize = { .b8, .b16 };
    .idxsize  = { .b2, .b4 };
    .spfactor = { .sp::2:4 };
    .num      = { .x1, .x2, .x4, .x8, .x16, .x32, .x64 };
    rule compressed
    needs => ptx 9.4, sm_107a

# 9.7.9.31 spdecompress
    spdecompress.elemsize.idxsize.spfactor.num  =data:b32*dense(whole), mdata:b32*metadata, cdata:b32*kept;
    .elemsize = { .b8, .b16 };
    .idxsize  = { .b2, .b4 };
    .spfactor = {
        .sp::1:2, .sp::1:4, .sp::1:8, .sp::1:16, .sp::2:4, .sp::2:8, .sp::2:16, .sp::4:8, .sp::4:16
    };
    .num      = { .x1, .x2, .x4, .x8, .x16, .x32, .x64 };
    rule decompressed
    needs => ptx 9.4, sm_107a
"""

#: Registers of all vectors together, and of the dense one of spdecompress.
_MOST, _MOST_DENSE = 253, 128


def _sizes(context: Context) -> tuple[int, int, int, int, int]:
    """Bits of an element and of an index, elements that are kept and of a group, repetitions."""
    kept, _, group = context.mods["spfactor"].removeprefix("sp::").partition(":")
    element, index, number = (int(context.mods[slot][1:]) for slot in ("elemsize", "idxsize", "num"))
    return element, index, int(kept), int(group), number


def _registers(bits: int) -> int:
    return -(-bits // 32)


def compressed(context: Context) -> dict[str, int | str] | str:
    """Lengths of the vectors (9.7.10.30, table 37): one repetition is a register of kept elements."""
    element, index, _, _, number = _sizes(context)
    return {"dense": 2 * number, "kept": number, "metadata": -(-number * index // element)}


def decompressed(context: Context) -> dict[str, int | str] | str:
    """Lengths of the vectors (9.7.10.31, table 39): one repetition is a group."""
    element, index, kept, group, number = _sizes(context)
    if kept * element > 32:
        return f"{kept} elements of {element} bits do not fit 32 bits"
    if group > 1 << index:
        return f"an index of {index} bits does not reach {group} elements"
    if group * element * number < 32:
        return "the dense vector has less than 32 bits"
    dense, places = _registers(group * element * number), _registers(kept * index * number)
    values = _registers(kept * element * number)
    if dense > _MOST_DENSE or dense + places + values > _MOST:
        return f"the dense vector has {dense} registers, all vectors {dense + places + values}"
    return {"dense": dense, "metadata": places, "kept": values}
