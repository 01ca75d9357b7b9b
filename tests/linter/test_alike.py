"""Functions that differ in local names alone are looked at once: with the same findings as if each was looked at."""

import random
import re

import pytest

from ptxtools.check import checker, instructions
from ptxtools.diagnostics.formats import to_json
from ptxtools.ir.alike import Faultless, kinds_of
from ptxtools.ir.nodes import Label, Variable
from ptxtools.linter import engine, facts, findings_of
from ptxtools.syntax import parse
from tests.rows import rows
from tests.work import calls

from ..syntax.syntaxtools import ROOT

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry kern(.param .u64 kern_param_0, .param .u32 kern_param_1)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 tile[64];
    ld.param.u64 %rd1, [kern_param_0];
    ld.param.u32 %r1, [kern_param_1+0];
    mov.u32 %r2, tile;
    st.shared.u32 [tile+4], %r1;
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra $L_1;
    ld.shared.u32 %r3, [%r2];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r3;
$L_1:
    ret;
}
"""


def renamed(text, function, number):
    """The text of a function with other local names."""
    names = [function.name, *(v.name for v in (*function.params, *function.returns))]
    names += [
        i.name for i in function.body.items if isinstance(i, (Label, Variable)) and getattr(i, "space", "") != "reg"
    ]
    body = text[slice(*function.span)]
    for name in names:
        body = re.sub(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])", f"{name}_{number}", body)
    return body


def both(text, monkeypatch):
    """The findings of a text, and those without comparing functions."""
    found = []
    remembered = facts.ModuleFacts.independent
    for compare, independent in ((kinds_of, remembered), (lambda module: {}, lambda self, function: ())):
        monkeypatch.setattr(checker, "kinds_of", compare)
        monkeypatch.setattr(facts, "kinds_of", compare)
        monkeypatch.setattr(facts.ModuleFacts, "independent", independent)
        module, syntax = parse(text, "k.ptx")
        found.append(to_json(findings_of(module, syntax)))
    monkeypatch.setattr(facts.ModuleFacts, "independent", remembered)
    return found


def copies(text, count):
    """A text with further copies of its functions, and how many functions there were."""
    module = parse(text).module
    bodies = [f for f in module.functions if f.body is not None]
    return text + "\n".join(renamed(text, f, n) for n in range(count) for f in bodies), len(bodies)


def spoilt(text, generator):
    """A text with one statement removed, or one word of it changed, behind its header."""
    lines = text.split("\n")
    inside = [n for n, line in enumerate(lines) if line.strip().endswith((";", ",")) or ".param" in line]
    at = generator.choice(inside)
    kind = generator.randrange(3)
    if kind == 0:
        lines[at] = ""
    elif kind == 1:
        lines[at] = re.sub(r"(%[a-z]+)\d+", lambda m: f"{m[1]}{generator.randrange(40)}", lines[at], count=1)
    else:
        lines[at] = re.sub(r"\.([usbf])(16|32|64)", lambda m: f".{generator.choice('usbf')}{m[2]}", lines[at], count=1)
    return "\n".join(lines)


FILES = sorted(path for path in (ROOT / "testdata").rglob("*.ptx") if 200 < path.stat().st_size < 60_000)


@rows("path", FILES, ids=lambda path: str(path.relative_to(ROOT)), share=4)
def test_copies_have_the_findings_of_the_first(path):
    generator = random.Random(path.name)
    text = copies(path.read_text(encoding="utf-8", errors="replace"), 3)[0]
    with pytest.MonkeyPatch.context() as patch:
        for number in range(3):
            compared, each = both(text if number == 0 else spoilt(text, generator), patch)
            assert compared == each


def modules_of(text, generator):
    """Modules with other choices of a text's functions, behind what the text begins with."""
    functions = [f for f in parse(text).module.functions if f.body is not None]
    bodies = [renamed(text, f, n) for n, f in enumerate(functions)]
    head = text[: functions[0].span[0]] if functions else text
    for _ in range(4):
        chosen = generator.sample(bodies, generator.randint(0, len(bodies)))
        yield head + "\n".join(chosen)
        yield spoilt(text, generator)
    yield f"{text}\n// ptx-lint: ignore PTX502"


