"""Starts the process that lowers modules, and turns each of its ends into an answer."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from ptxtools.records import dataclass, field, replace

from .shim import Shim

#: LLVM goes on without a target or a feature that it does not know.
_UNKNOWN = re.compile(r"^'([^']*)' is not a recognized (processor|feature)", re.MULTILINE)
#: How LLVM ends its process when a module with debug information breaks a rule, behind the rule.
_BROKEN = "LLVM ERROR: Broken module found"
#: The newest PTX version that the LLVM of llvmlite writes.
NEWEST = (9, 0)
_WORKER = os.path.join(os.path.dirname(__file__), "worker.py")


@dataclass(frozen=True, slots=True)
class Request:
    """What to lower. modules: bytes, and for a text the same with locations, empty for none; target: "sm_90a", or ""
    for the modules' own, else `default`; version: of PTX, None for the newest; level: of optimisation, 0 to 3;
    libdevice: the path of its bitcode, or "" for none; libnvvm: the path of that library, if it lowers instead of LLVM;
    shim: functions for intrinsics that LLVM lacks."""

    modules: Sequence[tuple[bytes, bytes | None]]
    target: str
    default: str
    version: tuple[int, int] | None
    level: int
    libdevice: str = ""
    libnvvm: str = ""
    shim: Shim = field(default_factory=lambda: Shim("", {}))

    def plain(self) -> Request:
        """The same without locations."""
        return replace(self, modules=[(data, None if placed is None else b"") for data, placed in self.modules])


@dataclass(frozen=True, slots=True)
class Refusal(Exception):  # noqa: N818 - an answer
    """Why there is no PTX. kind: "parse", "verify", "link", "libdevice", "triple", "target", "unsupported", "broken"
    (with debug information) or "abort"; module: the number of the input that it is about, or -1."""

    kind: str
    message: str
    module: int = -1


def lowered(request: Request) -> str:
    """The PTX of the modules, linked. Raises `Refusal`."""
    parts = [part for data, placed in request.modules for part in (data, placed or b"")]
    parts.append(request.shim.text.encode())
    head = {
        "sizes": [len(part) for part in parts],
        "texts": [placed is not None for _, placed in request.modules],
        "target": request.target,
        "default": request.default,
        "version": "".join(map(str, request.version or NEWEST)),
        "asked": "".join(map(str, request.version or ())),
        "libnvvm": request.libnvvm,
        "level": request.level,
        "libdevice": request.libdevice,
        "shim": request.shim.functions,
    }
    told = json.dumps(head).encode() + b"\n" + b"".join(parts)
    done = subprocess.run([sys.executable, _WORKER, _place_of_llvm()], input=told, capture_output=True, check=False)
    first, _, rest = done.stdout.partition(b"\n")
    said = done.stderr.decode("utf-8", "replace").strip()
    unknown = _UNKNOWN.search(said)
    if unknown is not None:
        raise Refusal("target", f"this LLVM does not know {_unknown(unknown)}")
    if _BROKEN in said:
        raise Refusal("broken", said.partition(_BROKEN)[0].strip())
    if done.returncode or not first:
        raise Refusal("abort", _last_words(said, done.returncode, "libnvvm" if request.libnvvm else "LLVM"))
    answer = json.loads(first)
    if not answer["done"]:
        raise Refusal(answer["kind"], answer["message"], answer["module"])
    return rest.decode("utf-8", "surrogateescape")


def _unknown(what: re.Match[str]) -> str:
    if what[2] == "processor":
        return f"the target {what[1]}"
    digits = what[1].removeprefix("+ptx")
    return f"PTX {digits[:-1]}.{digits[-1]}"


def _place_of_llvm() -> str:
    """The folder that llvmlite is imported from."""
    found = find_spec("llvmlite")
    if found is None or found.origin is None:
        raise Refusal("abort", "the package llvmlite is missing")
    return os.path.dirname(os.path.dirname(found.origin))


def _last_words(said: str, status: int, who: str) -> str:
    """What was printed before the process ended, without the stack that follows."""
    lines = said.splitlines()
    for n, line in enumerate(lines):
        if line.startswith("LLVM ERROR: "):
            where = next((w for w in lines[n + 1 :] if w.startswith("In function: ")), "")
            return line.removeprefix("LLVM ERROR: ") + (f" (in @{where[13:]})" if where else "")
        if "Assertion `" in line:
            return "assertion failed in LLVM: " + line.partition("Assertion `")[2].removesuffix("' failed.")
    if status < 0:
        return f"{who} ended with {signal.Signals(-status).name}" + (f": {lines[-1]}" if lines else "")
    return lines[-1] if lines else f"{who} ended with status {status}"
