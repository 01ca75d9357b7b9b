"""Generations of tensor cores: which one a chip has, and how it adds. The arithmetic is in `tensorcore`,
which loads slowly.

Sources: MMA-Sim (arXiv:2511.10909), measured on chips of every generation here; see docs/numerics.md.
"""

from __future__ import annotations

from ptxtools.isa.targets import chip_of
from ptxtools.records import NamedTuple


class Generation(NamedTuple):
    """How the tensor cores of one architecture add.

    fraction: bits kept below the largest exponent; chunk: bytes of a row of A that are added at once; quads: m8n8k4 is
    an instruction of theirs; eight: how `mma` multiplies 8-bit floats: "" as other types, "short" with 13 bits,
    "halves" as two products of f16.
    """

    fraction: int
    chunk: int
    quads: bool = False
    eight: str = ""


#: Architectures with tensor cores of which nobody has published how they add.
UNKNOWN = frozenset({"rubin"})
#: By the architecture of the chip (`isa.chips`). Other architectures that are missing have no tensor cores.
GENERATIONS: dict[str, Generation] = {
    "volta": Generation(23, 8, quads=True),
    "turing": Generation(24, 16, quads=True),
    "ampere": Generation(24, 16),
    "ada": Generation(24, 16, eight="short"),
    "hopper": Generation(25, 32, eight="halves"),
    "blackwell": Generation(25, 32, eight="halves"),
    "rtx_blackwell": Generation(25, 32),
}


def generation_of(target: str) -> str | None:
    """The generation of tensor cores of a target such as "sm_90a"; None for a chip without.

    Raises ValueError for an unknown target.
    """
    architecture = chip_of(target).architecture
    return architecture if architecture in GENERATIONS else None
