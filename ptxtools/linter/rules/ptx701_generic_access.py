"""PTX701 | generic access to a known space | 6.4.1.1

What: a load or store without a state space names a variable in a known space.
Why: a generic access determines the space at run time, which is slower. `--fix` inserts the space.
Example:
    .shared .align 4 .b32 table[4];
    ld.b32 %r1, [table];
Better:
    .shared .align 4 .b32 table[4];
    ld.shared.b32 %r1, [table];
"""

from __future__ import annotations

from ptxtools.diagnostics import Fix
from ptxtools.ir.positions import parts_of

from ..accesses import Access
from ..context import LintContext
from ..facts import Line
from ..registry import variable_accesses

_SPACES = frozenset({"global", "shared", "local"})
#: The space follows these words, not the mnemonic.
_UNFIXED = ("volatile", "relaxed", "acquire", "release", "weak", "mmio")

CODE = "PTX701"


@variable_accesses
def check(context: LintContext, line: Line, access: Access) -> None:
    op, symbol = access.op, access.symbol
    if op.space is not None or symbol.space not in _SPACES or op.family not in ("ld", "st"):
        return
    message = f"'{symbol.name}' is in .{symbol.space}: a generic '{op.family}' determines the space at run time"
    opcode = parts_of(line.item).opcode
    head = opcode[0] + len(op.family)
    fix = None
    if not any(op.has(word) for word in _UNFIXED):
        fix = Fix((head, head), f".{symbol.space}", f"add the space .{symbol.space}")
    help = (f"write {op.family}.{symbol.space}…",)
    context.warn(CODE, message, opcode, help=help, section=op.section, fix=fix)
