"""Chrome's trace events as text: slices, arrows, counters and names of tracks."""

from __future__ import annotations

import json
from collections.abc import Callable

_encode = json.JSONEncoder(separators=(",", ":")).encode
#: Events that are joined before they are passed on.
_TOGETHER = 2048


class TraceEvents:
    """write: gets the text, piece by piece; `close` writes the end. Times are virtual nanoseconds; the file has
    microseconds."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._begun = False
        self._kept: list[str] = []
        self._arrows = 0
        self._names: dict[str, str] = {}

    def close(self) -> None:
        """The end of the text."""
        self._flush()
        self._write("\n]}\n" if self._begun else '{"traceEvents":[]}\n')

    def named(self, kind: str, pid: int, tid: int, name: str) -> None:
        """kind: "process" or "thread"."""
        self._add(_encode({"ph": "M", "name": f"{kind}_name", "pid": pid, "tid": tid, "args": {"name": name}}))

    def instant(self, name: str, time: int) -> None:
        """A mark through everything."""
        self._add(_encode({"ph": "i", "s": "g", "name": name, "pid": 0, "tid": 0, "ts": time / 1000}))

    def counter(self, name: str, pid: int, time: int, unit: str, value: int) -> None:
        self._add(f'{{"ph":"C","name":"{name}","pid":{pid},"ts":{time / 1000},"args":{{"{unit}":{value}}}}}')

    def slice(self, pid: int, tid: int, begun: int, ended: int, name: str, facts: str) -> None:
        """A stretch of a track. facts: an object as JSON."""
        quoted = self._names.get(name)
        if quoted is None:
            quoted = self._names[name] = _encode(name)
        times = f'"ts":{begun / 1000},"dur":{(ended - begun) / 1000}'
        self._add(f'{{"ph":"X","name":{quoted},"pid":{pid},"tid":{tid},{times},"args":{facts}}}')

    def arrow(self, name: str, begun: int, start: tuple[int, int], ended: int, end: tuple[int, int]) -> None:
        """From a moment of a track to the slice that ends at another moment of another one; tracks as (pid, tid)."""
        self._arrows += 1
        both = f'"name":"{name}","cat":"{name}","id":{self._arrows}}}'
        self._add(f'{{"ph":"s","pid":{start[0]},"tid":{start[1]},"ts":{begun / 1000},{both}')
        self._add(f'{{"ph":"f","bp":"e","pid":{end[0]},"tid":{end[1]},"ts":{(ended - 1) / 1000},{both}')

    def _add(self, text: str) -> None:
        self._kept.append(text)
        if len(self._kept) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        if self._kept:
            first = ",\n" if self._begun else '{"displayTimeUnit":"ns","traceEvents":[\n'
            self._write(first + ",\n".join(self._kept))
            self._begun, self._kept = True, []


__all__ = ["TraceEvents"]
