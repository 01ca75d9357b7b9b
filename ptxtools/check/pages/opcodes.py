"""PTX110 to PTX114, PTX210: opcodes that no instruction form accepts."""

PAGES = """
# PTX110 | unknown instruction | 9.7
What: the first word of a statement is not a PTX instruction.
Why: usually a spelling mistake, or an instruction newer than the PTX versions that this tool knows.
Example:
    addd.s32 %r1, %r2, %r3;
Better:
    add.s32 %r1, %r2, %r3;

# PTX111 | unknown modifier | 9.7
What: a dotted word that no form of the instruction has.
Why: modifiers change what an instruction does, so an unknown one cannot be ignored. The message shows the nearest form.
Example:
    ld.global.cx.u32 %r1, [%rd1];
Better:
    ld.global.cg.u32 %r1, [%rd1];

# PTX112 | missing modifier | 9.7
What: the instruction lacks a modifier that its form requires, such as its type or a rounding mode.
Why: PTX has few defaults; without the modifier the instruction has no meaning.
Example:
    mul.s32 %r1, %r2, %r3;
Better:
    mul.lo.s32 %r1, %r2, %r3;

# PTX113 | incompatible modifiers | 9.7
What: each modifier exists for this instruction, but not in this combination.
Why: the manual lists the valid forms, and none has this combination.
Example:
    add.sat.u16 %h1, %h2, %h3;
Better:
    add.sat.s32 %r1, %r2, %r3;

# PTX114 | repeated modifier | 9.7
What: the same modifier appears twice.
Why: one of them is superfluous, or a different one was meant. (Repetitions that ptxas ignores are warnings: PTX610.)
Example:
    add.s32.s32 %r1, %r2, %r3;
Better:
    add.s32 %r1, %r2, %r3;

# PTX210 | type not allowed for the instruction | 9.4, 9.7
What: a PTX type that no form of the instruction has, at least not with the other modifiers.
Why: each form lists the types it accepts.
Example:
    shl.u32 %r1, %r2, 3;
Better:
    shl.b32 %r1, %r2, 3;
"""
