"""Probes of whole modules, in which the line of the first error counts: chapters 4, 5, 7, 10 and 11."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .instructions import Probe
from .whole import KERNEL, body, probe


def probes() -> Iterator[Probe]:
    for part in (_pragmas, _linkage, _addresses, _parameters, _calls, _targets, _scopes, _guards, _entries, _headers,
                 _debug_option, _orders, _opaque_arrays, _narrow, _second_results, _banks, _old):  # fmt: skip
        yield from part()


def _pragmas() -> Iterator[Probe]:
    texts = (
        "nounroll", "nounroll 1", "used_bytes_mask 0xff", "used_bytes_mask 255", "used_bytes_mask",
        "used_bytes_mask x", "used_bytes_mask 1 2", "used_bytes_mask -1", "enable_smem_spilling",
        "enable_smem_spilling 1", "frequency 1", "frequency",
        "frequency 0", "frequency -1", "frequency 1.5", "frequency x", "frequency 1 2", "foo", "foo 1",
        "", " nounroll", "nounroll ", "NOUNROLL", "global_register_budget 32", "frequency 18446744073709551616",
        "used_bytes_mask 0x1ffffffff", "used_bytes_mask 4294967295", "used_bytes_mask 4294967296",
    )  # fmt: skip
    load = "ld.global.b32 %r, [gv];"
    for text in texts:
        pragma = f'.pragma "{text}";'
        yield probe(pragma, KERNEL)
        yield probe(".entry k()", pragma, "{", "ret;", "}")
        yield body(".reg .b32 %r;", pragma, load, before=(".global .b32 gv;",))
        yield body(pragma)
    for text in ('.pragma "nounroll"', ".pragma nounroll;", ".pragma;", '.pragma "nounroll", "nounroll";',
                 '.pragma "nounroll" "nounroll";', '.pragma ("nounroll");', '.pragma "nounroll",;'):  # fmt: skip
        yield body(text)
        yield probe(text, KERNEL)
    for setting in ("8.2/sm_75", "8.3/sm_75", "8.3/sm_50", "8.3/sm_52", "8.8/sm_75", "8.8/sm_90", "8.9/sm_75",
    "9.0/sm_75",
                    "9.0/sm_70", "1.4/sm_13", "2.0/sm_20"):  # fmt: skip
        for text in ("nounroll", "used_bytes_mask 0xf", "enable_smem_spilling", "frequency 2", "foo"):
            yield body(".reg .b32 %r;", f'.pragma "{text}";', load, before=(".global .b32 gv;",), setting=setting)
            yield probe(".entry k()", f'.pragma "{text}";', "{", "ret;", "}", setting=setting)


# --- linkage and addresses (5.4, 11.6) --------------------------------------------------------------------------------


def _linkage() -> Iterator[Probe]:
    declarations = (
        ".extern .global .b32 x;", ".visible .global .b32 x;", ".weak .global .b32 x;", ".common .global .b32 x;",
        ".global .b32 x;", ".extern .global .b32 x[4];", ".visible .global .b32 x[4];", ".visible .global .b32 x[8];",
        ".extern .global .b32 x[];", ".extern .global .align 8 .b32 x;", ".visible .global .align 16 .b32 x;",
        ".extern .const .b32 x;", ".visible .const .b32 x;", ".extern .global .u32 x;", ".visible .global .b64 x;",
        ".visible .global .v2 .b32 x;", ".visible .global .b32 x = 1;", ".weak .global .b32 x = 2;",
        ".extern .shared .b32 x[];", ".shared .b32 x[4];", ".func x() { ret; }", ".extern .func x();",
        ".common .global .b32 x[4];",
    )  # fmt: skip
    for first in declarations:
        for second in declarations:
            yield probe(first, second, KERNEL)
    functions = (
        ".func f() { ret; }", ".func f();", ".extern .func f();", ".visible .func f() { ret; }",
        ".visible .func f();",
        ".weak .func f() { ret; }", ".weak .func f();", ".entry f() { ret; }", ".visible .entry f() { ret; }",
        ".weak .entry f() { ret; }", ".entry f();", ".extern .entry f();", ".func f(.reg .b32 a) { ret; }",
        ".extern .func f(.param .b32 a);", ".func (.reg .b32 r) f() { ret; }", ".func f() .noreturn { exit; }",
        ".global .b32 f;",
    )  # fmt: skip
    for first in functions:
        for second in functions:
            yield probe(first, second, KERNEL)


def _addresses() -> Iterator[Probe]:
    before = (".global .b32 gv[4];", ".const .b32 cv[4];", ".shared .b32 sv[4];", ".func fn() { ret; }")
    registers = ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<8>; .reg .b16 %h<4>; .reg .pred %p<4>;"
    for line in (
        "mov.u64 %d1, gv;", "mov.u64 %d1, gv+4;", "mov.u64 %d1, gv[1];", "mov.u64 %d1, gv-4;", "mov.u64 %d1, fn;",
        "mov.u64 %d1, k;", "mov.u64 %d1, fn+4;", "mov.u64 %d1, LAB;", "mov.u64 %d1, sv;", "mov.u64 %d1, cv;",
        "LAB: ret;",
        "mov.u32 %r1, gv;", "mov.u32 %r1, sv;", "mov.u16 %h1, sv;", "mov.f32 %f1, gv;", "mov.b64 %d1, gv;",
        "add.u64 %d1, gv, 4;", "add.u64 %d1, %d2, gv;", "cvta.global.u64 %d1, gv;", "cvta.global.u64 %d1, sv;",
        "cvta.shared.u64 %d1, sv;", "cvta.to.global.u64 %d1, gv;", "cvta.global.u64 %d1, gv+8;",
        "cvta.const.u64 %d1, cv;",
        "cvta.u64 %d1, gv;", "ld.global.b32 %r1, [sv];", "ld.shared.b32 %r1, [gv];", "ld.const.b32 %r1, [gv];",
        "ld.b32 %r1, [gv];", "ld.b32 %r1, [sv];", "ld.b32 %r1, [cv];", "st.const.b32 [cv], %r1;",
        "st.global.b32 [cv], %r1;",
        "ld.global.b32 %r1, [gv+16];", "ld.global.b32 %r1, [gv+3];", "ld.global.b64 %d1, [gv];",
        "ld.global.b32 %r1, gv;",
        "ld.global.b32 %r1, [gv+%r2];", "ld.global.b32 %r1, [%d1+%d2];", "ld.global.b32 %r1, [%r1];",
        "ld.shared.b32 %r1, [%r2];", "ld.global.b32 %r1, [%h1];", "ld.global.b32 %r1, [%f1];",
        "ld.global.b32 %r1, [fn];",
        "ld.global.b32 %r1, [16];", "ld.shared.b32 %r1, [16];", "ld.local.b32 %r1, [16];",
        "ld.global.b32 %r1, [%d1+4+4];",
        "ld.global.b32 %r1, [%d1-4];", "ld.global.b32 %r1, [4+%d1];", "ld.global.b32 %r1, [%d1*4];",
        "ld.global.b32 %r1, [gv+4294967296];", "ld.global.b32 %r1, [%d1+2147483648];", "st.global.b32 gv, %r1;",
        "st.global.b32 [gv], 1.5;", "st.global.f32 [gv], 1;", "st.global.f32 [gv], 1.5;", "st.global.b32 [gv], %f1;",
        "st.global.b32 [gv], %d1;", "st.global.b32 [gv], %h1;", "st.global.u32 [gv], %f1;",
        "ld.global.f32 %r1, [gv];",
        "ld.global.u32 %f1, [gv];", "ld.global.u8 %f1, [gv];", "ld.global.u16 %r1, [gv];", "ld.global.f16 %h1, [gv];",
        "ld.global.pred %p1, [gv];", "isspacep.global %p1, gv;", "isspacep.shared %p1, %d1;",
        "prefetch.global.L1 [gv];",
        "atom.global.add.u32 %r1, [cv], 1;", "atom.add.u32 %r1, [gv], 1;", "red.shared.add.u32 [gv], 1;",
        "mov.u64 %d1, {gv, gv};", "setp.eq.u64 %p1, gv, 0;", "@%p1 mov.u64 %d1, gv;", "mov.pred %p1, gv;", "bra gv;",
        "bra fn;", "call gv;", "call LAB;", "call k;", "mov.u64 %d1, nosuch;", "ld.global.b32 %r1, [nosuch];",
        "ld.global.b32 %r1, [k];", "st.shared.b32 [sv+12], %r1;", "ld.global.v2.b32 {%r1, %r2}, [gv+4];",
        "ld.global.b32 %r1, [gv].unified;", "ld.b32 %r1, [%d1].unified;",
    ):  # fmt: skip
        yield body(registers, line, before=before)


# --- functions (7, 11.2, 11.3) ----------------------------------------------------------------------------------------


def _parameters() -> Iterator[Probe]:
    registers = ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>;"
    lines = (
        "ld.param.b32 %r1, [a];", "ld.param.b64 %d1, [b];", "st.param.b32 [a], %r1;", "st.param.b32 [o], %r1;",
        "ld.param.b32 %r1, [o];", "mov.b64 %d1, a;", "mov.b64 %d1, o;", "mov.b64 %d1, c;", "ld.param.b32 %r1, [c+4];",
        "ld.b32 %r1, [a];", "ld.local.b32 %r1, [a];", "ld.param.b32 %r1, [a+4];", "ld.param.v2.b32 {%r1, %r2}, [c];",
        "add.s32 %r1, a, 1;", "mov.b32 %r1, a;", "ld.param.b32 %r1, [%d1];", "cvta.param.u64 %d1, a;",
        "ld.param::func.b32 %r1, [a];", "ld.param::entry.b32 %r1, [a];", "st.param::func.b32 [o], %r1;",
        "st.param::entry.b32 [a], %r1;", "ld.global.b32 %r1, [a];", "ld.param.f32 %f1, [a];",
        "ld.param.b8 %r1, [c+3];",
        "ld.param.b64 %d1, [c+4];", "cvta.to.param.u64 %d1, %d2;", "isspacep.param %r1, %d1;",
        "ld.param.b32 %r1, [a+1];",
        "st.param.b32 [l], %r1;", "ld.param.b32 %r1, [l];", "mov.b64 %d1, l;", "@%r1 st.param.b32 [l], %r1;",
    )  # fmt: skip
    signature = "(.param .b32 a, .param .b64 b, .param .align 8 .b8 c[16])"
    for line in lines:
        local = ".param .b32 l;"
        yield body(registers, local, line, head=f".entry k{signature}")
        yield body(registers, local, line, head=f".func (.param .b32 o) f{signature}", before=(KERNEL,))
        yield body(registers, line, head=".func (.reg .b32 o) f(.reg .b32 a, .reg .b64 b, .reg .b32 c)")
    for setting in (
        "1.3/sm_13",
        "1.4/sm_13",
        "2.0/sm_13",
        "2.0/sm_20",
        "3.0/sm_20",
        "5.0/sm_50",
        "6.0/sm_50",
        "9.0/sm_75",
    ):
        for head in (
            ".entry k(.param .b32 a)", ".func f(.param .b32 a)", ".func f(.reg .b32 a)", ".func (.param .b32 r) f()",
            ".func f(.param .align 8 .b8 a[12])", ".func f(.param .b8 a[])", ".entry k(.param .u64 .ptr .global a)",
            ".func (.reg .b32 r, .reg .b32 s) f()", ".func f(.reg .b16 a)", ".func f(.reg .pred a)",
            ".entry k(.reg .b32 a)",
            ".entry k(.param .b8 a[])", ".entry k(.b32 a)", ".entry k(.param .v2 .f32 a)",
            ".entry k(.param .f16x2 a)",
            ".func f(.param .v4 .f32 a)", ".entry k(.param .align 16 .b8 a[16])",
        ):  # fmt: skip
            yield body(head=head, setting=setting)
        for line in (".param .b32 x;", ".local .b32 x;", ".shared .b32 x;", ".reg .b32 x;", ".global .b32 x;",
                     ".const .b32 x;"):  # fmt: skip
            yield body(line, setting=setting)
            yield probe(line, KERNEL, setting=setting)


def _calls() -> Iterator[Probe]:
    before = (
        ".func none() { ret; }", ".func one(.reg .b32 a) { ret; }", ".func wide(.reg .b64 a) { ret; }",
        ".func real(.reg .f32 a) { ret; }", ".func (.reg .b32 r) gives() { ret; }",
        ".func (.param .b32 r) both(.param .b32 a, .param .align 8 .b8 s[16]) { ret; }",
        ".extern .func outer(.param .b64 a);", ".func two(.param .b32 a, .param .f64 b) { ret; }",
    )  # fmt: skip
    registers = (
        ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .pred %p<4>; .reg .u32 %u; .reg .s32 %s; .reg .f64 %e;"
    )
    local = ".param .b32 p; .param .b64 q; .param .align 8 .b8 s[16]; .param .b8 t[16]; .param .align 8 .b8 v[8];"
    for line in (
        "call none;", "call none, ();", "call (none);", "call none, (%r1);", "call one;", "call one, (%r1);",
        "call one, (1);", "call one, (1.5);", "call one, (%d1);", "call one, (%f1);", "call one, (%u);",
        "call one, (%s);",
        "call one, (%r1, %r2);", "call one, (p);", "call one, (q);", "call one, (undeclared);", "call one, (_);",
        "call wide, (%d1);", "call wide, (%r1);", "call wide, (5);", "call real, (%f1);", "call real, (%r1);",
        "call real, (1.0);", "call real, (1);", "call gives;", "call (%r1), gives;", "call (%r1), gives, ();",
        "call (%d1), gives;", "call (_), gives;", "call (%r1, %r2), gives;", "call (1), gives;", "call (p), gives;",
        "call (%f1), gives;", "call (p), both, (p, s);", "call (%r1), both, (%r2, s);", "call (p), both, (p, t);",
        "call (p), both, (p, v);", "call (p), both, (s, p);", "call (p), both, (p);", "call (p), both, (p, s, s);",
        "call both, (p, s);", "call (p), both, (p, %d1);", "call outer, (q);", "call outer, (%d1);",
        "call outer, (p);",
        "call undeclared;", "call later;", "call k;",
        "call.uni none;", "call.foo none;", "@%p1 call none;", "@%p1 call.uni one, (%r1);", "call two, (p, %e);",
        "call two, (%r1, 1.0);", "call two, (%r1, %f1);", "call %d1;", "call %d1, ();", "call %d1, (), proto;",
        "call %d1, proto;", "call %d1, (%r1), proto1;", "call %d1, (%r1), proto;", "call (%r1), %d1, (), proto;",
        "call %r1, (), proto;", "call %d1, (), list;", "call %d1, (%r1), list;", "call %d1, (), nosuch;",
        "call none, (), proto;", "call %p1, (), proto;", "call %d1, (), none;", "call (%r1), %d1, (), list;",
    ):  # fmt: skip
        yield body(
            registers, local, "proto: .callprototype _ ();", "proto1: .callprototype _ (.reg .b32 a);",
            "list: .calltargets none;", line, before=before,
        )  # fmt: skip
    yield probe(".entry k()", "{", "call later;", "ret;", "}", ".func later() { ret; }")
    yield probe(".func later();", ".entry k()", "{", "call later;", "ret;", "}", ".func later() { ret; }")
    for text in (
        "_ ()", "(.reg .b32 r) _ ()", "_ (.reg .b32 a)", "_ (.param .b32 a)", "f ()", "_",
        "(.param .b32 _) _ (.param .b64 _)",
        "_ (.param .align 8 .b8 a[12])", "_ (.reg .b32 a, .reg .b32 a)", "_ (.b32 a)", "_ () .noreturn", "_ () .foo",
        "(.reg .b32 r) _ () .noreturn", "(.reg .b32 r, .reg .b32 s) _ ()", "_ (.param .b32 a[])",
        "_ (.global .b32 a)",
        "_ () .maxntid 1",
    ):  # fmt: skip
        yield body(f"proto: .callprototype {text};")
    for text in ("none", "none, one", "none, none", "nosuch", "k", "", "outer", "proto", "none one"):
        yield body("proto: .callprototype _ ();", f"list: .calltargets {text};", before=before)
    yield body("proto: .callprototype _ ();", "proto: .callprototype _ ();")
    yield body("proto: .callprototype _ ();", ".reg .b32 proto;")
    yield probe("proto: .callprototype _ ();", KERNEL)
    yield probe(".func (.reg .b32 r) f()", "{", "ret;", "}", KERNEL)
    yield probe(".func (.reg .b32 r) f()", "{", "mov.b32 r, 1;", "}", KERNEL)
    yield probe(".func f(.reg .b32 a)", "{", ".reg .b32 a;", "ret;", "}", KERNEL)
    yield probe(".func f(.reg .b32 a)", "{", "{", ".reg .b32 a;", "}", "ret;", "}", KERNEL)
    yield probe(".func f(.reg .b32 f)", "{", "ret;", "}", KERNEL)
    yield probe(".func f()", "{", "call f;", "ret;", "}", KERNEL)


def _targets() -> Iterator[Probe]:
    registers = ".reg .b32 %r<4>; .reg .pred %p<4>; .reg .b64 %d;"
    for lines in (
        ("bra L;", "L:"), ("bra M;", "L:"), ("L:", "bra L;"), ("L:", "L:"), ("{", "L:", "}", "bra L;"),
        ("bra L;", "{", "L:", "}"), ("{", "bra L;", "}", "L:"), ("{", "L:", "}", "{", "L:", "}"), ("L:", "{", "L:",
        "}"),
        (".reg .b32 L;", "L:"), ("L:", ".reg .b32 L;"), ("bra %r1;",), ("bra 4;",), ("bra;",), ("bra L, M;", "L:",
        "M:"),
        ("bra.uni L;", "L:"), ("@%p1 bra L;", "L:"), ("@!%p1 bra.uni L;", "L:"), ("@%r1 bra L;", "L:"),
        ("bra.foo L;", "L:"),
        ("bra k;",), ("T: .branchtargets L, M;", "brx.idx %r1, T;", "L:", "M:"), ("brx.idx %r1, T;", "L:"),
        ("T: .branchtargets L;", "brx.idx %d, T;", "L:"), ("T: .branchtargets L;", "brx.idx 1, T;", "L:"),
        ("T: .branchtargets N;", "L:"), ("T: .branchtargets L, L;", "L:"), ("T: .branchtargets;",),
        ("brx.idx %r1, L;", "L:"),
        ("T: .branchtargets L;", "bra T;", "L:"), ("brx.idx %r1, T;", "T: .branchtargets L;", "L:"),
        ("T: .branchtargets L<3>;", "brx.idx %r1, T;", "L0:", "L1:", "L2:"), ("T: .branchtargets L<3>;", "L0:",
        "L1:"),
        ("T: .branchtargets L, 4;", "L:"), ("{", "T: .branchtargets L;", "}", "brx.idx %r1, T;", "L:"),
        ("T: .branchtargets L;", "{", "brx.idx %r1, T;", "L:", "}"), ("@%p1 brx.idx %r1, T;", "T: .branchtargets L;",
        "L:"),
        ("T: .branchtargets L;", "T:", "L:"), ("ret;", "mov.b32 %r1, 1;"), ("exit;", "L:"), ("trap;",),
        ("L: M: bra L;",),
        ("1L:",), ("L.x:",), ("%L:", "bra %L;"), ("$L:", "bra $L;"), ("_L:", "bra _L;"), ("L :", "bra L;"), ("add:",
        "bra add;"),
        ("T: .branchtargets L;", "brx.idx.uni %r1, T;", "L:"), ("brx.idx %p1, T;", "T: .branchtargets L;", "L:"),
    ):  # fmt: skip
        yield body(registers, *lines)
    yield probe(".entry k()", "{", "bra L;", "ret;", "}", ".entry j()", "{", "L:", "ret;", "}")
    yield probe(".entry k()", "{", "ret;", "L:", "}")
    yield probe(".entry k()", "{", "L:", "}")
    yield probe("L:", KERNEL)


# --- names and predicates (4.4, 9.3) ----------------------------------------------------------------------------------


def _scopes() -> Iterator[Probe]:
    use = "mov.b32 x, 1;"
    for lines in (
        (".reg .b32 x;", use), (use, ".reg .b32 x;"), ("{", ".reg .b32 x;", "}", use), (".reg .b32 x;", "{", use,
        "}"),
        (".reg .b32 x;", ".reg .b32 x;"), (".reg .b32 x;", "{", ".reg .f32 x;", use, "}"), (".reg .b32 x, x;",),
        (".reg .b32 %r<4>;", "mov.b32 %r4, 1;"), (".reg .b32 %r<4>;", "mov.b32 %r, 1;"), (".reg .b32 %r<4>;",
        ".reg .b32 %r2;"),
        (".reg .b32 %r2;", ".reg .b32 %r<4>;"), (".reg .b32 %r<4>;", ".reg .b32 %r<8>;"), (".reg .b32 %tid;",),
        (".reg .b32 %tid;", "mov.b32 %tid, 1;"), (".reg .b32 _;",), (".reg .b32 %;",), (".reg .b32 $;",),
        (".reg .b32 a.b;",),
        (".reg .b32 add;", "mov.b32 add, 1;"), (".reg .b32 WARP_SZ;",), (".reg .b32 1a;",), (".reg .b32 %1;",
        "mov.b32 %1, 1;"),
        (".reg .b32 x", use), (".reg b32 x;",), (".reg .b32 %r<-1>;",), (".reg .b32 %r<1.5>;",),
        (".reg .b32 %r<x>;",),
        (".reg .b32 x;", ".local .b32 x;"), (".local .b32 x[4];", use), (".shared .b32 x;", ".reg .b32 x;"),
        (".reg .b32 k;", "mov.b32 k, 1;"), (".reg .b32 X;", use), (".reg .b32 x, y, z;", "mov.b32 y, z;"),
        (".reg .b32 x;", "{", "{", use, "}", "}"), ("{", "{", ".reg .b32 x;", "}", use, "}"), (".reg .v2 .b32 x;",
        use),
        (".reg .v2 .b32 x;", "mov.b32 x.x, 1;"), (".reg .v2 .b32 x;", "mov.b32 x.z, 1;"), (".reg .b32 x;",
        "mov.b32 x.x, 1;"),
        (".reg .v4 .f32 x;", "mov.f32 x.a, 1.0;"), (".reg .v4 .f32 x;", "mov.v4.f32 x, {1.0, 1.0, 1.0, 1.0};"),
        (".reg .v3 .b32 x;",), (".reg .v8 .b32 x;",), (".reg .v4 .b64 x;",), (".reg .v2 .pred x;",),
        (".reg .b32 x[4];",),
        (".reg .align 4 .b32 x;",), (".reg .b32 x = 1;",), (".visible .reg .b32 x;",), (".extern .shared .b32 x[];",),
        (".extern .shared .align 16 .b8 x[];",), (".extern .global .b32 x;",), (".shared .b32 x[];",),
        (".local .b32 x[];",),
        (".shared .align 3 .b32 x;",), (".shared .align 2 .b32 x;",), (".shared .b32 x[0];",),
        (".shared .b32 x = 1;",),
        (".global .b32 x = 1;",), (".const .b32 x = 1;",), (".local .b32 x = 1;",), (".global .texref x;",),
        (".tex .u32 x;",),
        (".shared .b8 x[49152];",), (".shared .b8 x[49153];",), (".shared .b8 x[300000];",),
        (".local .b8 x[600000];",),
    ):  # fmt: skip
        yield body(*lines)
    for lines in (
        (".global .b32 x;", ".global .f32 x;"), (".global .b32 k;",), (".global .b32 x;", ".func x() { ret; }"),
        (".reg .b32 x;",), (".local .b32 x;",), (".param .b32 x;",), (".global .b32 x, y = 2, z[3];",),
        (".global .b32 %x;",),
        (".const .b32 x[17000];",), (".const .b8 x[65536];",), (".const .b8 x[65537];",), (".shared .b8 x[49152];",),
        (".shared .b8 x[49153];",), (".global .b32 x[4] = {1, 2, 3, 4, 5};",), (".global .b32 x[] = {};",),
        (".global .b32 x[2][2] = {{1, 2}, {3, 4}};",), (".global .b32 x[2][2] = {1, 2, 3, 4};",),
        (".global .b32 x = {1};",),
        (".global .b32 x = y;", ".global .b32 y;"), (".global .b64 x = x;",), (".global .b64 x = k;",),
        (".global .b32 x<4>;", ".global .u64 y = x3;"), (".global .b32 x<4>;", ".global .u64 y = x4;"),
        (".global .b32 x<4>;", ".global .u64 y = x;"), (".global .align 8 .b32 x<4>;",),
        (".global .b32 x<4>, y<2>;",),
        (".global .b32 x<4>[2];",), (".global .b32 x<4> = 1;",), (".visible .const .b32 x<4>;",),
        (".extern .global .b32 x<2>;",),
        (".shared .v2 .b32 x<4>;",), (".global .f32 x = 1;",), (".global .f32 x = 1.0;",), (".global .s8 x = 300;",),
        (".global .u8 x = -1;",), (".global .f64 x = 0f3F800000;",), (".global .f16 x = 1.0;",),
        (".global .pred x;",),
        (".global .bf16 x;",), (".global .b32 x", KERNEL), (".global .b32;",), ("global .b32 x;",),
        (".globl .b32 x;",),
        (".global .b33 x;",), (".global b32 x;",), (".global .b32 x[4;",), (".global .b32 x]4[;",),
        (".global .b32 x y;",),
    ):  # fmt: skip
        yield probe(*lines, *(() if KERNEL in lines else (KERNEL,)))


def _guards() -> Iterator[Probe]:
    registers = ".reg .b32 %r<4>; .reg .pred %p<4>; .reg .b16 %h; .reg .f32 %f<4>; .reg .b64 %d;"
    for line in (
        "@%p1 mov.b32 %r1, 1;", "@!%p1 mov.b32 %r1, 1;", "@ %p1 mov.b32 %r1, 1;", "@! %p1 mov.b32 %r1, 1;",
        "@%r1 mov.b32 %r2, 1;", "@%p9 mov.b32 %r1, 1;", "@p mov.b32 %r1, 1;", "@1 mov.b32 %r1, 1;",
        "@%p1, mov.b32 %r1, 1;",
        "@%p1 @%p2 mov.b32 %r1, 1;", "@-%p1 mov.b32 %r1, 1;", "@!!%p1 mov.b32 %r1, 1;", "@%p1 ret;", "@%p1 exit;",
        "@%p1 L:",
        "@%p1 {", "@%p1 .reg .b32 x;", "@%p1;", "@%h mov.b32 %r1, 1;", "@%is_explicit_cluster mov.b32 %r1, 1;",
        "mov.pred %p1, %p2;", "mov.pred %p1, 1;", "mov.pred %p1, %r1;", "mov.pred %p1, !%p2;", "not.pred %p1, %p2;",
        "and.pred %p1, %p2, %p3;", "and.pred %p1, %p2, 1;", "add.s32 %p1, %p2, %p3;", "add.s32 %r1, %p1, 1;",
        "selp.b32 %r1, 1, 2, %p1;", "selp.b32 %r1, 1, 2, %r2;", "selp.b32 %r1, 1, 2, !%p1;",
        "setp.eq.s32 %p1, %r1, %r2;",
        "setp.eq.s32 %r1, %r2, %r3;", "setp.eq.s32 %p1|%p2, %r1, %r2;", "setp.eq.s32 %p1|%p1, %r1, %r2;",
        "setp.eq.and.s32 %p1, %r1, %r2, %p2;", "setp.eq.and.s32 %p1, %r1, %r2, !%p2;", "setp.eq.s32 %p1, %r1;",
        "setp.eq.s32 %p1, %r1, 1.0;", "setp.eq.f32 %p1, %f1, 1;", "setp.eq.f32 %p1, %f1, 1.0;",
        "setp.eq.s32 %p1, %f1, %f2;",
        "setp.foo.s32 %p1, %r1, %r2;", "setp.s32 %p1, %r1, %r2;", "setp.lo.s32 %p1, %r1, %r2;",
        "setp.ltu.s32 %p1, %r1, %r2;",
        "st.global.pred [%d], %p1;", "ld.global.b32 %p1, [%d];", "cvt.u32.pred %r1, %p1;",
        "vote.sync.any.pred %p1, %p2, -1;",
        "vote.sync.any.pred %p1, !%p2, -1;", "vote.sync.ballot.b32 %r1, %p1, -1;", "vote.any.pred %p1, %p2;",
    ):  # fmt: skip
        yield body(registers, line)


# --- entries and headers (11.1, 11.4, 11.7) ---------------------------------------------------------------------------


def _entries() -> Iterator[Probe]:
    for directives in (
        (".maxntid 128", ".minnctapersm 2"), (".reqntid 128", ".minnctapersm 2"), (".maxntid 128", ".reqntid 128"),
        (".minnctapersm 2",), (".maxnreg 32", ".maxntid 128"), (".maxnreg 32", ".minnctapersm 2", ".maxntid 64"),
        (".maxntid 128", ".maxntid 64"), (".maxntid 1024, 1, 1",), (".maxntid 1024, 2",), (".maxntid 2048",),
        (".maxntid 0",),
        (".reqntid 32, 32, 2",), (".reqntid 0",), (".reqnctapercluster 2", ".maxclusterrank 4"),
        (".explicitcluster",),
        (".explicitcluster", ".maxclusterrank 4"), (".explicitcluster", ".reqnctapercluster 2"),
        (".maxclusterrank 16",),
        (".maxclusterrank 17",), (".reqnctapercluster 2, 2, 2",), (".reqnctapercluster 3, 3, 3",),
        (".reqnctapercluster 0",),
        (".blocksareclusters",), (".blocksareclusters", ".reqntid 32", ".reqnctapercluster 2"),
        (".blocksareclusters", ".reqntid 32"), (".noreturn",), (".maxnreg 0",), (".maxnreg 255",), (".maxnreg 256",),
        (".maxnreg 1000",), (".maxnreg",), (".maxnreg 1, 2",), (".maxnreg x",), (".maxntid",),
        (".maxntid 1, 2, 3, 4",),
        (".minnctapersm 0",), (".minnctapersm 33", ".maxntid 32"), (".maxnctapersm 4",), (".abi_preserve 4",),
        (".maxntid 128;",), (".foo 1",), (".maxntids 1",), (".max_ntid 1",), (".reqntid 128,",), (".maxntid 128 64",),
    ):  # fmt: skip
        yield probe(".entry k()", *directives, "{", "ret;", "}")
        yield probe(".func f()", *directives, "{", "ret;", "}", KERNEL)
    for text in (".noreturn", ".abi_preserve 4", ".abi_preserve_control 4", ".abi_preserve 256", ".abi_preserve -1",
                 ".abi_preserve_control 12", ".noreturn .noreturn", ".abi_preserve", ".noreturn 1"):  # fmt: skip
        yield probe(".func f()", text, "{", "exit;", "}", KERNEL)
        yield probe(".extern .func f()", f"{text};", KERNEL)
        yield probe(".func (.reg .b32 r) f()", text, "{", "exit;", "}", KERNEL)
        for setting in ("6.3/sm_75", "8.8/sm_90", "9.0/sm_75"):
            yield probe(".func f()", text, "{", "exit;", "}", KERNEL, setting=setting)


def _headers() -> Iterator[Probe]:
    for lines in (
        (".version 9.0", ".target sm_90"), (".version 9.0", ".target sm_90", ".address_size 64"),
        (".version 9.0", ".address_size 64", ".target sm_90"), (".version 9.0",), (".version 9.0", ".target"),
        (".version 9", ".target sm_90"), (".version 9.0.1", ".target sm_90"), (".version 10.0", ".target sm_90"),
        (".version 9.0;", ".target sm_90"), (".version 9.0", ".target sm_90;"), (".version 9.0", ".target sm_90,"),
        (".version 9.0", ".target sm_90, debug"), (".version 9.0", ".target sm_90, texmode_independent"),
        (".version 9.0", ".target sm_90, texmode_unified, texmode_independent"), (".version 9.0",
        ".target sm_90, foo"),
        (".version 9.0", ".target sm_90, sm_80"), (".version 9.0", ".target sm_91"), (".version 9.0",
        ".target compute_90"),
        (".version 9.0", ".target sm_90", ".target sm_80"), (".version 9.0", ".version 9.0", ".target sm_90"),
        (".version 9.0", ".target sm_90", ".address_size 48"), (".version 9.0", ".target sm_90", ".address_size"),
        (".version 9.0", ".target sm_90", ".address_size 64", ".address_size 64"), (".version 9.0", ".target SM_90"),
        (".version 9.0", ".target sm_90", ".address_size 64;"), (".Version 9.0", ".target sm_90"), (".version 9.0",
        "target sm_90"),
        (".version 9.0", ".target sm_90, map_f64_to_f32"), (".version 9.0", ".target map_f64_to_f32, sm_90"),
        (".version 9.0", '.file 1 "a"', ".target sm_90"), (".version 9.0", "// c", "/* d */", ".target sm_90"),
        (".version 9.0", ".target sm_90 debug"), (".version 7.0", ".target sm_90"),
        (".version 7.8", ".target sm_90a"), (".version 8.6", ".target sm_100f"), (".version 8.8", ".target sm_100f"),
        (".version 9.0", ".global .b32 x;", ".target sm_90"), (".version 9.0", ".target sm_90", "#pragma once"),
        (".version 0.9", ".target sm_10"), (".version -1.0", ".target sm_90"), (".version 9.1", ".target sm_90"),
    ):  # fmt: skip
        yield probe(*lines, KERNEL)
    for name in ("compute_75", "compute_90", "compute_100f", "compute_20", "compute_77", "compute_", "compute_9x",
                 "sm_75x", "sm_75a", "sm_76", "sm_", "compute_75, compute_80",
                 "compute_75, texmode_independent"):  # fmt: skip
        yield probe(".version 9.0", f".target {name}", KERNEL)
    yield probe(".version 6.0", ".target compute_90", KERNEL)
    for between in ('.file 1 "a"', '.pragma "nounroll";', ".global .b32 x;", ".section .debug_str { }"):
        yield probe(".version 9.0", between, ".target sm_90", ".address_size 64", KERNEL)
        yield probe(".version 9.0", ".target sm_90", between, ".address_size 64", KERNEL)
        yield probe(".version 9.0", ".target sm_90", between, ".target sm_80", KERNEL)


def _debug_option() -> Iterator[Probe]:
    """What counts as the DWARF information that `.target debug` announces (11.1.2)."""
    for lines in (
        (), ('.file 1 "a.cu"',), (".section .debug_info { }",), (".section .debug_str { .b8 0 }",),
        (".section .foo { .b8 0 }",), (".section .debug_info {", "L:", "}"),
    ):  # fmt: skip
        for version, target in (("9.0", "sm_75"), ("3.0", "sm_20"), ("9.0", "sm_75, texmode_independent")):
            yield probe(f".version {version}", f".target {target}, debug", *lines, KERNEL)
    yield probe(".version 9.0", ".target sm_75", ".target sm_75, debug", KERNEL)
    yield probe(".version 9.0", ".target sm_75, debug", '.file 1 "a.cu"', ".entry k()", "{", ".loc 1 1 1", "ret;", "}")


# --- orders and attributes (5.4) --------------------------------------------------------------------------------------


def _orders() -> Iterator[Probe]:
    """Linkage, space, alignment and attributes in each order."""
    words = (".visible", ".global", ".align 8", ".attribute(.managed)")
    for order in itertools.permutations(words):
        yield probe(f"{' '.join(order)} .b32 x;", KERNEL)
    for space in (".const", ".shared", ".local", ".param", ".reg"):
        yield body(f".align 8 {space} .b32 x;")
        yield body(f"{space} .b32 .align 8 x;")
    for parameter in (
        ".align 8 .param .b8 a[8]", ".param .b8 .align 8 a[8]", ".attribute(.managed) .param .b8 a[8]",
        ".param .attribute(.unified(1, 2)) .b32 a", ".align 8 .reg .b32 a", ".param .v2 .f32 a[4]",
        ".param .v2 .f32 a", ".param .v4 .b8 a[2]", ".param .align 128 .b8 a[4]", ".param .align 256 .b8 a[4]",
        ".param .align 4 .align 8 .b8 a[4]",
    ):  # fmt: skip
        for text in (".entry k({}) {{ ret; }}", ".func f({}) {{ ret; }}", ".extern .func f({});",
                     ".entry k() {{ P: .callprototype _ ({}); ret; }}"):  # fmt: skip
            yield probe(text.format(parameter))
    for text in (
        '.extern .func f() .pragma "nounroll";', '.func f() .pragma "nounroll"; { ret; }',
        '.entry k() .pragma "nounroll", "foo"; { ret; }', '.entry k() .maxntid 1 .pragma "foo"; .maxnreg 32 { ret; }',
        '.pragma "nounroll", "foo";', '.pragma "nounroll", "nounroll";', '.pragma "frequency 1";',
        ".extern .func f() .entry j() { ret; }", ".common .global .texref x;", ".common .global .b32 x[];",
        ".common .const .b32 x;", ".extern .global .texref x;", ".visible .global .surfref x;",
        ".weak .global .texref x;", ".global .align 4 .align 8 .b32 x;", ".const .texref x[2];",
        ".global .samplerref x[2];", ".global .b32 x<0>;",
    ):  # fmt: skip
        yield probe(text, KERNEL)
    for zero in (".reqnctapercluster 0", ".reqnctapercluster 0, 0, 0", ".reqnctapercluster 2, 0", ".maxclusterrank 0",
                 ".reqnctapercluster 0 .maxclusterrank 4"):  # fmt: skip
        yield probe(f".entry k() {zero} {{ ret; }}")


def _opaque_arrays() -> Iterator[Probe]:
    """Arrays of textures and surfaces, which instructions take one by one."""
    registers = ".reg .f32 %f<4>; .reg .s32 c; .reg .b32 r; .reg .b64 d;"
    lines = (
        "tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [t, {c}];", "txq.width.b32 r, [t];", "mov.u64 d, t;",
        "suld.b.1d.b32.trap r, [s, {c}];", "sust.b.1d.b32.trap [s, {c}], r;", "suq.width.b32 r, [s];",
    )  # fmt: skip
    for line, shape in itertools.product(lines, ("", "[1]", "[4]")):
        yield body(registers, line, before=(f".global .texref t{shape};", f".global .surfref s{shape};"))
        yield body(registers, line, head=f".entry k(.param .texref t{shape}, .param .surfref s{shape})")


# --- values that functions exchange (7.1) -----------------------------------------------------------------------------


def _narrow() -> Iterator[Probe]:
    """Values of less than 32 bits: in definitions, and in calls of what is declared only."""
    for type_, space in itertools.product(
        ("u8", "s8", "b8", "u16", "s16", "b16", "f16", "pred", "b32"), ("reg", "param")
    ):
        value = f".{space} .{type_}"
        yield probe(f".func f({value} a) {{ ret; }}", KERNEL)
        yield probe(f".func ({value} a) f() {{ ret; }}", KERNEL)
        yield probe(f".extern .func f({value} a);", ".entry k()", "{", f".reg .{type_} v;", "call f, (v);", "ret;", "}")
        yield probe(
            f".extern .func ({value} a) f();", ".entry k()", "{", f".reg .{type_} v;", "call (v), f;", "ret;", "}"
        )
        for prototype, call in ((f"_ ({value} _)", "call d, (v), P;"), (f"({value} _) _", "call (v), d, P;")):
            registers = f".reg .b64 d; .reg .{type_} v;"
            yield body(registers, f"P: .callprototype {prototype};", call)
            yield body(registers, f"P: .callprototype {prototype};")


def _second_results() -> Iterator[Probe]:
    for setting in ("1.4/sm_13", "2.0/sm_13", "2.0/sm_20", "3.1/sm_20", "9.0/sm_75"):
        yield probe(".func (.reg .b32 r, .reg .b32 s) f() { ret; }", setting=setting)
        yield probe(".func (.param .b32 r, .param .b32 s) f() { ret; }", setting=setting)


# --- old versions -----------------------------------------------------------------------------------------------------


def _banks() -> Iterator[Probe]:
    """Constant banks (5.1.3.1)."""
    for setting in ("1.4/sm_13", "1.5/sm_13", "2.1/sm_20", "2.2/sm_20"):
        for bank, linkage, shape in itertools.product((0, 1, 10, 11), (".extern ", "", ".visible "), ("", "[4]", "[]")):
            yield probe(f"{linkage}.const[{bank}] .b32 x{shape};", setting=setting)
        for bank in (0, 1, 10, 11):
            line = f"ld.const[{bank}].b32 r, [c];"
            yield probe(".const .b32 c;", ".entry k", "{", ".reg .b32 r;", line, "}", setting=setting)
        yield probe(".extern .const[1] .b32 x[][4];", setting=setting)
        yield probe(".const[1] .b32 x[] = {1, 2};", setting=setting)


def _old() -> Iterator[Probe]:
    """What has changed since: addresses that initialise, double precision, conversions, section data."""
    for setting in ("1.0/sm_10", "2.0/sm_20", "2.1/sm_20"):
        for value in ("g", "g+4"):
            yield probe(".global .b32 g;", f".global .u64 x = {value};", setting=setting)
            yield probe(".global .b32 g;", f".global .u32 x[2] = {{{value}, 0}};", setting=setting)
    for setting in ("1.4/sm_12", "9.0/sm_10", "9.0/sm_12,map_f64_to_f32", "1.4/sm_12,map_f64_to_f32", "9.0/sm_13"):
        yield probe(".global .f64 x;", ".const .f64 y = 1.0;", setting=setting)
        for line in (".reg .f64 y;", "add.f64 x, x, x;", "mov.f64 x, 0d0000000000000000;", "cvt.f64.f32 x, f;"):
            yield probe(".entry k", "{", ".reg .f64 x; .reg .f32 f;", line, "}", setting=setting)
    for setting in ("1.3/sm_13", "1.4/sm_13", "1.5/sm_13"):
        registers = ".reg .f32 %f<2>; .reg .f64 %fd; .reg .b64 %d; .reg .b32 %r; .reg .b16 %h; .reg .b8 %b;"
        for line in (
            "cvt.rzi.ftz.u64.f32 %d, %f1;", "cvt.rzi.ftz.s64.f32 %d, %f1;", "cvt.rzi.ftz.u32.f32 %r, %f1;",
            "cvt.rzi.ftz.s16.f32 %h, %f1;", "cvt.rzi.ftz.u8.f32 %b, %f1;", "cvt.ftz.f64.f32 %fd, %f1;",
            "cvt.rn.ftz.f32.f64 %f1, %fd;", "cvt.rn.ftz.f32.u64 %f1, %d;", "cvt.rn.ftz.f32.s32 %f1, %r;",
            "cvt.rn.ftz.f32.u16 %f1, %h;", "cvt.rn.ftz.f32.s8 %f1, %b;", "cvt.rn.ftz.f32.u8 %f1, %b;",
            "cvt.rn.ftz.f16.f32 %h, %f1;", "cvt.ftz.f32.f16 %f1, %h;", "cvt.rni.ftz.f32.f32 %f0, %f1;",
        ):  # fmt: skip
            yield probe(".entry k", "{", registers, line, "}", setting=setting)
    for setting in ("7.4/sm_75", "7.5/sm_75"):
        for value in (
            "0xffffffffffffffff",
            "18446744073709551615",
            "9223372036854775808",
            "-9223372036854775808",
            "-1",
        ):
            yield probe(f".section .debug_info {{ .b64 {value} }}", setting=setting)
