"""initcheck and synccheck, and how checkers are chosen and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

from .programs import HEAD, HEAP, messages, module, run
from .test_memcheck import ALLOCATE, FREE

ENGINES = ("native", "reference")
DATA = Path(__file__).parents[2] / "testdata" / "checkers"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("ld.shared.u32 %r0, [8];", ["shared read of 4 bytes at 0x8: nobody wrote byte 0x8"]),
        ("st.shared.u16 [8], 1; bar.sync 0; ld.shared.u32 %r0, [8];",
         ["shared read of 4 bytes at 0x8: nobody wrote byte 0xa"]),
        ("st.shared.u32 [8], 1; bar.sync 0; ld.shared.u32 %r0, [8];", []),
        ("atom.shared.add.u32 %r0, [0], 1;", ["shared read of 4 bytes at 0x0: nobody wrote byte 0x0"]),
        ("ld.global.u32 %r0, [%a];", []),
        (".local .b8 v[16]; ld.local.u32 %r0, [v];", ["local read of 4 bytes at 0x0: nobody wrote byte 0x0"]),
        (".local .b8 v[16]; st.local.v4.u32 [v], {%i, %i, %i, %i}; ld.local.u32 %r0, [v+12];", []),
        ("cp.async.ca.shared.global [16], [%a], 16; cp.async.wait_all; bar.sync 0; ld.shared.u32 %r0, [28];", []),
    ],
)  # fmt: skip
def test_reads_of_what_nobody_wrote(body: str, found: list[str], engine: str) -> None:
    result = run(body, "initcheck", shared=64, engine=engine)
    assert messages(result) == found


def test_the_heap_is_not_initialised() -> None:
    fresh = run(f"{ALLOCATE} ld.u32 %r0, [%b+4]; {FREE}", "initcheck", outer=HEAP, threads=1)
    assert messages(fresh) == ["global read of 4 bytes at 0x10000204: nobody wrote byte 0x4"]
    assert run(f"{ALLOCATE} st.u32 [%b+4], %i; ld.u32 %r0, [%b+4]; {FREE}", "initcheck", outer=HEAP).reports == []


def test_a_structure_of_the_heap_may_be_loaded_as_a_word_and_taken_apart() -> None:
    """The grid runs again, with the heap as it was: loads of a kernel that uses it are followed, too."""
    load = f"{ALLOCATE} st.u8 [%b], 1; st.u32 [%b+4], %i; ld.u64 %c, [%b];"
    apart = f"{load} shr.u64 %c, %c, 32; cvt.u32.u64 %r0, %c; st.global.u32 [%a], %r0; {FREE}"
    assert run(apart, "initcheck,leakcheck", outer=HEAP).reports == []
    whole = f"{load} setp.eq.u64 %p, %c, 0; @%p st.global.u32 [%a], 1; {FREE}"
    assert messages(run(whole, "initcheck,leakcheck", outer=HEAP)) == [
        "global read of 8 bytes at 0x10000200: nobody wrote byte 0x1"
    ]


def test_what_a_grid_prints_that_runs_again_is_told_once() -> None:
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 p);
    .global .align 1 .b8 format[4] = {37, 117, 10, 0};
    .visible .entry k() {
      .reg .b64 %d<4>; .reg .b32 %r; .reg .pred %p; .local .align 8 .b8 v[16];
      mov.u32 %r, %tid.x; st.local.u32 [v+8], %r; cvta.local.u64 %d0, v; add.u64 %d0, %d0, 8;
      mov.u64 %d1, format; cvta.global.u64 %d1, %d1;
      { .param .b64 f; .param .b64 p; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [p], %d0;
        call.uni (r), vprintf, (f, p); }
      ld.local.u32 %r, [v]; setp.ge.u32 %p, %r, 0; @%p trap;
      ret; }"""
    told: list[str] = []
    device = ptxtools.Device("sm_80", checks="initcheck", on_print=told.append)
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(ptxtools.loads(text)["k"], 1, 2, [])
    assert [finding.checker for finding in caught.value.findings] == ["initcheck"]
    assert "".join(told) == "0\n1\n"


