"""Special registers (chapter 10): type, components, and what each needs."""

from __future__ import annotations

from ptxtools.records import NamedTuple

Version = tuple[int, int]


class SpecialRegister(NamedTuple):
    """name: with its %; type: of the register or of one component; components: of a vector ("x", "y", "z", "w").

    old_type: type before PTX 2.0, in which %tid and its kin were 16 bits wide (reads may still use it); ptx, target:
    first version and target; section: of the manual. volatile: a second read may give another value.
    """

    name: str
    type: str
    components: tuple[str, ...]
    ptx: Version
    target: str
    section: str
    volatile: bool = False
    old_type: str | None = None


_XYZ = ("x", "y", "z", "w")


def _vector(name: str, section: str) -> SpecialRegister:
    return SpecialRegister(name, "u32", _XYZ, (1, 0), "sm_10", section, old_type="u16")


def _cluster(name: str, section: str, type: str = "u32", components: tuple[str, ...] = ()) -> SpecialRegister:
    return SpecialRegister(name, type, components, (7, 8), "sm_90", section)


def _build() -> dict[str, SpecialRegister]:
    one = SpecialRegister
    registers = [
        _vector("%tid", "10.1"),
        _vector("%ntid", "10.2"),
        one("%laneid", "u32", (), (1, 3), "sm_10", "10.3"),
        one("%warpid", "u32", (), (1, 3), "sm_10", "10.4", volatile=True),
        one("%nwarpid", "u32", (), (2, 0), "sm_20", "10.5"),
        _vector("%ctaid", "10.6"),
        _vector("%nctaid", "10.7"),
        one("%smid", "u32", (), (1, 3), "sm_10", "10.8", volatile=True),
        one("%nsmid", "u32", (), (2, 0), "sm_20", "10.9"),
        one("%gridid", "u64", (), (1, 0), "sm_10", "10.10", old_type="u32"),
        _cluster("%is_explicit_cluster", "10.11", "pred"),
        _cluster("%clusterid", "10.12", components=_XYZ),
        _cluster("%nclusterid", "10.13", components=_XYZ),
        _cluster("%cluster_ctaid", "10.14", components=_XYZ),
        _cluster("%cluster_nctaid", "10.15", components=_XYZ),
        _cluster("%cluster_ctarank", "10.16"),
        _cluster("%cluster_nctarank", "10.17"),
        one("%clock", "u32", (), (1, 0), "sm_10", "10.23", volatile=True),
        one("%clock_hi", "u32", (), (5, 0), "sm_20", "10.23", volatile=True),
        one("%clock64", "u64", (), (2, 0), "sm_20", "10.24", volatile=True),
        one("%globaltimer", "u64", (), (3, 1), "sm_30", "10.28", volatile=True),
        one("%globaltimer_lo", "u32", (), (3, 1), "sm_30", "10.28", volatile=True),
        one("%globaltimer_hi", "u32", (), (3, 1), "sm_30", "10.28", volatile=True),
        one("%total_smem_size", "u32", (), (4, 1), "sm_20", "10.30"),
        one("%aggr_smem_size", "u32", (), (8, 1), "sm_90", "10.31"),
        one("%dynamic_smem_size", "u32", (), (4, 1), "sm_20", "10.32"),
        one("%current_graph_exec", "u64", (), (8, 0), "sm_50", "10.33"),
        one("%perctamemoryoffset", "u64", (), (9, 4), "sm_80", "10.34"),
        one("%perctamemorysize", "u32", (), (9, 4), "sm_80", "10.35"),
    ]
    for section, relation in enumerate(("eq", "le", "lt", "ge", "gt"), 18):
        registers.append(one(f"%lanemask_{relation}", "u32", (), (2, 0), "sm_20", f"10.{section}"))
    for n in range(8):
        since: tuple[Version, str] = ((1, 3), "sm_10") if n < 4 else ((3, 0), "sm_20")
        registers.append(one(f"%pm{n}", "u32", (), *since, "10.25", volatile=True))
        registers.append(one(f"%pm{n}_64", "u64", (), (4, 0), "sm_50", "10.26", volatile=True))
    registers += [one(f"%envreg{n}", "b32", (), (2, 1), "sm_10", "10.27") for n in range(32)]
    for part in ("begin", "end", "cap", "0", "1"):
        registers.append(one(f"%reserved_smem_offset_{part}", "b32", (), (7, 6), "sm_80", "10.29"))
    return {register.name: register for register in registers}


#: Every special register by name.
SPECIAL: dict[str, SpecialRegister] = _build()

#: A constant that reads like a special register (5.2 of the 6.4 text): the warp's size.
WARP_SIZE = "WARP_SZ"


class Reference(NamedTuple):
    """A mention of a special register: the register, the component ("" for a scalar or the whole vector), its type."""

    register: SpecialRegister
    component: str
    type: str


def lookup(name: str) -> Reference | None:
    """The special register that `name` ("%tid.x", "%clock64") mentions, or None when there is none of that name.

    Colour names of components (`.r .g .b .a`) count as `.x .y .z .w` (6.4.3).
    """
    base, _, component = name.partition(".")
    register = SPECIAL.get(base)
    if register is None:
        return None
    component = {"r": "x", "g": "y", "b": "z", "a": "w"}.get(component, component)
    if component and component not in register.components:
        return None
    return Reference(register, component, register.type)
