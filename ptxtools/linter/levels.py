"""How sure a hazard is, where its rule does not say so of each finding."""

from __future__ import annotations

#: What begins the note of a finding that says how sure it is.
_SAID = ("certain", "possible")
_CERTAIN = "certain: it follows from the module"
_POSSIBLE = "possible: what the module does not say may make it right"
#: Rules whose findings may be right: other threads, other code or the values at run time decide.
_MAYBE = frozenset({
    "PTX512", "PTX513", "PTX514", "PTX518", "PTX526", "PTX529", "PTX532", "PTX534", "PTX544", "PTX545", "PTX549",
    "PTX551", "PTX557", "PTX558", "PTX559", "PTX566", "PTX568", "PTX569", "PTX571", "PTX572", "PTX585", "PTX596",
    "PTX614",
})  # fmt: skip


#: Rules of other numbers that are about what runs wrong.
_TOO = frozenset({"PTX606", "PTX609", "PTX612", "PTX614", "PTX615", "PTX617"})


def with_level(code: str, help: tuple[str, ...]) -> tuple[str, ...]:
    """The notes of a finding, with how sure it is if it is a hazard."""
    if (code[3] != "5" and code not in _TOO) or any(note.startswith(_SAID) for note in help):
        return help
    return (*help, _POSSIBLE if code in _MAYBE else _CERTAIN)
