"""cp.async: a copy of 4, 8 or 16 bytes by each lane from global to shared memory (9.7.9.25.3.1)."""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.structures import TRAP_ADDRESS, TRAP_MISALIGNED
from ptxtools.program.details import ThreadCopy
from ptxtools.program.program import LANES
from ptxtools.semantics.algebra import Value

from . import lanewise
from .lanewise import Lanes, array, element
from .parts import Address, in_units


class _Copy:
    """Operands of the lanes in arrays: target, source, and the number of bytes before zeros follow."""

    def __init__(self, h: Handler) -> None:
        self.handler = h
        detail = h.op.of(ThreadCopy)
        self.size, rule = detail.size, detail.rule
        for ref in h.op.src:
            if ref is not None:
                h.pointer(ref)
        self.address = Address(h)
        self.source = self.address.vector()
        self.target = h.source(1)
        A = h.algebra  # noqa: N806
        whole = A.const("u32", self.size)
        if rule == "size":
            self.count: Value = A.minimum("u32", h.source(2), whole)
        elif rule == "ignore":
            self.count = A.select("u32", h.source(2), A.const("u32", 0), whole)
        else:
            self.count = whole
        self.plain = not rule


def copy(h: Handler) -> None:
    """For lanes that are all inside the arena and copy all their bytes or none; otherwise lane by lane."""
    c = _Copy(h)
    e, A, size = h.code, h.algebra, c.size  # noqa: N806
    base = h.code.field("ctx.base")
    offset = A.sub("u64", c.source, h.code.spread("i64", base))
    inside = _inside(h, offset, h.code.field("ctx.size"), size)
    nothing = A.is_zero("u32", c.count)
    if not c.plain:
        full = A.compare("eq", "u32", c.count, A.const("u32", size))
        inside = A.or_("pred", A.and_("pred", inside, full), nothing)
    shared_bytes = e.value(f"zext i32 {h.code.field('ctx.shared_bytes')} to i64")
    good = A.and_("pred", inside, _inside(h, c.target, shared_bytes, size))
    bits = e.value(f"or i32 {e.value(f'bitcast <32 x i1> {good} to i32')}, {e.value('xor i32 %m, -1')}")
    fast, slow = h.code.label("fast"), h.code.label("slow")
    h.code.branch(e.value(f"icmp eq i32 {bits}, -1"), fast, slow, likely=True)
    h.code.begin(fast)
    host = A.add("u64", c.source, h.code.spread("i64", h.code.field("ctx.arena")))
    if not c.plain:
        e.declare("@copy_zeros", "@copy_zeros = internal unnamed_addr constant [16 x i8] zeroinitializer, align 16")
        host = A.select("u64", nothing, h.code.spread("i64", e.value("ptrtoint ptr @copy_zeros to i64")), host)
    _all(h, host, c.target, size)
    h.code.begin(slow)
    _each(h, c)


def _inside(h: Handler, offset: Value, limit: str, size: int) -> Value:
    """Lanes whose offset is aligned, with the access below the limit."""
    shift = size.bit_length() - 1
    units = in_units(h, offset, shift)
    many = h.code.spread("i64", h.code.value(f"lshr i64 {limit}, {shift}"))
    return h.code.value(f"icmp ult <32 x i64> {units}, {many}")


def _shared(h: Handler) -> str:
    return h.code.field("cta.shared", h.code.field("warp.cta"))


def _all(h: Handler, host: Value, target: Value, size: int) -> None:
    e = h.code
    if size == 16 and not e.brief:
        _in_fours(h, host, target)
    sources, targets = array(h, 64), array(h, 64)
    e.line(f"store <32 x i64> {host}, ptr {sources}, align 64")
    e.line(f"store <32 x i64> {target}, ptr {targets}, align 64")
    shared = _shared(h)
    lanes = Lanes(h)
    near = e.value(f"load i64, ptr {element(h, targets, 64, lanes.lane)}")
    far = e.value(f"inttoptr i64 {e.value(f'load i64, ptr {element(h, sources, 64, lanes.lane)}')} to ptr")
    data = e.value(f"load <{size} x i8>, ptr {far}, align {size}")
    e.line(f"store <{size} x i8> {data}, ptr {e.value(f'getelementptr i8, ptr {shared}, i64 {near}')}, align 1")
    lanes.again()
    h.go_on()


def _in_fours(h: Handler, host: Value, target: Value) -> None:
    """Copies of all lanes, if each four of them copy 64 bytes in a row; else it goes on."""
    e, near = h.code, h.full
    steps = ", ".join(f"i64 {16 * (lane % 4)}" for lane in range(LANES))
    for addresses in (host, target):
        first = e.shuffle(f"<{LANES} x i64>", (lane - lane % 4 for lane in range(LANES)), addresses)
        apart = e.value(f"sub <{LANES} x i64> {addresses}, {first}")
        rows = e.value(f"icmp eq <{LANES} x i64> {apart}, <{steps}>")
        whole = e.value(f"icmp eq i32 {e.value(f'bitcast <{LANES} x i1> {rows} to i32')}, -1")
        near = e.value(f"and i1 {near}, {whole}")
    fours, single = e.label("fours"), e.label("single")
    e.branch(near, fours, single)
    e.begin(fours)
    shared = _shared(h)
    for lane in range(0, LANES, 4):
        to, at = (e.value(f"extractelement <{LANES} x i64> {one}, i32 {lane}") for one in (target, host))
        data = e.value(f"load <64 x i8>, ptr {e.value(f'inttoptr i64 {at} to ptr')}, align 16")
        e.line(f"store <64 x i8> {data}, ptr {e.value(f'getelementptr i8, ptr {shared}, i64 {to}')}, align 1")
    h.go_on()
    e.begin(single)


