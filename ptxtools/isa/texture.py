"""9.7.10 Texture instructions: tex, tld4, txq, istypep.

Coordinates come in vectors of 1, 2 or 4 elements, of which some count. The index into an array of textures is an
integer beside coordinates of any type; results and coordinates of .f32 may stand in integer registers, as ptxas has it.
"""

from .conditions import Context

PAGES = """
let result = d:dtype*vec&{|p:pred(reg)}
let halves = d:dtype*vec(whole){|p:pred(reg)}
let fetch  = [a,{ b:any(samplerref),} c:ctype*coordinates&(many layer)](texref)@generic
let extras = {, e:s32*offsets(many)}{, f:f32}

# 9.7.10.3 tex
    tex{.mode}.geom.vec.dtype.ctype   $result, $fetch$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex{.mode}.geom.vec.dtype.ctype   $halves, $fetch$extras;
    .vec   = { .v2 };
    .dtype = { .f16x2 };
    .mode  = { .base };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, lod:ctype(braced)$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex.mode.geom.vec.dtype.ctype     $halves, $fetch, lod:ctype(braced)$extras;
    .vec   = { .v2 };
    .dtype = { .f16x2 };
    .mode  = { .level };
    tex.mode.geom.vec.dtype.ctype     $result, $fetch, dPdx:f32*gradient, dPdy:f32*gradient$extras;
    .vec   = { .v4 };
    .dtype = { .u32, .s32, .f16, .f32 };
    tex.mode.geom.vec.dtype.ctype     $halves, $fetch, dPdx:f32*gradient, dPdy:f32*gradient$extras;
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
    needs @f                   => ptx 4.3, sm_30
    needs @a:handle            => ptx 3.1, sm_20
    needs @a:indirect          => ptx 4.3, sm_30

# 9.7.10.4 tld4
    tld4.comp.geom.v4.dtype.f32
        d:dtype*4&{|p:pred(reg)}, [a,{ b:any(samplerref),} c:f32*coordinates&(many layer)](texref)@generic$extras;
    .comp  = { .r, .g, .b, .a };
    .geom  = { .2d, .a2d, .cube, .acube };
    .dtype = { .u32, .s32, .f32 };
    rule coordinates
    needs                   => ptx 2.2, sm_20
    needs .a2d,.cube,.acube => ptx 4.3, sm_30
    needs @e                => ptx 4.3, sm_30
    needs @p                => ptx 7.1, sm_60
    needs @f                => ptx 4.3, sm_30
    needs @a:handle         => ptx 3.1, sm_20
    needs @a:indirect       => ptx 4.3, sm_30

# 9.7.10.5 txq
    txq.query.b32        d, [a](texref)@generic;
    .query = {
        .width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords, .array_size,
        .num_mipmap_levels, .num_samples
    };
    txq.query.b32        d, [a](samplerref)@generic;
    .query = { .filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2 };
    txq.query.b32        d, [a](samplerref alone)@generic;
    .query = { .force_unnormalized_coords };
    txq.level.query.b32  d, [a](texref)@generic, lod:u32(braced);
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
    istypep.kind  p:pred, a:u64;
    .kind = { .texref, .samplerref, .surfref };
    needs => ptx 4.0, sm_30
"""

#: Elements of a coordinate vector that count: array index and sample included (9.7.10.3).
COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4, "2dms": 3, "a2dms": 4}
#: Where among them the array index stands.
_LAYER = {"a1d": 0, "a2d": 0, "acube": 0, "a2dms": 1}
#: Elements of an offset, and of a gradient.
_OFFSETS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "2dms": 2, "a2dms": 2}
_GRADIENT = {"1d": 1, "2d": 2, "a1d": 1, "a2d": 2}


def coordinates(context: Context) -> dict[str, int | str]:
    geometry = context.mods["geom"]
    # ptxas makes these gradients of several fetches, and looks at each element; elsewhere at the vector as a whole.
    built = context.mods.get("mode") == "grad" and geometry in ("3d", "cube", "acube")
    return {
        "each": "c dPdx dPdy" if built else "",
        "coordinates": COORDINATES[geometry],
        "layer": _LAYER.get(geometry, -1),
        "offsets": _OFFSETS.get(geometry, 0),
        "gradient": _GRADIENT.get(geometry, 4),
    }
