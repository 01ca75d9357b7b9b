"""Module rules, each beside a module that obeys it. The verdicts are those of ptxas 13.0, recorded; "" is accepted."""

import pytest

from ptxtools.check import check
from ptxtools.diagnostics import Severity
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FUNCTION = ".func f(.reg .u64 a) {ret;} "

NAMES = [
    ("PTX201", ".entry k() { { L: ret; } bra L; }"),
    ("PTX201", ".entry k() { { L: ret; } { bra L; } ret; }"),
    ("", ".entry k() { L: { L: ret; } bra L; }"),
    ("PTX202", ".entry k() { L: L: ret; }"),
    ("PTX202", ".entry k() { .reg .u32 L; L: ret; }"),
    ("PTX201", ".entry k() { add.s32 %r1,%r1,1; .reg .s32 %r<4>; ret; }"),
    ("PTX202", ".entry k() { .reg .s32 %r<4>; .reg .s32 %r<4>; ret; }"),
    ("PTX202", ".entry k() { .reg .s32 %r<4>; .reg .s32 %r2; ret; }"),
    ("", ".entry k() { .reg .s32 %r<4>; { .reg .s32 %r2; } ret; }"),
    ("", ".entry k() { .reg .s32 a; { .reg .s32 a; add.s32 a,a,1; } ret; }"),
    ("PTX202", ".entry k() { .reg .s32 a,a; ret; }"),
    ("PTX202", ".entry k() { .reg .s32 a; .reg .u32 a; ret; }"),
    ("PTX202", ".entry k(.param .u32 a) { .reg .s32 a; ret; }"),
    ("PTX202", ".entry k(.param .u32 a, .param .u32 a) { ret; }"),
    ("PTX202", ".global .u32 a; .global .u32 a;"),
    ("PTX420", ".extern .global .u32 a; .global .u32 a;"),
    ("", ".extern .global .u32 a; .extern .global .u32 a;"),
    ("PTX204", ".extern .global .u32 a; .global .u64 a;"),
    ("PTX202", ".global .u32 a; .entry a() {ret;}"),
    ("PTX202", ".entry k() {ret;} .entry k() {ret;}"),
    ("", ".entry k(); .entry k() {ret;}"),
    ("PTX204", ".func f(); .func f(.reg .u32 a) {ret;}"),
    ("PTX204", ".func f(.param .u32 a); .func f(.param .u64 a) {ret;}"),
    ("PTX204", ".func f(.param .u32 a); .func f(.param .s32 a) {ret;}"),
    ("PTX204", ".func f(.param .u32 a); .func (.param .u32 r) f(.param .u32 a) {ret;}"),
    ("PTX201", ".entry k() { call f; ret; } .func f() {ret;}"),
    ("PTX201", ".entry k() { .reg .u64 x; mov.u64 x, g; ret; } .global .u32 g;"),
    ("PTX201", ".entry k() { bra L; }"),
    ("PTX264", ".entry k() { .reg .pred p; @p bra k; ret; }"),
    ("PTX264", ".func f() {ret;} .entry k() { bra f; }"),
    ("", ".entry k() { .reg .u32 %tid; ret; }"),
    ("", ".entry k() { .reg .u32 %laneid; mov.u32 %laneid, 4; ret; }"),
    ("", ".entry k() { .reg .u32 add; ret; }"),
    ("", ".entry k() { .reg .u32 %r<0>; ret; }"),
    ("", ".entry k() { .reg .u32 %r<1000000>; ret; }"),
    ("", ".entry k() { .reg .s32 %r<4>; mov.s32 %r03, 1; ret; }"),
    ("PTX202", ".weak .global .u32 g; .weak .global .u32 g;"),
    ("PTX202", ".weak .global .u32 g; .global .u32 g;"),
    ("", ".visible .global .u32 g; .extern .global .u32 g;"),
    ("", ".extern .global .u32 g; .visible .global .u32 g;"),
    ("", ".extern .global .u32 g[]; .visible .global .u32 g[4];"),
    ("PTX202", ".common .global .u32 g; .common .global .u32 g;"),
    ("PTX204", ".common .global .u32 g; .common .global .u64 g;"),
    ("", ".visible .func f(); .func f() {ret;}"),
    ("PTX204", ".extern .func f(); .func f() {ret;}"),
    ("PTX204", ".func f(); .visible .func f() {ret;}"),
    ("PTX204", ".extern .func f(); .visible .func f() {ret;}"),
    ("", ".extern .func f(); .extern .func f();"),
    ("", ".extern .func f(.param .align 2 .b64 a); .extern .func f(.param .b64 a);"),
    ("PTX204", ".extern .func f(.param .align 16 .b64 a); .extern .func f(.param .b64 a);"),
    ("", ".extern .func f(.param .b64 a); .entry k() { .param .align 2 .b64 p; call f, (p); }"),
    ("PTX262", ".extern .func f(.param .b64 a); .entry k() { .param .align 16 .b64 p; call f, (p); }"),
    ("PTX440", ".func __cudaCDP2Free(); .entry k() { call __cudaCDP2Free; }"),
    ("", ".extern .func __cudaCDP2Free(); .entry k() { call __cudaCDP2Free; }"),
    ("", ".func vprintf(); .entry k() { call vprintf; }"),
    ("PTX424", ".global .align 4294967296 .b8 g;"),
    ("PTX424", ".entry k(.param .u64 .ptr .global .align 4294967296 a) { ret; }"),
    ("PTX202", ".func f() {ret;} .func f();"),
    ("PTX202", ".weak .func f() {ret;} .weak .func f() {ret;}"),
]

