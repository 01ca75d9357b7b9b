"""Atomic operations (9.7.13.5 and on), lane by lane, with the atomic instructions of the machine.

All addresses are checked first, so that an operation that stops there can be repeated.
"""

from __future__ import annotations

from ptxtools import semantics
from ptxtools.native.code.algebra import LLVMAlgebra
from ptxtools.native.code.handler import Handler
from ptxtools.program.program import LANES, LOCAL_WINDOW, SHARED_WINDOW
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.types import bits_of

from .lanewise import Lanes, array, element, refuse, translate
from .memory import POLL
from .parts import Address, in_units, window
from .plain import spend

#: Operations that LLVM has on integers, by name and signedness.
_INTEGER = {
    "add": ("add", "add"), "and": ("and", "and"), "or": ("or", "or"), "xor": ("xor", "xor"), "exch": ("xchg", "xchg"),
    "min": ("umin", "min"), "max": ("umax", "max"), "inc": ("uinc_wrap", "uinc_wrap"),
    "dec": ("udec_wrap", "udec_wrap"),
}  # fmt: skip
_OPERATIONS = ("cas", *_INTEGER)
#: Those that are one instruction on memory that no other worker touches, and the types that they are that for.
_PLAIN = frozenset({"add", "and", "or", "xor", "exch", "min", "max"})
_WORDS = frozenset({"u32", "s32", "b32", "u64", "s64", "b64"})

#: Lanes of a whole warp that one round of a loop does.
_AT_ONCE = 8


