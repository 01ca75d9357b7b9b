"""What launches cost that do next to nothing: `python bench/launches.py` prints microseconds, minima of many.

A launch of a compiled kernel whose arguments are buffers, numbers or arrays, of which it has 1, 10 or 100; `ptx_run` of
a text that ran before with as many, also in a process with thousands of mappings; a CTA of a large grid in time of
processors, by one worker and by two, with shared memory, a barrier, and in clusters.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable
from itertools import product

import numpy as np
from tensor import prepared

import ptxtools

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COPY = """.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .b32 %t, %n, %v; .reg .b64 %x, %y, %o; .reg .pred %p;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
    setp.ge.u32 %p, %t, %n; @%p ret;
    mul.wide.u32 %o, %t, 4; add.s64 %x, %x, %o; add.s64 %y, %y, %o;
    ld.global.u32 %v, [%x]; add.u32 %v, %v, 1; st.global.u32 [%y], %v; ret;
}"""
CTAS = 100_000
MAPPINGS = 4000
COUNTS = 1, 10, 100


def least(action: Callable[[], object], times: int, rounds: int) -> float:
    """The fastest of some rounds, in microseconds for each time."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(times):
            action()
        found.append((time.perf_counter() - began) / times)
    return 1e6 * min(found)


def pointers(count: int) -> str:
    """A kernel with so many pointers: it stores a number at the last."""
    parameters = ", ".join(f".param .u64 p{n}" for n in range(count))
    return f"""{HEAD}.visible .entry k({parameters}) {{
    .reg .b64 %a; ld.param.u64 %a, [p{count - 1}]; st.global.u32 [%a], {count}; ret;
}}"""


def launches() -> None:
    device, kernel = ptxtools.Device("sm_90"), ptxtools.loads(HEAD + COPY)["k"]
    x, y = device.upload(np.arange(64, dtype=np.uint32)), device.upload(np.zeros(64, np.uint32))
    for ctas in (1, 8, 256):
        prepared(lambda n=ctas: device.launch(kernel, n, 64, [x, y, 64]))
        cost = least(lambda n=ctas: device.launch(kernel, n, 64, [x, y, 64]), 50, 60)
        print(f"a launch of {ctas} CTAs: {cost:.1f} us")
    for count in COUNTS:
        print(f"parameters: {count}")
        kernel, array = ptxtools.loads(pointers(count))["k"], np.zeros(64, np.uint32)
        arrays = [np.zeros(64, np.uint32) for _ in range(count)]
        buffers = [device.upload(array) for _ in range(count)]
        given = {"buffers": buffers, "parts of buffers": [one + 4 for one in buffers], "arrays": arrays}
        for what, args in given.items():
            prepared(lambda k=kernel, a=args: device.launch(k, 1, 32, a))
            print(f"  a launch, {what}: {least(lambda k=kernel, a=args: device.launch(k, 1, 32, a), 20, 60):.1f} us")
        text, addresses = pointers(count), [one.ctypes.data for one in arrays]
        ptxtools.ptx_run(text, addresses, 32, 1)
        print(f"  ptx_run: {least(lambda t=text, a=addresses: ptxtools.ptx_run(t, a, 32, 1), 20, 60):.0f} us")
        assert arrays[-1][0] == buffers[-1].download()[0] == count
    kept = [mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | (n % 2 and mmap.PROT_WRITE)) for n in range(MAPPINGS)]
    cost = least(lambda: ptxtools.ptx_run(text, addresses, 32, 1), 20, 20)
    print(f"  ptx_run with {len(kept)} more mappings: {cost:.0f} us")


def spent(action: Callable[[], object], rounds: int = 8) -> float:
    """Processor time of the round that took least of it, in microseconds for each of the CTAs."""
    found = []
    for _ in range(rounds):
        used = time.process_time()
        action()
        found.append(time.process_time() - used)
    return 1e6 * min(found) / CTAS


def cta(shared: int, barrier: bool, cluster: bool) -> str:
    """A kernel that stores to so many bytes of shared memory and meets at a barrier, or only returns."""
    of_two = ".explicitcluster\n.reqnctapercluster 2, 1, 1\n" if cluster else ""
    room = f".shared .b32 room[{shared // 4}]; " if shared else ""
    store = "mov.u32 %t, %tid.x; st.shared.u32 [room], %t; " if shared else ""
    meet = "bar.sync 0; " if barrier else ""
    return f"{HEAD}.visible .entry k()\n{of_two}{{ .reg .b32 %t; {room}{store}{meet}ret; }}"


def ctas() -> None:
    shapes = [(block, threads) for block in (32, 128) for threads in (1, 2)]
    print("a CTA, microseconds of processors: " + ", ".join(f"{b} threads with {w} workers" for b, w in shapes))
    for tier, shared, barrier, cluster in product(
        ("auto", "interpreter"), (0, 1024, 16384), (False, True), (False, True)
    ):
        kernel, row = ptxtools.loads(cta(shared, barrier, cluster))["k"], []
        for block, threads in shapes:
            device = ptxtools.Device("sm_90", threads=threads, tier=tier)
            prepared(lambda d=device, k=kernel, n=block: d.launch(k, CTAS, n, []))
            row.append(spent(lambda d=device, k=kernel, n=block: d.launch(k, CTAS, n, [])))
        what = f"{shared} bytes{', a barrier' * barrier}{', clusters of 2' * cluster}, {tier}"
        print(f"  {what:50}" + "".join(f"{cost:8.3f}" for cost in row), flush=True)


if __name__ == "__main__":
    launches()
    ctas()
