"""Device-side launches as nvcc compiles them (testdata/syscalls/cdp.cu)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.ir.references import RUNTIME, is_runtime_function
from ptxtools.sim import childgrids, syscalls

CDP = ptxtools.load(Path(__file__).parents[3] / "testdata" / "syscalls" / "cdp.ptx")
ENGINES = ("native", "reference")


@pytest.mark.parametrize("engine", ENGINES)
def test_children_then_tail_launches(engine: str) -> None:
    out = np.zeros(200, np.int32)
    result = ptxtools.Device(engine=engine).launch(CDP["parent"], 1, 32, [out, 3])
    expected = [int(i * 1.5) + 16 * t for t in range(3) for i in range(16)]
    assert out[:48].tolist() == expected
    assert out[48] == sum(expected)  # the tail launch sees what the children wrote
    assert out[49] == 6  # its own children ran as well
    assert out[50:].max() == 0 and result.printed == "" and result.instructions > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_rest_of_the_device_runtime(engine: str) -> None:
    out = np.zeros(200, np.int32)
    device = ptxtools.Device("sm_90", engine=engine, sms=7, heap=1 << 20)
    result = device.launch(CDP["many"], 1, 1, [out])
    assert out[3:11].tolist() == [3, 5, 7, 9, 0, 0, 0, 0]  # blockDim is (4, 2): both rows write the same
    assert out[100:105].tolist() == [0, 1, 7, 1 << 20, 0]
    assert out[105] == 32 and out[106] == 1024 and out[107] == 13000
    assert out[114:116].tolist() == [0x07070707] * 2
    assert result.printed == "cudaSuccess invalid argument\n"
    assert device.runtime.heap.live() == []


def test_an_impossible_grid_is_an_error_of_the_launch() -> None:
    text = (Path(__file__).parents[3] / "testdata" / "syscalls" / "cdp.ptx").read_text()
    assert text.count("b32 \t[param2+0], 8;") == 1  # eight threads a CTA in `parent`
    device = ptxtools.Device()
    out = np.zeros(200, np.int32)
    result = device.launch(
        ptxtools.loads(text.replace("b32 \t[param2+0], 8;", "b32 \t[param2+0], 2000;"))["parent"], 1, 2, [out, 2]
    )
    assert result.printed == "launch failed 9\n" * 2  # cudaErrorInvalidConfiguration
    assert device.runtime.pending.live() == []


def test_every_name_is_known_to_all_that_ask() -> None:
    assert childgrids.ERRORS
    for name in syscalls.CALLS:
        assert is_runtime_function(name)
    assert {name for name in syscalls.CALLS if not name.startswith("__cudaCDP2")} == RUNTIME


def test_an_unknown_function_of_the_family_says_so() -> None:
    text = """.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 r) __cudaCDP2Nothing ();
.visible .entry k() { { .param .b32 q; call.uni (q), __cudaCDP2Nothing, (); } ret; }"""
    with pytest.raises(ptxtools.Trap, match="the runtime has no function __cudaCDP2Nothing"):
        ptxtools.Device().launch(ptxtools.loads(text)["k"], 1, 1, [])
