"""memcheck and leakcheck: addresses outside of allocations, and blocks that nobody frees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics.findings import Finding
from ptxtools.observe.leakcheck import leaks

from .programs import HEAD, HEAP, module, run

ENGINES = ("native", "reference")
PRINT = Path(__file__).parents[2] / "testdata" / "syscalls" / "print.ptx"
DATA = Path(__file__).parents[2] / "testdata" / "checkers"


def found(body: str, checks: str = "memcheck", **how) -> list[Finding]:
    """What memcheck reports of a kernel."""
    result = run(body, checks, **how)
    assert all(finding.checker == "memcheck" for finding in result.reports)
    return result.reports


def one(body: str, **how) -> Finding:
    (finding,) = found(body, **how)
    return finding


@pytest.mark.parametrize("engine", ENGINES)
def test_one_element_behind_a_buffer(engine: str) -> None:
    finding = one("mad.wide.u32 %b, %i, 4, %a;\n st.global.u32 [%b+4], %i;", threads=32, words=32, engine=engine)
    assert finding.message == "global write of 4 bytes at 0x10000080 is out of bounds"
    assert finding.details == ("argument 0 (a), right after its end: 128 bytes at 0x10000000",)
    assert finding.thread == (31, 0, 0) and finding.line == 10 and finding.text == "st.global.u32 [%b+4], %i"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_run_goes_on_after_an_error(engine: str) -> None:
    """Bad lanes make no access: reads give poison, memory stays as it is, and the others do their work."""
    body = """mad.wide.u32 %b, %i, 4, %a; setp.lt.u32 %p, %i, 40;
    mov.u32 %r0, 7;
    @%p ld.global.u32 %r0, [%b];
    @!%p add.u64 %b, %a, 8;
    @!%p st.global.u16 [%b+3], 1;
    mad.wide.u32 %b, %i, 4, %a;
    atom.global.add.u32 %r1, [%b], 0;
    st.global.v2.u32 [%a+128], {%r0, %r1};
    @%p st.global.u32 [%b], %r0;"""
    device = ptxtools.Device(engine=engine, checks="memcheck")
    words = np.arange(32, dtype=np.uint32)
    result = device.launch(module(body)["k"], 1, 64, [words])
    said = sorted(f"{f.line}: {f.message.partition(' at 0x')[0]} ({f.count})" for f in result.reports)
    assert said == [
        "11: global read of 4 bytes (1)", "13: global write (1)", "15: global atomic of 4 bytes (1)",
        "16: global write of 8 bytes (2)", "17: global write of 4 bytes (1)",
    ]  # fmt: skip
    assert words.tolist() == list(range(32))


def test_what_a_skipped_read_gives() -> None:
    device = ptxtools.Device(checks="memcheck")
    out = np.zeros(4, np.uint32)
    device.launch(module("ld.global.u32 %r0, [%a+-4]; st.global.u32 [%a], %r0;")["k"], 1, 1, [out])
    assert out[0] == 0xFFFD_FFFD


@pytest.mark.parametrize("engine", ENGINES)
def test_check_stop(engine: str) -> None:
    device = ptxtools.Device(engine=engine, checks="memcheck", check_stop=True)
    with pytest.raises(ptxtools.Trap, match="argument 0 \\(a\\), 4 bytes past its end") as caught:
        device.launch(module("st.global.u32 [%a+8], 1; trap;")["k"], 1, 1, [np.zeros(1, np.uint32)])
    assert caught.value.kind == "memcheck"


def test_a_loop_that_can_never_end_does() -> None:
    """A list walked through memory that is not there."""
    with pytest.raises(ptxtools.Trap, match="10,000 accesses of warps were bad"):
        run(
            "A: ld.global.u64 %b, [%a+8000]; add.u32 %r0, %r0, 1; st.global.u32 [%a], %r0;\n"
            "setp.ne.u64 %p, %b, 0; @%p bra A;",
            "memcheck",
            threads=1,
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_callers_and_callees_keep_their_arguments(engine: str) -> None:
    """Looks that leave lanes out take room in each frame, behind which the values for callees lie."""
    outer = """.func (.param .b32 r) twice (.param .b32 x, .param .b64 p) { .reg .b32 %x; .reg .b64 %p;
    ld.param.b32 %x, [x]; ld.param.b64 %p, [p]; st.global.u32 [%p+4096], %x; shl.b32 %x, %x, 1;
    st.param.b32 [r], %x; ret; }
