"""Follows names through functions whose lines are known: definitions, uses, blocks, phis, dominance.

A function is passed if it has no fault; one that is not passed may have none either.
"""

from __future__ import annotations

from ..rules.shape import (
    BRANCH,
    END,
    INCOMING,
    MENTIONED,
    NAMED,
    NODE,
    OPERAND,
    OTHER,
    PHI,
    RESULT,
    RETURN,
    SOURCE,
    TARGET,
    UNNAMED,
)  # fmt: skip
from .notation import Bytes, Words
from .scan import BODY_NAMES, FUNCTION, LINES, LINES_END, NAMES, NO_NUMBER, ROW, ROW_KIND, ROW_MORE

#: Words of what is known of lines: the kind; where the roles of its names begin, and how many it has; where the types
#: of its operands begin; the types of its result and of what it returns.
LINE = 6
KIND, ROLES, ROLES_COUNT, TYPES, GIVES, RETURNS = range(6)
#: Words of a name in a function: the function; the number of the value, or -1 - that of the block.
HERE = 2
OWNER, MEANS = range(2)
#: Words of a value: its type and its block.
VALUE = 2
TYPE, HOME = range(2)
#: Words of a block: where its predecessors begin and how many it has; where the branches from it begin; the block that
#: dominates it, -1 if it is not reached; its place in the tree of these, and how many are below it with itself; a place
#: that is free; whose predecessor it is, and in which phi it was found; when it is left. And, by number, the block that
#: is left then, and the blocks on the way.
BLOCK = 12
BEFORE, BEFORE_COUNT, AFTER, PARENT, ENTER, BELOW, FREE, PRECEDES, MERGED, LEFT, ORDER, WAY = range(12)
#: Words of a branch: from, to.
EDGE = 2
FROM, TO = range(2)
#: Looks at blocks, for each, when dominators are found.
MOST_LOOKS = 512


def flow(functions: Words, function_count: int, modern: int, heads: Words, types_of_params: Words, kinds: Words,
         known: Words, roles: Bytes, types: Words, names: Words, by_number: Words, number_count: int, undefined: Bytes,
         lines: Words, references: Words, here: Words, values: Words, blocks: Words, edges: Words, before: Words,
         passed: Bytes) -> int:  # fmt: skip
    """Say for each function whether it is passed.

    heads: for each function the begin of its parameters' types, and the type that it returns; kinds: for each shape of
    lines the number of what is known of it, -1 if that is nothing; undefined: for each name, whether it is a node that
    nothing defines; passed: the result.
    """
    for one in range(1, function_count):
        if functions[one * FUNCTION + LINES] >= 0:
            passed[one] = function(one, functions, modern, heads, types_of_params, kinds, known, roles, types, names,
                                   by_number, number_count, undefined, lines, references, here, values, blocks, edges,
                                   before)  # fmt: skip
    return 0


def function(one: int, functions: Words, modern: int, heads: Words, types_of_params: Words, kinds: Words, known: Words,
             roles: Bytes, types: Words, names: Words, by_number: Words, number_count: int, undefined: Bytes,
             lines: Words, references: Words, here: Words, values: Words, blocks: Words, edges: Words,
             before: Words) -> int:  # fmt: skip
    """Whether a function is passed."""
    at = one * FUNCTION
    first, last = functions[at + LINES], functions[at + LINES_END]
    begin = functions[at + BODY_NAMES]
    params = begin - functions[at + NAMES]
    most = last - first + params + 2
    returned = heads[2 * one + 1]
    # Definitions, in order; numbers that are not written are counted.
    next_ = 0
    count = 0
    for i in range(params):
        name = references[functions[at + NAMES] + i]
        if name < 0:
            if next_ >= number_count:
                return 0
            name = by_number[next_] - 1
            next_ += 1
        else:
            next_ = counted(names[name * ROW + ROW_MORE], next_, most, modern)
            if next_ < 0:
                return 0
        values[count * VALUE + TYPE] = types_of_params[heads[2 * one] + i]
        values[count * VALUE + HOME] = 0
        if not defined(name, one, count, here):
            return 0
        count += 1
    block = -1
    open_ = 0
    merges = 0
    edge = 0
    ref = begin
    for k in range(first, last):
        if lines[k] < 0:
            if open_:
                return 0
            name = -1 - lines[k]
            next_ = counted(names[name * ROW + ROW_MORE], next_, most, modern)
            block += 1
            if next_ < 0 or not defined(name, one, -1 - block, here):
                return 0
            blocks[block * BLOCK + BEFORE_COUNT] = 0
            blocks[block * BLOCK + AFTER] = edge
            open_ = 1
            merges = 1
            continue
        shape = kinds[lines[k]] * LINE
        if shape < 0 or next_ + 1 >= number_count:
            return 0
        kind = known[shape + KIND]
        if not open_:
            block += 1
            if not defined(by_number[next_] - 1, one, -1 - block, here):
                return 0
            next_ += 1
            blocks[block * BLOCK + BEFORE_COUNT] = 0
            blocks[block * BLOCK + AFTER] = edge
            open_ = 1
            merges = 1
        if kind == PHI:
            if not merges:
                return 0
        else:
            merges = 0
        role = known[shape + ROLES]
        if kind == UNNAMED:
            if not defined(by_number[next_] - 1, one, count, here):
                return 0
            next_ += 1
        for j in range(known[shape + ROLES_COUNT]):
            if roles[role + j] == RESULT:
                name = references[ref + j]
                next_ = counted(names[name * ROW + ROW_MORE], next_, most, modern)
                if next_ < 0 or names[name * ROW + ROW_KIND] or not defined(name, one, count, here):
                    return 0
            elif roles[role + j] == TARGET:
                edges[edge * EDGE + FROM] = block
                edges[edge * EDGE + TO] = references[ref + j]
                edge += 1
            elif roles[role + j] == OTHER:
                return 0
        ref += known[shape + ROLES_COUNT]
        if kind in (PHI, NAMED, UNNAMED):
            values[count * VALUE + TYPE] = known[shape + GIVES]
            values[count * VALUE + HOME] = block
            count += 1
        elif kind in (BRANCH, RETURN, END):
            open_ = 0
            if kind == RETURN and known[shape + RETURNS] != returned:
                return 0
    if open_ or block < 0:
        return 0
    if not dominators(one, block + 1, edge, here, blocks, edges, before):
        return 0
    return uses(one, first, last, begin, params, kinds, known, roles, types, undefined, lines, references, here, values,
                blocks, before, names)  # fmt: skip


