"""The figures of a profile: totals of a kernel with their names, and a profile as JSON, for comparisons."""

from __future__ import annotations

import json
from typing import Any

from ptxtools.machine.measures import SECTOR_BYTES
from ptxtools.records import dataclass

from .profile import Global, KernelProfile, Profile, Row

FORMAT = "ptxtools profile 1"


@dataclass(frozen=True, slots=True)
class Figure:
    """A total. key: its name in JSON; unit: "" for a count, "bytes", "%", or what a ratio is of."""

    key: str
    label: str
    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        number = f"{self.value:,.0f}" if self.value == int(self.value) and self.unit != "%" else f"{self.value:,.2f}"
        return f"{number} {self.unit}".rstrip() if self.unit != "%" else f"{self.value:.1f} %"


def figures(kernel: KernelProfile) -> list[Figure]:
    """All totals that a kernel has something for."""
    found = [
        Figure("launches", "launches", kernel.launches),
        Figure("warp_instructions", "instructions of warps", kernel.warps),
        Figure("thread_instructions", "instructions of threads", kernel.lanes),
    ]
    if kernel.warps:
        found.append(Figure("active_lanes", "active lanes", kernel.lanes / kernel.warps, "of 32"))
    executed, together = kernel.branches
    if executed:
        found.append(Figure("branches", "conditional branches of warps", executed))
        found.append(Figure("branch_efficiency", "branches without divergence", 100 * together / executed, "%"))
    for writes, name, label in ((False, "read", "reads"), (True, "write", "writes")):
        found += _global(kernel.memory(writes), name, label)
    found += _shared(kernel)
    if kernel.operations:
        found.append(Figure("operations", "floating-point operations", kernel.operations))
    dram = SECTOR_BYTES * (kernel.memory(False).dram + kernel.memory(True).dram)
    if kernel.operations and dram:
        found.append(Figure("intensity", "operations for each DRAM byte (model)", kernel.operations / dram))
    if kernel.live is not None:
        found.append(Figure("live_registers", "registers live at most", kernel.live))
    found += [
        Figure("ctas_per_sm", "CTAs on an SM", kernel.occupancy.ctas),
        Figure("occupancy", "occupancy", 100 * kernel.occupancy.warps / kernel.occupancy.most, "%"),
    ]
    return found


def _global(total: Global, name: str, label: str) -> list[Figure]:
    if not total.warps:
        return []
    return [
        Figure(f"global_{name}s", f"global {label} of warps", total.warps),
        Figure(f"global_{name}_sectors", f"sectors of global {label}", total.sectors),
        Figure(f"global_{name}_coalescing", f"sectors of one of the {label}", total.sectors / total.warps),
        Figure(f"global_{name}_bytes", f"{label}: bytes that threads asked for", total.asked, "bytes"),
        Figure(f"l2_{name}_bytes", f"{label}: bytes at L2", total.moved, "bytes"),
        Figure(f"dram_{name}_bytes", f"{label}: bytes at DRAM (model)", total.dram * SECTOR_BYTES, "bytes"),
    ]


def _shared(kernel: KernelProfile) -> list[Figure]:
    total = kernel.banks
    if not total.warps:
        return []
    return [
        Figure("shared_accesses", "shared accesses of warps", total.warps),
        Figure("shared_passes", "passes over shared banks", total.passes),
        Figure("shared_conflicts", "passes lost to bank conflicts", total.conflicts),
    ]


def limiter(kernel: KernelProfile) -> str:
    """What keeps more CTAs from an SM."""
    return ", ".join(f"{name} ({kernel.occupancy.limits[name]} CTAs)" for name in kernel.occupancy.limiter)


def shape(kernel: KernelProfile) -> str:
    return "grid {},{},{} block {},{},{}".format(*kernel.grid, *kernel.block)


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_dict(profile: Profile) -> dict[str, Any]:
    """The profile as plain values."""
    return {"format": FORMAT, "kernels": [_kernel(kernel) for kernel in profile.kernels]}


