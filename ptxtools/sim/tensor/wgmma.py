"""wgmma: products of warpgroups (9.7.15).

Each of the four warps computes its 16 rows when it executes the instruction, which is one of the moments that the
manual allows. An instruction is first executed here; then the engine may take it over (`Products.take_over_product`).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from ptxtools.diagnostics import Cause
from ptxtools.isa.descriptors import DescriptorError
from ptxtools.machine.claims import Claim, Span, announce
from ptxtools.machine.events import View, serves
from ptxtools.machine.issued import WARPS
from ptxtools.machine.products import PAIRS, Metadata, Numbers, WarpgroupProduct
from ptxtools.program.details import NamedOperands
from ptxtools.records import dataclass
from ptxtools.semantics.accumulation import Rule, Sum, rule_of
from ptxtools.semantics.fragments import sparse_elements

from . import arranged, shared, sparse
from .issued import issued
from .numbers import BITS, Array, unpack_bits
from .operands import has, number, place, registers, set_registers, slots
from .wgmma_groups import Warpgroup, records, warpgroup_of

_ROWS = 16
#: Bytes of a lane's part of a register.
_LANE_BYTES = 4
#: Instructions whose B is kept for the other warps; it may be read again.
_KEPT = 4


@dataclass(frozen=True)
class Plan:
    """An instruction wgmma.mma_async with its immediate operands.

    k: logical columns of A; stored: columns of A in memory; negated: the product's sign changes; transposed: letters
    of the matrices that are MN-major; in_memory: A is in shared memory.
    """

    n: int
    k: int
    stored: int
    atype: str
    btype: str
    dtype: str
    saturate: bool
    negated: bool
    transposed: str
    sparse: bool
    in_memory: bool

    @property
    def whole(self) -> bool:
        """Whether it multiplies whole numbers."""
        return self.dtype == "s32"

    def rule(self, numerics: str) -> Rule:
        return rule_of(Sum("wgmma", self.atype, self.dtype, self.k, self.sparse), numerics)


def plan_of(view: View) -> Plan:
    named = view.op.of(NamedOperands)
    found: Plan | None = named.known.get("plan")
    if found is None:
        op = view.op.opcode
        assert op is not None
        _, n, k = (int(part) for part in re.findall(r"\d+", op.mods["shape"]))
        atype, dtype = op.mods["atype"], op.mods["dtype"]
        is_sparse = "sp_meta" in named.sources
        negated = dtype != "s32" and _signed(view, "imm_scale_a") * _signed(view, "imm_scale_b") < 0
        transposed = "".join(
            which for which in "ab" if has(view, name := f"imm_trans_{which}") and number(view, name, view.leader)
        )
        found = named.known["plan"] = Plan(
            n, k, k // 2 if is_sparse else k, atype, op.mods["btype"], dtype, op.has("satfinite"), negated,
            transposed, is_sparse, has(view, "a_desc"),
        )  # fmt: skip
    return found


# --- fragments (9.7.15.5.1) -------------------------------------------------------------------------------------------


def accumulator_rows(values: Array, half: bool) -> Array:
    """A warp's 16 rows of D, 16 x N, from its registers (x 32 lanes)."""
    if half:
        parts = values.view(np.uint16).reshape(-1, 2, 8, 4, 2)  # tile, lower rows, row, pair, column
        return parts.transpose(1, 2, 0, 3, 4).reshape(_ROWS, -1)
    parts = values.reshape(-1, 2, 2, 8, 4)  # tile, lower rows, column, row, pair
    return parts.transpose(1, 3, 0, 4, 2).reshape(_ROWS, -1)


def accumulator_registers(rows: Array) -> Array:
    """The registers of a warp for 16 x N results of 16 or 32 bits."""
    parts = rows.reshape(2, 8, -1, 4, 2)  # lower rows, row, tile, pair, column
    if rows.dtype.itemsize == 2:
        packed = np.ascontiguousarray(parts.transpose(2, 0, 1, 3, 4))
        return packed.view(np.uint32).reshape(-1, 32)
    return np.ascontiguousarray(parts.transpose(2, 0, 4, 1, 3)).view(np.uint32).reshape(-1, 32)


