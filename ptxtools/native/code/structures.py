"""Where everything lies in the memory that the native code and Python share.

Structures, each a table of fields (name: IR type, `layouts.structure`). Native code names fields as `ctx.slice`; Python
reads and writes them through `layouts.Structure`.

    ctx     one per worker: the launch, tables of the program, what remains of the time slices, why the loop returned
    cta     one per resident CTA: who it is, its barriers, its warps; then shared memory, warps, local memory
    warp    one per warp: which lanes can run, where each lane is, thread numbers; then its frames
    record  one per operation or terminator of the program: handler, operand slots, guard, constants
    event   one per event of the program, its cell: who serves it natively; behind that header a payload of its kind
"""

from __future__ import annotations

from typing import Any, NewType, get_type_hints

from ptxtools.machine import residents
from ptxtools.machine.residents import REPEAT_WORDS
from ptxtools.program.program import ByteOffset, Slot
from ptxtools.records import NamedTuple

from .layouts import Structure, structure
from .timed import CLOCKS, JOINING, MOMENT, PHASED, USE

#: A host address; a number of 64 bits.
Address = NewType("Address", int)
Long = NewType("Long", int)

#: slice: records that the running warp may still execute; status: why the threaded code returned (STATUS_*).
#: quantum: records until the loop returns to Python; cta_left: until the next CTA gets a turn.
#: arena: host address of device address 0 (modulo 2^64). ranges: further host ranges for `ptx_run`.
#: stop_*: where and why the code stopped, for traps and events; resume: continue exactly there.
#: next: parts rows of PART, which all workers share; part: the row that this one of so many workers begins with; total:
#: clusters of the grid. claimed, claims: the first of those that this worker will start, and the one behind the last.
#: round: warps of the present CTA that have not had their turn when an event stopped it. alarm: clock at which Python
#: wants to be called. rank_step: distance of two CTAs of a cluster in the shared window; 0: none knows of the others.
#: scratch: memory that native services work in, null until one asks for it. textures, texture_count: rows of TEXTURE by
#: the numbers of handles, none until a service shows them. timed: somebody has read a clock.
#: filters: rows of FILTER for `AccessFilter`, null where observers are asked about each access. clear_bytes: of a CTA's
#: shared memory and what is kept beside it. owners: bytes from shared memory to its OWNERS; marks, stores, reads: to
#: MARKED, to words of when its bytes were stored, and to those of which products read them, reads_bytes for each
#: warpgroup, and to planes of asynchronous work, as far apart; local_flags: from the CTA's local memory to flags of its
#: bytes, lane by lane, and their number; 0: there are none.
#: counters: rows that "count" and "measure" operations of this worker add to; before them 256 bytes to work in. cached,
#: dirty, cache_mask: tables of the model's L2 (`machine.measures.Cache`), and their last place.
#: unison: the record whose handler runs a CTA whose warps are all whole, null where there is none.
#: bounded: rows of FILTER that regions look at themselves for their accesses, bounded_count of them, or null; by the
#: functions region_find, region_kept and region_set (`loop.filter_regions`). bounded_refuses: words that say who has
#: touched global memory are not for them.
#: counted: the warp whose event is served once more, and has been counted, or null.
#: repeats: rows of REPEAT, or null; clocks: CLOCKS, or null. random: state of the shuffle, 0 for none; stride, start:
#: cluster n to be started is (n * stride + start) % total, or n where stride is 0.
CTX = structure(
    "ctx",
    704,
    """
    i32: slice status
    i64: count
    ptr: code blocks
    i64: arena base size
    ptr: params specials functions
    i64: quantum cta_left clock
    i32: has_calls param_bytes stop_code stop_mask
    ptr: stop_ip stop_warp stop_fp
    i64: stop_address
    i32: resume resume_mask
    ptr: resume_ip next
    i64: total
    i32: grid_x grid_y grid_z block_x block_y block_z threads warps
    ptr: slots
    i64: slot_bytes
    i32: slot_count slot_used slot_current occupied
    i64: warps_offset warp_bytes local_offset local_warp_bytes
    i32: shared_bytes frame_limit
    i64: local_bytes
    ptr: ranges
    i32: range_count open_host sms workers first_block
    i64: warp_slice cta_slice given epoch
    i64: const_base const_size
    i32: cluster_x cluster_y cluster_z cluster_size clusters_x clusters_y round
    i64: alarm random stride start rank_step
    ptr: scratch textures
    i64: texture_count
    i32: timed
    ptr: filters
    i64: clear_bytes owners marks stores reads reads_bytes flights local_flags
    ptr: counters cached dirty
    i32: cache_mask
    ptr: unison bounded repeats clocks
    i32: bounded_count bounded_refuses
    ptr: region_find region_kept region_set counted
    i64: claimed claims
    i32: part parts
    """,
)
#: Clusters from begin to end; next: the first that nobody has claimed, in cache lines of its own; piece: at once.
PART = structure("part", 128, "i64: next end begin piece")

