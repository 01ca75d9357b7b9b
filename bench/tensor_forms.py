"""Time of every form of wgmma and tcgen05.mma, on one core: `python bench/tensor_forms.py [--only TEXT]`.

The largest shape of each form, with random finite factors; a turn is a product with its commit and its wait for wgmma,
four products with one commit for tcgen05. Microseconds for one product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensor
from cpus import CPUS

import ptxtools
from ptxtools.native.code import jit

ROUNDS = 3
#: Seconds of a run beyond a short one.
LONG_ENOUGH = 0.01
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "b1": 256}
#: Codes of the types of tcgen05's factors in the instruction descriptor, and of its results (table 44 on).
CODE = {
    "f16": 0,
    "bf16": 1,
    "tf32": 2,
    "e4m3": 0,
    "e5m2": 1,
    "e2m3": 3,
    "e3m2": 4,
    "e2m1": 5,
    "u8": 0,
    "s8": 1,
    "fp4": 1,
}
RESULT = {"f16": 0, "f32": 1, "s32": 2}
KINDS = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "s8": "i8", "u8": "i8"}


@dataclass(frozen=True)
class Form:
    """One instruction: its kernel, and how to launch it. products: in a turn; fill: type of the factors."""

    name: str
    target: str
    text: str
    shared: int
    products: int
    fill: str
    ctas: int = 1


# --- wgmma ------------------------------------------------------------------------------------------------------------


def warpgroup(
    t: str, dtype: str, *, btype: str = "", n: int = 256, sparse: bool = False, registers: bool = False,
    transposed: bool = False, mods: str = "", signs: tuple[int, int] = (1, 1),
) -> Form:  # fmt: skip
    k = DEPTH.get(t, 32) * (2 if sparse else 1)
    count = n // 4 if dtype == "f16" else n // 2
    sort = "b32" if dtype in ("f16", "s32") else "f32"
    operands = ["{" + ", ".join(f"%d{i}" for i in range(count)) + "}"]
    operands.append("{%a0, %a1, %a2, %a3}" if registers else "%l3")
    operands.append("%l4")
    if sparse:
        operands += ["%r5", "0"]
    operands.append("1")
    if dtype != "s32":
        operands += [str(sign) for sign in signs]
        if t in ("f16", "bf16"):
            operands += ["0"] * (1 if registers else 2)
            if transposed:
                operands[-1] = "1"
    name = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}{mods}.{dtype}.{t}.{btype or t}"
    name += ".and.popc" if t == "b1" else ""
    text = tensor.WGMMA.replace(".reg .f32 %d<128>;", f".reg .{sort} %d<{count}>;  .reg .b32 %a<4>;")
    zeros = "\n".join(f"    mov.b32 %d{i}, 0;" for i in range(count))
    loads = "    ld.shared.v4.b32 {%a0, %a1, %a2, %a3}, [memory];\n    mov.b32 %r5, 0x44444444;\n"
    text = text.replace("ZEROS", zeros + "\n" + loads)
    start, _, rest = text.partition("    wgmma.mma_async")
    text = f"{start}    {name} {', '.join(operands)};\n{rest.partition(chr(10))[2]}"
    text = text.replace("st.global.f32 [%l0]", "st.global.b32 [%l0]").replace(".version 8.0", ".version 8.6")
    text = text.replace("FILLING", tensor.FILL.replace("BYTES", "40960"))
    what = ", ".join(
        w for w, on in (("A in registers", registers), ("B transposed", transposed), ("negated", signs != (1, 1))) if on
    )
    return Form(" ".join([name.replace(".sync.aligned", ""), what]).strip(), "sm_90a", text, 0, 1, t)


# --- tcgen05 ----------------------------------------------------------------------------------------------------------


def fifth(
    kind: str, t: str, dtype: str = "f32", *, btype: str = "", m: int = 128, n: int = 256, ctas: int = 1,
    sparse: bool = False, stationary: bool = False, in_tensor: bool = False, block: str = "", scale: str = "",
    more: int = 0, before: str = "", tail: str = "", what: str = "",
) -> Form:  # fmt: skip
    scaled = kind.startswith("mx")
    btype = btype or t
    rows = m >> 7 << 27 if scaled else m >> 4 << 24
    result = 0 if scaled else RESULT[dtype]
    idesc = (more | sparse << 2 | result << 4 | CODE[t] << 7 | CODE[btype] << 10 | n >> 3 << 17 | rows
             | (scale == "ue8m0") << 23)  # fmt: skip
    name = "tcgen05.mma" + (".ws" if stationary else "") + (".sp" if sparse else "")
    opcode = f"{name}.cta_group::{ctas}.kind::{kind}{'.block_scale' if scaled else ''}{block}"
    a = "[%r12]" if in_tensor else "%l3"
    issue = f"    {opcode} [%r9], {a}, %l4, {'[%r13], ' if sparse else ''}%r11, {'[%r14], [%r15], ' if scaled else ''}"
    issue += f"{before}%on{tail};\n"
    text = (
        tensor.TCGEN05.replace(".version 8.6", ".version 9.0")
        .replace(".reg .b32 %r<12>;", ".reg .b32 %r<20>;")
        .replace(", 256;", ", 512;")
    )
    lines, done = [], False
    for line in text.splitlines(keepends=True):
        if "tcgen05.mma" in line:
            lines.append(issue)
        elif "mov.u32 %r10, 0;" in line:
            lines.append(f"    mov.u32 %r10, 0;  mov.u32 %r11, {idesc};\n")
        elif "mov.pred %on, 0;" in line and not done:
            lines.append(_cells(scale) + line)
            done = True
        else:
            lines.append(line)
    text = "".join(lines)
    if ctas == 2:
        text = _paired(text)
    text = text.replace("FILLING", tensor.FILL.replace("BYTES", "49152"))
    more_words = [opcode, f"{m}x{n}", f"{t}*{btype}", dtype, "A in tensor memory" if in_tensor else "", scale, what]
    return Form(" ".join(w for w in more_words if w), "sm_100a", text, 49152, 4, t, ctas)


def _cells(scale: str) -> str:
    """A, metadata and scale factors in tensor memory, for all lanes."""
    word = 0x3834_3C38 if scale == "ue4m3" else 0x7F80_7E7F
    eight = "{" + ", ".join(["%r16"] * 8) + "}"
    stores = "".join(
        f"    mov.b32 %r16, {value};  add.u32 %r18, %r17, {column};\n"
        f"    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r18], {eight};\n"
        for value, first, last in ((0x4444_4444, 256, 320), (word, 320, 384)) for column in range(first, last, 8)
    )  # fmt: skip
    return f"""    shr.u32 %r17, %r1, 5;  shl.b32 %r17, %r17, 21;  add.u32 %r17, %r17, %r9;
{stores}    tcgen05.wait::st.sync.aligned;
    add.u32 %r12, %r9, 256;  add.u32 %r13, %r9, 300;  add.u32 %r14, %r9, 320;  add.u32 %r15, %r9, 340;
    bar.sync 0;
