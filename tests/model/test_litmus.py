"""The reader of litmus tests: what it accepts, and that all else is an error with a position."""

import random

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from tests.model.suite import FILES, read
from tests.rows import rows

HEAD = "PTX t\n{ x=0; y=0; }\n"
ONE = "PTX t\n{{ x=0; y=0; }}\n P0@cta 0,gpu 0 ;\n {} ;\n"


def states(text, version="8.x"):
    return set(run(read(text), version).states)


ACCEPTED = [
    # text, the names in order, the final states
    (ONE.format("st.weak x, 1") + "locations [x]", {(1,)}),
    (ONE.format("st [x], 1") + "locations [x;]", {(1,)}),
    (ONE.format("st.global.weak.u32 [x], 0x1f") + "locations [x]", {(31,)}),
    (ONE.format("st.u8 [x], 300") + "locations [x]", {(44,)}),
    (ONE.format("st.s8 [x], 255") + "locations [x]", {(-1,)}),
    (ONE.format("st.weak x, -1") + "locations [x]", {(-1,)}),
    (ONE.format("ld r0, 7") + "locations [P0:r0]", {(7,)}),
    (ONE.format("ld.weak r0, 7") + "locations [0:r0]", {(7,)}),
    (ONE.format("mov.u32 %r0, 7") + "locations [P0:%r0]", {(7,)}),
    (ONE.format("atom.relaxed.gpu.plus r0, x, 1") + "locations [P0:r0; x]", {(0, 1)}),
    (ONE.format("atom.add.relaxed.gpu.u32 r0, [x], 1") + "locations [P0:r0; x]", {(0, 1)}),
    (ONE.format("atom.relaxed.gpu.minus r0, x, 1") + "locations [x]", {(-1,)}),
    (ONE.format("atom.relaxed.gpu.inc.u32 r0, x, 0") + "locations [x]", {(0,)}),
    (ONE.format("atom.relaxed.gpu.dec.u32 r0, x, 9") + "locations [x]", {(9,)}),
    (ONE.format("atom.relaxed.gpu.min.s32 r0, x, -4") + "locations [x]", {(-4,)}),
    (ONE.format("atom.relaxed.gpu.max.u32 r0, x, -4") + "locations [x]", {(0xFFFFFFFC,)}),
    (ONE.format("red.relaxed.gpu.or x, 6") + "locations [x]", {(6,)}),
    ("PTX t\n{ .global .u32 x = 5; uint32_t y; P0:r1=x; 0:r2 = &y; }\n P0@cta 0,gpu 0 ;\n ld.weak r0, [r1] ;\n"
     " st.weak [r2], r0 ;\nlocations [P0:r0; y]", {(5, 5)}),
    ("PTX t \"a { b\"\n// {\n(* { *) { x=1 }\nP0@cta 0, gpu 0;\nld.weak r0,x;\nfilter (P0:r0 == 0)\nlocations [x]",
     set()),
    ("ptx t\n{}\n P0 @ gpu 0, cta 3 | P1@cta 0, cluster 1, gpu 1;\n st.weak z, 1 || ;\nlocations [z]", None),
    (HEAD + " P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n st.weak x, 1 | ;\n | st.weak y, 1 ;\n st.weak x, 2 ;\n"
     "locations [x; y]", {(2, 1)}),
    (ONE.format("LC00: ;\n st.weak x, 1 ;\n goto LC01 ;\n st.weak x, 2 ;\n LC01:") + "locations [x]", {(1,)}),
    (ONE.format("setp.ne.s32 p1, r9, 0 ;\n @!p1 st.weak x, 1 ;\n @p1 st.weak x, 2") + "locations [x]", {(1,)}),
    (ONE.format("st.v2.u32 [x], {1, 2} ;\n ld.u32 r0, [x+4]") + "locations [P0:r0]", {(2,)}),
    (ONE.format("fence.sc.gpu; membar.gl; fence.acq_rel.cta") + "locations [x]", {(0,)}),
]  # fmt: skip


@rows(("text", "final"), ACCEPTED, ids=[f"accepted-{at}" for at in range(len(ACCEPTED))])
def test_accepted(text, final):
    if final is None:
        with pytest.raises(PtxError):
            read(text)
        assert states(text.replace("||", "|")) == {(1,)}
    else:
        assert states(text) == final


CONDITIONS = [
    ("exists (P0:r0 = 1)", True), ("exists P0:r0 == 1", True), ("exists (0:r0=1 /\\ x=1)", True),
    ("exists (P0:r0 == 0)", False), ("~exists (P0:r0 == 0)", True), ("not exists (P0:r0 == 0)", True),
    ("forall (P0:r0 == 1)", True), ("forall (P0:r0 > 1 \\/ [x] <= 1)", True), ("exists ~(x == 1)", False),
    ("exists (not (x == 1) \\/ x != 1)", False), ("exists 0==0", True), ("exists true", True),
    ("exists (x == 1 && P0:r0 >= 1)", True), ("exists (x == 2 || x < 2)", True), ("forall (x == 2 => x == 3)", True),
    ("exists (P0:r0 == P0:r1)", False), ("exists (x == 0x1);", True), ("exists (y == -1)", True),
    ("exists (y == 4294967295)", True), ("filter (x == 2) exists (x == 1)", False),
    ("locations [x; P0:r0;] exists (x == 1)", True), ("", True),
]  # fmt: skip


