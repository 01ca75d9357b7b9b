"""Functions that are passed over have the same findings as those that are read."""

import random
import re

from ptxtools.diagnostics import Source
from ptxtools.nvvm.assembly.parser import Parser
from ptxtools.nvvm.rules import screening, verify
from ptxtools.nvvm.rules.context import Context
from ptxtools.nvvm.rules.screen import Screen
from ptxtools.nvvm.rules.shapes import Shapes

from .cases import DATA, cases, module

KERNELS = [(DATA / name).read_text() for name in ("kernels7.ll", "kernels18.ll", "triton_style.ll")]


def both(text, **options):
    """The findings with and without screening, as texts."""
    return [[f"{one.code} {one.span} {one.message}" for one in verify(text, screened=screened, **options)]
            for screened in (True, False)]  # fmt: skip


def passed(text, dialect):
    """For each function with a body, whether it is passed."""
    source = Source(text, "k.ll")
    parser = Parser(source)
    screen = Screen(Context(parser.run(), source, dialect))
    return {function.name: screen.passes(function) for function in parser.unread}


def test_functions_without_fault_are_passed():
    """Otherwise the other tests would show nothing."""
    for text, dialect in zip(KERNELS, ("7", "modern", "modern"), strict=True):
        found = passed(text, dialect)
        assert found and all(found.values()), found


def test_every_case_has_the_same_findings():
    for name, _, dialect, text in cases():
        screened, read = both(text, dialect=dialect)
        assert screened == read, (name, dialect)


def _changed(rng, text):
    """The text with words that are exchanged, doubled or dropped."""
    words = re.findall(r"[%@!]?[\w.]+|\s+|.", text, re.S)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(words))
        words[at] = rng.choice([rng.choice(words), rng.choice(words), words[at] * 2, rng.choice('{}[]()"!%;\0\n'), ""])
    return "".join(words)


def test_changed_texts_have_the_same_findings():
    rng = random.Random(5)
    wrong = 0
    for _ in range(60):
        screened, read = both(_changed(rng, rng.choice(KERNELS)))
        assert screened == read
        wrong += bool(read)
    assert wrong > 30


BODY = """define i32 @f(i32 %a, i1 %c) {
entry:
  br i1 %c, label %x, label %y
x:                                                ; preds = %entry
  %b = add i32 %a, 5
  br label %z
y:
  %d = add i32 %a, 7
  switch i32 %d, label %z [
    i32 1, label %z
    i32 9, label %x2
  ]
x2:
  br label %z
z:
  %p = phi i32 [ %b, %x ], [ 3, %y ], [ 3, %y ], [ 4, %x2 ]
  %r = add i32 %p, 1
  ret i32 %r
}
"""
#: What is exchanged, and the code of the finding that this makes: what shapes alone do not show.
FAULTS = [
    ("%r = add i32 %p", "%r = add i32 %b", "NVVM115"),
    ("%r = add i32 %p", "%r = add i32 %r", "NVVM115"),
    ("%r = add i32 %p", "%r = add i32 %c", "NVVM111"),
    ("%r = add i32 %p", "%r = add i32 %n", "NVVM110"),
    ("%d = add", "%a = add", "NVVM110"),
    ("%d = add", "%x = add", "NVVM110"),
    ("[ %b, %x ]", "[ %b, %x2 ]", "NVVM114"),
    ("[ %b, %x ]", "[ %d, %x ]", "NVVM115"),
    ("[ %b, %x ]", "[ %r, %x ]", "NVVM115"),
    ("[ %b, %x ]", "[ %a, %x ]", None),
    ("[ 4, %x2 ]", "[ %d, %x2 ]", None),
    ("[ 4, %x2 ]", "[ 4, %entry ]", "NVVM114"),
    ("label %x2\n", "label %entry\n", "NVVM113"),
    ("label %x2\n", "label %w\n", "NVVM110"),
    ("i32 9", "i32 1", "NVVM113"),
    ("br i1 %c", "br i1 14", "NVVM119"),
    ("%b = add i32 %a, 5", "%b = fptosi float 5 to i32", "NVVM111"),
    ("  br label %z\nz:", "z:", "NVVM113"),
    ("ret i32 %r", "ret i1 %c", "NVVM111"),
    ("%d = add i32 %a, 7", "%d = add i32 %a, 5000000000", "NVVM119"),
    ("%d = add", "%7 = add", "NVVM117"),
    ("ret i32 %r", "ret i32 %r, !dbg !77", "NVVM110"),
    ("  %r = add", "  store i32 %a, i32* null\n  %q = phi i32 [ 1, %x ], [ 1, %y ], [ 1, %x2 ]\n  %r = add", "NVVM114"),
]


