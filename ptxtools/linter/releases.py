"""Releases of ptxas that were asked, and the newest PTX version that each of them reads."""

from __future__ import annotations

VERSIONS = {
    "11.8": (7, 8), "12.0": (8, 0), "12.1": (8, 1), "12.2": (8, 2), "12.3": (8, 3), "12.4": (8, 4), "12.5": (8, 5),
    "12.6": (8, 5), "12.8": (8, 7), "12.9": (8, 8), "13.0": (9, 0), "13.1": (9, 1), "13.2": (9, 2), "13.3": (9, 3),
    "13.4": (9, 4), "13.5": (9, 5),
}  # fmt: skip


def between(first: str, last: str) -> tuple[str, ...]:
    """The releases from one to another, both included."""
    names = list(VERSIONS)
    return tuple(names[names.index(first) : names.index(last) + 1])
