"""Options of a device are described once, and are everywhere from there."""

import inspect
import os
import subprocess
import sys
import textwrap

import pytest
from click.testing import CliRunner

import ptxtools
from ptxtools import sim
from ptxtools.cli import run, run_options
from ptxtools.diagnostics.kinds import CHECKERS
from ptxtools.launch.errors import SpecError
from ptxtools.launch.file import parse_launch_file
from ptxtools.launch.job import FAILURES
from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, option, options_of, takes, values_of
from ptxtools.records import dataclass, fields
from ptxtools.sim.device import Request

FILE = b'module = "k.ptx"\ngrid = 1\nblock = 1\n'

#: Puts another option into the table before anything reads it, and looks for it wherever options are.
ANOTHER = """
    import inspect
    from ptxtools.records import dataclass
    from ptxtools.machine import options

    @dataclass(slots=True, kw_only=True)
    class More(options.DeviceOptions):
        colour: str = options.option("grey", "word", "--colour", key="colour", choices=("grey", "green"),
                                     help="Colour of the case.")

    options.DeviceOptions = More

    import ptxtools
    from click.testing import CliRunner
    from ptxtools import api, sim
    from ptxtools.cli import run
    from ptxtools.launch.errors import SpecError
    from ptxtools.launch.file import parse_launch_file
    from ptxtools.launch.runner import Report

    jobs = []
    api.run_job = lambda job, *others: jobs.append(job) or Report()
    runner = CliRunner()
    assert "Colour of the case." in runner.invoke(run.command, ["--help"]).output
    line = ["k.ptx", "--grid", "1", "--block", "1"]
    assert runner.invoke(run.command, [*line, "--colour", "green"], standalone_mode=False).exception is None
    assert runner.invoke(run.command, line, standalone_mode=False).exception is None
    assert [job.device.colour for job in jobs] == ["green", "grey"]
    assert "is not one of" in runner.invoke(run.command, [*line, "--colour", "pink"]).output

    text = b'module = "k.ptx"\\ngrid = 1\\nblock = 1\\n'
    assert parse_launch_file(text + b'colour = "green"', "x").device.colour == "green"
    assert parse_launch_file(text, "x").device.colour == "grey"
    try:
        parse_launch_file(text + b'colour = "pink"', "x")
    except SpecError as error:
        assert "x: colour: must be grey or green, not 'pink'" in str(error)
    else:
        raise AssertionError("pink was taken")

    for device in (ptxtools.Device, sim.Device):
        assert inspect.signature(device).parameters["colour"].default == "grey"
        assert device(colour="green").options.colour == "green"
        try:
            device(colour="pink")
        except ptxtools.LaunchError as error:
            assert str(error) == "colour: must be grey or green, not 'pink'"
        else:
            raise AssertionError("pink was taken")
    print("everywhere")
"""


def test_an_option_that_is_added_in_one_place_is_everywhere():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ANOTHER)], capture_output=True, text=True, env=dict(os.environ)
    )
    assert (done.stdout, done.returncode) == ("everywhere\n", 0), done.stderr


def test_the_command_has_every_flag_and_no_other_of_that_name():
    flags = {flag for parameter in run.command.params for flag in parameter.opts}
    assert {one.flag for one in options_of(DeviceOptions) if one.flag} <= flags
    option = next(one for one in options_of(DeviceOptions) if one.flag == "--memory")
    assert option.name == "memory_model"  # not the bytes of device memory


