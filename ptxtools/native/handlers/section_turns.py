"""Where a kernel in unison calls its sections (`sections`), and goes on behind them: the function of all its blocks."""

from __future__ import annotations

from ptxtools.native.code.sections import Found

from .section_state import ARGUMENTS, BEFORE, STATE, numbered, place_function, scalar_offset, scalar_type, state_bytes
from .sections import Code
from .unison import Whole


def functions(main: Whole, name: str, found: Found) -> str:
    """The sections of a kernel as functions, and `place`; their bits of the record are noted in `main`."""
    place = f"{name}.place"
    texts = [place_function(main.code, place, found.keys)]
    for section in found.sections:
        code = Code(main, section, found)
        main.section_bits[section.start] = code.word, code.bit
        texts.append(code.function(f"{name}.{section.start}", place))
    return "\n".join(texts)


_LOOK = """
sec.{start}.open:
  %so.{start}.slice = load i32, ptr %v.slice
  %so.{start}.time = icmp sge i32 %so.{start}.slice, {cost}
  %so.{start}.missed = load atomic i32, ptr %sec.{start}.word monotonic, align 4
  %so.{start}.bit = and i32 %so.{start}.missed, {bit}
  %so.{start}.smooth = icmp eq i32 %so.{start}.bit, 0
  %so.{start}.good = and i1 %so.{start}.time, %so.{start}.smooth
  br i1 %so.{start}.good, label %sec.look, label %a.time
sec.{start}.look:
  %sl.{start}.slice = load i32, ptr %v.slice
  %sl.{start}.time = icmp sge i32 %sl.{start}.slice, {cost}
  %sl.{start}.given = icmp sge i32 %given, {cost}
  %sl.{start}.missed = load atomic i32, ptr %sec.{start}.word monotonic, align 4
  %sl.{start}.bit = and i32 %sl.{start}.missed, {bit}
  %sl.{start}.smooth = icmp eq i32 %sl.{start}.bit, 0
  %sl.{start}.enough = and i1 %sl.{start}.time, %sl.{start}.given
  %sl.{start}.good = and i1 %sl.{start}.enough, %sl.{start}.smooth
  br i1 %sl.{start}.good, label %sec.good, label %sec.none
sec.{start}.call:
  %sec.{start}.result = call i32 @{name}.{start}({arguments})
  store i32 %sec.{start}.result, ptr %v.result
  br label %sec.back
"""

