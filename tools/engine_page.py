"""The generated parts of docs/native-engine.md: tables of structures and statuses, and what becomes of a few kernels.

A part stands between `<!-- generated: name -->` and `<!-- end -->`; what is around it is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "native-engine.md"
STRUCTURES = ROOT / "ptxtools" / "native" / "code" / "structures.py"
_PART = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)

#: Constants of `native.code.structures`: what each says, and who answers it. A name that is missing here is an error.
STATUSES = {
    "STATUS_IDLE": ("no lane of the warp can run", "`run_cta`: takes the next warp"),
    "STATUS_SLICED": ("the warp's slice is used up; its group is stored", "`run_cta`: the next warp; if only "
                      "a part of this one ran, `rotate` lets another group run next time"),
    "STATUS_TRAP": ("lanes cannot go on; `stop_*` say which, where and why", "`run_cta`: answers RUN_TRAP"),
    "STATUS_EVENT": ("lanes came to an event that native code leaves to Python", "`run_cta`: answers RUN_EVENT"),
    "STATUS_HOST": ("`ptx_run`: an address is in no range known so far", "`run_cta`: answers RUN_HOST"),
    "STATUS_RETURNED": ("records that a kernel in unison has called are done", "its function: goes on"),
    "STATUS_TURNS": ("warps cannot run in unison now", "`run_cta`: gives them turns one by one"),
    "STATUS_LANES": ("in unison, lanes of one warp came to what records have to do", "`run_cta`: goes on at "
                     "`resume_ip`, the rest of the round after that"),
    "STATUS_GONE": ("all threads of a CTA have exited in unison", "`run_cta`: answers -2, as always"),
    "STATUS_EXPIRED": ("the slice of a CTA is over in unison", "`run_cta`: answers -1, as always"),
    "STATUS_ALARM": ("the clock has reached `alarm` in unison", "`run_cta`: answers RUN_ALARM"),
    "RUN_FINISHED": ("the grid has no cluster left for this worker", "`Worker.step`: done"),
    "RUN_QUANTUM": ("the quantum is used up", "the driver: looks at limits and Ctrl-C, and calls again"),
    "RUN_TRAP": ("as STATUS_TRAP", "`loop.faults`: raises `Trap`"),
    "RUN_EVENT": ("as STATUS_EVENT", "`Worker._serve`: calls the service of the operation's kind"),
    "RUN_HOST": ("as STATUS_HOST", "`Worker._open_range`: maps the range, or a trap"),
    "RUN_STUCK": ("no warp of the current cluster can run", "`Worker._stuck`: does what is due, lets others run, moves "
                  "virtual time on, or raises `Hang`: a deadlock"),
    "RUN_ALARM": ("the clock has reached `alarm`", "`Schedule.run_due`: work that is due, sleepers that wake"),
    "RUN_ENDED": ("a CTA known to Python has ended", "`Residents.ended`"),
    "RESUME_EXACT": ("go on after the event, with `resume_mask`, in the same slice", "`run_cta`"),
    "RESUME_NEXT": ("go on with another CTA", "`run_ctas`"),
    "RESUME_SAME": ("go on with the same CTA", "`run_ctas`"),
    "SERVED_NOT": ("a native service leaves the event to Python", "`t_event`: STATUS_EVENT"),
    "SERVED_DONE": ("the event is done", "`t_event`: goes on after it"),
    "SERVED_ON": ("it is done; nobody else gets a turn", "`t_event`: as behind Python"),
    "SERVED_LATER": ("the lanes have to wait a little", "`t_event`: other lanes and warps first, then the event again"),
    "TRAP_INSTRUCTION": ("the instruction `trap`", ""),
    "TRAP_ADDRESS": ("memory that is not there: `stop_address`", ""),
    "TRAP_MISALIGNED": ("an address that is not a multiple of the access's size", ""),
    "TRAP_STACK": ("no room for another frame", ""),
    "TRAP_BARRIER": ("a barrier's number or thread count is impossible", ""),
    "TRAP_CALL": ("an indirect call of an address of no function", ""),
    "TRAP_SWITCH": ("`brx.idx` beyond its list", ""),
    "TRAP_MEMBER": ("a lane outside its own member mask", ""),
}  # fmt: skip

_HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
#: Kernels that the page follows.
KERNELS = {
    "add": """.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    add.u32 %r3, %r1, %r2;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
