"""Speeds, each beside what it is held against, measured in one run: `make bench`.

Kernels against C (`cref.c`, the faster of one and two threads, and `simd.c`, interleaved with ours) and against
recorded peers; kernels of real programs against `programs.c`; parsing and linting against ptxas; whole processes
against the start of Python with the libraries they need. With `--cpu`, only kernels and matrix instructions, all
compiled for another CPU: `python bench/run.py --cpu avx2`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import counts
import cpus
import kernels
import programs
import scale
import tensor
import textures

from ptxtools.native.code import jit

HERE = Path(__file__).resolve().parent
ROUNDS = 5
#: Runs of a kernel in a row, as many as of one in C: from one to the next more of its data is in the cache.
RUNS = 7


def best(action: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of the fastest of `rounds` runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


# --- kernels against C ------------------------------------------------------------------------------------------------


#: What kernels are held against: the same work in plain C, and in C for the CPU's vectors (whether it is that).
REFERENCES = {"cref": False, "simd": True}


def compile_reference(folder: Path, name: str, cpu: str, vectors: bool = True) -> Path | None:
    """Compile a reference for a CPU, by gcc's name of it. vectors: the source is for vectors of 32 or 64 bytes,
    whichever are the CPU's."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    binary, source = folder / name, str(HERE / f"{name}.c")
    command = [
        compiler,
        "-O3",
        f"-march={cpu}",
        "-fopenmp",
        *(_vectors() if vectors else ()),
        source,
        "-o",
        str(binary),
        "-lm",
    ]
    return binary if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


def _vectors() -> list[str]:
    """What gcc is told about vectors of the CPU that we compile for."""
    size = 64 if "avx512f" in jit.host_features() else 32
    return [f"-DBYTES={size}", f"-mprefer-vector-width={8 * size}", "-ffast-math", "-Wno-psabi"]


def run_reference(binary: Path, threads: int) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    text = subprocess.run([binary], env=environment, capture_output=True, text=True, check=True).stdout
    return {row["kernel"]: row["seconds"] for row in map(json.loads, text.splitlines())}


class Launch:
    """One benchmark kernel ready on a device; `run` launches it, `check` compares its result with NumPy's."""

    def __init__(self, case: kernels.Case, threads: int) -> None:
        import numpy as np

        import ptxtools

        self.case = case
        self.device = ptxtools.Device("sm_80" if isinstance(case, programs.Program) else "sm_75", threads=threads)
        self.shared = case.shared if isinstance(case, programs.Program) else 0
        self.kernel = ptxtools.load(str(case.path))[case.name]
        self.args = [self.device.upload(a) if isinstance(a, np.ndarray) else a for a in case.args]

    def run(self) -> None:
        self.device.launch(self.kernel, self.case.grid, self.case.block, self.args, shared=self.shared)

    def check(self) -> None:
        self.case.check(self.args[self.case.output].download())


def recorded_peers() -> dict[str, float]:
    """Seconds that gpuocelot needed for each kernel; runs of a part of a kernel are multiplied up by its counts."""
    rows = json.loads((HERE / "results.json").read_text())
    peer = [r for r in rows if r["runner"] == "gpuocelot"]
    return {r["kernel"]: r["seconds"] * counts.count(r["kernel"]) / r["thread_insts"] for r in peer}


def warm_up(launches: Iterable[Launch]) -> None:
    """Check what launches compute, all of whose code is compiled at once: that of a kernel in unison would be when it
    has run for as long as that takes, which can be after more launches than are made here."""
    from ptxtools.native.code import tiers

    tiers.AT_ONCE = True
    for launch in launches:
        launch.run()
        launch.check()
        for _ in range(4 * ROUNDS):
            launch.run()
    tiers.AT_ONCE = False