def test_what_names_make_wrong_is_found():
    text = module(BODY)
    assert both(text) == [[], []] and passed(text, "7") == {"@f": True}
    for old, new, code in FAULTS:
        assert BODY.count(old) == 1, old
        screened, read = both(module(BODY.replace(old, new)))
        assert screened == read, (new, screened, read)
        if code:
            assert code in {one[:7] for one in screened}, (new, screened)


def test_numbers_may_have_gaps_in_the_modern_dialect():
    text = "define i32 @f(i32) {\n  %N = add i32 %0, 1\n  br label %b\nb:\n  ret i32 %N\n}\n"
    for number in (1, 2, 7, 50, 10**12):
        for dialect in ("7", "modern"):
            screened, read = both(module(text.replace("N", str(number))), dialect=dialect)
            assert screened == read and (dialect == "modern" or bool(read) == (number != 2)), (number, read)


ALIKE = """@a = addrspace(1) global i32 0
@b = addrspace(1) global i32 0
@c = addrspace(1) global float 0.0
declare i32 @r(i32)
declare i32 @s(i32)
declare i64 @t(i32)
define i32 @f1(i32 %x) {
  %v = call i32 @r(i32 %x), !dbg !1
  store i32 %v, i32 addrspace(1)* @a
  ret i32 %v
}
define i32 @f2(i32 %x) {
  %v = call i32 @s(i32 %x), !dbg !2
  store i32 %v, i32 addrspace(1)* @b
  ret i32 %v
}
define i32 @f3(i32 %x) {
  %v = call i32 @r(i32 %x), !dbg !3
  store i32 %v, i32 addrspace(1)* @b
  ret i32 %v
}
!1 = !{}
!2 = !{}
!3 = !{}
"""


def test_bodies_that_are_alike_have_the_same_findings():
    text = module(ALIKE)
    assert both(text) == [[], []] and all(passed(text, "7").values())
    last = ALIKE.index("@f3")
    for old, new, code in (("@r", "@t", "NVVM116"), ("@b", "@c", "NVVM111"), ("@b", "@n", "NVVM110"),
                           ("!3", "!7", "NVVM110"), ("ret i32 %v", "ret i32 %w", "NVVM110"), ("%x)", "%y)", "NVVM110"),
                           ("(i32 %x)", "(i64 %x)", "NVVM111"), ("%v = ", "%x = ", "NVVM110"),
                           ("call i32 @r", "call i32 @f1", None)):  # fmt: skip
        changed = ALIKE[:last] + ALIKE[last:].replace(old, new, 1)
        screened, read = both(module(changed))
        assert screened == read, (new, screened, read)
        assert {one[:7] for one in screened} >= ({code} if code else set()), (new, screened)


def test_heads_that_are_alike_have_their_own_names():
    head = "define void @{}(i32 %{}) {{\n  %1 = add i32 %{}, 1\n  ret void\n}}\n"
    good = head.format("f", "a", "a") + head.format("g", "b", "b")
    assert both(module(good.replace("%1", "%r"))) == [[], []]
    for text in (good, head.format("f", "a", "a") + head.format("f", "b", "b"), head.format("f", "a", "a")
                 + head.format("g", "b", "a"), good + "@g = global i32 0\n", "declare void @g(i32)\n" + good,
                 head.format("f", "a", "a") + head.format("nvvm.x", "b", "b")):  # fmt: skip
        screened, read = both(module(text.replace("%1", "%r")))
        assert screened == read


QUOTED = """define i32 @"f"(i32 %"a.1", i1 %"c d")
{
entry:
  %".2" = add i32 %"a.1", 5
  br i1 %"c d", label %"B 1", label %"B2"
"B 1":
  %.3 = add i32 %".2", 6
  br label %"B2"
B2:
  %"p" = phi i32 [ %.2, %entry ], [ %".3", %"B 1" ]
  ret i32 %p
}
"""


