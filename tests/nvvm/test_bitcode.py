"""Bitcode: what it says of itself, damaged or not, and that it is lowered like its text."""

import random
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import pytest

import ptxtools
from ptxtools.cli.lint import command as lint_command
from ptxtools.nvvm import Lowering, lower
from ptxtools.nvvm.bitcode import BitcodeError, facts_of
from ptxtools.nvvm.bitcode.module import disassembled
from ptxtools.nvvm.lint import findings_in
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata" / "nvvm"
TYPED, OPAQUE = [(8, [0, 1])], [(25, [1])]


class Bits:
    """Writes a bitstream without abbreviations."""

    def __init__(self):
        self.value = self.count = 0

    def fixed(self, value, width):
        self.value |= value << self.count
        self.count += width

    def vbr(self, value, width):
        while value >> (width - 1):
            self.fixed(value & ((1 << (width - 1)) - 1) | 1 << (width - 1), width)
            value >>= width - 1
        self.fixed(value, width)

    def align(self):
        self.count = (self.count + 31) // 32 * 32

    def block(self, number, *parts):
        """A block of records (code, operands) and of blocks, which are functions."""
        self.fixed(1, 2)
        self.vbr(number, 8)
        self.vbr(2, 4)
        self.align()
        size_at = self.count
        self.fixed(0, 32)
        for part in parts:
            if callable(part):
                part(self)
            else:
                code, operands = part
                self.fixed(3, 2)
                for value in (code, len(operands), *operands):
                    self.vbr(value, 6)
        self.fixed(0, 2)
        self.align()
        self.value |= (self.count - size_at - 32) // 32 << size_at

    def bytes(self):
        return b"BC\xc0\xde" + self.value.to_bytes(self.count // 8, "little")


def bitcode(types, producer="LLVM7.0.1", tail=()):
    """A module with a table of types, and records behind it."""
    bits = Bits()
    bits.block(13, (1, list(producer.encode())), (2, [0]))
    group = (3, [1, 1 << 31, 3, *b"cold-path\0", 4, *b"target-cpu\0", *b"sm_80\0", 1, 1, 8, 0, 5, 3, *b"last\0"])
    table = [(1, [2 + len(types)]), (7, [32]), (2, []), *types]
    bits.block(8, (1, [1]), lambda b: b.block(10, group), lambda b: b.block(17, *table),
               (2, list(b"nvptx64-nvidia-cuda")), (16, list(b"k.cu")), *tail)  # fmt: skip
    return bits.bytes()


def test_facts():
    facts = facts_of(bitcode(TYPED))
    assert (facts.producer, facts.triple, facts.source) == ("LLVM7.0.1", "nvptx64-nvidia-cuda", "k.cu")
    assert facts.attributes == {"cold-path", "target-cpu", "last"}
    assert facts.typed and not facts.opaque and facts.dialect == "7"
    assert facts_of(bitcode(OPAQUE)).dialect == "modern"
    assert [facts_of(bitcode([], f"LLVM{v}")).dialect for v in ("14.0.6", "15.0.0", "18.1.8")] == [
        "7",
        "modern",
        "modern",
    ]


def test_a_wrapper_is_passed_over():
    inner = bitcode(TYPED)
    head = b"".join(n.to_bytes(4, "little") for n in (0x0B17C0DE, 0, 20, len(inner), 7))
    assert facts_of(head + inner + b"pad").producer == "LLVM7.0.1"
    with pytest.raises(BitcodeError, match="past the file"):
        facts_of(head + inner[:-8])


def test_damage_is_an_error_and_nothing_else():
    """Bytes that are changed, dropped and inserted; the seed is fixed."""
    draw, refused = random.Random(1), 0
    whole = bitcode(TYPED)
    for _ in range(800):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(4, len(data))
            data[at : at + draw.randint(0, 2)] = draw.randbytes(draw.randint(0, 3))
        try:
            facts_of(bytes(data))
        except BitcodeError:
            refused += 1
    assert 200 < refused < 800


def test_llvm_reads_the_same():
    """LLVM's own bitcode has abbreviations; it is lowered as the text is."""
    text = (DATA / "kernels18.ll").read_text()
    data = llvm.parse_assembly(text).as_bitcode()
    facts = facts_of(data)
    assert facts.producer.startswith("LLVM") and facts.dialect == "modern" and facts.source == "kernels18"
    assert facts.triple == "nvptx64-nvidia-cuda" and "nvvm.maxntid" in facts.attributes
    assert lower(data) == lower(text, how=Lowering(locations=False))
    with pytest.raises(ptxtools.PtxError, match="NVVM901") as caught:
        lower(data[: len(data) // 2 & ~3], "k.bc")
    (finding,) = caught.value.diagnostics
    assert finding.file == "k.bc" and finding.help[-1].startswith("the bitcode is damaged: ")


# --- the rules --------------------------------------------------------------------------------------------------------

#: What LLVM's disassembler upgrades or drops, and the records still have.
STRICTER = {
    ("function attributes", "7"): (["NVVM221"], []),  # "null-pointer-is-valid" became a word of its own
    ("elements of a splat", "modern"): (["NVVM101"], []),  # bitcode has all elements
    ("zeroext of a float", "modern"): ([], ["NVVM118"]),  # attributes that do not fit are dropped
}


@cache
def recorded():
    """(name, dialect, codes, bitcode) of the cases that LLVM assembles."""
    rows = [line.split(" | ") for line in (DATA / "bitcode.txt").read_text().splitlines()[1:]]
    with tarfile.open(DATA / "bitcode.tar.xz") as archive:
        members = [archive.extractfile(member).read() for member in archive]
    return [(name, dialect.rstrip(" |"), codes[0].split() if codes else [], data)
            for (name, dialect, *codes), data in zip(rows, members, strict=True)]  # fmt: skip


@rows("name, dialect, codes, data", recorded, ids=lambda value: value if isinstance(value, str) else "", share=4)
def test_bitcode_is_held_against_the_rules_as_its_text(name, dialect, codes, data):
    """Recorded by tools/nvvm_bitcode.py: the findings in LLVM's own disassembly."""
    lost, kept = STRICTER.get((name, dialect), ([], []))
    found = Counter(one.code for one in findings_in(data, name, dialect=dialect))
    assert found == Counter(codes) - Counter(lost) + Counter(kept)


def test_both_dialects_are_recorded():
    assert Counter(dialect for _, dialect, _, _ in recorded()) == {"7": 162, "modern": 175}


def test_llvm_reads_what_is_written():
    """The text that the rules see is LLVM's assembly, and says the same."""
    module = llvm.parse_assembly((DATA / "kernels18.ll").read_text())
    again = llvm.parse_assembly(disassembled(module.as_bitcode()).text)
    theirs, mine = (
        [str(one).strip() for function in each.functions for block in function.blocks for one in block.instructions]
        for each in (module, again)
    )
    assert theirs == mine and len(theirs) > 60


#: Nodes as LLVM 7 writes them (flags, then fields; nodes and strings counted from 1), and their texts.
OLD_NODES = [
    ((16, [0, 1, 2, 0, 0]), '!DIFile(filename: "f", directory: "d")'),
    ((20, [1, 12, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0]),
     "distinct !DICompileUnit(language: 12, file: !0, isOptimized: false, runtimeVersion: 0, emissionKind: 1, "
     "gnuPubnames: true)"),
    ((21, [3, 4, 1, 0, 4, 7, 0, 1, 1, 8, 0, 0, 0, 256, 0, 5, 0, 0, 0, 0, 0]),
     'distinct !DISubprogram(scope: !0, name: "f", file: !0, line: 7, isLocal: true, isDefinition: true, scopeLine: 8, '
     "flags: 256, isOptimized: false, unit: !1)"),
    ((7, [0, 9, 3, 5, 0, 0]), "!DILocation(line: 9, column: 3, scope: !2)"),
    ((15, [0, 36, 1, 32, 0, 5]), '!DIBasicType(tag: 36, name: "f", size: 32, encoding: 5)'),
    ((17, [0, 15, 0, 0, 0, 0, 8, 64, 0, 0, 0, 0, 2]),
     "!DIDerivedType(tag: 15, baseType: !4, size: 64, dwarfAddressSpace: 1)"),
    ((14, [2, 7, 1]), '!DIEnumerator(isUnsigned: true, value: -3, name: "f")'),
    ((13, [2, 3, 4]), '!DISubrange(count: !"d2", lowerBound: 2)'),
    ((27, [2, 4, 1, 0, 4, 3, 8, 0, 1, 0, 32]),
     '!DIGlobalVariable(scope: !0, name: "f", file: !0, line: 3, type: !4, isLocal: false, isDefinition: true, '
     "align: 32)"),
    ((28, [2, 6, 1, 4, 3, 8, 1, 0, 0]),
     '!DILocalVariable(scope: !2, name: "f", file: !0, line: 3, type: !4, arg: 1)'),
]  # fmt: skip


def test_nodes_of_llvm_7_have_their_fields():
    strings = [(1, list(b"f")), (1, list(b"d")), (1, list(b"d2"))]
    data = bitcode(TYPED, tail=[lambda b: b.block(15, *strings, *(record for record, _ in OLD_NODES))])
    lines = [line.partition(" = ")[2] for line in disassembled(data).text.split("\n") if line[:1] == "!"]
    assert lines == [text for _, text in OLD_NODES]
    faults = [one.message for one in findings_in(data, "k.bc") if one.code == "NVVM432"]
    assert faults == []
    wrong = bitcode(TYPED, tail=[lambda b: b.block(15, *strings, OLD_NODES[0][0], (7, [0, 9, 70000, 3, 0, 0]))])
    assert [one.message for one in findings_in(wrong, "k.bc") if one.code == "NVVM432"] == [
        "'column' of DILocation is a number of 16 bits, not 70000"
    ]


def test_records_of_debugging_stand_before_their_instructions():
    """LLVM writes them behind."""
    text = (DATA / "kernels18.ll").read_text().partition("define")[0]
    text += """declare void @llvm.dbg.value(metadata, metadata, metadata)
define void @f(i32 %x) !dbg !4 {
  call void @llvm.dbg.value(metadata i32 %x, metadata !5, metadata !DIExpression()), !dbg !6
  ret void, !dbg !6
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!7}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a", directory: "/")
!2 = !DISubroutineType(types: !{null})
!4 = distinct !DISubprogram(name: "f", file: !1, line: 1, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!5 = !DILocalVariable(name: "x", scope: !4, file: !1, line: 1)
!6 = !DILocation(line: 1, column: 2, scope: !4)
!7 = !{i32 1, !"Debug Info Version", i32 3}
"""  # fmt: skip
    found = findings_in(llvm.parse_assembly(text).as_bitcode(), "k.bc", dialect="modern")
    assert [(one.file, one.code) for one in found if one.file != "k.bc"] == [("k.bc(@f)", "NVVM301")]
    assert all("#dbg_value" in one.message for one in found if one.code == "NVVM301")


def test_findings_name_function_instruction_and_source(tmp_path, capsys):
    path = tmp_path / "k.bc"
    path.write_bytes(llvm.parse_assembly((DATA / "triton_style.ll").read_text()).as_bitcode())
    assert lint_command.main([str(path), "--select", "NVVM230"], standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert f"{path}(@add_kernel):9:" in said and "ld.global.b32 { $0 }, [ $1 + 0 ];" in said
    assert "source: add.py:15" in said and "in 1 file." in said


def test_damaged_bitcode_has_findings_and_no_traceback():
    """Bits that are flipped, bytes that are dropped or inserted, ends that are missing; the seed is fixed."""
    draw, seen = random.Random(7), Counter()
    texts = [data for _, _, _, data in recorded()]
    for _ in range(160):
        data = bytearray(draw.choice(texts))
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(4, len(data))
            kind = draw.random()
            if kind < 0.6:
                data[at] ^= 1 << draw.randrange(8)
            elif kind < 0.9:
                data[at : at + draw.randint(0, 4)] = draw.randbytes(draw.randint(0, 4))
            else:
                data = data[: max(at, 8)]
        found = findings_in(bytes(data), "k.bc")
        assert all(one.message and one.file and one.line > 0 and one.column > 0 for one in found)
        seen["NVVM102" in {one.code for one in found}] += 1
    assert seen[True] > 20 and seen[False] > 20


def test_globals_whose_names_are_missing_are_damage():
    for record in ((7, [0]), (8, []), (12, [1])):
        with pytest.raises(BitcodeError, match="too short"):
            disassembled(bitcode([], tail=[(1, [2]), record]))


def test_records_that_would_never_end_are_refused():
    """A type and a constant that contain the one before twice, forty times over; a type in itself."""
    wide = [(18, [0, n + 2, n + 2]) for n in range(40)]  # i32 and void come first
    with pytest.raises(BitcodeError, match="too large"):
        disassembled(bitcode([(8, [0, 0]), *wide], tail=[(7, [42, 3, 0, 0, 0, 0])]))
    with pytest.raises(BitcodeError, match="contains itself"):
        disassembled(bitcode([(18, [0, 2])], tail=[(7, [2, 3, 0, 0, 0, 0])]))
