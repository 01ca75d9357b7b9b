"""Bitcode: what it says of itself, damaged or not, and that it is lowered like its text."""

import random
from pathlib import Path

import llvmlite.binding as llvm
import pytest

import ptxtools
from ptxtools.nvvm import Lowering, lower
from ptxtools.nvvm.bitcode import BitcodeError, facts_of

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


def bitcode(types, producer="LLVM7.0.1"):
    """An empty module with a table of types."""
    bits = Bits()
    bits.block(13, (1, list(producer.encode())), (2, [0]))
    group = (3, [1, 1 << 31, 3, *b"cold-path\0", 4, *b"target-cpu\0", *b"sm_80\0", 1, 1, 8, 0, 5, 3, *b"last\0"])
    table = [(1, [2 + len(types)]), (7, [32]), (2, []), *types]
    bits.block(8, (1, [1]), lambda b: b.block(10, group), lambda b: b.block(17, *table),
               (2, list(b"nvptx64-nvidia-cuda")), (16, list(b"k.cu")))  # fmt: skip
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
