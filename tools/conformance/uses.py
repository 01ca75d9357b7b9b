"""Probes of calls, branches and labels, headers, constants and statements that are no instruction."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ptxtools.isa.targets import OPTIONS, VERSIONS, version_text

from .instructions import Probe
from .setting import HOME, KNOWN, LINE, MODULE, NEWEST


def probes() -> Iterator[Probe]:
    yield from _calls()
    yield from _headers()
    yield from _statements()


# --- calls ------------------------------------------------------------------------------------------------------------

_FORMALS = (
    ".reg .b32 a",
    ".reg .u64 a",
    ".reg .f32 a",
    ".reg .pred a",
    ".reg .u16 a",
    ".param .b32 a",
    ".param .u64 a",
    ".param .f32 a",
    ".param .s32 a",
    ".param .align 8 .b8 a[16]",
    ".param .b8 a[16]",
    ".param .b16 a",
    ".param .f16 a",
    ".reg .f64 a",
    ".reg .b8 a",
    ".param .align 4 .b32 a[4]",
    ".param .b128 a",
    ".reg .b128 a",
)
_ACTUALS = (
    "%r",
    "%rd",
    "%f",
    "%p",
    "%h",
    "%u",
    "%s",
    "%fd",
    "%b",
    "%q",
    "1",
    "-1",
    "1.5",
    "0f3F800000",
    "p32",
    "pu64",
    "pf32",
    "pb8",
    "pa16",
    "pb16",
    "p32x4",
    "_",
    "gv",
    "%tid.x",
    "undeclared",
    "{%r, %u}",
    "",
    "%r, %r",
    "k",
    "sv",
)
_LOCALS = (
    ".reg .b32 %r; .reg .b64 %rd; .reg .f32 %f; .reg .pred %p; .reg .b16 %h; .reg .u32 %u; .reg .s32 %s; "
    ".reg .f64 %fd; .reg .b8 %b; "
    ".reg .b128 %q; .param .b32 p32; .param .u64 pu64; .param .f32 pf32; .param .b8 pb8[16]; "
    ".param .align 8 .b8 pa16[16]; "
    ".param .b16 pb16; .param .align 4 .b32 p32x4[4]; .shared .b32 sv;"
)


def _calls() -> Iterator[Probe]:
    def call(functions: str, statement: str) -> Probe:
        return Probe(
            HOME, MODULE, "call", f".global .b32 gv; {functions} .entry k() {{ {_LOCALS} {statement} L: ret; }}"
        )

    for formal, actual in itertools.product(_FORMALS, _ACTUALS):
        yield call(f".func f({formal}) {{ ret; }}", f"call f, ({actual});")
        yield call(f".func ({formal}) f() {{ ret; }}", f"call ({actual}), f;")
    for formal, actual in itertools.product(_FORMALS[:12], _ACTUALS[:20]):
        yield call("", f"P: .callprototype _ ({formal.replace(' a', ' _')}); call %rd, ({actual}), P;")
    one, two = ".func f(.reg .b32 a) { ret; }", ".func (.reg .b32 r) f(.reg .b32 a) { ret; }"
    for functions, statements in (
        (
            one,
            (
                "call f;",
                "call f, ();",
                "call f, (%r);",
                "call.uni f, (%r);",
                "call f (%r);",
                "call f, %r;",
                "call (%r), f, (%r);",
                "call f, (%r), P;",
                "@%p call f, (%r);",
                "call [f], (%r);",
                "call f, (%r, %r);",
                "call %r, (%r);",
                "call nosuch, (%r);",
                "call k;",
                "call gv;",
                "call L;",
                "call 5;",
                "call.foo f, (%r);",
                "call f, (%r)",
            ),
        ),
        (
            two,
            (
                "call f, (%r);",
                "call (%r), f, (%r);",
                "call (_), f, (%r);",
                "call (%r, %r), f, (%r);",
                "call %r, f, (%r);",
                "call (), f, (%r);",
                "call (%f), f, (%r);",
                "call (1), f, (%r);",
                "mov.u64 %rd, f;",
                "mov.u32 %r, f;",
                "mov.b64 %rd, f+4;",
                "bra f;",
            ),
        ),
        (
            one,
            tuple(
                f"T: .calltargets {names}; call %rd, (%r), T;" for names in ("f", "f, f", "nosuch", "k", "gv", "L", "")
            ),
        ),
        (
            one,
            tuple(
                f"{label}.callprototype {text}; call %rd, (%r), P;"
                for label in ("P: ", "", "Q: ")
                for text in (
                    "_ (.reg .b32 _)",
                    "(.reg .b32 _) _ (.reg .b32 _)",
                    "_ ()",
                    "_ (.reg .b32 x, .reg .b32 y)",
                    "f (.reg .b32 _)",
                    "_",
                    "_ (.reg .b32 _) .noreturn",
                    "() _ (.reg .b32 _)",
                )
            ),
        ),
        (
            "",
            tuple(
                f"{text} brx.idx %r, T;"
                for text in (
                    "T: .branchtargets L;",
                    "T: .branchtargets L, L;",
                    "T: .branchtargets nosuch;",
                    "",
                    ".branchtargets L;",
                    "T: .branchtargets k;",
                    "T: .branchtargets T;",
                    "T: .branchtargets;",
                )
            ),
        ),
        (
            "",
            (
                "bra L;",
                "bra.uni L;",
                "@%p bra L;",
                "bra nosuch;",
                "bra %r;",
                "bra k;",
                "bra gv;",
                "bra L+1;",
                "bra;",
                "bra L, L;",
                "brx.idx %r, L;",
                "brx.idx.uni %r, L;",
                "bra 1;",
                "L2: bra L2;",
                "L: ret;",
                "{ L: ret; } bra L;",
                "{ M: ret; } bra M;",
                "{ bra L; }",
                "ret.uni;",
                "exit;",
                "@%p exit;",
                "ret 1;",
                "@%p ret;",
                "M: M2: ret;",
                "M ret;",
                "M: ;",
                "M: }",
                "{ ret;",
                "{ { } }",
                "{ }",
                ".reg .b32 M; M: ret;",
            ),
        ),
    ):
        for statement in statements:
            yield call(functions, statement)


# --- headers ----------------------------------------------------------------------------------------------------------


def _headers() -> Iterator[Probe]:
    def whole(text: str, arch: str = "sm_100a") -> Probe:
        return Probe(f"9.0/{arch}", MODULE, "header", text)

    body = ".entry k() { ret; }"
    for version in VERSIONS:
        if version <= NEWEST:
            for target in KNOWN:
                arch = target if target[-1] in "af" else "sm_100a" if int(target[3:]) <= 100 else target
                yield whole(f".version {version_text(version)}\\n.target {target}\\n{body}", arch)
    for text in (
        "0.9",
        "1.6",
        "2.4",
        "3.3",
        "4.4",
        "5.2",
        "6.6",
        "7.9",
        "8.9",
        "10.0",
        "9",
        "9.0.0",
        "x",
        "",
        "-1.0",
        "9.00",
    ):
        yield whole(f".version {text}\\n.target sm_75\\n{body}")
    for text in (
        "",
        "sm_7",
        "sm_75b",
        "sm_90f",
        "sm_75a",
        "SM_75",
        "compute_75",
        "sm_75, sm_80",
        "sm_75 debug",
        "75",
        "sm_99",
        "sm_1000",
        "sm_75,",
    ):
        yield whole(f".version 9.0\\n.target {text}\\n{body}")
    for options in (*((o,) for o in OPTIONS), *itertools.permutations(OPTIONS, 2), ("foo",), ("debug", "debug")):
        for target, version in (
            ("sm_75", "9.0"),
            ("sm_12", "9.0"),
            ("sm_13", "3.0"),
            ("sm_12", "1.2"),
            ("sm_20", "2.3"),
        ):
            yield whole(f".version {version}\\n.target {target}, {', '.join(options)}\\n{body}")
            yield whole(f".version {version}\\n.target {', '.join(options)}, {target}\\n{body}")
    for text in ("64", "32", "16", "", "x", "64, 64", "-64", "6.4"):
        for version in ("2.2", "2.3", "9.0"):
            yield whole(f".version {version}\\n.target sm_20\\n.address_size {text}\\n{body}")
    for text in (
        ".target sm_75\\n.version 9.0",
        ".version 9.0",
        ".target sm_75",
        "",
        ".version 9.0\\n.version 9.0\\n.target sm_75",
        ".version 9.0\\n.target sm_75\\n.target sm_75",
        ".version 9.0\\n.target sm_75\\n.target sm_80",
        ".version 9.0\\n.address_size 64\\n.target sm_75",
        ".version 9.0\\n.target sm_75\\n.address_size 64\\n.address_size 64",
        ".version 9.0; .target sm_75;",
        ".version 9.0 .target sm_75",
        "// c\\n.version 9.0\\n.target sm_75",
        ".global .b32 x;\\n.version 9.0\\n.target sm_75",
        ".version 9.0\\n.global .b32 x;\\n.target sm_75",
        ".version 9.0\\n.target sm_75\\n.global .b32 x;\\n.address_size 64",
        "\\n\\n.version 9.0\\n.target sm_75",
    ):
        text = text if text.startswith(".version") else f".version 9.0\\n{text}" if text == "?" else text
        if text.startswith(".version"):
            yield whole(f"{text}\\n{body}")
            yield whole(text)


def _statements() -> Iterator[Probe]:
    """Lines that are no instruction, and constants in all their spellings."""
    for number in (
        "0",
        "00",
        "08",
        "017",
        "0x1F",
        "0X1f",
        "0b101",
        "0B2",
        "1U",
        "0x1FU",
        "1u",
        "1L",
        "0xG",
        "1e3",
        "1.",
        ".5",
        "1.e",
        "1.5e-3",
        "0f3F800000",
        "0F3f800000",
        "0f3F8",
        "0d3FF0000000000000",
        "0d3FF",
        "inf",
        "nan",
        "-5",
        "+5",
        "~5",
        "!5",
        "(5)",
        "5+",
        "5 5",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "0x10000000000000000",
        "1<<4",
        "1 << 40",
        "7/2",
        "7%2",
        "7/0",
        "1&&0",
        "1||0",
        "5>4",
        "3^1",
        "3|1",
        "3&1",
        "1?2:3",
        "(.s64)5",
        "(.u64)5",
        "(.u32)5",
        "'a'",
        '"a"',
        "1.5+1",
        "1.0/2.0",
        "-1.5",
        "1==1.0",
        "5 - 3",
        "5 -3",
        "5--3",
        "!0",
        "~0",
        "0x",
        "1_000",
        "sizeof(gv)",
        "gv == gv",
        "gv+1+1",
        "gv*2",
        "WARP_SZ+1",
        "2*WARP_SZ",
    ):
        yield Probe(HOME, LINE, "constant", f"mov.b32 %r1, {number};")
        yield Probe(HOME, LINE, "constant", f"mov.b64 %rd1, {number};")
        yield Probe(HOME, LINE, "constant", f"mov.f32 %f1, {number};")
        yield Probe(HOME, LINE, "constant", f"add.f64 %fd1, %fd1, {number};")
        yield Probe(HOME, LINE, "constant", f"add.s16 %h1, %h1, {number};")
        yield Probe(HOME, LINE, "constant", f"ld.global.b32 %r1, [gv+{number}];")
        yield Probe(HOME, LINE, "constant", f"ld.global.b32 %r1, [%rd1+{number}];")
    for text in (
        ";",
        "{ }",
        "{ ; }",
        "foo;",
        "foo %r1;",
        "%r1;",
        "5;",
        "add;",
        "add.s32;",
        "add.s32 ;",
        "add.s32 %r1, %r2, %r3,;",
        "add.s32 %r1 %r2, %r3;",
        "add.s32 %r1,, %r2;",
        "add.s32, %r1, %r2, %r3;",
        "add .s32 %r1, %r2, %r3;",
        "add. s32 %r1, %r2, %r3;",
        "add.s32 %r1, %r2, %r3 // c",
        "add.s32 %r1, %r2, %r3; // c",
        "ADD.s32 %r1, %r2, %r3;",
        "add.S32 %r1, %r2, %r3;",
        "add..s32 %r1, %r2, %r3;",
        ".add.s32 %r1, %r2, %r3;",
        "@%p1 @%p2 add.s32 %r1, %r2, %r3;",
        "@%p1;",
        "@%p1 { }",
        "@%p1 M: ret;",
        "M: @%p1 ret;",
        "M: { }",
        "{ M: }",
        "%M: ret;",
        "$M: ret;",
        "1M: ret;",
        "{ .reg .b32 t; mov.b32 t, 1; }",
        "{ .reg .b32 %r1; mov.b32 %r1, 1; }",
        "{ .reg .pred %r1; @%r1 ret; }",
        "mov.b32 t, 1;",
        "{ .shared .b32 s[4]; ld.shared.b32 %r1, [s]; }",
        "{ .local .b32 s[4]; ld.local.b32 %r1, [s+4]; }",
        "{ .param .b32 s; st.param.b32 [s], %r1; }",
        "{ .global .b32 s; ld.global.b32 %r1, [s]; }",
        "{ .const .b32 s; ld.const.b32 %r1, [s]; }",
        "{ .reg .b32 a, a; }",
        "{ .reg .b32 a<3>; mov.b32 a2, a1; }",
        "{ .reg .b32 a<3>; mov.b32 a3, a1; }",
        "{ .reg .b32 a<3>; mov.b32 a, 1; }",
        "{ .reg .v4 .f32 v; mov.f32 v.x, v.w; }",
        "{ .reg .v2 .f32 v; mov.f32 v.x, v.y; }",
        "{ .reg .v4 .f32 v; mov.f32 v.r, v.a; }",
        "{ .reg .v4 .f32 v; mov.f32 v, v; }",
        "{ .reg .v4 .f32 v; mov.v4.f32 v, v; }",
        "{ .reg .v4 .f32 v; ld.global.v4.f32 v, [gv]; }",
        "{ .reg .v4 .f32 v; ld.global.v2.f32 v, [gv]; }",
        "{ .reg .v2 .b32 v; mov.b64 %rd1, v; }",
        "{ .reg .v2 .b32 v; add.s32 v, v, v; }",
        "{ .reg .v4 .f32 v; mov.f32 v.q, v.x; }",
    ):
        yield Probe(HOME, LINE, "statement", text)
