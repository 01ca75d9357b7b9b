"""Finds the lines of functions, which of them are equal but for names, and the names in them.

A function that has anything unusual is left out. Texts are ASCII, with a character behind them.
"""

from __future__ import annotations

from .notation import Bytes, Words

#: Classes of characters: what is itself; ends of lines; what begins a name, a node, a string, a comment; what ends a
#: statement that goes over lines; what no text has. IN_NAME: whether a character may be in a name.
PLAIN, NEWLINE, PERCENT, BANG, QUOTE, SEMICOLON, CLOSING, STRANGE = range(8)
CLASS, IN_NAME = 15, 16
_CLASSES = {"\n": NEWLINE, "%": PERCENT, "!": BANG, '"': QUOTE, ";": SEMICOLON, "]": CLOSING, "\t": PLAIN}
_IN_NAMES = frozenset("-$._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: The class of each character.
CLASSES = bytes(
    _CLASSES.get(one, PLAIN if " " <= one < "\x7f" else STRANGE) | IN_NAME * (one in _IN_NAMES)
    for one in map(chr, range(256))
)

#: Words of a function: where the places of its parameters begin and end, and its body; its first line, and the end of
#: its lines; its first name, and the first one behind those of the parameters. LINES is -1 for one that is left out.
FUNCTION = 8
PARAMS, PARAMS_END, BODY, BODY_END, LINES, LINES_END, NAMES, BODY_NAMES = range(8)
#: Words of a shape or a name: where its characters begin, without what a name begins with; how many these are; their
#: hash; how many names a shape has, or whether a name is a node; where the first line of a shape begins, or the number
#: that a name is, or NO_NUMBER, or BAD_NUMBER for one that is written otherwise.
ROW = 5
ROW_TEXT, ROW_SIZE, ROW_HASH, ROW_KIND, ROW_MORE = range(5)
NO_NUMBER, BAD_NUMBER, MOST_DIGITS = -1, -2, 9
#: Words of what is counted: shapes, names, lines, references to names, bytes of shapes; and where reading goes on.
COUNTS = 6
SHAPES_USED, NAMES_USED, LINES_USED, REFERENCES_USED, TEXT_USED, GOES_ON = range(COUNTS)
#: What `named` gives for what is part of a shape, and for what it does not read.
A_TYPE, NOTHING = -1, -2

MULTIPLIER, MASK, SHIFT = 0x2545F4914F6CDD1D, (1 << 63) - 1, 32
#: What stands for a name, and for the end of a line within a statement.
HOLE, JOINED = 0, 13
LINE_END, BLANK, TAB, COLON, OPENING, DIGIT_0, DIGIT_9, BACKSLASH, QUOTATION, COMMENT, PERCENT_SIGN = b'\n \t:[09\\";%'
#: Prefixes of types, by their bytes, and what they begin with.
STRUCT, CLASSY, UNION = (int.from_bytes(one, "big") for one in (b"struct.", b"class.", b"union."))
LETTER_S, LETTER_C, LETTER_U = b"scu"


def scan(text: Bytes, size: int, classes: Bytes, functions: Words, function_count: int, places: Words, modern: int,
         shapes: Words, shape_table: Words, shape_mask: int, shape_text: Bytes, names: Words, name_table: Words,
         name_mask: int, by_number: Words, number_count: int, lines: Words, line_places: Words, references: Words,
         counts: Words) -> int:  # fmt: skip
    """Find lines and names.

    size: of the text; places: of the names of parameters; line_places: where lines begin. The first function has no
    body, and types for parameters. A line is the number of its shape, or -1 - the name for a label; a parameter without
    a name is -1; by_number has 1 + the name of each number.
    """
    type_count = 0
    for one in range(function_count):
        at = one * FUNCTION
        functions[at + LINES] = counts[LINES_USED]
        functions[at + NAMES] = counts[REFERENCES_USED]
        fine = parameters(text, classes, places, functions[at + PARAMS], functions[at + PARAMS_END], size, type_count,
                          names, name_table, name_mask, by_number, number_count, references, counts)  # fmt: skip
        functions[at + BODY_NAMES] = counts[REFERENCES_USED]
        counts[GOES_ON] = functions[at + BODY]
        end = functions[at + BODY_END]
        while fine and counts[GOES_ON] < end:
            fine = line(text, classes, counts[GOES_ON], end, type_count, modern, shapes, shape_table, shape_mask,
                        shape_text, names, name_table, name_mask, by_number, number_count, lines, line_places,
                        references, counts)  # fmt: skip
        functions[at + LINES_END] = counts[LINES_USED]
        if not fine:
            functions[at + LINES] = -1
        if one == 0:
            type_count = counts[NAMES_USED]
    return 0


def parameters(text: Bytes, classes: Bytes, places: Words, first: int, last: int, size: int, type_count: int,
               names: Words, name_table: Words, name_mask: int, by_number: Words, number_count: int, references: Words,
               counts: Words) -> int:  # fmt: skip
    """The names at places of the text, -1 for a parameter without a name. Whether all are read."""
    for i in range(first, last):
        name = -1
        if places[i] >= 0:
            name = named(text, classes, places[i], size, type_count, names, name_table, name_mask, by_number,
                         number_count, counts)  # fmt: skip
            if name < 0 or text[places[i]] != PERCENT_SIGN:
                return 0
        references[counts[REFERENCES_USED]] = name
        counts[REFERENCES_USED] += 1
    return 1


def line(text: Bytes, classes: Bytes, begin: int, end: int, type_count: int, modern: int, shapes: Words,
         shape_table: Words, shape_mask: int, shape_text: Bytes, names: Words, name_table: Words, name_mask: int,
         by_number: Words, number_count: int, lines: Words, line_places: Words, references: Words,
         counts: Words) -> int:  # fmt: skip
    """Read a line, which may be blank, or a statement that goes over lines within brackets. Whether it is read."""
    i = begin
    start = counts[TEXT_USED]
    out = start
    digest = 1
    while i < end and (text[i] == BLANK or text[i] == TAB):
        digest = (digest ^ text[i]) * MULTIPLIER & MASK
        shape_text[out] = text[i]
        out += 1
        i += 1
    indent = out
    if i < end and (classes[text[i]] & IN_NAME or text[i] == QUOTATION):
        first = i
        i = word_end(text, classes, first, end)
        if i < end and text[i] == COLON:
            return label(text, classes, first, i, end, type_count, modern, names, name_table, name_mask, by_number,
                         number_count, lines, counts)  # fmt: skip
        i = first
    holes = 0
    open_ = 0
    while i < end:
        c = text[i]
        kind = classes[c] & CLASS
        if kind == PERCENT:
            name = named(
                text, classes, i, end, type_count, names, name_table, name_mask, by_number, number_count, counts
            )
            if name == NOTHING:
                return 0
            if name == A_TYPE:
                while i < counts[GOES_ON]:
                    digest = (digest ^ text[i]) * MULTIPLIER & MASK
                    shape_text[out] = text[i]
                    out += 1
                    i += 1
                continue
            i = counts[GOES_ON]
            references[counts[REFERENCES_USED] + holes] = name
            holes += 1
            c = HOLE
        elif kind == BANG and DIGIT_0 <= text[i + 1] <= DIGIT_9:
            first = i + 1
            i = word_end(text, classes, first, end)
            if not is_number(text, first, i):
                return 0
            name = name_of(text, first, i, 1, NO_NUMBER, names, name_table, name_mask, counts)
            if name < 0:
                return 0
            references[counts[REFERENCES_USED] + holes] = name
            holes += 1
            c = HOLE
        elif kind == NEWLINE:
            if out > start and shape_text[out - 1] == OPENING:
                open_ = 1
            if not open_:
                break
            c = JOINED
            i += 1
        elif kind == SEMICOLON:
            while i < end and text[i] != LINE_END:
                i += 1
            continue
        elif kind == QUOTE:
            first = i
            i = word_end(text, classes, first, end)
            if i == first:
                return 0
            while first < i - 1:
                digest = (digest ^ text[first]) * MULTIPLIER & MASK
                shape_text[out] = text[first]
                out += 1
                first += 1
        elif kind == STRANGE:
            return 0
        else:
            if kind == CLOSING:
                open_ = 0
            i += 1
        digest = (digest ^ c) * MULTIPLIER & MASK
        shape_text[out] = c
        out += 1
    counts[GOES_ON] = i + 1
    if open_:
        return 0
    if out > indent:
        new = counts[SHAPES_USED]
        shape = entry(shape_text, start, out, digest >> SHIFT, holes, begin, shapes, shape_table, shape_mask,
                      SHAPES_USED, counts)  # fmt: skip
        if shape < 0:
            return 0
        if shape == new:
            counts[TEXT_USED] = out
        lines[counts[LINES_USED]] = shape
        line_places[counts[LINES_USED]] = begin
        counts[LINES_USED] += 1
        counts[REFERENCES_USED] += holes
    return 1


def label(text: Bytes, classes: Bytes, first: int, colon: int, end: int, type_count: int, modern: int, names: Words,
          name_table: Words, name_mask: int, by_number: Words, number_count: int, lines: Words,
          counts: Words) -> int:  # fmt: skip
    """A label, if nothing but a comment stands behind it. A number is none: to LLVM 7 it is a name."""
    i = colon + 1
    while i < end and (text[i] == BLANK or text[i] == TAB):
        i += 1
    if i < end and text[i] == COMMENT:
        while i < end and text[i] != LINE_END:
            i += 1
    if i < end and text[i] != LINE_END:
        return 0
    # What stands before it is not read.
    name = named(
        text, classes, first - 1, colon, type_count, names, name_table, name_mask, by_number, number_count, counts
    )
    if name < 0 or (not modern and names[name * ROW + ROW_MORE] != NO_NUMBER):
        return 0
    lines[counts[LINES_USED]] = -1 - name
    counts[LINES_USED] += 1
    counts[GOES_ON] = i + 1
    return 1


def word_end(text: Bytes, classes: Bytes, first: int, end: int) -> int:
    """Where a name or a string ends that begins here; `first` for a string without an end in its line."""
    i = first
    if text[first] == QUOTATION:
        i += 1
        while i < end and text[i] != QUOTATION and text[i] != LINE_END:
            i += 1
        if i >= end or text[i] != QUOTATION:
            return first
        return i + 1
    while i < end and classes[text[i]] & IN_NAME:
        i += 1
    return i


def named(text: Bytes, classes: Bytes, at: int, end: int, type_count: int, names: Words, name_table: Words,
          name_mask: int, by_number: Words, number_count: int, counts: Words) -> int:  # fmt: skip
    """The name behind a percent sign, whose end is in GOES_ON then; or A_TYPE or NOTHING."""
    first = at + 1
    last = word_end(text, classes, first, end)
    if first >= end or last == first:
        return NOTHING
    counts[GOES_ON] = last
    quoted = text[first] == QUOTATION
    if quoted:
        first += 1
        last -= 1
        if type_count or last == first or DIGIT_0 <= text[first] <= DIGIT_9 or prefixed(text, first):
            return NOTHING
        for i in range(first, last):
            if text[i] == BACKSLASH or classes[text[i]] & CLASS == STRANGE:
                return NOTHING
    elif prefixed(text, first):
        return A_TYPE
    number = NO_NUMBER
    if not quoted and DIGIT_0 <= text[first] <= DIGIT_9:
        number = BAD_NUMBER
        if is_number(text, first, last) and last - first <= MOST_DIGITS:
            number = 0
            for i in range(first, last):
                number = number * 10 + text[i] - DIGIT_0
    name = name_of(text, first, last, 0, number, names, name_table, name_mask, counts)
    if name == NOTHING:
        return NOTHING
    if name < type_count:
        return A_TYPE
    if 0 <= number < number_count:
        by_number[number] = name + 1
    return name


def is_number(text: Bytes, first: int, last: int) -> int:
    """Whether this is a number without zeros before it."""
    if text[first] == DIGIT_0 and last > first + 1:
        return 0
    for i in range(first, last):
        if text[i] < DIGIT_0 or text[i] > DIGIT_9:
            return 0
    return 1


def prefixed(text: Bytes, first: int) -> int:
    """Whether a name begins like that of a type."""
    size = 0
    wanted = STRUCT
    if text[first] == LETTER_S:
        size = 7
    elif text[first] == LETTER_C:
        size = 6
        wanted = CLASSY
    elif text[first] == LETTER_U:
        size = 6
        wanted = UNION
    if size == 0:
        return 0
    found = 0
    i = first
    while i < first + size and text[i]:
        found = found << 8 | text[i]
        i += 1
    if found == wanted:
        return 1
    return 0


def name_of(text: Bytes, first: int, last: int, node: int, number: int, names: Words, name_table: Words, name_mask: int,
            counts: Words) -> int:  # fmt: skip
    """The name of these characters, or NOTHING."""
    digest = node
    for i in range(first, last):
        digest = (digest ^ text[i]) * MULTIPLIER & MASK
    return entry(text, first, last, digest >> SHIFT, node, number, names, name_table, name_mask, NAMES_USED, counts)


def entry(text: Bytes, first: int, last: int, digest: int, kind: int, more: int, rows: Words, table: Words, mask: int,
          used: int, counts: Words) -> int:  # fmt: skip
    """The row of these characters and this kind, which is new where there is none; NOTHING if the table is half
    full."""
    size = last - first
    slot = digest & mask
    while table[slot]:
        at = (table[slot] - 1) * ROW
        if rows[at + ROW_HASH] == digest and rows[at + ROW_SIZE] == size and rows[at + ROW_KIND] == kind:
            other = rows[at + ROW_TEXT]
            i = 0
            while i < size and text[other + i] == text[first + i]:
                i += 1
            if i == size:
                return table[slot] - 1
        slot = slot + 1 & mask
    made = counts[used]
    if made * 2 > mask:
        return NOTHING
    counts[used] += 1
    table[slot] = made + 1
    at = made * ROW
    rows[at + ROW_TEXT] = first
    rows[at + ROW_SIZE] = size
    rows[at + ROW_HASH] = digest
    rows[at + ROW_KIND] = kind
    rows[at + ROW_MORE] = more
    return made
