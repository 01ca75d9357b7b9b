"""The chips that `.target` can name, one row each; the properties of a chip are only here.

A row is found by the number in the target's name (`targets.chip_of`). Other layers add their facts by the same
number or by the architecture: how tensor cores add (`semantics.generations`), and the limits of an SM (`sim.limits`).
"""

from __future__ import annotations

from ptxtools.records import NamedTuple

Version = tuple[int, int]


class Chip(NamedTuple):
    """One compute capability.

    plain, own, family: first PTX version of the target without suffix, with `a`, and with `f`. members: chips that a
    target with the suffix `f` stands for: itself and later ones that keep its features. same: the number under which
    PTX 9.0 knows the chip. features: what distinguishes it from others of its architecture.
    """

    number: int
    architecture: str
    plain: Version
    own: Version | None = None
    family: Version | None = None
    members: tuple[int, ...] = ()
    same: int = 0
    features: frozenset[str] = frozenset()


#: Products of 96 columns of 4-bit floats, and the descriptors' absolute leading dimension (9.7.16.2.1, 9.7.16.4.1).
K96 = "k96"

#: sm_107 came with PTX 9.4; sm_101 was renamed sm_110 in PTX 9.0; sm_88 is dated as ptxas 13.0 does; sm_82 stands in no
#: manual, but every ptxas accepts it.
_TABLE = (
    Chip(10, "tesla", (1, 0)),
    Chip(11, "tesla", (1, 0)),
    Chip(12, "tesla", (1, 2)),
    Chip(13, "tesla", (1, 2)),
    Chip(20, "fermi", (2, 0)),
    Chip(21, "fermi", (2, 0)),
    Chip(30, "kepler", (3, 0)),
    Chip(32, "kepler", (4, 0)),
    Chip(35, "kepler", (3, 1)),
    Chip(37, "kepler", (4, 1)),
    Chip(50, "maxwell", (4, 0)),
    Chip(52, "maxwell", (4, 1)),
    Chip(53, "maxwell", (4, 2)),
    Chip(60, "pascal", (5, 0)),
    Chip(61, "pascal", (5, 0)),
    Chip(62, "pascal", (5, 0)),
    Chip(70, "volta", (6, 0)),
    Chip(72, "volta", (6, 1)),
    Chip(75, "turing", (6, 3)),
    Chip(80, "ampere", (7, 0)),
    Chip(82, "ampere", (6, 2)),
    Chip(86, "ampere", (7, 1)),
    Chip(87, "ampere", (7, 4)),
    Chip(88, "ampere", (7, 3)),
    Chip(89, "ada", (7, 8)),
    Chip(90, "hopper", (7, 8), (8, 0)),
    Chip(100, "blackwell", (8, 6), (8, 6), (8, 8), (100, 103, 107)),
    Chip(101, "blackwell", (8, 6), (8, 6), (8, 8), (101, 110), same=110),
    Chip(103, "blackwell", (8, 8), (8, 8), (8, 8), (103, 107), features=frozenset({K96})),
    Chip(107, "rubin", (9, 4), (9, 4), (9, 4), (107,)),
    Chip(110, "blackwell", (9, 0), (9, 0), (9, 0), (110, 101)),
    Chip(120, "rtx_blackwell", (8, 7), (8, 7), (8, 8), (120, 121)),
    Chip(121, "rtx_blackwell", (8, 8), (8, 8), (8, 8), (121,)),
)

#: Every chip by its number, oldest first.
CHIPS: dict[int, Chip] = {chip.number: chip for chip in _TABLE}

#: Names for lists of targets that several pages of the manual give as "supported on"; the notation's `needs` takes
#: them. One of the targets suffices, so a name may stand beside others: `needs => ptx 8.0, sm_90a, blackwell`.
TARGET_SETS: dict[str, tuple[str, ...]] = {
    # 9.7.16: everything of tcgen05 that its page does not restrict further.
    "tcgen05": ("sm_100a", "sm_101a", "sm_100f", "sm_101f", "sm_110f"),
    # Family targets with tensor memory, for what came with them (.block16, .block32).
    "tcgen05_family": ("sm_100f", "sm_101f", "sm_110f"),
    # Each of the chips with tensor memory by itself: .scale_vec, tcgen05.shift, sparse products of 4-bit floats.
    "tcgen05_chips": ("sm_100a", "sm_101a", "sm_103a", "sm_107a", "sm_110a"),
    # Integer products: sm_103 lacks them.
    "tcgen05_integer": ("sm_100a", "sm_101a", "sm_110a"),
    # Reductions on the way from tensor memory: sm_100 lacks them.
    "tcgen05_reduction": ("sm_101a", "sm_103a", "sm_101f", "sm_103f", "sm_110f"),
    # What data-centre chips after sm_90 share: gathering copies, copies by pairs of CTAs.
    "datacenter_blackwell": ("sm_100a", "sm_101a", "sm_100f", "sm_101f"),
    # What all chips after sm_90 share, as long as they keep it: narrow floats, multicast arrivals, setmaxnreg.
    "blackwell": ("sm_100a", "sm_101a", "sm_120a", "sm_100f", "sm_101f", "sm_120f"),
    # The same, where the manual names sm_121a beside its family: ldmatrix and stmatrix of 8-bit elements.
    "blackwell_121": ("sm_100a", "sm_101a", "sm_120a", "sm_121a", "sm_100f", "sm_101f", "sm_120f"),
    # Families that convert narrow floats from and to pairs of 16 bits.
    "narrow": ("sm_100f", "sm_110f", "sm_120f"),
    # Tensor cores of sm_120: products of narrow floats with .kind.
    "rtx_blackwell": ("sm_120a", "sm_121a", "sm_120f"),
    # The same without the family: products of 4-bit floats.
    "rtx_blackwell_chips": ("sm_120a", "sm_121a"),
}
