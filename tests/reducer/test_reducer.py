"""The search itself, with conditions in place of commands."""

from collections import Counter
from types import MappingProxyType
from typing import ClassVar

import pytest

from ptxtools.check import check
from ptxtools.diagnostics import Severity
from ptxtools.reducer import Trial, reduced, trial
from ptxtools.reducer.edits import edited
from ptxtools.syntax import parse, print_module
from tests.rows import rows

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
MODULE = (
    HEAD
    + """
.visible .global .align 16 .v4 .f32 table[4] = {{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}};
.global .u64 where = generic(table)+8;
.func (.param .b32 r) helper(.param .b32 x) { .reg .b32 h; ld.param.b32 h, [x]; st.param.b32 [r], h; ret; }
.extern .func other(.param .b64 y);
.visible .entry a_long_name(.param .b64 .ptr .global .align 16 a, .param .b32 n) .maxntid 128 .minnctapersm 2
{
    .reg .b32 %r<90>; .reg .b64 %rd<9>; .reg .pred %p<3>; .reg .f32 %f<9>;
    .shared .align 16 .b8 buffer[4096];
    ld.param.b64 %rd1, [a];
    ld.param.b32 %r10, [n];
    setp.gt.u32 %p1, %r10, 5;
    @!%p1 bra SKIPPED;
    add.u32 %r22, %r10, 7;
    mul.lo.u32 %r89, %r22, 12345;
    @%p1 st.global.v4.b32 [%rd1+16], {%r10, %r22, %r89, %r10};
    ld.global.nc.L1::no_allocate.f32 %f1, [%rd1+8];
    bra SKIPPED;
SKIPPED:
    {
    .reg .b32 t; .param .b32 in; .param .b32 out;
    st.param.b32 [in], %r22;
    call (out), helper, (in);
    ld.param.b32 t, [out];
    mul.lo.u32 t, t, t;
    }
    tab: .branchtargets SKIPPED, LAST;
    brx.idx %r10, tab;
LAST:
    cvt.rn.sat.f32.s32 %f2, %r10;
    ret;
}
"""
)


class Condition:
    """In place of a process: whether a text is interesting."""

    holds = staticmethod(lambda text: True)

    seen: ClassVar[list[str]] = []

    def __init__(self, _, path):
        with open(path) as file:
            self.text = file.read()
        self.seen.append(self.text)

    def succeeds(self):
        return type(self).holds(self.text)

    def end(self):
        pass


@pytest.fixture
def reduce(monkeypatch):
    def run(condition, text=MODULE, jobs=1, tolerated=MappingProxyType({})):
        Condition.holds, Condition.seen = staticmethod(condition), []
        monkeypatch.setattr(trial, "_Run", Condition)
        kept = []
        with Trial("", "a.ptx", jobs, tolerated, kept.append) as search:
            result = print_module(reduced(parse(text).module, search))
        assert result == (kept[-1] if kept else print_module(parse(text).module))
        return result, kept

    return run


def body(text):
    return text[text.index("{") + 1 : text.rindex("}")].split()


@rows(("wanted", "lines"), [
    ((), None),
    (("mul.lo",), [".reg .b32 %r<1>;", "mul.lo.u32 %r0, 0, 0;"]),
    (("ld.global.nc",), [".reg .b64 %rd<1>;", ".reg .f32 %f<1>;", "ld.global.nc.f32 %f0, [%rd0];"]),
    (("cvt.rn.sat",), [".reg .f32 %f<1>;", "cvt.rn.sat.f32.s32 %f0, 0;"]),
    (("12345", "setp"), None),
    (("brx.idx",), [".reg .b32 %r<1>;", "L0:", "tab: .branchtargets L0;", "brx.idx %r0, tab;"]),
])  # fmt: skip
def test_what_is_left(reduce, wanted, lines):
    text, kept = reduce(lambda text: all(word in text for word in wanted))
    assert all(word in text for word in wanted)
    assert len(text) < 260
    if not wanted:
        assert text.split() == HEAD.split()
    if lines is not None:
        assert " ".join(body(text)) == " ".join(lines)
    for step in kept:
        found = parse(step)
        assert not found.diagnostics
        assert not check(found.module), step
    assert len(kept[-1]) <= min(map(len, kept)) + 8  # constants replace names at the same length


