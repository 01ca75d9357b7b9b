"""PTX721 | atom whose result nobody reads | 9.7.14.5, 9.7.14.6

What: an atom with .acquire or .acq_rel, or an atom.exch, whose result the function never reads. Other atom operations
are reported only when the rule is selected by its full name (`--select all,PTX721`): ptxas 13.0 makes red of them.
Why: a thread that does not look at what it read cannot know whether it has acquired anything. So red with .relaxed or
.release orders as much, and nothing has to wait for an answer from the memory, as ptxas makes atom with .acquire do. An
exchange that gives back nothing is a store.
Example:
    atom.acq_rel.gpu.global.add.u32 %r4, [%rd1], 1;
Better:
    red.release.gpu.global.add.u32 [%rd1], 1;
"""

from __future__ import annotations

from ptxtools.check.edits import rewritten
from ptxtools.diagnostics import Fix
from ptxtools.ir.nodes import Name
from ptxtools.ir.positions import parts_of
from ptxtools.ir.symbols import RegisterKey

from ..context import LintContext
from ..facts import ENDING, FunctionFacts, Line
from ..inflight import accessed
from ..registry import bodies_with, on_request

CODE = "PTX721"

#: What red does, too, with its results unread (9.7.14.6).
_REDUCING = frozenset({"add", "inc", "dec", "min", "max", "and", "or", "xor"})
#: How far behind it is looked for.
_NEAR = 64
_LEAVING = ENDING | {"call"}
#: What the better one has in place of an order.
_ORDERS = {"acquire": "relaxed", "acq_rel": "release"}
_SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})


@bodies_with("atom")
def check(context: LintContext, facts: FunctionFacts) -> None:
    for line in _unread(facts):
        op = line.plan.op
        order = next((word for word in _ORDERS if op is not None and op.has(word)), "")
        if op is None or not (order or op.has("exch")) or (op.has("exch") and op.has("b128")):
            continue
        if op.has("exch"):
            after = "release" if op.has("release") or op.has("acq_rel") else "relaxed"
            _warn(context, line, f"st.{after}")
        elif order and not _REDUCING.isdisjoint(op.atoms):
            _warn(context, line, f"red.{_ORDERS[order]}")


@on_request
def check_all(context: LintContext) -> None:
    for facts in context.facts.functions:
        for line in _unread(facts) if "atom" in facts.families else ():
            op = line.plan.op
            plain = op is not None and not any(op.has(word) for word in ("exch", *_ORDERS))
            if op is not None and plain and not _REDUCING.isdisjoint(op.atoms):
                _warn(context, line, "red")


def _warn(context: LintContext, line: Line, better: str) -> None:
    """better: the opcode's first words."""
    op = line.plan.op
    message = f"nothing reads the result of '{line.item.opcode}'"
    section = op.section if op is not None else None
    context.warn(
        CODE,
        message,
        parts_of(line.item).opcode,
        help=(f"use {better}",),
        section=section,
        fix=_fix(context, line, better),
    )


def _fix(context: LintContext, line: Line, better: str) -> Fix | None:
    op, words = line.plan.op, line.item.opcode.split(".")
    if op is None or (better[:2] == "st" and (op.space or "").startswith("shared")):
        return None  # a scope of the atom is not that of the store
    words = [word for word in words[1:] if word not in (*_ORDERS, "relaxed", "release", "exch")]
    if better[:2] == "st" and not _SCOPES.intersection(words):
        words.insert(0, "gpu")
    elif better == "red" and op.has("relaxed"):
        better = "red.relaxed"
    elif better == "red" and op.has("release"):
        better = "red.release"
    return rewritten(context.source.text, line.item, ".".join((better, *words)), {0: ""})


def _unread(facts: FunctionFacts) -> list[Line]:
    """The atomic operations whose results no instruction reads: they are dropped, or in registers that are only
    written, or written anew before anything that may read them."""
    returned = {id(variable) for variable in facts.function.returns}
    places: dict[int, tuple[list[Line], int]] = {}
    found = []
    for line in facts.of("atom"):
        keys = [line.registers[name] for name, write in accessed(line) if write and name != "_"]
        if not keys and (not line.item.operands or line.item.operands[0] != Name("_")):
            continue
        for key in keys:
            if key is None or key[0] in returned:
                break
            if key in facts.reads:
                if not places:
                    places = {id(one.item): (run, at) for run in facts.runs for at, one in enumerate(run)}
                if not _overwritten(key, *places.get(id(line.item), ([], 0))):
                    break
        else:
            found.append(line)
    return found


def _overwritten(key: RegisterKey, run: list[Line], at: int) -> bool:
    """Whether the next instruction of the run that names a register writes it in any case, and does not read it."""
    for line in run[at + 1 : at + 1 + _NEAR]:
        if line.plan.family in _LEAVING:
            return False
        used = [write for name, write in accessed(line) if line.registers[name] == key]
        if used:
            return all(used) and line.item.guard is None
    return False
