"""What two sequences of lines have in common."""

import itertools
import random
from difflib import SequenceMatcher

import pytest

from ptxtools import matching
from ptxtools.matching import Matcher
from tests.work import calls


def patched(a, b, codes):
    """The second sequence, from the first one and the opcodes; these cover both."""
    made, i, j = [], 0, 0
    for tag, first, last, start, end in codes:
        assert (first, start) == (i, j) and (tag == "equal") == (a[first:last] == b[start:end])
        assert (tag == "delete") == (start == end) and (tag == "insert") == (first == last)
        made += a[first:last] if tag == "equal" else b[start:end]
        i, j = last, end
    assert (i, j) == (len(a), len(b))
    return made


def changed(lines, maker, count):
    """Lines with some replaced, left out, and put in."""
    found = list(lines)
    for number in range(count):
        at = maker.randrange(len(found))
        found[at : at + maker.choice((0, 1, 3))] = [f"new {number}"] * maker.choice((0, 1, 2))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_parts_cover_both_sequences(seed, monkeypatch):
    monkeypatch.setattr(matching, "_MANY", 20)
    monkeypatch.setattr(matching, "_PART", 8)
    maker = random.Random(seed)
    a = [maker.choice("abcdefghijklmnop") for _ in range(200)]
    for b in (changed(a, maker, 9), [], a, a[::-1], a[60:], a + a, [maker.choice("abc") for _ in range(150)]):
        for one, other in ((a, b), (b, a)):
            codes = Matcher(one, other).get_opcodes()
            assert patched(one, other, codes) == other
            assert all(x[0] != y[0] and "equal" in (x[0], y[0]) for x, y in itertools.pairwise(codes))


def test_short_sequences_are_as_those_of_difflib():
    maker = random.Random(3)
    a = [maker.choice("abcdefgh") for _ in range(300)]
    b = changed(a, maker, 20)
    assert Matcher(a, b).get_opcodes() == SequenceMatcher(None, a, b).get_opcodes()


@pytest.mark.parametrize("moved", [3000, 9000])
def test_what_is_put_in_between_leaves_the_rest_equal(moved):
    maker = random.Random(7)
    a = [f"{maker.choice('abcdefgh')}{maker.randrange(9)}" for _ in range(20_000)]
    b = [*a[:4000], *["new"] * moved, *a[4000:11_000], "other", *a[11_001:]]
    codes = [each for each in Matcher(a, b).get_opcodes() if each[0] != "equal"]
    assert codes == [
        ("insert", 4000, 4000, 4000, 4000 + moved),
        ("replace", 11_000, 11_001, 11_000 + moved, 11_001 + moved),
    ]


def test_time_grows_with_the_length():
    def work(count):
        maker = random.Random(5)
        a = [maker.choice("abcdefgh") for _ in range(count)]
        b = [line if number % 3 else "x" for number, line in enumerate(a)]
        return calls(lambda: Matcher(a, b).get_opcodes())

    assert work(40_000) < 3 * work(20_000)
