"""Both back ends agree bit for bit on every declared form; every form has a meaning."""

from __future__ import annotations

import re

import pytest

from ptxtools import isa, semantics
from ptxtools.isa import Opcode
from tests import share

from .agreement import compare
from .harness import COVERED_CHAPTERS, all_opcodes

# Where forms come by the thousand, one in so many is compared here; tools/sweep_semantics.py does all.
SHARES = {"comparison": 32, "conversion": 9, "video": 24}
# make test compares one in so many of those.
FEW = 4


def test_every_form_has_semantics() -> None:
    missing = sorted(op.text for op in all_opcodes() if semantics.find(op) is None)
    print("forms without semantics:", ", ".join(missing) or "none")
    assert not missing


def test_the_chapters_are_all() -> None:
    assert sorted({semantics.chapter_of(op) for op in all_opcodes()}) == list(COVERED_CHAPTERS)


def group(chapter: str) -> list[Opcode]:
    opcodes = [op for op in all_opcodes() if semantics.chapter_of(op) == chapter]
    return opcodes[:: SHARES.get(chapter, 1) * (1 if share.whole else FEW)]


@pytest.mark.parametrize("chapter", COVERED_CHAPTERS)
def test_back_ends_agree(chapter: str) -> None:
    differences = list(compare(group(chapter), 1024))
    assert not differences, "\n".join(map(str, differences[:20]))


@pytest.mark.share(2)
@pytest.mark.parametrize("features", [("avx", "avx2", "fma", "f16c"), ()], ids=["avx2", "plain"])
def test_code_for_other_cpus_agrees(features: tuple[str, ...]) -> None:
    """Those whose code depends on the CPU: conversions, directed rounding, halves, division, tables."""
    texts = """cvt.rn.f16.f32 cvt.f32.f16 cvt.rp.f32.s64 cvt.rz.f16.u64 cvt.rn.f32.u64 cvt.rni.s64.f32 cvt.rzi.u64.f64
        cvt.rmi.f64.f64 cvt.rn.satfinite.e4m3x2.f32 cvt.rn.f16x2.e5m2x2 fma.rm.f32 fma.rz.f64 add.rp.f64 div.rm.f32
        fma.rn.f16x2 fma.rn.bf16 add.f16x2 div.s32 div.u32 rem.s16 div.s64 rem.u64 mul.hi.s64 popc.b64 brev.b32 clz.b64
        lg2.approx.f32 sin.approx.f32 shf.r.clamp.b32 shl.b64 min.f32 max.NaN.f16x2 mad.wide.s32 fma.rn.f32"""
    differences = list(compare([isa.resolve(text) for text in texts.split()], 256, features))
    assert not differences, "\n".join(map(str, differences[:20]))


@pytest.mark.share(6)
@pytest.mark.parametrize("features", [("avx", "avx2", "fma", "f16c"), ()], ids=["avx2", "plain"])
@pytest.mark.parametrize("pattern", [r"(add|sub|mul|fma|div|rcp|sqrt)\..*r[zmp]\..*", r"cvt\..*[us](32|64)\.b?f\d+",
                                     r"cvt\.r[zmp]\..*b?f\d+\.[usbf]+\d+"])  # fmt: skip
def test_rounding_on_other_cpus_agrees(pattern: str, features: tuple[str, ...]) -> None:
    """Directed rounding, and conversions from floats to integers: each CPU has another way."""
    found = [op for op in all_opcodes() if re.fullmatch(pattern, op.text)][::2]
    assert len(found) > 40
    differences = list(compare(found, 512, features))
    assert not differences, "\n".join(map(str, differences[:20]))
