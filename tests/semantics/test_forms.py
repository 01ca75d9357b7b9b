"""Meaning is bound to forms: every form of the tables has one or is refused by name, and never runs as another form."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

import ptxtools
from ptxtools import isa, semantics
from ptxtools.diagnostics import PtxError
from ptxtools.isa import opcode as opcodes
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.notation import Page, split_pages
from ptxtools.isa.types import TYPES
from ptxtools.semantics import forms
from tools.forms import Change, changes, written

from . import refused

#: Operands that a made-up form's opcodes are written with.
HEAD = """.version 9.0
.target {}
.address_size 64
.visible .entry k() {{
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .shared .b32 place[64];
    {}
    ret;
}}
"""


def spelled(form: isa.Form) -> Iterator[isa.Opcode]:
    """Opcodes of a form: all combinations of its types, each with every other modifier; some combinations at random."""
    slots = [(*([None] if e.optional else []), *e.values) for e in form.elements]
    typed = [e.values[0] in TYPES for e in form.elements]
    fixed = [values if of_type else values[:1] for values, of_type in zip(slots, typed, strict=True)]
    chosen = set(product(*fixed))
    for place, values in enumerate(slots):
        if not typed[place]:
            for value in values[1:]:
                chosen.update(product(*fixed[:place], (value,), *fixed[place + 1 :]))
    dice = random.Random(form.syntax)
    chosen.update(tuple(dice.choice(values) for values in slots) for _ in range(40))
    for values in chosen:
        opcode = isa.declared(".".join([form.family, *(value for value in values if value is not None)]))
        if opcode is not None:  # no combination that the manual excludes
            yield opcode


def test_every_form_has_a_meaning() -> None:
    found: set[str] = set()
    unspelled, without = [], set()
    for family in sorted(CHAPTERS):
        for form in isa.forms(family):
            some = list(spelled(form))
            found.update(op.text for op in some)
            without.update(op.text for op in some if not semantics.covers(op))
            unspelled += [] if some else [form]
    print(f"{len(found)} opcodes; without a meaning:", ", ".join(sorted(without)) or "none")
    assert not unspelled
    assert len(found) > 12_000
    assert {text for text in without if not refused.is_refused(isa.resolve(text))} == set()
    assert without >= refused.FORMS


def test_every_row_has_the_forms_of_its_instructions() -> None:
    """Somebody has looked at each form that may run; `make forms` tells what to write."""
    found = changes()
    assert not found, "\n".join(map(str, found))


def test_every_row_is_of_an_instruction() -> None:
    names = {form.name for family in CHAPTERS for form in isa.forms(family)}
    assert names - set(forms._texts()) == refused.INSTRUCTIONS
    assert set(forms._texts()) <= names


def test_modifiers_and_types_count_together() -> None:
    """An alternative's modifiers go with its own types."""
    made = isa.Opcode.__new__(isa.Opcode)
    made.text, made.name, made.types, made.form = "made up", "add", ("u16",), isa.resolve("add.u16").form
    for atoms, known in (({"u16"}, True), ({"u16", "sat"}, False), ({"u16", "rn"}, False)):
        made.atoms = frozenset(atoms)
        assert forms.covers(made) is known


def digests(*lines: str) -> list[str]:
    """Of the forms of a page with these lines."""
    return [form.digest for form in Page("9.9", ("mad", "mul"), "\n".join(lines), isa.pages("mad")[0]._chapter).forms]


FORMS = (
    "mul.mode.type d, a, b;",
    "mad{.hi}{.sat}.type d, a, b, c;",
    ".mode = { .hi, .lo };",
    ".type = { .s32, .u32 };",
)


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        (FORMS, [False, False]),
        (("needs => ptx 9.0, sm_100", *FORMS, "needs .sat => ptx 8.0"), [False, False]),
        ((FORMS[1], FORMS[0], *FORMS[2:]), [True, True]),  # in the other order: compared at their places
        ((*FORMS[:2], ".mode = { .lo, .hi };", FORMS[3]), [False, False]),
        ((*FORMS[:2], ".mode = { .hi, .lo, .wide };", FORMS[3]), [True, False]),
        ((*FORMS[:3], ".type = { .s32, .u32, .s64 };"), [True, True]),
        ((FORMS[0], "mad{.hi}{.sat}.type d, a, b, c, e;", *FORMS[2:]), [False, True]),
        ((FORMS[0], "mad.hi{.sat}.type d, a, b, c;", *FORMS[2:]), [False, True]),
        ((*FORMS, "only .sat => type=.s32"), [False, True]),
        ((*FORMS, "only type=.u32 => .hi"), [True, True]),
        ((*FORMS, "only mul .hi => type=.u32"), [True, False]),
        ((*FORMS, "only mode=.hi !.sat => type=.u32"), [True, False]),
        ((*FORMS, "only .relu => type=.s32"), [False, False]),
    ],
)
def test_a_digest_changes_with_what_a_form_allows(lines: tuple[str, ...], changed: list[bool]) -> None:
    assert [one != other for one, other in zip(digests(*lines), digests(*FORMS), strict=True)] == changed


def test_digests_are_written_at_the_ends_of_rows() -> None:
    text = "\nadd sub = : u32\n    sat : s32 | 00000 11111\nadd = ftz : f32\nexit trap =\n"
    long = " ".join(f"{number:05x}" for number in range(30))
    made = written(text, [Change(("add", "sub"), "22222", []), Change(("exit", "trap"), "33333 44444", [])])
    assert made == "\nadd sub = : u32\n    sat : s32 | 22222\nadd = ftz : f32\nexit trap = | 33333 44444\n"
    wide = written(made, [Change(("add",), long, [])])
    assert max(map(len, wide.splitlines())) <= 120 and " ".join(wide.split()).count(f"f32 | {long} exit trap") == 1
    assert written(wide, [Change(("add",), "55555", [])]) == made.replace("f32\n", "f32 | 55555\n")


