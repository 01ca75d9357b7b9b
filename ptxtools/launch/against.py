"""Two runs of one launch compared: by other modules, engines or seeds. Where results differ, who stored the difference.

A store matches one of the other run by what it writes: the n-th write to a byte there, the n-th write here. The first
that leaves another byte, in the order of the first run, is where the runs part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, Trap
from ptxtools.diagnostics.text import printable
from ptxtools.records import dataclass, field

from .compare import Tolerance, compare, same_bytes, show_value
from .distance import close
from .elements import ELEMENTS, decode
from .errors import SpecError
from .runner import Memory, Report, run_job, text_difference

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptxtools.observe.stores import Store
    from ptxtools.sim.loadable import Loadable

    from .job import Job

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two. name: for the report; job: makes its job, each time anew; load: the module of a
    path, for a target if it is NVVM IR."""

    name: str
    job: Callable[[], Job]
    load: Callable[[str, str | None], Loadable]


@dataclass(slots=True)
class Comparison:
    """differences: a list of lines for each; buffers: how many were compared."""

    differences: list[list[str]] = field(default_factory=list)
    buffers: int = 0


def against(first: Side, second: Side, tolerance: Tolerance) -> Comparison:
    """Run both and compare what they leave: buffers, output, or how they fail. Expectations and files to save are left
    out. tolerance: of buffers whose launch file has none. Raises `SpecError`, `PtxError`."""
    found = Comparison()
    results = [_run(side) for side in (first, second)]
    reports = [result for result in results if isinstance(result, Report)]
    if len(reports) < len(results):
        _compare_failures((first, second), results, found)
        return found
    if reports[0].printed != reports[1].printed:
        lines = text_difference(reports[0].printed, reports[1].printed)
        found.differences.append([f"the kernels' output differs ({first.name}, {second.name})", *lines])
    wrong = _compare_buffers((first, second), (reports[0].memory, reports[1].memory), tolerance, found)
    if wrong:
        found.differences.append(_parting((first, second), wrong))
    return found


def _run(side: Side, observers: Sequence[object] = ()) -> Report | LaunchError | Trap:
    job = _plain(side.job())
    job.device.observers = observers
    try:
        return run_job(job, lambda path: side.load(path, job.device.target), keep=True)
    except (LaunchError, Trap) as error:
        return error


def _plain(job: Job) -> Job:
    for buffer in job.buffers.values():
        buffer.save = buffer.expect = ""
    job.globals = [plan for plan in job.globals if plan.file]
    for plan in job.globals:
        plan.expect = ""
    job.expect_printed = job.expect_failure = ""
    return job


def _compare_failures(sides: tuple[Side, Side], results: list[Report | LaunchError | Trap], found: Comparison) -> None:
    """Two failures are the same if they are of one kind and for one reason."""
    what = [_failure(result) for result in results]
    if what[0] == what[1]:
        return
    lines = []
    for side, result in zip(sides, results, strict=True):
        text = "runs to its end" if isinstance(result, Report) else str(result).splitlines()[0]
        lines.append(f"{side.name}: {text}")
    found.differences.append(["the runs end in different ways", *lines])


def _failure(result: Report | LaunchError | Trap) -> tuple[str, str]:
    if isinstance(result, Trap):
        return result.kind.value, result.reason
    return ("", "") if isinstance(result, Report) else ("refused", str(result))


# --- buffers ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Wrong:
    """A buffer that differs: where it lies in each run, and a flag for each byte of an element that is not equal."""

    label: str
    addresses: tuple[int, int]
    flags: Array
    item: int


def _compare_buffers(
    sides: tuple[Side, Side], memory: tuple[dict[str, Memory], dict[str, Memory]], tolerance: Tolerance,
    found: Comparison,
) -> list[_Wrong]:  # fmt: skip
    plans = sides[0].job().buffers
    wrong = []
    for name, one in memory[0].items():
        other = memory[1][name]
        found.buffers += 1
        allowed = plans[name].tolerance
        if not (allowed.relative or allowed.absolute):
            allowed = tolerance
        made = _compare(one, other, allowed, sides)
        if made is not None:
            found.differences.append(made[0])
            wrong.append(_Wrong(one.label, (one.address, other.address), made[1], one.array.itemsize))
    return wrong


def _compare(
    one: Memory, other: Memory, allowed: Tolerance, sides: tuple[Side, Side]
) -> tuple[list[str], Array] | None:
    import numpy as np

    if same_bytes(one.array, other.array):
        return None
    left, right, element = one.array.reshape(-1), other.array.reshape(-1), one.element
    try:
        mismatch = compare(left, element, right, allowed)
        unequal = ~close(decode(left, element), decode(right, element), allowed.relative, allowed.absolute)
    except (SpecError, TypeError, ValueError):  # structures, and items without a type: as bytes
        left, right, element = left.view("u1"), right.view("u1"), ELEMENTS["u8"]
        mismatch = compare(left, element, right, Tolerance())
        unequal = left != right
    if mismatch is None:
        return None
    flags = np.repeat(unequal, left.itemsize)
    lines = [f"{one.label}: {mismatch.wrong} of {mismatch.total} elements are not equal {allowed}"]
    for at in np.flatnonzero(unequal)[:3].tolist():
        values = [show_value(decode(array[at : at + 1], element)[0]) for array in (left, right)]
        lines.append(f"[{at}]  {values[0]} ({sides[0].name})  {values[1]} ({sides[1].name})")
    return lines, flags


