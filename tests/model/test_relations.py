"""The algebra of relations against sets of pairs."""

import random
from itertools import pairwise

from ptxtools.model import relations as algebra

N = 6


def random_pairs(generator, density):
    return {(a, b) for a in range(N) for b in range(N) if generator.random() < density}


def as_pairs(rows):
    return set(algebra.pairs(rows))


def closed(pairs):
    found = set(pairs)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return found
        found |= more


def test_operations_are_those_of_sets_of_pairs():
    generator = random.Random(5)
    for _ in range(200):
        left, right = random_pairs(generator, 0.25), random_pairs(generator, 0.25)
        a, b = algebra.relation(sorted(left), N), algebra.relation(sorted(right), N)
        assert as_pairs(algebra.union(a, b)) == left | right
        assert as_pairs(algebra.common(a, b)) == left & right
        assert as_pairs(algebra.without(a, b)) == left - right
        assert as_pairs(algebra.chain(a, b)) == {(x, z) for x, y in left for w, z in right if y == w}
        assert as_pairs(algebra.inverse(a)) == {(y, x) for x, y in left}
        assert as_pairs(algebra.closure(a)) == closed(left)


def test_questions_are_those_of_sets_of_pairs():
    generator, cyclic = random.Random(6), 0
    for _ in range(300):
        pairs = random_pairs(generator, 0.1)
        rows = algebra.relation(sorted(pairs), N)
        loops = {x for x, y in closed(pairs) if x == y}
        cyclic += bool(loops)
        assert algebra.is_acyclic(rows) == (not loops)
        assert algebra.is_irreflexive(rows) == (not any(x == y for x, y in pairs))
        assert algebra.is_empty(rows) == (not pairs)
        found = algebra.cycle(rows)
        assert bool(found) == bool(loops)
        if found:
            assert found[0] == found[-1] and all(step in pairs for step in pairwise(found))
            lengths = [len(path) for x in loops if (path := algebra.shortest(rows, x, x))]
            assert len(found) == min(lengths)
    assert 50 < cyclic < 250


def test_sets_and_products():
    assert list(algebra.members(0b10110)) == [1, 2, 4]
    assert as_pairs(algebra.identity(0b101, 3)) == {(0, 0), (2, 2)}
    assert as_pairs(algebra.product(0b011, 0b100, 3)) == {(0, 2), (1, 2)}
    assert algebra.shortest(algebra.relation([(0, 1), (1, 2)], 3), 2, 0) == []
