"""Makes the modules that docs/rules.md counts findings in, with the compilers that a machine has.

Usage: python tools/corpus/make.py FOLDER [--only KINDS] [--python PATH] [--jobs N]

Kinds, with commas between them: nvcc (needs nvcc), numba (numba-cuda and NVVM), triton (triton), llvm (llvmlite, in
this environment), testdata (what the repository has). Each kind gets a folder of its own; what a machine cannot make is
named with the reason. --python is the interpreter that has numba-cuda and triton; none of them needs a GPU. Then

    python tools/findings.py --table FOLDER

counts. nvcc takes up to a minute for each of CUB's algorithms and each target.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

#: What each source is compiled for. CUB's algorithms differ little from one target to the next.
TARGETS = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
CUB_TARGETS = ("sm_80", "sm_100")
#: Sources that are compiled without optimisation, too.
PLAIN = ("cub_reduce", "mix", "pipe", "cg")
_LIMIT = 600


def nvcc(folder: Path, given: argparse.Namespace) -> str:
    """Sources of this folder and of the test data; what does not compile for a target is left out."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        return "there is no nvcc"
    sources = [*sorted((HERE / "cuda").glob("*.cu")), ROOT / "bench" / "kernels.cu"]
    sources += sorted(path for path in (ROOT / "testdata").rglob("*.cu"))
    orders = []
    for source in sources:
        name = source.stem if source.parent.name == "cuda" else f"{source.parent.name}_{source.stem}"
        targets = CUB_TARGETS if name.startswith("cub_") else TARGETS
        orders += [(source, f"{name}_{target}", [f"-arch={target}"]) for target in targets]
        if name in PLAIN:
            orders.append((source, f"{name}_plain", ["-arch=sm_80", "-G"]))

    def compile_one(order: tuple[Path, str, list[str]]) -> None:
        source, name, options = order
        command = [compiler, "-std=c++17", "-ptx", *options, "-o", str(folder / f"{name}.ptx"), str(source)]
        subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(compile_one, orders))
    return ""


def script(name: str) -> Callable[[Path, argparse.Namespace], str]:
    """A maker that runs in another interpreter."""

    def make(folder: Path, given: argparse.Namespace) -> str:
        done = subprocess.run(
            [given.python, HERE / name, folder], capture_output=True, text=True, check=False, cwd=folder
        )
        return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""

    return make


def llvm(folder: Path, given: argparse.Namespace) -> str:
    """The kernels in NVVM IR of the test data, through the back end of LLVM that llvmlite has."""
    from ptxtools.diagnostics import PtxError
    from ptxtools.nvvm import Lowering, lower

    reason = ""
    for source in sorted((ROOT / "testdata" / "nvvm").glob("*.ll")):
        for target in TARGETS:
            try:
                ptx = lower(source.read_text(), str(source), Lowering(target=target))
            except (PtxError, ValueError, ImportError) as error:
                reason = str(error)
                continue
            (folder / f"{source.stem}_{target}.ptx").write_text(str(ptx))
    return "" if list(folder.glob("*.ptx")) else reason


def testdata(folder: Path, given: argparse.Namespace) -> str:
    """The modules of the test data that compilers made."""
    for part in ("cases", "bench", "pipelines"):
        for path in sorted((ROOT / "testdata" / part).rglob("*.ptx")):
            shutil.copy(path, folder / "_".join(path.relative_to(ROOT / "testdata").parts))
    return ""


MAKERS: dict[str, Callable[[Path, argparse.Namespace], str]] = {
    "nvcc": nvcc,
    "numba": script("numba_kernels.py"),
    "triton": script("triton_kernels.py"),
    "llvm": llvm,
    "testdata": testdata,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(MAKERS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    for kind in given.only.split(","):
        folder = given.folder / kind
        folder.mkdir(parents=True, exist_ok=True)
        why = MAKERS[kind](folder.resolve(), given)
        print(f"{kind}: {len(list(folder.glob('*.ptx')))} modules" + (f"; not all: {why}" if why else ""), flush=True)


if __name__ == "__main__":
    main()
