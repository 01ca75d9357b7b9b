"""A function of native code, as text (`code.notation`): whether all words of some bytes have a value. The bytes are a
multiple of 4, or none, wherever they are said to be."""

from __future__ import annotations

NAME, LOAD = "same_words", "llvm.masked.load.v16i32.p0"
DECLARATION = f"declare <16 x i32> @{LOAD}(ptr, <16 x i1>, <16 x i32>)"
_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(16))
TEXT = f"""
define internal i1 @{NAME}(ptr %words, i64 %bytes, <16 x i32> %value) #0 {{
  %whole = and i64 %bytes, -64
  br label %each
each:
  %at = phi i64 [ 0, %0 ], [ %at.next, %look ]
  %more = icmp ult i64 %at, %whole
  br i1 %more, label %look, label %rest
look:
  %at.next = add i64 %at, 64
  %p = getelementptr i8, ptr %words, i64 %at
  %word = load <16 x i32>, ptr %p, align 1
  %other = icmp ne <16 x i32> %word, %value
  %other.bits = bitcast <16 x i1> %other to i16
  %same = icmp eq i16 %other.bits, 0
  br i1 %same, label %each, label %no
rest:                                             ; masked loads from nowhere take very long
  %left = sub i64 %bytes, %whole
  %none = icmp eq i64 %left, 0
  br i1 %none, label %yes, label %tail
tail:
  %left.words64 = lshr i64 %left, 2
  %left.words = trunc i64 %left.words64 to i32
  %left.all = splat32x16 %left.words
  %within = icmp ult <16 x i32> <{_NUMBERS}>, %left.all
  %rest.p = getelementptr i8, ptr %words, i64 %whole
  %rest.word = call <16 x i32> @{LOAD}(ptr align 1 %rest.p, <16 x i1> %within, <16 x i32> %value)
  %rest.other = icmp ne <16 x i32> %rest.word, %value
  %rest.bits = bitcast <16 x i1> %rest.other to i16
  %rest.same = icmp eq i16 %rest.bits, 0
  ret i1 %rest.same
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
