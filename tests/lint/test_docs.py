"""docs/rules.md is what the pages in the code say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pages_are_up_to_date():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "make_docs.py"), "--check"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