#: state: 0 free, 1 running, 2 all threads have exited but not those of its cluster. alive: threads that have not
#: exited. ready: warps that have lanes to run.
#: arrived, expected: of each barrier; expected 0: all living threads. pending: barriers somebody arrived at.
#: waiting: warps that wait at each barrier. value: what a barrier's reduction has gathered so far. counted: warps whose
#: `counted` is that of the present phase.
#: rank in the cluster; window: address of its shared memory in the shared window; leader: the cluster's first CTA,
#: which counts for all: left CTAs that run, cl_alive threads, cl_came threads at the cluster barrier.
#: external: Python wants to know when the CTA ends. fresh: its warps are at the kernel's start, nothing of it has run.
CTA = structure(
    "cta",
    512,
    """
    i32: state alive ready pending
    i32: x y z smid
    i64: id
    ptr: shared
    i32: prepared external
    [16 x i32]: arrived
    [16 x i32]: expected
    [16 x i32]: waiting
    [16 x i32]: value
    [16 x i32]: counted
    i32: rank left cl_alive cl_came fresh
    i64: window
    ptr: leader
    """,
)

#: ready: lanes that can run; alive: lanes that have not exited; parked: lanes at a warp-level synchronisation.
#: group, group_ip, group_block: lanes that stopped together, and where they go on; their entries in `pc` are stale.
#: pend: lowest block of the other lanes in the running frame; rotate: prefer another group next time (`rotor` on).
#: frame: frame offset of each lane, always valid. top: where each lane's local memory ends; `alloca` lowers it.
#: wait_ip: record at which lanes last began to wait; wait_at: the same as offset in the code, of each lane that began
#: to wait while others of its warp could run.
#: waiting: lanes at each barrier; result: value of its reduction. counted: lanes that a barrier with a thread count has
#: counted. cl_pending: lanes that came to the cluster barrier, which is not complete yet; cl_waiting: those that wait;
#: cl_turn: those that came and have not waited, of whom no observer was told, cl_left: that have waited, but not left.
#: wg_*: `ptxtools.machine.issued`.
WARP = structure(
    "warp",
    1408,
    """
    i32: ready alive group pend
    ptr: group_ip cta
    i32: group_block group_frame
    i32: id parked
    i32: rotate rotor
    ptr: local wait_ip
    i32: cl_pending cl_waiting
    i32: wg_issued wg_commits wg_watched wg_tries
    [8 x i32]: wg_marks
    [16 x i32]: waiting
    [16 x i32]: result
    [16 x i32]: counted
    <32 x i32>: pc
    <32 x i32>: frame
    <32 x i32>: tid_x
    <32 x i32>: tid_y
    <32 x i32>: tid_z
    <32 x i32>: top
    <32 x i32>: wait_at
    [16 x i64]: wg_keys
    i32: wg_done cl_turn cl_left
    """,
)

#: s0..s9: operand slots, destinations first. extra: block number, or other small constant. `Structure` of 64 bytes.
RECORD = structure(
    "rec",
    64,
    """
    i64: handler
    i32: s0 s1 s2 s3 s4 s5 s6 s7 s8 s9
    i32: guard extra
    i64: imm
    """,
    pairs="s0 guard",
)

