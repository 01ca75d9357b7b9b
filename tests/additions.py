"""What docs/architecture.md says is touched for each kind of addition, and one addition of each kind.

`FILES` is read out of the page's table. An addition here is what somebody would write: lines in these files and in no
others. A name in capitals (`isa/CHAPTER.py`) stands for one file of its folder.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
#: Kinds of additions, by their bold names in the page, and the files that each touches.
FILES = {
    kind: re.findall(r"`([\w/]+\.py)`", files)
    for kind, files in re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \|$", PAGE, re.MULTILINE)
}


@dataclass(frozen=True)
class Edit:
    """Lines put behind the line that begins with `after`, or at the end of the file (""), or into a new file."""

    file: str
    lines: str
    after: str = ""


INSTRUCTION = (
    Edit("isa/index.py", '    "frob": ("floating",),\n', '    "fns"'),
    Edit("isa/floating.py", '# 9.7.3.23 frob\n    frob.f32  d, a, b;\n    needs => ptx 8.0, sm_80\n"""\n',
         "    needs => ptx 7.0, sm_75"),
    Edit("semantics/floating.py", """

@floating("frob")
def frob(A: Algebra, op: Opcode, a: Value, b: Value) -> Value:
    \"\"\"9.7.3.23: a + a * b\"\"\"
    return canonical(A, A.fma("f32", a, b, a))
"""),
    Edit("semantics/forms.py", "frob = : f32 | 32701\n", "rem sad ="),
)  # fmt: skip

EVENT = (
    Edit("isa/index.py", '    "tally": ("miscellaneous",),\n', '    "szext"'),
    Edit("isa/miscellaneous.py", '# 9.7.19.6 tally\n    tally.u32  d, a;\n    needs => ptx 8.0, sm_80\n"""\n',
         "    needs => ptx 8.0, sm_90a, blackwell"),
    Edit("semantics/forms.py", "tally = : u32 | dbcbd\n", "pmevent ="),
    Edit("program/operations.py", '    "tally": Operation(EVENT, "result?", "value"),\n', '    "nanosleep":'),
    Edit("program/lowering/control.py", """

@lowers("tally")
def tally(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    \"\"\"How many values the CTA's threads have brought so far, and their sum.\"\"\"
    after = f.guarded_region()
    into, value = f.destination(instruction.operands[0]), f.source(instruction.operands[1], "u32")
    f.event(Op("tally", op, (into,), (value,), ("u32",), ("u32",)))
    f.end_region(after)
"""),
    Edit("sim/services.py", '    "tally": "tally",\n', '    "syscall"'),
    Edit("sim/tally.py", '''"""tally: a sum of the CTA's threads so far (9.7.19.6)."""

from ptxtools.machine.events import View, serves


@serves("tally")
def tally(view: View) -> None:
    values, sums = view.source(0), view.source(0)
    for lane in view.lanes():
        view.cta.state["tally"] = sums[lane] = view.cta.state.get("tally", 0) + int(values[lane])
    view.result(0, sums)
'''),
)  # fmt: skip

OPERATION = (
    Edit("isa/index.py", '    "swirl": ("synchronisation",),\n', '    "sust"'),
    Edit("isa/synchronisation.py", '# 9.7.13.17 swirl\n    swirl.b32  d, a;\n    needs => ptx 8.0, sm_80\n"""\n',
         "    needs => ptx 8.0, sm_90"),
    Edit("semantics/forms.py", "swirl = : b32 | db21a\n", "activemask ="),
    Edit("program/operations.py", '    "swirl": _together("result?", "value"),\n', '    "activemask":'),
    Edit("program/lowering/warp.py", """

@lowers("swirl")
def swirl(f: FunctionLowering, instruction: Instruction, op: Opcode) -> None:
    \"\"\"Each lane gets the value of the next one.\"\"\"
    after = f.guarded_region()
    into, value = f.destination(instruction.operands[0]), f.source(instruction.operands[1], "b32")
    f.emit(Op("swirl", op, (into,), (value,), ("b32",), ("b32",)))
    f.end_region(after)
"""),
    Edit("reference/warp.py", """

@executes("swirl")
def swirl(m: Machine, op: Op, threads: Threads) -> None:
    value = op.src[0]
    assert value is not None
    lane = threads % LANES
    m.write(op.dst[0], m.source(value, "b32", threads - lane + (lane + 1) % LANES), "b32", threads)
"""),
    Edit("native/handlers/warp.py", """

def swirl(h: Handler) -> None:
    \"\"\"swirl: the value of the next lane.\"\"\"
    A = h.algebra  # noqa: N806 - the algebra's name everywhere
    next_ = A.and_with("u32", A.add("u32", _lane_numbers(h), A.const("u32", 1)), 31)
    h.results([_permute(h, h.source(0), next_)])
"""),
    Edit("native/handlers/__init__.py", '    "swirl": "warp.swirl",\n', '    "activemask"'),
)  # fmt: skip

