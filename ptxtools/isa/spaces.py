"""State spaces (5.1): names in declarations and as modifiers of instructions."""

from __future__ import annotations

from ptxtools.records import NamedTuple


class SpaceInfo(NamedTuple):
    """declare: may contain variables; addressable: allowed in ld/st; generic: part of the generic address space;
    ptx, target: first version and target; section: of the manual."""

    name: str
    declare: bool
    addressable: bool
    generic: bool
    ptx: tuple[int, int]
    target: str
    section: str


SPACES: dict[str, SpaceInfo] = {
    s.name: s
    for s in (
        SpaceInfo("reg", True, False, False, (1, 0), "sm_10", "5.1.1"),
        SpaceInfo("sreg", False, False, False, (1, 0), "sm_10", "5.1.2"),
        SpaceInfo("const", True, True, True, (1, 0), "sm_10", "5.1.3"),
        SpaceInfo("global", True, True, True, (1, 0), "sm_10", "5.1.4"),
        SpaceInfo("local", True, True, True, (1, 0), "sm_10", "5.1.5"),
        SpaceInfo("param", True, True, False, (1, 0), "sm_10", "5.1.6"),
        SpaceInfo("param::entry", False, True, True, (8, 3), "sm_10", "5.1.6"),
        SpaceInfo("param::func", False, True, False, (8, 3), "sm_10", "5.1.6"),
        SpaceInfo("shared", True, True, True, (1, 0), "sm_10", "5.1.7"),
        SpaceInfo("shared::cta", False, True, True, (7, 8), "sm_30", "5.1.7"),
        SpaceInfo("shared::cluster", False, True, True, (7, 8), "sm_90", "5.1.7"),
        SpaceInfo("tex", True, False, False, (1, 0), "sm_10", "5.1.8"),
    )
}


def is_space(atom: str) -> bool:
    """Whether a modifier (without its dot) names a state space."""
    return atom in SPACES


def base(space: str) -> str:
    """The space without its sub-qualifier: "shared::cluster" -> "shared"."""
    return space.split("::", 1)[0]