""",
    "branch": """.visible .entry k(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    activemask.b32 %r3;
    bra DONE;
EVEN:
    activemask.b32 %r4;
    not.b32 %r3, %r4;
DONE:
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
""",
    "barrier": """.visible .entry k(.param .u64 out)
{
    .shared .align 4 .b32 last;
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 63;
    @%p1 st.shared.u32 [last], %r1;
    bar.sync 0;
    ld.shared.u32 %r2, [last];
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
""",
    "bulk": """.visible .entry k(.param .u64 from, .param .u64 out)
{
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 full;
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [from];
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [full], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 1024, [full];
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
    @!%p1 bra AGAIN;
    ld.shared.u32 %r1, [tile + 1020];
    ld.param.u64 %rd3, [out];
    st.global.u32 [%rd3], %r1;
    ret;
}
""",
    "wgmma": """.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)
{
    .shared .align 128 .b8 tiles[4096];
    .reg .f32 %f<4>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tiles;
    mad.lo.u32 %r2, %r1, 16, %r2;
    mov.b32 %r3, 0x3c003c00;
    st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};
    st.shared.v4.b32 [%r2 + 2048], {%r3, %r3, %r3, %r3};
    fence.proxy.async;
    bar.sync 0;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.param.u64 %rd3, [out];
    mul.wide.u32 %rd4, %r1, 4;
    add.u64 %rd5, %rd3, %rd4;
    st.global.f32 [%rd5], %f0;
    ret;
}
""",
}


def page() -> str:
    """The page with its generated parts."""
    return _PART.sub(lambda found: f"{found[1]}{_part(found[2])}{found[3]}", PAGE.read_text("utf-8"))


def _part(name: str) -> str:
    from ptxtools.native.code import structures

    kind, _, what = name.partition(" ")
    if kind == "structure":
        return structure(getattr(structures, what))
    if kind == "statuses":
        return statuses(what)
    if kind == "text":
        return f"```ptx\n{KERNELS[what]}```\n"
    if kind == "operations":
        return f"```text\n{chr(10).join(operations(_program(what)))}\n```\n"
    assert kind == "records", name
    return f"```text\n{chr(10).join(records(_program(what)))}\n```\n"


# --- structures and statuses ------------------------------------------------------------------------------------------


def structure(one: Any) -> str:
    """A structure's remarks, and its fields by offset; neighbours of one type share a row."""
    rows: list[tuple[int, str, list[str]]] = []
    for name, (offset, type_) in one.fields.items():
        if rows and rows[-1][1] == type_:
            rows[-1][2].append(name)
        else:
            rows.append((offset, type_, [name]))
    lines = [_remarks(one), f"| from byte | type | fields ({one.size} bytes in all) |", "|---|---|---|"]
    lines += [f"| {offset} | `{type_}` | {' '.join(f'`{name}`' for name in names)} |" for offset, type_, names in rows]
    return "\n".join([*(line for line in lines if line != ""), ""]).replace("\n| from", "\n\n| from", 1)


def _remarks(one: Any) -> str:
    """The comment above a structure as a list: what it says of each field, or of several together."""
    text = STRUCTURES.read_text("utf-8")
    found = re.search(rf'((?:^#: .*\n)+)^[A-Z]+ = structure\(\s*"{one.name}"', text, re.MULTILINE)
    assert found is not None, one.name
    remarks = " ".join(found[1].replace("#: ", "").split())
    parts = re.split(r"(?<=\.) (?=[a-z])|; (?=[a-z][\w*]*(?:, [\w*]+)*: )", remarks)
    return "\n".join(f"- {re.sub(r'^([a-z][^ :]*(?:, [^ :]+)*):', _as_code, part).removesuffix('.')}" for part in parts)


