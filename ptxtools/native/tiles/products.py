"""The native engine's products: tiles in machine code. A rule without code is computed as `Products` defines it; wgmma
and tcgen05 have no such rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ptxtools.machine.events import View
from ptxtools.machine.products import Array, Numbers, Places, Products, TensorProduct, Update, WarpgroupProduct
from ptxtools.program.program import Ref
from ptxtools.records import replace
from ptxtools.semantics.accumulation import SCALED_GROUP, Rule

from . import direct, numbers, takeover
from . import interface as tiles
from .numbers import TileNumbers

_LARGEST32, _SMALLEST32 = 2**31 - 1, -(2**31)
_WHOLE = Rule(0, 0, "f32")
Matrix = TypeVar("Matrix", bound=Numbers)


class TileProducts(Products):
    """`Products` over the functions of `native.tiles`. Its `Numbers` are `TileNumbers`."""

    direct = True

    def numbers(self, t: str, codes: Array) -> Numbers:
        return numbers.numbers(t, codes)

    def whole(self, t: str, codes: Array) -> Array:
        """In f32, in which sums of K products are exact."""
        return codes.view(np.int8 if t == "s8" else np.uint8).astype(np.float32)

    def multiply(
        self, a: Numbers, b: Numbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers] | None = None
    ) -> Array:
        assert isinstance(a, TileNumbers)
        assert isinstance(b, TileNumbers)
        rows, k = a.values.shape
        if not tiles.suits(rule, k) or rows % tiles.ROWS or k % tiles.STEP or not _fits(c):
            return super().multiply(a, b, c, rule, scales)
        with np.errstate(all="ignore"):
            if a.finite and b.finite and (scales is None or (scales[0].finite and scales[1].finite)):
                return _finite(a, b, c, rule, scales)
            some = None if scales is None else (_finite_part(scales[0]), _finite_part(scales[1]))
            ordinary = _finite(_finite_part(a), _finite_part(b), c, rule, some)
            return _exceptional(ordinary, a, b, c, scales)

    def multiply_whole(self, a: Array, b: Array, c: Array | None, *, saturate: bool) -> Array:
        left, right = TileNumbers(a, a), TileNumbers(b, b)
        total = _in_form("whole", left, right, None, _WHOLE)[:, : len(b)].astype(np.int64)
        if c is not None:
            total += c.view(np.int32)
        if saturate:
            np.clip(total, _SMALLEST32, _LARGEST32, out=total)
        return total.astype(np.uint32)

    def update(self, operation: str, type_: str, *, flushes: bool, alone: bool) -> Update:
        if alone:
            return super().update(operation, type_, flushes=flushes, alone=alone)
        from ptxtools.native.code import updates

        return lambda target, data: updates.reduce(operation, type_, target, data, flushes=flushes)

    def tensor_product(self, product: TensorProduct, rule: Rule) -> Callable[[], bool] | None:
        return direct.prepare(product, rule) if product.dtype == "s32" or tiles.suits(rule, product.k) else None

    def take_over_tensor_product(self, view: View, lane: int, compute: Callable[[], bool], stamps: list[Array]) -> None:
        takeover.tensor_product(view, lane, compute, stamps)

    def take_over_product(self, view: View, product: Callable[[], WarpgroupProduct], rule: Rule) -> None:
        takeover.product(view, product, rule)

    def take_over_reads(self, view: View, a: Ref | None, b: Ref, places: Places) -> None:
        takeover.reads(view, a, b, places)

    def take_over_commit(self, view: View) -> None:
        takeover.commit(view)

    def take_over_wait(self, view: View, n: Ref | None) -> None:
        takeover.wait(view, n)


PRODUCTS = TileProducts()


def _fits(c: Array | None) -> bool:
    """Whether an addend is f32; one in f64 has been scaled down."""
    return c is None or c.dtype != np.float64 or bool((c.astype(np.float32) == c).all())


def _finite(
    a: TileNumbers, b: TileNumbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers] | None
) -> Array:  # fmt: skip
    if scales is None:
        return _rows(a, b, c, rule)
    if rule.group == SCALED_GROUP:
        return _grouped(a, b, c, rule, scales)
    return _rows(a.scaled(scales[0]), b.scaled(scales[1]), c, rule)


def _finite_part(m: Matrix) -> Matrix:
    """Zeros in place of infinities and NaN."""
    good = np.isfinite(m.values)
    return replace(m, values=np.where(good, m.values, 0), powers=np.where(good, m.powers, 0))


def _exceptional(
    ordinary: Array, a: Numbers, b: Numbers, c: Array | None, scales: tuple[Numbers, Numbers] | None
) -> Array:  # fmt: skip
    """The elements with an operand that is not finite: NaN or infinity. All other operands count by their signs alone,
    so that nothing else overflows."""
    left, right = _signs(a.values), _signs(b.values)
    if scales is not None:
        wide = left.shape[1] // scales[0].values.shape[1]
        left, right = (
            m * np.repeat(_signs(s.values), wide, axis=1) for m, s in ((left, scales[0]), (right, scales[1]))
        )
    addend = None if c is None else np.where(np.isfinite(c), 0, c).astype(np.float32)
    total = _in_form("whole", TileNumbers(left, left), TileNumbers(right, right), addend, _WHOLE)[:, : len(right)]
    special = ~np.isfinite(total)
    ordinary[special] = total[special]
    return ordinary


def _signs(values: Array) -> Array:
    return np.where(np.isfinite(values), np.sign(values), values).astype(np.float32)


def _rows(a: TileNumbers, b: TileNumbers, c: Array | None, rule: Rule) -> Array:
    if rule.fraction or rule.wide == "f64":
        if a.is_wide != b.is_wide or (not rule.fraction and not a.is_wide):
            a, b = a.wide(), b.wide()
    else:
        a, b = a.single(), b.single()
    form = tiles.form_of(rule, wide=a.is_wide)
    return _result(_in_form(form, a, b, c, rule), len(b.values), rule)


def _in_form(form: str, a: TileNumbers, b: TileNumbers, c: Array | None, rule: Rule) -> Array:
    right = b.turned
    out = np.empty((len(a.values), right[0].shape[1]), np.float32)
    left = np.ascontiguousarray(a.values), np.ascontiguousarray(a.powers)
    tiles.rows(form, left, right, _padded(c, out), tiles.rounding_of(rule), out)
    return out


def _grouped(
    a: TileNumbers, b: TileNumbers, c: Array | None, rule: Rule, scales: tuple[Numbers, Numbers]
) -> Array:  # fmt: skip
    """Block-scaled fp4: every group of columns has its scale factor."""
    (rows, k), columns = a.values.shape, len(b.values)
    groups = k // rule.group
    each = np.arange(groups) * scales[0].values.shape[1] // groups  # a factor may be for several groups
    left = np.empty((rows, groups, 2))
    left[..., 0], left[..., 1] = scales[0].values[:, each], scales[0].powers[:, each]
    turned = b.turned[0]
    right = np.zeros((groups, 2, turned.shape[1]))
    right[:, 0, :columns] = scales[1].values[:, each].T
    right[:, 1, :columns] = scales[1].powers[:, each].T
    out = np.empty((rows, turned.shape[1]), np.float32)
    values = np.ascontiguousarray(a.values)
    tiles.grouped(values, turned, (left, right), _padded(c, out), tiles.rounding_of(rule), out)
    return _result(out, columns, rule)


def _result(out: Array, columns: int, rule: Rule) -> Array:
    found = out[:, :columns]
    return found.astype(np.float16) if rule.format.nearest else found


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
