"""Conditions of the tables: the terms of `needs`, `only`, `marks` and an operand's `if`.

.sat  .rm,.rp         the opcode has this modifier; has one of these
.sat/.rm              the same, where commas separate operands
.rnd  !.ss            the slot of that name is filled; is empty
dtype=.bf16,.bf16x2   the slot holds one of these values ("when the destination type is …")
::cluster             some modifier ends with this qualifier
prefetchu             the page declares several instructions, and this is the one
@b   @a:reg           operand b is written; operand a is written as a register (known only with the operands)
     @a:4             it is this constant
     @a:handle        its address is in a register, where it could be a name; @a:entry: it names a kernel,
     @a:func          a function
     @a:opaque        a texture, sampler or surface, @a:sampler: a sampler
     @a:indirect      it has a sampler beside the texture that is not fixed when the module is made: in a register, or
                      at all in unified mode
!x                    not x
x y | z               x and y, or z
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ptxtools.records import NamedTuple


class Context(NamedTuple):
    """The subject of a condition: the declared name, the slots' values (no dots) and all modifiers (no dots)."""

    name: str
    mods: Mapping[str, str]
    atoms: frozenset[str]


class Term(NamedTuple):
    kind: str  # "atom", "slot", "suffix", "name", "operand"
    key: str
    values: tuple[str, ...]
    negated: bool

    def holds(self, context: Context) -> bool:
        kind, key, values, negated = self
        name, mods, atoms = context
        if kind == "atom":
            found = not atoms.isdisjoint(values) or any(value in mods for value in values)
        elif kind == "slot":
            found = mods.get(key) in values
        elif kind == "suffix":
            found = any(atom.endswith(key) for atom in atoms)
        elif kind == "name":
            found = name == key
        else:
            return True  # operands are judged by whoever has them
        return found != negated

    def describe(self, context: Context) -> str:
        """The term in words: of several values, those present."""
        present = [v for v in self.values if v in context.atoms or v in context.mods or context.mods.get(self.key) == v]
        return " and ".join(f"'.{context.mods.get(v, v)}'" for v in present) or str(self)

    def __str__(self) -> str:
        bang = "no " if self.negated else ""
        values = " or ".join(f".{value}" for value in self.values)
        if self.kind in ("slot", "atom"):
            return bang + (f".{self.key} = " if self.kind == "slot" else "") + values
        return bang + self.key


Alternative = tuple[Term, ...]


class Condition:
    """A disjunction of conjunctions; the empty condition always holds."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        parts = self._text.split("|") if self._text else []
        return tuple(tuple(map(_term, part.split())) for part in parts)

    @property
    def always(self) -> bool:
        """Whether it is empty."""
        return not self._text

    def is_word(self, word: str) -> bool:
        """Whether one of the alternatives is a modifier (without dot), and nothing else."""
        return f".{word}" in [part.strip() for part in self._text.split("|")]

    def match(self, context: Context) -> Alternative | None:
        """The first alternative that holds (() for the empty condition), or None."""
        if not self.alternatives:
            return ()
        for alternative in self.alternatives:
            for term in alternative:
                if not term.holds(context):
                    break
            else:
                return alternative
        return None

    def may_hold(self, name: str, words: frozenset[str]) -> bool:
        """Whether some opcode of that name can meet it whose modifiers and slots are among these words."""
        most = Context(name, dict.fromkeys(words, ""), words)
        return not self.alternatives or any(
            all(
                term.negated or (term.key in words if term.kind == "slot" else term.holds(most)) for term in alternative
            )
            for alternative in self.alternatives
        )

    def terms(self) -> list[Term]:
        return [term for alternative in self.alternatives for term in alternative]

    def __str__(self) -> str:
        return " or ".join(" with ".join(map(str, alternative)) for alternative in self.alternatives)


def _term(text: str) -> Term:
    negated = text.startswith("!")
    body = text[1:] if negated else text
    if body.startswith("::"):
        return Term("suffix", body, (), negated)
    if body.startswith("."):
        return Term("atom", body, tuple(value.lstrip(".") for value in body.replace("/", ",").split(",")), negated)
    if body.startswith("@"):
        name, _, kind = body[1:].partition(":")
        return Term("operand", name, (kind,) if kind else (), negated)
    if "=" in body:
        slot, _, values = body.partition("=")
        return Term(
            "slot", slot, tuple(value.strip().lstrip(".") for value in values.replace("/", ",").split(",")), negated
        )
    return Term("name", body, (), negated)
