"""9.7.9.25.5 Tensor copies, 9.7.9.26 tensormap.replace, 9.7.13.16 tensormap.cp_fenceproxy."""

from .conditions import Context

PAGES = """
let base = gAddrToOverride:u64(reg) if .override::global_address
let sizes = tensorSizeToOverride:b8*sizes+(whole narrow) if .override::global_dim/.override::global_dim_stride
let lower = tensorLowerStrideToOverride:b32*strides if .override::global_dim_stride
let upper = tensorUpperStrideToOverride:b16(reg) if .override::global_dim_stride
let map = [tensorMap, $base, $sizes, $lower, $upper, tensorCoords:s32*coordinates]@generic
let im2col = im2colInfo:u16*offsets if .im2col/.im2col::w/.im2col::w::128
let mask = ctaMask:u16 if .multicast::cluster, ctaMask:u32 if .multicast::cluster::32b
let policy = cache_policy:u64(reg imm) if .L2::cache_hint

# 9.7.9.25.5.2 cp.async.bulk.tensor
    cp.async.bulk.tensor.dim.dst.src{.load_mode}.completion_mechanism{.report}{.cta_group}{.cache_hint}{.override}{.attribute}
        [dstMem]@dst, $map, [mbar]@shared::cta,
        $im2col, $policy;
    .dst = { .shared::cta };
    .src = { .global };
    .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    cp.async.bulk.tensor.dim.dst.src{.load_mode}.completion_mechanism{.report}{.multicast}{.cta_group}{.cache_hint}{.override}{.attribute}
        [dstMem]@dst, $map, [mbar]@shared::cluster,
        $im2col,
        $mask, $policy;
    .dst = { .shared::cluster };
    .src = { .global };
    .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 };
    .completion_mechanism = { .mbarrier::complete_tx::bytes };
    .multicast = { .multicast::cluster, .multicast::cluster::32b };
    .cta_group = { .cta_group::1, .cta_group::2 };
    cp.async.bulk.tensor.dim.dst.src{.load_mode}.completion_mechanism{.cache_hint}{.override}{.attribute}
        $map, [srcMem]@src, $policy;
    .dst = { .global };
    .src = { .shared::cta };
    .load_mode = { .tile, .tile::scatter4, .im2col_no_offs, .im2col_no_offs::w };
    .completion_mechanism = { .bulk_group };
    .dim = { .1d, .2d, .3d, .4d, .5d };
    .report = {
        .mbarrier::report::disabled, .mbarrier::report::validity::per_16bytes::80000000,
        .mbarrier::report::validity::per_16bytes::8000, .mbarrier::report::validity::per_16bytes::80,
        .mbarrier::report::validity::per_16bytes::8, .mbarrier::report::validity::per_element::ff
    };
    .cache_hint = { .L2::cache_hint };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs                  => ptx 8.0, sm_90
    needs .report,.override => ptx 9.4, sm_107f
    needs dst=.shared::cta => ptx 8.6
    needs .tile::gather4,.im2col::w dst=.shared::cta | .im2col::w dst=.shared::cta => ptx 8.6, sm_100
    needs .tile::gather4,.im2col::w dst=.shared::cluster => ptx 8.6, datacenter_blackwell
    needs .tile::scatter4,.im2col::w::128,.cta_group => ptx 8.6, datacenter_blackwell
    needs .multicast::cluster::32b,.im2col_no_offs::w => ptx 9.4, sm_107f

# 9.7.9.25.5.3 cp.reduce.async.bulk.tensor
    cp.reduce.async.bulk.tensor.dim.dst.src.redOp{.load_mode}.completion_mechanism{.cache_hint}{.override}{.attribute}
        $map, [srcMem]@src, $policy;
    .dst = { .global };
    .src = { .shared::cta };
    .dim = { .1d, .2d, .3d, .4d, .5d };
    .completion_mechanism = { .bulk_group };
    .load_mode = { .tile, .im2col_no_offs, .im2col_no_offs::w };
    .redOp = { .add, .min, .max, .inc, .dec, .and, .or, .xor };
    .cache_hint = { .L2::cache_hint };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs                    => ptx 8.0, sm_90
    needs .im2col_no_offs::w,.override => ptx 9.4, sm_107f

# 9.7.9.25.5.4 cp.async.bulk.prefetch.tensor
    cp.async.bulk.prefetch.tensor.dim.L2.src{.load_mode}{.cache_hint}{.override}{.attribute}
        $map,
        $im2col, $policy;
    cp.async.bulk.prefetch.tensor.dim.L2.src{.load_mode}.priority{.override}{.attribute}
        $map,
        $im2col;
    .priority = { .L2::evict_last };
    .src = { .global };
    .dim = { .1d, .2d, .3d, .4d, .5d };
    .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 };
    .cache_hint = { .L2::cache_hint };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs => ptx 8.0, sm_90
    needs .tile::gather4,.im2col::w,.im2col::w::128 => ptx 8.6, datacenter_blackwell
    needs .priority,.override => ptx 9.4, sm_107f

# 9.7.9.16 applypriority.async.bulk.tensor
    applypriority.async.bulk.tensor.dim{.src}{.load_mode}.completion_mechanism.priority{.override}{.attribute}
        $map,
        $im2col;
    .src = { .global };
    .dim = { .1d, .2d, .3d, .4d, .5d };
    .load_mode = {
        .tile, .tile::gather4, .tile::scatter4, .im2col, .im2col::w, .im2col::w::128, .im2col_no_offs,
        .im2col_no_offs::w
    };
    .completion_mechanism = { .bulk_group };
    .priority = { .L2::evict_normal };
    .override  = { .override::global_address };
    .attribute = { .override::global_dim, .override::global_dim_stride };
    rule extents
    needs => ptx 9.4, sm_107f

# 9.7.9.26 tensormap.replace
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type;
    .field = { .global_address };
    .type  = { .b64 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type;
    .field = { .rank };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], ord:u32(imm 0..4), new_val:u32;
    .field = { .box_dim, .global_dim, .element_stride };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], ord:u32(imm 0..4), new_val:type;
    .field = { .global_stride };
    .type  = { .b64 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type(imm 0..15);
    .field = { .elemtype };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type(imm 0..2);
    .field = { .interleave_layout };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type(imm 0..3);
    .field = { .swizzle_atomicity };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type(imm 0..4);
    .field = { .swizzle_mode };
    .type  = { .b32 };
    tensormap.replace.mode.field{.ss}.b1024.type  [addr], new_val:type(imm 0..1);
    .field = { .fill_mode };
    .type  = { .b32 };
    .mode = { .tile };
    .ss   = { .global, .shared::cta };
    needs                    => ptx 8.3, sm_90a, blackwell
    needs .swizzle_atomicity => ptx 8.6, blackwell
    needs .swizzle_mode @new_val:4 => ptx 8.8, sm_103a, sm_107a

# 9.7.13.16 tensormap.cp_fenceproxy
    tensormap.cp_fenceproxy.dst.src.kinds.release.scope.sync.aligned
        [dst]@dst, [src]@src, size:u32(imm low<9.3 128..128);
    .dst   = { .global };
    .src   = { .shared::cta };
    .kinds = { .tensormap::generic };
    .scope = { .cta, .cluster, .gpu, .sys };
    needs => ptx 8.3, sm_90
"""


