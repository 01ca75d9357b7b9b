"""Statements of which releases of ptxas make something else than the manual says, and how that is found out."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import ptxtools
from ptxtools.isa.targets import Target

from .sass import Thread, kernels
from .setting import where

#: Threads of a launch, each with numbers of its own: words of 32 bits, of which the fifth and sixth are %rd1.
THREADS, WORDS = 32, 8
_CORNERS = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFF8000, 0x7FFF7FFF, 0x80008000,
            0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)  # fmt: skip
_INTO, _FROM = 0x10000000, 0x20000000


def module_of(setting: str, bodies: Sequence[str]) -> str:
    """A module with a kernel for each list of statements."""
    version, target = where(setting)
    lines = [f".version {version[0]}.{version[1]}", f".target {target}", ".address_size 64"]
    for number, body in enumerate(bodies):
        wide = "%rd0," in body
        lines += [
            f".visible .entry k{number}(.param .u64 into, .param .u64 from) {{",
            ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>, %tid0; .reg .b64 %rd<20>, %into, %from;",
            "ld.param.u64 %into, [into]; ld.param.u64 %from, [from]; mov.u32 %tid0, %tid.x;",
            f"mad.wide.u32 %from, %tid0, {4 * WORDS}, %from; mad.wide.u32 %into, %tid0, 8, %into;",
            "ld.global.u32 %r1, [%from]; ld.global.u32 %r2, [%from+4]; ld.global.u32 %r3, [%from+8];",
            f"ld.global.u64 %rd1, [%from+16];\n{body}",
            f"st.global.{'u64' if wide else 'u32'} [%into], {'%rd0' if wide else '%r0'};\nret; }}",
        ]
    return "\n".join(lines) + "\n"


def numbers(seed: int) -> np.ndarray:
    """What the threads read: numbers near boundaries, and any."""
    rng = random.Random(seed)
    words = [rng.choice(_CORNERS) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(THREADS * WORDS)]
    return np.array(words, np.uint32).reshape(THREADS, WORDS)


def meant(text: str, count: int, given: np.ndarray) -> list[list[int]]:
    """What each thread of each kernel of a module computes, by the reference engine."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "module.ptx")
        path.write_text(text)
        module = ptxtools.load(str(path))
    device = ptxtools.Device(module.target, engine="reference")
    source = device.upload(given)
    found = []
    for number in range(count):
        into = device.upload(np.zeros(THREADS, np.uint64))
        device.launch(module[f"k{number}"], grid=1, block=THREADS, args=[into, source])
        found.append([int(value) for value in into.download()])
    return found


class Release:
    """A ptxas, and an nvdisasm that reads what it makes."""

    def __init__(self, ptxas: str, nvdisasm: str) -> None:
        self.ptxas, self.nvdisasm = ptxas, nvdisasm

    def code(self, text: str, target: str, level: int = 3) -> dict[str, list[str]] | None:
        """The instructions of each kernel of a module; None if it refuses the module."""
        with tempfile.TemporaryDirectory() as folder:
            path, out = Path(folder, "module.ptx"), Path(folder, "out")
            path.write_text(text)
            command = [self.ptxas, f"-arch={target}", f"-O{level}", "-o", str(out), str(path)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return None
            return kernels(self.nvdisasm, out.read_bytes())


def computed(code: list[str], target: str, given: np.ndarray) -> list[int]:
    """What each thread of a kernel computes, by its machine code. Raises sass.UnsupportedError."""
    parameters = _INTO.to_bytes(8, "little") + _FROM.to_bytes(8, "little")
    bytes_ = given.tobytes()
    found = []
    for number in range(THREADS):
        start = 4 * WORDS * number
        memory = {_FROM + start + at: byte for at, byte in enumerate(bytes_[start : start + 4 * WORDS])}
        thread = Thread(Target(target).number, memory, parameters, number)
        thread.run(code)
        found.append(sum(memory.get(_INTO + 8 * number + byte, 0) << 8 * byte for byte in range(8)))
    return found
