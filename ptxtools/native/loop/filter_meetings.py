"""Native service before events where lanes meet, as text (`code.notation`): whether anybody has to be told.

That depends on who comes (`machine.filters`: WHOLE and so on). Threads that come to a barrier of the whole CTA are
counted.
"""

from __future__ import annotations

from ptxtools.machine import filters
from ptxtools.native.code.structures import MEETS_ARRIVE, MEETS_GO, MEETS_WAIT, STORED_SHIFT
from ptxtools.program.mbarrier import COUNT_MASK, EXPECTED_SHIFT, PENDING_SHIFT

from . import filter_phases
from .filter_joins import FUNCTIONS, JOINS_DO, JOINS_MAY
from .filter_repeats import WAITS
from .filter_sweeps import SETTLE

NAME = "filter_meeting"

#: Bits of an mbarrier's word that are not all 0 once it is initialised; of a generic address, the place in its window.
_COUNTS = COUNT_MASK << EXPECTED_SHIFT | COUNT_MASK << PENDING_SHIFT
_INSIDE = (1 << 56) - 1
#: From `initialised` to `fences` or `ask`: whether all lanes are at one mbarrier of this CTA, which is initialised, and
#: whether that has been noted.
MBARRIER = f"""
  %initialised.rule = and i32 %rule, {filters.INITIALISED}
  %no.mbarrier = icmp eq i32 %initialised.rule, 0
  br i1 %no.mbarrier, label %fences, label %mbarrier
mbarrier:
  %mb.imm = get meeting.imm
  %mb.slot = get meeting.mbarrier
  %mb.constant = icmp slt i32 %mb.slot, 0
  br i1 %mb.constant, label %mb.known, label %mb.register
mb.register:
  %mb.p = getelementptr i8, ptr %fp, i32 %mb.slot
  %mb.narrow = get meeting.narrow
  %mb.wide = icmp eq i32 %mb.narrow, 0
  %mb.leader = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  br i1 %mb.wide, label %mb.long, label %mb.short
mb.short:
  %mb.values32 = load <32 x i32>, ptr %mb.p, align 64
  %mb.first32 = extractelement <32 x i32> %mb.values32, i32 %mb.leader
  %mb.first32.all = splat32 %mb.first32
  %mb.same32 = icmp eq <32 x i32> %mb.values32, %mb.first32.all
  %mb.imm32 = trunc i64 %mb.imm to i32
  %mb.sum32 = add i32 %mb.first32, %mb.imm32
  %mb.sum.short = zext i32 %mb.sum32 to i64
  br label %mb.one
mb.long:
  %mb.values64 = load <32 x i64>, ptr %mb.p, align 64
  %mb.first64 = extractelement <32 x i64> %mb.values64, i32 %mb.leader
  %mb.first64.all = splat64 %mb.first64
  %mb.same64 = icmp eq <32 x i64> %mb.values64, %mb.first64.all
  %mb.sum.long = add i64 %mb.first64, %mb.imm
  br label %mb.one
mb.one:
  %mb.same = phi <32 x i1> [ %mb.same32, %mb.short ], [ %mb.same64, %mb.long ]
  %mb.sum = phi i64 [ %mb.sum.short, %mb.short ], [ %mb.sum.long, %mb.long ]
  %mb.same.bits = bits %mb.same
  %mb.same.own = and i32 %mb.same.bits, %m
  %mb.all = icmp eq i32 %mb.same.own, %m
  br i1 %mb.all, label %mb.known, label %ask
mb.known:
  %mb.at = phi i64 [ %mb.imm, %mbarrier ], [ %mb.sum, %mb.one ]
  %mb.space = get meeting.space
  %mb.generic = icmp eq i32 %mb.space, SPACE_GENERIC
  %mb.top = lshr i64 %mb.at, 56
  %mb.expected = select i1 %mb.generic, i64 SPACE_SHARED, i64 0
  %mb.fits = icmp eq i64 %mb.top, %mb.expected
  br i1 %mb.fits, label %mb.own, label %ask
mb.own:
  %mb.cta = get warp.cta
  %mb.window = get cta.window of %mb.cta
  %mb.inside = and i64 %mb.at, {_INSIDE}
  %mb.offset = sub i64 %mb.inside, %mb.window
  %mb.size = get ctx.shared_bytes
  %mb.size64 = zext i32 %mb.size to i64
  %mb.end = add i64 %mb.offset, 8
  %mb.below = icmp ult i64 %mb.offset, %mb.size64
  %mb.whole = icmp ule i64 %mb.end, %mb.size64
  %mb.low = and i64 %mb.offset, 7
  %mb.aligned = icmp eq i64 %mb.low, 0
  %mb.in = and i1 %mb.below, %mb.whole
  %mb.good = and i1 %mb.in, %mb.aligned
  br i1 %mb.good, label %mb.word, label %ask
mb.word:
  %mb.shared = get cta.shared of %mb.cta
  %mb.word.p = getelementptr i8, ptr %mb.shared, i64 %mb.offset
  %mb.found = load i64, ptr %mb.word.p
  %mb.counts = and i64 %mb.found, {_COUNTS}
  %mb.ready = icmp ne i64 %mb.counts, 0
  br i1 %mb.ready, label %phases, label %ask
{filter_phases.PHASES}{WAITS}"""


