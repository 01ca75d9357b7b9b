"""Whole lines held against the recorded verdicts of ptxas 13.0: one line for each opcode, operands included."""

import importlib.util
import re
from pathlib import Path

import pytest

from ptxtools import isa
from ptxtools.check import check, context
from ptxtools.syntax import parse

ROOT = Path(__file__).resolve().parents[2]
ROWS = (ROOT / "testdata" / "isa" / "verdicts.txt").read_text("utf-8").splitlines()
PAIRS = [tuple(word.split("/")) for word in ROWS[1].split()[2:]]
VERDICTS = [(row.split()[0], int(row.split()[1], 16)) for row in ROWS[2:]]


def probes():
    """The module that wrote the verdicts, for the lines that it asked about."""
    spec = importlib.util.spec_from_file_location("verdicts", ROOT / "tools" / "verdicts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: What ptxas accepts against the manual: `.acquire` needs PTX 8.6 and sm_90 (9.7.13.4). Where addresses have 64 bits,
#: cvta.u32 makes ptxas refuse the whole module without naming a line; the recorded verdicts do not show that.
DEVIATING = re.compile(r"fence\.acquire\.cta;|cvta\..*u32 .*")
PROBED = [("8.7", "sm_100a"), ("9.0", "sm_75"), ("9.0", "sm_87"), ("9.0", "sm_90a"), ("9.0", "sm_120")]


@pytest.mark.parametrize(("version", "target"), PROBED)
def test_lines_are_judged_as_ptxas_does(version, target, monkeypatch):
    monkeypatch.setattr(context, "MOST_FINDINGS", 10**9)
    tool = probes()
    bit = PAIRS.index((version, target))
    head = tool.head(tuple(map(int, version.split("."))), target)
    lines = [tool.line(isa.resolve(name)) for name, _ in VERDICTS]
    result = parse("\n".join([*head, *lines, "ret;", "}", ""]), "probes.ptx")
    wrong = {d.line - len(head) - 1 for d in [*result.diagnostics, *check(result.module)]}
    accepted = [i for i, (_, bits) in enumerate(VERDICTS) if bits >> bit & 1]
    refused_by_us = [lines[i] for i in accepted if i in wrong and not DEVIATING.fullmatch(lines[i])]
    accepted_by_us = [lines[i] for i in range(len(lines)) if i not in wrong and i not in set(accepted)]
    assert (refused_by_us, accepted_by_us) == ([], [])
    assert len(accepted) > 800