def bench_kernels(folder: Path, cpu: str) -> None:
    binaries = {name: compile_reference(folder, name, cpu, vectors) for name, vectors in REFERENCES.items()}
    threads = len(os.sched_getaffinity(0))
    cases = {name: make() for name, make in kernels.ALL.items()}
    launches = {(name, n): Launch(case, n) for name, case in cases.items() for n in sorted({1, threads})}
    warm_up(launches.values())
    ours: dict[tuple[str, int], float] = {}
    reference: dict[tuple[str, int], float] = {}
    vectors: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for key, launch in launches.items():
            ours[key] = min(ours.get(key, math.inf), best(launch.run, RUNS))
        for found, binary in zip((reference, vectors), binaries.values(), strict=True):
            for n in sorted({1, threads}) if binary is not None else ():
                for name, seconds in run_reference(binary, n).items():
                    found[name, n] = min(found.get((name, n), math.inf), seconds)
    limit = {name: min(reference[name, n] for n in {1, threads}) for name in kernels.ALL if (name, 1) in reference}
    print(f"Kernels: milliseconds, {threads} threads and 1 thread; C is the faster of 1 and {threads} threads")
    print(
        f"  {'kernel':12} {'ours':>9} {'1 thread':>9} {'C':>9} {'ours/C':>7} {'G instr/s':>10} {'gpuocelot/ours':>15}"
    )
    peers, ratios = recorded_peers(), []
    for name in kernels.ALL:
        fast = min(ours[name, n] for n in {1, threads})
        ratio = fast / limit[name] if name in limit else math.nan
        ratios.append(ratio)
        rate = counts.count(name) / fast / 1e9
        peer = peers.get(name, math.nan) / fast
        row = f"  {name:12} {fast * 1e3:9.3f} {ours[name, 1] * 1e3:9.3f} {limit.get(name, math.nan) * 1e3:9.3f}"
        print(f"{row} {ratio:7.2f} {rate:10.2f} {peer:15.0f}")
    print(f"  geometric mean of ours/C: {math.exp(statistics.fmean(map(math.log, ratios))):.2f}  (bound: 8)")
    if threads > 1 and reference:
        mine, theirs = _gain(ours, threads), _gain(reference, threads)
        share = mine / theirs
        print(f"  {threads} threads gain {mine:.2f} times, C {theirs:.2f} times: {100 * share:.0f} %  (bound: 92)")
    if vectors:
        print_vectors(ours, vectors, sorted({1, threads}))


def print_vectors(
    ours: dict[tuple[str, int], float], vectors: dict[tuple[str, int], float], threads: list[int]
) -> None:
    """Kernels beside C that is written for the CPU's vectors, with as many threads each."""
    print("Kernels beside C written for the CPU's vectors (`simd.c`), with as many threads each: ours / C")
    print(f"  {'kernel':12}" + "".join(f" {f'{n} threads':>10}" for n in threads))
    ratios = {key: ours[key] / vectors[key] for key in ours}
    for name in kernels.ALL:
        print(f"  {name:12}" + "".join(f" {ratios[name, n]:10.2f}" for n in threads))
    means = (math.exp(statistics.fmean(math.log(ratios[name, n]) for name in kernels.ALL)) for n in threads)
    print(f"  {'mean':12}" + "".join(f" {mean:10.2f}" for mean in means))


def _gain(seconds: dict[tuple[str, int], float], threads: int) -> float:
    """How much faster several threads are than one: geometric mean over the kernels."""
    names = {name for name, _ in seconds}
    return math.exp(statistics.fmean(math.log(seconds[name, 1] / seconds[name, threads]) for name in names))


def bench_programs(folder: Path, cpu: str) -> None:
    """Kernels of real programs beside C for the CPU's vectors, which alternates with them; with as many threads
    each."""
    binary = compile_reference(folder, "programs", cpu)
    threads = sorted({1, len(os.sched_getaffinity(0))})
    launches = {(name, n): Launch(make(), n) for name, make in programs.ALL.items() for n in threads}
    warm_up(launches.values())
    ours: dict[tuple[str, int], float] = {}
    theirs: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for key, launch in launches.items():
            ours[key] = min(ours.get(key, math.inf), best(launch.run, RUNS))
        for n in threads if binary is not None else ():
            for name, seconds in run_reference(binary, n).items():
                theirs[name, n] = min(theirs.get((name, n), math.inf), seconds)
    print(f"Kernels of real programs: milliseconds with one thread, and ours / C with {threads} threads (bound: 5)")
    ratios = {key: seconds / theirs.get(key, math.nan) for key, seconds in ours.items()}
    for name in programs.ALL:
        row = f"  {name:12} {ours[name, 1] * 1e3:9.3f} {theirs.get((name, 1), math.nan) * 1e3:9.3f}"
        print(row + "".join(f" {ratios[name, n]:7.2f}" for n in threads))
    means = (math.exp(statistics.fmean(math.log(ratios[name, n]) for name in programs.ALL)) for n in threads)
    print(f"  {'mean':32}" + "".join(f" {mean:7.2f}" for mean in means))


