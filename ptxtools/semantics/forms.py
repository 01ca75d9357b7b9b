"""The forms with a meaning: a form that is not in this table is refused, and never runs as another one.

One row an instruction: `names = modifiers : types > types; …`; a line that is indented goes on with a further
alternative, one that is indented twice with the same. An opcode is covered when one alternative of its
instruction has all its modifiers and, position by position, its types; words of the name itself are left out. `$name`
stands for a set, `*` for any of its numbers (`m64n*k16`). A row says what the functions that compute, lower or serve
the instruction were written for, so that a form which the tables of `isa` gain is refused until somebody has looked.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ptxtools.isa import Opcode

Alternative: TypeAlias = "tuple[frozenset[str], tuple[frozenset[str], ...]]"

_SETS = {
    "words": "s16 u16 s32 u32 s64 u64",
    "integers": "s8 u8 s16 u16 s32 u32 s64 u64",
    "floats": "f16 bf16 f32 f64",
    "halves": "f16 f16x2 bf16 bf16x2",
    "bits": "b16 b32 b64",
    "any": "b8 b16 b32 b64 b128 s8 u8 s16 u16 s32 u32 s64 u64 f32 f64",
    "round": "rn rz rm rp",
    "integral": "rni rzi rmi rpi",
    "order": "eq ne lt le gt ge",
    "compare": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
    "bool": "and or xor",
    "scope": "cta cluster gpu sys",
    "strong": "relaxed acquire release acq_rel $scope",
    "space": "const global local param param::entry param::func shared shared::cta shared::cluster",
    "shared": "shared shared::cta shared::cluster",
    "hint": "L2::cache_hint",
    "cache": "L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate "
    "L2::evict_first L2::evict_last L2::evict_normal L2::64B L2::128B L2::256B $hint",
    "vector": "v2 v4 v8",
    "pair8": "e4m3x2 e5m2x2",
    "pairs": "e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2",
    "small": "e4m3 e5m2 e2m1 e2m3 e3m2",
    "complete": "mbarrier::complete_tx::bytes",
    "bulk": "bulk_group $complete global shared::cta shared::cluster $hint relaxed $scope",
    "axes": "1d 2d 3d 4d 5d",
    "boxes": "tile tile::gather4 tile::scatter4 im2col im2col_no_offs im2col::w im2col::w::128",
    "warp": "sync aligned",
    "product": "sync aligned row col sp sp::ordered_metadata",
    "tile": "m16n16k16 m32n8k16 m8n32k16",
    "wmma": "sync aligned row col",
    "moved": "sync aligned row col global shared shared::cta",
    "pair": "cta_group::1 cta_group::2",
    "tensor": "kind::f16 kind::tf32 kind::f8f6f4 kind::i8",
    "scaled": "kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 block_scale block16 block32 scale_vec::1X scale_vec::2X "
    "scale_vec::4X",
    "rows": "x1 x2 x4 x8 x16 x32 x64 x128",
    "geometry": "1d 2d 3d a1d a2d",
    "video": "s32 u32 > s32 u32 > s32 u32",
}

_TABLE = """
abs neg = : s16 s32 s64 f64 bf16 bf16x2; ftz : f32 f16 f16x2
neg = : s8x4
add sub = : $words; sat : s32; $round ftz sat : f32; $round ftz : f32x2; $round : f64
    rn ftz sat : f16 f16x2; rn : bf16 bf16x2; $round sat : f32 > f16 bf16
add = sat : u32 s16x2 u16x2
add sub = sat : s8x4 u8x4
clmad = hi lo : u64
add.cc addc sub.cc subc madc = cc hi lo : s32 u32 s64 u64
mul = hi lo wide : $words; $round ftz sat : f32; $round ftz : f32x2; $round : f64; rn ftz sat : f16 f16x2
    rn : bf16 bf16x2
mad = hi lo wide : $words; hi lo cc : s32 u32 s64 u64; hi sat : s32; $round ftz sat : f32; $round : f64
mul24 = hi lo : s32 u32
mad24 = hi lo : s32 u32; hi sat : s32
fma = $round ftz sat : f32; $round ftz : f32x2; $round : f64; rn ftz sat relu oob : f16 f16x2
    rn relu oob : bf16 bf16x2; $round sat : f32 > f16 bf16