@pytest.mark.parametrize("device", [ptxtools.Device, sim.Device])
def test_devices_take_every_option(device):
    shown = inspect.signature(device).parameters
    assert list(shown) == [one.name for one in options_of(DeviceOptions)]
    assert shown["target"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {shown[one.name].kind for one in options_of(DeviceOptions) if one.name != "target"} == {
        inspect.Parameter.KEYWORD_ONLY
    }
    assert device("sm_80", sms=3).options.sms == 3
    with pytest.raises(TypeError, match="colour"):
        device(colour="green")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sms": 0}, "a device cannot have 0 SMs"),
        ({"sms": 65537}, "a device cannot have 65537 SMs; at most 65536"),
        ({"memory": 0}, "a device cannot have 0 bytes of memory"),
        ({"threads": 0}, "a device cannot have 0 worker threads"),
        ({"seed": -1}, "seed: must be at least 0, not -1"),
        ({"heap": -1}, "a heap of -1 bytes does not fit: device memory has"),
        ({"numerics": "exact"}, "numerics: must be chip or ieee, not 'exact'"),
        ({"engine": "steam"}, "there is no engine 'steam'; there are native and reference"),
        ({"stack": -1}, "stack"),
    ],
)
def test_values_that_make_no_device(options, message):
    with pytest.raises(ptxtools.LaunchError) as caught:
        ptxtools.Device(**options)
    assert message in str(caught.value)


def test_options_of_a_launch_are_read_from_one_table(monkeypatch, tmp_path):
    """On the command line, in a file, and in what a device is asked for."""
    jobs = []
    monkeypatch.setattr(run_options, "_run", lambda job, options, debugger: jobs.append(job) or 0)
    line = ["k.ptx", "--grid", "1", "--block", "1", "--cluster", "2", "--shared", "64", "--cooperative", "--stack", "0"]
    assert CliRunner().invoke(run.command, line, standalone_mode=False).exception is None
    text = b"cluster = 2\nshared = 64\ncooperative = true\nstack = 0\n"
    plans = [jobs[0].launches[0], parse_launch_file(FILE + text, "x").launches[0]]
    plans.append(parse_launch_file(b'module = "k.ptx"\nblock = 1\n' + text + b"[[launch]]\ngrid = 1", "x").launches[0])
    names = [one.name for one in options_of(LaunchOptions)]
    assert names == ["grid", "block", "cluster", "shared", "cooperative", "stack"]
    for plan in plans:
        assert [getattr(plan, name) for name in names] == [(1, 1, 1), (1, 1, 1), (2, 1, 1), 64, True, 0]
    assert set(names) <= {one.name for one in fields(Request)}
    shown = inspect.signature(ptxtools.Device.launch).parameters
    assert list(shown) == [
        "self",
        "kernel",
        "grid",
        "block",
        "args",
        *names[2:],
        "timeout",
        "max_instructions",
        "explore",
    ]


def test_limits_of_a_run_are_read_from_one_table(monkeypatch, tmp_path):
    """On the command line, in a file, and in what a device is asked for; of two limits the smaller one holds."""
    jobs = []
    monkeypatch.setattr(run_options, "_run", lambda job, options, debugger: jobs.append(job) or 0)

    def limits(*line):
        assert CliRunner().invoke(run.command, line, standalone_mode=False).exception is None
        return values_of(jobs[-1].limits, RunOptions)

    given = ("--timeout", "2.5", "--max-instructions", "7", "--explore", "3")
    path = tmp_path / "case.toml"
    path.write_bytes(FILE + b"timeout = 2.5\nmax_instructions = 7\nexplore = 3\n")
    wanted = {"timeout": 2.5, "max_instructions": 7, "explore": 3}
    assert limits("k.ptx", "--grid", "2", "--block", "1", *given) == wanted
    assert limits("--launch", str(path)) == wanted
    assert limits("--launch", str(path), "--timeout", "3", "--max-instructions", "6") == {
        **wanted,
        "max_instructions": 6,
    }
    assert limits("--launch", str(path), "--timeout", "2") == {**wanted, "timeout": 2}
    assert set(wanted) == {one.name for one in options_of(RunOptions)} <= {one.name for one in fields(Request)}
    assert set(wanted) <= set(inspect.signature(ptxtools.Device.launch).parameters)
    with pytest.raises(SpecError, match=r"x: launch\[0\]: unknown key 'timeout'"):
        parse_launch_file(FILE + b"[[launch]]\ntimeout = 1", "x")
    for text, problem in (
        (b"timeout = inf", "timeout: must be a number of seconds above 0, not inf"),
        (b"timeout = nan", "timeout: must be a number of seconds above 0, not nan"),
        (b"timeout = '1'", "timeout: must be a number, not '1'"),
        (b"max_instructions = 0", "max_instructions: must be at least 1, not 0"),
    ):
        with pytest.raises(SpecError, match=f"x: {problem}"):
            parse_launch_file(FILE + text, "x")


