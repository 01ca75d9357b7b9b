"""The model in the cat language of herd, from the same terms that are evaluated."""

from __future__ import annotations

from .axioms import model
from .terms import Pair, Term

#: Characters of a line.
_WIDTH = 120

_HEAD = """\
PTX

(* The memory consistency model of PTX ISA {version}, chapter 8. Printed by ptx-run --litmus --format cat.

   An atomic operation is one event, in R, W and RMW; red is not in R. A barrier is an arrival and a wait.
   An mbarrier object is a location: an arrival is in RMW, a wait in R. An asynchronous copy is a read and a write:
   issued, from what precedes it, and completed, to what it precedes.
   Sets: M R W RMW REL ACQ STRONG (8.4); F memory fences, of these F_SC, F_REL and F_ACQ; GENERIC, PROXY_FENCE and
   ALIAS_FENCE (8.6); one-sided proxy fences TO_PROXY_REL and TO_PROXY_ACQ, memory fences for shared memory SHARED_REL
   and SHARED_ACQ (9.7.13.4); TCGEN05 operations of tensor cores, T_BEFORE and T_AFTER their fences (9.7.16.6).
   Relations that come with an execution: po; dep, which is addr | data | ctrl; scopes, between operations whose scopes
   include each other's thread (8.5); same-cta; same-proxy; overlap, overlap-at-address and overlap-completely (8.2);
   barrier, from arrivals to waits, and relaxed-barrier, from relaxed ones; prerequisite, from all of a grid to
   the wait of one that depends on it; covered, between an operation and a fence that is not limited to other memory;
   launched, from operations of tensor cores to a fence that hands them on, piped, to later ones of their thread that
   they execute before, and paired, between those that form a pipeline; initial, from the initial
   writes; rf; sc (8.9.3); ordered, the order of morally strong writes.
   Where accesses overlap in part, fr goes by pieces of memory, which this language has no word for. *)
"""


def as_cat(version: str) -> str:
    """The definitions and the axioms of a model, in order."""
    chosen = model(version)
    lines = [_HEAD.format(version=version)]
    for definition in chosen.definitions:
        lines += [f"(* {definition.section} *)", _wrapped(f"let {definition.name} = ", definition.term), ""]
    for axiom in chosen.axioms:
        lines += [f"(* {axiom.section} *)", f"{axiom.kind} {axiom.term.cat(True)} as {axiom.name}", ""]
    return "\n".join(lines)


def _wrapped(start: str, term: Term) -> str:
    """A definition, with a line for each part of a union if it is long."""
    whole = start + term.cat()
    parts = _united(term)
    if len(whole) <= _WIDTH or len(parts) < 2:
        return whole
    return start.rstrip() + "\n    " + "\n  | ".join(part.cat(True) for part in parts)


def _united(term: Term) -> list[Term]:
    if isinstance(term, Pair) and term.sign == "|":
        return [*_united(term.left), *_united(term.right)]
    return [term]
