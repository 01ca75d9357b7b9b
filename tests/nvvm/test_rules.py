"""The rules of NVVM IR over legal and illegal modules of both dialects."""

import random
import re

import pytest

import ptxtools
from ptxtools.cli.lint import command
from ptxtools.diagnostics import Source
from ptxtools.nvvm.assembly.nodes import Module
from ptxtools.nvvm.assembly.parser import Parser
from ptxtools.nvvm.assembly.reader import Reader
from ptxtools.nvvm.intrinsics import intrinsics
from ptxtools.nvvm.rules import verify
from ptxtools.nvvm.rules.context import Context
from ptxtools.nvvm.rules.headers import LAYOUT
from ptxtools.nvvm.rules.layout import extent
from ptxtools.nvvm.rules.levels import IGNORED, LEVELS

from .cases import DATA, cases, modern, module

BARRIER = "declare void @llvm.nvvm.cluster.barrier(i32)\n"


def test_every_case_has_its_findings_at_its_level():
    wrong = []
    for name, codes, dialect, text in cases():
        found = verify(text, name, dialect=dialect)
        if sorted(one.code for one in found) != sorted(codes):
            lines = [f"{one.line}: {one.message} [{one.code}]" for one in found]
            wrong.append(f"{name}, {dialect}: wanted {codes}, got {lines}")
        wrong += [name for one in found if (one.severity.value == "warning") != (one.code in IGNORED)]
    assert not wrong, "\n".join(wrong)


#: Rules without an example in one dialect, and why.
ONE_DIALECT = {
    ("NVVM102", "7"): "damaged bitcode", ("NVVM102", "modern"): "damaged bitcode",
    ("NVVM104", "7"): "for the modern dialect", ("NVVM104", "modern"): "depends on the target: test_targets",
    ("NVVM120", "7"): "is NVVM116 there",
    ("NVVM404", "modern"): "asks for no more than the dialect's own targets",
}  # fmt: skip
#: The legal example for the rules: how what they forbid is written.
LEGAL = {
    "names": "NVVM201 NVVM202", "linkages": "NVVM203 NVVM206 NVVM207 NVVM208 NVVM209 NVVM211 NVVM215",
    "kernel convention": "NVVM204", "align annotation": "NVVM205", "default visibility": "NVVM206",
    "any vendor": "NVVM210 NVVM224 NVVM225 NVVM226", "spaces of variables": "NVVM212 NVVM213 NVVM214 NVVM222",
    "alias": "NVVM216 NVVM217", "version": "NVVM218", "parameter attributes": "NVVM219 NVVM220",
    "function attributes": "NVVM221 NVVM234", "calls": "NVVM116 NVVM120 NVVM223", "half and i128": "NVVM103 NVVM228",
    "initialiser with an offset": "NVVM229", "inline assembly": "NVVM230", "source_filename": "NVVM227 NVVM231",
    "llvm.used": "NVVM232", "module flags": "NVVM233", "vectors and aggregates": "NVVM111 NVVM301",
    "alloca": "NVVM302", "volatile": "NVVM303 NVVM309 NVVM310", "intrinsics of NVVM": "NVVM304 NVVM401 NVVM402 NVVM403",
    "cmpxchg": "NVVM118 NVVM305 NVVM307", "atomicrmw": "NVVM306", "casts": "NVVM308",
    "select and phi": "NVVM113 NVVM114 NVVM115 NVVM117 NVVM119", "names in quotes": "NVVM101 NVVM110",
    "standard intrinsics": "NVVM404 NVVM405 NVVM406", "annotations": "NVVM410 NVVM411 NVVM412 NVVM413",
    "texture": "NVVM420 NVVM421",
    "handles of a texture and a surface": "NVVM422",
    "debug information": "NVVM430 NVVM431", "nodes of debug information": "NVVM432",
}  # fmt: skip


