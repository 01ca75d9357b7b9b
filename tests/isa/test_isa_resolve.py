"""Opcodes: slots, types, operands, modifier order."""

import itertools
import pickle

import pytest

from ptxtools import isa
from ptxtools.isa import resolve

ROOT_WORD = {
    "add.s32": {"type": "s32"},
    "add.sat.s32": {"sat": "sat", "type": "s32"},
    "mul.wide.s16": {"mode": "wide", "type": "s16"},
    "cvt.rn.satfinite.f16.f32": {"rnd": "rn", "satfinite": "satfinite", "dtype": "f16", "atype": "f32"},
    "ld.global.v4.f32": {"ss": "global", "vec": "v4", "type": "f32"},
    "ld.global.nc.f32": {"type": "f32"},
    "shfl.sync.idx.b32": {"mode": "idx", "b32": "b32"},
    "setp.lt.and.f32": {"CmpOp": "lt", "BoolOp": "and", "type": "f32"},
    "atom.acq_rel.gpu.global.cas.b32": {
        "sem": "acq_rel", "scope": "gpu", "space": "global", "op": "cas", "type": "b32",
    },
}  # fmt: skip


@pytest.mark.parametrize("text", ROOT_WORD)
def test_slots(text: str) -> None:
    assert resolve(text).mods == ROOT_WORD[text]


def test_names_families_and_modifiers() -> None:
    op = resolve("shfl.sync.bfly.b32")
    assert (op.name, op.family, op.section) == ("shfl.sync", "shfl", "9.7.9.6")
    assert op.has("sync") and op.has("bfly") and not op.has("up")
    assert resolve("add.cc.u32").name == "add.cc"
    assert resolve("bar.warp.sync").name == "bar.warp.sync"
    assert resolve("ld.global.nc.u8").name == "ld.global.nc"


def test_types_and_spaces() -> None:
    assert resolve("cvt.rn.f16.f32").types == ("f16", "f32")
    assert resolve("cvt.rn.f16.f32").type == "f32"
    assert resolve("bar.sync").type is None
    assert resolve("st.shared::cluster.u32").space == "shared::cluster"
    assert resolve("ld.u32").space is None
    assert resolve("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes").space == "shared::cluster"


def test_the_same_text_is_the_same_object_and_spellings_share_it() -> None:
    assert resolve("add.s32") is resolve("add.s32")
    assert resolve("add.s32.sat") is resolve("add.sat.s32")
    assert resolve("add.s32.sat").text == "add.sat.s32"
    assert pickle.loads(pickle.dumps(resolve("add.sat.s32"))) is resolve("add.sat.s32")


ANY_ORDER = [
    "add.rn.ftz.sat.f32",
    "cvt.rn.relu.satfinite.bf16x2.f32",
    "ld.relaxed.gpu.global.L1::evict_last.v2.f32",
    "atom.acquire.sys.global.add.noftz.f16x2",
    "setp.lt.and.ftz.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes",
]