DECLARATIONS = [
    ("PTX423", ".entry k() { .reg .u32 a[4]; ret; }"),
    ("PTX426", ".entry k() { .reg .u32 a = 5; ret; }"),
    ("PTX423", ".entry k() { .reg .v4 .u64 a; ret; }"),
    ("PTX422", ".entry k() { .reg .v4 .pred a; ret; }"),
    ("PTX422", ".entry k() { .reg .bf16 a; ret; }"),
    ("PTX422", ".entry k() { .reg .e4m3x2 a; ret; }"),
    ("PTX421", ".reg .u32 g; .entry k() { ret; }"),
    ("PTX421", ".local .u32 g; .entry k() { ret; }"),
    ("", ".shared .u32 g; .entry k() { ret; }"),
    ("PTX426", ".shared .u32 g = 4; .entry k() { ret; }"),
    ("", ".global .u32 g = 4; .entry k() { ret; }"),
    ("PTX427", ".global .f32 g = 4; .entry k() { ret; }"),
    ("PTX427", ".global .u32 g = 4.0; .entry k() { ret; }"),
    ("", ".global .f32 g = 4.0; .entry k() { ret; }"),
    ("", ".global .f32 g = 0f40000000; .entry k() { ret; }"),
    ("", ".global .b32 g = 0f40000000; .entry k() { ret; }"),
    ("", ".global .f64 g = 0f40000000; .entry k() { ret; }"),
    ("PTX427", ".global .f16 g = 1.0; .entry k() { ret; }"),
    ("", ".global .f16 g; .entry k() { ret; }"),
    ("", ".global .b8 g = 300; .entry k() { ret; }"),
    ("PTX428", ".global .u32 g[2] = {1,2,3}; .entry k() { ret; }"),
    ("", ".global .u32 g[4] = {1,2,3}; .entry k() { ret; }"),
    ("", ".global .u32 g[] = {1,2,3}; .entry k() { ret; }"),
    ("PTX423", ".global .u32 g[]; .entry k() { ret; }"),
    ("", ".global .u32 g[2][2] = {{1,2},{3,4}}; .entry k() { ret; }"),
    ("PTX428", ".global .u32 g[2][2] = {1,2,3,4}; .entry k() { ret; }"),
    ("", ".global .u32 g[][2] = {{1,2},{3,4}}; .entry k() { ret; }"),
    ("PTX427", ".global .u32 g = {1}; .entry k() { ret; }"),
    ("", ".global .v4 .u32 g = {1,2,3,4}; .entry k() { ret; }"),
    ("", ".global .u32 h; .global .u32 g = h; .entry k() { ret; }"),
    ("", ".global .u32 h; .global .u64 g = h+4; .entry k() { ret; }"),
    ("", ".global .u32 h; .global .u64 g = generic(h); .entry k() { ret; }"),
    ("PTX427", ".global .u32 h; .global .u16 g = h; .entry k() { ret; }"),
    ("PTX427", ".global .u32 h; .global .f64 g = h; .entry k() { ret; }"),
    ("PTX429", ".global .u64 g = h; .entry k() { ret; }"),
    ("PTX429", ".shared .u32 h; .global .u64 g = h; .entry k() { ret; }"),
    ("PTX426", ".extern .global .u32 h = 4; .entry k() { ret; }"),
    ("PTX422", ".global .pred g; .entry k() { ret; }"),
    ("", ".global .b128 g; .entry k() { ret; }"),
    ("PTX424", ".global .align 3 .u32 g; .entry k() { ret; }"),
    ("", ".global .align 2 .u32 g; .entry k() { ret; }"),
    ("PTX424", ".global .align 0 .u32 g; .entry k() { ret; }"),
    ("", ".common .global .u32 a = 4;"),
    ("PTX420", ".common .const .u32 a;"),
    ("PTX420", ".common .shared .u32 a;"),
    ("", ".extern .shared .u32 a[];"),
    ("PTX423", ".shared .u32 a[];"),
    ("", ".entry k() { .global .u32 a; .const .u32 b; .param .u32 c; ret; }"),
    ("PTX422", ".const .texref t; .entry k() {ret;}"),
    ("", ".global .texref t; .entry k() {ret;}"),
    ("PTX306", ".global .samplerref p; .entry k() {ret;}"),
    ("PTX307", ".tex .u32 t; .entry k() {ret;}"),
    ("PTX307", ".const[1] .u32 t; .entry k() {ret;}"),
    ("", ".global .attribute(.managed) .u32 x; .entry k() {ret;}"),
    ("PTX425", ".const .attribute(.managed) .u32 x; .entry k() {ret;}"),
    ("PTX426", ".entry k() { .global .u32 g = 4; .shared .u32 s = 4; ret; }"),
    ("PTX423", ".entry k() { .local .u32 g[0]; ret; }"),
    ("PTX429", ".global .u64 g = k; .entry k() { ret; }"),
    ("", ".entry k() { ret; } .global .u64 g = k;"),
    ("", ".func f(); .global .u64 g = f; .func f() { ret; }"),
]

