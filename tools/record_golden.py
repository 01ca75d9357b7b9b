"""Record what a GPU computes: every scalar form over edge-heavy operands, and all inputs of those with one operand.

    python tools/record_golden.py [--out FOLDER] [--quick] [PATTERN]
    python tools/record_golden.py --compare FILE

Needs the CUDA driver (libcuda), nothing else of CUDA. Writes FOLDER/<chip>.npz (default testdata/golden), which the
tests replay; the whole takes a few minutes. --quick leaves out the hashes of all 2**32 inputs, most of that time.
PATTERN selects opcodes by regular expression. --compare lists where a recording differs from our semantics.
Exits 1 if anything differs, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.golden import kernels, recording
from tools.golden.runners import CudaRunner, EngineRunner, Runner, RunnerError

FOLDER = Path(__file__).resolve().parent.parent / "testdata" / "golden"


def file_name(chip: str) -> str:
    """A chip's name as a file's."""
    return re.sub(r"[^a-z0-9]+", "_", chip.lower()).strip("_") + ".npz"


def record(runner: Runner, pattern: str, folder: Path, *, quick: bool, blocks: range | None = None) -> Path:
    """Record the forms that match; returns the file."""
    chosen = [op for op in recording.recorded_forms() if re.search(pattern, op.text)]
    recorder = recording.Recorder(runner, say=lambda text: print(f"\r{text:60}", end="", file=sys.stderr, flush=True))
    recorder.record(chosen)
    swept = [op for op in chosen if op.text not in recorder.meta["refused"]]
    recorder.hash((op for op in swept if not quick or kernels.pattern_of(op) == "half"), blocks)
    print(file=sys.stderr)
    path = folder / file_name(runner.chip)
    recorder.save(path)
    counts = {name: len(recorder.meta[name]) for name in ("forms", "hashes", "refused")}
    print(f"{path}: {counts['forms']} forms, {counts['hashes']} of them over all inputs, {counts['refused']} refused")
    return path


def compare(path: Path) -> int:
    """Print what differs; returns the number of forms."""
    found = list(recording.Recording(path).differences(bounded=True))
    for line in found:
        bounded = recording.is_bounded(line.partition("(")[0])
        print(line + (" (known only within bounds)" if bounded else ""))
    print(f"{len(found)} forms differ")
    return len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--out", type=Path, help="folder for the recording")
    parser.add_argument("--quick", action="store_true", help="no hashes of 2**32 inputs")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare a recording with our semantics")
    parser.add_argument("--engine", action="store_true", help="try the tool out on our own engine; needs --out")
    arguments = parser.parse_args()
    if arguments.compare:
        return 1 if compare(arguments.compare) else 0
    if arguments.engine and arguments.out is None:
        parser.error("--engine needs --out: what it writes is no recording of a chip")
    try:
        runner: Runner = EngineRunner() if arguments.engine else CudaRunner()
        folder = arguments.out or FOLDER
        path = record(
            runner, arguments.pattern, folder, quick=arguments.quick, blocks=range(1) if arguments.engine else None
        )
    except RunnerError as error:
        print(f"record_golden: {error}", file=sys.stderr)
        return 2
    return 1 if compare(path) else 0


if __name__ == "__main__":
    raise SystemExit(main())
