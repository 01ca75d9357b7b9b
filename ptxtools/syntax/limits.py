"""What no compiler writes and no reader should have to take: sizes at which a text is refused (PTX118, PTX121)."""

#: Scopes inside scopes; whoever walks a module may recurse this deep.
MOST_SCOPES = 200

#: Brackets of all kinds inside one another in one statement.
MOST_BRACKETS = 64

#: Words of one statement; more would take the grammar seconds. The numbers of an initialiser are not counted.
MOST_WORDS = 1 << 16

#: Labels that `.branchtargets N<5>` stands for (11.3.1).
MOST_RANGE_LABELS = 1 << 16

#: Mistakes after which reading stops: what follows is hardly PTX.
MOST_FAULTS = 1000

#: Variables that `.global .b32 d<5>` stands for (5.4.6).
MOST_RANGE_VARIABLES = 1 << 17
