"""PTX401 to PTX440: headers, directives, declarations, functions."""

PAGES = """
# PTX401 | header directive is missing or misplaced | 11.1
What: .version or .target is missing, out of order, repeated, or follows other code.
Why: a module begins with .version, .target, then .address_size: everything else depends on them.
Example:
    .target sm_80
    .version 8.0
    .address_size 64
Better:
    .version 8.0
    .target sm_80
    .address_size 64

# PTX410 | directive in the wrong place | 11
What: a directive appears where it has no meaning, such as an entry's limit on a .func.
Why: each directive applies to entries, functions, bodies or the module.
Example:
    .func f() .maxntid 128 { ret; }
Better:
    .entry f() .maxntid 128 { ret; }

# PTX411 | directives that exclude each other | 11.4, 11.7
What: two directives of a function contradict each other.
Why: they cannot both apply.
Example:
    .entry k() .maxntid 128 .reqntid 64 { ret; }
Better:
    .entry k() .reqntid 64 { ret; }

# PTX412 | wrong value of a directive | 11
What: a directive has too few or too many numbers, or one that is not positive.
Why: sizes and counts are positive.
Example:
    .entry k() .reqntid 0 { ret; }
Better:
    .entry k() .reqntid 64 { ret; }

# PTX413 | directive requires another | 11.1.2, 11.4.10, 11.7.4
What: .blocksareclusters without .reqntid and .reqnctapercluster, .target debug without any .section, or
%perctamemoryoffset and %perctamemorysize in a kernel without .minperctamemory.
Why: the first says that the launch is given in clusters, so their size must be known; the second announces DWARF
information; a CTA has memory of its own only if the kernel asks for it.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() .blocksareclusters { ret; }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k() .blocksareclusters .reqntid 64 .reqnctapercluster 2 { ret; }

# PTX420 | impossible linkage | 11.6
What: an .extern function with a body, an .extern variable that the same module then defines without .visible or .weak,
or .common outside of .global.
Why: the linker could not resolve the name.
Example:
    .extern .func f() { ret; }
Better:
    .visible .func f() { ret; }

# PTX421 | state space in the wrong place | 5.1
What: a variable of this state space cannot be declared here: registers and .local variables belong to functions.
Why: the module has no stack and no registers.
Example:
    .reg .b32 counter;
    .entry k() { ret; }
Better:
    .entry k() { .reg .b32 counter; ret; }

# PTX422 | type not allowed for a variable | 5.2, 5.3
What: an instruction type such as .bf16 in a declaration, a predicate outside of registers, or a texture reference
outside of .global.
Why: values of alternate formats are held in untyped registers.
Example:
    .reg .bf16 %h9;
Better:
    .reg .b16 %h9;

# PTX423 | impossible shape of a variable | 5.4.2, 5.4.3, 5.4.6
What: a register array, an array without a size, a range of variables other than registers, or a vector of more than
128 bits.
Why: registers have no addresses, and variables in memory need a known size.
Example:
    .reg .b32 %table[4];
Better:
    .reg .b32 %table<4>;

# PTX424 | impossible alignment | 5.4.5
What: an alignment that is not a power of two, or more than 128 for a function parameter.
Why: addresses are aligned to powers of two.
Example:
    .global .align 3 .b8 bytes[4];
Better:
    .global .align 4 .b8 bytes[4];

# PTX425 | wrong attribute | 5.4.8
What: an attribute that is unknown, has the wrong number of arguments, or does not apply to the variable.
Why: .managed and .unified apply to memory in .global.
Example:
    .const .attribute(.managed) .b32 x;
Better:
    .global .attribute(.managed) .b32 x;

# PTX426 | initialiser not allowed | 5.4.4
What: an initial value for a register, a parameter, an .extern variable, or in .shared or .local.
Why: only .global and .const are initialised when a module is loaded.
Example:
    .shared .b32 x = 4;
Better:
    .global .b32 x = 4;

# PTX427 | initial value of the wrong type | 5.4.4
What: an integer initialises a floating-point variable or the other way round, an address initialises a variable that is
too small, or an .f16 variable has an initialiser.
Why: initial values are not converted.
Example:
    .global .f32 x = 4;
Better:
    .global .f32 x = 4.0;

# PTX428 | wrong number of initial values | 5.4.4
What: more values than elements, or nesting that does not follow the dimensions.
Why: missing values are zero; there is no space for superfluous ones.
Example:
    .global .b32 x[2] = {1, 2, 3};
Better:
    .global .b32 x[3] = {1, 2, 3};

# PTX429 | address not allowed in an initialiser | 5.4.4
What: an initialiser names a symbol that is not declared before it, or is in neither .global nor .const.
Why: only such addresses are known when a module is loaded.
Example:
    .shared .b32 x;
    .global .u64 p = x;
Better:
    .global .b32 x;
    .global .u64 p = x;

# PTX430 | impossible parameter | 5.1.6, 7.1
What: a parameter of an entry outside of .param, a vector in .param, an array without size, or .ptr in a function.
Why: the host launches entries, and passes parameters as a block of bytes.
Example:
    .entry k(.reg .b32 n) { ret; }
Better:
    .entry k(.param .b32 n) { ret; }

# PTX431 | impossible result | 7.1, 11.2.1
What: an entry with a result, or several results in .param.
Why: an entry has no caller to receive a result; in .param only one result is possible.
Example:
    .func (.param .b32 a, .param .b32 b) f() { ret; }
Better:
    .func (.param .b32 a) f() { ret; }

# PTX432 | wrong alias | 11.2.3
What: .alias names something other than a function, or two functions with different parameters.
Why: an alias is another name for a defined function.
Example:
    .func f(.reg .b32 a) { ret; }
    .func g();
    .alias g, f;
Better:
    .func f(.reg .b32 a) { ret; }
    .func g(.reg .b32 a);
    .alias g, f;

# PTX433 | too much parameter space | 5.1.6.1
What: the parameters of an entry take more than 32764 bytes. (More than 4352 need PTX 8.1 and sm_70: PTX301, PTX302.)
Why: the driver cannot pass more.
Example:
    .entry k(.param .b8 a[40000]) { ret; }
Better:
    .entry k(.param .b64 a) { ret; }

# PTX440 | declared but not defined | 11.6.1
What: a function is declared without .extern, but never defined. (A symbol that is .extern must be defined when modules
are linked or run, a function if it is used, a variable always: PTX811.)
Why: a call would have no target. The functions of the runtime (vprintf, malloc, free, __assertfail, __cudaCDP2*) need
no definition.
"""
