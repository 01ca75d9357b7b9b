"""Native service before instructions: counts them, and passes those by for which a gate is shut (`machine.gates`).

The service does what `Gate.comes` does, and answers SERVED_ON where the gate is shut. So that a run is the same however
often it is open, the lanes go on exactly as they would behind Python, and an event that goes to Python costs no time.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from ptxtools.machine.gates import FOLLOW_OPENS, GateState, WatchState
from ptxtools.native.code.emitter import expand, module_of
from ptxtools.native.code.structures import GATE, WATCH, Address, LineGate

if TYPE_CHECKING:
    from ptxtools.machine.gates import Gate
    from ptxtools.machine.launch import Launch
    from ptxtools.native.code.encode import Encoded

NAME = "pass_line"


def _agrees() -> bool:
    pairs = ((GATE, GateState), (WATCH, WatchState))
    return all(
        {name: offset for name, (offset, _) in ours.fields.items()}
        == {name: getattr(theirs, name).offset for name, _ in theirs._fields_}
        and ours.size >= ctypes.sizeof(theirs)
        for ours, theirs in pairs
    )


assert _agrees()
assert WATCH.size == ctypes.sizeof(WatchState)


def prepare(launch: Launch, encoded: Encoded, gate: Gate) -> None:
    """Fill the cells of the program's events of instructions, where that is not done."""
    flags = gate.armed(launch.program).__array_interface__["data"][0]
    for op in launch.program.operations():
        if op.kind == "observe.line" and op.where >= 0:
            cell = encoded.cells[id(op)]
            if cell.payload is None:
                cell.write(LineGate(Address(gate.address), Address(flags + op.where), op.where))
                cell.serve(address())


@cache
def address() -> int:
    """Where the compiled service is."""
    from ptxtools.native.code import library

    return library.functions_of((NAME,), module)[NAME]


def module(attributes: str) -> str:
    """The service as LLVM IR."""
    return module_of([expand(_SERVICE)], "", attributes)


_SERVICE = f"""
service @{NAME} {{
  %gate = get line.gate
  %count = get gate.count of %gate
  %next = add i64 %count, 1
  %armed.p = get line.armed
  %armed = load i8, ptr %armed.p
  %bare = icmp eq i8 %armed, 0
  br i1 %bare, label %time, label %ask
time:
  %until = get gate.until of %gate
  %early = icmp ult i64 %next, %until
  br i1 %early, label %words, label %ask
words:
  %watches = get gate.watches of %gate
  %unwatched = icmp eq i32 %watches, 0
  br i1 %unwatched, label %who, label %rows
rows:
  %first = get gate.rows of %gate
  br label %each
each:
  %n = phi i32 [ 0, %rows ], [ %n.next, %same ]
  %row = phi ptr [ %first, %rows ], [ %row.next, %same ]
  %place = get watch.address of %row
  %bits = get watch.mask of %row
  %old = get watch.old of %row
  %word = load i64, ptr %place, align 1
  %now = and i64 %word, %bits
  %differs = icmp ne i64 %now, %old
  br i1 %differs, label %ask, label %same
same:
  %row.next = getelementptr i8, ptr %row, i64 {WATCH.size}
  %n.next = add i32 %n, 1
  %more = icmp ult i32 %n.next, %watches
  br i1 %more, label %each, label %who
who:
  %follow = get gate.follow of %gate
  %cta = get warp.cta
  %x = get cta.x
  %y = get cta.y
  %z = get cta.z
  %number = get warp.id
  %nobody = icmp eq i32 %follow, 0
  br i1 %nobody, label %note, label %follows
follows:
  %f.x = get gate.x of %gate
  %f.y = get gate.y of %gate
  %f.z = get gate.z of %gate
  %f.warp = get gate.warp of %gate
  %f.lanes = get gate.lanes of %gate
  %d.x = xor i32 %x, %f.x
  %d.y = xor i32 %y, %f.y
  %d.z = xor i32 %z, %f.z
  %d.warp = xor i32 %number, %f.warp
  %d.xy = or i32 %d.x, %d.y
  %d.zw = or i32 %d.z, %d.warp
  %d = or i32 %d.xy, %d.zw
  %alike = icmp eq i32 %d, 0
  %ours = and i32 %mask, %f.lanes
  %there = icmp ne i32 %ours, 0
  %it = and i1 %alike, %there
  br i1 %it, label %found, label %note
found:
  %opens = icmp eq i32 %follow, {FOLLOW_OPENS}
  br i1 %opens, label %ask, label %seen
seen:
  set gate.seen, %next of %gate
  br label %note
note:
  br i1 %unwatched, label %pass, label %last
last:
  %where = get line.where
  set gate.last_where, %where of %gate
  set gate.last_x, %x of %gate
  set gate.last_y, %y of %gate
  set gate.last_z, %z of %gate
  set gate.last_warp, %number of %gate
  br label %pass
pass:
  set gate.count, %next of %gate
  ret i32 SERVED_ON
ask:                                              ; Python's share of the slice is given back beforehand
  %slice = get ctx.slice
  %slice.more = add i32 %slice, EVENT_COST
  set ctx.slice, %slice.more
  ret i32 SERVED_NOT
}}
"""