def test_every_rule_has_an_illegal_and_a_legal_case_in_both_dialects():
    illegal = {(code, dialect) for _, codes, dialect, _ in cases() for code in codes}
    both = {(code, dialect) for code in LEVELS for dialect in ("7", "modern")}
    assert both - illegal == set(ONE_DIALECT)
    legal = {(name.removesuffix(", modern"), dialect) for name, codes, dialect, _ in cases() if not codes}
    assert {(name, dialect) for name in LEGAL for dialect in ("7", "modern")} <= legal
    assert set(LEVELS) - set(" ".join(LEGAL.values()).split()) == {"NVVM102", "NVVM104"}


def test_what_is_legal_here_libnvvm_accepts():
    """testdata/nvvm/libnvvm.txt has its verdicts; what it lets pass of the illegal is the reason for these rules."""
    rows = [line.split(" | ") for line in (DATA / "libnvvm.txt").read_text().splitlines()[1:]]
    said = {(name, dialect): verdict for name, dialect, verdict in rows}
    legal = {(name, dialect): not codes for name, codes, dialect, _ in cases()}
    assert said.keys() == legal.keys(), "run tools/nvvm_verdicts.py --write"
    assert [one for one, verdict in said.items() if legal[one] and verdict != "accepted"] == []


def test_all_intrinsics_are_known_in_both_dialects():
    declarations = "\n".join(
        f"declare {one.result} @{one.name}({', '.join(one.parameters)})" for one in intrinsics().values()
    )
    assert verify(module(declarations)) == []
    text = modern(module(declarations))
    assert verify(text) == []
    for one in intrinsics().values():
        text = text.replace(f"@{one.name}(", f"@{one.modern_name}(")
    assert verify(text) == []


def test_a_signature_with_one_more_parameter_is_wrong():
    rows = [f"declare {one.result} @{one.name}({', '.join([*one.parameters, 'i7'])})" for one in intrinsics().values()]
    found = verify(module("\n".join(rows)))
    assert [one.code for one in found] == ["NVVM402"] * len(rows)


@pytest.mark.parametrize(
    ("text", "target", "codes"),
    [
        (BARRIER, "sm_80", ["NVVM404"]),
        (BARRIER, "sm_90", []),
        (BARRIER, None, []),
        ("define void @f(ptr %p) { ret void }", "sm_90a", ["NVVM104"]),
        ("define void @f(ptr %p) { ret void }", "sm_100a", []),
        ("define void @f(i128* %p) { %x = atomicrmw xchg i128* %p, i128 1 seq_cst\n ret void }", "sm_80", ["NVVM306"]),
        ("define void @f(i128* %p) { %x = atomicrmw xchg i128* %p, i128 1 seq_cst\n ret void }", "sm_90", []),
    ],
)
def test_targets(text, target, codes):
    assert [one.code for one in verify(module(text), target=target)] == codes


def test_positions_are_those_of_the_text():
    text = module('define i32 @f(i32 %x) {\n  %r = call i32 asm "mov.u32 $0, $1;\\0A\\09frob $1;", "=r,r"(i32 %x)\n'
                  "  %y = add i32 %r,\n    %nobody\n  ret i32 %y\n}\n")  # fmt: skip
    found = verify(text, "k.ll")
    marked = [(one.line - 3, one.code, one.source.excerpt(one.span)) for one in found]
    assert marked == [(1, "PTX110", "frob"), (3, "NVVM110", "%nobody")]


def test_one_run_shows_errors_of_all_statements():
    text = module("@a = addrspace(1) global\n@b = thread_local global i32 0\ndefine void @f() {\n  %x = frob\n"
                  "  fence seq_cst\n  ret i32\n}\n!0 = !{i32}\n@c = global i32 %x\n")  # fmt: skip
    codes = [one.code for one in verify(text)]
    assert codes == ["NVVM101", "NVVM208", "NVVM101", "NVVM304", "NVVM101", "NVVM101", "NVVM110"]


def _broken(rng, text):
    """The text with words and characters deleted, doubled or exchanged."""
    words = re.findall(r"\w+|\s+|.", text, re.S)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(words))
        other = rng.choice([words[at] * 2, rng.choice(words), rng.choice('{}[]<>()*"!%@,:=\0\\é'), ""])
        words[at] = other
    return "".join(words)