FUNCTIONS = [
    ("PTX420", ".extern .entry k() { ret; }"),
    ("", ".weak .entry k() { ret; }"),
    ("PTX430", ".entry k(.reg .u32 r) { ret; }"),
    ("PTX422", ".entry k(.param .pred r) { ret; }"),
    ("PTX430", ".entry k(.param .u32 r[]) { ret; }"),
    ("PTX430", ".entry k(.param .v2 .u32 r) { ret; }"),
    ("", ".entry k(.param .align 8 .b8 r[16], .param .f16 h, .param .b128 q) { ret; }"),
    ("PTX433", ".entry k(.param .b8 r[40000]) { ret; }"),
    ("", ".entry k(.param .u64 .ptr .global .align 16 p) { ret; }"),
    ("PTX424", ".entry k(.param .u64 .ptr .global .align 3 p) { ret; }"),
    ("PTX430", ".func f(.param .u64 .ptr .global .align 4 p) { ret; }"),
    ("PTX424", ".func f(.param .align 256 .b8 p[16]) { ret; }"),
    ("", ".func f(.reg .v2 .u32 p, .param .u32 r, .reg .b8 s) { ret; }"),
    ("PTX430", ".func f(.reg .v2 .u32 p, .reg .pred q, .param .u32 r, .reg .b8 s) { ret; }"),
    ("PTX430", ".func (.param .u16 r) f() { ret; }"),
    ("PTX440", ".func f();"),
    ("", ".entry k() { P: .callprototype (.reg .u32 a, .reg .u32 b) _ (); ret; }"),
    ("PTX430", ".extern .func f(.reg .u16 a); .entry k() { .reg .u16 h; call f, (h); ret; }"),
    ("", ".extern .func f(.reg .b16 a); .entry k() { .reg .b16 h; call f, (h); ret; }"),
    ("", ".extern .func f(.reg .u16 a); .entry k() { ret; }"),
    ("PTX430", ".entry k() { .reg .u64 d; .reg .u16 h; P: .callprototype _ (.reg .u16 _); call d, (h), P; ret; }"),
    ("PTX430", ".entry k() { .reg .u64 d; .reg .s8 h; P: .callprototype (.param .s8 _) _; call (h), d, P; ret; }"),
    ("PTX430", ".func f(.param .v2 .f32 a) { ret; }"),
    ("", ".func f(.param .v2 .f32 a[4]) { ret; }"),
    ("", ".extern .func f(.param .v2 .f32 a);"),
    ("", ".extern .func f(.param .align 256 .b8 a[4]);"),
    ("PTX424", ".func f(.param .align 256 .b8 a[4]) { ret; }"),
    ("PTX420", ".common .global .texref x;"),
    ("PTX240", ".global .texref t[4]; .entry k() { .reg .b32 r; txq.width.b32 r, [t]; ret; }"),
    ("PTX240", ".global .texref s, t[4]; .entry k() { .reg .b32 r; txq.width.b32 r, [s]; txq.width.b32 r, [t]; ret; }"),
    ("", ".global .texref t[4]; .entry k() { .reg .b64 r; mov.b64 r, t; ret; }"),
    ("", ".global .texref t; .entry k() { .reg .b64 r; mov.u64 r, t; mov.b64 r, t+8; ret; }"),
    ("PTX221", ".global .texref s[4], t; .entry k() { .reg .b64 r; mov.b64 r, s; mov.b64 r, t; ret; }"),
    ("PTX221", ".global .surfref t; .entry k() { .reg .s64 r; mov.s64 r, t; ret; }"),
    ("", ".global .texref t; .entry k() { .reg .b32 r; txq.width.b32 r, [t]; ret; }"),
    ("PTX425", ".entry k(.attribute(.managed) .param .b8 a[8]) { ret; }"),
    ("", ".entry k() .reqnctapercluster 0 { ret; }"),
    ("", ".entry k() .maxclusterrank 0 { ret; }"),
    ("", '.entry k() .pragma "foo"; { ret; }'),
    ("PTX410", '.func f() .pragma "nounroll"; { ret; }'),
    ("PTX412", '.pragma "foo";'),
    ("PTX412", '.pragma "nounroll ";'),
    ("PTX412", '.pragma "";'),
    ("", '.pragma "nounroll";'),
    ("PTX431", ".func (.param .u32 a, .param .u32 b) f() { ret; }"),
    ("PTX432", ".func f() { ret; } .alias g, f;"),
    ("", ".func f() { ret; } .func g(); .alias g, f;"),
    ("PTX432", ".func f(.reg .u32 a) { ret; } .func g(); .alias g, f;"),
    ("", ".entry k() { }"),
    ("", ".entry k() .maxntid 128 .minnctapersm 2 { ret; }"),
    ("", ".entry k() .maxntid 128 .maxntid 64 { ret; }"),
    ("PTX411", ".entry k() .maxntid 128 .reqntid 64 { ret; }"),
    ("PTX412", ".entry k() .maxntid 0 { ret; }"),
    ("PTX412", ".entry k() .maxnreg 0 { ret; }"),
    ("PTX307", ".entry k() .maxnctapersm 2 .maxntid 1 { ret; }"),
    ("PTX410", ".entry k() .noreturn { ret; }"),
    ("", ".func f() .noreturn { trap; }"),
    ("PTX411", ".func (.reg .u32 r) f() .noreturn { trap; }"),
    ("PTX410", ".func f() .maxntid 128 { ret; }"),
    ("PTX411", ".entry k() .maxclusterrank 8 .reqnctapercluster 2 { ret; }"),
    ("", ".entry k() .explicitcluster .reqnctapercluster 2 { ret; }"),
    ("PTX413", ".entry k() .blocksareclusters { ret; }"),
    ("", ".entry k() .blocksareclusters .reqntid 1 .reqnctapercluster 1 { ret; }"),
]

