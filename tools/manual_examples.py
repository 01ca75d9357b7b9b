"""Run every example of the PTX manual: `testdata/conformance/examples.tsv`, one statement on each line.

Usage: python tools/manual_examples.py [--spec FOLDER] [--ptxas PATH]

Each statement stands in a module of its own, in which what it names is declared as its opcode wants it. Prints what
ptx-lint and ptxas do not both accept, with the reviewed reason; fails when there is none, or when a reason covers
nothing. `--spec` reads the texts of the manual, asks ptxas about each of their examples, and writes the file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance import examples  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spec", type=Path, help="folder with the texts of the manual")
    parser.add_argument("--ptxas", default="ptxas")
    arguments = parser.parse_args()
    if arguments.spec:
        examples.write(examples.EXAMPLES, examples.record(arguments.spec, arguments.ptxas))
    rows = examples.read(examples.EXAMPLES)
    outcomes = [examples.outcome(row) for row in rows]
    reviewed = examples.reviews(examples.REVIEWED)
    print("\n".join(examples.report(outcomes, reviewed)))
    return bool(examples.unexplained(outcomes, reviewed) or examples.idle(outcomes, reviewed))


if __name__ == "__main__":
    raise SystemExit(main())