div = : $words; $round approx full ftz : f32; $round : f64
rem sad = : $words
rcp sqrt = $round approx ftz : f32; $round : f64
rcp rsqrt = approx ftz : f32 f64
sin cos lg2 = approx ftz : f32
ex2 = approx ftz : f32 bf16 bf16x2; approx : f16 f16x2
tanh = approx : f32 $halves
min max = : $words u16x2 u8x4 f64; relu : s32 s16x2 s8x4
min max = ftz NaN xorsign abs : f32 f16 f16x2; NaN xorsign abs : bf16 bf16x2
copysign = : f32 f64
testp = finite infinite normal notanumber number subnormal : f32 f64
popc clz brev bfi = : b32 b64
bfind = shiftamt : s32 u32 s64 u64
bfe = : s32 u32 s64 u64
bmsk = clamp wrap : b32
szext = clamp wrap : s32 u32
fns = : b32
dp4a = : s32 u32 > s32 u32
dp2a = lo hi : s32 u32 > s32 u32
and or xor not = : pred $bits
cnot shl = : $bits
shr = : $bits $words
shf = l r clamp wrap : b32
lop3 = and or : b32
prmt = b4e ecl ecr f4e rc16 rc8 : b32
set = eq ne $bool : f16 bf16 f32 s32 u32 > $bits
    $order lo ls hi hs $bool : f16 bf16 f32 s32 u32 > $words
    $compare ftz $bool : s16 u16 f16 bf16 s32 u32 f32 > f16 f32
    $compare $bool : s16 u16 f16 bf16 s32 u32 f32 > bf16 f64
    $compare ftz $bool : s32 u32 f16x2 > f16x2; $compare $bool : s32 u32 bf16x2 > bf16x2
setp = eq ne $bool : $bits; $order $bool : s16 s32 s64; $order lo ls hi hs $bool : u16 u32 u64
    $compare ftz $bool : f32 f16 f16x2; $compare $bool : f64 bf16 bf16x2
selp = : $bits $words f32 f64
slct = : $bits $words f32 f64 > s32; ftz : $bits $words f32 f64 > f32
cvt = sat : $integers > $integers; $integral ftz sat : $integers > $floats; $round ftz sat : $floats > $integers
    $round $integral ftz sat : $floats > $floats; rn rz relu satfinite : f16 bf16 > f32
    rn rz rs relu satfinite : f16x2 bf16x2 > f32; rn rz rna relu satfinite : tf32 > f32
    rn relu satfinite : $pairs > f32 f16x2 bf16x2; rn relu : f16x2 > $pairs
    rn relu satfinite scaled::n2::ue8m0 : bf16x2 > s2f6x2 $pairs
    rn relu satfinite scaled::n2::ue8m0 : s2f6x2 > f32 bf16x2
    rs relu satfinite : e4m3x4 e5m2x4 e2m1x4 e2m3x4 e3m2x4 > f32; rz rp satfinite : ue8m0x2 > f32 bf16x2
    rn : bf16x2 > ue8m0x2
cvt.pack = sat : s16 u16 > s32; sat : s2 u2 s4 u4 s8 u8 > s32 > b32
mov = $vector : pred b128 $bits $words f32 f64
cvta = to $space : u32 u64
isspacep = $space :
vadd vsub vabsdiff vmin vmax = sat add min max : $video
vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4 = sat add : $video
vmad = po sat shr7 shr15 : $video
vset = $order add min max : s32 u32 > s32 u32
vset2 vset4 = $order add : s32 u32 > s32 u32
vshl vshr = sat clamp wrap add min max : s32 u32 > s32 u32 > u32

activemask = : b32
elect.sync =
shfl shfl.sync = up down bfly idx : b32
vote vote.sync = all any uni : pred; ballot : b32
match.sync = all any : b32 b64
redux.sync = add min max : s32 u32; $bool : b32; min max abs NaN : f32

ld = weak volatile mmio $strong $space $cache ca cg cs cv lu $vector : $any
ld.global.nc = $cache ca cg cs $vector : $any
ldu = global $vector : $any
st = weak volatile mmio $strong $space $cache cg cs wb wt $vector : $any
atom red = $strong $space $hint and or xor exch cas : b32 b64; $strong $space $hint exch cas : b128
    $strong $space $hint cas : b16; $strong $space $hint add inc dec min max : u32
    $strong $space $hint add min max : s32 u64; $strong $space $hint min max : s64
    $strong $space $hint add v2 v4 : f32; $strong $space $hint add : f64
    $strong $space $hint noftz add min max $vector : $halves
multimem.ld_reduce = weak $strong global $bool : b32 b64; weak $strong global add min max : s32 u32 u64
    weak $strong global min max : s64; weak $strong global add v2 v4 : f32; weak $strong global add : f64
    weak $strong global add min max acc::f32 $vector : $halves
    weak $strong global add min max acc::f16 $vector : e4m3 e5m2 $pair8 e4m3x4 e5m2x4
