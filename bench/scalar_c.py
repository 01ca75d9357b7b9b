"""The C program that `scalar.py` measures beside the engine: a loop over arrays for each form.

What the expressions are written in is in scalar.h, and the approximate units in scalar_units.h.
"""

from __future__ import annotations

import json
from pathlib import Path

from ptxtools.semantics.types import word_bits

FOLDER = Path(__file__).resolve().parent
TABLES = FOLDER.parent / "ptxtools" / "semantics" / "approximate_tables.json"


def _units() -> str:
    lines = []
    for name, t in json.loads(TABLES.read_text()).items():
        if name not in ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin"):
            continue
        values = ", ".join(map(str, t["c0"]))
        slopes = ", ".join(str(c1 | c2 << 20) for c1, c2 in zip(t["c1"], t["c2"], strict=True))
        linear, quadratic = (t["signs"][i] * t[f"k{i}"] & 0xFFFF_FFFF for i in (1, 2))
        lines.append(f"static const uint32_t {name}_values[] = {{{values}}}, {name}_slopes[] = {{{slopes}}};")
        lines.append(
            f"enum {{ {name}_bits = {t['xl_bits']}, {name}_shift = {t['A']} }};\n"
            f"static const uint32_t {name}_linear = {linear}u, {name}_quadratic = {quadratic}u,"
            f" {name}_bias = {t['B'] & 0xFFFF_FFFF}u;"
        )
    return "\n".join(lines)


def c_type(t: str) -> str:
    """C type of values of a PTX type."""
    if t in ("f32", "f64", "f16"):
        return {"f32": "float", "f64": "double", "f16": "H"}[t]
    if t == "pred":
        return "uint8_t"
    sign = "" if t[0] == "s" else "u"
    return f"{sign}int{8 if t in ('u8', 's8') else word_bits(t)}_t"


#: What arrays of floats hold, by PTX type: numbers from 0.5 to 4.
_NUMBERS = {
    "f32": "0.5f + 3.5f * rand() / RAND_MAX", "f64": "0.5 + 3.5 * rand() / RAND_MAX",
    "f16": "REALHALF(SOME_F16)", "bf16": "SOME_BF16", "f16x2": "PACK(SOME_F16, SOME_F16)",
    "bf16x2": "PACK(SOME_BF16, SOME_BF16)",
    "f32x2": "(uint64_t)bits(0.5f + 3.5f * rand() / RAND_MAX) << 32 | bits(0.5f + 3.5f * rand() / RAND_MAX)",
}  # fmt: skip
_MODES = {"rm": "FE_DOWNWARD", "rp": "FE_UPWARD", "rz": "FE_TOWARDZERO"}


def _data(number: int, name: str, t: str) -> str:
    """Statement that fills an operand's array with values like those of the kernel."""
    target, kind = f"{name}{number}[i]", c_type(t)
    if t in _NUMBERS:
        return f"{target} = {_NUMBERS[t]};"
    if t == "pred":
        return f"{target} = rand() & 1;"
    wide = "(uint64_t)rand() << 32 ^ rand()" if "64" in kind else "rand()"
    return f"{target} = rand() & 1 ? 1 + rand() % 39 : ({kind})({wide}) & ({kind})-1 >> 1 | 1;"


def _split(c: str) -> tuple[str, str, str]:
    """The loop's kind ("" or a packed or 16-bit type), rounding mode ("" for to nearest), and expression."""
    words, colon, expression = c.partition(": ")
    if not colon or not set(words.split()) <= {*_MODES, "f32x2", "f16", "bf16", "f16x2", "bf16x2"}:
        return "", "", c
    mode = next((word for word in words.split() if word in _MODES), "")
    kind = next((word for word in words.split() if word not in _MODES), "")
    return kind, mode, expression


def _loop(number: int, kind: str, expression: str, types: dict[str, str]) -> str:
    """The loop over arrays."""
    sources = [name for name in types if name != "d"]
    if kind in ("", "f32x2"):
        length, view = ("N", "{}") if not kind else ("2 * N", "((F *){})")
        of = {name: c_type(t) if not kind else "float" for name, t in types.items()}
        reads = " ".join(f"{of[name]} {name} = {view.format(f'{name}{number}')}[i];" for name in sources)
        return f"for (int i = 0; i < {length}; i++) {{ {reads} {view.format(f'd{number}')}[i] = {expression}; }}"
    length, element = ("2 * N", kind[:-2]) if kind.endswith("x2") else ("N", kind)
    reads = " ".join(f"__m512 {name} = get_{element}((char *){name}{number} + 2 * i);" for name in sources)
    body = f"{reads} put_{element}((char *)d{number} + 2 * i, {expression});"
    return f"for (int i = 0; i < {length}; i += 16) {{ {body} }}"


def program_text(forms: list[tuple[str, dict[str, str]]]) -> str:
    """The program: prints a JSON line with million lanes a second for each form that has C on this CPU."""
    parts = ['#include "scalar.h"', _units(), '#include "scalar_units.h"']
    calls = []
    for number, (c, types) in enumerate(forms):
        if not c:
            continue
        kind, mode, expression = _split(c)
        for name, t in types.items():
            parts.append(f"{c_type(t)} {name}{number}[N] __attribute__((aligned(64)));")
        fills = " ".join(_data(number, n, t) for n, t in types.items() if n != "d")
        wide = kind not in ("", "f32x2")
        text = (
            f"static void fill{number}(void) {{ for (int i = 0; i < N; i++) {{ {fills} }} }}\n"
            f"static void form{number}(long count) {{ for (long k = 0; k < count; k++) {{\n"
            f"  {_loop(number, kind, expression, types)} KEEP; }} }}"
        )
        call = f"  fill{number}(); measure({number}, form{number}, {_MODES.get(mode, 'FE_TONEAREST')});"
        parts.append(f"#ifdef HAVE_WIDE\n{text}\n#endif" if wide else text)
        calls.append(f"#ifdef HAVE_WIDE\n{call}\n#endif" if wide else call)
    return "\n".join([*parts, _MAIN, *calls, "  return 0; }\n"])


_MAIN = r"""
static double now(void)
{ struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void measure(int number, void (*run)(long), int mode)
{ long count = 16; double best = 1e9;
  fesetround(mode);
  for (;; count *= 2) { double start = now(); run(count); if (now() - start > 5e-4) break; }
  for (int k = 0; k < 5; k++)
  { double start = now(); run(count); double s = now() - start; best = s < best ? s : best; }
  fesetround(FE_TONEAREST);
  printf("{\"form\": %d, \"rate\": %f}\n", number, N * (double)count / best / 1e6); }
int main(void) {
  prepare();
"""