_ENTER = """
sec.fresh:
  %sec.f.wide = load i32, ptr %v.wide
  %sec.f.fresh = load i32, ptr %v.fresh
  store i32 0, ptr %v.fresh
  %sec.f.both = and i32 %sec.f.wide, %sec.f.fresh
  %sec.f.go = icmp ne i32 %sec.f.both, 0
  br i1 %sec.f.go, label %sec.begin, label %round
sec.begin:
  store i32 -1, ptr %v.number
  store i32 0, ptr %v.block
  store i32 %given, ptr %v.slice
  br label %sec.look
sec.taken:                                        ; a warp goes on in general code
  %sec.t.partly = load i32, ptr %v.partly
  %sec.t.whole = icmp eq i32 %sec.t.partly, 0
  br i1 %sec.t.whole, label %enter, label %sec.part
sec.part:
  store i32 0, ptr %v.partly
  %sec.pt.mask.p = getelementptr i8, ptr %v.state, i64 {mask}
  %sec.pt.mask = load i32, ptr %sec.pt.mask.p
  store i32 %sec.pt.mask, ptr %v.mask
  %sec.pt.block.p = getelementptr i8, ptr %v.state, i64 {block}
  %sec.pt.block = load i32, ptr %sec.pt.block.p
  store i32 %sec.pt.block, ptr %v.block
  %sec.pt.others = load i32, ptr %v.others
  %sec.pt.whole = icmp eq i32 %sec.pt.others, 0
  %sec.pt.high = load i32, ptr %v.high
  %sec.pt.twice = shl i32 %sec.pt.high, 1
  %sec.pt.pend = select i1 %sec.pt.whole, i32 NOWHERE, i32 %sec.pt.twice
  store i32 %sec.pt.pend, ptr %v.pend
  br label %enter
sec.open:
  %sec.o.wide = load i32, ptr %v.wide
  %sec.o.all = icmp ne i32 %sec.o.wide, 0
  br i1 %sec.o.all, label %sec.o.which, label %a.time
sec.o.which:
  %sec.o.block = load i32, ptr %v.block
  switch i32 %sec.o.block, label %a.time [{opens}]
sec.look:
  %sec.l.block = load i32, ptr %v.block
  switch i32 %sec.l.block, label %sec.none [{looks}]
sec.none:                                         ; as it would be without sections
  %sec.n.number = load i32, ptr %v.number
  %sec.n.begins = icmp slt i32 %sec.n.number, 0
  br i1 %sec.n.begins, label %round, label %sec.n.last
sec.n.last:
  %sec.n.lazy = load i32, ptr %v.lazy
  %sec.n.there = icmp eq i32 %sec.n.lazy, 0
  br i1 %sec.n.there, label %take, label %sec.place
sec.place:
  store i32 0, ptr %v.lazy
  %sec.p.block = load i32, ptr %v.block
  %sec.p.living = load i32, ptr %v.living
  %sec.p.values = getelementptr i8, ptr %v.state, i64 {before}
  %sec.p.keys = load i64, ptr %v.keys
  call void @{name}.place(ptr %warps, i64 %bytes, ptr %sec.p.values, i64 %sec.p.keys, {living})
  br label %take
sec.good:
  %sec.g.lazy = load i32, ptr %v.lazy
  %sec.g.there = icmp eq i32 %sec.g.lazy, 0
  br i1 %sec.g.there, label %sec.read, label %sec.call
sec.read:                                         ; all warps have the same scalars
  store i32 1, ptr %v.lazy
  %sec.r.living = load i32, ptr %v.living
  %sec.r.number = call i32 @llvm.cttz.i32(i32 %sec.r.living, i1 true)
  %sec.r.number64 = zext i32 %sec.r.number to i64
  %sec.r.offset = mul i64 %sec.r.number64, %bytes
  %sec.r.warp = getelementptr i8, ptr %warps, i64 %sec.r.offset
  %sec.r.fp = getelementptr i8, ptr %sec.r.warp, i64 WARP_BYTES
"""

_BACK = """
  %sec.b.result = load i32, ptr %v.result
  %sec.b.living = load i32, ptr %v.living
  %sec.b.waiting = load i32, ptr %v.waiting
  %sec.b.ready = xor i32 %sec.b.living, %sec.b.waiting
  store i32 %sec.b.ready, ptr %v.ready
  switch i32 %sec.b.result, label %sec.stops [
    i32 DONE_RESULT, label %sec.done
    i32 GONE_RESULT, label %gone
  ]
sec.done:
  store i32 %sec.b.living, ptr %v.ready
  store i32 0, ptr %v.waiting
  br label %sec.look
sec.stops:                                        ; frames are up to date
  store i32 0, ptr %v.lazy
  %sec.s.turn = icmp eq i32 %sec.b.result, TURN_RESULT
  br i1 %sec.s.turn, label %next, label %sec.apart
sec.apart:
  %sec.a.others = load i32, ptr %v.others
  %sec.a.whole = icmp eq i32 %sec.a.others, 0
  %sec.a.high = load i32, ptr %v.high
  %sec.a.twice = shl i32 %sec.a.high, 1
  %sec.a.pend = select i1 %sec.a.whole, i32 NOWHERE, i32 %sec.a.twice
  store i32 %sec.a.pend, ptr %v.pend
  br i1 %sec.a.whole, label %sec.where, label %sec.split
sec.split:
  %sec.a.lanes.p = getelementptr i32, ptr %v.lanes, i32 %sec.a.high
  store i32 %sec.a.others, ptr %sec.a.lanes.p
  %sec.a.wide = zext i32 %sec.a.high to {blocks}
  %sec.a.bit = shl {blocks} 1, %sec.a.wide
  store {blocks} %sec.a.bit, ptr %v.apart
  br label %sec.where
sec.where:
  %sec.w.block = icmp eq i32 %sec.b.result, BLOCK_RESULT
  br i1 %sec.w.block, label %sec.w.general, label %sec.w.record
sec.w.general:
  store i32 1, ptr %v.partly
  br label %take
sec.w.record:
  %sec.w.mask = load i32, ptr %v.mask
  set ctx.resume_mask, %sec.w.mask
  %sec.w.number = load i32, ptr %v.number
  %sec.w.number64 = zext i32 %sec.w.number to i64
  %sec.w.offset = mul i64 %sec.w.number64, %bytes
  %sec.w.warp = getelementptr i8, ptr %warps, i64 %sec.w.offset
  set ctx.stop_warp, %sec.w.warp
  %sec.w.at = load i32, ptr %v.record
  %sec.w.ip = getelementptr i8, ptr %code, i32 %sec.w.at
  set ctx.resume_ip, %sec.w.ip
  br label %lanes.leave
"""


