"""What a kernel in unison and its sections share (`sections`): the state that one gives the other, and how scalars get
into the frames of warps."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.native.code.emitter import Emitter, vector
from ptxtools.native.code.handler import ELEMENT
from ptxtools.native.code.live_words import Key
from ptxtools.native.code.structures import QUICK_WHOLE
from ptxtools.native.code.unison import Stage
from ptxtools.program.program import LANES

#: Why a section is over: its warps are at the next barrier, or gone; one goes on at a block in general code, or in
#: records; it is time for the turn of the others.
DONE, GONE, BLOCK, RECORD, TURN = range(5)
#: What a section is given and leaves, 8 bytes each: as `unison_turns.VARIABLES`; high, others: the block where lanes of
#: the warp wait, -1 for none, and which; keys: which scalars there are behind it. Then the scalars: as they were in
#: front of the section, as they are for warps that have come to the barrier, and for the one that runs.
STATE = (
    "count", "clock", "left", "spent", "slice", "number", "living", "waiting", "todo", "block", "record", "mask",
    "high", "others", "keys",
)  # fmt: skip
BEFORE, ARRIVED, RUNNING = range(3)
PARAMETERS = "ptr %warps, ptr %ip, ptr %ctx, ptr %cta, ptr %state, ptr %at, ptr %records, ptr %complete"
PLACES = "ptr %warps, i64 %bytes, ptr %values, i64 %keys, i32 %set, i32 %block, i32 %record, ptr %at, ptr %records"
ARGUMENTS = "ptr %warps, ptr %ip, ptr %ctx, ptr %cta, ptr %v.state, ptr %v.at, ptr %v.records, ptr %complete"


def state_bytes(scalars: int) -> int:
    return 8 * (len(STATE) + 3 * scalars)


def scalar_offset(scalars: int, which: int, number: int) -> int:
    """Where a scalar is in the state."""
    return 8 * (len(STATE) + which * scalars + number)


def scalar_type(key: Key) -> str:
    return "i32" if key[1] == "pred" else ELEMENT[key[1]]


_PLACE = """
  br label %look
look:
  %todo = phi i32 [%set, %begin], [%rest, %last]
  %none = icmp eq i32 %todo, 0
  br i1 %none, label %done, label %one
done:
  ret void
one:
  %number = call i32 @llvm.cttz.i32(i32 %todo, i1 true)
  %less = sub i32 %todo, 1
  %rest = and i32 %todo, %less
  %number64 = zext i32 %number to i64
  %offset = mul i64 %number64, %bytes
  %warp = getelementptr i8, ptr %warps, i64 %offset
  %fp = getelementptr i8, ptr %warp, i64 WARP_BYTES
  %at.p = getelementptr i32, ptr %at, i32 %number
  store i32 %block, ptr %at.p
  %record.p = getelementptr i32, ptr %records, i32 %number
  store i32 %record, ptr %record.p
"""


def place_function(e: Emitter, name: str, keys: Sequence[Key]) -> str:
    """A function that writes some of the scalars to the frames of a set of warps, and where these are."""
    e.expand(_PLACE)
    for number, key in enumerate(keys):
        there, on = e.label("there"), e.label("on")
        wanted = e.value(f"and i64 %keys, {1 << number}")
        e.branch(e.value(f"icmp eq i64 {wanted}, 0"), on, there)
        e.begin(there)
        value = e.value(f"load {scalar_type(key)}, ptr {e.value(f'getelementptr i8, ptr %values, i64 {8 * number}')}")
        put(e, key, value)
        e.jump(on)
        e.begin(on)
    e.jump("last")
    e.begin("last")
    e.jump("look")
    return f"define internal void @{name}({PLACES}) #0 {{\nbegin:\n{e.take()}\n}}\n"


def put(e: Emitter, key: Key, value: str) -> None:
    """Write a scalar to all lanes of a slot."""
    place, kind = e.value(f"getelementptr i8, ptr %fp, i64 {key[0]}"), scalar_type(key)
    if key[1] == "pred":
        e.line(f"store i32 {value}, ptr {place}")
    else:
        e.line(f"store {vector(kind)} {e.spread(kind, value)}, ptr {place}, align 64")


def numbered(text: str) -> str:
    """With numbers for the results."""
    values = {"DONE_RESULT": DONE, "GONE_RESULT": GONE, "TURN_RESULT": TURN, "BLOCK_RESULT": BLOCK}
    for name, value in {**values, "LANES_OF_ALL": LANES}.items():
        text = text.replace(name, str(value))
    return text


def look_at_meeting(e: Emitter, stage: Stage, number: int) -> None:
    """Find as %met.N whether an observer has nothing to say where whole warps meet, at the end of a block, N."""
    where = e.value(f"getelementptr i8, ptr {e.field('ctx.code')}, i64 {stage.end}")
    quick = e.field("meeting.quick", e.value(f"inttoptr i64 {e.field('rec.imm', where)} to ptr"))
    e.value(f"icmp ne i32 {e.value(f'and i32 {quick}, {QUICK_WHOLE}')}, 0", f"%met.{number}")
