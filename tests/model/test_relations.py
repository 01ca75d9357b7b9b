"""The algebra of relations against sets of pairs."""

import random
from itertools import pairwise

from ptxtools.model.relations import Universe, members

N = 6
ALL = Universe(N)


def random_pairs(generator, density):
    return {(a, b) for a in range(N) for b in range(N) if generator.random() < density}


def as_pairs(rows):
    return set(ALL.pairs(rows))


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
        a, b = ALL.relation(left), ALL.relation(right)
        assert as_pairs(a | b) == left | right
        assert as_pairs(a & b) == left & right
        assert as_pairs(a & ~b) == left - right
        assert as_pairs(ALL.chain(a, b)) == {(x, z) for x, y in left for w, z in right if y == w}
        assert as_pairs(ALL.inverse(a)) == {(y, x) for x, y in left}
        assert as_pairs(ALL.closure(a)) == closed(left)


def test_questions_are_those_of_sets_of_pairs():
    generator, cyclic = random.Random(6), 0
    for _ in range(300):
        pairs = random_pairs(generator, 0.1)
        rows = ALL.relation(pairs)
        loops = {x for x, y in closed(pairs) if x == y}
        cyclic += bool(loops)
        assert ALL.is_acyclic(rows) == (not loops)
        assert ALL.is_irreflexive(rows) == (not any(x == y for x, y in pairs))
        assert ALL.packed(ALL.rows(rows)) == rows
        found = ALL.cycle(rows)
        assert bool(found) == bool(loops)
        if found:
            assert found[0] == found[-1] and all(step in pairs for step in pairwise(found))
            lengths = [len(path) for x in loops if (path := ALL.shortest(rows, x, x))]
            assert len(found) == min(lengths)
    assert 50 < cyclic < 250


def test_sets_and_products():
    three = Universe(3)
    assert list(members(0b10110)) == [1, 2, 4]
    assert set(three.pairs(three.identity(0b101))) == {(0, 0), (2, 2)}
    assert set(three.pairs(three.product(0b011, 0b100))) == {(0, 2), (1, 2)}
    assert three.after(three.relation([(0, 1), (0, 2)]), 0) == 0b110
    assert three.shortest(three.relation([(0, 1), (1, 2)]), 2, 0) == []
