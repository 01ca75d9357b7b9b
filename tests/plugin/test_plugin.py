"""The plugin for pytest, by a run of pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

TESTS = '''
import numpy as np
import pytest
import ptxtools

KERNEL = ptxtools.loads(""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %d<3>; .reg .b32 %r<2>;
    ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
    ret;
}
""", "k.ptx")["k"]
pytestmark = pytest.mark.ptx(sms=3, engine="reference")

def run(device, count):
    out = np.zeros(count, np.uint32)
    device.launch(KERNEL, 1, 4, [out])
    assert out.tolist() == list(range(count))

@pytest.mark.ptx(target="sm_90", checks="memcheck")
def test_good(ptx_device):
    run(ptx_device, 4)
    assert (ptx_device.sms, ptx_device.engine, ptx_device.target) == (3, "reference", "sm_90")

@pytest.mark.ptx(checks="memcheck")
def test_found(ptx_device):
    run(ptx_device, 3)

@pytest.mark.ptx(checks="memcheck")
def test_wrong(ptx_device):
    run(ptx_device, 3)
    assert False, "the test itself"

def test_without_checks(ptx_device):
    assert not ptx_device.checks and ptx_device.sms == 3

@pytest.mark.ptx("sm_90")
def test_misused(ptx_device):
    pass
'''


def test_devices_markers_and_reports(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(TESTS)
    # in a process of its own: it would leave ptxtools loaded twice; the plugin by its module, installed or not
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = pytester.runpytest_subprocess("-p", "no:ptxtools", "-p", "ptxtools.plugin", "--strict-markers")
    done.assert_outcomes(passed=2, failed=2, errors=1)
    done.stdout.fnmatch_lines([
        "*checkers found 1 thing in the kernels of this test",
        "*ptx: found by checkers*",
        "k.ptx:9: memcheck: *",
        "*the test itself*",
        "*ptx: found by checkers*",
    ])  # fmt: skip
    assert "takes named options of ptxtools.Device" in done.stdout.str()
