"""How many threads a CTA has in each dimension, as far as a kernel's directives, or what it does with them, say."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from math import prod

from ptxtools.ir.nodes import Function, Name
from ptxtools.records import NamedTuple

from ..accesses import variable_bytes
from ..constants import constant
from ..facts import FunctionFacts, Line
from ..lanes import is_thread_number, only_write
from ..memory import Step, variable_of
from ..values import THREADS, WARP, Value

#: Most threads of a CTA, and comparisons that are looked at for the warps that they tell apart.
_MOST, _COMPARISONS = 1024, 64
#: Rows of a guessed shape are at least this long.
_ROW = 4


class Shape(NamedTuple):
    """Threads in each dimension. declared: whether directives say so; else it is a guess from addresses."""

    x: int
    y: int = 1
    z: int = 1
    declared: bool = True

    @property
    def size(self) -> int:
        return self.x * self.y * self.z


def declared_shape(function: Function) -> Shape | None:
    """What .reqntid says."""
    sizes = _sizes(function, ".reqntid")
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return Shape(x, y, z) if sizes else None


def _sizes(function: Function, *names: str) -> list[int]:
    for item in function.directives:
        if getattr(item, "name", "") in names:
            sizes = [arg for arg in getattr(item, "args", ()) if isinstance(arg, int)]
            if sizes and 0 < prod(sizes) <= _MOST:
                return sizes
    return []


def most_threads(function: Function) -> int | None:
    """What .maxntid or .reqntid allows."""
    sizes = _sizes(function, ".maxntid", ".reqntid")
    return prod(sizes) if sizes else None


def guessed_shape(facts: FunctionFacts) -> Shape | None:
    """Rows and columns of a CTA that asks for two dimensions, from how it addresses shared memory by both of them."""
    if "%tid.z" in facts.targets or "%tid.y" not in facts.targets:
        return None
    across, down, starts = _MOST, _MOST, dict[object, set[int]]()
    for step in facts.accesses:
        found = _of_two(step)
        if found is None:
            continue
        row, column, start, address = found
        across = min(across, row // column)
        symbol = variable_of(step.line, Value(address.terms[1:], 0))
        total = variable_bytes(symbol) if symbol is not None else None
        down = min(down, (total or _MOST * row) // row)
        known = starts.setdefault((address.terms, column), set())
        across = min([across, *(abs(start - one) // column for one in known if abs(start - one) >= column * 8)])
        known.add(start)
    across = 1 << across.bit_length() - 1 if across else 0
    if not _ROW <= across < _MOST:
        return None
    most = most_threads(facts.function) or _MOST
    return Shape(across, max(1, min(down, most // across)), 1, False)


def _of_two(step: Step) -> tuple[int, int, int, Value] | None:
    """An access of shared memory by row and column: bytes from row to row, from column to column, and the first one."""
    access = step.access
    if access is None or access.space != "shared" or not isinstance(access.address.each, range):
        return None
    terms = access.address.terms
    if len(terms) != 2 or terms[0][0] != "%tid.y" or terms[1][0][0] != "&" or access.address.each.step <= 0:
        return None
    row, column = terms[0][1], access.address.each.step
    return (row, column, access.address.each.start, access.address) if row >= column * _ROW else None


def threads_expected(facts: FunctionFacts) -> int | None:
    """Threads of a CTA that has one dimension and no declared size: as many as .maxntid allows, and as can all have a
    place in shared memory that all store to; None if neither says anything."""
    most = most_threads(facts.function)
    found = [most] if most is not None else []
    indexed = _indexed(facts) if most is None else set()
    places: dict[str, list[int]] = {}
    for step in facts.steps[0] if facts.steps else ():
        active = step.active
        address = step.access.address if step.access is not None and step.access.space == "shared" else None
        if step.family == "cp" and ".shared" in step.line.item.opcode.partition(".global")[0]:
            address = step.addresses[0]
        if step.family == "ld" or address is None or active is None or not all(active[:WARP]):
            continue
        symbol = variable_of(step.line, address) if isinstance(address.each, range) else None
        total = variable_bytes(symbol) if symbol is not None else None
        if symbol is None or total is None or not isinstance(address.each, range) or address.each.step <= 0:
            continue
        start, width = address.each.start, address.each.step
        known, apart = places.setdefault(symbol.name, []), width * WARP
        above, below = bisect_left(known, start + apart), bisect_right(known, start - apart)
        spaces = [total - start]
        spaces += [known[above] - start] if above < len(known) else []
        spaces += [start - known[below - 1]] if below else []
        place = bisect_left(known, start)
        if place == len(known) or known[place] != start:
            known.insert(place, start)
        count = min(spaces) // width // WARP * WARP
        if count > 0 and (most is not None or f"&{symbol.name}" not in indexed):
            found.append(count)
    least = min(found, default=0)
    return least if 0 < least <= _MOST else None


def _indexed(facts: FunctionFacts) -> set[str]:
    """The terms of variables that are accessed at an unknown place: each may be several buffers."""
    addresses = (step.access.address.terms for step in facts.accesses if step.access is not None)
    return {name for terms in addresses if len(terms) > 1 for name, _ in terms if name[0] == "&"}


def warps_told_apart(facts: FunctionFacts) -> set[int]:
    """Warps at which something begins that warps before do not do, or do alone: where %tid.x is compared with it."""
    found = set()
    for line in facts.of("setp")[:_COMPARISONS]:
        for edge in _edges(facts, line):
            if 1 <= edge < _MOST // WARP:
                found.add(edge)
    return found


def _edges(facts: FunctionFacts, line: Line) -> Iterator[int]:
    operands, op = line.item.operands, line.plan.op
    number = constant(facts, line, operands[2]) if len(operands) == 3 else None
    if number is None or op is None or not isinstance(operands[1], Name):
        return
    behind = any(op.has(word) for word in ("gt", "le", "hi", "ls"))
    equal = op.has("eq") or op.has("ne")
    if is_thread_number(facts, line, operands[1].name):
        edge, rest = divmod(number + behind, WARP)
        if not rest and not equal:
            yield edge
        return
    made = only_write(facts, line, operands[1].name)
    if made is None or made.plan.family != "shr" or len(made.item.operands) != 3:
        return
    source = made.item.operands[1]
    by_warps = constant(facts, made, made.item.operands[2]) == WARP.bit_length() - 1
    if by_warps and isinstance(source, Name) and is_thread_number(facts, made, source.name):
        yield number + behind


def ctas_told_apart(facts: FunctionFacts) -> list[int]:
    """CTAs but the first one, one or two, that do something else: %ctaid.x is compared with a number for equality."""
    found: list[int] = []
    for line in facts.of("setp")[:_COMPARISONS] if "%ctaid.x" in facts.targets else ():
        operands, op = line.item.operands, line.plan.op
        if len(operands) < 3 or op is None or not (op.has("eq") or op.has("ne")) or not isinstance(operands[1], Name):
            continue
        made = only_write(facts, line, operands[1].name)
        source = made.item.operands[1] if made is not None and made.plan.family == "mov" else None
        number = constant(facts, line, operands[2]) if getattr(source, "name", "") == "%ctaid.x" else None
        if number and number > 0 and number not in found:
            found.append(number)
    return found[:2]


__all__ = [
    "THREADS",
    "Shape",
    "ctas_told_apart",
    "declared_shape",
    "guessed_shape",
    "most_threads",
    "threads_expected",
    "warps_told_apart",
]
