"""CPUs that code can be made for besides the one at hand."""

from __future__ import annotations

_ANY = "64bit cmov cx8 fxsr mmx sse sse2 x87"
_AVX2 = f"{_ANY} sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma f16c bmi bmi2 lzcnt movbe cx16 sahf"
#: CPUs to make code for: LLVM's and gcc's names, features.
CPUS = {"avx2": ("haswell", "haswell", _AVX2), "plain": ("x86-64", "x86-64", _ANY)}
