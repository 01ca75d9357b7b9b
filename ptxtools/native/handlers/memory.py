"""Loads and stores (9.7.9.8 and on): every lane checked, and the common shapes of addresses served by vector accesses.

Each half of a warp is looked at by itself, as CTAs 16 threads wide are common: lanes at consecutive addresses, lanes at
one address (`halves`), and anything else by gather and scatter. Bounds and alignment are one comparison: the offset
rotated right by the logarithm of the access size is less than (size of the space) / (access size) only if its low bits
are zero. Addresses in the local window are `local`'s, and what lies outside the window that a handler serves at once
goes through `lanewise`.
"""

from __future__ import annotations

from ptxtools.native.code.handler import Handler
from ptxtools.native.code.keys import effects_of
from ptxtools.native.code.slices import Slices
from ptxtools.program.program import LOCAL_WINDOW, SHARED_WINDOW
from ptxtools.semantics.algebra import Value

from . import lanewise, local
from .halves import Ranged
from .parts import Access, Address, Window, store_parts, window
from .plain import spend
from .sliced import SlicedAccess

#: Records that a load costs which is made to look at memory that others write: whoever polls makes room for them.
POLL = 64


def load(h: Handler) -> None:
    """dst = memory at src[0] + imm."""
    effects = effects_of(h.op)
    if "poll" in effects:
        spend(h, POLL)
    if "acquire" in effects:
        h.closing.append("fence acquire")
    if isinstance(h, Slices):
        SlicedAccess(h, Access.of(h.op.dst_types), store=False).emit()
    else:
        _access(h, Access.of(h.op.dst_types), None)


def store(h: Handler) -> None:
    """Memory at src[0] + imm = src[1:]."""
    if "release" in effects_of(h.op):
        h.code.line("fence release")
    access = Access.of(h.op.src_types[1:], h.op.src[1:])
    if isinstance(h, Slices):
        SlicedAccess(h, access, store=True).emit()
        return
    written = [number for number in range(1, len(h.op.src)) if h.op.src[number] is not None]
    values = [h.source(number) for number in written]
    _access(h, access, store_parts(h, access, [h.op.src_types[number] for number in written], values))


def _access(h: Handler, access: Access, stored: list[Value] | None) -> None:
    for ref in (*h.op.dst, *h.op.src):
        if ref is not None:
            h.pointer(ref)
    address = Address(h)
    space = h.op.space
    if space == "local":
        local.access(h, access, stored, address, "0")
        return
    slow = h.code.label("slow")
    bad = Ranged(h, access, stored, address, window(h, space), slow).emit()
    h.code.begin(slow)
    if space == "generic":
        _other_windows(h, access, stored, address)
    elif space == "cluster":
        lanewise.access(h, access, stored, address, generic=True, window=SHARED_WINDOW)
    elif lanewise.opens_host(h):
        lanewise.access(h, access, stored, address, generic=False)
    else:
        lanewise.trap(h, access, address, bad)


def _other_windows(h: Handler, access: Access, stored: list[Value] | None, address: Address) -> None:
    """All lanes in the shared window, or all in the local one; else each lane by itself."""
    high = h.algebra.shr_by("u64", address.vector(), 56)
    outside = h.code.value("xor i32 %m, -1")
    for space, start in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
        here, on = h.code.label(space), h.code.label("on")
        same = h.code.value(f"icmp eq <32 x i64> {high}, {h.algebra.const('u64', start >> 56)}")
        bits = h.code.value(f"bitcast <32 x i1> {same} to i32")
        everybody = h.code.value(f"icmp eq i32 {h.code.value(f'or i32 {bits}, {outside}')}, -1")
        h.code.branch(everybody, here, on)
        h.code.begin(here)
        if space == "shared":
            inside = window(h, "cluster")
            base = h.code.value(f"or i64 {inside.base}, {start}")
            Ranged(h, access, stored, address, Window(inside.host, base, inside.size), on).emit()
        else:
            local.access(h, access, stored, address, str(start))
        h.code.begin(on)
    lanewise.access(h, access, stored, address, generic=True)
