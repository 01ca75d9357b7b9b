"""The fix for findings that require a later version or target: raise `.version` and `.target`."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtools.check import codes, errors_of, gather
from ptxtools.check.availability import able_targets, demands_of, lowest_targets
from ptxtools.check.edits import joined
from ptxtools.check.locate import word_span
from ptxtools.diagnostics import Diagnostic, Fix, Span
from ptxtools.ir.nodes import Header, Module
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, canonical, provides, version_text

_MENDED = frozenset({codes.NEEDS_VERSION, codes.NEEDS_TARGET, codes.TARGET_NEEDS_VERSION})


def offer_raised_headers(module: Module, errors: Sequence[Diagnostic]) -> None:
    """Give findings that a later version or target would fix a fix that raises them for the whole module.

    errors: all errors of the module as declared. There is no fix if several targets would do, if no target has
    everything the module uses, or if raising them would cause other errors.
    """
    mended = [d for d in errors if d.code in _MENDED]
    fix = _fix(module, errors) if mended else None
    for finding in mended:
        finding.fix = fix


def _fix(module: Module, errors: Sequence[Diagnostic]) -> Fix | None:
    declared, version = module.target, module.version
    headers = [
        [h for h in module.items if isinstance(h, Header) and h.name == name] for name in (".version", ".target")
    ]
    if declared not in FIRST_VERSION or version not in VERSIONS or [len(found) for found in headers] != [1, 1]:
        return None
    raised = _raised(module, declared, version)
    if raised is None or raised == (declared, version):
        return None
    known = {(d.code, d.span) for d in errors if d.code not in _MENDED}
    if any((d.code, d.span) not in known for d in errors_of(module, target=raised[0], version=raised[1])):
        return None
    return edited_headers(module, headers[0][0], headers[1][0], *raised, "raise")


def _raised(module: Module, declared: str, version: tuple[int, int]) -> tuple[str, tuple[int, int]] | None:
    """The declared target at a later version if that suffices, else the lowest one with all its features."""
    gathered = gather(module)
    needs = demands_of(need for item in gathered for need in item.needs)
    able = able_targets(needs, demands_of(need for item in gathered for need in item.gone))
    if declared in able:
        target = declared
    else:
        above = lowest_targets(name for name in able if provides(name, declared))
        if len(above) != 1:
            return None
        target = above[0]
    return target, max(version, able[target])


def edited_headers(
    module: Module, first: Header, second: Header, target: str, version: tuple[int, int], verb: str
) -> Fix | None:
    """The fix that changes `.version` and `.target`, or one of them. None if their text is not what they say."""
    text = module.source.text if module.source else ""
    name = next(arg for arg in second.args if canonical(arg) == module.target)
    new_name = target if name == module.target else target.replace("sm_", "compute_")
    edits: list[tuple[Span, str, str]] = []
    for header, old, new in ((first, first.args[0], version_text(version)), (second, name, new_name)):
        span = word_span(text, header.span, old)
        if text[span[0] : span[1]] != old:
            return None
        if old != new:
            edits.append((span, new, f"{header.name} to {new}"))
    title = f"{verb} {' and '.join(what for _, _, what in edits)}"
    return joined(text, title, *((span, new) for span, new, _ in edits))
