"""NVVM IR to PTX: text or bitcode of either dialect, through LLVM's back end in a process of its own."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ptxtools import cache
from ptxtools.diagnostics import Diagnostic, PtxError, Source
from ptxtools.records import dataclass, replace

from . import toolkit
from .bitcode import BitcodeError, facts_of
from .child import Refusal, Request, lowered
from .content import is_bitcode
from .dialects import MODERN, demand_dialect, with_quoted_labels, with_types_behind_byval
from .expressions import with_instructions
from .failures import INVALID, as_error
from .lines import with_lines
from .literals import with_old_numbers
from .shim import mentioned, shim

#: The target of a module that names none, and for which none was asked.
DEFAULT_TARGET = "sm_90"
BACKENDS = ("llvm", "libnvvm")
#: The same for libnvvm and the modern dialect, which it does not take for older targets (1).
MODERN_TARGET = "sm_100"
_POINTER = re.compile(r"[(,=]\s*ptr\b|\bptr [%@]|\bload \w+, ptr\b")
#: How far LLVM optimises: as `clang -O2`.
_LEVEL = 2
_MOST_BYTES, _MOST_FILES = 32 << 20, 256


@dataclass(frozen=True, slots=True)
class Lowering:
    """How to lower. target: "sm_90a", or None for the one that the module's functions name, else `DEFAULT_TARGET`;
    version: of PTX, None for the newest that the back end writes; libdevice: the file with NVIDIA's `__nv_*` functions,
    None for that of an installed CUDA toolkit; backend: "llvm", that of llvmlite, or "libnvvm"; locations: whether the
    instructions of a text without debug information get their lines in it as `.loc` (by LLVM); dialect: "7" or
    "modern", the one that is meant, so that pointers of the other are an error; None is the one that a module is in."""

    target: str | None = None
    version: tuple[int, int] | None = None
    libdevice: str | None = None
    backend: str = "llvm"
    locations: bool = True
    dialect: str | None = None


def lower(modules: str | bytes | Sequence[str | bytes], name: str | Sequence[str] = "<memory>",
          how: Lowering | None = None) -> str:  # fmt: skip
    """The PTX of one module, or of several linked. name: of the files, for errors. Raises `PtxError`."""
    how = how or Lowering()
    several = [modules] if isinstance(modules, (str, bytes)) else list(modules)
    names = [name] * len(several) if isinstance(name, str) else list(name)
    inputs, sources = [], []
    for data, called in zip(several, names, strict=True):
        content, text = _content(data, called)
        if how.dialect is not None:
            demand_dialect(content, text, called, how.dialect)
        inputs.append((content, None if text is None else _placed(text, called) if how.locations else b""))
        sources.append(Source(text or "", called))
    if how.backend not in BACKENDS:
        raise ValueError(f"unknown back end '{how.backend}'; there is {' and '.join(BACKENDS)}")
    theirs = toolkit.libnvvm() if how.backend == "libnvvm" else ""
    if how.backend == "libnvvm" and not theirs:
        raise as_error(Refusal("libdevice", "libnvvm was not found: no CUDA toolkit and no nvidia-nvvm"), sources)
    modern = theirs and (how.dialect == MODERN if how.dialect else any(_is_modern(*one) for one in inputs))
    default = MODERN_TARGET if modern else DEFAULT_TARGET
    bitcode = any(placed is None for _, placed in inputs)
    lacked = shim(None if bitcode else mentioned(b"\n".join(data for data, _ in inputs)))
    library = how.libdevice or toolkit.libdevice()
    request = Request(inputs, how.target or "", default, how.version, _LEVEL, library, theirs, lacked)
    path = _path(request)
    known = cache.read_sealed(path, "nvvm", _MOST_BYTES)
    if known is not None:
        return known.decode("utf-8", "surrogateescape")
    try:
        ptx = _lowered(request)
    except Refusal as refusal:
        error = as_error(refusal, sources)
        which = inputs[max(refusal.module, 0)]
        if which[1] is None:
            error.diagnostics[0].help += (_written_by(which[0]),)
        raise error from None
    data = ptx.encode("utf-8", "surrogateescape")
    if len(data) <= _MOST_BYTES and cache.write_sealed(path, "nvvm", data):
        cache.prune(os.path.dirname(path), ".nvvm", _MOST_FILES)
    return ptx


def _lowered(request: Request) -> str:
    """The PTX; without locations if they are in wrong places."""
    try:
        return lowered(request)
    except Refusal as refusal:
        if refusal.kind != "broken" or not any(placed for _, placed in request.modules):
            raise
        return lowered(request.plain())


def _is_modern(data: bytes, placed: bytes | None) -> bool:
    """Whether a module seems to be in the modern dialect."""
    if placed is not None:
        return _POINTER.search(data.decode()) is not None
    try:
        return facts_of(data).dialect == "modern"
    except BitcodeError:
        return False


def _written_by(data: bytes) -> str:
    """What bitcode says of itself, or what is wrong with it, for the report that LLVM does not take it."""
    try:
        facts = facts_of(data)
    except BitcodeError as error:
        return f"the bitcode is damaged: {error}"
    return f"the bitcode was written by {facts.producer or 'an unknown producer'}"


def _placed(text: str, name: str) -> bytes:
    """The text with locations, empty if it is the same."""
    text = _readable(text)
    placed = with_lines(text, name)
    return b"" if placed is text else placed.encode("utf-8", "replace")


def _readable(text: str) -> str:
    """The text as the LLVM of llvmlite reads it, line by line."""
    text = with_instructions(with_old_numbers(text))
    return text if _POINTER.search(text) else with_types_behind_byval(with_quoted_labels(text))


def name_of_ptx(name: str, ptx: str) -> str:
    """The name of what a file was lowered to, for messages about it: "k.ll(sm_90a)"."""
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    return f"{name}({target[1]})" if target else name


def _content(data: str | bytes, name: str) -> tuple[bytes, str | None]:
    """The bytes for LLVM and, unless they are bitcode, the text."""
    if isinstance(data, bytes) and is_bitcode(data):
        return data, None
    if isinstance(data, bytes):
        try:
            text = data.rstrip(b"\0").decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8", "replace")
            raise _not_text(
                f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8", before, name
            ) from None
    else:
        text = data
    if "\0" in text:
        raise _not_text("the text contains a NUL character", text[: text.index("\0")], name)
    return _readable(text).encode("utf-8", "replace"), text


def _not_text(message: str, before: str, name: str) -> PtxError:
    return PtxError([Diagnostic(INVALID, message, (len(before), len(before)), Source(before, name))])


def _path(request: Request) -> str:
    """The file of the cache for a request: it depends on all that decides the PTX."""
    llvm = find_spec("llvmlite")
    version = os.path.join(os.path.dirname(llvm.origin), "_version.py") if llvm and llvm.origin else ""
    made = [
        os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        for path in (version, request.libdevice, request.libnvvm)
    ]
    digest = hashlib.blake2b(
        repr((replace(request, modules=(), shim=shim(frozenset())), version, made)).encode(), digest_size=16
    )
    digest.update(cache.code_state("nvvm").encode())
    for data, placed in request.modules:
        digest.update(b"%d %d\n" % (len(data), len(placed or b"")) + data + (placed or b""))
    return os.path.join(cache.directory(), "nvvm", f"{sys.implementation.cache_tag}-{digest.hexdigest()}.nvvm")
