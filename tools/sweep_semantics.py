"""Every form on both engines, operands by the ten thousand: prints a table of forms, checks and differences.

    python tools/sweep_semantics.py [--count N] [--features avx2,fma,...] [PATTERN]

PATTERN selects opcodes by regular expression. Exits 1 if the engines differ anywhere or a form has no semantics.
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
from tests.semantics.harness import all_opcodes

BATCH = 128  # forms compiled as one module


def selected(pattern: str) -> dict[str, list[Opcode]]:
    """Opcodes by chapter."""
    chapters: dict[str, list[Opcode]] = {}
    for op in all_opcodes():
        if re.search(pattern, op.text):
            chapters.setdefault(semantics.chapter_of(op), []).append(op)
    return chapters


def sweep(chapters: dict[str, list[Opcode]], count: int, features: list[str] | None) -> int:
    """Print one line for each chapter and one for each difference; returns the number of failures."""
    failures = 0
    print(f"{'chapter':<14}{'forms':>7}{'tuples each':>13}{'missing':>9}{'differ':>8}{'seconds':>9}")
    for chapter, opcodes in sorted(chapters.items()):
        start = time.perf_counter()
        known = [op for op in opcodes if semantics.find(op) is not None]
        differences = []
        for first in range(0, len(known), BATCH):
            differences += compare(known[first : first + BATCH], count, features, seed=first)
        missing = len(opcodes) - len(known)
        failures += missing + len(differences)
        seconds = time.perf_counter() - start
        print(f"{chapter:<14}{len(opcodes):>7}{count:>13,}{missing:>9}{len(differences):>8}{seconds:>9.1f}", flush=True)
        for difference in differences:
            print(f"  {difference}")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--count", type=int, default=10_240, help="operand tuples for each form, a multiple of 32")
    parser.add_argument("--features", help="CPU features for the native code, comma-separated; default: this CPU's")
    arguments = parser.parse_args()
    features = None if arguments.features is None else [f for f in arguments.features.split(",") if f]
    count = max(32, arguments.count // 32 * 32)
    return 1 if sweep(selected(arguments.pattern), count, features) else 0


if __name__ == "__main__":
    raise SystemExit(main())
