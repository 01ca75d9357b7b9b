"""Finds lines with nodes of metadata, and which are equal but for what they may differ in (`assembly.nodelines`)."""

from __future__ import annotations

from .notation import Bytes, Words
from .scan import (
    DIGIT_0,
    DIGIT_9,
    LINE_END,
    LINES_USED,
    MASK,
    MULTIPLIER,
    NO_NUMBER,
    QUOTATION,
    SHAPES_USED,
    SHIFT,
    TEXT_USED,
    entry,
    name_of,
)

#: What stands for a node, a string, a number, an empty string.
A_NODE, A_STRING, A_NUMBER, AN_EMPTY_STRING = range(4)
NODE_SIGN, COLON, BLANK, COMMA, CLOSING = b"!: ,)"
#: Ends of the names of fields, by their bytes: those that take more digits than others, and those that take none.
LINE_FIELD, SIZE_FIELD, KIND_FIELD, LITY_FIELD = (int.from_bytes(one, "big") for one in (b"ine", b"ize",
                                                  b"Kind", b"lity"))  # fmt: skip
MOST_DIGITS, FEWER_DIGITS = 9, 4
#: Words of a line: where it begins; its shape.
LINE = 2
LINE_BEGIN, LINE_SHAPE = range(2)
#: Words of a group of lines of a shape: how many there are, where their names begin.
GROUP = 2
GROUP_COUNT, GROUP_NAMES = range(2)
#: Words of a name of a node, or of neighbours that are passed over: where it begins and ends.
EXTENT = 2
BEGINS, ENDS = range(2)


def nodes(text: Bytes, size: int, shapes: Words, shape_table: Words, shape_mask: int, shape_text: Bytes, names: Words,
          name_table: Words, name_mask: int, lines: Words, counts: Words) -> int:  # fmt: skip
    """Find the lines of a text, with one more that begins behind it, and all nodes that they mention. LINES_USED is 0
    if there are too many."""
    i = 0
    while i <= size:
        begin = i
        start = counts[TEXT_USED]
        out = start
        digest = 1
        while i < size and text[i] != LINE_END:
            c = text[i]
            first = i
            i += 1
            if c == NODE_SIGN and i < size and DIGIT_0 <= text[i] <= DIGIT_9:
                i = digits_end(text, i, size)
                if name_of(text, first + 1, i, 1, NO_NUMBER, names, name_table, name_mask, counts) < 0:
                    counts[LINES_USED] = 0
                    return 0
                c = A_NODE
            elif c == QUOTATION:
                while i < size and text[i] != QUOTATION and text[i] != LINE_END:
                    i += 1
                if i < size and text[i] == QUOTATION:
                    i += 1
                    c = A_STRING
                    if i == first + 2:
                        c = AN_EMPTY_STRING
                else:
                    i = first + 1
            elif c == COLON and i + 1 < size and text[i] == BLANK and DIGIT_0 <= text[i + 1] <= DIGIT_9:
                last = digits_end(text, i + 1, size)
                if last < size and (text[last] == COMMA or text[last] == CLOSING) and varies(text, first, last - i - 1):
                    i = last
                    c = A_NUMBER
            digest = (digest ^ c) * MULTIPLIER & MASK
            shape_text[out] = c
            out += 1
        new = counts[SHAPES_USED]
        shape = entry(shape_text, start, out, digest >> SHIFT, 0, counts[LINES_USED], shapes, shape_table, shape_mask,
                      SHAPES_USED, counts)  # fmt: skip
        if shape < 0:
            counts[LINES_USED] = 0
            return 0
        if shape == new:
            counts[TEXT_USED] = out
        at = counts[LINES_USED] * LINE
        lines[at + LINE_BEGIN] = begin
        lines[at + LINE_SHAPE] = shape
        lines[at + LINE + LINE_BEGIN] = i + 1
        counts[LINES_USED] += 1
        i += 1
    return 0


def digits_end(text: Bytes, first: int, size: int) -> int:
    i = first
    while i < size and DIGIT_0 <= text[i] <= DIGIT_9:
        i += 1
    return i


def varies(text: Bytes, colon: int, digits: int) -> int:
    """Whether lines may differ in a number behind this colon."""
    before = 0
    i = colon - 4
    while i < colon:
        before = before << 8
        if i >= 0:
            before = before | text[i]
        i += 1
    three = before & 0xFFFFFF
    if digits <= FEWER_DIGITS and before != KIND_FIELD and before != LITY_FIELD:
        return 1
    if digits <= MOST_DIGITS and three in (LINE_FIELD, SIZE_FIELD):
        return 1
    return 0


def groups(text: Bytes, size: int, lines: Words, line_count: int, known: Bytes, shape_count: int, group: Words,
           names: Words, passed: Words) -> int:  # fmt: skip
    """Put the names of lines of known shapes together by shape, and find where lines stand that are not the first of
    theirs, neighbours as one.

    known: for each shape, whether it is; group: of each shape, all 0; passed: the result, for which the first row says
    how many there are.
    """
    for i in range(line_count):
        group[lines[i * LINE + LINE_SHAPE] * GROUP + GROUP_COUNT] += 1
    place = 0
    for i in range(shape_count):
        group[i * GROUP + GROUP_NAMES] = place
        place += group[i * GROUP + GROUP_COUNT]
        group[i * GROUP + GROUP_COUNT] = 0
    found = 0
    open_ = 0
    for i in range(line_count):
        at = lines[i * LINE + LINE_SHAPE] * GROUP
        if known[lines[i * LINE + LINE_SHAPE]]:
            begin = lines[i * LINE + LINE_BEGIN]
            name = group[at + GROUP_NAMES] + group[at + GROUP_COUNT]
            names[name * EXTENT + BEGINS] = begin
            names[name * EXTENT + ENDS] = digits_end(text, begin + 1, size)
            if group[at + GROUP_COUNT]:
                if not open_:
                    found += 1
                    open_ = 1
                    passed[found * EXTENT + BEGINS] = begin
                passed[found * EXTENT + ENDS] = lines[i * LINE + LINE + LINE_BEGIN] - 1
            else:
                open_ = 0
            group[at + GROUP_COUNT] += 1
        else:
            open_ = 0
    passed[0] = found
    return 0
