"""Targets and versions (11.1.1, 11.1.2): which exist, since when, and which targets provide the features of others."""

from __future__ import annotations

from ptxtools.records import NamedTuple

from .chips import CHIPS, Chip, Version

#: Every PTX ISA version that was published with a tool chain, oldest first. 9.1 to 9.5 are known as versions only.
VERSIONS: tuple[Version, ...] = (
    (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5),
    (2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 1), (3, 2),
    (4, 0), (4, 1), (4, 2), (4, 3), (5, 0), (5, 1),
    (6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5),
    (7, 0), (7, 1), (7, 2), (7, 3), (7, 4), (7, 5), (7, 6), (7, 7), (7, 8),
    (8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 6), (8, 7), (8, 8),
    (9, 0), (9, 1), (9, 2), (9, 3), (9, 4), (9, 5),
)  # fmt: skip

NEWEST: Version = VERSIONS[-1]

#: First PTX version of each target.
FIRST_VERSION: dict[str, Version] = {
    f"sm_{chip.number}{suffix}": first
    for chip in CHIPS.values()
    for suffix, first in (("", chip.plain), ("a", chip.own), ("f", chip.family))
    if first is not None
}

#: Members of the family that a target with the suffix "f" opens.
FAMILIES: dict[int, tuple[int, ...]] = {chip.number: chip.members for chip in CHIPS.values() if chip.members}


class OptionInfo(NamedTuple):
    """A `.target` option. group: options of one group exclude each other; ptx: first version; last: last version."""

    name: str
    group: str
    ptx: Version
    last: Version | None = None


#: Options that may follow the architecture in `.target` (11.1.2).
OPTIONS: dict[str, OptionInfo] = {
    o.name: o
    for o in (
        OptionInfo("texmode_unified", "texmode", (1, 5)),
        OptionInfo("texmode_independent", "texmode", (1, 5)),
        OptionInfo("debug", "debug", (3, 0)),
        OptionInfo("map_f64_to_f32", "map", (1, 0)),
    )
}


class Target:
    """A parsed target name: number 90, suffix "", "a" or "f". Raises ValueError if it is not a target name."""

    __slots__ = ("name", "number", "suffix")

    def __init__(self, name: str) -> None:
        digits = name[3:].rstrip("af")
        suffix = name[3 + len(digits) :]
        if not name.startswith("sm_") or not digits.isdecimal() or len(suffix) > 1:
            raise ValueError(f"'{name}' is not a target")
        self.name, self.number, self.suffix = name, int(digits), suffix

    @property
    def known(self) -> bool:
        return self.name in FIRST_VERSION

    @property
    def first_version(self) -> Version:
        """The first PTX version that knows this target; raises KeyError for an unknown one."""
        return FIRST_VERSION[self.name]

    def __repr__(self) -> str:
        return f"Target('{self.name}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


_parsed: dict[str, Target] = {}


def _target(name: str) -> Target:
    found = _parsed.get(name)
    if found is None:
        found = _parsed[name] = Target(name)
    return found


def provides(have: str, want: str) -> bool:
    """Whether a module for target `have` may use features of target `want` (11.1.2).

    Plain `sm_90` is provided by any later target; `sm_90a` only by itself; `sm_100f` by the f and a targets of its
    family. A renamed chip is the same chip.
    """
    h, w = _target(have), _target(want)
    if w.suffix == "a":
        return h.suffix == "a" and (h.number == w.number or _same_chip(h.number, w.number))
    if w.suffix == "f":
        return h.suffix in ("a", "f") and h.number in FAMILIES.get(w.number, (w.number,))
    return h.number >= w.number or _same_chip(h.number, w.number)


def _same_chip(a: int, b: int) -> bool:
    """One chip may have two numbers (PTX 9.0)."""
    return a == b or _present(a) == _present(b)


def _present(number: int) -> int:
    chip = CHIPS.get(number)
    return chip.same or number if chip is not None else number


def provides_any(have: str, wanted: tuple[str, ...]) -> bool:
    """Whether `have` provides one of `wanted`; true if `wanted` is empty."""
    return not wanted or any(provides(have, want) for want in wanted)


def describe(wanted: tuple[str, ...]) -> str:
    """Text for a message: "sm_90 or higher", "sm_90a", "the sm_100f family or sm_120a"."""
    parts = []
    for name in wanted:
        suffix = _target(name).suffix
        parts.append(
            f"{name} or higher" if not suffix else f"{name} or higher in its family" if suffix == "f" else name
        )
    return ", ".join(parts[:-1]) + " or " + parts[-1] if len(parts) > 1 else "".join(parts)


#: The first target with double precision (11.1.2).
DOUBLES = "sm_13"


def canonical(name: str) -> str:
    """`sm_90` for its synonym `compute_90` (11.1.2)."""
    return f"sm_{name[8:]}" if name.startswith("compute_") else name


def known(name: str) -> bool:
    """Whether `name` is a valid `.target` (with PTX versions and chips known today)."""
    return name in FIRST_VERSION


def chip_of(name: str) -> Chip:
    """The chip that a target such as "sm_90a" or "compute_90" names. Raises ValueError for an unknown target."""
    return CHIPS[_target(check_target(canonical(name))).number]


def check_target(name: str) -> str:
    """The name, if it is a known target; otherwise raises a ValueError that suggests similar ones."""
    if name in FIRST_VERSION:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, FIRST_VERSION, 3)
    hint = f" (did you mean {', '.join(near)}?)" if near else ""
    raise ValueError(f"unknown target '{name}'{hint}")


def check_version(version: Version) -> Version:
    """The version, if it is known; otherwise raises a ValueError that names the newest."""
    if version not in VERSIONS:
        text = ".".join(map(str, version))
        raise ValueError(f"unknown PTX version '{text}'; the newest known one is {version_text(NEWEST)}")
    return version


def parse_version(text: str) -> Version:
    """The version in a text such as "8.0"; raises ValueError if it is invalid."""
    major, dot, minor = text.partition(".")
    if not (dot and all(part.isascii() and part.isdecimal() and len(part) < 4 for part in (major, minor))):
        raise ValueError(f"'{text}' is not a version; write it like 8.0")
    return check_version((int(major), int(minor)))


def version_text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
