"""synccheck on what the lanes of a warp do together: everybody that a member mask names must come (9.7.9.6, 9.7.13),
and all lanes to what has no mask; a shuffle reads lanes of the mask; all lanes go the same way at what has .uni.

A warp goes on without lanes that have exited, so that at this moment a lane that has not come never will.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ptxtools.program.details import Action
from ptxtools.program.program import LANES

from . import shuffles

if TYPE_CHECKING:
    from ptxtools.diagnostics import Trap
    from ptxtools.machine.events import View
    from ptxtools.machine.observers import Array
    from ptxtools.program.program import Program

    from .session import Session

_NAME = "synccheck"
_SHOWN = 8
_UNIFORM = re.compile(r"[\w.]*\.uni\b")


def only_plain(program: Program) -> bool:
    """Whether all barriers of a program wait for all living threads of the CTA."""
    ops = [op for op in program.operations() if op.kind == "bar"]
    return all(op.of(Action).name != "arrive" and op.src[1] is None for op in ops)


def threads_of(view: View) -> int:
    """Threads of the warp; fewer than 32 in the last one of a CTA."""
    x, y, z = view.launch.block
    return min(LANES, x * y * z - LANES * view.warp)


def together(session: Session, view: View, lanes: Array) -> None:
    """Lanes execute an instruction of a warp."""
    opcode = view.op.opcode
    if opcode is None:
        return
    if opcode.has("aligned"):
        _missing(session, view, lanes, np.full(LANES, 0xFFFF_FFFF, np.uint64), "")
        return
    if not opcode.has("sync"):
        return
    masks = view.source(len(view.op.src) - 1).astype(np.uint64)
    if _missing(session, view, lanes, masks, "its member mask") or _disagree(session, view, lanes, masks):
        return
    if opcode.family == "shfl":
        _shuffle(session, view, lanes, masks)


def parted(session: Session, program: Program, trap: Trap) -> None:
    """In a deadlock: lanes of a warp that wait at one instruction for lanes that wait at another."""
    if trap.parted:
        where, *others = trap.parted
        session.report_at(
            program, where, trap.cta, trap.thread, _NAME, "lanes of the warp wait here for lanes that do not come",
            (where, "absent"), kind="absent", others=tuple(session.site(program, one) for one in others),
            help="all lanes that the instruction needs have to come to it",
        )  # fmt: skip


def lacking(session: Session, program: Program, trap: Trap) -> None:
    """In a deadlock: warps that wait for products which others of their warpgroup have not issued (9.7.15.5.2)."""
    products = [op.where for op in program.operations() if op.kind == "wgmma.mma_async"]
    for wait in trap.lacking:
        where = max((one for one in products if one < wait), default=max(products, default=wait))
        session.report_at(
            program, where, trap.cta, trap.thread, _NAME, "a warp of the warpgroup does not execute this product",
            (where, "warpgroup"), kind="absent", others=(session.site(program, wait),),
            help="all four warps of the warpgroup have to execute it",
        )  # fmt: skip


def met(session: Session, view: View, lanes: Array) -> None:
    """Lanes go on behind a bar.warp.sync."""
    masks = view.source(0).astype(np.uint64)
    if not _missing(session, view, lanes, masks, "its member mask"):
        _disagree(session, view, lanes, masks)


def _disagree(session: Session, view: View, lanes: Array, masks: Array) -> bool:
    """Report lanes that name others which give another mask: all have to give the same (9.7.9.6, 9.7.13.2)."""
    given = np.unique(masks[lanes]).tolist() if len(lanes) else []
    for mask in given if len(given) > 1 else ():
        others = [lane for lane in lanes.tolist() if int(masks[lane]) != mask and mask >> lane & 1]
        if others:
            lane, other = int(lanes[masks[lanes] == mask][0]), others[0]
            message = f"lane {other}, which its member mask {mask:#010x} names, has the mask {int(masks[other]):#010x}"
            session.report(view, lane, _NAME, message, (view.op.where, "mask"), kind="mask",
                           help="all lanes that meet give the same mask")  # fmt: skip
            return True
    return False


def _missing(session: Session, view: View, lanes: Array, masks: Array, whose: str) -> bool:
    """Report lanes that were to come and did not; those beyond the CTA's threads are not meant."""
    here = sum(1 << lane for lane in lanes.tolist())
    everybody = (1 << threads_of(view)) - 1
    for mask in np.unique(masks[lanes]).tolist():
        absent = mask & everybody & ~here
        if absent:
            lane = int(lanes[masks[lanes] == mask][0])
            count = absent.bit_count()
            what = f"{count} lane{'s' * (count > 1)} of {whose} {mask:#010x}" if whose else (
                f"{count} of {everybody.bit_count()} threads of the warp"
            )  # fmt: skip
            message = f"{what} did not come to this instruction, and ha{'s' if count == 1 else 've'} exited"
            help_ = "name only lanes that come" if whose else "all lanes of the warp have to execute it"
            details = (f"not there: {listed(absent)}",)
            session.report(view, lane, _NAME, message, (view.op.where, "absent"), details, kind="absent", help=help_)
            return True
    return False


def _shuffle(session: Session, view: View, lanes: Array, masks: Array) -> None:
    """The source of a shuffle must be in the mask, and there."""
    found = shuffles.sources(view)
    here = sum(1 << lane for lane in lanes.tolist())
    named = (masks[lanes] & np.uint64(here)) >> found[lanes].astype(np.uint64) & np.uint64(1)
    bad = lanes[(named == 0) & (found[lanes] < threads_of(view))]
    if len(bad):
        lane = int(bad[0])
        message = f"lane {lane} reads lane {int(found[lane])}, which is not in the member mask {int(masks[lane]):#010x}"
        details = (f"{len(bad)} lanes do so",) if len(bad) > 1 else ()
        session.report(view, lane, _NAME, message, (view.op.where, "source"), details, kind="source")


def branch(session: Session, view: View, lanes: Array) -> None:
    """Some lanes go the same way at an instruction with .uni."""
    all_here = view.mask.bit_count()
    if 0 < len(lanes) < all_here:
        name = _UNIFORM.search(view.text)
        what = name[0] if name else "branch"
        message = f"{len(lanes)} of {all_here} threads take this {what}, and the others do not"
        if view.op.src_types != ("pred",):
            message = f"{len(lanes)} of {all_here} threads go one way at this {what}, and the others do not"
        session.report(view, int(lanes[0]), _NAME, message, (view.op.where, "uniform"), kind="not-uniform",
                       help=f"{what.removesuffix('.uni')} without .uni")  # fmt: skip


def listed(mask: int) -> str:
    """Lanes of a mask, for people."""
    numbers = [n for n in range(LANES) if mask >> n & 1]
    return f"lanes {', '.join(map(str, numbers[:_SHOWN]))}{', …' if len(numbers) > _SHOWN else ''}"
