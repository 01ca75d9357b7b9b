"""Tensor maps and tensor copies (9.7.9.25.5, 9.7.9.26, 9.7.13.16).

A tensor map of a test is 128 bytes of memory of which the model knows one field, the tensor's address, in its first
word. It describes a tensor of one dimension, with boxes of so many bytes as the test declares. A copy reads the map
through the proxy of tensor maps, and then is a bulk copy of the box.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .events import Event, Path, equal
from .functions import atomic_function
from .programs import Address, Instruction, Operand, TensorCopy, TensorMap
from .refusals import not_modelled
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Word

#: The size of a tensor map, and of the field with the address, bytes (5.5.8).
MAP_BYTES, ADDRESS_BYTES = 128, 8
_TO_MBARRIER, _IN_GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
#: Modifiers of copies that change no order: the mode of a tensor that is copied as it is, and state spaces.
_PLAIN = frozenset(("tile", "global", "shared::cluster", "shared::cta"))


def read_tensor_copy(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor of one dimension. modifiers: behind `cp`."""
    reader = cells.reader
    rest = [modifier for modifier in modifiers if modifier not in ("async", "bulk", "tensor")]
    reduces, loads = "reduce" in rest, _TO_MBARRIER in rest
    if loads == (_IN_GROUP in rest) or (loads and reduces) or "1d" not in rest or cells.fixed:
        not_modelled(reader, word)
    function = next((atomic_function(modifier) for modifier in rest if reduces and atomic_function(modifier)), "")
    for modifier in rest:
        known = modifier in _PLAIN or modifier in ("1d", "reduce", _TO_MBARRIER, _IN_GROUP)
        if not known and not (function and atomic_function(modifier) == function):
            not_modelled(reader, word, modifier)
    if reduces and not function:
        not_modelled(reader, word)
    if loads:
        shared = cells.place()
        cells.comma()
        map_, coordinate = _tensor_place(cells)
        cells.comma()
        return TensorCopy(places=(map_, shared, cells.place()), size=0, bulk=True, coordinate=coordinate, loads=True,
                          **cells.done())  # fmt: skip
    map_, coordinate = _tensor_place(cells)
    cells.comma()
    return TensorCopy(places=(map_, cells.place()), size=0, bulk=True, coordinate=coordinate, loads=False,
                      function=function, **cells.done())  # fmt: skip


def _tensor_place(cells: Cells) -> tuple[Any, Operand]:
    """`[map, {coordinate}]`."""
    reader = cells.reader
    reader.expect("[", "before the tensor map")
    place = cells.place()
    cells.comma()
    reader.expect("{", "before the coordinate")
    coordinate = cells.value()
    reader.expect("}", "after the coordinate")
    reader.expect("]", "after the coordinate")
    return place, coordinate


def read_tensor_map(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """tensormap.replace of the address, and tensormap.cp_fenceproxy."""
    reader = cells.reader
    if modifiers[:3] == ["replace", "tile", "global_address"] and not cells.fixed:
        if not set(modifiers[3:]) <= {"global", "shared::cta", "b1024", "b64"}:
            not_modelled(reader, word)
        place = cells.place()
        cells.comma()
        return TensorMap(places=(place,), values=cells.values(1), **cells.done())
    scope = modifiers[5] if len(modifiers) > 5 else ""
    fused = ["cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", scope, "sync", "aligned"]
    if modifiers != fused or scope not in ("cta", "cluster", "gpu", "sys") or cells.fixed:
        not_modelled(reader, word)
    to = cells.place()
    cells.comma()
    source = cells.place()
    cells.comma()
    if reader.number("a number of bytes") != MAP_BYTES:
        reader.fail(f"expected the size of a tensor map, {MAP_BYTES} bytes (9.7.13.16)", word)
    return TensorMap(places=(to, source), scope=scope, **cells.done())


def follow_tensor_map(paths: Paths, path: Path, instruction: TensorMap) -> list[Path]:
    """A weak write of the address; or a read and a write, with a release fence of the map's proxy behind them."""
    name, offset = paths.place(path, instruction, instruction.places[0], MAP_BYTES)
    write = Event("W", path.steps, instruction, "weak", location=name, offset=offset, size=ADDRESS_BYTES,
                  needs=path.control)  # fmt: skip
    if len(instruction.places) == 1:
        value = paths.operand(path, instruction.values[0])
        path.events.append(replace(write, value=value, needs=write.needs | value.needs))
        return [path]
    source, first = paths.place(path, instruction, instruction.places[1], MAP_BYTES)
    value = paths.loaded(len(path.events), paths.types[source])
    path.events.append(replace(write, kind="R", location=source, offset=first))
    path.steps += 1
    path.events.append(replace(write, step=path.steps, value=value, needs=write.needs | value.needs))
    path.steps += 1
    path.events.append(Event("P", path.steps, instruction, "release", instruction.scope, "tensormap",
                             covers=(name, offset, offset + MAP_BYTES)))  # fmt: skip
    return [path]


def boxes(paths: Paths, path: Path, instruction: TensorCopy, read: Event) -> list[tuple[Path, str, int, int]]:
    """Reads the map, and follows each tensor that it may describe: path, location and offset of the box, its bytes.
    read: the asynchronous read of the map, without its place."""
    map_, at = paths.place(path, instruction, instruction.places[0], ADDRESS_BYTES)
    box = paths.test.locations[map_].box
    if not box:
        refuse(paths.test.source, f"'{map_}' is no tensor map", instruction.span, f"declare it: 'tensormap {map_} = …'")
    coordinate = paths.operand(path, instruction.coordinate)
    if coordinate.needs:
        refuse(paths.test.source, "a coordinate that depends on a read is not modelled", instruction.span)
    address = paths.loaded(len(path.events), paths.types[map_])
    path.events.append(replace(read, proxy="tensormap", location=map_, offset=at, size=ADDRESS_BYTES))
    initial = paths.test.locations[map_].initial
    described = paths.test.locations[initial.name] if isinstance(initial, Address) else None
    found = []
    for name, location in paths.test.locations.items():
        offset = coordinate.of(()) * paths.types[name].bits // 8
        fits = offset >= 0 and offset + box <= paths.extent(name)
        if not fits and location is described:
            refuse(paths.test.source, f"the box leads out of '{name}'", instruction.span)
        if fits and location.virtual == name and not location.box:
            way = path.copy()
            way.conditions.append((equal(address, paths.addresses[name]), True))
            found.append((way, name, offset, box))
    return found
