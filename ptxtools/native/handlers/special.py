"""Special registers (chapter 10)."""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.program.details import SpecialRegister
from ptxtools.semantics.algebra import Value

_PER_LANE = {"%tid.x": "warp.tid_x", "%tid.y": "warp.tid_y", "%tid.z": "warp.tid_z"}
_SHARED = {
    "%ntid.x": "ctx.block_x", "%ntid.y": "ctx.block_y", "%ntid.z": "ctx.block_z",
    "%nctaid.x": "ctx.grid_x", "%nctaid.y": "ctx.grid_y", "%nctaid.z": "ctx.grid_z",
    "%warpid": "warp.id",
}  # fmt: skip
_OF_CTA = {"%ctaid.x": "cta.x", "%ctaid.y": "cta.y", "%ctaid.z": "cta.z", "%smid": "cta.smid"}
#: Masks of lanes compared with one's own: bits of lane number i are `base` shifted left by i, inverted or not.
_LANE_MASKS = {"eq": (1, False), "le": (0xFFFFFFFE, True), "lt": (0xFFFFFFFF, True), "ge": (0xFFFFFFFF, False),
               "gt": (0xFFFFFFFE, False)}  # fmt: skip
#: Virtual clock cycles and nanoseconds of one record.
_CYCLES_PER_RECORD = 4


def special_register(h: Handler) -> None:
    """dst[0] = the register that the detail names."""
    name = h.op.of(SpecialRegister).name
    h.results([value(h, name, h.op.dst_types[0])])


def value(h: Handler, name: str, t: str) -> Value:
    """The register as a value of a type."""
    found = _value(h, name, t)
    if t.endswith("16"):  # %tid and its kin as in PTX 1.x
        found = h.code.value(f"trunc <32 x i32> {found} to <32 x i16>")
    return found


def _value(h: Handler, name: str, t: str) -> Value:
    wide = "64" in t
    if name in _PER_LANE:
        return h.code.field(_PER_LANE[name])
    if name == "%laneid":
        return h.code.value("load <32 x i32>, ptr @lane_numbers")
    if name in _SHARED:
        return h.code.spread("i32", h.code.field(_SHARED[name]))
    if name in _OF_CTA:
        return h.code.spread("i32", h.code.field(_OF_CTA[name], h.code.field("warp.cta")))
    if ("cluster" in name and name.count(".") == 1) or name == "%cluster_ctarank":
        return h.code.spread("i32", _cluster(h, name))
    if name == "%cta_window":
        return h.code.spread("i64", h.code.field("cta.window", h.code.field("warp.cta")))
    if name.startswith("%lanemask_"):
        return _lane_mask(h, name.removeprefix("%lanemask_"))
    if name.startswith(("%clock", "%globaltimer")):
        return _time(h, name)
    return _from_table(h, wide)


def _cluster(h: Handler, name: str) -> str:
    """Place of the CTA in its cluster, or of the cluster in the grid (10.11 and on)."""
    base, _, axis = name.partition(".")
    e, cta = h.code, h.code.field("warp.cta")
    if base == "%cluster_ctarank":
        x, y, z = (_cluster(h, f"%cluster_ctaid.{axis}") for axis in "xyz")
        rows = e.value(f"add i32 {e.value(f'mul i32 {z}, ' + h.code.field('ctx.cluster_y'))}, {y}")
        return e.value(f"add i32 {e.value(f'mul i32 {rows}, ' + h.code.field('ctx.cluster_x'))}, {x}")
    size = h.code.field(f"ctx.cluster_{axis}")
    if base == "%nclusterid":
        return e.value(f"udiv i32 {h.code.field(f'ctx.grid_{axis}')}, {size}")
    if base == "%cluster_nctaid":
        return size
    instruction = "urem" if base == "%cluster_ctaid" else "udiv"
    return e.value(f"{instruction} i32 {h.code.field(f'cta.{axis}', cta)}, {size}")


def _lane_mask(h: Handler, relation: str) -> Value:
    base, inverted = _LANE_MASKS[relation]
    lanes = h.code.value("load <32 x i32>, ptr @lane_numbers")
    mask = h.algebra.shl("u32", h.algebra.const("u32", base), lanes)
    return h.algebra.not_("u32", mask) if inverted else mask


def _time(h: Handler, name: str) -> Value:
    """Virtual time: what this worker has executed, plus one for each look at the clock."""
    left = h.code.field("ctx.slice")
    spent = h.code.value(f"sub i32 {left}, 1")
    h.code.expand(f"set ctx.slice, {spent}")
    h.code.expand("set ctx.timed, 1")
    given = h.code.field("ctx.given")
    used = h.code.value(f"sub i64 {given}, {h.code.value(f'sext i32 {spent} to i64')}")
    records = h.code.value(f"add i64 {h.code.field('ctx.clock')}, {used}")
    cycles = h.code.value(f"mul i64 {records}, {_CYCLES_PER_RECORD}")
    if name.startswith("%globaltimer"):
        cycles = h.code.value(f"add i64 {cycles}, {h.code.field('ctx.epoch')}")
    if name.endswith("_hi"):
        cycles = h.code.value(f"lshr i64 {cycles}, 32")
    if name in ("%clock64", "%globaltimer"):
        return h.code.spread("i64", cycles)
    return h.code.spread("i32", h.code.value(f"trunc i64 {cycles} to i32"))


def _from_table(h: Handler, wide: bool) -> Value:
    """A value that the launch supplies; the record's constant is its place in the table."""
    table = h.code.field("ctx.specials")
    place = h.code.field("rec.imm")
    value = h.code.value(f"load i64, ptr {h.code.value(f'getelementptr i64, ptr {table}, i64 {place}')}")
    if h.op.dst_types[0] == "pred":
        return h.algebra.is_nonzero("u64", h.code.spread("i64", value))
    return h.code.spread("i64", value) if wide else h.code.spread("i32", h.code.value(f"trunc i64 {value} to i32"))