multimem.st.async = release gpu sys global : $any
multimem.red.async = release gpu sys global add : s32 u32 u64
multimem.cp.async.bulk = bulk_group cp_mask global shared::cta weak :
    bulk_group cp_mask global shared::cta relaxed $scope : b128
multimem.cp.reduce.async.bulk = $bulk add min max inc dec : u32
    $bulk add min max : s32 u64
    $bulk $bool : b32 b64
    $bulk add : f32 f64; $bulk min max : s64
    $bulk noftz add min max : f16 bf16
multimem.st = weak $strong global $vector : b32 b64 s32 u32 s64 u64 f32 f64 $halves e4m3 e5m2 $pair8 e4m3x4 e5m2x4
multimem.red = $strong global $bool : b32 b64; $strong global add min max : s32 u32 u64
    $strong global min max : s64; $strong global add $vector : f32 f64 $halves
prefetch = L1 L2 L2::evict_last L2::evict_normal const global local param tensormap :
prefetchu = L1 :
applypriority = global L2::evict_normal :
discard = global L2 :
createpolicy = L2 L2::evict_first L2::evict_last L2::evict_normal L2::evict_unchanged cvt fractional global range : b64
mapa getctarank = shared::cluster : u32 u64
alloca stacksave stackrestore = : u32 u64
fence membar = acq_rel acquire release sc alias async async::generic tensormap::generic proxy mbarrier_init gl $scope
        global shared::cta shared::cluster sync_restrict::shared::cta sync_restrict::shared::cluster
        sync_restrict::shared::cluster::read :

bra brx.idx call ret = uni :
exit trap brkpt =
pmevent = mask :
nanosleep = : u32
setmaxnreg = inc dec $warp : u32
griddepcontrol = launch_dependents wait :
bar barrier = sync arrive aligned cta : ; red popc aligned cta : u32; red and or aligned cta : pred
bar.warp.sync =
barrier.cluster = arrive wait acquire release relaxed aligned :
clusterlaunchcontrol.try_cancel = async multicast::cluster::all shared::cta $complete : b128
clusterlaunchcontrol.query_cancel = is_canceled : pred > b128
    v4 get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z : b32 > b128

mbarrier.init = layout::v0 shared shared::cta : b64
mbarrier.inval = shared shared::cta : b64
mbarrier.expect_tx mbarrier.complete_tx = relaxed cta cluster $shared : b64
mbarrier.arrive mbarrier.arrive_drop = expect_tx noComplete release relaxed cta cluster $shared : b64
mbarrier.test_wait mbarrier.try_wait = parity phase_type::primary phase_type::conditional acquire relaxed cta cluster
        shared shared::cta : b64
mbarrier.pending_count = layout::v0 : b64
mbarrier.check_layout = layout::v0 layout::v1 shared shared::cta : b64
cp.async = ca cg global shared shared::cta L2::64B L2::128B L2::256B $hint :
cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk.commit_group =
cp.async.bulk.wait_group = read :
cp.async.mbarrier.arrive = noinc shared shared::cta : b64
cp.async.bulk = bulk_group $complete cp_mask ignore_oob multicast::cluster global shared::cta shared::cluster $hint
        weak :
    bulk_group $complete cp_mask ignore_oob multicast::cluster global shared::cta shared::cluster $hint relaxed $scope
        : b128
cp.async.bulk.tensor = bulk_group $complete multicast::cluster global shared::cta shared::cluster $hint $pair $axes
        $boxes :
cp.async.bulk.prefetch = L2 global $hint :
cp.async.bulk.prefetch.tensor = L2 global $hint $axes $boxes :
cp.reduce.async.bulk = $bulk add min max inc dec : u32
    $bulk add min max : s32 u64
    $bulk $bool : b32 b64
    $bulk add : f32 f64; $bulk min max : s64
    $bulk noftz add min max : f16 bf16
cp.reduce.async.bulk.tensor = bulk_group global shared::cta $hint add min max inc dec $bool $axes tile im2col_no_offs :
red.async = $strong mmio global shared::cluster $complete add min max inc dec : u32
    $strong mmio global shared::cluster $complete add min max : s32
    $strong mmio global shared::cluster $complete add : s64 u64; $strong shared::cluster $complete $bool : b32
