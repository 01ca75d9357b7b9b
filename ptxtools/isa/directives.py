"""Directives (chapters 5, 7 and 11): where each is allowed, its arguments, and its requirements."""

from __future__ import annotations

from ptxtools.records import NamedTuple

Version = tuple[int, int]


class DirectiveInfo(NamedTuple):
    """One directive.

    places: of "header" (starts the module), "module", "entry" and "func" (between header and body), "statement"
    (inside a body), "prototype" (after `.callprototype`), "variable" (inside a declaration).
    counts: (fewest, most) arguments, None: any number. kind: of the arguments: "int", "string", "name", "version",
    "target", "" (none), "declaration", "other" (own grammar). range: inclusive bounds of an integer argument.
    ptx, target: first version and target. excludes: directives not allowed with it. wants: one of these
    should accompany it. deprecated: version since which another directive replaces it. removed: version since which
    no assembler accepts it; replacement: what to write instead. section: of the manual.
    """

    name: str
    places: frozenset[str]
    counts: tuple[int, int | None]
    kind: str
    section: str
    ptx: Version = (1, 0)
    target: str = "sm_10"
    range: tuple[int, int] | None = None
    excludes: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    deprecated: Version | None = None
    removed: Version | None = None
    replacement: str = ""


def _d(
    name: str,
    places: str,
    counts: tuple[int, int | None],
    kind: str,
    section: str,
    ptx: Version = (1, 0),
    target: str = "sm_10",
    *,
    range: tuple[int, int] | None = None,
    excludes: tuple[str, ...] = (),
    wants: tuple[str, ...] = (),
    deprecated: Version | None = None,
    removed: Version | None = None,
    replacement: str = "",
) -> DirectiveInfo:
    return DirectiveInfo(
        name, frozenset(places.split()), counts, kind, section, ptx, target, range, excludes, wants, deprecated,
        removed, replacement,
    )  # fmt: skip


_COUNT = (0, 2**32 - 1)
_DIM = (1, 2**32 - 1)

#: Every directive by name.
DIRECTIVES: dict[str, DirectiveInfo] = {
    d.name: d
    for d in (
        # Declarations: state spaces and attributes (5.1, 5.4).
        _d(".reg", "module statement", (1, None), "declaration", "5.1.1"),
        _d(".sreg", "module", (1, None), "declaration", "5.1.2"),
        _d(".const", "module statement", (1, None), "declaration", "5.1.3"),
        _d(".global", "module statement", (1, None), "declaration", "5.1.4"),
        _d(".local", "module statement", (1, None), "declaration", "5.1.5"),
        _d(".param", "module statement", (1, None), "declaration", "5.1.6"),
        _d(".shared", "module statement", (1, None), "declaration", "5.1.7"),
        _d(".tex", "module", (1, None), "declaration", "5.1.8", deprecated=(1, 5)),
        _d(".align", "variable", (1, 1), "int", "5.4.5", range=(1, 2**31)),
        _d(".ptr", "variable", (0, 3), "other", "5.1.6.3", (2, 2)),
        _d(".attribute", "variable entry func", (1, None), "other", "5.4.8", (4, 0), "sm_30"),
        # Module (11.1).
        _d(".version", "header", (1, 1), "version", "11.1.1"),
        _d(".target", "header", (1, None), "target", "11.1.2"),
        _d(".address_size", "header", (1, 1), "int", "11.1.3", (2, 3), range=(32, 64)),
        # Functions (11.2).
        _d(".entry", "module", (1, None), "declaration", "11.2.1"),
        _d(".func", "module", (1, None), "declaration", "11.2.2"),
        _d(".alias", "module", (2, 2), "name", "11.2.3", (6, 3), "sm_30"),
        # Control flow (11.3).
        _d(".branchtargets", "statement", (1, None), "name", "11.3.1", (6, 0), "sm_30"),
        _d(".calltargets", "statement", (1, None), "name", "11.3.2", (2, 1), "sm_20"),
        _d(".callprototype", "statement", (1, None), "declaration", "11.3.3", (2, 1), "sm_20"),
        # Performance tuning (11.4).
        _d(".maxnreg", "entry", (1, 1), "int", "11.4.1", (1, 3), range=_COUNT),
        _d(".maxntid", "entry", (1, 3), "int", "11.4.2", (1, 3), range=_DIM, excludes=(".reqntid",)),
        _d(".reqntid", "entry", (1, 3), "int", "11.4.3", (2, 1), range=_DIM, excludes=(".maxntid",)),
        _d(".minnctapersm", "entry", (1, 1), "int", "11.4.4", (2, 0), range=_COUNT, wants=(".maxntid", ".reqntid")),
        _d(".maxnctapersm", "entry", (1, 1), "int", "11.4.5", (1, 3), range=_COUNT, deprecated=(2, 0),
           removed=(2, 1), replacement=".minnctapersm"),
        _d(".noreturn", "func prototype", (0, 0), "", "11.4.6", (6, 4), "sm_30"),
        _d(".pragma", "module entry statement", (1, None), "string", "11.4.7", (2, 0)),
        _d(".abi_preserve", "func prototype", (1, 1), "int", "11.4.8", (9, 0), "sm_80", range=(0, 255)),
        _d(".abi_preserve_control", "func prototype", (1, 1), "int", "11.4.9", (9, 0), "sm_80", range=(0, 11)),
        _d(".minperctamemory", "entry", (1, 1), "int", "11.4.10", (9, 4), "sm_80", range=_COUNT),
        # Debugging (11.5).
        _d("@@dwarf", "module", (1, None), "other", "11.5.1", (1, 2), deprecated=(2, 0)),
        _d(".section", "module", (1, None), "other", "11.5.2", (2, 0)),
        _d(".file", "module", (2, 4), "other", "11.5.3"),
        _d(".loc", "statement", (3, None), "other", "11.5.4"),
        _d(".loc_intermediate", "statement", (3, 3), "int", "11.5.5", (9, 4), range=_COUNT),
        _d(".nv_intermediate_source_section", "module", (0, None), "other", "11.5.6", (9, 4)),
        # Linking (11.6).
        _d(".extern", "module statement", (1, 1), "declaration", "11.6.1"),
        _d(".visible", "module", (1, 1), "declaration", "11.6.2"),
        _d(".weak", "module", (1, 1), "declaration", "11.6.3", (3, 1)),
        _d(".common", "module", (1, 1), "declaration", "11.6.4", (5, 0), "sm_20"),
        # Clusters (11.7).
        _d(".reqnctapercluster", "entry", (1, 3), "int", "11.7.1", (7, 8), "sm_90", range=_DIM,
           excludes=(".maxclusterrank",)),
        _d(".explicitcluster", "entry", (0, 0), "", "11.7.2", (7, 8), "sm_90"),
        _d(".maxclusterrank", "entry", (1, 1), "int", "11.7.3", (7, 8), "sm_90", range=_DIM,
           excludes=(".reqnctapercluster",)),
        _d(".blocksareclusters", "entry", (0, 0), "", "11.7.4", (9, 0), "sm_90",
           wants=(".reqntid", ".reqnctapercluster")),
        # Miscellaneous (11.8). ptxas 13.2 takes it at 9.2 already; the manual says 9.3.
        _d(".language", "entry func", (1, None), "language", "11.8.2", (9, 2), range=(0, 10)),
    )
}  # fmt: skip


