"""PTX301 to PTX309: versions and targets; PTX610: what ptxas accepts beyond the manual."""

PAGES = """
# PTX301 | needs a newer PTX version | 11.1.1
What: an instruction, modifier, directive or special register was introduced after the declared .version.
Why: tools that support only the declared version refuse the module. `requires` names the lowest version, and the
lowest targets at that version.
Example:
    .version 7.0
    .target sm_90
    .address_size 64
    .entry k() { .reg .b32 r; mov.u32 r, %cluster_ctarank; ret; }
Better:
    .version 7.8
    .target sm_90
    .address_size 64
    .entry k() { .reg .b32 r; mov.u32 r, %cluster_ctarank; ret; }

# PTX302 | needs another target | 11.1.2
What: the declared target lacks this instruction, modifier, directive or special register.
Why: sm_90 means that chip and all later ones, sm_100f its family from there on, sm_90a that chip alone.
Example:
    .version 8.0
    .target sm_75
    .address_size 64
    .entry k() { .reg .b32 r; redux.sync.add.s32 r, r, -1; ret; }
Better:
    .version 8.0
    .target sm_80
    .address_size 64
    .entry k() { .reg .b32 r; redux.sync.add.s32 r, r, -1; ret; }

# PTX303 | unknown PTX version | 11.1.1
What: .version names a version that was never published, or one newer than this tool knows.
Why: the features of such a version are unknown.
Example:
    .version 8.9
    .target sm_80
    .address_size 64
Better:
    .version 8.8
    .target sm_80
    .address_size 64

# PTX304 | unknown target | 11.1.2
What: .target names an architecture that does not exist.
Why: nothing can be compiled for it.
Example:
    .version 8.0
    .target sm_91
    .address_size 64
Better:
    .version 8.0
    .target sm_90
    .address_size 64

# PTX305 | target is newer than the PTX version | 11.1.2
What: the target was introduced after the declared .version.
Why: tools refuse the combination.
Example:
    .version 7.0
    .target sm_90
    .address_size 64
Better:
    .version 7.8
    .target sm_90
    .address_size 64

# PTX306 | wrong .target option | 11.1.2, 5.3
What: an option of .target is unknown, contradicts another, or does not fit the target; or a required option is missing.
Why: options change the meaning of the whole module.
Example:
    .version 8.0
    .target sm_80, texmode_unified, texmode_independent
    .address_size 64
Better:
    .version 8.0
    .target sm_80, texmode_independent
    .address_size 64

# PTX307 | removed from PTX | 9.7, 11.4.5
What: an instruction, directive or state space of earlier versions that the declared version no longer has for this
target.
Why: newer chips no longer support it. `help` names the replacement.
Example:
    .version 6.4
    .target sm_70
    .address_size 64
    .entry k() { .reg .b32 r; shfl.idx.b32 r, r, 0, 31; ret; }
Better:
    .version 6.4
    .target sm_70
    .address_size 64
    .entry k() { .reg .b32 r; shfl.sync.idx.b32 r, r, 0, 31, -1; ret; }

# PTX308 | wrong address size | 11.1.3
What: .address_size is neither 32 nor 64, or 32 for a target without 32-bit addresses.
Why: sm_90 and later have only 64-bit addresses.
Example:
    .version 8.0
    .target sm_90
    .address_size 32
Better:
    .version 8.0
    .target sm_90
    .address_size 64

# PTX309 | refused by every ptxas | 5.4.3, 6.4.1, 11.1.3
What: something that the manual has, and that every ptxas which knows the declared version refuses: sizes of arrays that
are expressions, functions and variables named as special registers, 32-bit addresses from PTX 8.0 on, a release store
without its scope.
Why: the module is valid by the manual, and no tool chain compiles it.
Example:
    .version 9.0
    .target sm_80
    .address_size 64
    .global .b32 table[4+4];
Better:
    .version 9.0
    .target sm_80
    .address_size 64
    .global .b32 table[8];

# PTX610 | accepted by ptxas, not in the manual | 9.1
What: ptxas compiles this as it is meant, though the manual does not have it: modifiers that it ignores or that are
repeated, a missing .aligned, several results from sm_20 on, special registers among stored integers and coordinates,
sums of a register and a constant as operands, addresses of 8 or 16 bits, declarations without a name, instructions at
versions or targets before the manual's.
(What ptxas drops or reads as something else is an error.)
Why: other tools, or a later ptxas, may refuse it.
Example:
    .version 9.0
    .target sm_80
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 1; sub.sat.sat.s32 r, r, r; ret; }
Better:
    .version 9.0
    .target sm_80
    .address_size 64
    .entry k() { .reg .b32 r; mov.b32 r, 1; sub.sat.s32 r, r, r; ret; }
"""
