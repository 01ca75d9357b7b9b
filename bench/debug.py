"""How long the debugger takes on the attention kernel: from a command to its stop.

    python -m bench.debug [CASE [LINE]]

Commands go through a pipe, as from an editor. Bound: 50 ms for a stop at a hit, forwards and back.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOUND = 50
ROUNDS = 10


class Session:
    """A debugger behind pipes, which has stopped somewhere."""

    def __init__(self, case: Path) -> None:
        command = [sys.executable, "-m", "ptxtools", "run", "--launch", str(case), "--debug", "-q"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)
        self._until_stop()

    def _until_stop(self) -> bool:
        """Read to the line of PTX at which a run has stopped; False if it never does."""
        assert self.process.stdout is not None
        for said in self.process.stdout:
            if said.partition("\t")[0].isdigit():
                return True
            if "nothing earlier" in said or "has ended" in said:
                return False
        return False

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def seconds(self, command: str) -> float | None:
        """Until the next stop; None if there is none."""
        begun = time.perf_counter()
        self.tell(command)
        return time.perf_counter() - begun if self._until_stop() else None


def main(case: str = "tri_attn_sm80", line: str = "") -> None:
    folder = ROOT / "testdata" / "cases" / case
    text = (folder / "kernel.ptx").read_text().splitlines()
    line = line or str(next(n for n, row in enumerate(text, 1) if "mma.sync" in row))
    session = Session(folder / "case.toml")
    session.tell(f"break {line}")
    for command in ("continue", "step", "reverse-step", "reverse-continue"):
        spent = []
        while len(spent) < ROUNDS and (seconds := session.seconds(command)) is not None:
            spent.append(1e3 * seconds)
        if spent:
            middle, most = statistics.median(spent), max(spent)
            print(f"{command:<17} median {middle:7.1f} ms, most {most:7.1f} ms, of {len(spent)}  (bound: {BOUND} ms)")
    session.process.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