# --- where they part --------------------------------------------------------------------------------------------------


def _parting(sides: tuple[Side, Side], wrong: list[_Wrong]) -> list[str]:
    """The first store that is not matched, on both sides, and the instructions that made its value."""
    from ptxtools.observe.stores import Stores, TooManyStores

    found = []
    for number, side in enumerate(sides):
        stores = Stores([(one.addresses[number], one.flags) for one in wrong])
        try:
            _run(side, [stores])
        except TooManyStores:
            return [f"where they part was not looked for: {side.name} stores too often where they differ"]
        found.append(stores.found)
    place = _first(found[0], found[1], wrong)
    if place is None:
        return ["where they part was not found: with all stores observed, the runs do not differ"]
    label, element, pair = place
    lines = [f"the runs part at element [{element}] of {label}"]
    for side, store in zip(sides, pair, strict=True):
        lines += _told(side, store)
    return lines


def _first(
    left: list[Store], right: list[Store], wrong: list[_Wrong]
) -> tuple[str, int, tuple[Store | None, Store | None]] | None:
    """The first writes of the same turn to the same byte that leave different ones, in the order of the first run, and
    the buffer and element; None for a write that only one run has."""
    writes = [_by_byte(stores, wrong, number) for number, stores in enumerate((left, right))]
    order = {id(store): n for n, store in enumerate([*left, *right])}
    best: tuple[int, tuple[int, int], tuple[Store | None, Store | None]] | None = None
    for place in sorted(writes[0].keys() | writes[1].keys()):
        pairs = _unequal(writes[0].get(place, []), writes[1].get(place, []))
        if pairs is not None:
            when = order[id(pairs[0] or pairs[1])]
            if best is None or when < best[0]:
                best = when, place, pairs
    if best is None:
        return None
    index, offset = best[1]
    one = wrong[index]
    return one.label, offset // one.item, best[2]


def _unequal(left: list[tuple[Store, int]], right: list[tuple[Store, int]]) -> tuple[Store | None, Store | None] | None:
    for turn in range(max(len(left), len(right))):
        one = left[turn] if turn < len(left) else None
        other = right[turn] if turn < len(right) else None
        if one is None or other is None or one[1] != other[1]:
            return (one[0] if one else None), (other[0] if other else None)
    return None


def _by_byte(stores: list[Store], wrong: list[_Wrong], number: int) -> dict[tuple[int, int], list[tuple[Store, int]]]:
    """The writes to each flagged byte, in their order, with what they left there; keys: buffer and offset."""
    found: dict[tuple[int, int], list[tuple[Store, int]]] = {}
    for store in stores:
        for index, offset, value in _bytes(store, wrong, number):
            found.setdefault((index, offset), []).append((store, value))
    return found


def _bytes(store: Store, wrong: list[_Wrong], number: int) -> Iterator[tuple[int, int, int]]:
    for index, one in enumerate(wrong):
        start = store.address - one.addresses[number]
        for position, value in enumerate(store.data):
            if 0 <= start + position < len(one.flags) and one.flags[start + position]:
                yield index, start + position, value


def _told(side: Side, store: Store | None) -> list[str]:
    if store is None:
        return [f"{side.name}: nothing is stored there any more"]
    if store.cta is None:
        return [f"{side.name}: asynchronous work writes {_hex(store.data)}"]
    from ptxtools.observe.stores import Origin

    who = "CTA ({},{},{}), thread ({},{},{})".format(*store.cta, *store.thread)
    lines = [f"{side.name}: {who} stores {_hex(store.data)}"]
    lines.append(f"    {_line(store.file, store.line, store.text)}{_registers(store.registers)}")
    origin = Origin(store)
    _run(side, [origin])
    for record in origin.lines:
        values = {name: array[..., 0] for name, array in (record.after or record.before).items()}
        lines.append(f"    {_line(record.file, record.line, record.text)}{_registers(values)}")
    return lines


def _line(file: str, line: int | None, text: str) -> str:
    return f"{printable(file)}:{line}: {printable(text)}" if line is not None else printable(text)


def _registers(values: dict[str, Any]) -> str:
    from ptxtools.observe.tracelines import number_text

    return "".join(
        f"{';' if n else '  '} {name} = {number_text(value)}" for n, (name, value) in enumerate(values.items())
    )


def _hex(data: bytes) -> str:
    """Little-endian bytes as a number."""
    return f"0x{data[::-1].hex()}" if len(data) <= 16 else f"{len(data)} bytes"
