"""A thin notation over LLVM IR, in which the native loop is written.

It is IR, plus these lines (`%x` any name; structures and fields are those of `structures`):

    handler @name {                     begin a function that the threaded code can reach
    %x = get warp.ready                 load a field; `of %p` names another base than %warp (%ctx, %cta; %ip for rec)
    set warp.ready, %x                  store a field; `of %p` likewise
    %x = addr warp.pc                   address of a field
    %x = item cta.arrived, %id          address of an element of an array field
    %x = lanes %mask                    i32 to <32 x i1>
    %x = bits %lanes                    <32 x i1> to i32
    %x = splat32 %s    (splat64)        a scalar in every lane
    %x = blend32 %lanes, %new, %old     `select` of vectors (blend64: of 64-bit ones)
    %x = guarded %mask                  lanes of %mask whose guard holds; a record without guard has them all
    %x = depth %fp                      frame offset of a frame's address
    goto %fp, %ip, %mask                go on with the record at %ip; ends the function
    tail @name %fp, %ip, %mask          continue in another handler; ends the function
    leave STATUS_X                      back to the loop; ends the function
    NAME                                any constant of `structures` or `constants`
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxtools.program.program import (
    CODE_BASE,
    CODE_STEP,
    FRAME_HEADER,
    RANK_SHIFT,
    RETURN_BLOCK,
    RETURN_FRAME,
    STACK_POINTER,
)

from . import structures

#: Parameters of every handler: frame, record, lanes to run, worker, warp.
SIGNATURE = "ptr %fp, ptr %ip, i32 %mask, ptr %ctx, ptr %warp"
#: The convention keeps all state in registers, and nothing is saved between handlers.
CONVENTION = "preserve_nonecc"
RECORD_BYTES = structures.RECORD.size

_CONSTANTS = {name: value for name, value in vars(structures).items() if name.isupper() and isinstance(value, int)}
_CONSTANTS.update(
    FRAME_HEADER=FRAME_HEADER, RETURN_BLOCK=RETURN_BLOCK, RETURN_FRAME=RETURN_FRAME, STACK_POINTER=STACK_POINTER,
    WARP_BYTES=structures.WARP.size, RECORD_BYTES=RECORD_BYTES, FUN_BYTES=structures.FUNCTION.size,
    CTA_BYTES=structures.CTA.size, TAB_BYTES=structures.TABLE.size, CON_BYTES=structures.CONSTANT.size,
    TEX_BYTES=structures.TEXTURE.size,
    CODE_BASE=CODE_BASE, CODE_STEP=CODE_STEP,
    #: Records that a group may run out of its turn while other lanes of its warp wait.
    ROTATED_SLICE=512,
    #: Records that an event costs its warp.
    EVENT_COST=64,
    RANK_SHIFT=RANK_SHIFT,
)  # fmt: skip
_NAMES = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\bNOWHERE\b")
_BASES = {"rec": "%ip"}


class Template:
    """Expands one text; temporaries are named after the result or numbered."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%t.{self.count}"

    def expand(self, text: str) -> str:
        return "\n".join(self._line(line) for line in text.splitlines())

    def _line(self, line: str) -> str:
        line = _NAMES.sub(lambda m: str(_CONSTANTS.get(m[0], m[0])), line)
        for pattern, rewrite in _RULES:
            found = pattern.fullmatch(line.split(" ;")[0].strip())
            if found:
                return rewrite(self, *found.groups())
        return line


def _field(name: str, base: str | None) -> tuple[str, int, str]:
    structure, _, field = name.partition(".")
    offset, type_ = structures.STRUCTURES[structure].field(field)
    return base or _BASES.get(structure, "%" + structure), offset, type_


def _get(t: Template, result: str, name: str, base: str | None) -> str:
    where, offset, type_ = _field(name, base)
    p = t.fresh()
    return f"  {p} = getelementptr i8, ptr {where}, i64 {offset}\n  {result} = load {type_}, ptr {p}"


def _set(t: Template, name: str, value: str, base: str | None) -> str:
    where, offset, type_ = _field(name, base)
    p = t.fresh()
    return f"  {p} = getelementptr i8, ptr {where}, i64 {offset}\n  store {type_} {value}, ptr {p}"


def _addr(t: Template, result: str, name: str, base: str | None) -> str:
    where, offset, _ = _field(name, base)
    return f"  {result} = getelementptr i8, ptr {where}, i64 {offset}"


