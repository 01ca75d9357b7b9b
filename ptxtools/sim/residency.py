"""The number of resident CTAs."""

from __future__ import annotations

from .limits import WARP, DeviceLimits

#: SMs of a GPC. A device of up to this many SMs is one GPC; a cluster never leaves its GPC.
SMS_PER_GPC = 16


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def registers_per_thread(wanted: int, threads: int, limits: DeviceLimits) -> int:
    """Registers that a compiler would give a thread: as many as the program keeps live; the rest is spilled.

    Hardware refuses a CTA unless registers for as many warps in each partition fit into it.
    """
    warps = _round_up(-(-threads // WARP), limits.cta_unit)
    most = min(limits.registers_thread, limits.cta_registers // (warps * WARP) // 8 * 8)
    return max(min(wanted, most), 16)


def ctas_per_sm(threads: int, registers: int, shared: int, limits: DeviceLimits) -> int:
    """CTAs of one kernel that an SM holds: at least 1 for a launch that passed the checks.

    threads: of a CTA; registers: of a thread; shared: bytes of a CTA, static and dynamic.
    """
    return max(1, min(ctas_by(threads, registers, shared, limits).values()))


def ctas_by(threads: int, registers: int, shared: int, limits: DeviceLimits) -> dict[str, int]:
    """CTAs that each resource of an SM has room for."""
    warps = -(-threads // WARP)
    room = _round_up(shared + limits.shared_reserved, limits.shared_unit)
    found = {
        "CTAs": limits.ctas,
        "threads": limits.warps // warps,
        "registers": _by_registers(warps, registers_per_thread(registers, threads, limits) * WARP, limits),
    }
    return {**found, "shared memory": limits.shared // room} if room else found


def _by_registers(warps: int, per_warp: int, limits: DeviceLimits) -> int:
    """CTAs of that many warps for which an SM has registers."""
    if limits.by_cta:
        whole = _round_up(_round_up(warps, limits.cta_unit) * per_warp, limits.register_unit)
        return limits.registers // whole
    in_partition = limits.registers // limits.partitions // _round_up(per_warp, limits.register_unit)
    return in_partition * limits.partitions // warps


def resident_ctas(per_sm: int, sms: int, cluster: int) -> int:
    """CTAs that the whole device holds. A cluster is resident as a whole, on SMs of one GPC."""
    if cluster == 1:
        return per_sm * sms
    full, rest = divmod(sms, SMS_PER_GPC)
    clusters = full * (per_sm * SMS_PER_GPC // cluster) + per_sm * rest // cluster
    return clusters * cluster
