"""Traps, reports of checkers and deadlocks name the line of CUDA C++ or Triton that the PTX was generated from."""

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.sim.program_lines import ProgramLines

DATA = Path(__file__).parents[2] / "testdata" / "lineinfo"
LINES = DATA / "lines.ptx"
ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
SUMS, HANG, WRONG = "_Z4sumsPKfPfi", "_Z4hangPi", "_Z5wrongPi"
CHAIN = [
    "    source: src/lines.cu:2",
    "      in load(float const*, int), inlined at src/lines.cu:7 in float scaled<float>(float const*, int, float)",
    "      inlined at src/lines.cu:16 in sums(float const*, float*, int)",
]


def trap_of(module, kernel, args, engine="native", block=32, **how):
    with pytest.raises(ptxtools.Trap) as caught:
        ptxtools.Device(engine=engine, **how).launch(module[kernel], 1, block, args)
    return caught.value


def floats():
    return np.zeros(32, np.float32)


@ENGINES
def test_a_trap_in_an_inlined_function(engine):
    trap = trap_of(ptxtools.load(LINES), SUMS, [floats(), floats(), 10**9], engine)
    assert (trap.source.file, trap.source.line, trap.source.function) == ("src/lines.cu", 2, "_Z4loadPKfi")
    assert trap.source.inlined_at.inlined_at.line == 16
    lines = str(trap).splitlines()
    assert " in kernel sums(float const*, float*, int), CTA (0,0,0), thread (0,0,0)" in lines[0]
    assert lines[1:] == ["    ld.global.f32 %f1, [%rd5]", *CHAIN]


@ENGINES
def test_a_trap_in_a_called_function(engine):
    trap = trap_of(ptxtools.load(LINES), SUMS, [floats(), None, 0], engine)
    assert str(trap).splitlines()[2:] == ["    source: src/lines.cu:11"]


@ENGINES
def test_a_deadlock_names_the_source_of_each_place(engine):
    trap = trap_of(ptxtools.load(LINES), HANG, [None], engine, block=64)
    assert trap.kind == "deadlock" and str(trap.source) == "src/lines.cu:33"
    details = [line for line in trap.details if "warp" in line]
    assert [line.split(":")[0] + ":" + line.split(":")[1] for line in details] == [
        "line 121 (src/lines.cu:33)",
        "line 133 (src/lines.cu:36)",
    ]


def test_a_timeout_names_the_source():
    text = (
        (DATA / "triton.ptx")
        .read_text()
        .replace("mul.lo.s32 	%r3", "again: add.u32 %r5, %r5, 1; bra again;\n	mul.lo.s32 	%r3")
    )
    with pytest.raises(ptxtools.Trap) as caught:
        ptxtools.Device().launch(ptxtools.loads(text)["add_kernel"], 1, 32, [floats(), 0], timeout=0.2)
    assert caught.value.kind == "timeout"
    assert [place.line for place in caught.value.source.chain] == [5, 12, 40]


@ENGINES
def test_reports_of_checkers(engine):
    module = ptxtools.load(LINES)
    device = ptxtools.Device(engine=engine, checks=["initcheck", "racecheck", "leakcheck"])
    reports = device.launch(module[WRONG], 1, 64, [np.zeros(64, np.int32)]).reports
    found = {(report.checker, str(report.source)) for report in reports}
    expected = {("initcheck", 44), ("initcheck", 45), ("racecheck", 43), ("leakcheck", 45)}
    assert found == {(checker, f"src/lines.cu:{line}") for checker, line in expected}
    race = next(report for report in reports if report.checker == "racecheck")
    assert "    source: src/lines.cu:43" in str(race).splitlines()
    other = f"    with: {LINES}:160, CTA (0,0,0), thread ({race.others[0].thread[0]},0,0) (src/lines.cu:43): "
    assert other in str(race) and race.others[0].thread[0] // 32 != race.thread[0] // 32


def test_memcheck():
    trap = trap_of(ptxtools.load(LINES), SUMS, [floats(), floats(), 10**9], checks=["memcheck"], check_stop=True)
    assert trap.kind == "memcheck" and str(trap).splitlines()[2:5] == CHAIN


@pytest.mark.parametrize("options", [[], ["-g"], ["--strip-debug"]])
def test_containers(options, tmp_path, monkeypatch):
    from ptxtools.cli.assemble import command
    from ptxtools.cli.common import exit_status

    out = tmp_path / "out.ptxo"
    assert exit_status(command, "ptx-as", [str(LINES), "-o", str(out), *options]) == 0
    trap = trap_of(ptxtools.load(out), SUMS, [floats(), floats(), 10**9])
    if options == ["--strip-debug"]:
        assert trap.source is None
    else:
        assert str(trap).splitlines()[2:] == CHAIN
    assert (trap.file == str(LINES) and trap.line == 66) == (options == ["-g"])


def test_what_ran_before_tells_the_same(monkeypatch, tmp_path, capfd):
    """The second run takes its program from the cache, without a tree."""
    from ptxtools.cli.common import exit_status
    from ptxtools.cli.run import command

    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    arguments = [str(LINES), "-k", "sums", "--grid", "1", "--block", "32", "--arg", "zeros:f32[32]"]
    arguments += ["--arg", "zeros:f32[32]", "--arg", "1000000000"]
    errors = []
    for _ in range(2):
        assert exit_status(command, "ptx-run", arguments) == 1
        errors.append(capfd.readouterr().err)
    assert errors[0] == errors[1] and errors[0].splitlines()[2:] == CHAIN


@pytest.mark.parametrize("which", ["lines.ptx", "triton.ptx"])
def test_a_run_without_reports_looks_nothing_up(monkeypatch, which):
    """Nothing is read of `.loc` and `.file`: such a run pays nothing for it."""
    module = ptxtools.load(DATA / which)
    monkeypatch.setattr(type(module.loadable), "origins", lambda _: pytest.fail("origins were asked for"))
    monkeypatch.setattr(ProgramLines, "source_of", lambda *_: pytest.fail("a line was looked up"))
    ints = np.zeros(128, np.int32)
    if which == "lines.ptx":
        ptxtools.Device().launch(module[WRONG], 1, 64, [ints])  # with malloc, whose blocks know their line
        ptxtools.Device().launch(module[SUMS], 1, 32, [floats(), floats(), 0])
    else:
        ptxtools.Device().launch(module["add_kernel"], 1, 32, [ints, 1])


def test_without_line_information_there_is_none():
    text = LINES.read_text()
    plain = "\n".join(line for line in text.splitlines() if ".loc" not in line and ".file" not in line)
    trap = trap_of(ptxtools.loads(plain), SUMS, [floats(), floats(), 10**9])
    assert trap.source is None and "source" not in str(trap)
