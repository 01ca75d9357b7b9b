"""PTX kernels that compute one form over arrays, or hash its results over all inputs.

A form kernel has the parameters (out0, …, in0, …, count): arrays of one word for each value (16, 32 or 64 bits;
predicates 32; 128-bit values two of 64). A hash kernel has (sums, base): each CTA adds the hashes of 2**14 results to
sums[(base + index) >> block]; the inputs are made from the index (`PATTERNS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxtools.isa import Opcode
from ptxtools.semantics.types import word_bits
from tests.semantics.harness import signature

#: lop3's table in these kernels: the bitwise choice between b and c by a, which no symmetry hides.
LOP3_TABLE = 0xCA
#: Indices of one CTA of a hash kernel: 256 threads, 64 each.
CTA_SHIFT, ROUNDS = 14, 64
#: Multipliers of the hash.
MULTIPLIERS = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)

#: How the index %x becomes operands: lines of PTX that set %a0, %a1.
PATTERNS = {
    "half": "cvt.u16.u32 %a0, %x;",
    "word": "mov.b32 %a0, %x;",
    "pair": "mad.lo.u32 %a0, %x, 2654435761, 12345; shr.u32 %y, %x, 15; xor.b32 %y, %y, %x;"
    " mul.lo.u32 %a1, %y, 2246822519;",
    "high": "mov.b32 %y, 0; mov.b64 %a0, {%y, %x};",
    "wide": "mul.lo.u32 %y, %x, 2654435761; mov.b64 %a0, {%y, %x};",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Types of what a kernel reads and writes, carries included; `constants`: inputs that are literals in the text."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[int, int]


def shape_of(op: Opcode) -> Shape:
    """From the opcode's operands: setp has p and q, lop3 with .BoolOp d and p."""
    types = signature(op)
    outputs = list(types.outputs)
    if any("pair" in operand.kinds for operand in op.operands if operand.role == "dst"):
        outputs.append("pred")
    if op.carry_out:
        outputs.append("pred")
    constants = {3: LOP3_TABLE} if op.family == "lop3" else {}
    return Shape(types.inputs, tuple(outputs), constants)


def pattern_of(op: Opcode) -> str | None:
    """How the form's inputs can be enumerated, if they can."""
    inputs = shape_of(op).inputs
    widths = [word_bits(t) for t in inputs]
    if widths == [16] and inputs[0] not in ("e2m1x2", "s8", "u8"):
        return "half"
    if widths == [32]:
        return "word"
    if op.family == "div" and (op.has("approx") or op.has("full")):
        return "pair"
    if op.type == "f64" and op.has("approx"):
        return "high" if op.has("ftz") else "wide"
    return None


def _register(t: str) -> str:
    return {"pred": "pred", "e2m1x2": "b8", "b8": "b8"}.get(t, f"b{word_bits(t)}")


def _instruction(op: Opcode, shape: Shape) -> str:
    """The instruction over %a0, %a1, … and %d0, %d1; with what sets and reads the carry around it."""
    numbers = iter(range(len(shape.inputs)))
    written: list[str] = []
    for operand in op.operands:
        if operand.optional:
            continue
        if operand.role == "dst":
            written.append("%d0|%d1" if "pair" in operand.kinds else "%d0")
            continue
        names = []
        for _ in range(max(1, operand.vector)):
            number = next(numbers)
            names.append(str(shape.constants[number]) if number in shape.constants else f"%a{number}")
        written.append("{" + ", ".join(names) + "}" if operand.vector else names[0])
    line = f"{op.text} {', '.join(written)};"
    if op.carry_in:
        carry = f"%a{len(shape.inputs) - 1}"
        line = f"selp.u32 %c, 1, 0, {carry}; add.cc.u32 %c, %c, 0xffffffff; {line}"
    if op.carry_out:
        line = f"{line} addc.u32 %c, 0, 0; setp.ne.u32 %d1, %c, 0;"
    return line


def _registers(shape: Shape) -> str:
    lines = [f".reg .{_register(t)} %a{i};" for i, t in enumerate(shape.inputs) if i not in shape.constants]
    return " ".join(lines + [f".reg .{_register(t)} %d{i};" for i, t in enumerate(shape.outputs)])


def memory_bytes(t: str) -> int:
    """Bytes of a value in a form kernel's arrays."""
    return 4 if t == "pred" else word_bits(t) // 8


def _load(t: str, register: str) -> str:
    if t == "pred":
        return f"ld.global.u32 %w, [%p]; setp.ne.u32 {register}, %w, 0;"
    if word_bits(t) == 128:
        return f"ld.global.v2.b64 {{%l, %h}}, [%p]; mov.b128 {register}, {{%l, %h}};"
    return f"ld.global.{_register(t)} {register}, [%p];"


