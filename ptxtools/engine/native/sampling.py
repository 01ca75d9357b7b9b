"""Native service for `tex`: fetches from 1D, 2D and 3D textures and arrays of them, without leaving the loop (9.7.10.3).

It is called with the worker, the warp, its frame, the lanes, and the cell of its event, which a service has filled
(`structures.FETCH`), and finds textures in the table that the service has shown (`structures.TEXTURE`). It answers
SERVED_DONE, or SERVED_NOT: then the service does the work, which also knows what is wrong with it. Every index is held
to the texture's extents before it is used, and the extents to device memory, so that no operand leads outside.

What is computed is that of `ptxtools.sim.textures.sampling`, operation by operation, eight lanes at a time.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from ptxtools.engine.native import structures
from ptxtools.engine.native.templates import expand
from ptxtools.engine.native.texels import (
    ADDRESSED,
    DOUBLES,
    FLAGS,
    LONGS,
    MODULO,
    WIDTH,
    WORDS,
    loader_name,
    loader_names,
    loaders,
    splat,
)
from ptxtools.engine.native.tileparts import Body
from ptxtools.engine.program import LANES

#: Handles of textures and samplers begin with these bits (`sim.textures.objects`).
_HANDLE, _OBJECT, _SAMPLER = 0x7E58, 0x7E580100, 0x7E580200
#: Axes of the functions for lanes, and how these filter.
_AXES, _HOW = (1, 2, 3), ("whole", "point", "linear")
_FAR = "0x4270000000000000"  # 2**40
_STEPS, _STEP = 256.0, 1 / 256.0
_SIZES, _STRIDES = ("width", "height", "depth"), ("texel", "row", "plane")

NAME = "texture_fetch"


@cache
def addresses() -> dict[str, int] | None:
    """Where the compiled functions are, by name; None without llvmlite."""
    try:
        from ptxtools.engine.native import jit, library
    except ImportError:
        return None
    halves = "f16c" in jit.host_features()
    return library.functions_of((NAME, *loader_names(halves)), lambda attributes: module(attributes, halves))


def loader_of(type: str, normalized: bool, srgb: bool) -> str:
    """The name among `addresses` of the function that loads channels of a type."""
    return loader_name("srgb" if srgb else type[0] + "n" + type[1:] if normalized else type)


def module(attributes: str, halves: bool) -> str:
    """All functions as LLVM IR. halves: the CPU converts half precision."""
    from ptxtools.semantics.colour import linear_light

    lanes = [_lanes(axes, how, halves) for axes in _AXES for how in _HOW]
    functions = [*loaders(halves, linear_light().tolist()), MODULO, ADDRESSED, *lanes, _HELD, _USUAL, _FETCH]
    zeros = f"@zeros = internal constant [{4 * LANES} x i32] zeroinitializer, align 64\n"
    declaration = f"declare {DOUBLES} @llvm.floor.v{WIDTH}f64({DOUBLES})\n"
    text = zeros + declaration + "\n".join(expand(function) for function in functions)
    return f"{text}\nattributes #0 = {{ {attributes} }}\nattributes #1 = {{ nounwind }}\n"


#: What a handle's register holds, or the variable at the address in it, which all lanes share; else 0.
_HELD = f"""
declare i32 @llvm.cttz.i32(i32, i1)
define internal i64 @held(ptr %ctx, ptr %fp, i32 %mask, i32 %slot) #0 {{
  %p = getelementptr i8, ptr %fp, i32 %slot
  %all = load <32 x i64>, ptr %p, align 64
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %look, label %none
look:
  %first.p = getelementptr i64, ptr %p, i32 %lane
  %first = load i64, ptr %first.p
  %spread = splat64 %first
  %same = icmp eq <32 x i64> %all, %spread
  %equal = bits %same
  %ours = and i32 %equal, %mask
  %uniform = icmp eq i32 %ours, %mask
  br i1 %uniform, label %which, label %none
which:
  %top = lshr i64 %first, 48
  %handle = icmp eq i64 %top, {_HANDLE}
  br i1 %handle, label %itself, label %variable
itself:
  ret i64 %first
