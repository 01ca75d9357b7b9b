"""Seeded hazards of testdata/hazards: each is found under its code, and its correction gets no warning of a hazard.

The files are as those of testdata/bugs, with the code of a rule in the place of a checker; key shape: threads of a CTA
in each dimension, as 16x4. Kernels in testdata/hazards/compiled are what nvcc makes of small CUDA programs. Files
*.modules have whole modules: `== name: code`, then their lines, marked as in testdata/bugs; select: a rule that runs on
request only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.observe import bugs

FOLDER = Path(__file__).parents[2] / "testdata" / "hazards"
PAIRS = [pair for path in sorted(FOLDER.glob("*.bugs")) for pair in bugs.read(path)]
COMPILED = {
    "bar_ring": "PTX525", "call_returns": "PTX515", "cp_ring": "PTX515", "loop_of_some": "PTX530",
    "parity_of_two": "PTX567", "ring_of_three": "PTX567", "tile_of_rows": "PTX525", "volatile_sum": "PTX515",
}  # fmt: skip


def hazards(text: str) -> set[str]:
    found = parse(text, "k.ptx")
    assert not found.diagnostics
    # The frame's registers.
    return {d.code for d in lint(found.module) if d.code.startswith("PTX5")} - {"PTX520"}


def text_of(pair: bugs.Pair, sign: str) -> str:
    shape = pair.keys.get("shape", pair.keys.get("block", "64")).replace("x", ", ")
    cluster = f".reqnctapercluster {pair.keys['cluster']} " if "cluster" in pair.keys else ""
    return pair.text(sign).replace(".param .u64 b) {", f".param .u64 b) .reqntid {shape} {cluster}{{")


@pytest.mark.share(2)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_hazard_and_correction(pair):
    assert pair.checker in hazards(text_of(pair, "-"))
    assert hazards(text_of(pair, "+")) == set()


@pytest.mark.share(2)
@pytest.mark.parametrize("name", COMPILED)
def test_hazard_and_correction_of_a_compiler(name):
    folder = FOLDER / "compiled"
    assert COMPILED[name] in hazards((folder / f"{name}_wrong.ptx").read_text("utf-8"))
    assert hazards((folder / f"{name}_right.ptx").read_text("utf-8")) == set()


def modules() -> list[tuple[str, str, str, list[str]]]:
    """Pairs of modules: name, code, rule to select, lines with their marks."""
    found: list[tuple[str, str, str, list[str]]] = []
    for path in sorted(FOLDER.glob("*.modules")):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("== "):
                name, _, rest = line[3:].partition(": ")
                code, _, select = rest.partition(", select=")
                found.append((name, code, select, []))
            elif not line.startswith("#"):
                found[-1][3].append(line)
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize(("name", "code", "select", "lines"), modules(), ids=[each[0] for each in modules()])
def test_hazard_and_correction_of_a_module(name, code, select, lines):
    codes = {}
    for sign in "-+":
        text = "\n".join(line[2:] for line in lines if line[0] in (" ", sign))
        parsed = parse(text, "k.ptx")
        found = [*parsed.diagnostics, *lint(parsed.module, select=["all", select] if select else [])]
        codes[sign] = {d.code for d in found} - {"PTX520"}
    assert code in codes["-"]
    assert code not in codes["+"]
    kind = "PTX5" if code < "PTX6" else code
    assert not [other for other in codes["+"] if other.startswith(("PTX1", "PTX2", "PTX3", "PTX4", kind))]