st.async = weak $strong mmio global shared::cluster $complete v2 v4 : $any
st.bulk = weak shared::cta :
tensormap.replace = tile global shared::cta global_address global_stride : b1024 > b64
    tile global shared::cta box_dim element_stride elemtype fill_mode global_dim interleave_layout rank
        swizzle_atomicity swizzle_mode : b1024 > b32
tensormap.cp_fenceproxy = global shared::cta tensormap::generic release $scope $warp :

tex = $geometry 2dms a2dms base level grad v2 v4 : f16 f16x2 f32 s32 u32 > s32
    $geometry cube acube base level grad v2 v4 : f16 f16x2 f32 s32 u32 > f32
tld4 = r g b a v4 2d a2d cube acube : f32 s32 u32 > f32
txq = level width height depth array_size num_mipmap_levels num_samples channel_data_type channel_order
        normalized_coords force_unnormalized_coords filter_mode addr_mode_0 addr_mode_1 addr_mode_2 : b32
suq = width height depth array_size channel_data_type channel_order memory_layout : b32
istypep = : texref samplerref surfref
suld = b $geometry trap clamp zero ca cg cs cv v2 v4 : b8 b16 b32 b64
sust = b p $geometry trap clamp zero wb wt cg cs v2 v4 : b8 b16 b32 b64
sured = b 1d 2d 3d trap clamp zero add min max : s32 u32 u64; b 1d 2d 3d trap clamp zero min max : s64
    b p 1d 2d 3d trap clamp zero add min max and or : b32; p 1d 2d 3d trap clamp zero min max : b64

mma = $product m8n8k4 m16n8k8 m16n8k16 m16n8k32 : f16 f32 > f16 > f16 > f16 f32
    $product m16n8k4 m16n8k8 m16n8k16 : f32 > tf32 > tf32 > f32
    $product m16n8k8 m16n8k16 m16n8k32 : f32 > bf16 > bf16 > f32
    $product kind::f8f6f4 m16n8k16 m16n8k32 m16n8k64 : f16 f32 > e4m3 e5m2 > e4m3 e5m2 > f16 f32
    $product kind::f8f6f4 m16n8k32 m16n8k64 : f16 f32 > $small > $small > f16 f32
    $product kind::mxf8f6f4 block_scale scale_vec::1X m16n8k32 m16n8k64 : f32 > $small > $small > f32 > ue8m0
    $product kind::mxf4 kind::mxf4nvf4 block_scale scale_vec::2X scale_vec::4X m16n8k64 m16n8k128
        : f32 > e2m1 > e2m1 > f32 > ue8m0
    $product kind::mxf4nvf4 block_scale scale_vec::4X m16n8k64 m16n8k128 : f32 > e2m1 > e2m1 > f32 > ue4m3
    $product $round m8n8k4 m16n8k4 m16n8k8 m16n8k16 : f64 > f64 > f64 > f64
    $product satfinite m8n8k16 m16n8k16 m16n8k32 m16n8k64 : s32 > s8 u8 > s8 u8 > s32
    $product satfinite m8n8k32 m16n8k32 m16n8k64 m16n8k128 : s32 > s4 u4 > s4 u4 > s32
    $product and xor popc m8n8k128 m16n8k128 m16n8k256 : s32 > b1 > b1 > s32
wmma.mma = $wmma satfinite $tile : f16 f32 > f16 f32; $wmma satfinite $tile : s32 > s8 > s8 > s32
    $wmma satfinite $tile : s32 > u8 > u8 > s32; $wmma $tile : f32 > bf16 > bf16 > f32
    $wmma m16n16k8 : f32 > tf32 > tf32 > f32; $wmma $round m8n8k4 : f64 > f64 > f64 > f64
    $wmma satfinite m8n8k32 : s32 > s4 > s4 > s32; $wmma satfinite m8n8k32 : s32 > u4 > u4 > s32
    $wmma and xor popc m8n8k128 : s32 > b1 > b1 > s32
wmma.load = $moved a b c $tile : f16; $moved a b $tile : bf16 s8 u8; $moved c $tile m16n16k8 : f32
    $moved c $tile m8n8k32 m8n8k128 : s32; $moved a b m16n16k8 : tf32; $moved a b c m8n8k4 : f64
    $moved a b m8n8k32 : s4 u4; $moved a b m8n8k128 : b1
wmma.store = $moved d $tile : f16; $moved d $tile m16n16k8 : f32; $moved d $tile m8n8k32 m8n8k128 : s32
    $moved d m8n8k4 : f64
ldmatrix = $warp shared shared::cta trans m8n8 x1 x2 x4 : b16; $warp shared shared::cta trans m16n16 x1 x2 : b8
    $warp shared shared::cta trans m8n16 m16n16 b8x16 b6x16_p32 b4x16_p64 x1 x2 x4 :
