"""What can be wrong with a binary input or a link: the codes PTX8xx, and how to raise them."""

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
        "The file starts like a container, fatbin or ELF file but its content contradicts itself: it was truncated, "
        "a byte changed (the content hash differs), or a size, offset or index points outside the file. Nothing of it "
        "is used. Build it again, or copy it again.",
    ),
    NEWER: (
        "container of a newer format",
        "The container was written by a newer ptx-as whose format this version does not know. Update ptxtools, or "
        "assemble the PTX text again with this version.",
    ),
    NO_PTX: (
        "no PTX inside",
        "The fatbin, cubin or ELF file holds no PTX text (only machine code, or no device code at all). Build it with "
        "PTX embedded: `nvcc -gencode arch=compute_90,code=compute_90`.",
    ),
    COMPRESSION: (
        "compression that cannot be undone",
        "The entry is compressed by a method that is unknown, or whose Python package is not installed: "
        "`pip install zstandard` for Zstandard.",
    ),
    UNWRITABLE: (
        "module cannot be put into a container",
        "A figure of the module is beyond what the format (ELF64) can hold, such as a variable of more than 2**63 "
        "bytes or an initialised variable of more than 256 MiB.",
    ),
    UNDEFINED: (
        "undefined symbol",
        "A function or variable is declared `.extern` or used, and no input defines it. Add the module that defines "
        "it, or use `ptx-as -c`, which does not link. Names of the CUDA runtime (vprintf, malloc, free, __assertfail, "
        "__cudaCDP2*) need no definition.",
    ),
    DUPLICATE: (
        "duplicate symbol",
        "Two inputs define the same `.visible` name. Make one of them `.weak`, or drop the linkage directive of one: "
        "names without linkage stay inside their module.",
    ),
    MISMATCH: (
        "declarations of one symbol differ",
        "A declaration and the definition of a symbol disagree about its kind, space, type, size or parameters. A "
        "call through the declaration would pass its arguments wrongly.",
    ),
    INCOMPATIBLE: (
        "modules that cannot be linked together",
        "The inputs declare different address sizes, or targets of which none can run the code of all of them (two "
        "different `a` targets).",
    ),
}


def fail(code: str, message: str, name: str, *help_lines: str) -> NoReturn:
    """Raise a PtxError with one diagnostic about the file `name` as a whole."""
    raise PtxError([Diagnostic(code, message, source=Source("", name), help=help_lines)])


class Damage(Exception):  # noqa: N818 - what it says about the bytes
    """Raised inside the readers when bytes make no sense; the public functions turn it into a PtxError."""


#: What the readers raise on bytes that make no sense.
DAMAGE = (
    Damage, IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, StopIteration, RecursionError,
    struct.error,
)  # fmt: skip
