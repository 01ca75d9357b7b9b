"""Blocks of the manual's examples: what belongs together, and what a function lacks."""

from tools.conformance.blocks import blocks
from tools.conformance.surroundings import module_around

TEXT = """\
7.1. Functions
Examples
// a function, of which a part is left out
.func f (.reg .b32 N)
{
.reg .b32 x;
...
add.u32 x, N, y;
}
call f, (4);
9.7.1.1. Integers
Example
.reg .b32 a;
.reg .u32 b;
loop: add.u32 a, b, 1
@p bra loop;
.reg .b32 a;
{ .reg .b32 c;
mov.b32 a, c;
mov.b32 c, a;
9.7.1.2. Others
Example
add.u32 a, b, c;
"""


def test_blocks_of_a_text(tmp_path):
    (tmp_path / "000_edition.txt").write_text(TEXT)
    assert [(b.where, b.text.split("\\n")) for b in blocks(tmp_path)] == [
        ("8.7 7.1 block", [".func f (.reg .b32 N) { .reg .b32 x; add.u32 x, N, y; }", "call f, (4);"]),
        ("8.7 9.7.1.1 block", [".reg .b32 a;", ".reg .u32 b;", "loop:", "add.u32 a, b, 1;", "@p bra loop;"]),
        ("8.7 9.7.1.1 block", [".reg .b32 a;", "{", ".reg .b32 c;", "mov.b32 a, c;", "mov.b32 c, a;", "}"]),
    ]


def test_a_function_gets_what_it_names():
    lines, _ = module_around("9.0/sm_100a", ".func f (.reg .b32 N) { .reg .b32 x; add.u32 x, N, y; }\\ncall f, (4);")
    assert ".func f (.reg .b32 N) { .reg .u32 y;  .reg .b32 x; add.u32 x, N, y; }" in lines
