"""PTX616 names the releases of ptxas that miscompile a form, and says nothing of its likes that they compile well."""

from itertools import groupby

import numpy as np
import pytest

from ptxtools.check import check
from ptxtools.linter import lint
from ptxtools.linter.releases import VERSIONS, between
from ptxtools.syntax import parse
from tools.conformance.miscompiled import THREADS, WORDS, computed, meant, module_of, numbers
from tools.conformance.recorded import FOLDER, read
from tools.conformance.sass import UnsupportedError
from tools.conformance.setting import where

ROWS = read(FOLDER / "miscompiled.tsv")

#: What ptxas 13.2 and 13.5 make of (x << 8) - (x >> 56) for sm_90, without the instructions that compute addresses.
ROTATED = """
S2R R0, SR_TID.X
ULDC.64 UR6, c[0x0][0x218]
ULDC.64 UR8, c[0x0][0x210]
IMAD.SHL.U32 R4, R0, 0x20, RZ
IADD3 R2, P0, R4, UR6, RZ
IADD3.X R3, RZ, UR7, RZ, P0, !PT
LDG.E.64 R6, desc[UR4][R2.64+0x10]
LEA R2, P0, R0, UR8, 0x3
LEA.HI.X R3, R0, UR9, RZ, 0x3, P0
"""
ENDS = "STG.E.64 desc[UR4][R2.64], R4\nEXIT"
WRONG = "SHF.L.W.U32.HI R4, R7, 0x8, R6\nSHF.L.W.U32.HI R5, R6, 0x8, R7\n"
RIGHT = """SHF.R.U32.HI R9, RZ, 0x18, R7
SHF.L.U64.HI R0, R6.reuse, 0x8, R7
LEA R4, P0, R6, -R9, 0x8
IADD3.X R5, R0, -0x1, RZ, P0, !PT
"""


def said(setting: str, body: str) -> list[str]:
    """The messages of PTX616 about statements."""
    return [one.message for one in lint(parse(module_of(setting, [body])).module) if one.code == "PTX616"]


def named(message: str) -> set[str]:
    """The releases in a message."""
    first, _, last = message.removeprefix("ptxas ").partition(" miscompiles")[0].partition(" to ")
    return set(between(first, last or first))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.setting} {row.written}")
def test_releases_that_are_wrong_are_named(row):
    wrong = {release for release, verdict in row.by_release.items() if verdict == "wrong"}
    messages = said(row.setting, row.written)
    if not wrong:
        assert not messages
        return
    (message,) = messages
    assert {release for release in named(message) if release in row.by_release} == wrong


@pytest.mark.parametrize("row", [row for row in ROWS if row.instead], ids=lambda row: f"{row.setting} {row.instead}")
def test_nothing_is_said_of_what_may_stand_instead(row):
    assert not said(row.setting, row.instead)


@pytest.mark.parametrize("setting", sorted({row.setting for row in ROWS}))
def test_what_may_stand_instead_computes_the_same(setting):
    rows = [row for row in ROWS if row.setting == setting and row.instead]
    text = module_of(setting, [body for row in rows for body in (row.written, row.instead)])
    parsed = parse(text)
    assert not [*parsed.diagnostics, *check(parsed.module)]
    found = meant(text, 2 * len(rows), numbers(7))
    for at, row in enumerate(rows):
        assert found[2 * at] == found[2 * at + 1], row.written


def test_every_release_was_asked_about_most_forms():
    assert set(VERSIONS) == {release for row in ROWS for release in row.by_release}


def test_releases_that_cannot_read_the_module_are_not_named():
    row = next(row for row in ROWS if row.by_release["13.2"] == "wrong" and row.by_release["13.3"] == "right")
    target = where(row.setting)[1]
    assert named(said(f"9.1/{target}", row.written)[0]) == {"13.1", "13.2"}
    assert not said(f"9.3/{target}", row.written)


def test_another_number_between_changes_nothing_that_is_said():
    """The forms hold in one stretch of code, and for a register that is written again."""
    body = "shl.b64 %rd3, %rd1, 8; shr.u64 %rd4, %rd1, 56; {}sub.s64 %rd0, %rd3, %rd4;"
    assert said("8.0/sm_90", body.format("add.u32 %r5, %r1, 1; "))
    assert not said("8.0/sm_90", body.format("setp.eq.u32 %p1, %r1, 0; @%p1 bra L; mov.u64 %rd4, 1; L: "))
    assert not said("8.0/sm_90", "shl.b64 %rd3, %rd1, 8; add.u64 %rd1, %rd1, 1; shr.u64 %rd4, %rd1, 56; "
                    "sub.s64 %rd0, %rd3, %rd4;")  # fmt: skip


@pytest.mark.parametrize(("code", "rotated"), [(WRONG, True), (RIGHT, False)])
def test_machine_code_is_evaluated(code, rotated):
    given = numbers(3)
    found = computed((ROTATED + code + ENDS).strip().splitlines(), "sm_90", given)
    x = [int(row[4]) | int(row[5]) << 32 for row in given]
    full = (1 << 64) - 1
    assert found == [(each << 8 & full) | each >> 56 if rotated else (each << 8) - (each >> 56) & full for each in x]


def test_unknown_machine_code_is_refused():
    with pytest.raises(UnsupportedError, match="HMMA"):
        computed(["HMMA.16816.F32 R4, R8, R10, R4", "EXIT"], "sm_90", np.zeros((THREADS, WORDS), np.uint32))
    with pytest.raises(UnsupportedError, match="end"):
        computed(["NOP"], "sm_90", np.zeros((THREADS, WORDS), np.uint32))


def test_verdicts_change_at_most_twice():
    """A form that some releases miscompile is one that they share: no gap, but for those that were not asked."""
    for row in ROWS:
        runs = [verdict for verdict, _ in groupby(row.by_release.values())]
        assert runs.count("wrong") <= 1, row.written