def test_names_in_quotes_are_followed():
    text = module(QUOTED)
    assert both(text) == [[], []] and passed(text, "7") == {"@f": True}
    for old, new, code in (("%.3 = ", '%".2" = ', "NVVM110"), ('%".2" = ', '%"B2" = ', "NVVM110"),
                           ('"B 1":', '"B2":', "NVVM110"), ("ret i32 %p", 'ret i32 %".3"', "NVVM115"),
                           ("ret i32 %p", 'ret i32 %"c d"', "NVVM111")):  # fmt: skip
        assert text.count(old) == 1, old
        screened, read = both(text.replace(old, new))
        assert screened == read and code in {one[:7] for one in screened}, (new, screened)


NUMBERS = """define i32 @f(i32 %a, float %b) {
  %x = add i32 %a, 5
  %y = add i32 %a, INTEGER
  %z = fadd float %b, 1.000000e+00
  %w = fadd float %b, FLOAT
  %u = call i32 @f(i32 %x, float %z)
  %v = call i32 @SYMBOL(i32 %x, float %z)
  ret i32 %x
}
"""


def test_no_text_stands_for_a_number_or_a_symbol():
    text = module(NUMBERS)
    for integer, real, symbol in (("6", "2.000000e+00", "f"), ("#", "~", "function i32 (i32, float):0"),
                                  ("\1", "\2", "\3function i32 (i32, float):0"), ("\0", "\0", "\0")):  # fmt: skip
        for word, changed in (("INTEGER", integer), ("FLOAT", real), ("SYMBOL", symbol)):
            one = text.replace(word, changed)
            for other, good in (("INTEGER", "6"), ("FLOAT", "2.000000e+00"), ("SYMBOL", "f")):
                one = one.replace(other, good)
            screened, read = both(one)
            assert screened == read and bool(read) == (integer != "6"), (changed, screened, read)


NODES = """
!0 = distinct !DISubprogram(name: "f", isDefinition: true, scopeLine: 7)
!1 = !DILocation(line: 1, column: 2, scope: !0)
!2 = !DILocation(line: 3, column: 4, scope: !0)
!3 = !DILocation(line: 123456, column: 5, scope: !0, inlinedAt: !1)
!4 = !{!1, !2}
!5 = !{!2, null}
!6 = !{!2, !3}
!7 = !DIFile(filename: "x", directory: "/")
!8 = !DIFile(filename: "y", directory: "/")
!9 = !DIGlobalVariable(name: "a")
!10 = !DIGlobalVariable(name: "b")
"""
#: What is exchanged, and the code of the finding that this makes.
NODE_FAULTS = [
    ("column: 4", "column: 70000", "NVVM432"),
    ("column: 4", "column: -4", "NVVM432"),
    ("column: 4, scope: !0", "column: 4", "NVVM432"),
    ("column: 4, scope: !0", "column: 4, scope: !77", "NVVM110"),
    ("column: 4, scope: !0", "column: 4, scope: null", "NVVM432"),
    ('"y", directory: "/"', '"y", directory: !4', "NVVM432"),
    ('"y", directory', "!4, directory", "NVVM432"),
    ("!6 = ", "!5 = ", "NVVM110"),
    ('"b"', '""', "NVVM432"),
    ("!{!2, !3}", "!{!2, !33}", "NVVM110"),
    ("!{!2, !3}", "!{!2, !3", "NVVM101"),
    ('"y"', '"y\n"', None),
    ('"y"', '""', None),
    ('"y"', '"y', "NVVM101"),
    ("!8 = ", "!llvm.module.flags = !{!8}\n!8 = ", "NVVM233"),
]


def test_nodes_that_are_alike_have_the_same_findings():
    text = "define void @f() {\n  ret void, !dbg !3\n}\n" + NODES
    assert both(module(text)) == [[], []]
    for old, new, code in NODE_FAULTS:
        assert text.count(old) == 1, old
        screened, read = both(module(text.replace(old, new)))
        assert screened == read, (new, screened, read)
        assert code is None or code in {one[:7] for one in screened}, (new, screened)


