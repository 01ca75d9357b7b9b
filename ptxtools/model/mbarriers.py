"""The word of an mbarrier object, as this model lays it out (9.7.13.15.2): pending arrivals, expected arrivals,
pending transactions, phase. The manual leaves the layout open, so tests should not look at it.

A word of 0 is no mbarrier: memory that was not initialised, or an object whose counts have left their ranges. All
operations leave it as it is; the behaviour of the program is undefined then.
"""

from __future__ import annotations

#: Bits of the counts of arrivals; their largest value is that of 9.7.13.15.2, and transactions have a sign.
_COUNT, _TRANSACTIONS, _PHASE = 20, 21, 3
_MOST = (1 << _COUNT) - 1
_NO_MBARRIER = 0


def initial(count: int) -> int:
    """mbarrier.init: the word of an object that expects so many arrivals in each phase."""
    return _word(count, count, 0, 0)


def arrived(word: int, count: int = 1, transactions: int = 0, *, drops: bool = False) -> int:
    """An arrive-on operation, after an expect-tx operation of so many transactions (9.7.13.15.5.1, .7). drops: later
    phases expect so many arrivals less."""
    if word == _NO_MBARRIER:
        return word
    pending, expected, open_, phase = _parts(word)
    return _settled(pending - count, expected - (count if drops else 0), open_ + transactions, phase)


def expecting(word: int, transactions: int) -> int:
    """An expect-tx operation (9.7.13.15.5.1)."""
    if word == _NO_MBARRIER:
        return word
    pending, expected, open_, phase = _parts(word)
    return _word(pending, expected, open_ + transactions, phase)


def completed(word: int, transactions: int) -> int:
    """A complete-tx operation (9.7.13.15.5.2)."""
    if word == _NO_MBARRIER:
        return word
    pending, expected, open_, phase = _parts(word)
    return _settled(pending, expected, open_ - transactions, phase)


def awaiting(word: int, count: int = 1) -> int:
    """What is pending grows by so many arrivals (9.7.13.15.15)."""
    if word == _NO_MBARRIER:
        return word
    pending, expected, open_, phase = _parts(word)
    return _word(pending + count, expected, open_, phase)


def is_complete(word: int, state: int) -> bool:
    """test_wait: whether the phase in which an arrival returned `state` is over."""
    return word != _NO_MBARRIER and _parts(word)[3] != _parts(state & (1 << 64) - 1)[3]


def is_parity_complete(word: int, parity: int) -> bool:
    """test_wait.parity: whether the phase of this parity is over: the current one has the other."""
    return word != _NO_MBARRIER and _parts(word)[3] & 1 != parity & 1


def pending_count(state: int) -> int:
    """mbarrier.pending_count: the pending arrivals in a state that an arrival returned."""
    return _parts(state & (1 << 64) - 1)[0]


def _parts(word: int) -> tuple[int, int, int, int]:
    open_ = word >> 2 * _COUNT & (1 << _TRANSACTIONS) - 1
    if open_ >> _TRANSACTIONS - 1:
        open_ -= 1 << _TRANSACTIONS
    return word & _MOST, word >> _COUNT & _MOST, open_, word >> 2 * _COUNT + _TRANSACTIONS


def _settled(pending: int, expected: int, open_: int, phase: int) -> int:
    """The next phase, if this one is complete (9.7.13.15.6)."""
    if pending == open_ == 0:
        return _word(expected, expected, 0, phase + 1)
    return _word(pending, expected, open_, phase)


def _word(pending: int, expected: int, open_: int, phase: int) -> int:
    if not (0 <= pending <= _MOST and 1 <= expected <= _MOST and -_MOST <= open_ <= _MOST):
        return _NO_MBARRIER
    high = (phase & (1 << _PHASE) - 1) << _TRANSACTIONS | open_ & (1 << _TRANSACTIONS) - 1
    return high << 2 * _COUNT | expected << _COUNT | pending
