"""The printf of kernels against what the C library printed (testdata/syscalls/formats.tsv, print.txt)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import ptxtools
from ptxtools.sim import printf

DATA = Path(__file__).parents[3] / "testdata" / "syscalls"
PRINT = ptxtools.load(DATA / "print.ptx")
ENGINES = ("native", "reference")


def formatted(text: str, *values: int | float | bytes) -> str:
    """printf with these arguments; bytes are strings."""
    strings = {n + 1: v for n, v in enumerate(values) if isinstance(v, bytes)}
    packed = b""
    for n, value in enumerate(values):
        size = 4 if isinstance(value, int) and -(1 << 31) <= value < 1 << 32 else 8
        packed += bytes(-len(packed) % size)
        if isinstance(value, bytes):
            packed += bytes(-len(packed) % 8) + struct.pack("<Q", n + 1)
        elif isinstance(value, float):
            packed += struct.pack("<d", value)
        else:
            packed += (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return printf.render(printf.parse(text.encode()), packed, strings.__getitem__).decode()


def test_formats_of_the_c_library() -> None:
    rows = [line.split("\t") for line in (DATA / "formats.tsv").read_text().splitlines()]
    assert len(rows) == 600
    wrong = []
    for text, value, expected in rows:
        got = formatted(text, eval(value))  # numbers such as 1e300*1e10
        if got != expected:
            wrong.append((text, value, expected, got))
    assert not wrong


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("%5c|%-3c|", (65, 66), "    A|B  |"),
        ("%.0s|%s|%6.2s", (b"gone", b"all", b"part"), "|all|    pa"),
        ("%s %p", (1 << 40, 1 << 40), None),
        ("%d%% %y %", (3,), "3% %y %"),
        ("%n%d", (1 << 40, 7), "7"),
        ("%hhu %hu %hhd", (300, 65537, 200), "44 1 -56"),
        ("%-*d|%.*f", (-4, 1, -1, 0.5), "1   |0.500000"),
        ("%f %F %e", (float("inf"), float("-inf"), float("nan")), "inf -INF nan"),
        ("%05f|%+f", (float("inf"), float("inf")), "  inf|+inf"),
    ],
)
def test_further_conversions(text: str, values: tuple[int | float | bytes, ...], expected: str | None) -> None:
    if expected is None:
        with pytest.raises(KeyError):  # the address of a string is asked for
            formatted(text, *values)
    else:
        assert formatted(text, *values) == expected


def test_null_pointers() -> None:
    form = printf.parse(b"%s %p")
    assert printf.render(form, bytes(16), lambda address: b"?") == b"(null) (nil)"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_prints(engine: str) -> None:
    device = ptxtools.Device(engine=engine)
    result = device.launch(PRINT["print_all"], 1, 32, [None, -1.5])
    assert result.printed == (DATA / "print.txt").read_text()


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_print_in_order_and_at_once(engine: str) -> None:
    seen: list[str] = []
    device = ptxtools.Device(engine=engine, threads=1, on_print=seen.append)
    result = device.launch(PRINT["print_each"], 2, 40, [71])
    assert result.printed == "".join(f"thread {n} of 71\n" for n in range(71))
    assert "".join(seen) == result.printed and len(seen) == 3  # two warps of the first CTA, one of the other


def test_what_was_printed_before_a_trap_is_not_lost() -> None:
    seen: list[str] = []
    device = ptxtools.Device(on_print=seen.append)
    text = (DATA / "print.ptx").read_text().replace("$L__BB1_2:", "$L__BB1_2:\n trap;")
    with pytest.raises(ptxtools.Trap):
        device.launch(ptxtools.loads(text)["print_each"], 1, 1, [1])
    assert seen == ["thread 0 of 1\n"]


def test_ctas_print_in_their_order() -> None:
    """Also where the grid is large enough for several worker threads."""
    result = ptxtools.Device(sms=4).launch(PRINT["print_each"], 400, 64, [400 * 64])
    assert result.printed == "".join(f"thread {n} of 25600\n" for n in range(400 * 64))
