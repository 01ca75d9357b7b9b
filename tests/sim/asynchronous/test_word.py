"""The mbarrier's word against a model that keeps its counts as numbers (9.7.13.15)."""

from __future__ import annotations

import random

import pytest

from ptxtools.program import mbarrier


def test_initial_word_as_observed_on_chips() -> None:
    assert mbarrier.fresh(32) == 0x7FFF0000_001FFFC0


def test_phases_against_counts() -> None:
    generator = random.Random(1)
    for _ in range(200):
        count = generator.randint(1, 9)
        word, lacking, coming, tx, parity = mbarrier.fresh(count), count, count, 0, 0
        for _ in range(30):
            action = generator.randrange(4)
            if action == 0 and lacking:
                n = generator.randint(1, lacking)
                word, lacking = mbarrier.arrive(word, n), lacking - n
            elif action == 1 and lacking and coming > 1:
                word, lacking, coming = mbarrier.arrive(word, drop=True), lacking - 1, coming - 1
            elif action == 2 and lacking:
                n = generator.randrange(1 << 18)
                word, tx = mbarrier.expect_tx(word, n), tx + n
            elif tx:
                n = generator.randint(1, tx)
                word, tx = mbarrier.complete_tx(word, n), tx - n
            if not lacking and not tx:
                parity, lacking = parity ^ 1, coming
            found = (mbarrier.phase(word), mbarrier.pending(word), mbarrier.expected(word), mbarrier.transactions(word))
            assert found == (parity, lacking, coming, tx)


def test_bytes_may_come_before_they_are_announced() -> None:
    word = mbarrier.complete_tx(mbarrier.fresh(1), 64)
    assert mbarrier.transactions(word) == -64
    word = mbarrier.arrive(mbarrier.expect_tx(word, 64))
    assert mbarrier.phase(word) == 1


@pytest.mark.parametrize("count", [0, 1 << 20])
def test_counts_out_of_range(count: int) -> None:
    with pytest.raises(mbarrier.MisuseError):
        mbarrier.fresh(count)
    with pytest.raises(mbarrier.MisuseError):
        mbarrier.arrive(mbarrier.fresh(1), count)


def test_misuse() -> None:
    with pytest.raises(mbarrier.MisuseError, match="not initialised"):
        mbarrier.arrive(0)
    with pytest.raises(mbarrier.MisuseError, match="needs 1"):
        mbarrier.arrive(mbarrier.fresh(1), 2)
    with pytest.raises(mbarrier.MisuseError, match="tx-count"):
        mbarrier.expect_tx(mbarrier.expect_tx(mbarrier.fresh(1), 1 << 19), 1 << 19)


def test_the_flag_of_waiting_lanes_survives() -> None:
    word = mbarrier.fresh(1) | mbarrier.WAITED
    assert mbarrier.arrive(word) & mbarrier.WAITED
    assert mbarrier.complete_tx(mbarrier.expect_tx(word, 4), 4) & mbarrier.WAITED
