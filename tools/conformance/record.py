"""Recorded verdicts: an xz-compressed text, `@ setting place topic` lines and below them `+probe` or `-probe`;
`!probe` is one at which ptxas crashed.

Behind a tab a refused probe has the version and target that ptxas named: `-elect.sync %r1|%p2, %r2;<tab>8.0 sm_90`.
The setting tells who was asked (`oracle.release_of`): ptxas 13.0 up to PTX 9.0, then the release of each version.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .setting import NEWEST, where

#: Files of records.
FILES = ("verdicts.xz", "modules.xz", "newer.xz", "boundary.xz", "releases.xz")


class Record(NamedTuple):
    """One probe with its verdict. requires: what ptxas named, such as "8.0 sm_90", or ""; crashed: it said nothing, and
    is no measure of ours."""

    setting: str
    place: str
    topic: str
    text: str
    accepted: bool
    requires: str = ""
    crashed: bool = False


def write(path: Path, records: Iterable[Record]) -> None:
    lines: list[str] = []
    head = ""
    for record in sorted(set(records), key=lambda r: (r.setting, r.place, r.topic, r.text)):
        group = f"@ {record.setting} {record.place} {record.topic}"
        if group != head:
            lines.append(group)
            head = group
        requires = f"\t{record.requires}" if record.requires else ""
        sign = "!" if record.crashed else "+" if record.accepted else "-"
        lines.append(f"{sign}{record.text}{requires}")
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def read_all(folder: Path) -> list[Record]:
    """The records of every file in the folder."""
    return [record for name in FILES if (folder / name).exists() for record in read(folder / name)]


def write_all(folder: Path, records: Iterable[Record]) -> None:
    """Each record into its file: modules by themselves, what ptxas 13.0 was not asked about, what was asked of every
    version, and what each release brought."""
    parts: dict[str, list[Record]] = {name: [] for name in FILES}
    for record in records:
        newer = where(record.setting)[0] > NEWEST
        parts[
            f"{record.topic}s.xz"
            if record.topic == "release"
            else "boundary.xz"
            if record.topic == "boundary"
            else "newer.xz"
            if newer
            else "modules.xz"
            if record.topic == "module"
            else "verdicts.xz"
        ].append(record)
    for name, part in parts.items():
        if part:
            write(folder / name, part)


def read(path: Path) -> list[Record]:
    records: list[Record] = []
    setting = place = topic = ""
    for line in lzma.decompress(path.read_bytes()).decode().splitlines():
        if line[0] == "@":
            _, setting, place, topic = line.split()
            continue
        text, _, requires = line[1:].partition("\t")
        records.append(Record(setting, place, topic, text, line[0] == "+", requires, line[0] == "!"))
    return records