def test_findings_are_the_same_in_any_number_of_processes(monkeypatch):
    """Also of functions that are read, whose text does not end where it should, and that one process alone meets."""
    monkeypatch.setattr(screening, "LARGE", 0)
    rng = random.Random(9)
    texts = [text for _, _, dialect, text in cases() if dialect == "7"][::12]
    texts += [*KERNELS, *(_changed(rng, rng.choice(KERNELS)) for _ in range(25))]
    texts.append(module("".join(BODY.replace("@f", f"@f{n}").replace("5", f"{n}") for n in range(6))))
    texts.append(texts[-1].replace("add i32 %a, 4", "add i32 %n, 4, !dbg !9").replace("%z:\n", "}\ndefine", 1))
    wrong = 0
    for number, text in enumerate(texts):
        source = Source(text, "k.ll")
        alone = verify(source)
        assert verify(source, processes=2 + number % 3) == alone
        wrong += bool(alone)
    assert 25 < wrong < len(texts)


def test_a_share_that_meets_pointers_first_decides_the_dialect(monkeypatch):
    """Pointers are in the body of the last function alone, which another process reads."""
    monkeypatch.setattr(screening, "LARGE", 0)
    plain = "define i32 @{n}(i32 %a) {{\n  %b = add i32 %a, 1\n  ret i32 %b\n}}\n"
    last = "define void @z() {\n  %p = alloca i32\n  store i32 1, ptr %p\n  ret void\n}\n"
    for text in (module(plain.format(n="a") + last), module(last + plain.format(n="a"))):
        source = Source(text, "k.ll")
        assert verify(source, processes=2) == verify(source) == verify(source, screened=False)
        assert not any(one.code == "NVVM103" for one in verify(source, processes=2))


EXCHANGED = """define i32 @f(i32 %a, float %b, i1 %c, i32* %p) {
entry:
  br i1 %c, label %x, label %y
x:
  %r = add i32 VALUE, VALUE
  %s = fmul float %b, REAL
  store i32 VALUE, i32* %p
  br label %y
y:
  %q = phi i32 [ VALUE, %entry ], [ %r, %x ]
  %t = select i1 %c, float REAL, float %b
  %u = call i32 @f(i32 VALUE, float REAL, i1 %c, i32* %p)
  ret i32 %q
}
"""


def test_names_numbers_and_undefined_values_are_exchanged_in_lines_of_known_shapes():
    """A line follows from an earlier one with another sort of value in the same place, if the value has its type."""
    first = EXCHANGED.replace("VALUE", "%a").replace("REAL", "%b")
    for value, real, code in (("7", "2.0", None), ("undef", "undef", None), ("%a", "0x4000000000000000", None),
                              ("5000000000", "2.0", "NVVM119"), ("2.0", "2.0", "NVVM111"), ("7", "7", "NVVM111"),
                              ("%b", "%b", "NVVM111"), ("%n", "%b", "NVVM110"), ("7", "1.1", "NVVM111"),
                              ("%q", "%b", "NVVM115"), ("poison", "poison", "NVVM103"), ("%c", "%b", "NVVM111"),
                              ("@f", "%b", "NVVM111"), ("true", "%b", "NVVM111"), ("%y", "%b", "NVVM111")):  # fmt: skip
        second = EXCHANGED.replace("@f(i32 %a", "@g(i32 %a", 1).replace("VALUE", value).replace("REAL", real)
        for text in (first + second, second + first):
            screened, read = both(module(text))
            assert screened == read, (value, real, screened, read)
            assert {one[:7] for one in screened} >= ({code} if code else set()), (value, real, screened)
            assert code or not screened, (value, real, screened)
            if not code:
                assert all(passed(module(text), "7").values())


def test_a_value_within_a_constant_is_no_name():
    text = module("define <2 x i32> @f(<2 x i32> %v, i32 %a) {\n  %x = add <2 x i32> %v, <i32 1, i32 2>\n"
                  "  %y = add <2 x i32> %v, <i32 3, i32 4>\n  ret <2 x i32> %y\n}\n")  # fmt: skip
    assert both(text) == [[], []] and passed(text, "7") == {"@f": True}
    for other in ("%a", "5000000000", "undef", "2.0"):
        screened, read = both(text.replace("i32 4>", f"i32 {other}>"))
        assert screened == read and bool(read) == (other != "undef"), (other, screened, read)


