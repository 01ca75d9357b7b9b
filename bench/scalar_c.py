"""The C program that `scalar.py` measures beside the engine: a loop over arrays for each form."""

from __future__ import annotations

import json
from pathlib import Path

from ptxtools.semantics.types import word_bits

TABLES = Path(__file__).resolve().parents[1] / "ptxtools" / "semantics" / "approximate_tables.json"

_HEAD = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef _Float16 H;
#define N 512
#define KEEP __asm__ volatile("" ::: "memory")
#define SAT8(x) ((x) < 0 ? 0 : (x) > 255 ? 255 : (x))
#define SAT(x) ({ float s_ = (x); s_ > 0 ? (s_ < 1 ? s_ : 1) : 0; })
static inline int32_t SATADD(int32_t a, int32_t b)
{ int64_t s = (int64_t)a + b; return s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s; }
static inline uint32_t BREV(uint32_t a)
{ a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1; a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4; return __builtin_bswap32(a); }
static inline uint32_t BFE(uint32_t a, uint32_t p, uint32_t n)
{ uint32_t x = p > 31 ? 0 : a >> p; return n > 31 ? x : x & ((1u << n) - 1); }
static inline uint32_t FNS(uint32_t mask, uint32_t base, int32_t n)
{ if (n == 0) return mask >> (base & 31) & 1 ? base : -1;
  uint32_t step = n > 0 ? 1 : -1, left = n > 0 ? n : -n, at = base;
  for (; at < 32; at += step) if (mask >> at & 1 && !--left) return at;
  return -1; }
static inline int32_t DP4A(int32_t a, int32_t b, int32_t c)
{ for (int k = 0; k < 32; k += 8) c += (int8_t)(a >> k) * (int8_t)(b >> k); return c; }
static inline uint32_t PRMT(uint32_t a, uint32_t b, uint32_t c)
{ uint64_t x = (uint64_t)b << 32 | a; uint32_t d = 0;
  for (int k = 0; k < 4; k++) { uint32_t s = c >> 4 * k; uint8_t v = x >> 8 * (s & 7);
    d |= (uint32_t)(uint8_t)(s & 8 ? (int8_t)v >> 7 : v) << 8 * k; }
  return d; }
#define BYTES(f) ({ uint32_t r_ = 0; for (int k = 0; k < 32; k += 8) { uint32_t x = a >> k & 255, y = b >> k & 255; \
  r_ |= (uint32_t)(f) << k; } r_; })