#: One row of the function table: first block, sizes, and its constants (rows of CONSTANT).
FUNCTION = structure("fun", 64, "i32: first frame_bytes local_bytes constants\nptr: table")

#: kind: bits of the storage class, 1 for predicates.
CONSTANT = structure("con", 32, "i32: slot kind\ni64: low high")

#: The header of an event's cell. serve: the function that does the event's work without leaving the loop, null if there
#: is none; it is called as (ctx, warp, frame, lanes, cell) and answers SERVED_*. A payload follows, `Payload`.
EVENT = structure("event", 8, "ptr: serve")
#: Bytes of a cell.
CELL_BYTES = 208
#: In a payload: an operand that there is not.
NO_SLOT = Slot(-1)


class WgmmaProduct(NamedTuple):
    """The payload of a product of wgmma. factor_a, factor_b, product, expand: functions of `tiles.factors` and
    `tiles.blocks`. registers: slots of A's chunks, null for A in memory; offsets: slots of D's registers; tables_a,
    tables_b: TABLES rows of TABLE. *_slot: of descriptors, and of scale-d (`flag`: a predicate). groups: of 16 columns;
    a_bytes: of a warp's part of a table of A; sign: is added to A's; key: bits for the layout of B; form: of D
    (`tiles.stored`). fraction, least, mask, odd: `tiles.Rounding`. scatter: `tiles.sparse`, null for a dense A; its
    metadata, and tables of its words and fields. fused, own, common: functions of `tiles.fused`, null where it cannot
    do it."""

    factor_a: Address
    factor_b: Address
    product: Address
    expand: Address
    offsets: Address
    tables_b: Address
    b_slot: Slot
    scale_slot: Slot
    flag: bool
    columns: int
    groups: int
    k: int
    sign: int
    fraction: int
    least: int
    key: Long
    mask: Long
    odd: Long
    registers: Address = Address(0)
    tables_a: Address = Address(0)
    a_slot: Slot = NO_SLOT
    a_bytes: int = 0
    form: int = 0
    scatter: Address = Address(0)
    words: Address = Address(0)
    fields: Address = Address(0)
    words_slot: Slot = NO_SLOT
    fused: Address = Address(0)
    own: Address = Address(0)
    common: Address = Address(0)


class IssuedProduct(NamedTuple):
    """The payload of tcgen05.mma: its operands, their slots and types (`tiles.tensor.KINDS`)."""

    slots: Address
    kinds: Address
    operands: int


class WgmmaWait(NamedTuple):
    """The payload of wgmma.wait_group: the slot of the number of groups."""

    n_slot: Slot


class TextureFetch(NamedTuple):
    """The payload of a texture fetch. kind: bit of the geometry; whole: coordinates are whole texels; axes: of a layer;
    levels: the fetch names a level; halves: 0 for 32-bit results, 1 for f16, 2 for f16x2; wanted: bits of the channels
    that have a destination. Slots: of coordinates (place_*), their offsets, and results (to_*)."""

    handle_slot: Slot
    sampler_slot: Slot
    layer_slot: Slot
    resident_slot: Slot
    place_x: Slot
    place_y: Slot
    place_z: Slot
    offset_x: Slot
    offset_y: Slot
    offset_z: Slot
    to_r: Slot
    to_g: Slot
    to_b: Slot
    to_a: Slot
    kind: int
    axes: int
    whole: bool
    levels: bool
    halves: int
    wanted: int


