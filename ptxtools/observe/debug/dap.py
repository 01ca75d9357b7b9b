"""A debug adapter: lets editors debug a run by the Debug Adapter Protocol (`ptx-run --dap`).

A thread of the protocol is a warp; its variables are those of one lane, and of each register all 32. The handshake
takes place at the kernel's first instruction, where the lines of breakpoints are known.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import shown as demangled
from ptxtools.machine.registers import named
from ptxtools.program.program import LANES

from . import dap_state, looking
from .channel import Channel, ProtocolError
from .commands import Commands, UserError, assign
from .debugger import Leave
from .expressions import ExpressionError, Lane, evaluate, register
from .goals import Breakpoint, Focus, Goal, Stop

if TYPE_CHECKING:
    from .debugger import Debugger

Body = dict[str, Any]
#: What a request answers: the body, and how the run goes on.
Answer = tuple[Body, tuple[Goal, bool] | None]
_CAPABILITIES = (
    "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints", "supportsStepBack", "supportsSetVariable", "supportsDataBreakpoints",
    "supportsSteppingGranularity", "supportsEvaluateForHovers", "supportTerminateDebuggee", "supportsTerminateRequest",
)  # fmt: skip
_REASONS = {"trap": "exception", "report": "exception", "watchpoint": "data breakpoint", "back": "step",
            "history": "entry"}  # fmt: skip


class Adapter:
    """Talks to an editor (`debugger.Front`)."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told: list[str] = []
        self._commands = Commands(self._told.append)
        self._references: list[tuple[str, Focus]] = []  # of variables: a register or "", and whose
        self._goal = Goal()

    def wants(self) -> bool:
        return self._channel.waits()

    def stopped(self, debugger: Debugger, stop: Stop) -> tuple[Goal, bool]:
        front = debugger.session.front
        self._channel.unread = front.pop("input", self._channel.unread)
        self._channel.seq = max(self._channel.seq, front.pop("seq", 0))
        self._references.clear()
        starts, pauses = not front.get("started"), stop.kind == "pause" and not front.get("pausing")
        if stop.kind == "end":
            return Goal(), False
        if not starts and not pauses:
            self._tell_stop(debugger, stop)
        while True:
            if pauses and not self._channel.waits():
                return self._goal, False  # it was only asked something
            message = self._receive()
            found = self._answer(debugger, message)
            if message.get("command") == "pause":
                pauses = False
                self._tell_stop(debugger, stop)
            if starts and front.get("launched") and front.get("configured"):
                starts, front["started"] = False, True
                if not front.get("stop_on_entry"):
                    found = Goal(), False
                else:
                    self._tell_stop(debugger, stop)
            if found is not None:
                front["input"], front["seq"] = self._channel.unread, self._channel.seq
                self._goal = found[0]
                return found

    def _receive(self) -> Body:
        try:
            message = self._channel.receive()
        except ProtocolError:
            message = None
        if message is None:
            raise Leave
        return message

    def _answer(self, debugger: Debugger, message: Body) -> tuple[Goal, bool] | None:
        """Answer a request."""
        command, arguments = str(message.get("command")), message.get("arguments") or {}
        how: Callable[[Debugger, Body], Answer] | None = getattr(self, f"_on_{command}", None)
        reply = {"request_seq": message.get("seq", 0), "command": command}
        try:
            if how is None or not isinstance(arguments, dict):
                raise UserError(f"there is no request '{command}'")
            body, found = how(debugger, arguments)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            text = f"{command} lacks {error}" if isinstance(error, KeyError) else str(error)
            self._channel.send("response", success=False, message=text, **reply)
            return None
        self._channel.send("response", success=True, body=body, **reply)
        if command == "initialize":
            self._channel.event("initialized")
        if command in ("disconnect", "terminate"):
            raise Leave
        return found

    def _tell_stop(self, debugger: Debugger, stop: Stop) -> None:
        focus = debugger.focus
        self._channel.event(
            "stopped", reason=_REASONS.get(stop.kind, stop.kind), allThreadsStopped=True, text=stop.text,
            description=stop.text.partition("\n")[0] or stop.kind, hitBreakpointIds=list(stop.numbers),
            **({} if focus is None else {"threadId": self._thread(debugger, focus)}),
        )  # fmt: skip

    # --- beginning and end --------------------------------------------------------------------------------------------

    def _on_initialize(self, debugger: Debugger, arguments: Body) -> Answer:
        filters = [{"filter": "report", "label": "Reports of checkers", "default": True}]
        return {**dict.fromkeys(_CAPABILITIES, True), "exceptionBreakpointFilters": filters}, None

    def _on_launch(self, debugger: Debugger, arguments: Body) -> Answer:
        front = debugger.session.front
        front["launched"], front["stop_on_entry"] = True, bool(arguments.get("stopOnEntry"))
        front["ptx"] = arguments.get("source") == "ptx"
        return {}, None

    _on_attach = _on_launch

    def _on_configurationDone(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802 - the protocol's name
        debugger.session.front["configured"] = True
        return {}, None

    def _on_disconnect(self, debugger: Debugger, arguments: Body) -> Answer:
        return {}, None

    _on_terminate = _on_disconnect

    # --- breakpoints --------------------------------------------------------------------------------------------------

    def _replace(self, debugger: Debugger, group: str, wanted: list[tuple[Body, Breakpoint]]) -> Answer:
        """Breakpoints instead of those that a group (a file, "functions" or "data") had."""
        groups = debugger.session.front.setdefault("groups", {})
        for number in groups.pop(group, ()):
            debugger.session.breakpoints.pop(number, None)
        found, numbers = [], []
        for asked, one in wanted:
            try:
                hits = str(asked.get("hitCondition") or "").strip()
                if hits and not hits.isdecimal():
                    raise UserError("a hit condition is a number")
                one.ignore = max(0, int(hits or 1) - 1)
                debugger.add(one)
            except ValueError as error:
                found.append({"verified": False, "message": str(error)})
                continue
            numbers.append(one.number)
            told: Body = {"id": one.number, "verified": True}
            if group not in ("functions", "data") and debugger.code is not None and ":" not in one.location:
                told["line"] = debugger.code.place(debugger.code.find(one.location)[0]).line
            found.append(told)
        groups[group] = numbers
        debugger.arm()
        return {"breakpoints": found}, None

    def _on_setBreakpoints(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        path = str(arguments["source"].get("path") or arguments["source"].get("name"))
        ptx = debugger.code is not None and os.path.basename(debugger.code.file) == os.path.basename(path)
        head = "" if ptx else f"{os.path.basename(path)}:"
        asked = arguments.get("breakpoints") or []
        ones = [Breakpoint(0, "break", f"{head}{int(row['line'])}", str(row.get("condition") or "")) for row in asked]
        return self._replace(debugger, path, list(zip(asked, ones, strict=True)))

    def _on_setFunctionBreakpoints(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        asked = arguments["breakpoints"]
        ones = [Breakpoint(0, "break", str(row["name"]), str(row.get("condition") or "")) for row in asked]
        return self._replace(debugger, "functions", list(zip(asked, ones, strict=True)))

    def _on_setExceptionBreakpoints(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        debugger.session.stops_at_reports = "report" in arguments.get("filters", ())
        return {}, None

    def _on_dataBreakpointInfo(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        name = str(arguments["name"])
        return {"dataId": name, "description": name, "accessTypes": ["write"], "canPersist": False}, None

    def _on_setDataBreakpoints(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        asked = arguments["breakpoints"]
        ones = [Breakpoint(0, "watch", str(row["dataId"])) for row in asked]
        return self._replace(debugger, "data", list(zip(asked, ones, strict=True)))

    # --- running ------------------------------------------------------------------------------------------------------

    def _goes(self, debugger: Debugger, arguments: Body, kind: Any, *, back: bool = False) -> Answer:
        focus = self._focus(debugger, int(arguments["threadId"]))
        goal = Goal(kind, focus.cta, focus.warp, 1 << focus.lane)
        goal.depth = len(debugger.stack(focus.cta, focus.warp, focus.lane))
        view = debugger.view(focus.cta, focus.warp, focus.lane)
        fine = arguments.get("granularity") == "instruction"
        if kind == "next" and view is not None and not fine and not back and self._source(debugger, view.op.where):
            goal.kind, goal.source = "source", debugger.source_line(view.op.where)
        return {}, (goal, back)

    def _on_continue(self, debugger: Debugger, arguments: Body) -> Answer:
        return {"allThreadsContinued": True}, (Goal(), False)

    def _on_reverseContinue(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        return {}, (Goal(), True)

    def _on_next(self, debugger: Debugger, arguments: Body) -> Answer:
        return self._goes(debugger, arguments, "next")

    def _on_stepIn(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        return self._goes(debugger, arguments, "step")

    def _on_stepOut(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        return self._goes(debugger, arguments, "finish")

    def _on_stepBack(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        return self._goes(debugger, arguments, "step", back=True)

    def _on_pause(self, debugger: Debugger, arguments: Body) -> Answer:
        return {}, None

    # --- looking ------------------------------------------------------------------------------------------------------

    def _thread(self, debugger: Debugger, focus: Focus) -> int:
        assert debugger.launch is not None
        gx, gy, _ = debugger.launch.grid
        x, y, z = focus.cta
        return (x + gx * (y + gy * z)) * looking.warps(debugger) + focus.warp + 1

    def _focus(self, debugger: Debugger, thread: int) -> Focus:
        """The lane that stands for a warp: that in focus, or the first that has not exited."""
        assert debugger.launch is not None
        number, warp = divmod(thread - 1, looking.warps(debugger))
        gx, gy, _ = debugger.launch.grid
        cta, focus = (number % gx, number // gx % gy, number // (gx * gy)), debugger.focus
        if focus is not None and (focus.cta, focus.warp) == (cta, warp):
            return focus
        for lane in range(LANES):
            if debugger.view(cta, warp, lane) is not None:
                return Focus(cta, warp, lane)
        raise UserError(f"thread {thread} is not resident, or has exited")

    def _on_threads(self, debugger: Debugger, arguments: Body) -> Answer:
        found = {}
        for one in looking.waiting(debugger)[1]:
            focus = Focus(one.cta, one.warp, 0)
            found[self._thread(debugger, focus)] = f"{looking.cta_text(one.cta)} warp {one.warp}"
        return {"threads": [{"id": number, "name": name} for number, name in sorted(found.items())]}, None

    def _source(self, debugger: Debugger, where: int) -> tuple[str, int] | None:
        """The source file and line of an instruction, if the file is there and wanted."""
        origin = None if debugger.code is None or debugger.session.front.get("ptx") else debugger.code.origin(where)
        return (origin.file, origin.line) if origin is not None and os.path.isfile(origin.file) else None

    def _on_stackTrace(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        focus = self._focus(debugger, int(arguments["threadId"]))
        view, code = debugger.view(focus.cta, focus.warp, focus.lane), debugger.code
        if view is None or code is None:
            raise UserError("nothing runs")
        wheres = [view.op.where, *(where for _, where in reversed(debugger.stack(focus.cta, focus.warp, focus.lane)))]
        frames = []
        for n, where in enumerate(wheres):
            place = code.place(where)
            path, line = self._source(debugger, where) or (place.file, place.line or 0)
            frame = {"id": self._reference("", focus), "name": demangled(place.function), "line": line,
                     "column": 1, "instructionPointerReference": str(where)}  # fmt: skip
            if path:
                frame["source"] = {"name": os.path.basename(path), "path": os.path.abspath(path)}
            if n:
                frame["presentationHint"] = "subtle"
            frames.append(frame)
        first, most = int(arguments.get("startFrame") or 0), int(arguments.get("levels") or len(frames))
        return {"stackFrames": frames[first : first + most], "totalFrames": len(frames)}, None

    def _reference(self, name: str, focus: Focus) -> int:
        self._references.append((name, focus))
        return len(self._references)

    def _referred(self, number: Any) -> tuple[str, Focus]:
        if not isinstance(number, int) or not 0 < number <= len(self._references):
            raise UserError(f"there is nothing with the reference {number}")
        return self._references[number - 1]

    def _on_scopes(self, debugger: Debugger, arguments: Body) -> Answer:
        _, focus = self._referred(arguments["frameId"])
        scopes = ((f"Registers of lane {focus.lane}", "registers", ""), ("Device", "locals", dap_state.SCOPE))
        return {"scopes": [{"name": name, "presentationHint": hint, "expensive": False,
                            "variablesReference": self._reference(what, focus)}
                           for name, hint, what in scopes]}, None  # fmt: skip

    def _on_variables(self, debugger: Debugger, arguments: Body) -> Answer:
        name, focus = self._referred(arguments["variablesReference"])
        if name.startswith(dap_state.MARK):
            return {"variables": dap_state.rows(debugger, name, lambda one: self._reference(one, focus))}, None
        if name:
            found = []
            for lane in range(LANES):
                view = debugger.view(focus.cta, focus.warp, lane)
                if view is not None and name in named(view):  # others may be in another function
                    text = looking.value_text(register(Lane(view, lane), name))
                    found.append({"name": f"lane {lane}", "value": text, "variablesReference": 0})
            return {"variables": found}, None
        at = self._lane(debugger, focus)
        rows = [
            {"name": one, "value": looking.value_text(register(at, one)), "type": type_, "evaluateName": one,
             "variablesReference": self._reference(one, focus)}
            for one, (_, type_) in sorted(named(at.view).items(), key=lambda item: looking.natural(item[0]))
        ]  # fmt: skip
        return {"variables": rows}, None

    def _lane(self, debugger: Debugger, focus: Focus) -> Lane:
        view = debugger.view(focus.cta, focus.warp, focus.lane)
        if view is None:
            raise UserError(f"{focus} has exited")
        return Lane(view, focus.lane)

    def _on_setVariable(self, debugger: Debugger, arguments: Body) -> Answer:  # noqa: N802
        _, focus = self._referred(arguments["variablesReference"])
        at, name = self._lane(debugger, focus), str(arguments["name"])
        assign(debugger, at, name, evaluate(str(arguments["value"]), at))
        return {"value": looking.value_text(register(at, name))}, None

    def _on_evaluate(self, debugger: Debugger, arguments: Body) -> Answer:
        """An expression; in the console, a command of the prompt."""
        text = str(arguments["expression"])
        if arguments.get("frameId"):
            debugger.focus = self._referred(arguments["frameId"])[1]
        if arguments.get("context") == "repl":
            self._told.clear()
            found = self._commands.run_line(debugger, text)
            return {"result": "\n".join(self._told), "variablesReference": 0}, found
        at = debugger.lane()
        if at is None:
            raise ExpressionError("no lane is in focus")
        return {"result": looking.value_text(evaluate(text, at)), "variablesReference": 0}, None