def _as_code(names: re.Match[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[1].split(", ")) + ":"


def statuses(prefix: str) -> str:
    """The constants of one kind, in their order, with what they say and who answers."""
    from ptxtools.native.code import structures

    known = {name: value for name, value in vars(structures).items() if name.startswith(f"{prefix}_")}
    assert known.keys() == {name for name in STATUSES if name.startswith(f"{prefix}_")}, f"{prefix}: {sorted(known)}"
    answered = any(STATUSES[name][1] for name in known)
    lines = ["| number | name | says |" + " answered by |" * answered, "|---|---|---|" + "---|" * answered]
    for name, value in sorted(known.items(), key=lambda item: item[1]):
        says, who = STATUSES[name]
        lines.append(f"| {value} | `{name}` | {says} |" + f" {who} |" * answered)
    return "\n".join([*lines, ""])


# --- kernels ----------------------------------------------------------------------------------------------------------


def module(name: str) -> str:
    """The text of one of `KERNELS` as a module."""
    return _HEAD + KERNELS[name]


def _program(name: str) -> Any:
    from ptxtools.program.lowering import lower
    from ptxtools.syntax import parse

    result = parse(module(name), f"{name}.ptx")
    assert not result.diagnostics
    return lower(result.module, "k", lambda variable: 0x10000)


def operations(program: Any) -> Iterator[str]:
    """The blocks of a program: destinations, kind and opcode, sources; slots by storage class and offset."""
    for number, block in enumerate(program.blocks):
        yield f"block {number}"
        for op in block.ops:
            yield f"    {_operation(op)}"
        end = block.terminator
        extra = f"  {_operation(end.op)}" if end.op is not None else ""
        targets = " ".join(f"{what} {place}" for what, place in (("to", end.target), ("then", end.other)) if place >= 0)
        yield f"    [{end.kind}] {_guard(end)}{targets}{extra}".rstrip()
    constants = [(slot, type_, value) for slot, type_, value in program.functions[0].constants]
    for slot, type_, value in constants:
        yield f"constant {type_}@{slot} = {value:#x}"
    for constant in program.functions[0].launch_constants:
        yield f"constant {constant.storage}@{constant.slot} = {constant.source} {constant.name} + {constant.offset}"


def _operation(op: Any) -> str:
    opcode = f" {op.opcode.text}" if op.opcode is not None else ""
    into = f"{_refs(op.dst)} = " if op.dst else ""
    imm = f" +{op.imm}" if op.imm else ""
    detail = f"  {op.detail!r}" if op.detail is not None and op.kind == "sreg" else ""
    return f"{_guard(op)}{into}{op.kind}{opcode} {_refs(op.src)}{imm}{detail}".rstrip()


def _guard(one: Any) -> str:
    return "" if one.guard is None else f"@{'!' * one.negated}{_refs((one.guard,))} "


def _refs(refs: Any) -> str:
    return ", ".join("-" if ref is None else f"{ref.type}@{ref.slot}" for ref in refs)


def records(program: Any) -> Iterator[str]:
    """The records of a program as the native loop reads them; symbols instead of addresses."""
    from ptxtools.native.code import encode, generate, keys, library, structures

    def numbered(handlers: dict[str, Any]) -> dict[str, int]:
        return {name: number for number, name in enumerate([library.BASE, *generate.base_symbols(), *handlers], 1)}

    with patch.object(library, "early", lambda handlers, *_: (numbered(handlers), [])):
        encoder = encode._Encoder(program, False, False, "hopper")
        encoded = encoder.encode()
    names = {number: name for name, number in numbered(encoder.handlers).items()}
    width = max(len(_short(name)) for name in names.values()) + 1
    read = structures.RECORD.read
    starts = list(encoder.starts)
    yield f"{'record':>6}  {'block':>5}  {'handler':{width}}{'s0…':28}{'guard':>6}{'extra':>6}  imm"
    for number in range(len(encoded.code) // keys.RECORD_BYTES):
        at = number * keys.RECORD_BYTES
        row = {name: read(encoded.code, at, name) for name in structures.RECORD.fields}
        slots = [row[f"s{i}"] for i in range(keys.OPERANDS_PER_RECORD)]
        while slots and not slots[-1]:
            slots.pop()
        name = names.get(row["handler"], "(more operands)")
        imm = "its cell" if name == "t_event" else str(_signed(row["imm"], 64))
        block = str(2 * starts.index(number)) if number in starts else ""
        words = " ".join(str(_signed(slot, 32)) for slot in slots)
        yield f"{number:6}  {block:>5}  {_short(name):{width}}{words:28}{row['guard']:6}{row['extra']:6}  {imm}"


def _short(name: str) -> str:
    """A handler's symbol without its digest."""
    return re.sub(r"_[0-9a-f]{16}$", "", name)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
