"""ptx-lint for NVVM IR: the rules over one module, for one target or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic, PtxError, Source
from ptxtools.diagnostics.decode import decode
from ptxtools.linter.suppress import chosen, suppressed

from .content import is_bitcode

if TYPE_CHECKING:
    from .bitcode.source import Disassembly

#: What comments of LLVM assembly begin with.
_COMMENT = ";"


def lint(data: str | bytes, name: str = "<memory>", *, dialect: str | None = None, target: str | None = None,
         select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Diagnostic]:  # fmt: skip
    """The findings about a module of NVVM IR, by position.

    dialect: "7" or "modern", None for the one that the text is in; target: "sm_90a"; select, ignore: prefixes of codes.
    Raises ValueError for an unknown dialect or target.
    """
    targets = () if target is None else (target,)
    return findings_in(data, name, dialect=dialect, targets=targets, select=select, ignore=ignore)


def findings_in(data: str | bytes, name: str, *, dialect: str | None = None, targets: Sequence[str] = (),
                select: Sequence[str] = (), ignore: Sequence[str] = (),
                processes: int = 1) -> list[Diagnostic]:  # fmt: skip
    """As `lint`; a finding that does not apply to all of several targets names its target. processes: how many may
    work at a large module."""
    source: Source
    read: Disassembly | None = None
    try:
        if isinstance(data, bytes) and is_bitcode(data):
            from .bitcode.source import disassembly

            source = read = disassembly(data, name)
            dialect = dialect or read.dialect
        else:
            source = Source(data if isinstance(data, str) else decode(data, name), name)
    except PtxError as error:
        return chosen(error.diagnostics, select, ignore)
    from .rules import verify

    found: list[Diagnostic] = []
    alike: dict[tuple[object, ...], list[Diagnostic]] = {}
    for target in targets or (None,):
        each = verify(source, dialect=dialect, target=target, processes=processes)
        if len(targets) < 2:
            found = each
            break
        for one in each:
            one.target = target
            alike.setdefault((one.code, one.span, one.message), []).append(one)
    for group in alike.values():
        if len(group) == len(targets):
            group[0].target = None
            group = group[:1]
        found += group
    found = chosen(found, select, ignore)
    if read is not None:
        for one in found:
            one.origin = read.origin(one.span[0])
        return found
    return sorted(suppressed(found, found[0].source, _COMMENT) if found else [], key=lambda one: (one.span, one.code))
