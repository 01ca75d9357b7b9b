"""IR of a texture fetch for the lanes of a warp, eight at a time: coordinates to texels, weighted means, results.

It follows `ptxtools.sim.textures.sampling` operation by operation, so that both give the same bits.
"""

from __future__ import annotations

from itertools import product

from ptxtools.native.code.emitter import Emitter, splat
from ptxtools.program.program import LANES

from .texels import DOUBLES, FLAGS, LONGS, WIDTH, WORDS

#: Axes of the functions for lanes, and how these filter.
AXES, HOW = (1, 2, 3), ("whole", "point", "linear")
_FAR = "0x4270000000000000"  # 2**40
_STEPS, _STEP = 256.0, 1 / 256.0
_SIZES, _STRIDES = ("width", "height", "depth"), ("texel", "row", "plane")


class _Lanes:
    """Emits the code for the lanes of a warp, eight at a time."""

    def __init__(self, code: Emitter, axes: int, how: str) -> None:
        self.code, self.axes, self.how = code, axes, how

    def spread(self, kind: str, scalar: str) -> str:
        """A scalar in every lane."""
        return self.code.spread(kind, scalar, WIDTH)

    def operand(self, field: str) -> str:
        """Address of the 32 values of an operand; of zeros for an absent one, or of unused memory for results."""
        slot = self.code.field(field)
        place = self.code.value(f"getelementptr i8, ptr %fp, i32 {slot}")
        absent = self.code.value(f"icmp slt i32 {slot}, 0")
        nowhere = self.nowhere if ".to_" in field else "@zeros"
        return self.code.value(f"select i1 {absent}, ptr {nowhere}, ptr {place}")

    def wide(self, field: str) -> str:
        """An i32 field as i64."""
        return self.code.value(f"zext i32 {self.code.field(field)} to i64")

    def prologue(self) -> None:
        b, xyz = self.code, "xyz"[: self.axes]
        self.parts, self.nowhere = b.room(f"[4 x {WORDS}]"), b.room(f"[{4 * LANES} x i8]")
        self.data, self.border = self.code.field("look.data"), self.code.field("look.border")
        self.places = [self.operand(f"fetch.place_{axis}") for axis in xyz]
        self.offsets = [self.operand(f"fetch.offset_{axis}") for axis in xyz]
        self.layers = self.operand("fetch.layer_slot")
        self.targets = [self.operand(f"fetch.to_{channel}") for channel in "rgba"]
        self.modes = [self.code.field(f"look.mode_{axis}") for axis in xyz]
        self.extents = [self.wide(f"tex.{size}") for size in _SIZES[: self.axes]]
        self.strides = [self.spread("i64", self.code.field(f"tex.{stride}")) for stride in _STRIDES[: self.axes]]
        layers = b.value(f"sub i64 {self.wide('tex.layers')}, 1")
        self.last_layer, self.layer_stride = (
            self.spread("i64", layers),
            self.spread("i64", self.code.field("tex.layer")),
        )
        scaled = b.value(f"icmp ne i32 {self.code.field('look.scaled')}, 0")
        self.factors = []
        for extent in self.extents:
            size = b.value(f"uitofp i64 {extent} to double")
            self.factors.append(self.spread("double", b.value(f"select i1 {scaled}, double {size}, double 1.0")))
        self.bordered = "false"
        for mode in self.modes:
            self.bordered = b.value(f"or i1 {self.bordered}, {b.value(f'icmp eq i32 {mode}, 4')}")
        self.channel_bytes = self.code.field("tex.channel_bytes")
        self.integers = b.value(f"icmp ne i32 {self.code.field('tex.integers')}, 0")
        self.wanted, self.halves = self.code.field("fetch.wanted"), self.code.field("fetch.halves")

    def at(self, base: str, kind: str) -> str:
        """Eight values of an operand."""
        return self.code.value(f"load {kind}, ptr {self.code.value(f'getelementptr i8, ptr {base}, i32 %at')}")

    def held(self, number: str, limit: str, compare: str) -> str:
        beyond = self.code.value(f"fcmp {compare} {DOUBLES} {number}, {limit}")
        return self.code.value(f"select {FLAGS} {beyond}, {DOUBLES} {limit}, {DOUBLES} {number}")

    def floor(self, number: str) -> str:
        return self.code.apply("floor", DOUBLES, number)

    def texels(self, axis: int) -> str:
        """A floating-point coordinate in texels; not a number counts as 0."""
        b = self.code
        wide = b.value(f"fpext <{WIDTH} x float> {self.at(self.places[axis], f'<{WIDTH} x float>')} to {DOUBLES}")
        scaled = b.value(f"fmul {DOUBLES} {wide}, {self.factors[axis]}")
        none = b.value(f"fcmp uno {DOUBLES} {scaled}, {scaled}")
        number = b.value(f"select {FLAGS} {none}, {DOUBLES} zeroinitializer, {DOUBLES} {scaled}")
        low = "0x" + f"{int(_FAR, 16) | 1 << 63:X}"
        return self.held(self.held(number, splat("double", _FAR), "ogt"), splat("double", low), "olt")

    def index(self, axis: int) -> tuple[str, str]:
        """Index along an axis, of a linear filter the lower one, and the weight of the upper one."""
        b = self.code
        weight = ""
        if self.how == "whole":
            first = b.value(f"sext {WORDS} {self.at(self.places[axis], WORDS)} to {LONGS}")
        else:
            number = self.texels(axis)
            if self.how == "linear":
                number = b.value(f"fsub {DOUBLES} {number}, {splat('double', 0.5)}")
            lower = self.floor(number)
            first = b.value(f"fptosi {DOUBLES} {lower} to {LONGS}")
            if self.how == "linear":
                part = b.value(f"fsub {DOUBLES} {number}, {lower}")
                steps = b.value(f"fmul {DOUBLES} {part}, {splat('double', _STEPS)}")
                rounded = self.floor(b.value(f"fadd {DOUBLES} {steps}, {splat('double', 0.5)}"))
                weight = b.value(f"fmul {DOUBLES} {rounded}, {splat('double', _STEP)}")
        moved = b.value(f"sext {WORDS} {self.at(self.offsets[axis], WORDS)} to {LONGS}")
        return b.value(f"add {LONGS} {first}, {moved}"), weight

    def along(self, axis: int, index: str) -> tuple[str, str]:
        """Byte offset of an index along an axis, and whether it is inside."""
        b = self.code
        call = f"call {LONGS} @addressed(i32 {self.modes[axis]}, {LONGS} {index}, i64 {self.extents[axis]})"
        found = b.value(call)
        inside = b.value(f"icmp sge {LONGS} {found}, zeroinitializer")
        place = b.value(f"select {FLAGS} {inside}, {LONGS} {found}, {LONGS} zeroinitializer")
        return b.value(f"mul {LONGS} {place}, {self.strides[axis]}"), inside

    def corners(self) -> list[tuple[str, str, str]]:
        """Byte offset, whether it is inside, and weight of each texel that counts."""
        b = self.code
        layer = b.value(f"zext {WORDS} {self.at(self.layers, WORDS)} to {LONGS}")
        beyond = b.value(f"icmp ugt {LONGS} {layer}, {self.last_layer}")
        held = b.value(f"select {FLAGS} {beyond}, {LONGS} {self.last_layer}, {LONGS} {layer}")
        base = b.value(f"mul {LONGS} {held}, {self.layer_stride}")
        steps = (0, 1) if self.how == "linear" else (0,)
        ways = []
        for axis in range(self.axes):
            index, alpha = self.index(axis)
            weights = [alpha]
            if alpha:
                weights = [b.value(f"fsub {DOUBLES} {splat('double', 1.0)}, {alpha}"), alpha]
            indices = [index] + [b.value(f"add {LONGS} {index}, {splat('i64', 1)}") for _ in steps[1:]]
            ways.append([(*self.along(axis, i), w) for i, w in zip(indices, weights, strict=True)])
        found = []
        for parts in product(*ways):
            offset, inside, weight = base, "", ""
            for along, within, part in parts:
                offset = b.value(f"add {LONGS} {offset}, {along}")
                inside = b.value(f"and {FLAGS} {inside}, {within}") if inside else within
                weight = b.value(f"fmul {DOUBLES} {weight}, {part}") if weight else part
            found.append((offset, inside, weight))
        return found

    def channel(self, corners: list[tuple[str, str, str]]) -> None:
        """A channel's values to `parts`, as bits of single precision or as integers."""
        b = self.code
        b.expand(f"""br label %channel
channel:
  %c = phi i32 [0, %work], [%c.next, %channel.end]
  %bit = shl i32 1, %c
  %asked = and i32 {self.wanted}, %bit
  %is.asked = icmp ne i32 %asked, 0
  br i1 %is.asked, label %load, label %channel.end
load:
  %loaders = addr tex.load_r
  %loader.p = getelementptr ptr, ptr %loaders, i32 %c
  %loader = load ptr, ptr %loader.p
  %missing = icmp eq ptr %loader, null
  %is.alpha = icmp eq i32 %c, 3
  %usual = select i1 %is.alpha, double 1.0, double 0.0""")
        usual = self.spread("double", "%usual")
        b.expand(f"""br i1 %missing, label %without, label %there
without:                                          ; weights add up to 1 exactly
  br i1 {self.bordered}, label %mix, label %constant
constant:
  %one.bits = select i1 {self.integers}, i32 1, i32 1065353216
  %usual.bits = select i1 %is.alpha, i32 %one.bits, i32 0""")
        constant = self.spread("i32", "%usual.bits")
        b.expand(f"""br label %keep
there:
  %skip = mul i32 %c, {self.channel_bytes}
  %data.c = getelementptr i8, ptr {self.data}, i32 %skip""")
        loaded = [b.value(f"call {DOUBLES} %loader(ptr %data.c, {LONGS} {offset})") for offset, _, _ in corners]
        b.jump("mix")
        b.begin("mix")
        texels = [b.value(f"phi {DOUBLES} [{usual}, %without], [{value}, %there]") for value in loaded]
        b.expand(f"""%border.p = getelementptr double, ptr {self.border}, i32 %c
  %border = load double, ptr %border.p""")
        colour = self.spread("double", "%border")
        values = [
            b.value(f"select {FLAGS} {inside}, {DOUBLES} {texel}, {DOUBLES} {colour}")
            for texel, (_, inside, _) in zip(texels, corners, strict=True)
        ]
        total = values[0]
        if self.how == "linear":
            total = "zeroinitializer"
            for value, (_, _, weight) in zip(values, corners, strict=True):
                counts = b.value(f"fcmp une {DOUBLES} {weight}, zeroinitializer")
                term = b.value(f"fmul {DOUBLES} {weight}, {value}")
                own = b.value(f"select {FLAGS} {counts}, {DOUBLES} {term}, {DOUBLES} zeroinitializer")
                total = b.value(f"fadd {DOUBLES} {total}, {own}")
        b.expand(f"""br i1 {self.integers}, label %as.integers, label %as.floats
as.integers:
  %longs = fptosi {DOUBLES} {total} to {LONGS}
  %words = trunc {LONGS} %longs to {WORDS}
  br label %keep
as.floats:
  %singles = fptrunc {DOUBLES} {total} to <{WIDTH} x float>
  %bits = bitcast <{WIDTH} x float> %singles to {WORDS}
  br label %keep
keep:
  %result = phi {WORDS} [%words, %as.integers], [%bits, %as.floats], [{constant}, %constant]
  %part.p = getelementptr {WORDS}, ptr {self.parts}, i32 %c
  store {WORDS} %result, ptr %part.p
  br label %channel.end
channel.end:
  %c.next = add i32 %c, 1
  %more.channels = icmp ult i32 %c.next, 4
  br i1 %more.channels, label %channel, label %channels.done
channels.done:""")

    def store(self, kind: str, value: str, target: str, at: str) -> None:
        """Set the lanes of a destination that run."""
        b = self.code
        place = b.value(f"getelementptr i8, ptr {target}, i32 {at}")
        old = b.value(f"load {kind}, ptr {place}")
        b.line(f"store {kind} {b.value(f'select {FLAGS} %lanes, {kind} {value}, {kind} {old}')}, ptr {place}")

    def part(self, number: int) -> str:
        place = self.code.value(f"getelementptr {WORDS}, ptr {self.parts}, i32 {number}")
        return self.code.value(f"load {WORDS}, ptr {place}")

    def half(self, number: int) -> str:
        b = self.code
        singles = b.value(f"bitcast {WORDS} {self.part(number)} to <{WIDTH} x float>")
        halves = b.value(f"fptrunc <{WIDTH} x float> {singles} to <{WIDTH} x half>")
        return b.value(f"bitcast <{WIDTH} x half> {halves} to <{WIDTH} x i16>")

    def results(self, halves: bool) -> None:
        """`parts` to the destinations."""
        b = self.code
        if halves:
            b.expand(f"""switch i32 {self.halves}, label %to.words [
    i32 1, label %to.halves
    i32 2, label %to.pairs
  ]
to.halves:
  %at.half = lshr i32 %at, 1""")
            for number, target in enumerate(self.targets):
                self.store(f"<{WIDTH} x i16>", self.half(number), target, "%at.half")
            b.jump("next")
            b.begin("to.pairs")
            for number, target in enumerate(self.targets[:2]):
                low, high = (b.value(f"zext <{WIDTH} x i16> {self.half(2 * number + k)} to {WORDS}") for k in range(2))
                upper = b.value(f"shl {WORDS} {high}, {splat('i32', 16)}")
                self.store(WORDS, b.value(f"or {WORDS} {low}, {upper}"), target, "%at")
            b.jump("next")
            b.begin("to.words")
        for number, target in enumerate(self.targets):
            self.store(WORDS, self.part(number), target, "%at")
        b.jump("next")


def lanes_function(code: Emitter, axes: int, how: str, halves: bool) -> str:
    """The function for the lanes of a warp."""
    lanes = _Lanes(code, axes, how)
    lanes.prologue()
    code.expand(f"""br label %chunks
chunks:
  br label %chunk
chunk:
  %k = phi i32 [0, %chunks], [%k.next, %next]
  %shift = mul i32 %k, {WIDTH}
  %their.mask = lshr i32 %mask, %shift
  %own.mask = trunc i32 %their.mask to i{WIDTH}
  %lanes = bitcast i{WIDTH} %own.mask to {FLAGS}
  %idle = icmp eq i{WIDTH} %own.mask, 0
  br i1 %idle, label %next, label %work
work:
  %at = mul i32 %k, {4 * WIDTH}""")
    lanes.channel(lanes.corners())
    lanes.results(halves)
    code.expand(f"""next:
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, {LANES // WIDTH}
  br i1 %more, label %chunk, label %end
end:""")
    return code.function(f"lanes_{axes}_{how}", "ptr %look, ptr %tex, ptr %fp, ptr %event, i32 %mask")
