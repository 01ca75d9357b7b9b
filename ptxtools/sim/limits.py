"""What each generation of devices can hold: the limits that decide launches and residency.

Sources: CUDA Programming Guide, appendix "Compute Capabilities", tables "Technical Specifications" and "Memory
Information per Compute Capability" (edition 13); CUDA C++ Programming Guide, section "Thread Block Clusters" (a cluster
of 8 CTAs is portable, 16 need an opt-in on sm_90 and sm_100); tuning guides of Turing, Ampere, Ada, Hopper and
Blackwell for register and shared-memory granularity. sm_88 is not described there: it gets the limits of sm_86. sm_101
is the former name of sm_110. Limits of grid and block shapes are the same from sm_75 on. `cuda::arch_traits` of libcu++
has the same figures, cluster sizes aside.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS_PER_CTA = 1024
MAX_REGISTERS_PER_THREAD = 255
MAX_PARAMETER_BYTES = 32764  # 5.1.6.1: 4352 bytes before PTX 8.1, 32764 since, on sm_70 and later
MAX_LOCAL_BYTES = 512 * KIB  # of a thread
WARP = 32


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Limits of one compute capability; sizes in bytes.

    threads, warps, ctas, registers, shared: what one SM holds; shared_cta: the most that a CTA may ask for (opt-in);
    shared_reserved: taken by the system from every CTA's share; cluster: the largest cluster in CTAs (1: none).
    """

    name: str
    threads: int
    ctas: int
    shared: int
    shared_cta: int
    shared_reserved: int
    cluster: int
    registers: int = 65536
    register_unit: int = 256  # registers are handed to a warp in units of this many
    shared_unit: int = 128

    @property
    def warps(self) -> int:
        return self.threads // WARP


#                      name    threads CTAs shared/SM   shared/CTA  reserved  cluster
_TABLE = (
    DeviceLimits("sm_75",  1024,   16,   64 * KIB,   64 * KIB,      0,      1),
    DeviceLimits("sm_80",  2048,   32,  164 * KIB,  163 * KIB,    KIB,      1),
    DeviceLimits("sm_86",  1536,   16,  100 * KIB,   99 * KIB,    KIB,      1),
    DeviceLimits("sm_87",  1536,   16,  164 * KIB,  163 * KIB,    KIB,      1),
    DeviceLimits("sm_88",  1536,   16,  100 * KIB,   99 * KIB,    KIB,      1),
    DeviceLimits("sm_89",  1536,   24,  100 * KIB,   99 * KIB,    KIB,      1),
    DeviceLimits("sm_90",  2048,   32,  228 * KIB,  227 * KIB,    KIB,     16),
    DeviceLimits("sm_100", 2048,   32,  228 * KIB,  227 * KIB,    KIB,     16),
    DeviceLimits("sm_101", 1536,   24,  228 * KIB,  227 * KIB,    KIB,     16),
    DeviceLimits("sm_103", 2048,   32,  228 * KIB,  227 * KIB,    KIB,     16),
    DeviceLimits("sm_110", 1536,   24,  228 * KIB,  227 * KIB,    KIB,     16),
    DeviceLimits("sm_120", 1536,   24,  100 * KIB,   99 * KIB,    KIB,      8),
    DeviceLimits("sm_121", 1536,   24,  100 * KIB,   99 * KIB,    KIB,      8),
)  # fmt: skip

#: Limits by plain target name, without the suffix `a` or `f`.
LIMITS: dict[str, DeviceLimits] = {row.name: row for row in _TABLE}

OLDEST = "sm_75"


def base_name(target: str) -> str:
    """The target without its suffix: "sm_90a" is "sm_90"."""
    return target.rstrip("af")


def limits_of(target: str) -> DeviceLimits | None:
    """Limits of a device such as "sm_90a"; None when no such device is simulated."""
    return LIMITS.get(base_name(target))


def number(target: str) -> int:
    """The number in a target's name, 0 when there is none."""
    digits = base_name(target).rpartition("_")[2]
    return int(digits) if digits.isdigit() else 0


def default_device(module_target: str) -> str:
    """The device that a module runs on unless told otherwise: its own target, or sm_75 for older ones."""
    if 0 < number(module_target) < number(OLDEST):
        return OLDEST
    return module_target.replace("compute_", "sm_") or OLDEST