def test_buffers_that_nobody_wrote() -> None:
    """What `alloc` gives is as uninitialised as that of cudaMalloc; uploads, arrays and variables are not."""
    device = ptxtools.Device(checks="initcheck")
    buffer = device.alloc(64)
    read = module("mad.wide.u32 %b, %i, 4, %a;\n ld.global.u32 %r0, [%b];")["k"]
    fresh = device.launch(read, 1, 4, [buffer])
    assert messages(fresh) == ["global read of 4 bytes at 0x10000000: nobody wrote byte 0x0"]
    assert fresh.reports[0].count == 4
    write = module("mad.wide.u32 %b, %i, 4, %a; st.global.u16 [%b+16], 1;")["k"]
    device.launch(write, 1, 4, [buffer])
    assert messages(device.launch(read, 1, 4, [buffer + 16])) == [
        "global read of 4 bytes at 0x10000010: nobody wrote byte 0x12"
    ]
    buffer.upload(np.zeros(64, np.uint8))
    assert device.launch(read, 1, 16, [buffer]).reports == []
    assert device.launch(read, 1, 16, [device.upload(np.zeros(16, np.uint32))]).reports == []
    buffer.free()
    assert ptxtools.Device().alloc(64).download().tolist() == [0] * 64


def test_copies_of_engines_and_functions_of_the_runtime_write_buffers_too() -> None:
    body = """.shared .align 16 .b8 s[16]; mov.u32 %r1, s; st.shared.v4.u32 [s], {%i, %i, %i, %i};
    fence.proxy.async.shared::cta; cp.async.bulk.global.shared::cta.bulk_group [%a], [%r1], 16;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ld.global.u32 %r0, [%a+12];\n ld.global.u32 %r0, [%a+16];"""
    device = ptxtools.Device(checks="initcheck")
    kernel = module(body, head=HEAD.replace("sm_80", "sm_90"))["k"]
    result = device.launch(kernel, 1, 1, [device.alloc(64)])
    assert [message[-4:] for message in messages(result)] == ["0x10"]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_functions_of_the_runtime_store_is_written(engine: str) -> None:
    """A stream's handle, in local memory."""
    device = ptxtools.Device(engine=engine, checks="all")
    result = device.launch(ptxtools.load(DATA / "initcdp.ptx")["k"], 1, 2, [np.zeros(1, np.int32)])
    assert result.reports == []


def test_a_place_is_reported_once_for_all_child_grids() -> None:
    text = (DATA / "initcdp.ptx").read_text()
    text = text.replace("st.global.u32 \t[%rd2], %r1;", "ld.shared.u32 %r1, [early]; st.global.u32 [%rd2], %r1;")
    text = text.replace(".visible .entry _Z5childPi(", ".shared .u32 early;\n.visible .entry _Z5childPi(")
    device = ptxtools.Device(checks="initcheck")
    result = device.launch(ptxtools.loads(text)["k"], 2, 2, [np.zeros(1, np.int32)])
    assert [(finding.kernel, finding.count) for finding in result.reports] == [("_Z5childPi", 4)]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_store_leaves_out_is_not_written(engine: str) -> None:
    """`_` in a store of 256 bits (9.7.9.11)."""
    head = HEAD.replace("8.0", "8.8").replace("sm_80", "sm_100")
    body = f"""{ALLOCATE} st.v8.b32 [%b], {{_, %i, %i, _, _, %i, _, _}}; ld.u32 %r0, [%b+4]; ld.u32 %r0, [%b+20];
    ld.u32 %r0, [%b+12]; {FREE}"""
    result = run(body, "initcheck", outer=HEAP, head=head, threads=1, engine=engine)
    assert [message.partition(": ")[2] for message in messages(result)] == ["nobody wrote byte 0xc"]


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_that_do_not_come(engine: str) -> None:
    body = "setp.ge.u32 %p, %i, 48; @%p exit; bar.sync 0;"
    result = run(body, "synccheck", engine=engine)
    assert messages(result) == ["16 of 32 threads of the warp did not come to this aligned barrier"]
    assert result.reports[0].details == ("not there: lanes 16, 17, 18, 19, 20, 21, 22, 23, …",)
    assert run(body.replace("48", "32"), "synccheck", engine=engine).reports == []  # a whole warp
    assert run(body.replace("bar.sync", "barrier.sync"), "synccheck", engine=engine).reports == []
    assert run("bar.sync 0; bar.sync 0;", "synccheck", threads=40, engine=engine).reports == []


