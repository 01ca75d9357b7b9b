"""9.7.10 Texture instructions: tex, tld4, txq, istypep.

Coordinates are vectors whose elements differ in type (array index, sample, coordinate): their specs leave the type
open; `Opcode.variables["coordinates"]` is the number of elements that count, and the vector has 1, 2 or 4.
"""

from .conditions import Context

PAGES = """
let result = d:dtype*vec{|p:pred}
let fetch  = [a,{ b:any(reg symbol),} c:any(reg vec)]@generic
let extras = {, e:any(reg vec)}{, f:f32}

# 9.7.10.3 tex
    tex{.mode}.geom.vec.dtype.ctype   $result, $fetch$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex{.mode}.geom.vec.dtype.ctype   $result, $fetch$extras;
    .vec   = { .v2 };
    .dtype = { .f16x2 };
    .mode  = { .base };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, lod:ctype$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, lod:ctype$extras;
    .vec   = { .v2 };
    .dtype = { .f16x2 };
    .mode  = { .level };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, dPdx:any(vec), dPdy:any(vec)$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, dPdx:any(vec), dPdy:any(vec)$extras;
    .vec   = { .v2 };
    .dtype = { .f16x2 };
    .mode  = { .grad };
    .geom  = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube, .2dms, .a2dms };
    .ctype = { .s32, .f32 };
    first .mode
    rule coordinates
    only .cube,.acube => ctype=.f32
    only .2dms,.a2dms => ctype=.s32
    only .level,.grad => !.2dms,.a2dms
    needs .a1d,.a2d            => ptx 2.3
    needs .cube,.acube         => ptx 3.0
    needs .acube               => sm_20
    needs .mode                => ptx 3.1, sm_20
    needs .2dms,.a2dms         => ptx 3.2, sm_30
    needs .f16,.f16x2          => ptx 4.2, sm_53
    needs .grad .cube,.acube   => ptx 4.3, sm_20
    needs @e                   => ptx 4.3, sm_30
    needs @p                   => ptx 7.1, sm_60
    needs @a:handle            => ptx 3.1, sm_20

# 9.7.10.4 tld4
    tld4.comp.geom.v4.dtype.f32  d:dtype*4{|p:pred}, $fetch$extras;
    .comp  = { .r, .g, .b, .a };
    .geom  = { .2d, .a2d, .cube, .acube };
    .dtype = { .u32, .s32, .f32 };
    rule coordinates
    needs                   => ptx 2.2, sm_20
    needs .a2d,.cube,.acube => ptx 4.3, sm_30
    needs @e                => ptx 4.3, sm_30
    needs @p                => ptx 7.1, sm_60
    needs @a:handle         => ptx 3.1, sm_20

# 9.7.10.5 txq
    txq.query.b32        d, [a]@generic;
    .query = {
        .width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords, .array_size,
        .num_mipmap_levels, .num_samples, .force_unnormalized_coords, .filter_mode,
        .addr_mode_0, .addr_mode_1, .addr_mode_2
    };
    txq.level.query.b32  d, [a]@generic, lod:u32;
    .query = { .width, .height, .depth };
    first .level
    needs                                             => ptx 1.5
    needs .channel_data_type,.channel_order           => ptx 2.1
    needs .force_unnormalized_coords                  => ptx 2.2
    needs .array_size,.num_mipmap_levels,.num_samples => ptx 4.1
    needs .num_mipmap_levels                          => sm_20
    needs .num_samples                                => sm_30
    needs .level                                      => ptx 4.3, sm_30
    needs @a:handle                                   => ptx 3.1, sm_20

# 9.7.10.6 istypep
    istypep.kind  p:pred, a:u64(reg);
    .kind = { .texref, .samplerref, .surfref };
    needs => ptx 4.0, sm_30
"""

#: Elements of a coordinate vector that count: array index and sample included (9.7.10.3).
COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4, "2dms": 3, "a2dms": 4}


def coordinates(context: Context) -> dict[str, int | str]:
    return {"coordinates": COORDINATES[context.mods["geom"]]}
