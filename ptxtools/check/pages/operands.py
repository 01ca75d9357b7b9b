"""PTX220 to PTX243: operands and addresses."""

PAGES = """
# PTX220 | wrong number of operands | 9.7
What: an instruction has more or fewer operands than its form.
Why: each form has a fixed list of operands.
Example:
    add.s32 %r1, %r2;
Better:
    add.s32 %r1, %r1, %r2;

# PTX221 | register of the wrong type | 9.4
What: a register's type does not agree with the instruction's type.
Why: untyped bits (.bN) agree with every type of their size, signed and unsigned integers with each other, and
floating-point types only with themselves. Values of types such as .bf16 or .s16x2 are held in .bN registers.
Example:
    add.s32 %r1, %r2, %f1;
Better:
    cvt.rzi.s32.f32 %r3, %f1;
    add.s32 %r1, %r2, %r3;

# PTX222 | register of the wrong size | 9.4, 9.4.1
What: a register is narrower or wider than the type of the instruction.
Why: only ld, st and cvt take registers wider than their type.
Example:
    add.s32 %r1, %r2, %rd1;
Better:
    cvt.u32.u64 %r3, %rd1;
    add.s32 %r1, %r2, %r3;

# PTX223 | operand of the wrong kind | 6, 9.7
What: a constant, a vector, an address or a list appears where the form requires something else.
Why: the form determines what each operand may be; a destination must be a register.
Example:
    add.s32 5, %r1, %r2;
Better:
    add.s32 %r3, %r1, %r2;

# PTX224 | constant of the wrong kind | 4.5, 9.4
What: an integer appears where a floating-point constant is needed, or the other way round.
Why: constants are not converted. Untyped 32-bit operands take integers and 0f constants, 64-bit ones integers, 0d and
decimal constants; 16-bit floating-point operands take none.
Example:
    add.f32 %f1, %f2, 1;
Better:
    add.f32 %f1, %f2, 1.0;

# PTX225 | constant out of range | 9.7
What: a constant operand is outside the range that the instruction accepts.
Why: for example, there are 16 barriers, and they wait for whole warps; other instructions have other bounds.
Example:
    bar.sync 16;
Better:
    bar.sync 15;

# PTX226 | vector of the wrong length | 6.4.3
What: a vector has more or fewer elements than the instruction moves, or a scalar appears where a vector is required.
Why: .v2 moves two elements, .v4 four; mov packs elements whose total size is the size of its type.
Example:
    ld.global.v4.u32 {%r1, %r2}, [%rd1];
Better:
    ld.global.v2.u32 {%r1, %r2}, [%rd1];

# PTX227 | mixed registers in a vector | 6.4.3
What: the registers of a vector differ in size, or mix integer and floating-point types.
Why: a vector has one element type. Untyped registers agree with every type of their size.
Example:
    .reg .u32 %u<4>;
    ld.global.v2.b32 {%u1, %f1}, [%rd1];
Better:
    ld.global.v2.b32 {%r1, %f1}, [%rd1];

# PTX228 | sink in the wrong place | 6.3
What: the sink _ is used as a source, or as a destination that cannot be discarded.
Why: only some results may be discarded: the result of atom, elements of vectors, and one of two results.
Example:
    add.s32 _, %r1, %r2;
Better:
    add.s32 %r3, %r1, %r2;

# PTX229 | operand that cannot be negated | 6, 9.3.2
What: ! or - before an operand that cannot be negated.
Why: ! negates predicates that are read; - exists only in the video instructions.
Example:
    add.s32 %r1, !%r2, %r3;
Better:
    not.b32 %r4, %r2;
    add.s32 %r1, %r4, %r3;

# PTX240 | malformed address | 6.4.1
What: an operand in brackets is missing, or is not a valid address.
Why: an address is a register or a variable, plus a constant; a constant alone is allowed only in .local.
Example:
    ld.global.u32 %r1, %rd1;
Better:
    ld.global.u32 %r1, [%rd1];

# PTX241 | variable in another state space | 6.4.1
What: an instruction for one state space names a variable in another. Without a state space, a generic address reaches
.global, .shared and .local.
Why: the same number is a different location in each space.
Example:
    .shared .b32 buffer[32];
    ld.global.u32 %r1, [buffer];
Better:
    .shared .b32 buffer[32];
    ld.shared.u32 %r1, [buffer];

# PTX242 | register that cannot hold an address | 6.4.1
What: the register in brackets is not an integer or bit register, or has 32 bits where addresses have 64.
Why: addresses are unsigned integers. sm_90 and later have no 32-bit addressing.
Example:
    ld.global.u32 %r1, [%f1];
Better:
    ld.global.u32 %r1, [%rd1];

# PTX243 | forbidden access to a parameter | 5.1.6
What: an input parameter is written, or a return parameter read.
Why: inputs are read-only, and results are write-only.
Example:
    .func f(.param .b32 a) { .reg .b32 x; st.param.b32 [a], x; ret; }
Better:
    .func f(.param .b32 a) { .reg .b32 x; ld.param.b32 x, [a]; ret; }
"""