#: What `.language` may name, in any case (11.8.2).
LANGUAGES = frozenset(
    {"unknown", "ptx", "nvvm", "cuda c++", "cuda c++ tile", "tile ir", "python-cutile", "fortran", "optix"}
)


class AttributeInfo(NamedTuple):
    """An attribute inside `.attribute(…)` (5.4.8): where it may stand, number of arguments, needs."""

    name: str
    places: frozenset[str]
    arguments: int
    ptx: Version
    target: str


ATTRIBUTES: dict[str, AttributeInfo] = {
    a.name: a
    for a in (
        AttributeInfo(".managed", frozenset({"global"}), 0, (4, 0), "sm_30"),
        AttributeInfo(".unified", frozenset({"global", "func"}), 2, (8, 0), "sm_90"),
    )
}


class PragmaInfo(NamedTuple):
    """A `.pragma` string that ptxas defines (chapter 14): first version and target; whether it belongs to a body;
    section; the least value of its number, None when it takes none."""

    ptx: Version
    target: str
    in_body: bool
    section: str
    least: int | None = None


#: By the first word of the string. The sections of the last two are those of PTX 9.0.
PRAGMAS: dict[str, PragmaInfo] = {
    "nounroll": PragmaInfo((2, 0), "sm_10", False, "14.1"),
    "used_bytes_mask": PragmaInfo((8, 3), "sm_50", True, "14.2", -(2**63)),
    "enable_smem_spilling": PragmaInfo((8, 7), "sm_75", True, "14.3"),
    "frequency": PragmaInfo((9, 0), "sm_10", True, "14.4", 1),
    "mma_throughput": PragmaInfo((9, 3), "sm_10", True, "14.5"),
}


class Addition(NamedTuple):
    """A smaller addition to a directive: first version and target; section of the manual."""

    ptx: Version
    target: str
    section: str


#: Additions to directives, under the names that findings give them. Labels in debug sections and `inlined_at` are
#: dated as ptxas does, which compilers relied on: the manual says 7.2. So are constant banks, which it does not date.
ADDITIONS: dict[str, Addition] = {
    "the declaration of a kernel": Addition((3, 0), "sm_10", "11.2.1"),
    "a list of parameters": Addition((1, 4), "sm_10", "11.2.1"),
    "a function parameter in .param": Addition((2, 0), "sm_20", "7.1"),
    "an array parameter without size": Addition((6, 0), "sm_30", "11.2.2"),
    "more than 256 bytes of parameters": Addition((1, 4), "sm_20", "5.1.6.1"),
    "more than 4352 bytes of parameters": Addition((8, 1), "sm_70", "5.1.6.1"),
    "a pointer to a texture, sampler or surface": Addition((4, 3), "sm_10", "5.3"),
    "a time stamp in .file": Addition((3, 2), "sm_10", "11.5.3"),
    "inlined_at in .loc": Addition((7, 0), "sm_10", "11.5.4"),
    ".b16 in a debug section": Addition((6, 0), "sm_10", "11.5.2"),
    "a label in a debug section": Addition((7, 0), "sm_10", "11.5.2"),
    "a label with an offset in a debug section": Addition((3, 2), "sm_10", "11.5.2"),
    "a difference of labels in a debug section": Addition((7, 5), "sm_10", "11.5.2"),
    "a negative number in a debug section": Addition((7, 5), "sm_10", "11.5.2"),
    "a constant bank": Addition((1, 5), "sm_10", "5.1.3.1"),
    "the address of a variable as an initial value": Addition((2, 1), "sm_10", "5.4.4"),
    "the address of a function as an initial value": Addition((2, 0), "sm_20", "5.4.4"),
    "the address of a kernel as an initial value": Addition((3, 1), "sm_35", "5.4.4"),
    "generic() in an initialiser": Addition((3, 1), "sm_10", "5.4.4"),
    "a mask in an initialiser": Addition((7, 1), "sm_10", "5.4.4"),
}