@rows("path", FILES, ids=lambda path: str(path.relative_to(ROOT)), share=4)
def test_kernels_of_earlier_modules_have_the_same_findings(path):
    generator = random.Random(path.stem)
    text = path.read_text(encoding="utf-8", errors="replace")
    with pytest.MonkeyPatch.context() as patch:
        for each in (text, *modules_of(text, generator)):
            remembered, alone = both(each, patch)
            assert remembered == alone


@rows("line", [
    ".visible .entry kern(.param .u64 kern_param_0, .param .f16x2 kern_param_1)",
    ".visible .entry kern(.param .u64 kern_param_0, .param .align 3 .b8 kern_param_1[4])",
    ".visible .entry kern(.param .u64 kern_param_0, .param .u32 kern_param_1) .maxntid 0",
    ".visible .entry kern(.param .u64 kern_param_0, .param .u32 kern_param_1) .noreturn",
    ".visible .entry kern(.param .u64 kern_param_0, .param .u32 kern_param_1) .explicitcluster",
    ".visible .entry kern(.param .u64 .ptr .local .align 3 kern_param_0, .param .u32 kern_param_1)",
])  # fmt: skip
def test_a_finding_about_a_header_is_made_each_time(line):
    kernel = KERNEL.replace(KERNEL.partition("\n")[0], line)
    twice = HEAD + kernel + kernel.replace("kern", "other").replace("$L_1", "$L_2")
    for text in (HEAD + kernel, HEAD + kernel.replace("kern", "again"), twice):
        module, syntax = parse(text, "k.ptx")
        found = [d for d in findings_of(module, syntax) if d.code < "PTX5"]
        assert len(found) == len(module.functions), found


def test_a_location_that_the_module_lacks_is_told_of_in_a_kernel_that_was_known():
    first = KERNEL.replace("ret;", ".loc 1 2 3\n ret;")
    inlined = KERNEL.replace("kern", "other").replace("ret;", ".loc 1 5 6, function_name $L_9, inlined_at 1 2 3\n ret;")
    nested = inlined.replace("mov.u32 %r2", "{ mov.u32 %r2").replace("ret;", "}\n ret;")
    head = HEAD.replace("8.0", "8.3")
    for kernel in (inlined, nested):
        codes = []
        for text in (first + kernel, kernel, first + kernel):
            module, syntax = parse(head + text, "k.ptx")
            codes.append([d.code for d in findings_of(module, syntax) if "at which this one is inlined" in d.message])
        assert [len(each) for each in codes] == [0, 1, 0]


@rows("change", ["", ".target sm_80\n", ".address_size 64\n"])
def test_what_surrounds_a_kernel_counts(change):
    """A kernel without findings, then the same one where the module or the caller says something else."""
    with pytest.MonkeyPatch.context() as patch:
        texts = [HEAD + KERNEL, (HEAD.replace(change, "") if change else "") + KERNEL]
        texts += [HEAD + KERNEL + after for after in ("// ptx-lint: ignore PTX502\n", ".global .u32 kern_x;\n")]
        for text in texts:
            remembered, alone = both(text, patch)
            assert remembered == alone
    for target in ("sm_70", "sm_80"):
        module, syntax = parse(
            HEAD.replace("8.0", "9.0") + KERNEL.replace("ret;", "redux.sync.add.s32 %r1, %r1, -1;\n ret;")
        )
        found = findings_of(module, syntax, targets=(target,))
        assert any(d.severity.value == "error" for d in found) == (target == "sm_70")


def test_copies_are_one_kind():
    text, _ = copies(HEAD + KERNEL, 5)
    kinds = kinds_of(parse(text).module)
    assert len(kinds) == 6
    assert set(kinds.values()) == {0}