def enter(main: Whole, name: str, found: Found) -> None:
    """Emit what calls sections, and goes on behind them."""
    e, count, sections = main.code, len(found.keys), found.sections
    with main.first():
        e.value(f"alloca [{state_bytes(count) // 8} x i64], align 64", "%v.state")
        for variable in ("lazy", "partly"):
            e.line(f"store i32 0, ptr %v.{variable}")
        for section in sections:
            word, _ = main.section_bits[section.start]
            e.address(word, name=f"%sec.{section.start}.word")
    opens, looks, calls = (
        " ".join(f"i32 {section.start}, label %sec.{section.start}.{way}" for section in sections)
        for way in ("open", "look", "call")
    )
    places = {variable: 8 * STATE.index(variable) for variable in ("mask", "block")}
    text = _ENTER.format(
        opens=opens,
        looks=looks,
        name=name,
        before=scalar_offset(count, BEFORE, 0),
        living="i32 %sec.p.living, i32 %sec.p.block, i32 0, ptr %v.at, ptr %v.records",
        **places,
    )
    begin, rest = text.index("sec.fresh:"), text.index("sec.taken:")
    e.expand(text[begin if any(section.start == 0 for section in sections) else rest :])
    for number, key in enumerate(found.keys):
        place = e.value(f"getelementptr i8, ptr %sec.r.fp, i64 {key[0]}")
        value = e.value(f"load {scalar_type(key)}, ptr {place}")
        place = e.value(f"getelementptr i8, ptr %v.state, i64 {scalar_offset(count, BEFORE, number)}")
        e.line(f"store {scalar_type(key)} {value}, ptr {place}")
    e.jump("sec.call")
    e.begin("sec.call")
    for variable in STATE[:7]:
        _move(main, variable, back=False)
    which = main.get("block")
    e.line(f"switch i32 {which}, label %nowhere [{calls}]")
    for section in sections:
        bit = 1 << main.section_bits[section.start][1]
        e.expand(_LOOK.format(start=section.start, cost=section.cost, bit=bit, name=name, arguments=ARGUMENTS))
    e.begin("sec.back")
    for variable in STATE:
        _move(main, variable, back=True)
    e.expand(numbered(_BACK.format(blocks=main.kind_of("apart"))))


def _move(main: Whole, variable: str, *, back: bool) -> None:
    """Write a variable to the state, or read it."""
    e, kind = main.code, main.kind_of(variable)
    place = e.value(f"getelementptr i8, ptr %v.state, i64 {8 * STATE.index(variable)}")
    if back:
        main.set(variable, e.value(f"load {kind}, ptr {place}"))
    else:
        e.line(f"store {kind} {main.get(variable)}, ptr {place}")
