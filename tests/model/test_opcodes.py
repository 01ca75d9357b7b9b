"""Every instruction of PTX that accesses memory or orders accesses: modelled, or refused by name with its section."""

import re
from pathlib import Path

import pytest

from ptxtools import isa
from ptxtools.diagnostics import PtxError
from ptxtools.isa.index import CHAPTERS
from ptxtools.model.refusals import REASONS
from tests.model.suite import read

#: The sections whose instructions a litmus test may use, all of their forms or some.
MODELLED = {
    "9.7.9.8": "ld", "9.7.9.9": "ld.global.nc", "9.7.9.11": "st", "9.7.9.12": "st.async",
    "9.7.9.14": "multimem", "9.7.9.25.7.1": "multimem.cp.async.bulk", "9.7.9.25.7.2": "multimem.cp.reduce.async.bulk",
    "9.7.9.15": "prefetch", "9.7.9.25.3.1": "cp.async",
    "9.7.9.25.4.1": "cp.async.bulk", "9.7.9.25.4.2": "cp.reduce.async.bulk", "9.7.13.1": "bar", "9.7.13.2": "bar.warp",
    "9.7.13.3": "barrier.cluster", "9.7.9.25.5.2": "cp.async.bulk.tensor",
    "9.7.9.25.5.3": "cp.reduce.async.bulk.tensor", "9.7.9.26": "tensormap.replace",
    "9.7.15.5.2": "wgmma.mma_async", "9.7.15.7.1": "wgmma.fence", "9.7.15.7.2": "wgmma.commit_group",
    "9.7.15.7.3": "wgmma.wait_group", "9.7.13.13": "griddepcontrol", "9.7.13.16": "tensormap.cp_fenceproxy",
    "9.7.15.6.3": "wgmma.mma_async.sp", "9.7.16.8.3": "tcgen05.ld", "9.7.16.8.4": "tcgen05.st",
    "9.7.16.8.5": "tcgen05.wait", "9.7.16.9.2": "tcgen05.cp", "9.7.16.9.3": "tcgen05.shift",
    "9.7.16.10.9.1": "tcgen05.mma", "9.7.16.10.9.2": "tcgen05.mma.sp",
    "9.7.16.10.9.3": "tcgen05.mma.ws", "9.7.16.10.9.4": "tcgen05.mma.ws.sp",
    "9.7.16.11.1": "tcgen05.fence", "9.7.16.12.1": "tcgen05.commit",
    "9.7.13.4": "fence", "9.7.13.5": "atom", "9.7.13.6": "red", "9.7.13.7": "red.async",
}  # fmt: skip
#: Families without an address that order accesses of memory all the same.
ORDERING = ("bar", "barrier", "fence", "membar", "griddepcontrol", "tcgen05", "wgmma")
REFUSED = re.compile(r"is not modelled \(section ([\d.]+)\)|has no '\.|two memory orders"
                     r"|needs (a scope|'(\.relaxed)?\.sys')|names no operation"
                     r"|floating-point arithmetic is not modelled|is weak and has a scope"
                     r"|is volatile and has a scope")  # fmt: skip


def opcodes():
    """(section, opcode) of each form that has an address, once with all and once without optional modifiers."""
    for family in sorted(CHAPTERS):
        for form in isa.forms(family):
            if "[" not in form.syntax.partition(" ")[2] and family not in ORDERING:
                continue
            for whole in (False, True):
                for last in (False, True):
                    values = [e.values[-1 if last else 0] for e in form.elements if whole or not e.optional]
                    yield form.section, ".".join([family, *values])


def complaint(opcode):
    try:
        read(f"PTX t\n{{ x = 0; }}\nP0@cta 0,gpu 0 ;\n{opcode} ;\n")
    except PtxError as error:
        return error.diagnostics[0].message
    return ""


def test_nothing_that_accesses_memory_is_ignored():
    found, wrong, refused, used = set(opcodes()), [], 0, set()
    for section, opcode in sorted(found):
        message = complaint(opcode)
        if REFUSED.search(message):
            refused += 1
        elif section in MODELLED or section.startswith("9.7.13.15."):
            used.add(section)  # what is missing are its operands
            if message and not message.startswith("expected"):
                wrong.append((section, opcode, message))
        else:
            wrong.append((section, opcode, message))
    assert not wrong, wrong[:20]
    assert refused > 300 and used >= set(MODELLED)


def test_the_section_is_that_of_the_instruction():
    for opcode, section in (("tensormap.replace.tile.other.global.b1024.b32", "9.7.9.26"),
                            ("ldu.global.u32", "9.7.9.10"),
                            ("multimem.red.exch.global.f32", "9.7.9.14"), ("tex.1d.v4.u32.s32", "9.7.10.3"),
                            ("cp.async.bulk.prefetch.L2.global", "9.7.9.25.4.3")):  # fmt: skip
        assert f"'{opcode}' is not modelled (section {section})" in complaint(opcode)
    assert complaint("prefetch.global.L2 [x]") == ""
    assert complaint("frobnicate.x") == "'frobnicate.x' is not modelled"


def test_what_is_refused_says_why():
    """Each reason, by one instruction; and docs/memory-model.md names every family that has one."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "memory-model.md").read_text("utf-8")
    opcodes = ("multimem.cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.b128", "discard.global.L2",
               "tcgen05.alloc.cta_group::1.sync.aligned.b32",
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16", "shfl.sync.bfly.b32",
               "tex.1d.v4.u32.s32", "ldu.global.u32", "call",
               "applypriority.global.L2::evict_normal")  # fmt: skip
    reasons = set()
    for opcode in opcodes:
        with pytest.raises(PtxError) as refused:
            read(f"PTX t\n{{ x = 0; }}\nP0@cta 0,gpu 0 ;\n{opcode} ;\n")
        reasons.update(refused.value.diagnostics[0].help)
        assert f"`{opcode.split('.')[0]}" in page
    assert reasons == set(REASONS.values())
