"""Random kernels under checkers, whose native tables lie between pages that nobody may touch.

    python -m tests.observe.guards [--seed N] [--count N]

CTAs of a cluster hand memory over by flags, atomics, barriers and mbarriers, with accesses of all sizes. Memory that
native code of checkers works in ends at a protected page, as does what a CTA has of it in the memory of its worker, and
stays protected when it is freed; what lies between the parts of that is to stay zero. Prints each seed before it runs;
`tools/sweep_guards.py` runs many.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import mmap
import weakref
from collections import deque
from typing import Any

import numpy as np

import ptxtools
from ptxtools.machine import clocks, filters, repeats
from ptxtools.native.code.structures import CTA, OWNERS
from ptxtools.native.loop import filters as native_filters
from ptxtools.native.loop import spare, worker
from ptxtools.observe import ground, outstanding, race_clocked, race_trial

PAGE = mmap.PAGESIZE
_NONE, _BOTH = 0, mmap.PROT_READ | mmap.PROT_WRITE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
#: Modules whose arrays native code works in.
TABLES = (clocks, filters, repeats, native_filters, ground, outstanding, race_clocked, race_trial)
#: Freed memory that stays protected.
_freed: deque[mmap.mmap] = deque(maxlen=64)


def protect(address: int, size: int, rights: int = _NONE) -> None:
    assert not _libc.mprotect(address, size, rights), ctypes.get_errno()


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def array(shape: Any, kind: Any) -> Any:
    """Zeros that end where a protected page begins, but for what 8 bytes need."""
    count, kind = int(np.prod(shape)), np.dtype(kind)
    size = _up(max(1, count * kind.itemsize), 8)
    room = _up(size, PAGE)
    memory = mmap.mmap(-1, room + 2 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect(start, PAGE)
    protect(start + PAGE + room, PAGE)
    buffer = (ctypes.c_char * (count * kind.itemsize)).from_address(start + PAGE + room - size)
    weakref.finalize(buffer, _free, memory, start, room + 2 * PAGE)
    return np.frombuffer(buffer, kind).reshape(shape)


def _free(memory: mmap.mmap, start: int, size: int) -> None:
    memory.madvise(mmap.MADV_DONTNEED)
    protect(start, size)
    _freed.append(memory)


class _Guarded:
    """NumPy, whose new arrays are guarded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any, kind: Any = np.float64) -> Any:
        return array(shape, kind)

    def array(self, values: Any, kind: Any = None) -> Any:
        plain = np.array(values, kind)
        found = array(plain.shape, plain.dtype)
        found[...] = plain
        return found


class Shape(worker.Shape):
    """What a checker keeps of a CTA ends at a page that nobody may touch, and so does the CTA."""

    def __init__(self, launch: Any) -> None:
        super().__init__(launch)
        kept = CTA.size + self.clear + 64
        self.lead = -kept % PAGE // 64 * 64
        self.warps_offset = _up(self.lead + kept, PAGE) + PAGE - self.lead
        self.local_offset = _up(self.warps_offset + self.warps * self.warp_bytes, 64)
        self.end = _up(self.lead + self.local_offset + self.warps * self.local_warp, PAGE) - self.lead
        self.slot = self.end + PAGE + self.lead
        for module in (worker, spare):
            vars(module)["PAGE"] = PAGE + self.lead  # where the first CTA begins

    def gaps(self) -> list[tuple[int, int]]:
        """Bytes behind shared memory that nobody writes: between the parts of what is kept, and behind them."""
        parts = [(0, self.shared)]
        if self.flags:
            parts.append((self.flags, self.flags + self.shared))
        if self.owners:
            words = 4 * self.shared // max(1, self.owners_piece)
            parts.append((self.owners, self.owners + OWNERS.size + words))
        if self.marks:
            parts.append((self.marks - worker.MARKS_HEAD, self.clear))
        ends = [first for first, _ in parts[1:]] + [self.clear + 64]
        return [(after, first) for (_, after), first in zip(parts, ends, strict=True)]

    owners_piece = 1


