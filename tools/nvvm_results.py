"""Record what the intrinsics of NVVM IR compute: the PTX of libnvvm, run on the native engine.

Usage: python tools/nvvm_results.py [--check]

Writes testdata/nvvm/results.txt. --check: writes nothing; compares the recording with the PTX that LLVM makes, on the
native engine, and exits with 1 where they differ. Recording needs libnvvm (a CUDA toolkit, or the package nvidia-nvvm).
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from ptxtools.nvvm import Lowering, lower  # noqa: E402
from ptxtools.nvvm.intrinsics import intrinsics  # noqa: E402
from tests.nvvm.forms import calls_of, kernels_of, module  # noqa: E402
from tests.nvvm.results import RECORDED, UNKNOWN_THERE, recorded, results  # noqa: E402


def main() -> int:
    kernels = kernels_of(calls_of(intrinsics().values()))
    if "--check" in sys.argv[1:]:
        found = results(lower(module(kernels), how=Lowering("sm_90", locations=False)), kernels)
        wrong = [call for call, value in recorded().items() if found.get(call) != value]
        print(f"{len(found) - len(wrong)} of {len(found)} agree", *wrong, sep="\n    ")
        return bool(wrong)
    text = module(kernels, skip=UNKNOWN_THERE)
    ptx = lower(text, how=Lowering("sm_90", backend="libnvvm", locations=False))
    found = results(ptx.replace("membar.gpu", "membar.gl"), kernels)  # a name of their own, which ptxas refuses
    lines = [f"{value:08x} {call}\n" for call, value in found.items() if f"llvm.nvvm.{call}" not in UNKNOWN_THERE]
    RECORDED.write_text("".join(lines))
    print(f"{len(lines)} results")
    return 0


if __name__ == "__main__":
    sys.exit(main())
