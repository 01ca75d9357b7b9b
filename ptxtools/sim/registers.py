"""Registers that the warps of a CTA pass to one another: setmaxnreg (9.7.19.5)."""

from __future__ import annotations

from ptxtools.diagnostics import Cause
from ptxtools.machine.events import View, serves
from ptxtools.program.details import RegisterChange
from ptxtools.program.program import LANES
from ptxtools.records import dataclass, field

_WARPGROUP = 4


@dataclass(slots=True)
class _Pool:
    """free: registers that no warp has; held: those of each thread of a warp that has changed them; done: how many
    setmaxnreg each warp has come to; steps: which ones, for each warpgroup."""

    free: int = 0
    held: dict[int, int] = field(default_factory=dict)
    done: dict[int, int] = field(default_factory=dict)
    steps: dict[int, list[tuple[str, int]]] = field(default_factory=dict)


@serves("setmaxnreg")
def setmaxnreg(view: View) -> None:
    """.dec hands registers to the CTA's pool; .inc takes them out of it, and waits until there are enough.

    At the start the warps have them all. Registers of exited warps are not reused.
    """
    change = view.op.of(RegisterChange)
    action, entry = change.action, change.entry
    wanted = view.op.imm
    pool: _Pool = view.cta.state.setdefault("registers", _Pool())
    held = pool.held.get(view.warp, entry)
    if not any(wait.back for wait in view.came):
        _check(view, pool, action, wanted, held)
    key = ("registers", view.cta.rank)
    need = (wanted - held) * LANES
    if need > pool.free:
        view.wait(key, f"{need} registers; {pool.free} are free in the CTA's pool")
        return
    pool.free -= need
    pool.held[view.warp] = wanted
    if need < 0:
        view.cluster.wake(key)


def _check(view: View, pool: _Pool, action: str, wanted: int, held: int) -> None:
    """Trap on uses that the manual leaves undefined."""
    if wanted != held and (wanted > held) != (action == "inc"):
        raise view.trap(f"setmaxnreg.{action} to {wanted} registers in a warp that has {held}",
                        cause=Cause.COLLECTIVE)  # fmt: skip
    group = view.warp // _WARPGROUP
    steps = pool.steps.setdefault(group, [])
    number = pool.done[view.warp] = pool.done.get(view.warp, 0) + 1
    if number > len(steps):
        steps.append((action, wanted))
    elif steps[number - 1] != (action, wanted):
        other, count = steps[number - 1]
        reason = f"setmaxnreg.{action} to {wanted} where another warp of the warpgroup has .{other} to {count}"
        raise view.trap(reason, cause=Cause.COLLECTIVE)
