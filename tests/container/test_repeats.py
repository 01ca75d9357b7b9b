"""Instructions that occur more than once stand in a container once."""

import pytest

from ptxtools.container import decode_all, read, write
from ptxtools.container.code import Body, decode_columns
from ptxtools.container.elf import parse_elf
from ptxtools.container.repeats import fold
from ptxtools.container.tables import decode_tables
from ptxtools.diagnostics import PtxError
from ptxtools.ir import Instruction

from .samples import module, resealed

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n.global .u32 total;\n"
BODY = """{
    .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<3>;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 add.s32 %r2, %r2, 1;
    @!%p1 add.s32 %r2, %r2, 1;
    @%p1 add.s32 %r2, %r2, 1;
    mov.u64 %rd1, total;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
TEXT = HEAD + "".join(f".visible .entry k{n}() {BODY}" for n in range(3))


def repeated(data):
    table = decode_tables(parse_elf(data).find(".ptx").data)["repeats"]
    return decode_columns(table) if table else ((), (), ())


def test_the_table_has_each_once_and_the_most_frequent_first():
    data = write(module(TEXT))
    heads, _, guards = repeated(data)
    assert len(heads) == 5  # all but the `mov`, to which a relocation points
    back = decode_all(read(data))
    assert back == module(TEXT)
    first, second = ([i for i in f.body.items if type(i) is Instruction] for f in back.functions[:2])
    assert first[1].operands is second[1].operands is first[3].operands and first[1].guard is second[1].guard
    assert first[1] is not first[3] and first[1].span != first[3].span
    assert len(guards) == 2


def test_relocations_point_to_every_use():
    rows = [s for s in parse_elf(write(module(TEXT))).sections if s.name.startswith(".rela.text.")]
    assert [len(section.data) // 24 for section in rows] == [1, 1, 1]


def test_a_module_without_repetition_has_no_table():
    once = HEAD + ".entry k() { .reg .b32 %r<2>; mov.u32 %r1, 5; ret; }"
    assert repeated(write(module(once))) == ((), (), ())


def test_a_repeated_instruction_takes_a_byte():
    (code,) = {bytes(s.data) for s in parse_elf(write(module(TEXT))).sections if s.name.startswith(".text.")}
    statements, operands, records = (len(column) for column in decode_columns(memoryview(code)))
    assert (statements, operands, records) == (10, 2, 3)


@pytest.mark.parametrize("head", [0, 1, 200], ids=["record", "label", "no shape"])
def test_only_instructions_are_repeated(head):
    data = write(module(TEXT.replace("setp", "$here: setp")))
    table = bytes(decode_tables(parse_elf(data).find(".ptx").data)["repeats"])
    place = data.index(table) + 16  # behind the lengths of its columns
    forged = resealed(data[:place] + bytes([head]) + data[place + 1 :])
    with pytest.raises(PtxError, match="damaged"):
        decode_all(read(forged))


def test_folding_keeps_what_it_must():
    """Operands 7 and 8 with a relocation stay; what occurs once stays; records pass."""
    shapes = [(0, "ret", 0), (1, "add", 2), (6, "", 0)]
    bodies = [Body([2, 1, 0, 1], [3, 4, 7, 4], [9, 0, 0]), Body([1, 0, 1], [3, 4, 7, 4], [0, 0])]
    table = fold(bodies, shapes, {7, 8})
    assert (table.heads, table.operands, table.extras) == ([1, 0], [3, 4], [0])
    assert (bodies[0].heads, bodies[0].operands, bodies[0].extras) == ([2, 3, 4, 1], [7, 4], [9, 0])
    assert (bodies[1].heads, bodies[1].operands, bodies[1].extras) == ([3, 4, 1], [7, 4], [0])
