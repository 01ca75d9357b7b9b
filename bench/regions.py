"""Accesses to memory in the loops of kernels: how many are in regions, and why the others are not.

    python -m bench.regions [-v] [FILE ...]

Counts are of operations, not of how often they run. Default: the kernels of the benchmark and the test data. -v: with a
line for each kernel.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ptxtools.diagnostics import PtxError
from ptxtools.native.code.refusals import refusal
from ptxtools.native.code.runs import MOST_OPERATIONS, constants, loops, stretches
from ptxtools.program import Program, lower
from ptxtools.program.operations import LANE_ACCESS
from ptxtools.program.program import Op
from ptxtools.syntax import parse

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"


def accesses(program: Program) -> Iterator[tuple[Op, str]]:
    """Each access of lanes in a loop, with the reason why it is in no region; an empty one if it is in one, which
    `MOST_FUSED` may still leave out of a large program."""
    known = constants(program)
    large = not program.optimised or sum(len(block.ops) for block in program.blocks) > MOST_OPERATIONS
    for number in loops(program.blocks):
        ops = program.blocks[number].ops
        inside = set() if large else {at for start, end in stretches(ops, known) for at in range(start, end)}
        for at, op in enumerate(ops):
            if op.kind in LANE_ACCESS:
                yield op, refusal(op) or ("" if at in inside else _alone(op, large=large))


def _alone(op: Op, *, large: bool) -> str:
    """Why an access that a region could make is in none."""
    if large:
        return "in a program that is too large"
    return "guarded, like all accesses near" if op.guard is not None else "no neighbour in its region"


def reasons(path: Path) -> dict[str, Counter[str]]:
    """For each kernel of a file that can be lowered, how many accesses have which reason; "" for those in regions."""
    module = parse(path.read_text(), str(path)).module
    found = {}
    for entry in module.entries:
        try:
            program = lower(module, entry.name, lambda name: 0x10000)
        except PtxError as error:
            print(f"{path}: {entry.name} is left out: {error.diagnostics[0].message}")
            continue
        found[entry.name] = Counter(reason for _, reason in accesses(program))
    return found


def told(counts: Counter[str]) -> str:
    inside = f"{counts['']} of {counts.total()} in regions"
    others = [f"{count} {reason}" for reason, count in counts.most_common() if reason]
    return "; ".join([inside, *others])


def main(arguments: list[str]) -> None:
    files = [Path(name) for name in arguments if name != "-v"]
    total: Counter[str] = Counter()
    for path in files or sorted([*TESTDATA.glob("bench/ptx/*.ptx"), *TESTDATA.glob("cases/*/kernel.ptx")]):
        for name, counts in reasons(path).items():
            total += counts
            if "-v" in arguments and counts:
                print(f"{path.parent.name}/{name}: {told(counts)}")
    print(told(total))


if __name__ == "__main__":
    main(sys.argv[1:])