CALLS = [
    ("", ".func f(.param .u32 a) {ret;} .entry k() { .param .b32 p; call f, (p); ret; }"),
    ("PTX262", ".func f(.param .u32 a) {ret;} .entry k() { .param .f32 p; call f, (p); ret; }"),
    ("PTX262", ".func f(.param .u32 a) {ret;} .entry k() { .param .u64 p; call f, (p); ret; }"),
    ("", ".func f(.param .u32 a) {ret;} .entry k() { .reg .u32 r; call f, (r); ret; }"),
    ("", ".func f(.param .u32 a) {ret;} .entry k() { call f, (5); ret; }"),
    ("PTX262", ".func f(.param .f32 a) {ret;} .entry k() { call f, (5); ret; }"),
    ("", ".func f(.param .f32 a) {ret;} .entry k() { call f, (5.0); ret; }"),
    ("", ".func f(.param .align 8 .b8 a[16]) {ret;} .entry k() { .param .align 8 .b8 p[16]; call f, (p); ret; }"),
    ("PTX262", ".func f(.param .align 8 .b8 a[16]) {ret;} .entry k() { .param .align 4 .b8 p[16]; call f, (p); ret; }"),
    ("PTX262", ".func f(.param .align 8 .b8 a[16]) {ret;} .entry k() { .param .align 8 .b8 p[8]; call f, (p); ret; }"),
    ("PTX262", ".func f(.param .align 4 .b8 a[4]) {ret;} .entry k() { .reg .u32 r; call f, (r); ret; }"),
    ("", ".func f(.reg .u32 a) {ret;} .entry k() { .param .u32 p; call f, (p); ret; }"),
    (
        "",
        FUNCTION + ".entry k() { .reg .u64 x; mov.u64 x, f; P: .callprototype _ (.reg .u64 a); call x, (x), P; ret; }",
    ),
    ("", FUNCTION + ".entry k() { .reg .u64 x; mov.u64 x, f; T: .calltargets f; call x, (x), T; ret; }"),
    ("PTX263", FUNCTION + ".entry k() { .reg .u64 x; call x, (x), P; P: .callprototype _ (.reg .u64 a); ret; }"),
    ("PTX263", FUNCTION + ".entry k() { .reg .u64 x; mov.u64 x, f; call x, (x); ret; }"),
    ("PTX263", FUNCTION + ".entry k() { .reg .u64 x; P: .callprototype _ (.reg .u64 a); call f, (x), P; ret; }"),
    ("PTX260", FUNCTION + ".entry k() { .reg .u64 x; T: .calltargets g; call x, (x), T; ret; }"),
    ("PTX260", ".entry j() {ret;} .entry k() { call j; ret; }"),
    ("", ".entry k() { .reg .u32 i; T: .branchtargets A, B; brx.idx i, T; A: B: ret; }"),
    ("PTX201", ".entry k() { .reg .u32 i; brx.idx i, T; T: .branchtargets A, B;  A: B: ret; }"),
    ("PTX264", ".entry k() { .reg .u32 i; T: .branchtargets A, C; brx.idx i, T; A: B: ret; }"),
    ("PTX222", ".entry k() { .reg .u64 i; T: .branchtargets A; brx.idx i, T; A: ret; }"),
    ("PTX264", ".entry k() { .reg .u32 i; brx.idx i, A; A: ret; }"),
    ("PTX264", ".entry k() { T: .branchtargets A; bra T; A: ret; }"),
    ("", ".entry k() { .reg .u32 r; mov.u32 r, WARP_SZ; add.u32 r, r, WARP_SZ; ret; }"),
    ("PTX262", ".func (.reg .u32 r) f() { ret; } .entry k() { .reg .pred p; call (p), f; ret; }"),
    ("PTX243", ".func f(.param .b32 a) { .reg .u32 r; st.param.u32 [a], r; ret;}"),
    ("PTX243", ".func (.param .b32 a) f() { .reg .u32 r; ld.param.u32 r, [a]; ret;}"),
    ("", ".func (.param .b32 a) f() { .reg .u32 r; st.param.u32 [a+4], r; ret;}"),
    ("", ".func f(.param .b32 a) { .reg .u64 r; cvta.param.u64 r, a; ret;}"),
]

