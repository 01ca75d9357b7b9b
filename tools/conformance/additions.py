"""What each release from PTX 9.1 on brought, a probe each: at its version, at the one before, and at the newest.

`opcode` lines get operands that fit; other lines stand as they are, in a kernel or as a module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxtools import isa
from ptxtools.isa.targets import FIRST_VERSION, NEWEST, VERSIONS, Version, version_text

from .instructions import Probe
from .operands import operands, statement
from .setting import LINE, MODULE

TOPIC = "release"
_TMA = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_BYTES, _CHUNKS = "mbarrier::complete_tx::bytes", "mbarrier::complete_tx::16B"
_END = "mbarrier::report::fabric.relaxed.sys"
_T5 = "tcgen05.mma.cta_group::1.kind::"


class Addition(NamedTuple):
    """version, target: where it appears; text: an opcode, a statement (with `;`) or a module (with a line break)."""

    version: Version
    target: str
    text: str


_TABLE = {
    ((9, 1), "sm_80"): ("ld.volatile.local.b32", "st.volatile.local.b32"),
    ((9, 1), "sm_100f"): (
        "cvt.rn.satfinite.e2m3x2.f16x2", "cvt.rn.satfinite.e3m2x2.f16x2",
        "cvt.rn.satfinite.e2m1x2.bf16x2", "cvt.rn.satfinite.e2m3x2.bf16x2", "cvt.rn.satfinite.e3m2x2.bf16x2",
        "cvt.rn.satfinite.e4m3x2.bf16x2", "cvt.rn.satfinite.e5m2x2.bf16x2",
    ),
    ((9, 1), "sm_110f"): ("cvt.rn.satfinite.e4m3x2.bf16x2",),
    ((9, 1), "sm_120f"): ("cvt.rn.satfinite.e4m3x2.bf16x2",),
    ((9, 1), "sm_100a"): ("cvt.rn.satfinite.s2f6x2.f32",),
    ((9, 1), "sm_121a"): (
        "cvt.rn.satfinite.s2f6x2.f32",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
        ".f32.e2m1.e2m1.f32.ue8m0",
    ),
    ((9, 1), "sm_90"): (
        "multimem.cp.async.bulk.global.shared::cta.bulk_group",
        "multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
    ),
    ((9, 2), "sm_120f"): (
        "add.u8x4", "sub.s8x4", "min.u8x4", "max.s8x4", "neg.s8x4", "add.sat.u16x2", "add.sat.s16x2", "add.sat.u32",
    ),
    ((9, 2), "sm_100"): ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b128",),
    ((9, 2), "sm_90"): ("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob",),
    ((9, 2), "sm_100f"): ("cvt.rn.bf16x2.e4m3x2", "cvt.rn.bf16x2.e2m1x2", "cvt.rn.bf16x2.e3m2x2"),
    ((9, 2), "sm_80"): (".entry e() .language 1 { ret; }\n", ".func f() .language \"PTX\", 5 { ret; }\n"),
    ((9, 3), "sm_100"): ("clmad.lo.u64", "clmad.hi.u64",
        "multimem.st.async.release.gpu.global.b32", "multimem.red.async.release.gpu.global.add.u32"),
    ((9, 3), "sm_90"): (
        "cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128",
        "cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.u32",
        "multimem.cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128",
        "ld.mmio.acquire.sys.global.b32", "st.mmio.release.sys.global.b32",
        "mbarrier.test_wait.phase_type::primary.shared::cta.b64", "mbarrier.check_layout.layout::v0.shared::cta.b64",
    ),
    ((9, 3), "sm_100a"): (
        f"fabric.try_get.async.shared::cta.{_BYTES}.{_END}.b128 [%r1], [%r2, %rd1], %r3, [%r4];",
        f"fabric.try_put.async.shared::cta.{_CHUNKS}.{_END}.b128 [%r2, %rd1], [%r1], %r3, [%r4];",
        f"fabric.try_put.async.shared::cta.{_CHUNKS}.mbarrier::report::fabric.counted::bytes.relaxed.sys.b128"
        " [%r2, %rd1, %rd2], [%r1], %r3, [%r4];",
        f"fabric.try_red.async.shared::cta.{_CHUNKS}.{_END}.add.u32 [%r2, %rd1], [%r1], %r3, [%r4];",
        f"fabric.try_red.async.shared::cta.{_CHUNKS}.mbarrier::report::fabric.counted::bytes.relaxed.sys.add.u32"
        " [%r2, %rd1, %rd2], [%r1], %r3, [%r4];",
        "fence.proxy.fabric::generic.alias.release.sys", "fence.proxy.generic::fabric.alias.acquire.sys",
        f"fabric.try_pullred.async.multimem.shared::cta.{_BYTES}.{_END}.add.u32.sync"
        " [%r1], [%r2, %rd1], %r3, [%r4], 0xffffffff;",
        "fabric.submit", "fabric.submit.op_restrict::fetching", "fabric.wait.sync_restrict::reads",
        "mbarrier.init.layout::v1.shared::cta.b64",
    ),
    ((9, 4), "sm_107f"): (
        "set.eq.u8x4", "set.lt.s16x2", "cvt.rn.satfinite.ue5m3x2.f32", "cvt.rn.satfinite.pzo.e4m3x2.f32",
        "cvt.rz.satfinite.e4m3x2.f32", "add.rz.f32x2.f16x2.f32x2",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b",
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs::w.bulk_group",
        f"{_TMA}.override::global_address", f"{_TMA}.override::global_address.override::global_dim",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.override::global_address"
        ".override::global_dim_stride",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group.override::global_address",
        "cp.async.bulk.prefetch.tensor.1d.L2.global.tile.override::global_address",
        f"{_TMA}.mbarrier::report::validity::per_16bytes::8",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.mbarrier::report::disabled",
        "cp.async.bulk.prefetch.L2.global.L2::evict_last",
        "applypriority.async.bulk.global.bulk_group.L2::evict_normal",
        "applypriority.async.bulk.tensor.1d.global.tile.bulk_group.L2::evict_normal",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.sync_restrict::shared::read::mma::a.b64",
        f"{_T5}ti16", f"{_T5}f16.collector::b::fill", f"{_T5}f8f6f4.decompress::lut::b",
        "cvt.rn.satfinite.scaled::n1::ue8m0.e2m1x2.f32 %b1, %f2, %f3, %b4;",
        "ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4",
        f"fabric.try_get.async.tensor.2d.shared::cta.tile.{_BYTES}.{_END}.override::global_address.b128"
        " [%r1], [%rd2, %r3, %rd4, {%r4, %r5}], [%r6];",
        f"fabric.try_put.async.tensor.multimem.2d.shared::cta.tile.{_CHUNKS}.{_END}.override::global_address"
        ".override::global_dim_stride.b128 [%rd2, %r3, %rd4, {%b1, %b2}, {%r1}, %h1, {%r4, %r5}], [%r6], %r7, [%r8];",
        f"fabric.try_put.async.tensor.1d.shared::cta.{_CHUNKS}.mbarrier::report::fabric.counted::bytes"
        ".override::global_address.b128 [%rd2, %r3, %rd4, %rd5, {%r4}], [%r6], %r7, [%r8];",
        f"fabric.try_red.async.tensor.5d.shared::cta.tile.{_CHUNKS}.{_END}.override::global_address.xor"
        " [%rd2, %r3, %rd4, {%r1, %r2, %r3, %r4, %r5}], [%r6], %r7, [%r8];",
    ),
    ((9, 4), "sm_107a"): (
        "spcompress.b8.b2.sp::2:4.x1 {%r1}, {%r2}, {%r3, %r4}, %r5;", "spdecompress.b8.b4.sp::1:8.x4",
        "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 {%r1}, {%r2, %r3}, [%r4];",
        "tcgen05.ld.red.spcompress.sync.aligned.32x32b.x4.min.sp::2:4.abs.NaN.f32.b2 {%r1}, {%r2, %r3}, %f1, [%r4];",
        "tcgen05.shift.cta_group::1.down", "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale",
        "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 4;",
    ),
    ((9, 4), "sm_100a"): (
        "add.e4m3x4.e4m3x4", "tcgen05.alloc.cta_group::1.sync.aligned.exclusive.shared::cta.b32",
        f"fabric.try_atom.async.shared::cta.{_CHUNKS}.{_END}.cas.b64 [%r1, %rd1], [%r2], [%r3], [%r4];",
    ),
    ((9, 4), "sm_100"): ("createpolicy.range.fabric.L2::evict_last.b64 %rd1, [%r1, %rd2], 128, %r3;",),
    ((9, 4), "sm_90"): (
        "prefetch.global.L1::32B.valid_addr", "atom.global.add.noftz.f32", "red.global.add.noftz.f32",
        "ld.global.b32.proxy::readonly", "fence.proxy.alias.acquire.sys", "fence.proxy.alias.release.sys",
        "fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster",
    ),
    ((9, 4), "sm_80"): (
        ".entry e() .minperctamemory 64 { .reg .b32 r; mov.u32 r, %perctamemorysize; ret; }\n",
        ".entry e() .minperctamemory 64 { .reg .b64 r; mov.u64 r, %perctamemoryoffset; ret; }\n",
        ".func f() { .loc_intermediate 1 1 1 ret; }\n", ".nv_intermediate_source_section { }\n",
    ),
    ((9, 5), "sm_100a"): ("fabric.submit.commit_group", "fabric.wait.sync_restrict::reads 1;"),
}  # fmt: skip
ADDITIONS = [Addition(*key, text) for key, texts in _TABLE.items() for text in texts]


def line_of(addition: Addition) -> tuple[str, str]:
    """Its place and its text, with operands."""
    if "\n" in addition.text:
        return MODULE, addition.text.rstrip("\n")
    if addition.text.endswith(";"):
        return LINE, addition.text
    op = isa.resolve(addition.text)
    return LINE, statement(op.text, operands(op))


def settings(addition: Addition) -> list[str]:
    """Where it is asked: where it appears, a version before if the target is known there, and at the newest version."""
    before = VERSIONS[VERSIONS.index(addition.version) - 1]
    found = [addition.version, *([before] if FIRST_VERSION[addition.target] <= before else []), NEWEST]
    return list(dict.fromkeys(f"{version_text(version)}/{addition.target}" for version in found))


def probes() -> Iterator[Probe]:
    """All of them."""
    for addition in ADDITIONS:
        place, text = line_of(addition)
        for setting in settings(addition):
            yield Probe(setting, place, TOPIC, text)
