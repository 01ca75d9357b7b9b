"""The forms with a meaning: a form that is not in this table is refused, and never runs as another one.

One row an instruction: `names = modifiers : types > types; … | digests`; a line that is indented goes on with a further
alternative, one that is indented twice with the same. An opcode is covered when one alternative of its
instruction has all its modifiers and, position by position, its types; words of the name itself are left out. `$name`
stands for a set, `*` for any of its numbers (`m64n*k16`). A row says what the functions that compute, lower or serve
the instruction were written for, and behind `|` for which forms of `isa` (`Form.digest`). So a form that `isa` gains,
or that changes there, is refused until somebody has looked, even if other forms have all its modifiers. `make forms`
prints the digests to write here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from ptxtools.records import NamedTuple

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
    "override": "override::global_address override::global_dim override::global_dim_stride",
    "cache": "L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate "
    "L2::evict_first L2::evict_last L2::evict_normal L2::64B L2::128B L2::256B $hint",
    "vector": "v2 v4 v8",
    "pair8": "e4m3x2 e5m2x2",
    "pairs": "e4m3x2 e5m2x2 e2m1x2 e2m3x2 e3m2x2",
    "small": "e4m3 e5m2 e2m1 e2m3 e3m2",
    "complete": "mbarrier::complete_tx::bytes",
    "bulk": "bulk_group $complete global shared::cta shared::cluster $hint relaxed $scope",
    "multicast": "multicast::cluster multicast::cluster::32b",
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
        | 094a8 b653e f1136 92d5d e25ea 8df40 a5f99 d5ea0 6286c 911a5
neg = : s8x4
add sub = : $words; sat : s32; $round ftz sat : f32; $round ftz : f32x2; $round : f64
    rn ftz sat : f16 f16x2; rn : bf16 bf16x2; $round sat : f32 > f16 bf16
        | b50d1 79884 306dc ffb87 6e98b 4cbaa cc082 865f8 10bce 0f2ab 2cd4a 4d241 e4571 c12cb 6311a 77d5f 68a5d 38cb6
        2ad84 ca7ab 32d26 5b2dc 233ed 17e8a
add = sat : u32 s16x2 u16x2
add sub = sat : s8x4 u8x4; $round : f32x2 > f16x2 bf16x2 > f32x2; rz : bf16x2 > f32x2 > f32x2
clmad = hi lo : u64 | 5de38
add.cc addc sub.cc subc madc = cc hi lo : s32 u32 s64 u64 | 6edf4 20312 0c0a3 474d3 c0ea3
mul = hi lo wide : $words; $round ftz sat : f32; $round ftz : f32x2; $round : f64; rn ftz sat : f16 f16x2
    rz : bf16x2 > f32x2 > f32x2
    rn : bf16 bf16x2 | 944ac 8a4f7 c817d 5e1b4 a8992 8a8fe a2100 73a24 e7a16 48377
mad = hi lo wide : $words; hi lo cc : s32 u32 s64 u64; hi sat : s32; $round ftz sat : f32; $round : f64
        | f306c 942cb 7ac41 df06b 19bdd 8bf7a
mul24 = hi lo : s32 u32 | 90dad
mad24 = hi lo : s32 u32; hi sat : s32 | d247c e7575
fma = $round ftz sat : f32; $round ftz : f32x2; $round : f64; rn ftz sat relu oob : f16 f16x2
    $round : f32x2 > f16x2 bf16x2 > f32x2 > f32x2
    rn relu oob : bf16 bf16x2; $round sat : f32 > f16 bf16 | bb810 bf5c9 5e45c ff1a2 ffd18 3b00e b2c80 f6d34 4d1ba fef10
div = : $words; $round approx full ftz : f32; $round : f64 | db10d 71882 f35ff 53658 85e2a a2879
rem sad = : $words | a44a0 5cb63
rcp sqrt = $round approx ftz : f32; $round : f64 | 92546 92c49 34908 830b1 d8107 4f79e 8aded 51e6b a1898
rcp rsqrt = approx ftz : f32 f64 | 24cb4 0d5fd 99db4 6e762
sin cos lg2 = approx ftz : f32 | a37cc 8f498 e8fcd dba98 b3246 7cf81
ex2 = approx ftz : f32 bf16 bf16x2; approx : f16 f16x2 | 3892a 41d99 7e9af 2ca25
tanh = approx : f32 $halves | 5ea3d a6dce
min max = : $words u16x2 u8x4 f64; relu : s32 s16x2 s8x4
        | 85ea9 e95ef c3a0a 1b3a9 c2928 9840f 78bb6 bc632 a8e13 8d28c ef1da d7195 c893c 968c8
min max = ftz NaN xorsign abs : f32 f16 f16x2; NaN xorsign abs : bf16 bf16x2
copysign = : f32 f64 | 2759b
testp = finite infinite normal notanumber number subnormal : f32 f64 | 51001
popc clz brev bfi = : b32 b64 | 7931f 2a824 b0ef5 9708b
bfind = shiftamt : s32 u32 s64 u64 | 70066
bfe = : s32 u32 s64 u64 | c246f
bmsk = clamp wrap : b32 | b6666
szext = clamp wrap : s32 u32 | f8b4a
fns = : b32 | 2d9ce
dp4a = : s32 u32 > s32 u32 | be407
dp2a = lo hi : s32 u32 > s32 u32 | c473f
and or xor not = : pred $bits | 002d9 bb9cf 4fb93 e1d5a
cnot shl = : $bits | 76ae9 d33a5
shr = : $bits $words | c013e
shf = l r clamp wrap : b32 | 2f6c3
lop3 = and or : b32 | 620e9 768e7
prmt = b4e ecl ecr f4e rc16 rc8 : b32 | f1351
set = eq ne $bool : f16 bf16 f32 s32 u32 > $bits
    $order lo ls hi hs $bool : f16 bf16 f32 s32 u32 > $words
    $compare ftz $bool : s16 u16 f16 bf16 s32 u32 f32 > f16 f32
    $compare $bool : s16 u16 f16 bf16 s32 u32 f32 > bf16 f64
    $compare ftz $bool : s32 u32 f16x2 > f16x2; $compare $bool : s32 u32 bf16x2 > bf16x2
    $order lo ls hi hs : u8x4 u16x2; $order : s8x4 s16x2
        | a99a7 27085 780ee d0251 df664 9dd10 96e5a ab015 48993 7e7b3 ac808 16eac f87b9 1c0c4 e1de8 48a5a d77af 3b6df
        c253b df6f6 23359 6c6e9 e89ed e4cf8 f4da1 be721 18266 14773 0230c 90a8e
setp = eq ne $bool : $bits; $order $bool : s16 s32 s64; $order lo ls hi hs $bool : u16 u32 u64
    $compare ftz $bool : f32 f16 f16x2; $compare $bool : f64 bf16 bf16x2
        | 3090f e3ab7 d8d57 3d20e 387bb 26dd0 93f05 4176e 08f72 f24f5 cdb0c 25f44 25f9b ff5b2 ce160 4b409 92e92 14202
selp = : $bits $words f32 f64 | 7a297
slct = : $bits $words f32 f64 > s32; ftz : $bits $words f32 f64 > f32 | 9c40a 90edb
cvt = sat : $integers > $integers; $integral ftz sat : $integers > $floats; $round ftz sat : $floats > $integers
    $round $integral ftz sat : $floats > $floats; rn rz relu satfinite pzo : f16 bf16 > f32
    rn rz rs relu satfinite pzo : f16x2 bf16x2 > f32; rn rz rna relu satfinite pzo : tf32 > f32
    rn rz relu satfinite pzo scaled::n1::ue8m0 : $pairs > f32 f16x2 bf16x2; rn relu : f16x2 > $pairs
    rn : f16x2 > ue5m3x2; rn satfinite scaled::n2::ue8m0 : bf16x2 > ue5m3x2
    rn relu satfinite scaled::n2::ue8m0 : bf16x2 > s2f6x2 $pairs
    rn rz relu satfinite scaled::n2::ue8m0 : s2f6x2 > f32 bf16x2
    rs relu satfinite : e4m3x4 e5m2x4 e2m1x4 e2m3x4 e3m2x4 > f32; rz rp satfinite : ue8m0x2 > f32 bf16x2
    rn : bf16x2 > ue8m0x2
        | e394a 96007 1151e 0f290 e6220 a6701 11d49 555c0 0aa77 a5ce6 2d620 68074 c6dad 8c60a 81e60 c47bc 6897e 42d8f
        a8ed1 a5fa5 7a0af b88d9 0a117 6fb4b
cvt.pack = sat : s16 u16 > s32; sat : s2 u2 s4 u4 s8 u8 > s32 > b32 | 117c6 9f913
mov = $vector : pred b128 $bits $words f32 f64 | 5b431 e437e 5f455
cvta = to $space : u32 u64 | 3eb0a 39135
isspacep = $space : | 0ad73
vadd vsub vabsdiff vmin vmax = sat add min max : $video | ee86f b5bec 07af4 86ab3 132d1 266bb a8d00 61641 a4f98 6ba11
vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4 = sat add : $video
        | 19cb7 4b6b1 ee5b2 7aced 0aac9 ea912 fd3cc db34e a4863 f15ea 53166 c0fb6 24f27 d8716 d3622 e9d4a ad5b9 754f5
        5acbc 44ea9 28526 baf5e dfc23 8b502
vmad = po sat shr7 shr15 : $video | 73765 1e29f
vset = $order add min max : s32 u32 > s32 u32 | b1b39 56907
vset2 vset4 = $order add : s32 u32 > s32 u32 | 27006 7bd41 2eb68 f86e9
vshl vshr = sat clamp wrap add min max : s32 u32 > s32 u32 > u32 | 8149c 994c7 016cd 2de4b

activemask = : b32 | 1e208
elect.sync = | 78849
shfl shfl.sync = up down bfly idx : b32 | 37c68 5b070
vote vote.sync = all any uni : pred; ballot : b32 | 767cb e289b 4b547 3d59b
match.sync = all any : b32 b64 | 021b6 b6166
redux.sync = add min max : s32 u32; $bool : b32; min max abs NaN : f32 | 3de4d 97dfb d8be5

ld = proxy::readonly global v2 v4 : b8 b16 b32 b64 s8 u8 s16 u16 s32 u32 s64 u64 f32 f64
        | ba30f da5e6 546c0 e1c86 c009c 2cc71 5ab72
ld = weak volatile mmio $strong $space $cache ca cg cs cv lu $vector : $any
ld.global.nc = $cache ca cg cs $vector : $any | f8b3c 028b8
ldu = global $vector : $any | e4019
st = weak volatile mmio $strong $space $cache cg cs wb wt $vector : $any | 0529f 533fb 2de9d b1b99 2832b 10516
atom red = $strong $space $hint and or xor exch cas : b32 b64; $strong $space $hint exch cas : b128
    $strong $space $hint cas : b16; $strong $space $hint add inc dec min max : u32
    $strong $space $hint add min max : s32 u64; $strong $space $hint min max : s64
    $strong $space $hint noftz add v2 v4 : f32; $strong $space $hint add : f64
    $strong $space $hint noftz add min max $vector : $halves
        | c469e ce507 5504c e3247 eae24 3ff45 d9423 1502c 74ad6 93836 413db dbbe5 de5dc 076e7 aa5ec b49a7 3a308 eca7f
multimem.ld_reduce = weak $strong global $bool : b32 b64; weak $strong global add min max : s32 u32 u64
    weak $strong global min max : s64; weak $strong global add v2 v4 : f32; weak $strong global add : f64
    weak $strong global add min max acc::f32 $vector : $halves
    weak $strong global add min max acc::f16 $vector : e4m3 e5m2 $pair8 e4m3x4 e5m2x4
        | cbba4 8a054 cc86c 7910f f17a0 d234a 3ebbe
multimem.st.async = release gpu sys global : $any | f06c3
multimem.red.async = release gpu sys global add : s32 u32 u64 | 3dc33
multimem.cp.async.bulk = bulk_group cp_mask global shared::cta weak :
    bulk_group cp_mask global shared::cta relaxed $scope : b128 | acda6 69da5
multimem.cp.reduce.async.bulk = $bulk add min max inc dec : u32
    $bulk add min max : s32 u64
    $bulk $bool : b32 b64
    $bulk add : f32 f64; $bulk min max : s64
    $bulk noftz add min max : f16 bf16; $bulk noftz add : f32 | e371f 6799f 2a8b0 97223 14091
multimem.st = weak $strong global $vector : b32 b64 s32 u32 s64 u64 f32 f64 $halves e4m3 e5m2 $pair8 e4m3x4 e5m2x4
        | 01e7b 4bc77
multimem.red = $strong global $bool : b32 b64; $strong global add min max : s32 u32 u64
    $strong global min max : s64; $strong global add $vector : f32 f64 $halves | cea49 da2f4 fbe0b 9e98c
prefetch = global L1::32B valid_addr : | 4db97 9acf6 58755 ddb6b
prefetch = L1 L2 L2::evict_last L2::evict_normal const global local param tensormap :
prefetchu = L1 : | 42d38
applypriority = global L2::evict_normal : | 6f376
discard = global L2 : | 6770d
createpolicy = L2 L2::evict_first L2::evict_last L2::evict_normal L2::evict_unchanged cvt fractional global range : b64
        | 18827 fef48 a656d f29cc
mapa getctarank = shared::cluster : u32 u64 | f7479 0d7a1
alloca stacksave stackrestore = : u32 u64 | eee23 fad72 8e4b7
fence membar = acq_rel acquire release sc alias async async::generic tensormap::generic proxy mbarrier_init gl $scope
        global shared::cta shared::cluster sync_restrict::shared::cta sync_restrict::shared::cluster
        sync_restrict::shared::cluster::read :
        | aa73f 1c3b5 44cbb 82884 37450 043c2 2a680 31922 67252 ad55b 7f93f 267e6 d696f 216a6

bra brx.idx call ret = uni : | bc771 6ecbe 041e3 f632f 0d3f0 f2ff4
exit trap brkpt = | 53454 8c652 730ec
pmevent = mask : | de648 dcf04
nanosleep = : u32 | ea9c1
setmaxnreg = inc dec $warp : u32 | 4b1d1
griddepcontrol = launch_dependents wait : | b82c4
bar barrier = sync arrive aligned cta : ; red popc aligned cta : u32; red and or aligned cta : pred
        | 2c617 9c20d cd4c8 e3ac5 6153e 580f2 0c799 e344d f4d4f 2a549 00cdd bd802
bar.warp.sync = | ac0de
barrier.cluster = arrive wait acquire release relaxed aligned : | 9d188 bbbdf
clusterlaunchcontrol.try_cancel = async multicast::cluster::all shared::cta $complete : b128 | 4b9f2
clusterlaunchcontrol.query_cancel = is_canceled : pred > b128
    v4 get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z : b32 > b128 | 2a891 03c12 1f20a

mbarrier.init = layout::v0 shared shared::cta : b64 | 95aa4
mbarrier.inval = shared shared::cta : b64 | 7e545
mbarrier.expect_tx mbarrier.complete_tx = relaxed cta cluster $shared : b64 | 6adcb 7fe93
mbarrier.arrive mbarrier.arrive_drop = expect_tx noComplete release relaxed cta cluster $shared : b64
        | 253d8 f7936 3494c 503cd d5559 e5b97 12163 e3c58 88727 f5f90
mbarrier.test_wait mbarrier.try_wait = parity phase_type::primary phase_type::conditional acquire relaxed cta cluster
        shared shared::cta : b64 | fc63b cebd6 78123 d78a3 4e84b a066a 71f73 454a8 1f757 7ad4f d62e3 5b778 485b7 c3f4a
mbarrier.pending_count = layout::v0 : b64 | e1d90
mbarrier.check_layout = layout::v0 layout::v1 shared shared::cta : b64 | 8b226
cp.async = ca cg global shared shared::cta L2::64B L2::128B L2::256B $hint : | 2117d c6728 d94cb cd350 d8cfd 99f28
cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk.commit_group = | 38b30 48eca 4e295 43b93
cp.async.bulk.wait_group = read : | 3d464
cp.async.mbarrier.arrive = noinc shared shared::cta : b64 | c5cc0
cp.async.bulk = bulk_group $complete mbarrier::report::disabled cp_mask ignore_oob $multicast global shared::cta
        shared::cluster $hint weak :
    bulk_group $complete mbarrier::report::disabled cp_mask ignore_oob $multicast global shared::cta shared::cluster
        $hint relaxed $scope
        : b128 | 1e94a acd81 15207 fc3f6 6d4e8 5ef24 3803a e7e06 ea7e2 10a86
cp.async.bulk.tensor = bulk_group $complete mbarrier::report::disabled $multicast global shared::cta shared::cluster
        $hint $pair $axes $boxes $override : | f2a83 fc952 e5c50
cp.async.bulk.prefetch = L2 L2::evict_last global $hint : | 7e961 208ec
cp.async.bulk.prefetch.tensor = L2 L2::evict_last global $hint $axes $boxes $override : | fa235 5273b
applypriority.async.bulk = bulk_group L2::evict_normal global : | f4c84
applypriority.async.bulk.tensor = bulk_group L2::evict_normal global $axes $boxes im2col_no_offs::w $override : | 24e6c
cp.reduce.async.bulk = $bulk add min max inc dec : u32
    $bulk add min max : s32 u64
    $bulk $bool : b32 b64
    $bulk add : f32 f64; $bulk min max : s64
    $bulk noftz add min max : f16 bf16; $bulk noftz add : f32 | ce7f3 19d65 0f8f3 455e7 3a9de ac722 8bd4d 027e7 61604
cp.reduce.async.bulk.tensor = bulk_group global shared::cta $hint add min max inc dec $bool $axes tile im2col_no_offs
        $override : | ecad4
red.async = $strong mmio global shared::cluster $complete add min max inc dec : u32
    $strong mmio global shared::cluster $complete add min max : s32
    $strong mmio global shared::cluster $complete add : s64 u64; $strong shared::cluster $complete $bool : b32
        | 031d1 e4c13 11176 e4803 022f5
st.async = weak $strong mmio global shared::cluster $complete v2 v4 : $any | a0683 7f48b
st.bulk = weak shared::cta : | 0d146
tensormap.replace = tile global shared::cta global_address global_stride : b1024 > b64
    tile global shared::cta box_dim element_stride elemtype fill_mode global_dim interleave_layout rank
        swizzle_atomicity swizzle_mode : b1024 > b32 | d7df8 88a09 20455 059f7 96d4c 40806 97e0e f411a 8ba13
tensormap.cp_fenceproxy = global shared::cta tensormap::generic release $scope $warp : | ab9d2

tex = $geometry 2dms a2dms base level grad v2 v4 : f16 f16x2 f32 s32 u32 > s32
    $geometry cube acube base level grad v2 v4 : f16 f16x2 f32 s32 u32 > f32
        | 73945 ba9fd 93d73 af5ea 71e5e 8d0f7 adf22 bd8a2 61076 d4576 724fa fb986
tld4 = r g b a v4 2d a2d cube acube : f32 s32 u32 > f32 | d62b2 44506
txq = level width height depth array_size num_mipmap_levels num_samples channel_data_type channel_order
        normalized_coords force_unnormalized_coords filter_mode addr_mode_0 addr_mode_1 addr_mode_2 : b32
        | 022a0 33182 2ae53 0604a
suq = width height depth array_size channel_data_type channel_order memory_layout : b32 | 3006d
istypep = : texref samplerref surfref | 77cac
suld = b $geometry trap clamp zero ca cg cs cv v2 v4 : b8 b16 b32 b64 | eaccb
sust = b p $geometry trap clamp zero wb wt cg cs v2 v4 : b8 b16 b32 b64 | 0e99e 177db
sured = b 1d 2d 3d trap clamp zero add min max : s32 u32 u64; b 1d 2d 3d trap clamp zero min max : s64
    b p 1d 2d 3d trap clamp zero add min max and or : b32; p 1d 2d 3d trap clamp zero min max : b64
        | 05f20 6d591 d4e98 1919c ecf79

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
        | 76b7f 55f55 7671d 94cf3 c694e a4414 a045a ed11a 7f028 0d631 da15d 4c7d3 cb4c3 6ee93 dd49a 26489 d3779 0daa9
        8b1f8 41b94 aafff 8d906 7a379 414b3
wmma.mma = $wmma satfinite $tile : f16 f32 > f16 f32; $wmma satfinite $tile : s32 > s8 > s8 > s32
    $wmma satfinite $tile : s32 > u8 > u8 > s32; $wmma $tile : f32 > bf16 > bf16 > f32
    $wmma m16n16k8 : f32 > tf32 > tf32 > f32; $wmma $round m8n8k4 : f64 > f64 > f64 > f64
    $wmma satfinite m8n8k32 : s32 > s4 > s4 > s32; $wmma satfinite m8n8k32 : s32 > u4 > u4 > s32
    $wmma and xor popc m8n8k128 : s32 > b1 > b1 > s32 | 0a547 1746b 7b78e 082e8 d3c7d 2a1bf 46338
wmma.load = $moved a b c $tile : f16; $moved a b $tile : bf16 s8 u8; $moved c $tile m16n16k8 : f32
    $moved c $tile m8n8k32 m8n8k128 : s32; $moved a b m16n16k8 : tf32; $moved a b c m8n8k4 : f64
    $moved a b m8n8k32 : s4 u4; $moved a b m8n8k128 : b1 | 19936 5af90 24451 6fbdc 8ed4d d361a 32e0a 40285 b45ae 216de
wmma.store = $moved d $tile : f16; $moved d $tile m16n16k8 : f32; $moved d $tile m8n8k32 m8n8k128 : s32
    $moved d m8n8k4 : f64 | d31d8 50b3f ca8b1 48e15
ldmatrix = $warp shared shared::cta trans m8n8 x1 x2 x4 : b16; $warp shared shared::cta trans m16n16 x1 x2 : b8
    $warp shared shared::cta trans m8n16 m16n16 b8x16 b6x16_p32 b4x16_p64 x1 x2 x4 : | 4e284 72508 2bf80 984b8 7cb65
stmatrix = $warp shared shared::cta trans m8n8 x1 x2 x4 : b16; $warp shared shared::cta trans m16n8 x1 x2 x4 : b8
        | 1d392 a99d6
movmatrix = $warp trans m8n8 : b16 | 003a7

wgmma.fence wgmma.commit_group wgmma.wait_group = $warp : | f2cb0 dd999 e2d55
wgmma.mma_async = $warp m64n*k16 : f16 f32 > f16 > f16; $warp m64n*k16 : f32 > bf16 > bf16
    $warp m64n*k8 : f32 > tf32 > tf32; $warp m64n*k32 : f16 f32 > e4m3 e5m2 > e4m3 e5m2
    $warp satfinite m64n*k32 : s32 > s8 u8 > s8 u8; $warp and popc m64n*k256 : s32 > b1 > b1
        | 6accb 80325 ebb00 f9061 2b10c 830e0 f3020 e9e32 5da04 aaa3b a0460 d0ece
wgmma.mma_async.sp = $warp m64n*k32 : f16 f32 > f16 > f16; $warp m64n*k32 : f32 > bf16 > bf16
    $warp m64n*k16 : f32 > tf32 > tf32; $warp m64n*k64 : f16 f32 > e4m3 e5m2 > e4m3 e5m2
    $warp satfinite m64n*k64 : s32 > s8 u8 > s8 u8 | b4d85 d7123 9237a 939a2 b7e77 6c7be 7c90a e9515 7eaff d8c71
spcompress = sp::2:4 b2 b4 x1 x2 x4 x8 x16 x32 x64 : b8 b16 | fbad8
spdecompress = sp::1:2 sp::1:4 sp::1:8 sp::1:16 sp::2:4 sp::2:8 sp::2:16 sp::4:8 sp::4:16 b2 b4 x1 x2 x4 x8 x16 x32
        x64 : b8 b16 | 38ce8
tcgen05 = $warp wait::ld wait::st fence::before_thread_sync fence::after_thread_sync : | 3510e 516ae
tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit = $pair $warp shared::cta : b32; $pair $warp :
        | ec103 f9792 158e8
tcgen05.ld = $warp 32x32b 16x64b 16x128b 16x256b 16x32bx2 $rows pack::16b : b32
    $warp red min max abs NaN 32x32b 16x32bx2 $rows : f32; $warp red spcompress sp::2:4 b2 min max abs NaN 32x32b x4 x8
        x16 x32 x64 x128 : f32; $warp red min max 32x32b 16x32bx2 $rows : s32 u32
        | a7690 b0b53 a2d8e 16d83 c0722 1ab19 ddadd a253b
tcgen05.st = $warp 32x32b 16x64b 16x128b 16x256b 16x32bx2 $rows unpack::16b : b32 | f9002 2ae2e
tcgen05.cp = $pair 128x128b 128x256b 32x128b 4x256b 64x128b warpx4 warpx2::01_23 warpx2::02_13 b8x16 b6x16_p32
        b4x16_p64 : | 0cafc 439e8 582e5
tcgen05.shift = $pair down : | d2ff1
tcgen05.commit = $pair mbarrier::arrive::one shared::cluster $multicast : b64 | fef7b
tcgen05.mma tcgen05.mma.sp = $pair $tensor $scaled ashift collector::a::discard collector::a::fill collector::a::lastuse
        collector::a::use collector::b::discard collector::b::fill collector::b::lastuse collector::b::use :
        | 4e3a0 99a87 c394c 892e6 138b8 dd135 7b2a2 9cc54 257b3 fc769 82d64 7ac0d c37be f3d1e 74b1b 19ba5 03284 d7e44
        207af f9c16 18c3d 0c99c a6c68 3c08f 39998 a51bc 081cb 38bd1 88419 8efec 86a6c 22e8d 9069d 91abc
tcgen05.mma.ws tcgen05.mma.ws.sp = cta_group::1 $tensor collector::b*::discard collector::b*::fill
        collector::b*::lastuse collector::b*::use : | 4d112 12b5b 69d70 a6cf5
"""


