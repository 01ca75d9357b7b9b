"""Calls push a frame in the memory of the warp; returns go back, lane by lane, as the header of the frame says."""

from __future__ import annotations

from .control import ACCOUNT

#: Go to block `{block}` in frame `{fp}` when nobody of the warp waits there.
_ENTER = """
  %entries = get ctx.blocks
  %entry = getelementptr i32, ptr %entries, i32 {block}
  %entry.offset = load i32, ptr %entry
  %code = get ctx.code
  %new.ip = getelementptr i8, ptr %code, i32 %entry.offset
  set warp.pend, NOWHERE
  %now = get ctx.slice
  %time = icmp sge i32 %now, 0
  br i1 %time, label %enter, label %stop, !prof !0
enter:
  goto {fp}, %new.ip, {mask}
stop:
  set warp.group_block, {block}
  tail @settle {fp}, %new.ip, {mask}
"""

FILL = """
define internal void @fill(ptr %fp, ptr %fun, i32 %mask) #1 {   ; the constants of a frame, for these lanes
  %count = get fun.constants
  %table = get fun.table
  %who = lanes %mask
  %none = icmp eq i32 %count, 0
  br i1 %none, label %out, label %each
each:
  %i = phi i32 [0, %0], [%i.next, %stored]
  %con = phi ptr [%table, %0], [%con.next, %stored]
  %slot = get con.slot
  %kind = get con.kind
  %low = get con.low
  %p = getelementptr i8, ptr %fp, i32 %slot
  switch i32 %kind, label %wide [ i32 32, label %word i32 1, label %pred i32 16, label %half ]
word:
  %word.value = trunc i64 %low to i32
  %word.all = splat32 %word.value
  %word.old = load <32 x i32>, ptr %p, align 64
  %word.new = blend32 %who, %word.all, %word.old
  store <32 x i32> %word.new, ptr %p, align 64
  br label %stored
half:
  %half.value = trunc i64 %low to i16
  %half.all = splat16 %half.value
  %half.old = load <32 x i16>, ptr %p, align 64
  %half.new = blend16 %who, %half.all, %half.old
  store <32 x i16> %half.new, ptr %p, align 64
  br label %stored
pred:
  %flag = trunc i64 %low to i1
  %pred.all = sext i1 %flag to i32
  %pred.old = load i32, ptr %p
  %pred.change = xor i32 %pred.old, %pred.all
  %pred.mine = and i32 %pred.change, %mask
  %pred.new = xor i32 %pred.old, %pred.mine
  store i32 %pred.new, ptr %p
  br label %stored
wide:
  %wide.all = splat64 %low
  %wide.old = load <32 x i64>, ptr %p, align 64
  %wide.new = blend64 %who, %wide.all, %wide.old
  store <32 x i64> %wide.new, ptr %p, align 64
  %double = icmp eq i32 %kind, 128
  br i1 %double, label %upper, label %stored
upper:
  %high = get con.high
  %q = getelementptr <32 x i64>, ptr %p, i32 1
  %high.all = splat64 %high
  %high.old = load <32 x i64>, ptr %q, align 64
  %high.new = blend64 %who, %high.all, %high.old
  store <32 x i64> %high.new, ptr %q, align 64
  br label %stored
stored:
  %con.next = getelementptr i8, ptr %con, i64 CON_BYTES
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, %count
  br i1 %more, label %each, label %out
out:
  ret void
}
"""

