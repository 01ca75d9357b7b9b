"""Calls: conventions, attributes, bundles."""

from __future__ import annotations

from functools import partial

from . import names
from .attributes import RESULT
from .operands import Line, Operands
from .stream import BitcodeError

#: Flags of a call's record.
_TAIL, _MUST_TAIL, _EXPLICIT, _NO_TAIL, _FAST = 1, 1 << 14, 1 << 15, 1 << 16, 1 << 17
_INVOKE_EXPLICIT = 1 << 13


def call(of: Operands) -> Line:
    attributes, bits = of.take(), of.take()
    fast = names.fast_flags(of.take()) if bits & _FAST else ""
    written = of.type() if bits & _EXPLICIT else None
    callee, pointer = of.pair()
    function = written or pointer.pointee
    if function is None or function.kind != "function":
        raise BitcodeError("a call names no type of a function")
    given = [
        (type, of.operand(type), of.attributes.of(attributes, n)) for n, type in enumerate(function.elements[1:], 1)
    ]
    while of.left:
        number, type = of.pair()
        given.append((type, partial(of.text, number), of.attributes.of(attributes, len(given) + 1)))
    word = "musttail " if bits & _MUST_TAIL else "notail " if bits & _NO_TAIL else "tail " if bits & _TAIL else ""
    convention = _convention(bits >> 1 & 0x3FF)
    shown = function.text if function.open else function.elements[0].text
    head = f"{word}call {fast}{convention}{of.attributes.of(attributes, RESULT).lstrip()}".rstrip()
    groups, bundles = of.attributes.of_function(attributes), _bundles(of)
    return Line("call", function.elements[0], lambda: f"{head} {shown} {of.text(callee)}("
                + ", ".join(f"{type.text}{words} {value()}" for type, value, words in given)
                + f"){groups}{bundles}")  # fmt: skip


def _convention(number: int) -> str:
    return f"{word} " if (word := names.CONVENTIONS.get(number, f"cc {number}")) else ""


def _bundles(of: Operands) -> str:
    """Bundles stand in records before their call."""
    tags = [of.tags[one[0]] if one and one[0] < len(of.tags) else "" for one in of.bundles]
    of.bundles.clear()
    return f" [ {', '.join(f'{names.quoted(tag)}()' for tag in tags)} ]" if tags else ""


def invoke(of: Operands) -> Line:
    of.take()
    bits, normal, unwind = of.take(), of.take(), of.take()
    function = of.type() if bits & _INVOKE_EXPLICIT else None
    callee, pointer = of.pair()
    function = function or pointer.pointee
    of.bundles.clear()
    return Line("invoke", function.elements[0] if function else None, lambda: f"invoke void {of.text(callee)}() "
                f"to label {of.label(normal)} unwind label {of.label(unwind)}")  # fmt: skip