def test_broken_texts_have_findings_and_no_traceback():
    rng = random.Random(18)
    texts = list(filter(None, (text.split('cuda"\n', 1)[-1] for _, _, _, text in cases())))
    for _ in range(600):
        for one in verify(_broken(rng, rng.choice(texts))):
            assert one.message and 0 <= one.span[0] <= one.span[1] <= len(one.source.text)


def test_deep_nesting_is_an_error():
    for text in ("@a = global " + "{" * 5000, "@a = global i32 " + "[" * 5000, "!0 = !{" + "!{" * 5000,
                 "@a = global i32" + "*" * 3 + " ()" * 5000):  # fmt: skip
        assert "NVVM101" in {one.code for one in verify(module(text))}


def test_the_command_reports_and_comments_silence(tmp_path, capsys):
    path = tmp_path / "k.ll"
    path.write_text(
        module("define void @f() {\n  fence seq_cst\n  fence acquire ; ptx-lint: disable=NVVM304\n  ret void\n}\n")
    )
    assert command.main([str(path), "--nvvm-dialect", "7"], standalone_mode=False) == 1
    out = capsys.readouterr().out
    assert f"{path}:4:3: error: 'fence' is not supported [NVVM304]" in out
    assert "see: NVVM IR specification 10.6.4" in out and ":5:" not in out
    assert command.main([str(path), "--ignore", "NVVM304"], standalone_mode=False) == 0
    assert command.main([str(path), "--reformat"], standalone_mode=False) == 2
    assert "only PTX has a canonical layout" in capsys.readouterr().err
    assert command.main(["--explain", "NVVM304"], standalone_mode=False) == 0
    assert "llvm.nvvm.membar" in capsys.readouterr().out


def test_the_library_takes_text_and_bytes():
    text = module("define void @f() { fence seq_cst\n ret void }")
    for data in (text, text.encode()):
        assert [one.code for one in ptxtools.lint(data)] == ["NVVM304"]
    assert [one.code for one in ptxtools.nvvm.lint(text, dialect="modern", ignore=["NVVM3"])] == []
    assert [one.code for one in ptxtools.lint(b"BC\xc0\xde")] == ["NVVM102"]
    with pytest.raises(ValueError, match="dialect"):
        ptxtools.nvvm.lint(text, dialect="8")


SIZED = (
    "i1", "i7", "i8", "i16", "i24", "i32", "i33", "i64", "i65", "i128", "half", "bfloat", "float", "double", "ptr",
    "[3 x i8]", "[0 x i64]", "{ i8, i64, i8 }", "<{ i8, i64, i8 }>", "<{ i8, { i16, i8 } }>",
    "{ i8, [3 x { i16, ptr }] }", "<2 x i8>", "<3 x i8>", "<4 x float>", "<3 x double>", "<5 x i1>", "<2 x ptr>",
    "{ i1, <3 x i16>, i128 }", "[2 x <3 x half>]", "{ i24, i8 }", "{ i8, <2 x i64> }",
)  # fmt: skip


def test_sizes_are_those_of_llvm():
    """Of llvmlite's LLVM, with the data layout of NVVM IR."""
    import llvmlite.binding as llvm

    context = Context(Module(), Source("", "k.ll"), "modern")
    layout = llvm.create_target_data(LAYOUT)
    for text in SIZED:
        module = llvm.parse_assembly(f"@g = external global {text}")
        expected = layout.get_abi_size(module.get_global_variable("g").global_value_type)
        found = extent(context, Reader(text).type())
        assert found is not None and found.size == expected, (text, found, expected)


def test_types_without_a_size_have_none():
    source = Source("%S = type { %S, %S }\n%O = type opaque\n%D = type { [2 x %D2] }\n%D2 = type { i8 }\n", "k.ll")
    context = Context(Parser(source).run(), source, "modern")
    for text, size in (("%S", None), ("%O", None), ("%N", None), ("{ %O }", None), ("metadata", None), ("%D", 2)):
        found = extent(context, Reader(text).type())
        assert (found and found.size) == size, text
    deep = "{ " * 150 + "i32" + " }" * 150
    assert extent(context, Reader(deep).type()).size == 4
