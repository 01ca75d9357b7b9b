"""Find a kernel by name: its name in the PTX, or the C++ or Rust name it was mangled from."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxtools.diagnostics import shown
from ptxtools.diagnostics.names import demangle

from .errors import nearest

#: The most kernels listed in a message.
_MOST_LISTED = 12
#: Names longer than this get no suggestions: searching similar ones takes quadratic time.
_LONG = 200
_BLANKS = re.compile(r"\s*([^\w\s])\s*")


class KernelNameError(Exception):
    """No kernel, or more than one, matches the name; the message lists them."""


def find_name(wanted: str, kernels: Iterable[str], *, prefixes: bool = True) -> str:
    """The kernel that a name means: one that is called so in the PTX; else the only one with that demangled name, with
    or without its parameters; else the only one with it apart from the namespaces in front; else, with `prefixes`, the
    only one whose name, mangled or demangled, begins so. Blanks do not count in demangled names.

    Raises `KernelNameError`.
    """
    kernels = list(kernels)
    if wanted in kernels:
        return wanted
    demangle(*kernels)
    text = _compact(wanted)
    whole = {name: _spellings(name) for name in kernels}
    inner = {name: {_unqualified(one) for one in spellings} for name, spellings in whole.items()}
    found = [n for n in kernels if text in whole[n]] or [n for n in kernels if text in inner[n]]
    if not found and prefixes and text:
        found = [n for n in kernels if n.startswith(wanted) or any(one.startswith(text) for one in whole[n] | inner[n])]
    if len(found) == 1:
        return found[0]
    if found:
        raise KernelNameError(f"'{wanted}' matches {len(found)} kernels: {listed(found)}")
    near = nearest(wanted, [one for name in kernels for one in (name, *whole[name], *inner[name]) if len(one) < _LONG])
    raise KernelNameError(f"there is no kernel '{wanted}'" + (near or f"; there are: {listed(kernels) or 'none'}"))


def listed(kernels: Iterable[str]) -> str:
    """Names for a message: `f(int) [_Z1fi], g`."""
    kernels = list(kernels)
    texts = [name if shown(name) == name else f"{shown(name)} [{name}]" for name in kernels[:_MOST_LISTED]]
    more = len(kernels) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")


def _compact(text: str) -> str:
    """Without blanks, except between words: `f<int, 4>(float *)` and `f<int,4>(float*)` are the same."""
    return _BLANKS.sub(r"\1", " ".join(text.split()))


def _spellings(name: str) -> set[str]:
    """The spellings of a demangled name: with and without `void` in front, with and without parameters."""
    text = _compact(shown(name))
    bare = text.removeprefix("void ")
    return {text, bare, bare[: _parameters(bare)]}


def _parameters(text: str) -> int:
    """The start of the parameter list: the parenthesis closed at the end of the name."""
    depth, end = 0, text.rfind(")")
    for at in range(end, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0 and end > 0:
            return at
    return len(text)


def _unqualified(text: str) -> str:
    """Without the namespaces and classes in front: what follows the last `::` outside of brackets, parameters apart."""
    depth, begin = 0, 0
    for at in range(_parameters(text)):
        depth += (text[at] in "<({[") - (text[at] in ">)}]")
        if depth == 0 and text.startswith("::", at):
            begin = at + 2
    return text[begin:]