class Worker(worker.Worker):
    """Its CTAs lie between protected pages."""

    found: list[str] = []  # noqa: RUF012 - of all workers

    def __init__(self, launch: Any, encoded: Any, shape: Any, *more: Any) -> None:
        if launch.observers is not None:
            shape.owners_piece = launch.observers.owners
        super().__init__(launch, encoded, shape, *more)
        self.slots = [self.ctx + self.slot_offset(slot) for slot in range(self.get("slot_count"))]
        for start in self.slots:
            protect(start + shape.warps_offset - PAGE, PAGE, mmap.PROT_READ)  # `polling` reads all before the warps
            protect(start + shape.end, PAGE)

    def close(self) -> None:
        for start in self.slots[: self.get("slot_used")]:
            for first, after in self.shape.gaps():
                written = ctypes.string_at(start + CTA.size + first, after - first).strip(b"\0")
                if written:
                    self.found.append(f"{len(written)} bytes between {first} and {after} of {vars(self.shape)}")


def _memory(size: int) -> tuple[mmap.mmap, int]:
    return mmap.mmap(-1, _up(size, 1 << 16) + (1 << 16), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 0


def install() -> None:
    """From now on, in this process."""
    for module in TABLES:
        vars(module)["np"] = _Guarded()
    vars(worker)["Shape"], vars(spare)["_memory"] = Shape, _memory
    from ptxtools.native.loop import driver

    vars(driver)["Worker"] = Worker


# --- kernels ----------------------------------------------------------------------------------------------------------

TARGET = ".version 8.3\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 sh[];\n"
HEAD = """.visible .entry k(.param .u64 a){clusters} {{
  .shared .align 8 .b64 bars[4];
  .reg .b64 %a, %b, %c, %d, %g, %s; .reg .b32 %i, %w, %l, %k, %o, %v, %x<6>, %r<8>; .reg .b16 %h<4>;
  .reg .pred %p, %q, %z;
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31; mov.u32 %r0, 1; mov.u32 %r1, 2;
  mov.u32 %r2, 3; mov.u32 %r3, 4; mov.u16 %h0, 7; mov.u64 %c, 9; mov.u64 %d, 5; setp.lt.u32 %p, %i, 32;
  mov.u32 %x0, %cluster_ctarank; add.u32 %x0, %x0, 1; mov.u32 %x1, %cluster_nctarank; rem.u32 %x0, %x0, %x1;
  setp.ne.u32 %q, %i, 0; mov.u32 %x2, bars; @%q bra READY;
  mbarrier.init.shared.b64 [%x2], {arrivals}; mbarrier.init.shared.b64 [%x2+8], 1; mbarrier.init.shared.b64 [%x2+16], 2;
  fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  mov.u32 %k, %ctaid.x; mul.wide.u32 %g, %k, 1024; add.u64 %g, %g, %a; add.u64 %g, %g, 1024; mov.u32 %k, 0;
ROUND:
"""
TAIL = "add.u32 %k, %k, 1; setp.lt.u32 %z, %k, {rounds}; @%z bra ROUND;\n  ret; }}"
#: Barriers of a cluster.
MEETS = "barrier.cluster.arrive; barrier.cluster.wait;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
#: %o is an address in shared memory, %v the same of another CTA of the cluster, %b one in global memory.
ACCESSES = (
    "st.shared.u32 [%o], %i;", "ld.shared.u32 %r1, [%o];", "st.shared.v4.u32 [%o], {%r0, %r1, %r2, %r3};",
    "ld.shared.v2.u64 {%c, %d}, [%o];", "st.shared.u16 [%o+2], %h0;", "ld.shared.u8 %r2, [%o+3];",
    "st.shared.u8 [%o+1], %r0;", "st.shared.u64 [%o+8], %c;", "ld.shared::cluster.u32 %r1, [%v];",
    "st.shared::cluster.u32 [%v+4], %r0;", "ld.shared::cluster.v4.u32 {%r0, %r1, %r2, %r3}, [%v];",
    "st.shared::cluster.u8 [%v+5], %r0;", "st.global.u32 [%b], %i;", "ld.global.u32 %r1, [%b];",
    "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%b];", "st.global.v2.u64 [%b], {%c, %d};", "st.global.u8 [%b+7], %r0;",
    "ld.global.u16 %h1, [%b+6];", "ld.global.v2.u32 {%r0, %r1}, [%b+8];",
)  # fmt: skip
ORDERS = (
    "bar.sync 0;", "bar.sync 1, 64;", "bar.warp.sync -1;", MEETS[1],
    "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", MEETS[0],
    "membar.gl;", "membar.cta;", "fence.acq_rel.cluster;", "fence.sc.gpu;",
    "st.release.gpu.global.u32 [%a], 1;", "ld.acquire.gpu.global.u32 %r1, [%a];",
    "ld.relaxed.gpu.global.u32 %r1, [%a+4];",
    "ld.volatile.shared.u32 %r1, [sh];", "st.volatile.shared.u32 [sh], 1;",
    "ld.acquire.cluster.shared::cluster.u32 %r1, [%v];",
    "st.release.cluster.shared::cluster.u32 [%v], %r1;", "st.relaxed.cluster.shared::cluster.u16 [%v+2], %h0;",
    "atom.acq_rel.gpu.global.add.u32 %r1, [%a+4], 1;", "atom.shared.add.u32 %r1, [%o], 1;",
    "red.global.add.u32 [%b], 1;", "atom.shared::cluster.add.u64 %d, [%v], 1;",
    "atom.global.cas.b16 %h1, [%b+2], %h0, %h0;",
    "atom.shared.exch.b64 %d, [%o], %c;",
    "mbarrier.arrive.shared.b64 %s, [%x2];",
    "@!%q mbarrier.arrive.shared.b64 %s, [%x2+8];",
    "mapa.shared::cluster.u32 %x3, %x2, %x0; @!%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x3+8];",
    "mapa.shared::cluster.u32 %x3, %x2, %x0; @!%q mbarrier.arrive.shared::cluster.b64 _, [%x3+16];",
    "and.b32 %x4, %k, 1; mbarrier.test_wait.parity.shared.b64 %z, [%x2], %x4;",
    "and.b32 %x4, %k, 1; mbarrier.try_wait.parity.shared.b64 %z, [%x2+8], %x4, 200;",
    "and.b32 %x4, %k, 1; mbarrier.try_wait.parity.acquire.cluster.shared.b64 %z, [%x2+16], %x4, 200;",
    "mbarrier.test_wait.shared.b64 %z, [%x2], %s;",
    "elect.sync _|%z, -1;", "shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;", "griddepcontrol.wait;",
)  # fmt: skip
CHECKS = "racecheck", "all", "racecheck,memcheck", "initcheck,racecheck", "asynccheck,racecheck"
#: Shared memory, by what is odd: none, some that ends within a piece, and as much as accesses reach.
SHARED = 1040, 1056, 2051, 1047


def kernel(seed: int) -> tuple[str, dict[str, Any]]:
    """A program, and how it is launched. Two of three are calm: threads have words of their own, and barriers stand
    around what they do to those of other CTAs."""
    random = np.random.default_rng(seed)
    cluster, calm = int(random.choice([1, 2, 2, 4])), seed % 3 > 0
    threads = int(random.choice([32, 50, 63] if calm else [32, 64, 64, 96, 50]))
    meets = MEETS if threads % 32 == 0 or not calm else MEETS[:1]
    ordered, lines = 0.25 + 0.5 * random.random(), []
    for number in range(random.integers(4, 16)):
        place = ("%i", "%l", "%w", "0")[0 if calm else random.choice(4, p=(0.55, 0.2, 0.15, 0.1))]
        shift = int(random.choice([0, 0, 0, 4, 62]))
        base = "%g" if calm else "%a"
        lines.append(f"mad.lo.u32 %o, {place}, 16, {0 if calm else 16 * shift}; and.b32 %o, %o, 1008;")
        lines.append(f"cvt.u64.u32 %b, %o; add.u64 %b, %b, {base}; mov.u32 %x5, sh; add.u32 %o, %o, %x5;")
        lines.append("mapa.shared::cluster.u32 %v, %o, %x0;")
        guard = ("", "@%p ", "@!%p ", "@!%q ")[random.choice(4, p=(0.6, 0.15, 0.15, 0.1))]
        if random.random() < ordered:
            line = ORDERS[random.integers(len(ORDERS))]
            if calm and ("sh]" in line or "[%x2]" in line or "bar.sync 1" in line):
                line = "bar.sync 0;"
        else:
            line = guard + ACCESSES[random.integers(len(ACCESSES))]
        if calm and ("%v" in line or "%x3" in line):
            line = "\n".join((meets[random.integers(len(meets))], line, meets[random.integers(len(meets))]))
        lines.append(line)
        if random.random() < 0.1:
            low = f"L{number}"
            lines += [f"mov.u32 %x4, 0; {low}: ld.acquire.gpu.global.u32 %r1, [%a]; add.u32 %x4, %x4, 1;",
                      f"setp.lt.u32 %z, %x4, {random.integers(2, 40)}; @%z bra {low};"]  # fmt: skip
    rounds = int(random.choice([1, 2, 5]))
    head = TARGET + HEAD.format(clusters=f" .reqnctapercluster {cluster}" if cluster > 1 else "", arrivals=threads)
    text = head + "\n".join(lines) + "\n" + TAIL.format(rounds=rounds)
    checks = str(random.choice(CHECKS))
    return text, {
        "checks": checks, "grid": cluster * int(random.choice([1, 2, 3])), "block": threads,
        "shared": int(random.choice(SHARED)), "threads": int(random.choice([1, 2])),
    }  # fmt: skip


#: What orders steps, by whom it orders: threads of a CTA, of a cluster, and of the grid.
WITHIN = (
    "bar.sync 0;", "bar.sync 0;", "barrier.sync 0;", "@%p bar.sync 0; @!%p bar.sync 0;", "bar.red.popc.u32 %r1, 0, %p;",
    "@%z bar.sync 0; @!%z bar.sync 0;",
)  # fmt: skip
AROUND = (
    MEETS[0], MEETS[1], "barrier.cluster.arrive; bar.sync 0; barrier.cluster.wait;",
    "barrier.cluster.arrive; st.shared.u32 [%n], %i; barrier.cluster.wait;",
    "bar.sync 0; barrier.cluster.arrive; ld.shared.u32 %r1, [%n]; barrier.cluster.wait; bar.sync 0;",
    "@%z barrier.cluster.arrive; @!%z barrier.cluster.arrive; barrier.cluster.wait;",
    "barrier.cluster.arrive; @%z barrier.cluster.wait; @!%z barrier.cluster.wait;",
    "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait; fence.acq_rel.cluster;",
    "barrier.cluster.arrive.relaxed; barrier.cluster.wait;",
)  # fmt: skip
_GRID = (
    "bar.sync 0; @%q bra M{0}; membar.gl; red.global.add.u32 [%a], 1; add.u32 %x3, %x3, %x4;\n"
    "L{0}: ld.{1}.gpu.global.u32 %r1, [%a]; setp.lt.u32 %z, %r1, %x3; @%z bra L{0}; {2}\n"
    "M{0}: bar.sync 0; setp.lt.u32 %z, %l, 16;"
)
#: How a step writes to a thread's place, and reads another's.
_PLACES = (("st.{0}.u32 [{1}], %r0;", "ld.{0}.u32 %r1, [{1}];"),
           ("st.{0}.v2.u32 [{1}], {{%r0, %r1}};", "ld.{0}.u8 %r1, [{1}+5];"),
           ("st.{0}.u16 [{1}+2], %h0;", "ld.{0}.v4.u32 {{%r0, %r1, %r2, %r3}}, [{1}];"),
           ("st.{0}.u64 [{1}+8], %c;", "ld.{0}.v2.u64 {{%c, %d}}, [{1}];"))  # fmt: skip


def handover(seed: int) -> tuple[str, dict[str, Any]]:
    """A program whose threads write to places of their own and then read those of others, in the CTA, the cluster or
    the grid, with what orders that between the steps; but for one place in half of them."""
    random = np.random.default_rng(seed)
    cluster, threads = int(random.choice([1, 2, 2, 4])), int(random.choice([32, 64, 64, 50]))
    grid = cluster * int(random.choice([1, 2]))
    steps = int(random.integers(2, 6))
    missing = int(random.integers(2 * steps)) if random.random() < 0.6 else -1
    lines = ["setp.lt.u32 %z, %l, 16; mov.u32 %x4, %nctaid.x; mov.u32 %x5, sh; mad.lo.u32 %n, %i, 4, %x5;"]
    lines.append("add.u32 %n, %n, 1600; mov.u32 %x3, 0;")
    for step in range(steps):
        far = int(random.choice([0, 1, 1, 2] if cluster > 1 else [0, 0, 2]))
        shift, place = int(random.integers(1, threads)), _PLACES[random.integers(len(_PLACES))]
        other = f"add.u32 %k, %i, {shift}; rem.u32 %k, %k, {threads};"
        if random.random() < 0.4:  # several read one place
            other = (f"mov.u32 %k, {shift};", f"and.b32 %k, %i, {shift};")[random.integers(2)]
        if far < 2:
            lines.append("mad.lo.u32 %o, %i, 16, %x5;" + place[0].format("shared", "%o"))
        else:
            lines.append("mul.wide.u32 %b, %i, 16; add.u64 %b, %b, %g;" + place[0].format("global", "%b"))
        lines.append("" if 2 * step == missing else _order(random, far, 2 * step + 1, grid))
        lines.append(other)
        if far == 0:
            lines.append("mad.lo.u32 %o, %k, 16, %x5;" + place[1].format("shared", "%o"))
        elif far == 1:
            lines.append("mad.lo.u32 %o, %k, 16, %x5; mapa.shared::cluster.u32 %v, %o, %x0;")
            lines.append(place[1].format("shared::cluster", "%v"))
        else:
            lines.append("mov.u32 %r1, %ctaid.x; add.u32 %r1, %r1, 1; rem.u32 %r1, %r1, %x4;")
            lines.append("mul.wide.u32 %b, %r1, 1024; add.u64 %b, %b, %a; add.u64 %b, %b, 1024;")
            lines.append("mul.wide.u32 %c, %k, 16; add.u64 %b, %b, %c;")
            lines.append(place[1].format("global", "%b"))
        lines.append("" if 2 * step + 1 == missing else _order(random, far, 2 * step + 2, grid))
    if random.random() < 0.3:
        lines.insert(int(random.integers(1, len(lines))), "bar.sync 0; @%p nanosleep.u32 100;")
    lines.append(MEETS[0])
    head = HEAD.format(clusters=f" .reqnctapercluster {cluster}" if cluster > 1 else "", arrivals=threads)
    head = head.replace(f"READY: {MEETS[1]}", "READY:").replace("%o, %v", "%o, %n, %v")
    return f"{TARGET}{head}{chr(10).join(lines)}\nret; }}", {
        "checks": str(random.choice(["racecheck", "racecheck", "all"])), "grid": grid, "block": threads,
        "shared": 2400, "threads": 1,
    }  # fmt: skip


def _order(random: Any, far: int, number: int, grid: int) -> str:
    if far == 0:
        return str(random.choice(WITHIN))
    if far == 1:
        return str(random.choice(AROUND))
    return _GRID.format(number, *(("acquire", ""), ("relaxed", "membar.gl;"))[random.integers(2)])


def run(seed: int, more: str = "", make: Any = kernel, tier: str = "interpreter", threads: int = 0) -> Any:
    """Launch the kernel of a seed, with more text; what checkers report, or the trap. tier: of the native engine; by
    default one whose schedule does not depend on when something is compiled; threads: other than those of the seed."""
    text, how = make(seed)
    device = ptxtools.Device("sm_90", checks=how["checks"], threads=threads or how["threads"], tier=tier)
    words = np.zeros(1024 * (1 + how["grid"]) + 16, np.uint8)
    try:
        result = device.launch(
            ptxtools.loads(text + more)["k"], how["grid"], how["block"], [words], shared=how["shared"]
        )
    except ptxtools.Trap as trap:
        return str(trap)
    reports = [(found.checker, found.line, found.message, found.thread, found.count) for found in result.reports]
    return reports, str(result.verdict), words.tolist()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    faulthandler.enable()
    install()
    for seed in range(options.seed, options.seed + options.count):
        print(seed, flush=True)
        run(seed, "", handover if seed & 2 else kernel, "regions" if seed & 1 else "interpreter")
        if Worker.found:
            raise SystemExit(f"seed {seed}: {Worker.found}")


if __name__ == "__main__":
    main()