ANNOTATIONS = """define void @k(float* %a) {
  ret void
}
define void @kernel2(float* %a) {
  ret void
}
define void @l(i32 %a) {
  ret void
}
!nvvm.annotations = !{!0, !1, !2, !3}
!0 = !{void (float*)* @k, !"kernel", i32 1}
!1 = !{void (float*)* @kernel2, !"kernel", i32 1}
!2 = !{void (i32)* @l, !"kernel", i32 1}
!3 = !{void (float*)* @k, !"maxntidx", i32 7}
"""
#: What is exchanged, and the code of the finding that this makes.
ANNOTATION_FAULTS = [
    ("@kernel2, ", "@none, ", "NVVM110"),
    ("!1 = ", "!0 = ", "NVVM110"),
    ("!1 = ", "!7 = ", "NVVM110"),
    ("@kernel2, ", "@l, ", "NVVM111"),
    ("void @kernel2(", "i32 @kernel2(", "NVVM111"),
    ("!2 = !{void (i32)*", "!2 = !{void (float*)*", "NVVM111"),
    ('@kernel2, !"kernel", i32 1', '@kernel2, !"kernel", i32 1, i32 2', None),
    ("!0 = !{void", "!0 = distinct !{void", None),
    ('@k, !"kernel", i32 1}', '@k, !"kernel", i32 1} ; a comment', None),
    ('!0 = !{void (float*)* @k, !"kernel", i32 1}', "!0 = !{}", None),
    ('@k, !"kernel", i32 1}', '@k, !"kernel", i32 1', "NVVM101"),
]


def test_annotations_that_are_alike_have_the_same_findings():
    assert both(module(ANNOTATIONS)) == [[], []]
    for old, new, code in ANNOTATION_FAULTS:
        assert ANNOTATIONS.count(old) == 1, old
        screened, read = both(module(ANNOTATIONS.replace(old, new)))
        assert screened == read, (new, screened, read)
        assert code is None or code in {one[:7] for one in screened}, (new, screened)


def test_annotations_that_are_alike_are_in_the_tree():
    """With the places that a parse of each line gives."""
    source = Source(module(ANNOTATIONS), "k.ll")
    trees = [Parser(source, alike=alike).run().metadata for alike in (True, False)]
    shown = [
        {
            name: (node.at, [(one.kind, one.text, one.type, one.at) for one in node.operands])
            for name, node in each.items()
        }
        for each in trees
    ]
    assert shown[0] == shown[1] and len(shown[0]) > 4


FAMILIES = """declare i32 @llvm.ctlz.i32(i32, i1)
declare float @llvm.fma.f32(float, float, float)
define i32 @f(i32 %a, float %b, i1 %c, i32* %p, i64 %w) {
entry:
  %i = INT i32 %a, 5
  %j = fadd float %b, %b
  %k = icmp eq i32 %a, 7
  %l = fcmp oeq float %b, %b
  %m = zext i32 %a to i64
  %n = load i32, i32* %p, align 4
  %o = call float @llvm.fma.f32(float %b, float %b, float %b)
  %q = call i32 @llvm.ctlz.i32(i32 %a, i1 true)
  switch i32 %a, label %x [
    i32 1, label %y
    i32 2, label %x
  ]
x:
  br label %y
y:
  %r = phi i32 [ %a, %entry ], [ 3, %x ]
  ret i32 %r
}
!1 = !{}
"""
#: What is exchanged in a second function, and the code of the finding that this makes.
FAMILY_CHANGES = [
    ("INT i32", "sub nsw i32", None),
    ("INT i32", "xor i32", None),
    ("INT i32", "lshr exact i32", None),
    ("INT i32 %a, 5", "udiv i32 %a, 5000000000", "NVVM119"),
    ("INT i32", "fsub i32", "NVVM111"),
    ("INT i32 %a, 5", "mul nuw nsw i32 %b, 5", "NVVM111"),
    ("fadd float", "fmul contract float", None),
    ("fadd float", "srem float", "NVVM111"),
    ("icmp eq i32", "icmp ult i32", None),
    ("icmp eq i32", "icmp olt i32", "NVVM101"),
    ("fcmp oeq float", "fcmp contract une float", None),
    ("fcmp oeq float", "fcmp slt float", "NVVM101"),
    ("zext i32 %a", "sext i32 %a", None),
    ("zext i32 %a to i64", "trunc i32 %a to i64", "NVVM111"),
    ("align 4", "align 16", None),
    ("align 4", "align 4, !dbg !1", None),
    ("align 4", "align 4, !dbg !1, !tbaa !1", None),
    ("align 4", "align 4, !dbg !7", "NVVM110"),
    ("align 4", "align 3", "NVVM118"),
    ("align 4", "align 0", "NVVM118"),
    ("float %b, float %b)", "float 2.000000e+00, float %b)", None),
    ("float %b, float %b)", "float 1.100000e+00, float %b)", "NVVM111"),
    ("i1 true", "i1 %c", "NVVM403"),
    ("    i32 2, label %x\n", "    i32 2, label %x\n    i32 5, label %x\n", None),
    ("    i32 2, label %x\n", "    i32 2, label %x\n    i32 1, label %x\n", "NVVM113"),
    ("    i32 2, label %x\n", "    i32 2, label %entry\n", "NVVM113"),
    ("    i32 2, label %x\n", "    i64 2, label %x\n", "NVVM111"),
    ("    i32 2, label %x\n", "    i32 5000000000, label %x\n", "NVVM119"),
    ("    i32 2, label %x\n", "", None),
    ("[ 3, %x ]", "[ 3, %x ], [ 3, %x ]", None),
    ("[ 3, %x ]", "[ %w, %x ]", "NVVM111"),
    ("[ %a, %entry ], [ 3, %x ]", "[ %a, %entry ]", "NVVM114"),
]  # fmt: skip