variable:
  %base = get ctx.base
  %size = get ctx.size
  %offset = sub i64 %first, %base
  %end = add i64 %offset, 8
  %inside = icmp ule i64 %end, %size
  %sound = icmp ule i64 %offset, %end
  %odd = and i64 %first, 7
  %aligned = icmp eq i64 %odd, 0
  %both = and i1 %inside, %sound
  %fine = and i1 %both, %aligned
  br i1 %fine, label %read, label %none
read:
  %arena = get ctx.arena
  %at = add i64 %arena, %first
  %at.p = inttoptr i64 %at to ptr
  %content = load i64, ptr %at.p
  ret i64 %content
none:
  ret i64 0
}}
"""

#: An address mode as it counts: wrap and mirror need normalized coordinates, and clamp otherwise.
_USUAL = """
define internal i32 @usual(i32 %mode, i32 %scaled) #0 {
  %plain = icmp eq i32 %scaled, 0
  %folds = icmp ult i32 %mode, 2
  %not = and i1 %plain, %folds
  %own = select i1 %not, i32 3, i32 %mode
  ret i32 %own
}
"""

_VARIANTS = [(axes, number, how) for axes in _AXES for number, how in enumerate(_HOW)]
_CASES = "".join(f"    i32 {len(_HOW) * axes + number}, label %{how}.{axes}\n" for axes, number, how in _VARIANTS)
_CALLS = "".join(
    f"""{how}.{axes}:
  call void @lanes_{axes}_{how}(ptr %look, ptr %tex, ptr %fp, ptr %fetch, i32 %mask)
  br label %done
"""
    for axes, _, how in _VARIANTS
)

_FETCH = f"""
define i32 @{NAME}(ptr %ctx, ptr %warp, ptr %fp, i32 %mask, ptr %fetch) #0 {{
  %look = alloca [{structures.LOOK.size} x i8], align 64
  %handle.slot = get fetch.handle_slot
  %handle = call i64 @held(ptr %ctx, ptr %fp, i32 %mask, i32 %handle.slot)
  %tag = lshr i64 %handle, 32
  %is.object = icmp eq i64 %tag, {_OBJECT}
  %number = and i64 %handle, 4294967295
  %index = sub i64 %number, 1
  %count = get ctx.texture_count
  %known = icmp ult i64 %index, %count
  %found = and i1 %is.object, %known
  br i1 %found, label %texture, label %slow
texture:
  %rows = get ctx.textures
  %at = mul i64 %index, TEX_BYTES
  %tex = getelementptr i8, ptr %rows, i64 %at
  %kinds = get tex.kinds
  %kind = get fetch.kind
  %fits = and i32 %kinds, %kind
  %can = icmp ne i32 %fits, 0
  br i1 %can, label %level, label %slow
level:
  %levels = get tex.levels
  %several = icmp ne i32 %levels, 1
  %names.level = get fetch.levels
  %names = icmp ne i32 %names.level, 0
  %mipmaps = and i1 %several, %names
  %ints = get tex.integers
  %halves = get fetch.halves
  %is.int = icmp ne i32 %ints, 0
  %is.half = icmp ne i32 %halves, 0
  %odd = and i1 %is.int, %is.half
  %rare = or i1 %mipmaps, %odd
  br i1 %rare, label %slow, label %memory
memory:
  %start = get tex.start
  %end = get tex.end
  %base = get ctx.base
  %size = get ctx.size
  %first = sub i64 %start, %base
  %behind = sub i64 %end, %base
  %ends = icmp ule i64 %behind, %size
  %starts = icmp ule i64 %first, %behind
  %inside = and i1 %starts, %ends
  br i1 %inside, label %filtering, label %slow
filtering:
  %arena = get ctx.arena
  %data = add i64 %arena, %start
  %data.p = inttoptr i64 %data to ptr
  set look.data, %data.p
  %sampler.slot = get fetch.sampler_slot
  %own = icmp slt i32 %sampler.slot, 0
  %normalized = get tex.normalized
  br i1 %own, label %unified, label %independent
unified:
  %own.linear = get tex.linear
  %border.p = addr tex.border_r
  %own.x = get tex.mode_x
  %own.y = get tex.mode_y
  %own.z = get tex.mode_z
  br label %ready
