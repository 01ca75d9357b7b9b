"""Tensor maps and tensor copies (9.7.9.25.5, 9.7.9.26, 9.7.13.16).

A tensor map is 128 bytes of memory. A copy reads them through the proxy of tensor maps, and then is a bulk copy of the
box that they describe. Which one that is depends on what it reads: each map that the program can make is tried, from
those that it has and the fields that it replaces. What the bytes mean is not for the model to know: an `Engine` says
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ptxtools.records import replace

from .events import Event, Path, Value, equal
from .functions import atomic_function
from .programs import Address, Instruction, Location, Operand, Place, TensorCopy, TensorMap, Type, reduced_type
from .refusals import not_modelled
from .words import refuse

if TYPE_CHECKING:
    from .instructions import Cells
    from .paths import Paths
    from .words import Reader, Word

#: The size of a tensor map, bytes (5.5.8).
MAP_BYTES = 128
_MASK = (1 << 8 * MAP_BYTES) - 1
_SIGNED = Type("s", 32)
_TO_MBARRIER, _IN_GROUP = "mbarrier::complete_tx::bytes", "bulk_group"
#: Modifiers of copies that change no order.
_PLAIN = ("global", "shared::cluster", "shared::cta", "cta_group::1", "cta_group::2")
_DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_LOADS = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")
_STORES = ("tile", "tile::scatter4", "im2col_no_offs", "im2col_no_offs::w")
_MULTICAST = "multicast::cluster"
#: Fields with an ordinal in front of their value, and all others (9.7.9.26).
_ORDINAL = ("box_dim", "global_dim", "global_stride", "element_stride")
_FIELDS = (*_ORDINAL, "global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity",
           "fill_mode")  # fmt: skip
#: Maps that a program may make, and runs of bytes of one copy.
MOST_MAPS, MOST_RUNS = 64, 64
#: Bytes of the box of a map of a test, if the test does not say.
_BOX = 16


#: What becomes of the bytes of elements on their way.
Convert = Callable[[bytes], bytes]


class Run(Protocol):
    """Bytes that lie together on both sides. tensor: from the map's address on, -1 for what is outside of the tensor;
    shared: from the tile's address on; size: there as well, unless `taken` says how many bytes of shared memory are
    packed into these; fill: the bytes that are written then."""

    tensor: int
    shared: int
    size: int
    fill: bytes
    taken: int


class Transfer(Protocol):
    """What a copy moves. address: that of the map's tensor; bytes: what an mbarrier counts; element: bytes of an
    element; type: its name; convert: what becomes of elements on their way, None if they stay."""

    address: int
    bytes: int
    element: int
    type: str
    runs: Sequence[Run]
    convert: Convert | None


class Engine(Protocol):
    """What the 128 bytes of a map mean. All raise ValueError, with the reason, for what a chip refuses."""

    def encode(self, address: int, fields: Mapping[str, Any]) -> bytes:
        """A map, by the fields of launch files."""

    def transfer(self, map_: bytes, mode: str, coordinates: Sequence[int], offsets: Sequence[int], start: int, *,
                 store: bool, reduction: str = "") -> Transfer:  # fmt: skip
        """What a copy moves whose tile begins at `start`."""

    def replaced(self, map_: bytes, field: str, dimension: int, value: int) -> bytes:
        """The map with a field changed."""

    def changed(self, field: str, dimension: int) -> Sequence[tuple[int, int, bool]]:
        """The bytes that a field changes: offset, size, and whether all of their bits."""


#: Finds the engine when it is needed.
Engines = Callable[[], Engine]


# --- reading ----------------------------------------------------------------------------------------------------------


def read_described(reader: Reader, location: Location, initial: Callable[[], int | Address]) -> None:
    """`t = x`, `t[32] = x` with the bytes of the box, or `t(shape = {8, 2}, box = {4, 1}) = x` with the fields that
    launch files have, behind the word `tensormap`."""
    location.map = {"bytes": _BOX}
    if reader.accept("["):
        location.map = {"bytes": reader.number("a number of bytes")}
        reader.expect("]", "after the number of bytes")
    elif reader.accept("("):
        location.map = {}
        while not reader.accept(")"):
            if location.map:
                reader.expect(",", "between fields")
            field = reader.name("a field of the map").text
            reader.expect("=", "after the field")
            location.map[field] = _field(reader)
    reader.accept("=", "==") or reader.fail("expected '=' and the tensor that the map describes")
    word = reader.next
    location.initial = initial()
    if not isinstance(location.initial, Address):
        reader.fail("expected a location, the tensor that the map describes", word)
    location.size, location.type, location.space = MAP_BYTES, Type("b", 64), location.space or "global"


def _field(reader: Reader) -> Any:
    if reader.next.kind == "text":
        return reader.take().text[1:-1]
    if reader.accept("{"):
        values = [reader.number("a number")]
        while not reader.accept("}"):
            reader.expect(",", "between numbers")
            values.append(reader.number("a number"))
        return values
    return reader.take().text if reader.next.kind == "word" else reader.number("a value")


def read_tensor_copy(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor. modifiers: behind `cp`."""
    reader = cells.reader
    rest = [modifier for modifier in modifiers if modifier not in ("async", "bulk", "tensor", *_PLAIN)]
    reduces, loads = "reduce" in rest, _TO_MBARRIER in rest
    if loads == (_IN_GROUP in rest) or (loads and reduces) or sum(d in rest for d in _DIMENSIONS) != 1:
        not_modelled(reader, word)
    rank = next(at for at, name in enumerate(_DIMENSIONS, 1) if name in rest)
    function = next((name for modifier in rest if reduces and (name := atomic_function(modifier))), "")
    mode = next((modifier for modifier in rest if modifier in (_LOADS if loads else _STORES)), "tile")
    cached, multicast = "L2::cache_hint" in rest, _MULTICAST in rest
    known = (_DIMENSIONS[rank - 1], "reduce", _TO_MBARRIER, _IN_GROUP, mode, "L2::cache_hint")
    for modifier in rest:
        taken = modifier in known or (function and atomic_function(modifier) == function)
        if not (taken or (multicast and loads and modifier == _MULTICAST)):
            not_modelled(reader, word, modifier)
    if reduces and not function:
        not_modelled(reader, word)
    places: list[Place] = []
    if loads:
        places.append(cells.place())
        cells.comma()
    map_, coordinates = _tensor_place(cells, 5 if mode.endswith("4") else rank)
    cells.comma()
    places.append(cells.place())
    offsets: tuple[Operand, ...] = ()
    ctas: Operand | None = None
    if loads and mode.startswith("im2col") and (cells.reader.peek().text == "{" or not cells.fixed):
        cells.comma()
        offsets = _braced(cells, None)
    if multicast:
        cells.comma()
        ctas = cells.value()
    if cached:
        cells.comma()
        cells.value()
    return TensorCopy(places=(map_, *places), size=0, bulk=True, coordinates=coordinates, offsets=offsets, loads=loads,
                      mode=mode, ctas=ctas, function=function, **cells.done())  # fmt: skip


