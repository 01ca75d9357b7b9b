"""Accesses lane by lane: any window of the generic space, host memory open to a kernel, addresses out of bounds."""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.structures import TRAP_ADDRESS, TRAP_MISALIGNED
from ptxtools.program.details import HostMemory, ThreadCopy
from ptxtools.program.program import LOCAL_WINDOW, OFFSET_MASK, PARAM_WINDOW, RANK_SHIFT, SHARED_WINDOW
from ptxtools.semantics.algebra import Value

from .parts import Access, Address, load_values

#: Host address of a device address for one lane, null if there is none or `size` does not divide it. For local memory,
#: whose words lie 128 bytes apart, the address of the first word.
TRANSLATE = f"""
define ptr @translate(ptr %ctx, ptr %warp, i32 %lane, i64 %address, i64 %size, i1 %generic) #1 {{
  %less = sub i64 %size, 1
  %low = and i64 %address, %less
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %where, label %bad
where:
  %base = get ctx.base
  %bytes = get ctx.size
  %offset = sub i64 %address, %base
  %fits.sum = sub i64 %bytes, %size
  %small = icmp ult i64 %bytes, %size
  %fits = icmp ule i64 %offset, %fits.sum
  %never = xor i1 %small, true
  %inside = and i1 %fits, %never
  br i1 %inside, label %arena, label %elsewhere
arena:
  %shift = get ctx.arena
  %host = add i64 %shift, %address
  %arena.p = inttoptr i64 %host to ptr
  ret ptr %arena.p
elsewhere:
  br i1 %generic, label %windows, label %ranges
windows:
  %high = lshr i64 %address, 56
  %rest = and i64 %address, 72057594037927935
  %end = add i64 %rest, %size
  switch i64 %high, label %ranges [
    i64 {SHARED_WINDOW >> 56}, label %shared
    i64 {LOCAL_WINDOW >> 56}, label %local
    i64 {PARAM_WINDOW >> 56}, label %param
  ]
shared:
  %own = get warp.cta
  %own.window = get cta.window of %own
  %own.at = sub i64 %rest, %own.window
  %own.end = add i64 %own.at, %size
  %shared.bytes = get ctx.shared_bytes
  %shared.bytes64 = zext i32 %shared.bytes to i64
  %own.p = get cta.shared of %own
  %own.first = icmp ult i64 %own.at, %shared.bytes64
  %own.last = icmp ule i64 %own.end, %shared.bytes64
  %own.ok = and i1 %own.first, %own.last
  br i1 %own.ok, label %shared.own, label %shared.other
shared.own:
  %shared.at = getelementptr i8, ptr %own.p, i64 %own.at
  ret ptr %shared.at
shared.other:                                     ; of another CTA of the cluster
  %step = get ctx.rank_step
  %alone = icmp eq i64 %step, 0
  br i1 %alone, label %bad, label %shared.ranked
shared.ranked:
  %rank = lshr i64 %rest, {RANK_SHIFT}
  %inside.cta = and i64 %rest, {OFFSET_MASK}
  %inside.end = add i64 %inside.cta, %size
  %ctas = get ctx.cluster_size
  %ctas64 = zext i32 %ctas to i64
  %rank.ok = icmp ult i64 %rank, %ctas64
  %other.ok = icmp ule i64 %inside.end, %shared.bytes64
  %both.ok = and i1 %rank.ok, %other.ok
  br i1 %both.ok, label %shared.go, label %bad
shared.go:
  %leader = get cta.leader of %own
  %slot = get ctx.slot_bytes
  %distance = mul i64 %rank, %slot
  %other = getelementptr i8, ptr %leader, i64 %distance
  %other.p = get cta.shared of %other
  %other.at = getelementptr i8, ptr %other.p, i64 %inside.cta
  ret ptr %other.at
local:
  %local.p = get warp.local
  %local.bytes = get ctx.local_bytes
  %local.ok = icmp ule i64 %end, %local.bytes
  %word = lshr i64 %rest, 2
  %row = shl i64 %word, 7
  %column = shl i32 %lane, 2
  %column64 = zext i32 %column to i64
  %byte = and i64 %rest, 3
  %row.lane = add i64 %row, %column64
  %place = add i64 %row.lane, %byte
  %local.at = getelementptr i8, ptr %local.p, i64 %place
  br i1 %local.ok, label %local.go, label %bad
local.go:
  ret ptr %local.at
param:
  %param.p = get ctx.params
  %param.bytes = get ctx.param_bytes
  %param.bytes64 = zext i32 %param.bytes to i64
  %param.ok = icmp ule i64 %end, %param.bytes64
  %param.at = getelementptr i8, ptr %param.p, i64 %rest
  br i1 %param.ok, label %param.go, label %bad
param.go:
  ret ptr %param.at
ranges:                                           ; host memory that is known to be there: pairs of first and end
  %open = get ctx.open_host
  %count = get ctx.range_count
  %table = get ctx.ranges
  %some = icmp ne i32 %count, 0
  %opened = icmp ne i32 %open, 0
  %search = and i1 %some, %opened
  br i1 %search, label %range, label %bad
range:
  %i = phi i32 [0, %ranges], [%i.next, %range.next]
  %two = shl i32 %i, 1
  %first.p = getelementptr i64, ptr %table, i32 %two
  %end.p = getelementptr i64, ptr %first.p, i32 1
  %range.first = load i64, ptr %first.p
  %range.end = load i64, ptr %end.p
  %room = sub i64 %range.end, %address
  %after = icmp uge i64 %address, %range.first
  %before = icmp ult i64 %address, %range.end
  %enough = icmp ule i64 %size, %room
  %begins = and i1 %after, %before
  %within = and i1 %begins, %enough
  br i1 %within, label %range.go, label %range.next
range.next:
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %count
  br i1 %again, label %range, label %bad
range.go:
  %range.p = inttoptr i64 %address to ptr
  ret ptr %range.p
bad:
  ret ptr null
}}
"""


