"""IR of what `sampling` calls for eight lanes at a time: texels by their format, and address modes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ptxtools.native.code.emitter import splat
from ptxtools.records import dataclass

#: Lanes that are sampled together: a vector of as many doubles.
WIDTH = 8
DOUBLES, WORDS, LONGS, FLAGS = (f"<{WIDTH} x {kind}>" for kind in ("double", "i32", "i64", "i1"))


_DOUBLE = struct.Struct(">d")


@dataclass(frozen=True)
class _Format:
    """name: of the channel type; kind: IR type of a channel; convert: texels %raw to doubles %value."""

    name: str
    kind: str
    convert: str


def _scaled(name: str, bits: int, *, signed: bool) -> _Format:
    """Integers as floats: divided in single precision."""
    singles, kind = f"<{WIDTH} x float>", f"<{WIDTH} x i{bits}>"
    largest = float((1 << bits - signed) - 1)
    lines = f"""
  %single = {"si" if signed else "ui"}tofp {kind} %raw to {singles}
  %part = fdiv {singles} %single, {splat("float", largest)}"""
    if signed:
        lines += f"""
  %low = fcmp olt {singles} %part, {splat("float", -1.0)}
  %held = select {FLAGS} %low, {singles} {splat("float", -1.0)}, {singles} %part"""
    return _Format(
        name, f"i{bits}", lines + f"\n  %value = fpext {singles} %{'held' if signed else 'part'} to {DOUBLES}"
    )


def _integers(name: str, bits: int, *, signed: bool) -> _Format:
    convert = "si" if signed else "ui"
    return _Format(name, f"i{bits}", f"  %value = {convert}tofp <{WIDTH} x i{bits}> %raw to {DOUBLES}")


_FORMATS = (
    *(
        _integers(f"{'s' if signed else 'u'}{bits}", bits, signed=signed)
        for bits in (8, 16, 32)
        for signed in (False, True)
    ),
    *(
        _scaled(f"{'sn' if signed else 'un'}{bits}", bits, signed=signed)
        for bits in (8, 16)
        for signed in (False, True)
    ),
    _Format("f32", "float", f"  %value = fpext <{WIDTH} x float> %raw to {DOUBLES}"),
)
_HALF = _Format("f16", "half", f"  %single = fpext <{WIDTH} x half> %raw to <{WIDTH} x float>\n"
                f"  %value = fpext <{WIDTH} x float> %single to {DOUBLES}")  # fmt: skip


def loader_name(format: str) -> str:
    """Function that loads a channel of this format: a channel type, "un8" and the like for normalized ones, "srgb"."""
    return f"texel_{format}"


def loader_names(halves: bool) -> list[str]:
    return [loader_name(name) for name in ("srgb", *(f.name for f in _FORMATS), *(["f16"] if halves else []))]


def loaders(halves: bool, srgb: Iterable[float]) -> list[str]:
    """The functions: (host address, offsets of eight lanes) to values. srgb: the 256 values of such a channel."""
    formats = [*_FORMATS, *([_HALF] if halves else [])]
    return [_loader(format) for format in formats] + [_srgb_loader(srgb)]


def _loads(kind: str) -> str:
    """One load for each lane, into %raw."""
    vector = f"<{WIDTH} x {kind}>"
    lines = []
    for lane in range(WIDTH):
        old = f"%r{lane - 1}" if lane else "poison"
        new = "%raw" if lane == WIDTH - 1 else f"%r{lane}"
        lines.append(f"""  %o{lane} = extractelement {LONGS} %offsets, i32 {lane}
  %p{lane} = getelementptr i8, ptr %base, i64 %o{lane}
  %x{lane} = load {kind}, ptr %p{lane}, align 1
  {new} = insertelement {vector} {old}, {kind} %x{lane}, i32 {lane}""")
    return "\n".join(lines)


def _loader(format: _Format) -> str:
    return f"""
define {DOUBLES} @{loader_name(format.name)}(ptr %base, {LONGS} %offsets) #0 {{
{_loads(format.kind)}
{format.convert}
  ret {DOUBLES} %value
}}
"""


def _srgb_loader(values: Iterable[float]) -> str:
    table = ", ".join(f"double 0x{_DOUBLE.pack(value).hex()}" for value in values)
    looks = []
    for lane in range(WIDTH):
        old = f"%w{lane - 1}" if lane else "poison"
        looks.append(f"""  %c{lane} = zext i8 %x{lane} to i64
  %q{lane} = getelementptr double, ptr @srgb, i64 %c{lane}
  %y{lane} = load double, ptr %q{lane}
  %w{lane} = insertelement {DOUBLES} {old}, double %y{lane}, i32 {lane}""")
    newline = "\n"
    return f"""
