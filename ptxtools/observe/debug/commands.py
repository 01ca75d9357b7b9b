"""The commands of the debugger's prompt, named as in gdb and cuda-gdb."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.program.program import LANES

from . import fragments, looking, matrices
from .expressions import (
    SIZES,
    SPACES,
    ExpressionError,
    Lane,
    Memory,
    encode,
    evaluate,
    place,
    symbol,
)
from .goals import ALL_LANES, Breakpoint, Focus, Goal
from .points import check_condition

if TYPE_CHECKING:
    from .debugger import Debugger

#: What a command returns that lets the run go on: the goal, and whether backwards.
Next = tuple[Goal, bool]
_UNITS = {"b": "u8", "h": "u16", "w": "u32", "g": "u64"}
_WHO = re.compile(r"\b(cta|block|warp|lane|thread)\s+(\(?\d+(?:\s*,\s*\d+){0,2}\)?)")
#: The most values that `x` shows.
_MOST = 65536


class UserError(ValueError):
    """A command is wrong; the message says why."""


def _triple(text: str) -> tuple[int, int, int]:
    x, y, z = (*(int(part) for part in text.strip("() ").split(",")), 0, 0)[:3]
    return x, y, z


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UserError(f"{what}: '{text}' is no number")
    return int(text)


class Commands:
    """Runs commands on a debugger; `tell` gets what they show."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.names = {name: method for names, method, _ in self._table() for name in names}

    def _table(self) -> list[tuple[tuple[str, ...], Callable[[Debugger, str], Next | None], str]]:
        return [
            (("break", "b", "br"), self.break_, "LOCATION [cta X,Y,Z] [warp N] [lane N] [thread X,Y,Z] [if EXPRESSION]"
             ": stop there. LOCATION: LINE, FILE:LINE of the source, LABEL, FUNCTION, barrier, or opcode PREFIX"),
            (("tbreak", "tb"), self.tbreak, "LOCATION …: the same, once"),
            (("watch",), self.watch, "%r1 or u32@shared[0x40]: stop behind a change of it"),
            (("delete", "d"), self.delete, "[N]: remove a breakpoint or watchpoint, or all"),
            (("disable",), self.disable, "[N]: keep it, but do not stop"),
            (("enable",), self.enable, "[N]: stop again"),
            (("condition",), self.condition, "N [EXPRESSION]: change the condition"),
            (("ignore",), self.ignore, "N COUNT: pass it by so often"),
            (("continue", "c", "cont"), self.continue_, "run to the next stop"),
            (("run", "r"), self.run, "start again from the beginning"),
            (("step", "s"), self.step, "[lane|warp|cta|grid|line|barrier] [N]: to its next instruction; to another "
             "source line; to its next barrier"),
            (("next", "n"), self.next, "[N]: as step, but over calls"),
            (("finish", "fin"), self.finish, "run until the function returns"),
            (("until", "advance"), self.until, "LOCATION: run to there"),
            (("reverse-continue", "rc"), self.reverse_continue, "back to the last stop"),
            (("reverse-step", "rs"), self.reverse_step, "[lane|warp|cta|grid] [N]: back to its instruction before"),
            (("reverse-next", "rn"), self.reverse_next, "[N]: the same, over calls"),
            (("goto",), self.goto, "COUNT: back or on to a moment; `info line` says which this is"),
            (("print", "p", "inspect"), self.print_, "[/FORMAT] EXPRESSION: of the lane in focus; x hexadecimal, d, "
             "u, t binary, o, f, c"),
            (("registers",), self.registers, "[/FORMAT] [NAMES] [lanes 0-7]: registers as a table"),
            (("x",), self.examine, "[/COUNT FORMAT UNIT] [TYPE] [@SPACE] ADDRESS: memory. UNIT: b h w g; TYPE: f32, "
             "bf16, …; SPACE: global, shared, local, const, param"),
            (("matrix",), self._shows(fragments.matrix_lines), "a|b|c|d ROWSxCOLUMNS TYPE REGISTERS [quad 0-3 "
             "[row|col]] [sparse REGISTER [selector 0-3]] [rows 0-7] [columns 0-7]: the matrix that fragments make up, "
             "such as matrix d 16x8 f32 %f1-%f4; 64 rows: of a warpgroup; quad: of m8n8k4"),
            (("tmem",), self._shows(matrices.tensor_lines), "[ADDRESS [COLUMNS [TYPE]] [lanes 0-7]]: tensor memory, or "
             "what of it is allocated"),
            (("tensormap",), self._shows(matrices.tensormap_lines), "ADDRESS: a tensor map, decoded"),
            (("descriptor",), self._shows(matrices.descriptor_lines), "wgmma|tcgen05 EXPRESSION [, ROWSxK TYPE [mn]]: "
             "a matrix descriptor, decoded, and the matrix in shared memory; kind::KIND EXPRESSION: the instruction "
             "descriptor of a tcgen05.mma"),
            (("set",), self.set, "%r1 = VALUE or u32@shared[0x40] = VALUE"),
            (("display",), self.display, "EXPRESSION: print it at each stop"),
            (("undisplay",), self.undisplay, "forget all of them"),
            (("info", "i"), self.info, "breakpoints, registers, warps, barriers, mbarriers, async, stack, line"),
            (("why",), self.why, "what the lane in focus waits for, and who has not come"),
            (("where", "bt", "backtrace"), self.where, "the calls that the lane is in"),
            (("list", "l"), self.list, "[LINE]: the PTX around it"),
            (("focus", "cuda", "cta", "block", "warp", "lane", "thread"), self.focus,
             "[cta X,Y,Z] [warp N] [lane N] [thread X,Y,Z]: whom commands are about"),
            (("help", "h"), self.help, "this list"),
        ]  # fmt: skip

    def run_line(self, debugger: Debugger, line: str) -> Next | None:
        """Run one command; returns how the run goes on, or None. Raises `UserError`, `ExpressionError`,
        `LocationError`."""
        match = re.match(r"([a-zA-Z-]+)\s*(.*)", line.strip(), re.DOTALL)
        if match is None:
            raise UserError(f"'{line.strip()[:40]}' is no command; help lists them")
        name, rest = match[1], match[2].strip()
        found = self.names.get(name)
        if found is None:
            longer = sorted({full for full in self.names if full.startswith(name)})
            methods = {self.names[full] for full in longer}
            if len(methods) != 1:
                said = f"'{name}' is no command" if not longer else f"'{name}' may be {', '.join(longer)}"
                raise UserError(f"{said}; help lists them")
            found = methods.pop()
        if found == self.focus and name not in ("focus", "cuda"):
            rest = f"{name} {rest}"
        return found(debugger, rest)

    def complete(self, debugger: Debugger, text: str, line: str) -> list[str]:
        """What a word can become: commands, then registers, labels and functions."""
        if line.lstrip() == text:
            return sorted(name for name in self.names if name.startswith(text))
        at, code = debugger.lane(), debugger.code
        words = [] if code is None else code.names()
        if at is not None:
            words += at.view.registers()
        return sorted(word for word in set(words) if word.startswith(text))

    # --- breakpoints --------------------------------------------------------------------------------------------------

    def break_(self, debugger: Debugger, rest: str) -> None:
        one = debugger.add(self._breakpoint(debugger, rest))
        code = debugger.code
        wheres = [] if code is None else code.find(one.location)
        places = ", ".join(str(code.place(where)) for where in wheres[:4]) if code is not None else "later"
        self._tell(f"breakpoint {one.number} at {places}" + (f" and {len(wheres) - 4} more" if len(wheres) > 4 else ""))

    def _breakpoint(self, debugger: Debugger, rest: str) -> Breakpoint:
        text, _, condition = re.sub(r"^if\b", " if", rest).partition(" if ")
        who = {match[1]: match[2] for match in _WHO.finditer(text)}
        location = _WHO.sub("", text).strip()
        one = Breakpoint(0, "break", location, condition.strip())
        if not location:
            at = debugger.lane()
            if at is None or debugger.code is None:
                raise UserError("break LOCATION: a line, a label, a function, …")
            one.location = str(debugger.code.place(at.view.op.where).line)
        self._who(debugger, who, one)
        return one

    def _who(self, debugger: Debugger, who: dict[str, str], one: Breakpoint | Focus) -> None:
        cta = who.get("cta", who.get("block"))
        if cta is not None:
            one.cta = _triple(cta)
        for name in ("warp", "lane"):
            if name in who:
                setattr(one, name, _whole(who[name].strip("()"), name))
        if "thread" in who and debugger.launch is not None:
            (x, y, _), (tx, ty, tz) = debugger.launch.block, _triple(who["thread"])
            one.warp, one.lane = divmod(tx + x * (ty + y * tz), LANES)

    def tbreak(self, debugger: Debugger, rest: str) -> None:
        one = self._breakpoint(debugger, rest)
        one.temporary = True
        debugger.add(one)
        self._tell(f"temporary breakpoint {one.number} at {one}")

    def watch(self, debugger: Debugger, rest: str) -> None:
        one = debugger.add(Breakpoint(0, "watch", rest))
        self._tell(f"watchpoint {one.number}: {one.location}")

    def _chosen(self, debugger: Debugger, rest: str) -> list[Breakpoint]:
        points = debugger.session.breakpoints
        if not rest:
            return list(points.values())
        found = []
        for word in rest.split():
            number = _whole(word, "a breakpoint")
            if number not in points:
                raise UserError(f"there is no breakpoint {number}")
            found.append(points[number])
        return found

    def delete(self, debugger: Debugger, rest: str) -> None:
        for one in self._chosen(debugger, rest):
            del debugger.session.breakpoints[one.number]
        debugger.arm()

    def disable(self, debugger: Debugger, rest: str) -> None:
        self._switch(debugger, rest, False)

    def enable(self, debugger: Debugger, rest: str) -> None:
        self._switch(debugger, rest, True)

    def _switch(self, debugger: Debugger, rest: str, on: bool) -> None:
        for one in self._chosen(debugger, rest):
            if on and one.owner is not None and not one.enabled:
                raise UserError(f"what watchpoint {one.number} watched is gone: its CTA has ended")
            one.enabled = on
        debugger.arm()

    def condition(self, debugger: Debugger, rest: str) -> None:
        number, _, condition = rest.partition(" ")
        (one,) = self._chosen(debugger, number or "none")
        at = debugger.lane()
        if condition and at is not None:
            check_condition(condition, at)
        one.condition = condition.strip()

    def ignore(self, debugger: Debugger, rest: str) -> None:
        number, _, count = rest.partition(" ")
        (one,) = self._chosen(debugger, number or "none")
        one.ignore = _whole(count.strip(), "ignore N COUNT")

    # --- running ------------------------------------------------------------------------------------------------------

    def continue_(self, debugger: Debugger, rest: str) -> Next:
        if rest:
            for number in debugger.hit_numbers:
                debugger.session.breakpoints[number].ignore = max(0, _whole(rest, "continue N") - 1)
        return Goal(), False

    def run(self, debugger: Debugger, rest: str) -> Next:
        if debugger.count <= 1:
            return Goal(), False
        return Goal("count", count=1, goes_on=True), True

    def _goal(self, debugger: Debugger, rest: str, kind: Any = "step") -> Goal:
        words = rest.split()
        what = words.pop(0) if words and not words[0].isdigit() else "lane"
        times = _whole(words.pop(0), "how often") if words else 1
        if words or what not in ("lane", "warp", "cta", "grid", "line", "barrier"):
            raise UserError("step [lane|warp|cta|grid|line|barrier] [N]")
        goal = Goal(kind, times=max(1, times))
        focus = debugger.focus
        if what == "grid" or focus is None:
            return goal
        goal.cta = focus.cta
        if what == "cta":
            return goal
        goal.warp, goal.lanes = focus.warp, ALL_LANES if what == "warp" else 1 << focus.lane
        goal.depth = len(debugger.stack(focus.cta, focus.warp, focus.lane))
        if what in ("line", "barrier"):
            goal.kind = "barrier" if what == "barrier" else "source"
            at = debugger.lane()
            goal.source = "" if at is None else debugger.source_line(at.view.op.where)
        return goal

    def step(self, debugger: Debugger, rest: str) -> Next:
        return self._goal(debugger, rest), False

    def next(self, debugger: Debugger, rest: str) -> Next:
        return self._goal(debugger, rest, "next"), False

    def finish(self, debugger: Debugger, rest: str) -> Next:
        goal = self._goal(debugger, "", "finish")
        if not goal.depth:
            raise UserError("the lane is in the kernel itself, not in a function")
        return goal, False

    def until(self, debugger: Debugger, rest: str) -> Next:
        one = self._breakpoint(debugger, rest)
        one.temporary = True
        debugger.add(one)
        return Goal(), False

    def reverse_continue(self, debugger: Debugger, rest: str) -> Next:
        return Goal(), True

    def reverse_step(self, debugger: Debugger, rest: str) -> Next:
        return self._goal(debugger, rest), True

    def reverse_next(self, debugger: Debugger, rest: str) -> Next:
        return self._goal(debugger, rest, "next"), True

    def goto(self, debugger: Debugger, rest: str) -> Next:
        count = _whole(rest, "goto COUNT")
        return Goal("count", count=max(1, count)), count <= debugger.count

    # --- looking ------------------------------------------------------------------------------------------------------

    def _lane(self, debugger: Debugger) -> Lane:
        at = debugger.lane()
        if at is None:
            raise UserError("no lane is in focus" if debugger.focus is None else f"{debugger.focus} has exited")
        return at

    def _format(self, rest: str) -> tuple[str, str]:
        match = re.match(r"/([a-z])\s*(.*)", rest, re.DOTALL)
        if match is None:
            return "", rest
        if match[1] not in looking.FORMATS:
            raise UserError(f"there is no format '{match[1]}'; there are {', '.join(looking.FORMATS)}")
        return match[1], match[2]

    def print_(self, debugger: Debugger, rest: str) -> None:
        form, text = self._format(rest)
        if not text:
            raise UserError("print EXPRESSION")
        self._tell(f"{text} = {looking.value_text(evaluate(text, self._lane(debugger)), form)}")

    def registers(self, debugger: Debugger, rest: str) -> None:
        form, text = self._format(rest)
        names, _, which = re.sub(r"^lanes?\b", " lanes", text).partition(" lanes")
        lane = self._lane(debugger).lane
        lanes = looking.numbers(which.strip(), LANES - 1) if which.strip() else [lane]
        for line in looking.register_lines(debugger, names.split(), lanes, form):
            self._tell(line)

    def examine(self, debugger: Debugger, rest: str) -> None:
        how = re.match(r"/(\d{0,9})([a-z]{0,2})\s*(.*)", rest, re.DOTALL)
        count, letters, text = (int(how[1] or 1), how[2], how[3]) if how is not None else (1, "", rest)
        unit = next((letter for letter in letters if letter in _UNITS), "")
        form = next((letter for letter in letters if letter in looking.FORMATS), "")
        if any(letter not in (unit, form) for letter in letters) or not 0 < count <= _MOST:
            raise UserError(f"x/COUNT FORMAT UNIT: FORMAT one of {looking.FORMATS}, UNIT one of b h w g, up to {_MOST}")
        at = self._lane(debugger)
        word, _, more = text.partition(" ")
        type_ = _UNITS.get(unit, "")
        if word in SIZES and more:
            type_, text = word, more.strip()
        space = "generic"
        if text.startswith("@"):
            space, _, text = text[1:].partition(" ")
        elif (found := symbol(at.view, re.split(r"\W", text.strip(), maxsplit=1)[0])) is not None:
            space = found[0]
        if space not in SPACES:
            raise UserError(f"'{space}' is no state space; there are {', '.join(SPACES)}")
        address = evaluate(text, at)
        if isinstance(address, float) or address < 0:
            raise ExpressionError(f"{address} is no address")
        type_ = type_ or ("f32" if form == "f" else "u32")
        shown = form or ("" if type_ not in ("u32", "u64", "u8", "u16") else "x")
        for line in looking.memory_lines(at, Memory(type_, space, int(address)), count, shown):
            self._tell(line)

    def _shows(self, lines: Callable[[Debugger, str], list[str]]) -> Callable[[Debugger, str], None]:
        """A command that tells lines."""

        def show(debugger: Debugger, rest: str) -> None:
            for line in lines(debugger, rest):
                self._tell(line)

        return show

    def set(self, debugger: Debugger, rest: str) -> None:
        target, equals, text = rest.removeprefix("var ").partition("=")
        if not equals or not text.strip():
            raise UserError("set %r1 = VALUE, or set u32@shared[0x40] = VALUE")
        at = self._lane(debugger)
        value = evaluate(text, at)
        assign(debugger, at, target.strip(), value)

    def display(self, debugger: Debugger, rest: str) -> None:
        if not rest:
            raise UserError("display EXPRESSION")
        debugger.session.front.setdefault("displays", []).append(rest)
        self.shown(debugger)

    def undisplay(self, debugger: Debugger, rest: str) -> None:
        debugger.session.front["displays"] = []

    def shown(self, debugger: Debugger) -> None:
        """The expressions that are shown at each stop."""
        for text in debugger.session.front.get("displays", ()):
            try:
                self.print_(debugger, text)
            except (UserError, ExpressionError) as error:
                self._tell(f"{text}: {error}")

    def info(self, debugger: Debugger, rest: str) -> None:
        what, _, more = rest.partition(" ")
        if what and "registers".startswith(what):
            self.registers(debugger, more)
            return
        tables: dict[str, Callable[[Debugger], list[str]]] = {
            "breakpoints": looking.point_lines, "watchpoints": looking.point_lines, "warps": looking.warp_lines,
            "threads": looking.warp_lines, "barriers": looking.barrier_lines, "mbarriers": looking.mbarrier_lines,
            "async": looking.work_lines, "stack": looking.stack_lines, "line": _moment,
        }  # fmt: skip
        found = next((tables[name] for name in tables if what and name.startswith(what)), None)
        if found is None:
            raise UserError(f"info {', '.join([*tables, 'registers'])}")
        for line in found(debugger):
            self._tell(line)

    def why(self, debugger: Debugger, rest: str) -> None:
        for line in looking.why_lines(debugger):
            self._tell(line)

    def where(self, debugger: Debugger, rest: str) -> None:
        for line in looking.stack_lines(debugger):
            self._tell(line)

    def list(self, debugger: Debugger, rest: str) -> None:
        for line in looking.list_lines(debugger, _whole(rest, "list LINE") if rest else None):
            self._tell(line)

    def focus(self, debugger: Debugger, rest: str) -> None:
        who = {match[1]: match[2] for match in _WHO.finditer(rest)}
        if debugger.focus is None:
            raise UserError("no grid runs")
        if _WHO.sub("", rest).strip():
            raise UserError("focus [cta X,Y,Z] [warp N] [lane N] [thread X,Y,Z]")
        old = debugger.focus
        new = Focus(old.cta, old.warp, old.lane)
        self._who(debugger, who, new)
        if new.lane >= LANES or debugger.view(new.cta, new.warp, new.lane) is None:
            raise UserError(f"{new} is not resident, or has exited")
        debugger.focus = new
        for line in [str(new), *looking.where_lines(debugger)]:
            self._tell(line)

    def help(self, debugger: Debugger, rest: str) -> None:
        for names, _, text in self._table():
            if not rest or rest in names:
                self._tell(f"{', '.join(names)}  {text}")


def assign(debugger: Debugger, at: Lane, target: str, value: int | float | bool) -> None:
    """Set a register of a lane, or memory. Raises `ExpressionError`."""
    what = place(target, at)
    if isinstance(what, Memory):
        from ptxtools.diagnostics import Trap

        try:
            space = "" if what.space == "generic" else what.space
            at.view.put(what.address, encode(value, what.type), space, lane=at.lane)
        except Trap as trap:
            raise ExpressionError(trap.reason) from None
    else:
        from ptxtools.machine.registers import named

        known = named(at.view).get(what)
        if known is None:
            raise ExpressionError(f"no register {what} is known at this line")
        ref, type_ = known
        if type_ == "pred":
            bits = int(bool(value))
        elif type_.startswith(("f", "bf")):
            bits = int.from_bytes(encode(value, type_), "little")
        else:
            encode(value, type_)  # whether it is a number of that kind
            bits = int(value)
        at.view.write(ref, at.lane, bits)
    debugger.modified()


def _moment(debugger: Debugger) -> list[str]:
    return [f"moment {debugger.count}", *looking.where_lines(debugger)]
