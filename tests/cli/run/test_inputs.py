"""ptx-run with input of odd kinds: arrays that are no numbers, and files that are none or have no end."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from ptxtools.files import reading as files

KERNELS = """
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 8 .b8 pair[16];
.visible .entry pointer(.param .u64 a) { ret; }
.visible .entry number(.param .u32 a) { ret; }
"""
GRID = ("--grid", "1", "--block", "1")
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(KERNELS)

    def call(*arguments: str) -> tuple[int, str]:
        return exit_status(command, "ptx-run", list(arguments)), capfd.readouterr().err

    return call


def expect(run: Run, got: str, expected: np.ndarray) -> tuple[int, str]:
    np.save("expected.npy", expected)
    return run("k.ptx", "-k", "pointer", *GRID, "--arg", got, "--expect", "0=expected.npy")


def test_complex_buffers_are_held_against_complex_numbers(run: Run) -> None:
    np.save("in.npy", np.full(3, 1 + 2j, np.complex64))
    assert expect(run, "in.npy", np.full(3, 1 + 2j)) == (0, "")
    status, err = expect(run, "in.npy", np.array([1 + 2j, 1 - 2j, 1 + 2j]))
    assert status == 1 and "1 of 3" in err and "got 1+2j  expected 1.0-2.0j  off by 4" in err and "Warning" not in err


def test_integers_are_held_against_floats_exactly(run: Run) -> None:
    status, err = expect(run, "fill:s64[1]=9007199254740993", np.array([2.0**53]))
    assert status == 1 and "got 9007199254740993  expected 9007199254740992.0  off by 1" in err


@pytest.mark.parametrize("dtype", ["f4,i4", ">f4,>i4", "U3", "S2", "M8[s]", "longdouble"])
def test_an_expectation_without_comparable_numbers_is_refused_before_the_run(run: Run, dtype: str) -> None:
    status, err = expect(run, "zeros:f32[2]", np.zeros(2, dtype))
    assert status == 2 and err.startswith("ptx-run: error: expected.npy: contains ")


def test_a_variable_is_not_held_against_structures(run: Run) -> None:
    np.save("e.npy", np.zeros(2, "i4,f4"))
    launch = 'module = "k.ptx"\nkernel = "number"\ngrid = 1\nblock = 1\nargs = [{value = 1}]\n'
    Path("l.toml").write_text(launch + 'globals.pair.expect = "e.npy"\n')
    status, err = run("--launch", "l.toml")
    assert status == 2 and "e.npy: contains structures (f0, f1)" in err
    np.save("e.npy", np.array([0j]))
    assert run("--launch", "l.toml") == (0, "")
    np.save("e.npy", np.array([1j]))
    status, err = run("--launch", "l.toml")
    assert status == 1 and "got 0.0+0.0j  expected 0.0+1.0j" in err


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(2, "U3"), "arrays of <U3 have no PTX element type"),
        (np.zeros(2, np.dtype("V0")), "contains items of 0 bytes"),
        (np.array([{}], object), "contains Python objects, not numbers"),
    ],
)
def test_arrays_that_are_no_memory(run: Run, array: np.ndarray, said: str) -> None:
    np.save("in.npy", array, allow_pickle=True)
    status, err = run("k.ptx", "-k", "pointer", *GRID, "--arg", "in.npy")
    assert status == 2 and f"in.npy: {said}" in err


def test_big_endian_structures_come_in_the_device_s_order(run: Run) -> None:
    values = np.array([(1, 2.5), (3, 4.5)], ">i4,>f4")
    np.save("in.npy", values)
    assert run("k.ptx", "-k", "pointer", *GRID, "--arg", "in.npy", "--save", "0=out.npy")[0] == 0
    out = np.load("out.npy")
    assert out.dtype.isnative and out.tolist() == values.tolist()


# --- no regular files -------------------------------------------------------------------------------------------------


def feed(path: str, data: bytes) -> threading.Thread:
    """Make a pipe and write to it once it is read."""
    os.mkfifo(path)
    thread = threading.Thread(target=lambda: Path(path).write_bytes(data), daemon=True)
    thread.start()
    return thread


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_arrays_come_through_pipes(run: Run) -> None:
    feed("in.npy", npy(np.arange(40000, dtype=np.float32)))
    assert expect(run, "in.npy", np.arange(40000)) == (0, "")


@pytest.mark.parametrize("data", [b"", b"something else", npy(np.zeros(100))[:300], npy(np.zeros(1))[:20]])
def test_pipes_with_something_else(run: Run, data: bytes) -> None:
    feed("in.npy", data)
    status, err = run("k.ptx", "-k", "pointer", *GRID, "--arg", "in.npy")
    assert status == 2 and "in.npy: " in err and "internal" not in err and ".npy file" in err


def test_a_parameter_s_bytes_may_come_through_a_pipe(run: Run) -> None:
    feed("value", b"abcd")
    assert run("k.ptx", "-k", "number", *GRID, "--arg", "@value")[0] == 0


def test_a_parameter_takes_no_more_of_a_file_than_it_holds(run: Run) -> None:
    Path("large").write_bytes(bytes(100_000))
    status, err = run("k.ptx", "-k", "number", *GRID, "--arg", "@large")
    assert status == 2 and "large: has 100,000 bytes" in err
    Path("fits").write_bytes(bytes(100))
    status, err = run("k.ptx", "-k", "number", *GRID, "--arg", "@fits")
    assert status == 1 and "has 4 bytes, not 100" in err


class Stream(io.RawIOBase):
    """A device without an end. It counts what is read of it."""

    def __init__(self) -> None:
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "all of it"
        self.taken += size
        return bytes(size)


def test_reading_ends_where_there_is_no_use_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 5 << 20)
    stream = Stream()
    with pytest.raises(files.Endless, match="more than 5,242,880 bytes"):
        files.read_all(stream)  # type: ignore[arg-type]
    assert stream.taken == 6 << 20
    assert files.read_all(io.BytesIO(b"x" * (3 << 20))) == b"x" * (3 << 20)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
@pytest.mark.parametrize(
    "arguments",
    [
        ("/dev/zero", *GRID),
        ("--launch", "/dev/zero"),
        ("k.ptx", "-k", "number", *GRID, "--arg", "@/dev/zero"),
        ("k.ptx", "-k", "pointer", *GRID, "--arg", "zero.npy"),
        ("k.ptx", "-k", "pointer", *GRID, "--arg", "zeros:f32[1]", "--expect", "0=zero.npy"),
    ],
)
def test_devices_without_an_end(run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.setattr(files, "MOST_OF_DEVICE", 4 << 20)
    os.symlink("/dev/zero", "zero.npy")
    status, err = run(*arguments)
    assert status == 2 and ("more than" in err or "not a .npy file" in err)


@pytest.mark.parametrize("spec", ["zeros:f32[99999999999]", "fill:f32[99999999999]=1", "arange:u8[99999999999]",
                                  "random:f32[99999999999]"])  # fmt: skip
def test_what_the_device_cannot_hold_is_not_made(run: Run, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    from ptxtools.launch import arguments

    monkeypatch.setattr(arguments.Content, "array", lambda self: made.append(self.kind))
    status, err = run("k.ptx", "-k", "pointer", *GRID, "--arg", spec)
    assert status == 1 and "argument 0: out of device memory" in err and not made
