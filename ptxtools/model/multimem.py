"""Multi-addresses and the multimem operations on them (8.2.3, 9.7.9.14).

A multi-address stands for several locations, such as one on each device. An operation on it is one on each of them, in
no order. It reaches them by a virtual address that is not their own, as an alias does (8.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ptxtools.records import replace

from .events import Event, Path, Value
from .floats import FUNCTIONS, combined
from .functions import computed
from .programs import NARROW_FLOATS, SCOPES, Instruction, Location, Multimem, Operand, Type, reduced_type
from .refusals import not_modelled
from .words import Reader, Word, refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths

#: kind -> its memory orders, the default first.
_ORDERS = {
    "ld_reduce": ("weak", "relaxed", "acquire"), "st": ("weak", "relaxed", "release"), "red": ("relaxed", "release"),
}  # fmt: skip
#: Modifiers that name the type of intermediate sums.
_WIDE = {"acc::f32": "f32", "acc::f16": "f16"}
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
        if target.name in names[:-1] or target.members:
            reader.fail(f"'{target.name}' is no further location of a multi-address")
    if word.text in locations or not 0 < len(names) <= MOST_LOCATIONS:
        reader.fail(f"expected a new name, and 1 to {MOST_LOCATIONS} locations", word)
    add_multi_address(locations, word.text, names)


def add_multi_address(locations: dict[str, Location], name: str, targets: Sequence[str]) -> None:
    """A multi-address of locations, as `multimem NAME = {…}` declares it."""
    for target in targets:
        locations[f"{name} -> {target}"] = Location(f"{name} -> {target}", memory=target)
    locations[name] = Location(name, members=tuple(f"{name} -> {target}" for target in targets))


def complete_aliases(locations: dict[str, Location]) -> None:
    """What the declarations of its locations say of the aliases of a multi-address."""
    for address in list(locations.values()):
        for alias in (locations[name] for name in address.members):
            target = locations[alias.memory]
            alias.memory, alias.type, alias.size, alias.space = target.memory, target.type, target.size, target.space


def read_multimem(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """multimem.ld_reduce, .st and .red."""
    reader = cells.reader
    kind = modifiers[0] if modifiers else ""
    if kind not in _ORDERS:
        not_modelled(reader, word)
    rest = modifiers[1:]
    type_ = next((found for modifier in rest if (found := _type(modifier))), None)
    parts = next((int(modifier[1:]) for modifier in rest if modifier in ("v2", "v4", "v8")), 1)
    order = next((modifier for modifier in rest if modifier in _ORDERS[kind]), _ORDERS[kind][0])
    scope = next((modifier for modifier in rest if modifier in SCOPES), "sys" if kind == "red" else "")
    function = next((modifier for modifier in rest if modifier in _FUNCTIONS and kind != "st"), "")
    for modifier in rest:
        plain = modifier in (order, scope, function, "global", f"v{parts}") or _type(modifier) == type_
        if not plain and modifier not in _WIDE and modifier != "noftz":
            not_modelled(reader, word, modifier)
    if type_ is None or bool(function) == (kind == "st"):
        not_modelled(reader, word)
    is_float = type_.kind in ("f", "bf", *NARROW_FLOATS)
    if kind == "red" and type_.kind in NARROW_FLOATS:
        not_modelled(reader, word)
    if is_float and function and function not in FUNCTIONS:
        not_modelled(reader, word, function)
    if (type_.bits < 32 and parts == 1) or (parts > 1 and not is_float):
        not_modelled(reader, word)
    if (order == "weak") != (not scope):
        what = "is weak and has a scope" if scope else "needs a scope"
        reader.fail(f"'{word.text}' {what}", word)
    results: tuple[str, ...] = ()
    if kind == "ld_reduce":
        results = cells.several(parts, cells.result)
        cells.comma()
    place = cells.place()
    values: tuple[Operand, ...] = ()
    if kind != "ld_reduce":
        cells.comma()
        values = cells.several(parts, cells.value)
    return Multimem(kind=kind, order=order, scope=scope, places=(place,), type=type_, values=values, results=results,
                    function=function, wide=next((_WIDE[modifier] for modifier in rest if modifier in _WIDE), ""),
                    **cells.done())  # fmt: skip


def _type(name: str) -> Type | None:
    """The type of that name; those of 8 bits, one, two or four together, in a register of their size."""
    kind, _, count = name.partition("x")
    return Type(kind, 8 * int(count or 1)) if kind in NARROW_FLOATS else reduced_type(name)


def follow_multimem(paths: Paths, path: Path, instruction: Multimem) -> list[Path]:
    """One read, write or atomic operation for each location, in one step of program order."""
    name, offset = paths.place(path, instruction, instruction.places[0], 0)
    members, type_ = paths.test.locations[name].members, instruction.type
    if not members:
        refuse(paths.test.source, f"'{name}' is no multi-address", instruction.span,
               f"declare it: 'multimem {name} = {{…}}'")  # fmt: skip
    given = [paths.operand(path, value) for value in instruction.values]
    bytes_ = type_.bits // 8
    event = Event("R", path.steps, instruction, instruction.order, instruction.scope, size=bytes_, offset=offset,
                  needs=path.control)  # fmt: skip
    for part in range(len(given or instruction.results)):
        first = len(path.events)
        for member in members:
            at = offset + part * bytes_
            paths.place(path, instruction, (member, at), bytes_)
            one = replace(event, location=member, offset=at)
            if given:
                one = replace(one, kind="W", value=given[part], needs=one.needs | given[part].needs)
            if instruction.kind == "red":
                one = _reduced(one, instruction, given[part], len(path.events))
            path.events.append(one)
        if instruction.results:
            path.registers[instruction.results[part]] = _together(instruction, range(first, len(path.events)))
    return [path]


def _together(instruction: Multimem, places: range) -> Value:
    """What is returned of what the reads at these places found."""
    type_ = instruction.type

    def result(reads: Sequence[int]) -> int:
        found = [type_.wrap(reads[at]) for at in places]
        if type_.kind not in "usb":
            return combined(instruction.function, type_.float_name, found, instruction.wide)
        return reduce(lambda a, b: computed(instruction.function, type_, [a, b]), found)

    return Value(sum(1 << at for at in places), result)


def _reduced(event: Event, instruction: Multimem, operand: Value, at: int) -> Event:
    needs = operand.needs | 1 << at
    value = Value(needs, lambda reads: computed(instruction.function, instruction.type, [reads[at], operand.of(reads)],
                                                atomic=True))  # fmt: skip
    return replace(event, kind="U", returns=False, value=value, needs=event.needs | needs)