def test_commands_see_only_valid_modules(reduce):
    reduce(lambda text: "call" in text)
    for text in Condition.seen:
        assert not check(parse(text).module), text


@rows("jobs", [2, 5])
def test_the_result_does_not_depend_on_the_jobs(reduce, jobs):
    def condition(text):
        return "12345" in text and ("table" in text or "buffer" in text)

    alone, together = reduce(condition), reduce(condition, jobs=jobs)
    assert alone == together


def test_errors_of_the_input_may_stay(reduce):
    text = MODULE.replace("add.u32 %r22, %r10, 7;", "add.u32 %r22, %unknown, 7;")
    codes = Counter(d.code for d in check(parse(text).module))
    assert codes
    result, _ = reduce(lambda text: "unknown" in text, text, tolerated=codes)
    assert "unknown" in result
    assert len(result) < 200


#: A change of the module, and a word that stays.
BROKEN = [
    ("add.u32 %r22, %r10, 7;", "add.u32 %r22, %unknown, 7;", "unknown"),
    ("add.u32 %r22, %r10, 7;", "add.f16 %r22, %r10, 7;", "add.f16"),
    ("add.u32 %r22, %r10, 7;", "add.u32 %r22, %r10;\n bra NOWHERE;", "NOWHERE"),
    ("st.param.b32 [r], h;", "st.param.b32 [gone], h;", "gone"),
]


@rows(("old", "new", "word"), BROKEN)
def test_an_invalid_module_gets_no_other_errors(reduce, old, new, word):
    """Neither another kind of error nor more of one, in any candidate."""
    assert MODULE.count(old) == 1
    text = MODULE.replace(old, new)
    own = Counter(d.code for d in check(parse(text).module) if d.severity is Severity.ERROR)
    assert own
    result, kept = reduce(lambda text: word in text, text, tolerated=own)
    assert word in result and kept
    for step in (*Condition.seen, *kept):
        found = Counter(d.code for d in check(parse(step).module) if d.severity is Severity.ERROR)
        assert found <= own, step


def test_dropping_a_declaration_takes_its_uses_along():
    module = parse(MODULE).module
    kernel = module.functions[-1]
    registers = kernel.body.items[0]
    assert registers.name == "%r"
    text = print_module(edited(module, {id(registers): None}))
    assert "%r1" not in text
    assert "%r2" not in text
    assert "ld.global.nc.L1::no_allocate.f32" in text
    assert not check(parse(text).module)


def test_dropping_a_function_drops_its_calls():
    module = parse(MODULE).module
    helper = next(f for f in module.functions if f.name == "helper")
    text = print_module(edited(module, {id(helper): None}))
    assert "helper" not in text
    assert not [d for d in check(parse(text).module) if d.severity.name == "ERROR"]


def test_the_tree_that_is_edited_stays_as_it_is():
    module = parse(MODULE).module
    before = print_module(module)
    edited(module, {id(item): None for item in module.functions[-1].body.items[3:9]})
    assert print_module(module) == before


def test_the_least_size_is_found_in_few_steps(reduce):
    """Of a variable, and of a range of registers."""

    def condition(text):
        module = parse(text).module
        sizes = [v.dims[0] for f in module.functions for v in f.body.items if v.space == "shared" and v.dims]
        counts = [v.count for f in module.functions for v in f.body.items if v.space == "reg"]
        return bool(sizes) and max(sizes) >= 49153 and bool(counts) and max(counts) >= 777

    text, _ = reduce(condition, HEAD + ".entry k() { .shared .b8 v[60000]; .reg .b32 %r<90000>; }\n")
    assert "[49153]" in text and "<777>" in text
    assert len(Condition.seen) < 200
