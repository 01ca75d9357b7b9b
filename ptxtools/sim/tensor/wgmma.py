"""wgmma: products of warpgroups (9.7.15).

Each of the four warps computes its 16 rows when it executes the instruction, which is one of the moments the manual
allows; B in shared memory is read once for all four. A warp that waits for a group also waits until the other
three have issued what the group holds, because on the chips the group is complete for the warpgroup as a whole.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from ptxtools.engine.events import View, serves
from ptxtools.engine.native import tiles
from ptxtools.semantics.fragments import sparse_elements
from ptxtools.semantics.tensorcore import IEEE, Rule
from ptxtools.sim.checks.asynccheck import Claim, checker_of, chunks

from . import shared, sparse
from .issued import issued
from .numbers import BITS, Array, Numbers, integers, numbers, unpack_bits
from .operands import has, number, registers, set_registers, slots
from .product import multiply, multiply_integers

_WARPS, _ROWS = 4, 16
_ALL_LANES = 0xFFFF_FFFF
_KEY = "wgmma"


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
    rule: Rule | None
    negated: bool
    transposed: str
    sparse: bool
    in_memory: bool


@dataclass(slots=True, eq=False)
class _Shared:
    """B of one instruction, as its first warp found it in shared memory; users: warps that have not used it yet.

    key: what all warps must agree on; turned: B's numbers as native code wants them.
    """

    b: Array | Numbers
    key: tuple[int, bool]
    users: int = _WARPS
    turned: tuple[Array, Array] | None = None


@dataclass(slots=True, eq=False)
class Warpgroup:
    """What a warpgroup has issued, by warp, and how much of it is executed; late: what is left, in late runs;
    groups: issued instructions at each commit; matrices: those in use."""

    issued: list[int] = field(default_factory=lambda: [0] * _WARPS)
    executed: list[int] = field(default_factory=lambda: [0] * _WARPS)
    late: list[deque[tuple[View, Claim | None]]] = field(default_factory=lambda: [deque() for _ in range(_WARPS)])
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
        is_sparse = "sp_meta" in named.sources
        rule = None if dtype == "s32" else rule_for(atype, dtype, k)
        negated = rule is not None and _signed(view, "imm_scale_a") * _signed(view, "imm_scale_b") < 0
        transposed = "".join(
            which for which in "ab" if has(view, name := f"imm_trans_{which}") and number(view, name, view.leader)
        )
        named.plan = Plan(
            n, k, k // 2 if is_sparse else k, atype, op.mods["btype"], dtype, op.has("satfinite"), rule, negated,
            transposed, is_sparse, has(view, "a_desc"),
        )  # fmt: skip
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
    """One warp's part of an instruction (9.7.15.5.2, 9.7.15.6.3); in late runs until somebody waits for it."""
    group, warp = _warpgroup(view)
    group.issued[warp] += 1
    if view.launch.late and (group.late[warp] or view.schedule.lags()):
        group.late[warp].append((issued(view, slots(view, "d")), _claim(view)))
    else:
        _execute(view, group, warp)


def _claim(view: View) -> Claim | None:
    """asynccheck's note of the matrices in shared memory, which are being read until the group is waited for."""
    check = checker_of(view)
    if check is None:
        return None
    plan, lane, found = _plan(view), view.leader, []
    for which, t, mn, k in (("a", plan.atype, _WARPS * _ROWS, plan.stored), ("b", plan.btype, plan.n, plan.k)):
        if has(view, f"{which}_desc"):
            descriptor = shared.warpgroup_descriptor(number(view, f"{which}_desc", lane))
            mn_major = which in plan.transposed
            found += chunks(view.cta, shared.chunks_of(descriptor, mn, k, BITS[t], mn_major=mn_major))
    return check.begin(view, lane, "wgmma.mma_async", found)


def _execute(view: View, group: Warpgroup, warp: int) -> None:
    plan = _plan(view)
    found = _factor_b(view, plan, group, warp)
    codes = _rows_of_a(view, plan, warp)
    add = bool(number(view, "scale_d", view.leader))
    if plan.rule is not None:
        _floats(view, plan, found, codes, add)
    else:
        c = accumulator_rows(registers(view, "d"), half=False) if add else None
        assert isinstance(found.b, np.ndarray)
        result = multiply_integers(_whole(plan.atype, codes), found.b, c, saturate=plan.saturate)
        set_registers(view, "d", accumulator_registers(result))
    group.executed[warp] += 1