def as_json(profile: Profile) -> str:
    return json.dumps(as_dict(profile), indent=1) + "\n"


def _kernel(kernel: KernelProfile) -> dict[str, Any]:
    occupancy = kernel.occupancy
    return {
        "name": kernel.name, "chip": kernel.chip, "grid": kernel.grid, "block": kernel.block,
        "registers": kernel.registers, "shared_bytes": kernel.shared, "l2_model_bytes": kernel.l2,
        "figures": {figure.key: figure.value for figure in figures(kernel)},
        "classes": {name: {"warps": warps, "threads": lanes} for name, (warps, lanes) in kernel.by("name").items()},
        "pipes": {name: {"warps": warps, "threads": lanes} for name, (warps, lanes) in kernel.by("pipe").items()},
        "occupancy": {"ctas": occupancy.ctas, "warps": occupancy.warps, "most_warps": occupancy.most,
                      "ctas_by": occupancy.limits, "limiter": occupancy.limiter},
        "notes": kernel.notes,
        "instructions": [_row(row) for row in kernel.rows.values()],
    }  # fmt: skip


def _row(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        "file": row.file, "line": row.line, "text": row.text, "function": row.function, "source": row.source,
        "class": row.name, "pipe": row.pipe, "warps": row.warps, "lanes": row.lanes, "threads": row.threads,
        "live": row.live,
    }  # fmt: skip
    if row.guard is not None:
        found["divergent"] = row.guard.some - row.guard.whole
    if row.memory is not None:
        memory = row.memory
        found["global"] = {"warps": memory.warps, "lanes": memory.lanes, "sectors": memory.sectors,
                           "dram_sectors": memory.dram, "bytes": memory.asked}  # fmt: skip
    if row.shared is not None:
        shared = row.shared
        found["shared"] = {"warps": shared.warps, "lanes": shared.lanes, "passes": shared.passes,
                           "conflicts": shared.conflicts}  # fmt: skip
    return found


# --- comparing --------------------------------------------------------------------------------------------------------


class ProfileError(ValueError):
    """A file that is no profile: why."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of two profiles; None where one has none."""

    kernel: str
    what: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before and self.after is not None else None


def read_json(data: bytes) -> dict[str, Any]:
    """A profile that was written as JSON. Raises ProfileError."""
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ProfileError(f"the format is {content['format']!r}, not {FORMAT!r}")
        for kernel in content["kernels"]:
            str(kernel["name"])
            for values in (kernel["figures"], {k: v["warps"] for k, v in kernel["classes"].items()}):
                if not all(isinstance(value, int | float) for value in values.values()):
                    raise TypeError
            for row in kernel["instructions"]:
                row["text"], row["line"], row["warps"] + 0
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, ProfileError):
            raise
        raise ProfileError("this is no profile written as JSON") from None
    found: dict[str, Any] = content
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Figures and classes that differ, kernel by kernel: the n-th of a name is compared with the n-th."""
    found = []
    olds, news = _numbered(before), _numbered(after)
    for name in dict.fromkeys([*olds, *news]):
        old, new = (_values(kernels.get(name)) for kernels in (olds, news))
        for what in dict.fromkeys([*old, *new]):
            if old.get(what) != new.get(what):
                found.append(Change(name, what, old.get(what), new.get(what)))
    return found


def _numbered(profile: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for kernel in profile["kernels"]:
        name, number = str(kernel["name"]), 1
        while (key := name if number == 1 else f"{name} ({number})") in found:
            number += 1
        found[key] = kernel
    return found


def _values(kernel: dict[str, Any] | None) -> dict[str, float]:
    if kernel is None:
        return {}
    classes = {f"class {name}": counts["warps"] for name, counts in kernel["classes"].items()}
    return {**kernel["figures"], **classes}
