"""Lanes a second of scalar forms on one core, beside the same loop in C: `python bench/scalar.py [PATTERN]`.

--cpu avx2 or plain measures what the engine makes for CPUs without AVX-512, or for any x86-64, and C for the same.

Each form runs as a kernel of one warp whose loop holds the instruction sixteen times, over sixteen pairs of operands;
"alone" is the same loop unrolled so far that every instruction is a record by itself. C runs `d[i] = a[i] op b[i]` over
512 elements, compiled by `gcc -O3 -march=native`. Times are the best of several, taken in turn with C's.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cpus import CPUS
from scalar_c import FOLDER, program_text
from scalar_forms import GROUPS, Form, class_of, device_of

import ptxtools
from ptxtools import isa
from ptxtools.isa.targets import NEWEST, version_text
from ptxtools.isa.types import TYPES
from ptxtools.native.code import jit
from ptxtools.semantics.types import word_bits

#: Copies of the instruction in a loop; in a loop whose instructions are not made into runs.
SHORT, LONG = 16, 512
ROUNDS, LAUNCHES = 4, 5


def operand_types(form: Form) -> dict[str, str]:
    """PTX type of each operand that the text names; elements of a vector for a scalar have a part of its type."""
    op = isa.resolve(form.opcode)
    types = {}
    places = re.findall(r"{[^}]*}|[^,{}\s]+", form.text.partition(" ")[2])
    for place, operand in zip(places, op.operands, strict=False):
        names = re.findall(r"\b[abcd]\b", place)
        t = operand.type or "b32"
        if len(names) > 1 and not operand.vector:
            t = f"b{word_bits(t) // len(names)}"
        types |= dict.fromkeys(names, t)
    return types


def _register(t: str) -> str:
    return {"pred": "pred", "b8": "b8", "e2m1x2": "b8", "u8": "b8", "s8": "b8"}.get(t, f"b{word_bits(t)}")


def kernel_text(form: Form, unroll: int) -> str:
    """A kernel (out, in, count) whose loop runs the form `unroll` times."""
    types = operand_types(form)
    sources = [name for name in types if name != "d"]
    declarations = [f".reg .{_register(t)} %{name}<{SHORT}>;" for name, t in types.items()]
    body = []
    for k in range(unroll):
        i = k % SHORT
        numbers = {
            name: i if place == 0 else (i * (2 * place + 1) + place) % SHORT for place, name in enumerate(sources)
        }
        line = re.sub(r"\b[abc]\b", lambda m, numbers=numbers: f"%{m[0]}{numbers[m[0]]}", form.text)
        body.append(re.sub(r"\bd\b", f"%d{i}", line) + ";")
    return f""".version {version_text(NEWEST)}
.target {device_of(form.opcode)}
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 count) {{
.reg .u64 %o, %in; .reg .u32 %n, %t, %w, %acc; .reg .b64 %x; .reg .b16 %h; .reg .pred %more;
{" ".join(declarations)}
ld.param.u64 %o, [out]; ld.param.u64 %in, [in]; ld.param.u32 %n, [count];
mov.u32 %t, %tid.x; mad.wide.u32 %in, %t, 8, %in; mad.wide.u32 %o, %t, 8, %o;
{_loads(types, sources)}
LOOP:
{chr(10).join(body)}
sub.u32 %n, %n, 1;
setp.ne.u32 %more, %n, 0;
@%more bra LOOP;
{_stores(types["d"])}
ret;
}}
"""


def _loads(types: dict[str, str], sources: list[str]) -> str:
    lines = []
    for place, name in enumerate(sources):
        for i in range(SHORT):
            at = (place * SHORT + i) * 32 * 8
            t = types[name]
            if t == "pred":
                lines.append(f"ld.global.b32 %w, [%in+{at}]; setp.ne.u32 %{name}{i}, %w, 0;")
            else:
                lines.append(f"ld.global.{_register(t)} %{name}{i}, [%in+{at}];")
    return "\n".join(lines)


def _stores(t: str) -> str:
    lines = []
    for i in range(SHORT):
        at = i * 32 * 8
        if t == "pred":
            lines.append(f"selp.u32 %w, 1, 0, %d{i}; st.global.u32 [%o+{at}], %w;")
        else:
            lines.append(f"st.global.{_register(t)} [%o+{at}], %d{i};")
    return "\n".join(lines)


def inputs_of(form: Form) -> np.ndarray:
    """Operands of every source, 8 bytes each: positive numbers for floats, half of the integers small."""
    rng = np.random.default_rng(1)
    columns = []
    for name, t in operand_types(form).items():
        if name == "d":
            continue
        count = SHORT * 32
        info = TYPES.get(t)
        if t == "f64":
            bits = rng.uniform(0.5, 4, count).view(np.uint64)
        elif t == "f32":
            bits = rng.uniform(0.5, 4, count).astype(np.float32).view(np.uint32).astype(np.uint64)
        elif t == "f32x2":
            bits = rng.uniform(0.5, 4, 2 * count).astype(np.float32).view(np.uint64)
        elif t in ("f16", "f16x2"):
            bits = rng.uniform(0.5, 4, 2 * count).astype(np.float16).view(np.uint32).astype(np.uint64)
        elif t in ("bf16", "bf16x2"):
            bits = (rng.uniform(0.5, 4, 2 * count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            bits = bits.view(np.uint32).astype(np.uint64)
        elif t == "pred":
            bits = rng.integers(0, 2, count, dtype=np.uint64)
        else:
            width = word_bits(t)
            bits = rng.integers(1, 1 << (width - 1), count, dtype=np.uint64)
            bits = np.where(rng.integers(0, 2, count) == 1, rng.integers(1, 40, count).astype(np.uint64), bits)
        assert info is not None or t == "pred" or "x" in t, t
        columns.append(bits)
    return np.concatenate(columns)


class Kernel:
    """One form's kernel, ready to run."""

    def __init__(self, form: Form, unroll: int) -> None:
        self.unroll = unroll
        self.device = ptxtools.Device(device_of(form.opcode), threads=1)
        self.kernel = ptxtools.loads(kernel_text(form, unroll), form.opcode)["k"]
        self.out = self.device.upload(np.zeros(SHORT * 32, np.uint64))
        self.data = self.device.upload(inputs_of(form))
        self.count = 64
        self.seconds()  # compiles
        while min(self.seconds() for _ in range(3)) < 2e-3:
            self.count *= 2

    def seconds(self) -> float:
        start = time.process_time()
        self.device.launch(self.kernel, (1,), (32,), [self.out, self.data, self.count])
        return time.process_time() - start

    def rate(self, seconds: float) -> float:
        """Million lanes a second."""
        return self.count * self.unroll * 32 / seconds / 1e6