def factor_rows(values: Array, bits: int) -> Array:
    """A warp's 16 rows of A from its four registers: bytes (of 1-bit elements, too), u16 or u32."""
    dtype = {16: np.uint16, 32: np.uint32}.get(bits, np.uint8)
    parts = np.ascontiguousarray(values).view(dtype).reshape(2, 2, 8, 4, -1)  # half of K, lower rows, row, place
    return np.ascontiguousarray(parts.transpose(1, 2, 0, 3, 4)).reshape(_ROWS, -1)


@lru_cache(64)
def sparse_places(t: str, k: int, selector: int) -> Metadata:
    """Where a warp's metadata is, in the register of its lanes."""
    found = sparse_elements(BITS[t], _ROWS, k, selector)
    lane, bit, base = (np.array([getattr(e, name) for e in found], np.int32) for name in ("lane", "bit", "base"))
    words, bits, bases = (m.reshape(1, _ROWS, k // 2).transpose(0, 2, 1) for m in (_LANE_BYTES * lane, bit, base))
    return Metadata(words, bits, bases, found[0].step, found[0].half)


def sparse_columns(t: str, k: int, selector: int, metadata: Array) -> Array:
    """Logical columns of a warp's stored rows, 16 x K/2, from the metadata registers of its lanes."""
    places = sparse_places(t, k, selector)
    words = metadata[places.words // _LANE_BYTES]
    values = (words >> places.bit.astype(np.uint32) & np.uint32(3)).astype(np.intp) >> int(places.half)
    columns: Array = (places.base + values * places.step)[0].T
    return columns


def _metadata(view: View, plan: Plan) -> tuple[Metadata, int]:
    """Places of a warp's metadata, and the slot of its register."""
    (slot,) = slots(view, "sp_meta")
    return sparse_places(plan.atype, plan.k, number(view, "sp_sel", view.leader)), int(slot)


# --- the product ------------------------------------------------------------------------------------------------------


@serves("wgmma.mma_async")
def product(view: View) -> None:
    """One warp's part of an instruction (9.7.15.5.2, 9.7.15.6.3); in late runs until somebody waits for it."""
    group, warp = warpgroup_of(view)
    plan, everybody = plan_of(view), records(view)
    issue = everybody[warp].issued
    key = number(view, "b_desc", view.leader) | shared.layout_bit("b" in plan.transposed)
    if any(record.key_of(issue) not in (None, key) for record in everybody):
        raise view.trap("the warps of the warpgroup have different descriptors or layouts of B", cause=Cause.COLLECTIVE)
    everybody[warp].issue(key)
    told = view.launch.observers is not None and view.launch.observers.hear_warpgroups
    claim = announce(view, view.leader, "wgmma.mma_async", lambda: _spans(view, plan)) if told else None
    if view.launch.late and (group.late[warp] or view.schedule.lags()):
        later = issued(view, slots(view, "d"))
        group.late[warp].append(lambda: _finish(later, plan, group, issue, claim))
        return
    group.executed[warp] = issue + 1
    _finish(view, plan, group, issue, claim)
    if not told:
        launch = view.launch
        launch.products.take_over_product(view, lambda: _written(view, plan), plan.rule(launch.numerics))


def _written(view: View, plan: Plan) -> WarpgroupProduct:
    """The instruction as written, for the engine that takes it over."""
    a = place(view, "a_desc") if plan.in_memory else slots(view, "a")
    b, scale = place(view, "b_desc"), place(view, "scale_d")
    assert a is not None
    assert b is not None
    assert scale is not None
    return WarpgroupProduct(
        plan.n, plan.k, plan.atype, plan.btype, plan.dtype, plan.saturate, plan.negated, slots(view, "d"), a, b, scale,
        ("a" in plan.transposed, "b" in plan.transposed), shared.layout_bit("b" in plan.transposed),
        _metadata(view, plan) if plan.sparse else None, lambda which, code: places(plan, which, code),
    )  # fmt: skip


def places(plan: Plan, which: str, code: int) -> tuple[Array, int]:
    """Offsets of a matrix's chunks from the multiple of 1024 bytes below its address, and the end of the last."""
    mn, k, t = (WARPS * _ROWS, plan.stored, plan.atype) if which == "a" else (plan.n, plan.k, plan.btype)
    found = arranged.chunk_offsets(
        shared.warpgroup_descriptor(code), mn, k, BITS[t], mn_major=which in plan.transposed,
        order=PAIRS if which == "b" else None,
    )  # fmt: skip
    return found.offsets, found.end


def _finish(view: View, plan: Plan, group: Warpgroup, issue: int, claim: Claim | None) -> None:
    _execute(view, plan, group, issue)
    if claim is not None:
        claim.end()


def reads(view: View) -> list[Span]:
    """The matrices in shared memory that an instruction reads."""
    return _spans(view, plan_of(view))


def _spans(view: View, plan: Plan) -> list[Span]:
    """The matrices in shared memory, which are being read until the group is waited for."""
    lane, found = view.leader, list[Span]()
    for which, t, mn, k in (("a", plan.atype, WARPS * _ROWS, plan.stored), ("b", plan.btype, plan.n, plan.k)):
        if has(view, f"{which}_desc"):
            descriptor = shared.warpgroup_descriptor(number(view, f"{which}_desc", lane))
            mn_major = which in plan.transposed
            found.append(shared.span_of(view.cta, descriptor, mn, k, BITS[t], mn_major=mn_major))
    return found


def _execute(view: View, plan: Plan, group: Warpgroup, issue: int) -> None:
    """issue: number of the instruction among those of the warpgroup."""
    products = view.launch.products
    b = _factor_b(view, plan, group, issue)
    codes = _rows_of_a(view, plan)
    half = plan.dtype == "f16"
    add = bool(number(view, "scale_d", view.leader))
    c = accumulator_rows(registers(view, "d"), half) if add else None
    if plan.whole:
        assert isinstance(b, np.ndarray)
        result = products.multiply_whole(_whole(view, plan.atype, codes), b, c, saturate=plan.saturate)
    else:
        assert isinstance(b, Numbers)
        a = products.numbers(plan.atype, codes)
        if plan.negated:
            a = a.negated()
        if c is not None:
            c = c.view(np.float16 if half else np.float32)
        result = products.multiply(a, b, c, plan.rule(view.launch.numerics))
    set_registers(view, "d", accumulator_registers(result))


def _whole(view: View, t: str, codes: Array) -> Array:
    return view.launch.products.whole(t, unpack_bits(codes) if t == "b1" else codes)


def _signed(view: View, name: str) -> int:
    return -1 if number(view, name, view.leader) >> 31 else 1


def _rows_of_a(view: View, plan: Plan) -> Array:
    """Bits of a warp's 16 rows, which it reads when it executes: it may have written them just before."""
    if plan.in_memory:
        first = _ROWS * (view.warp % WARPS)
        some = slice(first, first + _ROWS)
        stored = _matrix(view, number(view, "a_desc", view.leader), "a", plan, WARPS * _ROWS, some)
    else:
        stored = factor_rows(registers(view, "a"), BITS[plan.atype])
    if not plan.sparse:
        return stored
    selector = number(view, "sp_sel", view.leader)
    limit = 1 if BITS[plan.atype] == 8 else 2
    if selector >= limit:
        raise view.trap(f"sparsity selector {selector}: at most {limit - 1} is allowed for .{plan.atype}")
    places = sparse_columns(plan.atype, plan.k, selector, registers(view, "sp_meta")[0])
    return sparse.expand(stored, places)


def _factor_b(view: View, plan: Plan, group: Warpgroup, issue: int) -> Array | Numbers:
    """B in shared memory, read when the first of the four warps comes."""
    found: Array | Numbers | None = group.matrices.get(issue)
    if found is None:
        codes = _matrix(view, number(view, "b_desc", view.leader), "b", plan, plan.n)
        found = _whole(view, plan.btype, codes) if plan.whole else view.launch.products.numbers(plan.btype, codes)
        for old in [p for p in group.matrices if p < issue - _KEPT]:
            del group.matrices[old]
        group.matrices[issue] = found
    return found


def _matrix(view: View, code: int, which: str, plan: Plan, mn: int, some: slice | None = None) -> Array:
    """Elements of a matrix in shared memory, by its descriptor."""
    t, k = (plan.atype, plan.stored) if which == "a" else (plan.btype, plan.k)
    try:
        descriptor = shared.warpgroup_descriptor(code)
        memory = np.frombuffer(view.cta.shared, np.uint8)
        return shared.matrix(memory, descriptor, mn, k, BITS[t], mn_major=which in plan.transposed, some=some)
    except DescriptorError as problem:
        raise view.trap(f"{which}-desc: {problem}", cause=Cause.DESCRIPTOR) from None