SOURCES = """.nv_intermediate_source_section {
    .code_block { .ir_name: "TileIR" .sourceFileName: 2 .source_begin
    text
    .source_end
} }
"""

HEADERS = [
    ("PTX401", ".version 9.0\n.entry k() { ret; }\n"),
    ("PTX401", ".target sm_90\n.version 9.0\n.entry k() { ret; }\n"),
    ("PTX401", ".version 9.0\n.version 9.0\n.target sm_90\n.entry k() { ret; }\n"),
    ("PTX401", ".version 9.0\n.target sm_90\n.address_size 64\n.address_size 64\n.entry k() { ret; }\n"),
    ("", ".version 9.0\n.target sm_90\n.entry k() { ret; }\n"),
    ("PTX401", ".version 9.0\n.target sm_90\n.entry k() { ret; }\n.address_size 64\n"),
    ("PTX401", ".version 9.0\n.address_size 64\n.target sm_90\n.entry k() { ret; }\n"),
    ("PTX303", ".version 9.7\n.target sm_90\n.address_size 64\n"),
    ("PTX305", ".version 7.0\n.target sm_90\n.address_size 64\n"),
    ("PTX304", ".version 9.0\n.target sm_91\n.address_size 64\n"),
    ("", ".version 9.0\n.target sm_90, sm_80\n.address_size 64\n"),
    ("PTX401", ".version 9.0\n.target texmode_unified\n.address_size 64\n"),
    ("", ".version 9.0\n.target compute_90\n.address_size 64\n.entry k() { barrier.cluster.arrive; ret; }"),
    ("PTX302", ".version 9.0\n.target compute_80\n.address_size 64\n.entry k() { barrier.cluster.arrive; ret; }"),
    ("", ".version 9.0\n.target compute_100f\n.address_size 64\n"),
    ("PTX305", ".version 7.0\n.target compute_90\n.address_size 64\n"),
    ("PTX304", ".version 9.0\n.target compute_91\n.address_size 64\n"),
    ("PTX401", '.version 9.0\n.file 1 "a.cu"\n.target sm_90\n'),
    ("PTX401", '.version 9.0\n.target sm_90\n.file 1 "a.cu"\n.address_size 64\n'),
    (
        "PTX413",
        ".version 9.4\n.target sm_80\n.address_size 64\n.entry k() { .reg .b32 r; mov.u32 r, %perctamemorysize; ret; }",
    ),
    *(
        (code, f".version 9.4\n.target sm_80\n.address_size 64\n{text}")
        for code, text in (
            ("", '.entry k() .language "PTX", "cuda c++ TILE", 10, 0 { ret; }'),
            ("PTX412", ".entry k() .language 11 { ret; }"),
            ("PTX412", '.entry k() .language "TileIR" { ret; }'),
            ("PTX411", ".entry k() .language 1 .language 2 { ret; }"),
            ("PTX410", ".extern .func f() .language 1;"),
            ("", ".func f() .language 1 { .loc_intermediate 0 0 0\n ret; }"),
            ("PTX412", ".func f() { .loc_intermediate 0 4294967296 0\n ret; }"),
            ("PTX410", ".loc_intermediate 1 1 1"),
            ("", f'.file 2 "b"\n{SOURCES}'),
            ("PTX201", f'{SOURCES}.file 2 "b"\n'),
            ("PTX410", f".func f() {{ {SOURCES} ret; }}"),
        )
    ),
    ("PTX413", ".version 9.0\n.target sm_90, debug\n.address_size 64\n"),
    ("", ".version 9.0\n.target sm_90, debug\n.address_size 64\n.section .debug_str { .b8 0 }\n"),
    ("", ".version 1.4\n.target sm_12, map_f64_to_f32\n.entry k { .reg .f64 x; add.f64 x, x, x; }"),
    ("PTX302", ".version 1.4\n.target sm_12\n.entry k { .reg .f64 x; add.f64 x, x, x; }"),
    ("", ".version 1.4\n.target sm_12\n.global .f64 x;"),
    ("", ".version 7.4\n.target sm_75\n.section .debug_info { .b64 0xffffffffffffffff }"),
    ("PTX301", ".version 7.4\n.target sm_75\n.section .debug_info { .b64 -1 }"),
    ("PTX412", ".version 7.5\n.target sm_75\n.section .debug_info { .b8 0xffffffffffffffff }"),
    ("", ".version 2.1\n.target sm_20\n.extern .const[10] .b32 x[]; .const[0] .b32 y;"),
    ("PTX421", ".version 2.1\n.target sm_20\n.extern .const[0] .b32 x[];"),
    ("PTX421", ".version 2.1\n.target sm_20\n.extern .const[11] .b32 x[];"),
    ("PTX421", ".version 2.1\n.target sm_20\n.const[1] .b32 x;"),
    ("PTX301", ".version 1.4\n.target sm_13\n.extern .const[1] .b32 x[];"),
    ("PTX301", ".version 2.0\n.target sm_20\n.global .b32 g; .global .u64 x = g;"),
    ("", ".version 2.1\n.target sm_20\n.global .b32 g; .global .u64 x = g;"),
    ("PTX306", ".version 9.0\n.target sm_90, texmode_unified, texmode_independent\n.address_size 64\n"),
    ("PTX306", ".version 9.0\n.target sm_90, map_f64_to_f32\n.address_size 64\n"),
    ("PTX306", ".version 9.0\n.target sm_90, foo\n.address_size 64\n"),
    ("PTX308", ".version 9.0\n.target sm_90\n.address_size 16\n"),
    ("PTX308", ".version 9.0\n.target sm_90\n.address_size 32\n"),
    ("", ".version 9.0\n.target sm_90\n.address_size 64\n"),
    ("PTX401", ".entry k() { ret; }\n"),
    ("PTX401", ""),
]