independent:
  %sampler = call i64 @held(ptr %ctx, ptr %fp, i32 %mask, i32 %sampler.slot)
  %sampler.tag = lshr i64 %sampler, 14
  %is.sampler = icmp eq i64 %sampler.tag, {_SAMPLER << 18}
  %bits = trunc i64 %sampler to i32
  %its.x = and i32 %bits, 15
  %bits.y = lshr i32 %bits, 4
  %its.y = and i32 %bits.y, 15
  %bits.z = lshr i32 %bits, 8
  %its.z = and i32 %bits.z, 15
  %fine.x = icmp ult i32 %its.x, 5
  %fine.y = icmp ult i32 %its.y, 5
  %fine.z = icmp ult i32 %its.z, 5
  %fine.xy = and i1 %fine.x, %fine.y
  %fine.xyz = and i1 %fine.xy, %fine.z
  %fine = and i1 %fine.xyz, %is.sampler
  %bits.linear = lshr i32 %bits, 12
  %its.linear = and i32 %bits.linear, 1
  %forced = and i32 %bits, 8192
  %free = icmp eq i32 %forced, 0
  %its.normalized = select i1 %free, i32 %normalized, i32 0
  br i1 %fine, label %ready, label %slow
ready:
  %linear = phi i32 [%own.linear, %unified], [%its.linear, %independent]
  %border = phi ptr [%border.p, %unified], [@zeros, %independent]
  %scaled = phi i32 [%normalized, %unified], [%its.normalized, %independent]
  %x = phi i32 [%own.x, %unified], [%its.x, %independent]
  %y = phi i32 [%own.y, %unified], [%its.y, %independent]
  %z = phi i32 [%own.z, %unified], [%its.z, %independent]
  %whole.flag = get fetch.whole
  %whole = icmp ne i32 %whole.flag, 0
  %buffer.flag = get tex.memory
  %buffer = icmp ne i32 %buffer.flag, 0
  %outside.zero = and i1 %whole, %buffer
  %mode.x = call i32 @usual(i32 %x, i32 %scaled)
  %mode.y = call i32 @usual(i32 %y, i32 %scaled)
  %mode.z = call i32 @usual(i32 %z, i32 %scaled)
  %mode.x.own = select i1 %outside.zero, i32 4, i32 %mode.x
  %border.own = select i1 %outside.zero, ptr @zeros, ptr %border
  set look.border, %border.own
  set look.mode_x, %mode.x.own
  set look.mode_y, %mode.y
  set look.mode_z, %mode.z
  set look.scaled, %scaled
  %filters = icmp ne i32 %linear, 0
  %not.whole = xor i1 %whole, true
  %mixes = and i1 %filters, %not.whole
  %wrong = and i1 %mixes, %is.int
  br i1 %wrong, label %slow, label %choose
choose:
  %how.filter = select i1 %mixes, i32 2, i32 1
  %how = select i1 %whole, i32 0, i32 %how.filter
  %axes = get fetch.axes
  %axes.three = mul i32 %axes, 3
  %which = add i32 %axes.three, %how
  switch i32 %which, label %slow [
{_CASES}  ]
{_CALLS}done:
  %resident.slot = get fetch.resident_slot
  %asks = icmp sge i32 %resident.slot, 0
  br i1 %asks, label %resident, label %end.of.it
resident:
  %flags.p = getelementptr i8, ptr %fp, i32 %resident.slot
  %flags = load i32, ptr %flags.p
  %flags.new = or i32 %flags, %mask
  store i32 %flags.new, ptr %flags.p
  br label %end.of.it
end.of.it:
  ret i32 SERVED_DONE