class AccessFilter(NamedTuple):
    """The payload of an event before an access. size: bytes of a lane; low: bits of an address that must be 0; imm: is
    added to addresses. slot: of addresses, 32 bits wide if narrow, NO_SLOT for imm alone; guard: a predicate, or
    NO_SLOT, whose bits `turned` changes; permit: the predicate that says who makes the access, or NO_SLOT. lanes: that
    give addresses; space: SPACE_*; writes, reads: 0 or 1, an atomic does both; copies: 1: the target of a cp.async, 2:
    its source, of which lanes read nothing where `last` (or NO_SLOT) has 0 or, if it `ignores`, a predicate holds;
    sort: of an atomic that may come beside others of its sort, or 0; tables: which of the worker's have a
    say, a bit each; refuses: of several accesses at once: 1: says no where somebody would have to be told, 2: always;
    hint0 and so on, side by side: by table, the row that was right the last time, which native code changes; value0 and
    so on: what a plain store stores, elements of value_bytes (2, 4 or 8; 0: not known), then NO_SLOT; number: of the
    event in the program (`machine.filters.numbers_of`); frames: where addresses relative to the stack pointer begin in
    tables that have those (`machine.filters.framed`)."""

    size: Long
    low: Long
    imm: Long
    slot: Slot
    narrow: bool
    guard: Slot
    turned: int
    permit: Slot
    lanes: int
    space: int
    writes: bool
    reads: bool
    copies: int
    last: Slot
    ignores: bool
    sort: int
    refuses: int
    tables: int
    hint0: int = 0
    hint1: int = 0
    hint2: int = 0
    hint3: int = 0
    hint4: int = 0
    hint5: int = 0
    hint6: int = 0
    hint7: int = 0
    value_bytes: int = 0
    value0: Slot = NO_SLOT
    value1: Slot = NO_SLOT
    value2: Slot = NO_SLOT
    value3: Slot = NO_SLOT
    number: int = 0
    frames: Long = Long(0)


class LineGate(NamedTuple):
    """The payload of an event of instructions with a gate (`machine.gates`): the gate's state, the flag of the line,
    and its number."""

    gate: Address
    armed: Address
    where: int


class LogEntry(NamedTuple):
    """The payload of an event that is logged (`machine.logs`). state: of the log; op: its number there; guard, turned:
    as of an access; quiet: nothing is logged where no lane's guard holds; key: the slot of what is noted of the first
    lane, 32 bits wide if narrow, or NO_SLOT; imm: is added to it."""

    state: Address
    imm: Long
    op: int
    guard: Slot
    turned: int
    quiet: bool
    key: Slot
    narrow: bool


class MeetingFilter(NamedTuple):
    """The payload of an event where lanes meet. guard, turned: as of an access; rule: `machine.filters.WHOLE` and so
    on; members: slot of the member masks, where the rule asks for them; counts: of the thread counts; mbarrier: of an
    mbarrier's address, to which imm is added; narrow: it has 32 bits; space: as of an access; number: of the event in
    the program, where it may be a repeated one; wanted: slot of the phases that are waited for; states: these are
    states of mbarriers, not parities; quick: QUICK_WHOLE where nothing is done if all lanes of a warp come, QUICK_PART
    where nothing is if some do: then it need not be served at all; QUICK_COUNTED where all lanes of a warp are but
    counted, unless the last ones come; what: happens at a barrier, MEETS_*."""

    guard: Slot
    turned: int
    rule: int
    members: Slot
    counts: Slot
    mbarrier: Slot = NO_SLOT
    imm: Long = Long(0)
    narrow: bool = False
    space: int = 0
    number: int = 0
    wanted: Slot = NO_SLOT
    states: bool = False
    quick: int = 0
    what: int = 0


QUICK_WHOLE, QUICK_PART, QUICK_COUNTED = 1, 2, 4
#: What lanes do at a barrier of the CTA, of the cluster, and of the warp; 0: something else.
MEETS_COME, MEETS_LEAVE, MEETS_ARRIVE, MEETS_WAIT, MEETS_GO, MEETS_WARP = range(1, 7)


class GroupFilter(NamedTuple):
    """The payload of an event where lanes put their copies into groups. commit: they do; waits: they wait until no more
    than `pending` groups are left; table: that of the worker's in which marks are counted."""

    commit: bool
    waits: bool
    pending: int
    table: int