def _item(t: Template, result: str, name: str, index: str, base: str | None) -> str:
    where, offset, _ = _field(name, base)
    p = t.fresh()
    return f"  {p} = getelementptr i8, ptr {where}, i64 {offset}\n  {result} = getelementptr i32, ptr {p}, i32 {index}"


def _splat(t: Template, result: str, bits: str, value: str) -> str:
    p, v = t.fresh(), f"<32 x i{bits}>"
    return (
        f"  {p} = insertelement {v} poison, i{bits} {value}, i32 0\n"
        f"  {result} = shufflevector {v} {p}, {v} poison, <32 x i32> zeroinitializer"
    )


def _blend(t: Template, result: str, bits: str, lanes: str, new: str, old: str) -> str:
    v = f"<32 x i{bits}>"
    return f"  {result} = select <32 x i1> {lanes}, {v} {new}, {v} {old}"


def _guarded(t: Template, result: str, mask: str, guard: str | None) -> str:
    n = result + ".g"
    load = "" if guard else f"{_get(t, n + 'r', 'rec.guard', None)}\n"
    return f"""\
{load}\
  {n}o = and i32 {guard or n + "r"}, -2
  {n}a = getelementptr i8, ptr %fp, i32 {n}o
  {n}v = load i32, ptr {n}a
  {n}n = and i32 {guard or n + "r"}, 1
  {n}s = sub i32 0, {n}n
  {n}x = xor i32 {n}v, {n}s
  {n}z = icmp eq i32 {guard or n + "r"}, 0
  {n}w = select i1 {n}z, i32 -1, i32 {n}x
  {result} = and i32 {n}w, {mask}"""


def _depth(t: Template, result: str, fp: str) -> str:
    n = result + ".d"
    return f"""\
  {n}f = ptrtoint ptr {fp} to i64
  {n}w = ptrtoint ptr %warp to i64
  {n}o = sub i64 {n}f, {n}w
  {n}s = sub i64 {n}o, {structures.WARP.size}
  {result} = trunc i64 {n}s to i32"""


def _arguments(fp: str, ip: str, mask: str) -> str:
    return f"(ptr {fp}, ptr {ip}, i32 {mask}, ptr %ctx, ptr %warp)"


def _goto(t: Template, fp: str, ip: str, mask: str) -> str:
    p = t.fresh()
    call = f"musttail call {CONVENTION} void {p}{_arguments(fp, ip, mask)}"
    return f"  {p} = load ptr, ptr {ip}\n  {call}\n  ret void"


def _tail(t: Template, name: str, fp: str, ip: str, mask: str) -> str:
    return f"  musttail call {CONVENTION} void {name}{_arguments(fp, ip, mask)}\n  ret void"


def _leave(t: Template, status: str) -> str:
    return _set(t, "ctx.status", status, None) + "\n  ret void"


_V = r"(%[\w.]+|-?\d+)"
_RULES: list[tuple[re.Pattern[str], Callable[..., str]]] = [
    (re.compile(r"handler (@[\w.]+) {"), lambda t, n: f"define {CONVENTION} void {n}({SIGNATURE}) #0 {{"),
    (re.compile(rf"{_V} = get (\w+\.\w+)(?: of {_V})?"), _get),
    (re.compile(rf"set (\w+\.\w+), (.+?)(?: of {_V})?"), _set),
    (re.compile(rf"{_V} = addr (\w+\.\w+)(?: of {_V})?"), _addr),
    (re.compile(rf"{_V} = item (\w+\.\w+), {_V}(?: of {_V})?"), _item),
    (re.compile(rf"{_V} = lanes {_V}"), lambda t, r, m: f"  {r} = bitcast i32 {m} to <32 x i1>"),
    (re.compile(rf"{_V} = bits {_V}"), lambda t, r, m: f"  {r} = bitcast <32 x i1> {m} to i32"),
    (re.compile(rf"{_V} = splat(32|64) {_V}"), _splat),
    (re.compile(rf"{_V} = blend(32|64) {_V}, (.+), (.+)"), _blend),
    (re.compile(rf"{_V} = guarded {_V}(?: by {_V})?"), _guarded),
    (re.compile(rf"{_V} = depth {_V}"), _depth),
    (re.compile(rf"goto {_V}, {_V}, {_V}"), _goto),
    (re.compile(rf"tail (@[\w.]+) {_V}, {_V}, {_V}"), _tail),
    (re.compile(r"leave (\d+)"), _leave),
]


def expand(text: str) -> str:
    """IR of a text in the notation above."""
    return Template().expand(text)
