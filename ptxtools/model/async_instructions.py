"""Reads mbarrier operations, asynchronous copies, stores and reductions, as PTX writes them (9.7.9.12, 9.7.9.25,
9.7.13.7, 9.7.13.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .floats import FUNCTIONS
from .functions import atomic_function
from .programs import (
    SCOPES,
    Copy,
    CopyGroup,
    Instruction,
    Local,
    Mbarrier,
    Operand,
    Place,
    RemoteStore,
    Type,
    reduced_type,
)
from .refusals import not_modelled
from .tensors import read_tensor_copy

if TYPE_CHECKING:
    from .instructions import Cells
    from .words import Word

OPCODES = ("mbarrier", "cp")

#: Modifiers without a meaning in the model: state spaces, caches, the type of an mbarrier object.
_IGNORED = frozenset(("global", "shared", "shared::cta", "shared::cluster", "b64", "ca", "cg", "L2::64B", "L2::128B",
                      "L2::256B", "async", "mbarrier"))  # fmt: skip
#: Orders of mbarrier operations, the default first; those of the others are fixed.
_ORDERS = {
    "arrive": ("release", "relaxed"), "arrive_drop": ("release", "relaxed"), "test_wait": ("acquire", "relaxed"),
    "try_wait": ("acquire", "relaxed"), "expect_tx": ("relaxed",), "complete_tx": ("relaxed",),
}  # fmt: skip
#: 9.7.9.25.3.1 and 9.7.9.25.4: what a copy may take, bytes.
_SMALL = (4, 8, 16)
_BULK = 16
#: The scopes of st.async and red.async with release semantics (9.7.9.12, 9.7.13.7).
_RELEASED = ("gpu", "sys")
#: Modifiers that name how the completion of a bulk copy is told.
_TO_MBARRIER, _IN_GROUP = "mbarrier::complete_tx::bytes", "bulk_group"


def read_asynchronous(cells: Cells, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
    """The rest of an instruction whose first word is given. Raises PtxError with position and reason."""
    if opcode == "multimem":
        opcode, *modifiers = modifiers
    if opcode == "mbarrier":
        return _mbarrier(cells, word, modifiers)
    if "tensor" in modifiers:
        return read_tensor_copy(cells, word, modifiers)
    if opcode in ("st", "red"):
        return _remote(cells, word, opcode, modifiers[1:])
    if modifiers[:2] in (["async", "mbarrier"], ["async", "bulk"]) or modifiers[:3] == ["reduce", "async", "bulk"]:
        if "mbarrier" in modifiers[:2]:
            return _arrive_with_copies(cells, word, modifiers[2:])
        return _bulk(cells, word, modifiers)
    if modifiers[:1] != ["async"]:
        not_modelled(cells.reader, word)
    if modifiers[1:2] in (["commit_group"], ["wait_group"], ["wait_all"]):
        return _group(cells, word, modifiers[1:], bulk=False)
    _rest(cells, word, modifiers[1:])
    places = _places(cells, 2)
    size = _size(cells)
    if size not in _SMALL:
        cells.reader.fail("expected a size of 4, 8 or 16 bytes", word)
    return Copy(places=places, size=size, bulk=False, **cells.done())


def _rest(cells: Cells, word: Word, modifiers: list[str]) -> None:
    for modifier in modifiers:
        if modifier not in _IGNORED:
            not_modelled(cells.reader, word, modifier)


def _places(cells: Cells, count: int) -> tuple[Place, ...]:
    found = [cells.place()]
    while len(found) < count:
        cells.comma()
        found.append(cells.place())
    return tuple(found)


def _size(cells: Cells) -> int:
    cells.comma()
    return cells.reader.number("a number of bytes")


# --- mbarriers --------------------------------------------------------------------------------------------------------


def _mbarrier(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    kind = modifiers[0] if modifiers else ""
    if kind == "pending_count":
        _rest(cells, word, modifiers[1:])
        result = cells.result()
        cells.comma()
        return Local(
            result=result, function="mbarrier.pending_count", values=cells.values(1), type=None, **cells.done()
        )
    orders = _ORDERS.get(kind, ("weak",))
    if kind not in (*_ORDERS, "init", "inval"):
        not_modelled(cells.reader, word)
    rest = modifiers[1:]
    order = next((modifier for modifier in rest if modifier in orders), orders[0])
    scope = next((modifier for modifier in rest if modifier in ("cta", "cluster")), "cta" if kind in _ORDERS else "")
    waits = kind.endswith("_wait")
    flags = ("parity",) if waits else ("expect_tx", "noComplete") if kind.startswith("arrive") else ()
    _rest(cells, word, [modifier for modifier in rest if modifier not in (order, scope, *flags)])
    result = ""
    if waits or kind.startswith("arrive"):
        sink = cells.reader.accept("_")
        result = "" if sink else cells.result()
        if waits and not result:
            cells.reader.fail("expected a register", word)
        cells.comma()
    places = _places(cells, 1)
    values: tuple[Operand, ...] = ()
    if kind != "inval" and (not kind.startswith("arrive") or cells.reader.next.text == ","):
        cells.comma()
        values = cells.values(1)
    transactions = None
    if "expect_tx" in rest:
        if not values:
            cells.reader.fail("expected a count of transactions", word)
        transactions, values = values[0], ()
    if waits and cells.reader.accept(","):
        cells.value()  # a hint of how long to wait
    return Mbarrier(kind="wait" if waits else kind, order=order, scope=scope, places=places, values=values,
                    transactions=transactions, result=result, parity="parity" in rest, **cells.done())  # fmt: skip


def _arrive_with_copies(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    if modifiers[:1] != ["arrive"]:
        not_modelled(cells.reader, word)
    _rest(cells, word, [modifier for modifier in modifiers[1:] if modifier != "noinc"])
    return Mbarrier(kind="arrive_copies", order="release", scope="cta", places=_places(cells, 1),
                    pends="noinc" not in modifiers, **cells.done())  # fmt: skip


# --- copies -----------------------------------------------------------------------------------------------------------


def _group(cells: Cells, word: Word, modifiers: list[str], *, bulk: bool) -> Instruction:
    kind, *rest = modifiers
    reads = bulk and kind == "wait_group" and rest == ["read"]
    if rest and not reads:
        not_modelled(cells.reader, word)
    if kind != "wait_group":
        return CopyGroup(kind="commit" if kind == "commit_group" else "all", bulk=bulk, **cells.done())
    pending = cells.reader.number("a number of groups")
    if pending < 0:
        cells.reader.fail("expected a number of groups", word)
    return CopyGroup(kind="wait", bulk=bulk, pending=pending, reads=reads, **cells.done())


def _bulk(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    reader = cells.reader
    reduces = modifiers[0] == "reduce"
    rest = modifiers[3 if reduces else 2 :]
    if not reduces and rest[:1] in (["commit_group"], ["wait_group"]):
        return _group(cells, word, rest, bulk=True)
    multi = word.text.startswith("multimem")
    completion = [modifier for modifier in rest if modifier in (_TO_MBARRIER, _IN_GROUP)]
    if len(completion) != 1 or (multi and completion != [_IN_GROUP]):
        not_modelled(reader, word)
    rest.remove(completion[0])
    type_: Type | None = None
    function = ""
    if reduces:
        type_ = next((found for modifier in rest if (found := reduced_type(modifier))), None)
        rest = [modifier for modifier in rest if reduced_type(modifier) is None and modifier != "noftz"]
        function = next((atomic_function(modifier) for modifier in rest if atomic_function(modifier)), "")
        if type_ is None or not function or (type_.kind in ("f", "bf") and function not in FUNCTIONS):
            not_modelled(reader, word)
        rest = [modifier for modifier in rest if atomic_function(modifier) != function]
    scope = next((modifier for modifier in rest if modifier in SCOPES), "")
    masked = "cp_mask" in rest and not reduces and completion == [_IN_GROUP]
    if bool(scope) == ("relaxed" in rest) and (multi or not reduces):
        named = {scope, "relaxed", "weak"[: 4 * (not reduces)]}
        named |= {"b128"} if scope and not reduces else set()
        if "b128" in named - {*rest}:
            not_modelled(reader, word, "relaxed")
        rest = [modifier for modifier in rest if modifier not in named]
    _rest(cells, word, [modifier for modifier in rest if modifier != "cp_mask" or not masked])
    places = _places(cells, 2)
    size = _size(cells)
    if size <= 0 or size % _BULK:
        reader.fail(f"expected a size that is a multiple of {_BULK} bytes", word)
    if completion[0] == _TO_MBARRIER:
        cells.comma()
        places += _places(cells, 1)
    mask = None
    if masked:
        cells.comma()
        mask = cells.value()
    order = "relaxed" if scope and not reduces else "weak"
    return Copy(places=places, size=size, bulk=True, function=function, type=type_, scope=scope or "gpu", multi=multi,
                order=order, mask=mask, **cells.done())  # fmt: skip


# --- asynchronous stores and reductions -------------------------------------------------------------------------------


def _remote(cells: Cells, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
    """st.async and red.async: into the cluster's shared memory, where an mbarrier is told of them; or, as a release,
    into global memory, and then nothing in the kernel waits for them (9.7.9.12, 9.7.13.7)."""
    type_ = cells.type_of(word, modifiers)
    given = set(modifiers)
    releases, multi = "release" in given, word.text.startswith("multimem")
    if (
        (multi and not (releases and given & {*_RELEASED} and "mmio" not in given))
        or releases == (_TO_MBARRIER in modifiers)
        or type_ is None
    ):
        not_modelled(cells.reader, word)
    function, parts, order = "", 1, "weak" if opcode == "st" else "relaxed"
    scope = "sys" if releases else "cluster"
    expected = ["release", "global", "mmio"] if releases else [order, "shared::cluster", _TO_MBARRIER]
    for modifier in list(modifiers):
        if modifier in ("v2", "v4") and opcode == "st" and not releases:
            parts = int(modifier[1])
        elif opcode == "red" and not function and atomic_function(modifier):
            function = atomic_function(modifier)
        elif modifier in (_RELEASED if releases else ("cluster",)):
            scope = modifier
        elif modifier not in expected:
            continue
        modifiers.remove(modifier)
    _rest(cells, word, modifiers)
    if releases and opcode == "red" and not given & {*_RELEASED}:
        cells.reader.fail(f"'{word.text}' needs a scope", word, "write '.gpu' or '.sys'")
    if "mmio" in given and scope != "sys":
        cells.reader.fail("'.mmio' needs '.sys'", word)
    if (opcode == "red") != bool(function) or (function and (type_.kind == "f" or (releases and function != "add"))):
        not_modelled(cells.reader, word)
    places = _places(cells, 1)
    cells.comma()
    values = cells.several(parts, cells.value)
    if releases:
        order = "release"
    else:
        cells.comma()
        places += _places(cells, 1)
    return RemoteStore(places=places, values=values, type=type_, order=order, scope=scope if order != "weak" else "",
                       function=function, multi=multi, **cells.done())  # fmt: skip