class MatrixFilter(NamedTuple):
    """The payload of an event before a product of a warpgroup. a_slot, b_slot: of descriptors; tables_*: TABLES rows of
    TABLE; chunks_*: in each; owned: words say who has touched shared memory, four bytes each; flags: how far behind
    each byte of shared memory it has a flag, or 0."""

    tables_a: Address
    tables_b: Address
    a_slot: Slot
    b_slot: Slot
    chunks_a: int
    chunks_b: int
    owned: bool
    flags: Long


Payload = (
    WgmmaProduct | WgmmaWait | IssuedProduct | TextureFetch | AccessFilter | MeetingFilter | LineGate | LogEntry
    | GroupFilter | MatrixFilter
)  # fmt: skip
_PAYLOAD_TYPES: dict[Any, str] = {Address: "ptr", Long: "i64", Slot: "i32", int: "i32", bool: "i32"}


def _payload(name: str, sort: type[Payload]) -> Structure:
    """The structure of a payload, behind the header of its cell."""
    types = ((_PAYLOAD_TYPES[of], one) for one, of in get_type_hints(sort).items())
    text = "\n".join(f"{type_}: {one}" for type_, one in types)
    return structure(name, CELL_BYTES, text, start=EVENT.size)


#: By the type that Python writes; native code says `wgmma.columns` and so on.
PAYLOADS: dict[type[Payload], Structure] = {
    WgmmaProduct: _payload("wgmma", WgmmaProduct),
    WgmmaWait: _payload("wait", WgmmaWait),
    IssuedProduct: _payload("tensor", IssuedProduct),
    TextureFetch: _payload("fetch", TextureFetch),
    AccessFilter: _payload("access", AccessFilter),
    MeetingFilter: _payload("meeting", MeetingFilter),
    LineGate: _payload("line", LineGate),
    LogEntry: _payload("entry", LogEntry),
    GroupFilter: _payload("groups", GroupFilter),
    MatrixFilter: _payload("matrices", MatrixFilter),
}

#: Where the chunks of a matrix lie, by its descriptor without the address's multiple of 1024; end of the last chunk.
TABLE = structure("tab", 32, "i64: descriptor\nptr: places\ni64: end")
#: The B of a wgmma that a worker has arranged: of which CTA, warpgroup (its first warp) and product; descriptor; event;
#: greatest exponent.
KEPT = structure("kept", 64, "i64: cta code\nptr: cell\ni32: first issued most base")
#: A product of tcgen05.mma that a worker can repeat: its event; CTA; words that change when it must not, and what they
#: were; steps (`tiles.steps`); operands.
ISSUED = structure(
    "issued", 192, "ptr: cell\ni64: cta\nptr: stamp peer\ni32: seen met\nptr: steps\ni64: count\n[16 x i64]: values"
)
#: Rows of a table of tables, in which a descriptor is looked for from its hash on.
TABLES = 64

