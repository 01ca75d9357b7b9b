"""9.7.11 Surface instructions: suld, sust, sured, suq.

Coordinates as in the texture chapter; registers may be wider than what is moved. The manual's syntax of sust.p leaves
out arrays; the specification of NVVM IR (15.5.3) has them, and ptxas takes them.
"""

from .conditions import Context
from .texture import COORDINATES
from .types import TYPES

PAGES = """
# 9.7.11.1 suld
    suld.b.geom{.cop}{.vec}.dtype.clamp  d:dtype*vec+(reg), [a, b:s32*coordinates(many)](surfref)@generic;
    .geom  = { .1d, .2d, .3d, .a1d, .a2d };
    .cop   = { .ca, .cg, .cs, .cv };
    .vec   = { .v2, .v4 };
    .dtype = { .b8, .b16, .b32, .b64 };
    .clamp = { .trap, .clamp, .zero };
    first .b
    rule access
    needs              => ptx 1.5
    needs .cop         => ptx 2.0, sm_20
    needs .clamp !.trap => ptx 2.0, sm_20
    needs .3d,.a1d,.a2d => ptx 3.0, sm_20
    needs @a:handle     => ptx 3.1, sm_20

# 9.7.11.2 sust
    sust.b.geom{.cop}{.vec}.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype*vec+;
    .geom  = { .1d, .2d, .3d, .a1d, .a2d };
    .cop   = { .wb, .cg, .cs, .wt };
    .ctype = { .b8, .b16, .b32, .b64 };
    sust.p.geom{.vec}.ctype.clamp        [a, b:s32*coordinates(many)](surfref)@generic, c:ctype*vec+;
    .geom  = { .1d, .2d, .3d, .a1d, .a2d };
    .ctype = { .b32 };
    .vec   = { .v2, .v4 };
    .clamp = { .trap, .clamp, .zero };
    first .b, .p
    rule access
    needs               => ptx 1.5
    needs .cop | .p     => ptx 2.0, sm_20
    needs .clamp !.trap => ptx 2.0, sm_20
    needs .3d,.a1d,.a2d => ptx 3.0, sm_20
    needs .p .a1d,.a2d  => ptx 4.1, sm_30
    needs @a:handle     => ptx 3.1, sm_20

# 9.7.11.3 sured
    sured.b.op.geom.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype+;
    .op    = { .add };
    .ctype = { .u32, .u64, .s32 };
    sured.b.op.geom.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype+;
    .op    = { .min, .max };
    .ctype = { .u32, .u64, .s32, .s64 };
    sured.b.op.geom.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype+;
    .op    = { .and, .or };
    .ctype = { .b32 };
    sured.p.op.geom.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype+;
    .op    = { .add, .and, .or };
    .ctype = { .b32 };
    sured.p.op.geom.ctype.clamp  [a, b:s32*coordinates(many)](surfref)@generic, c:ctype+;
    .op    = { .min, .max };
    .ctype = { .b32, .b64 };
    .geom  = { .1d, .2d, .3d };
    .clamp = { .trap, .clamp, .zero };
    first .b, .p
    rule access
    needs                           => ptx 2.0, sm_20
    needs .3d                       => ptx 3.0
    needs .min,.max .u64,.s64,.b64  => ptx 8.1, sm_50
    needs @a:handle                 => ptx 3.1, sm_20

# 9.7.11.4 suq
    suq.query.b32  d, [a](surfref)@generic;
    .query = { .width, .height, .depth, .channel_data_type, .channel_order, .array_size, .memory_layout };
    needs                                   => ptx 1.5
    needs .channel_data_type,.channel_order => ptx 2.1
    needs .array_size                       => ptx 4.1
    needs .memory_layout                    => ptx 4.2
    needs @a:handle                         => ptx 3.1, sm_20
"""


def access(context: Context) -> dict[str, int | str] | str:
    """Coordinates of a surface access, which moves at most 16 bytes (9.7.11.1)."""
    type = context.mods.get("dtype") or context.mods["ctype"]
    vector = int(context.mods.get("vec", "v1")[1:])
    if TYPES[type].bits * vector > 128:
        return f"'.v{vector}' of '.{type}' exceeds 128 bits"
    return {"coordinates": COORDINATES[context.mods["geom"]]}