def test_lines_of_a_family_have_the_same_findings(monkeypatch):
    """A line follows from one with another operation of its sort, alignment, number of values, or without nodes."""
    judged = []
    judge = Shapes.judge
    monkeypatch.setattr(Shapes, "judge", lambda self, text, place: judged.append(text) or judge(self, text, place))
    first = FAMILIES.replace("INT", "add")
    for old, new, code in FAMILY_CHANGES:
        second = FAMILIES[FAMILIES.index("define") :].replace("@f", "@g", 1)
        assert second.count(old) == 1, old
        second = second.replace(old, new).replace("INT", "and").replace("!1 = !{}\n", "")
        head, body = first.split("define", 1)
        for text in (head + "define" + body + second, head + second + "define" + body):
            screened, read = both(module(text))
            assert screened == read, (new, screened, read)
            assert {one[:7] for one in screened} == ({code} if code else set()), (new, screened)
            if not code:
                judged.clear()
                assert all(passed(module(text), "7").values()), new
                assert len([one for one in judged if one and not one.isspace()]) == 12, (new, judged)


def test_comments_between_functions_are_passed_over_once():
    """However many semicolons and blanks are in them: each could be the end of one comment and the begin of another."""
    function = "define void @{}() {{\n  ret void\n}}\n"
    text = module(function.format("f") + "; a ; b ; c  \n" * 200 + "x\n" + function.format("g"))
    screened, read = both(text)
    assert screened == read and [one[:7] for one in read] == ["NVVM101"]


def test_functions_of_one_type_that_differ_in_byval_are_told_apart():
    line = "define void @{0}(i32* byval %p) {{\n  call void @{1}(i32* byval %p)\n  ret void\n}}\n"
    head = "declare void @v(i32* byval)\ndeclare void @p(i32*)\n"
    for first, second in (("v", "p"), ("p", "v"), ("v", "v")):
        text = module(
            head + line.format("f", first) + line.format("g", second).replace("ret", "br label %x\nx:\n  ret")
        )
        screened, read = both(text)
        assert screened == read and [one[:7] for one in read] == ["NVVM116"] * ("p" in (first, second))


def test_functions_in_a_function_that_does_not_end_are_not_passed_over():
    """Their heads are alike, and a later brace seems to end the first."""
    function = "define void @{}(i32 %a) {{\n  ret void\n}}\n"
    text = function.format("f") + function.format("g").replace("}\n", "") + function.format("h") + "}\n"
    for last in ("", function.format("i")):
        screened, read = both(module(text + last))
        assert screened == read and [one[:7] for one in read] == ["NVVM101"] * 2


def test_types_with_a_fault_inside_are_found_in_each_place():
    text = module("".join(f"define void @{n}(<2 x bfloat> %a) {{\n  ret void\n}}\n" for n in "fgh"))
    screened, read = both(text, dialect="7")
    assert screened == read and [one[:7] for one in read] == ["NVVM103"] * 3


def test_a_module_without_pointers_is_modern_if_something_in_it_is():
    text = module("define i32 @f(i32 %a) {\n  %b = add i32 %a, WORD\n  ret i32 %b\n}\n")
    for word, dialect, codes in (("undef", None, []), ("poison", None, []), ("poison", "7", ["NVVM103"])):
        screened, read = both(text.replace("WORD", word), dialect=dialect)
        assert screened == read and [one[:7] for one in read] == codes
