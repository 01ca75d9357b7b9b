"""Every form by every check: prints a table, a row for each chapter, and a line for each form that fails one.

    python tools/sweep_semantics.py [--count N] [--quick] [PATTERN]

Columns, each the number of forms that pass:
  expected   the reference engine gives what Python integers, exact rationals or double precision say
  native     the native engine, for this CPU, gives the reference's bits on N operand tuples (default 10,240)
  avx2       so does its code for CPUs without AVX-512; `plain`: for any x86-64 (both on a tenth of the tuples)
  all        of these, forms of one 8- or 16-bit operand: every pattern was compared
  recorded   what GPUs computed (testdata/golden), where that was recorded

PATTERN selects opcodes by regular expression; --quick leaves out avx2 and plain. Exits 1 if any form fails or lacks a
check.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxtools import semantics
from ptxtools.isa import Opcode
from tests.semantics.agreement import compare
from tests.semantics.expectations import expectation, failure
from tests.semantics.harness import all_opcodes, exhaustive, signature
from tools.golden import recording

BATCH = 128  # forms compiled as one module
EXPECTED_TUPLES = 48
ENGINES = {"native": None, "avx2": ("avx", "avx2", "fma", "f16c"), "plain": ()}
FOLDER = Path(__file__).resolve().parent.parent / "testdata" / "golden"


def selected(pattern: str) -> dict[str, list[Opcode]]:
    """Opcodes by chapter."""
    chapters: dict[str, list[Opcode]] = {}
    for op in all_opcodes():
        if re.search(pattern, op.text):
            chapters.setdefault(semantics.chapter_of(op), []).append(op)
    return chapters


def expected(opcodes: list[Opcode]) -> list[str]:
    """Lines for forms without an expectation, or that do not meet it."""
    found = []
    for op in opcodes:
        line = failure(op, EXPECTED_TUPLES) if expectation(op) is not None else f"{op.text}: nothing to compare with"
        if line is not None:
            found.append(line)
    return found


def disagreements(opcodes: list[Opcode], engine: str, count: int) -> list[str]:
    """Lines for forms that a variant of the native engine computes otherwise."""
    tuples = count if engine == "native" else max(32, count // 10 // 32 * 32)
    found = []
    for first in range(0, len(opcodes), BATCH):
        found += [
            f"{engine}: {line}" for line in compare(opcodes[first : first + BATCH], tuples, ENGINES[engine], seed=first)
        ]
    return found


def recorded() -> tuple[set[str], dict[str, str]]:
    """Opcodes that were recorded on some GPU, and lines for those that differ."""
    forms: set[str] = set()
    differences: dict[str, str] = {}
    for path in recording.recordings(FOLDER):
        read = recording.Recording(path)
        forms |= {text for text in read.meta["forms"] if not recording.is_bounded(text)}
        differences |= {line.partition("(")[0]: line for line in read.differences()}
    return forms, differences


def is_exhaustive(op: Opcode, count: int) -> bool:
    inputs = signature(op).inputs
    return len(inputs) == 1 and count >= 10_000 and exhaustive(inputs[0]) is not None


def sweep(chapters: dict[str, list[Opcode]], count: int, engines: list[str]) -> int:
    """Print the table; returns the number of failures."""
    forms, chip_lines = recorded()
    failures = 0
    titles = "".join(f"{title:>9}" for title in ["forms", "expected", *engines, "all", "recorded", "seconds"])
    print(f"{'chapter':<13}{titles}  expected by")
    for chapter, opcodes in sorted(chapters.items()):
        start = time.perf_counter()
        known = [op for op in opcodes if semantics.find(op) is not None]
        missing = [f"{op.text}: no semantics" for op in opcodes if semantics.find(op) is None]
        lines = {"expected": expected(known), **{name: disagreements(known, name, count) for name in engines}}
        chips = [chip_lines[op.text] for op in known if op.text in chip_lines]
        checks = sorted({found.check for op in known if (found := expectation(op)) is not None})
        cells = [len(opcodes), *(len(known) - len(found) for found in lines.values())]
        cells += [sum(is_exhaustive(op, count) for op in known), sum(op.text in forms for op in known) - len(chips)]
        seconds = time.perf_counter() - start
        print(f"{chapter:<13}{''.join(f'{n:>9}' for n in cells)}{seconds:>9.1f}  {'; '.join(checks)}", flush=True)
        told = [*missing, *(line for found in lines.values() for line in found), *chips]
        failures += len(told)
        for line in told:
            print(f"  {line}")
    if not forms:
        print("No GPU recordings in testdata/golden; tools/record_golden.py makes one where there is a GPU.")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--count", type=int, default=10_240, help="operand tuples for each form, a multiple of 32")
    parser.add_argument("--quick", action="store_true", help="this CPU's native code only")
    arguments = parser.parse_args()
    engines = ["native"] if arguments.quick else list(ENGINES)
    count = max(32, arguments.count // 32 * 32)
    failures = sweep(selected(arguments.pattern), count, engines)
    print("no gap" if not failures else f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