def test_two_barriers_that_meet() -> None:
    body = "setp.lt.u32 %p, %l, 8;\n@%p bra A;\nbar.sync 0;\nbra B;\nA: bar.sync 0;\nB:"
    result = run(body, "synccheck")
    assert messages(result) == ["threads of the warp met at this aligned barrier from different instructions"]
    assert result.reports[0].others[0].text == "bar.sync 0"


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_of_a_warp_that_come_to_one_barrier(engine: str) -> None:
    """One after another is well; from an unaligned instruction it is not."""
    body = "setp.eq.u32 %p, %l, 3;\n@!%p bra A;\nmov.u32 %r0, 1;\nA: bar.sync 0;\nbar.sync 0;"
    assert run(body, "synccheck", engine=engine).reports == []
    body = "setp.lt.u32 %p, %l, 8;\n@%p bra A;\nbarrier.sync 0;\nbra B;\nA: bar.sync 0;\nB: bar.sync 0;"
    result = run(body, "synccheck", engine=engine)
    assert messages(result) == ["threads of the warp met at this aligned barrier from different instructions"]
    assert (result.reports[0].text, result.reports[0].others[0].text) == ("bar.sync 0", "barrier.sync 0")
    body = body.replace("A: bar.sync", "A: barrier.sync")
    assert run(body, "synccheck", engine=engine).reports == []


def test_counts() -> None:
    result = run("setp.eq.u32 %p, %w, 0; @%p bar.arrive 3, 96;", "synccheck")
    assert messages(result) == ["96 threads are to meet, but the CTA has 64"]


def test_one_report_for_each_place() -> None:
    result = run("ld.shared.u32 %r0, [0];\nld.shared.u32 %r1, [4];", "initcheck", grid=9, shared=16)
    assert [finding.line for finding in result.reports] == [9, 10]
    assert str(result.reports[0]).splitlines() == [
        "<memory>:9: initcheck: shared read of 4 bytes at 0x0: nobody wrote byte 0x0 in kernel k, CTA (0,0,0), "
        "thread (0,0,0)", "    ld.shared.u32 %r0, [sh+0]", "    9 times",
    ]  # fmt: skip


def test_what_was_reported_before_a_trap_stands_with_it() -> None:
    with pytest.raises(ptxtools.Trap) as caught:
        run("ld.shared.u32 %r0, [0]; trap;", "initcheck", shared=16)
    assert caught.value.kind == "trap" and "reported before: <memory>:9: initcheck" in str(caught.value)


def test_names_of_checkers() -> None:
    everything = {"memcheck", "initcheck", "synccheck", "racecheck", "leakcheck", "asynccheck"}
    assert ptxtools.Device(checks="all").checks == everything
    assert ptxtools.Device(checks=["memcheck", "leakcheck"]).checks == {"memcheck", "leakcheck"}
    assert ptxtools.Device().checks == frozenset()
    with pytest.raises(ptxtools.LaunchError, match="there is no checker 'race'; there are memcheck"):
        ptxtools.Device(checks="race")


@pytest.mark.parametrize(
    ("options", "keys", "status", "says"),
    [
        (["--check", "initcheck"], "", 1, "initcheck: shared read"),
        ([], 'check = "initcheck,memcheck"\n', 1, "initcheck: shared read"),
        ([], 'check = "initcheck"\nexpect_failure = "initcheck"\n', 0, "failed as expected (initcheck)"),
        ([], 'check = "memcheck"\nexpect_failure = "initcheck"\n', 1, "expected the run to fail (initcheck)"),
        (["--check", "all"], 'expect_failure = "initcheck"\n', 0, "failed as expected (initcheck)"),
        ([], "", 0, ""),
        (["--check", "lint"], "", 2, "--check: there is no checker 'lint'"),
        ([], 'check = "lint"\n', 2, "check: there is no checker 'lint'"),
    ],
)
def test_launch_files_and_options(
    tmp_path: Path, capsys: Any, options: list[str], keys: str, status: int, says: str
) -> None:
    text = HEAD + ".visible .entry k(.param .u64 a) { .reg .b32 %r; ld.shared.u32 %r, [sh]; ret; }"
    (tmp_path / "k.ptx").write_text(text)
    (tmp_path / "case.toml").write_text(
        f'module = "k.ptx"\ngrid = 1\nblock = 1\nshared = 16\nargs = [{{null=true}}]\n{keys}'
    )
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml"), *options]) == status
    said = capsys.readouterr()
    assert says in said.out + said.err


