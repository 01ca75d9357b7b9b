"""The table of rules: `# CODE | title | section | level`, then the page. Levels are the specification's: what is
illegal is an error; what is accepted and ignored, deprecated, or only advised against, is a warning."""

PAGES = """
# NVVM101 | text that is not LLVM assembly | LLVM | illegal
A statement does not have the form that LLVM's language reference gives it. Reading goes on with the next line of a
body, or the next statement of the module, so one run shows all of them.

# NVVM102 | bitcode that cannot be read | LLVM | illegal
The bitcode ends too early, is damaged, or has records that no LLVM up to 22 writes. The message names the byte.

# NVVM103 | text of the other dialect | 1 | illegal
The module is in one dialect of NVVM IR and uses what only the other has: opaque pointers (`ptr`), `poison`,
`bfloat`, and numbers that are written of parameters (`i32 %0`) and blocks (`1:`) are not in LLVM 7; typed pointers
(`i32*`) are not in the modern dialect. `--nvvm-dialect` says which one is meant; otherwise the first pointer decides.

# NVVM104 | dialect that the target does not take | 1 | illegal
The modern dialect is for compute_100 and later. Use the dialect of LLVM 7 for older targets.

# NVVM110 | undefined or defined twice | LLVM | illegal
A name has no definition, or two: a value, label, type, function, variable, attribute group or metadata node.

# NVVM111 | types that do not fit | LLVM | illegal
An operand, a constant or a result is not of the type that its place demands: `add` of floats, a load of `i32` through
a `float*`, `'%x' is defined with type i32, and is used as i64`.

# NVVM113 | malformed block | LLVM | illegal
Each block ends in a terminator, nothing branches to the entry block, a switch has each case once, and a definition
has a block.

# NVVM114 | malformed phi | LLVM | illegal
A phi stands at the begin of its block, and has one value for each predecessor.

# NVVM115 | use before definition | LLVM | illegal
A value is used where it is not defined on every way from the entry: its definition does not dominate the use. What a
phi takes from a block is defined on every way to the end of that block.

# NVVM116 | call that does not fit the function | LLVM | illegal
Number or types of arguments, or the type of the result, are not those of the function that is called; or an argument
has `byval`, and the function takes a pointer, or a copy of another size, also where it is called through a `bitcast`:
the copy that the call passes does not fit the parameter in PTX then.

# NVVM117 | number out of order | LLVM | illegal
Values without a name are numbered from %0 on: parameters, blocks and results share one sequence in a function.

# NVVM118 | attribute, alignment or ordering out of place | LLVM | illegal
`zeroext` is for integers, `byval` for pointers, an alignment is a power of two, and a load that is not atomic has no
ordering.

# NVVM119 | constant that does not fit its type | LLVM | ignored
The number has more bits than its type, and LLVM drops the upper ones: `i8 256` is 0.

# NVVM120 | call with another type than the function has | LLVM | ignored
Where pointers are opaque, LLVM takes a call whose arguments or result are not those of the function. What it does is
undefined.

# NVVM201 | name that NVVM IR does not allow | 2 | illegal
Names of globals have the form `@[a-zA-Z$_][a-zA-Z$_0-9]*`: in particular they contain no dot, since the name is the
symbol in PTX. Example: `@buffer.0`. Better: `@buffer_0`.

# NVVM202 | reserved name | 2 | illegal
`@llvm.nvvm.*` and `@nvvm.*` are reserved, and intrinsics have no definition.

# NVVM203 | linkage that is not supported | 3.1 | illegal
Supported are private, internal, available_externally, linkonce, weak, common, linkonce_odr, weak_odr and external.
`extern_weak` and `appending` (but for `llvm.used`) are not.

# NVVM204 | calling convention that is ignored | 3.2 | ignored
Calling conventions are accepted and ignored: functions and calls follow PTX's convention.

# NVVM205 | alignment of parameters that does not fit | 3.2.1 | illegal
The annotation `align` and the metadata `callalign` give alignments as numbers of 32 bits: the position of the
parameter (0 is the result) in the upper half, a power of two in the lower one. The fields of `callalign` are in
ascending order.

# NVVM206 | visibility that is ignored | 3.3 | ignored
All visibility styles are accepted and ignored.

# NVVM207 | DLL storage class | 3.4 | illegal
`dllimport` and `dllexport` are not supported.

# NVVM208 | thread-local variable | 3.5, 3.11 | illegal
`thread_local` is not supported. Use the local space (alloca), or an element of an array for each thread.

# NVVM209 | runtime preemption specifier | 3.6 | illegal
`dso_local` and `dso_preemptable` are not supported.

# NVVM210 | non-integral pointers | 3.8, 4 | illegal
The data layout declares address spaces with non-integral pointers, which are not supported.

# NVVM211 | comdat | 3.9 | illegal
Comdats are not supported. `linkonce_odr` and `weak_odr` merge definitions without them.

# NVVM212 | address space that is not supported | 3.11, 12.1 | illegal
Variables are in the space global (1), shared (3) or constant (4); pointers are generic (0), to these, or to local
(5). Spaces 2 and from 101 on are reserved for the compiler.

# NVVM213 | section of a variable | 3.11 | illegal
Explicit sections are not allowed, but for `llvm.metadata` of builtin variables.

# NVVM214 | shared variable with an initial value | 3.11 | illegal
Shared memory has no initial value. Example: `@s = addrspace(3) global i32 0`. Better: `@s = addrspace(3) global i32
undef`.

# NVVM215 | part of a function that is not supported | 3.12, 3.17 to 3.19 | illegal
Functions have no alignment, section, garbage collector, prefix data, prologue data or personality.

# NVVM216 | alias of something other than a function | 3.13 | illegal
Aliases are supported for functions that are no kernels, and for nothing else.

# NVVM217 | ifunc | 3.14 | illegal
Ifuncs are not supported.

# NVVM218 | malformed or unknown version of NVVM IR | 3.15 | illegal
`!nvvmir.version` lists nodes of two numbers of type i32 (major and minor version) or four (then those of the debug
metadata). A module without it is of version 1.0; versions 1.x are not compatible with 2.0, the one that the
specification describes, and libnvvm refuses them.

# NVVM219 | parameter attribute that is not supported | 3.16 | illegal
The attribute is not one of LLVM's for parameters in this dialect, or belongs to another machine (`swiftself`,
`inalloca`).

# NVVM220 | parameter attribute that is ignored | 3.16 | ignored
`inreg` and `nest` are accepted and ignored.

# NVVM221 | function attribute that is not supported | 3.20, 3.21 | illegal
Supported are allocsize, alwaysinline, cold, convergent, inaccessiblememonly, inaccessiblemem_or_argmemonly,
inlinehint, minsize, no-jump-tables, noduplicate, noinline, noreturn, norecurse, nounwind, "null-pointer-is-valid",
optforfuzzing, optnone, optsize, readnone, readonly, writeonly, argmemonly, speculatable and strictfp, in the modern
dialect also spelt `memory(…)`. Declarations of intrinsics may have those that LLVM gives them itself (`nocallback`,
`willreturn` …).

# NVVM222 | attribute of a variable | 3.22 | illegal
Attributes of variables are not supported.

# NVVM223 | operand bundle | 3.23 | illegal
Operand bundles of calls are not supported.

# NVVM224 | data layout that is not supported | 3.25 | illegal
There is one supported data layout, which each module states:
`e-p:64:64:64-i1:8:8-…-n16:32:64`, which a finding shows whole.
That of LLVM's NVPTX back end is another one.

# NVVM225 | deprecated data layout or triple | 3.25, 3.26 | deprecated
Layouts and triples for 32 bits, and layouts without i128, are accepted and will be removed.

# NVVM226 | target triple that is not supported | 3.26 | illegal
The triple is `nvptx64-*-cuda`, where * is any name.

# NVVM227 | order of uses | 3.32 | illegal
`uselistorder` is not supported.

# NVVM228 | type that is not supported | 4 | illegal
fp128, x86_fp80, ppc_fp128, x86_mmx, token, and scalable vectors are not supported.

# NVVM229 | constant that is not supported | 5 | illegal
`blockaddress` and constants of type token are not supported. In an initialiser, the address of a symbol may only be
shifted by an integer: the expression must reduce to a bitcast of the symbol plus an offset.

# NVVM230 | inline assembly that does not fit | 6.1 | illegal
Constraints are c (i8), h (i16), r (i32), l (i64), f (float) and d (double), each for an operand of that type; the
dialect `inteldialect` is not supported. The text itself is checked as PTX: findings have PTX's codes, and positions
in the module.

# NVVM231 | ThinLTO summary | 8 | illegal
Summaries (`^0 = module: …`) are not supported.

# NVVM232 | builtin variable that is not supported | 9 | illegal
`llvm.used` and `llvm.compiler.used` are supported, `llvm.global_ctors` and `llvm.global_dtors` are not: nothing would
run them. They are arrays of pointers to symbols, with the linkage `appending`.

# NVVM233 | malformed module flag | 7.1 | illegal
A module flag is a node of a behaviour (1 to 8), a name and a value. Names occur once, but for those of requirements
(3). The values of requirements and of lists (5 and 6) are nodes, those of extremes (7 and 8) integers. Flags are
verified, and what they say is ignored.

# NVVM234 | attribute without meaning | 3.20, 3.21 | ignored
A group of attributes is not defined, which LLVM takes as empty; or an attribute is a string other than
"null-pointer-is-valid", which is for another target or for a tool: NVVM IR gives it no
meaning.

# NVVM301 | instruction that is not supported | 10 | illegal
Terminators are ret, br, switch and unreachable. There are no exceptions, no `indirectbr`, `fneg` (write `fsub -0.0,
%x`) or `freeze`.

# NVVM302 | alloca that is not supported | 10.6.1 | illegal
`alloca` gives a generic pointer to local memory: only address space 0, no `inalloca`, and an alignment of at most
2^23.

# NVVM303 | atomic load or store | 10.6.2, 10.6.3 | illegal
`load atomic` and `store atomic` are not supported. `volatile` becomes ld.volatile and st.volatile.

# NVVM304 | fence | 10.6.4 | illegal
`fence` is not supported. Use `llvm.nvvm.membar`.

# NVVM305 | cmpxchg that is not supported | 10.6.5 | illegal
`cmpxchg` takes i32, i64, and i128 from compute_90 on, in global or shared memory (or through a generic pointer to
them).

# NVVM306 | atomicrmw that is not supported | 10.6.6 | illegal
Operations are xchg, add, sub, and, or, xor, max, min, umax and umin, of i32 and i64; xchg of i128 from compute_90 on;
in global or shared memory. Floats are added by `llvm.nvvm.atomic.load.add`.

# NVVM307 | part of cmpxchg that is ignored | 10.6.5 | ignored
`weak` and the failure ordering are accepted and ignored.

# NVVM308 | cast between two spaces | 12.2.2 | illegal
A pointer to one space is not cast to a pointer to another one: one of them is generic.

# NVVM309 | access through a pointer to a function | 12.2.1 | illegal
Loads and stores through pointers to functions are not supported.

# NVVM310 | write of constant memory | 12.1 | illegal
The constant space is read-only.

# NVVM401 | intrinsic that NVVM IR does not have | 11, 15 | illegal
The closed lists of chapters 11 and 15 do not have it. LLVM's NVPTX back end has more intrinsics than NVVM IR.

# NVVM402 | wrong signature of an intrinsic | 11, 15 | illegal
The declaration has other types than the intrinsic.

# NVVM403 | operand of an intrinsic that must be a constant | 15 | illegal
Modes and layouts (of `shfl.sync`, `vote.sync`, `hmma`) are constants from a list; flags of barriers have reserved
bits.

# NVVM404 | intrinsic or property that the target or dialect lacks | 11, 13.3, 15 | illegal
Clusters need compute_90, matrices and match compute_70; `llvm.copysign` is in the modern dialect only.

# NVVM405 | constant memory in memcpy, memmove or memset | 11.2 | illegal
The constant space is read-only: it is no destination, and memmove and memset do not use it at all.

# NVVM406 | intrinsic for a type that it does not support | 11.2 to 11.6 | illegal
Each standard intrinsic has a list of types: `llvm.sqrt` float and double, `llvm.bswap` i16, i32 and i64.

# NVVM410 | malformed annotation | 13.2 | illegal
A node of `!nvvm.annotations` is a function or variable, then names (strings) and values in turn.

# NVVM411 | annotation that is not known | 13.3 | ignored
The property is none of those in 13.3, and nothing comes of it.

# NVVM412 | annotation that does not fit | 13.3 | illegal
The property is for kernels, functions or variables, and its value is a constant of type i32; `grid_constant` lists
parameters that are pointers with `byval`. A kernel returns nothing.

# NVVM413 | conflicting annotations | 13.2 | illegal
Two nodes give one entity different values of a property.

# NVVM420 | texture or surface that is declared wrongly | 14.1 | illegal
A texture or surface is a variable of type i64 in the global space (1).

# NVVM421 | use of a texture or surface as memory | 14.1 | illegal
A texture or surface is only used in metadata, as argument of `llvm.nvvm.texsurf.handle`, and in `llvm.used`.

# NVVM422 | handle of something else | 14.2 | illegal
The metadata that `llvm.nvvm.texsurf.handle` gets holds one texture or surface, and its second argument is this
variable.

# NVVM430 | debug information that is not complete | 16 | illegal
A module with `!llvm.dbg.cu` has one compile unit, the module flag "Debug Info Version" with the value 3, and the
version of the debug metadata in `!nvvmir.version`.

# NVVM431 | behaviour of the debug version | 16 | ignored
The behaviour of the flag "Debug Info Version" should be Error (1).

# NVVM432 | node of debug information that does not fit | 16 | illegal
A specialised node is of a kind, and has the fields, that LLVM 7.0.1 and LLVM 18.1.8 describe for the two dialects: no
others, each once and of its type, and all that are required. Compile units and the subprograms of definitions are
`distinct`. Of tags, languages, calling conventions and operations only the prefix is checked (`DW_TAG_`). Nodes that
are written where they are used, such as `!DIExpression()`, are not looked into.
"""
