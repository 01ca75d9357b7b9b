"""Fixes of warning rules: what they write, that they come to an end, and that a kernel computes the same with them."""

import re
from pathlib import Path

import pytest

from ptxtools.diagnostics import Severity
from ptxtools.linter import findings_of
from ptxtools.linter.fixes import apply_fixes
from ptxtools.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
HEAD = ".version {version}\n.target {target}\n.address_size 64\n.global .b32 g;\n"
BODY = """.entry k(.param .b64 p) {directives}
{{
	.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %e<9>; .reg .pred %p<9>;
	.shared .align 16 .b32 s[4];
	mov.u32 %r1, %tid.x; ld.param.b64 %d1, [p];
{lines}
	ret;
}}
"""

#: Code, lines before and after (- for no fix), and @ what the head has, if not PTX 8.0 and sm_90. `|` divides lines.
TABLE = """
PTX241: ld.global.b32 %r2, [s]; => ld.shared.b32 %r2, [s];
PTX240: st.shared.b32 s, %r1; => st.shared.b32 [s], %r1;
PTX240: ld.global.b32 %r2, %d1; => ld.global.b32 %r2, [%d1];
PTX240: ld.global.b32 %r2, %r1; => -
PTX240: ld.global.b32 %r2, s; => -
PTX531: barrier.sync 0, 0; => barrier.sync 0;
PTX556: mapa.shared::cluster.u32 %r2, s, 0;|ld.acquire.cta.shared::cluster.b32 %r3, [%r2]; => mapa.shared::cluster.u32 %r2, s, 0;|ld.acquire.cluster.shared::cluster.b32 %r3, [%r2];
PTX558: fence.acq_rel.cta;|st.relaxed.gpu.global.b32 [%d1], %r1; => fence.acq_rel.gpu;|st.relaxed.gpu.global.b32 [%d1], %r1;
PTX601: shfl.idx.b32 %r2, %r1, 0, 31; => shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff; @ 6.0 sm_60
PTX601: vote.ballot.b32 %r2, %p1; => vote.sync.ballot.b32 %r2, %p1, 0xffffffff; @ 6.0 sm_60
PTX601: @%p1 vote.ballot.b32 %r2, %p1; => - @ 6.0 sm_60
PTX601: shfl.idx.b32 %r2, %r1, 0, 31; => - @ 5.0 sm_60
PTX601: setp.eq.u32 %p1, %r1, 0;|@%p1 bra x;|shfl.idx.b32 %r2, %r1, 0, 31;|x: => - @ 6.0 sm_60
PTX610: sub.sat.sat.s32 %r2, %r1, 1; => sub.sat.s32 %r2, %r1, 1;
PTX701: ld.b32 %r2, [s]; => ld.shared.b32 %r2, [s];
PTX701: ld.volatile.b32 %r2, [s+4]; => ld.volatile.shared.b32 %r2, [s+4];
PTX701: st.relaxed.gpu.b32 [g], %r1; => st.relaxed.gpu.global.b32 [g], %r1;
PTX701: ld.v4.b32 {%r2,%r3,%r4,%r5}, [s]; => ld.shared.v4.b32 {%r2,%r3,%r4,%r5}, [s];
PTX701: mov.b64 %d3, g;|cvta.global.u64 %d4, %d3;|atom.add.u32 %r2, [%d4], 1;|st.b32 [%d4], %r2; => mov.b64 %d3, g;|cvta.global.u64 %d4, %d3;|atom.global.add.u32 %r2, [%d4], 1;|st.global.b32 [%d4], %r2;
PTX702: div.u32 %r2, %r1, 8; => shr.u32 %r2, %r1, 3;
PTX702: rem.u32 %r2, %r1, /* of */ 0x20; // % => and.b32 %r2, %r1, /* of */ 31; // %
PTX702: mov.b64 %d2, 4;|div.u64 %d3, %d1, %d2; => mov.b64 %d2, 4;|shr.u64 %d3, %d1, 2;
PTX702: div.s32 %r2, %r1, 8; => -
PTX704: div.rn.f32 %f1, %f2, 0f40000000; => mul.rn.f32 %f1, %f2, 0f3F000000;
PTX704: div.rz.ftz.f32 %f1, %f2, 0fC0800000; => mul.rz.ftz.f32 %f1, %f2, 0fBE800000;
PTX704: div.rn.f64 %e1, %e2, 0.5; => mul.rn.f64 %e1, %e2, 0d4000000000000000;
PTX704: div.approx.f32 %f1, %f2, 0f40000000; => -
PTX706: membar.gl;|membar.gl; // twice => membar.gl;|// twice
PTX706: bar.sync 0;|add.u32 %r2, %r1, 1; bar.sync 0;|add.u32 %r2, %r2, 1; => bar.sync 0;|add.u32 %r2, %r1, 1;|add.u32 %r2, %r2, 1;
PTX710: cvt.u32.s32 %r2, %r1; => mov.b32 %r2, %r1;
PTX710: cvt.u64.u32 %d2, %r1;|cvt.u32.u64 %r5, %d2; => cvt.u64.u32 %d2, %r1;|mov.b32 %r5, %r1;
PTX710: cvta.to.global.u64 %d2, %d1;|cvta.to.global.u64 %d3, %d1;|ld.global.b32 %r2, [%d2];|st.global.b32 [%d3], %r2; => cvta.to.global.u64 %d2, %d1;|mov.b64 %d3, %d2;|ld.global.b32 %r2, [%d2];|st.global.b32 [%d3], %r2;
PTX718: bar.sync 1, 32; => bar.warp.sync 0xffffffff; @ 8.0 sm_90 .reqntid 32
PTX718: barrier.sync 0; => bar.warp.sync 0xffffffff; @ 8.0 sm_90 .reqntid 32
PTX721: atom.acq_rel.gpu.global.add.u32 %r4, [%d1], 1; => red.release.gpu.global.add.u32 [%d1], 1;
PTX721: atom.acquire.cta.shared.min.s32 %r4, [s], 1; => red.relaxed.cta.shared.min.s32 [s], 1;
PTX721: @%p1 atom.exch.global.b32 %r4, [%d1], %r1; => @%p1 st.relaxed.gpu.global.b32 [%d1], %r1;
PTX721: atom.acq_rel.sys.global.exch.b64 %d4, [%d1], %d1; => st.release.sys.global.b64 [%d1], %d1;
PTX721: atom.global.gpu.acq_rel.add.u32 %r4, [%d1], 1; => red.release.gpu.global.add.u32 [%d1], 1;
PTX721: atom.exch.shared.b32 %r4, [s], %r1; => -
PTX721: atom.global.add.u32 _, [%d1], 1; => red.global.add.u32 [%d1], 1;
"""  # noqa: E501


