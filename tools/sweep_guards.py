"""Random kernels under checkers between protected pages (tests/observe/guards.py), in processes of 50 each.

    python tools/sweep_guards.py [--seconds N] [--seed N]

Takes processor time. Prints each seed that goes wrong, with the end of what its process said; exits 1 if there is one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TOGETHER = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    end, seed, failed = time.monotonic() + options.seconds, options.seed, 0
    while time.monotonic() < end:
        command = [sys.executable, "-m", "tests.observe.guards", "--seed", str(seed), "--count", str(_TOGETHER)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        seed += _TOGETHER
        if done.returncode:
            last = int((done.stdout.split() or [str(seed)])[-1])
            failed, seed = failed + 1, last + 1
            print(f"seed {last}: {done.returncode}\n{done.stderr[-3000:]}", flush=True)
    print(f"seeds {options.seed} to {seed - 1}: {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
