"""Operations across the lanes of a warp (9.7.9.6, 9.7.13).

The lanes that a member mask names have met before (`warpsync`); what runs here is the group that goes on together.
"""

from __future__ import annotations

from ptxtools.engine.native.builder import Handler
from ptxtools.semantics.algebra import Value

from .lanewise import Lanes, array, element


def _lane_numbers(h: Handler) -> Value:
    return h.e.value("load <32 x i32>, ptr @lane_numbers")


def _members(h: Handler, position: int) -> str:
    """Lanes that take part: those that run, and that the leader's member mask names."""
    ref = h.op.src[position]
    assert ref is not None
    return h.e.value(f"and i32 {h.lane(ref, h.leader())}, %m")


def _mode(h: Handler, *choices: str) -> str:
    assert h.op.opcode is not None
    return next(c for c in choices if h.op.opcode.has(c))


def shuffle(h: Handler) -> None:
    """shfl: d|p, a, b, c and the member mask: the source lane by mode and segment (9.7.9.6)."""
    A = h.A
    mode = _mode(h, "up", "down", "bfly", "idx")
    data, b, c = h.source(0), h.source(1), h.source(2)
    lane = _lane_numbers(h)
    amount, clamp = A.and_with("u32", b, 31), A.and_with("u32", c, 31)
    segment = A.and_with("u32", A.shr_by("u32", c, 8), 31)
    outside = A.and_with("u32", A.not_("u32", segment), 31)
    least = A.and_("u32", lane, segment)
    most = A.or_("u32", least, A.and_("u32", clamp, outside))
    if mode == "up":
        source = A.sub("s32", lane, amount)
        valid = A.compare("ge", "s32", source, most)
    else:
        moved = {"down": A.add, "bfly": A.xor}.get(mode)
        source = moved("u32", lane, amount) if moved else A.or_("u32", least, A.and_("u32", amount, outside))
        valid = A.compare("le", "s32", source, most)
    source = A.select("u32", valid, source, lane)
    h.results([_permute(h, data, source), valid])


def _permute(h: Handler, data: Value, index: Value) -> Value:
    """Lane i of the result is lane index[i] of the data (32-bit values)."""
    e = h.e
    if "avx512f" in e.features:
        halves = []
        for side in (0, 1):
            order = ", ".join(f"i32 {16 * side + i}" for i in range(16))
            halves.append(
                (
                    e.value(f"shufflevector <32 x i32> {data}, <32 x i32> poison, <16 x i32> <{order}>"),
                    e.value(f"shufflevector <32 x i32> {index}, <32 x i32> poison, <16 x i32> <{order}>"),
                )
            )
        v = "<16 x i32>"
        (low, first), (high, second) = halves
        parts = [e.call("llvm.x86.avx512.vpermi2var.d.512", v, [(v, low), (v, i), (v, high)]) for i in (first, second)]
        order = ", ".join(f"i32 {i}" for i in range(32))
        return e.value(f"shufflevector {v} {parts[0]}, {v} {parts[1]}, <32 x i32> <{order}>")
    source, places, result = array(h, 32), array(h, 32), array(h, 32)
    e.line(f"store <32 x i32> {data}, ptr {source}, align 64")
    e.line(f"store <32 x i32> {index}, ptr {places}, align 64")
    e.line(f"store <32 x i32> {data}, ptr {result}, align 64")
    lanes = Lanes(h)
    place = e.value(f"load i32, ptr {element(h, places, 32, lanes.lane)}")
    one = e.value(f"load i32, ptr {element(h, source, 32, place)}")
    e.line(f"store i32 {one}, ptr {element(h, result, 32, lanes.lane)}")
    lanes.again()
    return e.value(f"load <32 x i32>, ptr {result}, align 64")


def _flags(h: Handler, value: Value) -> str:
    return h.e.value(f"bitcast <32 x i1> {value} to i32")


def _everywhere(h: Handler, flag: str) -> Value:
    """One i1 for every lane."""
    return h.A.broadcast("i1", flag)


