"""Probes of whole modules with the slips of generators and hands: what fuzzing found."""

from __future__ import annotations

from collections.abc import Iterator

from .instructions import Probe
from .whole import KERNEL, body, probe

_REST = (".reg .b32 %r<4>;", "add.s32 %r1, %r1, %r1;", "ret;", "}")


def probes() -> Iterator[Probe]:
    yield probe(".entry k()", "{", "ret;")
    yield probe(".entry k()", "{", "{", "ret;", "}")
    yield probe(".entry k()", *_REST)
    yield probe("{", *_REST)
    yield probe(".param .u64 .ptr .global .align 1 a,", ".param .u64 .ptr .global .align 1 b", ")", "{", *_REST)
    yield probe(".param .u64 a,", ".param .u64 b", ")", "{", *_REST)
    yield probe(".entry k()", "{", "ret;", '.file 1 "a.cu"', ".section .debug_str {", ".b8 1", "}")
    yield probe(".entry k()", "{", "ret;", ".section .debug_str {", ".b8 1", "}")
    yield body(".reg .pred p;", "@p bra $L_1;", "1$L_1:")
    yield body(".reg .b32 %r<;>;")
    for lines in (
        (".version 9.0", ".taret sm_90", ".address_size 64"), ("=.version 9.0", ".target sm_90", ".address_size 64"),
        (".version 9.0", "sm_90", ".address_size 64"), (".version 9.0", ".target m_90", ".address_size 64"),
        (".version 9.0", ".address_size 64"), (".version 9.0", ".global .b32 x;", ".target sm_90"),
        (".global .b32 x;", ".version 9.0", ".target sm_90"),
    ):  # fmt: skip
        yield probe(*lines, KERNEL)
    yield from _odd_headers()
    yield from _shapes_of_parameters()
    yield from _large_numbers()
    yield from _broken_lines()


def _odd_headers() -> Iterator[Probe]:
    parameters = (".param .u64 .ptr a,", ".param .u64 .ptr b", ")", "{", *_REST)
    for head in (
        (".entry k()", "[{"), (".entry k()", ".reg .f32 %f;", "{"), (".entry k()", "}{"), (".entry k()", "ret;", "{"),
        (".visible .relu .entry k()", "{"), (".entry .relu k()", "{"), (".entry k() .relu", "{"), (".entry ()", "{"),
        (".entry k()", ".maxntid 64;", "{"), (".entry k();", "{"), (".entry k()", "{", "{"), (".entry k()", "{", "}"),
        (".entry k()", "{", "add.s32 %r1}, %r1, %r1;"), (".entry k()", "{", "add.s32 %r1, {%r1, %r1;"),
    ):  # fmt: skip
        yield probe(*head, *_REST, ".entry l() { ret; }")
    for start in (".visible k(", ".entry k", ".entry k(.b32 x,", ".entry k(.reg .b64 %rd<4>;", "entry k(", ".enty k("):
        yield probe(start, *parameters)
    yield body(".reg .pred p; .reg .b32 r;", "@p bra $L_2;", "$L_2", "st.shared.u32 [r], r;")
    for name in ("_", "$", "%", "_a", "$a", "%a"):
        yield probe(f".entry {name}() {{ ret; }}")
        yield probe(f".func {name}() {{ ret; }}", KERNEL)
    for text in ("a[-1]", "a[0]", "a[1]", "a[-4]"):
        yield probe(f".entry k(.param .b8 {text}) {{ ret; }}")
        yield probe(f".func f(.param .b8 {text}) {{ ret; }}", KERNEL)
    for line in (".param .u64 x,", ".param .u64 x;", ".loc 1 1 1", "$L .b8 1", ".section .debug_str {", ".entry l() {"):
        yield probe(".section .debug_info {", line, ".b8 1", "}", KERNEL)
    for type_ in ("e4m3", "bf16", "s16x2", "tf32", "f32x2", "u4"):
        yield body(f".reg .{type_} %f<4>; .reg .b32 %r<4>;", "mov.b32 %r1, %f1;", "add.f32 %f1, %f2, %f3;")


def _shapes_of_parameters() -> Iterator[Probe]:
    for text in (
        ".param .u64 .ptr x", ".param .u64 .ptr .align 8 .global x", ".param .u64 .align 8 .ptr x",
        ".param .u64 .align 8 x", ".param .u64 .align 3 x", ".param .u64 .global x", ".param .align 8 .u64 .align 8 x",
    ):  # fmt: skip
        yield probe(f".entry k({text}) {{ ret; }}")
        yield probe(f".func f({text}) {{ ret; }}", KERNEL)
        yield body(f"{text};")
        yield probe(f"{text.replace('.param', '.global')};", KERNEL)
    alignments = ("", ".align 1 ", ".align 2 ", ".align 8 ", ".align 16 ")
    for first in alignments:
        for second in alignments:
            for dims in ("", "[2]"):
                formal = f".extern .func f(.param {first}.b64 a{dims});"
                yield body(f".param {second}.b64 p{dims};", "call f, (p);", before=(formal,))
                yield probe(formal, f".extern .func f(.param {second}.b64 a{dims});", KERNEL)
    for name in ("__cudaCDP2Free", "vprintf", "g"):
        for linkage in ("", ".extern "):
            yield body("call f;".replace("f", name), before=(f"{linkage}.func {name}();",))


def _large_numbers() -> Iterator[Probe]:
    for number in (1 << 32, (1 << 32) + 8, 1 << 63):
        yield body(f".reg .b32 %r<{number}>;")
        yield probe(f".entry k(.param .u64 .ptr .global .align {number} x) {{ ret; }}")
        yield probe(f".entry k(.param .align {number} .b8 x) {{ ret; }}")
        yield body(f".local .align {number} .b8 x;")


def _broken_lines() -> Iterator[Probe]:
    """Statements of several lines: the first one is named."""
    registers = ".reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;"
    for lines in (
        ("add.s32 %r1,", "%r2,", "%d2;"), ("add.s32 %r1,", "%r2", ";"), ("add.s32 %r1,", "%r2,", "%r2,", "%r3;"),
        ("call f,", "(%r1);"), ("call f,", "(%d1,", "%d2);"), ("call.uni", "f,", "(%r1);"), ("@%p call f,", "(%r1);"),
        ("call.uni", "f,", "(", "%d1", ");"), ("fence.sc.gpu", "ret;"), ("ld.global.b32 %r1,", "[%p];"),
    ):  # fmt: skip
        yield body(registers, *lines, before=(".extern .func f(.param .b64 a);",))
    yield body(".reg .b64 %d<4>;", "cvta.to.global.u64 %d1, %d2;")
    for order in ("global.to.u64", "to.u64.global", "u64.to.global", "u64.global", "global.u64.to"):
        yield body(".reg .b64 %d<4>;", f"cvta.{order} %d1, %d2;")
    one, two = (f"tcgen05.relinquish_alloc_permit.cta_group::{n}.sync.aligned;" for n in (1, 2))
    for lines in ((one, two), (two, one), (one, one), (two, two)):
        yield body(*lines, setting="8.8/sm_100a")
    yield probe(f".func f() {{ {one} ret; }}", f".entry k() {{ {two} ret; }}", setting="8.8/sm_100a")
