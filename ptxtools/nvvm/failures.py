"""Errors of lowering: the codes NVVM9xx, and how what LLVM says becomes a finding."""

from __future__ import annotations

import re

from ptxtools.diagnostics import Diagnostic, PtxError, Source

from .child import Refusal

INVALID = "NVVM901"
UNLOWERED = "NVVM902"
TARGET = "NVVM903"
LINK = "NVVM904"
LIBRARY = "NVVM905"

#: Title and explanation of each code.
EXPLANATIONS: dict[str, tuple[str, str]] = {
    INVALID: (
        "not a module that LLVM reads",
        "LLVM, which lowers NVVM IR to PTX, does not accept the module: its text or its bitcode is malformed, or it "
        "breaks a rule that holds for every LLVM module (types, dominance, terminators). The message is LLVM's. "
        "`ptx-lint` holds the module against the specification of NVVM IR, which is stricter.",
    ),
    UNLOWERED: (
        "no PTX for this in the module",
        "The module is valid, but its back end has no PTX for something in it, or ended while looking for it: an "
        "instruction that GPUs lack (exceptions, thread-local variables), an intrinsic that the target or the PTX "
        "version lacks. The message names it where it is known. A newer target or version (`--target`, "
        "`--ptx-version`) may have it.",
    ),
    TARGET: (
        "target or version that the back end lacks",
        "The module is for another machine than NVPTX, or the back end does not know the target or the PTX version "
        "that was asked for: the LLVM of llvmlite writes PTX up to 9.0. Choose others by `--target` and "
        "`--ptx-version`.",
    ),
    LINK: (
        "modules that LLVM cannot link",
        "Two modules define the same symbol, or disagree on its type. The message is LLVM's.",
    ),
    LIBRARY: (
        "a library of the CUDA toolkit is missing",
        "The module calls functions of libdevice (`__nv_sinf`), or was to be lowered by libnvvm, and neither comes "
        "with this package. They are looked for below `CUDA_HOME` and `CUDA_PATH`, in NVIDIA's Python packages "
        "(`nvidia-nvvm` has both), and in /usr/local/cuda. `--libdevice FILE` names the bitcode itself.",
    ),
}

_CODES = {
    "parse": INVALID, "verify": INVALID, "broken": INVALID, "triple": TARGET, "target": TARGET, "link": LINK,
    "libdevice": LIBRARY, "unsupported": UNLOWERED, "abort": UNLOWERED,
}  # fmt: skip
#: What LLVM says of an exchange of 128 bits with this ordering; and such an exchange, which loads and stores become.
_NO_ORDERING = re.compile(r'NVPTX AtomicCode Printer does not support "(\w+)" ordering')
_WIDE_EXCHANGE = re.compile(r"\b(?:atomicrmw xchg|load atomic|store atomic)\b[^\n;]*\bi128\b")
_PLACE = re.compile(r"<string>:(\d+):(\d+): error: (.*)")


def as_error(refusal: Refusal, sources: list[Source]) -> PtxError:
    """The error that a refusal is to the user. sources: of the inputs, in their order, empty for bitcode."""
    source = sources[max(refusal.module, 0)]
    lines = [line.removeprefix("error: ") for line in refusal.message.splitlines() if line.strip()] or [
        "LLVM does not say why"
    ]
    placed = _PLACE.match(lines[0])
    if placed and source.text:
        at = _offset(source.text, int(placed[1]), int(placed[2]))
        return PtxError([Diagnostic(INVALID, placed[3], (at, _end(source.text, at)), source)])
    message, *rest = lines
    if ordering := _NO_ORDERING.search(message):
        wide = _WIDE_EXCHANGE.search(source.text)
        what = "an exchange" if wide is None or wide[0].startswith("atomicrmw") else f"a {wide[0].split()[0]}"
        wording = f"this LLVM has no PTX for {what} of i128 with the ordering {ordering[1]}"
        weaker = "acq_rel and weaker orderings have PTX" if what == "an exchange" else "weaker orderings have PTX"
        return PtxError([
            Diagnostic(UNLOWERED, wording, wide.span() if wide else (0, 0), source, help=(weaker,))
        ])  # fmt: skip
    return PtxError([Diagnostic(_CODES[refusal.kind], message, _defined(source.text, message), source,
                                help=tuple(rest[:4]))])  # fmt: skip


def _defined(text: str, message: str) -> tuple[int, int]:
    """Where the variable that a message begins with is defined; the begin of the text if it names none."""
    named = re.match(r"(@[-\w$.]+):", message)
    found = re.search(rf"^{re.escape(named[1])}(?= *=)", text, re.MULTILINE) if named else None
    return found.span() if found else (0, 0)


def _offset(text: str, line: int, column: int) -> int:
    """The character at a line and a column in bytes, both from 1."""
    lines = text.split("\n")
    before = sum(len(one) + 1 for one in lines[: line - 1])
    here = lines[line - 1] if line <= len(lines) else ""
    return min(before + len(here.encode()[: column - 1].decode("utf-8", "ignore")), len(text))


def _end(text: str, at: int) -> int:
    """Where the word at an offset ends."""
    word = re.compile(r"[%@!#]?[\w.$-]+|\S?").match(text, at)
    return word.end() if word else at
