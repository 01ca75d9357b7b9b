"""The linker: names across modules (11.6), headers, debugging data, dead code."""

import pytest

from ptxtools.check import check, undefined
from ptxtools.container import link, read, write
from ptxtools.diagnostics import PtxError
from ptxtools.ir import File, Function, Loc, Section
from ptxtools.syntax import parse, print_module

from .samples import BINARIES, PTX_FILES, module

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def unit(text, name="a.ptx", head=HEAD):
    return module(head + text, name)


def linked(*texts, **options):
    """The text of the linked module, which must be valid PTX, and its tree."""
    tree = link([unit(text, f"{chr(97 + n)}.ptx") for n, text in enumerate(texts)], **options)
    text = print_module(tree)
    again = parse(text, "linked.ptx")
    assert not again.diagnostics and again.module == tree
    assert not check(again.module), [d.message for d in check(again.module)]
    return text, tree


def refusal(*texts, **options):
    """Code, message and file of the only error."""
    with pytest.raises(PtxError) as error:
        link([unit(text, f"{chr(97 + n)}.ptx") for n, text in enumerate(texts)], **options)
    (found,) = error.value.diagnostics
    return found.code, found.message, found.file


CALLER = """\
.extern .func (.param .b32 r) f (.param .b32 x);
.visible .entry k() {
    .reg .b32 %r1;
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call.uni (q), f, (p); }
    ret;
}
"""
CALLEE = ".visible .func (.param .b32 r) f (.param .b32 x) { ret; }"


def test_a_function_of_another_module():
    text, tree = linked(CALLER, CALLEE)
    functions = [(f.name, f.linkage, f.body is not None) for f in tree.functions]
    assert functions == [("f", "visible", False), ("k", "visible", True), ("f", "visible", True)]
    assert ".extern" not in text


def test_order_of_inputs_does_not_matter_for_validity():
    linked(CALLEE, CALLER)


def test_one_module_stays_as_it_is():
    tree = unit(CALLEE)
    assert link([tree]) is tree


def test_an_undefined_function_names_who_uses_it():
    assert refusal(CALLER) == ("PTX811", "undefined symbol 'f', referenced from 'k'", "a.ptx")


def test_an_undefined_but_unused_function_is_fine():
    link([unit(".extern .func g();\n.visible .entry k() { ret; }")])


def test_an_undefined_variable_is_an_error_though_unused():
    """So says nvlink."""
    text = ".extern .global .u32 v;\n.visible .entry k() { ret; }"
    assert refusal(text) == ("PTX811", "undefined symbol 'v', declared here", "a.ptx")
    link([unit(text)], gc=True)
    link([unit(text.replace("global", "shared"))])


def test_undefined_is_fine_when_not_asked():
    link([unit(CALLER)], check_undefined=False)


@pytest.mark.parametrize("name", ["vprintf", "malloc", "free", "__assertfail", "__cudaCDP2Free"])
def test_the_runtime_defines_its_own(name):
    link([unit(f".extern .func {name}();\n.visible .entry k() {{ call {name}; ret; }}")])


def test_two_strong_definitions():
    code, message, file = refusal(CALLEE, CALLEE)
    assert (code, file) == ("PTX812", "b.ptx") and "'f' is defined here and in a.ptx" in message


def test_two_kernels_of_one_name():
    assert refusal(".entry k() { ret; }", ".visible .entry k() { ret; }")[0] == "PTX812"


WEAK = ".weak .func (.param .b32 r) f (.param .b32 x) { .reg .b32 weak; ret; }"


@pytest.mark.parametrize("texts", [(WEAK, CALLEE), (CALLEE, WEAK)])
def test_strong_wins_over_weak(texts):
    text, tree = linked(*texts)
    assert "weak" not in text and len(tree.functions) == 1


def test_the_first_weak_one_wins():
    text, _ = linked(WEAK, WEAK.replace("weak;", "second;"))
    assert ".reg .b32 weak" in text and "second" not in text


def test_common_variables_merge_to_the_largest():
    _, tree = linked(".common .global .b32 v[4];", ".common .global .b32 v[10];", ".common .global .b32 v[2];")
    (variable,) = tree.variables
    assert variable.dims == (10,)


