"""Native service of events that are logged: a row for each, and the lanes go on (`machine.logs`).

The order of warps and the virtual time are those of a run in which Python serves the event: it costs as much, and the
lanes go on as they do behind Python (`SERVED_ON`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ptxtools.machine.logs import ROW, LogState
from ptxtools.native.code.emitter import expand, module_of
from ptxtools.native.code.notation import with_constants
from ptxtools.native.code.structures import LOG, LOG_ROW, NO_SLOT, Address, LogEntry, Long
from ptxtools.program.details import Guard, Meeting

if TYPE_CHECKING:
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.logs import Log
    from ptxtools.native.code.encode import Encoded

NAME = "log_event"
#: By kind of event, which source is its guard; of those before it the log notes the first.
_GUARDS = {"observe.arrive": 2, "observe.leave": 2, "observe.exit": 0, "observe.line": 0}

assert {name: offset for name, (offset, _) in LOG.fields.items()} == {
    name: getattr(LogState, name).offset for name, _ in LogState._fields_ if name != "pad"
}
_FIELDS: Any = ROW.fields
assert {name: offset for name, (offset, _) in LOG_ROW.fields.items()} == {name: at[1] for name, at in _FIELDS.items()}


def prepare(launch: Launch, encoded: Encoded, log: Log) -> None:
    """Fill the cells of the events that the log takes over, where that is not done."""
    log.begin()
    log.state.cost = int(with_constants("EVENT_COST")) if log.timed else 0
    for number, op in enumerate(log.find(launch.program)):
        cell = encoded.cells[id(op)]
        if cell.payload is not None:
            continue
        place = _GUARDS.get(op.kind)
        guard = None if place is None else op.src[place]
        detail = op.detail
        negated = isinstance(detail, Guard | Meeting) and detail.negated and guard is not None
        source = op.src[0] if place else None
        cell.write(LogEntry(
            Address(log.address), Long(op.imm), number, NO_SLOT if guard is None else guard.slot,
            -1 if negated else 0, op.kind != "observe.line", NO_SLOT if source is None else source.slot,
            source is not None and source.type == "b32",
        ))  # fmt: skip
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
declare i32 @llvm.cttz.i32(i32, i1)
service @{NAME} {{
  %state = get entry.state
  %g.slot = get entry.guard
  %free = icmp slt i32 %g.slot, 0
  br i1 %free, label %who, label %held
held:
  %g.p = getelementptr i8, ptr %fp, i32 %g.slot
  %g.bits = load i32, ptr %g.p
  %turned = get entry.turned
  %g.now = xor i32 %g.bits, %turned
  br label %who
who:
  %held.now = phi i32 [ -1, %0 ], [ %g.now, %held ]
  %m = and i32 %held.now, %mask
  %quiet = get entry.quiet
  %silent = icmp ne i32 %quiet, 0
  %nobody = icmp eq i32 %m, 0
  %nothing = and i1 %nobody, %silent
  br i1 %nothing, label %pass, label %whose
whose:
  %cta = get warp.cta
  %id = get cta.id
  %stride = get log.stride of %state
  %each = icmp eq i64 %stride, 1
  br i1 %each, label %write, label %chosen
chosen:
  %rest = urem i64 %id, %stride
  %mine = icmp eq i64 %rest, 0
  br i1 %mine, label %write, label %pass
write:
  %used = get log.used of %state
  %room = get log.room of %state
  %fits = icmp ult i64 %used, %room
  br i1 %fits, label %note, label %lose
lose:
  %lost = get log.lost of %state
  %lost.next = add i64 %lost, 1
  set log.lost, %lost.next of %state
  br label %pass
pass:
  %pass.slice = get ctx.slice
  %pass.cost = get log.cost of %state
  %pass.left = sub i32 %pass.slice, %pass.cost
  set ctx.slice, %pass.left
  ret i32 SERVED_ON
note:
  %used.next = add i64 %used, 1
  set log.used, %used.next of %state
  %slice = get ctx.slice
  %cost = get log.cost of %state
  %left = sub i32 %slice, %cost
  set ctx.slice, %left
  %left64 = sext i32 %left to i64
  %given = get ctx.given
  %spent = sub i64 %given, %left64
  %clock = get ctx.clock
  %now = add i64 %clock, %spent
  %imm = get entry.imm
  %key.slot = get entry.key
  %plain = icmp slt i32 %key.slot, 0
  br i1 %plain, label %row, label %source
source:
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %key.p = getelementptr i8, ptr %fp, i32 %key.slot
  %narrow = get entry.narrow
  %wide = icmp eq i32 %narrow, 0
  br i1 %wide, label %long, label %short
short:
  %short.p = getelementptr i32, ptr %key.p, i32 %lane
  %short.value = load i32, ptr %short.p
  %imm32 = trunc i64 %imm to i32
  %short.sum = add i32 %short.value, %imm32
  %short.key = zext i32 %short.sum to i64
  br label %row
long:
  %long.p = getelementptr i64, ptr %key.p, i32 %lane
  %long.value = load i64, ptr %long.p
  %long.key = add i64 %long.value, %imm
  br label %row
row:
  %key = phi i64 [ %imm, %note ], [ %short.key, %short ], [ %long.key, %long ]
  %rows = get log.rows of %state
  %place = mul i64 %used, {LOG_ROW.size}
  %to = getelementptr i8, ptr %rows, i64 %place
  %op = get entry.op
  %number = get warp.id
  %x = get cta.x
  %y = get cta.y
  %z = get cta.z
  %sm = get cta.smid
  %rank = get cta.rank
  %external = get cta.external
  set logged.op, %op of %to
  set logged.warp, %number of %to
  set logged.lanes, %m of %to
  set logged.mask, %mask of %to
  set logged.time, %now of %to
  set logged.key, %key of %to
  set logged.cta, %id of %to
  set logged.x, %x of %to
  set logged.y, %y of %to
  set logged.z, %z of %to
  set logged.sm, %sm of %to
  set logged.rank, %rank of %to
  set logged.external, %external of %to
  ret i32 SERVED_ON
}}
"""
