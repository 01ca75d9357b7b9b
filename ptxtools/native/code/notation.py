"""A thin notation over LLVM IR, for code that is control flow above all: the native loop, services of events.

A line of it is a call of the emitter (`Emitter.expand`), so that text and generated code share how fields are reached,
how scalars are spread and how records follow one another.

It is IR, plus these lines (`%x` any name; structures and fields are those of `structures`):

    handler @name {                     begin a function that the threaded code can reach
    service @name {                     begin a function that does an event's work (`SERVICE`)
    %x = get warp.ready                 load a field; `of %p` names another base than %warp (%ctx, %cta; %ip for rec,
                                        %event for the payload of an event)
    set warp.ready, %x                  store a field; `of %p` likewise
    %x = addr warp.pc                   address of a field
    %x = item cta.arrived, %id          address of an element of an array field
    %x = lanes %mask                    i32 to <32 x i1>
    %x = bits %lanes                    <32 x i1> to i32
    %x = splat32 %s                     a scalar in every lane (splat8, splat16, splat64; splat64x8: of eight)
    %x = blend32 %lanes, %new, %old     `select` of vectors (blend16, blend64)
    %x = guarded %mask                  lanes of %mask whose guard holds; a record without guard has them all
    %x = depth %fp                      frame offset of a frame's address
    goto %fp, %ip, %mask                go on with the record at %ip; ends the function
    tail @name %fp, %ip, %mask          continue in another handler; ends the function
    leave STATUS_X                      back to the loop; ends the function
    NAME                                any constant of `structures`, or of `_CONSTANTS` below
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxtools.program.program import (
    CODE_BASE,
    CODE_STEP,
    FRAME_HEADER,
    LANES,
    RANK_SHIFT,
    RETURN_BLOCK,
    RETURN_FRAME,
    STACK_POINTER,
)

from . import structures

if TYPE_CHECKING:
    from .emitter import Emitter

#: Parameters of every handler: frame, record, lanes to run, worker, warp.
SIGNATURE = "ptr %fp, ptr %ip, i32 %mask, ptr %ctx, ptr %warp"
#: The convention keeps all state in registers, and nothing is saved between handlers.
CONVENTION = "preserve_nonecc"
#: Parameters of a function that does an event's work: worker, warp, frame, lanes, cell. It answers SERVED_*.
SERVICE = "ptr %ctx, ptr %warp, ptr %fp, i32 %mask, ptr %event"
RECORD_BYTES = structures.RECORD.size

_CONSTANTS = {name: value for name, value in vars(structures).items() if name.isupper() and isinstance(value, int)}
_CONSTANTS.update(
    FRAME_HEADER=FRAME_HEADER, RETURN_BLOCK=RETURN_BLOCK, RETURN_FRAME=RETURN_FRAME, STACK_POINTER=STACK_POINTER,
    WARP_BYTES=structures.WARP.size, RECORD_BYTES=RECORD_BYTES, FUN_BYTES=structures.FUNCTION.size,
    CTA_BYTES=structures.CTA.size, TAB_BYTES=structures.TABLE.size, CON_BYTES=structures.CONSTANT.size,
    TEX_BYTES=structures.TEXTURE.size, FILTER_BYTES=structures.FILTER.size, BOUND_BYTES=structures.BOUND.size,
    ROW_BYTES=structures.ROW.size, OWNERS_BYTES=structures.OWNERS.size, MARKED_BYTES=structures.MARKED.size,
    PART_BYTES=structures.PART.size,
    CODE_BASE=CODE_BASE, CODE_STEP=CODE_STEP,
    #: Records that a group may run out of its turn while other lanes of its warp wait.
    ROTATED_SLICE=512,
    #: Records that an event costs its warp.
    EVENT_COST=64,
    RANK_SHIFT=RANK_SHIFT,
)  # fmt: skip
_NAMES = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\bNOWHERE\b")
_BASES = {"rec": "%ip"} | {payload.name: "%event" for payload in structures.PAYLOADS.values()}


def with_constants(line: str) -> str:
    """A line with numbers for the names of constants."""
    return _NAMES.sub(lambda m: str(_CONSTANTS.get(m[0], m[0])), line)


def base_of(field: str) -> str:
    """What a structure is called by, unless a base is named: "%warp" for "warp.pc"."""
    structure = field.partition(".")[0]
    return _BASES.get(structure, "%" + structure)


def call_of(handler: str, frame: str, record: str, mask: str) -> str:
    """A call of a handler, in the threaded code's convention."""
    return f"call {CONVENTION} void {handler}(ptr {frame}, ptr {record}, i32 {mask}, ptr %ctx, ptr %warp)"