class Row(NamedTuple):
    """What is known of one instruction. digests: of the forms that its meaning was written for."""

    alternatives: tuple[Alternative, ...]
    digests: frozenset[str]


def covers(op: Opcode) -> bool:
    """Whether an opcode's form has a meaning."""
    row = row_of(op.name)
    if row is None or op.form.digest not in row.digests:
        return False
    types = op.types
    own = op.name.split(".")[1:]
    modifiers = {atom for atom in op.atoms if atom not in types and atom not in own}
    general = {_numberless(atom) for atom in modifiers}
    return any(
        len(positions) == len(types)
        and all(map(frozenset.__contains__, positions, types))
        and (modifiers <= known or general <= known)
        for known, positions in row.alternatives
    )


def _numberless(atom: str) -> str:
    """`m64n128k16` as `m64n*k16`, `collector::b0::use` as `collector::b*::use`; others stay."""
    if atom.startswith("m64n"):
        return f"m64n*k{atom.rpartition('k')[2]}"
    if atom.startswith("collector::b") and atom[12:13] in ("0", "1", "2", "3"):
        return f"collector::b*{atom[13:]}"
    return atom


def rows() -> list[tuple[tuple[str, ...], str, str]]:
    """The table's rows: names, alternatives, digests."""
    found = []
    for line in _TABLE.replace("\n        ", " ").replace("\n    ", ";").splitlines():
        names, equals, text = line.partition("=")
        alternatives, _, digests = text.partition("|")
        if equals:
            found.append((tuple(names.split()), alternatives.strip(), digests.strip()))
    return found


@cache
def _texts() -> dict[str, tuple[str, str]]:
    """Alternatives and digests of an instruction, by its name; those of several rows one behind the other."""
    found: dict[str, tuple[str, str]] = {}
    for names, alternatives, digests in rows():
        for name in names:
            before = found.get(name)
            found[name] = (
                (alternatives, digests) if before is None else (f"{before[0]};{alternatives}", f"{before[1]} {digests}")
            )
    return found


@cache
def row_of(name: str) -> Row | None:
    """What is known of an instruction, if anything is."""
    texts = _texts().get(name)
    return None if texts is None else Row(tuple(map(_alternative, texts[0].split(";"))), frozenset(texts[1].split()))


def _alternative(text: str) -> Alternative:
    modifiers, _, types = f" {text}".partition(" :")
    return _words(modifiers), tuple(map(_words, _expanded(types).split(">"))) if types.strip() else ()


def _words(text: str) -> frozenset[str]:
    return frozenset(_expanded(text).split())


def _expanded(text: str) -> str:
    while "$" in text:
        start = text.index("$")
        name = text[start + 1 :].split(maxsplit=1)[0]
        text = f"{text[:start]}{_SETS[name]}{text[start + 1 + len(name) :]}"
    return text
