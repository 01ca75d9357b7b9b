"""docs/rules.md is what the pages in the code say; how its table is counted."""

import re
import subprocess
import sys
from pathlib import Path

from ptxtools.pages import all_pages

ROOT = Path(__file__).resolve().parents[2]


def test_pages_are_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "make_docs.py"), "--check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_code_in_the_sources_has_a_page():
    used = set()
    for path in (ROOT / "ptxtools").rglob("*.py"):
        used |= set(re.findall(r"[\"'](PTX\d{3})[\"']", path.read_text("utf-8")))
    assert used - set(all_pages()) == set()


def test_findings_are_counted_once_a_text(tmp_path):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    barrier = head + ".entry k() .reqntid 32 { bar.sync 0; bar.sync 1; ret; }\n"
    for name, text in (("a.ptx", barrier), ("b.ptx", barrier), ("c.ptx", head + ".entry k() { ret; }\n")):
        (tmp_path / name).write_text(text)
    tool = ROOT / "tools" / "findings.py"
    done = subprocess.run([sys.executable, tool, "--list", tmp_path], capture_output=True, text=True, check=True)
    *listed, files, count = done.stdout.splitlines()
    assert (files, count) == ("2 different files", "PTX718 -: 2 in 1")
    assert [line.partition(": ")[0] for line in listed] == [f"{tmp_path}/a.ptx:4"] * 2