def translate(h: Handler, lane: str, address: str, size: int, *, generic: bool) -> str:
    """Host pointer of one lane's address; null when it cannot be accessed."""
    h.code.declare("@translate", "declare ptr @translate(ptr, ptr, i32, i64, i64, i1)")
    flag = "true" if generic else "false"
    arguments = f"ptr %ctx, ptr %warp, i32 {lane}, i64 {address}, i64 {size}, i1 {flag}"
    return h.code.value(f"call ptr @translate({arguments})")


def in_window(h: Handler, address: str, window: int) -> str:
    """The generic address of an address below 2**56 in a window; other addresses become invalid."""
    e = h.code
    small = e.value(f"icmp ult i64 {address}, {1 << 56}")
    return e.value(f"select i1 {small}, i64 {e.value(f'or i64 {address}, {window}')}, i64 -1")


def refuse(h: Handler, lane: str, address: str, size: int, *, write: bool = False) -> None:
    """This lane's address cannot be accessed: a trap, unless Python can open host memory there. Ends the path."""
    h.code.expand(f"set ctx.stop_address, {address}")
    bit = h.code.value(f"shl i32 1, {lane}")
    low = h.code.value(f"and i64 {address}, {size - 1}")
    crooked = h.code.value(f"icmp ne i64 {low}, 0")
    if opens_host(h):
        host, trap = h.code.label("host"), h.code.label("trap")
        h.code.branch(crooked, trap, host)
        h.code.begin(host)
        depth = h.code.name()
        h.code.expand(f"""
            {depth} = depth %fp
            set warp.group_frame, {depth}
            set ctx.resume_ip, %ip
            set ctx.resume_mask, %mask
            set ctx.stop_ip, %ip
            set ctx.stop_warp, %warp
            set ctx.stop_fp, %fp
            set ctx.stop_mask, {bit}
            set ctx.stop_code, {size * 2 + write}
            leave STATUS_HOST
        """)
        h.code.begin(trap)
    h.trap(h.code.value(f"select i1 {crooked}, i32 {TRAP_MISALIGNED}, i32 {TRAP_ADDRESS}"), bit)


def opens_host(h: Handler) -> bool:
    """Whether this handler serves launches whose kernels may use host addresses."""
    detail = h.op.detail
    return isinstance(detail, HostMemory) or (isinstance(detail, ThreadCopy) and detail.host)


class Lanes:
    """A loop over the lanes that run: `lane` is the number of the current one, `top` and `after` are its labels."""

    def __init__(self, h: Handler) -> None:
        self.handler = h
        start, self.top, self.after = h.code.label("start"), h.code.label("lane"), h.code.label("after")
        self._left = h.code.name("left")
        h.code.jump(start)
        h.code.begin(start)
        h.code.jump(self.top)
        h.code.begin(self.top)
        self._phi = len(h.code.lines)
        self._start = start
        h.code.line("")
        self.lane = h.code.call("llvm.cttz.i32", "i32", [("i32", self._left), ("i1", "true")])

    def again(self) -> None:
        """End of the body: continue with the next lane, or after the loop."""
        h = self.handler
        last = h.code.label("last")
        h.code.jump(last)
        h.code.begin(last)
        less = h.code.value(f"sub i32 {self._left}, 1")
        rest = h.code.value(f"and i32 {self._left}, {less}")
        h.code.lines[self._phi] = f"  {self._left} = phi i32 [%m, %{self._start}], [{rest}, %{last}]"
        h.code.branch(h.code.value(f"icmp eq i32 {rest}, 0"), self.after, self.top)
        h.code.begin(self.after)