#: The lanes of the warp that are threads, %everybody; %threads are the CTA's.
EVERYBODY = """
  %id = get warp.id
  %before = shl i32 %id, 5
  %ours = sub i32 %threads, %before
  %full = icmp uge i32 %ours, 32
  %ours.low = and i32 %ours, 31
  %bit = shl i32 1, %ours.low
  %part = sub i32 %bit, 1
  %everybody = select i1 %full, i32 -1, i32 %part
"""


def _known(plane: str) -> str:
    """What any lane knows of a plane's work (`structures.MARKED`), all warps know."""
    return f"""
  %{plane}.p = addr marked.{plane} of %timed.head
  %{plane}.some.p = addr marked.{plane}_some of %timed.head
  %{plane}.known = load <32 x i32>, ptr %{plane}.p, align 4
  %{plane}.some = load <32 x i32>, ptr %{plane}.some.p, align 4
  %{plane}.both = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %{plane}.known, <32 x i32> %{plane}.some)
  %{plane}.most = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %{plane}.both)
  %{plane}.all = splat32 %{plane}.most
  store <32 x i32> %{plane}.all, ptr %{plane}.p, align 4
"""


KNOWN = "".join(map(_known, ("pipe", "bulk", "copy")))
#: Times that words of when bytes were stored can hold.
MOST_TIMES = (1 << 32 - STORED_SHIFT) - 1000
#: From `fences` to `judged`: a fence for the asynchronous proxy, if all threads of the warp come.
FENCES = f"""
fences:
  %fences.rule = and i32 %rule, {filters.FENCES}
  %no.fence = icmp eq i32 %fences.rule, 0
  %fences.marks = get ctx.marks
  %fences.unkept = icmp eq i64 %fences.marks, 0
  %fences.none = or i1 %no.fence, %fences.unkept
  %fences.part = xor i1 %all, true
  %fences.known = or i1 %fences.none, %fences.part
  %fences.cta = get warp.cta
  %fences.shared = get cta.shared of %fences.cta
  %fences.head = getelementptr i8, ptr %fences.shared, i64 %fences.marks
  %fences.clock = get marked.clock of %fences.head
  %fences.late = icmp ugt i32 %fences.clock, {MOST_TIMES}
  %fences.pass = or i1 %fences.known, %fences.late
  br i1 %fences.pass, label %judged, label %fenced
fenced:
  %fenced.began = get marked.began of %fences.head
  %fenced.p = item marked.fenced, %id of %fences.head
  store i32 %fenced.began, ptr %fenced.p
  %fenced.last.p = item marked.last, %id of %fences.head
  %fenced.before.p = item marked.before, %id of %fences.head
  %fenced.last = load i32, ptr %fenced.last.p
  %fenced.before = load i32, ptr %fenced.before.p
  %fenced.earlier = icmp ule i32 %fenced.last, %fenced.began
  %fenced.before.now = select i1 %fenced.earlier, i32 %fenced.last, i32 %fenced.before
  store i32 %fenced.before.now, ptr %fenced.before.p
  %fenced.now = add i32 %fences.clock, 1
  store i32 %fenced.now, ptr %fenced.last.p
  set marked.clock, %fenced.now of %fences.head
  br label %judged
"""

