"""PTX110 to PTX114, PTX210: opcodes that no instruction form accepts."""

PAGES = """
# PTX110 | unknown instruction | 9.7
What: the first word of an instruction is none that PTX has.
Why: mostly a spelling mistake, or an instruction of a later PTX version than this tool knows.
Example:
    addd.s32 %r1, %r2, %r3;
Better:
    add.s32 %r1, %r2, %r3;

# PTX111 | unknown modifier | 9.7
What: a word behind a dot that no form of the instruction has.
Why: modifiers say what an instruction does: an unknown one cannot be ignored. The nearest form is shown.
Example:
    ld.global.cx.u32 %r1, [%rd1];
Better:
    ld.global.cg.u32 %r1, [%rd1];

# PTX112 | missing modifier | 9.7
What: the instruction lacks a modifier that its form demands, such as its type or a rounding mode.
Why: PTX has few defaults: without it the instruction has no meaning.
Example:
    mul.s32 %r1, %r2, %r3;
Better:
    mul.lo.s32 %r1, %r2, %r3;

# PTX113 | modifiers that do not go together | 9.7
What: each modifier exists for this instruction, but not together with the others.
Why: the manual lists forms, and no form has this combination.
Example:
    add.sat.u16 %h1, %h2, %h3;
Better:
    add.sat.s32 %r1, %r2, %r3;

# PTX114 | repeated modifier | 9.7
What: the same modifier stands twice.
Why: ptxas lets some of them pass. One of them is superfluous, or another was meant.
Example:
    add.sat.sat.s32 %r1, %r2, %r3;
Better:
    add.sat.s32 %r1, %r2, %r3;

# PTX210 | type that the instruction does not take | 9.4, 9.7
What: a type of PTX that no form of the instruction has, at least not with the other modifiers.
Why: each form lists its types.
Example:
    shl.u32 %r1, %r2, 3;
Better:
    shl.b32 %r1, %r2, 3;
"""
