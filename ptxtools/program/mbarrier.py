"""The 64-bit word in shared memory that is an mbarrier object (9.7.13.15), and the operations on it.

    bit 0       somebody waits: who completes a phase wakes the lanes that stay at a wait (ours; hidden in states)
    bits 1-20   minus the expected arrivals of the next phase, modulo 2^20
    bits 21-41  tx-count, two's complement
    bit 42      reserved, 0
    bits 43-62  minus the pending arrivals of this phase, modulo 2^20
    bit 63      parity of the phase

This is the layout observed on chips. Native handlers change the word in shared memory; what they
cannot do alone (another CTA's barrier, waking, misuse) is done by `ptxtools.sim.asynchronous` with these functions.
A barrier that was never initialised has no expected arrivals, so no thread can arrive at it.
"""

from __future__ import annotations

WAITED = 1
EXPECTED_SHIFT, TX_SHIFT, PENDING_SHIFT, PHASE_SHIFT = 1, 21, 43, 63
COUNT_BITS, TX_BITS = 20, 21
COUNT_MASK, TX_MASK = (1 << COUNT_BITS) - 1, (1 << TX_BITS) - 1
#: Range of counts (9.7.13.15.2).
MAX_COUNT = (1 << COUNT_BITS) - 1
MAX_TX = (1 << TX_BITS - 1) - 1
MASK64 = (1 << 64) - 1
#: Under this name the cache of a program has the lines of waits that give up at once where work ends late, and a CTA's
#: state the lanes that have, by warp and line.
HASTY = "hasty waits"


class MisuseError(Exception):
    """The operation is not defined for the state of the barrier; the message says why."""


def fresh(count: int) -> int:
    """The word of a new barrier for `count` arrivals."""
    if not 1 <= count <= MAX_COUNT:
        raise MisuseError(f"an mbarrier cannot expect {count} arrivals; 1 to {MAX_COUNT} are allowed")
    minus = -count & COUNT_MASK
    return minus << PENDING_SHIFT | minus << EXPECTED_SHIFT


def phase(word: int) -> int:
    """Parity of the current phase."""
    return word >> PHASE_SHIFT & 1


def pending(word: int) -> int:
    """Missing arrivals of the current phase."""
    return -(word >> PENDING_SHIFT) & COUNT_MASK


def expected(word: int) -> int:
    """Arrivals of the next phase."""
    return -(word >> EXPECTED_SHIFT) & COUNT_MASK


def transactions(word: int) -> int:
    """tx-count: expected bytes that have not arrived; negative for bytes that arrived unexpectedly."""
    raw = word >> TX_SHIFT & TX_MASK
    return raw - (1 << TX_BITS) if raw >> TX_BITS - 1 else raw


def _build(parity: int, lacking: int, coming: int, tx: int, flag: int) -> int:
    return (
        parity << PHASE_SHIFT
        | (-lacking & COUNT_MASK) << PENDING_SHIFT
        | (tx & TX_MASK) << TX_SHIFT
        | (-coming & COUNT_MASK) << EXPECTED_SHIFT
        | flag
    )


def _with_transactions(word: int, tx: int) -> int:
    if not -MAX_TX <= tx <= MAX_TX:
        raise MisuseError(f"the mbarrier's tx-count becomes {tx}; -{MAX_TX} to {MAX_TX} are allowed")
    return word & ~(TX_MASK << TX_SHIFT) | (tx & TX_MASK) << TX_SHIFT


def expect_tx(word: int, count: int) -> int:
    """The word after an expect-tx operation (9.7.13.15.5.1)."""
    _check_alive(word)
    return _with_transactions(word, transactions(word) + count)


def complete_tx(word: int, count: int) -> int:
    """The word after a complete-tx operation, which may complete the phase (9.7.13.15.5.2)."""
    _check_alive(word)
    return complete(_with_transactions(word, transactions(word) - count))


def arrive(word: int, count: int = 1, *, drop: bool = False, completes: bool = True) -> int:
    """The word after an arrive-on operation (9.7.13.15.7), which may complete the phase.

    drop: later phases expect `count` arrivals less; completes: the phase may be complete then (else .noComplete).
    """
    _check_alive(word)
    lacking, coming = pending(word), expected(word)
    if not 1 <= count <= MAX_COUNT:
        raise MisuseError(f"{count} arrivals at once; 1 to {MAX_COUNT} are allowed")
    if count > lacking:
        raise MisuseError(f"{count} more arrivals at an mbarrier whose phase needs {lacking}")
    coming -= count if drop else 0
    if coming < 0:
        raise MisuseError(f"{count} arrivals are dropped from an mbarrier that expects {coming + count}")
    if not completes and lacking == count and not transactions(word):
        raise MisuseError(f"{count} arrivals with .noComplete complete the phase")
    return complete(_build(phase(word), lacking - count, coming, transactions(word), word & WAITED))


def announce(word: int) -> int:
    """The word if the current phase waits for one more arrival (9.7.13.15.15)."""
    _check_alive(word)
    if pending(word) == MAX_COUNT:
        raise MisuseError(f"an mbarrier cannot wait for more than {MAX_COUNT} arrivals")
    return _build(phase(word), pending(word) + 1, expected(word), transactions(word), word & WAITED)


def complete(word: int) -> int:
    """The word, in its next phase if this one is complete (9.7.13.15.6): nothing pending, tx-count zero."""
    if pending(word) or transactions(word):
        return word
    coming = expected(word)
    return _build(phase(word) ^ 1, coming, coming, 0, word & WAITED)


def _check_alive(word: int) -> None:
    if not pending(word) and not expected(word):
        raise MisuseError("the mbarrier is not initialised")


def describe(word: int) -> str:
    """The state for people: "phase 0, 3 of 4 arrivals, 512 bytes outstanding"."""
    total, lacking, tx = expected(word), pending(word), transactions(word)
    if not total and not lacking:
        return "not initialised"
    total = max(total, lacking)
    text = f"phase {phase(word)}: {total - lacking} of {total} arrivals came, {lacking} missing"
    if tx > 0:
        text += f", {tx} bytes of transactions outstanding"
    elif tx < 0:
        text += f", {-tx} bytes of transactions unannounced"
    return text
