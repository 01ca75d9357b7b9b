"""A kernel's declaration: its parameters and its performance directives (5.1.6.1, 11.2.1, 11.4)."""

from __future__ import annotations

from typing import Any

from ptxtools.diagnostics import shown
from ptxtools.records import dataclass, field

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: `size` bytes at `offset` of the parameter block.

    array: given by value as bytes; pointer: it may contain an address.
    """

    name: str
    type: str
    size: int
    alignment: int
    offset: int
    array: bool = False
    pointer: bool = False

    def __str__(self) -> str:
        return f".{self.type} {self.name}" + (f"[{self.size}]" if self.array else "")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Performance directives of a kernel. Shapes are None when absent.

    reqntid, maxntid: 11.4.2, 11.4.3; cluster: .reqnctapercluster; explicit_cluster: .explicitcluster;
    max_cluster_rank: .maxclusterrank; registers: .maxnreg; cta_memory: .minperctamemory.
    """

    reqntid: Dim3 | None = None
    maxntid: Dim3 | None = None
    cluster: Dim3 | None = None
    explicit_cluster: bool = False
    max_cluster_rank: int | None = None
    registers: int | None = None
    cta_memory: int = 0


@dataclass(slots=True)
class Kernel:
    """An entry of a module, prepared for launches."""

    name: str
    parameters: tuple[Parameter, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)

    def to_json(self) -> dict[str, Any]:
        """The kernel for `--list --format json`; bounds that it does not have are None."""
        bounds = self.bounds
        return {
            "name": self.name,
            "demangled": shown(self.name),
            "params": [_parameter_json(p) for p in self.parameters],
            "param_bytes": self.parameter_bytes,
            "reqntid": bounds.reqntid,
            "maxntid": bounds.maxntid,
            "reqnctapercluster": bounds.cluster,
            "explicitcluster": bounds.explicit_cluster,
            "maxclusterrank": bounds.max_cluster_rank,
            "maxnreg": bounds.registers,
        }

    @property
    def parameter_bytes(self) -> int:
        last = self.parameters[-1] if self.parameters else None
        return last.offset + last.size if last else 0

    def lines(self) -> list[str]:
        """The kernel for `--list`: its name and bounds, then a line for each parameter."""
        shapes = {
            ".reqntid": self.bounds.reqntid,
            ".maxntid": self.bounds.maxntid,
            ".reqnctapercluster": self.bounds.cluster,
        }
        bounds = [f"{name} {','.join(map(str, shape))}" for name, shape in shapes.items() if shape is not None]
        rows = [(str(n), str(p), f"{p.size} bytes at {p.offset}") for n, p in enumerate(self.parameters)]
        wide = max((len(row[1]) for row in rows), default=0)
        name = shown(self.name)
        head = name + (f"  {' '.join(bounds)}" if bounds else "")
        mangled = [] if name == self.name else [f"  mangled: {self.name}"]
        return [head, *mangled, *(f"  {n:>2}  {text:<{wide}}  {where}" for n, text, where in rows)]


def _parameter_json(p: Parameter) -> dict[str, Any]:
    """A parameter; `size` in bytes, also where it is an array, whose `type` is that of an element."""
    fields = {"name": p.name, "type": p.type, "size": p.size, "alignment": p.alignment, "offset": p.offset}
    return {**fields, "array": p.array}
