"""A kernel with its launch file that the model and the simulator both run, with lines that may be left out marked by
comments such as `//wait`."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import ptxtools
from ptxtools.api import loadable
from ptxtools.diagnostics import Trap
from ptxtools.launch.file import read_launch_file
from ptxtools.launch.runner import run_job
from ptxtools.machine.options import DeviceOptions

HEAD = """.version 9.3
.target {target}
.address_size 64
.visible .entry k({parameters})
{{
    .reg .pred %p<8>; .reg .b32 %r<24>; .reg .b64 %rd<12>; .reg .b16 %h<4>; .reg .b32 %f<24>;
"""
OUT = ".param .u64 out"


@dataclass(frozen=True)
class Feature:
    """A kernel. body: its instructions; launch: its launch file without module and condition, in TOML; names: what
    makes an outcome; right: the only outcome of the whole kernel; marks: of lines, without which there are others;
    idle: marks of lines without which there are none."""

    body: str
    launch: str
    names: tuple[str, ...]
    right: tuple[int, ...]
    marks: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    parameters: str = OUT
    target: str = "sm_90a"
    litmus: str = ""
    options: dict[str, object] = field(default_factory=dict)

    def without(self, *marks):
        """The text of the kernel without the lines that have one of the marks."""
        lines = [line for line in self.body.split("\n") if not any(line.endswith(f"//{mark}") for mark in marks)]
        head = HEAD.format(target=self.target, parameters=self.parameters)
        return head + "\n".join(lines) + "\n    ret;\n}\n"

    def write(self, folder, *marks):
        """Write the kernel and its launch file, whose condition is that the outcome is the right one."""
        (folder / "k.ptx").write_text(self.without(*marks))
        condition = " /\\\\ ".join(f"{name} == {value}" for name, value in zip(self.names, self.right, strict=True))
        path = folder / "k.toml"
        path.write_text(f'module = "k.ptx"\n{self.launch}\n[litmus]\ncondition = "forall ({condition})"\n{self.litmus}')
        return path

    def allowed(self, path):
        """What the model allows: the outcomes, in the order of the names."""
        found = ptxtools.litmus_launch(str(path), unroll=3)
        places = [found.names.index(name) for name in self.names]
        return found, {tuple(state[at] for at in places) for state in found.states}

    def outcome(self, path, seed, memory):
        """What the simulator does: None if it traps, as a kernel that lacks lines may."""
        job = read_launch_file(str(path))
        job.device = DeviceOptions(seed=seed, memory_model=memory) if memory == "weak" else DeviceOptions(seed=seed)
        try:
            report = run_job(job, lambda name: loadable(Path(name).read_bytes(), name), keep=True)
        except Trap:
            return None
        return tuple(_element(report.memory, name) for name in self.names)


def _element(memory, name):
    buffer, _, index = name.partition("[")
    return int(np.asarray(memory[buffer].array).reshape(-1)[int(index[:-1] or 0)])