# --- forms that the tables gain ---------------------------------------------------------------------------------------

MADE_UP = [
    ("cvt", "cvt.rnd.dtype.atype d:dtype, a:atype;\n .rnd = { .rn };\n .dtype = { .f16x2 };\n .atype = { .bf16x2 };",
     "cvt.rn.f16x2.bf16x2 %r1, %r2;"),
    ("cvt", "cvt.rnd.dtype.atype d:dtype+, a:atype+;\n .rnd = { .rni };\n .dtype = { .b32 };\n .atype = { .f32 };",
     "cvt.rni.b32.f32 %r1, %f2;"),
    ("cvt", "cvt.rnd.odd.dtype.atype d:dtype+, a:atype+;\n .rnd = { .rn };\n .dtype = { .f32 };\n .atype = { .f64 };",
     "cvt.rn.odd.f32.f64 %f1, %rd2;"),
    ("add", "add.wrapped.type d, a, b;\n .type = { .u32 };", "add.wrapped.u32 %r1, %r2, %r3;"),
    ("add", "add.type d, a, b;\n .type = { .b32 };", "add.b32 %r1, %r2, %r3;"),
    ("min", "min.relu.type d, a, b;\n .type = { .u32 };", "min.relu.u32 %r1, %r2, %r3;"),
    ("shl", "shl.clamp.type d, a, b:u32;\n .type = { .b32 };", "shl.clamp.b32 %r1, %r2, %r3;"),
    ("ld", "ld.twice.ss.type d:type+, [a];\n .ss = { .shared };\n .type = { .b32 };",
     "ld.twice.shared.b32 %r1, [place];"),
    ("atom", "atom.space.op.type d, [a], b;\n .space = { .shared };\n .op = { .min };\n .type = { .b32 };",
     "atom.shared.min.b32 %r1, [place], %r2;"),
    ("atom", "atom.space.nand.type d, [a], b;\n .space = { .shared };\n .type = { .b32 };",
     "atom.shared.nand.b32 %r1, [place], %r2;"),
    ("shfl.sync", "shfl.sync.mode.type d, a, b:u32, c:u32, m:u32;\n .mode = { .rotate };\n .type = { .b32 };",
     "shfl.sync.rotate.b32 %r1, %r2, 1, 31, -1;"),
    ("mma", "mma.sync.aligned.shape.row.col.kind::f4.dtype.atype.btype.ctype d:f32*4, a:b32*4, b:b32*2, c:f32*4;\n"
     " .shape = { .m16n8k32 };\n .dtype = { .f32 };\n .atype = { .e4m3 };\n .btype = { .e4m3 };\n .ctype = { .f32 };",
     "mma.sync.aligned.m16n8k32.row.col.kind::f4.f32.e4m3.e4m3.f32 "
     "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};"),
    ("mma", "mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d:f32*4, a:b32*4, b:b32*2, c:f32*4;\n"
     " .shape = { .m16n8k24 };\n .dtype = { .f32 };\n .atype = { .f16 };\n .btype = { .f16 };\n .ctype = { .f32 };",
     "mma.sync.aligned.m16n8k24.row.col.f32.f16.f16.f32 "
     "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};"),
    ("fence", "fence.later.scope;\n .scope = { .gpu };", "fence.later.gpu;"),
    # what other forms of the instruction have, put together in a new way
    ("fence", "fence.sc.mbarrier_init.scope;\n .scope = { .gpu };", "fence.sc.mbarrier_init.gpu;"),
    ("mad", "mad.hi.lo.type d, a, b, c;\n .type = { .u32 };", "mad.hi.lo.u32 %r1, %r2, %r3, %r4;"),
    ("cvt", "cvt.rnd.sat.dtype.atype d:dtype+, a:atype+;\n .rnd = { .rni };\n .dtype = { .f32 };\n .atype = { .f16 };",
     "cvt.rni.sat.f32.f16 %f1, %h1;"),
    ("ld", "ld.volatile.relaxed.ss.type d:type+, [a];\n .ss = { .shared };\n .type = { .b32 };",
     "ld.volatile.relaxed.shared.b32 %r1, [place];"),
    ("fma", "fma.rnd.sat.relu.type d, a, b, c;\n .rnd = { .rn };\n .type = { .f16 };",
     "fma.rn.sat.relu.f16 %h1, %h2, %h3, %h4;"),
    ("bar", "bar.sync.arrive a:u32;", "bar.sync.arrive 0;"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize(("name", "form", "line"), MADE_UP, ids=[line.split()[0] for _, _, line in MADE_UP])
def test_a_new_form_is_refused(name: str, form: str, line: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables know it, so that it is read and checked; nothing computes it."""
    family = name.partition(".")[0]
    known = isa.pages(family)
    body = "\n".join(f"    {part.strip()}" for part in form.split("\n"))
    new = [Page(*page, known[0]._chapter) for page in split_pages(f"\n# 9.9.9.9 {name}\n{body}\n")]
    monkeypatch.setitem(opcodes._pages, family, (*known, *new))
    monkeypatch.setattr(opcodes, "_resolved", dict(opcodes._resolved))
    text = isa.resolve(line.split()[0].rstrip(";")).text
    module = ptxtools.loads(HEAD.format("sm_120a", line))
    with pytest.raises(PtxError, match="has no simulation") as refusal:
        ptxtools.Device("sm_120a", engine=engine).launch(module["k"], 1, 32, [])
    assert text in str(refusal.value)