def findings(text, select=("ALL", "PTX721", "PTX608")):
    parsed = parse(text, "x.ptx")
    return findings_of(parsed.module, parsed.diagnostics, select=select)


def fixed(text):
    """A text with all fixes, as `--fix` leaves it."""
    for _ in range(10):
        text, count = apply_fixes(text, [d for d in findings(text) if d.code != "PTX608"])
        if not count:
            return text
    raise AssertionError("the fixes do not come to an end")


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_what_a_fix_writes(row):
    code, before, after, head = re.fullmatch(r"(\w+): (.*) => (.*?)(?: @ (.*))?", row).groups()
    version, target, *directives = (head or "8.0 sm_90").split(maxsplit=2)

    def module(lines):
        frame = (HEAD + BODY).format(version=version, target=target, directives=" ".join(directives), lines="LINES")
        return frame.replace("LINES", "\n".join(f"\t{line.strip()}" for line in lines.split("|")))

    text = module(before)
    found = findings(text)
    assert code in {d.code for d in found}
    if after == "-":
        assert not [d.fix for d in found if d.code == code and d.fix]
        return
    result = fixed(text)
    assert result == module(after)
    left = {d.code for d in findings(result)}
    assert code not in left and not any(d.severity is Severity.ERROR for d in findings(result))
    # Warnings of what a function lacks are not made beside errors.
    assert left <= {d.code for d in found} or any(d.severity is Severity.ERROR for d in found)


# --- modules of compilers ---------------------------------------------------------------------------------------------


def power(match, by):
    """A division where a compiler has written a shift, or a mask."""
    head, bits, operands, number = match.groups()
    number = int(number) if by == "rem" else 1 << int(number)
    return f"{head}{by}.u{bits}{operands}{number + (by == 'rem')};"


#: What is written worse, as an expression for a line and what becomes of it.
WORSE = [
    (r"(\s+(?:@!?%p\d+ )?)shr\.u(16|32|64)(\s[^,]+,[^,]+, )([1-9]|1\d);", lambda m: power(m, "div")),
    (r"(\s+(?:@!?%p\d+ )?)and\.b(16|32|64)(\s[^,]+,[^,]+, )(1|3|7|15|31|63|127|255);", lambda m: power(m, "rem")),
    (r"(\s+(?:fence|membar)\.[^;]*;)\s*", lambda m: f"{m[1]}\n{m[1]}"),
    (r"(\s+)ld\.shared(\.[^;]*\[[a-zA-Z_$][\w$]*(?:\+\d+)?\];)", lambda m: f"{m[1]}ld{m[2]}"),
    (r"(\s+)mov\.b(32|64)(\s+%r\w*, %r\w*;)", lambda m: f"{m[1]}cvt.u{m[2]}.u{m[2]}{m[3]}"),
    (r"(\s+(?:add|sub|mul|fma|xor)\.[^;]*);\s*", lambda m: m[1]),
    (r"(\.(?:req|max)ntid .*)", lambda m: f"{m[1]}\n{m[1]}"),
    (r"\.address_size 64", lambda m: ""),
]  # fmt: skip
MODULES = sorted((ROOT / "testdata" / "cases").glob("*/kernel.ptx"))


def worse(text):
    """A module in which every second such line is written worse."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        for number, (form, change) in enumerate(WORSE):
            found = re.fullmatch(form, line)
            if found and (at + number) % 2:
                lines[at] = change(found)
                break
    return "\n".join(lines)


@pytest.mark.share(12)
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_a_module_that_was_made_worse_is_mended(path):
    text = path.read_text("utf-8")
    changed = worse(text)
    mended = fixed(changed)
    assert changed != text and parse(mended).module == parse(fixed(text)).module
    assert fixed(mended) == mended
