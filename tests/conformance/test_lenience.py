"""What ptxas takes beyond the manual: a warning where its machine code is that of the manual's form, else an error."""

from collections import Counter

import pytest

from ptxtools import isa
from ptxtools.check import check
from ptxtools.syntax import parse
from tools.conformance.lenience import FILE, Row, read
from tools.conformance.setting import module_of

ROWS = read(FILE)
#: Errors although the code is the same: what is written is dropped, or is a type that nobody can mean.
DROPPED = {
    "sust.b.1d.b32.trap [sf, {%r1}], {%r1, %r2};": "the second element is not stored",
    "st.async.gpu.b8 [%rd9], %b2;": "a weak store has no scope: ptxas makes a release of it",
    ".entry k(.param .u64 .align 8 x) { ret; }": "an alignment behind the type is dropped",
    ".entry k(.param .b8 .align 8 a[8]) { ret; }": "an alignment behind the type is dropped",
    ".entry k(.param .b8 z, .param .b8 .align 8 a[8]) { .reg .b32 d; .reg .b64 e; ld.param.b8 d, [a]; "
    "st.global.b32 [e], d; ret; }": "an alignment behind the type is dropped",
    "mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16.u4 {%r0, %r1}, {%r0, %r1}, {%r0}, {%r0, %r1};":
    "a fifth type is dropped",
    "mma.sp.sync.aligned.m16n8k16.row.col.v2.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r0, %r1}, {%r0, %r1}, %r5, 0;":
    "a type of vectors that ptxas holds against all of them",
    "red.add.u32 [sf], %r1;": "an access to a surface is left out",
}  # fmt: skip


def codes(row: Row) -> set[str]:
    lines, _ = module_of(row.setting, row.place, [row.written])
    result = parse("\n".join(lines))
    return {d.code for d in [*result.diagnostics, *check(result.module)]}


def test_there_are_rows_of_each_kind() -> None:
    counts = Counter(row.verdict for row in ROWS)
    assert set(counts) == {"same", "other", "refused"}
    assert counts["same"] > 150 and counts["other"] > 5 and counts["refused"] > 3
    assert set(DROPPED) <= {row.written for row in ROWS if row.verdict == "same"}


@pytest.mark.parametrize("verdict", ["same", "other", "refused"])
def test_what_is_compiled_as_meant_is_a_warning(verdict: str) -> None:
    wrong = []
    for row in ROWS:
        found = codes(row)
        warned = row.verdict == "same" and row.written not in DROPPED
        if row.verdict == verdict and (found == {"PTX610"} if warned else bool(found - {"PTX610"})) is False:
            wrong.append((row.written, found))
    assert wrong == []


def test_an_opcode_means_what_the_manual_s_form_means() -> None:
    """So that the engines run what ptxas compiles."""
    compared = 0
    for row in ROWS:
        written, meant = (text.split(" ")[0].rstrip(";") for text in (row.written, row.meant))
        if (
            row.place == "line"
            and row.verdict == "same"
            and row.written not in DROPPED
            and written != meant
            and "kind::" not in written
            and meant != "{"
        ):
            assert isa.resolve(written) is isa.resolve(meant), row
            compared += 1
    assert compared > 100
