"""What a kernel says about itself: its parameters and its performance directives (5.1.6.1, 11.2.1, 11.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxtools.engine.layout import Placed, kernel_parameters
from ptxtools.ir import Directive, Function, Module
from ptxtools.isa.types import TYPES

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: `size` bytes at `offset` of the parameter block.

    array: given by value as bytes; pointer: an address of this module may stand in it.
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


def parameters_of(function: Function, address_size: int) -> tuple[Parameter, ...]:
    """The parameters of an entry, in order and where the parameter block has them. address_size: of the module."""
    return tuple(_parameter(placed, address_size) for placed in kernel_parameters(function))


def _parameter(placed: Placed, address_size: int) -> Parameter:
    variable = placed.variable
    array = bool(variable.dims) or variable.vector > 1
    whole = not array and TYPES[variable.type].kind in ("int", "bits")
    pointer = whole and (placed.size == 8 or (placed.size == 4 and address_size == 32))
    return Parameter(placed.name, variable.type, placed.size, placed.align, placed.offset, array, pointer)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Performance directives of a kernel. Shapes are None when absent.

    reqntid, maxntid: 11.4.2, 11.4.3; cluster: .reqnctapercluster; explicit_cluster: .explicitcluster;
    max_cluster_rank: .maxclusterrank; registers: .maxnreg.
    """

    reqntid: Dim3 | None = None
    maxntid: Dim3 | None = None
    cluster: Dim3 | None = None
    explicit_cluster: bool = False
    max_cluster_rank: int | None = None
    registers: int | None = None


def bounds_of(function: Function) -> Bounds:
    """The bounds that a kernel's directives set."""
    found = {d.name: d.args for d in function.directives if isinstance(d, Directive)}
    rank, registers = found.get(".maxclusterrank"), found.get(".maxnreg")
    return Bounds(
        reqntid=_shape(found.get(".reqntid")),
        maxntid=_shape(found.get(".maxntid")),
        cluster=_shape(found.get(".reqnctapercluster")),
        explicit_cluster=".explicitcluster" in found,
        max_cluster_rank=_first(rank),
        registers=_first(registers),
    )


def _shape(args: tuple[int | str, ...] | None) -> Dim3 | None:
    numbers = [int(a) for a in args or () if isinstance(a, int)]
    if not numbers:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _first(args: tuple[int | str, ...] | None) -> int | None:
    return next((a for a in args or () if isinstance(a, int)), None)


@dataclass(slots=True)
class Kernel:
    """An entry of a module, readied for launches."""

    function: Function
    parameters: tuple[Parameter, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)

    @classmethod
    def of(cls, function: Function, module: Module) -> Kernel:
        return cls(function, parameters_of(function, module.address_size), bounds_of(function))

    @property
    def name(self) -> str:
        return self.function.name

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
        head = self.name + (f"  {' '.join(bounds)}" if bounds else "")
        return [head, *(f"  {n:>2}  {text:<{wide}}  {where}" for n, text, where in rows)]
