"""How many CTAs an SM holds, against NVIDIA's own calculator where its header and a C++ compiler are at hand."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ptxtools.sim.limits import LIMITS
from ptxtools.sim.residency import ctas_per_sm, registers_per_thread

HEADER = "cuda_occupancy.h"
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
#: One line of numbers for each launch; the answer is the number of resident CTAs, or -1 for an error.
PROGRAM = """
#include <cstddef>
#include <cstring>
#include <climits>
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
    int v[12];
    for (;;) {
        for (int i = 0; i < 12; i++) if (scanf("%d", v + i) != 1) return 0;
        cudaOccDeviceProp p; cudaOccFuncAttributes a; cudaOccDeviceState s; cudaOccResult r;
        memset((void *)&p, 0, sizeof p); memset((void *)&a, 0, sizeof a); memset((void *)&s, 0, sizeof s);
        p.computeMajor = v[0]; p.computeMinor = v[1]; p.maxThreadsPerBlock = 1024; p.warpSize = 32; p.numSms = 1;
        p.maxThreadsPerMultiprocessor = v[2]; p.regsPerBlock = v[3]; p.regsPerMultiprocessor = v[4];
        p.sharedMemPerBlock = v[5]; p.sharedMemPerMultiprocessor = v[6]; p.sharedMemPerBlockOptin = v[7];
        p.reservedSharedMemPerBlock = v[8];
        a.maxThreadsPerBlock = 1024; a.numRegs = v[10]; a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        a.maxDynamicSharedSizeBytes = v[7];
        s.cacheConfig = CACHE_PREFER_SHARED; s.carveoutConfig = 100;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, v[9], v[11]);
        printf("%d\\n", error ? -1 : r.activeBlocksPerMultiprocessor);
    }
}
"""


def include_folder() -> Path | None:
    nvcc = shutil.which("nvcc")
    homes = [os.environ.get("CUDA_HOME", ""), str(Path(nvcc).resolve().parents[1]) if nvcc else ""]
    return next((Path(home, "include") for home in homes if home and Path(home, "include", HEADER).exists()), None)


INCLUDE = include_folder()


@pytest.mark.skipif(INCLUDE is None or COMPILER is None, reason=f"no {HEADER}, or no C++ compiler")
def test_resident_ctas_are_those_of_cuda(tmp_path: Path) -> None:
    source, program = tmp_path / "occupancy.cpp", tmp_path / "occupancy"
    source.write_text(PROGRAM)
    subprocess.run([str(COMPILER), "-w", f"-I{INCLUDE}", str(source), "-o", str(program)], check=True)
    rng = random.Random(16)
    asked, ours = [], []
    for row in LIMITS.values():
        for _ in range(300 if row.capability >= (3, 0) else 0):
            threads = rng.randrange(1, 1025)
            registers = registers_per_thread(rng.randrange(16, 256), threads, row)
            shared = rng.choice([0, rng.randrange(row.shared_cta + 1), rng.randrange(8192)])
            asked.append((
                *row.capability, row.threads, row.cta_registers, row.registers, row.shared_default, row.shared,
                row.shared_cta + row.shared_reserved, row.shared_reserved, threads, registers, shared,
            ))  # fmt: skip
            ours.append(ctas_per_sm(threads, registers, shared, row))
    text = "\n".join(" ".join(map(str, numbers)) for numbers in asked)
    answer = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout
    theirs = [int(line) for line in answer.split()]
    wrong = [(a, o, t) for a, o, t in zip(asked, ours, theirs, strict=True) if o != t]
    assert len(asked) > 7000
    assert not wrong, wrong[:5]
