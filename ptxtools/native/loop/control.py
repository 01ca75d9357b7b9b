"""Handlers for control flow: how lanes find the next block to run, and how blocks end.

Every record holds the address of its handler, and a handler ends by jumping to the handler of the next record. Nothing
returns until the warp has to wait, its time slice is used up, or Python is needed.

While a group of lanes runs, `warp.pend` is the lowest block at which other lanes of its frame wait: a group that gets
there or past it is settled (the blocks of its lanes are stored) and `@dispatch` picks again: the deepest frame, then
the lowest block. A warp whose lanes agree has nothing pending: it goes from block to block and leaves `warp.pc` alone.
"""

from __future__ import annotations

#: Charge the block that ends here: its weight, `extra` of its terminator is its number of instructions.
_CHARGE = """
  %old.slice = get ctx.slice
  %cost = add i32 %weight, 1
  %left = sub i32 %old.slice, %cost
  set ctx.slice, %left
  %running = call i32 @llvm.ctpop.i32(i32 %mask)
  %threads = mul i32 %running, %weight
  %threads64 = zext i32 %threads to i64
  %old.count = get ctx.count
  %new.count = add i64 %old.count, %threads64
  set ctx.count, %new.count
"""
ACCOUNT = "  %weight = get rec.extra" + _CHARGE


def halves(pair: str, low: str, high: str) -> str:
    """Two fields of a record by one load: what a loop's branch reads competes with its vectors."""
    return f"""
  {pair} = get rec.{pair.removeprefix("%")}
  {low} = trunc i64 {pair} to i32
  {pair}.upper = lshr i64 {pair}, 32
  {high} = trunc i64 {pair}.upper to i32
"""


def land(block: str, step: str, mask: str, label: str, left: str = "") -> str:
    """Go on at `block`, whose first record is `step` bytes from this one; `label` and its kin must be free.

    left: the value of ctx.slice, if that is at hand.
    """
    now = left or f"%{label}.now"
    load = "" if left else f"  {now} = get ctx.slice\n"
    return f"""
{label}:
  %{label}.pend = get warp.pend
  %{label}.ip = getelementptr i8, ptr %ip, i32 {step}
  %{label}.near = icmp ult i32 {block}, %{label}.pend
{load}  %{label}.time = icmp sge i32 {now}, 0
  %{label}.ok = and i1 %{label}.near, %{label}.time
  br i1 %{label}.ok, label %{label}.go, label %{label}.stop, !prof !0
{label}.go:
  goto %fp, %{label}.ip, {mask}
{label}.stop:
  set warp.group_block, {block}
  tail @settle %fp, %{label}.ip, {mask}
"""


#: Note for `{lanes}` (32 flags) at which record they begin to wait.
WAIT_AT = """
  %code.start = get ctx.code
  %code.first = ptrtoint ptr %code.start to i64
  %code.here = ptrtoint ptr %ip to i64
  %code.distance = sub i64 %code.here, %code.first
  %code.offset = trunc i64 %code.distance to i32
  %code.offsets = splat32 %code.offset
  %wait.at = get warp.wait_at
  %wait.at.new = blend32 {lanes}, %code.offsets, %wait.at
  set warp.wait_at, %wait.at.new
"""