stmatrix = $warp shared shared::cta trans m8n8 x1 x2 x4 : b16; $warp shared shared::cta trans m16n8 x1 x2 x4 : b8
movmatrix = $warp trans m8n8 : b16

wgmma.fence wgmma.commit_group wgmma.wait_group = $warp :
wgmma.mma_async = $warp m64n*k16 : f16 f32 > f16 > f16; $warp m64n*k16 : f32 > bf16 > bf16
    $warp m64n*k8 : f32 > tf32 > tf32; $warp m64n*k32 : f16 f32 > e4m3 e5m2 > e4m3 e5m2
    $warp satfinite m64n*k32 : s32 > s8 u8 > s8 u8; $warp and popc m64n*k256 : s32 > b1 > b1
wgmma.mma_async.sp = $warp m64n*k32 : f16 f32 > f16 > f16; $warp m64n*k32 : f32 > bf16 > bf16
    $warp m64n*k16 : f32 > tf32 > tf32; $warp m64n*k64 : f16 f32 > e4m3 e5m2 > e4m3 e5m2
    $warp satfinite m64n*k64 : s32 > s8 u8 > s8 u8
tcgen05 = $warp wait::ld wait::st fence::before_thread_sync fence::after_thread_sync :
tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit = $pair $warp shared::cta : b32; $pair $warp :
tcgen05.ld = $warp 32x32b 16x64b 16x128b 16x256b 16x32bx2 $rows pack::16b : b32
    $warp red min max abs NaN 32x32b 16x32bx2 $rows : f32; $warp red min max 32x32b 16x32bx2 $rows : s32 u32
tcgen05.st = $warp 32x32b 16x64b 16x128b 16x256b 16x32bx2 $rows unpack::16b : b32
tcgen05.cp = $pair 128x128b 128x256b 32x128b 4x256b 64x128b warpx4 warpx2::01_23 warpx2::02_13 b8x16 b6x16_p32
        b4x16_p64 :
tcgen05.shift = $pair down :
tcgen05.commit = $pair mbarrier::arrive::one shared::cluster multicast::cluster : b64
tcgen05.mma tcgen05.mma.sp = $pair $tensor $scaled ashift collector::a::discard collector::a::fill collector::a::lastuse
        collector::a::use :
tcgen05.mma.ws tcgen05.mma.ws.sp = cta_group::1 $tensor collector::b*::discard collector::b*::fill
        collector::b*::lastuse collector::b*::use :
"""


def covers(op: Opcode) -> bool:
    """Whether an opcode's form has a meaning."""
    types = op.types
    own = op.name.split(".")[1:]
    modifiers = {atom for atom in op.atoms if atom not in types and atom not in own}
    general = {_numberless(atom) for atom in modifiers}
    return any(
        len(positions) == len(types)
        and all(map(frozenset.__contains__, positions, types))
        and (modifiers <= known or general <= known)
        for known, positions in _alternatives(op.name)
    )


def _numberless(atom: str) -> str:
    """`m64n128k16` as `m64n*k16`, `collector::b0::use` as `collector::b*::use`; others stay."""
    if atom.startswith("m64n"):
        return f"m64n*k{atom.rpartition('k')[2]}"
    if atom.startswith("collector::b") and atom[12:13] in ("0", "1", "2", "3"):
        return f"collector::b*{atom[13:]}"
    return atom


@cache
def _rows() -> dict[str, str]:
    """Text of an instruction's alternatives, by its name."""
    rows: dict[str, str] = {}
    for row in _TABLE.replace("\n        ", " ").replace("\n    ", ";").splitlines():
        names, _, text = row.partition("=")
        for name in names.split():
            rows[name] = f"{rows[name]};{text}" if name in rows else text
    return rows


@cache
def _alternatives(name: str) -> tuple[Alternative, ...]:
    text = _rows().get(name)
    return () if text is None else tuple(map(_alternative, text.split(";")))


def _alternative(text: str) -> Alternative:
    modifiers, _, types = text.partition(" :")
    return _words(modifiers), tuple(map(_words, _expanded(types).split(">"))) if types.strip() else ()


def _words(text: str) -> frozenset[str]:
    return frozenset(_expanded(text).split())


def _expanded(text: str) -> str:
    while "$" in text:
        start = text.index("$")
        name = text[start + 1 :].split(maxsplit=1)[0]
        text = f"{text[:start]}{_SETS[name]}{text[start + 1 + len(name) :]}"
    return text
