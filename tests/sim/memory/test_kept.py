"""Content of memory that is kept, and put back."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.api import loadable
from ptxtools.launch.file import read_launch_file
from ptxtools.launch.runner import run_job
from ptxtools.machine.options import DeviceOptions
from ptxtools.native.loop import driver
from ptxtools.sim import kept
from ptxtools.sim.kept import Kept, touched_bytes
from tests.observe.programs import module, written

MIB = 1 << 20


def _change(memory: np.ndarray, draw: random.Random) -> None:
    for _ in range(draw.randrange(1, 8)):
        first = draw.randrange(len(memory))
        memory[first : first + draw.choice([1, 7, 4096, 70_000])] = draw.randrange(256)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_put_back_is_what_was_kept(monkeypatch: pytest.MonkeyPatch, seed: int, known: bool) -> None:
    """Where the system says which pages have content, and where it does not; at any address."""
    if not known:
        monkeypatch.setattr(kept, "_PAGES", "/nowhere/pagemap")
    draw = random.Random(seed)
    first = draw.choice([0, 1, 4095, 4096])
    memory = np.zeros(draw.choice([100, 4097, 3 * MIB, 9 * MIB + 5]) + first, np.uint8)[first:]
    for _ in range(3):
        _change(memory, draw)
        before, expected = Kept(memory), memory.copy()
        _change(memory, draw)
        before.put_back()
        np.testing.assert_array_equal(memory, expected)


#: Threads of all CTAs add 1 to a word; and one CTA reads beyond the buffer, which only memcheck survives.
ADDS = """mad.wide.u32 %b, %i, 4, %a; ld.global.u32 %r1, [%b]; add.u32 %r1, %r1, 1; st.global.u32 [%b], %r1;
"""
BEYOND = """mov.u32 %r2, %ctaid.x; setp.eq.u32 %p, %r2, 5; @%p ld.global.u32 %r3, [%a+1048576];
"""


def _arguments(device: Any) -> list[tuple[Any, Any]]:
    """Arrays as arguments, and what reads the result: plain, and what is no copy of itself, or lies on the device."""
    words = np.arange(64, dtype=np.uint32)
    plain, table, buffer = words.copy(), np.stack([words, words]).T.copy(), device.upload(words)
    turned, fixed = words.reshape(4, 16).T, words.copy()
    fixed.flags.writeable = False
    return [
        (plain, lambda: plain),
        (table[:, 1], lambda: table[:, 1]),
        (turned, lambda: words),
        (fixed, lambda: fixed),
        (buffer, buffer.download),
        (np.asarray(buffer), buffer.download),
    ]


@pytest.mark.parametrize("checks", ["memcheck", "racecheck", "all"])
@pytest.mark.parametrize("number", range(6))
def test_a_grid_begins_again_with_its_arguments(number: int, checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid has something to report, so that it runs again: each word is one more, or as one worker leaves it."""
    monkeypatch.setattr(driver, "_ALONE", 1)
    monkeypatch.setattr(driver, "_LONG", 0)
    found = []
    for threads in (2, 1):
        device = ptxtools.Device("sm_80", checks=checks, threads=threads)
        argument, result = _arguments(device)[number]
        done = []
        kernel = module(ADDS + BEYOND * (checks != "racecheck"))["k"]
        for _ in range(3):  # freed memory of the last launch is there, too
            reports = device.launch(kernel, (8, 1), 64, [argument]).reports
            done.append(([str(one) for one in reports], result().tolist()))
            assert reports
        found.append(done)
    assert found[0] == found[1]


def test_what_a_launch_has_left_is_what_the_next_one_begins_again_with(tmp_path: Any) -> None:
    """A launch file whose second launch finds what the first one has written, not what the buffer was uploaded with."""
    (tmp_path / "k.ptx").write_text(written(ADDS + BEYOND))
    launch = '[[launch]]\nkernel = "k"\ngrid = 8\nblock = 64\nargs = [{ buffer = "words" }]\n'
    buffer = 'module = "k.ptx"\n[buffers.words]\narange = "u32[64]"\n'
    (tmp_path / "k.toml").write_text(buffer + 3 * launch)
    found = []
    for threads in (2, 1):
        job = read_launch_file(str(tmp_path / "k.toml"))
        job.device = DeviceOptions(checks="memcheck", threads=threads)
        report = run_job(job, lambda name: loadable(Path(name).read_bytes(), name), keep=True)
        assert report.memory is not None and report.findings
        found.append(report.memory["words"].array.tolist())
    assert found[0] == found[1] == [number + 24 for number in range(64)]


def _bytes_of(device: Any) -> int:
    arena = device.arena
    return touched_bytes(np.frombuffer(arena.view(arena.base, arena.used), np.uint8))


@pytest.mark.skipif(kept._there(0, 1) is None, reason="the system does not say which pages have content")
def test_what_nobody_touches_costs_no_memory() -> None:
    """A buffer of 1.5 GB with a few words in use: the first look and what is run behind it leave the rest alone."""
    kernel = module("mad.wide.u32 %b, %i, 4, %a; red.global.add.u32 [%b], 1; st.global.u32 [%a+0x20000000], %i;")["k"]
    device = ptxtools.Device(checks="all", memory=3 << 30, threads=1)
    buffer = device.alloc(1536 * MIB)
    result = device.launch(kernel, 1, 64, [buffer])
    assert {one.checker for one in result.reports} >= {"racecheck"}
    assert _bytes_of(device) < 8 * MIB
