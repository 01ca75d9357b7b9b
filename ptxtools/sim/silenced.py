"""Which of the checkers' reports are heard: those that neither a comment of the module nor a file silences."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ptxtools.diagnostics.comments import heard as not_silenced

if TYPE_CHECKING:
    from ptxtools.diagnostics.findings import Finding
    from ptxtools.diagnostics.source import Source
    from ptxtools.diagnostics.suppressions import Suppressions

    from .device import Device


def heard(device: Device, findings: Iterable[Finding], source: Source | None) -> tuple[list[Finding], list[Finding]]:
    """The reports that are heard, and the others. source: the text of the module that ran."""
    found = list(findings)
    if not found:
        return [], []
    from ptxtools.diagnostics.findings import without_echoes

    left = not_silenced(found, source)
    known = device.suppressions
    if known is not None:
        left = [finding for finding in left if not known.silences(finding)]
    spoken = set(map(id, left))
    return without_echoes(left), [finding for finding in found if id(finding) not in spoken]


def known_reports(given: str | Suppressions) -> Suppressions | None:
    """What is known of reports, from a file or as given. Raises `LaunchError`."""
    if not given:
        return None
    if not isinstance(given, str | os.PathLike):
        return given
    from ptxtools.diagnostics.suppressions import read_suppressions

    return read_suppressions(os.fspath(given))
