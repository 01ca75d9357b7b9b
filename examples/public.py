"""Every public object of ptxtools, used once: `mypy --strict` passes on it, and it runs (python examples/public.py)."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

import ptxtools
from ptxtools.machine.events import View
from ptxtools.machine.launch import Launch
from ptxtools.observe.coverage import Coverage
from ptxtools.observe.profile import Profile

HERE = Path(__file__).parent
SMALL = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .u32 %r; mov.u32 %r, 1; ret; }\n"
MESSAGE = (HERE / "cookbook" / "message.litmus").read_text()
STORES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) { .reg .u64 %a; ld.param.u64 %a, [x]; st.relaxed.gpu.global.u32 [%a], 1; ret; }
"""
IR = """target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
define void @k() {
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @k, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
"""


class Stores(ptxtools.Observer):
    """Counts the instructions of warps."""

    def __init__(self) -> None:
        self.count = 0
        self.kernels: list[str] = []

    def grid_begun(self, launch: Launch) -> None:
        self.kernels.append(launch.program.kernel)

    def instruction(self, at: View, lanes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        self.count += 1


def modules() -> ptxtools.Module:
    """Checks, assembles and loads."""
    findings: list[ptxtools.Diagnostic] = ptxtools.lint(SMALL)
    assert all(finding.severity is not ptxtools.Severity.ERROR for finding in findings)
    container: bytes = ptxtools.assemble([SMALL])
    text: str = ptxtools.disassemble(container)
    module: ptxtools.Module = ptxtools.loads(text)
    kernel: ptxtools.Kernel = module["k"]
    assert kernel.name == "k" and not kernel.params and ptxtools.PtxWarning.__doc__
    try:
        ptxtools.loads("add.s32 %r1;")
    except ptxtools.PtxError as error:
        print(f"{len(error.diagnostics)} errors")
    return ptxtools.load(HERE / "vecadd.ptx")


def runs(module: ptxtools.Module) -> ptxtools.RunResult:
    """Runs a kernel, observed; and once more as a driver would."""
    stores, profile, coverage = Stores(), Profile(), Coverage()
    device = ptxtools.Device("sm_80", checks="memcheck", observers=[stores, profile, coverage])
    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    buffer: ptxtools.Buffer = device.upload(a)
    result: ptxtools.RunResult = device.launch(module["vecadd"], grid=1, block=64, args=[buffer, a, out, 64])
    assert not result.reports and stores.kernels == ["vecadd"] and profile.kernels[0].warps == stores.count
    assert np.array_equal(buffer.download(), a) and np.array_equal(out, 2 * a)
    for size, wanted in ((1 << 60, ptxtools.OutOfMemory), (-1, ptxtools.LaunchError)):
        try:
            device.alloc(size)
        except wanted as error:
            print(error)
    try:
        ptxtools.Device("sm_80").launch(module["vecadd"], grid=1, block=64, args=[0, a, out, 64])
    except ptxtools.Trap as trap:
        print(trap.kind)
    host = (ctypes.c_float * 64)(*range(64))
    address = ctypes.addressof(host)
    return ptxtools.ptx_run((HERE / "vecadd.ptx").read_bytes(), [address, address, address, 64], 64, 1)


def memory() -> None:
    """The memory model, of a litmus test and of a kernel."""
    assert ptxtools.litmus(MESSAGE).holds and len(ptxtools.litmus_tests(MESSAGE)) == 1
    assert ptxtools.litmus_kernel(STORES, "exists ([x]=1)", args=[np.zeros(1, np.uint32)]) is not None
    print(ptxtools.litmus_launch.__doc__)


def nvvm() -> None:
    """NVVM IR."""
    assert not [d for d in ptxtools.nvvm.lint(IR) if d.severity is ptxtools.Severity.ERROR]
    assert ".entry k" in ptxtools.nvvm.lower(IR, how=ptxtools.nvvm.Lowering(target="sm_80"))


if __name__ == "__main__":
    print(runs(modules()))
    memory()
    nvvm()