def extents(context: Context) -> dict[str, int | str] | str:
    """Lengths of the coordinate and offset vectors (9.7.9.25.5.2)."""
    rank, mode = int(context.mods["dim"][0]), context.mods.get("load_mode", "tile")
    if problem := _override(context, rank, mode):
        return problem
    given = {"sizes": rank, "strides": rank - 1}
    if mode in ("tile::gather4", "tile::scatter4"):
        return {"coordinates": 5, "offsets": 0, **given} if rank == 2 else f"'.{mode}' needs .2d"
    if mode.startswith("im2col") and rank < 3:
        return f"'.{mode}' needs .3d, .4d or .5d"
    return {"coordinates": rank, "offsets": rank - 2 if mode == "im2col" else 2, **given}


def _override(context: Context, rank: int, mode: str) -> str:
    """What is wrong with values that stand for those of the tensor map (9.7.10.28.5.2 of PTX 9.4)."""
    attribute = context.mods.get("attribute")
    if attribute is None:
        return ""
    fits = "override::global_dim" if rank == 1 else "override::global_dim_stride"
    if attribute != fits:
        return f"'.{attribute}' cannot be combined with .{rank}d: it needs .{fits}"
    if "override" not in context.mods:
        return f"'.{attribute}' needs .override::global_address"
    if mode != "tile":
        return f"'.{attribute}' needs the mode .tile, not .{mode}"
    if context.mods.get("multicast") == "multicast::cluster":
        return f"'.{attribute}' needs .multicast::cluster::32b"
    return ""
