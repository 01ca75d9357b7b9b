"""Native reductions of arrays into memory; each element is updated atomically.

Each function does for rows of elements what `red` does for one. Functions are compiled on first use, and cached on
disk.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ptxtools.semantics.atomic import combine
from ptxtools.semantics.types import bits_of

from .algebra import LLVMAlgebra
from .emitter import Emitter

Array: TypeAlias = npt.NDArray[Any]


def reduce(operation: str, type_: str, target: Array, data: Array, *, flushes: bool) -> None:
    """target = operation(target, data): bytes in the same shape, whole elements of `type_` along the last axis.

    target: a view of memory, whose last axis has no gaps; data: contiguous. flushes: f32 subnormals count as zeros.
    """
    rows = _addresses(target)
    _function(operation, type_, flushes)(
        rows.ctypes.data, data.ctypes.data, rows.size, target.shape[-1] * 8 // bits_of(type_)
    )


def _addresses(target: Array) -> Array:
    """Host addresses of the rows along the last axis."""
    found = np.array(target.__array_interface__["data"][0], np.uint64)
    for size, stride in zip(target.shape[:-1], target.strides[:-1], strict=True):
        found = found[..., None] + (np.arange(size) * stride).astype(np.uint64)
    return found.reshape(-1)


@cache
def _function(operation: str, type_: str, flushes: bool) -> Any:
    from . import jit, library

    name = f"update_{operation}_{type_}{'_flushed' * flushes}"
    disk = library.store()
    pieces = disk.pack([name])
    if pieces is None:
        pieces = [([name], jit.compile_object(_module(name, operation, type_, flushes)))]
        disk.save_pack([name], pieces)
    address = jit.link_object(pieces[0][1], [name])[name]
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)


def _module(name: str, operation: str, type_: str, flushes: bool) -> str:
    """Two loops, over rows and over elements; an element is retried until no other worker has changed it."""
    e, bits = Emitter(), bits_of(type_)
    integer, size = f"i{bits}", bits // 8
    e.line("entry:")
    e.line("br label %row")
    e.line("row:")
    e.line("%r = phi i64 [0, %entry], [%r.next, %row.done]")
    e.line("%more = icmp slt i64 %r, %rows")
    e.line("br i1 %more, label %start, label %end")
    e.line("start:")
    e.line("%place = getelementptr i64, ptr %targets, i64 %r")
    e.line("%base = load ptr, ptr %place")
    e.line("%skip = mul i64 %r, %count")
    e.line("br label %element")
    e.line("element:")
    e.line("%i = phi i64 [0, %start], [%i.next, %stored]")
    e.line("%left = icmp slt i64 %i, %count")
    e.line("br i1 %left, label %begin, label %row.done")
    e.line("begin:")
    e.line(f"%p = getelementptr {integer}, ptr %base, i64 %i")
    e.line("%number = add i64 %skip, %i")
    e.line(f"%q = getelementptr {integer}, ptr %data, i64 %number")
    e.line(f"%b = load {integer}, ptr %q, align 1")
    e.line(f"%first = load atomic {integer}, ptr %p monotonic, align {size}")
    e.line("br label %retry")
    e.line("retry:")
    e.line(f"%old = phi {integer} [%first, %begin], [%seen, %last]")
    new = combine(LLVMAlgebra(e, lanes=0), operation, type_, "%old", "%b", flushes=flushes)
    e.line("br label %last")
    e.line("last:")
    e.line(f"%answer = cmpxchg ptr %p, {integer} %old, {integer} {new} monotonic monotonic")
    e.line(f"%seen = extractvalue {{{integer}, i1}} %answer, 0")
    e.line(f"%good = extractvalue {{{integer}, i1}} %answer, 1")
    e.line("br i1 %good, label %stored, label %retry")
    e.line("stored:")
    e.line("%i.next = add i64 %i, 1")
    e.line("br label %element")
    e.line("row.done:")
    e.line("%r.next = add i64 %r, 1")
    e.line("br label %row")
    e.line("end:")
    e.line("ret void")
    body = e.take()
    return f"define void @{name}(ptr %targets, ptr %data, i64 %rows, i64 %count) {{\n{body}\n}}\n{e.declarations}\n"
