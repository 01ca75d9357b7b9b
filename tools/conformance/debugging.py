"""Probes of sections, files and lines (11.5)."""

from __future__ import annotations

from collections.abc import Iterator

from .instructions import Probe
from .whole import KERNEL, probe


def probes() -> Iterator[Probe]:
    yield from _debugging()
    yield from _files_and_lines()


def _debugging() -> Iterator[Probe]:
    values = (
        "0", "1, 2", "-1", "127", "128", "255", "256", "-128", "-129", "65535", "65536", "-32768", "-32769",
        "4294967295", "4294967296", "-2147483648", "-2147483649", "18446744073709551615", "0x7f", "1.5", "L", "L+4",
        "L-M", "L-4", ".debug_abbrev", ".debug_abbrev+4", "k", "k+4", "1+2", "(1)", "", "1,", "undeclared", '"text"',
        "L+M", "gv", "1 2",
    )  # fmt: skip
    for type_ in ("b8", "b16", "b32", "b64"):
        for value in values:
            yield probe(".section .debug_info {", "L:", f".{type_} {value}", "M:", "}", ".global .b32 gv;", KERNEL)
    for version in (
        "1.4/sm_13", "2.0/sm_20", "3.1/sm_30", "3.2/sm_30", "5.0/sm_50", "6.0/sm_50", "7.1/sm_75", "7.2/sm_75",
        "7.4/sm_75", "7.5/sm_75",
    ):  # fmt: skip
        for line in (".b8 1", ".b16 1", ".b32 L+4", ".b32 L-M", ".b8 -1", ".b64 .debug_abbrev", "N:"):
            yield probe(".section .debug_info {", "L:", line, "M:", "}", KERNEL, setting=version)
        yield probe(".section .debug_info {", ".b8 1, 2", "}", KERNEL, setting=version)
        yield probe('@@DWARF .section .debug_info, "", @progbits', "@@DWARF .byte 0x2b, 0x00", KERNEL, setting=version)
    for name in (".debug_info", ".debug_abbrev", ".debug_line", ".debug_loc", ".debug_str", ".debug_ranges",
    ".debug_foo",
                 ".debug_aranges", ".debug_pubnames", ".debug_macinfo", ".foo", ".text", ".nv.info"):  # fmt: skip
        yield probe(f".section {name}", "{", ".b8 1", "}", KERNEL)
    for lines in (
        ("L:", ".b8 1", "L:", ".b8 2"), ("add.s32 a, b, c;",), (".b8 1;",), (".reg .b32 r;",), ("{", "}"), (".u8 1",),
        (".b128 1",), (".align 4",), ("L: .b8 1",), ("L:",), (".b8 1", ".section .debug_str { }"),
        (".global .b32 x;",),
        (".loc 1 1 1",), ("L:", "M:", ".b32 L"), ("$L1:", ".b8 1"), ("%L:", ".b8 1"),
    ):  # fmt: skip
        yield probe(".section .debug_info", "{", *lines, "}", KERNEL)
    yield probe(".section .debug_info {", ".b8 1", "}", ".section .debug_info {", ".b8 2", "}", KERNEL)
    yield probe(".section .debug_info {", "L:", ".b8 1", "}", ".section .debug_str {", "L:", ".b8 2", "}", KERNEL)
    yield probe(".section .debug_info {", ".b32 L", "}", ".section .debug_str {", "L:", ".b8 2", "}", KERNEL)
    yield probe(".section .debug_info {", ".b8 1", KERNEL)
    yield probe(KERNEL, ".section .debug_info {", ".b64 k", ".b64 B", "}")


def _files_and_lines() -> Iterator[Probe]:
    for arguments in ('1 "a.cu"', '1 "a.cu", 5, 6', '1 "a.cu", 5', '1 "a.cu" 5 6', '0 "a.cu"', '-1 "a.cu"', '"a.cu"',
    "1",
                      "1 a.cu", '1 "a.cu", -5, 6', '1 "a.cu", 5, 6, 7', '1 ""', '1.5 "a.cu"', '1 "a.cu";',
                      '4294967296 "a"',
                      '1, "a.cu"', '1 "a.cu", 5, x'):  # fmt: skip
        yield probe(f".file {arguments}", KERNEL)
        yield probe(KERNEL, f".file {arguments}")
    for version in ("1.0/sm_10", "2.0/sm_20", "3.1/sm_30", "3.2/sm_30"):
        yield probe('.file 1 "a.cu"', ".func f() { ret; }", setting=version)
        yield probe('.file 1 "a.cu", 1, 2', ".func f() { ret; }", setting=version)
    yield probe('.file 1 "a.cu"', '.file 1 "b.cu"', KERNEL)
    yield probe('.file 1 "a.cu"', '.file 1 "a.cu"', KERNEL)
    section = (".section .debug_str {", "S:", ".b8 95, 0", "T:", ".b8 96, 0", "}")
    for loc in (
        ".loc 1 2 3", ".loc 1 2", ".loc 1", ".loc", ".loc 2 2 3", ".loc 1 -2 3", ".loc 1 2 3;", ".loc 1, 2, 3",
        ".loc 1 2 3, function_name S, inlined_at 1 4 5", ".loc 1 2 3, function_name S+2, inlined_at 1 4 5",
        ".loc 1 2 3, function_name T inlined_at 1 4 5", ".loc 1 2 3, function_name U, inlined_at 1 4 5",
        ".loc 1 2 3, inlined_at 1 4 5, function_name S", ".loc 1 2 3, inlined_at 1 4 5",
        ".loc 1 2 3, function_name S",
        ".loc 1 2 3, function_name S, inlined_at 2 4 5", ".loc 1 2 3, function_name .debug_str, inlined_at 1 4 5",
        ".loc 1 2 3, function_name .debug_str+2, inlined_at 1 4 5", ".loc 1 2 3 4", ".loc x 2 3", ".loc 1 2.5 3",
        ".loc 1 4 5\\n.loc 1 2 3, function_name S, inlined_at 1 4 5",
        ".loc 1 4 5\\n.loc 1 2 3, function_name U, inlined_at 1 4 5",
        ".loc 1 4 5\\n.loc 1 2 3, function_name .debug_str+2, inlined_at 1 4 5",
        ".loc 1 2 3, function_name S, inlined_at 1 2 3", ".loc 1 2 3, function_name S, inlined_at 1 4",
        ".loc 1 2 3, name S, inlined_at 1 4 5", ".loc 0 2 3",
        ".loc 1 2 3, function_name S-1, inlined_at 1 4 5", ".loc 1 99999999999 3", ".loc 1 2 99999999999",
    ):  # fmt: skip
        yield probe('.file 1 "a.cu"', ".entry k()", "{", loc, "ret;", "}", *section)
        yield probe('.file 1 "a.cu"', *section, ".entry k()", "{", loc, "ret;", "}")
    for version in ("6.4/sm_75", "7.1/sm_75", "7.2/sm_75"):
        loc = ".loc 1 2 3, function_name S, inlined_at 1 4 5"
        for before in ((), (".loc 1 4 5",)):
            yield probe('.file 1 "a.cu"', *section, ".entry k()", "{", *before, loc, "ret;", "}", setting=version)
    yield probe(".entry k()", "{", ".loc 1 2 3", "ret;", "}", '.file 1 "a.cu"')
    yield probe(".entry k()", "{", ".loc 1 2 3", "ret;", "}")
    yield probe(".loc 1 2 3", KERNEL, '.file 1 "a.cu"')