#: From `turns` to `joining` or `ask`: arriving at the cluster's barrier and waiting there take turns.
TURNS = f"""
turns:
  %turns.rule = and i32 %rule, {filters.TURNS}
  %turns.none = icmp eq i32 %turns.rule, 0
  br i1 %turns.none, label %joining, label %turn
turn:
  %turn.what = get meeting.what
  %turn.arrived = get warp.cl_turn
  %turn.left = get warp.cl_left
  %turn.mine = and i32 %turn.arrived, %m
  switch i32 %turn.what, label %ask [ i32 {MEETS_ARRIVE}, label %turn.arrive i32 {MEETS_WAIT}, label %turn.wait
                                      i32 {MEETS_GO}, label %turn.go ]
turn.arrive:
  %turn.fresh = icmp eq i32 %turn.mine, 0
  %turn.good = and i1 %turn.fresh, %all
  br i1 %turn.good, label %turn.comes, label %ask
turn.comes:
  set warp.cl_turn, %m
  set warp.cl_left, 0
  br label %joining
turn.wait:
  %turn.whole = icmp eq i32 %turn.mine, %m
  br i1 %turn.whole, label %turn.waits, label %ask
turn.waits:
  %turn.rest = xor i32 %turn.arrived, %m
  %turn.gone = or i32 %turn.left, %m
  set warp.cl_turn, %turn.rest
  set warp.cl_left, %turn.gone
  br label %joining
turn.go:
  %turn.own = and i32 %turn.left, %m
  %turn.waited = icmp eq i32 %turn.own, %m
  br i1 %turn.waited, label %joining, label %ask
"""

