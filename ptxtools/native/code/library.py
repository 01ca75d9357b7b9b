"""Addresses of native functions: from this process, from the disk cache, or compiled now.

Each function exists at two levels: what a program begins with is compiled quickly where nothing better is at hand, and
well once that pays (`tiers`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptxtools import cache
from ptxtools.records import dataclass, field

from . import cases, jit, objects

if TYPE_CHECKING:
    from ptxtools.program.program import Op

#: The loop and the terminators, in a list of functions.
BASE = "base"
#: Functions of the loop that handlers call; those behind the first are handlers that terminators go on in.
SHARED = ("translate", "dispatch", "settle", "trap", "yield", "depart")

_lock = threading.RLock()


def addresses(handlers: dict[str, Op]) -> dict[str, int]:
    """Addresses of the functions of the loop, and of handlers (name: an operation that needs it), compiled well."""
    with _lock:
        _full.provide([BASE], {})
        return _full.provide(_full.lacks(handlers), handlers)


def early(
    handlers: dict[str, Op],
    ends: Collection[str] = (),
    simple: Callable[[], dict[str, Op]] | None = None,
    often: Callable[[], Collection[str]] = tuple,
) -> tuple[dict[str, int], list[str]]:
    """The same, with functions that were compiled quickly where those would have to be compiled first; and the names
    that are to be compiled well once that pays (`better`). ends: the terminators that the program has; simple: handlers
    that do until then; often: of those, what it does most."""
    with _lock:
        needed = _full.lacks([BASE, *handlers])
        if not needed or _full.load(needed):
            return _full.addresses, []
        begin = simple() if simple is not None else handlers
        quick = _quick.lacks([BASE, *sorted(ends), *begin])
        if quick and not _quick.load(quick):
            if _full.gather(needed):
                return _full.addresses, []
            _quick.make(quick, begin, often())
        return {**_quick.addresses, **_full.addresses}, needed


def better(needed: list[str], handlers: dict[str, Op]) -> dict[str, int]:
    """The addresses of functions that `early` lacked. The next process finds them together on disk."""
    with _lock:
        return _full.provide(needed, handlers)


def quickly(handlers: dict[str, Op]) -> dict[str, int]:
    """The addresses of handlers that are compiled quickly."""
    with _lock:
        return _quick.provide(list(handlers), handlers)


def quickly_at_hand(handlers: dict[str, Op]) -> bool:
    """Whether `quickly` needs no compiling for these."""
    with _lock:
        lacking = _quick.lacks(handlers)
        return not lacking or _quick.store.has_pack(lacking)


def products(handlers: dict[str, Op]) -> dict[str, int]:
    """The addresses of handlers of matrix products, compiled well, for programs whose others were compiled quickly.
    When those are compiled well, these are on disk."""
    with _lock:
        lacking = [name for name in handlers if name not in _products]
        if lacking:
            units = _full.store.units(lacking)
            try:
                _link_products(units, lacking)
            except RuntimeError:  # they are not all on disk, or not for this machine
                from . import generate

                module = generate.handler_module({name: handlers[name] for name in lacking}, jit.host_features())
                piece = (lacking, jit.compile_object(module))
                _full.store.save_unit(piece)
                _link_products([piece], lacking)
        return _products


def ahead(handlers: dict[str, Op]) -> dict[str, int]:
    """The same of any handlers, where `addresses` would compile the loop first; else nothing."""
    with _lock:
        if not _full.lacks([BASE]) or _full.gather([BASE]) or _quick.lacks([BASE]):
            return {}
        return products(handlers)


def _link_products(units: list[objects.Piece], names: list[str]) -> None:
    """Load object code with these handlers. RuntimeError if it lacks one."""
    if not {name for have, _ in units for name in have}.issuperset(names):
        raise RuntimeError("the native code lacks functions")
    shared = {name: _quick.addresses[name] for name in SHARED}
    for have, data in units:
        wanted = [name for name in have if name in names and name not in _products]
        _products.update(jit.link_object(data, wanted, shared))


def products_at_hand(handlers: dict[str, Op]) -> bool:
    """Whether `products` needs no compiling for these."""
    with _lock:
        lacking = {name for name in handlers if name not in _products}
        return lacking.issubset(name for have, _ in _full.store.units(lacking) for name in have)


def at_hand(handlers: dict[str, Op]) -> bool:
    """Whether these handlers need no compiling."""
    with _lock:
        return all(not names or store().has_pack(names) for names in (_full.lacks([BASE]), _full.lacks(handlers)))


def store() -> objects.Store:
    """The disk cache that belongs to this generator and CPU."""
    return _full.store


def functions_of(
    names: tuple[str, ...], module: Callable[[str], str], brief: Callable[[str], str] | None = None, share: float = 1.0
) -> dict[str, int]:
    """Addresses of functions beside the handlers, from the disk cache where possible. module: their IR, given the
    attributes of functions that use vectors as wide as there are; brief: another to begin with; share: how soon they
    are compiled well (`tiers.beside`)."""
    from . import replaceable, tiers

    found = _packed(store(), names)
    if found is not None:
        return found
    attributes = jit.attributes(widest=True)
    if not (tiers.QUICK and replaceable.possible()) or tiers.AT_ONCE:
        return _compiled(store(), names, module(attributes), jit.FULL)
    symbols = replaceable.symbols(names)
    found = _packed(_quick.store, symbols)
    if found is None:
        text = (brief or module)(attributes)
        found = _compiled(_quick.store, symbols, replaceable.module(text, names), jit.QUICK)
    tiers.beside(lambda: replaceable.replace(found, _compiled(store(), names, module(attributes), jit.FULL)), share)
    return {name: found[name] for name in names}


def functions_at_hand(names: Sequence[str]) -> bool:
    """Whether `functions_of` needs no compiling for these, and need not wait for others' either."""
    from . import replaceable

    packed = store().has_pack(names) or _quick.store.has_pack(replaceable.symbols(names))
    return packed and jit.is_idle()