DEVICE = (
    Edit("isa/chips.py", '    Chip(130, "nova", (9, 0), (9, 0), (9, 0), (130,)),\n', "    Chip(121"),
    Edit("sim/limits.py", '    _modern("sm_130", "N100", 99, 1536, 24, 228, 16),\n', '    _modern("sm_121"'),
    Edit("semantics/generations.py", '    "nova": Generation(23, 8),\n', '    "rtx_blackwell"'),
)

ACCUMULATION = (
    Edit("semantics/accumulation.py", """    if numerics == "nova" and sum_.atype == "bf16":
        return Rule(0, sum_.k, result, late=True)
""", '        return Rule(0, sum_.k, result, wide="f64"'),
)  # fmt: skip

RULE = (
    Edit("linter/rules/ptx799_frob_with_itself.py", '''"""PTX799 | frob with itself | 9.7.3.23

What: a frob whose operands are the same.
Why: it was forgotten what it does.
Example:
    frob.f32 %f1, %f2, %f2;
Better:
    frob.f32 %f1, %f2, %f3;
"""

from ptxtools.ir.positions import part_span

from ..registry import instructions

CODE = "PTX799"


@instructions("frob")
def check(context, facts, line):
    sources = line.item.operands[1:]
    if len(sources) == 2 and sources[0] == sources[1]:
        context.warn(CODE, "both operands are the same", part_span(line.item, 2))
'''),
)  # fmt: skip

ERROR = (
    Edit("check/codes.py", 'FROBBED = "PTX499"\n', 'UNDEFINED ='),
    Edit("check/pages/structure.py", """# PTX499 | frob of constants | 9.7.3.23
What: a frob with two constants.
Why: its result is one.
Example:
    frob.f32 %f1, 0f3F800000, 0f3F800000;
Better:
    mov.f32 %f1, 0f40000000;
\"\"\"
""", "no definition."),
    Edit("check/particular.py", """    if op.family == "frob" and all(isinstance(o, Immediate) for o in operands[1:]):
        yield Problem(codes.FROBBED, "both operands are constants", 2)
""", "        yield from _depth(op, operands, scope)"),
)  # fmt: skip

OPTION = (
    Edit("machine/options.py", """    frobs: int | None = option(
        None, "whole", "--frobs", key="frobs", metavar="N", help="Frobs of the device.", most=9, of="frobs"
    )
""", '    stack: int | None = option(None, "whole")'),
    Edit("sim/device.py", "        self.frobs = options.frobs\n", "        self.heap_bytes ="),
)  # fmt: skip

#: One addition of each kind of the page.
ADDITIONS = {
    "an instruction": INSTRUCTION,
    "an event": EVENT,
    "an operation in a block": OPERATION,
    "a device": DEVICE,
    "an accumulation rule": ACCUMULATION,
    "a warning rule": RULE,
    "an error rule": ERROR,
    "an option": OPTION,
}


def package(folder: Path) -> Path:
    """A copy of the package, of the tools that make its pages, and of those pages."""
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("ptxtools", "tools"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    shutil.copytree(ROOT / "docs", folder / "docs")
    return folder / "ptxtools"


def add(package: Path, edits: tuple[Edit, ...]) -> None:
    """Write the lines of an addition."""
    for edit in edits:
        path = package / edit.file
        text = path.read_text("utf-8") if path.exists() else ""
        path.write_text(_with(text, edit), "utf-8")


def _with(text: str, edit: Edit) -> str:
    if not edit.after:
        return text + edit.lines
    place = text.rindex("\n" + edit.after)
    end = text.index("\n", place + 1) + 1
    if edit.lines.endswith('"""\n'):  # the last page of a chapter
        assert text[end:].startswith('"""\n')
        return text[:end] + "\n" + edit.lines + text[end + 4 :]
    return text[:end] + edit.lines + text[end:]


def is_listed(file: str, listed: list[str]) -> bool:
    """Whether a page's list has a file, by its name or by one in capitals."""
    return any(re.fullmatch(re.sub(r"[A-Z]{2,}", r"\\w+", name), file) for name in listed)
