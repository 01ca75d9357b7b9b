"""What chips do in a cycle, and how long they take for it: the numbers of the model of time (docs/estimating.md).

They are of the product that `sim.limits` names. Sources, by column:

- `clock`, `dram`: NVIDIA's data sheets and white papers: V100, T4, A100 40 GB (SXM), A40, L40, H100 SXM, B200, GeForce
  RTX 5090. The clock is the boost clock; of H100 and B200 the one at which the stated peak of their tensor cores holds.
- `fp32`, `alu`, `half`, `fp64`, `special`, `convert`: CUDA C++ Programming Guide, "Throughput of Native Arithmetic
  Instructions": results in a cycle on an SM; `half` in instructions of two elements.
- `tensor`: from the stated dense peak of f16 products with f32 sums, by SMs and clock. Products of other types are
  counted in proportion to the bits of their elements.
- `l2`: bytes in a cycle. V100, A100: the white paper of A100 (2048 and 5120); H100 as A100. T4: Jia et al., "Dissecting
  the NVidia Turing T4 GPU via Microbenchmarking" (2019), 1.27 TB/s. The others: 64 bytes for each SM at most, 2048.
- `shared`: 32 banks of 4 bytes: 128 bytes in a cycle (CUDA C++ Programming Guide). `address`: threads whose accesses
  an SM takes in a cycle: 32 of global memory, one pass over the banks of shared memory.
- latencies of L2 and DRAM, in cycles: github.com/markdewing/AI_kernels, `latency/README.md`, of V100, RTX 4090, GH200,
  RTX 5090 and B200; A100: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
  Microbenchmarking" (2024); T4's L2: the report on Turing above. Of shared memory: the same reports, and of V100 Jia
  et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018). Of dependent arithmetic: that
  report, and Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture through Microbenchmarking and
  Instruction-level Analysis" (2022). Where nothing is published for a chip it has the numbers of the nearest one that
  was measured: `like` names it.
"""

from __future__ import annotations

from ptxtools.records import dataclass

from .limits import base_name

#: Instructions that an SM issues in a cycle: one for each of its four parts (white papers since V100).
ISSUES = 4
#: Threads for which the load and store units of an SM take addresses in a cycle.
ADDRESSES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one product. clock: MHz; dram: GB/s; l2: bytes in a cycle, of the chip; fp32, alu, half, fp64, special,
    convert: threads in a cycle of an SM; tensor: f16 multiplications and additions in a cycle of an SM; *_latency:
    cycles until a result can be used; like: the chip from which latencies are taken, where it is another."""

    name: str
    clock: int
    dram: int
    l2: int
    fp32: int
    alu: int
    half: int
    fp64: int
    special: int
    convert: int
    tensor: int
    alu_latency: float
    fp64_latency: float
    special_latency: float
    tensor_latency: float
    shared_latency: float
    l2_latency: float
    dram_latency: float
    like: str = ""

    @property
    def dram_bytes(self) -> float:
        """Bytes of DRAM in a cycle."""
        return self.dram * 1e3 / self.clock

    def pipe(self, name: str) -> float:
        """Threads in a cycle of an SM, by the name of a pipe (`observe.classes`); 0: it has no limit of its own."""
        return {
            "fma": self.fp32, "alu": self.alu, "half": self.half, "fp64": self.fp64, "special": self.special,
            "convert": self.convert, "load/store": ADDRESSES, "texture": self.special,
        }.get(name, 0)  # fmt: skip


def _row(
    name: str, clock: int, dram: int, l2: int, lanes: tuple[int, int, int, int, int], tensor: int,
    latencies: tuple[float, float, float, float, float, float, float], like: str = "",
) -> Rates:  # fmt: skip
    fp32, half, alu, fp64, convert = lanes
    arithmetic, double, special, product, shared, l2_hit, dram_hit = latencies
    return Rates(
        name=name, clock=clock, dram=dram, l2=l2, fp32=fp32, alu=alu, half=half, fp64=fp64, special=16,
        convert=convert, tensor=tensor, alu_latency=arithmetic, fp64_latency=double, special_latency=special,
        tensor_latency=product, shared_latency=shared, l2_latency=l2_hit, dram_latency=dram_hit, like=like,
    )  # fmt: skip


#: Of dependent instructions: alu, fp64, special, mma; then shared memory, L2, DRAM.
_VOLTA = (4, 8, 18, 33, 19, 221, 460)
_TURING = (4, 48, 18, 33, 19, 188, 460)
_A100 = (4, 8, 18, 33, 29, 262, 466)
_ADA = (4, 48, 18, 33, 30, 296, 636)
_HOPPER = (4, 8, 18, 33, 29, 281, 690)
_B200 = (4, 8, 18, 33, 29, 295, 860)
_RTX_BLACKWELL = (4, 48, 18, 33, 30, 360, 936)

_TABLE = (
    #     chip     clock  DRAM    L2   fp32 half  alu fp64 convert  tensor  latencies
    _row("sm_70",  1530,   900, 2048, ( 64,  64,  64,  32,  16),    512,   _VOLTA),
    _row("sm_75",  1590,   320,  800, ( 64,  64,  64,   2,  16),    512,   _TURING, "sm_70"),
    _row("sm_80",  1410,  1555, 5120, ( 64, 128,  64,  32,  16),   1024,   _A100),
    _row("sm_86",  1740,   696, 2048, (128, 128,  64,   2,  16),    512,   _ADA, "sm_89"),
    _row("sm_89",  2490,   864, 2048, (128, 128,  64,   2,  16),    256,   _ADA),
    _row("sm_90",  1830,  3352, 5120, (128, 128,  64,  64,  64),   2048,   _HOPPER),
    _row("sm_100", 1850,  8000, 5120, (128, 128,  64,  64,  64),   4096,   _B200),
    _row("sm_120", 2407,  1792, 2048, (128, 128,  64,   2,  16),    256,   _RTX_BLACKWELL),
)  # fmt: skip

#: By plain target name, without the suffix `a` or `f`.
RATES: dict[str, Rates] = {row.name: row for row in _TABLE}


def rates_of(target: str) -> Rates | None:
    """Of a device such as "sm_90a"; None: there are no published numbers."""
    return RATES.get(base_name(target))


__all__ = ["ADDRESSES", "ISSUES", "RATES", "Rates", "rates_of"]