def array(h: Handler, bits: int) -> str:
    """Room for one value of each lane."""
    return h.code.value(f"alloca <32 x i{bits}>, align 64")


def element(h: Handler, base: str, bits: int, lane: str) -> str:
    return h.code.value(f"getelementptr i{bits}, ptr {base}, i32 {lane}")


def _stride(h: Handler, address: str, generic: bool) -> str:
    """Distance of the words of one lane's access."""
    if not generic:
        return "4"
    window = h.code.value(f"lshr i64 {address}, 56")
    inside = h.code.value(f"icmp eq i64 {window}, {LOCAL_WINDOW >> 56}")
    return h.code.value(f"select i1 {inside}, i64 128, i64 4")


def access(
    h: Handler, access: Access, stored: list[Value] | None, address: Address, *, generic: bool, window: int = 0
) -> None:
    """Load or store with an address check for each lane. Ends the path. window: the window of plain addresses."""
    e = h.code
    places = array(h, 64)
    e.line(f"store <32 x i64> {address.vector()}, ptr {places}, align 64")
    rooms = [array(h, part.bits) for part in access.parts]
    if stored is not None:
        for room, part, value in zip(rooms, access.parts, stored, strict=True):
            e.line(f"store <32 x i{part.bits}> {value}, ptr {room}, align 64")
    lanes = Lanes(h)
    one = e.value(f"load i64, ptr {element(h, places, 64, lanes.lane)}")
    where = in_window(h, one, window) if window else one
    pointer = translate(h, lanes.lane, where, access.size, generic=generic)
    go, bad = h.code.label("go"), h.code.label("bad")
    h.code.branch(e.value(f"icmp ne ptr {pointer}, null"), go, bad, likely=True)
    h.code.begin(bad)
    refuse(h, lanes.lane, one, access.size, write=stored is not None)
    h.code.begin(go)
    stride = _stride(h, one, generic)
    for room, part in zip(rooms, access.parts, strict=True):
        own = element(h, room, part.bits, lanes.lane)
        _move(h, pointer, stride, part.offset, part.bits, own, store=stored is not None)
    lanes.again()
    if stored is not None:
        h.go_on()
        return
    loaded = [e.value(f"load <32 x i{p.bits}>, ptr {r}, align 64") for p, r in zip(access.parts, rooms, strict=True)]
    h.results(load_values(h, access, loaded))


def _move(h: Handler, pointer: str, stride: str, offset: int, bits: int, own: str, *, store: bool) -> None:
    """Copy one piece, word by word, between memory and the lane's place in an array."""
    e = h.code
    width = min(bits, 32)
    for word in range(max(1, bits // 32)):
        index, byte = divmod(offset + 4 * word, 4)
        distance = e.value(f"mul i64 {stride}, {index}")
        far = e.value(f"getelementptr i8, ptr {pointer}, i64 {e.value(f'add i64 {distance}, {byte}')}")
        near = e.value(f"getelementptr i8, ptr {own}, i64 {4 * word}")
        source, target = (near, far) if store else (far, near)
        e.line(f"store i{width} {e.value(f'load i{width}, ptr {source}')}, ptr {target}")


def trap(h: Handler, access: Access, address: Address, bad: str) -> None:
    """Stop at the first of the lanes in `bad`, whose address cannot be accessed. Ends the path."""
    lane = h.code.call("llvm.cttz.i32", "i32", [("i32", bad), ("i1", "true")])
    refuse(h, lane, address.lane(lane), access.size)


def scatter(h: Handler, start: str, offsets: Value, bits: int, value: Value) -> None:
    """Store words at any addresses, by the machine's own instruction."""
    e, vector, name = h.code, f"<32 x i{bits}>", f"llvm.masked.scatter.v32i{bits}.v32p0"
    pointers = e.value(f"getelementptr i8, ptr {start}, <32 x i64> {offsets}")
    e.declare(name, f"declare void @{name}({vector}, <32 x ptr>, <32 x i1>)")
    e.line(f"call void @{name}({vector} {value}, <32 x ptr> align {bits // 8} {pointers}, <32 x i1> %lanes)")


def scatter_each(h: Handler, start: str, offsets: Value, bits: int, value: Value) -> None:
    """Store pieces at any addresses, one after the other."""
    e = h.code
    places, data = array(h, 64), array(h, bits)
    e.line(f"store <32 x i64> {offsets}, ptr {places}, align 64")
    e.line(f"store <32 x i{bits}> {value}, ptr {data}, align 64")
    lanes = Lanes(h)
    offset = e.value(f"load i64, ptr {element(h, places, 64, lanes.lane)}")
    one = e.value(f"load i{bits}, ptr {element(h, data, bits, lanes.lane)}")
    e.line(f"store i{bits} {one}, ptr {e.value(f'getelementptr i8, ptr {start}, i64 {offset}')}")
    lanes.again()