def _floats(view: View, plan: Plan, found: _Shared, codes: Array, add: bool) -> None:
    assert plan.rule is not None
    a, b = numbers(plan.atype, codes), found.b
    assert isinstance(b, Numbers)
    if plan.negated:
        a = a.negated()
    rule = chosen(view, plan.rule)
    half = plan.dtype == "f16"
    if not half and a.finite and b.finite and _in_place(view, found, a, b, rule, add):
        return
    c = accumulator_rows(registers(view, "d"), half).view(np.float16 if half else np.float32) if add else None
    set_registers(view, "d", accumulator_registers(multiply(a, b, c, rule)))


def _in_place(view: View, found: _Shared, a: Numbers, b: Numbers, rule: Rule, add: bool) -> bool:
    """Have native code work on the registers; false where it cannot."""
    frame = view.frame_address()
    if frame is None or view.mask != _ALL_LANES:
        return False
    t = np.float32 if a.values.dtype == b.values.dtype == np.float32 or not rule.fraction else np.float64
    if found.turned is None or found.turned[0].dtype != t:
        found.turned = (_turned_b(b.values, t), _turned_b(b.powers, t))
    left = (_turned_a(a.values, t), _turned_a(a.powers, t))
    rounding = tiles.Rounding(rule.fraction, *tiles.MASKS[rule.result])
    return tiles.warp(left, found.turned, frame, slots(view, "d"), rounding, add=add)


def _turned_a(rows: Array, t: type) -> Array:
    """16 x K as `tiles.warp` takes it."""
    parts = rows.reshape(2, 8, -1).transpose(0, 2, 1)
    return np.repeat(parts, 4, axis=2).astype(t, copy=False)


def _turned_b(columns: Array, t: type) -> Array:
    """N x K as `tiles.warp` takes it."""
    parts = columns.reshape(-1, 4, 2, columns.shape[1]).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(parts, dtype=t)


def _whole(t: str, codes: Array) -> Array:
    return unpack_bits(codes).astype(np.float32) if t == "b1" else integers(t, codes)


def _signed(view: View, name: str) -> int:
    return -1 if number(view, name, view.leader) >> 31 else 1


def _rows_of_a(view: View, plan: Plan, warp: int) -> Array:
    """Bits of a warp's 16 rows, which it reads when it executes: it may have written them just before."""
    if plan.in_memory:
        some = slice(_ROWS * warp, _ROWS * (warp + 1))
        stored = _matrix(view, number(view, "a_desc", view.leader), "a", plan, _WARPS * _ROWS, some)
    else:
        stored = factor_rows(registers(view, "a"), BITS[plan.atype])
    if not plan.sparse:
        return stored
    selector = number(view, "sp_sel", view.leader)
    limit = 1 if BITS[plan.atype] == 8 else 2
    if selector >= limit:
        raise view.trap(f"sparsity selector {selector}: {limit - 1} is the greatest for .{plan.atype}")
    places = sparse_columns(plan.atype, plan.k, selector, registers(view, "sp_meta")[0])
    return sparse.expand(stored, places)


def _factor_b(view: View, plan: Plan, group: Warpgroup, warp: int) -> _Shared:
    """B in shared memory, read when the first of the four warps comes."""
    issued = group.executed[warp]
    key = number(view, "b_desc", view.leader), "b" in plan.transposed
    found = group.matrices.get(issued)
    if found is None:
        codes = _matrix(view, key[0], "b", plan, plan.n)
        b = numbers(plan.btype, codes) if plan.rule is not None else _whole(plan.btype, codes)
        found = group.matrices[issued] = _Shared(b, key)
    elif found.key != key:
        raise view.trap("the warps of the warpgroup give different descriptors or layouts of B")
    found.users -= 1
    if not found.users:
        del group.matrices[issued]
    return found


def _matrix(view: View, code: int, which: str, plan: Plan, mn: int, some: slice | None = None) -> Array:
    """Elements of a matrix in shared memory, by its descriptor."""
    t, k = (plan.atype, plan.stored) if which == "a" else (plan.btype, plan.k)
    try:
        descriptor = shared.warpgroup_descriptor(code)
        memory = np.frombuffer(view.cta.shared, np.uint8)
        return shared.matrix(memory, descriptor, mn, k, BITS[t], mn_major=which in plan.transposed, some=some)
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
    while group.late[warp] and group.executed[warp] < wanted:
        left, claim = group.late[warp].popleft()
        _execute(left, group, warp)
        if claim is not None:
            claim.end()
    del done[: len(done) - allowed]