"""
    body = """{ .param .b32 x; .param .b64 p; .param .b32 r; st.param.b32 [x], %i; st.param.b64 [p], %a;
    call (r), twice, (x, p); ld.param.b32 %r0, [r]; } mad.wide.u32 %b, %i, 4, %a; st.global.u32 [%b], %r0;"""
    device = ptxtools.Device(engine=engine, checks="memcheck")
    out = np.zeros(64, np.uint32)
    result = device.launch(module(body, outer=outer)["k"], 1, 64, [out])
    assert [f.line for f in result.reports] == [6] and result.reports[0].count == 2
    assert out.tolist() == list(range(0, 128, 2))


def test_before_a_buffer_and_between_two() -> None:
    device = ptxtools.Device(checks="memcheck")
    first, second = device.alloc(100), device.alloc(100)
    kernel = module("ld.global.u8 %r0, [%a];")["k"]
    assert device.launch(kernel, 1, 1, [second + 99]).reports == []

    def told(address: int) -> str:
        (finding,) = device.launch(kernel, 1, 1, [address]).reports
        return f"{finding.message.partition('0x')[0]}: {finding.details[0]}"

    where = f"100 bytes at {second.address:#x}"
    assert told(second.address - 28) == f"global read of 1 bytes at : an allocation, 28 bytes before its start: {where}"
    assert "3 bytes past its end: 100 bytes at 0x10000000" in told(first.address + 103)
    first.free()
    assert told(0x1000_0010).endswith("freed allocation: 100 bytes at 0x10000000")
    assert "before its start" in told(second.address - 200)


def test_neighbours_are_apart() -> None:
    """`x[-1]`, and what runs over its end, is never another buffer's memory."""
    device = ptxtools.Device(checks="memcheck")
    first, second = device.upload(np.zeros(64, np.uint32)), device.upload(np.zeros(64, np.uint32))
    kernel = module("ld.global.u32 %r0, [%a+-4]; st.global.u32 [%a+256], 1;")["k"]
    for buffer in (first, second):
        reports = device.launch(kernel, 1, 1, [buffer]).reports
        assert [f.details[0].split(":")[0] for f in reports] == [
            "argument 0 (a), 4 bytes before its start", "argument 0 (a), right after its end",
        ]  # fmt: skip