def _each(h: Handler, c: _Copy) -> None:
    """One lane: byte by byte from any memory, then zeros."""
    e, size = h.code, c.size
    sources, targets, counts = array(h, 64), array(h, 64), array(h, 32)
    for kind, value, room in (("i64", c.source, sources), ("i64", c.target, targets), ("i32", c.count, counts)):
        e.line(f"store <32 x {kind}> {value}, ptr {room}, align 64")
    data = e.value("alloca [16 x i8], align 16")
    shared = _shared(h)
    limit = e.value(f"zext i32 {h.code.field('ctx.shared_bytes')} to i64")
    lanes = Lanes(h)
    source = e.value(f"load i64, ptr {element(h, sources, 64, lanes.lane)}")
    target = e.value(f"load i64, ptr {element(h, targets, 64, lanes.lane)}")
    count = e.value(f"load i32, ptr {element(h, counts, 32, lanes.lane)}")
    e.line(f"store <16 x i8> zeroinitializer, ptr {data}, align 16")
    _check_target(h, lanes.lane, target, limit, size)
    _check_alignment(h, lanes.lane, source, count, size)
    _read(h, lanes.lane, source, count, data)
    loaded = e.value(f"load <{size} x i8>, ptr {data}, align 16")
    e.line(f"store <{size} x i8> {loaded}, ptr {e.value(f'getelementptr i8, ptr {shared}, i64 {target}')}, align 1")
    lanes.again()
    h.go_on()


def _stop(h: Handler, lane: str, address: str, code: str) -> None:
    h.code.expand(f"set ctx.stop_address, {address}")
    h.trap(code, h.code.value(f"shl i32 1, {lane}"))


def _check_target(h: Handler, lane: str, target: str, limit: str, size: int) -> None:
    e = h.code
    low = e.value(f"and i64 {target}, {size - 1}")
    crooked = e.value(f"icmp ne i64 {low}, 0")
    fits = e.value(f"icmp ult i64 {e.value(f'lshr i64 {target}, {size.bit_length() - 1}')}, "
                   f"{e.value(f'lshr i64 {limit}, {size.bit_length() - 1}')}")  # fmt: skip
    good = e.value(f"and i1 {fits}, {e.value(f'xor i1 {crooked}, true')}")
    go, bad = h.code.label("go"), h.code.label("bad")
    h.code.branch(good, go, bad, likely=True)
    h.code.begin(bad)
    _stop(h, lane, target, e.value(f"select i1 {crooked}, i32 {TRAP_MISALIGNED}, i32 {TRAP_ADDRESS}"))
    h.code.begin(go)


def _check_alignment(h: Handler, lane: str, source: str, count: str, size: int) -> None:
    e = h.code
    low = e.value(f"icmp ne i64 {e.value(f'and i64 {source}, {size - 1}')}, 0")
    some = e.value(f"icmp ne i32 {count}, 0")
    go, bad = h.code.label("go"), h.code.label("bad")
    h.code.branch(e.value(f"and i1 {low}, {some}"), bad, go)
    h.code.begin(bad)
    _stop(h, lane, source, str(TRAP_MISALIGNED))
    h.code.begin(go)


def _read(h: Handler, lane: str, source: str, count: str, data: str) -> None:
    """The first `count` bytes at the source."""
    e = h.code
    start, top, body, on = h.code.label("start"), h.code.label("top"), h.code.label("byte"), h.code.label("on")
    index, following = e.name("i"), e.name("i")
    h.code.jump(start)
    h.code.begin(start)
    h.code.jump(top)
    h.code.begin(top)
    last = h.code.label("last")
    e.line(f"{index} = phi i32 [0, %{start}], [{following}, %{last}]")
    h.code.branch(e.value(f"icmp ult i32 {index}, {count}"), body, on)
    h.code.begin(body)
    address = e.value(f"add i64 {source}, {e.value(f'zext i32 {index} to i64')}")
    pointer = lanewise.translate(h, lane, address, 1, generic=False)
    go, bad = h.code.label("go"), h.code.label("bad")
    h.code.branch(e.value(f"icmp ne ptr {pointer}, null"), go, bad, likely=True)
    h.code.begin(bad)
    lanewise.refuse(h, lane, address, 1)
    h.code.begin(go)
    byte = e.value(f"load i8, ptr {pointer}")
    e.line(f"store i8 {byte}, ptr {e.value(f'getelementptr i8, ptr {data}, i32 {index}')}")
    h.code.jump(last)
    h.code.begin(last)
    e.line(f"{following} = add i32 {index}, 1")
    h.code.jump(top)
    h.code.begin(on)
