"""Run PTX text on an engine with nothing but the engine: memory, parameters, results."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ptxtools import reference
from ptxtools.ir import Module
from ptxtools.machine.launch import AddressSpace, Launch, Outcome
from ptxtools.program import Program, lower
from ptxtools.program.layout import kernel_parameters
from ptxtools.program.variant import Variant
from ptxtools.syntax import parse

BASE = 0x1000_0000
HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


class Memory:
    """A small device memory; `put` gives the device address of a copy of an array."""

    def __init__(self, size: int = 1 << 22) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.used = 0
        self.space = AddressSpace(self.bytes.ctypes.data, BASE, size)

    def put(self, array: np.ndarray[Any, Any]) -> int:
        data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        at = self.used
        self.bytes[at : at + len(data)] = data
        self.used = -(-(at + len(data)) // 256) * 256
        return BASE + at

    def get(self, address: int, dtype: Any, count: int) -> np.ndarray[Any, Any]:
        start = address - BASE
        return self.bytes[start : start + count * np.dtype(dtype).itemsize].view(dtype).copy()


def module_of(text: str) -> Module:
    """Parse; a header is put in front of bare functions. Raises AssertionError for text with errors."""
    result = parse(text if ".version" in text else HEADER + text)
    assert not result.diagnostics, [d.message for d in result.diagnostics]
    return result.module


def lowered(text: str, *, optimise: bool = True, globals_at: int = BASE) -> Program:
    module = module_of(text)
    return lower(module, module.entries[0].name, lambda name: globals_at, variant=Variant(optimise=optimise))


def parameter_block(module: Module, values: list[int | bytes]) -> bytes:
    placed = kernel_parameters(module.entries[0])
    block = bytearray(placed[-1].offset + placed[-1].size if placed else 0)
    for parameter, value in zip(placed, values, strict=True):
        data = value if isinstance(value, bytes) else (value & (1 << 64) - 1).to_bytes(8, "little")[: parameter.size]
        block[parameter.offset : parameter.offset + len(data)] = data
    return bytes(block)


@functools.lru_cache(32)
def _known(text: str, optimise: bool, globals_at: int) -> tuple[Module, Program]:
    """A kernel that is launched again and again is made ready once, as a device does."""
    module = module_of(text)
    return module, lower(module, module.entries[0].name, lambda name: globals_at, variant=Variant(optimise=optimise))


def launch_of(
    text: str, memory: Memory, values: list[int | bytes], *, optimise: bool = True, globals_at: int = BASE, **shape: Any
) -> Launch:
    module, program = _known(text, optimise, globals_at)
    options = {"grid": (1, 1, 1), "block": (32, 1, 1), **shape}
    return Launch(program=program, memory=memory.space, params=parameter_block(module, values), **options)


def run(text: str, memory: Memory, values: list[int | bytes], **options: Any) -> Outcome:
    return reference.run(launch_of(text, memory, values, **options))


def results(
    body: str, count: int = 32, *, dtype: Any = np.uint32, before: str = "", inputs: Any = None, **options: Any
) -> np.ndarray[Any, Any]:
    """What a kernel with this body leaves in its output array.

    The body has %tid.x in %t, the output's address for the thread in %out, an input array's in %in; one block of
    `count` threads unless `block` says otherwise.
    """
    size = np.dtype(dtype).itemsize
    text = f"""{before}
.visible .entry k(.param .u64 out, .param .u64 in) {{
    .reg .u32 %t; .reg .u64 %out, %in, %w;
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<8>;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %w, %t, {size};
    ld.param.u64 %out, [out];
    add.u64 %out, %out, %w;
    ld.param.u64 %in, [in];
    {body}
}}"""
    memory = Memory()
    out = memory.put(np.zeros(count, dtype))
    source = memory.put(np.zeros(1) if inputs is None else inputs)
    options.setdefault("block", (count, 1, 1))
    run(text, memory, [out, source], **options)
    return memory.get(out, dtype, count)


def listing(program: Program) -> list[str]:
    """Operations and terminators in short: guard, opcode or kind, terminator with its blocks."""
    lines: list[str] = []
    for number, block in enumerate(program.blocks):
        lines.append(f"{number}:")
        for op in block.ops:
            guard = "" if op.guard is None else "@!p " if op.negated else "@p "
            lines.append(f"  {guard}{op.opcode.text if op.opcode else op.kind}")
        end = block.terminator
        blocks = [str(b) for b in (end.target, end.other, *end.targets) if b >= 0]
        guard = "" if end.guard is None else "@!p " if end.negated else "@p "
        lines.append(f"  -> {guard}{end.kind} {' '.join(blocks)}".rstrip())
    return lines