PUSH = """
define internal i1 @push(ptr %fp, ptr %ip, i32 %mask, ptr %ctx, ptr %warp, ptr %fun) #1 {
  %bytes = get rec.s1                             ; false: no room on the stack
  %local = get rec.s2
  %back = get rec.s3
  %depth = depth %fp
  %new = add i32 %depth, %bytes
  %need = get fun.frame_bytes
  %end = add i32 %new, %need
  %limit = get ctx.frame_limit
  %deep = icmp ugt i32 %end, %limit
  br i1 %deep, label %full, label %stack
stack:
  %who = lanes %mask
  %sp.p = getelementptr i8, ptr %fp, i64 STACK_POINTER
  %sp = load <32 x i64>, ptr %sp.p, align 64
  %local64 = zext i32 %local to i64
  %local.all = splat64 %local64
  %sp.new = add <32 x i64> %sp, %local.all
  %more = get fun.local_bytes
  %more64 = zext i32 %more to i64
  %more.all = splat64 %more64
  %end.new = add <32 x i64> %sp.new, %more.all
  %tops = get warp.top
  %room = zext <32 x i32> %tops to <32 x i64>
  %beyond = icmp sgt <32 x i64> %end.new, %room
  %beyond.here = and <32 x i1> %beyond, %who
  %beyond.mask = bits %beyond.here
  %fits = icmp eq i32 %beyond.mask, 0
  br i1 %fits, label %write, label %full, !prof !0
write:
  %to = getelementptr i8, ptr %fp, i32 %bytes
  %to.sp = getelementptr i8, ptr %to, i64 STACK_POINTER
  %to.frame = getelementptr i8, ptr %to, i64 RETURN_FRAME
  %old.sp = load <32 x i64>, ptr %to.sp, align 64
  %new.sp = blend64 %who, %sp.new, %old.sp
  store <32 x i64> %new.sp, ptr %to.sp, align 64
  %old.back = load <32 x i32>, ptr %to, align 64
  %back.all = splat32 %back
  %new.back = blend32 %who, %back.all, %old.back
  store <32 x i32> %new.back, ptr %to, align 64
  %old.frame = load <32 x i32>, ptr %to.frame, align 64
  %depth.all = splat32 %depth
  %new.frame = blend32 %who, %depth.all, %old.frame
  store <32 x i32> %new.frame, ptr %to.frame, align 64
  %frames = get warp.frame
  %new.all = splat32 %new
  %frames.new = blend32 %who, %new.all, %frames
  set warp.frame, %frames.new
  call void @fill(ptr %to, ptr %fun, i32 %mask)
  ret i1 true
full:
  ret i1 false
}
"""


def _into(mask: str) -> str:
    """Enter function %number with these lanes, or trap where the stack has no room."""
    return f"""
  %functions = get ctx.functions
  %place = mul i32 %number, FUN_BYTES
  %fun = getelementptr i8, ptr %functions, i32 %place
  %pushed = call i1 @push(ptr %fp, ptr %ip, i32 {mask}, ptr %ctx, ptr %warp, ptr %fun)
  br i1 %pushed, label %go, label %full, !prof !0
full:
  set ctx.stop_code, TRAP_STACK
  tail @trap %fp, %ip, {mask}
go:
  %size = get rec.s1
  %new.fp = getelementptr i8, ptr %fp, i32 %size
  %first = get fun.first
  {_ENTER.format(block="%first", fp="%new.fp", mask=mask)}
"""


CALL = f"""
handler @t_call {{                                ; s0: function; s1 s2: frame and local bytes here; s3: return block
  {ACCOUNT}
  %number = get rec.s0
  {_into("%mask")}
}}

handler @t_call_indirect {{                       ; s0: slot of addresses; s4: number of functions known here;
  %slot = get rec.s0                              ; s5: this record's own block number; imm: their table
  %where = getelementptr i8, ptr %fp, i32 %slot
  %addresses = load <32 x i64>, ptr %where, align 64
  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %mine.p = getelementptr i64, ptr %where, i32 %lane
  %mine = load i64, ptr %mine.p
  %mine.all = splat64 %mine
  %same = icmp eq <32 x i64> %addresses, %mine.all
  %same.bits = bits %same
  %with = and i32 %same.bits, %mask
  %from.base = sub i64 %mine, CODE_BASE
  %step = sdiv i64 %from.base, CODE_STEP
  %count = get rec.s4
  %count64 = zext i32 %count to i64
  %again = mul i64 %step, CODE_STEP
  %whole = icmp eq i64 %again, %from.base
  %inside = icmp ult i64 %step, %count64
  %valid = and i1 %whole, %inside
  br i1 %valid, label %look, label %nowhere, !prof !0
look:
  %imm = get rec.imm
  %table = inttoptr i64 %imm to ptr
  %row = getelementptr i32, ptr %table, i64 %step
  %number = load i32, ptr %row
  %known = icmp sge i32 %number, 0
  br i1 %known, label %call, label %nowhere, !prof !0
nowhere:
  set ctx.stop_code, TRAP_CALL
  tail @trap %fp, %ip, %with
call:
  %rest = xor i32 %with, %mask
  %nobody = icmp eq i32 %rest, 0
  br i1 %nobody, label %push, label %defer
defer:                                            ; lanes with another address come back to this record
  %self = get rec.s5
  %self.all = splat32 %self
  %rest.lanes = lanes %rest
  %pc = get warp.pc
  %pc.new = blend32 %rest.lanes, %self.all, %pc
  set warp.pc, %pc.new
  br label %push
push:
  {ACCOUNT.replace("%mask", "%with")}
  {_into("%with")}
}}
"""

