"""Reads loads, stores and atomic operations, as PTX writes them (9.7.9, 9.7.13) or public litmus suites name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .floats import FUNCTIONS
from .functions import atomic_function
from .programs import SCOPES, Instruction, Local, Memory, Operand

if TYPE_CHECKING:
    from .instructions import Cells
    from .words import Word

#: opcode -> (kind of operation, proxy); the names other than PTX's own are those of the public suites.
ACCESSES = {
    "ld": ("ld", "generic"), "tld": ("ld", "texture"), "suld": ("ld", "surface"), "cold": ("ld", "constant"),
    "ldc": ("ld", "constant"), "st": ("st", "generic"), "sust": ("st", "surface"), "atom": ("atom", "generic"),
    "suatom": ("atom", "surface"), "red": ("red", "generic"), "sured": ("red", "surface"),
}  # fmt: skip
_ORDERS = {
    "ld": frozenset(("weak", "relaxed", "acquire", "volatile", "mmio")),
    "st": frozenset(("weak", "relaxed", "release", "volatile", "mmio")),
    "atom": frozenset(("relaxed", "acquire", "release", "acq_rel")),
    "red": frozenset(("relaxed", "release", "acquire", "acq_rel")),
}


def read_access(cells: Cells, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
    """ld, st, atom and red, and those that public suites name for other proxies."""
    reader = cells.reader
    kind, proxy = ACCESSES[opcode]
    if kind == "ld" and not modifiers and reader.peek().text == ",":
        after = reader.peek(2)
        if after.kind == "number" or after.text == "-" or (after.kind == "word" and cells.is_register(after.text)):
            return cells.move(None)
    type_ = cells.type_of(word, modifiers)
    if opcode == "ld" and "nc" in modifiers:
        proxy = _non_coherent(cells, word, modifiers)
    elif opcode == "ld" and "const" in modifiers:
        modifiers.remove("const")
        proxy = "constant"
    mmio = "mmio" in modifiers
    order = scope = function = ""
    parts = 1
    for modifier in list(modifiers):
        if modifier in SCOPES and not scope:
            scope = modifier
        elif modifier in ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "sc"):
            if order and {order, modifier} != {"mmio", "relaxed"}:
                reader.fail(f"'{word.text}' has two memory orders", word)
            order = modifier if order != "mmio" else order
            if modifier not in _ORDERS[kind]:
                reader.fail(f"'{opcode}' has no '.{modifier}' (8.4)", word)
        elif modifier in ("v2", "v4") and kind in ("ld", "st"):
            parts = int(modifier[1])
        elif kind in ("atom", "red") and not function and atomic_function(modifier):
            function = atomic_function(modifier)
        else:
            continue
        modifiers.remove(modifier)
    cells.rest(word, modifiers)
    order, scope = _completed(cells, word, kind, order, scope)
    if kind in ("atom", "red") and not function:
        reader.fail(f"'{word.text}' names no operation", word)
    if function and type_ is not None and type_.kind in ("f", "bf") and function not in ("exch", "cas", *FUNCTIONS):
        reader.fail(f"'{word.text}' is no operation of floating-point numbers", word)
    if parts > 1 and type_ is None:
        reader.fail(f"'{word.text}' needs a type", word)
    results: tuple[str, ...] = ()
    if kind in ("ld", "atom"):
        results = cells.several(parts, cells.result) if kind == "ld" else (cells.result(),)
        cells.comma()
    if kind == "ld" and (reader.next.kind == "number" or reader.next.text == "-"):
        if parts > 1 or order != "weak":
            reader.fail("expected a location")
        return Local(result=results[0], function="mov", values=cells.values(1), type=type_, **cells.done())
    base, offset = cells.place()
    values: tuple[Operand, ...] = ()
    if kind == "st":
        cells.comma()
        values = cells.several(parts, cells.value)
    elif kind != "ld":
        cells.comma()
        values = cells.values(2 if function == "cas" else 1)
    return Memory(kind=kind, order=order, scope=scope, proxy=proxy, base=base, offset=offset, type=type_,
                  results=results, values=values, function=function, mmio=mmio, **cells.done())  # fmt: skip


def _non_coherent(cells: Cells, word: Word, modifiers: list[str]) -> str:
    """ld.global.nc, whose modifier is removed: a weak load through the texture cache (9.7.9.9), so that the texture
    proxy is the one it uses."""
    modifiers.remove("nc")
    if "global" not in modifiers:
        cells.reader.fail(f"'{word.text}' needs '.global' (9.7.9.9)", word)
    if not _ORDERS["ld"].isdisjoint(modifiers):
        cells.reader.fail(f"'{word.text}' has no memory order (9.7.9.9)", word)
    return "texture"


def _completed(cells: Cells, word: Word, kind: str, order: str, scope: str) -> tuple[str, str]:
    """Order and scope with what PTX assumes where they are absent; volatile and mmio as relaxed (8.4.1, 8.4.2)."""
    if kind == "red":  # no read operation: what public suites let it acquire has no effect (8.4)
        order = {"acquire": "relaxed", "acq_rel": "release"}.get(order, order)
    if kind in ("atom", "red"):
        return order or "relaxed", scope or "gpu"
    order = order or "weak"
    if order == "weak" and scope:
        cells.reader.fail(f"'{word.text}' is weak and has a scope", word)
    if order == "volatile":
        if scope:
            cells.reader.fail(f"'{word.text}' is volatile and has a scope", word)
        return "relaxed", "sys"
    if order == "mmio":
        if scope != "sys":
            cells.reader.fail("'.mmio' needs '.relaxed.sys'", word)
        return "relaxed", "sys"
    if order != "weak" and not scope:
        cells.reader.fail(f"'{word.text}' needs a scope", word, "write '.cta', '.cluster', '.gpu' or '.sys'")
    return order, scope
