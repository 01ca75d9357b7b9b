"""Native service before an access that is looked at, as text (`code.notation`): whether anybody has to be told.

The addresses of the lanes whose guard holds; then, table by table, the stretches that they lie in, and what is kept of
their bytes (`filter_flags`, `filter_owners`). Other events: `filter_meetings`.
"""

from __future__ import annotations

from ptxtools.machine.filters import SEVERAL
from ptxtools.native.code.emitter import expand, module_of
from ptxtools.program.program import LANES, OFFSET_MASK

from . import filter_meetings, filter_regions
from .filter_clocks import CLOCKS
from .filter_clocks import FUNCTIONS as CLOCK_FUNCTIONS
from .filter_flags import FLAGS, GATHER
from .filter_marks import MARKS, SOURCES
from .filter_owners import OWNERS, SCATTER
from .filter_repeats import ACCESSES
from .filter_stores import DONE

ACCESS, MEETING = "filter_access", filter_meetings.NAME


def module(attributes: str) -> str:
    """The services as LLVM IR."""
    texts = DONE, _ACCESS, CLOCK_FUNCTIONS, filter_meetings.TEXT, filter_regions.TEXT
    return module_of(map(expand, texts), "", attributes)


#: Bits of a generic address that are the place in its window.
_INSIDE = (1 << 56) - 1
_LANES = ", ".join(f"i64 {lane}" for lane in range(LANES))
_ACCESS = f"""
declare i32 @llvm.cttz.i32(i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare <32 x i32> @{GATHER}(<32 x ptr>, <32 x i1>, <32 x i32>)
declare void @{SCATTER}(<32 x i32>, <32 x ptr>, <32 x i1>)
declare i64 @llvm.vector.reduce.or.v32i64(<32 x i64>)
declare i64 @llvm.vector.reduce.umin.v32i64(<32 x i64>)
declare i64 @llvm.vector.reduce.umax.v32i64(<32 x i64>)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
service @{ACCESS} {{
  %filters = get ctx.filters
  %off = icmp eq ptr %filters, null
  %never = get access.refuses
  %refusing = icmp eq i32 %never, 2
  %unasked.now = or i1 %off, %refusing
  br i1 %unasked.now, label %ask, label %guard
guard:
  %g.slot = get access.guard
  %free = icmp slt i32 %g.slot, 0
  br i1 %free, label %who, label %held
held:
  %g.p = getelementptr i8, ptr %fp, i32 %g.slot
  %g.bits = load i32, ptr %g.p
  %turned = get access.turned
  %g.now = xor i32 %g.bits, %turned
  br label %who
who:
  %held.now = phi i32 [ -1, %guard ], [ %g.now, %held ]
  %rows = get access.lanes
  %giving = and i32 %held.now, %rows
  %m.came = and i32 %giving, %mask
  %last.slot = get access.last
  %lastless = icmp slt i32 %last.slot, 0
  br i1 %lastless, label %come, label %last
last:                                             ; those that read anything
  %last.p = getelementptr i8, ptr %fp, i32 %last.slot
  %ignores = get access.ignores
  %by.size = icmp eq i32 %ignores, 0
  br i1 %by.size, label %last.size, label %last.ignored
last.size:
  %sizes = load <32 x i32>, ptr %last.p, align 64
  %sized = icmp ne <32 x i32> %sizes, zeroinitializer
  %sized.bits = bits %sized
  %copied = get access.size
  %copied32 = trunc i64 %copied to i32
  %copied.all = splat32 %copied32
  %more = icmp ugt <32 x i32> %sizes, %copied.all
  %more.bits = bits %more
  %more.came = and i32 %more.bits, %m.came
  %too.much = icmp ne i32 %more.came, 0
  br i1 %too.much, label %ask, label %last.known
last.ignored:
  %ignored = load i32, ptr %last.p
  %unignored = xor i32 %ignored, -1
  br label %last.known
last.known:
  %reading = phi i32 [ %sized.bits, %last.size ], [ %unignored, %last.ignored ]
  %m.reads = and i32 %m.came, %reading
  br label %come
come:
  %m = phi i32 [ %m.came, %who ], [ %m.reads, %last.known ]
  %nobody = icmp eq i32 %m, 0
  br i1 %nobody, label %good, label %where
where:
  %imm = get access.imm
  %slot = get access.slot
  %imm.all = splat64 %imm
  %constant = icmp slt i32 %slot, 0
  br i1 %constant, label %aligned, label %register
register:
  %p = getelementptr i8, ptr %fp, i32 %slot
  %narrow = get access.narrow
  %wide = icmp eq i32 %narrow, 0
  br i1 %wide, label %long, label %short
short:                                            ; a 32-bit address wraps at 32 bits
  %imm32 = trunc i64 %imm to i32
  %imm32.all = splat32 %imm32
  %base32 = load <32 x i32>, ptr %p, align 64
  %sum32 = add <32 x i32> %base32, %imm32.all
  %sum.short = zext <32 x i32> %sum32 to <32 x i64>
  br label %aligned
long:
  %base64 = load <32 x i64>, ptr %p, align 64
  %sum.long = add <32 x i64> %base64, %imm.all
  br label %aligned
aligned:
  %a = phi <32 x i64> [ %sum.short, %short ], [ %sum.long, %long ], [ %imm.all, %where ]
  %on = lanes %m
  %own = select <32 x i1> %on, <32 x i64> %a, <32 x i64> zeroinitializer
  %any = call i64 @llvm.vector.reduce.or.v32i64(<32 x i64> %own)
  %low = get access.low
  %odd = and i64 %any, %low
  %misaligned = icmp ne i64 %odd, 0
  br i1 %misaligned, label %ask, label %place
place:
  %space = get access.space
  %writes = get access.writes
  %generic = icmp eq i32 %space, SPACE_GENERIC
  br i1 %generic, label %window, label %known
window:                                           ; all lanes in one window
  %leader = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %a.leader = extractelement <32 x i64> %a, i32 %leader
  %top = lshr i64 %a.leader, 56
  %top.all = splat64 %top
  %tops = lshr <32 x i64> %a, splat (i64 56)
  %same = icmp eq <32 x i64> %tops, %top.all
  %same.bits = bits %same
  %same.own = and i32 %same.bits, %m
  %together = icmp eq i32 %same.own, %m
  %simple = icmp ult i64 %top, SPACE_GENERIC
  %one = and i1 %together, %simple
  %space.found = trunc i64 %top to i32
  %a.inside = and <32 x i64> %a, splat (i64 {_INSIDE})
  br i1 %one, label %known, label %ask
known:
  %at = phi <32 x i64> [ %a, %place ], [ %a.inside, %window ]
  %in = phi i32 [ %space, %place ], [ %space.found, %window ]
  %pair = shl i32 %in, 1
  %number = add i32 %pair, %writes
  %number64 = zext i32 %number to i64
  %cta = get warp.cta
  %is.shared = icmp eq i32 %in, SPACE_SHARED
  br i1 %is.shared, label %rank, label %private
private:                                          ; flags of local memory, lane by lane
  %is.local = icmp eq i32 %in, SPACE_LOCAL
  %lane.bytes = get ctx.local_bytes
  %lane.step = select i1 %is.local, i64 %lane.bytes, i64 0
  %lane.steps = splat64 %lane.step
  %lane.places = mul <32 x i64> %lane.steps, <{_LANES}>
  %local = get warp.local
  %local.at = ptrtoint ptr %local to i64
  %private.at = select i1 %is.local, i64 %local.at, i64 0
  br label %table
rank:                                             ; offsets are the same in each CTA of the cluster
  %ranks = lshr <32 x i64> %at, splat (i64 RANK_SHIFT)
  %ctas = get ctx.cluster_size
  %ctas64 = zext i32 %ctas to i64
  %ctas.all = splat64 %ctas64
  %there = icmp ult <32 x i64> %ranks, %ctas.all
  %there.bits = bits %there
  %there.own = and i32 %there.bits, %m
  %all.there = icmp eq i32 %there.own, %m
  %window.own = get cta.window
  %rank.own = lshr i64 %window.own, RANK_SHIFT
  %rank.all = splat64 %rank.own
  %here = icmp eq <32 x i64> %ranks, %rank.all
  %here.bits = bits %here
  %here.own = and i32 %here.bits, %m
  %all.here = icmp eq i32 %here.own, %m
  %offsets = and <32 x i64> %at, splat (i64 {OFFSET_MASK})
  %shared = get cta.shared
  %shared.at = ptrtoint ptr %shared to i64
  br i1 %all.there, label %table, label %ask
table:
  %places = phi <32 x i64> [ %at, %private ], [ %offsets, %rank ]
  %own.cta = phi i1 [ true, %private ], [ %all.here, %rank ]
  %flags.from = phi i64 [ %private.at, %private ], [ %shared.at, %rank ]
  %flags.apart = phi <32 x i64> [ %lane.places, %private ], [ zeroinitializer, %rank ]
  %tables = get access.tables
  %hints = addr access.hint0
  %size = get access.size
  %copies = get access.copies
  %fetches = icmp eq i32 %copies, 2
  br label %each
each:                                             ; each table that has a say
  %todo = phi i32 [ %tables, %table ], [ %todo.next, %noted ]
  %done.all = icmp eq i32 %todo, 0
  br i1 %done.all, label %good, label %one.table
one.table:
  %todo.less = sub i32 %todo, 1
  %todo.next = and i32 %todo, %todo.less
  %k = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %k64 = zext i32 %k to i64
  %filter.at = mul i64 %k64, FILTER_BYTES
  %filter = getelementptr i8, ptr %filters, i64 %filter.at
  %repeating = get filter.repeats of %filter
  %numbered = get access.number
  %no.rows = icmp eq ptr %repeating, null
  %no.poll = icmp eq i32 %numbered, 0
  %unrepeating = or i1 %no.rows, %no.poll
  br i1 %unrepeating, label %bounded, label %repeats
{ACCESSES}bounded:
  %flagged = get filter.flagged of %filter
  %bounds = addr filter.bounds of %filter
  %bound.at = mul i64 %number64, BOUND_BYTES
  %bound = getelementptr i8, ptr %bounds, i64 %bound.at
  %list = get bound.rows of %bound
  %count = get bound.count of %bound
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %ask, label %first
first:
  %marks = get filter.marks of %filter
  %unmarked = icmp eq ptr %marks, null
  %marking = xor i1 %unmarked, true
  %changes.any = icmp ne i32 %writes, 0
  %sourcing = or i1 %fetches, %changes.any
  %sourced = and i1 %sourcing, %marking
  br i1 %sourced, label %sources, label %lookup
{SOURCES}lookup:
  %framed = get filter.framed of %filter
  %unframed = icmp eq i64 %framed, 0
  %by.frames = xor i1 %unframed, true
  %is.private = icmp eq i32 %in, SPACE_LOCAL
  %relative = and i1 %by.frames, %is.private
  br i1 %relative, label %in.frames, label %placed
in.frames:                                        ; places of local variables are relative to stack pointers
  %stack.p = getelementptr i8, ptr %fp, i32 STACK_POINTER
  %stack = load <32 x i64>, ptr %stack.p, align 64
  %frames.from = get access.frames
  %frames.all = splat64 %frames.from
  %places.relative = sub <32 x i64> %places, %stack
  %places.framed = add <32 x i64> %places.relative, %frames.all
  br label %placed
placed:
  %places.here = phi <32 x i64> [ %places, %lookup ], [ %places.framed, %in.frames ]
  %hint.p = getelementptr i32, ptr %hints, i64 %k64
  %hint.first = load i32, ptr %hint.p
  %hint64 = zext i32 %hint.first to i64
  br label %next
next:                                             ; the lowest lane that is left, and all in its stretch
  %left = phi i32 [ %m, %placed ], [ %rest, %passed ]
  %hint = phi i64 [ %hint64, %placed ], [ %row, %passed ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %mine = extractelement <32 x i64> %places.here, i32 %lane
  %valid = icmp ult i64 %hint, %count
  br i1 %valid, label %try, label %search
try:
  %try.at = mul i64 %hint, ROW_BYTES
  %try.p = getelementptr i8, ptr %list, i64 %try.at
  %try.first = get row.first of %try.p
  %try.after = get row.after of %try.p
  %not.below = icmp uge i64 %mine, %try.first
  %below.end = icmp ult i64 %mine, %try.after
  %try.inside = and i1 %not.below, %below.end
  br i1 %try.inside, label %test, label %search
search:                                           ; the last row that does not begin behind it
  br label %halve
{filter_regions.last_row("search", "%mine", "test")}test:
  %row = phi i64 [ %hint, %try ], [ %lo, %halve ]
  %row.at = mul i64 %row, ROW_BYTES
  %row.p = getelementptr i8, ptr %list, i64 %row.at
  %row.first = get row.first of %row.p
  %row.after = get row.after of %row.p
  %extent = sub i64 %row.after, %row.first
  %small = icmp ult i64 %extent, %size
  %limit = sub i64 %extent, %size
  %row.first.all = splat64 %row.first
  %limit.all = splat64 %limit
  %distance = sub <32 x i64> %places.here, %row.first.all
  %inside = icmp ule <32 x i64> %distance, %limit.all
  %inside.bits = bits %inside
  %shifted = lshr i32 %inside.bits, %lane
  %lane.in = trunc i32 %shifted to i1
  %lane.out = xor i1 %lane.in, true
  %outside = or i1 %small, %lane.out
  br i1 %outside, label %ask, label %found
found:
  %group = and i32 %left, %inside.bits
  %others = xor i32 %inside.bits, -1
  %rest = and i32 %left, %others
  %owned = get filter.owned of %filter
  %any.kept = or i32 %flagged, %owned
  %none.kept = icmp eq i32 %any.kept, 0
  %plain = and i1 %none.kept, %unmarked
  br i1 %plain, label %passed, label %flag
flag:
  %flags.row = get row.flags of %row.p
  %unflagged = icmp eq i64 %flags.row, 0
  br i1 %unflagged, label %passed, label %flags
flags:
  %flags.base = add i64 %flags.row, %flags.from
  br i1 %own.cta, label %kept.own, label %peer
peer:                                             ; CTAs of a cluster lie behind one another
  %peer.timed = icmp eq i32 %owned, 2
  %peer.unowned = icmp eq i32 %owned, 0
  %peer.flags = and i1 %peer.unowned, %unmarked
  %peer.kept = or i1 %peer.timed, %peer.flags
  %peer.leader = call i32 @llvm.cttz.i32(i32 %m, i1 true)
  %peer.ranks = lshr <32 x i64> %at, splat (i64 RANK_SHIFT)
  %peer.rank = extractelement <32 x i64> %peer.ranks, i32 %peer.leader
  %peer.rank.all = splat64 %peer.rank
  %peer.same = icmp eq <32 x i64> %peer.ranks, %peer.rank.all
  %peer.same.bits = bits %peer.same
  %peer.same.own = and i32 %peer.same.bits, %m
  %peer.one = icmp eq i32 %peer.same.own, %m
  %peer.window = get cta.window
  %peer.mine = lshr i64 %peer.window, RANK_SHIFT
  %peer.away = sub i64 %peer.rank, %peer.mine
  %peer.step = get ctx.slot_bytes
  %peer.distance = mul i64 %peer.away, %peer.step
  %peer.base = add i64 %flags.base, %peer.distance
  %peer.known = and i1 %peer.kept, %peer.one
  br i1 %peer.known, label %kept.own, label %ask
kept.own:
  %kept.base = phi i64 [ %flags.base, %flags ], [ %peer.base, %peer ]
  %is.owned = icmp ne i32 %owned, 0
  br i1 %is.owned, label %kept.owners, label %kept.flags
kept.owners:
  %timed.words = icmp eq i32 %owned, 2
  br i1 %timed.words, label %kept.clocked, label %owner
kept.clocked:                                     ; of times, those of one sort say nothing
  %timed.sort = get access.sort
  %timed.apart = icmp eq i32 %timed.sort, {SEVERAL}
  br i1 %timed.apart, label %ask, label %clocked
kept.flags:
  br i1 %marking, label %kept.marks, label %kept.words
kept.marks:
  br label %marked
{MARKS}kept.words:{FLAGS}{OWNERS}{CLOCKS}passed:
  %through = icmp eq i32 %rest, 0
  br i1 %through, label %judged, label %next
judged:
  %row.same = icmp eq i64 %row, %hint64
  br i1 %row.same, label %noted, label %note
note:
  %row32 = trunc i64 %row to i32
  store i32 %row32, ptr %hint.p
  br label %noted
noted:
  br label %each
good:
  %permit = get access.permit
  %unasked = icmp slt i32 %permit, 0
  br i1 %unasked, label %done, label %allow
allow:                                            ; as `machine.looks` does: of lanes that came, those that make it
  %permit.p = getelementptr i8, ptr %fp, i32 %permit
  %old = load i32, ptr %permit.p
  %away = xor i32 %mask, -1
  %kept = and i32 %old, %away
  %new = or i32 %kept, %m
  store i32 %new, ptr %permit.p
  br label %done
done:                                             ; a poll that is passed is made at once, before anybody can write,
  %polls = get access.number                      ; and so is a store that others are compared with
  %stores = get access.value_bytes
  %pend = get warp.pend
  %alone = icmp eq i32 %pend, NOWHERE
  %slice = get ctx.slice
  %time = icmp sge i32 %slice, 0
  %goes.on = and i1 %alone, %time
  %stores.now = select i1 %goes.on, i32 0, i32 %stores
  %at.once = or i32 %polls, %stores.now
  %no.polls = icmp eq i32 %at.once, 0
  %answer = select i1 %no.polls, i32 SERVED_DONE, i32 SERVED_ON
  ret i32 %answer
ask:
  %refuses = get access.refuses
  %asks = icmp eq i32 %refuses, 0
  br i1 %asks, label %told, label %refuse
refuse:                                           ; each of the accesses will be looked at
  %refuse.permit = get access.permit
  %refuse.p = getelementptr i8, ptr %fp, i32 %refuse.permit
  %refuse.old = load i32, ptr %refuse.p
  %refuse.away = xor i32 %mask, -1
  %refuse.new = and i32 %refuse.old, %refuse.away
  store i32 %refuse.new, ptr %refuse.p
  ret i32 SERVED_DONE
told:
  ret i32 SERVED_NOT
}}
"""
