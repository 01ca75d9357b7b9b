"""Estimates held against published times: `python bench/estimates.py`. Needs nvcc.

Products of 4092 x 4092 matrices on an RTX A6000 (sm_86), in billions of operations a second:
github.com/siboehm/SGEMM_CUDA, README. The kernels here are our own of the same structure (`estimates.cu`); smaller
products fill the chip as well.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import ptxtools
from ptxtools.observe.estimate import Estimate

HERE = Path(__file__).resolve().parent
M, N, K = 1024, 1024, 64
#: Kernel: grid, block, published.
KERNELS = {
    "naive": ((M // 32, N // 32), (32, 32), 309.0),
    "coalesced": ((M // 32, N // 32), (1024,), 1986.5),
    "tiled": ((M // 32, N // 32), (1024,), 2980.3),
    "column_of_eight": ((N // 64, M // 64), (512,), 8474.7),
}


def main() -> None:
    compiler = shutil.which("nvcc")
    if compiler is None:
        raise SystemExit("no nvcc")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "estimates.ptx"
        subprocess.run([compiler, "-ptx", "-arch=sm_86", "-o", text, HERE / "estimates.cu"], check=True)
        module = ptxtools.load(str(text))
    rng = np.random.default_rng(1)
    a, b = rng.random((M, K), np.float32), rng.random((K, N), np.float32)
    print(f"{'kernel':16} {'bound':>8} {'estimated':>10} {'published':>10}  Gflop/s")
    for name, (grid, block, published) in KERNELS.items():
        estimate, c = Estimate(), np.zeros((M, N), np.float32)
        ptxtools.Device("sm_86", observers=[estimate]).launch(module[name], grid, block, [M, N, K, a, b, c])
        np.testing.assert_allclose(c, a @ b, rtol=1e-3)
        (kernel,) = estimate.kernels
        rate = 2 * M * N * K / kernel.microseconds / 1e3
        print(f"{name:16} {kernel.bound:>8} {rate:10.0f} {published:10.0f}  {100 * (rate / published - 1):+.0f} %")


if __name__ == "__main__":
    main()
