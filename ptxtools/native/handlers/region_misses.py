"""Misses of regions (`regions`): s0 of a region's record says how often it is still passed by, s1 how many misses it
has not made up for."""

from __future__ import annotations

#: Passes by a region that misses every time: at most so many between two attempts.
_MOST_PASSED = 63

#: In front of the region: goes to %next if it is passed by now, and has %miss for a round that cannot be served.
BEGIN = f"""
  %passed = get rec.s0
  %tried = icmp eq i32 %passed, 0
  br i1 %tried, label %try, label %pass, !prof !0
pass:
  %passed.less = sub i32 %passed, 1
  set rec.s0, %passed.less
  br label %next
miss:
  %misses = get rec.s1
  %misses.twice = shl i32 %misses, 1
  %misses.more = or i32 %misses.twice, 1
  %misses.new = call i32 @llvm.umin.i32(i32 %misses.more, i32 {_MOST_PASSED})
  set rec.s1, %misses.new
  set rec.s0, %misses.new
  br label %next
try:
"""

#: Behind the region, which went well: go on behind the operations one by one.
DONE = """
  %had = get rec.s1
  %smooth = icmp eq i32 %had, 0
  br i1 %smooth, label %beyond, label %better, !prof !0
better:
  %had.less = lshr i32 %had, 1
  set rec.s1, %had.less
  br label %beyond
beyond:
  %single = get rec.imm
  %after = getelementptr i8, ptr %ip, i64 %single
  %following = getelementptr i8, ptr %after, i64 RECORD_BYTES
  goto %fp, %following, %mask
"""