@rows("change", [
    ("add", "st.global.u32 [%rd2], %r3;", "st.global.u32 [%rd2], %r1;"),
    ("offset", "[tile+4]", "[tile+8]"),
    ("type", ".shared .align 4 .b8 tile[64]", ".shared .align 4 .b8 tile[32]"),
    ("parameter", ".param .u32 k", ".param .u64 k"),
    ("directive", ")\n{", ")\n.maxntid 32\n{"),
    ("guard", "@%p1", "@!%p1"),
    ("other name", "mov.u32 %r2, tile", "mov.u32 %r2, kern_param_1"),
    ("registers", "%r<4>", "%r<5>"),
    ("label", "bra $L_1", "bra $L_2"),
    ("linkage", ".visible .entry", ".entry"),
])  # fmt: skip
def test_what_else_differs_is_another_kind(change):
    _, old, new = change
    assert old in KERNEL
    module = parse(HEAD + KERNEL).module
    other = renamed(HEAD + KERNEL, module.functions[0], 1)
    changed = renamed(HEAD + KERNEL.replace(old, new), parse(HEAD + KERNEL.replace(old, new)).module.functions[0], 2)
    assert len(kinds_of(parse(HEAD + KERNEL + other).module)) == 2
    assert kinds_of(parse(HEAD + KERNEL + changed).module) == {}


@rows("text", [
    KERNEL + KERNEL.replace("kern(", "data(").replace("kern_param", "dat").replace("tile", "ret"),  # names inside words
    KERNEL + KERNEL.replace("kern(", "kernkern(").replace("tile", "%tile"),
    ".global .u32 x;\n.extern .global .u32 x;\n" + KERNEL + KERNEL.replace("kern(", "k2("),
    KERNEL + KERNEL.replace("kern(", "k2(").replace("$L_1:", "$L_1"),
    KERNEL.replace("tile", "other") + ".shared .b32 other;\n" + KERNEL.replace("kern(", "k2("),
    KERNEL.replace("kern", "ld") + KERNEL.replace("kern", "ldx").replace("ld.", "ldx."),
    KERNEL.replace("kern", "tag").replace("$L_1:", ".pragma \"tag\";\n$L_1:")
    + KERNEL.replace("kern", "nounroll").replace("$L_1:", ".pragma \"nounroll\";\n$L_1:"),
])  # fmt: skip
def test_doubtful_names(text):
    with pytest.MonkeyPatch.context() as patch:
        compared, each = both(HEAD + text, patch)
    assert compared == each


def test_a_finding_is_reported_for_each_copy():
    text, _ = copies(HEAD + KERNEL.replace("%r3;\n$L", "%r9;\n$L"), 4)
    module, syntax = parse(text)
    found = findings_of(module, syntax)
    assert [d.code for d in found if d.severity.value == "error"] == ["PTX201"] * 5


@pytest.fixture
def forgotten(monkeypatch):
    """Nothing is known of earlier modules."""

    def forget():
        for module in (engine, instructions):
            monkeypatch.setattr(module, "_faultless", Faultless())
        monkeypatch.setattr(facts, "_walked_in_vain", Faultless())

    forget()
    return forget


def test_copies_cost_little(forgotten):
    """Most of what is left is reading, and declarations."""

    def work(count):
        module, _ = parse(
            copies(HEAD + KERNEL.replace("    ret;", "    add.s32 %r3, %r3, %r1;\n" * 300 + "    ret;"), count)[0]
        )
        findings_of(module)
        forgotten()
        return calls(lambda: findings_of(module))

    few, many = work(1), work(9)
    assert many < few * 1.5


def test_a_kernel_of_an_earlier_module_costs_little(forgotten):
    kernel = KERNEL.replace("    ret;", "    add.s32 %r3, %r3, %r2;\n" * 300 + "    ret;")
    modules = [parse(HEAD + kernel.replace("kern", name)).module for name in ("first_one", "second_one")]
    findings_of(modules[0])  # rules are loaded
    forgotten()
    first, second = (calls(lambda one=one: findings_of(one)) for one in modules)
    assert second < first / 4