def test_a_definition_wins_over_common():
    _, tree = linked(".common .global .b32 v[4];", ".visible .global .b32 v[4] = {1, 2};")
    (variable,) = tree.variables
    assert variable.linkage == "visible" and variable.init is not None


def test_names_without_linkage_stay_apart():
    a = ".global .u32 n = 1;\n.func f() { ret; }\n.visible .entry k1() { .reg .b64 %a; mov.u64 %a, n; call f; ret; }"
    b = a.replace("= 1", "= 2").replace("k1", "k2")
    text, tree = linked(a, b)
    assert [v.name for v in tree.variables] == ["n", "n$1"]
    assert "mov.u64 \t%a, n$1;" in text and "f$1;" in text


def test_a_local_name_does_not_hide_a_visible_one_of_another_module():
    a = ".visible .global .u32 n = 1;\n.visible .entry k1() { .reg .b64 %a; mov.u64 %a, n; ret; }"
    b = ".global .u32 n = 2;\n.visible .entry k2() { .reg .b64 %a; mov.u64 %a, n; ret; }"
    for texts in ((a, b), (b, a)):
        _, tree = linked(*texts)
        assert {v.name: v.init.value for v in tree.variables} == {"n": 1, "n$1": 2}


def test_renaming_leaves_names_of_a_function_alone():
    a = ".global .u32 n = 1;\n.visible .entry k1() { .reg .b64 n; mov.u64 n, 5; ret; }"
    text, _ = linked(".global .u32 n = 3;", a)
    assert "mov.u64 \tn, 5;" in text and "n$1" in text


def test_initialisers_follow_their_symbols():
    a = ".extern .global .u32 table[4];\n.visible .global .u64 p[2] = {table, generic(table)+8};"
    b = ".visible .global .u32 table[4] = {1, 2, 3, 4};"
    _, tree = linked(a, b)
    assert [v.name for v in tree.variables] == ["table", "p"]


def test_dynamic_shared_memory_needs_no_definition():
    text = ".extern .shared .align 16 .b8 smem[];\n.visible .entry {}() {{ .reg .b32 %a; mov.u32 %a, smem; ret; }}"
    result, _ = linked(text.format("k1"), text.format("k2"))
    assert result.count(".extern .shared") == 1


def test_undefined_variables():
    a = ".extern .global .u32 v;\n.visible .entry k() { .reg .b32 %a; ld.global.u32 %a, [v]; ret; }"
    assert refusal(a, CALLEE)[:2] == ("PTX811", "undefined symbol 'v', referenced from 'k'")


@pytest.mark.parametrize("definition, message", [
    (".visible .func (.param .b64 r) f (.param .b32 x) { ret; }",
     "return value 0 is .param .b32 here, .param .b64 there"),
    (".visible .func (.param .b32 r) f () { ret; }", "1 parameters here, 0 there"),
    (".visible .func f (.param .b32 x) { ret; }", "1 return values here, 0 there"),
    (".visible .global .u32 f;", "one is a function, the other a variable"),
])  # fmt: skip
def test_declarations_must_agree(definition, message):
    code, text, file = refusal(CALLER, definition)
    assert code == "PTX813" and message in text and "b.ptx" in text and file == "a.ptx"


@pytest.mark.parametrize("definition, message", [
    (".visible .const .u32 v[4];", ".global here, .const there"),
    (".visible .global .u64 v[4];", "type .u32 here, .u64 there"),
    (".visible .global .u32 v[2];", "16 bytes here, 8 there"),
])  # fmt: skip
def test_variables_must_agree(definition, message):
    assert message in refusal(".extern .global .u32 v[4];", definition)[1]


def test_a_prototype_with_another_type_of_the_same_size_agrees():
    linked(CALLER, CALLEE.replace(".param .b32 x", ".param .u32 x"))


def test_aliases_define_their_name():
    head = ".visible .func (.param .b32 r) {} (.param .b32 x)"
    text, _ = linked(CALLER, f"{head.format('g')} {{ ret; }}\n{head.format('f')};\n.alias f, g;")
    assert ".alias f, g;" in text


