"""Folders among the arguments of ptx-lint."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ptxtools.inputs import detect
from ptxtools.linter.discovery import NVVM, PTX, files_below

from .checking import Unreadable
from .settings import SettingsFinder, warn

#: Bytes of a file of NVVM IR in which its target is looked for.
_HEAD = 64 << 10
_OTHER_MACHINE = re.compile(rb'^target triple = "(?!nvptx)', re.MULTILINE)


def expanded(names: Sequence[str], settings: SettingsFinder,
             nvvm: bool = True) -> tuple[list[str], list[Unreadable]]:  # fmt: skip
    """The names, with each folder replaced by its files and no duplicates; and the folders that cannot be listed.
    nvvm: whether folders are searched for NVVM IR, too."""
    failures: list[Unreadable] = []

    def unreadable(error: OSError) -> None:
        failures.append(Unreadable(str(error.filename), f"{error.filename}: cannot be read: {error.strerror}"))

    found: list[str] = []
    endings = PTX + NVVM if nvvm else PTX
    seen = {os.path.realpath(name) for name in names if not os.path.isdir(name)}
    for name in names:
        if not os.path.isdir(name):
            found.append(name)
            continue
        before = len(found)
        for path in files_below(os.path.join(name.rstrip("/") or "/", ""), settings.left_out, unreadable, endings):
            path = path.removeprefix("./")
            if (real := os.path.realpath(path)) not in seen and not (path.endswith(NVVM) and _is_foreign(path)):
                seen.add(real)
                found.append(path)
        if len(found) == before and not failures:
            warn(f"{name}: the folder has no {_listed(endings)} files")
    return found, failures


def _listed(endings: Sequence[str]) -> str:
    """The patterns of endings: "*.ptx or *.ptxo"."""
    *first, last = (f"*{ending}" for ending in endings)
    return f"{', '.join(first)} or {last}"


def _is_foreign(path: str) -> bool:
    """Whether a file with an ending of NVVM IR is something else, or LLVM IR for another machine."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            if detect(head) == "ll":
                return _OTHER_MACHINE.search(head) is not None
            if detect(head) != "bc":
                return True
            data = head + file.read()
    except OSError:
        return False
    from ptxtools.nvvm.bitcode import BitcodeError, facts_of

    try:
        triple = facts_of(data).triple
    except BitcodeError:
        return False
    return bool(triple) and not triple.startswith("nvptx")
