"""What a command loads: work at start that a run does not need is a mistake, and counted in modules."""

import subprocess
import sys

import pytest

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""

#: A command as its own process, which prints the modules of ours that it has loaded in the end.
RUN = """import sys
from ptxtools.cli.{command} import command
assert command.main(sys.argv[1:], standalone_mode=False) in (0, None)
print("loaded:", *sorted(name for name in sys.modules if name.startswith("ptxtools.")))
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "k.ptx").write_text(KERNEL)

    def run(command, *arguments):
        line = [sys.executable, "-c", RUN.format(command=command), "k.ptx", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, check=True)
        return set(done.stdout.rpartition("loaded:")[2].split())

    return run


def below(modules, *packages):
    return {name for name in modules if any(f"{name}.".startswith(f"ptxtools.{package}.") for package in packages)}


def test_linting_a_text_loads_nothing_that_reads_containers_or_runs_kernels(loaded):
    found = loaded("lint")
    assert below(found, "container") == {"ptxtools.container", "ptxtools.container.magic"}
    assert below(found, "inputs") == {"ptxtools.inputs", "ptxtools.inputs.detection"}
    assert below(found, "machine") == {"ptxtools.machine", "ptxtools.machine.providers"}
    assert not below(found, "program", "native", "reference", "sim", "launch", "semantics", "pages")


def test_running_a_known_kernel_loads_no_front_end_and_nothing_for_what_it_does_not_use(loaded):
    arguments = ("--grid", "1", "--block", "32", "--arg", "zeros:u32[1]")
    first, second = loaded("run", *arguments), loaded("run", *arguments)
    assert below(first, "syntax", "ir", "check", "program.lowering")
    assert not below(second, "syntax", "ir", "check", "container", "inputs", "program.lowering", "program.passes")
    assert not below(second, "native.handlers", "native.code.generate", "reference")
    assert below(second, "sim.textures") == {"ptxtools.sim.textures", "ptxtools.sim.textures.handles"}
    for unused in ("launch.textures", "launch.file", "machine.deadlock", "machine.polled", "observe.session",
                   "sim.children", "sim.asynchronous", "sim.tensor"):  # fmt: skip
        assert not below(second, unused), unused
