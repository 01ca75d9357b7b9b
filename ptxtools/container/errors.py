"""Errors of binary inputs and of linking: the codes PTX8xx, and how to raise them."""

from __future__ import annotations

import struct
from typing import NoReturn

from ptxtools.diagnostics import Diagnostic, PtxError, Source

DAMAGED = "PTX801"
NEWER = "PTX802"
NO_PTX = "PTX803"
COMPRESSION = "PTX804"
UNWRITABLE = "PTX805"
UNDEFINED = "PTX811"
DUPLICATE = "PTX812"
MISMATCH = "PTX813"
INCOMPATIBLE = "PTX814"

#: Title and explanation of each code.
EXPLANATIONS: dict[str, tuple[str, str]] = {
    DAMAGED: (
        "damaged container or binary",
        "The file starts like a container, fatbin or ELF file but its content is inconsistent: it was truncated, "
        "a byte changed (the content hash differs), or a size, offset or index points outside the file. "
        "Nothing from it is used. Rebuild it, or copy it again.",
    ),
    NEWER: (
        "container of a newer format",
        "The container was written by a newer ptx-as in a format unknown to this version. Update ptxtools, or "
        "assemble the PTX text with this version.",
    ),
    NO_PTX: (
        "no PTX inside",
        "The fatbin, cubin or ELF file contains no PTX text (only machine code, or no device code at all). Build it "
        "with PTX embedded: `nvcc -gencode arch=compute_90,code=compute_90`.",
    ),
    COMPRESSION: (
        "unsupported compression",
        "The entry is compressed with an unknown method, or one whose Python package is not installed: "
        "`pip install zstandard` for Zstandard.",
    ),
    UNWRITABLE: (
        "module does not fit a container",
        "A size in the module exceeds the limits of the format (ELF64), such as a variable of more than 2**63 "
        "bytes or an initialised variable of more than 256 MiB.",
    ),
    UNDEFINED: (
        "undefined symbol",
        "A function or variable is declared `.extern` or used, but no input defines it. Add the module that defines "
        "it, or use `ptx-as -c`, which does not link. Names of the CUDA runtime (vprintf, malloc, free, __assertfail, "
        "__cudaCDP2*) need no definition.",
    ),
    DUPLICATE: (
        "duplicate symbol",
        "Two inputs define the same `.visible` name. Make one of them `.weak`, or remove the linkage directive of one: "
        "names without linkage are local to their module.",
    ),
    MISMATCH: (
        "declarations of one symbol differ",
        "A declaration and the definition of a symbol disagree on its kind, space, type, size or parameters. A "
        "call through the declaration would pass its arguments incorrectly.",
    ),
    INCOMPATIBLE: (
        "modules that cannot be linked together",
        "The inputs declare different address sizes, or targets none of which can run all of their code (two "
        "different `a` targets).",
    ),
}


def fail(code: str, message: str, name: str, *help_lines: str) -> NoReturn:
    """Raise a PtxError with one diagnostic about the file `name` as a whole."""
    raise PtxError([Diagnostic(code, message, source=Source("", name), help=help_lines)])


class Damage(Exception):  # noqa: N818 - what it says about the bytes
    """Raised inside the readers for invalid bytes; the public functions turn it into a PtxError."""


#: The exceptions of readers on invalid bytes.
DAMAGE = (
    Damage, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, StopIteration, RecursionError,
    struct.error,
)  # fmt: skip