#: Where accesses of one sort may lie without an observer being asked: count rows of ROW, ascending and apart. flags:
#: where those of its bytes are, of shared memory the distance from there; 0: all are set.
BOUND = structure("bound", 16, "ptr: rows\ni64: count")
ROW = structure("row", 24, "i64: first after flags")
#: Spaces of an access, as it is filtered.
SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_GENERIC = range(4)
#: The table of an observer. flagged: bytes have flags; owned: bytes have words that say who has touched them, or (2)
#: when, each for so many as the logarithms say, of global and shared memory; marks: counts bytes marked as in flight,
#: or null; repeats: rows of REPEAT which say all that matters, or null; framed: those of local memory are relative to
#: stack pointers; bounds: the first of six BOUNDs, space by space one for reads and one for writes.
FILTER = structure("filter", 136, "i32: flagged owned global shared\nptr: marks repeats\ni64: framed bounds")
assert FILTER.offset("bounds") + 2 * SPACE_GENERIC * BOUND.size == FILTER.size
#: What an observer keeps of the bytes of a row, as `loop.filter_regions` answers: flags, or words that say who or when.
FLAGS_KEPT, OWNERS_KEPT = 1, 2
#: Flags of four bytes that are all set.
FLAGS_SET = 0x01010101
#: Accesses of a warp at constant distances, as a region asks about them. first0, first1: address of the first lane that
#: runs in each half, without the distance; number: of their BOUND; imms: count distances (i64). point0, point1: all
#: lanes of a half are at its first one's address; else each is a word behind the one before it. column0, column1:
#: numbers of the first lanes in their halves. complete: COMPLETE of the CTA, or null.
GROUP = structure(
    "group",
    64,
    "i64: first0 first1\ni32: active number count point0 point1 column0 column1\nptr: imms complete",
)
#: Whether all flags of a CTA's shared memory are known to be set; left: looks until all are looked at, pause: from the
#: last time to then.
COMPLETE = structure("complete", 16, "i32: known left pause")
#: What regions of a kernel in unison have found of STRETCHes, which nobody changes while native code runs: so many
#: rows, so far behind the context, all zeros when it begins; the last ones are of CTAs that run as a whole.
KNOWN_ROWS, KNOWN_WHOLE, KNOWN_OFFSET = 96, 32, 1024
#: Where accesses may lie that observers have nothing to say about, from a multiple of 4 on; flags: added to an address,
#: where its flags are, of shared memory from its start on, or 0; kept: what observers keep of its bytes.
STRETCH = structure("stretch", 32, "i64: first size flags\ni32: kept")
#: What an observer need not be told of again (`machine.repeats.Repeats`); addresses: the first of
#: 32, or an mbarrier's and the parity that is waited for.
REPEAT = structure("repeat", 8 * REPEAT_WORDS, "i64: key mask addresses parity")
#: Before the words that say who has touched a CTA's shared memory. came: threads that have come to the present
#: barrier; epoch: how many the whole CTA has passed. Words: `machine.residents`; those of global memory have no epoch.
OWNERS = structure("owners", 4 * residents.OWNERS_HEAD, "i32: came epoch")
#: Before the marks of what copies write to a CTA's shared memory. group0 and so on: for each warp, a byte, the group
#: that its copies belong to; commits, waited: of a warp, groups that it has closed, and those that it has waited for.
#: clock: counts fences and epochs; began: what it was when the present epoch began. Of each warp's fences of all its
#: lanes for the asynchronous proxy: fenced: when the epoch of the last one began; last: when that one was; before: when
#: the last one of an earlier epoch was. pipe, bulk, copy: up to which number a warp knows work of the planes
#: (`residents.PIPE`) to be complete; pipe_some …: what one lane knows. kept: groups of a warp up to this one have no
#: marks any more; those behind it, up to `waited`, are complete for their own warp alone. products: of wgmma a warp has
#: waited for when the epoch began. marked: where the number of marked bytes is. Words of when bytes were stored: clock
#: + 1, above the warp (`STORED_SHIFT`).
MARKED = structure(
    "marked",
    residents.MARKS_HEAD,
    """
    i64: group0 group1 group2 group3
    i32: clock began
    [32 x i32]: commits waited fenced last before
    [32 x i32]: pipe bulk copy pipe_some bulk_some copy_some kept products
    ptr: marked
    """,
)
STORED_SHIFT = residents.STORED_SHIFT
EPOCH_SHIFT = residents.EPOCH_SHIFT
WRITTEN_SHARED, SEVERAL_SHARED = residents.WRITTEN_SHARED, residents.SEVERAL_SHARED
ALIKE_SHARED = residents.ALIKE_SHARED
MOST_EPOCHS = (1 << 32 - EPOCH_SHIFT) - 1
WRITTEN_GLOBAL, SEVERAL_GLOBAL = -residents.WRITTEN_GLOBAL, residents.SEVERAL_GLOBAL
#: Atomics of a sort have written: the sort is added to one of these, which no thread's number reaches.
ATOMIC_SHARED, ATOMIC_GLOBAL = 1024, (1 << 31) - 66
#: Tables of a worker that one access can ask, as many as it has hints.
TABLES_ASKED = 8