def test_a_kernel_on_host_memory_takes_every_option_of_a_launch():
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { L: bra L; }"
    with pytest.raises(ptxtools.Trap, match="more than 1000 instructions"):
        ptxtools.ptx_run(text, [], 1, 1, max_instructions=1000)
    with pytest.raises(ptxtools.LaunchError, match="not a multiple of clusters of 2"):
        ptxtools.ptx_run(text, [], 1, 3, cluster=2)
    with pytest.raises(TypeError, match="colour"):
        ptxtools.ptx_run(text, [], 1, 1, colour=1)
    with pytest.raises(TypeError, match="timeout must be a number, not a str"):
        ptxtools.ptx_run(text, [], 1, 1, timeout="long")
    with pytest.raises(ptxtools.LaunchError, match="timeout: must be a number of seconds above 0, not inf"):
        ptxtools.ptx_run(text, [], 1, 1, timeout=float("inf"))


def test_a_launch_of_the_library_may_limit_instructions_and_stack():
    module = ptxtools.loads(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { L: bra L; }")
    device = ptxtools.Device()
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(module["k"], 1, 1, [], max_instructions=1000)
    assert caught.value.kind == "timeout" and "more than 1000 instructions" in caught.value.reason
    with pytest.raises(ptxtools.LaunchError, match="max_instructions: must be at least 1, not 0"):
        device.launch(module["k"], 1, 1, [], max_instructions=0)
    with pytest.raises(ptxtools.LaunchError, match="stack"):
        device.launch(module["k"], 1, 1, [], stack=1 << 40)
    with pytest.raises(TypeError, match="stack must be a whole number"):
        device.launch(module["k"], 1, 1, [], stack="much")


@pytest.mark.parametrize("given", [["--shared", "0"], ["--stack", "0"], ["--cooperative"], ["--rtol", "0"]])
def test_what_the_file_says_the_command_line_does_not(given, tmp_path):
    path = tmp_path / "case.toml"
    path.write_bytes(FILE)
    result = CliRunner().invoke(run.command, ["--launch", str(path), *given])
    assert f"{given[0]} and --launch exclude each other" in result.output


def test_zero_is_a_value(monkeypatch):
    jobs = []
    monkeypatch.setattr(run_options, "_run", lambda job, options, debugger: jobs.append(job) or 0)
    arguments = ["k.ptx", "--grid", "1", "--block", "1", "--seed", "0", "--heap", "0"]
    assert CliRunner().invoke(run.command, arguments, standalone_mode=False).exception is None
    assert (jobs[0].device.seed, jobs[0].device.heap, jobs[0].device.sms) == (0, 0, 16)


def test_the_command_line_wins_over_the_file_and_adds_checkers(monkeypatch, tmp_path):
    jobs = []
    monkeypatch.setattr(run_options, "_run", lambda job, options, debugger: jobs.append(job) or 0)
    path = tmp_path / "case.toml"
    path.write_bytes(FILE + b'device = "sm_90a"\nsms = 4\nheap = 64\ncheck = "memcheck"\n')
    given = ["--launch", str(path), "--sms", "8", "--check", "racecheck"]
    assert CliRunner().invoke(run.command, given, standalone_mode=False).exception is None
    device = jobs[0].device
    assert (device.target, device.sms, device.heap) == ("sm_90a", 8, 64)
    assert device.checks == {"memcheck", "racecheck"}


def test_a_file_may_expect_what_any_checker_finds():
    assert set(CHECKERS) <= set(FAILURES) and "interrupted" not in FAILURES
    for name in FAILURES:
        assert parse_launch_file(FILE + f'expect_failure = "{name}"'.encode(), "x").expect_failure == name


def test_takes_shows_the_options_of_any_class():
    @dataclass
    class Few:
        size: int = option(1, "whole")

    class Holder:
        @takes(Few)
        def __init__(self, few):
            self.few = few

    assert str(inspect.signature(Holder)).startswith("(size: int = 1)") and Holder(size=2).few == Few(2)
