"""Addresses of native functions: from this process, from the disk cache, or compiled now."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ptxtools import cache

from . import jit, objects

if TYPE_CHECKING:
    from ptxtools.program.program import Op

#: The loop and the terminators, in a list of functions.
BASE = "base"
#: Functions of the loop that handlers call.
SHARED = ("translate",)

_lock = threading.RLock()
_addresses: dict[str, int] = {}
_store: list[objects.Store] = []


def addresses(handlers: dict[str, Op]) -> dict[str, int]:
    """Addresses of the functions of the loop, and of handlers (name: an operation that needs it)."""
    with _lock:
        missing = {name: op for name, op in handlers.items() if name not in _addresses}
        needed = list(missing) if BASE in _addresses else [BASE, *missing]
        if needed:
            _load(needed, missing)
        return _addresses


def at_hand(handlers: dict[str, Op]) -> bool:
    """Whether these handlers need no compiling."""
    with _lock:
        missing = [name for name in handlers if name not in _addresses]
        return not missing or store().has_pack(missing)


def store() -> objects.Store:
    """The disk cache that belongs to this generator and CPU."""
    if not _store:
        key = objects.fingerprint(
            [jit.version(), jit.host_cpu(), *sorted(jit.host_features()), cache.code_state("native")]
        )
        _store.append(objects.Store(Path(cache.directory()), key))
    return _store[0]


def functions_of(names: tuple[str, ...], module: Callable[[str], str]) -> dict[str, int]:
    """Addresses of functions beside the handlers, from the disk cache where possible. module: their IR, given the
    attributes of functions that use vectors as wide as there are."""
    disk = store()
    pieces = disk.pack(names)
    if pieces is not None:
        try:
            return jit.link_object(pieces[0][1], names)
        except RuntimeError:  # whole, but not code for this machine: as good as none
            pass
    pieces = [(list(names), jit.compile_object(module(jit.attributes(widest=True))))]
    disk.save_pack(names, pieces)
    return jit.link_object(pieces[0][1], names)


def _load(needed: list[str], ops: dict[str, Op]) -> None:
    disk = store()
    pieces = disk.pack(needed)
    if pieces is not None:
        try:
            _link(pieces, needed)
        except RuntimeError:  # whole, but not code for this machine: as good as none
            pieces = None
    if pieces is None:
        pieces = _make(disk, needed, ops)
        _link(pieces, needed)
        disk.save_pack(needed, pieces)


def _link(pieces: list[objects.Piece], needed: list[str]) -> None:
    """Load object code. RuntimeError if it lacks a function that it should define."""
    have = {name for names, _ in pieces for name in names}
    if not have.issuperset(needed):
        raise RuntimeError("the native code lacks functions")
    for names, data in sorted(pieces, key=lambda piece: BASE not in piece[0]):  # the others call its functions
        symbols = [name for name in names if name != BASE]
        shared = {name: _addresses[name] for name in SHARED if BASE not in names}
        for name, address in jit.link_object(data, symbols, shared).items():
            _addresses.setdefault(name, address)
    if BASE in have:
        _addresses[BASE] = _addresses["run"]


def _make(disk: objects.Store, needed: list[str], ops: dict[str, Op]) -> list[objects.Piece]:
    """Units from the cache, and a new one for the functions that they lack."""
    units = disk.units(needed)
    if len(units) > objects.MOST_UNITS:
        units = [u for u in units if BASE in u[0]]
    have = {name for names, _ in units for name in names}
    lacking = [name for name in needed if name not in have]
    from . import generate

    if BASE in lacking:
        piece = ([BASE, *generate.base_symbols()], jit.compile_object(generate.base_module(jit.host_features())))
        disk.save_unit(piece)
        units.append(piece)
    handlers = {name: ops[name] for name in lacking if name != BASE}
    if handlers:
        module = generate.handler_module(handlers, jit.host_features())
        piece = (list(handlers), jit.compile_object(module))
        disk.save_unit(piece)
        units.append(piece)
    return _without_repeats(units)


def _without_repeats(units: list[objects.Piece]) -> list[objects.Piece]:
    """Units that define a function twice cannot be linked together; each then keeps to its own list of names."""
    seen: set[str] = set()
    result: list[objects.Piece] = []
    for names, data in units:
        fresh = [name for name in names if name not in seen]
        seen.update(fresh)
        result.append((fresh, data))
    return result