RETURN = f"""
handler @t_ret {{                                 ; s0 s1: where lanes without the guard go on
  {ACCOUNT}
  %gone = guarded %mask
  %nobody = icmp eq i32 %gone, 0
  br i1 %nobody, label %none, label %some
none:
  %none.block = get rec.s0
  %none.step = get rec.s1
  %none.ip = getelementptr i8, ptr %ip, i32 %none.step
  set warp.group_block, %none.block
  tail @settle %fp, %none.ip, %mask
some:
  %lane = call i32 @llvm.cttz.i32(i32 %gone, i1 true)
  %blocks = load <32 x i32>, ptr %fp, align 64
  %frames.p = getelementptr i8, ptr %fp, i64 RETURN_FRAME
  %frames = load <32 x i32>, ptr %frames.p, align 64
  %block.p = getelementptr i32, ptr %fp, i32 %lane
  %block = load i32, ptr %block.p
  %frame.p = getelementptr i32, ptr %frames.p, i32 %lane
  %frame = load i32, ptr %frame.p
  %who = lanes %gone
  %rest = xor i32 %gone, %mask
  %entry.frame = icmp eq i32 %block, -1           ; the kernel itself returns: its lanes exit
  br i1 %entry.frame, label %exit, label %back
exit:
  %all.gone = icmp eq i32 %rest, 0
  br i1 %all.gone, label %exit.all, label %exit.some
exit.all:
  tail @depart %fp, %ip, %mask
exit.some:
  call void @leave_cta(ptr %ctx, ptr %warp, i32 %gone)
  %rest.block = get rec.s0
  %rest.step = get rec.s1
  %rest.ip = getelementptr i8, ptr %ip, i32 %rest.step
  set warp.group_block, %rest.block
  tail @settle %fp, %rest.ip, %rest
back:
  %old.frames = get warp.frame
  %new.frames = blend32 %who, %frames, %old.frames
  set warp.frame, %new.frames
  %block.all = splat32 %block
  %frame.all = splat32 %frame
  %same.block = icmp eq <32 x i32> %blocks, %block.all
  %same.frame = icmp eq <32 x i32> %frames, %frame.all
  %same = and <32 x i1> %same.block, %same.frame
  %same.bits = bits %same
  %unlike = xor i32 %same.bits, -1
  %apart = and i32 %unlike, %gone
  %ready = get warp.ready
  %waiting = xor i32 %ready, %gone
  %apart.any = or i32 %apart, %waiting
  %agree = icmp eq i32 %apart.any, 0
  br i1 %agree, label %together, label %spread
together:
  %origin = getelementptr i8, ptr %warp, i64 WARP_BYTES
  %new.fp = getelementptr i8, ptr %origin, i32 %frame
  {_ENTER.format(block="%block", fp="%new.fp", mask="%gone")}
spread:
  %pc = get warp.pc
  %pc.back = blend32 %who, %blocks, %pc
  %other = get rec.s0
  %other.all = splat32 %other
  %rest.lanes = lanes %rest
  %pc.new = blend32 %rest.lanes, %other.all, %pc.back
  set warp.pc, %pc.new
  tail @yield %fp, %ip, %mask
}}
"""


def text() -> str:
    """Calls, returns and frames, in notation."""
    return "\n".join((FILL, PUSH, CALL, RETURN))
