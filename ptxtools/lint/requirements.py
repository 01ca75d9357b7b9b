"""`--requirements`: the lowest version and targets that accept a module, and the lines that force them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxtools.check import gather
from ptxtools.check.availability import requirement
from ptxtools.check.context import Gathered
from ptxtools.diagnostics import Requires
from ptxtools.diagnostics.text import describe_target, join_words
from ptxtools.ir.nodes import Module
from ptxtools.isa.targets import version_text


@dataclass(frozen=True, slots=True)
class Cause:
    """A line that forces a version, targets, or both (else None, ())."""

    line: int
    text: str
    ptx: str | None
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    """What one module needs."""

    file: str
    declared_ptx: str | None
    declared_target: str | None
    lowest: Requires
    because: tuple[Cause, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that `--requirements --format json` prints."""
        return {
            "file": self.file,
            "declared": {"ptx": self.declared_ptx, "target": self.declared_target},
            "lowest": {"ptx": self.lowest.ptx, "targets": list(self.lowest.targets)},
            "because": [
                {"line": c.line, "text": c.text, "ptx": c.ptx, "targets": list(c.targets)} for c in self.because
            ],
        }

    def to_text(self) -> str:
        """Such as "a.ptx: needs PTX 7.8, sm_90 or later (declares 8.0, sm_90a)", and a line for each cause."""
        targets = join_words([describe_target(t) for t in self.lowest.targets], "or")
        declared = f"{self.declared_ptx or 'no version'}, {self.declared_target or 'no target'}"
        lines = [f"{self.file}: needs PTX {self.lowest.ptx}, {targets} (declares {declared})"]
        for cause in self.because:
            what = [f"PTX {cause.ptx}"] if cause.ptx else []
            what += [join_words([describe_target(t) for t in cause.targets], "or")] if cause.targets else []
            lines.append(f"  line {cause.line}: {cause.text}  ({', '.join(what)})")
        return "\n".join(lines)


def requirements(module: Module, name: str) -> Requirements:
    """What a module that has no errors needs."""
    gathered = gather(module)
    demands = tuple(dict.fromkeys((need.ptx, need.targets) for item in gathered for need in item.needs))
    lowest = requirement(demands, (0, 0))
    version = module.version
    return Requirements(
        name,
        version_text(version) if version != (0, 0) else None,
        module.target or None,
        lowest,
        _causes(module, gathered, lowest),
    )


def _causes(module: Module, gathered: list[Gathered], lowest: Requires) -> tuple[Cause, ...]:
    causes: dict[tuple[str, tuple[str, ...]], Cause] = {}
    source = module.source
    for item in gathered:
        own = requirement(tuple((need.ptx, need.targets) for need in item.needs), (0, 0))
        ptx = lowest.ptx if any(version_text(need.ptx) == lowest.ptx for need in item.needs) else None
        forcing = any(need.targets for need in item.needs) and set(own.targets) & set(lowest.targets)
        targets = own.targets if forcing and own.targets != ("sm_10",) else ()
        if (ptx is None or ptx == "1.0") and not targets:
            continue
        line = source.line_of(item.span[0]) if source else 1
        text = source.line(line).strip() if source else ""
        causes.setdefault((item.subject, targets), Cause(line, text, ptx if ptx != "1.0" else None, targets))
    return tuple(sorted(causes.values(), key=lambda cause: cause.line))
