"""racecheck on the patterns of two published sets of small kernels, written anew: scopes of fences, atomics and locks
(ScoR, ISCA 2020), and accesses at each level of the hierarchy of threads (Indigo, with which HiRace is measured)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import ptxtools

from .programs import module


class Pattern(NamedTuple):
    """A kernel. ctas: with a warp each, else one CTA; threads: of a CTA; races: what racecheck has to say."""

    name: str
    body: str
    ctas: int
    threads: int
    races: bool


#: Two threads: of two warps of a CTA, or of two CTAs. %q holds in the second one; others are gone.
_TWO = {
    "warps": (1, 64, "setp.ne.u32 %p, %l, 0; @%p bra DONE; setp.eq.u32 %q, %w, 1;"),
    "CTAs": (2, 32, "setp.ne.u32 %p, %i, 0; @%p bra DONE; mov.u32 %r7, %ctaid.x; setp.eq.u32 %q, %r7, 1;"),
}
_SPIN = "SPIN: {load} %r1, [%a]; setp.eq.u32 %p, %r1, 0; @%p bra SPIN;"


def _two(name: str, place: str, first: str, second: str, *, races: bool) -> Pattern:
    """What the two threads do."""
    ctas, threads, head = _TWO[place]
    body = f"{head} @%q bra SECOND;\n{first} bra DONE;\nSECOND: {second}\nDONE:"
    return Pattern(f"{name}, {place}", body, ctas, threads, races)


def _reaches(place: str, *scopes: str) -> bool:
    return all(scopes) and (place == "warps" or "cta" not in scopes)


def _fences() -> Iterator[Pattern]:
    """A message behind a flag, with a fence on each side, or none."""
    for place, one, other in product(_TWO, ("", "cta", "gpu"), ("", "cta", "gpu")):
        fences = [f"fence.acq_rel.{scope};" if scope else "" for scope in (one, other)]
        first = f"st.global.u32 [%a+8], 7; {fences[0]} st.volatile.global.u32 [%a], 1;"
        second = f"{_SPIN.format(load='ld.volatile.global.u32')} {fences[1]} ld.global.u32 %r2, [%a+8];"
        yield _two(f"fences '{one}' and '{other}'", place, first, second, races=not _reaches(place, one, other))


def _releases() -> Iterator[Pattern]:
    """The same with a release and an acquire."""
    orders = [(order, scope) for order in ("relaxed", "strong") for scope in ("cta", "gpu")]
    for place, (give, one), (take, other) in product(_TWO, orders, orders):
        store = f"st.{'release' if give == 'strong' else give}.{one}.global.u32"
        load = f"ld.{'acquire' if take == 'strong' else take}.{other}.global.u32"
        races = "relaxed" in (give, take) or not _reaches(place, one, other)
        first, second = (
            f"st.global.u32 [%a+8], 7; {store} [%a], 1;",
            f"{_SPIN.format(load=load)} ld.global.u32 %r2, [%a+8];",
        )
        yield _two(f"{store} and {load}", place, first, second, races=races)


def _atomics() -> Iterator[Pattern]:
    """A counter."""
    for place, one, other in product(_TWO, ("cta", "gpu"), ("cta", "gpu", "sys")):
        adds = [f"atom.relaxed.{scope}.global.add.u32 %r1, [%a], 1;" for scope in (one, other)]
        yield _two(f"atomics {one} and {other}", place, *adds, races=not _reaches(place, one, other))
    beside = {"ld.global.u32 %r1, [%a];": True, "st.global.u32 [%a], 9;": True,
              "ld.volatile.global.u32 %r1, [%a];": False, "st.volatile.global.u32 [%a], 9;": False}  # fmt: skip
    for place, (access, races) in product(_TWO, beside.items()):
        yield _two(f"an atomic and {access}", place, "red.relaxed.gpu.global.add.u32 [%a], 1;", access, races=races)


def _locks() -> Iterator[Pattern]:
    """Both threads take a lock, add to a word, and give the lock back."""
    scopes = ("cta", "gpu")
    for place, take, behind, before, give in product(_TWO, scopes, ("", *scopes), ("", *scopes), scopes):
        fences = [f"fence.acq_rel.{scope};" if scope else "" for scope in (behind, before)]
        body = (
            f"TAKE: atom.relaxed.{take}.global.cas.b32 %r1, [%a], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra TAKE;"
            f"{fences[0]} "
            f"ld.global.u32 %r2, [%a+8]; add.u32 %r2, %r2, 1; st.global.u32 [%a+8], %r2; {fences[1]}"
            f"atom.relaxed.{give}.global.exch.b32 %r3, [%a], 0;"
        )
        ctas, threads, head = _TWO[place]
        races = not _reaches(place, take, behind, before, give)
        yield Pattern(
            f"lock {take} '{behind}' '{before}' {give}, {place}", f"{head}\n{body}\nDONE:", ctas, threads, races
        )


#: Two accesses to a word: what they are, and whether they race where nothing orders them.
_PAIRS = {
    "write and write": ("st.{s}.u32 [{x}], 1;", "st.{s}.u32 [{x}], 2;", True),
    "write and read": ("st.{s}.u32 [{x}], 1;", "ld.{s}.u32 %r1, [{x}];", True),
    "read and write": ("ld.{s}.u32 %r1, [{x}];", "st.{s}.u32 [{x}], 1;", True),
    "read and read": ("ld.{s}.u32 %r1, [{x}];", "ld.{s}.u32 %r1, [{x}];", False),
    "atomic and atomic": ("atom.{s}.add.u32 %r1, [{x}], 1;", "red.{s}.add.u32 [{x}], 2;", False),
    "atomic and read": ("red.{s}.add.u32 [{x}], 1;", "ld.{s}.u32 %r1, [{x}];", True),
    "atomic and write": ("red.{s}.add.u32 [{x}], 1;", "st.{s}.u32 [{x}], 5;", True),
}
_BARRIERS = {"": 0, "bar.warp.sync -1;": 1, "bar.sync 0;": 2}
#: What is apart: CTAs, threads, which thread is the second, and which of the barriers orders the two at least.
_LEVELS = {"lanes": (1, 64, "%i, 1", 1), "warps": (1, 64, "%i, 32", 2), "CTAs": (2, 32, "%r7, 1", 3)}


def _levels() -> Iterator[Pattern]:
    """Two accesses by threads at each level, with each kind of barrier between them."""
    for space, (level, (ctas, threads, second, least)), (barrier, rank), (pair, (one, other, conflict)) in product(
        ("shared", "global"), _LEVELS.items(), _BARRIERS.items(), _PAIRS.items()
    ):
        if (space, level) == ("shared", "CTAs"):
            continue
        one, other = (text.format(s=space, x="%r0" if space == "shared" else "%a") for text in (one, other))
        body = (
            "mov.u32 %r0, sh; mov.u32 %r7, %ctaid.x; setp.eq.u32 %p, %i, 0; setp.eq.and.u32 %p, %r7, 0, %p;"
            f"setp.eq.u32 %q, {second}; setp.eq.and.u32 %q, %l, {int(level == 'lanes')}, %q;"
            f"@%p {one} {barrier} @%q {other}"
        )
        yield Pattern(f"{pair} of {level}, {space}, '{barrier}'", body, ctas, threads, conflict and rank < least)


_ADD = "ld.{s}.u32 %r2, [{x}]; add.u32 %r2, %r2, 1; st.{s}.u32 [{x}], %r2;"
#: What all threads of two warps do to a word: with the mistake, and without.
_MISTAKES = {
    "an update that is no atomic": (_ADD, "atom.{s}.add.u32 %r2, [{x}], 1;"),
    "a guard that is read beside updates": (
        "ld.{s}.u32 %r2, [{x}]; setp.lt.u32 %p, %r2, %i; @%p st.{s}.u32 [{x}], %i;",
        "atom.{s}.max.u32 %r2, [{x}], %i;",
    ),
    "a neighbour that is read without a barrier": (
        "st.{s}.u32 [{own}], %i; ld.{s}.u32 %r2, [{next}];",
        "st.{s}.u32 [{own}], %i; bar.sync 0; ld.{s}.u32 %r2, [{next}];",
    ),
    "a second round without a barrier": (
        "st.{s}.u32 [{own}], %i; bar.sync 0; ld.{s}.u32 %r2, [{next}]; st.{s}.u32 [{own}], %r2;",
        "st.{s}.u32 [{own}], %i; bar.sync 0; ld.{s}.u32 %r2, [{next}]; bar.sync 0; st.{s}.u32 [{own}], %r2;",
    ),
    "a barrier of half of the threads": (
        "st.{s}.u32 [{own}], %i; barrier.sync 1, 32; ld.{s}.u32 %r2, [{next}];".replace("1, 32", "%w, 32"),
        "st.{s}.u32 [{own}], %i; barrier.sync 1, 64; ld.{s}.u32 %r2, [{next}];",
    ),
}


def _mistakes() -> Iterator[Pattern]:
    for space, (name, bodies) in product(("shared", "global"), _MISTAKES.items()):
        own, after, x = ("%r3", "%r4", "%r0") if space == "shared" else ("%b", "%c", "%a")
        head = (
            "mov.u32 %r0, sh; shl.b32 %r5, %i, 2; add.u32 %r3, %r0, %r5; xor.b32 %r6, %r5, 252; add.u32 %r4, %r0, %r6;"
            "cvt.u64.u32 %b, %r5; add.u64 %b, %a, %b; cvt.u64.u32 %c, %r6; add.u64 %c, %a, %c;"
            "setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [%r0], 0; bar.sync 0;"
        )
        for body, races in zip(bodies, (True, False), strict=True):
            text = body.format(s=space, x=x, own=own, next=after)
            yield Pattern(f"{name}, {space}{'' if races else ', right'}", f"{head}\n{text}", 1, 64, races)


SETS = {
    "fences": _fences, "releases": _releases, "atomics": _atomics, "locks": _locks, "levels": _levels,
    "mistakes": _mistakes,
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_patterns_race_where_they_do(name: str) -> None:
    wrong, patterns = [], list(SETS[name]())
    for pattern in patterns:
        device = ptxtools.Device("sm_80", checks="racecheck")
        data = np.zeros(64, np.uint32)
        result = device.launch(module(pattern.body)["k"], pattern.ctas, pattern.threads, [data], shared=256)
        if bool(result.reports) != pattern.races:
            wrong.append(f"{pattern.name}: {'missed' if pattern.races else result.reports}")
    print(f"{name}: {len(patterns)} patterns, {sum(pattern.races for pattern in patterns)} of them with a race")
    assert not wrong, "\n".join(wrong)
