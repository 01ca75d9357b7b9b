"""Loads and stores (9.7.9.8 and on): every lane checked, and the common shapes of addresses served by vector accesses.

In order: lanes at consecutive addresses, lanes at one address, then any addresses, half a warp at a time. Bounds and
alignment are one comparison: the offset rotated right by the logarithm of the access size is at most
(size of the space) / (access size) only if its low bits are zero. Addresses in the local window are `local`'s, and what
lies outside the window that a handler serves at once goes through `lanewise`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxtools.engine.native.builder import Handler
from ptxtools.engine.program import LOCAL_WINDOW, SHARED_WINDOW, Ref
from ptxtools.semantics.algebra import Value

from . import lanewise, local
from .parts import Access, half, join, load_values, store_parts, word_gather
from .plain import spend

#: Records that a load costs which is made to look at memory that others write: whoever polls makes room for them.
POLL = 64


@dataclass(slots=True)
class Window:
    """A stretch of the address space that is one stretch of host memory. All are names of i64 values."""

    host: str
    base: str
    size: str


def _window(h: Handler, space: str) -> Window:
    if space == "shared":
        host = h.e.value(f"ptrtoint ptr {h.field('cta.shared', h.field('warp.cta'))} to i64")
        return Window(host, "0", h.e.value(f"zext i32 {h.field('ctx.shared_bytes')} to i64"))
    if space == "param":
        host = h.e.value(f"ptrtoint ptr {h.field('ctx.params')} to i64")
        return Window(host, "0", h.e.value(f"zext i32 {h.field('ctx.param_bytes')} to i64"))
    base = h.field("ctx.base")
    return Window(h.e.value(f"add i64 {h.field('ctx.arena')}, {base}"), base, h.field("ctx.size"))


def load(h: Handler) -> None:
    """dst = memory at src[0] + imm."""
    opcode = h.op.opcode
    polls = opcode is not None and any(opcode.has(m) for m in ("volatile", "relaxed", "acquire", "mmio"))
    if polls and h.op.space in ("global", "generic"):
        spend(h, POLL)
    _access(h, Access.of(h.op.dst_types), None)


def store(h: Handler) -> None:
    """Memory at src[0] + imm = src[1:]."""
    opcode = h.op.opcode
    if opcode is not None and opcode.has("release"):
        h.e.line("fence release")
    access = Access.of(h.op.src_types[1:])
    values = [h.source(i + 1) for i in range(len(h.op.src) - 1)]
    _access(h, access, store_parts(h, access, h.op.src_types[1:], values))


def _access(h: Handler, access: Access, stored: list[Value] | None) -> None:
    for ref in (*h.op.dst, *h.op.src):
        if ref is not None:
            h.pointer(ref)
    address = Address(h)
    space = h.op.space
    if space == "local":
        local.access(h, access, stored, address, "0")
        return
    slow = h.label("slow")
    bad = _Ranged(h, access, stored, address, _window(h, space), slow).emit()
    h.place(slow)
    if space == "generic":
        _other_windows(h, access, stored, address)
    elif lanewise.opens_host(h):
        lanewise.access(h, access, stored, address, generic=False)
    else:
        lanewise.trap(h, access, address, bad)


def _other_windows(h: Handler, access: Access, stored: list[Value] | None, address: Address) -> None:
    """All lanes in the shared window, or all in the local one; else each lane by itself."""
    high = h.A.shr_by("u64", address.vector(), 56)
    outside = h.e.value("xor i32 %m, -1")
    for space, window in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
        here, on = h.label(space), h.label("on")
        same = h.e.value(f"icmp eq <32 x i64> {high}, {h.A.const('u64', window >> 56)}")
        bits = h.e.value(f"bitcast <32 x i1> {same} to i32")
        everybody = h.e.value(f"icmp eq i32 {h.e.value(f'or i32 {bits}, {outside}')}, -1")
        h.branch(everybody, here, on)
        h.place(here)
        if space == "shared":
            inside = _window(h, "shared")
            _Ranged(h, access, stored, address, Window(inside.host, str(window), inside.size), on).emit()
        else:
            local.access(h, access, stored, address, str(window))
        h.place(on)
    lanewise.access(h, access, stored, address, generic=True)


class Address:
    """The address operand: one register of all lanes plus a constant of the record, or only that constant."""

    def __init__(self, h: Handler) -> None:
        self.h = h
        self.ref: Ref | None = h.op.src[0]
        self.bits = 32 if self.ref is not None and self.ref.type == "b32" else 64
        self.register: Value = h.content(self.ref) if self.ref is not None else None
        self.imm = h.field("rec.imm")

    def vector(self) -> Value:
        """Effective addresses as 64-bit values."""
        offset = self.h.splat(64, self.imm)
        if self.register is None:
            return offset
        wide = self.register
        if self.bits == 32:  # a 32-bit address wraps at 32 bits
            narrow = self.h.splat(32, self.h.e.value(f"trunc i64 {self.imm} to i32"))
            return self.h.A.resize("u32", "u64", self.h.A.add("u32", wide, narrow))
        return self.h.A.add("u64", wide, offset)

    def lane(self, index: str) -> str:
        """Effective address of one lane, as i64."""
        if self.ref is None:
            return self.imm
        scalar = self.h.lane(self.ref, index)
        if self.bits == 32:
            low = self.h.e.value(f"trunc i64 {self.imm} to i32")
            return self.h.e.value(f"zext i32 {self.h.e.value(f'add i32 {scalar}, {low}')} to i64")
        return self.h.e.value(f"add i64 {scalar}, {self.imm}")

    def same(self, stride: int, leader: str) -> str:
        """i1: lane i's address is the leader's plus (i - leader) * stride, for all lanes that run."""
        if self.ref is None:
            return "true" if stride == 0 else "false"
        e, element, vector = self.h.e, f"i{self.bits}", f"<32 x i{self.bits}>"
        first = self.h.lane(self.ref, leader)
        values = self.register
        if stride:
            steps = ", ".join(f"{element} {lane * stride}" for lane in range(32))
            values = e.value(f"sub {vector} {values}, <{steps}>")
            place = leader if self.bits == 32 else e.value(f"zext i32 {leader} to i64")
            first = e.value(f"sub {element} {first}, {e.value(f'mul {element} {place}, {stride}')}")
        equal = e.value(f"icmp eq {vector} {values}, {self.h.splat(self.bits, first)}")
        bits = e.value(f"bitcast <32 x i1> {equal} to i32")
        rest = e.value("xor i32 %m, -1")
        return e.value(f"icmp eq i32 {e.value(f'or i32 {bits}, {rest}')}, -1")


class _Ranged:
    """An access inside one window; `fail` is where to go when a lane's address is not in it."""

    def __init__(self, h: Handler, access: Access, stored: list[Value] | None, address: Address, window: Window,
                 fail: str) -> None:  # fmt: skip
        self.h, self.access, self.stored, self.address, self.window, self.fail = (
            h, access, stored, address, window, fail,
        )  # fmt: skip
        self.shift = access.size.bit_length() - 1

    def emit(self) -> str:
        """Emits all paths; the lanes with bad addresses, for the code at `fail`."""
        h = self.h
        leader = h.leader()
        offset = h.e.value(f"sub i64 {self.address.lane(leader)}, {self.window.base}")
        limit = h.e.value(f"lshr i64 {self.window.size}, {self.shift}")
        anywhere = h.label("any")
        if self.address.ref is not None:
            self._consecutive(leader, offset, limit, anywhere)
        if self.stored is None:
            self._uniform(leader, offset, limit, anywhere)
        else:
            h.jump(anywhere)
        h.place(anywhere)
        return self._general(limit)

    def _checked(self, offset: str, limit: str) -> str:
        """i1: this one offset is aligned, and below `limit` accesses."""
        rotated = offset
        if self.shift:
            rotated = self.h.e.call("llvm.fshr.i64", "i64", [("i64", offset)] * 2 + [("i64", str(self.shift))])
        return self.h.e.value(f"icmp ult i64 {rotated}, {limit}")

    def _pointer(self, offset: str) -> str:
        return self.h.e.value(f"inttoptr i64 {self.h.e.value(f'add i64 {self.window.host}, {offset}')} to ptr")

    def _consecutive(self, leader: str, offset: str, limit: str, anywhere: str) -> None:
        h, e = self.h, self.h.e
        test, go, part, whole, other = (h.label(x) for x in ("test", "cons", "part", "whole", "other"))
        h.branch(self.address.same(self.access.size, leader), test, other)
        h.place(test)
        place = e.value(f"zext i32 {leader} to i64")
        first = e.value(f"sub i64 {offset}, {e.value(f'mul i64 {place}, {self.access.size}')}")
        room = e.call("llvm.usub.sat.i64", "i64", [("i64", limit), ("i64", "31")])
        h.branch(self._checked(first, room), go, anywhere, likely=True)
        h.place(go)
        pointer = self._pointer(first)
        h.branch("%full", whole, part if self.access.single else anywhere, likely=True)
        h.place(whole)
        self._whole(pointer)
        if self.access.single:
            h.place(part)
            self._masked(pointer)
        h.place(other)

    def _whole(self, pointer: str) -> None:
        """All 32 lanes, one stretch of memory."""
        e, access = self.h.e, self.access
        count, bits = len(access.parts), access.bits
        vector = f"<{32 * count} x i{bits}>"
        if self.stored is None:
            data = e.value(f"load {vector}, ptr {pointer}, align {bits // 8}")
            picks = [", ".join(f"i32 {count * lane + part}" for lane in range(32)) for part in range(count)]
            split = [e.value(f"shufflevector {vector} {data}, {vector} poison, <32 x i32> <{p}>") for p in picks]
            self.h.results(load_values(self.h, access, split if count > 1 else [data]), full=True)
            return
        data = self.stored[0] if count == 1 else join(self.h, bits, self.stored)
        e.line(f"store {vector} {data}, ptr {pointer}, align {bits // 8}")
        self.h.go_on()

    def _masked(self, pointer: str) -> None:
        e, bits = self.h.e, self.access.bits
        vector = f"<32 x i{bits}>"
        suffix = f"v32i{bits}.p0"
        where = f"ptr align {bits // 8} {pointer}"
        if self.stored is None:
            name = f"llvm.masked.load.{suffix}"
            e.declare(name, f"declare {vector} @{name}(ptr, <32 x i1>, {vector})")
            data = e.value(f"call {vector} @{name}({where}, <32 x i1> %lanes, {vector} zeroinitializer)")
            self.h.results(load_values(self.h, self.access, [data]), full=False)
            return
        name = f"llvm.masked.store.{suffix}"
        e.declare(name, f"declare void @{name}({vector}, ptr, <32 x i1>)")
        e.line(f"call void @{name}({vector} {self.stored[0]}, {where}, <32 x i1> %lanes)")
        self.h.go_on()

    def _uniform(self, leader: str, offset: str, limit: str, anywhere: str) -> None:
        h, e = self.h, self.h.e
        test, go = h.label("test"), h.label("same")
        h.branch(self.address.same(0, leader), test, anywhere)
        h.place(test)
        h.branch(self._checked(offset, limit), go, anywhere, likely=True)
        h.place(go)
        pointer = self._pointer(offset)
        loaded = []
        for part in self.access.parts:
            p = e.value(f"getelementptr i8, ptr {pointer}, i64 {part.offset}")
            scalar = e.value(f"load i{part.bits}, ptr {p}, align {part.bits // 8}")
            loaded.append(h.splat(part.bits, scalar))
        h.results(load_values(h, self.access, loaded))

    def _general(self, limit: str) -> str:
        h, e = self.h, self.h.e
        offsets = h.A.sub("u64", self.address.vector(), h.splat(64, self.window.base))
        rotated = offsets
        if self.shift:
            rotated = e.call(
                "llvm.fshr.v32i64", "<32 x i64>",
                [("<32 x i64>", offsets)] * 2 + [("<32 x i64>", f"splat (i64 {self.shift})")],
            )  # fmt: skip
        outside = e.value(f"icmp uge <32 x i64> {rotated}, {h.splat(64, limit)}")
        bad = e.value(f"and <32 x i1> {outside}, %lanes")
        bits = e.value(f"bitcast <32 x i1> {bad} to i32")
        go = h.label("scattered")
        h.branch(e.value(f"icmp eq i32 {bits}, 0"), go, self.fail, likely=True)
        h.place(go)
        base = e.value(f"inttoptr i64 {self.window.host} to ptr")
        if self.stored is not None:
            self._scatter(base, offsets)
        else:
            loaded = [self._gather(base, offsets, part) for part in range(len(self.access.parts))]
            h.results(load_values(h, self.access, loaded))
        return bits

    def _gather(self, base: str, offsets: Value, number: int) -> Value:
        part = self.access.parts[number]
        halves = [self._half_load(base, offsets, part.offset, part.bits, side) for side in (0, 1)]
        vector = f"<16 x i{part.bits}>"
        order = ", ".join(f"i32 {i}" for i in range(32))
        return self.h.e.value(f"shufflevector {vector} {halves[0]}, {vector} {halves[1]}, <32 x i32> <{order}>")

    def _half_shape(self, offsets: Value, bits: int) -> tuple[str, str, str]:
        """For 16 lanes: the first one's offset, and whether they are consecutive, and whether they are one."""
        e = self.h.e
        first = e.value(f"extractelement <16 x i64> {offsets}, i32 0")
        steps = ", ".join(f"i64 {lane * bits // 8}" for lane in range(16))
        single = e.value(f"insertelement <16 x i64> poison, i64 {first}, i32 0")
        everywhere = e.value(f"shufflevector <16 x i64> {single}, <16 x i64> poison, <16 x i32> zeroinitializer")
        answers = []
        for expected in (e.value(f"add <16 x i64> {everywhere}, <{steps}>"), everywhere):
            equal = e.value(f"icmp eq <16 x i64> {offsets}, {expected}")
            answers.append(e.value(f"icmp eq i16 {e.value(f'bitcast <16 x i1> {equal} to i16')}, -1"))
        return first, answers[0], answers[1]

    def _half_load(self, base: str, offsets: Value, at: int, bits: int, side: int) -> Value:
        h, e = self.h, self.h.e
        mine, lanes = half(h, offsets, "i64", side), half(h, "%lanes", "i1", side)
        start = e.value(f"getelementptr i8, ptr {base}, i64 {at}")
        vector = f"<16 x i{bits}>"
        line, point, rest, found, scan, end = (h.label(x) for x in ("line", "point", "rest", "one", "scan", "end"))
        first, consecutive, equal = self._half_shape(mine, bits)
        pointer = e.value(f"getelementptr i8, ptr {start}, i64 {first}")
        some = e.value(f"icmp eq i16 {e.value(f'bitcast <16 x i1> {lanes} to i16')}, -1")
        h.branch(e.value(f"and i1 {some}, {consecutive}") if self.access.single else "false", line, scan)
        h.place(line)
        straight = e.value(f"load {vector}, ptr {pointer}, align {bits // 8}")
        h.jump(end)
        h.place(scan)
        h.branch(e.value(f"and i1 {some}, {equal}"), point, rest)
        h.place(point)
        h.jump(found)
        h.place(found)
        scalar = e.value(f"load i{bits}, ptr {pointer}, align {bits // 8}")
        single = e.value(f"insertelement {vector} poison, i{bits} {scalar}, i32 0")
        spread = e.value(f"shufflevector {vector} {single}, {vector} poison, <16 x i32> zeroinitializer")
        h.jump(end)
        h.place(rest)
        gathered = word_gather(h, start, mine, lanes, bits)
        h.jump(end)
        h.place(end)
        return e.value(f"phi {vector} [{straight}, %{line}], [{spread}, %{found}], [{gathered}, %{rest}]")

    def _scatter(self, base: str, offsets: Value) -> None:
        h, e = self.h, self.h.e
        assert self.stored is not None
        for part, value in zip(self.access.parts, self.stored, strict=True):
            start = e.value(f"getelementptr i8, ptr {base}, i64 {part.offset}")
            if part.bits >= 32 and "avx512f" in e.features:
                lanewise.scatter(h, start, offsets, part.bits, value)
            else:
                lanewise.scatter_each(h, start, offsets, part.bits, value)
        h.go_on()
