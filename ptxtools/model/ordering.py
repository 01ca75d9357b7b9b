"""Reads fences and barriers, as PTX writes them (9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .programs import PROXIES, SCOPES, Barrier, Fence, Instruction, ProxyFence
from .refusals import not_modelled

if TYPE_CHECKING:
    from .instructions import Cells
    from .words import Word

#: State spaces that a fence of the async proxy may be limited to (9.7.13.4).
_FENCED = ("", "global", "shared::cta", "shared::cluster")
#: Of one-sided fences: the objects that they are for, and the size of a tensor map, bytes (9.7.13.4).
_RESTRICTED = {"release": "sync_restrict::shared::cta", "acquire": "sync_restrict::shared::cluster"}
_TENSOR_MAP = 128
_FENCES = ("sc", "acq_rel", "acquire", "release")
#: Reductions of a barrier, with the types of their results (9.7.13.1).
_REDUCTIONS = {"popc": "u32", "and": "pred", "or": "pred"}


def read_fence(cells: Cells, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
    """fence and membar, and their forms for proxies (9.7.13.4)."""
    reader = cells.reader
    if modifiers and modifiers[0] in ("proxy", "alias"):
        if "::" in modifiers[-1 if len(modifiers) == 1 else 1]:
            return _read_one_sided(cells, word, modifiers[1:])
        proxy = modifiers[-1] if len(modifiers) == 1 else modifiers[1]
        space = ".".join(modifiers[2:])
        if proxy not in (*PROXIES[:-1], "alias") or space not in (_FENCED if proxy == "async" else ("",)):
            not_modelled(reader, word)
        return ProxyFence(proxy=proxy, space=space, **cells.done())
    if modifiers == ["mbarrier_init", "release", "cluster"]:
        return Fence(order="release", scope="cluster", limited=True, **cells.done())
    if opcode == "fence" and modifiers[:1] in (["release"], ["acquire"]) and tuple(modifiers[1:]) == (
        _RESTRICTED[modifiers[0]], "cluster"
    ):  # fmt: skip
        space = _RESTRICTED[modifiers[0]].partition("::")[2]
        return Fence(order=modifiers[0], scope="cluster", space=space, **cells.done())
    order = "sc" if opcode == "membar" else "acq_rel"
    scope = ""
    for modifier in list(modifiers):
        if modifier in SCOPES or (modifier == "gl" and opcode == "membar"):
            scope = "gpu" if modifier == "gl" else modifier
        elif modifier in _FENCES and opcode == "fence":
            order = modifier
        else:
            not_modelled(reader, word, modifier)
    if not scope:
        reader.fail(f"'{word.text}' needs a scope", word, "write '.cta', '.cluster', '.gpu' or '.sys'")
    return Fence(order=order, scope=scope, **cells.done())


def _read_one_sided(cells: Cells, word: Word, modifiers: list[str]) -> Instruction:
    """fence.proxy from the generic proxy to that of tensor maps, or, for shared memory, to the async proxy."""
    reader = cells.reader
    kinds, order, *rest = (*modifiers, "")[: max(len(modifiers), 2)]
    if order not in _RESTRICTED:
        not_modelled(reader, word)
    if kinds == "async::generic" and rest == [_RESTRICTED[order], "cluster"]:
        space = _RESTRICTED[order].partition("::")[2]
        return ProxyFence(proxy="async", space=space, order=order, scope="cluster", **cells.done())
    if kinds != "tensormap::generic" or len(rest) != 1 or rest[0] not in SCOPES:
        not_modelled(reader, word)
    if order == "release":
        return ProxyFence(proxy="tensormap", order=order, scope=rest[0], **cells.done())
    place = cells.place()
    cells.comma()
    size = reader.number("a number of bytes")
    if size != _TENSOR_MAP:
        reader.fail(f"expected the size of a tensor map, {_TENSOR_MAP} bytes (9.7.13.4)", word)
    return ProxyFence(proxy="tensormap", order=order, scope=rest[0], places=(place,), size=size, **cells.done())


def read_barrier(cells: Cells, word: Word, opcode: str, modifiers: list[str]) -> Instruction:
    """bar and barrier of a CTA, of a warp, barrier of a cluster (9.7.13.1 to 9.7.13.3)."""
    reader = cells.reader
    words = [modifier for modifier in modifiers if modifier != "aligned"]
    place = "cluster" if "cluster" in words else "cta"
    named = [modifier for modifier in words if modifier not in ("cta", "cluster")]
    mode = named[0] if named else ""
    if place == "cluster":
        order = named[1] if len(named) > 1 else "release" if mode == "arrive" else "acquire"
        allowed = {"arrive": ("release", "relaxed"), "wait": ("acquire",)}
        if opcode != "barrier" or order not in allowed.get(mode, ()) or len(named) > 2:
            not_modelled(reader, word)
        return Barrier(mode=mode, place=place, ordering=order != "relaxed", **cells.done())
    if opcode == "bar" and words == ["warp", "sync"]:
        return Barrier(mode="sync", place="warp", numbers=(cells.value(),), **cells.done())
    if mode == "red":
        return _read_reduction(cells, word, named[1:])
    if mode not in ("sync", "arrive") or len(named) > 1:
        not_modelled(reader, word)
    operands = [cells.value()]
    while reader.accept(","):
        operands.append(cells.value())
    # The public suites write `bar.cta.sync INSTANCE, BARRIER, COUNT`; PTX has barrier and count.
    names = 2 if "cta" in words and not cells.fixed and (opcode == "bar" or len(operands) == 3) else 1
    if len(operands) > names + 1:
        reader.fail(f"'{word.text}' has too many operands", word)
    count = operands[names] if len(operands) > names else None
    return Barrier(mode=mode, place=place, numbers=tuple(operands[:names]), count=count, **cells.done())


def _read_reduction(cells: Cells, word: Word, named: list[str]) -> Instruction:
    """bar.red: result, barrier, maybe the number of threads, predicate. named: the reduction and the type of its
    result, which tests may leave out."""
    reader = cells.reader
    reduction, *types = named or [""]
    if reduction not in _REDUCTIONS or types not in ([], [_REDUCTIONS[reduction]]):
        not_modelled(reader, word)
    result = cells.result()
    operands = []
    negated = None
    while negated is None and reader.accept(","):
        negated = reader.accept("!")
        operands.append(cells.value())
    if not 2 <= len(operands) <= 3:
        reader.fail(f"'{word.text}' needs a barrier and a predicate", word)
    number, *count, predicate = operands
    return Barrier(mode="sync", place="cta", numbers=(number,), count=count[0] if count else None, result=result,
                   reduction=reduction, predicate=predicate, negated=negated is not None, **cells.done())  # fmt: skip