def case_of(name: str) -> int:
    """Which case of its function a handler is, if it shares that with others (`joint`)."""
    return _quick.cases.get(name, 0)


def _packed(disk: objects.Store, names: Sequence[str]) -> dict[str, int] | None:
    """Addresses of functions that are on disk; None if they are not."""
    pieces = disk.pack(names)
    if pieces is None:
        return None
    try:
        return jit.link_object(pieces[0][1], names)
    except RuntimeError:  # whole, but not code for this machine: as good as none
        return None


def _compiled(disk: objects.Store, names: Sequence[str], text: str, level: int) -> dict[str, int]:
    """Addresses of functions that are compiled now."""
    pieces = [(list(names), jit.compile_object(text, level))]
    disk.save_pack(names, pieces)
    return jit.link_object(pieces[0][1], names)


def _without_repeats(units: list[objects.Piece]) -> list[objects.Piece]:
    """Units that define a function twice cannot be linked together; each then keeps to its own list of names."""
    seen: set[str] = set()
    result: list[objects.Piece] = []
    for names, data in units:
        fresh = [name for name in names if name not in seen]
        seen.update(fresh)
        result.append((fresh, data))
    return result


@dataclass
class Level:
    """The functions that LLVM has made at one level: in this process, and on disk. folder: None is that of caches."""

    level: int
    folder: Path | None = None
    addresses: dict[str, int] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)  # of handlers that share a function
    _store: list[objects.Store] = field(default_factory=list)

    @property
    def store(self) -> objects.Store:
        if not self._store:
            parts = [jit.version(), jit.host_cpu(), *sorted(jit.host_features()), cache.code_state("native")]
            key = objects.fingerprint([*parts, "quick"] if self.level == jit.QUICK else parts)
            self._store.append(objects.Store(self.folder or Path(cache.directory()), key))
        return self._store[0]

    def lacks(self, names: Iterable[str]) -> list[str]:
        """The functions that are not in this process."""
        return [name for name in names if name not in self.addresses]

    def provide(self, needed: list[str], ops: dict[str, Op]) -> dict[str, int]:
        """All addresses, once these functions are there."""
        if self.lacks(needed) and not self.load(needed):
            self.make(needed, ops)
        return self.addresses

    def load(self, needed: list[str]) -> bool:
        """Bring functions into this process that were packed together on disk."""
        pieces = self.store.pack(needed)
        if pieces is None:
            return False
        try:
            self._link(pieces, needed)
        except RuntimeError:  # whole, but not code for this machine: as good as none
            return False
        return True

    def gather(self, needed: list[str]) -> bool:
        """Bring functions into this process that are on disk, in a few units; and pack them."""
        units = _without_repeats(self.store.units(needed))
        if len(units) > objects.MOST_UNITS or not {name for names, _ in units for name in names}.issuperset(needed):
            return False
        try:
            self._link(units, needed)
        except RuntimeError:
            return False
        self.store.save_pack(needed, units)
        return True

    def make(self, needed: list[str], ops: dict[str, Op], often: Collection[str] = ()) -> None:
        """Compile the functions that no unit on disk has, bring all into this process, and pack them. often: names
        of those that the program needs most."""
        units = self.store.units(needed)
        if len(units) > objects.MOST_UNITS:
            units = [u for u in units if BASE in u[0]]
        have = {name for names, _ in units for name in names}
        lacking = [name for name in needed if name not in have]
        from . import generate

        features, core = jit.host_features(), self.level == jit.QUICK
        if BASE in lacking:
            symbols = generate.core_symbols() if core else generate.base_symbols()
            module = generate.core_module(features) if core else generate.base_module(features)
            units.append(self._unit([BASE, *symbols], module))
            lacking = [name for name in lacking if name != BASE and name not in symbols]
        handlers = {name: ops[name] for name in lacking if name in ops}
        ends = [name for name in lacking if name not in ops]
        if lacking:
            names = [*handlers, *ends, *([cases.table_of(handlers)] if core else [])]
            units.append(self._unit(names, generate.handler_module(handlers, features, ends, often, brief=core)))
        pieces = _without_repeats(units)
        self._link(pieces, needed)
        self.store.save_pack(needed, pieces)

    def _unit(self, names: list[str], module: str) -> objects.Piece:
        piece = (names, jit.compile_object(module, self.level))
        self.store.save_unit(piece)
        return piece

    def _link(self, pieces: list[objects.Piece], needed: list[str]) -> None:
        """Load object code. RuntimeError if it lacks a function that it should define."""
        have = {name for names, _ in pieces for name in names}
        if not have.issuperset(needed):
            raise RuntimeError("the native code lacks functions")
        for names, data in sorted(pieces, key=lambda piece: BASE not in piece[0]):  # the others call its functions
            symbols = [name for name in names if name != BASE]
            shared = {name: self.addresses[name] for name in SHARED if BASE not in names}
            found = jit.link_object(data, symbols, shared)
            for name, number in cases.read(found).items():
                if name in found and name not in self.addresses:
                    self.cases[name] = number
            for name, address in found.items():
                self.addresses.setdefault(name, address)
        if BASE in have:
            self.addresses[BASE] = self.addresses["run"]


_full, _quick = Level(jit.FULL), Level(jit.QUICK)
_products: dict[str, int] = {}