@pytest.mark.parametrize("text", ANY_ORDER)
def test_modifiers_in_any_order_where_unambiguous(text: str) -> None:
    """Only slots of one kind keep their order: types among types, spaces among spaces, layouts among layouts. The
    words of a mnemonic such as cp.async.bulk stand first."""
    op = resolve(text)
    words = text.split(".")
    lead = 1 + len(op.form.lead)
    family, atoms = ".".join(words[:lead]), words[lead:]
    kinds = [
        "type"
        if a in isa.types.TYPES
        else "space"
        if a in isa.spaces.SPACES
        else "layout"
        if a in ("row", "col")
        else a
        for a in atoms
    ]
    for order in itertools.islice(itertools.permutations(range(len(atoms))), 0, None, max(1, len(atoms) ** 3 // 8)):
        ordered = [[i for i in order if kinds[i] == kind] for kind in set(kinds)]
        if all(group == sorted(group) for group in ordered):
            assert resolve(".".join([family, *(atoms[i] for i in order)])) is op


@pytest.mark.parametrize(
    "text",
    ["cp.bulk.async.commit_group", "tcgen05.sync.ld.aligned.16x64b.x1.b32", "mad.u16.wide",
     "mbarrier.arrive.b64.expect_tx",
     "wmma.sync.load.a.row.m16n16k16.f16", "fence.async.proxy"],
)  # fmt: skip
def test_words_of_a_mnemonic_stand_first(text: str) -> None:
    with pytest.raises(isa.OpcodeError, match="must come first"):
        resolve(text)


def test_types_are_ordered_among_themselves() -> None:
    assert resolve("cvt.rn.f32.s32").types == ("f32", "s32")
    assert resolve("cvt.rzi.s32.f32").types == ("s32", "f32")
    with pytest.raises(isa.OpcodeError):
        resolve("cvt.rn.s32.f32")
    with pytest.raises(isa.OpcodeError):
        resolve("dp2a.lo.u32")


def test_operands_have_concrete_types() -> None:
    d, a, b, c = resolve("mad.wide.s16").operands
    assert [o.type for o in (d, a, b, c)] == ["s32", "s16", "s16", "s32"]
    assert (d.role, a.role) == ("dst", "src")
    assert [o.type for o in resolve("popc.b64").operands] == ["u32", "b64"]
    assert [o.type for o in resolve("slct.f64.s32").operands] == ["f64", "f64", "f64", "s32"]
    assert [o.type for o in resolve("dp4a.u32.u32").operands] == ["u32"] * 4
    assert [o.type for o in resolve("dp4a.u32.s32").operands] == ["s32", "u32", "s32", "s32"]


def test_operand_kinds() -> None:
    p, a, _, c = resolve("setp.lt.and.s32").operands
    assert "pair" in p.kinds and p.second is not None and p.second.optional and p.second.type == "pred"
    assert "imm" in a.kinds and "sreg" not in a.kinds
    assert "negatable" in c.kinds and c.type == "pred"
    assert {"sreg", "symbol"} <= resolve("mov.u64").operands[1].kinds
    assert "imm" not in resolve("add.f16").operands[1].kinds
    assert "sink" in resolve("atom.global.add.u32").operands[0].kinds
    assert "sink" not in resolve("add.u32").operands[0].kinds
    lut = resolve("lop3.b32").operands[4]
    assert lut.kinds == {"imm"} and lut.range == (0, 255)
    assert resolve("cp.async.ca.shared.global").operands[2].choices == (4, 8, 16)
    assert resolve("cp.async.cg.shared.global").operands[2].choices == (16,)
    count = resolve("setmaxnreg.inc.sync.aligned.u32").operands[0]
    assert (count.range, count.multiple) == ((24, 256), 8)


def test_vectors_and_widths() -> None:
    d, address = resolve("ld.global.v4.f32").operands
    assert (d.vector, d.width, address.role, address.space) == (4, "wider", "addr", "global")
    assert resolve("ld.global.f32").operands[0].vector == 0
    assert "vec" in resolve("mov.b64").shapes[-1][0].kinds
    assert resolve("cvt.rs.satfinite.e4m3x4.f32").operands[1].vector == 4


def test_conditional_and_optional_operands() -> None:
    assert len(resolve("ld.global.f32").operands) == 2
    assert [o.name for o in resolve("ld.global.L2::cache_hint.f32").operands] == ["d", "a", "cache_policy"]
    assert [o.optional for o in resolve("bar.sync").operands] == [False, True]
    assert {len(shape) for shape in resolve("bar.red.popc.u32").shapes} == {3, 4}
    assert {len(shape) for shape in resolve("call").shapes} == {2, 3, 4}


def test_fragments_of_matrix_instructions() -> None:
    def lengths(text: str) -> list[int]:
        return [o.vector for o in resolve(text).operands]

    assert lengths("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == [4, 4, 2, 4]
    assert lengths("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64") == [2, 1, 1, 2]
    assert lengths("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32") == [8, 2, 2, 8]
    assert lengths("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32") == [4, 4, 2, 4]
    assert lengths("mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16")[:4] == [2, 4, 4, 2]
    assert lengths("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16") == [8, 8, 8, 4]
    assert lengths("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16")[:3] == [32, 0, 0]
    assert lengths("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == [4, 0]
    assert lengths("tcgen05.ld.sync.aligned.16x128b.x16.b32") == [32, 0]
    assert {o[1].vector for o in resolve("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16").shapes} == {0, 4}


def test_tensor_coordinates() -> None:
    op = resolve("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes")
    tensor_map = op.operands[1]
    assert tensor_map.parts[0].vector == 3 and tensor_map.space is None
    assert [o.name for o in op.operands] == ["dstMem", "tensorMap", "mbar", "im2colInfo"]
    assert op.operands[3].vector == 1


def test_carry() -> None:
    assert (resolve("add.cc.u32").carry_in, resolve("add.cc.u32").carry_out) == (False, True)
    assert (resolve("addc.cc.u32").carry_in, resolve("addc.cc.u32").carry_out) == (True, True)
    assert (resolve("madc.hi.u32").carry_in, resolve("madc.hi.u32").carry_out) == (True, False)
    assert not resolve("add.u32").carry_in