"""


def _paired(text: str) -> str:
    """The same for two CTAs, of which the first issues."""
    meet = "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n"
    text = text.replace("cta_group::1", "cta_group::2").replace(
        ".reqntid 128\n", ".reqntid 128\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n"
    )
    text = text.replace(
        "    @!%first bra through;\n",
        meet + "    mov.u32 %r19, %ctaid.x;\n    setp.eq.and.u32 %first, %r19, 0, %first;\n    @!%first bra through;\n",
    )
    before, _, after = text.partition("through:\n    bar.sync 0;\n")
    after = after.replace("    bar.sync 0;\n    setp.lt.u32 %on", meet + "    setp.lt.u32 %on")
    return before + "through:\n" + meet + after


# --- all of them ------------------------------------------------------------------------------------------------------


def forms() -> Iterator[Form]:
    for t in ("f16", "bf16", "tf32", "e4m3", "e5m2"):
        yield warpgroup(t, "f32")
    yield warpgroup("f16", "f32", registers=True)
    yield warpgroup("f16", "f32", transposed=True)
    yield warpgroup("f16", "f32", signs=(-1, 1))
    yield warpgroup("f16", "f16")
    yield warpgroup("e4m3", "f16", btype="e5m2")
    yield warpgroup("s8", "s32")
    yield warpgroup("u8", "s32", btype="s8", mods=".satfinite")
    yield warpgroup("u8", "s32", registers=True)
    yield warpgroup("b1", "s32")
    for t in ("f16", "tf32", "e4m3"):
        yield warpgroup(t, "f32", sparse=True)
    yield warpgroup("f16", "f32", sparse=True, registers=True)
    yield warpgroup("f16", "f16", sparse=True)
    yield warpgroup("s8", "s32", sparse=True)
    yield fifth("f16", "f16")
    yield fifth("f16", "bf16")
    yield fifth("tf32", "tf32")
    yield fifth("f8f6f4", "e4m3", btype="e5m2")
    yield fifth("f8f6f4", "e2m3", btype="e3m2")
    yield fifth("f8f6f4", "e2m1")
    yield fifth("f16", "f16", in_tensor=True)
    yield fifth("f16", "f16", more=1 << 13, what="negated")
    yield fifth("f16", "f16", "f16")
    yield fifth("f8f6f4", "e4m3", "f16")
    yield fifth("i8", "s8", "s32")
    yield fifth("i8", "u8", "s32", btype="s8", more=1 << 3, what="saturating")
    yield fifth("f16", "f16", m=64, what="M = 64")
    yield fifth("f16", "f16", tail=", 3", what="scale-input-d")
    yield fifth("f16", "f16", before="{%r12, %r12, %r12, %r12}, ", what="disable-output-lane")
    for kind, t in (("f16", "f16"), ("tf32", "tf32"), ("f8f6f4", "e4m3")):
        yield fifth(kind, t, sparse=True)
    yield fifth("i8", "s8", "s32", sparse=True)
    yield fifth("f16", "f16", sparse=True, in_tensor=True)
    for m in (32, 64, 128):
        yield fifth("f16", "f16", m=m, stationary=True)
    yield fifth("f16", "f16", m=64, n=128, stationary=True, sparse=True)
    yield fifth("i8", "s8", "s32", stationary=True)
    yield fifth("mxf8f6f4", "e4m3", scale="ue8m0")
    yield fifth("mxf8f6f4", "e2m3", btype="e2m1", scale="ue8m0")
    yield fifth("mxf4", "fp4", scale="ue8m0", block=".scale_vec::2X")
    yield fifth("mxf4nvf4", "fp4", scale="ue4m3", block=".scale_vec::4X")
    yield fifth("mxf8f6f4", "e4m3", scale="ue8m0", sparse=True)
    yield fifth("mxf4nvf4", "fp4", scale="ue4m3", block=".scale_vec::4X", sparse=True)
    yield fifth("f16", "f16", m=256, ctas=2)
    yield fifth("f16", "f16", m=128, ctas=2)
    yield fifth("f16", "f16", "f16", m=256, ctas=2)
    yield fifth("f16", "f16", m=256, ctas=2, sparse=True)
    yield fifth("i8", "s8", "s32", m=256, ctas=2)
    yield fifth("mxf8f6f4", "e4m3", m=256, ctas=2, scale="ue8m0")
    yield fifth("mxf4nvf4", "fp4", m=256, ctas=2, scale="ue4m3", block=".scale_vec::4X")


def memory_of(t: str) -> np.ndarray[Any, Any]:
    """48 KiB of finite elements."""
    chance = np.random.default_rng(0)
    if t in ("f16", "bf16", "tf32"):
        values = chance.standard_normal(24576 if t != "tf32" else 12288).astype(np.float32)
        if t == "f16":
            return values.astype(np.float16).view(np.uint8)
        words = values.view(np.uint32)
        return (words >> 16).astype(np.uint16).view(np.uint8) if t == "bf16" else words.view(np.uint8)
    codes = chance.integers(0, 256, 49152, dtype=np.uint8)
    return codes & np.uint8(0xBF) if t in ("e4m3", "e5m2") else codes


def seconds(form: Form, numerics: str) -> float:
    """Of one product: what a run takes longer than one of a few turns, if it takes long enough to be measured."""
    device = ptxtools.Device(form.target, threads=1, numerics=numerics)
    kernel = ptxtools.loads(form.text)["loop"]
    x = device.upload(memory_of(form.fill))
    out = device.upload(np.zeros(2048, np.float32))
    cluster = {"cluster": (2, 1, 1)} if form.ctas == 2 else {}

    def run(n: int) -> float:
        start = time.process_time()
        device.launch(kernel, form.ctas, 128, [x, out, n], shared=form.shared, **cluster)
        return time.process_time() - start

    tensor.prepared(lambda: run(1))
    short, turns = min(run(2) for _ in range(ROUNDS)), 8
    while (long := run(turns)) < short + LONG_ENOUGH:
        turns *= 4
    long = min(long, *(run(turns) for _ in range(ROUNDS - 1)))
    return (long - short) / (turns - 2) / form.products


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="forms whose name has this text")
    parser.add_argument("--numerics", nargs="*", default=["chip", "ieee"])
    parser.add_argument("--cpu", choices=CPUS, help="not this CPU's best code")
    options = parser.parse_args()
    if options.cpu:
        llvm_cpu, _, features = CPUS[options.cpu]
        jit.aim_at(llvm_cpu, features.split())
    for form in forms():
        if options.only in form.name:
            times = [1e6 * seconds(form, numerics) for numerics in options.numerics]
            row = "".join(f"{t:9.1f}" for t in times)
            print(f"{form.name:92}{row}", flush=True)


if __name__ == "__main__":
    main()
