"""Sweeps: axes, points, and the commands around them."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.launch.errors import SpecError
from ptxtools.launch.sweep import parse_axis, points
from tests.rows import rows

MODULE = str(Path(__file__).parents[2] / "examples" / "vecadd.ptx")
FILE = f"""
module = "{MODULE}"
grid = 1
block = [32, 1, 1]
args = [{{buffer="a"}}, {{buffer="a"}}, {{buffer="out"}}, {{value=4}}]
[buffers.a]
fill = {{type="f32[64]", value=2}}
[buffers.out]
zeros = "f32[64]"
"""


@pytest.fixture
def sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a sweep of FILE with more text; gives the status and both outputs."""

    def run(*arguments: str, more: str = "", workers: str = "1") -> tuple[int, str, str]:
        file = tmp_path / "case.toml"
        file.write_text(FILE + more, "utf-8")
        words = [word for text in arguments for word in (("--sweep", text) if text[0] != "-" else shlex.split(text))]
        status = exit_status(
            command, "ptx-run", ["--launch", str(file), *(("--workers", workers) if workers else ()), *words]
        )
        return status, *capsys.readouterr()

    return run


@rows(("text", "keys", "values"), [
    ("block=32,64", ("block",), (32, 64)),
    ("block=[8,8],[64]", ("block",), ([8, 8], [64])),
    ("seed=3..5", ("seed",), (3, 4, 5)),
    ("args.3=-4..4..4,9", ("args.3",), (-4, 0, 4, 9)),
    ("grid+args.3=1", ("grid", "args.3"), (1,)),
    ("engine=native,reference", ("engine",), ("native", "reference")),
    ("device=sm_90", ("device",), ("sm_90",)),
    ("x=1.5,2e3,true", ("x",), (1.5, 2000.0, True)),
    ('x="a,b",[["c"]]', ("x",), ("a,b", [["c"]])),
    ("b.zeros=f32[4,4],f32[8]", ("b.zeros",), ("f32[4,4]", "f32[8]")),
])  # fmt: skip
def test_axes(text: str, keys: tuple[str, ...], values: tuple[Any, ...]) -> None:
    axis = parse_axis(text)
    assert (axis.keys, axis.values) == (keys, values)
    assert [type(value) for value in axis.values] == [type(value) for value in values]