def test_values_stay_the_same_under_all_checkers() -> None:
    body = """shl.b32 %r0, %i, 2; st.shared.u32 [%r0], %i; bar.sync 0;
    xor.b32 %r1, %r0, 128; ld.shared.u32 %r2, [%r1]; mad.wide.u32 %b, %i, 4, %a; st.global.u32 [%b], %r2;"""
    out = np.zeros(64, np.uint32)
    result = ptxtools.Device(checks="all").launch(module(body)["k"], 1, 64, [out], shared=256)
    assert out.tolist() == [n ^ 32 for n in range(64)] and result.reports == []


PADDED = """.local .align 4 .b8 v[8]; .local .align 4 .b8 w[8]; cvta.local.u64 %b, v; cvta.local.u64 %c, w;
    st.local.u16 [v], 7; ld.u32 %r0, [%b]; st.u32 [%c], %r0; """
COPYING = """.func copy(.param .b64 from, .param .b64 to, .param .b32 again) {
  .reg .b64 %f, %t; .reg .b32 %v, %n; .reg .pred %z;
  ld.param.u64 %f, [from]; ld.param.u64 %t, [to]; ld.param.u32 %n, [again];
  ld.u32 %v, [%f];
  setp.eq.u32 %z, %n, 0; @%z bra DONE;
  call copy, (%f, %t, 0);
DONE: st.u32 [%t], %v; ret; }
"""


FIELDS = """.local .align 4 .b8 v[8]; cvta.local.u64 %b, v; ld.u8 %h0, [%b]; and.b16 %h0, %h0, -8; or.b16 %h0, %h0, 3;
    st.u8 [%b], %h0; ld.u8 %h0, [%b]; """
USE = "setp.eq.u16 %p, %h1, 3; @%p st.global.u32 [%a], 1;"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("body", "found"), [
    (FIELDS + "and.b16 %h1, %h0, 7;" + USE, 0),
    (FIELDS + "and.b16 %h1, %h0, 15;" + USE, 1),  # a bit more than has been written
    (FIELDS + "shr.u16 %h1, %h0, 3;" + USE, 1),
    (FIELDS + "and.b16 %h0, %h0, 7; or.b16 %h0, %h0, 40; st.u8 [%b], %h0; ld.u8 %h0, [%b]; shr.u16 %h1, %h0, 3;"
     + USE, 0),
    (".local .b8 v[8]; cvta.local.u64 %b, v; ld.u8 %h0, [%b]; mov.u16 %h1, 7; st.u8 [%b], %h1;", 0),  # a whole byte
    (".local .b8 v[8]; cvta.local.u64 %b, v; ld.u8 %h0, [%b]; mov.u16 %h1, 7; st.u8 [%b+1], %h1;", 1),
])  # fmt: skip
def test_bit_fields_are_written_bit_by_bit(body: str, found: int, engine: str) -> None:
    """As compilers do it: what was there is loaded, changed in part, and stored."""
    assert len(run(body, "initcheck", engine=engine).reports) == found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("body", "outer", "found"), [
    (PADDED + "ld.u16 %h0, [%c]; st.global.u16 [%a], %h0;", "", 0),
    (PADDED + "ld.u16 %h0, [%c+2]; st.global.u16 [%a], %h0;", "", 1),
    (PADDED + "ld.u32 %r1, [%c]; st.u32 [%a], %r1;", "", 0),  # a structure, as a whole
    (PADDED + "ld.u32 %r1, [%c]; add.u32 %r1, %r1, 65536; st.u32 [%a], %r1;", "", 1),
    (PADDED + "call copy, (%b, %c, 1); ld.u16 %h0, [%c]; st.global.u16 [%a], %h0;", COPYING, 0),
    (PADDED + "call copy, (%b, %c, 1); ld.u16 %h0, [%c+2]; st.global.u16 [%a], %h0;", COPYING, 1),
])  # fmt: skip
def test_gaps_of_structures_are_copied_by_generic_addresses(body: str, outer: str, found: int, engine: str) -> None:
    """As compilers do without optimisation; in functions that call themselves, too."""
    assert len(run(body, "initcheck", outer=outer, engine=engine).reports) == found
