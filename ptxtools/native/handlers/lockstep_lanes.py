"""What one warp does where all is known of its addresses (`lockstep`): contents of registers, loads and stores."""

from __future__ import annotations

from ptxtools.native.code.emitter import Emitter, splat, vector
from ptxtools.native.code.handler import ELEMENT, Handler
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.runs import Step
from ptxtools.native.code.structures import FLAGS_SET
from ptxtools.program.program import LANES, SLOT_BYTES
from ptxtools.records import NamedTuple
from ptxtools.semantics.algebra import Value

from . import prefetch, run
from .linear import Form, Linear, Parts, Pred
from .parts import half
from .patterns import SIDES

_HALF = LANES // 2
_ROW = f"<{_HALF} x i32>"


class Address(NamedTuple):
    """Of an access: host address (i64) of a thread at place 0; what it grows by along the axes; whether only some lanes
    make it; how far behind (i64) it is likely to be in the next CTA, or ""; flags: of a store, where the flags of that
    thread's word are (i64), 0 where there are none, or ""."""

    host: str
    parts: Parts
    part: bool
    ahead: str = ""
    flags: str = ""


def alike(address: Address) -> bool:
    """Whether all rows of a CTA have the same words."""
    return address.parts[1] == 4 and address.parts[2:] == (0, 0)


def slot_type(key: Key) -> str:
    """The type of a slot's content, of which a predicate is a word."""
    return "i32" if key[1] == "pred" else vector(ELEMENT[key[1]])


def store_slot(e: Emitter, key: Key, value: Value) -> None:
    """Write a slot in the frame of the warp."""
    slot, storage = key
    values = value if isinstance(value, tuple) else (value,)
    kind = vector("i64") if storage == "b128" else slot_type(key)
    for number, one in enumerate(values):
        place = e.value(f"getelementptr i8, ptr %fp, i64 {slot + number * SLOT_BYTES['b64']}")
        e.line(f"store {kind} {one}, ptr {place}, align {4 if storage == 'pred' else 64}")


