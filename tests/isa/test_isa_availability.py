"""Versions and targets: boundary pairs from the manual, and recorded verdicts of ptxas."""

import re
from pathlib import Path

import pytest

from ptxtools.isa import Opcode, resolve
from ptxtools.isa.targets import FIRST_VERSION, provides_any
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata" / "isa"


def available(op: Opcode, version: tuple[int, int], target: str) -> bool:
    if version < FIRST_VERSION[target]:
        return False
    if any(version < need.ptx or not provides_any(target, need.targets) for need in op.requirements):
        return False
    return not any(version >= gone.ptx and provides_any(target, gone.targets) for gone in op.removals)


PAIRS = [  # opcode, lowest version and target, one version below, one target below
    ("add.u16x2", (8, 0), "sm_90", (7, 8), "sm_89"),
    ("add.f32x2", (8, 6), "sm_100", (8, 5), "sm_90"),
    ("add.rm.f32", (2, 0), "sm_20", (1, 5), "sm_13"),
    ("add.bf16", (7, 8), "sm_90", (7, 7), "sm_89"),
    ("fma.rn.relu.f16", (7, 0), "sm_80", (6, 5), "sm_75"),
    ("fma.rn.oob.f16", (8, 1), "sm_90", (8, 0), "sm_89"),
    ("popc.b32", (2, 0), "sm_20", (1, 5), "sm_13"),
    ("dp4a.u32.u32", (5, 0), "sm_61", (4, 3), "sm_60"),
    ("szext.wrap.s32", (7, 6), "sm_70", (7, 5), "sm_62"),
    ("lop3.b32", (4, 3), "sm_50", (4, 2), "sm_37"),
    ("lop3.and.b32", (8, 2), "sm_70", (8, 1), "sm_62"),
    ("shf.l.wrap.b32", (3, 1), "sm_35", (3, 0), "sm_30"),
    ("shfl.sync.up.b32", (6, 0), "sm_30", (5, 0), "sm_21"),
    ("tanh.approx.f32", (7, 0), "sm_75", (6, 5), "sm_72"),
    ("max.NaN.f32", (7, 0), "sm_80", (6, 5), "sm_75"),
    ("max.xorsign.abs.f32", (7, 2), "sm_86", (7, 1), "sm_80"),
    ("cvt.rn.bf16.f32", (7, 0), "sm_80", (6, 5), "sm_75"),
    ("cvt.rn.bf16.f16", (7, 8), "sm_90", (7, 7), "sm_89"),
    ("cvt.rn.satfinite.tf32.f32", (8, 6), "sm_100", (8, 5), "sm_90"),
    ("ld.global.nc.f32", (3, 1), "sm_35", (3, 0), "sm_30"),
    ("ld.global.b128", (8, 3), "sm_70", (8, 2), "sm_62"),
    ("ld.shared::cluster.f32", (7, 8), "sm_90", (7, 7), "sm_89"),
    ("ld.global.v8.f32", (8, 8), "sm_100", (8, 7), "sm_90"),
    ("ld.global.L2::128B.f32", (7, 4), "sm_75", (7, 3), "sm_72"),
    ("cvta.param.u64", (7, 7), "sm_70", (7, 6), "sm_62"),
    ("redux.sync.add.s32", (7, 0), "sm_80", (6, 5), "sm_75"),
    ("elect.sync", (8, 0), "sm_90", (7, 8), "sm_89"),
    ("barrier.cluster.arrive", (7, 8), "sm_90", (7, 7), "sm_89"),
    ("atom.global.add.f64", (5, 0), "sm_60", (4, 3), "sm_53"),
    ("atom.global.add.noftz.f16", (6, 3), "sm_70", (6, 2), "sm_62"),
    ("mbarrier.init.shared.b64", (7, 0), "sm_80", (6, 5), "sm_75"),
    ("cp.async.bulk.commit_group", (8, 0), "sm_90", (7, 8), "sm_89"),
    ("movmatrix.sync.aligned.m8n8.trans.b16", (7, 8), "sm_75", (7, 7), "sm_72"),
    ("alloca.u64", (7, 3), "sm_52", (7, 2), "sm_50"),
    ("nanosleep.u32", (6, 3), "sm_70", (6, 2), "sm_62"),
]


@rows(("text", "version", "target", "below", "older"), PAIRS, ids=[p[0] for p in PAIRS])
def test_boundary(text: str, version: tuple[int, int], target: str, below: tuple[int, int], older: str) -> None:
    op = resolve(text)
    assert available(op, version, target)
    assert not available(op, below, target)
    assert not available(op, version, older)