#: Pick the next group of lanes. Uses neither %fp, %ip nor %mask.
DISPATCH = """
handler @dispatch {
  %ready = get warp.ready
  %none = icmp eq i32 %ready, 0
  br i1 %none, label %idle, label %pick
idle:
  set warp.group, 0
  leave STATUS_IDLE
pick:
  %pc = get warp.pc
  %calls = get ctx.has_calls
  %rotate = get warp.rotate
  %special = or i32 %calls, %rotate
  %plain = icmp eq i32 %special, 0
  br i1 %plain, label %choose, label %frames, !prof !0
frames:
  %frame = get warp.frame
  %turn = icmp ne i32 %rotate, 0
  br i1 %turn, label %rotated, label %deepest
deepest:                                          ; the lanes in the deepest frame
  %ready.lanes = lanes %ready
  %inside = blend32 %ready.lanes, %frame, splat (i32 -1)
  %deep = call i32 @llvm.vector.reduce.smax.v32i32(<32 x i32> %inside)
  %deep.all = splat32 %deep
  %deep.lanes = icmp eq <32 x i32> %inside, %deep.all
  %deep.mask = bits %deep.lanes
  br label %choose
choose:                                           ; of those, the lanes at the lowest block
  %at = phi i32 [0, %pick], [%deep, %deepest]
  %here.mask = phi i32 [%ready, %pick], [%deep.mask, %deepest]
  %here = lanes %here.mask
  %blocks = blend32 %here, %pc, splat (i32 NOWHERE)
  %lowest = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %blocks)
  %lowest.all = splat32 %lowest
  %chosen = icmp eq <32 x i32> %blocks, %lowest.all
  %others = blend32 %chosen, splat (i32 NOWHERE), %blocks
  %next = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %others)
  %chosen.mask = bits %chosen
  br label %start
rotated:                                          ; any group, so that lanes can wait for one another
  set warp.rotate, 0
  %rotor = get warp.rotor
  %group = get warp.group
  %rest = xor i32 %group, -1
  %rest.ready = and i32 %rest, %ready
  %alone = icmp eq i32 %rest.ready, 0
  %candidates = select i1 %alone, i32 %ready, i32 %rest.ready
  %shifted = call i32 @llvm.fshr.i32(i32 %candidates, i32 %candidates, i32 %rotor)
  %distance = call i32 @llvm.cttz.i32(i32 %shifted, i1 true)
  %lane.sum = add i32 %distance, %rotor
  %lane = and i32 %lane.sum, 31
  %rotor.next = add i32 %lane, 1
  set warp.rotor, %rotor.next
  %lane.pc = item warp.pc, %lane
  %leader = load i32, ptr %lane.pc
  %lane.frame = item warp.frame, %lane
  %leader.frame = load i32, ptr %lane.frame
  %leader.all = splat32 %leader
  %leader.frame.all = splat32 %leader.frame
  %same.block = icmp eq <32 x i32> %pc, %leader.all
  %same.frame = icmp eq <32 x i32> %frame, %leader.frame.all
  %block.mask = bits %same.block
  %frame.mask = bits %same.frame
  %same = and i32 %block.mask, %frame.mask
  %with.leader = and i32 %same, %ready
  br label %start
start:
  %to = phi i32 [%lowest, %choose], [%leader, %rotated]
  %in = phi i32 [%at, %choose], [%leader.frame, %rotated]
  %new.mask = phi i32 [%chosen.mask, %choose], [%with.leader, %rotated]
  %later = phi i32 [%next, %choose], [NOWHERE, %rotated]
  set warp.pend, %later
  %frames.base = getelementptr i8, ptr %warp, i64 WARP_BYTES
  %new.fp = getelementptr i8, ptr %frames.base, i32 %in
  %table = get ctx.blocks
  %entry = getelementptr i32, ptr %table, i32 %to
  %offset = load i32, ptr %entry
  %code = get ctx.code
  %new.ip = getelementptr i8, ptr %code, i32 %offset
  goto %new.fp, %new.ip, %new.mask
}

handler @settle {                                 ; the lanes go on at %ip, the start of block warp.group_block
  %left = get ctx.slice
  %over = icmp slt i32 %left, 0
  br i1 %over, label %stop, label %mix
stop:
  %frame = depth %fp
  set warp.group, %mask
  set warp.group_ip, %ip
  set warp.group_frame, %frame
  leave STATUS_SLICED
mix:
  %block = get warp.group_block
  %all = splat32 %block
  %pc = get warp.pc
  %who = lanes %mask
  %new = blend32 %who, %all, %pc
  set warp.pc, %new
  tail @dispatch %fp, %ip, %mask
}

handler @trap {                                   ; lanes %mask cannot go on: ctx.stop_code says why
  set ctx.stop_mask, %mask
  set ctx.stop_ip, %ip
  set ctx.stop_warp, %warp
  set ctx.stop_fp, %fp
  leave STATUS_TRAP
}
"""