def vote(h: Handler) -> None:
    """vote: all, any, uni, ballot (9.7.13.13); without .sync over the lanes that run together."""
    e = h.e
    mode = _mode(h, "ballot", "all", "any", "uni")
    members = _members(h, 1) if len(h.op.src) > 1 else "%m"
    yes = e.value(f"and i32 {_flags(h, h.source(0))}, {members}")
    if mode == "ballot":
        h.results([h.splat(32, yes)])
        return
    none = e.value(f"icmp eq i32 {yes}, 0")
    everyone = e.value(f"icmp eq i32 {yes}, {members}")
    answer = {
        "all": everyone,
        "any": e.value(f"xor i1 {none}, true"),
        "uni": e.value(f"or i1 {none}, {everyone}"),
    }[mode]
    h.results([_everywhere(h, answer)])


def match(h: Handler) -> None:
    """match.any: who has my value; match.all: the members if all have the same, else none (9.7.13.14)."""
    mode, e = _mode(h, "any", "all"), h.e
    ref, t = h.op.src[0], h.op.src_types[0]
    assert ref is not None
    bits = 64 if "64" in t else 32
    value, members = h.source(0), _members(h, 1)
    if mode == "all":
        mine = h.splat(bits, _scalar(h, value, bits, h.leader()))
        equal = _flags(h, h.A.compare("eq", t, value, mine))
        unlike = e.value(f"and i32 {e.value(f'xor i32 {equal}, -1')}, {members}")
        agree = e.value(f"icmp eq i32 {unlike}, 0")
        found = h.splat(32, e.value(f"select i1 {agree}, i32 {members}, i32 0"))
        h.results([found, _everywhere(h, agree)])
        return
    result = array(h, 32)
    room = array(h, bits)
    e.line(f"store <32 x i{bits}> {value}, ptr {room}, align 64")
    lanes = Lanes(h)
    one = e.value(f"load i{bits}, ptr {element(h, room, bits, lanes.lane)}")
    equal = _flags(h, h.A.compare("eq", t, value, h.splat(bits, one)))
    own = e.value(f"and i32 {equal}, {members}")
    e.line(f"store i32 {own}, ptr {element(h, result, 32, lanes.lane)}")
    lanes.again()
    h.results([e.value(f"load <32 x i32>, ptr {result}, align 64")])


def _scalar(h: Handler, value: Value, bits: int, lane: str) -> str:
    room = array(h, bits)
    h.e.line(f"store <32 x i{bits}> {value}, ptr {room}, align 64")
    return h.e.value(f"load i{bits}, ptr {element(h, room, bits, lane)}")


#: Reductions of integers: LLVM's name by signedness, and the value that changes nothing.
_REDUCTIONS = {
    "add": ("add", "add", 0, 0),
    "and": ("and", "and", -1, -1),
    "or": ("or", "or", 0, 0),
    "xor": ("xor", "xor", 0, 0),
    "min": ("umin", "smin", 0xFFFFFFFF, 0x7FFFFFFF),
    "max": ("umax", "smax", 0, 0x80000000),
}


def reduce(h: Handler) -> None:
    """redux.sync of 32-bit integers over the members (9.7.13.15)."""
    name = _mode(h, *_REDUCTIONS)
    signed = h.op.src_types[0].startswith("s")
    function, neutral = _REDUCTIONS[name][signed], _REDUCTIONS[name][2 + signed]
    members = h.e.value(f"bitcast i32 {_members(h, 1)} to <32 x i1>")
    values = h.A.select("u32", members, h.source(0), h.A.const("u32", neutral))
    total = h.e.call(f"llvm.vector.reduce.{function}.v32i32", "i32", [("<32 x i32>", values)])
    h.results([h.splat(32, total)])


def active_mask(h: Handler) -> None:
    """activemask: the lanes that run together."""
    h.results([h.splat(32, "%m")])


def elect(h: Handler) -> None:
    """elect.sync d|p: the lowest member, and whether one is it (9.7.13.16)."""
    leader = h.e.call("llvm.cttz.i32", "i32", [("i32", _members(h, 0)), ("i1", "true")])
    everywhere = h.splat(32, leader)
    h.results([everywhere, h.A.compare("eq", "u32", everywhere, _lane_numbers(h))])
