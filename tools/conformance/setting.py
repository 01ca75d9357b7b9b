"""The surroundings of a probe: the lines before it, for a PTX version and target."""

from __future__ import annotations

from ptxtools.isa.targets import FIRST_VERSION, Target, Version

#: The newest version that ptxas 13.0 knows, its targets, and where most probes are asked.
NEWEST: Version = (9, 0)
KNOWN = [t for t in FIRST_VERSION if FIRST_VERSION[t] <= NEWEST and t != "sm_82"]
HOME = "9.0/sm_100a"
#: Behind a target: textures and samplers have variables of their own (5.3).
INDEPENDENT = ",texmode_independent"
#: Register files: name without %, type, and how many.
FILES = (("p", "pred"), ("b", "b8"), ("h", "b16"), ("r", "b32"), ("rd", "b64"), ("f", "f32"), ("fd", "f64"))
#: Registers whose type is not just bits, for the rules on agreeing types.
TYPED = (("u", "u32"), ("s", "s32"), ("uh", "u16"), ("ul", "u64"), ("sl", "s64"), ("ub", "u8"))
COUNT = 140
#: How a probe ends up in a module: a statement of a kernel, a declaration before it, or a module of its own, of which
#: with LINES the line of the first error counts, too.
LINE, OUTER, MODULE, LINES = "line", "outer", "module", "lines"


def where(text: str) -> tuple[Version, str]:
    """ "9.0/sm_90" as ((9, 0), "sm_90"); options behind the target ("9.0/sm_75,texmode_independent") are left out."""
    version, _, target = text.partition("/")
    major, _, minor = version.partition(".")
    return (int(major), int(minor)), target.partition(",")[0]


def header(setting: str) -> list[str]:
    version, _ = where(setting)
    lines = [f".version {version[0]}.{version[1]}", f".target {setting.partition('/')[2].replace(',', ', ')}"]
    return [*lines, ".address_size 64"] if version >= (2, 3) else lines


def opening(setting: str) -> list[str]:
    """Everything before the statements of the kernel, with what this version and target can declare."""
    version, target = where(setting)
    number = Target(target).number
    modern = version >= (2, 1) and number >= 20
    lines = header(setting)
    lines += [".global .texref tx;", ".global .surfref sf;"] if version >= (1, 5) else [".tex .u32 tx;"]
    lines += [".global .samplerref sm;"] if setting.endswith(INDEPENDENT) else []
    lines += [".global .align 16 .b32 gv[64];", ".const .align 16 .b32 cv[64];", ".shared .align 16 .b32 sv[64];"]
    if modern:
        lines += [".func fn(.reg .b32 a) { ret; }"]
    lines += [".entry k(.param .u64 kp)" if version >= (1, 4) else ".entry k", "{"]
    files = [row for row in FILES if row[1] != "f64" or number >= 13] + (list(TYPED) if modern else [])
    if version >= (8, 3) and number >= 70:
        files.append(("q", "b128"))
    if version >= (4, 2) and number >= 53:
        files += [("x", "f16"), ("xx", "f16x2")]
    lines += [f".reg .{kind} %{name}<{COUNT}>;" for name, kind in files]
    lines += [".reg .v2 .b32 %v2;", ".reg .v4 .f32 %v4;", ".local .align 16 .b8 lv[64];"]
    if modern:
        lines += [".param .align 16 .b8 pv[64];", "PROTO: .callprototype _ (.reg .b32 a);"]
    if version >= (6, 0) and number >= 30:
        lines += ["TGT: .branchtargets LBL;"]
    return lines


def closing() -> list[str]:
    return ["LBL: ret;", "}"]


def module_of(setting: str, place: str, probes: list[str]) -> tuple[list[str], int]:
    """Lines of a module that holds the probes, one on each line, and the index of the first."""
    if place == LINE:
        before = opening(setting)
        return [*before, *probes, *closing(), ""], len(before)
    before = header(setting)
    if place == OUTER:
        return [*before, *probes, ".entry k() { ret; }", ""], len(before)
    [probe] = probes
    return [*(before if not probe.startswith(".version") else []), *probe.split("\\n"), ""], 0