class Lanes(run.Contents):
    """Contents of a run's operands. forms: of those that have one; values: of slots that have been written; shared:
    what several runs of the warp need; narrow: each half of a warp is a whole row of the CTA."""

    def __init__(
        self, h: Handler, forms: dict[int, Form], slots: dict[int, Key], values: dict[Key, Value],
        shared: dict[tuple[object, ...], str], *, narrow: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(h, slots)
        self.forms, self.values, self.shared, self.narrow = forms, values, shared, narrow

    def __getitem__(self, number: int) -> Value:
        if number not in self.known and number not in self.loose:
            form, key = self.forms.get(number), self.slots.get(number)
            if key is not None and key in self.values:
                value = self.values[key]
                self.known[number] = self.flags(number, value) if key[1] == "pred" else value
            elif isinstance(form, Linear):
                self.known[number] = self.vector(form)
            elif form is not None:
                self.known[number] = self.flags(number, self.vector(form))
        return super().__getitem__(number)

    def slot(self, number: int) -> Value:
        """A slot's content in the frame; a predicate's as a word."""
        return self.word(number) if self.slots[number][1] == "pred" else self[number]

    def vector(self, form: Form) -> str:
        """A form in all lanes; of a predicate that is the same in all threads, as a word."""
        e = self.handler.code
        if isinstance(form, Pred):
            assert form.same
            return e.value(f"select i1 {form.every}, i32 -1, i32 0")
        if (form,) in self.shared:
            return self.shared[form,]
        element, total = f"i{form.bits}", ""
        for axis, part in zip("xyz", form.parts[1:], strict=True):
            if part != 0:
                place = self._place(axis, form.bits)
                if part != 1:
                    place = e.value(f"mul {vector(element)} {place}, {self._spread(element, part)}")
                total = e.value(f"add {vector(element)} {total}, {place}") if total else place
        if not total or form.parts[0] != 0:
            first = self._spread(element, form.parts[0])
            total = e.value(f"add {vector(element)} {total}, {first}") if total else first
        self.shared[form,] = total
        return total

    def _place(self, axis: str, bits: int) -> str:
        """Where each lane is along an axis."""
        if (axis, bits) not in self.shared:
            e = self.handler.code
            place = e.field(f"warp.tid_{axis}")
            if bits == 64:
                place = e.value(f"zext {vector('i32')} {place} to {vector('i64')}")
            self.shared[axis, bits] = place
        return self.shared[axis, bits]

    def _spread(self, element: str, part: int | str) -> str:
        return splat(element, part) if isinstance(part, int) else self.handler.code.spread(element, part)

    def beyond(self, parts: Parts, side: int) -> str:
        """i64: how far the first lane of half a warp is from where a thread at place 0 would be."""
        e, total = self.handler.code, ""
        if (parts[1:], side) in self.shared:
            return self.shared[parts[1:], side]
        for axis, part in zip("xyz", parts[1:], strict=True):
            if part == 0 or (axis == "x" and self.narrow):
                continue
            if (axis, "first", side) not in self.shared:
                place = e.item(f"warp.tid_{axis}", str(_HALF * side))
                self.shared[axis, "first", side] = e.value(f"zext i32 {e.value(f'load i32, ptr {place}')} to i64")
            more = self.shared[axis, "first", side]
            more = more if part == 1 else e.value(f"mul i64 {more}, {part}")
            total = e.value(f"add i64 {total}, {more}") if total else more
        self.shared[parts[1:], side] = total or "0"
        return total or "0"


class Rows:
    """Accesses of a run, each half of the lanes at words in a row or at one word; all are in bounds. lanes: an i32,
    those that make them, or "" for all. alike: loads of rows that are the same for all warps, where nobody stores."""

    def __init__(
        self, h: Handler, contents: Lanes, addresses: dict[Step, Address], lanes: str,
        alike: dict[Step, Value] | None = None,
    ) -> None:  # fmt: skip
        self.handler, self.code, self.contents = h, h.code, contents
        self.addresses, self.lanes = addresses, lanes
        self.alike: dict[Step, Value] = {} if alike is None else alike
        self.skipped: set[int] = set()

    def _active(self, step: Step) -> str:
        """The lanes that make an access, "" for all."""
        if step.guard < 0:
            return self.lanes
        flags = self.contents.word(step.guard)
        if step.negated:
            flags = self.code.value(f"xor i32 {flags}, -1")
        return self.code.value(f"and i32 {flags}, {self.lanes}") if self.lanes else flags

    def _pointer(self, address: Address, side: int) -> str:
        where = self.code.value(f"add i64 {address.host}, {self.contents.beyond(address.parts, side)}")
        if address.ahead:
            prefetch.fetch(self.code, [where], address.ahead)
        return self.code.value(f"inttoptr i64 {where} to ptr")

    def _half(self, active: str, side: int) -> str:
        """Lanes of a half, as flags."""
        return str(half(self.handler, self.code.value(f"bitcast i32 {active} to <{LANES} x i1>"), "i1", side))

    def load(self, step: Step) -> list[Value]:
        """The word that each lane loads."""
        e, address, active = self.code, self.addresses[step], self._active(step)
        sides: list[str] = []
        if address.parts[1:] == (0, 0, 0):
            return [e.spread("i32", self._word(address, active, 0, active))]
        if self.contents.narrow and not active and alike(address):
            if step not in self.alike:
                row = e.value(f"load {_ROW}, ptr {self._pointer(address, 0)}, align 4")
                self.alike[step] = e.concatenate("i32", [row, row], _HALF)
            return [self.alike[step]]
        for side in SIDES:
            if address.parts[1] == 0:
                mine = e.value(f"and i32 {active}, {-65536 if side else 65535}") if active else ""
                sides.append(e.spread("i32", self._word(address, active, side, mine), _HALF))
                continue
            pointer = self._pointer(address, side)
            if not active:
                sides.append(e.value(f"load {_ROW}, ptr {pointer}, align 4"))
                continue
            name = "llvm.masked.load.v16i32.p0"
            e.declare(name, f"declare {_ROW} @{name}(ptr, <16 x i1>, {_ROW})")
            operands = f"ptr align 4 {pointer}, <16 x i1> {self._half(active, side)}, {_ROW} zeroinitializer"
            sides.append(e.value(f"call {_ROW} @{name}({operands})"))
        return [e.concatenate("i32", sides, _HALF)]

    def _word(self, address: Address, active: str, side: int, mine: str) -> str:
        """The word that half a warp has in common; mine: its lanes that run, if some may not."""
        e, pointer = self.code, self._pointer(address, side)
        if active:  # nobody may be there: any word
            nobody = e.value(f"icmp eq i32 {mine}, 0")
            pointer = e.value(f"select i1 {nobody}, ptr %fp, ptr {pointer}")
        return e.value(f"load i32, ptr {pointer}")

    def store(self, step: Step, values: list[Value]) -> None:
        """Store a word of each lane; its flags are set, if there are any."""
        e, address, active = self.code, self.addresses[step], self._active(step)
        self._store(address, values[0], active, 4)
        if not address.flags:
            return
        kept, on = e.label("flagged"), e.label("noted")
        e.branch(e.value(f"icmp eq i64 {address.flags}, 0"), on, kept)
        e.begin(kept)
        self._store(address._replace(host=address.flags, ahead="", flags=""), splat("i32", FLAGS_SET), active, 1)
        e.jump(on)
        e.begin(on)

    def _store(self, address: Address, value: Value, active: str, align: int) -> None:
        e = self.code
        if address.parts[1] == 0:
            self._store_words(address, value, active or "-1", align)
            return
        pointers = [self._pointer(address, side) for side in SIDES]
        data = [half(self.handler, value, "i32", side) for side in SIDES]
        whole, some, on = (e.label(hint) for hint in ("whole", "some", "stored"))
        if active:  # masked stores wait for lines that are not at hand
            e.branch(e.value(f"icmp eq i32 {active}, -1"), whole, some, likely=True)
            e.begin(whole)
        for side in SIDES:
            e.line(f"store {_ROW} {data[side]}, ptr {pointers[side]}, align {align}")
        if active:
            e.jump(on)
            e.begin(some)
            name = "llvm.masked.store.v16i32.p0"
            e.declare(name, f"declare void @{name}({_ROW}, ptr, <16 x i1>)")
            for side in SIDES:
                mine = self._half(active, side)
                e.line(f"call void @{name}({_ROW} {data[side]}, ptr align {align} {pointers[side]}, <16 x i1> {mine})")
            e.jump(on)
            e.begin(on)

    def _store_words(self, address: Address, value: Value, active: str, align: int) -> None:
        """Of the lanes of half a warp, which store to one word, the last one's stays."""
        e, pointers = self.code, [self._pointer(address, side) for side in SIDES]
        for side in SIDES:
            mine = e.value(f"and i32 {active}, {-65536 if side else 65535}")
            some, on = e.label("some"), e.label("stored")
            e.branch(e.value(f"icmp eq i32 {mine}, 0"), on, some)
            e.begin(some)
            before = e.call("llvm.ctlz.i32", "i32", [("i32", mine), ("i1", "true")])
            lane = e.value(f"sub i32 31, {before}")
            word = e.value(f"extractelement {vector('i32')} {value}, i32 {lane}")
            e.line(f"store i32 {word}, ptr {pointers[side]}, align {align}")
            e.jump(on)
            e.begin(on)
