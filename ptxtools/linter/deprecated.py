"""PTX601, PTX602: what newer versions or targets take away, or read differently."""

from __future__ import annotations

from ptxtools.ir.nodes import Header, Module
from ptxtools.isa.targets import describe, provides_any, version_text

from . import codes
from .context import LintContext
from .facts import Line

_REPLACEMENTS = {"shfl": "shfl.sync", "vote": "vote.sync"}


def check_deprecated(context: LintContext, line: Line) -> None:
    """PTX601: an instruction that is deprecated, where it is still valid."""
    op = line.plan.op
    if op is None or "deprecated" not in op.marks:
        return
    gone = op.removals[0] if op.removals else None
    when = ""
    if gone is not None:
        declared = context.declared
        if declared.version >= gone.ptx and declared.target and provides_any(declared.target, gone.targets):
            return  # an error already
        where = f" for {describe(gone.targets)}" if gone.targets else ""
        when = f": PTX ISA {version_text(gone.ptx)} removed it{where}"
    help = (f"use {_REPLACEMENTS[op.family]}",) if op.family in _REPLACEMENTS else ()
    opcode = context.parts(line.item).opcode
    context.warn(codes.DEPRECATED, f"'{op.name}' is deprecated{when}", opcode, help=help, section=op.section)


def check_address_size(context: LintContext, module: Module) -> None:
    """PTX602: without `.address_size` the manual says 32 bits, and today's ptxas takes 64."""
    headers = [item for item in module.items if isinstance(item, Header)]
    target = next((h for h in headers if h.name == ".target"), None)
    if target is None or any(h.name == ".address_size" for h in headers) or context.declared.version < (2, 3):
        return
    message = ".address_size is missing: the manual's default is 32 bits, newer tools take 64"
    context.warn(codes.NO_ADDRESS_SIZE, message, target.span, help=("add .address_size 64",), section="11.1.3")
