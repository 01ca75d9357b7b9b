"""Where the lanes of an access are, half a warp at a time, for regions (`regions`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.native.code.handler import ELEMENT, Handler
from ptxtools.native.code.live_words import Key
from ptxtools.records import dataclass
from ptxtools.semantics.algebra import Value

from .parts import half

if TYPE_CHECKING:
    from .run import Contents

#: Words that half a warp may touch.
WORDS = 16
SIDES = (0, 1)


@dataclass(slots=True)
class Pattern:
    """Where the lanes of an address are: for each half the address of its first lane, the distance of each lane from it
    in words, and the number of that lane in its half; and the lanes that run, as a word. point: all at one address, by
    the instruction. together: an i1, whether both halves are at one word each, if that is likely. near: an i1, whether
    the lanes are like this at all; empty: they are. row: each lane of a half is a word behind the one before."""

    first: list[str]
    words: list[Value]
    column: list[str]
    active: str
    point: bool = False
    together: str = ""
    near: str = ""
    row: bool = False


class Patterns:
    """Finds patterns, or goes to the label `fail`. read: slots of the operands that come from slots."""

    def __init__(self, h: Handler, contents: Contents, read: dict[int, Key]) -> None:
        self.handler, self.code, self.contents, self.read = h, h.code, contents, read
        self.fail = "miss"
        #: Lanes that are too far apart are no miss: `Pattern.near` says whether they are.
        self.lenient = False
        self.known: dict[tuple[int, bool, str], Pattern] = {}

    def of_bytes(self, number: int, storage: str, vector: Value, active: str) -> Pattern:
        """Of addresses: operand number `number`, whose content is a vector."""
        e = self.code
        element = ELEMENT[storage]
        first, column = self._first_lanes(number, vector, element, active)
        words, distances, near = [], [], []
        for side in SIDES:
            start = e.spread(element, first[side], 16)
            distance = e.value(f"sub <16 x {element}> {half(self.handler, vector, element, side)}, {start}")
            unit = e.apply("fshr", f"<16 x {element}>", distance, distance, f"splat ({element} 2)")
            near.append(e.value(f"icmp ult <16 x {element}> {unit}, splat ({element} {WORDS})"))
            words.append(unit if element == "i32" else e.value(f"trunc <16 x i64> {unit} to <16 x i32>"))
            distances.append(distance)
        close = self._close(near, distances, element, 4, active)
        wide = first if element == "i64" else [e.value(f"zext i32 {one} to i64") for one in first]
        return Pattern(wide, words, column, active, near=close)

    def of_words(self, number: int, active: str, *, signed: bool) -> Pattern:
        """Of numbers of words, operand number `number`: a miss where they could pass the end of 32 bits."""
        e, key = self.code, (number, signed, active)
        if key in self.known:
            return self.known[key]
        vector, last = self.contents[number], "2147483632" if signed else "-16"
        first, column = self._first_lanes(number, vector, "i32", active)
        words, near = [], []
        for side in SIDES:
            start = e.spread("i32", first[side], 16)
            words.append(e.value(f"sub <16 x i32> {half(self.handler, vector, 'i32', side)}, {start}"))
            near.append(e.value(f"icmp ult <16 x i32> {words[side]}, splat (i32 {WORDS})"))
        ends = [e.value(f"icmp {'slt' if signed else 'ult'} i32 {one}, {last}") for one in first]
        nobody = e.value(f"icmp eq i32 {active}, 0")
        fits = e.value(f"or i1 {e.value(f'and i1 {ends[0]}, {ends[1]}')}, {nobody}")
        close = self._close(near, words, "i32", 1, active, fits)
        wide = [e.value(f"{'sext' if signed else 'zext'} i32 {one} to i64") for one in first]
        wide = [e.value(f"shl i64 {one}, 2") for one in wide]
        self.known[key] = Pattern(wide, words, column, active, near=close)
        return self.known[key]

    def straight(self, vector: Value, element: str, unit: int, active: str, *, point: bool, either: bool) -> Pattern:
        """Of all lanes, also those that are not active: each half in a row, from lane to lane `unit` more, or the same
        (point), or one of these (either); anything else is a miss if any lane is active. The pattern's first lanes are
        of the operand's type."""
        e = self.code
        first = [e.value(f"extractelement <32 x {element}> {vector}, i32 {16 * side}") for side in SIDES]
        fits = self._grows(vector, element, first, 0 if point else unit)
        together = ""
        if either:
            together = self._grows(vector, element, first, 0)
            fits = e.value(f"or i1 {fits}, {together}")
        self.demand(self.unless_nobody(fits, active))
        numbers = ", ".join(f"i32 {0 if point else number}" for number in range(16))
        return Pattern(first, [f"<{numbers}>"] * 2, ["0", "0"], active, point, together, row=not point)

    def unless_nobody(self, condition: str, active: str) -> str:
        """i1: a condition holds, or no lane is active."""
        if active == "-1":
            return condition
        nobody = self.code.value(f"icmp eq i32 {active}, 0")
        return self.code.value(f"or i1 {condition}, {nobody}")

    def _grows(self, vector: Value, element: str, first: list[str], unit: int) -> str:
        """i1: from lane to lane each half grows by so much."""
        e, kind, apart = self.code, f"<16 x {element}>", []
        row = ", ".join(f"{element} {unit * number}" for number in range(16))
        for side in SIDES:
            want = e.value(f"add {kind} {e.spread(element, first[side], 16)}, <{row}>")
            apart.append(e.value(f"xor {kind} {half(self.handler, vector, element, side)}, {want}"))
        return self._none(kind, apart)

    def _none(self, kind: str, apart: list[str]) -> str:
        """i1: all lanes of both halves are 0: without a flag for each, which AVX2 would have to pack."""
        e = self.code
        bits = e.value(f"or {kind} {apart[0]}, {apart[1]}")
        element = kind.split()[-1].rstrip(">")
        name = f"llvm.vector.reduce.or.v16{element}"
        e.declare(name, f"declare {element} @{name}({kind})")
        return e.value(f"icmp eq {element} {e.call(name, element, [(kind, bits)])}, 0")

    def together(self, pattern: Pattern) -> None:
        """Find out whether each half is at one word."""
        e = self.code
        equal = [e.value(f"icmp eq <16 x i32> {pattern.words[side]}, zeroinitializer") for side in SIDES]
        pattern.together = self.all(equal, pattern.active)

    def unless_at_edge(self, inside: str, pattern: Pattern, units: list[str], most: str) -> str:
        """i1: `inside`, or no lane goes beyond the end of a window, though a whole row from the first one on would;
        units: of the halves' first lanes, i64 words; most: words at which one may begin. Behind the window has to be
        memory that can be read."""
        e, edge, on, start = self.code, self.code.label("edge"), self.code.label("within"), self.code.label("ends")
        e.jump(start)
        e.begin(start)
        e.branch(inside, on, edge, likely=True)
        e.begin(edge)
        near = []
        for side in SIDES:
            left = e.call("llvm.usub.sat.i64", "i64", [("i64", most), ("i64", units[side])])
            room = e.spread("i32", e.value(f"trunc i64 {left} to i32"), WORDS)
            near.append(e.value(f"icmp ult <16 x i32> {pattern.words[side]}, {room}"))
        fits = self.all(near, pattern.active)
        e.jump(on)
        e.begin(on)
        return e.value(f"phi i1 [true, %{start}], [{fits}, %{edge}]")

    def _close(
        self, near: list[Value], distances: list[str], element: str, unit: int, active: str, fits: str = ""
    ) -> str:
        """i1: the lanes have a pattern that is served, and an i1 `fits` holds; an empty one where anything else is a
        miss. near: flags of the halves' lanes; distances: from the first lane that runs, of which a word has `unit`."""
        if "avx512f" in self.code.features:
            close = self.all(near, active)
        else:
            close = self._rows_or_points(distances, element, unit, active)
        if fits:
            close = self.code.value(f"and i1 {close}, {fits}")
        if self.lenient:
            return close
        self.demand(close)
        return ""

    def _rows_or_points(self, distances: list[str], element: str, unit: int, active: str) -> str:
        """Without permutations: each half in order from its first lane on, or at one word, with its last lane."""
        e, kind, apart = self.code, f"<16 x {element}>", []
        row = ", ".join(f"{element} {unit * number}" for number in range(16))
        for side in SIDES:
            last = e.value(f"extractelement {kind} {distances[side]}, i32 15")
            point = e.value(f"icmp eq {element} {last}, 0")
            want = e.value(f"select i1 {point}, {kind} zeroinitializer, {kind} <{row}>")
            different = e.value(f"xor {kind} {distances[side]}, {want}")
            if active != "-1":
                lanes = half(self.handler, e.value(f"bitcast i32 {active} to <32 x i1>"), "i1", side)
                running = e.value(f"sext <16 x i1> {lanes} to {kind}")
                different = e.value(f"and {kind} {different}, {running}")
            apart.append(different)
        return self._none(kind, apart)

    def _first_lanes(self, number: int, vector: Value, element: str, active: str) -> tuple[list[str], list[str]]:
        """An operand of each half's first lane that runs, and the number of that lane in the half; of a half without
        any, the other's."""
        e = self.code
        in_slot = number in self.read and number not in self.contents.same
        place = self.contents.place(self.read[number][0]) if in_slot else ""
        whole, part, on = (e.label(hint) for hint in ("whole", "part", "on"))
        e.branch(e.value(f"icmp eq i32 {active}, -1"), whole, part, likely=True)
        e.begin(whole)
        ends = [e.value(f"extractelement <32 x {element}> {vector}, i32 {16 * side}") for side in SIDES]
        e.jump(on)
        e.begin(part)
        lanes, values = [], []
        for side in SIDES:
            mine = e.value(f"and i32 {active}, {-65536 if side else 65535}")
            some = e.value(f"icmp eq i32 {mine}, 0")
            chosen = e.value(f"select i1 {some}, i32 {active}, i32 {mine}")
            lane = e.call("llvm.cttz.i32", "i32", [("i32", chosen), ("i1", "false")])
            lanes.append(e.value(f"and i32 {lane}, 31"))
            if place:
                where = e.value(f"getelementptr {element}, ptr {place}, i32 {lanes[-1]}")
                values.append(e.value(f"load {element}, ptr {where}"))
            else:
                values.append(e.value(f"extractelement <32 x {element}> {vector}, i32 {lanes[-1]}"))
        columns = [e.value(f"and i32 {lane}, 15") for lane in lanes]
        e.jump(on)
        e.begin(on)
        first = [e.value(f"phi {element} [{ends[side]}, %{whole}], [{values[side]}, %{part}]") for side in SIDES]
        column = [e.value(f"phi i32 [0, %{whole}], [{columns[side]}, %{part}]") for side in SIDES]
        return first, column

    def all(self, flags: list[Value], active: str) -> str:
        """i1: flags of both halves hold in the lanes that run."""
        e = self.code
        bits = e.value(f"bitcast <32 x i1> {e.concatenate('i1', flags, 16)} to i32")
        rest = e.value(f"xor i32 {active}, -1")
        return e.value(f"icmp eq i32 {e.value(f'or i32 {bits}, {rest}')}, -1")

    def demand(self, condition: str) -> None:
        """A miss unless this holds."""
        go = self.code.label("go")
        self.code.branch(condition, go, self.fail, likely=True)
        self.code.begin(go)
