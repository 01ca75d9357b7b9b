"""docs/devices.md, from the tables of chips and limits."""

from __future__ import annotations

from collections.abc import Callable

from ptxtools.isa.targets import FIRST_VERSION, chip_of
from ptxtools.semantics.generations import generation_of
from ptxtools.sim.limits import KIB, LIMITS, WITHOUT_LIMITS, DeviceLimits
from ptxtools.sim.rates import RATES

_HEAD = """# Devices

Generated from `ptxtools/isa/chips.py` and `ptxtools/sim/limits.py` by `make docs`. `--device`, `device =` and
`ptxtools.Device(…)` accept these names, with the suffixes `a` and `f` that `.target` allows. The docstring of
`sim/limits.py` lists the sources: the tables of compute capabilities in the editions of NVIDIA's CUDA programming guide
that describe each chip, the PTX ISA, and the header `cuda_occupancy.h`, whose calculator gives the same number of
resident CTAs (`tests/sim/test_occupancy.py`, sm_30 and later).

The number of SMs is the product's; a simulated device has `--sms` SMs, default 16. Sizes are in KiB, registers in Ki.
A CTA may use more than the default 48 KiB of shared memory: the opt-in that CUDA requires is implied.
"""

_Column = tuple[str, Callable[[DeviceLimits], object]]


def _ki(size: int) -> str:
    return f"{size / KIB:g}"


_HOLDS: tuple[_Column, ...] = (
    ("device", lambda row: row.name),
    ("architecture", lambda row: chip_of(row.name).architecture.replace("_", " ")),
    ("product, SMs", lambda row: f"{row.product}, {row.sms}" if row.product else "–"),
    ("threads", lambda row: row.threads),
    ("warps", lambda row: row.warps),
    ("CTAs", lambda row: row.ctas),
    ("shared memory", lambda row: _ki(row.shared)),
    ("registers", lambda row: _ki(row.registers)),
    ("tensor cores add as", lambda row: (generation_of(row.name) or "–").replace("_", " ")),
)
_TAKES: tuple[_Column, ...] = (
    ("device", lambda row: row.name),
    ("threads", lambda row: row.cta_threads),
    ("registers", lambda row: _ki(row.cta_registers)),
    ("per thread", lambda row: row.registers_thread),
    ("shared memory", lambda row: _ki(row.shared_cta)),
    ("reserved", lambda row: _ki(row.shared_reserved)),
    ("in units of", lambda row: f"{row.shared_unit} bytes"),
    ("local, per thread", lambda row: _ki(row.local)),
    ("parameters", lambda row: f"{row.parameters:,} bytes"),
    ("cluster", lambda row: row.cluster),
    ("grid", lambda row: " x ".join("2³¹ - 1" if n == 2**31 - 1 else str(n) for n in row.grid)),
)


def _table(columns: tuple[_Column, ...]) -> list[str]:
    rows = [" | ".join(str(cell(row)) for _, cell in columns) for row in LIMITS.values()]
    return [
        f"| {' | '.join(title for title, _ in columns)} |",
        "|---" * len(columns) + "|",
        *(f"| {r} |" for r in rows),
    ]


def _rates() -> list[str]:
    """Rates and latencies, for estimates."""
    columns = (
        "clock", "dram", "l2", "fp32", "half", "alu", "fp64", "special", "convert", "tensor", "alu_latency",
        "fp64_latency", "special_latency", "tensor_latency", "shared_latency", "l2_latency", "dram_latency",
    )  # fmt: skip
    titles = [name.replace("_latency", " latency") for name in columns]
    return [
        "## Rates and latencies", "",
        "For `--estimate` ([estimating.md](estimating.md)) and rooflines, from `ptxtools/sim/rates.py`, whose",
        "docstring has the sources. Clock in MHz, DRAM in GB/s, L2 in bytes in a cycle of the chip; pipes in threads,",
        "tensor in multiplications of f16, in a cycle of an SM; latencies in cycles.", "",
        f"| device | {' | '.join(titles)} | latencies of |",
        "|---" * (len(titles) + 2) + "|",
        *(
            f"| {row.name} | {' | '.join(str(getattr(row, name)) for name in columns)} | {row.like or row.name} |"
            for row in RATES.values()
        ),
    ]  # fmt: skip


def device_page() -> str:
    """What every device holds and takes, and which targets have none."""
    lines = [_HEAD, "## Limits of an SM", "", *_table(_HOLDS), "", "## Limits of a CTA and a launch", ""]
    lines += [*_table(_TAKES), "", "Blocks have at most 1024 x 1024 x 64 threads, on sm_1x 512 x 512 x 64.", ""]
    lines += [*_rates(), "", "## Targets without a device", ""]
    for name, reason in WITHOUT_LIMITS.items():
        names = [target for target in FIRST_VERSION if target.rstrip("af") == name]
        lines.append(f"- {', '.join(names)}: {reason}.")
    return "\n".join(lines) + "\n"
