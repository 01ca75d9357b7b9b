"""Demangle C++ (Itanium, `_Z…`) and Rust (v0, `_R…`) names.

LLVM's demangler (pycxxfilt) does the work, and is loaded for the first such name. It has no limits of its own: a few
hundred characters can expand to gigabytes, and deep nesting overflows its stack. So a name that might expand like that
(long names of template libraries can) is demangled in a process with limits; if that fails, it stays mangled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import log

#: The most characters of a demangled name.
_MOST = 1 << 15
#: Names up to this length cannot overflow a thread's stack by nesting.
_LONGEST = 2048
#: The worst-case length of a name that is demangled in this process.
_LARGEST = 10_000_000
#: References to earlier parts of the name, and pack expansions; letters of identifiers may match, too.
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_|B[0-9A-Za-z]*_")
_EXPANSION = re.compile(r"[Ds]p")
#: r references repeat at most e^(r/e) times what they refer to.
_GROWTH = 1.445

#: Mangled names; anything else with the same prefix is not demangled.
_MANGLED = re.compile(r"_[ZR][A-Za-z0-9_$.]+")

_known: dict[str, str] = {}


def demangled(name: str) -> str:
    """The name as in the source, or the name itself if it is not mangled or cannot be demangled."""
    if name not in _known:
        demangle(name)
    return _known.get(name, name)


def demangle(*names: str) -> None:
    """Demangle many names at once for `demangled`, which is faster."""
    new = [name for name in dict.fromkeys(names) if name not in _known and _MANGLED.fullmatch(name)]
    large = [name for name in new if _may_explode(name)]
    found = _in_a_process(large) if large else {}
    for name in new:
        result = found.get(name, "") if name in large else _one(name)
        _known[name] = result if result.isprintable() and 0 < len(result) <= _MOST else name


def _may_explode(name: str) -> bool:
    """Whether the demangled name may have more than `_LARGEST` characters, or be too deep."""
    if len(name) > _LONGEST:
        return True
    references, packs = len(_REFERENCE.findall(name)), len(_EXPANSION.findall(name))
    return (1 + packs) * log(len(name)) + references * log(_GROWTH) > log(_LARGEST)


def _one(name: str) -> str:
    try:
        from pycxxfilt import demangle
    except ImportError:  # a convenience: no run fails without it
        return ""
    try:
        return demangle(name) or ""
    except ValueError:
        return ""


# --- in a process of its own ------------------------------------------------------------------------------------------

#: Reads names, one per line, and answers each with a line. Limits: memory, CPU seconds, no core dump.
_PROGRAM = f"""
import sys
try:
    import resource
    for what, most in ((resource.RLIMIT_AS, 1 << 29), (resource.RLIMIT_CPU, 3), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
except (ImportError, ValueError, OSError):
    pass
from pycxxfilt import demangle
for line in sys.stdin:
    try:
        found = demangle(line.strip()) or ""
    except ValueError:
        found = ""
    print(found if len(found) <= {_MOST} and found.isprintable() else "", flush=True)
"""
#: After this many names that kill the process, each costing a new one, no more names are tried.
_MOST_CRASHES = 3
_SECONDS = 20


def _in_a_process(names: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_MOST_CRASHES):
        names = [name for name in names if name not in found]
        if not names:
            break
        answers = _answers(names)
        found.update(zip(names, answers, strict=False))
        if len(answers) < len(names):
            found[names[len(answers)]] = ""
    return found


def _answers(names: Iterable[str]) -> list[str]:
    """The answers of one process; fewer than the names if one of them killed it."""
    import subprocess
    import sys

    if not sys.executable:
        return []
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM], input="".join(f"{name}\n" for name in names).encode(),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False,
        )  # fmt: skip
        out = done.stdout
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
    except OSError:
        return []
    return out.decode("utf-8", "replace").split("\n")[:-1]