def counted(number: int, next_: int, most: int, modern: int) -> int:
    """The number that comes next behind a name; -1 if it is out of order. Before LLVM 17 numbers have no gaps."""
    if number == NO_NUMBER:
        return next_
    if number < next_ or number > most or (number > next_ and not modern):
        return -1
    return number + 1


def defined(name: int, one: int, means: int, here: Words) -> int:
    """Define a name, or none that anything has (-1). 0 if it is defined."""
    if name >= 0:
        if here[name * HERE + OWNER] == one:
            return 0
        here[name * HERE + OWNER] = one
        here[name * HERE + MEANS] = means
    return 1


def block_of(name: int, one: int, here: Words) -> int:
    """The block of a name; -1 if it is none."""
    if here[name * HERE + OWNER] == one and here[name * HERE + MEANS] < 0:
        return -1 - here[name * HERE + MEANS]
    return -1


def dominators(one: int, count: int, edge_count: int, here: Words, blocks: Words, edges: Words,
               before: Words) -> int:  # fmt: skip
    """Find the predecessors and the dominator of each block (Cooper, Harvey, Kennedy 2001). 0 if a branch goes nowhere
    or to the first block, or if that takes long."""
    for i in range(edge_count):
        target = block_of(edges[i * EDGE + TO], one, here)
        if target <= 0:
            return 0
        edges[i * EDGE + TO] = target
        blocks[target * BLOCK + BEFORE_COUNT] += 1
    place = 0
    for b in range(count):
        at = b * BLOCK
        blocks[at + BEFORE] = place
        blocks[at + FREE] = place
        blocks[at + BELOW] = 1
        blocks[at + PRECEDES] = -1
        blocks[at + MERGED] = -1
        blocks[at + PARENT] = -1
        blocks[at + LEFT] = -1
        place += blocks[at + BEFORE_COUNT]
    for i in range(edge_count):
        target = edges[i * EDGE + TO] * BLOCK
        before[blocks[target + FREE]] = edges[i * EDGE + FROM]
        blocks[target + FREE] += 1
    blocks[count * BLOCK + AFTER] = edge_count
    reached = leave_all(blocks, edges)
    looks = count * MOST_LOOKS
    blocks[PARENT] = 0
    changed = 1
    while changed:
        changed = 0
        for k in range(1, reached):
            at = blocks[(reached - 1 - k) * BLOCK + ORDER] * BLOCK
            best = -1
            for i in range(blocks[at + BEFORE], blocks[at + BEFORE] + blocks[at + BEFORE_COUNT]):
                other = before[i]
                if blocks[other * BLOCK + PARENT] >= 0:
                    if best < 0:
                        best = other
                    while best != other and looks > 0:
                        looks -= 1
                        if blocks[best * BLOCK + LEFT] < blocks[other * BLOCK + LEFT]:
                            best = blocks[best * BLOCK + PARENT]
                        else:
                            other = blocks[other * BLOCK + PARENT]
            if blocks[at + PARENT] != best:
                blocks[at + PARENT] = best
                changed = 1
        if looks <= 0:
            return 0
    for k in range(reached - 1):
        at = blocks[k * BLOCK + ORDER] * BLOCK
        blocks[blocks[at + PARENT] * BLOCK + BELOW] += blocks[at + BELOW]
    blocks[ENTER] = 0
    blocks[FREE] = 1
    for k in range(1, reached):
        at = blocks[(reached - 1 - k) * BLOCK + ORDER] * BLOCK
        parent = blocks[at + PARENT] * BLOCK
        blocks[at + ENTER] = blocks[parent + FREE]
        blocks[at + FREE] = blocks[parent + FREE] + 1
        blocks[parent + FREE] += blocks[at + BELOW]
    return 1