slow:
  ret i32 SERVED_NOT
}}
"""


class _Lanes:
    """Emits the code for the lanes of a warp, eight at a time."""

    def __init__(self, axes: int, how: str) -> None:
        self.b, self.axes, self.how = Body(), axes, how

    def get(self, field: str) -> str:
        return self.b.value(f"get {field}")

    def spread(self, kind: str, scalar: str) -> str:
        """A scalar in every lane."""
        one = self.b.value(f"insertelement <{WIDTH} x {kind}> poison, {kind} {scalar}, i32 0")
        return self.b.value(
            f"shufflevector <{WIDTH} x {kind}> {one}, <{WIDTH} x {kind}> poison, <{WIDTH} x i32> zeroinitializer"
        )

    def operand(self, field: str) -> str:
        """Where an operand's 32 values are; of an absent one zeros, for results room that nobody reads."""
        slot = self.get(field)
        place = self.b.value(f"getelementptr i8, ptr %fp, i32 {slot}")
        absent = self.b.value(f"icmp slt i32 {slot}, 0")
        nowhere = "%nowhere" if ".to_" in field else "@zeros"
        return self.b.value(f"select i1 {absent}, ptr {nowhere}, ptr {place}")

    def wide(self, field: str) -> str:
        """An i32 field as i64."""
        return self.b.value(f"zext i32 {self.get(field)} to i64")

    def prologue(self) -> None:
        b, xyz = self.b, "xyz"[: self.axes]
        b.entry += [f"  %parts = alloca [4 x {WORDS}], align 64", f"  %nowhere = alloca [{4 * LANES} x i8], align 64"]
        self.data, self.border = self.get("look.data"), self.get("look.border")
        self.places = [self.operand(f"fetch.place_{axis}") for axis in xyz]
        self.offsets = [self.operand(f"fetch.offset_{axis}") for axis in xyz]
        self.layers = self.operand("fetch.layer_slot")
        self.targets = [self.operand(f"fetch.to_{channel}") for channel in "rgba"]
        self.modes = [self.get(f"look.mode_{axis}") for axis in xyz]
        self.extents = [self.wide(f"tex.{size}") for size in _SIZES[: self.axes]]
        self.strides = [self.spread("i64", self.get(f"tex.{stride}")) for stride in _STRIDES[: self.axes]]
        layers = b.value(f"sub i64 {self.wide('tex.layers')}, 1")
        self.last_layer, self.layer_stride = self.spread("i64", layers), self.spread("i64", self.get("tex.layer"))
        scaled = b.value(f"icmp ne i32 {self.get('look.scaled')}, 0")
        self.factors = []
        for extent in self.extents:
            size = b.value(f"uitofp i64 {extent} to double")
            self.factors.append(self.spread("double", b.value(f"select i1 {scaled}, double {size}, double 1.0")))
        self.bordered = "false"
        for mode in self.modes:
            self.bordered = b.value(f"or i1 {self.bordered}, {b.value(f'icmp eq i32 {mode}, 4')}")
        self.channel_bytes = self.get("tex.channel_bytes")
        self.integers = b.value(f"icmp ne i32 {self.get('tex.integers')}, 0")
        self.wanted, self.halves = self.get("fetch.wanted"), self.get("fetch.halves")

    def at(self, base: str, kind: str) -> str:
        """Eight values of an operand."""
        return self.b.value(f"load {kind}, ptr {self.b.value(f'getelementptr i8, ptr {base}, i32 %at')}")

    def held(self, number: str, limit: str, compare: str) -> str:
        beyond = self.b.value(f"fcmp {compare} {DOUBLES} {number}, {limit}")
        return self.b.value(f"select {FLAGS} {beyond}, {DOUBLES} {limit}, {DOUBLES} {number}")

    def floor(self, number: str) -> str:
        return self.b.value(f"call {DOUBLES} @llvm.floor.v{WIDTH}f64({DOUBLES} {number})")

    def texels(self, axis: int) -> str:
        """A floating-point coordinate in texels; not a number counts as 0."""
        b = self.b
        wide = b.value(f"fpext <{WIDTH} x float> {self.at(self.places[axis], f'<{WIDTH} x float>')} to {DOUBLES}")
        scaled = b.value(f"fmul {DOUBLES} {wide}, {self.factors[axis]}")
        none = b.value(f"fcmp uno {DOUBLES} {scaled}, {scaled}")
        number = b.value(f"select {FLAGS} {none}, {DOUBLES} zeroinitializer, {DOUBLES} {scaled}")
        low = "0x" + f"{int(_FAR, 16) | 1 << 63:X}"
        return self.held(self.held(number, splat("double", _FAR), "ogt"), splat("double", low), "olt")

    def index(self, axis: int) -> tuple[str, str]:
        """Index along an axis, of a linear filter the lower one, and the weight of the upper one."""
        b = self.b
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
        b = self.b
        call = f"call {LONGS} @addressed(i32 {self.modes[axis]}, {LONGS} {index}, i64 {self.extents[axis]})"
        found = b.value(call)
        inside = b.value(f"icmp sge {LONGS} {found}, zeroinitializer")
        place = b.value(f"select {FLAGS} {inside}, {LONGS} {found}, {LONGS} zeroinitializer")
        return b.value(f"mul {LONGS} {place}, {self.strides[axis]}"), inside

    def corners(self) -> list[tuple[str, str, str]]:
        """Byte offset, whether it is inside, and weight of each texel that counts."""
        b = self.b
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
        """A channel's values to %parts, as bits of single precision or as integers."""
        b = self.b
        b.line(f"""br label %channel
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
        b.line(f"""br i1 %missing, label %without, label %there
without:                                          ; weights add up to 1 exactly
  br i1 {self.bordered}, label %mix, label %constant
constant:
  %one.bits = select i1 {self.integers}, i32 1, i32 1065353216
  %usual.bits = select i1 %is.alpha, i32 %one.bits, i32 0""")
        constant = self.spread("i32", "%usual.bits")
        b.line(f"""br label %keep
there:
  %skip = mul i32 %c, {self.channel_bytes}
  %data.c = getelementptr i8, ptr {self.data}, i32 %skip""")
        loaded = [b.value(f"call {DOUBLES} %loader(ptr %data.c, {LONGS} {offset})") for offset, _, _ in corners]
        b.line("br label %mix\nmix:")
        texels = [b.value(f"phi {DOUBLES} [{usual}, %without], [{value}, %there]") for value in loaded]
        b.line(f"""%border.p = getelementptr double, ptr {self.border}, i32 %c
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
        b.line(f"""br i1 {self.integers}, label %as.integers, label %as.floats
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
  %part.p = getelementptr {WORDS}, ptr %parts, i32 %c
  store {WORDS} %result, ptr %part.p
  br label %channel.end
channel.end:
  %c.next = add i32 %c, 1
  %more.channels = icmp ult i32 %c.next, 4
  br i1 %more.channels, label %channel, label %channels.done
channels.done:""")

    def store(self, kind: str, value: str, target: str, at: str) -> None:
        """Set the lanes of a destination that run."""
        b = self.b
        place = b.value(f"getelementptr i8, ptr {target}, i32 {at}")
        old = b.value(f"load {kind}, ptr {place}")
        b.line(f"store {kind} {b.value(f'select {FLAGS} %lanes, {kind} {value}, {kind} {old}')}, ptr {place}")

    def part(self, number: int) -> str:
        place = self.b.value(f"getelementptr {WORDS}, ptr %parts, i32 {number}")
        return self.b.value(f"load {WORDS}, ptr {place}")

    def half(self, number: int) -> str:
        b = self.b
        singles = b.value(f"bitcast {WORDS} {self.part(number)} to <{WIDTH} x float>")
        halves = b.value(f"fptrunc <{WIDTH} x float> {singles} to <{WIDTH} x half>")
        return b.value(f"bitcast <{WIDTH} x half> {halves} to <{WIDTH} x i16>")

    def results(self, halves: bool) -> None:
        """%parts to the destinations."""
        b = self.b
        if halves:
            b.line(f"""switch i32 {self.halves}, label %to.words [
    i32 1, label %to.halves
    i32 2, label %to.pairs
  ]
to.halves:
  %at.half = lshr i32 %at, 1""")
            for number, target in enumerate(self.targets):
                self.store(f"<{WIDTH} x i16>", self.half(number), target, "%at.half")
            b.line("br label %next\nto.pairs:")
            for number, target in enumerate(self.targets[:2]):
                low, high = (
                    b.value(f"zext <{WIDTH} x i16> {self.half(2 * number + k)} to {WORDS}") for k in range(2)
                )
                upper = b.value(f"shl {WORDS} {high}, {splat('i32', 16)}")
                self.store(WORDS, b.value(f"or {WORDS} {low}, {upper}"), target, "%at")
            b.line("br label %next\nto.words:")
        for number, target in enumerate(self.targets):
            self.store(WORDS, self.part(number), target, "%at")
        b.line("br label %next")


def _lanes(axes: int, how: str, halves: bool) -> str:
    """The function for the lanes of a warp."""
    code = _Lanes(axes, how)
    b = code.b
    code.prologue()
    b.line(f"""br label %chunks
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
    code.channel(code.corners())
    code.results(halves)
    b.line(f"""next:
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, {LANES // WIDTH}
  br i1 %more, label %chunk, label %end
end:""")
    return b.function(f"lanes_{axes}_{how}", "ptr %look, ptr %tex, ptr %fp, ptr %fetch, i32 %mask")