@rows(("condition", "holds"), CONDITIONS)
def test_conditions(condition, holds):
    text = "PTX t\n{ .u32 y = 0; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\n ld.weak r0, x ;\n st.weak y, -1 ;\n"
    assert run(read(text + condition)).holds == holds


REFUSED = [
    # text, line, column, part of the message
    ("", 1, 1, "begins with 'PTX'"),
    ("X86 t\n{}", 1, 1, "begins with 'PTX'"),
    ("PTX t\n nothing here", 2, 13, "expected '{'"),
    ("PTX t\n{ x=0", 2, 5, "expected ';'"),
    ("PTX t\n{ x=; }", 2, 5, "expected a number or a location"),
    ("PTX t\n{ x=0; }\n P0@cta 0,gpu 0 | P1 ;", 3, 19, "some have none"),
    ("PTX t\n{ x=0; }\n P0@gpu 0 ;", 3, 2, "names no CTA"),
    ("PTX t\n{ x=0; }\n P0@cta 0,gpu 0 | P0@cta 0,gpu 0 ;", 3, 19, "declared twice"),
    ("PTX t\n{ x=0; a @ foo aliases x; }\n P0@cta 0,gpu 0;", 2, 12, "unknown proxy"),
    ("PTX t\n{ x=0; P3:r0=0; }\n P0@cta 0,gpu 0;\n ld.weak r0, x;", 4, 2, "no thread for the initial value"),
    (ONE.format("ld.weak r0"), 4, 13, "expected ','"),
    (ONE.format("ld.strong r0, x"), 4, 2, "'.strong' of 'ld.strong' is not modelled"),
    (ONE.format("ld.release.gpu r0, x"), 4, 2, "'ld' has no '.release'"),
    (ONE.format("ld.relaxed r0, x"), 4, 2, "needs a scope"),
    (ONE.format("ld.weak.gpu r0, x"), 4, 2, "is weak and has a scope"),
    (ONE.format("st.weak x, foo"), 4, 13, "unknown register 'foo'"),
    (ONE.format("atom.relaxed.gpu r0, x, 1"), 4, 2, "names no operation"),
    (ONE.format("atom.xor.f32 r0, x, 1"), 4, 2, "floating-point"),
    (ONE.format("fence.sc"), 4, 2, "needs a scope"),
    (ONE.format("ld.nc.b64 r0, x"), 4, 2, "needs '.global' (9.7.9.9)"),
    (ONE.format("ld.global.nc.relaxed.gpu r0, x"), 4, 2, "has no memory order (9.7.9.9)"),
    (ONE.format("fence.proxy.foo"), 4, 2, "is not modelled"),
    (ONE.format("bar.red.popc.u32 r0, 0"), 4, 2, "needs a barrier and a predicate"),
    (ONE.format("frobnicate r0"), 4, 2, "is not modelled"),
    (ONE.format("goto L7"), 4, 2, "no label 'L7'"),
    (ONE.format("L0: ;\n L0:"), 5, 2, "defined twice"),
    (ONE.format("st.weak x, 1 | st.weak x, 2"), 4, 15, "more cells"),
    (ONE.format("st.weak x, 1") + "exists (z == 1)", 5, 9, "no location 'z'"),
    (ONE.format("st.weak x, 1") + "exists (P7:r0 == 1)", 5, 9, "no thread P7"),
    (ONE.format("st.weak x, 1") + "exists (x == 1", 5, 14, "expected ')'"),
    (ONE.format("st.weak x, 1") + "exists (x == 1) exists (x == 1)", 5, 17, "expected the end"),
    (ONE.format("st.weak x, 1") + "exists " + "(" * 5000 + "x", 5, 69, "nested too deeply"),
    (ONE.format("st.weak x, 1") + "exists x == " + "9" * 50, 5, 13, "too long"),
    (ONE.format("st.weak x, 1 (* open"), 4, 15, "has no end"),
    (ONE.format("st.weak x, \x00"), 4, 13, "unexpected text"),
]  # fmt: skip


@rows(("text", "line", "column", "message"), REFUSED, ids=[f"refused-{at}" for at in range(len(REFUSED))])
def test_refused(text, line, column, message):
    with pytest.raises(PtxError) as caught:
        read(text)
    found = caught.value.diagnostics[0]
    assert message in found.message and (found.line, found.column) == (line, column), (found, found.line, found.column)


def test_damaged_tests_are_read_or_refused():
    """Bytes are dropped, doubled, exchanged; nothing but PtxError comes of it."""
    generator = random.Random(7)
    texts = [path.read_text("utf-8") for path in FILES]
    refused = 0
    for _ in range(600):
        text = list(generator.choice(texts))
        for _ in range(generator.randint(1, 6)):
            at = generator.randrange(len(text))
            text[at] = generator.choice(
                ["", text[at] * 2, generator.choice('{}()[];|:,.@~\\/"-=0PxLr \n\x00é'), text[0]]
            )
        try:
            test = read("".join(text))
        except PtxError:
            refused += 1
            continue
        if sum(len(thread.instructions) for thread in test.threads) < 8:
            try:
                run(test, most=200)
            except PtxError:
                refused += 1
    assert 100 < refused < 600