@dataclass
class Row:
    """Speeds in million lanes a second; c is NaN where there is no C."""

    group: str
    form: Form
    run: float
    alone: float
    c: float

    @property
    def ok(self) -> bool:
        goal = self.form.target or (0 if math.isnan(self.c) else self.c / 2)
        return self.run >= goal


def compile_c(forms: list[Form], folder: Path, cpu: str = "native") -> Path | None:
    """The program that runs each form's C; None without a compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    source, binary = folder / "scalar.c", folder / "scalar"
    source.write_text(program_text([(form.c, operand_types(form)) for form in forms]))
    command = [
        compiler,
        "-O3",
        f"-march={cpu}",
        "-fno-math-errno",
        "-w",
        "-I",
        str(FOLDER),
        str(source),
        "-o",
        str(binary),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return binary


def c_rates(binary: Path | None, rates: dict[int, float]) -> None:
    """Million lanes a second of each form's C, where that is more than `rates` has."""
    if binary is None:
        return
    text = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    for row in map(json.loads, text.splitlines()):
        rates[row["form"]] = max(rates.get(row["form"], 0), row["rate"])


def measure(groups: dict[str, list[Form]], cpu: str = "native") -> list[Row]:
    """Rows in the table's order."""
    pairs = [(group, form) for group, forms in groups.items() for form in forms]
    forms = [form for _, form in pairs]
    kernels = [(Kernel(form, SHORT), Kernel(form, LONG)) for form in forms]
    best = [[math.inf, math.inf] for _ in forms]
    c: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        binary = compile_c(forms, Path(name), cpu)
        for _ in range(ROUNDS):
            for seconds, both in zip(best, kernels, strict=True):
                for place, kernel in enumerate(both):
                    seconds[place] = min(seconds[place], *(kernel.seconds() for _ in range(LAUNCHES)))
            c_rates(binary, c)
    return [
        Row(group, form, run.rate(best[n][0]), alone.rate(best[n][1]), c.get(n, math.nan))
        for n, ((group, form), (run, alone)) in enumerate(zip(pairs, kernels, strict=True))
    ]


def print_rows(rows: list[Row]) -> None:
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            print(f"{group:57} {'in a run':>9} {'alone':>9} {'C':>9} {'run/C':>6} {'target':>7}")
        goal = str(row.form.target) if row.form.target > 0 else "" if row.form.target or math.isnan(row.c) else "C/2"
        c, ratio = ("", "") if math.isnan(row.c) else (f"{row.c:.0f}", f"{row.run / row.c:.2f}")
        mark = "" if row.ok else "  MISSED"
        print(f"  {row.form.text:55} {row.run:9.0f} {row.alone:9.0f} {c:>9} {ratio:>6} {goal:>7}{mark}")


def without_c() -> list[str]:
    """Declared forms of simulated chips that no measured one with C stands for."""
    sys.path.insert(0, str(FOLDER.parent))
    from tests.semantics.harness import all_opcodes

    return [op.text for op in all_opcodes() if class_of(op.text) is None and device_of(op.text)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression: forms whose text it occurs in")
    parser.add_argument("--cpu", choices=CPUS, help="not this CPU's best code")
    arguments = parser.parse_args()
    gcc_cpu = "native"
    if arguments.cpu:
        llvm_cpu, gcc_cpu, features = CPUS[arguments.cpu]
        jit.aim_at(llvm_cpu, features.split())
    chosen = {group: [f for f in forms if re.search(arguments.pattern, f.text)] for group, forms in GROUPS.items()}
    rows = measure({group: forms for group, forms in chosen.items() if forms}, gcc_cpu)
    print_rows(rows)
    missed = sum(not row.ok for row in rows)
    print(f"{len(rows)} forms, {missed} below their target")
    print(f"Forms that have no C beside them, nor belong to a class that has: {', '.join(without_c()) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