MODULES = [(code, HEAD + text) for code, text in NAMES + DECLARATIONS + FUNCTIONS + CALLS] + HEADERS


def errors(text):
    result = parse(text, "module.ptx")
    found = [*result.diagnostics, *check(result.module)]
    return [d.code for d in found if d.severity is Severity.ERROR]


@rows(("code", "text"), MODULES, ids=lambda v: v.replace(HEAD, "").strip()[:60] or "accepted", share=3)
def test_module(code, text):
    assert errors(text) == ([code] if code else [])


@pytest.mark.parametrize(("groups", "code"), [((1, 1), ""), ((2, 2), ""), ((1, 2), "PTX113"), ((2, 1), "PTX113")])
def test_a_function_has_one_value_of_cta_group(groups, code):
    lines = [f"tcgen05.relinquish_alloc_permit.cta_group::{n}.sync.aligned;" for n in groups]
    text = "\n".join([".version 8.8\n.target sm_100a\n.address_size 64\n.entry k() {", *lines, "ret;\n}\n"])
    found = check(parse(text).module)
    assert [(d.code, d.line) for d in found] == ([(code, 4)] if code else [])
    assert all("line 5" in d.help[0] and "line 6" in d.help[1] for d in found)


def test_verdicts_of_one_module_are_not_those_of_another():
    """Instructions are judged once for all modules with the same declarations, and no others."""
    body = (
        ".entry k() {{ .reg .b32 %r<4>; .reg .b64 %d<2>; redux.sync.add.s32 %r1, %r2, -1; ld.global.u32 %r3, [{}]; }}"
    )
    found = []
    for _ in range(2):
        for version, target, size in (
            ("8.0", "sm_80", 64),
            ("6.0", "sm_80", 64),
            ("8.0", "sm_70", 64),
            ("7.8", "sm_80", 32),
        ):
            for register in ("%d1", "%r1"):
                text = f".version {version}\n.target {target}\n.address_size {size}\n" + body.format(register)
                found.append([d.code for d in check(parse(text).module)])
    assert found[:8] == found[8:]
    assert found[0] == []
    assert all(found[number] for number in (1, 2, 3, 4, 5))
    assert found[2] != found[4]
