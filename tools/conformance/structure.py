"""Probes of special registers, declarations, directives and functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ptxtools.isa.directives import DIRECTIVES, PRAGMAS
from ptxtools.isa.registers import SPECIAL
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, version_text

from . import uses
from .instructions import Probe
from .setting import HOME, KNOWN, LINE, MODULE, NEWEST, OUTER

#: Registers to read a special register into.
_INTO = (
    ("b16", "%h1"),
    ("u16", "%uh1"),
    ("b32", "%r1"),
    ("u32", "%u1"),
    ("s32", "%s1"),
    ("b64", "%rd1"),
    ("u64", "%ul1"),
    ("f32", "%f1"),
    ("pred", "%p1"),
    ("f64", "%fd1"),
)


def probes() -> Iterator[Probe]:
    yield from _special_registers()
    yield from _declarations()
    yield from _directives()
    yield from _functions()
    yield from uses.probes()


def boundaries(ptx: tuple[int, int], target: str) -> Iterator[str]:
    """Settings at which something that needs this version and target begins, and just below."""
    first = max(ptx, FIRST_VERSION.get(target, (1, 0)))
    if first <= NEWEST and first != (5, 1):
        yield f"{version_text(first)}/{target}"
    below = [v for v in VERSIONS if v < ptx and v != (5, 1)]
    if below:
        known = [t for t in KNOWN if FIRST_VERSION[t] <= below[-1]]
        yield f"{version_text(below[-1])}/{known[-1]}"
    yield f"9.0/{target}"
    older = [t for t in KNOWN if t[-1] not in "af" and int(t[3:]) < int(target[3:].rstrip("af"))]
    if older:
        yield f"9.0/{older[-1]}"


def _special_registers() -> Iterator[Probe]:
    for name, info in SPECIAL.items():
        for type_, register in _INTO:
            yield Probe(HOME, LINE, "register", f"mov.{type_} {register}, {name};")
        usual = next(r for t, r in _INTO if t == info.type)
        mention = f"{name}.x" if info.components else name
        for setting in boundaries(info.ptx, info.target):
            yield Probe(setting, LINE, "register", f"mov.{info.type} {usual}, {mention};")
        yield Probe(HOME, LINE, "register", f"mov.{info.type} {mention}, {usual};")
        for opcode in (
            "add.u32 %r1, {}, %r2;",
            "cvt.u64.u32 %rd1, {};",
            "cvt.u32.u32 %r1, {};",
            "cvt.f32.u32 %f1, {};",
            "cvt.u16.u32 %h1, {};",
            "setp.eq.u32 %p1, {}, 0;",
            "st.global.u32 [gv], {};",
            "shl.b32 %r1, {}, 1;",
            "mov.b64 %rd1, {{{}, %r1}};",
            "mov.v4.u32 {{%r1, %r2, %r3, %r4}}, {};",
            "selp.u32 %r1, {}, 0, %p1;",
            "@{} bra LBL;",
            "ld.global.u32 %r1, [{}];",
            "and.b32 %r1, {}, 1;",
            "mad.lo.u32 %r1, {}, 1, %r2;",
        ):
            yield Probe(HOME, LINE, "register", opcode.format(mention))
        for component in "xyzwrgbaq":
            yield Probe(HOME, LINE, "register", f"mov.u32 %r1, {name}.{component};")
    for name in ("%tidx", "%foo", "%pm8", "%envreg32", "%lanemask", "%clock32", "%warp_size", "%TID.x"):
        yield Probe(HOME, LINE, "register", f"mov.u32 %r1, {name};")


# --- declarations -----------------------------------------------------------------------------------------------------

_SPACES = (".reg", ".sreg", ".const", ".global", ".local", ".param", ".shared", ".tex")
_TYPES = (
    "pred",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f16x2",
    "f32",
    "f64",
    "bf16",
    "bf16x2",
    "tf32",
    "e4m3",
    "e5m2x2",
    "u4",
    "b1",
    "s16x2",
    "f32x2",
    "texref",
    "samplerref",
    "surfref",
    "foo",
    "b256",
    "f8",
)
_SHAPES = (
    "{}",
    "{}[4]",
    "{}[2][3]",
    "{}[]",
    "{}[][2]",
    "{}[0]",
    "{}<4>",
    "{}<0>",
    "{}[-1]",
    "{}[1.5]",
    "{}[2][]",
    "{}[4U]",
)
_VALUES = (
    "0",
    "1",
    "-1",
    "1.5",
    "0f3F800000",
    "0d3FF0000000000000",
    "{{1}}",
    "{{1, 2, 3, 4}}",
    "{{1, 2, 3, 4, 5}}",
    "{{1.0, 2.0}}",
    "{{}}",
    "1+2*3",
    "1.0+2.0",
    "1==1",
    "{{0, 0x10, 010, 0b11}}",
    "{{{{1, 2}}, {{3, 4}}}}",
    "gsym",
    "gsym+4",
    "generic(gsym)",
    "{{gsym, 0}}",
    "mask(0xff, gsym)",
    "0xFF(gsym)",
    "nosuch",
    '"text"',
    "300",
    "(4)",
    "1 ? 2 : 3",
    "gsym-4",
    "generic(gsym)+8",
    "fsym",
    "99999999999",
    "-2147483649",
)


def _declarations() -> Iterator[Probe]:
    names = itertools.count()

    def outer(text: str) -> Probe:
        return Probe(HOME, OUTER, "declaration", text.replace("@", f"d{next(names)}"))

    def inner(text: str) -> Probe:
        return Probe(HOME, LINE, "declaration", "{ " + text.replace("@", "x") + " }")

    for place in (outer, inner):
        for space, type_ in itertools.product(_SPACES, _TYPES):
            yield place(f"{space} .{type_} @;")
            yield place(f"{space} .{type_} @[2];")
        for space, shape in itertools.product(_SPACES, _SHAPES):
            for type_ in ("b32", "f32", "pred"):
                yield place(f"{space} .{type_} {shape.format('@')};")
        for space, vector, type_ in itertools.product(
            _SPACES[:7], ("v2", "v4", "v8", "v3"), ("b8", "u16", "f32", "b64", "f64", "b128", "f16", "f16x2", "pred")
        ):
            yield place(f"{space} .{vector} .{type_} @;")
        for space, align in itertools.product(
            _SPACES[:7], ("0", "1", "2", "3", "4", "8", "16", "128", "256", "4096", "-4", "1.5", "x")
        ):
            yield place(f"{space} .align {align} .b32 @;")
            yield place(f"{space} .align {align} .b8 @[4];")
        for space, linkage in itertools.product(
            _SPACES[:7], (".extern", ".visible", ".weak", ".common", ".extern .visible")
        ):
            yield place(f"{linkage} {space} .b32 @;")
            yield place(f"{linkage} {space} .b32 @[];")
            yield place(f"{linkage} {space} .b32 @ = 1;")
            yield place(f"{linkage} {space} .align 8 .b8 @[8];")
        for space, attribute in itertools.product(
            _SPACES[:7],
            (
                ".managed",
                ".unified(1, 2)",
                ".unified",
                ".managed(1)",
                ".foo",
                ".unified(1)",
                ".managed, .unified(1, 2)",
            ),
        ):
            yield place(f".attribute({attribute}) {space} .b32 @;")
            yield place(f"{space} .attribute({attribute}) .b32 @;")
    for space, value in itertools.product((".global", ".const", ".shared", ".local", ".reg"), _VALUES):
        given = value.format()
        for type_ in ("b8", "b32", "u64", "f32", "f64", "f16", "s16", "pred", "b128", "b64"):
            for shape in ("", "[4]", "[2][2]", "[]"):
                if space in (".global", ".const") or (type_ == "b32" and shape != "[2][2]"):
                    text = f"{space} .{type_} @{shape} = {given};"
                    yield (
                        Probe(
                            HOME,
                            MODULE,
                            "initialiser",
                            f".global .b32 gsym[4]; .func fsym() {{ ret; }} {text.replace('@', 'x')}",
                        )
                        if "sym" in given
                        else outer(text)
                    )
    for vector in ("v2", "v4"):
        for value in ("{1, 2}", "{1, 2, 3, 4}", "{{1, 2}, {3, 4}}", "1"):
            yield outer(f".global .{vector} .b32 @ = {value};")
            yield outer(f".global .{vector} .b32 @[2] = {value};")
    for text in (
        ".global .b32 @, @b;",
        ".reg .b32 @, @b<3>, @c;",
        ".const[0] .b32 @;",
        ".const[11] .b32 @;",
        ".global .b32;",
        ".global @;",
        ".b32 @;",
        ".global .b32 .v2 @;",
        ".global .align .b32 @;",
        ".align 4 .global .b32 @;",
        ".global .b32 %@;",
        ".global .b32 $@;",
        ".global .b32 _@;",
        ".global .b32 1@;",
        ".global .b32 @.x;",
        ".global .b32 @ 1;",
        ".visible .visible .global .b32 @;",
        ".global .global .b32 @;",
        ".global .b32 .b32 @;",
        ".global .align 4 .align 8 .b32 @;",
        ".global .surfref @;",
        ".global .texref @;",
        ".global .texref @[4];",
        ".global .samplerref @;",
        ".tex .u32 @;",
        ".global .surfref @ = { width = 4 };",
        ".global .texref @ = { width = 4 };",
        ".ptr .global .b32 @;",
    ):
        yield outer(text)
        yield inner(text)


# --- directives and functions -----------------------------------------------------------------------------------------

_ARGUMENTS = (
    "",
    "0",
    "1",
    "-1",
    "2",
    "32",
    "1024",
    "1025",
    "1, 1",
    "8, 8, 8",
    "1, 1, 1, 1",
    "x",
    "1.5",
    '"nounroll"',
    "1, 0",
    "0x20",
    "1+1",
    "4294967296",
    "(1)",
    "1 1",
)


def one_module(text: str, topic: str = "directive", setting: str = HOME) -> Probe:
    """A probe that is a module of its own."""
    return Probe(setting, MODULE, topic, text)


def _directives() -> Iterator[Probe]:
    places = (
        ".entry k() {} {{ ret; }}",
        ".func f() {} {{ ret; }}",
        ".extern .func f() {};",
        ".entry k() {{ {}; ret; }}",
        "{}; .entry k() {{ ret; }}",
        ".entry k() {{ .reg .b64 %rd; P: .callprototype _ () {}; ret; }}",
        ".entry k() {{ {} ret; }}",
        ".visible .entry k(.param .b32 a) {} {{ ret; }}",
    )
    tuning = [n for n, d in DIRECTIVES.items() if d.section.startswith(("11.4", "11.7")) and n != ".pragma"]
    for name in [*tuning, ".pragma", ".foo", ".maxntidx"]:
        for place in places:
            for arguments in _ARGUMENTS if place == places[0] else ("", "1", "128", "4, 4", '"nounroll"'):
                yield one_module(place.format(f"{name} {arguments}".rstrip()))
        yield one_module(places[0].format(f"{name} 1 {name} 1"))
        yield one_module(places[0].format(f"{name} {name}"))
    for name in tuning:
        info = DIRECTIVES[name]
        text = name + ("" if info.counts[1] == 0 else " 4")
        extra = " .reqntid 32 .reqnctapercluster 1" if name == ".blocksareclusters" else ""
        place = places[1] if "func" in info.places else places[0]
        for setting in boundaries(info.ptx, info.target):
            yield one_module(place.format(text + extra), setting=setting)
    for one, two in itertools.combinations(tuning, 2):
        texts = [n if DIRECTIVES[n].counts[1] == 0 else f"{n} 2" for n in (one, two)]
        yield one_module(places[0].format(" ".join(texts)))
        yield one_module(places[0].format(" ".join(reversed(texts))))
    for text in (*PRAGMAS, "foo", "", "nounroll;"):
        for place in places[:1] + places[3:5]:
            yield one_module(place.format(f'.pragma "{text}"'))
            yield one_module(place.format(f'.pragma "{text}";'))
    for setting in boundaries((2, 0), "sm_10"):
        yield one_module('.entry k() { .pragma "nounroll"; ret; }', setting=setting)
    for clause in (
        '.file 1 "a.cu"',
        '.file 1 "a.cu", 0, 0',
        '.file 1 "a.cu", 0',
        '.file "a.cu"',
        ".file 1",
        ".file 1 a",
        ".loc 1 2 3",
        ".section .debug_info { .b8 1, 2 }",
        ".section .debug_str { L: .b8 0 }",
        ".section .debug_foo {}",
        ".section .debug_info { .b32 1, -1 .b64 L .b16 7 }",
        "@@DWARF .byte 0x02",
        ".section .debug_info { .b32 .debug_abbrev .b64 k }",
        ".section foo { .b8 1 }",
        ".section .debug_info { .b8 256 }",
        ".section .debug_info { .f32 1.0 }",
    ):
        yield one_module(f"{clause}\\n.entry k() {{ ret; }}")
        yield one_module(f".entry k() {{ ret; }}\\n{clause}")
        yield one_module(f".entry k() {{ {clause}\\n ret; }}")
    for loc in (
        ".loc 1 2 3",
        ".loc 1 2",
        ".loc 2 1 1",
        ".loc 1 -1 1",
        ".loc 1 2 3 4",
        ".loc 1 2 3, function_name L, inlined_at 1 2 3",
        ".loc 1 2 3, function_name $S, inlined_at 1 2 3",
        ".loc 1 2 3;",
        ".loc 1 0 0",
        ".loc x 1 1",
    ):
        yield one_module(f'.entry k() {{ {loc}\\n ret; }}\\n.file 1 "a.cu"\\n.section .debug_str {{\\n$S:\\n.b8 0\\n}}')


_LINKAGES = ("", ".visible", ".extern", ".weak", ".common", ".visible .extern", ".visible .visible")


def _functions() -> Iterator[Probe]:
    parameters = [
        f".{space} {kind} a{dims}"
        for space in ("param", "reg")
        for kind in (
            ".b32",
            ".u8",
            ".f64",
            ".pred",
            ".b128",
            ".f16",
            ".align 8 .b8",
            ".v2 .f32",
            ".bf16",
            ".texref",
            ".align 3 .b8",
            ".u64 .ptr",
            ".u64 .ptr .global .align 4",
            ".u64 .ptr .reg",
            ".u32 .ptr .shared",
            ".f32 .ptr .global",
            ".align 256 .b8",
            ".surfref",
            ".u64 .ptr .align 16 .const",
            ".s32",
        )
        for dims in ("", "[4]", "[]", "[0]", "[2][2]")
    ]
    parameters += [
        ".b32 a",
        ".global .b32 a",
        ".param a",
        ".param .b32",
        ".shared .b32 a",
        ".param .b32 a = 1",
        ".param .b32 _",
        ".param .b32 a<4>",
        ".reg .b32 a<4>",
        "...",
        ".param .b8 a[]",
        ".param .align 8 .b8 a[], .param .b32 b",
    ]
    for parameter in parameters:
        for text in (
            ".entry k({}) {{ ret; }}",
            ".func f({}) {{ ret; }}",
            ".func ({}) f() {{ ret; }}",
            ".extern .func f({});",
            ".entry k() {{ .reg .b64 %r; P: .callprototype ({}) _ ({}); ret; }}",
        ):
            yield one_module(text.format(parameter, parameter.replace(" a", " b")), "function")
    for linkage in _LINKAGES:
        for text in (
            ".entry k()",
            ".func f()",
            ".func (.reg .b32 r) f (.reg .b32 a)",
            ".func (.param .b32 r) f (.param .b32 a)",
        ):
            yield one_module(f"{linkage} {text} {{ ret; }}", "function")
            yield one_module(f"{linkage} {text};", "function")
            for again in ("", ".visible", ".extern", ".weak"):
                yield one_module(f"{linkage} {text}; {again} {text} {{ ret; }}", "function")
    for text in (
        ".func f {{ ret; }}",
        ".entry k {{ ret; }}",
        ".func f() .noreturn {{ exit; }}",
        ".func (.reg .b32 r) f() .noreturn {{ exit; }}",
        ".func (.reg .b32 r, .reg .b32 s) f() {{ ret; }}",
        ".func (.param .b32 r, .param .b32 s) f() {{ ret; }}",
        ".entry (.param .b32 r) k() {{ ret; }}",
        ".entry k() {{ }}",
        ".func f() {{ }}",
        ".entry k() {{ {{ ret; }} }}",
        ".entry k() {{ .entry j() {{ ret; }} }}",
        ".func f() {{ ret; }} .alias g, f;",
        ".func g(); .func f() {{ ret; }} .alias g, f;",
        ".func g(); .alias g, f; .func f() {{ ret; }}",
        ".entry k() {{ ret; }} .entry j(); .alias j, k;",
        ".func g(.reg .b32 a); .func f() {{ ret; }} .alias g, f;",
        ".visible .func g(); .visible .func f() {{ ret; }} .alias g, f;",
        ".func f() {{ ret; }} .func g() {{ ret; }} .alias g, f;",
        ".weak .func f() {{ ret; }} .func g(); .alias g, f;",
        ".extern .func f(); .func g(); .alias g, f;",
        ".func f() .attribute(.unified(1, 2)) {{ ret; }}",
        ".func .attribute(.unified(1, 2)) f() {{ ret; }}",
        ".entry .attribute(.unified(1, 2)) k() {{ ret; }}",
        ".func .attribute(.managed) f() {{ ret; }}",
        ".entry k() {{ ret; }} ret;",
        "ret;",
        ";",
        ".entry k() {{ ret; }};",
        ".entry k() {{ ret; }} }}",
        ".entry k() {{ ret; ",
        ".entry k() ret;",
        ".entry 1k() {{ ret; }}",
        ".entry $k() {{ ret; }}",
        ".entry %k() {{ ret; }}",
        ".entry k(.param .b32 a .param .b32 b) {{ ret; }}",
        ".entry k(.param .b32 a,) {{ ret; }}",
        ".entry k(,) {{ ret; }}",
        ".entry k() {{ ret }}",
        ".entry k() {{ ; }}",
        ".entry k() {{ ret;; }}",
        "/* x",
        "// x",
        ".entry k() {{ /* x */ ret; }}",
    ):
        yield one_module(text.format(), "function")
    for size in (4095, 4096, 4097, 4352, 4353, 32764, 32765):
        for setting in ("8.0/sm_90", "8.1/sm_90", "8.1/sm_62", "8.1/sm_70", "1.4/sm_13", "9.0/sm_100a"):
            yield one_module(f".entry k(.param .align 4 .b8 a[{size}]) {{ ret; }}", "function", setting)
    for count in (1, 200):
        names = ", ".join(f".param .b64 a{n}" for n in range(count))
        yield one_module(f".entry k({names}) {{ ret; }}", "function")
    for text, ptx, target in (
        (".func f() { ret; } .func g(); .alias g, f;", (6, 3), "sm_30"),
        (".weak .global .b32 x;", (3, 1), "sm_10"),
        (".common .global .b32 x;", (5, 0), "sm_20"),
        (".weak .func f() { ret; }", (3, 1), "sm_20"),
        (".func f(.param .b32 a) { ret; }", (2, 0), "sm_20"),
        (".extern .func f(.param .b8 a[]);", (6, 0), "sm_30"),
        (".entry k(.param .u64 .ptr .global a) { ret; }", (2, 2), "sm_10"),
        (".attribute(.managed) .global .b32 x;", (4, 0), "sm_30"),
        (".global .attribute(.managed) .b32 x;", (4, 0), "sm_30"),
        (".global .attribute(.unified(1, 2)) .b32 x;", (8, 0), "sm_90"),
        (".global .b32 g; .global .u64 x = generic(g);", (3, 1), "sm_20"),
        (".global .b32 g; .global .u64 x = g;", (1, 0), "sm_20"),
        (".global .b32 g; .global .u8 x = 0xFF(g);", (7, 1), "sm_20"),
        (".global .texref x;", (1, 5), "sm_10"),
        (".global .surfref x;", (1, 5), "sm_20"),
        (".global .f64 x;", (1, 0), "sm_13"),
        (".global .b128 x;", (8, 3), "sm_70"),
        (".global .f16 x;", (1, 0), "sm_10"),
        (".global .f16x2 x;", (4, 2), "sm_53"),
        (".const[1] .b32 x;", (2, 2), "sm_10"),
        (".tex .u32 x;", (1, 5), "sm_10"),
        (".func f() { ret; }", (1, 0), "sm_20"),
        (".func f(.reg .b32 a) { ret; }", (1, 0), "sm_10"),
        (".entry k(.param .b32 a) { ret; }", (1, 4), "sm_10"),
        (".entry k { .param .b32 a; ret; }", (1, 4), "sm_10"),
        (".func f() .noreturn { exit; }", (6, 4), "sm_30"),
        (".entry k() { .reg .b64 %r; T: .branchtargets L; L: ret; }", (6, 0), "sm_30"),
        (".func f() { ret; } .entry k() { T: .calltargets f; ret; }", (2, 1), "sm_20"),
        (".entry k() { P: .callprototype _ (); ret; }", (2, 1), "sm_20"),
        (
            ".func f() { ret; } "
            ".entry k() { .reg .b64 %r; mov.u64 %r, f; P: .callprototype _ (); call %r, (), P; ret; }",
            (2, 1),
            "sm_20",
        ),
        (".func f() { call f; ret; }", (3, 1), "sm_20"),
    ):
        for setting in boundaries(ptx, target):
            yield one_module(text, "availability", setting)
