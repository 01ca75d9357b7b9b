"""Where PTX came from: lines of the `.ll`, or what the module itself says."""

import re

import numpy as np
import pytest

import ptxtools
from ptxtools.nvvm import Lowering, lower
from ptxtools.nvvm.lines import with_lines
from tests.rows import rows

#: A kernel with most that a line may have; the number in the comment is the line that the next instruction is on.
TEXT = """; kernel
target triple = "nvptx64-nvidia-cuda"
@s = private constant [2 x i8] c"; ", align 1 ; a string with what looks like a comment
define ptx_kernel void @k(ptr %p,
                          i32 %n) { ; 4: the head
start:
  %x = load i32, ptr %p, align 4 ; 7
  switch i32 %x, label %end [
    i32 1, label %one
    i32 2, label %"two; "
  ]
one: ; a label
  %y = call i32
      @f(i32 %x,
         i32 1)
  store i32 %y, ptr %p, align 4
  br label %end
"two; ":  store i16 7, ptr %p, align 4
  br label %end
end:
  ret void
}
define i32 @f(i32 %a, i32 %b) noinline {
  %c = add i32 %a,
    %b
  %d = mul i32 %c, %c
  ret i32 %d
}
define void @short() { ret void }
"""


def located(text):
    """The lines that `.loc` names."""
    return sorted({int(line) for line in re.findall(r"^\t\.loc\t1 (\d+) ", text, re.MULTILINE)} - {0})


def test_each_instruction_has_its_line():
    text = TEXT.replace("%y = call i32\n      @f(", "%y = call i32 @f(\n         ")
    ptx = lower(text, "k.ll")
    assert {7, 8, 13, 16, 18, 24, 26} <= set(located(ptx)) <= {7, 8, 13, 16, 17, 18, 19, 21, 24, 26, 27}
    assert '.file\t1 "k.ll"' in ptx
    assert located(lower(text, "k.ll", Lowering(locations=False))) == []


def test_a_text_in_which_they_would_be_wrong_is_lowered_without():
    assert with_lines(TEXT, "k.ll") != TEXT
    assert located(lower(TEXT, "k.ll")) == []


def test_several_instructions_in_a_line_are_lowered_without():
    body = "  %a = call i32 @g(i32 1) %b = call i32 @g(i32 %a)\n  ret i32 %b\n}\n"
    text = "define i32 @g(i32 %x) {\n  ret i32 %x\n}\ndefine i32 @k() {\n" + body
    assert located(lower(text)) == []


def test_broken_debug_information_is_an_error():
    with pytest.raises(ptxtools.PtxError, match=r"does not dominate all uses.*NVVM901"):
        lower(OWN.replace("%x = load", "%z = load").replace("one: ;", "one:\n  %x = add i32 1, 1\n ;"), "k.ll")


def test_a_trap_names_the_line():
    module = ptxtools.loads(TEXT.replace("\n      @f(", " @f("), "k.ll")
    device = ptxtools.Device(module.target)
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(module["k"], grid=1, block=1, args=[8, 0])
    assert (caught.value.source.file, caught.value.source.line) == ("k.ll", 7)
    assert caught.value.file == "k.ll(sm_90)"


OWN = (
    TEXT.replace("\n      @f(", " @f(").replace("align 4 ; 7", "align 4, !dbg !3").replace(") { ;", ") !dbg !2 { ;")
    + """
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!4}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, emissionKind: DebugDirectivesOnly)
!1 = !DIFile(filename: "saxpy.cu", directory: "/src")
!2 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 1, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!3 = !DILocation(line: 42, column: 7, scope: !2)
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !DISubroutineType(types: !6)
!6 = !{}
"""
)


def test_own_locations_survive():
    module = ptxtools.loads(OWN, "k.ll")
    device = ptxtools.Device(module.target)
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(module["k"], grid=1, block=1, args=[8, 0])
    assert (caught.value.source.file, caught.value.source.line) == ("/src/saxpy.cu", 42)


def test_full_debug_information_is_ptx_without_errors():
    ptx = lower(OWN.replace("DebugDirectivesOnly", "FullDebug"), "k.ll")
    assert ".section\t.debug_info" in ptx
    assert ptxtools.lint(ptx, select=["PTX1", "PTX2", "PTX3", "PTX4"]) == []
    module = ptxtools.loads(ptx)
    out = np.full(1, 1, np.int32)
    ptxtools.Device(module.target).launch(module["k"], grid=1, block=1, args=[out, 0])
    assert out[0] == 4


FLAGS = ["!llvm.module.flags = !{}\n", '!llvm.module.flags = !{!0}\n!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n']


@rows("flags", FLAGS)
def test_flags_of_the_module_stay(flags):
    text = "define void @k(ptr %p) {\n  store i32 1, ptr %p\n  ret void\n}\n" + flags
    placed = with_lines(text, 'a "b\\\u00e4.ll')
    assert placed.count("!llvm.module.flags") == 1 and r"a \22b\5C\C3\A4.ll" in placed
    assert located(lower(text)) == [2, 3]


def test_names_and_texts_without_functions():
    assert with_lines("@x = global i32 0\n", "x") == "@x = global i32 0\n"
    assert with_lines("define void @k() { ret void }\n", "x") == "define void @k() { ret void }\n"