@srgb = internal constant [256 x double] [{table}]
define {DOUBLES} @{loader_name("srgb")}(ptr %base, {LONGS} %offsets) #0 {{
{_loads("i8")}
{newline.join(looks)}
  ret {DOUBLES} %w{WIDTH - 1}
}}
"""


#: i modulo n, from 0 to n - 1: the quotient in double precision is off by one at most.
MODULO = f"""
define internal {LONGS} @modulo({LONGS} %i, {LONGS} %n) #0 {{
  %di = sitofp {LONGS} %i to {DOUBLES}
  %dn = sitofp {LONGS} %n to {DOUBLES}
  %ratio = fdiv {DOUBLES} %di, %dn
  %whole = call {DOUBLES} @llvm.floor.v{WIDTH}f64({DOUBLES} %ratio)
  %q = fptosi {DOUBLES} %whole to {LONGS}
  %multiple = mul {LONGS} %q, %n
  %rest = sub {LONGS} %i, %multiple
  %low = icmp slt {LONGS} %rest, zeroinitializer
  %up = add {LONGS} %rest, %n
  %not.low = select {FLAGS} %low, {LONGS} %up, {LONGS} %rest
  %high = icmp sge {LONGS} %not.low, %n
  %down = sub {LONGS} %not.low, %n
  %result = select {FLAGS} %high, {LONGS} %down, {LONGS} %not.low
  ret {LONGS} %result
}}
"""

#: Indices by address mode (numbers of txq.addr_mode): in 0 … extent - 1, or -1 where the border's colour is.
#: Indices just outside, as filters and offsets make them, need no division.
ADDRESSED = f"""
define internal {LONGS} @addressed(i32 %mode, {LONGS} %i, i64 %extent) #0 {{
  %n = splat64x8 %extent
  %last = sub {LONGS} %n, {splat("i64", 1)}
  %below = icmp slt {LONGS} %i, zeroinitializer
  %above = icmp sge {LONGS} %i, %n
  switch i32 %mode, label %clamp [
    i32 0, label %wrap
    i32 1, label %mirror
    i32 4, label %border
  ]
clamp:
  %low = select {FLAGS} %below, {LONGS} zeroinitializer, {LONGS} %i
  %held = select {FLAGS} %above, {LONGS} %last, {LONGS} %low
  ret {LONGS} %held
border:
  %outside = or {FLAGS} %below, %above
  %or.none = select {FLAGS} %outside, {LONGS} {splat("i64", -1)}, {LONGS} %i
  ret {LONGS} %or.none
wrap:
  %up = add {LONGS} %i, %n
  %down = sub {LONGS} %i, %n
  %wrap.low = select {FLAGS} %below, {LONGS} %up, {LONGS} %i
  %wrapped = select {FLAGS} %above, {LONGS} %down, {LONGS} %wrap.low
  %wrap.far = icmp uge {LONGS} %wrapped, %n
  %wrap.bits = bitcast {FLAGS} %wrap.far to i{WIDTH}
  %wrap.near = icmp eq i{WIDTH} %wrap.bits, 0
  br i1 %wrap.near, label %wrap.done, label %wrap.divide
wrap.divide:
  %modulo = call {LONGS} @modulo({LONGS} %i, {LONGS} %n)
  ret {LONGS} %modulo
wrap.done:
  ret {LONGS} %wrapped
mirror:
  %twice = add {LONGS} %n, %n
  %twice.last = sub {LONGS} %twice, {splat("i64", 1)}
  %back = sub {LONGS} {splat("i64", -1)}, %i
  %over = sub {LONGS} %twice.last, %i
  %mirror.low = select {FLAGS} %below, {LONGS} %back, {LONGS} %i
  %mirrored = select {FLAGS} %above, {LONGS} %over, {LONGS} %mirror.low
  %mirror.far = icmp uge {LONGS} %mirrored, %n
  %mirror.bits = bitcast {FLAGS} %mirror.far to i{WIDTH}
  %mirror.near = icmp eq i{WIDTH} %mirror.bits, 0
  br i1 %mirror.near, label %mirror.done, label %mirror.divide
mirror.divide:
  %folded = call {LONGS} @modulo({LONGS} %i, {LONGS} %twice)
  %other = sub {LONGS} %twice.last, %folded
  %less = icmp slt {LONGS} %folded, %other
  %nearer = select {FLAGS} %less, {LONGS} %folded, {LONGS} %other
  ret {LONGS} %nearer
mirror.done:
  ret {LONGS} %mirrored
}}
"""
