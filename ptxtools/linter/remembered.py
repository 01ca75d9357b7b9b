"""Findings of texts that were linted before: a text that has not changed is not read again.

The key covers the text, its name, what was asked, and the code of all packages that decide the findings.
"""

from __future__ import annotations

import contextlib
import os
import sys

from ptxtools import cache
from ptxtools.diagnostics import Diagnostic, Source
from ptxtools.diagnostics.decode import decode

from .state import code_state

#: The limits of the cache: bytes of a file, and files.
MOST_BYTES = 4 << 20
MOST_FILES = 4096


class Remembered:
    """The findings of one text. asked: everything else that they depend on."""

    def __init__(self, data: bytes, name: str, asked: tuple[object, ...]) -> None:
        self._data, self._name = data, name
        digest = cache.blake2b(data, digest_size=16)
        digest.update(repr((len(data), name, asked, code_state())).encode("utf-8", "surrogatepass"))
        self._key = digest.hexdigest()
        self._path = os.path.join(cache.directory(), "findings", f"{sys.implementation.cache_tag}-{self._key}.bin")

    def recall(self) -> list[Diagnostic] | None:
        """The findings that were stored; None if there are none."""
        content = cache.read_sealed(self._path, self._key, MOST_BYTES)
        if not content:
            return None if content is None else []
        from .processes import unpacked

        with contextlib.suppress(Exception):
            found: list[Diagnostic] = unpacked(content, Source(decode(self._data, self._name), self._name))
            return found
        return None

    def store(self, findings: list[Diagnostic]) -> None:
        """Store findings that all are about this text."""
        content = b""
        if findings:
            from .processes import packed

            source = findings[0].source
            if type(source) is not Source or any(finding.source is not source for finding in findings):
                return
            content = packed(findings, source)
        stored = len(content) <= MOST_BYTES and cache.write_sealed(self._path, self._key, content)
        if stored and self._prunes():
            cache.prune(os.path.dirname(self._path), ".bin", MOST_FILES)

    def _prunes(self) -> bool:
        """Whether to look at all files; it takes long, so one file in 256 does."""
        return self._key.startswith("00")
