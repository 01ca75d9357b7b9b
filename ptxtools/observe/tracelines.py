"""Records of a trace as text, and as JSON lines.

Text is for people: values that are the same in all lanes, or evenly spaced, are one item. JSON has each of them, one
object on each line, with the keys of `Record`. Values of registers are numbers of their type; non-finite floats
are "nan", "inf" or "-inf", 128 bits hexadecimal text.
"""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.diagnostics import shown
from ptxtools.diagnostics.text import printable

if TYPE_CHECKING:
    from ptxtools.machine.observers import Access

    from .trace import Record

Array: TypeAlias = npt.NDArray[Any]

_INDENT = " " * 8


def as_text(record: Record) -> str:
    """A record as one line or more, each with its end."""
    place = f"{printable(record.file)}:{record.line}" if record.line is not None else printable(record.file)
    who = "" if record.cta is None else "CTA ({},{},{})".format(*record.cta)
    if record.warp is not None:
        who += f" warp {record.warp}"
    if record.event in ("grid begun", "grid ended", "trap"):
        head = f"{record.event}: {printable(shown(record.kernel))}" + (f" {who}" if who else "")
        return head + (f": {printable(record.what)}" if record.what else "") + "\n"
    what = printable(record.text) if record.event == "instruction" else record.event
    if record.what:
        what += f" {printable(record.what)}"
    line = f"{record.number} {who} {place}: {what}  {lanes_text(record.lanes)}\n"
    if record.source:
        line += f"{_INDENT}source: {record.source}\n"
    if len(record.lanes):
        line += "".join(_register(name, record) for name in {**record.before, **record.after})
        line += "".join(_access(access) for access in record.accesses)
    return line


def as_json(record: Record) -> str:
    """A record as one line with its end."""
    found: dict[str, Any] = {"event": record.event, "number": record.number, "kernel": record.kernel}
    if record.cta is not None:
        found["cta"] = list(record.cta)
    if record.warp is not None:
        found |= {"warp": record.warp, "lanes": record.lanes.tolist(), "file": record.file, "line": record.line,
                  "source": record.source or None}  # fmt: skip
    if record.text:
        found["text"] = record.text
    if record.what:
        found["what"] = record.what
    if record.event == "instruction":
        found["before"] = {name: _numbers(values) for name, values in record.before.items()}
        found["after"] = {name: _numbers(values) for name, values in record.after.items()}
        found["accesses"] = [
            {"space": access.space, "action": access.action, "size": access.size, "lanes": access.lanes.tolist(),
             "addresses": access.addresses.tolist()}
            for access in record.accesses
        ]  # fmt: skip
    return json.dumps(found, ensure_ascii=False) + "\n"


def lanes_text(lanes: Array) -> str:
    """Such as "lane 3", "lanes 0-7,9", "no lane"."""
    if not len(lanes):
        return "no lane"
    breaks = np.flatnonzero(np.diff(lanes) != 1) + 1
    groups = [(int(group[0]), int(group[-1])) for group in np.split(lanes, breaks)]
    text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in groups)
    return f"lane{'s' * (len(lanes) > 1)} {text}"


def _register(name: str, record: Record) -> str:
    """Its value behind the instruction, and the one before, if it has changed."""
    before, after = record.before.get(name), record.after.get(name)
    if after is None or before is None:
        known = after if before is None else before
        return "" if known is None else f"{_INDENT}{printable(name)} = {_values(known)}\n"
    was = "" if before.tobytes() == after.tobytes() else f"  (was {_values(before)})"
    return f"{_INDENT}{printable(name)} = {_values(after)}{was}\n"


def _access(access: Access) -> str:
    where = _values(access.addresses, hexadecimal=True)
    return f"{_INDENT}{access.space} {access.action}, {access.size} bytes at {where}\n"


def _values(values: Array, *, hexadecimal: bool = False) -> str:
    """One value for all lanes; first, second … last of evenly spaced ones; or all, with the length of repetitions."""
    numbers = _numbers(values)
    wide = hexadecimal or (values.dtype == np.uint64 and values.ndim == 1)
    texts = [hex(number) if wide else _text(number) for number in numbers]
    runs = [(text, len(list(group))) for text, group in groupby(texts)]
    if len(runs) == 1:
        return texts[0]
    if len(texts) > 3 and values.ndim == 1 and values.dtype.kind in "iuf" and _even(values):
        return f"{texts[0]}, {texts[1]} … {texts[-1]}"
    return ", ".join(text if count == 1 else f"{text} × {count}" for text, count in runs)


def _even(values: Array) -> bool:
    """Whether each value is as far from the one before as the next."""
    numbers = values.tolist()
    return bool(np.isfinite(values).all()) and len({b - a for a, b in pairwise(numbers)}) == 1


def number_text(value: Any) -> str:
    """One value of a register, in its type, as its numbers are shown in a trace; of 128 bits the two halves."""
    return _values(np.asarray(value)[..., np.newaxis])


def _text(number: Any) -> str:
    return str(int(number)) if isinstance(number, bool) else str(number)


def _numbers(values: Array) -> list[Any]:
    """As they are in JSON."""
    if values.ndim == 2:  # 128 bits
        return [f"{int(low) | int(high) << 64:#034x}" for low, high in values.T]
    if values.dtype.kind == "f":
        return [value if np.isfinite(value) else str(value) for value in (float(str(v)) for v in values)]
    return list(values.tolist())