def header_of(handler: str, attributes: str = "#0") -> str:
    """The first line of a handler."""
    return f"define {CONVENTION} void {handler}({SIGNATURE}) {attributes} {{"


def _blend(code: Emitter, result: str, bits: str, lanes: str, new: str, old: str) -> None:
    kind = f"<{LANES} x i{bits}>"
    code.value(f"select <{LANES} x i1> {lanes}, {kind} {new}, {kind} {old}", result)


_V = r"(%[\w.]+|-?\d+)"
#: The word of a line that its form is known by, without the number behind it.
_WORD = re.compile(r"(?:%[\w.]+ = )?([a-z]+)")
#: Forms of lines by that word, and what the emitter does for them.
_RULES: dict[str, tuple[re.Pattern[str], Callable[..., object]]] = {
    "handler": (re.compile(r"handler (@[\w.]+) {"), lambda code, n: code.line(header_of(n))),
    "service": (re.compile(r"service (@[\w.]+) {"), lambda code, n: code.line(f"define i32 {n}({SERVICE}) #0 {{")),
    "get": (re.compile(rf"{_V} = get (\w+\.\w+)(?: of {_V})?"), lambda code, r, f, b: code.field(f, b or "", r)),
    "set": (re.compile(rf"set (\w+\.\w+), (.+?)(?: of {_V})?"), lambda code, f, v, b: code.set_field(f, v, b or "")),
    "addr": (re.compile(rf"{_V} = addr (\w+\.\w+)(?: of {_V})?"), lambda code, r, f, b: code.address(f, b or "", r)),
    "item": (
        re.compile(rf"{_V} = item (\w+\.\w+), {_V}(?: of {_V})?"),
        lambda code, r, f, i, b: code.item(f, i, b or "", r),
    ),
    "lanes": (
        re.compile(rf"{_V} = lanes {_V}"),
        lambda code, r, m: code.value(f"bitcast i32 {m} to <{LANES} x i1>", r),
    ),
    "bits": (re.compile(rf"{_V} = bits {_V}"), lambda code, r, m: code.value(f"bitcast <{LANES} x i1> {m} to i32", r)),
    "splat": (
        re.compile(rf"{_V} = splat(8|16|32|64)(?:x(\d+))? {_V}"),
        lambda code, r, n, lanes, v: code.spread(f"i{n}", v, int(lanes or LANES), r),
    ),
    "blend": (re.compile(rf"{_V} = blend(16|32|64) {_V}, (.+), (.+)"), _blend),
    "guarded": (re.compile(rf"{_V} = guarded {_V}(?: by {_V})?"), lambda code, r, m, g: code.guarded(m, g or "", r)),
    "depth": (re.compile(rf"{_V} = depth {_V}"), lambda code, r, f: code.depth(f, r)),
    "goto": (re.compile(rf"goto {_V}, {_V}, {_V}"), lambda code, *where: code.goto(*where)),
    "tail": (re.compile(rf"tail (@[\w.]+) {_V}, {_V}, {_V}"), lambda code, *where: code.tail(*where)),
    "leave": (re.compile(r"leave (\d+)"), lambda code, status: code.leave(status)),
}


def expand(code: Emitter, line: str) -> bool:
    """Emit a line of the notation; false if it is none of its own."""
    word = _WORD.match(line)
    rule = _RULES.get(word[1]) if word is not None else None
    found = rule[0].fullmatch(with_constants(line)) if rule is not None else None
    if rule is None or found is None:
        return False
    rule[1](code, *found.groups())
    return True