def bench_overhead() -> None:
    launch = Launch(kernels.vecadd(256), 1)
    warm_up([launch])
    print(f"Launch of a compiled kernel, one CTA: {best(launch.run, 200) * 1e6:.1f} us  (bound: 40)")


# --- the front end ----------------------------------------------------------------------------------------------------


def bench_front_end(folder: Path) -> None:
    path, text = folder / "megabyte.ptx", kernels.megabyte()
    path.write_text(text)
    lint = [sys.executable, "-m", "ptxtools", "lint", "-j", "1", str(path)]
    subprocess.run(lint, capture_output=True, check=True)
    ptxas = shutil.which("ptxas")
    times: dict[str, list[float]] = {"lint": [], "ptxas": []}
    for number in range(ROUNDS):
        path.write_text(f"{text}// {number}\n")  # findings in an unchanged text are kept
        times["lint"].append(best(lambda: subprocess.run(lint, capture_output=True, check=True), 1))
        if ptxas:
            command = [ptxas, "-O0", "-arch=sm_75", str(path), "-o", os.devnull]
            times["ptxas"].append(best(lambda c=command: subprocess.run(c, capture_output=True, check=True), 1))
    ours = statistics.median(times["lint"])
    print(f"Parse and lint of {path.stat().st_size / 1e6:.2f} MB, one whole process: {ours:.3f} s", end="")
    if ptxas:
        theirs = statistics.median(times["ptxas"])
        print(f"; ptxas -O0: {theirs:.3f} s; ratio {ours / theirs:.2f}  (bound: 0.5)")
    else:
        print("  (bound: 0.6 s)")
    script = (
        "import re, sys, ptxtools.syntax as s\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024\n"
        "base = peak()\n"
        "s.parse(open(sys.argv[1]).read())\n"
        "print(peak() - base)"
    )
    grown = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True).stdout
    print(f"Memory for the parsed module: {float(grown):.0f} MB  (bound: 30)")


FIRST_USE = """
import time
import ptxtools, typing, functools, importlib, re, collections.abc
start = time.process_time(); import ptxtools.isa as isa; worst = time.process_time() - start
isa.resolve("exit")
for text in ("add.s32", "cvt.rn.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ld.global.v4.f32",
             "tcgen05.mma.cta_group::1.kind::f16", "setp.lt.f32", "atom.global.add.u32", "tex.2d.v4.f32.f32"):
    start = time.process_time(); isa.resolve(text); worst = max(worst, time.process_time() - start)
print(worst)
"""


