"""The dialects of NVVM IR (1): that of LLVM 7.0.1, with typed pointers, and that of LLVM 18.1.8, with opaque ones."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Diagnostic, PtxError, Source

LLVM7, MODERN = "7", "modern"
DIALECTS = (LLVM7, MODERN)
MIXED = "NVVM103"
_TO_A_NAME = re.compile(r'label %"\d+"')
_TO_A_NUMBER = re.compile(r"label %\d")
_NUMBER_AS_LABEL = re.compile(r"^(\s*)(\d+):", re.MULTILINE)
_UNTYPED_WORD = re.compile(r"\b(?:byval|sret)\b(?!\()")
#: A string, a comment, or an attribute that has a type in later LLVMs, without it.
_UNTYPED = re.compile(r'"[^"]*"|;[^\n]*|(?<![\w.$%@-])(byval|sret)\b(?![\w.$(-])')
#: What a parameter points to.
_POINTEE = re.compile(r"\s*(.*?)\s*(?:addrspace\(\d+\)\s*)?\*[^*]*\Z", re.DOTALL)


def check_dialect(dialect: str | None) -> None:
    """Raises ValueError for a dialect that there is not."""
    if dialect is not None and dialect not in DIALECTS:
        raise ValueError(f"unknown dialect '{dialect}' of NVVM IR; there are {' and '.join(DIALECTS)}")


def demand_dialect(data: bytes, text: str | None, name: str, dialect: str) -> None:
    """Raise PtxError at the first pointer of the other dialect. text: of the module, None for bitcode (`data`)."""
    check_dialect(dialect)
    span, source = (0, 0), Source(text or "", name)
    if text is None:
        from .bitcode import BitcodeError, facts_of

        try:
            facts = facts_of(data)
        except BitcodeError:
            return  # which LLVM says
        wrong = facts.typed if dialect == MODERN else facts.opaque
    else:
        from .assembly import parse

        module, _ = parse(source)
        at = module.typed_at if dialect == MODERN else module.opaque_at
        wrong, span = at >= 0, (at, at + (1 if dialect == MODERN else 3))
    if wrong:
        has = "the modern dialect has no typed pointers" if dialect == MODERN else (
            "the dialect of LLVM 7 has no opaque pointers")  # fmt: skip
        raise PtxError([Diagnostic(MIXED, has, span, source, section="1")])


def branches_to_numbers(text: str) -> tuple[bool, bool]:
    """Whether branches of a text go to blocks whose names are numbers, as the label `1:` is to LLVM 7, and whether any
    go to numbers."""
    return _TO_A_NAME.search(text) is not None, _TO_A_NUMBER.search(text) is not None


def with_quoted_labels(text: str) -> str:
    """A text of the dialect of LLVM 7, in which labels are names, as later LLVMs read them: quoted if they are
    numbers."""
    return _NUMBER_AS_LABEL.sub(r'\1"\2":', text) if branches_to_numbers(text)[0] else text


def with_types_behind_byval(text: str) -> str:
    """A text of the dialect of LLVM 7, in which `byval` and `sret` have no type, as later LLVMs read them:
    `%S* byval(%S)`."""
    return _UNTYPED.sub(_with_type, text) if _UNTYPED_WORD.search(text) else text


def _with_type(found: re.Match[str]) -> str:
    if found[1] is None:  # a string or a comment
        return found[0]
    text, at, depth = found.string, found.start(1) - 1, 0
    while at >= 0 and (depth or text[at] not in "(,"):
        depth += (text[at] in ")]}>") - (text[at] in "([{<")
        at -= 1
    pointee = _POINTEE.match(text, at + 1, found.start(1))
    return f"{found[1]}({pointee[1]})" if pointee else found[0]
