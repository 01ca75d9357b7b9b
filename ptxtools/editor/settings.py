"""Which findings a project wants to see of a file: `[tool.ptx-lint]` of the nearest `pyproject.toml`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ptxtools.diagnostics import Diagnostic
from ptxtools.diagnostics.comments import matches
from ptxtools.linter.config import find_config, read_config
from ptxtools.linter.discovery import Exclusion
from ptxtools.linter.suppress import is_chosen
from ptxtools.records import NamedTuple


class Chosen(NamedTuple):
    """Prefixes of codes: those that are selected, those that are not shown, and those that are not in this file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()

    def left(self, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """The findings that are shown."""
        if not any(self):
            return list(findings)
        return [d for d in findings if is_chosen(d.code, self.select, self.ignore) and not matches(d.code, self.spared)]


ALL = Chosen()


def chosen_for(path: str) -> Chosen:
    """The choice for a file. Raises ConfigError where the settings cannot be used."""
    settings = find_config(os.path.dirname(path)) if os.path.isabs(path) else None
    if settings is None:
        return ALL
    config = read_config(settings)
    spared = [codes for pattern, codes in config.per_file_ignores if Exclusion((pattern,), config.folder).holds(path)]
    return Chosen(config.select, config.ignore, tuple(dict.fromkeys(code for codes in spared for code in codes)))
