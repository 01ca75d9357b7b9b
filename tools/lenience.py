"""What ptxas makes of statements that the manual does not have: `testdata/conformance/lenience.tsv`.

Usage: python tools/lenience.py [--ptxas PATH]...

Each row has a statement or module as it is written and in the manual's words. The machine code of both is compared, and
the verdict is recorded: "same", "other" (written data is dropped or read as something else), or "refused". What is the
same is a warning of ptx-lint (PTX610), all else an error; tests/conformance/test_lenience.py holds this.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance.lenience import FILE, read, write  # noqa: E402
from conformance.machinecode import same  # noqa: E402
from conformance.oracle import given, release_of  # noqa: E402


def main() -> int:
    oracles = given(__doc__)
    rows, changed = [], 0
    for row in read(FILE):
        oracle = oracles.get(release_of(row.setting))
        if oracle is not None:
            found = same(oracle.command, row.setting, row.place, row.written, row.meant)
            verdict = "refused" if isinstance(found, str) else "same" if found else "other"
            changed += verdict != row.verdict
            if verdict != row.verdict:
                print(f"{row.verdict or 'new'} -> {verdict}: {row.setting} {row.written} {found}")
            row = row._replace(verdict=verdict)
        rows.append(row)
    write(FILE, rows)
    print(f"{len(rows)} rows, {changed} changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