#: Whether all threads of the warp come, and what else the rule asks for.
TEXT = f"""
service @{NAME} {{
  %g.slot = get meeting.guard
  %free = icmp slt i32 %g.slot, 0
  br i1 %free, label %who, label %held
held:
  %g.p = getelementptr i8, ptr %fp, i32 %g.slot
  %g.bits = load i32, ptr %g.p
  %turned = get meeting.turned
  %g.now = xor i32 %g.bits, %turned
  br label %who
who:
  %held.now = phi i32 [ -1, %0 ], [ %g.now, %held ]
  %m = and i32 %held.now, %mask
  %nobody = icmp eq i32 %m, 0
  br i1 %nobody, label %done, label %some
some:
  %rule = get meeting.rule
  %threads = get ctx.threads
  %comes.rule = and i32 %rule, {filters.COMES}
  %comes.none = icmp eq i32 %comes.rule, 0
  %counted.before = get ctx.counted
  %counted.already = icmp eq ptr %counted.before, %warp
  %counted.rest = select i1 %counted.already, ptr null, ptr %counted.before
  set ctx.counted, %counted.rest
  br i1 %comes.none, label %noted, label %comes
comes:
  br i1 %counted.already, label %again, label %note
again:
  %again.cta = get warp.cta
  %again.shared = get cta.shared of %again.cta
  %again.at = get ctx.owners
  %again.header = getelementptr i8, ptr %again.shared, i64 %again.at
  %again.epoch = get owners.epoch of %again.header
  %again.over = icmp uge i32 %again.epoch, MOST_EPOCHS
  br i1 %again.over, label %ask, label %noted
note:                                             ; as long as no thread has exited all must come
  %cta = get warp.cta
  %shared = get cta.shared
  %header.at = get ctx.owners
  %header = getelementptr i8, ptr %shared, i64 %header.at
  %came.before = get owners.came of %header
  %coming = call i32 @llvm.ctpop.i32(i32 %m)
  %came = add i32 %came.before, %coming
  %alive = get cta.alive
  %none.left = icmp eq i32 %alive, %threads
  %everybody.came = icmp eq i32 %came, %threads
  %complete.cta = and i1 %none.left, %everybody.came
  %came.new = select i1 %complete.cta, i32 0, i32 %came
  set owners.came, %came.new of %header
  br i1 %complete.cta, label %another, label %noted
another:
  %marks.at = get ctx.marks
  %unmarked = icmp eq i64 %marks.at, 0
  br i1 %unmarked, label %counted.epoch, label %timed
timed:
  %timed.head = getelementptr i8, ptr %shared, i64 %marks.at
  %timed.clock = get marked.clock of %timed.head
  %timed.next = add i32 %timed.clock, 1
  set marked.clock, %timed.next of %timed.head
  set marked.began, %timed.next of %timed.head
  call void @settle_marks(ptr %ctx, ptr %warp, ptr %timed.head)
  %flights.at = get ctx.flights
  %unflown = icmp eq i64 %flights.at, 0
  br i1 %unflown, label %timed.known, label %shared.known
shared.known:
{KNOWN}  br label %timed.known
timed.known:
  %timed.last = icmp ugt i32 %timed.next, {MOST_TIMES}
  br i1 %timed.last, label %too.late, label %counted.epoch
too.late:                                         ; which `NativeView.counted` says
  set owners.epoch, MOST_EPOCHS of %header
  br label %ask
counted.epoch:
  %epoch = get owners.epoch of %header
  %epoch.next = add i32 %epoch, 1
  set owners.epoch, %epoch.next of %header
  %last = icmp eq i32 %epoch.next, MOST_EPOCHS
  br i1 %last, label %ask, label %noted
noted:
{EVERYBODY}  %all = icmp eq i32 %m, %everybody
  %whole = and i32 %rule, {filters.WHOLE}
  %any = icmp eq i32 %whole, 0
  %whole.ok = or i1 %all, %any
  br i1 %whole.ok, label %uniform, label %ask
uniform:
  %uniform.rule = and i32 %rule, {filters.UNIFORM}
  %mixed = icmp eq i32 %uniform.rule, 0
  %same = icmp eq i32 %m, %mask
  %uniform.ok = or i1 %same, %mixed
  br i1 %uniform.ok, label %named, label %ask
named:
  %on = lanes %m
  %named.rule = and i32 %rule, {filters.NAMED}
  %unnamed = icmp eq i32 %named.rule, 0
  br i1 %unnamed, label %counted, label %members
members:
  %members.slot = get meeting.members
  %members.p = getelementptr i8, ptr %fp, i32 %members.slot
  %masks = load <32 x i32>, ptr %members.p, align 64
  %everybody.all = splat32 %everybody
  %masks.own = and <32 x i32> %masks, %everybody.all
  %complete = icmp eq <32 x i32> %masks.own, %everybody.all
  %complete.on = and <32 x i1> %complete, %on
  %complete.bits = bits %complete.on
  %members.ok = icmp eq i32 %complete.bits, %m
  br i1 %members.ok, label %counted, label %ask
counted:
  %counted.rule = and i32 %rule, {filters.COUNTED}
  %uncounted = icmp eq i32 %counted.rule, 0
  br i1 %uncounted, label %initialised, label %counts
counts:                                           ; whole warps, at least one
  %counts.slot = get meeting.counts
  %counts.p = getelementptr i8, ptr %fp, i32 %counts.slot
  %each = load <32 x i32>, ptr %counts.p, align 64
  %warps = get ctx.warps
  %warps.all = splat32 %warps
  %turned32 = call <32 x i32> @llvm.fshr.v32i32(<32 x i32> %each, <32 x i32> %each, <32 x i32> splat (i32 5))
  %less = sub <32 x i32> %turned32, splat (i32 1)
  %right = icmp ult <32 x i32> %less, %warps.all
  %right.on = and <32 x i1> %right, %on
  %right.bits = bits %right.on
  %counts.ok = icmp eq i32 %right.bits, %m
  br i1 %counts.ok, label %initialised, label %ask
initialised:
{MBARRIER}{FENCES}judged:
  %nobody.rule = and i32 %rule, {filters.NOBODY}
  %welcome = icmp eq i32 %nobody.rule, 0
  br i1 %welcome, label %joins, label %ask
{JOINS_MAY}{TURNS}{JOINS_DO}done:
  ret i32 SERVED_DONE
ask:
  ret i32 SERVED_NOT
}}
{FUNCTIONS}{filter_phases.FUNCTIONS}{SETTLE}declare i32 @llvm.ctpop.i32(i32)
declare <32 x i32> @llvm.umax.v32i32(<32 x i32>, <32 x i32>)
declare i32 @llvm.vector.reduce.umax.v32i32(<32 x i32>)
declare <32 x i32> @llvm.fshr.v32i32(<32 x i32>, <32 x i32>, <32 x i32>)
"""