static inline uint32_t DIFF4(uint32_t a, uint32_t b, uint32_t c)
{ for (int k = 0; k < 32; k += 8) { int x = a >> k & 255, y = b >> k & 255; c += x < y ? y - x : x - y; } return c; }
static inline uint32_t bits(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
static inline float real(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
static inline uint64_t bits64(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
static inline double real64(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
static inline float FTZ(float x) { return real((bits(x) & 0x7f800000) ? bits(x) : bits(x) & 1u << 31); }
"""

# The approximate units in C, from the description that the semantics follow (ptxtools/semantics/interpolator.py).
_UNITS = r"""
static inline uint32_t SQUARE(uint32_t x)
{ uint32_t u = x >> 9, t = u * u >> 1;
  for (int i = 2; i < 9; i++) t += -(x >> i & 1) & x >> (18 - i);
  return t; }
#define EVALUATE(f, part, extra, cut, low) ({ \
  uint32_t i_ = ((part) >> f##_bits) + (extra), o_ = (part) & ((1u << f##_bits) - 1); \
  uint32_t q_ = SQUARE(o_ << (17 - f##_bits)), s_ = f##_slopes[i_]; \
  uint32_t l_ = (s_ & 0xfffff) * f##_linear; \
  low = l_ * (o_ & ((1u << cut) - 1)) + (s_ >> 20) * f##_quadratic * q_ + f##_bias; \
  uint32_t v_ = (f##_values[i_] << (f##_shift - cut)) + l_ * (o_ >> cut) + ((int32_t)low >> cut); \
  low &= (1u << cut) - 1; v_; })
static inline float TABLE_RCP(float a)
{ uint32_t x = bits(a), sign = x & 1u << 31, e = x >> 23 & 255, low, v = EVALUATE(rcp, x & 0x7fffff, 0, 12, low);
  uint32_t one = v >> 27; int32_t field = 253 + one - e;
  uint32_t r = field > 0 ? (uint32_t)field << 23 | (v >> (one + 3) & 0x7fffff) : 0;
  r = e == 0 ? 0x7f800000 : e == 255 ? 0 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r | sign); }
static inline float TABLE_RSQRT(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, f = x & 0x7fffff, low; int32_t un = (int32_t)e - 127, half = un >> 1;
  uint32_t odd = un & 1, v = EVALUATE(rsqrt, f, odd << 6, 12, low), power = !(f | odd);
  uint32_t r = (uint32_t)(126 - half + power) << 23 | (power ? 0 : v >> 4 & 0x7fffff);
  r = e == 255 ? 0 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? (x & 1u << 31) | 0x7f800000 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline float TABLE_SQRT(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, low; int32_t un = (int32_t)e - 127;
  uint32_t v = EVALUATE(sqrt, x & 0x7fffff, (un & 1) << 6, 12, low);
  uint32_t r = (uint32_t)(127 + (un >> 1)) << 23 | (v >> 5 & 0x7fffff);
  r = e == 255 ? 0x7f800000 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? x & 1u << 31 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline double TABLE_RCP64(double a)
{ uint32_t x = bits64(a) >> 32, sign = x & 1u << 31, e = x >> 20 & 2047, low;
  uint32_t v = EVALUATE(rcp, (x & 0xfffff) << 3, 0, 12, low), one = v >> 27; int32_t field = 2045 + one - e;
  uint32_t r = field > 0 ? (uint32_t)field << 20 | (v >> (one + 3) & 0x7fffff) >> 3 : 0;
  r = e == 0 ? 0x7ff00000 : e == 2047 ? 0 : r;
  return real64((uint64_t)((x & 0x7fffffff) > 0x7ff00000 ? 0x7fffffff : r | sign) << 32); }
static inline double TABLE_RSQRT64(double a)
{ uint32_t x = bits64(a) >> 32, e = x >> 20 & 2047, f = x & 0xfffff, low; int32_t un = (int32_t)e - 1023;
  uint32_t odd = un & 1, v = EVALUATE(rsqrt, f << 3, odd << 6, 12, low), power = !(f | odd);
  uint32_t r = (uint32_t)(1022 - (un >> 1) + power) << 20 | (power ? 0 : (v >> 4 & 0x7fffff) >> 3);
  r = e == 2047 ? 0 : r; r = x >> 31 ? 0x7fffffff : r; r = e == 0 ? (x & 1u << 31) | 0x7ff00000 : r;
  return real64((uint64_t)((x & 0x7fffffff) > 0x7ff00000 ? 0x7fffffff : r) << 32); }
static inline double REFINED_RSQRT(double a)
{ double scaled = a < 0x1p-1022 ? a * 0x1p54 : a, y = TABLE_RSQRT64(scaled);
  double d = __builtin_fma(-scaled, y * y, 1.0), r = __builtin_fma(__builtin_fma(d, 0.375, 0.5), y * d, y);
  r = a < 0x1p-1022 ? r * 0x1p27 : r;
  return a < 0 ? __builtin_nan("") : a == 0 ? 1 / a : a > 0x1.fffffffffffffp1023 ? 0 : r; }
static inline float TABLE_EX2(float a)
{ uint32_t x = bits(a), e = x >> 23 & 255, m = (x & 0x7fffff) | 1 << 23, low;
  int32_t s = (e < 96 ? 96 : e > 134 ? 134 : (int32_t)e) - 127;
  uint32_t fixed = s < 0 ? m >> -s : m << s, part = fixed & 0x7fffff; int32_t whole = fixed >> 23;
  uint32_t minus = x >> 31, broken = minus & (part != 0);
  whole = minus ? -whole - (int32_t)broken : whole; part = broken ? part ^ 0x7fffff : part;
  uint32_t v = EVALUATE(ex2, part, 0, 12, low), r = (uint32_t)(whole + 127) << 23 | (v >> 3 & 0x7fffff);
  r = whole > 127 ? 0x7f800000 : whole < -126 ? 0 : r; r = e >= 135 ? (minus ? 0 : 0x7f800000) : r;
  r = e == 0 ? 0x3f800000 : r;
  return real((x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : r); }
static inline float TABLE_SIN(float a)
{ float t = a * 0.15915494f; uint32_t x = bits(t), e = x >> 23 & 255, m = (x & 0x7fffff) | 1 << 23, low;
  int32_t s = (int32_t)e - 125, right = s < 0 ? (s < -31 ? 31 : -s) : 0, left = s > 0 ? (s > 25 ? 25 : s) : 0;
  uint32_t fixed = e ? (m >> right << left) & 0x1ffffff : 0, quadrant = fixed >> 23, part = fixed & 0x7fffff;
  part = quadrant & 1 ? part ^ 0x7fffff : part;
  uint32_t sign = (x & 1u << 31) ^ (quadrant >> 1) << 31, v = EVALUATE(sin, part, 0, 7, low), tiny = v < 1u << 24;
  uint32_t n = tiny ? v << 7 | low : v; int32_t spare = 8 - (n ? __builtin_clz(n) : 32); spare = spare < 0 ? 0 : spare;
  float r = (float)(int32_t)(n >> spare << spare) * (tiny ? 0x1p-37f : 0x1p-30f);
  return real((bits(a) & 0x7fffffff) >= 0x7f800000 ? 0x7fffffff : bits(r) | sign); }
"""


def _units() -> str:
    lines = []
    for name, t in json.loads(TABLES.read_text()).items():
        if name not in ("rcp", "rsqrt", "sqrt", "ex2", "sin"):
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
    return "\n".join(lines) + _UNITS


def c_type(t: str) -> str:
    """C type of values of a PTX type."""
    if t in ("f32", "f64", "f16"):
        return {"f32": "float", "f64": "double", "f16": "H"}[t]
    if t == "pred":
        return "uint8_t"
    sign = "" if t[0] == "s" else "u"
    return f"{sign}int{8 if t in ('u8', 's8') else word_bits(t)}_t"


def _data(number: int, name: str, t: str) -> str:
    """Statement that fills an operand's array with values like those of the kernel."""
    target, kind = f"{name}{number}[i]", c_type(t)
    if kind in ("float", "double", "H"):
        return f"{target} = ({kind})(0.5 + 3.5 * rand() / RAND_MAX);"
    if t == "pred":
        return f"{target} = rand() & 1;"
    wide = "(uint64_t)rand() << 32 ^ rand()" if "64" in kind else "rand()"
    return f"{target} = rand() & 1 ? 1 + rand() % 39 : ({kind})({wide}) & ({kind})-1 >> 1 | 1;"


def program_text(forms: list[tuple[str, dict[str, str]]]) -> str:
    """The program: prints a JSON line with million lanes a second for each form that has an expression."""
    parts, calls = [_HEAD, _units()], []
    for number, (expression, types) in enumerate(forms):
        if not expression:
            continue
        for name, t in types.items():
            parts.append(f"{c_type(t)} {name}{number}[N] __attribute__((aligned(64)));")
        reads = " ".join(f"{c_type(t)} {n} = {n}{number}[i];" for n, t in types.items() if n != "d")
        fills = " ".join(_data(number, n, t) for n, t in types.items() if n != "d")
        parts.append(
            f"static void fill{number}(void) {{ for (int i = 0; i < N; i++) {{ {fills} }} }}\n"
            f"static void form{number}(long count) {{ for (long k = 0; k < count; k++) {{\n"
            f"  for (int i = 0; i < N; i++) {{ {reads} d{number}[i] = {expression}; }} KEEP; }} }}"
        )
        calls.append(f"  fill{number}(); measure({number}, form{number});")
    parts.append(
        r"""
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void measure(int number, void (*run)(long))
{ long count = 16; double best = 1e9;
  for (;; count *= 2) { double start = now(); run(count); if (now() - start > 5e-4) break; }
  for (int k = 0; k < 5; k++)
  { double start = now(); run(count); double s = now() - start; best = s < best ? s : best; }
  printf("{\"form\": %d, \"rate\": %f}\n", number, N * (double)count / best / 1e6); }
int main(void) {
"""
        + "\n".join(calls)
        + "\n  return 0; }\n"
    )
    return "\n".join(parts)
