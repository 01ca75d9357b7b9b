"""The dotted words that determine the syntax, with their token classes (4.3.1, 11)."""

from __future__ import annotations

from ptxtools.isa.types import TYPES

#: State spaces in declarations (5.1).
SPACES = ("reg", "sreg", "const", "global", "local", "param", "shared", "tex")

#: Linking directives (11.6).
LINKAGE = ("extern", "visible", "weak", "common")

#: Performance and cluster directives between the header and the body of a function (11.4, 11.7): most arguments.
TUNING = {
    "maxnreg": 1,
    "maxntid": 3,
    "reqntid": 3,
    "minnctapersm": 1,
    "maxnctapersm": 1,
    "noreturn": 0,
    "reqnctapercluster": 3,
    "explicitcluster": 0,
    "maxclusterrank": 1,
    "blocksareclusters": 0,
    "abi_preserve": 1,
    "abi_preserve_control": 1,
    "minperctamemory": 1,
}

#: Directives that end with their last argument, without punctuation.
OPEN_ENDED = frozenset({".version", ".target", ".address_size", ".file", ".loc", ".loc_intermediate"})

#: The directive words that are separate tokens.
_OWN = {
    "version": "VERSION",
    "target": "TARGET",
    "address_size": "ADDRESS_SIZE",
    "file": "FILE",
    "section": "SECTION",
    "loc": "LOC",
    "loc_intermediate": "LOC_INTERMEDIATE",
    "language": "LANGUAGE",
    "pragma": "PRAGMA",
    "alias": "ALIAS",
    "entry": "ENTRY",
    "func": "FUNC",
    "align": "ALIGN",
    "ptr": "PTR",
    "attribute": "ATTRIBUTE",
    "branchtargets": "BRANCHTARGETS",
    "calltargets": "CALLTARGETS",
    "callprototype": "CALLPROTOTYPE",
}


def _classes() -> dict[str, str]:
    table = {f".{word}": token for word, token in _OWN.items()}
    table.update((f".{word}", "TYPE") for word in TYPES)
    table.update((f".{word}", "SPACE") for word in SPACES)
    table.update((f".{word}", "LINKAGE") for word in LINKAGE)
    table.update((f".{word}", "TUNING") for word in TUNING)
    table.update((word, "VECTOR") for word in (".v2", ".v4", ".v8"))
    return table


#: Token class of each known dotted word; any other is a DOTWORD.
CLASSES: dict[str, str] = _classes()
