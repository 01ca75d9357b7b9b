"""PTX572 | tensor map that is changed without a proxy fence | 9.7.13.4, 9.7.9.28

What: the module changes tensor maps with tensormap.replace, and has no fence.proxy.tensormap.
Why: copies read the map through the tensormap proxy: without the fence they may use the old one.
Example:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;
        ret;
    }
Better:
    .version 9.0
    .target sm_90a
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;
        fence.proxy.tensormap::generic.release.gpu;
        fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;
        ret;
    }
"""

from __future__ import annotations

from ptxtools.ir.positions import parts_of

from ..context import LintContext
from ..presence import unmet
from ..registry import modules_with

CODE = "PTX572"


@modules_with("tensormap")
def check(context: LintContext) -> None:
    line = unmet(context, r"tensormap\.replace", r"(fence\.proxy\.tensormap|tensormap\.cp_fenceproxy)")
    if line is not None:
        message = "nothing makes this change visible to tensor copies: the module has no fence.proxy.tensormap"
        context.warn(CODE, message, parts_of(line.item).opcode, section="9.7.13.4")
