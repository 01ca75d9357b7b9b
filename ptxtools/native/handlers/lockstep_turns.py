"""Where a kernel in unison has whole CTAs run by one function (`lockstep`), and goes on behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lockstep import NOTHING, OVER, STATE, STOPPED

if TYPE_CHECKING:
    from .unison import Whole

_ENTER = """
all.fresh:                                        ; once for each CTA, at its beginning
  %all.untried = load i32, ptr %v.untried
  store i32 0, ptr %v.untried
  %all.wide = load i32, ptr %v.wide
  %all.fresh.is = load i32, ptr %v.fresh
  %all.both = and i32 %all.wide, %all.fresh.is
  %all.three = and i32 %all.both, %all.untried
  %all.go = icmp ne i32 %all.three, 0
  br i1 %all.go, label %all.call, label %{other}
all.called:
  switch i32 %all.answer, label %nowhere [
    i32 {over}, label %all.over
    i32 {nothing}, label %{other}
    i32 {stopped}, label %all.stopped
  ]
all.over:
  %all.clean = load i32, ptr %v.clean
  set cta.fresh, %all.clean
  store i32 0, ptr %v.living
  br label %gone
all.stopped:                                      ; all warps are at the start of a section, one goes on at once
  store i32 0, ptr %v.todo
  store i32 0, ptr %v.fresh
  br label %{stop}
"""

#: What is not there before, and no more than 32 bits.
_NARROW = ("slice", "number", "block")


def enter(main: Whole, name: str, other: str, *, sections: bool) -> None:
    """Emit the call; other: where CTAs begin that the function does nothing for; sections: there are some."""
    e = main.code
    with main.first():
        e.value("alloca i32", "%v.untried")
        e.line("store i32 1, ptr %v.untried")
        e.value(f"alloca [{len(STATE)} x i64], align 64", "%v.steps")
    values = {"over": OVER, "nothing": NOTHING, "stopped": STOPPED}
    e.expand(_ENTER.format(other=other, stop="sec.look" if sections else "nowhere", **values))
    e.begin("all.call")
    for number, variable in enumerate(STATE):
        if variable not in _NARROW:
            e.line(f"store i64 {main.get(variable)}, ptr {_place(main, number)}")
    e.value(f"call i32 @{name}(ptr %warps, ptr %ip, ptr %ctx, ptr %cta, ptr %v.steps, ptr %v.at)", "%all.answer")
    for number, variable in enumerate(STATE):
        value = e.value(f"load i64, ptr {_place(main, number)}")
        if variable in _NARROW:
            value = e.value(f"trunc i64 {value} to i32")
        main.set(variable, value)
    e.jump("all.called")


def _place(main: Whole, number: int) -> str:
    return main.code.value(f"getelementptr i8, ptr %v.steps, i64 {8 * number}")
