"""Every code has a page, and its example shows exactly what the page says."""

import re

from ptxtools.check import codes as check_codes
from ptxtools.check.pages.format import parts
from ptxtools.isa import errors as isa_codes
from ptxtools.linter import lint, registry
from ptxtools.linter.explain import markdown, rule_pages
from ptxtools.linter.precision import FINDINGS
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
#: What the examples of single statements take as given.
REGISTERS = """
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
    mov.b16 %h1, 0; mov.b16 %h2, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b64 %rd1, 0; mov.b64 %rd2, 0;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; setp.eq.s32 %p1, %r1, %r2; setp.ne.s32 %p2, %r1, %r2;
"""
MODULE_LEVEL = re.compile(r"^\s*\.(entry|func|global|const|visible|extern|shared|version|target)\b")
PAGES = rule_pages()


def module_of(example, code):
    """A whole module around an example: of statements, of module-level items, or complete already."""
    if ".version" in example or code in ("PTX401",):
        return example
    if (
        MODULE_LEVEL.match(example) and not re.search(r"^\s*(ld|st|mov|mbarrier)\.", example, re.M)
    ) or code == "PTX421":
        return HEAD + example
    end = "" if re.search(r"\bret;\s*$", example) else "\n    ret;"
    return f"{HEAD}.entry k()\n{{{REGISTERS}\n{example}{end}\n}}\n"


def found(example, code):
    result = parse(module_of(example, code), "example.ptx")
    return {d.code for d in [*result.diagnostics, *lint(result.module, select=("all", code))]}


def codes_of(module):
    return {v for v in vars(module).values() if isinstance(v, str) and re.fullmatch(r"PTX\d+", v)}


def test_every_code_has_a_page():
    used = codes_of(check_codes) - {"PTX100", "PTX121"}
    used |= codes_of(isa_codes) | {name[:6].upper() for name in registry.names()}
    assert used - set(PAGES) == set()
    assert set(PAGES) - used == set()


@rows("code", sorted(PAGES))
def test_page_has_its_parts(code):
    assert {"What", "Why"} <= set(parts(PAGES[code][1]))


@rows("code", sorted(c for c, (_, page) in PAGES.items() if "Example" in parts(page)))
def test_example_shows_the_finding(code):
    example = parts(PAGES[code][1])["Example"]
    assert code in found(example, code)


@rows("code", sorted(c for c, (_, page) in PAGES.items() if "Better" in parts(page)))
def test_better_is_better(code):
    better = parts(PAGES[code][1])["Better"]
    left = found(better, code)
    assert code not in left
    assert not {c for c in left if c < "PTX5"}, left


def test_markdown_lists_every_code():
    text = markdown(PAGES)
    assert all(f"\n## {code}\n" in text for code in PAGES)


def test_findings_in_compilers_output_are_of_warning_rules():
    for code, (findings, modules, false, _) in FINDINGS.items():
        assert PAGES[code] and code >= "PTX5"
        assert findings >= max(modules, false) and modules
        assert f"| [{code}](#{code.lower()}) | {findings} |" in markdown(PAGES)