#: The state of a gate, and a word that it watches: `machine.gates` has the fields.
GATE = structure(
    "gate",
    80,
    """
    i64: count until seen
    ptr: rows
    i32: follow x y z warp lanes watches
    i32: last_where last_x last_y last_z last_warp
    """,
)
WATCH = structure("watch", 24, "ptr: address\ni64: mask old")

#: The state of a log, and a row of it: `machine.logs` has the fields.
LOG = structure("log", 48, "ptr: rows\ni64: used room lost stride\ni32: cost")
LOG_ROW = structure(
    "logged",
    64,
    """
    i32: op warp lanes mask
    i64: time key cta
    i32: x y z sm rank external
    """,
)

#: A texture as `sampling` reads it. kinds: bits of the geometries that it fits, none where only the service knows what
#: to do; mode_*: numbers of txq.addr_mode; linear: filter; memory: it is linear memory; integers: fetches give them;
#: start, end: device addresses; then strides in bytes; border_*: values (f64); load_*: functions that load a channel of
#: eight lanes, null where there is none.
TEXTURE = structure(
    "tex",
    256,
    """
    i32: kinds levels linear normalized
    i32: mode_x mode_y mode_z
    i32: memory integers layers channel_bytes
    i32: width height depth
    i64: start end texel row plane layer
    i64: border_r border_g border_b border_a
    ptr: load_r load_g load_b load_a
    """,
)
#: What a fetch tells the code for its lanes: texels and the border's colour in host memory, address modes as they
#: count, whether coordinates are normalized.
LOOK = structure("look", 64, "ptr: data border\ni32: mode_x mode_y mode_z scaled")

_ALL = (
    CTX, PART, CTA, WARP, RECORD, FUNCTION, CONSTANT, EVENT, *PAYLOADS.values(), TABLE, KEPT, ISSUED, FILTER, BOUND,
    ROW, GROUP, COMPLETE, STRETCH, REPEAT, CLOCKS, MOMENT, JOINING, PHASED, USE, OWNERS, MARKED, GATE, WATCH, LOG,
    LOG_ROW, TEXTURE, LOOK,
)  # fmt: skip
STRUCTURES = {s.name: s for s in _ALL}


def located(name: str) -> tuple[ByteOffset, str]:
    """Offset and IR type of a field or pair by its full name, "warp.pc"."""
    structure, _, one = name.partition(".")
    return STRUCTURES[structure].field(one)


#: What a native service answers: the event is left to Python; done; others first, then again; done, and the lanes go on
#: as they do behind Python: no other gets a turn.
SERVED_NOT, SERVED_DONE, SERVED_LATER, SERVED_ON = range(4)

#: `ctx.status`: nothing more to do in this warp now; its slice is used up; trap; event; host memory to be mapped.
STATUS_IDLE, STATUS_SLICED, STATUS_TRAP, STATUS_EVENT, STATUS_HOST = range(5)
#: `ctx.status` behind a CTA that ran in unison: a single record is done; warps have turns one by one; some lanes of one
#: go on at `ctx.resume_ip`; all threads have exited; its slice is over; the clock has reached `alarm`.
STATUS_RETURNED, STATUS_TURNS, STATUS_LANES, STATUS_GONE, STATUS_EXPIRED, STATUS_ALARM = range(5, 11)

#: What the native loop answers.
RUN_FINISHED, RUN_QUANTUM, RUN_TRAP, RUN_EVENT, RUN_HOST, RUN_STUCK, RUN_ALARM, RUN_ENDED = range(8)
#: `ctx.resume`: exactly where an event stopped; with the next CTA; with the same one, for what its slice has left.
RESUME_EXACT, RESUME_NEXT, RESUME_SAME = 1, 2, 3

#: `ctx.stop_code` of a trap.
TRAP_INSTRUCTION, TRAP_ADDRESS, TRAP_MISALIGNED, TRAP_STACK, TRAP_BARRIER, TRAP_CALL, TRAP_SWITCH, TRAP_MEMBER = range(
    8
)

#: A block number no lane is ever at.
NOWHERE = 0xFFFFFFFF
