"""Damaged modules: parser, checks, warnings, rendering and requirements never raise."""

import random
import re
from pathlib import Path

from ptxtools.diagnostics.text import render
from ptxtools.linter import lint
from ptxtools.linter.requirements import requirements
from ptxtools.syntax import parse
from tests import share
from tests.observe import bugs
from tests.rows import rows

DATA = Path(__file__).resolve().parents[2] / "testdata"
TOKEN = re.compile(r"\s+|[\w$%.:]+|.", re.S)
SUFFIXES = [".x", ".b0", "<4>", "+4", "!", "-", "|", "_", "{", "}", "[", "]", "0x1ffffffffffffffff", ";"]
MODULES = 150 if share.whole else 40


def damage(tokens, words, chance):
    for _ in range(chance.randint(1, 12)):
        if not tokens:
            return
        at = chance.randrange(len(tokens))
        kind = chance.randrange(5)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens[at] = chance.choice(words)
        elif kind == 2:
            tokens.insert(at, chance.choice(words))
        elif kind == 3:
            tokens[at] += chance.choice(SUFFIXES)
        else:
            other = chance.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]


def test_damaged_modules_give_findings_only():
    texts = [path.read_text("utf-8") for path in sorted(DATA.glob("**/*.ptx")) if path.stat().st_size < 12_000]
    assert len(texts) > 10
    words = [word for text in texts for word in TOKEN.findall(text)[:2000] if word.strip()]
    chance = random.Random(20)
    for _ in range(MODULES):
        tokens = TOKEN.findall(chance.choice(texts))
        damage(tokens, words, chance)
        text = "".join(tokens)
        try:
            result = parse(text, "fuzz.ptx")
            for finding in [*result.diagnostics, *lint(result.module)]:
                render(finding)
            requirements(result.module, "fuzz.ptx")
        except Exception as error:
            raise AssertionError(f"{error!r} for:\n{text}") from error


#: What may stand where another operand did.
ODD = ("0", "-1", "33", "4294967295", "-9223372036854775808", "%r1", "%d1", "%p1", "!%p1", "sh", "sh[3]", "[%d1]",
       "[8]", "{%r1, %r2}", "nosuch", "%laneid", "0f7fc00000", "_")  # fmt: skip
WORD = re.compile(r"(?<![\w.%])(?:0x[0-9a-fA-F]+|\d+)\b|%\w+|\bsh\b")
SIZES = ("", ".reqntid 1", ".reqntid 20", ".reqntid 32", ".reqntid 64", ".reqntid 8, 8", ".reqntid 1024", ".maxntid 96")


def changed(lines, statements, chance):
    """Statements of a kernel with one or a few of them left out, doubled, from elsewhere, or with other operands, one
    more or one fewer, as they are while somebody types."""
    lines = list(lines)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(lines))
        parts, kind = lines[at].rstrip("; ").split(","), chance.randrange(7)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, chance.choice([*lines, *statements]))
        elif kind == 2:
            lines[at] = f"@{chance.choice(('', '!'))}%p{chance.randrange(4)} {lines[at].lstrip()}"
        elif kind == 3 and len(parts) > 1:
            del parts[chance.randrange(1, len(parts))]
            lines[at] = ",".join(parts) + ";"
        elif kind == 4 and len(parts) > 1:
            parts.insert(chance.randrange(1, len(parts)), f" {chance.choice(ODD)}")
            lines[at] = ",".join(parts) + ";"
        elif kind == 5:
            lines[at : at + 1] = ["AGAIN:", lines[at], "@%p1 bra AGAIN;"]
        elif found := list(WORD.finditer(lines[at])):
            word = chance.choice(found)
            lines[at] = lines[at][: word.start()] + chance.choice(ODD) + lines[at][word.end() :]
    return lines


