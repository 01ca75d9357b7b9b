"""Opcodes that no form of the manual has, and that ptxas takes for one that does: modifiers that it ignores.

Measured: `tools/lenience.py` compares the machine code of such an opcode with that of the one it is taken for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from ptxtools.records import NamedTuple

from .chips import Version
from .targets import NEWEST

#: Words of other instructions that ptxas drops behind any mnemonic: fields and values of tensor maps, the tests of
#: testp, the formats of packed matrices.
_FIELDS = frozenset({
    "rank", "box_dim", "global_address", "global_dim", "global_stride", "element_stride", "elemtype",
    "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode",
})  # fmt: skip
_TESTS = frozenset({"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
_FORMATS = frozenset({"b8x16", "b6x16_p32", "b4x16_p64"})
_SUMS = frozenset({"acc::f16", "acc::f32"})
IGNORED = _FIELDS | _TESTS | _FORMATS | _SUMS
#: But not behind those that they belong to.
_OWN = {"tensormap": _FIELDS, "testp": _TESTS, "ldmatrix": _FORMATS, "tcgen05": _FORMATS}
#: Types that it drops behind these.
_TYPES = frozenset({"texref", "samplerref", "surfref", "pred"})
_FAMILIES = """
    abs add atom cos cvt ex2 fma lg2 max min mul multimem neg rcp red rsqrt set setp sin sqrt sub tanh wgmma wmma
