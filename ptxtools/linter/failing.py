"""Forms that the manual has, and that releases of ptxas refuse, or end at without a message: for rule PTX613.

`testdata/conformance/failing.tsv` has statements with the verdict of each release; `tools/failing.py` asks anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxtools.ir.nodes import Address, Element, Immediate, Name, Operand, Variable, Vector
from ptxtools.isa.types import TYPES
from ptxtools.records import NamedTuple

from .facts import Line
from .releases import VERSIONS

#: The releases of ptxas that were asked, and the newest PTX version that each of them reads.
RELEASES = {name: VERSIONS[name] for name in ("12.9", "13.0", "13.2", "13.5")}
_ALL = tuple(RELEASES)
_CRASHES, _REFUSES = "without a message", "with an error"

#: Bits that an element of a vector of eight has at most.
_WIDEST = 64


class Failing(NamedTuple):
    """opcode: how it begins; holds: whether operands make the form; what: the form; how: these releases end;
    instead: what they all take."""

    opcode: re.Pattern[str]
    holds: Callable[[Line], bool]
    what: str
    instead: str
    how: str = _CRASHES
    releases: tuple[str, ...] = _ALL


def _vector(line: Line, operand: Operand) -> bool:
    """Whether an operand is a register that is declared as a vector."""
    symbol = line.names.lookup(operand.name) if type(operand) is Name and "." not in operand.name else None
    return isinstance(symbol, Variable) and symbol.vector > 1


def _vector_at(place: int) -> Callable[[Line], bool]:
    def holds(line: Line) -> bool:
        return len(line.item.operands) > place and _vector(line, line.item.operands[place])

    return holds


def _some_vector(line: Line) -> bool:
    return any(_vector(line, operand) for operand in line.item.operands)


def _vector_of_coordinates(line: Line) -> bool:
    addresses = [operand for operand in line.item.operands if isinstance(operand, Address)]
    return any(_vector(line, each) for address in addresses for each in address.extra)


def _scalar_coordinate(line: Line) -> bool:
    """Whether a sampler and a coordinate outside of braces stand behind a texture."""
    place = line.item.operands[1] if len(line.item.operands) > 1 else None
    extra = place.extra if isinstance(place, Address) else ()
    return len(extra) == 2 and not isinstance(extra[1], Vector) and not _vector(line, extra[1])


def _component(line: Line) -> bool:
    """Whether a fragment has a component of a register that is declared as a vector."""
    items = [item for operand in line.item.operands if isinstance(operand, Vector) for item in operand.items]
    return any(type(item) is Name and _vector(line, Name(item.name.partition(".")[0])) for item in items)


def _integer(operand: Operand, first: int = 0) -> bool:
    vector = operand.items if isinstance(operand, Vector) else ()
    return any(isinstance(item, Immediate) and item.type[0] != "f" for item in vector[first:])


def _later_integer(line: Line) -> bool:
    return any(_integer(operand, 1) for operand in line.item.operands)


def _integer_in_a(line: Line) -> bool:
    return _integer(line.item.operands[1])


def _integer_in_b(line: Line) -> bool:
    return _integer(line.item.operands[2])


def _element(line: Line) -> bool:
    return any(isinstance(operand, Element) for operand in line.item.operands)


def _wide(line: Line) -> bool:
    """Whether a vector has a register of more than 64 bits."""
    for operand in line.item.operands:
        for item in operand.items if isinstance(operand, Vector) else ():
            symbol = line.names.lookup(item.name) if isinstance(item, Name) else None
            if isinstance(symbol, Variable) and symbol.type in TYPES and TYPES[symbol.type].bits > _WIDEST:
                return True
    return False


_HALF = r"\.v[248]\.(bf16|f16)(x2)?$"

#: The forms, the most common families first.
FORMS = (
    Failing(re.compile(r"atom\..*\.v[248]\."), _vector_at(0), "a register declared as a vector takes the result",
            "name its elements in braces"),
    Failing(re.compile(rf"(atom|red|multimem\.red)\..*{_HALF}"), _later_integer,
            "an integer constant is a later element of half precision", "put it into a register"),
    Failing(re.compile(r"multimem\.(ld_reduce|st)\."), _element, "an element of a variable is the address",
            "write [variable+bytes]"),
    Failing(re.compile(r"cp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor\."), _vector_of_coordinates,
            "a register declared as a vector has the coordinates", "name its elements in braces"),
    Failing(re.compile(r"tcgen05\.(ld|st)\."), _some_vector, "a register declared as a vector has the data",
            "name its elements in braces"),
    Failing(re.compile(r"wgmma\.mma_async\."), _vector_at(0), "a register declared as a vector has the accumulators",
            "name its elements in braces"),
    Failing(re.compile(r"wmma\.mma\."), _some_vector, "a register declared as a vector is a fragment",
            "name its elements in braces"),
    Failing(re.compile(r"wmma\.(load|store)\."), _component, "a fragment has a component of a vector",
            "use scalar registers"),
    Failing(re.compile(r"wmma\.mma\..*\.s32\.[su]8\.[su]8\.s32"), _integer_in_b,
            "an integer constant is an element of B", "put it into a register", _REFUSES),
    Failing(re.compile(r"mma\.sync\.aligned\.m8n8k16\..*\.[su]8\.[su]8\.s32"), _integer_in_a,
            "an integer constant is the element of A", "put it into a register", _REFUSES),
    Failing(re.compile(r"mma\.sync\.aligned\.m8n8k4\..*\.f16\.f16\."), _vector_at(1),
            "a register declared as a vector is a fragment", "name its elements in braces"),
    Failing(re.compile(r"(tex|tld4)\.(\w+\.)?a[12]d\."), _vector_of_coordinates,
            "a register declared as a vector has the coordinates", "name its elements in braces"),
    Failing(re.compile(r"tex\..*\.v2\.f16x2\."), _vector_at(0), "a register declared as a vector takes the result",
            "name its elements in braces"),
    Failing(re.compile(r"tex\.grad\.(2d|3d|cube|acube)\."), _some_vector,
            "a register declared as a vector has the gradients", "name its elements in braces"),
    Failing(re.compile(r"tex\.((base|level|grad)\.)?1d\."), _scalar_coordinate,
            "a coordinate without braces stands behind a sampler", "write it in braces", _REFUSES,
            ("12.9", "13.0", "13.2")),
    Failing(re.compile(r"st\..*\.v8\.[bsuf]32$"), _wide, "128-bit registers are stored as words",
            "use registers of 32 or 64 bits"),
)  # fmt: skip


def failing(line: Line, version: tuple[int, int]) -> tuple[Failing, list[str]] | None:
    """The form that an instruction of a module of a PTX version is, and the releases that cannot compile it."""
    opcode = line.item.opcode
    for form in FORMS:
        if form.opcode.match(opcode) and form.holds(line):
            releases = [release for release in form.releases if RELEASES[release] >= version]
            if releases:
                return form, releases
    return None
