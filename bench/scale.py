"""How far launches scale: `python bench/scale.py` prints seconds and peak memory of each case, which runs in a process
of its own; `python bench/scale.py CASE NUMBER... [ENGINE]` runs one and prints them as JSON.

grid CTAS             a grid of so many CTAs of 64 threads, each of which counts itself
resident SMS          two CTAs of 1,024 threads on each SM, all of them in a barrier of the whole grid at once, with 24
                      registers, 512 bytes of local memory and, for each CTA, 96 KB of shared memory in use
persistent SMS ROUNDS the same CTAs exchange values with their neighbours behind barriers of the grid, round after round
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
COUNT = """.visible .entry k(.param .u64 y) {
    .reg .b32 %t; .reg .b64 %y; .reg .pred %p; .shared .b32 room[64];
    ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; st.shared.u32 [room], %t; bar.sync 0; setp.eq.u32 %p, %t, 0;
    @%p red.global.add.u32 [%y], 1;
    ret;
}"""
#: Waits until %goal arrivals have come to the counter at %y, one of each CTA and round; %first: thread 0.
_BARRIER = """bar.sync 0;
    @!%first bra WAIT;
    fence.acq_rel.gpu; atom.add.gpu.global.u32 %seen, [%y], 1;
    SPIN: ld.acquire.gpu.global.u32 %seen, [%y]; setp.lt.u32 %p, %seen, %goal; @%p bra SPIN;
    WAIT: bar.sync 0;"""
_START = """.reg .b32 %t, %c, %n, %goal, %seen, %a<24>; .reg .b64 %y, %x, %d<4>; .reg .pred %p, %first;
    ld.param.u64 %y, [y]; ld.param.u64 %x, [x]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %nctaid.x;
    setp.eq.u32 %first, %t, 0;"""
_REGISTERS = 24


def resident_kernel() -> str:
    """Each thread keeps its numbers in registers, local and shared memory across the barrier, then adds them up."""
    before = "".join(
        f"mad.lo.u32 %a{i}, %t, {i + 1}, %c; st.local.u32 [own+{16 * i}], %a{i};\n" for i in range(_REGISTERS)
    )
    after = "".join(
        f"ld.local.u32 %seen, [own+{16 * i}]; add.u32 %a{i}, %a{i}, %seen; add.u32 %c, %c, %a{i};\n"
        for i in range(_REGISTERS)
    )
    return f""".extern .shared .align 16 .b8 room[];
.visible .entry k(.param .u64 y, .param .u64 x) {{
    {_START} .reg .b32 %s; .local .align 16 .b8 own[512];
    mov.u32 %goal, %n; mad.lo.u32 %s, %c, 1024, %t;
    mul.wide.u32 %d1, %s, 4; add.u64 %d1, %d1, %x; mov.u32 %s, room; mad.lo.u32 %s, %t, 96, %s;
    {before} st.shared.u32 [%s], %t; mov.u32 %c, 0;
    {_BARRIER}
    {after} ld.shared.u32 %seen, [%s]; add.u32 %c, %c, %seen; st.global.u32 [%d1], %c;
    ret;
}}"""


def persistent_kernel(rounds: int) -> str:
    """x[round + 1][cta] = x[round][cta + 1] + cta."""
    return f""".visible .entry k(.param .u64 y, .param .u64 x) {{
    {_START} .reg .b32 %round, %next, %v; mov.u32 %round, 0; mov.u32 %goal, 0;
    add.u32 %next, %c, 1; rem.u32 %next, %next, %n;
    ROUND: mad.lo.u32 %a0, %round, %n, %next; mul.wide.u32 %d1, %a0, 4; add.u64 %d1, %d1, %x;
    add.u32 %round, %round, 1; mad.lo.u32 %a0, %round, %n, %c; mul.wide.u32 %d2, %a0, 4; add.u64 %d2, %d2, %x;
    @%first ld.relaxed.gpu.global.u32 %v, [%d1]; @%first add.u32 %v, %v, %c;
    @%first st.relaxed.gpu.global.u32 [%d2], %v;
    add.u32 %goal, %goal, %n;
    {_BARRIER}
    setp.lt.u32 %p, %round, {rounds}; @%p bra ROUND;
    ret;
}}"""


def _launch(text: str, engine: str, sms: int, grid: int, block: int, args: list[Any], shared: int = 0) -> None:
    import ptxtools

    device = ptxtools.Device("sm_90", sms=sms, engine=engine)
    device.launch(ptxtools.loads(HEAD + text)["k"], grid, block, args, shared=shared)


def grid(ctas: int, engine: str = "native") -> None:
    y = np.zeros(1, np.uint32)
    _launch(COUNT, engine, 132, ctas, 64, [y])
    assert y[0] == ctas


def resident(sms: int, engine: str = "native") -> None:
    y, x = np.zeros(1, np.uint32), np.zeros((2 * sms, 1024), np.uint32)
    _launch(resident_kernel(), engine, sms, 2 * sms, 1024, [y, x], shared=96 << 10)
    t, c = np.arange(1024, dtype=np.uint32), np.arange(2 * sms, dtype=np.uint32)[:, None]
    wanted = sum(2 * (t * np.uint32(i + 1) + c) for i in range(_REGISTERS)) + t
    assert (x == wanted).all() and y[0] == 2 * sms


def persistent(sms: int, rounds: int, engine: str = "native") -> None:
    y, x = np.zeros(1, np.uint32), np.zeros((rounds + 1, 2 * sms), np.uint32)
    x[0] = np.arange(2 * sms)
    _launch(persistent_kernel(rounds), engine, sms, 2 * sms, 1024, [y, x])
    for before, after in itertools.pairwise(x):
        assert (after == np.roll(before, -1) + np.arange(2 * sms, dtype=np.uint32)).all()


CASES = {"grid": grid, "resident": resident, "persistent": persistent}
#: What `main` runs: title, arguments, bound for the peak in MB.
TABLE = [
    ("a grid of 1,000 CTAs", ("grid", "1000"), 300),
    ("a grid of 1,000,000 CTAs", ("grid", "1000000"), 300),
    ("132 SMs x 2,048 threads at a barrier", ("resident", "132"), 4096),
    ("the same on the reference engine", ("resident", "132", "reference"), 4096),
    ("132 SMs, 50 barriers of the grid", ("persistent", "132", "50"), 4096),
]


def measure(*arguments: str) -> dict[str, float]:
    """Seconds of the launch and peak megabytes of a process that runs one case."""
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    if found.returncode:
        raise RuntimeError(found.stderr)
    result: dict[str, float] = json.loads(found.stdout)
    return result


def peak() -> float:
    """Megabytes that this process has had at most. What `getrusage` says of a process includes what the one that began
    it had then, so Linux is asked otherwise."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    own = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if own is None else own) / 1024


def main() -> None:
    print("Scale: seconds of the launch, peak memory of the process")
    for title, arguments, bound in TABLE:
        found = measure(*arguments)
        print(f"  {title:40} {found['seconds']:7.2f} s {found['megabytes']:6.0f} MB  (bound: {bound})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.path.insert(0, str(Path(__file__).parents[1]))
        start = time.perf_counter()
        CASES[sys.argv[1]](*(int(a) if a.isdigit() else a for a in sys.argv[2:]))  # type: ignore[operator]
        print(json.dumps({"seconds": time.perf_counter() - start, "megabytes": peak()}))
    else:
        main()
