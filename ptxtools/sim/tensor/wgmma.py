"""wgmma: products of warpgroups (9.7.15).

Each of the four warps computes its 16 rows when it executes the instruction, which is one of the moments the manual
allows; matrices in shared memory are read once for all four. A warp that waits for a group also waits until the other
three have issued what the group holds, because on the chips the group is complete for the warpgroup as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from ptxtools.engine.events import View, serves
from ptxtools.semantics.fragments import sparse_elements
from ptxtools.semantics.tensorcore import IEEE, Rule

from . import shared, sparse
from .numbers import BITS, Array, Numbers, integers, numbers, unpack_bits
from .operands import has, number, registers, set_registers
from .product import multiply, multiply_integers

_WARPS, _ROWS = 4, 16
_KEY = "wgmma"


@dataclass(frozen=True)
class Plan:
    """An opcode of wgmma.mma_async; k: logical columns of A; stored: columns of A in memory."""

    n: int
    k: int
    stored: int
    atype: str
    btype: str
    dtype: str
    saturate: bool
    rule: Rule | None


@dataclass(slots=True, eq=False)
class _Shared:
    """Matrices of one instruction in shared memory; users: warps that have not used them yet."""

    a: Array | Numbers | None
    b: Array | Numbers
    key: tuple[int, ...]
    users: int = _WARPS


@dataclass(slots=True, eq=False)
class Warpgroup:
    """What a warpgroup has issued, by warp; groups: issued instructions at each commit; matrices: those in use."""

    issued: list[int] = field(default_factory=lambda: [0] * _WARPS)
    groups: list[list[int]] = field(default_factory=lambda: [[] for _ in range(_WARPS)])
    matrices: dict[int, _Shared] = field(default_factory=dict)


def _warpgroup(view: View) -> tuple[Warpgroup, int]:
    key = f"{_KEY} {view.warp // _WARPS}"
    state = view.cta.state
    found = state.get(key)
    if found is None:
        x, y, z = view.launch.block
        if x * y * z <= 32 * (view.warp // _WARPS * _WARPS + 3):
            raise view.trap("wgmma needs a whole warpgroup: four warps, the first of them a multiple of four")
        found = state[key] = Warpgroup()
    return found, view.warp % _WARPS


def _plan(view: View) -> Plan:
    named = view.op.detail
    if named.plan is None:
        op = view.op.opcode
        assert op is not None
        _, n, k = (int(part) for part in re.findall(r"\d+", op.mods["shape"]))
        atype, dtype = op.mods["atype"], op.mods["dtype"]
        stored = k // 2 if "sp_meta" in named.sources else k
        rule = None if dtype == "s32" else rule_for(atype, dtype, k)
        named.plan = Plan(n, k, stored, atype, op.mods["btype"], dtype, op.has("satfinite"), rule)
    return named.plan  # type: ignore[no-any-return]


def rule_for(atype: str, dtype: str, k: int) -> Rule:
    """How sm_90 adds (docs/numerics.md): 8-bit factors keep 13 bits."""
    if BITS[atype] == 8:
        return Rule(13, k, "f16" if dtype == "f16" else "e8m13")
    return Rule(25, k, "f16" if dtype == "f16" else "f32")


def chosen(view: View, rule: Rule) -> Rule:
    """The rule, or plain arithmetic where the launch asks for that."""
    if view.launch.numerics == IEEE:
        return Rule(0, rule.chunk, "f16" if rule.result == "f16" else "f32")
    return rule


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


def sparse_columns(t: str, k: int, selector: int, metadata: Array) -> Array:
    """Logical columns of a warp's stored rows, 16 x K/2, from the metadata registers of its lanes."""
    key = (t if t == "tf32" else BITS[t], k, selector)
    if key not in _sparse_places:
        found = sparse_elements(BITS[t], _ROWS, k, selector)
        _sparse_places[key] = tuple(
            np.array([getattr(e, name) for e in found]) for name in ("lane", "bit", "base", "step", "half")
        )
    lane, bit, base, step, half = _sparse_places[key]
    field_values = (metadata[lane] >> bit.astype(np.uint32) & np.uint32(3)).astype(np.intp) >> half.astype(np.intp)
    places: Array = (base + field_values * step).reshape(_ROWS, k // 2)
    return places


_sparse_places: dict[tuple[str | int, int, int], tuple[Array, ...]] = {}


# --- the product ------------------------------------------------------------------------------------------------------


@serves("wgmma.mma_async")
def product(view: View) -> None:
    """One warp's part of an instruction (9.7.15.5.2, 9.7.15.6.3)."""
    plan = _plan(view)
    group, warp = _warpgroup(view)
    matrices = _matrices(view, plan, group, warp)
    lane = view.leader
    half = plan.dtype == "f16"
    c = accumulator_rows(registers(view, "d"), half) if number(view, "scale_d", lane) else None
    if plan.rule is None:
        result = _integers(view, plan, matrices, warp, c)
    else:
        result = _floats(view, plan, matrices, warp, c)
    set_registers(view, "d", accumulator_registers(result))
    group.issued[warp] += 1
    if not group.groups[warp]:  # somebody may wait for what was never committed here
        view.cluster.wake((_KEY, view.cta.rank, view.warp // _WARPS))


def _floats(view: View, plan: Plan, matrices: _Shared, warp: int, c: Array | None) -> Array:
    assert plan.rule is not None
    a, b = _rows_of_a(view, plan, matrices, warp), matrices.b
    if not isinstance(a, Numbers):
        a = numbers(plan.atype, a)
    assert isinstance(b, Numbers)
    sign = _signed(view, "imm_scale_a") * _signed(view, "imm_scale_b")
    if sign < 0:
        a = a.negated()
    if c is not None:
        c = c.view(np.float16 if c.dtype == np.uint16 else np.float32)
    return multiply(a, b, c, chosen(view, plan.rule))


def _integers(view: View, plan: Plan, matrices: _Shared, warp: int, c: Array | None) -> Array:
    a, b = _rows_of_a(view, plan, matrices, warp), matrices.b
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    if a.dtype != np.float32:
        a = _whole(plan.atype, a)
    return multiply_integers(a, b, c, saturate=plan.saturate)


def _whole(t: str, codes: Array) -> Array:
    return unpack_bits(codes).astype(np.float32) if t == "b1" else integers(t, codes)


def _signed(view: View, name: str) -> int:
    return -1 if number(view, name, view.leader) >> 31 else 1


def _rows_of_a(view: View, plan: Plan, matrices: _Shared, warp: int) -> Array | Numbers:
    """A warp's 16 rows: numbers where they are known to all warps, else bits."""
    rows = slice(_ROWS * warp, _ROWS * (warp + 1))
    known = matrices.a
    if isinstance(known, Numbers):
        return known.part(rows)
    stored = factor_rows(registers(view, "a"), BITS[plan.atype]) if known is None else known[rows]
    if not has(view, "sp_meta"):
        return stored
    selector = number(view, "sp_sel", view.leader)
    limit = 1 if BITS[plan.atype] == 8 else 2
    if selector >= limit:
        raise view.trap(f"sparsity selector {selector}: {limit - 1} is the greatest for .{plan.atype}")
    places = sparse_columns(plan.atype, plan.k, selector, registers(view, "sp_meta")[0])
    return sparse.expand(stored, places)


def _matrices(view: View, plan: Plan, group: Warpgroup, warp: int) -> _Shared:
    """Matrices in shared memory, read when the first of the four warps comes."""
    number_of = group.issued[warp]
    lane = view.leader
    key = tuple(number(view, name, lane) for name in ("a_desc", "b_desc", "imm_trans_a", "imm_trans_b")
                if has(view, name))  # fmt: skip
    found = group.matrices.get(number_of)
    if found is None:
        found = group.matrices[number_of] = _read(view, plan, key)
    elif found.key != key:
        raise view.trap("the warps of the warpgroup give different matrix descriptors or layouts")
    found.users -= 1
    if not found.users:
        del group.matrices[number_of]
    return found


def _read(view: View, plan: Plan, key: tuple[int, ...]) -> _Shared:
    a: Array | Numbers | None = None
    if has(view, "a_desc"):
        codes = _matrix(view, "a", plan.atype, _WARPS * _ROWS, plan.stored)
        if has(view, "sp_meta"):
            a = codes
        else:
            a = numbers(plan.atype, codes) if plan.rule is not None else _whole(plan.atype, codes)
    codes = _matrix(view, "b", plan.btype, plan.n, plan.k)
    b = numbers(plan.btype, codes) if plan.rule is not None else _whole(plan.btype, codes)
    return _Shared(a, b, key)


def _matrix(view: View, which: str, t: str, mn: int, k: int) -> Array:
    lane = view.leader
    transposed = f"imm_trans_{which}"
    mn_major = has(view, transposed) and bool(number(view, transposed, lane))
    try:
        descriptor = shared.warpgroup_descriptor(number(view, f"{which}_desc", lane))
        memory = np.frombuffer(view.cta.shared, np.uint8)
        return shared.matrix(memory, descriptor, mn, k, BITS[t], mn_major=mn_major)
    except shared.DescriptorError as problem:
        raise view.trap(f"{which}-desc: {problem}") from None


# --- groups (9.7.15.7) ------------------------------------------------------------------------------------------------


@serves("wgmma.commit_group")
def commit(view: View) -> None:
    """The instructions since the last commit form a group."""
    group, warp = _warpgroup(view)
    group.groups[warp].append(group.issued[warp])
    view.cluster.wake((_KEY, view.cta.rank, view.warp // _WARPS))


@serves("wgmma.wait_group")
def wait(view: View) -> None:
    """Wait until no more than n groups of the warpgroup are incomplete."""
    group, warp = _warpgroup(view)
    allowed = number(view, "n", view.leader)
    done = group.groups[warp]
    if len(done) <= allowed:
        return
    wanted = done[len(done) - allowed - 1]
    missing = [str(w) for w in range(_WARPS) if group.issued[w] < wanted]
    if missing:
        first = view.warp // _WARPS * _WARPS
        who = ", ".join(str(first + int(w)) for w in missing)
        view.wait((_KEY, view.cta.rank, view.warp // _WARPS), f"wgmma group: warp {who} has not issued its part")
        return
    del done[: len(done) - allowed]
