"""D = A * B + D as the tensor cores make it, for whole tiles (docs/numerics.md).

The rules are those of `semantics.tensorcore`; here they run over matrices: as native code (`native.tiles.interface`), or
as NumPy where there is none. `Rule.fraction` 0 asks for plain f32 arithmetic instead.
"""

from __future__ import annotations

import numpy as np

from ptxtools.native.tiles import interface as tiles
from ptxtools.semantics.tensorcore import NAN32, Rule

from .numbers import Array, Numbers, power

_LEAST_F32 = -126
_LEAST_F16 = -14
_LARGEST32, _SMALLEST32 = 2**31 - 1, -(2**31)
#: Bits of an f64 below the fraction that a result keeps.
_CUT = {"f32": np.uint64((1 << 64) - (1 << 29)), "e8m13": np.uint64((1 << 64) - (1 << 39))}


def multiply(
    a: Numbers, b: Numbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers] | None = None
) -> Array:
    """A (M x K) * B (N x K, so that rows of both meet) + c.

    c: M x N, f32 or f16 by the rule's result, or None for zero. scales: for rules with groups, the scale factors of the
    groups, M x groups and N x groups. Returns M x N of f32 or f16.
    """
    finite = a.finite and b.finite and (scales is None or (scales[0].finite and scales[1].finite))
    with np.errstate(all="ignore"):
        if finite:
            found = _native(a, b, c, rule) if scales is None else _native_groups(a, b, c, rule, scales)
            if found is not None:
                return found
        a, b = a.wide(), b.wide()
        addend = np.zeros((len(a.values), len(b.values))) if c is None else c.astype(np.float64)
        if not rule.fraction:
            return _plain(a, b, addend, rule, scales)
        least = _LEAST_F16 if rule.result == "f16" else _LEAST_F32
        result = rounded(_cut_sum(a, b, addend, rule, least, scales), rule.result)
        if not (finite and np.isfinite(addend).all()):
            _exceptional(result, a, b, addend, scales)
        return result


def _native(a: Numbers, b: Numbers, c: Array | None, rule: Rule) -> Array | None:
    """The product by native code; None where it does not do."""
    (rows, k), columns = a.values.shape, len(b.values)
    if rows % 4 or k % 8 or (rule.fraction and rule.chunk < k):
        return None
    if a.values.dtype != b.values.dtype:
        a, b = a.wide(), b.wide()
    if not rule.fraction and a.values.dtype != np.float32:
        a, b = (Numbers(m.values.astype(np.float32), m.powers) for m in (a, b))
    right = b.turned
    out = np.empty((rows, right[0].shape[1]), np.float32)
    rounding = tiles.Rounding(rule.fraction, *tiles.MASKS[rule.result])
    left = np.ascontiguousarray(a.values), np.ascontiguousarray(a.powers)
    if not tiles.rows(left, right, _padded(c, out), rounding, out):
        return None
    result = out[:, :columns]
    return result.astype(np.float16) if rule.result == "f16" else result


def _native_groups(
    a: Numbers, b: Numbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers]
) -> Array | None:
    """The same for block-scaled fp4: every group of columns has its scale factor."""
    (rows, k), columns = a.values.shape, len(b.values)
    if rows % 4 or not rule.fraction or rule.group != tiles.GROUP:
        return None
    groups = k // tiles.GROUP
    each = np.arange(groups) * scales[0].values.shape[1] // groups  # a factor may be for several groups
    left = np.empty((rows, groups, 2))
    left[..., 0], left[..., 1] = scales[0].values[:, each], scales[0].powers[:, each]
    turned = b.turned[0]
    right = np.zeros((groups, 2, turned.shape[1]))
    right[:, 0, :columns] = scales[1].values[:, each].T
    right[:, 1, :columns] = scales[1].powers[:, each].T
    out = np.empty((rows, turned.shape[1]), np.float32)
    rounding = tiles.Rounding(rule.fraction, *tiles.MASKS[rule.result])
    if not tiles.grouped(np.ascontiguousarray(a.values), turned, (left, right), _padded(c, out), rounding, out):
        return None
    return out[:, :columns]


def _padded(c: Array | None, out: Array) -> Array | None:
    """The addend as f32 with rows as long as those of the result."""
    if c is None:
        return None
    addend = c.astype(np.float32, copy=False)
    if addend.shape == out.shape and addend.strides[1] == 4:
        return addend
    padded = np.zeros(out.shape, np.float32)
    padded[:, : c.shape[1]] = c
    return padded


def multiply_integers(a: Array, b: Array, c: Array | None, *, saturate: bool) -> Array:
    """The same for whole numbers in f32; c and the result are u32 holding s32, wrapped or saturated once."""
    total = _whole_product(a, b).astype(np.int64)
    if c is not None:
        total += c.view(np.int32)
    if saturate:
        np.clip(total, _SMALLEST32, _LARGEST32, out=total)
    return total.astype(np.uint32)


