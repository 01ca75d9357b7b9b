"""What launches cost that do next to nothing: `python bench/launches.py` prints microseconds, minima of many.

A launch of a compiled kernel whose arguments are buffers; `ptx_run` of a text that ran before, also in a process with
thousands of mappings; a CTA of a large grid, by one worker and by two, with shared memory or without.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable

import numpy as np

import ptxtools

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COPY = """.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .b32 %t, %n, %v; .reg .b64 %x, %y, %o; .reg .pred %p;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
    setp.ge.u32 %p, %t, %n; @%p ret;
    mul.wide.u32 %o, %t, 4; add.s64 %x, %x, %o; add.s64 %y, %y, %o;
    ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; st.global.u32 [%y], %v; ret;
}"""
NOTHING = ".visible .entry k() { ret; }"
SHARED = """.visible .entry k() {
    .reg .b32 %t; .shared .b32 room[256];
    mov.u32 %t, %tid.x; st.shared.u32 [room], %t; ret;
}"""
CTAS = 200_000
MAPPINGS = 4000


def least(action: Callable[[], object], times: int, rounds: int) -> float:
    """The fastest of some rounds, in microseconds for each time."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(times):
            action()
        found.append((time.perf_counter() - began) / times)
    return 1e6 * min(found)


def launches() -> None:
    device, kernel = ptxtools.Device("sm_90"), ptxtools.loads(HEAD + COPY)["k"]
    x, y = device.upload(np.arange(64, dtype=np.uint32)), device.upload(np.zeros(64, np.uint32))
    for ctas in (1, 8, 256):
        cost = least(lambda n=ctas: device.launch(kernel, n, 64, [x, y, 64]), 50, 60)
        print(f"a launch of {ctas} CTAs: {cost:.0f} us")
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)

    def run() -> None:
        ptxtools.ptx_run(HEAD + COPY, [a.ctypes.data, b.ctypes.data, 64], 64, 1)

    print(f"ptx_run: {least(run, 20, 60):.0f} us")
    kept = [mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | (n % 2 and mmap.PROT_WRITE)) for n in range(MAPPINGS)]
    print(f"ptx_run with {len(kept)} more mappings: {least(run, 20, 20):.0f} us")


def spent(action: Callable[[], object], rounds: int = 8) -> tuple[float, float]:
    """Wall and processor time of the round that took least of it, in microseconds for each of the CTAs."""
    found = []
    for _ in range(rounds):
        began, used = time.perf_counter(), time.process_time()
        action()
        found.append((time.perf_counter() - began, time.process_time() - used))
    wall, used = min(found)
    return 1e6 * wall / CTAS, 1e6 * used / CTAS


def ctas() -> None:
    for what, text in (("nothing", NOTHING), ("1 KB of shared memory", SHARED)):
        kernel = ptxtools.loads(HEAD + text)["k"]
        for block in (32, 64, 256):
            for threads in (1, 2):
                device = ptxtools.Device("sm_90", threads=threads)
                device.launch(kernel, CTAS, block, [])
                wall, used = spent(lambda d=device, k=kernel, n=block: d.launch(k, CTAS, n, []))
                print(
                    f"a CTA of {block} threads, {what}, workers {threads}: {wall:.3f} us, {used:.3f} us of processors"
                )


if __name__ == "__main__":
    launches()
    ctas()