def atomic(h: Handler) -> None:
    """atom and red: dst (if any) = old value at src[0] + imm; new value = operation of the old one and src[1:]."""
    opcode = h.op.opcode
    assert opcode is not None
    if h.op.kind == "atom" and h.op.space != "shared":  # another CTA may have to act before this one goes on
        spend(h, POLL)
    name = next(o for o in _OPERATIONS if opcode.has(o))
    types = h.op.dst_types or h.op.src_types[1:]  # red has one operand for each element
    operands = h.sources()[1:]
    each = len(operands) // len(types) or 1
    size = max(1, sum(bits_of(t) for t in types) // 8)
    if h.op.space == "shared" and len(types) == 1 and name in _PLAIN and types[0] in _WORDS:
        _in_own_memory(h, name, types[0], operands[0])
    pointers = _pointers(h, size)
    old: list[Value] = []
    at = 0
    for number, t in enumerate(types):
        mine = operands[number :: len(types)] if each > 1 else operands[number : number + 1]
        old.append(_element(h, name, t, mine, pointers, at))
        at += bits_of(t) // 8
    if h.op.dst:
        h.results(old)
    else:
        h.go_on()


def _in_own_memory(h: Handler, name: str, t: str, operand: Value) -> None:
    """The whole operation on shared memory, which only this worker touches, if all addresses are right; else it goes
    on."""
    e, bits = h.code, bits_of(t)
    shift = (bits // 8).bit_length() - 1
    place, address = window(h, "shared"), Address(h)
    most = e.value(f"lshr i64 {place.size}, {shift}")
    if address.bits == 32:
        limit = e.spread("i32", e.value(f"trunc i64 {most} to i32"))
        units = in_units(h, address.narrow(), shift, "<32 x i32>")
        below = e.value(f"icmp ult <32 x i32> {units}, {limit}")
    else:
        wide = in_units(h, address.vector(), shift)
        below = e.value(f"icmp ult <32 x i64> {wide}, {e.spread('i64', most)}")
        units = e.value(f"trunc <32 x i64> {wide} to <32 x i32>")
    inside = e.value(f"bitcast <32 x i1> {below} to i32")
    missing = e.value(f"and i32 {e.value(f'xor i32 {inside}, -1')}, {h.running}")
    indices, values, old = array(h, 32), array(h, bits), array(h, bits)
    for ref in h.op.dst:
        if ref is not None:
            h.pointer(ref)
    usual, other = e.label("usual"), e.label("other")
    e.branch(e.value(f"icmp eq i32 {missing}, 0"), usual, other, likely=True)
    e.begin(usual)
    e.line(f"store <32 x i32> {units}, ptr {indices}, align 64")
    e.line(f"store <32 x i{bits}> {operand}, ptr {values}, align 64")
    start = e.value(f"inttoptr i64 {place.host} to ptr")
    wanted = any(ref is not None for ref in h.op.dst)

    def one(lane: str) -> None:
        index = e.value(f"zext i32 {e.value(f'load i32, ptr {element(h, indices, 32, lane)}')} to i64")
        pointer = e.value(f"getelementptr i{bits}, ptr {start}, i64 {index}")
        before = e.value(f"load i{bits}, ptr {pointer}")
        mine = e.value(f"load i{bits}, ptr {element(h, values, bits, lane)}")
        e.line(f"store i{bits} {_plainly(h, name, t, before, mine)}, ptr {pointer}")
        if wanted:
            e.line(f"store i{bits} {before}, ptr {element(h, old, bits, lane)}")

    done = e.label("done")
    if not e.brief:
        whole, several, part = (e.label(hint) for hint in ("whole", "several", "part"))
        e.branch(h.full, whole, part, likely=True)
        e.begin(whole)
        e.jump(several)
        e.begin(several)
        first, following = e.name("first"), e.name("following")
        e.line(f"{first} = phi i32 [0, %{whole}], [{following}, %{several}]")
        for more in range(_AT_ONCE):
            one(e.value(f"add i32 {first}, {more}"))
        e.line(f"{following} = add i32 {first}, {_AT_ONCE}")
        e.branch(e.value(f"icmp eq i32 {following}, {LANES}"), done, several)
        e.begin(part)
    lanes = Lanes(h)
    one(lanes.lane)
    lanes.again()
    e.jump(done)
    e.begin(done)
    if wanted:
        h.results([e.value(f"load <32 x i{bits}>, ptr {old}, align 64")])
    else:
        h.go_on()
    e.begin(other)


def _plainly(h: Handler, name: str, t: str, before: str, mine: str) -> str:
    """What an operation makes of an integer in memory that nobody else touches."""
    e, bits = h.code, bits_of(t)
    if name == "exch":
        return mine
    if name in ("min", "max"):
        return e.call(
            f"llvm.{'s' if t[0] == 's' else 'u'}{name}.i{bits}", f"i{bits}", [(f"i{bits}", before), (f"i{bits}", mine)]
        )
    return e.value(f"{name} i{bits} {before}, {mine}")


def _pointers(h: Handler, size: int) -> str:
    """Array of host addresses, one for each lane that runs."""
    e = h.code
    addresses, pointers = array(h, 64), array(h, 64)
    e.line(f"store <32 x i64> {Address(h).vector()}, ptr {addresses}, align 64")
    lanes = Lanes(h)
    one = e.value(f"load i64, ptr {element(h, addresses, 64, lanes.lane)}")
    where = one
    shared = h.op.space in ("shared", "cluster")
    if shared:  # shared addresses are below 2**32
        big = e.value(f"lshr i64 {one}, 56")
        inside = e.value(f"or i64 {one}, {SHARED_WINDOW}")
        where = e.value(f"select i1 {e.value(f'icmp eq i64 {big}, 0')}, i64 {inside}, i64 -1")
    pointer = translate(h, lanes.lane, where, size, generic=shared or h.op.space == "generic")
    if h.op.space == "generic":  # no atomics on local memory
        window = e.value(f"lshr i64 {one}, 56")
        local = e.value(f"icmp eq i64 {window}, {LOCAL_WINDOW >> 56}")
        pointer = e.value(f"select i1 {local}, ptr null, ptr {pointer}")
    go, bad = h.code.label("go"), h.code.label("bad")
    h.code.branch(e.value(f"icmp ne ptr {pointer}, null"), go, bad, likely=True)
    h.code.begin(bad)
    refuse(h, lanes.lane, one, size, write=True)
    h.code.begin(go)
    e.line(f"store ptr {pointer}, ptr {element(h, pointers, 64, lanes.lane)}")
    lanes.again()
    return pointers


def _element(h: Handler, name: str, t: str, operands: list[Value], pointers: str, at: int) -> Value:
    """One element of the memory operand, for all lanes in turn; returns the old values."""
    e, bits = h.code, bits_of(t)
    room = e.value(f"alloca [32 x i{bits}], align 64")
    rooms = [_spread(h, value, bits) for value in operands]
    lanes = Lanes(h)
    base = e.value(f"load ptr, ptr {element(h, pointers, 64, lanes.lane)}")
    pointer = e.value(f"getelementptr i8, ptr {base}, i64 {at}")
    mine = [e.value(f"load i{bits}, ptr {element(h, r, bits, lanes.lane)}, align {bits // 8}") for r in rooms]
    before = _once(h, name, t, pointer, mine)
    e.line(f"store i{bits} {before}, ptr {element(h, room, bits, lanes.lane)}, align {bits // 8}")
    lanes.again()
    if bits < 128:
        return e.value(f"load <32 x i{bits}>, ptr {room}, align 64")
    whole = e.value(f"load <64 x i64>, ptr {room}, align 64")
    return tuple(_every_other(h, whole, first) for first in (0, 1))


def _every_other(h: Handler, whole: Value, first: int) -> Value:
    return h.code.shuffle("<64 x i64>", range(first, 64, 2), whole)


def _spread(h: Handler, value: Value, bits: int) -> str:
    """A value in memory, lane after lane."""
    e = h.code
    room = e.value(f"alloca [32 x i{bits}], align 64")
    if bits < 128:
        e.line(f"store <32 x i{bits}> {value}, ptr {room}, align 64")
        return room
    both = e.shuffle("<32 x i64>", (i // 2 + 32 * (i % 2) for i in range(64)), *value)
    e.line(f"store <64 x i64> {both}, ptr {room}, align 64")
    return room


def _ordering(h: Handler) -> str:
    opcode = h.op.opcode
    assert opcode is not None
    return "acq_rel" if any(opcode.has(o) for o in ("acquire", "release", "acq_rel")) else "monotonic"


def _once(h: Handler, name: str, t: str, pointer: str, operands: list[str]) -> str:
    """The operation for one lane; returns the old value."""
    e, bits, order = h.code, bits_of(t), _ordering(h)
    integer = f"i{bits}"
    if name == "cas":
        failure = "acquire" if order == "acq_rel" else "monotonic"
        pair = f"{integer} {operands[0]}, {integer} {operands[1]} {order} {failure}"
        return e.value(f"extractvalue {{{integer}, i1}} {e.value(f'cmpxchg ptr {pointer}, {pair}')}, 0")
    if name == "exch" or (t[0] in "usb" and "x" not in t and t != "bf16"):
        operation = _INTEGER[name][t[0] == "s"]
        return e.value(f"atomicrmw {operation} ptr {pointer}, {integer} {operands[0]} {order}")
    return _compare_and_swap(h, name, t, pointer, operands[0])


def _compare_and_swap(h: Handler, name: str, t: str, pointer: str, operand: str) -> str:
    """Arithmetic without an atomic instruction: retried until no other worker has changed the memory meanwhile."""
    e, integer, order = h.code, f"i{bits_of(t)}", _ordering(h)
    start, retry, done = h.code.label("begin"), h.code.label("retry"), h.code.label("done")
    h.code.jump(start)
    h.code.begin(start)
    first = e.value(f"load atomic {integer}, ptr {pointer} monotonic, align {bits_of(t) // 8}")
    h.code.jump(retry)
    h.code.begin(retry)
    old = e.name("old")
    place = len(e.lines)
    e.line("")
    new = _arithmetic(h, name, t, old, operand)
    failure = "acquire" if order == "acq_rel" else "monotonic"
    pair = f"{integer} {old}, {integer} {new} {order} {failure}"
    answer = e.value(f"cmpxchg ptr {pointer}, {pair}")
    seen = e.value(f"extractvalue {{{integer}, i1}} {answer}, 0")
    stored = e.value(f"extractvalue {{{integer}, i1}} {answer}, 1")
    last = h.code.label("last")
    h.code.jump(last)
    h.code.begin(last)
    e.lines[place] = f"  {old} = phi {integer} [{first}, %{start}], [{seen}, %{last}]"
    h.code.branch(stored, done, retry, likely=True)
    h.code.begin(done)
    return old


def _arithmetic(h: Handler, name: str, t: str, old: str, operand: str) -> str:
    """The semantics of the atomic operation, for one lane."""
    opcode = h.op.opcode
    rule = semantics.atomic_rule(opcode) if opcode is not None else None
    if rule is None:
        raise LookupError(f"no semantics for the atomic operation {name!r}")
    return str(rule(LLVMAlgebra(h.code, lanes=0), t, old, operand))