def _whole_product(a: Array, b: Array) -> Array:
    """a * b^T for whole numbers whose sums are exact in f32."""
    found = _native(Numbers(a, a), Numbers(b, b), None, Rule(0, a.shape[1], "f32"))
    return a @ b.T if found is None else found


def rounded(total: Array, result: str) -> Array:
    """Exact sums in f64 as f32, cut off, or as f16, to nearest even. A sum of zero is +0."""
    total = total + 0.0
    if result == "f16":
        return total.astype(np.float16)
    single: Array = (total.view(np.uint64) & _CUT[result]).view(np.float64)
    small = np.abs(total) < 2.0**_LEAST_F32
    if small.any():
        single = np.where(small, np.trunc(total * 2.0**149) * 2.0**-149, single)
    with np.errstate(over="ignore"):
        return single.astype(np.float32)


def _plain(a: Numbers, b: Numbers, addend: Array, rule: Rule, scales: tuple[Numbers, Numbers] | None) -> Array:
    """f32 products and sums, in whatever order the library adds."""
    left, right = a.values, b.values
    if scales is not None:
        left, right = _grouped_values(a, scales[0]), _grouped_values(b, scales[1])
    total = left.astype(np.float32) @ right.T.astype(np.float32) + addend.astype(np.float32)
    result: Array = total.astype(np.float16) if rule.result == "f16" else total
    return result


def _grouped_values(matrix: Numbers, scale: Numbers) -> Array:
    values: Array = matrix.values * np.repeat(scale.values, matrix.values.shape[1] // scale.values.shape[1], axis=1)
    return values


# --- sums -------------------------------------------------------------------------------------------------------------


def _cut_sum(
    a: Numbers, b: Numbers, addend: Array, rule: Rule, least: int, scales: tuple[Numbers, Numbers] | None
) -> Array:
    """Chunks of K one after the other; each is aligned, cut off and added exactly."""
    columns = a.values.shape[1]
    total = addend
    for first in range(0, columns, rule.chunk):
        part = slice(first, min(first + rule.chunk, columns))
        if first:
            total = rounded(total, rule.result).astype(np.float64)
        chunk = (a.values[:, part], b.values[:, part])
        if scales is None:
            total = _aligned(chunk, (a.powers[:, part], b.powers[:, part]), total, rule, least)
        else:
            total = _aligned_groups(chunk, scales, total, rule, least)
    return total


def _aligned(values: tuple[Array, Array], powers: tuple[Array, Array], addend: Array, rule: Rule, least: int) -> Array:
    (a, b), (pa, pb) = values, powers
    most = np.maximum(power(addend, least), 2.0**_LEAST_F32)
    term = np.empty_like(most)
    for k in range(a.shape[1]):
        np.multiply(pa[:, k, None], pb[None, :, k], out=term)
        np.maximum(most, term, out=most)
    unit = 2.0**rule.fraction / most
    total = np.trunc(addend * unit)
    for k in range(a.shape[1]):
        np.multiply(a[:, k, None], b[None, :, k], out=term)
        np.multiply(term, unit, out=term)
        total += np.trunc(term, out=term)
    return total * (most * 2.0**-rule.fraction)


def _aligned_groups(
    values: tuple[Array, Array], scales: tuple[Numbers, Numbers], addend: Array, rule: Rule, least: int
) -> Array:
    """Block-scaled fp4: groups of columns are summed exactly, scaled, and then aligned (docs/numerics.md)."""
    (a, b), (scale_a, scale_b) = values, scales
    most = np.maximum(power(addend, least), 2.0**_LEAST_F32)
    groups = []
    for first in range(0, a.shape[1], rule.group):
        dot = a[:, first : first + rule.group] @ b[:, first : first + rule.group].T
        factor = first * scale_a.values.shape[1] // a.shape[1]
        scale = scale_a.values[:, factor, None] * scale_b.values[None, :, factor]
        own = scale_a.powers[:, factor, None] * scale_b.powers[None, :, factor]
        np.maximum(most, np.where(dot == 0, 0.0, own), out=most)
        groups.append(dot * scale)
    unit = 2.0**rule.fraction / most
    total = np.trunc(addend * unit)
    for group in groups:
        total += np.trunc(group * unit)
    return total * (most * 2.0**-rule.fraction)


def _exceptional(result: Array, a: Numbers, b: Numbers, addend: Array, scales: tuple[Numbers, Numbers] | None) -> None:
    """Put NaN and infinities where an operand that is not finite takes part: what the sum in f64 gives."""
    left, right = a.values, b.values
    if scales is not None:
        left, right = _grouped_values(a, scales[0]), _grouped_values(b, scales[1])
    total = addend.copy()
    for k in range(left.shape[1]):
        total += left[:, k, None] * right[None, :, k]
    infinite = np.isinf(total)
    result[infinite] = total[infinite]
    bits, nan = (np.uint16, 0x7FFF) if result.dtype == np.float16 else (np.uint32, NAN32)
    result.view(bits)[np.isnan(total)] = nan
