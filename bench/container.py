"""Speed and size of containers, each beside its bound: `python bench/container.py`, and part of `make bench`.

Times are of the processor, the fastest of several rounds in which what is compared takes turns.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import kernels

TESTDATA = Path(__file__).resolve().parents[1] / "testdata"
ROUNDS = 9


def fastest(*actions: Callable[[], object]) -> list[float]:
    """Processor seconds of the fastest run of each action; they run in turn, and nobody's garbage is another's."""
    found = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for n, action in enumerate(actions):
            start = time.process_time()
            result = action()
            found[n] = min(found[n], time.process_time() - start)
            del result
            gc.collect()
    return found


def bench_loading(title: str, texts: list[str]) -> None:
    from ptxtools.container import decode_all, read, write
    from ptxtools.syntax import parse

    all_data = [write(parse(text, "x.ptx").module) for text in texts]
    parsing, loading, decoding = fastest(
        lambda: [parse(text, "x.ptx") for text in texts],
        lambda: [read(data) for data in all_data],
        lambda: [decode_all(read(data)) for data in all_data],
    )
    print(f"Loading {title} of {sum(map(len, texts)) / 1e6:.2f} MB of text: {loading * 1e3:.1f} ms, ", end="")
    print(f"{parsing / loading:.1f} times faster than parsing  (bound: 20)")
    print(f"  and decoding everything: {decoding * 1e3:.1f} ms, {parsing / decoding:.1f} times faster  (bound: 5)")


def bench_assembling(text: str, folder: Path) -> None:
    """Whole processes, in turn."""
    path = folder / "megabyte.ptx"
    path.write_text(text)
    tool = [sys.executable, "-m", "ptxtools"]
    commands = {"as": [*tool, "as", str(path), "-o", str(folder / "out.ptxo")], "lint": [*tool, "lint", str(path)]}
    spent = dict.fromkeys(commands, float("inf"))
    for number in range(ROUNDS):
        path.write_text(f"{text}// {number}\n")  # findings in an unchanged text are kept
        for name, command in commands.items():
            before = os.times()
            subprocess.run(command, check=True, capture_output=True)
            after = os.times()
            seconds = after.children_user + after.children_system - before.children_user - before.children_system
            spent[name] = min(spent[name], seconds)
    ratio = spent["as"] / spent["lint"]
    print(f"Assembling it: {spent['as']:.3f} s of the processor, linting it {spent['lint']:.3f} s; ", end="")
    print(f"ratio {ratio:.2f}  (bound: 1.3)")


def real_modules() -> list[str]:
    return [p.read_text() for p in sorted(TESTDATA.glob("bench/ptx/*.ptx")) + sorted(TESTDATA.glob("cases/*/*.ptx"))]


def bench_size(text: str) -> None:
    real = real_modules()
    for title, texts in (("it", [text]), (f"{len(real)} real modules", real)):
        plain, small = sizes(texts)
        print(f"Size of the container of {title}: {plain:.1%} of the text  (bound: 60 %)", end="")
        print(f", with --compress {small:.1%}  (bound: 25 %)")


def sizes(texts: list[str]) -> tuple[float, float]:
    """Bytes of all containers, plain and compressed, to those of all texts."""
    from ptxtools.container import write
    from ptxtools.syntax import parse

    trees = [parse(text, "x.ptx").module for text in texts]
    whole = sum(len(text.encode()) for text in texts)
    plain, small = (sum(len(write(tree, compress=c)) for tree in trees) for c in (False, True))
    return plain / whole, small / whole


def main() -> None:
    text = kernels.megabyte()
    bench_loading("a container", [text])
    bench_loading("the containers of small modules", real_modules())
    bench_size(text)
    with tempfile.TemporaryDirectory() as name:
        bench_assembling(text, Path(name))


if __name__ == "__main__":
    main()
