"""The table of operations: for each kind, what executes it, its operands, its effects, and what observers see.

Passes, engines and observers use this table. A new kind is a row here, the function that lowers an instruction to it,
and what runs it: an executor in `reference` and an emitter in `native` (`BLOCK`), or a function of `machine.events`
(`EVENT`). Tests fail for a row that nothing runs, for what runs without a row, and for an operation that is not as its
row says.

How strong an access is, and in which scope, is written on its opcode: `strength` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.records import NamedTuple

from .details import (
    Action,
    Ahead,
    Called,
    Callee,
    Constant,
    Counted,
    Detail,
    Groups,
    Guard,
    HostMemory,
    Look,
    MatrixProduct,
    Measured,
    Meeting,
    Multicast,
    NamedOperands,
    RegisterChange,
    Run,
    SourceNames,
    SpecialRegister,
    StackMove,
    Suffixes,
    TexturePlace,
    ThreadCopy,
    Touch,
    Truncated,
    Unison,
)

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

    from .program import Block, Op, Program

#: Who runs an operation. BLOCK: stands in a block; a native handler and a reference executor. BARRIER: of a "barrier"
#: terminator. EVENT: of an "event" terminator; a function of `machine.events` serves it in both engines. NATIVE: made
#: by the native engine for itself. MARK: nobody; it stands in a block until `passes.instrument` has been there.
BLOCK, BARRIER, EVENT, NATIVE, MARK = "block", "barrier", "event", "native", "mark"

_MBARRIER = frozenset(
    {
        *("init", "inval", "expect_tx", "complete_tx", "arrive", "arrive.expect_tx", "arrive.noComplete"),
        *("arrive_drop", "arrive_drop.expect_tx", "arrive_drop.noComplete"),
        *("test_wait.state", "test_wait.parity", "try_wait.state", "try_wait.parity"),
    }
)
_REDUCTIONS = frozenset({"popc", "and", "or"})


class Operation(NamedTuple):
    """One kind of operation.

    runs: see above. dst, src: its operands, words apart: a name, with `?` where it may be missing (None), `*` where
    there are any number of it, `*?` for both; `…` for whatever the detail names.
    access: what it does to memory at the address src[0] + imm in the space of `Op.space`: "read", "write", "atomic",
    "copy" (read there, written at src[1] in shared memory) or "". asynchronous: its work reaches memory through the
    asynchronous proxy, which sees what threads have written only behind a fence (8.6).
    pure: nothing happens beyond its destinations, so that it may be dropped when nobody reads those, and runs for
    lanes that do not need it. early: all sources are read before a destination is written. lanewise: it maps slots to
    slots, lane by lane. warp: the lanes of a warp do it together.
    waits: lanes may stay at it until something happens.
    seen: what an observer is shown of it: "access", "copy", "barrier", "cluster", "mbarrier", "arrive on mbarrier",
    "fence" or "". The functions that serve surfaces, multimem and st.bulk tell of their accesses themselves.
    multiplies: tensor cores add products.
    resumes: another operation has begun it, so that observers see its end alone.
    detail: types that `Op.detail` may have; None among them: it may have none. actions: names of an `Action`.
    """

    runs: str
    dst: str = ""
    src: str = ""
    access: str = ""
    asynchronous: bool = False
    pure: bool = False
    early: bool = False
    lanewise: bool = False
    warp: bool = False
    waits: bool = False
    seen: str = ""
    multiplies: bool = False
    resumes: bool = False
    detail: tuple[type[Detail] | None, ...] = (None,)
    actions: frozenset[str] = frozenset()


def _memory(dst: str, src: str, access: str) -> Operation:
    return Operation(BLOCK, dst, src, access, seen="access", detail=(None, HostMemory))


def _together(dst: str, src: str) -> Operation:
    return Operation(BLOCK, dst, src, warp=True)


def _tensor(
    *, waits: bool = False, warp: bool = False, asynchronous: bool = False, multiplies: bool = False
) -> Operation:
    return Operation(
        EVENT, "…", "…", asynchronous=asynchronous, warp=warp, waits=waits, multiplies=multiplies,
        detail=(NamedOperands,),
    )  # fmt: skip


def _bulk(*, asynchronous: bool = False) -> Operation:
    return Operation(EVENT, "", "…", asynchronous=asynchronous, detail=(SourceNames,))


def _texture(dst: str, src: str, detail: type[Detail] | None = TexturePlace) -> Operation:
    return Operation(EVENT, dst, src, detail=(detail,))


def _look(src: str, detail: type[Detail], dst: str = "") -> Operation:
    return Operation(EVENT, dst, src, detail=(detail,))


OPERATIONS: dict[str, Operation] = {
    # outputs = semantics of the opcode over the inputs
    "alu": Operation(BLOCK, "result*?", "value*", pure=True, early=True, lanewise=True,
                     detail=(None, Constant, Suffixes, Truncated)),
    "copy": Operation(BLOCK, "result", "value", pure=True, early=True, lanewise=True),  # no arithmetic, no type
    "sreg": Operation(BLOCK, "result", "", pure=True, early=True, detail=(SpecialRegister,)),
    # mov between a vector and a wider scalar: element 0 in the lowest bits
    "pack": Operation(BLOCK, "result?", "value*", pure=True, lanewise=True),
    "unpack": Operation(BLOCK, "result*?", "value", pure=True, lanewise=True),
    # memory: no address value: the constant is the whole address; a value that is None is not stored
    "ld": _memory("result*?", "address?", "read"),
    "st": _memory("", "address? value*?", "write"),
    "atom": _memory("result*?", "address? value*", "atomic"),
    "red": _memory("", "address? value*", "atomic"),
    "cp.async": Operation(BLOCK, "", "source? target rule*", "copy", seen="copy", detail=(ThreadCopy,)),
    "fence": Operation(BLOCK, "", "map*", seen="fence"),
    # warp-wide: the last source of `.sync` forms is the member mask, for which a "warpsync" stands before
    "shfl": _together("result? taken*?", "value lane clamp mask*"),
    "vote": _together("result?", "predicate mask*"),
    "match": _together("result? same*?", "value mask"),
    "redux": _together("result?", "value mask"),
    "activemask": _together("result?", ""),
    "elect": _together("leader? elected?", "mask"),
    "mma": Operation(BLOCK, "d*?", "value*", warp=True, multiplies=True, detail=(MatrixProduct,)),
    "ldmatrix": Operation(BLOCK, "result*?", "address?", "read", warp=True, seen="access"),
    "stmatrix": Operation(BLOCK, "", "address? value*", "write", warp=True, seen="access"),
    "movmatrix": _together("result?", "value"),
    # what it can do at once; its last destination are the lanes that "mbarrier.slow" has to serve
    "mbarrier": Operation(BLOCK, "result*? slow", "address? value*?", seen="mbarrier", detail=(Action,),
                          actions=_MBARRIER),
    "mbarrier.slow": Operation(EVENT, "result*?", "address? value*?", waits=True, seen="mbarrier",
                               resumes=True, detail=(Action,), actions=_MBARRIER),
    "mbarrier.yield": Operation(BLOCK),  # others have their turn
    "bar": Operation(BARRIER, "result*?", "number count? predicate?", waits=True, seen="barrier",
                     detail=(Action,), actions=_REDUCTIONS | {"sync", "arrive"}),
    "cluster_barrier": Operation(BARRIER, waits=True, seen="cluster", detail=(Action,),
                                 actions=frozenset({"arrive", "wait"})),
    "discard": Operation(EVENT, "", "address"),
    "nanosleep": Operation(EVENT, "", "nanoseconds", waits=True),
    "syscall": Operation(EVENT, "result*?", "argument*", detail=(Callee,)),
    "setmaxnreg": Operation(EVENT, waits=True, detail=(RegisterChange,)),
    "stack": Operation(EVENT, "result*?", "value*", detail=(StackMove,)),
    "multimem": Operation(EVENT, "result*?", "address? value*"),
    # copies of single threads that may complete late
    "async.copy": Operation(EVENT, "", "source? target rule*", "copy", seen="copy", detail=(ThreadCopy,)),
    "async.copy.group": Operation(EVENT, waits=True, detail=(Groups,)),
    "async.copy.arrive": Operation(EVENT, "", "address?", seen="arrive on mbarrier"),
    "async.store": _bulk(),
    "bulk.clear": _bulk(),
    "bulk.copy": _bulk(asynchronous=True),
    "bulk.tensor": _bulk(asynchronous=True),
    "bulk.group": Operation(EVENT, waits=True, detail=(Groups,)),
    "tensormap.replace": _bulk(),
    "tensormap.copy": _bulk(),
    "clusterlaunchcontrol.try_cancel": Operation(EVENT, "", "response barrier", asynchronous=True,
                                                 detail=(Multicast,)),
    "spcompress": _tensor(),
    "spdecompress": _tensor(),
    "wgmma.mma_async": _tensor(warp=True, asynchronous=True, multiplies=True),
    "wgmma.commit_group": _tensor(warp=True),
    "wgmma.wait_group": _tensor(waits=True, warp=True),
    "tcgen05.alloc": _tensor(waits=True, warp=True),
    "tcgen05.dealloc": _tensor(warp=True),
    "tcgen05.relinquish_alloc_permit": _tensor(warp=True),
    "tcgen05.ld": _tensor(warp=True),
    "tcgen05.st": _tensor(warp=True),
    "tcgen05.wait": _tensor(waits=True, warp=True),
    "tcgen05.mma": _tensor(asynchronous=True, multiplies=True),
    "tcgen05.cp": _tensor(asynchronous=True),
    "tcgen05.shift": _tensor(),
    "tcgen05.commit": _tensor(),
    "tex": _texture("result*?", "texture sampler? value*"),
    "tld4": _texture("result*?", "texture sampler? value*"),
    "txq": _texture("result?", "texture level*", None),
    "suq": _texture("result?", "surface level*", None),
    "istypep": _texture("result?", "handle", None),
    "suld": _texture("result*?", "surface sampler? value*"),
    "sust": _texture("", "surface sampler? value*"),
    "sured": _texture("", "surface sampler? value*"),
    # what `passes.instrument` puts around operations for observers
    "observe.access": _look("address? guard? value*?", Look, "allowed*"),
    "observe.fetch": _look("address? guard? value*?", Look),
    "observe.ahead": _look("address? guard?", Ahead, "allowed"),
    "observe.arrive": _look("number? count? guard?", Meeting),
    "observe.leave": _look("number? count? guard?", Meeting),
    "observe.fence": _look("number? count? guard?", Meeting),
    "observe.together": _look("guard? value*?", Guard),
    "observe.control": _look("guard? value*?", Guard),
    "observe.branch": _look("guard", Guard),
    "observe.unwritten": _look("guard? value*?", Touch),
    "observe.in_flight": _look("guard? value*?", Touch),
    "observe.line": _look("guard?", Guard),
    "observe.retired": _look("", Guard),
    "observe.call": _look("address?", Called),
    "observe.return": _look("guard?", Guard),
    "observe.begin": _look("", Guard),
    "observe.exit": _look("guard?", Guard),
    "observe.group": _look("", Groups),
    # they add to rows of `Program.counters`
    "count": Operation(BLOCK, detail=(Counted,)),
    "measure": Operation(BLOCK, "", "address?", detail=(Measured,)),
    # where the lines of a program begin and end that keeps them; `passes.instrument` takes them out
    "line": Operation(MARK, detail=(Guard,)),
    "line.end": Operation(MARK, detail=(Guard,)),
    # of the native engine
    "run": Operation(NATIVE, detail=(Run,)),
    "unison": Operation(NATIVE, detail=(Unison,)),
    "barrier_result": Operation(NATIVE, "result?", "number", detail=(Action,), actions=_REDUCTIONS),
}  # fmt: skip

#: They may be dropped when nobody reads what they write.
PURE = frozenset(kind for kind, row in OPERATIONS.items() if row.pure)
#: A result may take a dying source's slot.
READ_FIRST = frozenset(kind for kind, row in OPERATIONS.items() if row.early)
#: Slots to slots, lane by lane.
LANEWISE = frozenset(kind for kind, row in OPERATIONS.items() if row.lanewise)
#: Across lanes; all of the warp do it together in registers, if all are there.
ACROSS = frozenset({"shfl", "vote", "redux", "activemask"})
#: What lanes of a warp do together with values of their registers.
MEETINGS = frozenset({"shfl", "vote", "match", "redux"})
#: Texture fetches.
FETCHES = frozenset({"tex", "tld4"})
#: Accesses to surfaces.
SURFACES = frozenset({"suld", "sust", "sured"})
#: What asynchronous work comes from; nothing else announces any.
ISSUES = frozenset(
    kind for kind, row in OPERATIONS.items()
    if row.runs == EVENT
    and kind.startswith(("async.", "bulk.", "tensormap.", "clusterlaunchcontrol.", "wgmma.", "tcgen05."))
)  # fmt: skip
#: cp.async and its groups where they complete late; in a first look of observers copies are complete at once.
LATE_COPIES = frozenset({"async.copy", "async.copy.group"})
#: Work of tensor cores, and what waits for it.
TENSOR_CORES = frozenset(
    {"wgmma.mma_async", "wgmma.commit_group", "wgmma.wait_group"}
    | {f"tcgen05.{name}" for name in ("alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait", "mma", "cp",
                                      "shift", "commit")}
)  # fmt: skip
#: Copies and stores that single threads begin, and what tells mbarriers of them; waits for groups of them.
THREAD_COPIES = frozenset({"cp.async", "async.copy", "async.copy.arrive", "async.store", "bulk.copy"})
GROUP_WAITS = frozenset({"async.copy.group", "bulk.group"})
#: Bulk and tensor copies, and their groups.
BULK_COPIES = frozenset({"bulk.copy", "bulk.tensor", "bulk.group"})
#: Work that tcgen05.commit tells of, and all that somebody must wait for.
COMMITTED = frozenset({"tcgen05.mma", "tcgen05.cp", "tcgen05.shift"})
AWAITED = COMMITTED | {
    "async.copy", "async.store", "bulk.copy", "bulk.tensor", "clusterlaunchcontrol.try_cancel", "wgmma.mma_async",
    "tcgen05.ld", "tcgen05.st",
}  # fmt: skip
#: They only make a warp wait.
PAUSES = frozenset({"nanosleep", "setmaxnreg"})
#: What Python serves that changes nothing but memory, mbarriers among it, and what it gives back.
SERVED = (
    TENSOR_CORES | BULK_COPIES | PAUSES | LATE_COPIES
    | {"async.copy.arrive", "async.store", "clusterlaunchcontrol.try_cancel", "mbarrier.slow", "istypep"}
)  # fmt: skip
#: Events with the addresses of an access.
ADDRESSED = frozenset({"observe.access", "observe.fetch"})
#: Looks at accesses: at each, and at those of the rounds of a loop ahead.
ACCESS_LOOKS = frozenset({"observe.access", "observe.ahead"})
#: Accesses that threads make one by one.
SINGLE_ACCESSES = frozenset({"ld", "st", "atom", "red"})
#: Those that read or write, and no more.
PLAIN_ACCESSES = frozenset({"ld", "st"})
#: They count what others do, and are no work of the kernel.
COUNTS = frozenset({"count", "measure"})
#: Accesses to memory by single lanes, each at its own address, that are done when they have run.
LANE_ACCESS = frozenset(
    kind for kind, row in OPERATIONS.items() if row.access in ("read", "write", "atomic") and not row.warp
)


class Ending(NamedTuple):
    """One kind of terminator (`program.Terminator`). waits: lanes can wait at its block's number, so that the block has
    no operations. returns: it leaves the function for a while or for good: slots of other frames are read behind it."""

    waits: bool = False
    returns: bool = False


ENDINGS: dict[str, Ending] = {
    "jump": Ending(), "branch": Ending(), "switch": Ending(), "exit": Ending(), "trap": Ending(), "brkpt": Ending(),
    "ret": Ending(returns=True), "call": Ending(returns=True), "barrier": Ending(),
    "warpsync": Ending(waits=True), "event": Ending(waits=True),
}  # fmt: skip

#: Modifiers of accesses that take part in synchronisation instead of racing (8.4).
_STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
#: Spaces that `fence.proxy.async` names, where it does not mean all of them (9.7.13.4).
_FENCED = ("shared", "global")


def multiplies(program: Program) -> bool:
    """Whether tensor cores add products in it."""
    found: bool | None = program.cache.get("multiplies")
    if found is None:
        kinds = {op.kind for block in program.blocks for op in (*block.ops, block.terminator.op) if op is not None}
        found = program.cache["multiplies"] = any(OPERATIONS[kind].multiplies for kind in kinds)
    return found


def weight(block: Block, number: int) -> int:
    """Instructions that block `number` counts as for each of its lanes."""
    end = block.terminator
    counts = sum(op.kind in COUNTS for op in block.ops)
    return len(block.ops) - counts + (end.kind != "jump" or end.target <= number)


def strength(opcode: Opcode | None) -> str:
    """Order of an access: its modifier ("relaxed", "acquire", …), "" for a weak one (8.4)."""
    return "" if opcode is None else next((word for word in _STRONG if opcode.has(word)), "")


def fenced(opcode: Opcode | None) -> tuple[str, ...]:
    """Spaces in which a fence is one between threads and the asynchronous proxy: fence.proxy.async (9.7.13.4)."""
    if opcode is None or not opcode.has("proxy"):
        return ()
    words = {atom.partition("::")[0] for atom in opcode.atoms}
    return tuple(space for space in _FENCED if space in words) or _FENCED if "async" in words else ()


def access_bytes(op: Op) -> int:
    """Bytes of one lane's access; a matrix is rows of 16 (9.7.14.5.15)."""
    from ptxtools.semantics.types import bits_of  # not needed to run a stored program

    if isinstance(op.detail, ThreadCopy):
        return op.detail.size
    if OPERATIONS[op.kind].warp:
        return 16
    return sum(max(1, bits_of(type_) // 8) for type_ in op.dst_types or op.src_types[1:])


def access_lanes(op: Op) -> int:
    """The number of lanes whose addresses count; for matrices of a warp, one for each row (9.7.14.5.15)."""
    if not OPERATIONS[op.kind].warp or op.opcode is None:
        return 32
    matrices = next((n for n in (1, 2, 4) if op.opcode.has(f"x{n}")), 4)
    return min(32, matrices * (16 if op.opcode.has("m16n16") else 8))


# --- whether operations are as their rows say -------------------------------------------------------------------------


def wrong(op: Op) -> str:
    """How an operation deviates from the table; "" if it does not."""
    row = OPERATIONS.get(op.kind)
    if row is None:
        return f"'{op.kind}' has no row"
    detail = None if op.detail is None else type(op.detail)
    if detail not in row.detail:
        return f"'{op.kind}' has a detail of type {'None' if detail is None else detail.__name__}"
    if isinstance(op.detail, Action) and op.detail.name not in row.actions:
        return f"'{op.kind}' has no action '{op.detail.name}'"
    for name, pattern, refs in (("destinations", row.dst, op.dst), ("sources", row.src, op.src)):
        if not _fits(pattern.split(), [ref is None for ref in refs]):
            return f"'{op.kind}' has {len(refs)} {name}; '{pattern}' is expected"
    return ""


def _fits(words: list[str], missing: list[bool]) -> bool:
    """Whether operands, present or missing, match the words."""
    if not words:
        return not missing
    word, rest = words[0], words[1:]
    if word == "…":
        return True
    if "*" in word:
        most = len(missing)
        return any(
            _fits(rest, missing[count:]) for count in range(most, -1, -1) if "?" in word or not any(missing[:count])
        )
    return bool(missing) and (not missing[0] or "?" in word) and _fits(rest, missing[1:])


def mistakes(program: Program) -> list[str]:
    """Deviations of a program from the tables: none, unless lowering or a pass is wrong."""
    found = []
    for number, block in enumerate(program.blocks):
        end = block.terminator
        ops = [(op, BLOCK) for op in block.ops]
        if end.op is not None:
            ops.append((end.op, end.kind))
        for op, place in ops:
            reason = wrong(op)
            if not reason and OPERATIONS[op.kind].runs not in ((place, MARK) if place == BLOCK else (place,)):
                reason = f"'{op.kind}' stands in a {place}"
            if reason:
                found.append(f"block {number}: {reason}")
        if end.kind not in ENDINGS:
            found.append(f"block {number}: terminator '{end.kind}' has no row")
        elif block.ops and ENDINGS[end.kind].waits and (end.op is None or OPERATIONS[end.op.kind].waits):
            found.append(f"block {number}: operations before '{end.kind}'")
    return found