JUMP = f"""
handler @t_pass {{                                ; a region that is not compiled yet
  %next = getelementptr i8, ptr %ip, i64 RECORD_BYTES
  goto %fp, %next, %mask
}}

handler @t_detour {{                              ; a run that is not compiled yet; extra: way to its operations
  %step = get rec.extra
  %next = getelementptr i8, ptr %ip, i32 %step
  goto %fp, %next, %mask
}}
handler @t_return {{                              ; behind a single record that a CTA in unison has called
  leave STATUS_RETURNED
}}

handler @t_jump {{
  {ACCOUNT}
{halves("%s0_pair", "%block", "%step")}
  br label %land
{land("%block", "%step", "%mask", "land", "%left")}
}}

handler @t_branch {{                              ; s0 s1: block and distance if the guard holds; s2 s3: if not
{halves("%guard_pair", "%guard", "%weight")}
{_CHARGE}
{halves("%s0_pair", "%block", "%step")}
  %other = get rec.s2
  %other.step = get rec.s3
  %taken = guarded %mask by %guard
  %stay = xor i32 %taken, %mask
  %all = icmp eq i32 %stay, 0
  br i1 %all, label %land, label %some
some:
  %nobody = icmp eq i32 %taken, 0
  br i1 %nobody, label %pass, label %split
split:                                            ; the lanes at the lower block go on, the others wait at theirs
  %forward = icmp ugt i32 %block, %other
  %low = select i1 %forward, i32 %other, i32 %block
  %high = select i1 %forward, i32 %block, i32 %other
  %low.step = select i1 %forward, i32 %other.step, i32 %step
  %low.mask = select i1 %forward, i32 %stay, i32 %taken
  %high.mask = select i1 %forward, i32 %taken, i32 %stay
  %pc = get warp.pc
  %high.all = splat32 %high
  %high.lanes = lanes %high.mask
  %new = blend32 %high.lanes, %high.all, %pc
  set warp.pc, %new
  %pend = get warp.pend
  %pend.new = call i32 @llvm.umin.i32(i32 %pend, i32 %high)
  set warp.pend, %pend.new
  br label %part
{land("%block", "%step", "%mask", "land", "%left")}
{land("%other", "%other.step", "%mask", "pass", "%left")}
{land("%low", "%low.step", "%low.mask", "part", "%left")}
}}

handler @t_switch {{                              ; s0: index slot; s1: number of targets; imm: table of blocks
  {ACCOUNT}
  %slot = get rec.s0
  %where = getelementptr i8, ptr %fp, i32 %slot
  %index = load <32 x i32>, ptr %where, align 64
  %length = get rec.s1
  %length.all = splat32 %length
  %outside = icmp uge <32 x i32> %index, %length.all
  %who = lanes %mask
  %wrong = and <32 x i1> %outside, %who
  %wrong.mask = bits %wrong
  %fine = icmp eq i32 %wrong.mask, 0
  br i1 %fine, label %look, label %bad, !prof !0
bad:
  set ctx.stop_code, TRAP_SWITCH
  tail @trap %fp, %ip, %wrong.mask
look:
  %imm = get rec.imm
  %table = inttoptr i64 %imm to ptr
  %entries = getelementptr i32, ptr %table, <32 x i32> %index
  %pc = get warp.pc
  %to = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> align 4 %entries, <32 x i1> %who, <32 x i32> %pc)
  set warp.pc, %to
  tail @yield %fp, %ip, %mask
}}

handler @yield {{                                 ; warp.pc holds: pick again, unless the slice is over
  %now = get ctx.slice
  %time = icmp sge i32 %now, 0
  br i1 %time, label %pick, label %stop
pick:
  tail @dispatch %fp, %ip, %mask
stop:
  set warp.group, 0
  leave STATUS_SLICED
}}
"""

