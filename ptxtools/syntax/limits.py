"""Sizes beyond which a text is refused (PTX118, PTX121); no compiler generates such PTX."""

#: Nested scopes; code that traverses a module may recurse this deep.
MOST_SCOPES = 200

#: Nested brackets of all kinds in one statement.
MOST_BRACKETS = 64

#: Words in one statement; with more, the grammar would take seconds. Numbers of an initialiser do not count.
MOST_WORDS = 1 << 16

#: Labels in a range such as `.branchtargets N<5>` (11.3.1).
MOST_RANGE_LABELS = 1 << 16

#: Errors after which parsing stops: the rest is unlikely to be PTX.
MOST_FAULTS = 1000

#: Variables in a range such as `.global .b32 d<5>` (5.4.6).
MOST_RANGE_VARIABLES = 1 << 17
