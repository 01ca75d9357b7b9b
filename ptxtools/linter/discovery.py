"""The files of a folder: those with certain endings in it and below, except excluded ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import lru_cache

#: Endings of PTX and its containers, and of NVVM IR.
PTX, NVVM = (".ptx", ".ptxo"), (".ll", ".bc")
#: The default exclusions: version control, environments, caches. Build folders are searched, since compilers generate
#: PTX.
DEFAULT = (
    ".bzr", ".cache", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".jj", ".mypy_cache",
    ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode",
    "__pycache__", "__pypackages__", "node_modules", "site-packages", "venv",
)  # fmt: skip


class Exclusion:
    """Patterns of names ("*.gen.ptx", "third_party") and of paths relative to `folder` ("build/tmp*",
    "**/old/*.ptx")."""

    def __init__(self, patterns: tuple[str, ...], folder: str) -> None:
        self._names = [_name(pattern) for pattern in patterns if "/" not in pattern.rstrip("/")]
        self._paths = [_path(pattern) for pattern in patterns if "/" in pattern.rstrip("/")]
        self._folder = folder

    def holds(self, path: str) -> bool:
        """Whether a file or folder is excluded."""
        name = os.path.basename(path)
        if any(pattern.match(name) for pattern in self._names):
            return True
        if not self._paths:
            return False
        relative = os.path.relpath(os.path.abspath(path), self._folder or os.sep)
        return any(pattern.fullmatch(relative) for pattern in self._paths)


def files_below(folder: str, exclusion_in: Callable[[str], Exclusion], unreadable: Callable[[OSError], None],
                endings: tuple[str, ...] = PTX) -> Iterator[str]:  # fmt: skip
    """The files of a folder by name, followed by those in its subfolders; links to folders are not followed.

    exclusion_in: the exclusions of a folder; unreadable: called with the error for each folder that cannot be listed.
    """
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        unreadable(error)
        return
    exclusion = exclusion_in(folder)
    inner = []
    for entry in entries:
        path = os.path.join(folder, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if not exclusion.holds(path):
                inner.append(path)
        elif entry.name.endswith(endings) and entry.is_file() and not exclusion.holds(path):
            yield path
    for path in inner:
        yield from files_below(path, exclusion_in, unreadable, endings)


@lru_cache
def _name(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.rstrip("/")))


@lru_cache
def _path(pattern: str) -> re.Pattern[str]:
    """`*` and `?` match within a folder; `**/` matches any number of folders; `/**` at the end everything below."""
    parts = []
    for found in re.finditer(r"\*\*/|/\*\*$|\[[^]]+\]|.", pattern.removeprefix("./").rstrip("/"), re.DOTALL):
        match found[0]:
            case "**/":
                parts.append("(?:.*/)?")
            case "/**":
                parts.append("/.*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case text if text[0] == "[" and len(text) > 1:
                parts.append(translate(text).removesuffix("\\Z"))
            case text:
                parts.append(re.escape(text))
    return re.compile("".join(parts), re.DOTALL)
