"""Operations across the lanes of a warp (9.7.9.6, 9.7.13).

The lanes that a member mask names have met before (`warpsync`); what runs here is the group that goes on together.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.semantics.algebra import Value

from .lanewise import Lanes, array, element
from .parts import half


def _lane_numbers(h: Handler) -> Value:
    return h.code.value("load <32 x i32>, ptr @lane_numbers")


def _mode(h: Handler, *choices: str) -> str:
    assert h.op.opcode is not None
    return next(c for c in choices if h.op.opcode.has(c))


def shuffle(h: Handler) -> None:
    """shfl: d|p, a, b, c and the member mask: the source lane by mode and segment (9.7.9.6)."""
    A = h.algebra  # noqa: N806 - the algebra's name everywhere
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
    e = h.code
    if "avx512f" in e.features:
        h.attributes = "#2"
        v = "<16 x i32>"
        (low, first), (high, second) = ([half(h, value, "i32", side) for value in (data, index)] for side in (0, 1))
        parts = [e.call("llvm.x86.avx512.vpermi2var.d.512", v, [(v, low), (v, i), (v, high)]) for i in (first, second)]
        return e.concatenate("i32", parts, 16)
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
    return h.code.value(f"bitcast <32 x i1> {value} to i32")


class _Sets:
    """A loop over the member masks that the running lanes name: mostly one, but lanes of several may meet.

    `members` is the set at hand; `keep` notes results for the lanes that name it; `done` gives them all together.
    """

    def __init__(self, h: Handler, position: int, *kinds: str) -> None:
        e = h.code
        self.handler, self.kinds = h, kinds
        self._rooms = [e.value(f"alloca <32 x {kind}>, align 64") for kind in kinds]
        ref = h.op.src[position] if position < len(h.op.src) else None
        self._names = h.content(ref) if ref is not None else h.code.spread("i32", "%m")
        room = array(h, 32)
        e.line(f"store <32 x i32> {self._names}, ptr {room}, align 64")
        self._start, self._top, self._end = h.code.label("begin"), h.code.label("set"), h.code.label("end")
        self._left = e.name("left")
        h.code.jump(self._start)
        h.code.begin(self._start)
        h.code.jump(self._top)
        h.code.begin(self._top)
        self._phi = len(e.lines)
        e.line("")
        lane = e.call("llvm.cttz.i32", "i32", [("i32", self._left), ("i1", "true")])
        own = e.value(f"load i32, ptr {element(h, room, 32, lane)}")
        same = e.value(f"icmp eq <32 x i32> {self._names}, {h.code.spread('i32', own)}")
        self._same = e.value(f"and i32 {_flags(h, same)}, {self._left}")
        self._lanes = e.value(f"bitcast i32 {self._same} to <32 x i1>")
        self.members = e.value(f"and i32 {own}, %m")

    def keep(self, *values: Value) -> None:
        """Results of this set, one vector for each kind; then the next set."""
        h, e = self.handler, self.handler.code
        for room, kind, value in zip(self._rooms, self.kinds, values, strict=True):
            old = e.value(f"load <32 x {kind}>, ptr {room}, align 64")
            new = e.value(f"select <32 x i1> {self._lanes}, <32 x {kind}> {value}, <32 x {kind}> {old}")
            e.line(f"store <32 x {kind}> {new}, ptr {room}, align 64")
        last = h.code.label("last")
        h.code.jump(last)
        h.code.begin(last)
        rest = e.value(f"xor i32 {self._left}, {self._same}")
        e.lines[self._phi] = f"  {self._left} = phi i32 [%m, %{self._start}], [{rest}, %{last}]"
        h.code.branch(e.value(f"icmp eq i32 {rest}, 0"), self._end, self._top, likely=True)
        h.code.begin(self._end)

    def done(self) -> list[Value]:
        pairs = zip(self._rooms, self.kinds, strict=True)
        return [self.handler.code.value(f"load <32 x {kind}>, ptr {room}, align 64") for room, kind in pairs]


def vote(h: Handler) -> None:
    """vote: all, any, uni, ballot (9.7.13.13); without .sync over the lanes that run together."""
    e = h.code
    mode = _mode(h, "ballot", "all", "any", "uni")
    flags = _flags(h, h.source(0))
    sets = _Sets(h, 1, "i32")
    yes = e.value(f"and i32 {flags}, {sets.members}")
    none = e.value(f"icmp eq i32 {yes}, 0")
    everyone = e.value(f"icmp eq i32 {yes}, {sets.members}")
    if mode == "ballot":
        sets.keep(h.code.spread("i32", yes))
        h.results(sets.done())
        return
    answer = {
        "all": everyone,
        "any": e.value(f"xor i1 {none}, true"),
        "uni": e.value(f"or i1 {none}, {everyone}"),
    }[mode]
    sets.keep(h.code.spread("i32", e.value(f"zext i1 {answer} to i32")))
    h.results([h.algebra.is_nonzero("u32", sets.done()[0])])


def match(h: Handler) -> None:
    """match.any: who has my value; match.all: the members if all have the same, else none (9.7.13.14)."""
    mode, e = _mode(h, "any", "all"), h.code
    ref, t = h.op.src[0], h.op.src_types[0]
    assert ref is not None
    bits = 64 if "64" in t else 32
    value = h.source(0)
    if mode == "all":
        sets = _Sets(h, 1, "i32")
        leader = e.call("llvm.cttz.i32", "i32", [("i32", sets.members), ("i1", "false")])
        mine = h.code.spread(f"i{bits}", _scalar(h, value, bits, e.value(f"and i32 {leader}, 31")))
        equal = _flags(h, h.algebra.compare("eq", t, value, mine))
        unlike = e.value(f"and i32 {e.value(f'xor i32 {equal}, -1')}, {sets.members}")
        agree = e.value(f"icmp eq i32 {unlike}, 0")
        sets.keep(h.code.spread("i32", e.value(f"select i1 {agree}, i32 {sets.members}, i32 0")))
        found = sets.done()[0]
        h.results([found, h.algebra.is_nonzero("u32", found)])
        return
    names = h.op.src[1]
    assert names is not None
    result, room = array(h, 32), array(h, bits)
    e.line(f"store <32 x i{bits}> {value}, ptr {room}, align 64")
    h.pointer(names)
    lanes = Lanes(h)
    one = e.value(f"load i{bits}, ptr {element(h, room, bits, lanes.lane)}")
    equal = _flags(h, h.algebra.compare("eq", t, value, h.code.spread(f"i{bits}", one)))
    members = e.value(f"and i32 {h.lane(names, lanes.lane)}, %m")
    e.line(f"store i32 {e.value(f'and i32 {equal}, {members}')}, ptr {element(h, result, 32, lanes.lane)}")
    lanes.again()
    h.results([e.value(f"load <32 x i32>, ptr {result}, align 64")])


def _scalar(h: Handler, value: Value, bits: int, lane: str) -> str:
    room = array(h, bits)
    h.code.line(f"store <32 x i{bits}> {value}, ptr {room}, align 64")
    return h.code.value(f"load i{bits}, ptr {element(h, room, bits, lane)}")


#: Reductions of integers: LLVM's name by signedness, and the value that changes nothing.
_REDUCTIONS = {
    "add": (("add", "add"), (0, 0)),
    "and": (("and", "and"), (-1, -1)),
    "or": (("or", "or"), (0, 0)),
    "xor": (("xor", "xor"), (0, 0)),
    "min": (("umin", "smin"), (0xFFFFFFFF, 0x7FFFFFFF)),
    "max": (("umax", "smax"), (0, 0x80000000)),
}


def reduce(h: Handler) -> None:
    """redux.sync of 32-bit integers over the members (9.7.13.15)."""
    name = _mode(h, *_REDUCTIONS)
    signed = h.op.src_types[0].startswith("s")
    functions, neutrals = _REDUCTIONS[name]
    function, neutral = functions[signed], neutrals[signed]
    value = h.source(0)
    sets = _Sets(h, 1, "i32")
    members = h.code.value(f"bitcast i32 {sets.members} to <32 x i1>")
    values = h.algebra.select("u32", members, value, h.algebra.const("u32", neutral))
    reduced = h.code.call(f"llvm.vector.reduce.{function}.v32i32", "i32", [("<32 x i32>", values)])
    sets.keep(h.code.spread("i32", reduced))
    h.results(sets.done())


def active_mask(h: Handler) -> None:
    """activemask: the lanes that run together."""
    h.results([h.code.spread("i32", "%m")])


def elect(h: Handler) -> None:
    """elect.sync d|p: the lowest member, and whether one is it (9.7.13.16)."""
    sets = _Sets(h, 0, "i32")
    sets.keep(h.code.spread("i32", h.code.call("llvm.cttz.i32", "i32", [("i32", sets.members), ("i1", "false")])))
    leader = sets.done()[0]
    h.results([leader, h.algebra.compare("eq", "u32", leader, _lane_numbers(h))])
