"""Memory that native code and Python share where racecheck has clocks: what warps know of each other, and what is noted
of barriers and mbarriers (`machine.clocks`)."""

from __future__ import annotations

from ptxtools.machine import residents

from .layouts import structure

#: What warps know of each other (`machine.clocks`): warps: by time, the warp that it belongs to; known: a row of
#: `count` times for each warp; times: MOMENTs. Warps are numbered CTA by CTA, per_cta for each. latest: of all times
#: that there are, less than `most`. bars, clusters: a JOINING for the barrier of each CTA and cluster; gathered: of
#: each CTA, what those have told that have come; clustered: the same of each cluster, for two phases. fences: of each
#: warp, what it knew when it joined others last; lanes: of each of its lanes, up to which time that knows the warp's
#: others by mbarriers; phased: records of PHASED, of phased_bytes each; shift: of the bytes of shared memory that have
#: words of their own.
CLOCKS = structure(
    "clocks",
    128,
    """
    ptr: warps known times
    i64: count per_cta latest most
    ptr: bars clusters gathered clustered fences lanes phased
    i64: phased_bytes shift
    """,
)
#: now: the time of a warp's accesses, 0 until it makes one; cta, grid: up to which it knows all of its CTA, and all of
#: the grid; own: its time; plain: it may join others natively; told: it has told what it knows, or learnt anything,
#: since Python was told of it; bar: 1: it has come to the CTA's barrier, 2: all have; cluster: likewise to the
#: cluster's, 3: of which Python was told; joined: 1: others of the CTA, 2: of the cluster, since Python was told of it;
#: met, arrived: its time when it came to either barrier; fenced: and to that where it joined others last; came: the
#: latest time when it arrived at the cluster's; stirs: it has accessed anything since then; bars: how often it has
#: joined others of the CTA; arrivals, left: how often it has come to the cluster's, and joined others there; part:
#: lanes that have come to the CTA's, while others have not; around: up to which time it knows all of its cluster; took:
#: it has learnt from mbarriers since Python was told of it, and since it joined others; tick: its time, if it
#: has accessed nothing since it told others anything. plain: 2: at mbarriers, too; 3: only some of its lanes may.
MOMENT = structure(
    "moment",
    4 * residents.MOMENT_WORDS,
    """
    i32: now cta grid own plain told bar cluster joined met arrived fenced came stirs bars arrivals left part around
    i32: took tick
    """,
)
#: came: warps that have come; told: whether Python was told of one of them; side: of the rows of `clustered`, that of
#: the open phase; until: the time up to which those that join know all that those of their cluster have done; grid,
#: known: up to which one of those that have come knows all of the grid, in the open phase and the one before.
JOINING = structure("joining", 32, "i32: came told side until grid known")
#: An mbarrier that native code looks after. number: of the phase that is open; on: it may; dirty: it has done so since
#: Python was told of it; writer, written: the warp that has initialised it, and when. Behind it lie three rows of what
#: was told, for the phases of numbers modulo 3, and a USE for each warp of the CTA.
PHASED = structure("phased", 4 * residents.PHASED_WORDS, "i32: number on dirty writer written")
#: What a warp has done there. time, where: of the last arrival or wait, the number of its event; lanes, since: of those
#: that Python was not told of the lanes, and the first time; waited, waited_at: when and where it waited for the phase
#: before the open one; passed, passed_lanes, passed_at: the last phase that lanes waited for, plus 2, and where.
USE = structure(
    "use", 4 * residents.USE_WORDS, "i32: time where lanes since waited waited_at passed passed_lanes passed_at"
)
