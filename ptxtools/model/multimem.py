"""Multi-addresses and the multimem operations on them (8.2.3, 9.7.9.14).

A multi-address stands for several locations, such as one on each device. An operation on it is one on each of them, in
no order. It reaches them by a virtual address that is not their own, as an alias does (8.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from .events import Event, Path, Value
from .functions import computed
from .programs import SCOPES, Instruction, Location, Multimem, Operand
from .refusals import not_modelled
from .words import Reader, Word, refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths

#: kind -> its memory orders, the default first.
_ORDERS = {
    "ld_reduce": ("weak", "relaxed", "acquire"), "st": ("weak", "relaxed", "release"), "red": ("relaxed", "release"),
}  # fmt: skip
_FUNCTIONS = ("min", "max", "add", "and", "or", "xor")
#: Locations of one multi-address.
MOST_LOCATIONS = 8


def read_multi_address(reader: Reader, locations: dict[str, Location]) -> None:
    """`multimem w = {x, y}`: the name `w`, and for each of its locations an alias that no test can name."""
    word = reader.name("a name for the multi-address")
    reader.accept("=", "==") or reader.fail("expected '=' and the locations of the multi-address")
    reader.expect("{", "before the locations")
    names: list[str] = []
    while not reader.accept("}"):
        if names:
            reader.expect(",", "between locations")
        names.append(reader.name("a location").text)
        target = locations.setdefault(names[-1], Location(names[-1]))
        alias = f"{word.text} -> {target.name}"
        if alias in locations or target.members:
            reader.fail(f"'{target.name}' is no further location of a multi-address")
        locations[alias] = Location(alias, memory=target.name)
    if word.text in locations or not 0 < len(names) <= MOST_LOCATIONS:
        reader.fail(f"expected a new name, and 1 to {MOST_LOCATIONS} locations", word)
    locations[word.text] = Location(word.text, members=tuple(f"{word.text} -> {name}" for name in names))


def complete_aliases(locations: dict[str, Location]) -> None:
    """What the declarations of its locations say of the aliases of a multi-address."""
    for address in list(locations.values()):
        for alias in (locations[name] for name in address.members):
            target = locations[alias.memory]
            alias.memory, alias.type, alias.size, alias.space = target.memory, target.type, target.size, target.space


def read_multimem(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """multimem.ld_reduce, .st and .red of integers."""
    reader = cells.reader
    kind = modifiers[0] if modifiers else ""
    if kind not in _ORDERS or cells.fixed:
        not_modelled(reader, word)
    rest = modifiers[1:]
    type_ = cells.type_of(word, rest)
    order = next((modifier for modifier in rest if modifier in _ORDERS[kind]), _ORDERS[kind][0])
    scope = next((modifier for modifier in rest if modifier in SCOPES), "sys" if kind == "red" else "")
    function = next((modifier for modifier in rest if modifier in _FUNCTIONS and kind != "st"), "")
    for modifier in rest:
        if modifier not in (order, scope, function, "global"):
            not_modelled(reader, word, modifier)
    if type_ is None or type_.kind == "f" or type_.bits < 32 or bool(function) == (kind == "st"):
        not_modelled(reader, word)
    if (order == "weak") != (not scope):
        what = "is weak and has a scope" if scope else "needs a scope"
        reader.fail(f"'{word.text}' {what}", word)
    result = cells.result() if kind == "ld_reduce" else ""
    if result:
        cells.comma()
    place = cells.place()
    values: tuple[Operand, ...] = ()
    if kind != "ld_reduce":
        cells.comma()
        values = cells.values(1)
    return Multimem(kind=kind, order=order, scope=scope, places=(place,), type=type_, values=values, result=result,
                    function=function, **cells.done())  # fmt: skip


def follow_multimem(paths: Paths, path: Path, instruction: Multimem) -> list[Path]:
    """One read, write or atomic operation for each location, in one step of program order."""
    name, offset = paths.place(path, instruction, instruction.places[0], 0)
    members, type_ = paths.test.locations[name].members, instruction.type
    if not members:
        refuse(paths.test.source, f"'{name}' is no multi-address", instruction.span,
               f"declare it: 'multimem {name} = {{…}}'")  # fmt: skip
    given = [paths.operand(path, value) for value in instruction.values]
    event = Event("R", path.steps, instruction, instruction.order, instruction.scope, size=type_.bits // 8,
                  offset=offset, needs=path.control)  # fmt: skip
    first = len(path.events)
    for member in members:
        paths.place(path, instruction, (member, offset), event.size)
        one = replace(event, location=member)
        if given:
            one = replace(one, kind="W", value=given[0], needs=one.needs | given[0].needs)
        if instruction.kind == "red":
            one = _reduced(one, instruction, given[0], len(path.events))
        path.events.append(one)
    if instruction.result:
        places = range(first, len(path.events))

        def result(reads: Sequence[int]) -> int:
            found = [type_.wrap(reads[at]) for at in places]
            return reduce(lambda a, b: computed(instruction.function, type_, [a, b]), found)

        path.registers[instruction.result] = Value(sum(1 << at for at in places), result)
    return [path]


def _reduced(event: Event, instruction: Multimem, operand: Value, at: int) -> Event:
    needs = operand.needs | 1 << at
    value = Value(needs, lambda reads: computed(instruction.function, instruction.type, [reads[at], operand.of(reads)],
                                                atomic=True))  # fmt: skip
    return replace(event, kind="U", returns=False, value=value, needs=event.needs | needs)
