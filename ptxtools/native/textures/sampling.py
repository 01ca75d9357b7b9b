"""Native service for `tex`: fetches from 1D, 2D and 3D textures and arrays of them in compiled code (9.7.10.3).

It is called with the worker, the warp, its frame, the lanes, and the cell of its event, which a service has filled
(`structures.TextureFetch`), and finds textures in the table that the service has shown (`structures.TEXTURE`). It
answers SERVED_DONE, or SERVED_NOT: then the service does the work, which also knows what is wrong with it. Every index
is held to the texture's extents before it is used, and the extents to device memory, so that no operand leads outside.

What is computed is that of `ptxtools.sim.textures.sampling`, operation by operation, eight lanes at a time.
"""

from __future__ import annotations

from functools import cache

from ptxtools.native.code import structures
from ptxtools.native.code.emitter import Emitter, expand, module_of
from ptxtools.program.program import LANES

from .lanes import AXES, HOW, lanes_function
from .texels import ADDRESSED, MODULO, loader_name, loader_names, loaders

#: Handles of textures and samplers begin with these bits (`sim.textures.objects`).
_HANDLE, _OBJECT, _SAMPLER = 0x7E58, 0x7E580100, 0x7E580200

NAME = "texture_fetch"


@cache
def addresses() -> dict[str, int] | None:
    """Where the compiled functions are, by name; None without llvmlite."""
    try:
        from ptxtools.native.code import jit, library
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

    code = Emitter()
    code.declare("@zeros", f"@zeros = internal constant [{4 * LANES} x i32] zeroinitializer, align 64")
    lanes = [lanes_function(code, axes, how, halves) for axes in AXES for how in HOW]
    texts = [*loaders(halves, linear_light().tolist()), MODULO, ADDRESSED, _HELD, _USUAL, _FETCH]
    return module_of([*lanes, *map(expand, texts)], code.declarations, attributes)


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

_VARIANTS = [(axes, number, how) for axes in AXES for number, how in enumerate(HOW)]
_CASES = "".join(f"    i32 {len(HOW) * axes + number}, label %{how}.{axes}\n" for axes, number, how in _VARIANTS)
_CALLS = "".join(
    f"""{how}.{axes}:
  call void @lanes_{axes}_{how}(ptr %look, ptr %tex, ptr %fp, ptr %event, i32 %mask)
  br label %done
"""
    for axes, _, how in _VARIANTS
)

_FETCH = f"""
service @{NAME} {{
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
