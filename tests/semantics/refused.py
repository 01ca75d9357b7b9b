"""Forms that ptx-run refuses: "this form has no simulation". What they compute, or how it is laid out, is not said."""

from __future__ import annotations

import re

from ptxtools import isa

#: Forms of the tables without a meaning, by the text of an opcode; and conversions to ue5m3, of which nobody says what
#: becomes of a negative number. They are refused when a module is loaded to run.
FORMS: frozenset[str] = frozenset(
    {
        *(f"mbarrier.init.layout::v1{space}.b64" for space in ("", ".shared", ".shared::cta")),
        *(f"{family}.rz.ftz.f16x2.f32x2.f32x2" for family in ("add", "sub", "mul")),
        *(
            f"ldmatrix.sync.aligned.m8n16.{count}{space}.s8.s4"
            for count in ("x1", "x2", "x4")
            for space in ("", ".shared", ".shared::cta")
        ),
        *(
            f"fence.proxy.{kinds}.alias.{order}.sys"
            for kinds in ("fabric::generic", "generic::fabric")
            for order in ("acquire", "release")
        ),
    }
)
#: Instructions of which no form has one.
INSTRUCTIONS = frozenset(
    f"fabric.{name}"
    for name in (
        *("submit", "wait", "try_get", "try_put", "try_red", "try_pullred", "try_atom"),
        *("try_get.async.tensor", "try_put.async.tensor", "try_red.async.tensor"),
    )
)
#: Modifiers without one: arithmetic of four narrow floats (where it rounds is not said), and what PTX 9.4 added to
#: tensor memory, tensor copies and policies.
_MODIFIERS = re.compile(
    r"cvt\..*\.ue5m3x2\.(f32|f16x2|bf16x2)"
    r"|(add|sub|mul|fma)\..*x4\.e\dm\dx4(\.e\dm\dx4)?"
    r"|createpolicy\.range\.fabric\..*"
    r"|cp\.async\.bulk\..*\.mbarrier::report::validity::.*"
    r"|cp\.(reduce\.)?async\.bulk\.tensor\..*\.im2col_no_offs::w\..*"
    r"|tcgen05\.(alloc|dealloc)\..*\.exclusive\..*"
    r"|tcgen05\.commit\..*\.sync_restrict::shared::read::mma::a\..*"
    r"|tcgen05\.mma\..*\.(kind::ti16|decompress::lut::b)(\..*)?"
)


def is_refused(op: isa.Opcode) -> bool:
    """Whether the opcode is on these lists."""
    return op.name in INSTRUCTIONS or op.text in FORMS or _MODIFIERS.fullmatch(op.text) is not None