LEAVE = f"""
define internal void @leave_cta(ptr %ctx, ptr %warp, i32 %mask) #1 {{
  %ready = get warp.ready
  %alive = get warp.alive
  %rest = xor i32 %mask, -1
  %alive.new = and i32 %alive, %rest
  set warp.alive, %alive.new
  %parked = get warp.parked                       ; who waited for these lanes looks again
  %ready.rest = and i32 %ready, %rest
  %ready.new = or i32 %ready.rest, %parked
  set warp.ready, %ready.new
  set warp.parked, 0
  set warp.group, 0
  %cta = get warp.cta
  %threads = get cta.alive
  %n = call i32 @llvm.ctpop.i32(i32 %mask)
  %threads.new = sub i32 %threads, %n
  set cta.alive, %threads.new
  %cluster = get ctx.cluster_size
  %came = get cta.cl_came
  %many = sub i32 %cluster, 1
  %together = or i32 %came, %many
  %single = icmp eq i32 %together, 0
  br i1 %single, label %barriers, label %clusters, !prof !0
clusters:
  call void @leave_cluster(ptr %ctx, ptr %warp, i32 %mask)
  br label %barriers
barriers:
  %pending = get cta.pending
  %quiet = icmp eq i32 %pending, 0
  br i1 %quiet, label %out, label %check, !prof !0
check:
  %todo = phi i32 [%pending, %barriers], [%todo.next, %checked]
  %id = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %expected.p = item cta.expected, %id
  %expected = load i32, ptr %expected.p
  %counted = icmp ne i32 %expected, 0
  br i1 %counted, label %fill, label %compare
fill:
  %full = call i1 @left(ptr %cta, ptr %warp, i32 %alive.new, i32 %id, i32 %expected)
  br i1 %full, label %open, label %checked
compare:
  %arrived.p = item cta.arrived, %id
  %arrived = load i32, ptr %arrived.p
  %complete = icmp uge i32 %arrived, %threads.new
  br i1 %complete, label %open, label %checked
open:
  call void @release(ptr %ctx, ptr %cta, i32 %id)
  br label %checked
checked:
  %less = sub i32 %todo, 1
  %todo.next = and i32 %todo, %less
  %more = icmp ne i32 %todo.next, 0
  br i1 %more, label %check, label %out
out:
  ret void
}}

handler @t_exit {{
  {ACCOUNT}
  tail @depart %fp, %ip, %mask
}}

handler @depart {{                                ; the whole group leaves
  call void @leave_cta(ptr %ctx, ptr %warp, i32 %mask)
  tail @dispatch %fp, %ip, %mask
}}

handler @t_exit_some {{                           ; s0 s1: where lanes without the guard go on
  {ACCOUNT}
  %block = get rec.s0
  %step = get rec.s1
  %gone = guarded %mask
  %rest = xor i32 %gone, %mask
  %nobody = icmp eq i32 %gone, 0
  br i1 %nobody, label %land, label %some
some:
  call void @leave_cta(ptr %ctx, ptr %warp, i32 %gone)
  %empty = icmp eq i32 %rest, 0
  br i1 %empty, label %out, label %land
out:
  tail @dispatch %fp, %ip, %mask
{land("%block", "%step", "%rest", "land")}
}}
"""

TRAPS = f"""
handler @t_trap {{                                ; imm: code; s0 s1: where lanes without the guard go on
  {ACCOUNT}
  %block = get rec.s0
  %step = get rec.s1
  %hit = guarded %mask
  %fine = icmp eq i32 %hit, 0
  br i1 %fine, label %land, label %bad
bad:
  %code64 = get rec.imm
  %code = trunc i64 %code64 to i32
  set ctx.stop_code, %code
  tail @trap %fp, %ip, %hit
{land("%block", "%step", "%mask", "land")}
}}

handler @t_event {{                               ; s0 s1: where the lanes go on when it is done; imm: its cell
  {ACCOUNT}
  %block = get rec.s0
  %step = get rec.s1
  %next = getelementptr i8, ptr %ip, i32 %step
  %who = guarded %mask
  %imm = get rec.imm
  %event = inttoptr i64 %imm to ptr
  %serve.p = addr event.serve
  %serve = load atomic ptr, ptr %serve.p acquire, align 8
  %foreign = icmp eq ptr %serve, null
  br i1 %foreign, label %python, label %native
native:
  %answer = call i32 %serve(ptr %ctx, ptr %warp, ptr %fp, i32 %who, ptr %event)
  switch i32 %answer, label %python [
    i32 SERVED_DONE, label %land
    i32 SERVED_LATER, label %later
    i32 SERVED_ON, label %on
  ]
{land("%block", "%step", "%mask", "land")}
on:
  goto %fp, %next, %mask
later:                                            ; the warp's slice ends here, and the rest of it is not charged
  set ctx.count, %old.count
  %here = get rec.s2
  %here.depth = depth %fp
  set warp.group, %mask
  set warp.group_ip, %ip
  set warp.group_block, %here
  set warp.group_frame, %here.depth
  %left64 = sext i32 %left to i64
  %given = get ctx.given
  %used = sub i64 %given, %left64
  set ctx.given, %used
  set ctx.slice, 0
  leave STATUS_SLICED
python:
  set ctx.stop_mask, %who
  set ctx.stop_ip, %ip
  set ctx.stop_warp, %warp
  set ctx.stop_fp, %fp
  set ctx.resume_ip, %next
  set ctx.resume_mask, %mask
  set warp.group_block, %block
  %depth = depth %fp
  set warp.group_frame, %depth
  %time = get ctx.slice                           ; who polls must not keep others from running
  %time.less = sub i32 %time, EVENT_COST
  set ctx.slice, %time.less
  leave STATUS_EVENT
}}
"""

