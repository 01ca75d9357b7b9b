"""Pairs of slow code and its correction: the rule finds the first and has nothing to say of the second."""

from pathlib import Path

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows

PAIRS = Path(__file__).parents[2] / "testdata" / "performance" / "pairs.txt"
FRAME = """.version 8.8
.target {target}
.address_size 64
{module}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n{parameters}) {directives} {{
.reg .pred %p<12>; .reg .b16 %h<8>; .reg .b32 %r<64>; .reg .b64 %d<32>; .reg .f32 %f<40>;
.shared .align 1024 .b8 sh[4096];
ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [n];
cvta.to.global.u64 %d3, %d1; cvta.to.global.u64 %d4, %d2;
mov.u32 %r2, %tid.x; mov.u32 %r3, sh; shl.b32 %r5, %r2, 2; add.u32 %r6, %r3, %r5;
mul.wide.u32 %d5, %r2, 4; add.u64 %d6, %d3, %d5; add.u64 %d7, %d4, %d5;
mov.u32 %r7, %ctaid.x; and.b32 %r8, %r2, 31;
{body}
ret;
}}
"""


def pairs():
    """Code, name, slow text, better text, and what fills the frame, of each pair."""
    _, *sections = PAIRS.read_text().split("\n== ")
    for section in sections:
        head, _, rest = section.partition("\nslow:\n")
        title, *options = head.split("\n")
        frame = {"target": "sm_80", "directives": ".reqntid 64", "module": "", "parameters": ""}
        frame |= dict(option.split(": ", 1) for option in options if option)
        slow, _, better = rest.partition("better:\n")
        code, _, name = title.partition(" ")
        yield code, name, slow, better, frame


def codes(body, frame):
    parsed = parse(FRAME.format(body=body, **frame), "k.ptx")
    found = [*parsed.diagnostics, *lint(parsed.module)]
    assert not [d for d in found if d.code[3] in "1234"], found
    return [d.code for d in found if d.code.startswith("PTX7")]


@rows(("code", "name", "slow", "better", "frame"), pairs)
def test_slow_code_and_its_correction(code, name, slow, better, frame):
    assert code in codes(slow, frame)
    assert codes(better, frame) == []


ROWS = "shl.b32 %r40, %r8, 7; add.u32 %r41, %r40, {}; add.u32 %r42, %r41, %r3; ld.shared.u32 %r43, [%r42];"


@rows(("body", "expected"), [
    (ROWS.format("%r1"), ["PTX711"]),  # by a parameter, which all lanes have in common
    ("ld.global.u32 %r50, [%d3]; " + ROWS.format("%r50"), ["PTX711"]),  # by one word of memory
    ("ld.global.u32 %r50, [%d6]; " + ROWS.format("%r50"), []),  # by a word of each lane
    ("xor.b32 %r50, %r8, %r1; shl.b32 %r51, %r50, 2; " + ROWS.format("%r51"), []),  # swizzled by a number of the launch
    ("setp.lt.u32 %p1, %r8, %r1; mov.u32 %r50, 0; @%p1 bra M; mov.u32 %r50, 4; M: " + ROWS.format("%r50"), []),
    ("shfl.sync.idx.b32 %r50, %r2, 0, 31, -1; " + ROWS.format("%r50"), []),  # not known to be one number
])  # fmt: skip
def test_what_lanes_do_not_have_in_common_hides_a_pattern(body, expected):
    frame = {"target": "sm_80", "directives": ".reqntid 32", "module": "", "parameters": ""}
    assert codes(body, frame) == expected


