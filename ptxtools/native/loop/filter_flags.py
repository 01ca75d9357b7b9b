"""Part of the service before an access: flags of bytes, which writes set and reads want to find set.

It begins at `kept.words`, with %distance of the lanes %group in their stretch, %kept.base, where its flags begin, and
%flags.apart, how far behind those of each lane are; and ends at `passed` or `ask`.
"""

from __future__ import annotations

from ptxtools.native.code.structures import FLAGS_SET

GATHER = "llvm.masked.gather.v32i32.v32p0"
_GATHERED = "<32 x ptr> align 1 %word.ptrs"

FLAGS = f"""
  %flag.places = add <32 x i64> %distance, %flags.apart
  br label %words
words:                                            ; four flags at a time
  %word.at = phi i64 [ 0, %kept.words ], [ %word.next, %words ]
  %set = phi <32 x i1> [ splat (i1 true), %kept.words ], [ %set.now, %words ]
  %word.base = add i64 %kept.base, %word.at
  %word.base.all = splat64 %word.base
  %word.places = add <32 x i64> %flag.places, %word.base.all
  %word.ptrs = inttoptr <32 x i64> %word.places to <32 x ptr>
  %group.lanes = lanes %group
  %word = call <32 x i32> @{GATHER}({_GATHERED}, <32 x i1> %group.lanes, <32 x i32> zeroinitializer)
  %word.next = add i64 %word.at, 4
  %word.left = sub i64 %size, %word.at
  %word.whole = icmp uge i64 %word.left, 4
  %word.bits64 = shl i64 %word.left, 3
  %word.bits = trunc i64 %word.bits64 to i32
  %word.bits.low = and i32 %word.bits, 31
  %word.bit = shl i32 1, %word.bits.low
  %word.part = sub i32 %word.bit, 1
  %word.mask = select i1 %word.whole, i32 -1, i32 %word.part
  %word.full = and i32 %word.mask, {FLAGS_SET}
  %word.mask.all = splat32 %word.mask
  %word.full.all = splat32 %word.full
  %word.masked = and <32 x i32> %word, %word.mask.all
  %word.set = icmp eq <32 x i32> %word.masked, %word.full.all
  %set.now = and <32 x i1> %set, %word.set
  %word.more = icmp ult i64 %word.next, %size
  br i1 %word.more, label %words, label %judge
judge:
  %set.bits = bits %set.now
  %set.own = and i32 %set.bits, %group
  %set.all = icmp eq i32 %set.own, %group
  br i1 %set.all, label %passed, label %unset
unset:
  %reads = get access.reads
  %must = icmp ne i32 %reads, 0
  br i1 %must, label %ask, label %mark
mark:
  br label %mark.one
mark.one:
  %mark.left = phi i32 [ %group, %mark ], [ %mark.rest, %mark.one ]
  %mark.lane = call i32 @llvm.cttz.i32(i32 %mark.left, i1 true)
  %mark.distance = extractelement <32 x i64> %flag.places, i32 %mark.lane
  %mark.at = add i64 %mark.distance, %kept.base
  %mark.p = inttoptr i64 %mark.at to ptr
  call void @llvm.memset.p0.i64(ptr %mark.p, i8 1, i64 %size, i1 false)
  %mark.less = sub i32 %mark.left, 1
  %mark.rest = and i32 %mark.left, %mark.less
  %mark.done = icmp eq i32 %mark.rest, 0
  br i1 %mark.done, label %passed, label %mark.one
"""
