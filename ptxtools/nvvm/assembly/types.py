"""The types of LLVM IR. Equal types are one object, so `is` compares them."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Kinds of types that a name alone says, with their bits.
FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "fp128": 128, "x86_fp80": 80, "ppc_fp128": 128}
_WORDS = ("void", "label", "metadata", "token", "x86_mmx", "x86_amx", "opaque")
#: The widest integer: of LLVM 7 and later.
MOST_BITS = (1 << 23) - 1


class Type:
    """A type. kind: "int", "float", "pointer", "array", "vector", "struct", "named", "function", "target" or its own
    word; bits: of a number; space: of a pointer; count: of an array or vector; elements: of an aggregate, the pointee
    of a typed pointer (nothing for an opaque one), or the result and parameters of a function; open: a function with
    variable arguments; a packed struct; a scalable vector."""

    __slots__ = ("bits", "count", "elements", "kind", "open", "space", "text")

    def __init__(self, text: str, kind: str, bits: int = 0, space: int = 0, count: int = 0,
                 elements: tuple[Type, ...] = (), open: bool = False) -> None:  # fmt: skip
        self.text, self.kind, self.bits, self.space = text, kind, bits, space
        self.count, self.elements, self.open = count, elements, open

    def __str__(self) -> str:
        return self.text

    @property
    def scalar(self) -> Type:
        """The type of one lane: of an element, if this is a vector."""
        return self.elements[0] if self.kind == "vector" else self

    @property
    def pointee(self) -> Type | None:
        """What a typed pointer points to; None for an opaque one."""
        return self.elements[0] if self.kind == "pointer" and self.elements else None


_known: dict[str, Type] = {}


def _one(text: str, kind: str, bits: int = 0, space: int = 0, count: int = 0, elements: tuple[Type, ...] = (),
         open: bool = False) -> Type:  # fmt: skip
    found = _known.get(text)
    if found is None:
        found = _known[text] = Type(text, kind, bits, space, count, elements, open)
    return found


#: The types that are one word; integers are added as they are met.
SIMPLE: dict[str, Type] = {
    **{name: _one(name, "float", bits) for name, bits in FLOATS.items()},
    **{word: _one(word, word) for word in _WORDS},
    **{f"i{bits}": _one(f"i{bits}", "int", bits) for bits in (1, 8, 16, 32, 64, 128)},
    "ptr": _one("ptr", "pointer"),
}
I1, I8, I16, I32, I64 = (SIMPLE[f"i{bits}"] for bits in (1, 8, 16, 32, 64))
VOID, LABEL, METADATA = SIMPLE["void"], SIMPLE["label"], SIMPLE["metadata"]
_INTEGER = re.compile(r"i([1-9]\d{0,7})")


def simple(word: str) -> Type | None:
    """The type that a word is, if it is one."""
    found = SIMPLE.get(word)
    if found is None:
        match = _INTEGER.fullmatch(word)
        if match and int(match[1]) <= MOST_BITS:
            found = _one(word, "int", int(match[1]))
    return found


def _in_space(space: int) -> str:
    return f" addrspace({space})" if space else ""


def opaque_pointer(space: int = 0) -> Type:
    return _one("ptr" + _in_space(space), "pointer", space=space)


def pointer(to: Type, space: int = 0) -> Type:
    return _one(f"{to.text}{_in_space(space)}*", "pointer", space=space, elements=(to,))


def array(count: int, of: Type) -> Type:
    return _one(f"[{count} x {of.text}]", "array", count=count, elements=(of,))


def vector(count: int, of: Type, scalable: bool = False) -> Type:
    return _one(f"<{'vscale x ' if scalable else ''}{count} x {of.text}>", "vector", count=count, elements=(of,),
                open=scalable)  # fmt: skip


def struct(elements: Sequence[Type], packed: bool = False) -> Type:
    inside = ", ".join(one.text for one in elements)
    text = f"{{ {inside} }}" if inside else "{}"
    return _one(f"<{text}>" if packed else text, "struct", count=len(elements), elements=tuple(elements), open=packed)


def named(name: str) -> Type:
    """A type by its name, `%S`; what it is stands in the module."""
    return _one(name, "named")


def target_type(text: str) -> Type:
    return _one(text, "target")


def function(result: Type, params: Sequence[Type], variadic: bool = False) -> Type:
    inside = ", ".join([*(one.text for one in params), *(["..."] if variadic else [])])
    return _one(f"{result.text} ({inside})", "function", elements=(result, *params), open=variadic)


def like(shape: Type, element: Type) -> Type:
    """The type with this element: a vector as long as `shape`, if that is one."""
    return vector(shape.count, element, shape.open) if shape.kind == "vector" else element