def leave_all(blocks: Words, edges: Words) -> int:
    """Go through all blocks that are reached, and note in which order they are left. How many there are."""
    depth = 0
    left = 0
    blocks[WAY] = 0
    blocks[FREE] = blocks[AFTER]
    blocks[LEFT] = 0
    while depth >= 0:
        b = blocks[depth * BLOCK + WAY]
        at = b * BLOCK
        i = blocks[at + FREE]
        if i < blocks[at + BLOCK + AFTER]:
            blocks[at + FREE] = i + 1
            target = edges[i * EDGE + TO]
            if blocks[target * BLOCK + LEFT] < 0:
                blocks[target * BLOCK + LEFT] = 0
                blocks[target * BLOCK + FREE] = blocks[target * BLOCK + AFTER]
                depth += 1
                blocks[depth * BLOCK + WAY] = target
        else:
            blocks[left * BLOCK + ORDER] = b
            blocks[at + LEFT] = left
            left += 1
            depth -= 1
    return left


def comes_before(home: int, block: int, blocks: Words) -> int:
    """Whether a block is on all ways to another one, or is that one; every block is if that one is not reached."""
    if home == 0 or blocks[block * BLOCK + PARENT] < 0:
        return 1
    if blocks[home * BLOCK + PARENT] < 0:
        return 0
    inside = blocks[block * BLOCK + ENTER] - blocks[home * BLOCK + ENTER]
    if 0 <= inside < blocks[home * BLOCK + BELOW]:
        return 1
    return 0


def uses(one: int, first: int, last: int, begin: int, params: int, kinds: Words, known: Words, roles: Bytes,
         types: Words, undefined: Bytes, lines: Words, references: Words, here: Words, values: Words, blocks: Words,
         before: Words, names: Words) -> int:  # fmt: skip
    """Whether names are defined before they are used, with the types that their uses have, and phis fit."""
    block = -1
    open_ = 0
    count = params
    ref = begin
    phi = 0
    merging = -1
    wanted = 0
    for k in range(first, last):
        if not open_:
            block += 1
            open_ = 1
        if lines[k] < 0:
            continue
        shape = kinds[lines[k]] * LINE
        kind = known[shape + KIND]
        role = known[shape + ROLES]
        type = known[shape + TYPES]
        sources = 0
        phi += 1
        if kind == PHI and merging != block:
            merging = block
            wanted = precedes(block, blocks, before)
        for j in range(known[shape + ROLES_COUNT]):
            what = roles[role + j]
            name = references[ref + j]
            if what == NODE:
                if not names[name * ROW + ROW_KIND] or undefined[name]:
                    return 0
            elif what == SOURCE:
                source = block_of(name, one, here)
                if source < 0 or blocks[source * BLOCK + PRECEDES] != block:
                    return 0
                if blocks[source * BLOCK + MERGED] != phi:
                    blocks[source * BLOCK + MERGED] = phi
                    sources += 1
            elif what in (OPERAND, INCOMING, MENTIONED):
                if here[name * HERE + OWNER] != one or here[name * HERE + MEANS] < 0:
                    return 0
                if what != MENTIONED:
                    value = here[name * HERE + MEANS]
                    home = values[value * VALUE + HOME]
                    if values[value * VALUE + TYPE] != types[type]:
                        return 0
                    type += 1
                    at = block
                    if what == INCOMING:
                        if roles[role + j + 1] != SOURCE:
                            return 0
                        at = block_of(references[ref + j + 1], one, here)
                        if at < 0:
                            return 0
                    elif home == block and value >= count:
                        return 0
                    if home != at and not comes_before(home, at, blocks):
                        return 0
        if kind == PHI and sources != wanted:
            return 0
        ref += known[shape + ROLES_COUNT]
        if kind in (PHI, NAMED, UNNAMED):
            count += 1
        elif kind in (BRANCH, RETURN, END):
            open_ = 0
    return 1


def precedes(block: int, blocks: Words, before: Words) -> int:
    """Note of its predecessors that they are that; how many there are."""
    found = 0
    begin = blocks[block * BLOCK + BEFORE]
    for i in range(begin, begin + blocks[block * BLOCK + BEFORE_COUNT]):
        at = before[i] * BLOCK
        if blocks[at + PRECEDES] != block:
            blocks[at + PRECEDES] = block
            found += 1
    return found
