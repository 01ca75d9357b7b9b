"""Where a write may stand among those of its location, for `--memory weak`.

A history is in an order that extends coherence order (8.9.6): writes that are morally strong are ordered as they stand
there, and so is what causality relates; others are in no order. Each write has the set of those that it follows.

A read may look behind a write that its thread knows, to one that races with it. Then the two must never be ordered
(8.10.6), and if the read is strong, no write that is morally strong with it may stand between them: each edge of
SC-per-Location (8.10.5) then leads forward in the history, so that there is no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from .views import Agent, Write, hidden_by, mutual, strong


def put(write: Write, history: list[Write], at: int, seen: set[Write], fellows: set[Write]) -> bool:
    """Put a write there, if nothing forbids it. seen: what precedes it in causality order, in front of that place;
    fellows: those of the history that it is morally strong with."""
    later = fellows.intersection(history[at:])
    first = {history[0], *seen} | (fellows - later)
    mine = (first | hidden_by(first)).intersection(history)
    moved = {other: other.earlier | mine | {write} for other in history[at:] if other in later or other.earlier & later}
    whole = [*history[:at], write, *history[at:]]
    orders = {other: moved.get(other, other.earlier) for other in whole} | {write: mine}
    if _is_torn(write, whole, orders, moved) or (moved and _contradicts(write, whole, orders, moved)):
        return False
    write.earlier = mine
    for other, order in moved.items():
        other.earlier = order
    history.insert(at, write)
    return True


def ordered(write: Write, history: list[Write], before: set[Write]) -> dict[Write, set[Write]] | None:
    """The orders that change if these writes precede one that has its place; None if something forbids that."""
    new = before - write.earlier
    if not new:
        return {}
    at = history.index(write) if write in history else -1
    if at < 0 or not new.issubset(history[:at]):
        return None
    added = (new | hidden_by(new)).intersection(history)
    moved = {other: other.earlier | added for other in history[at:] if other is write or write in other.earlier}
    orders = {other: moved.get(other, other.earlier) for other in history}
    if _is_torn(write, history, orders, moved) or _contradicts(write, history, orders, moved):
        return None
    return moved


def _is_torn(write: Write, whole: list[Write], orders: dict[Write, set[Write]], moved: Iterable[Write]) -> bool:
    """Whether a morally strong write stands between the read and the write of an atomic operation (8.10.3)."""
    changed = {write, *moved}
    for atomic in whole if len(changed) > 1 else (write,):
        if atomic.behind is None:
            continue
        order = orders[atomic]
        if atomic.behind not in orders:  # forgotten: what comes now comes later
            if write in order and strong(atomic, write):
                return True
            continue
        for other in order if atomic in changed else order & changed:
            if other in orders and atomic.behind in orders[other] and strong(atomic, other):
                return True
    return False


def _contradicts(write: Write, whole: list[Write], orders: dict[Write, set[Write]], moved: Iterable[Write]) -> bool:
    """Whether it changes what a read rests on that looked behind a write."""
    places = {other: at for at, other in enumerate(whole)}
    changed = {write, *moved}
    for old in whole:
        behind = [other for other in changed if old in orders[other]]
        if not old.never.isdisjoint(behind):
            return True
        for agent, scope, last in old.passed:
            end = places.get(last, -1)
            if any(places[other] < end and mutual(agent, scope, other.agent, other.scope) for other in behind):
                return True
    return False


def readable(agent: Agent, scope: str, history: list[Write], seen: set[Write]) -> list[Write]:
    """What a read returns that these writes precede in causality order: none of those that they follow."""
    hidden = hidden_by(seen)
    last = max((at for at, write in enumerate(history) if write in seen), default=0)
    found = []
    for at, write in enumerate(history):
        if write in hidden:
            continue
        between = history[at + 1 : last] if scope else []
        if not any(write in other.earlier and mutual(agent, scope, other.agent, other.scope) for other in between):
            found.append(write)
    return found


def returned(agent: Agent, scope: str, history: list[Write], seen: set[Write], write: Write) -> None:
    """Note what a read rests on that returns one of `readable`."""
    at = history.index(write)
    behind = [other for other in history[at + 1 :] if other in seen]
    if behind:
        write.never.update(behind)
        if scope:
            write.passed.append((agent, scope, behind[-1]))


def is_whole(agent: Agent, scope: str, own: Write, read: Write, history: list[Write]) -> bool:
    """Whether an atomic operation may have read this write: nothing that is morally strong stands between (8.10.3)."""
    return not any(
        read in other.earlier and other in own.earlier and mutual(agent, scope, other.agent, other.scope)
        for other in history
    )


def forget(history: list[Write], place: int) -> None:
    """Leave out a write; the next one stands for it."""
    dropped = history.pop(place)
    dropped.later = following = history[place]
    following.taken = True
    if following.pending is not None:
        following.pending.done = True
    following.number = min(following.number, dropped.number)
    following.earlier |= dropped.earlier
    following.never |= dropped.never - {following}
    following.passed += dropped.passed
    for other in history:
        other.earlier.discard(dropped)
        other.earlier.discard(other)
