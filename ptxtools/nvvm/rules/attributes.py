"""Attributes of parameters and functions: closed lists (3.16, 3.20, 3.21)."""

from __future__ import annotations

import re

from ..assembly.nodes import Word
from ..assembly.tokens import unescaped, words
from ..assembly.types import Type
from .context import Context

#: LLVM 7's attributes of parameters, all supported but for the next two (3.16), and LLVM 18's.
_PARAMETER_7 = words(
    "zeroext signext byval sret align noalias nocapture returned nonnull dereferenceable dereferenceable_or_null "
    "readnone readonly writeonly inreg nest"
)
#: Accepted by LLVM, and without a place in NVVM IR: conventions of other machines.
_REFUSED = words("inalloca swiftself swifterror swiftasync preallocated byref elementtype immarg")
_PARAMETER_MODERN = _PARAMETER_7 | {
    "noundef",
    "nofree",
    "nofpclass",
    "writable",
    "dead_on_unwind",
    "allocalign",
    "allocptr",
    "range",
    "captures",
}
IGNORED_PARAMETER = frozenset(("inreg", "nest"))
#: 3.21
FUNCTION = words(
    "allocsize alwaysinline cold convergent inaccessiblememonly inaccessiblemem_or_argmemonly inlinehint minsize "
    "no-jump-tables noduplicate noinline noreturn norecurse nounwind null-pointer-is-valid optforfuzzing optnone "
    "optsize readnone readonly writeonly argmemonly speculatable strictfp"
)
#: How the modern dialect spells readnone, argmemonly and their like, and null-pointer-is-valid.
_MODERN_SPELLINGS = frozenset(("memory", "null_pointer_is_valid"))
#: What LLVM gives intrinsics by itself: a text that LLVM has printed shows it.
_OF_INTRINSICS = words("nocallback nofree nosync willreturn mustprogress nomerge memory")
#: Attributes of functions whose value is an address or an argument of the result.
_POINTERS_ONLY = words(
    "byval sret noalias nocapture nonnull dereferenceable dereferenceable_or_null nest readnone readonly writeonly"
)


def _key(word: Word) -> str:
    text = word[0]
    if text[:1] == '"':
        return unescaped(text[: text.index('"', 1) + 1])
    found = re.match(r"[-\w]+", text)
    return found[0] if found else text


def check_parameter_attributes(context: Context, words: list[Word], type: Type, intrinsic: bool = False) -> None:
    """Attributes of a parameter, an argument or a result (3.16)."""
    known = _PARAMETER_MODERN if context.modern else _PARAMETER_7
    for word in words:
        key = _key(word)
        if key in IGNORED_PARAMETER:
            context.at_word("NVVM220", word, f"parameter attribute '{key}' is ignored")
        elif word[0][:1] == '"':
            context.at_word("NVVM234", word, f"attribute {word[0]} has no meaning in NVVM IR")
        elif key in ("byval", "sret") and "(" in word[0] and not context.modern:
            context.at_word("NVVM103", word, f"'{key}' with a type is not in LLVM 7: it came with LLVM 9 and later",
                            f"{key}, for the pointee")  # fmt: skip
        elif key in _POINTERS_ONLY and type.scalar.kind not in ("pointer", "named", "metadata"):
            context.at_word("NVVM118", word, f"attribute '{key}' is for pointers, not for {type}")
        elif key in ("zeroext", "signext") and type.kind != "int":
            context.at_word("NVVM118", word, f"attribute '{key}' is for integers, not for {type}")
        elif key not in known and not (intrinsic and key in (*_OF_INTRINSICS, "immarg", "noundef", "elementtype")):
            context.at_word("NVVM219", word, f"parameter attribute '{key}' is not supported")
    keys = {_key(word) for word in words}
    if {"zeroext", "signext"} <= keys:
        context.at_word("NVVM118", words[0], "'zeroext' and 'signext' exclude each other")


def check_function_attributes(context: Context, words: list[Word], intrinsic: bool = False) -> None:
    """Attributes of a function or a call, groups included (3.20, 3.21)."""
    for word in words:
        if word[0][:1] == "#":
            if intrinsic and word[0] in context.module.groups:
                context.intrinsic_groups.add(word[0])
            else:
                context.used_groups.add(word[0])
            continue
        _check_function_attribute(context, word, intrinsic)


def _check_function_attribute(context: Context, word: Word, intrinsic: bool) -> None:
    key = _key(word)
    if key in FUNCTION or (context.modern and key in _MODERN_SPELLINGS) or (intrinsic and key in _OF_INTRINSICS):
        return
    if word[0][:1] == '"':
        context.at_word("NVVM234", word, f"attribute {word[0][:60]} has no meaning in NVVM IR")
    else:
        context.at_word("NVVM221", word, f"function attribute '{key}' is not supported")


def check_groups(context: Context) -> None:
    """Groups (3.20): each once, however many use it; one that only intrinsics use may have what LLVM gives those."""
    module = context.module
    for use in module.group_uses:
        if use[0] not in module.groups:
            context.at_word("NVVM234", use, f"attribute group '{use[0]}' is not defined, and adds nothing")
    only = context.intrinsic_groups - context.used_groups
    for name, group in module.groups.items():
        for word in group:
            _check_function_attribute(context, word, name in only)
