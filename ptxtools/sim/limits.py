"""The limits of each chip for launches and residency. docs/devices.md shows the table.

Sources, by column:

- sm_75 and later: CUDA Programming Guide 13, appendix "Compute Capabilities", tables "Device and Streaming
  Multiprocessor Information" and "Memory Information". sm_35 to sm_72: CUDA C++ Programming Guide 11.6, table
  "Technical Specifications per Compute Capability"; sm_20 to sm_32: the same of editions 5 to 7; sm_1x: of edition 4.
- CTAs an SM: also `cuda_occupancy.h` of CUDA 13.0, which alone has sm_101 (24), and which puts sm_88 with sm_86.
- `shared_unit`: PTX ISA, %total_smem_size (10.29), and `cuda_occupancy.h`; of sm_1x the CUDA Occupancy Calculator 3.
- `register_unit`, `partitions`, `cta_unit`: `cuda_occupancy.h` (sm_30 and later); the CUDA Occupancy Calculator before.
  An SM hands out registers in each of its partitions; sm_1x hands them to a CTA as a whole, for pairs of warps. A CTA
  must fit as if it had warps in every partition, on sm_60 as if that had four.
- `cluster`: CUDA Programming Guide, "Thread Block Clusters": 8 CTAs everywhere. 16 with an opt-in: Hopper and Blackwell
  tuning guides, for sm_90 and sm_100; nothing is published for sm_101, sm_103, sm_107 and sm_110, which get it too.
- sm_107: CUDA Programming Guide 13.4. More than 227 KiB of shared memory take a second opt-in; a launch counts as it.
- `parameters`: PTX ISA 5.1.6.1; CUDA takes 4096 of the 4352 bytes on sm_20 to sm_62, and 32764 from sm_70 on.
- `sms` and the products' names: NVIDIA's white papers and data sheets. They are told, never used.
- sm_1x has grids of two dimensions (CUDA) though the PTX ISA lists a third.

The system takes 16 bytes and the parameters of a CTA's shared memory on sm_1x; programs cannot see that, and it is not
counted. `cuda::arch_traits` of libcu++ agrees from sm_60 on.
"""

from __future__ import annotations

from ptxtools.isa import targets
from ptxtools.records import dataclass

