"""Folders among the arguments of ptx-lint."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ptxtools.linter.discovery import files_below

from .checking import Unreadable
from .settings import SettingsFinder, warn


def expanded(names: Sequence[str], settings: SettingsFinder) -> tuple[list[str], list[Unreadable]]:
    """The names, with each folder replaced by its files and no duplicates; and the folders that cannot be listed."""
    failures: list[Unreadable] = []

    def unreadable(error: OSError) -> None:
        failures.append(Unreadable(str(error.filename), f"{error.filename}: cannot be read: {error.strerror}"))

    found: list[str] = []
    seen = {os.path.realpath(name) for name in names if not os.path.isdir(name)}
    for name in names:
        if not os.path.isdir(name):
            found.append(name)
            continue
        before = len(found)
        for path in files_below(os.path.join(name.rstrip("/") or "/", ""), settings.left_out, unreadable):
            path = path.removeprefix("./")
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                found.append(path)
        if len(found) == before and not failures:
            warn(f"{name}: the folder has no *.ptx or *.ptxo files")
    return found, failures
