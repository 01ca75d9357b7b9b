"""Scope trees and memory maps, by which older litmus tests say where threads and locations are.

ScopeTree(grid(cta(warp P0) (warp P1)) (cta(warp P2)))
x: global, y: shared
"""

from __future__ import annotations

from .conditions import thread_number
from .programs import Test
from .words import Reader, Word

#: Levels of a tree -> what a number counts there; the others group without a meaning for scopes (8.5).
_COUNTED = {"gpu": "gpu", "device": "gpu", "cluster": "cluster", "cta": "cta", "block": "cta", "warp": "warp"}
_OTHERS = frozenset(("system", "sys", "grid", "kernel", "thread"))
_SPACES = ("global", "shared", "const", "generic")


def starts_tree(reader: Reader) -> bool:
    """Whether a scope tree is next: `ScopeTree (…)` or `(device …)`."""
    if reader.next.text.lower() in ("scopetree", "scopes"):
        return True
    return reader.next.text == "(" and reader.peek().text in {*_COUNTED, *_OTHERS}


def read_tree(reader: Reader, test: Test) -> None:
    """Give the threads their places, and the others one where the tree does not name them: an error."""
    if reader.next.kind == "word":
        reader.take()
        if reader.next.text == ":":
            reader.take()
    _Tree(reader, test).read()


class _Tree:
    """CTAs are numbered in the whole tree, so that those of different clusters differ; so are clusters."""

    def __init__(self, reader: Reader, test: Test) -> None:
        self.reader = reader
        self.threads = {thread.number: thread for thread in test.threads}
        self.numbers = {"gpu": -1, "cluster": -1, "cta": -1, "warp": -1}
        self.begun: set[str] = set()
        self.depth = 0

    def read(self) -> None:
        start = self.reader.next
        placed: set[int] = set()
        self.group(placed)
        while self.reader.next.text == "(":
            self.group(placed)
        for number, thread in self.threads.items():
            if number not in placed:
                self.reader.fail(f"the scope tree does not name thread {thread.name}", start)

    def group(self, placed: set[int]) -> None:
        """One parenthesis: a level, with or without parentheses around what is in it, or several of them."""
        reader = self.reader
        reader.expect("(", "in the scope tree")
        self.depth += 1
        if self.depth > 40:
            reader.fail("the scope tree is nested too deeply")
        self.content(placed)
        self.depth -= 1
        reader.expect(")", "in the scope tree")

    def content(self, placed: set[int]) -> None:
        reader = self.reader
        level = ""
        while reader.next.text != ")" and reader.next.kind != "end":
            word = reader.next
            if word.text == "(":
                self.group(placed)
                continue
            if reader.accept(",", ";"):
                continue
            number = thread_number(word)
            if number is not None:
                reader.take()
                self.place(word, number, placed)
                continue
            if word.text not in _COUNTED and word.text not in _OTHERS:
                reader.fail("expected a level or a thread of the scope tree")
            reader.take()
            level = _COUNTED.get(word.text, "")
            if level:
                self.numbers[level] += 1
                self.begun.add(level)
                if level == "gpu":
                    self.begun.discard("cluster")

    def place(self, word: Word, number: int, placed: set[int]) -> None:
        thread = self.threads.get(number)
        if thread is None:
            self.reader.fail(f"there is no thread P{number}", word)
        if number in placed:
            self.reader.fail(f"the scope tree names thread P{number} twice", word)
        if "cta" not in self.begun:
            self.reader.fail(f"the scope tree has no CTA around thread P{number}", word)
        placed.add(number)
        thread.cta, thread.gpu = self.numbers["cta"], max(self.numbers["gpu"], 0)
        thread.warp = max(self.numbers["warp"], 0)
        thread.cluster = self.numbers["cluster"] if "cluster" in self.begun else -1


def starts_map(reader: Reader) -> bool:
    """Whether a memory map is next: `x: global`."""
    return reader.next.kind == "word" and reader.peek().text == ":" and reader.peek(2).text in _SPACES


def read_map(reader: Reader, test: Test) -> None:
    """State spaces of locations. Shared memory is another one in each CTA: it may be used by one only."""
    while starts_map(reader):
        word = reader.take()
        reader.take()
        space = reader.take().text
        if word.text not in test.locations:
            reader.fail(f"there is no location '{word.text}'", word)
        if space == "shared" and len({(t.gpu, t.cta) for t in test.users(word.text)}) > 1:
            reader.fail(f"'{word.text}' is shared memory, and threads of two CTAs use it", word)
        test.locations[word.text].space = "" if space == "generic" else space
        while reader.accept(",", ";"):
            pass