def bench_reading() -> None:
    """What the tests count in calls, as time: reading, printing, first uses, and texts made to be slow."""
    from ptxtools.diagnostics import Source, text
    from ptxtools.diagnostics.diagnostic import Diagnostic
    from ptxtools.syntax import parse, print_module

    megabyte = kernels.megabyte()
    tree = parse(megabyte).module
    size = len(megabyte) / 1e6
    print(f"Parse of a megabyte of known shapes: {best(lambda: parse(megabyte)) / size:.3f} s  (bound: 0.25)")
    print(f"Print of a megabyte: {best(lambda: print_module(tree)) / size:.3f} s  (bound: 0.25)")
    first = min(float(_output([sys.executable, "-c", FIRST_USE])) for _ in range(ROUNDS))
    print(f"Slowest first use of a mnemonic, or import of the instruction set: {first * 1e3:.1f} ms  (bound: 5)")
    head = ".version 8.7\n.target sm_90\n.address_size 64\n.entry f() {\n"
    hostile = {
        "one word": lambda n: "x" * n,
        "no semicolons": lambda n: head + "add.s32 a, b, c " * (n // 16),
        "one operand": lambda n: head + f"op {'a' * n};",
        "open comments": lambda n: "/* " * (n // 3),
        "blanks": lambda n: head + "op" + " " * n,
        "missing braces": lambda n: ".entry f()\n.reg .b32 %r<4>;\nret;\n}\n" * (n // 36),
    }
    seconds = {name: [best(partial(parse, make(n))) for n in (100_000, 400_000)] for name, make in hostile.items()}
    worst = max(seconds, key=lambda name: seconds[name][1] / seconds[name][0])
    ratio = seconds[worst][1] / seconds[worst][0]
    print(f"Four times as much hostile text takes at most {ratio:.1f} times as long ({worst})  (bound: 6)")
    line = "x" * 10_000_000
    print(f"Ten megabytes in one line: {best(lambda: parse(line), 1):.2f} s  (bound: 5)")
    finding = Diagnostic("PTX301", "message", (len(line) - 4, len(line)), Source(line, "a.ptx"))
    text.render(finding)
    print(f"A finding in that line as text: {best(lambda: text.render(finding), 20) * 1e3:.2f} ms  (bound: 10)")


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# --- whole processes --------------------------------------------------------------------------------------------------


def install(folder: Path) -> Path:
    """ptxtools installed from a wheel into an environment of its own; returns its bin folder."""
    root = HERE.parent
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(folder), str(root)], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(folder / "env")], check=True)
    # The libraries of the environment that runs this script are seen through a path file.
    purelib = next((folder / "env" / "lib").iterdir()) / "site-packages"
    others = [p for p in sys.path if p.endswith("site-packages")]
    (purelib / "libraries.pth").write_text("\n".join(others))
    wheel = next(folder.glob("ptxtools-*.whl"))
    target = [str(folder / "env" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    subprocess.run([*target, "--no-deps", "--force-reinstall", str(wheel)], check=True)
    return folder / "env" / "bin"


def compare(
    title: str, ours: list[str], theirs: list[str], bound: float, folder: Path, changed: Path | None = None
) -> None:
    """Median ratio of two commands run in turn. changed: a file that gets another line before each."""
    ratios, times = [], []
    for round_ in range(ROUNDS * 2 + 1):
        if changed is not None:
            changed.write_text(f"{changed.read_text()}// {round_}\n")
        pair = [
            best(lambda c=c: subprocess.run(c, capture_output=True, check=True, cwd=folder), 1) for c in (ours, theirs)
        ]
        if round_:
            ratios.append(pair[0] / pair[1])
            times.append(pair[0])
    print(f"{title}: {statistics.median(times) * 1e3:.0f} ms, ratio {statistics.median(ratios):.2f}  (bound: {bound})")


def bench_processes(folder: Path) -> None:
    bin_folder = install(folder)
    python, small = str(bin_folder / "python"), str(kernels.PTX / "vecadd.ptx")
    lint = [str(bin_folder / "ptx-lint"), small]
    compare("ptx-lint vecadd.ptx / import click, rich", lint, [python, "-c", "import click, rich"], 1.4, folder)
    changed = folder / "changed.ptx"
    changed.write_text(Path(small).read_text())
    new = [str(bin_folder / "ptx-lint"), str(changed)]
    compare("the same, changed each time", new, [python, "-c", "import click, rich"], 1.4, folder, changed)
    vectors = ["--arg", "arange:f32[1024]", "--arg", "arange:f32[1024]", "--arg", "zeros:f32[1024]", "--arg", "1024"]
    run = [str(bin_folder / "ptx-run"), small, "--grid", "4", "--block", "256", *vectors]
    start = [python, "-c", "import click, numpy, llvmlite.binding"]
    compare("ptx-run vecadd.ptx / import click, numpy, llvmlite.binding", run, start, 1.25, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", choices=cpus.CPUS, help="not this CPU's best code")
    chosen = parser.parse_args().cpu
    cpu = "native"
    if chosen is not None:
        name, cpu, features = cpus.CPUS[chosen]
        jit.aim_at(name, features.split())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes are timed as users have them, compiled
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        bench_kernels(folder, cpu)
        bench_programs(folder, cpu)
        if chosen is not None:
            tensor.main()
            return
        bench_overhead()
        textures.bench()
        scale.main()
        tensor.main()
        bench_front_end(folder)
        bench_reading()
        bench_processes(folder)


if __name__ == "__main__":
    main()