@rows(("text", "message"), [
    ("block", "is not KEY=VALUE,VALUE"),
    ("block=", "is not KEY=VALUE,VALUE"),
    ("a++b=1", "is not KEY=VALUE,VALUE"),
    ("seed=5..3", "'5..3' is not a range"),
    ("seed=0..9..0", "'0..9..0' is not a range"),
    ("seed=0..999999999", "is not a range"),
    ("block=[1,2", "[1,2 is no value of TOML"),
    ("x=a,,b", "has an empty value"),
])  # fmt: skip
def test_wrong_axes(text: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_axis(text)
    assert message in str(error.value)


def test_points_are_all_combinations() -> None:
    assert points([parse_axis("a=1,2"), parse_axis("b+c=x,y")]) == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    for wrong in (["a=1", "b+a=2"], ["a=0..9999", "b=0..99"]):
        with pytest.raises(SpecError, match=r"twice|at most 100,000 points, not 1,000,000"):
            points([parse_axis(text) for text in wrong])


def test_each_point_is_a_run(sweep: Any) -> None:
    status, out, err = sweep("args.3=3,40", "block.0=32,64", "--format json")
    assert (status, err) == (0, "")
    found = json.loads(out)["points"]
    assert [one["values"] for one in found] == [
        {"args.3": n, "block.0": threads} for n in (3, 40) for threads in (32, 64)
    ]
    # 13 instructions for a thread with an element, 6 without one (examples/vecadd.ptx)
    assert [one["instructions"] for one in found] == [
        sum(13 if i < n else 6 for i in range(t)) for n in (3, 40) for t in (32, 64)
    ]
    assert found[0]["summaries"] == ["buffer 'out': f32[64] = 4 4 4 0 0 0 0 0 …"]


def test_a_point_that_fails_is_a_row(sweep: Any) -> None:
    axes = ("buffers.a.fill.type=f32[64],f32[2]", "block=32,2048,[1,1,1,1]")
    status, out, _ = sweep(*axes, "--format csv --check memcheck")
    found = list(csv.DictReader(io.StringIO(out)))
    results = ["passed", "refused", "error", "failed", "refused", "error"]
    assert status == 1 and [one["result"] for one in found] == results
    assert "memcheck: " in found[3]["message"] and "block: must be a list of one to three" in found[2]["message"]


def test_seeds_engines_and_a_table(sweep: Any) -> None:
    status, out, _ = sweep("engine=native,reference", "seed=0,1", "--sweep seed2=1")
    assert status == 2 and not out
    status, out, _ = sweep("engine=native,reference", "seed=0,1")
    lines = out.splitlines()
    assert status == 0 and lines[0].split()[:4] == ["engine", "seed", "result", "instructions"]
    assert [line.split()[:3] for line in lines[1:5]] == [
        [engine, seed, "passed"] for engine in ("native", "reference") for seed in "01"
    ]
    assert lines[5] == "4 of 4 points passed"


def test_worker_processes_give_the_same(sweep: Any, tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    assert sweep("engine=reference", "args.3=1,2", f"-o '{target}' --format json", workers="2") == (0, "", "")
    found = json.loads(target.read_text("utf-8"))["points"]
    _, out, _ = sweep("engine=reference", "args.3=1,2", "--format json")
    assert [{**one, "seconds": 0} for one in found] == [{**one, "seconds": 0} for one in json.loads(out)["points"]]


@rows(("arguments", "message"), [
    (("agrs.3=1",), "agrs.3: there is no 'agrs'; did you mean 'args'?"),
    (("args.9=1",), "args.9: '9' is not a position in a list of 4"),
    (("args.0=1",), "args.0 is no number"),
    (("blok=1",), "unknown key 'blok'; did you mean 'block'?"),
    (("engine=fast",), "engine: must be native or reference, not 'fast'"),
    (("seed=x",), "seed is a whole number, not 'x'"),
    (("seed=-1",), "seed: must be at least 0, not -1"),
    (("seed=1", "--trace x.txt"), "--sweep and --trace exclude each other"),
    (("seed=1", "--format svg"), "--sweep has the formats text, json, csv"),
    (("seed=1", "--dask x:1"), "--workers and --dask exclude each other"),
    (("seed=1", "-o missing/x"), "missing/x: cannot be written"),
])  # fmt: skip
def test_wrong_usage(sweep: Any, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = sweep(*arguments)
    assert (status, out) == (2, "") and message in err


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Dask cluster of one worker, in this process."""
    import distributed

    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp", host="127.0.0.1",
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as local:  # fmt: skip
        yield local.scheduler_address


def test_on_a_cluster(cluster: str, sweep: Any) -> None:
    status, out, err = sweep("args.3=4,32", "--format json", "--dask " + cluster, workers="")
    found = json.loads(out)
    assert (status, err) == (0, "") and [one["result"] for one in found["points"]] == ["passed"] * 2
    status, out, err = sweep("grid=1,0", "--dask " + cluster, workers="")
    assert status == 1 and "passed" in out and "refused" in out


def test_what_goes_wrong_on_a_cluster(cluster: str, sweep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, err = sweep("seed=1", "--dask 127.0.0.1:nothing", workers="")
    assert (status, out) == (2, "") and "--dask 127.0.0.1:nothing: " in err
    monkeypatch.setattr("ptxtools.launch.sweep.run_point", lambda *_: 1 // 0)
    status, out, err = sweep("seed=1", "--dask " + cluster, workers="")
    assert (status, out) == (1, "") and f"--dask {cluster}: integer" in err


def test_a_file_that_saves(sweep: Any, tmp_path: Path) -> None:
    status, _, err = sweep("seed=0,1", more='save = "out.npy"\n')
    assert status == 2 and "every point would write" in err
    assert sweep("buffers.out.save+buffers.out.zeros=f32[64]", more='save = "out.npy"\n')[0] == 0
    assert (tmp_path / "f32[64]").exists()


@rows("arguments", [("--sweep", "seed=1"), ("--workers", "2"), ("--dask", "x"), ("--format", "csv")])
def test_what_needs_a_launch_file(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(command, "ptx-run", [MODULE, *arguments]) == 2
    assert "requires --" in capsys.readouterr().err