@rows(("body", "expected"), [
    ("atom.add.u32 %r40, [%d1], 1;", []),  # what ptxas mends
    ("atom.acq_rel.gpu.global.cas.b32 %r40, [%d3], 1, %r2;", []),
    ("atom.acquire.gpu.global.add.u32 %r40, [%d3], 1; st.global.u32 [%d7], %r40;", []),
    ("atom.acquire.gpu.global.add.u32 %r40, [%d3], 1; @%p1 mov.u32 %r40, 3; st.global.u32 [%d7], %r40;", []),
    ("L: atom.acquire.gpu.global.add.u32 %r40, [%d3], 1; setp.ne.u32 %p1, %r40, 3; @%p1 bra L;", []),
    ("atom.release.gpu.global.exch.b32 %r40, [%d3], 0;", ["PTX721"]),
    ("bar.sync 1, 64; bar.sync 1, 64;", []),  # each may be for the arrivals of others
    ("bar.sync 0; bar.sync 1;", []),
    ("bar.sync 0; ld.shared.u32 %r40, [%r6]; bar.sync 0; st.shared.u32 [%r6], %r40;", ["PTX723", "PTX723"]),
    ("xor.b32 %r41, %r6, 128; ld.shared.u32 %r40, [%r41]; bar.sync 0; st.shared.u32 [%r6], %r40;", []),
    ("@%p1 bra M; bar.sync 0; M: bar.sync 0;", []),
    ("fence.acq_rel.cta; bar.sync 1, 64;", []),
    ("fence.acq_rel.gpu; bar.sync 0;", []),
    ("and.b32 %r40, %r1, 0x7fffffff; st.global.u32 [%d7], %r40;", []),
    ("and.b32 %r40, %r1, 0x7fffffff; mov.b32 %f1, %r40; add.f32 %f2, %f1, %f1; add.u32 %r41, %r40, 1;", []),
    ("shl.b32 %r40, %r1, 8; shr.s32 %r41, %r40, 8; add.u32 %r42, %r40, 1;", []),  # it is needed, too
    ("neg.s32 %r40, %r1; max.s32 %r41, %r40, %r2;", []),
    ("neg.s32 %r40, %r1; setp.ge.s32 %p2, %r1, 0; selp.b32 %r41, %r1, %r40, %p2;", ["PTX719"]),
    ("neg.s32 %r40, %r1; setp.ge.s32 %p2, %r1, 0; selp.b32 %r41, %r40, %r1, %p2;", []),  # minus the absolute value
    ("shl.b32 %r40, %r1, 8; shr.u32 %r41, %r1, 24; or.b32 %r42, %r40, %r41;", []),  # ptxas finds it
    ("sqrt.approx.f32 %f1, %f2; rcp.rn.f32 %f3, %f1;", []),
    ("cvt.rn.f32.s32 %f1, %r1; cvt.rzi.s32.f32 %r40, %f1;", []),  # loses bits
    ("st.global.u8 [%d7], 1; st.global.u8 [%d7+1], 1; st.global.u8 [%d7+2], 1; st.global.u8 [%d7+3], 1;", []),
])  # fmt: skip
def test_code_that_could_not_be_better(body, expected):
    assert codes("setp.eq.u32 %p1, %r1, 0; mov.f32 %f2, 0f3f800000;" + body, {
        "target": "sm_80", "directives": ".reqntid 64", "module": "", "parameters": ""
    }) == expected  # fmt: skip


def test_every_atom_that_could_be_red_is_told_on_request():
    text = FRAME.format(
        body="atom.global.add.u32 %r40, [%d3], 1;", target="sm_80", directives="", module="", parameters=""
    )
    module = parse(text, "k.ptx").module
    assert [d.code for d in lint(module, select=["all", "PTX721"]) if d.code == "PTX721"] == ["PTX721"]
    assert "PTX721" not in [d.code for d in lint(module)]


@rows("number", [3, 5, 6, 9, 10, 11, 12, 25, 100, 1000, 641, 6700417, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_multiplier_that_is_named_divides(number):
    text = FRAME.format(body=f"div.u32 %r40, %r1, {number};", target="sm_80", directives="", module="", parameters="")
    (finding,) = [d for d in lint(parse(text, "k.ptx").module) if d.code == "PTX716"]
    words = finding.help[0].replace(",", "").split()
    if "mul.hi.u32" not in words:
        return  # more than 32 bits
    factor, shift = int(words[words.index("mul.hi.u32") + 2]), int(words[-1]) if "shr.u32" in words else 0
    largest = (1 << 32) - 1
    values = [0, 1, number - 1, number, number + 1, largest // number * number - 1, largest // number * number, largest]
    assert [(value * factor >> 32) >> shift for value in values] == [value // number for value in values]
