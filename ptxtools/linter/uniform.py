"""Registers that all threads of a CTA hold alike, and kernels whose threads all take the same way."""

from __future__ import annotations

from ptxtools.ir.nodes import Immediate, Name, Operand
from ptxtools.ir.symbols import RegisterKey

from .facts import FunctionFacts, Line
from .inflight import accessed

#: Instructions whose result is the same in all threads if their sources are.
_PLAIN = frozenset({"mov", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not", "min", "max", "setp",
                    "selp", "cvt", "cvta", "div", "rem", "neg"})  # fmt: skip
#: Special registers that are the same in all threads of a CTA.
_SAME = ("%ctaid", "%nctaid", "%ntid", "%cluster", "%ncluster", "%gridid")


class Uniform:
    """Which registers of a kernel are the same in all threads of a CTA, as long as all of them run the same way."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._writes: dict[RegisterKey, list[Line]] = {}
        for line in facts.lines:
            for name, write in accessed(line):
                key = line.registers[name] if write else None
                if key is not None:
                    self._writes.setdefault(key, []).append(line)
        self._known: dict[RegisterKey, bool] = {}

    def register(self, key: RegisterKey) -> bool:
        """Whether all that writes a register gives all threads the same."""
        waiting, seen = [key], {key}
        while waiting:
            at = waiting.pop()
            known = self._known.get(at)
            if known:
                continue
            sources = None if known is False else self._sources(at)
            if sources is None:
                self._known[key] = self._known[at] = False
                return False
            waiting += sources - seen
            seen |= sources
        self._known.update(dict.fromkeys(seen, True))
        return True

    def _sources(self, key: RegisterKey) -> set[RegisterKey] | None:
        """The registers that one is computed from; None if it may differ between threads."""
        found: set[RegisterKey] = set()
        for line in self._writes.get(key, ()):
            parameter = line.plan.family == "ld" and ".param" in line.item.opcode
            if line.item.guard is not None or not (parameter or line.plan.family in _PLAIN):
                return None
            for operand in line.item.operands[1:] if not parameter else ():
                sources = _of(operand, line)
                if sources is None:
                    return None
                found |= sources
        return found if key in self._writes else None


def _of(operand: Operand, line: Line) -> set[RegisterKey] | None:
    if isinstance(operand, Immediate):
        return set()
    if not isinstance(operand, Name):
        return None
    key = line.registers[operand.name]
    if key is not None:
        return {key}
    return None if operand.name[0] == "%" and not operand.name.startswith(_SAME) else set()


def goes_together(facts: FunctionFacts, uniform: Uniform) -> bool:
    """Whether all threads of a CTA take the same way through a kernel: each of its branches and exits is uniform."""
    if facts.function.kind != "entry" or "brx" in facts.families:
        return False
    for line in facts.of("bra", "exit", "ret"):
        guard = line.item.guard
        key = line.registers[guard.name] if guard is not None else None
        if guard is not None and (key is None or not uniform.register(key)):
            return False
    return True