KIB = 1024
WARP = 32
_LONG = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimits:
    """Limits of one compute capability; sizes in bytes.

    threads, ctas, registers, shared: what one SM holds. cta_threads, cta_registers: of a CTA; shared_cta: the most that
    a CTA may ask for (opt-in); shared_default: without opt-in; shared_reserved: taken by the system from every CTA's
    share; cluster: the largest cluster in CTAs (1: none); local: of a thread; registers_thread: the most that a thread
    has; parameters: of a kernel; partitions: parts of the register file; cta_unit: warps by which a CTA's registers are
    counted; by_cta: they are handed to the CTA as a whole, not to each warp. product, sms: a chip of that kind, and how
    many SMs it has.
    """

    name: str
    product: str
    sms: int
    threads: int
    ctas: int
    shared: int
    shared_cta: int
    shared_default: int = 48 * KIB
    shared_reserved: int = 0
    shared_unit: int = 256
    cluster: int = 1
    registers: int = 64 * KIB
    cta_registers: int = 64 * KIB
    registers_thread: int = 255
    register_unit: int = 256
    partitions: int = 4
    cta_unit: int = 4
    by_cta: bool = False
    cta_threads: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (_LONG, 65535, 65535)
    local: int = 512 * KIB
    parameters: int = 4096

    @property
    def warps(self) -> int:
        return self.threads // WARP

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number."""
        major, minor = divmod(int(self.name[3:]), 10)
        return major, minor


def _tesla(name: str, product: str, sms: int, threads: int, registers: int, unit: int) -> DeviceLimits:
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=threads, ctas=8, shared=16 * KIB, shared_cta=16 * KIB,
        shared_default=16 * KIB, shared_unit=512, registers=registers, cta_registers=registers, registers_thread=124,
        register_unit=unit, cta_unit=2, by_cta=True, cta_threads=512, block=(512, 512, 64), grid=(65535, 65535, 1),
        local=16 * KIB, parameters=256,
    )  # fmt: skip


def _fermi(name: str, product: str, sms: int) -> DeviceLimits:
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=1536, ctas=8, shared=48 * KIB, shared_cta=48 * KIB,
        shared_unit=128, registers=32 * KIB, cta_registers=32 * KIB, registers_thread=63, register_unit=64,
        partitions=2, cta_unit=2, grid=(65535, 65535, 65535),
    )  # fmt: skip


def _kepler(
    name: str, product: str, sms: int, shared: int = 48, registers: int = 64, cta: int = 64, thread: int = 255
) -> DeviceLimits:
    """Sizes in units of 1024."""
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=2048, ctas=16, shared=shared * KIB, shared_cta=48 * KIB,
        registers=registers * KIB, cta_registers=cta * KIB, registers_thread=thread,
    )  # fmt: skip


def _maxwell(name: str, product: str, sms: int, shared: int, cta: int = 64, partitions: int = 4) -> DeviceLimits:
    """Maxwell and Pascal; sizes in units of 1024."""
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=2048, ctas=32, shared=shared * KIB, shared_cta=48 * KIB,
        cta_registers=cta * KIB, partitions=partitions,
    )  # fmt: skip


def _volta(name: str, product: str, sms: int, threads: int, ctas: int, shared: int) -> DeviceLimits:
    """Volta and Turing; shared in KiB."""
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=threads, ctas=ctas, shared=shared * KIB, shared_cta=shared * KIB,
        parameters=32764,
    )  # fmt: skip


def _modern(name: str, product: str, sms: int, threads: int, ctas: int, shared: int, cluster: int = 1) -> DeviceLimits:
    """Ampere and later; shared in KiB."""
    return DeviceLimits(
        name=name, product=product, sms=sms, threads=threads, ctas=ctas, shared=shared * KIB,
        shared_cta=(shared - 1) * KIB, shared_reserved=KIB, shared_unit=128, cluster=cluster, parameters=32764,
    )  # fmt: skip


_TABLE = (
    #       name     product               SMs  threads registers unit
    _tesla("sm_10", "GeForce 8800 GTX",     16,    768,  8 * KIB, 256),
    _tesla("sm_11", "GeForce 9800 GTX",     16,    768,  8 * KIB, 256),
    _tesla("sm_12", "GeForce GT 240",       12,   1024, 16 * KIB, 512),
    _tesla("sm_13", "Tesla C1060",          30,   1024, 16 * KIB, 512),
    _fermi("sm_20", "Tesla C2050",          14),
    _fermi("sm_21", "GeForce GTX 560 Ti",    8),
    _kepler("sm_30", "GeForce GTX 680",      8, thread=63),
    _kepler("sm_32", "Jetson TK1",           1, cta=32),
    _kepler("sm_35", "Tesla K40",           15),
    _kepler("sm_37", "Tesla K80 (one GPU)", 13, shared=112, registers=128),
    #         name    product              SMs  shared/SM
    _maxwell("sm_50", "GeForce GTX 750 Ti",  5,  64),
    _maxwell("sm_52", "GeForce GTX 980",    16,  96),
    _maxwell("sm_53", "Jetson TX1",          2,  64, cta=32),
    _maxwell("sm_60", "Tesla P100",         56,  64, partitions=2),
    _maxwell("sm_61", "Tesla P40",          30,  96),
    _maxwell("sm_62", "Jetson TX2",          2,  64, cta=32),
    #        name      product             SMs  threads CTAs shared/SM cluster
    _volta("sm_70",   "Tesla V100",         80,  2048,   32,   96),
    _volta("sm_72",   "Jetson AGX Xavier",   8,  2048,   32,   96),
    _volta("sm_75",   "T4",                 40,  1024,   16,   64),
    _modern("sm_80",  "A100",              108,  2048,   32,  164),
    _modern("sm_86",  "A40",                84,  1536,   16,  100),
    _modern("sm_87",  "Jetson AGX Orin",    16,  1536,   16,  164),
    _modern("sm_88",  "",                    0,  1536,   16,  100),
    _modern("sm_89",  "L40",               142,  1536,   24,  100),
    _modern("sm_90",  "H100 SXM",          132,  2048,   32,  228,      16),
    _modern("sm_100", "B200",              148,  2048,   32,  228,      16),
    _modern("sm_101", "Jetson AGX Thor",    20,  1536,   24,  228,      16),
    _modern("sm_103", "B300",              148,  2048,   32,  228,      16),
    _modern("sm_107", "Rubin",             224,  1024,   16,  328,      16),
    _modern("sm_110", "Jetson AGX Thor",    20,  1536,   24,  228,      16),
    _modern("sm_120", "GeForce RTX 5090",  170,  1536,   24,  100,       8),
    _modern("sm_121", "DGX Spark (GB10)",   48,  1536,   24,  100,       8),
)  # fmt: skip

#: Limits by plain target name, without the suffix `a` or `f`.
LIMITS: dict[str, DeviceLimits] = {row.name: row for row in _TABLE}
#: The most bytes of parameters of any kernel.
MOST_PARAMETER_BYTES = max(row.parameters for row in _TABLE)

#: Chips that `.target` can name and that are not simulated, and why.
WITHOUT_LIMITS = {
    "sm_82": "NVIDIA has published no chip of that compute capability",
}

#: Modules for older targets run on this device unless told otherwise.
OLDEST_DEFAULT = "sm_75"


def base_name(target: str) -> str:
    """The target without its suffix: "sm_90a" is "sm_90"."""
    return target.rstrip("af")


def limits_of(target: str) -> DeviceLimits | None:
    """Limits of a device such as "sm_90a"; None when no such device is simulated."""
    return LIMITS.get(base_name(target)) if targets.known(target) else None


def why_none(target: str) -> str:
    """Why a device does not exist, for a message."""
    if targets.known(target):
        return f"no device '{target}' is simulated: {WITHOUT_LIMITS[base_name(target)]}"
    names = list(LIMITS)
    return f"no device '{target}' is simulated; known are {', '.join(names)}, with a or f where PTX has it"


def default_device(module_target: str) -> str:
    """The device that a module runs on unless told otherwise: its own target, or sm_75 for older ones."""
    name = targets.canonical(module_target) or OLDEST_DEFAULT
    return OLDEST_DEFAULT if targets.known(name) and not targets.provides(name, OLDEST_DEFAULT) else name


#: L2 of products, in MiB, by architecture as NVIDIA's white papers state it: Tesla V100, T4, A100, GeForce RTX 3090,
#: RTX 4090, H100 SXM, B200, RTX 5090.
_L2 = {"sm_70": 6, "sm_75": 4, "sm_80": 40, "sm_86": 6, "sm_89": 72, "sm_90": 50, "sm_100": 126, "sm_120": 96}
_L2_OTHERS = 4


def l2_bytes(target: str) -> int:
    """Bytes of L2 for the model of caches; 4 MiB for chips that are not in the table."""
    return _L2.get(target.rstrip("af"), _L2_OTHERS) << 20
