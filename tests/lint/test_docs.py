"""docs/rules.md is what the pages in the code say."""

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
