"""The pages of the warning rules, for `ptx-lint --explain` and docs/rules.md."""

from __future__ import annotations

PAGES = """
# PTX501 | constant loses bits | 4.5.1
What: an integer constant does not fit its operand; the instruction gets the lowest bits.
Why: neither ptxas nor the manual refuses it, and the value that runs is another one than the text shows.
Example:
    add.u16 %h1, %h2, 65536;
Better:
    add.u16 %h1, %h2, 1;

# PTX502 | shift by at least the width | 9.7.8.7, 9.7.8.8
What: a constant shift amount that is not smaller than the operand's width.
Why: PTX clamps the amount: the result is zero, or all sign bits. Other languages differ, so it is mostly a mistake.
Example:
    shl.b32 %r1, %r2, 32;
Better:
    mov.b32 %r1, 0;

# PTX503 | division by zero | 9.7.1
What: an integer division or remainder by the constant 0.
Why: the result is machine-specific; nothing traps.
Example:
    div.s32 %r1, %r2, 0;
Better:
    div.s32 %r1, %r2, 3;

# PTX504 | initial value loses bits | 5.4.4
What: an initial value does not fit its variable; the lowest bits are stored.
Why: the value in memory is another one than the text shows.
Example:
    .global .b8 x = 300;
Better:
    .global .b16 x = 300;

# PTX510 | unreachable code | 9.7.12
What: an instruction behind an unconditional jump, without a label that could lead to it.
Why: it never runs. Often a guard or a label was forgotten.
Example:
    bra DONE;
    add.s32 %r1, %r2, %r3;
    DONE: ret;
Better:
    @%p1 bra DONE;
    add.s32 %r1, %r2, %r3;
    DONE: ret;

# PTX511 | body without an end | 9.7.12.6, 9.7.12.7
What: control can run past the last instruction of a function.
Why: ptxas ends the function there, as with ret; the manual does not say so.
Example:
    .entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0; }
Better:
    .entry k() { .reg .b32 %r<2>; mov.b32 %r1, 0; ret; }

# PTX512 | result is discarded | 9.7.6.2
What: a comparison whose only result goes to _.
Why: it has no effect.
Example:
    setp.eq.s32 _, %r1, %r2;
Better:
    setp.eq.s32 %p1, %r1, %r2;

# PTX520 | register is never written | 5.1.1
What: an instruction computes with a register that nothing in the function writes.
Why: the value is undefined. Compilers leave such reads where the value does not matter; copies (mov, prmt) are passed
over for that reason.
Example:
    .reg .b32 %never;
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, %never;
    st.global.b32 [0x10], %r2;
Better:
    mov.b32 %r1, 1;
    add.s32 %r2, %r1, 5;

# PTX530 | barrier that part of a warp misses | 9.7.13.1
What: an aligned barrier under a guard that certainly differs between the threads of a warp.
Why: all threads of a warp must execute an aligned barrier together, otherwise the behaviour is undefined.
Example:
    mov.u32 %r9, %tid.x;
    setp.eq.u32 %p7, %r9, 0;
    @%p7 bar.sync 0;
Better:
    bar.sync 0;

# PTX531 | barrier for nobody | 9.7.13.1
What: a barrier with a thread count of 0.
Why: a barrier waits for whole warps, at least one.
Example:
    bar.sync 0, 0;
Better:
    bar.sync 0;

# PTX540 | access outside of a variable | 6.4.1
What: a load or store at a constant offset that lies outside of the variable it names.
Why: it reads or overwrites something else, or faults.
Example:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table+16];
Better:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table+12];

# PTX541 | misaligned access | 6.4.1
What: a load or store at a constant offset that is no multiple of its size.
Why: misaligned accesses fault at run time.
Example:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+4];
Better:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+8];

# PTX542 | 32-bit register as a 64-bit address | 6.4.1
What: a 32-bit register addresses .global memory or generic space in a module with 64-bit addresses.
Why: it is zero-extended: the upper half of the address is lost. Targets from sm_90 on refuse it (PTX242).
Example:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b32 p) { .reg .b32 %r<3>; ld.param.b32 %r1, [p]; ld.global.b32 %r2, [%r1]; ret; }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k(.param .b64 p) { .reg .b32 %r<3>; .reg .b64 %d; ld.param.b64 %d, [p]; ld.global.b32 %r2, [%d]; ret; }

# PTX550 | more threads than a CTA has | 11.4.2, 11.4.3
What: .maxntid or .reqntid with a product of more than 1024.
Why: no launch can meet it.
Example:
    .entry k() .reqntid 64, 32 { ret; }
Better:
    .entry k() .reqntid 32, 32 { ret; }

# PTX551 | large cluster | 11.7.1
What: a cluster of more than 8 CTAs, which not every device allows, or of more than 16, which none does.
Why: the launch fails, or needs a device attribute.
Example:
    .entry k() .reqnctapercluster 17 { ret; }
Better:
    .entry k() .reqnctapercluster 8 { ret; }

# PTX552 | directive without effect | 11.4.4
What: .minnctapersm without .maxntid or .reqntid.
Why: without the number of threads, registers cannot be divided: it is ignored.
Example:
    .entry k() .minnctapersm 2 { ret; }
Better:
    .entry k() .maxntid 256 .minnctapersm 2 { ret; }

# PTX553 | directive is repeated | 11.4
What: the same directive stands twice at one function.
Why: one of them is ignored.
Example:
    .entry k() .maxntid 128 .maxntid 64 { ret; }
Better:
    .entry k() .maxntid 64 { ret; }

# PTX554 | impossible register limit | 11.4.1
What: .maxnreg below 16 or above 256.
Why: it is ignored, or raised to what the function calls of the ABI need.
Example:
    .entry k() .maxnreg 8 { ret; }
Better:
    .entry k() .maxnreg 32 { ret; }

# PTX555 | unknown pragma | 11.4.7
What: a pragma of an entry or a body that no ptxas knows.
Why: it is ignored; often it is misspelt.
Example:
    .entry k() .pragma "nounrol"; { ret; }
Better:
    .entry k() .pragma "nounroll"; { ret; }

# PTX601 | deprecated instruction | 9.7.9.5, 9.7.13.8
What: shfl or vote without .sync, where the declared version and target still have them.
Why: they assume that a warp runs in step. PTX 6.4 removed them for sm_70 and later.
Example:
    .version 6.0
    .target sm_60
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 0; shfl.idx.b32 r, r, 0, 31; ret; }
Better:
    .version 6.0
    .target sm_60
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 0; shfl.sync.idx.b32 r, r, 0, 31, -1; ret; }

# PTX602 | .address_size is missing | 11.1.3
What: the module does not say whether addresses have 32 or 64 bits.
Why: the manual's default is 32 bits; today's tools take 64.
Example:
    .version 8.0
    .target sm_80
Better:
    .version 8.0
    .target sm_80
    .address_size 64

# PTX701 | generic access to a known space | 6.4.1.1
What: a load or store without a state space names a variable, whose space is known.
Why: a generic access finds the space out at run time, which costs time. `--fix` inserts the space.
Example:
    .shared .align 4 .b32 table[4];
    ld.b32 %r1, [table];
Better:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table];

# PTX702 | division by a power of two | 9.7.1
What: an unsigned division or remainder by a constant power of two.
Why: a shift or an and takes one instruction instead of dozens. ptxas does it at higher optimisation levels only.
Example:
    div.u32 %r1, %r2, 8;
Better:
    shr.u32 %r1, %r2, 3;
"""


def pages() -> dict[str, tuple[str, str]]:
    """Title and page of every warning code."""
    from ptxtools.check.pages.format import read_pages

    return read_pages(PAGES)
