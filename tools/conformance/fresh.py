"""Fresh probes: statements and modules made at random, which no record has. One seed makes the same ones again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache

from ptxtools import isa
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.registers import SPECIAL
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, version_text

from .instructions import FOREIGN, Probe, _available, _base, _heavy, _variants
from .operands import ADDRESSES, CONSTANTS, SCALARS, operands, optional_parts, replacements, statement
from .setting import LINE, LINES

#: Where statements are tried: a version for each release of ptxas, and targets of every kind.
_NEW = ("sm_100a", "sm_90a", "sm_120a", "sm_103a", "sm_110a", "sm_107a", "sm_100f", "sm_90", "sm_80", "sm_75")
_RELEASED = [v for v in VERSIONS if v >= (9, 0)]
#: Pairs of version and target that one seed tries: more would leave too few probes for each call of ptxas.
_SETTINGS = 100
_ANYWHERE: list[str] = []
_OLD_VERSION = (5, 1)  # ptxas takes it for 6.0


def probes(seed: int) -> Iterator[Probe]:
    """Without end; some may repeat."""
    rng = random.Random(f"fresh {seed}")
    _ANYWHERE[:] = [_setting(rng) for _ in range(_SETTINGS)]
    kinds: list[Callable[[random.Random], Probe | None]] = []
    for kind, weight in ((_two_operands, 8), (_retargeted, 5), (_modifier, 4), (_variable, 3), (_function, 2),
                         (_body, 2), (_special, 1)):  # fmt: skip
        kinds += [kind] * weight
    while True:
        if (probe := rng.choice(kinds)(rng)) is not None:
            yield probe


# --- statements -------------------------------------------------------------------------------------------------------


@cache
def _forms(family: str) -> tuple[isa.Form, ...]:
    return tuple(isa.forms(family))


_FAMILIES = sorted(CHAPTERS)


def _opcode(rng: random.Random) -> isa.Opcode | None:
    """Any opcode of any form; families are equally likely."""
    forms = _forms(rng.choice(_FAMILIES))
    form = rng.choice(forms)
    base = _base(form, rng)
    if base is None:
        return None
    for variant in rng.sample(list(_variants(form, base[0], rng)), 4):
        try:
            op = isa.resolve(".".join([form.family, *variant]))
        except isa.OpcodeError:
            continue
        if not _heavy(op):
            return op
    return base[1]


def _home(op: isa.Opcode, rng: random.Random) -> str | None:
    """A new version, and a target that has the opcode."""
    version = rng.choice(_RELEASED)
    targets = [t for t in _NEW if FIRST_VERSION[t] <= version and _available(op, version, t)]
    return f"{version_text(version)}/{rng.choice(targets)}" if targets else None


def _texts(op: isa.Opcode, rng: random.Random) -> tuple[tuple[isa.OperandSpec, ...], list[str]]:
    """Fitting operands, at times with optional ones."""
    shape = rng.choice(op.shapes)
    texts = operands(op, shape)
    more = list(optional_parts(op)) if shape is op.operands else []
    return shape, rng.choice(more) if more and rng.random() < 0.3 else texts


def _line(op: isa.Opcode, texts: list[str], rng: random.Random, name: str = "") -> str:
    guard = rng.choice(("@%p1 ", "@!%p2 ")) if rng.random() < 0.1 else ""
    return guard + statement(name or op.text, texts)


def _two_operands(rng: random.Random) -> Probe | None:
    op = _opcode(rng)
    home = op and _home(op, rng)
    if not op or not home:
        return None
    shape, texts = _texts(op, rng)
    for at in rng.sample(range(len(texts)), min(2, len(texts))):
        spec = shape[at] if at < len(shape) else shape[-1]
        # Half of them fit, so that not every probe is wrong twice.
        texts[at] = rng.choice(_alike(texts[at]) if rng.random() < 0.5 else list(replacements(spec)))
    return Probe(home, LINE, "fresh operands", _line(op, texts, rng))


def _alike(text: str) -> list[str]:
    """Other texts of the same kind."""
    for group in (SCALARS, CONSTANTS, ADDRESSES):
        if text in group:
            return list(group)
    if text.startswith("["):
        return list(ADDRESSES)
    if text.startswith("{"):
        return [text.replace("%r", "%u"), text.replace("%r", "%s"), text.replace("%r", "%f"), text,
                text.replace("0", "7"), text.replace("%h", "%uh"), text.replace("%rd", "%ul")]  # fmt: skip
    return [text, text.replace("%r", "%u"), text.replace("%r", "%s"), text.replace("%h", "%uh"),
            text.replace("%rd", "%ul"), text.replace("%rd", "%sl"), *CONSTANTS]  # fmt: skip


def _retargeted(rng: random.Random) -> Probe | None:
    op = _opcode(rng)
    if not op:
        return None
    _, texts = _texts(op, rng)
    return Probe(_anywhere(rng), LINE, "fresh target", _line(op, texts, rng))


def _anywhere(rng: random.Random) -> str:
    return rng.choice(_ANYWHERE)


def _setting(rng: random.Random) -> str:
    """Any version with any target that it knows; new ones more often."""
    versions = [v for v in VERSIONS if v != _OLD_VERSION]
    version = rng.choice(versions if rng.random() < 0.5 else versions[-20:])
    targets = [t for t in FIRST_VERSION if FIRST_VERSION[t] <= version and t not in ("sm_82", "sm_88")]
    # 9.0 renamed sm_101.
    targets = [t for t in targets if not (t.startswith("sm_101") and version >= (9, 0))]
    return f"{version_text(version)}/{rng.choice(targets)}"


def _modifier(rng: random.Random) -> Probe | None:
    op = _opcode(rng)
    home = op and _home(op, rng)
    if not op or not home:
        return None
    _, texts = _texts(op, rng)
    family, *atoms = op.text.split(".")
    for _ in range(rng.choice((1, 1, 2))):
        what, at = rng.randrange(5), rng.randrange(len(atoms) + 1)
        if what == 0 and atoms:
            del atoms[at - 1]
        elif what == 1 and atoms:
            atoms.insert(at, rng.choice(atoms))
        elif what == 2 and atoms:
            atoms.insert(at, atoms.pop(rng.randrange(len(atoms))))
        else:
            atoms.insert(at, rng.choice(FOREIGN if what == 3 else _words()))
    return Probe(home, LINE, "fresh modifiers", _line(op, texts, rng, ".".join([family, *atoms])))


@cache
def _words() -> tuple[str, ...]:
    """Every modifier of every instruction."""
    return tuple(sorted({value for f in _FAMILIES for form in _forms(f) for e in form.elements for value in e.values}))


def _special(rng: random.Random) -> Probe | None:
    name = rng.choice(sorted(SPECIAL))
    mention = name + rng.choice(("", ".x", ".y", ".w", ".z"))
    form = rng.choice(("mov.{t} {r}, {m};", "mov.{t} {m}, {r};", "cvt.u64.{t} %rd1, {m};", "add.{t} {r}, {m}, {r};",
                       "mov.v4.{t} {{%r1, %r2, %r3, %r4}}, {m};", "@%p1 mov.{t} {r}, {m};", "cvt.{t}.{t} {r}, {m};",
                       "mov.b64 %rd1, {{{m}, %r1}};", "st.global.{t} [gv], {m};"))  # fmt: skip
    kind, register = rng.choice((("u32", "%r1"), ("b32", "%r1"), ("u64", "%rd1"), ("b64", "%rd1"), ("u16", "%h1"),
                                 ("b16", "%h1"), ("s32", "%s1"), ("f32", "%f1"), ("pred", "%p1")))  # fmt: skip
    return Probe(_anywhere(rng), LINE, "fresh specials", form.format(t=kind, r=register, m=mention))


# --- modules ----------------------------------------------------------------------------------------------------------

_TYPES = ("b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64", "f16", "f16x2",
          "b128", "pred", "bf16", "texref", "surfref", "samplerref")  # fmt: skip
_USUAL = ("b8", "b32", "u32", "b64", "u64", "f32", "f64", "u16", "s8")
_VALUES = ("0", "1", "-1", "255", "256", "0x1ffffffff", "1.5", "0f3F800000", "0d3FF0000000000000", "{1, 2}", "{0}",
           "{}", "{1, 2, 3, 4, 5}", "{{1, 2}, {3, 4}}", "other", "other+4", "generic(other)", "{other, 0}", "f",
           "{f, other}", "0xff(other)", "undeclared", "1+2", "(3*4)-1", "-(2)", "!0", "~0", "1 ? 2 : 3", "x",
           "WARP_SZ", "\"a\"", "{1.0, 2.0}", "0x0", "1U", "07", "0b11")  # fmt: skip
_SHAPES = ("x", "x", "x[4]", "x[2][2]", "x[]", "x[][2]", "x<3>", "x, y", "x[0]", "x[2][]", "x[8]", "x[1][4]")
_ALIGNS = ("", "", "", ".align 4 ", ".align 8 ", ".align 16 ", ".align 1 ", ".align 3 ", ".align 256 ")
_LINKAGES = ("", "", ".visible ", ".extern ", ".weak ", ".common ")
_ATTRIBUTES = ("", "", "", "", "", ".attribute(.managed) ", ".attribute(.unified(1, 2)) ")
_BEFORE = (".global .align 8 .b32 other[4];", ".func f();")


def _variable(rng: random.Random) -> Probe:
    space = rng.choice((".global", ".global", ".const", ".shared", ".local", ".reg", ".param"))
    kind = rng.choice(_USUAL if rng.random() < 0.7 else _TYPES)
    vector = rng.choice(("", "", "", "", ".v2 ", ".v4 "))
    value = f" = {rng.choice(_VALUES)}" if rng.random() < 0.4 else ""
    text = (f"{rng.choice(_LINKAGES)}{space} {rng.choice(_ATTRIBUTES)}{rng.choice(_ALIGNS)}{vector}.{kind} "
            f"{rng.choice(_SHAPES)}{value};")  # fmt: skip
    place = rng.random()
    if place < 0.2:
        return Probe(_place(rng), LINE, "fresh variables", "{ " + text + " }")
    again = [_again(text, rng)] if place < 0.4 else []
    return _module(rng, "fresh variables", *_BEFORE, text, *again, ".entry k() { ret; }", ".func f() { ret; }")


def _again(text: str, rng: random.Random) -> str:
    """The declaration once more, with something changed."""
    old, new = rng.choice(((".global", ".const"), (".extern ", ""), ("", ""), (".b32", ".u32"), (" =", " = 1+"),
                           ("[4]", "[5]"), (".visible ", ".weak "), (".align 4 ", ""), ("[]", "[4]")))  # fmt: skip
    return text.replace(old, new) if old and rng.random() < 0.7 else rng.choice(_LINKAGES) + text


def _place(rng: random.Random) -> str:
    version = rng.choice(_RELEASED)
    targets = [t for t in _NEW if FIRST_VERSION[t] <= version]
    return f"{version_text(version)}/{rng.choice(targets)}"


def _module(rng: random.Random, topic: str, *lines: str) -> Probe:
    setting = _place(rng) if rng.random() < 0.8 else _anywhere(rng)
    return Probe(setting, LINES, topic, "\\n".join(line for line in lines if line))


_TUNING = (".maxntid 64", ".maxntid 1025", ".maxntid 8, 8, 8, 8", ".reqntid 32", ".reqntid 32, 2", ".minnctapersm 2",
           ".maxnctapersm 2", ".maxnreg 32", ".maxnreg 0", ".noreturn", ".pragma \"nounroll\";", ".reqnctapercluster 2",
           ".explicitcluster", ".maxclusterrank 8", ".blocksareclusters", ".abi_preserve 8", ".abi_preserve_control 2",
           ".pragma \"x\";", ".minnctapersm 0", ".reqntid 0", ".maxntid 1+1")  # fmt: skip
_PARAMETERS = (".param .u32 a", ".param .b8 a[8]", ".param .align 16 .b8 a[16]", ".param .u64 .ptr a",
               ".param .u64 .ptr .global .align 16 a", ".reg .b32 a", ".reg .b64 a", ".reg .pred a", ".reg .f32 a",
               ".param .b8 a[]", ".param .b8 a[0]", ".param .f16 a", ".param .texref a", ".param .v2 .b32 a",
               ".reg .v2 .b32 a", ".reg .b16 a", ".param .b128 a", ".param .u8 a", ".param .pred a", ".reg .u16 a",
               ".param .align 8 .u32 a", ".param .u64 .ptr .shared a", ".param .f32 a[2][2]", ".reg .b32 a<2>",
               ".param .align 3 .b8 a[4]", ".param .align 256 .b8 a[256]", ".reg .b32 a[2]")  # fmt: skip


def _signature(rng: random.Random, *, results: bool) -> tuple[str, str]:
    """Results with their parentheses or nothing, and parameters with theirs."""
    texts = [rng.choice(_PARAMETERS) for _ in range(rng.choice((0, 1, 1, 2)))]
    named = [_renamed(text, f"a{at}") for at, text in enumerate(texts)]
    given = ""
    if results and rng.random() < 0.5:
        given = (
            "("
            + ", ".join(_renamed(rng.choice(_PARAMETERS[:10]), f"r{at}") for at in range(rng.choice((1, 1, 2))))
            + ") "
        )
    return given, "(" + ", ".join(named) + ")"


def _renamed(text: str, name: str) -> str:
    head, _, tail = text.rpartition(" a")
    return f"{head} {name}{tail}"


def _function(rng: random.Random) -> Probe:
    kind = rng.choice((".entry", ".entry", ".func"))
    results, params = _signature(rng, results=kind == ".func")
    linkage = rng.choice(("", "", ".visible ", ".extern ", ".weak ", ".common "))
    tuning = " ".join(rng.sample(_TUNING, rng.choice((0, 0, 1, 1, 2))))
    body = "{ ret; }" if rng.random() < 0.8 else ";"
    text = f"{linkage}{kind} {results}g{params} {tuning} {body}"
    more: list[str] = []
    if rng.random() < 0.3:
        again = rng.choice((body, ";", "{ ret; }"))
        other = params if rng.random() < 0.6 else _signature(rng, results=False)[1]
        more = [f"{rng.choice((linkage, '', '.visible '))}{kind} {results}g{other} {again}"]
    if rng.random() < 0.15:
        more.append(rng.choice((".alias h, g;", ".func h();", ".func h" + params + ";")))
        more.append(".alias h, g;")
    return _module(rng, "fresh functions", text, *more, ".entry k() { ret; }")


_STATEMENTS = (".reg .b32 %r<4>;", ".reg .b32 r;", ".reg .pred p;", "mov.b32 r, 1;", "{ .reg .b32 r; mov.b32 r, 2; }",
               "bra L;", "L:", "@p bra L;", "M: ret;", ".pragma \"nounroll\";", ".loc 1 1 1", "call f;", "call.uni f;",
               "call g, (r);", "call (r), h, (r);", ".param .b32 q;", "st.param.b32 [q], r;", "call g, (q);",
               ".shared .b32 s[4];", "ld.shared.b32 r, [s];", ".local .b64 l;", "T: .branchtargets L, M;",
               "brx.idx r, T;", "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);", "call (r), r, (r), P;",
               "C: .calltargets h;", "mov.b64 d, h;", ".reg .b64 d;", "call (r), d, (r), P;", "call (r), d, (r), C;",
               "ret.uni;", "exit;", "trap;", ".global .b32 v = 1;", "ld.global.b32 r, [v];", "setp.eq.b32 p, r, 0;",
               "add.s32 r, r, %r1;", "mov.b32 %r3, %r4;", "st.global.b32 [d], r;", "bar.sync 0;", "M:", "}", "{",
               "ld.param.b32 r, [k];", "ld.param.b32 r, [a];", "mov.u64 d, v;", "call h, (r);")  # fmt: skip


def _body(rng: random.Random) -> Probe:
    lines = [".reg .b32 r;", ".reg .b64 d;", ".reg .pred p;"] if rng.random() < 0.8 else []
    lines += rng.sample(_STATEMENTS, rng.randint(1, 5))
    if rng.random() < 0.3:
        rng.shuffle(lines)
    before = (".extern .func f;", ".func g(.reg .b32 a) { ret; }", ".func (.reg .b32 a) h(.reg .b32 b) { ret; }")
    before = before if rng.random() < 0.8 else before[1:]
    return _module(
        rng, "fresh bodies", '.file 1 "a.cu"', *before, ".entry k(.param .b32 a)", "{", *lines, "L: ret;", "}"
    )