#: Lanes wait for those that their member mask names (`warpsync` of the program). The block holds nothing else.
WARPSYNC = f"""
handler @t_warpsync {{                            ; s0: slot of the mask; s1 s2: next block; s3: this block
  %slot = get rec.s0
  %where = getelementptr i8, ptr %fp, i32 %slot
  %members = load <32 x i32>, ptr %where, align 64
  %alive = get warp.alive
  %away = xor i32 %mask, -1
  %missing = and i32 %alive, %away
  %missing.all = splat32 %missing
  %wanted = and <32 x i32> %members, %missing.all
  %numbers = load <32 x i32>, ptr @lane_numbers
  %lane.bits = shl <32 x i32> splat (i32 1), %numbers
  %own = and <32 x i32> %members, %lane.bits
  %outside.lanes = icmp eq <32 x i32> %own, zeroinitializer
  %outside = bits %outside.lanes
  %waits.lanes = icmp ne <32 x i32> %wanted, zeroinitializer
  %waits = bits %waits.lanes
  %unusual = or i32 %waits, %outside
  %waits.mask = and i32 %unusual, %mask
  %together = icmp eq i32 %waits.mask, 0
  br i1 %together, label %through, label %slow, !prof !0
through:
  {ACCOUNT}
  %block = get rec.s1
  %step = get rec.s2
  br label %land
{land("%block", "%step", "%mask", "land")}
slow:
  %strangers.mask = and i32 %outside, %mask
  %allowed = icmp eq i32 %strangers.mask, 0
  br i1 %allowed, label %meet, label %bad
bad:
  set ctx.stop_code, TRAP_MEMBER
  tail @trap %fp, %ip, %strangers.mask
meet:
  set warp.wait_ip, %ip
  %here = get rec.s3
  %depth = depth %fp
  %depth.all = splat32 %depth
  %here.all = splat32 %here
  %pc = get warp.pc
  %who = lanes %mask
  %pc.here = blend32 %who, %here.all, %pc
  set warp.pc, %pc.here
  %frame = get warp.frame
  %ready = get warp.ready
  %parked = get warp.parked
  %known = or i32 %parked, %ready
  %same.block = icmp eq <32 x i32> %pc.here, %here.all
  %same.frame = icmp eq <32 x i32> %frame, %depth.all
  %block.mask = bits %same.block
  %frame.mask = bits %same.frame
  %same = and i32 %block.mask, %frame.mask
  %present.mask = and i32 %same, %known           ; all that are here, those parked before included
  %absent = xor i32 %present.mask, -1
  %lacking = and i32 %alive, %absent
  %lacking.all = splat32 %lacking
  %lacks = and <32 x i32> %members, %lacking.all
  %complete = icmp eq <32 x i32> %lacks, zeroinitializer
  %served.lanes = bits %complete
  %go = and i32 %served.lanes, %present.mask
  %stay = xor i32 %go, -1
  %park.new = and i32 %stay, %present.mask
  %parked.rest = and i32 %parked, %absent
  %parked.new = or i32 %parked.rest, %park.new
  set warp.parked, %parked.new
  %ready.more = or i32 %ready, %go
  %park.not = xor i32 %park.new, -1
  %ready.new = and i32 %ready.more, %park.not
  set warp.ready, %ready.new
  %onward = get rec.s1
  %onward.all = splat32 %onward
  %go.lanes = lanes %go
  %pc.new = blend32 %go.lanes, %onward.all, %pc.here
  set warp.pc, %pc.new
  %spent = get ctx.slice
  %spent.new = sub i32 %spent, 1
  set ctx.slice, %spent.new
  tail @yield %fp, %ip, %mask
}}
"""


def text() -> str:
    """Dispatch and the terminators that concern one warp, in notation."""
    return "\n".join((DISPATCH, JUMP, LEAVE, TRAPS, WARPSYNC))