"""
_TYPED = frozenset(_FAMILIES.split())
#: A type that it drops behind all but those, and these, whose types it counts or which have it.
_NARROWEST = "b2"
_COUNTED = _TYPED | {"cp", "ldmatrix", "mma", "spcompress", "spdecompress", "tcgen05"}
#: Spaces of which it drops one behind some fences.
_FENCED = frozenset({"global", "shared::cta", "shared::cluster"})
_RCP = tuple(text for mode in ("rn", "rz", "rm", "rp")
             for text in (f"rcp.{mode}.f64", f"rcp.{mode}.ftz.f64", f"rcp.ftz.{mode}.f64"))  # fmt: skip
#: What it drops behind a few.
_FOREIGN = {
    **dict.fromkeys(("tex", "tld4"), frozenset({"uni"})),
    **dict.fromkeys(("ldmatrix", "stmatrix", "movmatrix", "tcgen05"), frozenset({"row", "col"})),
    "wgmma": frozenset({"row", "col"}),
    **dict.fromkeys(
        (
            "fence.proxy.async::generic",
            "fence.proxy.global.async::generic",
            "fence.proxy.tensormap::generic.release",
        ),
        _FENCED,
    ),
    "mbarrier.check_layout": frozenset({"gpu"}),
    **dict.fromkeys(_RCP, frozenset({"ftz"})),
    "st.async": frozenset({"cluster"}),
}
#: Reports of arrivals, behind tensor stores, which have no mbarrier; and what they need.
_SILENT, _REPORT = re.compile(r"cp\.async\.bulk\.tensor\..*\bbulk_group\b"), "mbarrier::report::"
_REPORTING = ((9, 4), ("sm_107f",))
#: Cache operators, which one of two stores to surfaces has, and ptxas takes behind both.
_STORE, _CACHED = "sust.p.", frozenset({"wb", "cg", "cs", "wt"})
#: Bulk copies behind which it drops a scope.
_SCOPED = re.compile(r"cp\.async\.bulk\.(?!tensor|prefetch)(?!.*\.b128)")
_SCOPES = frozenset({"gpu", "sys"})
#: Modifiers that may be written twice.
REPEATED = frozenset({"sync", "sat", "satfinite", "approx", "relu", "NaN", "cc", "shiftamt", "uni"})
_FABRIC = tuple(f"fabric.try_{name}" for name in ("get", "put", "red", "pullred"))
#: Instructions in which it takes a mandatory modifier for granted, and up to which version.
_IMPLIED = {
    "wgmma": ("aligned", NEWEST), "tcgen05.ld": ("aligned", (9, 0)), "tcgen05.st": ("aligned", (9, 0)),
    "prefetch": ("global", NEWEST), **dict.fromkeys(_FABRIC, ("relaxed.sys", NEWEST)),
}  # fmt: skip
#: Of more superfluous words than anybody writes all go, or none.
_MOST = 4


class Slack(NamedTuple):
    """What ptxas overlooks. text: the opcode that it takes this one for; message: what differs from the manual; word:
    the modifier, with its dot, or ""; until: the last version at which it does; since, targets: where it knows the
    modifier."""

    text: str
    message: str
    word: str = ""
    until: Version = NEWEST
    since: Version = (1, 0)
    targets: tuple[str, ...] = ()


def candidates(text: str) -> Iterator[tuple[Slack, list[str]]]:
    """The opcodes that ptxas may take `text` for, nearest first, each with the words that must still begin it."""
    family, *atoms = text.split(".")
    foreign = frozenset[str]().union(*(words for name, words in _FOREIGN.items() if f"{text}.".startswith(f"{name}.")))
    several = sum(atom in _FENCED for atom in atoms) > 1
    loose = [at for at, atom in enumerate(atoms)
             if (atom in foreign and not (atom in _FENCED and several)) or _drops(family, atom)]  # fmt: skip
    if _SILENT.match(text):
        loose += [at for at, atom in enumerate(atoms) if atom.startswith(_REPORT)]
    if text.startswith(_STORE):
        loose += [at for at, atom in enumerate(atoms) if atom in _CACHED]
    if _SCOPED.match(text) and atoms[-1] in _SCOPES:
        loose.append(len(atoms) - 1)
    loose += [at for at, atom in enumerate(atoms) if atom in REPEATED and atom in atoms[:at]]
    if "sp" in atoms:  # a word of the mnemonic: nothing may stand before it
        loose = [at for at in loose if at > atoms.index("sp")]
    for count in range(len(loose) + 1) if len(loose) <= _MOST else (len(loose),):
        for gone in combinations(loose, count):
            if any(sum(atoms[at] in words for at in gone) > 1 for words in (_FIELDS, _TESTS, _SUMS)):
                continue  # "multiple … modifiers specified"
            kept = [atom for at, atom in enumerate(atoms) if at not in gone]
            first = atoms[gone[0]] if gone else ""
            if first:
                what = f"repeats '.{first}'" if first in kept else f"has '.{first}', {_fate(text, first)}"
                since, targets = _REPORTING if first.startswith(_REPORT) else ((1, 0), ())
                yield Slack(".".join((family, *kept)), f"'{text}' {what}", f".{first}", NEWEST, since, targets), atoms
            found = next((row for name, row in _IMPLIED.items() if f"{text}.".startswith(f"{name}.")), None)
            if found and found[0] not in kept:
                implied, until = found
                message = f"'{text}' lacks '.{implied}', which ptxas takes for granted"
                yield Slack(".".join((family, *kept, implied)), message, "", until), [*atoms, implied]


def _drops(family: str, atom: str) -> bool:
    if atom == _NARROWEST:
        return family not in _COUNTED
    return (atom in IGNORED and atom not in _OWN.get(family, ())) or (atom in _TYPES and family in _TYPED)


def _fate(text: str, word: str) -> str:
    return "as only sust.b has" if text.startswith(_STORE) and word in _CACHED else "which ptxas ignores"


#: Kinds of operands that ptxas has at every version and target.
EARLY_OPERANDS = frozenset({"unified"})
#: Special registers that ptxas has at every version.
EARLY_REGISTERS = re.compile(r"%envreg\d+")


class Earlier(NamedTuple):
    """An instruction that ptxas has at an earlier version, or on more targets, than the manual says: from version `ptx`
    on, for one of `targets` (empty: any). opcode: a regular expression; operands: how many, 0: any number."""

    opcode: str
    ptx: tuple[int, int]
    targets: tuple[str, ...] = ()
    operands: int = 0


_F8F6F4 = r"mma(\.sp(::ordered_metadata)?)?\.sync\..*\.kind::f8f6f4\.f(16|32)\.(e4m3|e5m2)\.(e4m3|e5m2)\..*"
_F16_TO_F4 = r"cvt\.rn\.satfinite(\.relu)?\.e2m1x2\.f16x2"
#: Measured at every version and target.
EARLIER = (
    Earlier(r"atom\.global\.(add|and|cas|dec|exch|inc|max|min|or|xor)\.[bsu]32", (1, 0), ("sm_11",)),
    Earlier(r"(div|sqrt)\.rn\.f64", (1, 2), ("sm_13",)),
    Earlier(r"bar\.sync", (1, 0), (), 2),
    Earlier(r"addc\.[su]64", (1, 2)),
    Earlier(r"subc\.[su]64", (1, 3)),
    Earlier(r"madc\.(hi|lo)\.[su]64", (3, 0), ("sm_20",)),
    Earlier(r"nanosleep\.u32", (6, 2), ("sm_70",)),
    Earlier(r"cp\.async\.c[ag]\.shared::cta\.global", (7, 0), ("sm_80",)),
    Earlier(r"cp\.async\.c[ag]\.shared::cta\.global\.L2.*", (7, 4), ("sm_80",)),
    Earlier(r"fence\.(acquire|release)\.(cta|gpu|sys)", (6, 0), ("sm_70",)),
    Earlier(r"fence\.(acquire|release)\.cluster", (7, 8), ("sm_90",)),
    Earlier(r"(ld|st)\.(volatile\.)?shared::cta\.(v[24]\.)?[bfsu]\d+", (7, 8)),
    Earlier(r"(ld|st)\.shared::cta\.(ca|cg|cs|lu|cv|wb|wt)\..*", (7, 8), ("sm_20",)),
    Earlier(r"(atom|red)\.shared::cta\.(?!.*\.(b16|b?f16|b?f16x2)$).*", (7, 8), ("sm_12",)),
    Earlier(r"(isspacep|cvta(\.to)?)\.shared::cta.*", (7, 8), ("sm_20",)),
    Earlier(r"(multimem\.)?cp\.async\.bulk\.(?!.*\b(relaxed|cp_mask|report|32b)\b).*\.b128", (9, 2), ("sm_90",)),
    Earlier(r"(multimem\.)?cp\.async\.bulk\.(?!.*\brelaxed).*\.cp_mask\.b128", (9, 2), ("sm_100",)),
    Earlier(r"(suld|sust)\.b\.[12]d\.(v[24]\.)?b\d+\.(zero|clamp)", (2, 0)),
    Earlier(_F16_TO_F4, (8, 6), ("sm_100a", "sm_101a")),
    Earlier(_F16_TO_F4, (8, 7), ("sm_120a",)),
    Earlier(_F16_TO_F4, (8, 8), ("sm_100f", "sm_101f", "sm_110f", "sm_120f")),
    Earlier(_F8F6F4, (8, 6), ("sm_100a",)),
    Earlier(_F8F6F4, (8, 7), ("sm_100a", "sm_103a", "sm_110a", "sm_100f", "sm_110f")),
)  # fmt: skip


def earlier(opcode: str, operands: int) -> list[Earlier]:
    """Where ptxas has an instruction already, if the manual says otherwise."""
    return [row for row in EARLIER if row.operands in (0, operands) and re.fullmatch(row.opcode, opcode)]
