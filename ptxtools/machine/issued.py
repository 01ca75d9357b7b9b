"""The wgmma operations that each warp of a warpgroup has issued (9.7.15.7): numbers that native code and services
share.

Each warp counts its products and its commits, and remembers for its last commits how many products it had issued by
then. A warp that waits for a group checks whether the other three have issued all of that group.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

#: Warps of a warpgroup; a multiple of four is the first.
WARPS = 4
#: Products at a warp's last commits; descriptors of B of its last products, with a bit for the layout.
MARKS, KEYS = 8, 16
#: Turns that a warp yields before it waits in a service.
PATIENCE = 8


class IssuedProducts:
    """A warp's numbers: `words` (u32: issued products, commits, whether somebody waits for the warpgroup, turns given
    to others, products at each of the last commits), `keys` (u64), and `finished` (u32: products that it has waited
    for)."""

    __slots__ = ("finished", "keys", "words")

    def __init__(self, words: Array, keys: Array, finished: Array) -> None:
        self.words, self.keys, self.finished = words, keys, finished

    @staticmethod
    def empty() -> IssuedProducts:
        return IssuedProducts(np.zeros(4 + MARKS, np.uint32), np.zeros(KEYS, np.uint64), np.zeros(1, np.uint32))

    @property
    def issued(self) -> int:
        """Products."""
        return int(self.words[0])

    @property
    def done(self) -> int:
        """Products that the warp has waited for."""
        return int(self.finished[0])

    @done.setter
    def done(self, value: int) -> None:
        self.finished[0] = max(value, self.done)

    @property
    def commits(self) -> int:
        return int(self.words[1])

    @property
    def watched(self) -> bool:
        """Whether a commit must wake a warp."""
        return bool(self.words[2])

    @watched.setter
    def watched(self, value: bool) -> None:
        self.words[2] = value

    def issue(self, key: int) -> None:
        """One more product, with a key that must be the same for all four warps."""
        self.keys[self.issued % KEYS] = key
        self.words[0] += 1

    def commit(self) -> None:
        """Form a group of the products issued since the last one."""
        self.words[4 + self.commits % MARKS] = self.words[0]
        self.words[1] += 1

    def wanted(self, allowed: int) -> int:
        """The number of products that must be complete if `allowed` groups may still be pending."""
        if self.commits <= allowed or allowed >= MARKS:
            return 0
        return int(self.words[4 + (self.commits - allowed - 1) % MARKS])

    def waits(self, waiting: bool) -> None:
        """Whether the warp waits in a service, so that native code leaves it alone."""
        self.words[3] = PATIENCE + 1 if waiting else 0

    def key_of(self, number: int) -> int | None:
        """The key of a product; None if it is not issued yet, or long ago."""
        if not 0 < self.issued - number <= KEYS:
            return None
        return int(self.keys[number % KEYS])