def _store(t: str, register: str) -> str:
    if t == "pred":
        return f"selp.u32 %w, 1, 0, {register}; st.global.u32 [%p], %w;"
    if word_bits(t) == 128:
        return f"mov.b128 {{%l, %h}}, {register}; st.global.v2.b64 [%p], {{%l, %h}};"
    return f"st.global.{_register(t)} [%p], {register};"


def form_kernel(op: Opcode, name: str) -> str:
    """A kernel that applies the form to `count` tuples."""
    shape = shape_of(op)
    inputs = [i for i in range(len(shape.inputs)) if i not in shape.constants]
    pointers = [f"out{i}" for i in range(len(shape.outputs))] + [f"in{i}" for i in inputs]
    parameters = ", ".join([f".param .u64 {name}_{p}" for p in pointers] + [f".param .u32 {name}_count"])
    address = "ld.param.u64 %p, [{}]; mad.wide.u32 %p, %x, {}, %p;"
    body = []
    for i in inputs:
        t = shape.inputs[i]
        body.append(f"{address.format(f'{name}_in{i}', memory_bytes(t))} {_load(t, f'%a{i}')}")
    body.append(_instruction(op, shape))
    for i, t in enumerate(shape.outputs):
        body.append(f"{address.format(f'{name}_out{i}', memory_bytes(t))} {_store(t, f'%d{i}')}")
    return f""".visible .entry {name}({parameters}) {{
.reg .b32 %x, %n, %t, %w, %c; .reg .b64 %p, %l, %h; .reg .pred %out;
{_registers(shape)}
mov.u32 %x, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %x, %x, %n, %t;
ld.param.u32 %n, [{name}_count]; setp.ge.u32 %out, %x, %n; @%out bra DONE;
{chr(10).join(body)}
DONE: ret;
}}
"""


def hash_kernel(op: Opcode, name: str, pattern: str, block: int) -> str:
    """A kernel that adds the hashes of (index, result) of each 2**block indices."""
    shape = shape_of(op)
    result = shape.outputs[0]
    widen = {
        1: "selp.u32 %y, 1, 0, %d0; cvt.u64.u32 %h, %y;",
        16: "cvt.u32.u16 %y, %d0; cvt.u64.u32 %h, %y;",
        32: "cvt.u64.u32 %h, %d0;",
        64: "mov.b64 {%y, %w}, %d0; mad.lo.u32 %y, %w, 2654435761, %y; cvt.u64.u32 %h, %y;",
    }[word_bits(result)]
    if _register(result) == "b8":
        widen = "mov.b16 %b, {%d0, 0}; cvt.u64.u16 %h, %b;"
    return f""".visible .entry {name}(.param .u64 {name}_sums, .param .u32 {name}_base) {{
.reg .b16 %b; .reg .b32 %x, %y, %w, %k; .reg .b64 %p, %h, %s, %i; .reg .pred %more;
{_registers(shape)}
mov.u32 %x, %ctaid.x; shl.b32 %x, %x, {CTA_SHIFT}; mov.u32 %y, %tid.x; add.u32 %x, %x, %y;
ld.param.u32 %y, [{name}_base]; add.u32 %x, %x, %y; ld.param.u64 %p, [{name}_sums];
shr.u32 %y, %x, {block}; mad.wide.u32 %p, %y, 8, %p; mov.u64 %s, 0; mov.u32 %k, {ROUNDS};
LOOP:
{PATTERNS[pattern]}
{_instruction(op, shape)}
{widen}
cvt.u64.u32 %i, %x; shl.b64 %i, %i, 32; or.b64 %h, %h, %i;
mul.lo.u64 %h, %h, {MULTIPLIERS[0]}; shr.u64 %i, %h, 32; xor.b64 %h, %h, %i;
mul.lo.u64 %h, %h, {MULTIPLIERS[1]}; shr.u64 %i, %h, 29; xor.b64 %h, %h, %i; add.u64 %s, %s, %h;
add.u32 %x, %x, 256; sub.u32 %k, %k, 1; setp.ne.u32 %more, %k, 0; @%more bra LOOP;
red.global.add.u64 [%p], %s;
ret;
}}
"""


def hash_of(indices: Any, results: Any) -> int:
    """The sum that a hash kernel makes of these indices (NumPy u64) and results (u64, at most 32 bits used)."""
    import numpy as np

    h = indices << np.uint64(32) | results
    h *= np.uint64(MULTIPLIERS[0])
    h ^= h >> np.uint64(32)
    h *= np.uint64(MULTIPLIERS[1])
    h ^= h >> np.uint64(29)
    return int(h.sum(dtype=np.uint64))
