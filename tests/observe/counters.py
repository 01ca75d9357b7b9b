"""Random kernels whose grid meets at counters in global memory, in steps, for some of which something is wrong, under
racecheck's closer look and its judge alone. `tools/sweep_rings.py --counters` runs many."""

from __future__ import annotations

from typing import Any

import numpy as np

HEAD = """.version 8.3
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 sh[];
.visible .entry k(.param .u64 a){clusters} {{
  .reg .b64 %a, %b, %c, %d, %f, %s; .reg .b32 %i, %w, %l, %k, %g, %j, %v, %n, %r<8>; .reg .pred %p, %q, %z;
  ld.param.u64 %a, [a]; mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %l, %i, 31;
  mov.u32 %g, %nctaid.x; mov.u32 %v, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %r0, 1; mov.u64 %s, 1; mov.u32 %k, 0;
  add.u64 %f, %a, 16384; mad.lo.u32 %j, %v, %n, %i; mul.wide.u32 %b, %j, 4; add.u64 %b, %b, %a;
  add.u32 %j, %v, 1; rem.u32 %j, %j, %g; mad.lo.u32 %j, %j, %n, %i; mul.wide.u32 %c, %j, 4; add.u64 %c, %c, %a;
  mov.u64 %d, 8192; add.u64 %b, %b, %d;
{before}
STEP:
"""
WRONG = (
    "no sync", "no fence", "narrow fence", "narrow arrival", "no acquire", "narrow poll", "no meeting", "reset",
    "early store", "other", "part",
)  # fmt: skip
ARRIVALS = (
    "red.global.add.u32 [%f], 1;", "red.relaxed.gpu.global.add.u32 [%f], 1;", "red.release.gpu.global.add.u32 [%f], 1;",
    "red.release.sys.global.add.u32 [%f], %r0;", "atom.global.add.u32 %r1, [%f], 1;",
    "atom.add.release.gpu.global.u32 %r1, [%f], 1;", "atom.acq_rel.gpu.global.add.u32 %r1, [%f], 1;",
)  # fmt: skip
POLLS = (
    "ld.acquire.gpu.global.u32 %r2, [%f];", "ld.acquire.gpu.global.u32 %r2, [%f];",
    "ld.acquire.sys.global.u32 %r2, [%f];", "ld.relaxed.gpu.global.u32 %r2, [%f];",
    "ld.volatile.global.u32 %r2, [%f];", "atom.acquire.gpu.global.or.b32 %r2, [%f], 0;",
)  # fmt: skip
FENCES = "membar.gl;", "fence.acq_rel.gpu;", "fence.sc.gpu;", "membar.sys;"
#: What may stand between, and harms nobody.
MORE = (
    "membar.cta;", "membar.gl;", "bar.warp.sync -1;", "red.global.add.u32 [%f+12], 0;", "red.shared.add.u32 [sh], 1;",
    "ld.relaxed.gpu.global.u32 %r3, [%f];", "ld.acquire.gpu.global.u32 %r3, [%f];",
    "st.relaxed.gpu.global.u32 [%f+8], 1;",
    "ld.acquire.gpu.global.u32 %r3, [%f+12];",
)  # fmt: skip


def kernel(seed: int) -> tuple[str, dict[str, Any]]:
    """A program, and how it is launched."""
    random = np.random.default_rng(seed)

    def one(some: Any) -> str:
        return str(random.choice(some))

    wrong = one(WRONG) if random.random() < 0.5 else ""
    ctas, threads = int(random.choice([2, 3, 4, 6])), int(random.choice([32, 64, 96, 48]))
    leader = one(["%i, 0", "%i, 0", "%i, 0", "%i, 1", "%l, 0"])
    arrival, poll, wide = (
        one(ARRIVALS[: random.choice([4, 7])]),
        one(POLLS[: random.choice([3, 6])]),
        random.random() < 0.15,
    )
    if wide:
        arrival = arrival.replace(".u32 %r1", ".u64 %s").replace(".u32 [%f], %r0", ".u64 [%f], %s")
        arrival = arrival.replace(".u32 [%f], 1", ".u64 [%f], 1")
        poll = poll.replace(".u32 %r2", ".u64 %s").replace(".b32 %r2", ".b64 %s") + " cvt.u32.u64 %r2, %s;"
    if wrong == "narrow arrival":
        arrival = "red.release.cta.global.add.u32 [%f], 1;"
    if wrong == "narrow poll":
        poll = "ld.acquire.cta.global.u32 %r2, [%f];"
    count = "1" if leader != "%l, 0" else str(-(-threads // 32))
    first = {"no fence": "", "narrow fence": "membar.cta;"}.get(wrong, one(FENCES))
    if "release" in arrival and random.random() < 0.6:
        first = ""
    acquires = "acquire" in poll
    last = "" if wrong == "no acquire" or (acquires and random.random() < 0.6) else one(FENCES)
    sync = "" if wrong == "no sync" else "bar.sync 0;"
    meets = "" if wrong == "no meeting" else "bar.sync 0;"
    fence_by_all = random.random() < 0.15
    lines = [
        "ld.global.u32 %r4, [%c]; add.u32 %r4, %r4, %k; st.global.u32 [%b], %r4;",
        *([first] if fence_by_all else []), sync,
        f"mad.lo.u32 %j, %k, %g, %g; mul.lo.u32 %j, %j, {count};", f"setp.ne.u32 %p, {leader}; @%p bra MET;",
        "" if fence_by_all else first, arrival, "LOOK:", poll,
        "setp.lt.u32 %q, %r2, %j; @%q bra LOOK;",
        last, "MET:", meets,
        "sub.u64 %s, 0, %d; add.u64 %c, %c, %d; add.u64 %b, %b, %s; mov.u64 %d, %s; mov.u64 %s, 1;",
    ]  # fmt: skip
    if wrong == "early store":
        lines.insert(4, "st.global.u32 [%c], 3;")
    if "%r1" in arrival and random.random() < 0.5:
        lines.insert(lines.index("LOOK:"), "add.u32 %r5, %r5, %r1;")
    while random.random() < 0.3:
        more, place = one(MORE), int(random.integers(1, len(lines)))
        guard = one(["", "@%p ", "@!%p "]) if place > 4 and "bar.warp" not in more else ""
        lines.insert(place, guard + more)
    body = "\n  ".join(lines)
    end = ""
    if wrong == "reset" or random.random() < 0.2:
        end = one(["@!%p st.global.u32 [%f], 1000;", "setp.eq.u32 %p, %v, 0; @%p st.global.u32 [%f+4], 0;"])
    if wrong == "other":
        end += " @!%p atom.global.exch.b32 %r5, [%f], 1000;"
    if wrong == "part":
        end += " @!%p st.global.u16 [%f+2], %r0;".replace("u16", "b16").replace("%r0", "0")
    before = one(
        ["", "", "setp.eq.u32 %p, %i, 0; @%p ld.global.u32 %r5, [%f];", "ld.relaxed.gpu.global.u32 %r5, [%f];"]
    )
    cluster = int(random.choice([1, 1, 1, 2]))
    ctas = ctas if cluster == 1 or ctas % 2 == 0 else ctas + 1
    text = HEAD.format(clusters=" .reqnctapercluster 2" if cluster == 2 else "", before="  " + before)
    text += (
        f"  {body}\n  add.u32 %k, %k, 1; setp.lt.u32 %z, %k, {random.integers(2, 7)}; @%z bra STEP;\n  {end}\n  ret; }}"
    )
    return text, {"checks": one(["racecheck", "racecheck", "all"]), "grid": ctas, "block": threads, "shared": 2048}
