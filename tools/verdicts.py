"""Record what ptxas accepts: `testdata/isa/verdicts.txt`, one bit for each opcode, PTX version and target.

Usage: python tools/verdicts.py [--ptxas PATH] [--out FILE]

One module holds a line for each opcode; the lines that ptxas complains about are taken out and the module is tried
again until it passes, since an early error hides later ones. A module that makes ptxas crash is halved.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools import isa  # noqa: E402
from ptxtools.isa.index import CHAPTERS  # noqa: E402
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, Target, Version, version_text  # noqa: E402
from tools.conformance.operands import operands, statement  # noqa: E402

NEWEST: Version = (9, 0)
#: Not probed: they need labels, functions or textures; wide accumulators exhaust the register file.
SKIPPED = frozenset({"call", "bra", "brx", "tex", "tld4", "txq"})
_ERROR = re.compile(r"ptxas .*?, line (\d+); (?:error|fatal)\s*: (.*)")


def line(op: isa.Opcode) -> str:
    """A statement of this opcode, with what fits."""
    return statement(op.text, operands(op))


def head(version: Version, target: str) -> list[str]:
    """What stands before the probes, with what this version and target can declare."""
    number = Target(target).number
    lines = [f".version {version_text(version)}", f".target {target}"]
    if version >= (2, 3):
        lines.append(".address_size 64")
    if version >= (1, 5):
        lines.append(".global .surfref sf;")
    lines += [".global .align 16 .b32 gv[64];", ".const .b32 cv[4];", ".entry k(.param .u64 kp)", "{"]
    files = [("pred", "p"), ("b8", "b"), ("b16", "h"), ("b32", "r"), ("b64", "rd"), ("f32", "f"), ("f64", "fd")]
    if version >= (8, 3) and number >= 70:
        files.append(("b128", "q"))
    lines += [f".reg .{kind} %{name}<140>;" for kind, name in files]
    lines.append(".local .align 16 .b8 lv[64];")
    if version >= (2, 0) and number >= 20:
        lines.append(".param .align 16 .b8 pv[64];")
    return lines


def ask(ptxas: str, probes: list[str], version: Version, target: str) -> list[bool]:
    """For each line, whether ptxas accepts it."""
    accepted = [True] * len(probes)
    live = list(range(len(probes)))
    while live:
        status, wrong = _run(ptxas, [probes[i] for i in live], version, target)
        if status < 0:
            if len(live) == 1:
                accepted[live[0]] = False
                break
            middle = len(live) // 2
            for part in (live[:middle], live[middle:]):
                for i, verdict in zip(part, ask(ptxas, [probes[i] for i in part], version, target), strict=True):
                    accepted[i] = verdict
            break
        for at in wrong:
            accepted[live[at]] = False
        if not wrong:
            break
        live = [i for i in live if accepted[i]]
    return accepted


def _run(ptxas: str, probes: list[str], version: Version, target: str) -> tuple[int, set[int]]:
    before = head(version, target)
    number = Target(target).number
    arch = target if number >= 75 and number != 101 else "sm_110a" if number == 101 else "sm_75"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.ptx")
        path.write_text("\n".join([*before, *probes, "ret;", "}", ""]))
        command = [ptxas, f"-arch={arch}", "-O0", "-o", str(Path(folder, "out")), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = set()
    for found in _ERROR.finditer(done.stderr + done.stdout):
        at = int(found[1]) - len(before) - 1
        if 0 <= at < len(probes):
            wrong.add(at)
    return done.returncode, wrong


def pairs() -> list[tuple[Version, str]]:
    """Each version with the newest target that it knows, and each target at the newest version."""
    plain = [t for t in FIRST_VERSION if t != "sm_82" and (Target(t).suffix != "a" or t in ("sm_90a", "sm_100a"))]
    out: list[tuple[Version, str]] = []
    for version in VERSIONS:
        known = [t for t in plain if Target(t).suffix != "f" and FIRST_VERSION[t] <= version]
        if version <= NEWEST and version != (5, 1):  # ptxas takes 5.1 for 6.0
            out.append((version, "sm_100a" if "sm_100a" in known else known[-1]))
    out += [(NEWEST, t) for t in FIRST_VERSION if FIRST_VERSION[t] <= NEWEST and t != "sm_82"]
    return list(dict.fromkeys(out))


def opcodes() -> Iterator[isa.Opcode]:
    """The manual's examples, and some opcodes of every family."""
    rng = random.Random(7)
    for example in (ROOT / "testdata" / "isa" / "manual_examples.txt").read_text().splitlines():
        yield isa.resolve(example.split()[0])
    for family in sorted(CHAPTERS):
        for form in isa.forms(family):
            for _ in range(4):
                elements = [e for e in form.elements if not e.optional or (not e.group and rng.random() < 0.4)]
                try:
                    yield isa.resolve(".".join([family, *(rng.choice(e.values) for e in elements)]))
                except isa.OpcodeError:
                    continue


def probed(op: isa.Opcode) -> bool:
    wide = any(spec.vector > 64 for spec in op.operands)
    return op.family not in SKIPPED and not (op.family == "wgmma" and wide)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--out", type=Path, default=ROOT / "testdata" / "isa" / "verdicts.txt")
    arguments = parser.parse_args()
    chosen = {op.text: op for op in opcodes() if probed(op)}
    names = sorted(chosen)
    probes = [line(chosen[name]) for name in names]
    bits = [0] * len(names)
    where = pairs()
    for number, (version, target) in enumerate(where):
        for at, verdict in enumerate(ask(arguments.ptxas, probes, version, target)):
            bits[at] |= verdict << number
    rows = [f"{name} {value:x}" for name, value in zip(names, bits, strict=True)]
    listed = " ".join(f"{version_text(version)}/{target}" for version, target in where)
    comment = "# What ptxas accepts: one bit for each pair of the next line, lowest first (PTX version/target)."
    arguments.out.write_text("\n".join([comment, f"# pairs {listed}", *rows]) + "\n")
    print(f"{len(rows)} opcodes at {len(where)} pairs; nowhere accepted: {bits.count(0)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