def test_guards_and_generic_addresses() -> None:
    body = """mad.wide.u32 %b, %i, 4, %a; setp.lt.u32 %p, %i, 16;
    @%p ld.u32 %r0, [%b]; @!%p ld.u32 %r0, [%a]; @%p st.v2.u16 [%b], {%h0, %h1}; @%p atom.add.u32 %r1, [%b], 1;"""
    assert found(body, words=16) == []
    first, *others = found(body.replace("%i, 16", "%i, 17"), words=16)
    assert first.thread == (16, 0, 0) and "global read of 4 bytes" in first.message
    assert [f.message.split()[1] for f in others] == ["write", "atomic"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.shared.u32 %r0, [256];", "shared read of 4 bytes at 0x100 is out of bounds"),
        ("cvta.shared.u64 %b, 0; st.u64 [%b+252], %a;", "shared write at 0xfc is not aligned to 8 bytes"),
        ("st.global.u32 [%a+2], %i;", "global write at 0x10000002 is not aligned to 4 bytes"),
        (".local .b8 v[16]; cvta.local.u64 %b, v; ld.u32 %r0, [%b+1073741824];", "local read of 4 bytes"),
        ("red.global.add.u32 [%a+256], 1;", "global atomic of 4 bytes at 0x10000100 is out of bounds"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_other_spaces(body: str, message: str, engine: str) -> None:
    body = body.replace("cvta.shared.u64 %b, 0;", "mov.u64 %b, 0; cvta.shared.u64 %b, %b;")
    body = body.replace("cvta.local.u64 %b, v;", "mov.u64 %b, v; cvta.local.u64 %b, %b;")
    finding = one(body, shared=256, words=64, engine=engine)
    assert finding.message.startswith(message) and finding.count == 2


def test_variables_have_names() -> None:
    outer = ".global .u32 table[64]; .global .u32 other;\n"
    finding = one("st.global.u32 [table+256], %i;", outer=outer)
    assert finding.details[0] == "variable 'table', right after its end: 256 bytes at 0x10000000"
    assert "'other', 4 bytes before its start" in one("st.global.u32 [other+-4], %i;", outer=outer).details[0]
    outer = ".const .u32 bank[2]; .const .u32 more[2];\n"
    assert "variable 'bank', right after" in one("ld.const.u32 %r0, [bank+8];", outer=outer).details[0]
    assert "variable 'more', 4 bytes before" in one("ld.const.u32 %r0, [more+-4];", outer=outer).details[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_from_one_shared_or_local_variable_into_the_next(engine: str) -> None:
    body = ".shared .align 4 .b8 s[16]; .shared .align 4 .b8 t[16]; mov.u32 %r2, s; mov.u32 %r3, t;"
    finding = one(body + "st.shared.u32 [s+16], 1;", shared=64, engine=engine)
    assert finding.details[0].startswith("shared variable 's', right after its end: 16 bytes at 0x0")
    assert "'t', 4 bytes before its start" in one(body + "ld.shared.u32 %r0, [%r3+-4];", engine=engine).details[0]
    assert found(body + "st.shared.u32 [%r3+12], 1; st.shared.u32 [60], 1;", shared=64, engine=engine) == []
    assert "dynamic shared memory, right after" in one(body + "st.shared.u32 [64], 1;", shared=64).details[0]
    body = ".local .align 8 .b8 v[16]; .local .align 8 .b8 w[16]; mov.u64 %b, w; cvta.local.u64 %c, %b;"
    finding = one(body + "st.local.u64 [v+16], 1;", engine=engine)
    assert finding.details[0].startswith("local variable 'v', right after its end: 16 bytes")
    assert "'w', 8 bytes before its start" in one(body + "ld.u64 %c, [%c+-8];", engine=engine).details[0]
    assert "'w', 8 bytes past its end" in one(body + "ld.u64 %c, [%c+24];", engine=engine).details[0]
    assert found(body + "st.local.u64 [v+8], 1; ld.u64 %c, [%c+8];", engine=engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_local_variables_of_a_called_function(engine: str) -> None:
    outer = """.func inner (.param .b64 p) { .local .align 4 .b8 v[8]; .local .align 4 .b8 w[8];
    .reg .b64 %p; .reg .b32 %r; ld.param.b64 %p, [p];
    st.local.u32 [v+4], 1; ld.local.u32 %r, [w]; st.u32 [%p+4], %r; st.u32 [%p+8], %r; st.local.u32 [v+8], 1; ret; }
"""
    body = """.local .align 4 .b8 x[8]; .local .align 4 .b8 y[8]; mov.u64 %b, x; cvta.local.u64 %b, %b;
    { .param .b64 p; st.param.b64 [p], %b; call inner, (p); } ld.local.u32 %r0, [y];"""
    details = [f.details[0].partition(":")[0] for f in found(body, outer=outer, engine=engine)]
    assert details == [
        "local variable 'x', right after its end", "local variable 'v', right after its end",
    ]  # fmt: skip


def test_room_between_variables_counts_for_no_limit() -> None:
    """A CTA's whole shared memory in variables."""
    body = "".join(f".shared .align 16 .b8 s{n}[4096]; st.shared.u32 [s{n}+4092], 1;\n" for n in range(12))
    body += "mov.u32 %r0, %total_smem_size; st.global.u32 [%a], %r0;"
    head = HEAD.replace("8.0", "8.1")
    sizes = []
    for checks in ("", "memcheck"):
        device, out = ptxtools.Device("sm_80", checks=checks), np.zeros(1, np.uint32)
        most = device.limits.shared_cta - 12 * 4096
        assert device.launch(module(body, head=head)["k"], 1, 32, [out], shared=most).reports == []
        sizes.append(int(out[0]))
    assert sizes == [device.limits.shared_cta] * 2


ALLOCATE = """{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %b, [r]; }"""
FREE = "{ .param .b64 p; st.param.b64 [p], %b; call free, (p); }"


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_of_the_heap(engine: str) -> None:
    good = f"{ALLOCATE} st.u64 [%b+16], %a; {FREE}"
    assert run(good, "memcheck,leakcheck", outer=HEAP, engine=engine).reports == []
    finding = one(f"{ALLOCATE} st.u64 [%b+24], %a;", outer=HEAP, threads=1, engine=engine)
    assert finding.details == ("a heap block, right after its end: 24 bytes at 0x10000200",)
    finding = one(f"{ALLOCATE}\n {FREE}\n ld.u64 %a, [%b];", outer=HEAP, threads=1, engine=engine)
    assert finding.message == "global read of 8 bytes at 0x10000200 lies in freed memory"
    assert finding.details == (
        "freed heap block: 24 bytes at 0x10000200, allocated by k at line 11, CTA (0,0,0) thread "
        "(0,0,0), freed by k at line 12, CTA (0,0,0) thread (0,0,0)",
    )  # fmt: skip
    again = f"{ALLOCATE} mov.u64 %c, %b; {FREE} {ALLOCATE} st.u64 [%c], %a;"
    assert "lies in freed memory" in one(again, outer=HEAP, threads=1, engine=engine).message
    with pytest.raises(
        ptxtools.Trap, match="which is not the start of an allocated heap block: it is in a freed block"
    ):
        run(f"{ALLOCATE} {FREE} {FREE}", "memcheck", outer=HEAP, threads=1, engine=engine)


def test_shared_memory_that_was_forgotten() -> None:
    hint = "help: the kernel uses dynamic shared memory 'sh'; use --shared BYTES (shared=BYTES in Python)"
    assert hint in one("st.shared.u32 [0], %i;").details
    assert hint not in one("st.shared.u32 [16], %i;", shared=16).details
    for engine in ENGINES:
        with pytest.raises(ptxtools.Trap) as caught:
            run("st.shared.u32 [0], %i;", "", engine=engine)
        assert caught.value.details == (hint,)


@pytest.mark.parametrize("engine", ENGINES)
def test_leaks(engine: str) -> None:
    result = run(f"\n{ALLOCATE}", "leakcheck", outer=HEAP, threads=2, engine=engine)
    assert [finding.thread for finding in result.reports] == [(0, 0, 0), (1, 0, 0)]
    finding = result.reports[0]
    assert finding.checker == "leakcheck" and finding.line == 12
    assert finding.message == "24 bytes of the heap at 0x10000200 were never freed; allocated"


def test_a_block_that_a_later_launch_frees_is_no_leak_of_that_launch() -> None:
    device = ptxtools.Device(checks=["leakcheck"])
    kernel = ptxtools.load(PRINT)["heap"]
    out = np.zeros(1, np.int32)
    assert len(device.launch(kernel, 1, 1, [out, 8, 3]).reports) == 2
    assert len(device.launch(kernel, 1, 1, [out, 8, 1]).reports) == 0  # it frees its only one
    assert len(leaks(device)) == 2


def test_without_checkers_nothing_is_added() -> None:
    device, checked = ptxtools.Device(), ptxtools.Device(checks="memcheck")
    loaded = module("st.global.u32 [%a], %i;")
    plain = device.program(loaded.loadable, loaded["k"].entry)
    looked = checked.program(loaded.loadable, loaded["k"].entry)
    assert all(block.terminator.kind != "event" for block in plain.blocks)
    assert len(looked.blocks) == len(plain.blocks) + 1


@pytest.mark.parametrize(
    ("kernel", "number", "where"),
    [
        ("g_oob", 10, "variable 'garr', right after its end"),
        ("g_oob", -1, "variable 'garr', 4 bytes before its start"),
        ("c_oob", 4, "variable 'carr', right after its end"),
        ("l_oob", 16, "local variable '__local_depot2', right after its end"),
        ("d_oob", 4, "dynamic shared memory, right after its end"),
        ("rd", 0, "argument 0 (rd_param_0), right after its end"),
        ("half2oob", 0, "argument 0 (half2oob_param_0), the last 2 of 8 bytes past its end"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_kernels_of_cuda_that_leave_their_memory(kernel: str, number: int, where: str, engine: str) -> None:
    device, out = ptxtools.Device(engine=engine, checks="memcheck"), np.zeros(32, np.int32)
    entry = ptxtools.load(DATA / "san.ptx")[kernel]
    args = {"g_oob": [number], "rd": [np.zeros(16, np.int32), out], "half2oob": [np.zeros(3, np.int16)]}
    reports = device.launch(entry, 1, 32, args.get(kernel, [number, out]), shared=16).reports
    assert reports and reports[0].details[0].split(":")[0] == where


def test_options(capsys: pytest.CaptureFixture[str]) -> None:
    from ptxtools.cli.common import exit_status
    from ptxtools.cli.run import command

    run = [str(DATA / "san.ptx"), "-k", "d_oob", "--grid", "1", "--block", "1", "--arg", "0", "--arg", "zeros:s32[1]"]
    assert exit_status(command, "ptx-run", [*run, "--check", "memcheck"]) == 1
    said = capsys.readouterr().err
    assert said.count("memcheck: shared ") == 2 and "use --shared BYTES" in said
    assert exit_status(command, "ptx-run", [*run, "--check", "memcheck", "--check-stop"]) == 1
    said = capsys.readouterr().err
    assert said.count("memcheck: shared ") == 1 and "error: " in said