def test_the_result_requires_the_highest_version_and_target():
    a = unit(".entry a() { ret; }", head=".version 7.0\n.target sm_75\n.address_size 64\n")
    b = unit(".entry b() { ret; }", head=".version 8.6\n.target sm_90a\n.address_size 64\n")
    tree = link([a, b])
    assert (tree.version, tree.target) == ((8, 6), "sm_90a")


@pytest.mark.parametrize("targets", [("sm_90a", "sm_100a"), ("sm_90a", "sm_100"), ("sm_100f", "sm_120f")])
def test_targets_that_exclude_each_other(targets):
    units = [unit(f".entry k{t}() {{ ret; }}", f"{t}.ptx", f".version 8.8\n.target {t}\n.address_size 64\n")
             for t in targets]  # fmt: skip
    with pytest.raises(PtxError, match="PTX814") as error:
        link(units)
    assert all(t in str(error.value) for t in targets)


def test_address_sizes_must_agree():
    with pytest.raises(PtxError, match="PTX814"):
        link([unit(""), unit("", "b.ptx", ".version 8.0\n.target sm_80\n.address_size 32\n")])


def test_gc_drops_what_no_kernel_reaches():
    a = CALLER + "\n.visible .func dead() { ret; }\n.func alsodead() { call dead; ret; }\n.global .u32 unused;"
    b = CALLEE + "\n.visible .global .u32 host;\n.const .u32 used = 3;\n" \
                 ".visible .entry k2() { .reg .b64 %a; mov.u64 %a, used; ret; }"  # fmt: skip
    text, tree = linked(a, b, gc=True)
    assert "dead" not in text and "unused" not in text
    assert {v.name for v in tree.variables} == {"host", "used"}
    assert {f.name for f in tree.functions} == {"f", "k", "k2"}


def test_gc_keeps_what_function_pointers_reach():
    a = ".func f() { ret; }\n.visible .global .u64 pointers[1] = {f};\n.visible .entry k() { ret; }"
    assert "f" in {f.name for f in link([unit(a)], gc=True).functions}


def test_errors_of_all_kinds_come_together():
    with pytest.raises(PtxError) as error:
        link([unit(CALLEE + ".visible .func g() { ret; }"), unit(CALLEE + ".visible .func g() { ret; }", "b.ptx")])
    assert len(error.value.diagnostics) == 2


def test_containers_link_like_texts():
    texts = [unit(CALLER), unit(CALLEE, "b.ptx")]
    assert write(link(texts)) == write(link([read(write(t)) for t in texts]))


def test_real_modules_link():
    chosen = [p for p in PTX_FILES if p.parent.name == "ptx"]
    trees = [parse(p.read_text(), p.name).module for p in chosen]
    tree = link(trees)
    assert len(tree.entries) == len(chosen)
    assert not check(parse(print_module(tree), "all.ptx").module)
    assert read(write(tree)) == tree


@pytest.mark.parametrize("suffix", ["", "_debug"])
def test_separate_compilation_by_nvcc(suffix):
    paths = [BINARIES / "separate" / f"{name}{suffix}.ptx" for name in "ab"]
    tree = link([parse(p.read_text(), p.name).module for p in paths])
    assert {f.name for f in tree.entries} == {"k1", "k2"}
    text = print_module(tree)
    again = parse(text, "linked.ptx")
    assert not again.diagnostics and not check(again.module) and not undefined(again.module)
    if suffix:
        check_debugging_data(tree)


def check_debugging_data(tree):
    """Sections are one of each name, labels distinct, file numbers declared once."""
    names = [i.name for i in tree.items if isinstance(i, Section)]
    assert names and len(set(names)) == len(names)
    labels = [line.values[0] for i in tree.items if isinstance(i, Section) for line in i.lines if line.type == "label"]
    assert len(set(labels)) == len(labels)
    files = [i.index for i in tree.items if isinstance(i, File)]
    assert len(set(files)) == len(files)
    used = {s.file for f in tree.functions if f.body for s in f.body.items if isinstance(s, Loc)}
    assert used and used <= set(files)


def test_functions_keep_their_directives():
    body = ".visible .entry k() .maxntid 128, 1, 1 { ret; }"
    _, tree = linked(body, CALLEE)
    (kernel,) = tree.entries
    assert isinstance(kernel, Function) and [d.name for d in kernel.directives] == [".maxntid"]
