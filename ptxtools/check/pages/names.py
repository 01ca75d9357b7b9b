"""PTX201 to PTX205, PTX250, PTX251, PTX260 to PTX264: names, guards, special registers, calls and branches."""

PAGES = """
# PTX201 | name is not declared | 4.4, 5.4
What: a register, variable, label or function is not declared, or declared only after its use.
Why: everything except labels must be declared before its first use; labels are visible within the braces that
contain them. A range such as %r<4> declares %r0 to %r3.
Example:
    add.s32 %r1, %r2, %count;
Better:
    .reg .b32 %count;
    add.s32 %r1, %r2, %count;

# PTX202 | name is declared twice | 4.4, 5.4
What: two declarations of the same name in one scope, or two definitions of one function.
Why: a use would be ambiguous. A declaration in inner braces may hide an outer one.
Example:
    .reg .b32 %sum;
    .reg .f32 %sum;
Better:
    .reg .b32 %sum;
    .reg .f32 %fsum;

# PTX203 | name of the wrong kind | 9.7
What: a name refers to something that the operand cannot be: a label or a function where a value is required.
Why: labels have no value; mov takes the address of a function.
Example:
    add.s32 %r1, %r2, DONE;
    DONE: ret;
Better:
    add.s32 %r1, %r2, 1;
    DONE: ret;

# PTX204 | contradictory declarations | 7.1, 11.6
What: a function or variable is declared again with different parameters, type, or linkage.
Why: callers were compiled against the first declaration.
Example:
    .func scale(.param .b32 x);
    .func scale(.param .b64 x) { ret; }
Better:
    .func scale(.param .b64 x);
    .func scale(.param .b64 x) { ret; }

# PTX205 | component that does not exist | 6.4.3, 10
What: a component such as .x of a register that has none, or an unknown component letter.
Why: components are .x .y .z .w, or .r .g .b .a; only vector registers and some special registers have them.
Example:
    mov.u32 %r1, %laneid.x;
Better:
    mov.u32 %r1, %laneid;

# PTX250 | guard is not a predicate | 9.3
What: the register after @ is not declared as .pred.
Why: only predicates can guard instructions.
Example:
    @%r1 bra DONE;
    DONE: ret;
Better:
    setp.ne.s32 %p1, %r1, 0;
    @%p1 bra DONE;
    DONE: ret;

# PTX251 | special register in the wrong place | 10
What: a special register is written, or read by an instruction that cannot read it.
Why: special registers are read-only, and only mov and integer cvt read them.
Example:
    add.s32 %r1, %tid.x, 1;
Better:
    mov.u32 %r2, %tid.x;
    add.s32 %r1, %r2, 1;

# PTX260 | callee cannot be called | 9.7.12.5
What: the callee is an entry, a variable, a label, or a register that cannot hold an address.
Why: only a .func, or a register with its address, can be called.
Example:
    .entry other() { ret; }
    .entry k() { call other; ret; }
Better:
    .func other() { ret; }
    .entry k() { call other; ret; }

# PTX261 | wrong number of arguments | 9.7.12.5, 7.1
What: a call has more or fewer arguments or results than the function.
Why: the callee would read values that were never written.
Example:
    .func f(.reg .b32 a, .reg .b32 b) { ret; }
    .entry k() { .reg .b32 x; call f, (x); ret; }
Better:
    .func f(.reg .b32 a, .reg .b32 b) { ret; }
    .entry k() { .reg .b32 x; call f, (x, x); ret; }

# PTX262 | argument does not match its parameter | 9.7.12.5, 5.1.6.4
What: an argument and its parameter differ in type, size or alignment.
Why: arguments are copied without conversion. Untyped bits match every type of their size; arrays must agree in size
and alignment.
Example:
    .func f(.reg .b32 a) { ret; }
    .entry k() { .reg .b64 x; call f, (x); ret; }
Better:
    .func f(.reg .b64 a) { ret; }
    .entry k() { .reg .b64 x; call f, (x); ret; }

# PTX263 | indirect call without prototype | 9.7.12.5, 11.3.2, 11.3.3
What: a call through a register has no .callprototype or .calltargets list declared before it.
Why: without it the parameters and results are unknown.
Example:
    .func f(.reg .b64 a) { ret; }
    .entry k() { .reg .b64 x; mov.b64 x, f; call x, (x); ret; }
Better:
    .func f(.reg .b64 a) { ret; }
    .entry k() { .reg .b64 x; mov.b64 x, f; P: .callprototype _ (.reg .b64 a); call x, (x), P; ret; }

# PTX264 | branch target is not a label | 9.7.12.3, 9.7.12.4, 11.3.1
What: the target of bra is not a label, or the target of brx.idx is not a .branchtargets list declared before it.
Why: control can only branch to labels of the same function.
Example:
    bra %r1;
Better:
    bra DONE;
    DONE: ret;
"""
