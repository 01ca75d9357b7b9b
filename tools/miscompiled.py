"""Asks releases of ptxas what they make of statements: `testdata/conformance/miscompiled.tsv`, for rule PTX616.

Usage: python tools/miscompiled.py --nvdisasm PATH [--ptxas PATH]...

Each row has statements, and what may stand instead. Of both, the machine code of each ptxas is evaluated for numbers
near all boundaries (`conformance/sass.py`), and compared with what the reference engine computes. The verdicts are
recorded beside the releases, and what differs from the record is printed. The status is 1 if something does, if code
without optimisation is wrong, or if what may stand instead is not right everywhere.
tests/conformance/test_miscompiled.py holds the rule against the file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance.miscompiled import Release, computed, meant, module_of, numbers  # noqa: E402
from conformance.oracle import releases  # noqa: E402
from conformance.recorded import FOLDER, read, write  # noqa: E402
from conformance.sass import UnsupportedError  # noqa: E402
from conformance.setting import where  # noqa: E402

_SEEDS = range(2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxas", action="append", help="a ptxas; one for each release that is to be asked")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="one that is not older than any of them")
    given = parser.parse_args()
    oracles = releases(given.ptxas or ["ptxas"])
    asked = {name: Release(oracle.command, given.nvdisasm) for name, oracle in oracles.items()}
    rows, complaints = read(FOLDER / "miscompiled.tsv"), 0
    verdicts = [dict(row.by_release) for row in rows]
    for setting in dict.fromkeys(row.setting for row in rows):
        target = where(setting)[1]
        places = [at for at, row in enumerate(rows) if row.setting == setting]
        bodies = [text for at in places for text in (rows[at].written, rows[at].instead or rows[at].written)]
        text, sets = module_of(setting, bodies), [numbers(seed) for seed in _SEEDS]
        wanted = [meant(text, len(bodies), each) for each in sets]
        for name, release in asked.items():
            plain, best = release.code(text, target, 0), release.code(text, target)
            if plain is None or best is None:  # a target or a version that this release does not know
                continue
            for at, place in enumerate(places):
                first, instead = f"k{2 * at}", f"k{2 * at + 1}"
                values, others = ([each[2 * at + k] for each in wanted] for k in range(2))
                found = _right(best[first], target, sets, values)
                said = {True: "right", False: "wrong"}.get(found, "unknown")
                facts = [found if said == "unknown" else True, values == others]
                if said == "wrong":
                    facts += [_right(best[instead], target, sets, others), _right(plain[first], target, sets, values)]
                if verdicts[place].get(name, said) != said or any(fact is not True for fact in facts):
                    complaints += 1
                    print(f"{name} {said} {facts}: {setting} {rows[place].written}", flush=True)
                verdicts[place][name] = said
    write(
        FOLDER / "miscompiled.tsv",
        [row._replace(verdicts=_listed(found)) for row, found in zip(rows, verdicts, strict=True)],
    )
    print(f"{len(rows)} rows, {len(asked)} releases asked, {complaints} complaints")
    return int(complaints > 0)


def _right(code: list[str], target: str, sets: list[np.ndarray], wanted: list[list[int]]) -> bool | str:
    """Whether machine code computes what is wanted; the instruction that is not known, if there is one."""
    try:
        return all(computed(code, target, given) == values for given, values in zip(sets, wanted, strict=True))
    except UnsupportedError as error:
        return str(error)


def _listed(verdicts: dict[str, str]) -> str:
    ordered = sorted(verdicts, key=lambda release: tuple(map(int, release.split("."))))
    return ", ".join(f"{release} {verdicts[release]}" for release in ordered)


if __name__ == "__main__":
    raise SystemExit(main())