ARCHITECTURE_SPECIFIC = [
    ("wgmma.fence.sync.aligned", "sm_90a", ["sm_90", "sm_100a", "sm_120a"]),
    ("tcgen05.wait::ld.sync.aligned", "sm_100a", ["sm_100", "sm_90a", "sm_120a"]),
    ("tcgen05.wait::ld.sync.aligned", "sm_103f", ["sm_120f"]),
    ("tcgen05.mma.cta_group::1.kind::i8", "sm_110a", ["sm_100f", "sm_103a"]),
    ("setmaxnreg.inc.sync.aligned.u32", "sm_121f", ["sm_121"]),
    ("cvt.rn.satfinite.e2m1x2.f32", "sm_120a", ["sm_120", "sm_90a"]),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", "sm_120a", ["sm_120", "sm_100a"]),
    ("redux.sync.min.f32", "sm_100a", ["sm_100", "sm_120a"]),
]


@pytest.mark.parametrize(("text", "has", "lack"), ARCHITECTURE_SPECIFIC)
def test_a_and_f_targets(text: str, has: str, lack: list[str]) -> None:
    op = resolve(text)
    assert available(op, (9, 0), has)
    assert not [target for target in lack if available(op, (9, 0), target)]


def test_what_was_removed() -> None:
    assert available(resolve("shfl.up.b32"), (6, 3), "sm_70")
    assert available(resolve("shfl.up.b32"), (6, 4), "sm_62")
    assert not available(resolve("shfl.up.b32"), (6, 4), "sm_70")
    assert available(resolve("div.f32"), (1, 3), "sm_13") and not available(resolve("div.f32"), (1, 4), "sm_13")
    assert available(resolve("mad.f32"), (8, 0), "sm_13") and not available(resolve("mad.f32"), (3, 2), "sm_20")


def test_requirements_that_depend_on_operands() -> None:
    [count, register] = list(resolve("bar.sync").operand_requirements)
    assert (count.operand, count.kind, count.ptx, count.targets) == ("b", "", (2, 0), ("sm_20",))
    assert (register.operand, register.kind) == ("a", "reg")
    [third] = resolve("max.f32").operand_requirements
    assert (third.operand, third.ptx, third.targets) == ("c", (8, 8), ("sm_100",))


def test_requirements_name_their_cause() -> None:
    assert [n.atoms for n in resolve("ld.relaxed.gpu.global.L1::evict_last.b128").requirements] == [
        (".relaxed",),
        (".L1::evict_last",),
        (".b128",),
    ]
    assert resolve("add.bf16x2").requirements[1].atoms == (".bf16x2",)


def _recorded() -> tuple[list[tuple[tuple[int, int], str]], list[tuple[str, int]]]:
    pairs, rows = [], []
    for line in (DATA / "verdicts.txt").read_text().splitlines():
        if line.startswith("# pairs "):
            for pair in line.split()[2:]:
                version, target = pair.split("/")
                major, minor = version.split(".")
                pairs.append(((int(major), int(minor)), target))
        elif not line.startswith("#"):
            text, bits = line.split()
            rows.append((text, int(bits, 16)))
    return pairs, rows


def test_agreement_with_recorded_verdicts_of_ptxas() -> None:
    """1,500 opcodes at 86 versions and targets each; every difference stands in the list of deviations."""
    deviations = []
    for line in (DATA / "deviations.tsv").read_text().splitlines():
        if not line.startswith("#"):
            opcode, verdict, where, reason = line.split("\t")
            assert reason
            deviations.append((re.compile(opcode), verdict, re.compile(where)))
    pairs, rows = _recorded()
    assert len(rows) > 1400 and len(pairs) > 80
    surprises, used = [], set()
    for text, bits in rows:
        op = resolve(text)
        for at, (version, target) in enumerate(pairs):
            ours = available(op, version, target)
            if ours == bool(bits >> at & 1):
                continue
            place = f"{version[0]}.{version[1]}/{target}"
            for number, (opcode, verdict, where) in enumerate(deviations):
                if opcode.fullmatch(text) and verdict == ("accept" if ours else "refuse") and where.fullmatch(place):
                    used.add(number)
                    break
            else:
                surprises.append(f"{text} at {place}: we {'accept' if ours else 'refuse'}")
    assert not surprises, surprises[:20]
    assert len(used) > 8