def test_changed_kernels_give_findings_only():
    """Kernels that go far into the rules; most are valid, or nearly so."""
    chance, frames = random.Random(21), []
    for path in sorted(bugs.FOLDER.glob("*.bugs")):
        for pair in bugs.read(path):
            head, rank, body = re.split(r"(  mov.u32 %rank, .*\n)", pair.text(chance.choice("+-")), maxsplit=1)
            frames.append((head + rank, body.splitlines()[:-1]))
    statements = [line for _, lines in frames for line in lines]
    for _ in range(40 * MODULES if share.whole else 3 * MODULES):
        head, lines = chance.choice(frames)
        head = re.sub(r"\) [^()]*\{", lambda _: f") {chance.choice(SIZES)} {{", head, count=1)
        text = head + "\n".join(changed(lines, statements, chance)) + "}\n"
        try:
            lint(parse(text, "fuzz.ptx").module)
        except Exception as error:
            raise AssertionError(f"{error!r} for:\n{text}") from error


@rows("body", [
    "mul.lo.s32 %r2, %r1; add.sat.s32 %r3, %r2, %r1;", "sub.s32 %r2, 0; sub.sat.s32 %r3, %r1, %r2;",
    "prmt.b32 %r2, %r1, %r1; and.b32 %r3, %r2, 255;", "shl.b64 %d2, %d1; shr.u64 %d3, %d1, 3; sub.s64 %d4, %d2, %d3;",
    "and.b32 %r2, %r1, 1; and.b32 %r3, %r1, %r1, 1;", "wgmma.wait_group.sync.aligned -1; add.u32 %r2, %r1, 1;",
    "wgmma.wait_group.sync.aligned -1; wgmma.commit_group.sync.aligned; mov.b32 %r2, %r1;",
    "mbarrier.init.shared.b64 [8], 2; bar.sync 0;" + 2 * "mbarrier.arrive.shared.b64 _, [8];",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2};", "stmatrix.sync.aligned.m8n8.x1.shared.b16;",
    "bar.warp.sync; cp.async.wait_group -9; brx.idx; activemask.b32; mbarrier.arrive.expect_tx.shared.b64;",
    "st.shared.b32 [8], %r1; ld.volatile.shared.u32; bar.sync 0; setp.eq.u32 %p2, %r2, 0;",
    "alloca.u64; alloca.u64 %d2;", "alloca.u64 %d2, 64; shl.b64 %d3, %d2, -9; st.local.b32 [%d2], %r1; st.param.b64;",
    "cp.async.ca.shared.global [8], [%d1], -9223372036854775808; st.shared.b32 [8], %r1;",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [16], [%d1], 4294967280, [8]; st.shared.b32 [9], 1;",
    "shfl.sync.idx.b32 %r2; shfl.sync.down.b32; shfl.sync.down.b32 %r2, %r1, 1, 31, 0xff; st.global.b32 %r2;",
    "addc.u32 %r2; addc; madc.u32 %r2, %r1, %r1, %r1; call; subc.u32 %r2, %r1, %r1; mov.b64 {%r1, %r2};",
    "mov.b64 %d2, {}; mov.b64 %d2, {%r1}; mov.b64 {%r1}, %d2; st.shared.v4.b32 [8], {};",
    "mbarrier.try_wait.parity.shared.b64 %p2, [8], 0;",
    ".shared .align 16 .b8 t[64]; mov.u32 %r2, t; shr.u32 %r2, %r2, -1; cvt.u64.u32 %d2, %r2; or.b64 %d2, %d2, 0x80000;"
    ".reg .f32 %f<4>; add.u64 %d3, %d2, 128;"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d2, %d3, 1, 1, 1, 0, 0;",
    ".shared .align 16 .b8 t[64]; mul.lo.u32 %r2, %r1, 24; mov.u32 %r3, t; add.u32 %r3, %r3, %r2;"
    "cp.async.cg.shared.global [%r3], [%d1], 0x7fc00000;",
    "@%p1 setp.eq.u32 %p2, %r1, 1; @%p2 exit;", "@%p1 setp.eq.u32 %p2, %r1, 1; @%p2 trap;",
])  # fmt: skip
def test_single_statements_give_findings_only(body):
    text = f""".version 9.0
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 a) .reqntid 64 {{ .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %d<5>;
    ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;
    {body} st.global.b32 [%d1], %r1; ret; }}"""
    assert isinstance(lint(parse(text, "k.ptx").module), list)