def _tensor_place(cells: Cells, count: int) -> tuple[Place, tuple[Operand, ...]]:
    """`[map, {coordinates}]`."""
    reader = cells.reader
    reader.expect("[", "before the tensor map")
    place = cells.place()
    cells.comma()
    coordinates = _braced(cells, count)
    reader.expect("]", "after the coordinates")
    return place, coordinates


def _braced(cells: Cells, count: int | None) -> tuple[Operand, ...]:
    reader = cells.reader
    start = reader.expect("{", "before the coordinates")
    found = [cells.value()]
    while not reader.accept("}"):
        cells.comma()
        found.append(cells.value())
    if count is not None and len(found) != count:
        reader.fail(f"expected {count} coordinates", start)
    return tuple(found)


def read_tensor_map(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """tensormap.replace, and tensormap.cp_fenceproxy."""
    reader = cells.reader
    if modifiers[:2] == ["replace", "tile"] and len(modifiers) > 2 and modifiers[2] in _FIELDS:
        if not set(modifiers[3:]) <= {"global", "shared::cta", "b1024", "b32", "b64"}:
            not_modelled(reader, word)
        place = cells.place()
        cells.comma()
        ordinal = 0
        if modifiers[2] in _ORDINAL:
            ordinal = reader.number("the number of a dimension")
            if not 0 <= ordinal < len(_DIMENSIONS) - (modifiers[2] == "global_stride"):
                reader.fail("a tensor has at most 5 dimensions", word)
            cells.comma()
        return TensorMap(places=(place,), values=cells.values(1), field=modifiers[2], ordinal=ordinal, **cells.done())
    scope = modifiers[5] if len(modifiers) > 5 else ""
    fused = ["cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", scope, "sync", "aligned"]
    if modifiers != fused or scope not in ("cta", "cluster", "gpu", "sys"):
        not_modelled(reader, word)
    to = cells.place()
    cells.comma()
    source = cells.place()
    cells.comma()
    if reader.number("a number of bytes") != MAP_BYTES:
        reader.fail(f"expected the size of a tensor map, {MAP_BYTES} bytes (9.7.13.16)", word)
    return TensorMap(places=(to, source), scope=scope, **cells.done())


# --- maps -------------------------------------------------------------------------------------------------------------


def encoded(paths: Paths, location: Location) -> int:
    """The initial value of a map of a test."""
    assert isinstance(location.initial, Address) and location.map is not None
    target = paths.test.locations[location.initial.name]
    fields = dict(location.map)
    type_ = paths.types[target.name]
    box, offset = fields.pop("bytes", None), fields.pop("offset", 0)
    if "type" not in fields:
        fields["type"] = f"{'s' if type_ == _SIGNED else 'u'}{type_.bits}"
    size = type_.bits // 8
    if box is not None:
        fields |= {"shape": [max(target.size, box) // size], "box": [box // size]}
    elif "shape" not in fields:
        fields["shape"] = [max(target.size // size, 1)]
    if "lower_corner" not in fields:  # else it is one for im2col modes
        fields.setdefault("box", fields["shape"])
    try:
        made = paths.engine().encode(paths.address_of(target.name) + offset, fields)
    except ValueError as error:
        refuse(paths.test.source, f"the tensor map '{location.name}': {error}", (0, 1))
    return int.from_bytes(made, "little")


def _possible_maps(paths: Paths) -> list[int]:
    """Each map that the program can make: those that it has, with any of the fields that it replaces."""
    if paths.maps is not None:
        return paths.maps
    found = dict.fromkeys(paths.initial_of(location) & _MASK for location in paths.test.locations.values()
                          if location.map is not None)  # fmt: skip
    changes = _changes(paths)
    for number in [*found]:
        stack = [number]
        while stack:
            old = stack.pop().to_bytes(MAP_BYTES, "little")
            for field, ordinal, value in changes:
                new = int.from_bytes(paths.engine().replaced(old, field, ordinal, value), "little")
                if new not in found:
                    found[new] = None
                    stack.append(new)
            if len(found) > MOST_MAPS:
                _too_many(paths, f"more than {MOST_MAPS} tensor maps that the program can make")
    paths.maps = [*found]
    return paths.maps


def _changes(paths: Paths) -> list[tuple[str, int, int]]:
    """What `tensormap.replace` puts into maps anywhere: fields, ordinals, values."""
    paths.replaced = {}
    for thread in paths.test.threads:
        if any(isinstance(i, TensorMap) and i.field for i in thread.instructions):
            paths.of(thread)
    found, paths.replaced = paths.replaced, None
    return [*found]


def _too_many(paths: Paths, message: str) -> NoReturn:
    refuse(paths.test.source, message, paths.using.span)


def follow_tensor_map(paths: Paths, path: Path, instruction: TensorMap) -> list[Path]:
    """Weak writes of a field, which read what else is in its words; or a read and a write of a whole map, with a
    release fence of the map's proxy behind them."""
    name, offset = paths.place(path, instruction, instruction.places[0], MAP_BYTES)
    event = Event("W", path.steps, instruction, "weak", location=name, offset=offset, size=MAP_BYTES,
                  needs=path.control)  # fmt: skip
    if instruction.field:
        value = paths.operand(path, instruction.values[0])
        if paths.replaced is not None:
            _collect(paths, paths.replaced, instruction, value)
        for first, size, whole in paths.engine().changed(instruction.field, instruction.ordinal):
            read = len(path.events)
            part = replace(event, offset=offset + first, size=size)
            if not whole:
                path.events.append(replace(part, kind="R"))
                path.steps += 1
            new = _changed(paths, instruction, value, None if whole else read, first, size)
            path.events.append(replace(part, step=path.steps, value=new, needs=event.needs | new.needs))
        return [path]
    source, start = paths.place(path, instruction, instruction.places[1], MAP_BYTES)
    read = len(path.events)
    path.events.append(replace(event, kind="R", location=source, offset=start))
    path.steps += 1
    copied = Value(1 << read, lambda reads: reads[read])
    path.events.append(replace(event, step=path.steps, value=copied, needs=event.needs | copied.needs))
    path.steps += 1
    path.events.append(Event("P", path.steps, instruction, "release", instruction.scope, "tensormap",
                             covers=(name, offset, offset + MAP_BYTES)))  # fmt: skip
    return [path]


def _collect(
    paths: Paths, found: dict[tuple[str, int, int], None], instruction: TensorMap, value: Value
) -> None:  # fmt: skip
    """Note what a field may become; if a read decides, an address may be that of each location."""
    values = [value.of(())] if not value.needs else list(paths.addresses.values())
    if value.needs and instruction.field != "global_address":
        refuse(paths.test.source, f"a {instruction.field} that depends on a read is not modelled", instruction.span)
    found.update(dict.fromkeys((instruction.field, instruction.ordinal, number) for number in values))


def _changed(paths: Paths, instruction: TensorMap, value: Value, read: int | None, first: int, size: int) -> Value:
    """The bytes of a map from `first` on with a field replaced. read: the event that has read them before."""
    engine = paths.engine()

    def new(reads: Sequence[int]) -> int:
        old = (reads[read] if read is not None else 0).to_bytes(size, "little")
        whole = bytes(first) + old + bytes(MAP_BYTES - first - size)
        made = engine.replaced(whole, instruction.field, instruction.ordinal, value.of(reads))
        return int.from_bytes(made[first : first + size], "little")

    return Value(value.needs | (1 << read if read is not None else 0), new)


# --- copies -----------------------------------------------------------------------------------------------------------


def transfers(paths: Paths, path: Path, instruction: TensorCopy, read: Event) -> list[tuple[Path, Transfer]]:
    """Reads the map, and follows each map that it may find there. read: the asynchronous read, without its place."""
    map_, at = paths.place(path, instruction, instruction.places[0], 0)
    if not 0 <= at <= paths.test.locations[map_].size - MAP_BYTES:
        refuse(paths.test.source, f"'{map_}' is no tensor map", instruction.span, f"declare it: 'tensormap {map_} = …'")
    coordinates, offsets = (
        [paths.signed(path, instruction, operand) for operand in operands]
        for operands in (instruction.coordinates, instruction.offsets)
    )
    _, start = paths.place(path, instruction, instruction.places[1], 0)
    path.events.append(replace(read, proxy="tensormap", location=map_, offset=at, size=MAP_BYTES))
    own = 1 << len(path.events) - 1
    value = Value(own, lambda reads: reads[own.bit_length() - 1] & _MASK)
    found, problem = [], ""
    for number in _possible_maps(paths):
        try:
            moved = paths.engine().transfer(
                number.to_bytes(MAP_BYTES, "little"), instruction.mode, coordinates, offsets, start,
                store=not instruction.loads, reduction=instruction.function,
            )  # fmt: skip
        except ValueError as error:
            problem = problem or str(error)
            continue
        if len(moved.runs) > MOST_RUNS:
            _too_many(paths, f"a copy of {len(moved.runs)} pieces of memory: at most {MOST_RUNS} are modelled")
        way = path.copy()
        way.conditions.append((equal(value, number), True))
        found.append((way, moved))
    if not found:
        refuse(paths.test.source, problem or "no tensor map", instruction.span)
    return found


def elements(moved: Transfer) -> list[tuple[int, int, int, bytes, int]]:
    """The parts of a transfer that are accesses of their own: distance in the tensor or -1, in shared memory, bytes,
    what is filled in, and the bytes that are packed. They have at most 8 bytes, unless that were too many."""
    size = max(moved.element, min(8, *(run.size & -run.size for run in moved.runs))) if moved.runs else 1
    if sum(run.size for run in moved.runs) // size > MOST_RUNS or any(run.taken for run in moved.runs):
        return [(run.tensor, run.shared, run.size, run.fill, run.taken) for run in moved.runs]
    found = []
    for run in moved.runs:
        for at in range(0, run.size, size):
            tensor = run.tensor + at if run.tensor >= 0 else -1
            found.append((tensor, run.shared + at, min(size, run.size - at), run.fill[at : at + size], 0))
    return found


def reduction_type(moved: Transfer) -> Type | None:
    """What a reduction of the map's elements computes with."""
    return reduced_type(moved.type.removesuffix(".ftz"))
