"""Compile a Triton kernel to softmax.ptx; no GPU is needed. Run: python softmax.py (with triton installed)."""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, out, columns, block: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, block)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=at < columns)


signature = {"x": "*fp32", "out": "*fp32", "columns": "i32", "block": "constexpr"}
source = ASTSource(softmax, signature, constexprs={"block": 256})
compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32))
Path("softmax.ptx").write_text(compiled.asm["ptx"])
print("threads:", 32 * compiled.metadata.num_warps, "shared memory:", compiled.metadata.shared)
