"""Findings mark exactly what they are about, whatever stands around it. «» mark what is wrong in these texts."""

import ptxtools
from tests.rows import rows

#: Code, and the statement.
CASES = [
    ("PTX201", "add.s32 %r1, %r1, «%x»;"),
    ("PTX201", "@!«%x» add.s32 %r1, %r1, 1;"),
    ("PTX201", "@%p1 add.s32 «%x», %r1, 1;"),
    ("PTX201", "mov.b64 %rd1, {%r1, «%x»};"),
    ("PTX201", "mov.b64 {«%x», %r2}, %rd1;"),
    ("PTX201", "ld.global.v2.u32 {%r1, «%x»}, [%rd1];"),
    ("PTX201", "ld.global.u32 %r1, [«%x»];"),
    ("PTX201", "ld.global.u32 %r1, [ «%x» + 16 ];"),
    ("PTX201", "ld.global.u32 %r1, [«ab»+16].unified;"),
    ("PTX201", "setp.lt.s32 %p1|«%x», %r1, %r1;"),
    ("PTX201", "setp.lt.s32 «%x» | %p1, %r1, %r1;"),
    ("PTX201", "setp.lt.and.s32 %p1, %r1, %r1, !«%x»;"),
    ("PTX201", "mov.u64 %rd1, «ab»+4;"),
    ("PTX201", "bra «NOWHERE»;"),
    ("PTX205", "mov.u32 %r1, «%tid.q»;"),
    ("PTX221", "setp.lt.s32 %p1|«%r2», %r1, %r1;"),
    ("PTX221", "selp.b32 %r1, %r1, %r2, «%r2»;"),
    ("PTX221", "add.s32 %r1, %r1, «%f1»;"),
    ("PTX223", "add.s32 «5», %r1, 5;"),
    ("PTX223", "ld.global.v2.u32 {%r1, «5»}, [%rd1];"),
    ("PTX229", "add.s32 %r1, %r1, «!%p1»;"),
    ("PTX250", "@«%r1» ret;"),
    ("PTX111", "add«.bogus» %r1, %r1, %r1;"),
    ("PTX111", "add .s32 «.bogus» %r1, %r1, %r1;"),
    ("PTX262", "call f, («%rd1», %r2);"),
    ("PTX262", "call f, (%r1, «%rd1»);"),
    ("PTX201", "call «nope», (%r1);"),
    ("PTX201", "call f, (%r1, «%x»);"),
    ("PTX520", "add.s32 %r1, «%n1», 1;"),
    ("PTX520", "mad.lo.s32 %r1, %r1, 1, «%n1»;"),
    ("PTX520", "st.global.u32 [%rd1], «%n1»;"),
    ("PTX502", "shl.b32 %r1, %r1, «40»;"),
    ("PTX503", "div.s32 %r1, %r1, «0»;"),
    ("PTX540", "ld.shared.u32 %r1, «[table+64]»;"),
]
#: What may stand before the statement, and around it.
AROUND = {
    "alone": "{}",
    "tabs": "\t\t{}\t// tail",
    "same line": "mov.u32 %r2, 1; {} mov.u32 %r2, 2;",
    "comment in front": "/* ä€𝄞, %x ab 5 */ {}",
    "generated": '# 9 "größe.h"\n.loc 1 5 7\n{}\n.loc 1 6 1',
    "inline block": "{{ {{ .reg .b32 %inner; mov.b32 %inner, 1;\n  {}\n}} }}",
}
#: Other blanks between words, of the same meaning.
BLANKS = {"usual": " ", "tab": "\t", "wide": "  \t ", "comment": " /* ß, %x */ "}
TEXT = """.version 8.5
.target sm_90
.address_size 64
.file 1 "größe.cu"
.global .u32 hold;
.shared .u32 table[16];
.func f(.reg .b32 a, .reg .b32 b) { ret; }
.entry k()
{
.reg .b32 %r<3>; .reg .b32 %n<2>; .reg .b64 %rd<3>; .reg .f32 %f<2>; .reg .pred %p<2>;
mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u64 %rd1, hold; mov.u64 %rd2, hold; mov.f32 %f1, 0f3f800000;
setp.eq.s32 %p1, %r1, %r2;
@
ret;
}
"""


def marked(text, code):
    """The text with marks around what the findings of a code are about."""
    findings = [d for d in ptxtools.lint(text) if d.code == code]
    assert len(findings) == 1, findings or [str(d) for d in ptxtools.lint(text)]
    begin, end = findings[0].span
    line, column = findings[0].line, findings[0].column
    assert begin == sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1
    return text[:begin] + "«" + text[begin:end] + "»" + text[end:]


@rows("blanks", BLANKS, share=3)
@rows(("code", "statement"), CASES)
def test_each_operand_is_marked(code, statement, blanks):
    for around in AROUND.values():
        wanted = TEXT.replace("@\n", around.format(statement.replace(" ", BLANKS[blanks])) + "\n", 1)
        assert marked(wanted.replace("«", "").replace("»", ""), code) == wanted


def test_statements_of_several_lines():
    """A name that is not declared is marked alone; everything else from the first line of its statement on."""
    for code, statement in [
        ("PTX201", "ld.global.v2.u32\n\t{ %r1,  // %x\n\t\t«%x» },\n\t[%rd1];"),
        ("PTX221", "«add.s32\n\t%r1,\n\t%r1, /* %f1 */ %f1»;"),
        ("PTX221", "«@%p1\nadd.s32 %r1, %f1», %r1;"),
        ("PTX111", "add«.bogus»\n\t%r1, %r1, %r1;"),
        ("PTX520", "add.s32 %r1,\n\t«%n1»,\n\t1;"),
    ]:
        wanted = TEXT.replace("@\n", statement + "\n", 1)
        assert marked(wanted.replace("«", "").replace("»", ""), code) == wanted
