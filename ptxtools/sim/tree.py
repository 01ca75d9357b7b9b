"""Convert a module's tree to what a device loads."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic, Source
from ptxtools.ir import Directive, Function, Immediate, Initializer, Instruction, Member, Module, SymbolValue, Variable
from ptxtools.ir.old import with_listed_parameters
from ptxtools.ir.statics import STATIC_SPACES, module_statics
from ptxtools.ir.symbols import module_names
from ptxtools.isa.types import TYPES
from ptxtools.program.layout import Placed, function_addresses, kernel_parameters, variable_alignment, variable_size
from ptxtools.program.variant import PLAIN, Variant
from ptxtools.records import replace

from .kernel import Bounds, Dim3, Kernel, Parameter
from .loadable import Body, Contents, Link, Storage
from .textures.objects import sampler_handle

if TYPE_CHECKING:
    from ptxtools.ir.origins import Origins
    from ptxtools.program.program import Program

    from .image import Image

_FLOAT_FORMAT = {"f16": "<e", "f32": "<f", "f64": "<d"}
_BITS_FORMAT = {"f32": "<I", "f64": "<Q"}


class TreeModule:
    """A module available as a tree. Raises `PtxError` for an initialiser that names something unknown."""

    def __init__(self, tree: Module) -> None:
        self.tree = tree
        self._ready = with_listed_parameters(tree)
        self.contents = contents_of(self._ready)

    def lower(self, kernel: str, image: Image, variant: Variant = PLAIN) -> Program:
        from ptxtools.program import lower

        return lower(self._ready, kernel, image.address, variant=variant)

    def source(self) -> Source | None:
        return self.tree.source

    def whole(self) -> Module:
        return self.tree

    def bodies(self) -> list[Body]:
        from ptxtools.ir.cfg import scopes_of
        from ptxtools.ir.text import instruction_text

        source, found = self.tree.source, []
        for function in self.tree.functions:
            if function.body is None:
                continue
            rows = []
            for instruction in (i for scope in scopes_of(function) for i in scope.items if isinstance(i, Instruction)):
                text = (source.excerpt(instruction.span) if source else "") or instruction_text(instruction)
                rows.append((instruction.span[0], text, instruction.guard is not None))
            found.append(Body(function.name, function.kind == "entry", tuple(sorted(rows))))
        return found

    def origins(self) -> Origins | None:
        from ptxtools.ir.origins import origins_of

        return origins_of(self.tree)


def contents_of(module: Module) -> Contents:
    """Convert a module for a device."""
    names = module_names(module)
    found: dict[str, Variable] = {}
    undefined: dict[str, Diagnostic] = {}
    for variable in module.variables:
        if variable.space in STATIC_SPACES:
            symbol = names.lookup(variable.name)
            if isinstance(symbol, Variable) and (symbol.linkage != "extern" or symbol.is_given):
                found[variable.name] = symbol
            else:
                undefined[variable.name] = _undefined(variable, module)
    return Contents(
        target=module.target,
        kernels={function.name: kernel_of(function, module) for function in module.entries},
        storages=(
            *(storage_of(variable) for variable in found.values()),
            *(_static(name, variable, names) for name, variable, names in module_statics(module)),
        ),
        functions=function_addresses(module),
        undefined=undefined,
    )


def _static(name: str, variable: Variable, names: dict[str, str]) -> Storage:
    """A variable that a function declares. names: what names in its initialiser are called on the device."""
    storage = storage_of(variable)
    links = tuple(replace(link, symbol=names.get(link.symbol, link.symbol)) for link in storage.links)
    return replace(storage, name=name, links=links)


def _undefined(variable: Variable, module: Module) -> Diagnostic:
    what = f"variable '{variable.name}' is declared .extern but not defined: link the module that defines it"
    return Diagnostic("PTX811", what, variable.name_span, module.source, section="11.6.1")


# --- kernels ----------------------------------------------------------------------------------------------------------


def kernel_of(function: Function, module: Module) -> Kernel:
    """An entry's name, parameters and bounds."""
    parameters = tuple(_parameter(placed, module.address_size) for placed in kernel_parameters(function))
    return Kernel(function.name, parameters, bounds_of(function))


def _parameter(placed: Placed, address_size: int) -> Parameter:
    variable = placed.variable
    array = bool(variable.dims) or variable.vector > 1
    whole = not array and TYPES[variable.type].kind in ("int", "bits")
    pointer = whole and (placed.size == 8 or (placed.size == 4 and address_size == 32))
    return Parameter(placed.name, variable.type, placed.size, placed.align, placed.offset, array, pointer)


def bounds_of(function: Function) -> Bounds:
    """The bounds that a kernel's directives set (11.4)."""
    found = {d.name: d.args for d in function.directives if isinstance(d, Directive)}
    return Bounds(
        reqntid=_shape(found.get(".reqntid")),
        maxntid=_shape(found.get(".maxntid")),
        cluster=_shape(found.get(".reqnctapercluster")),
        explicit_cluster=".explicitcluster" in found,
        max_cluster_rank=_first(found.get(".maxclusterrank")),
        registers=_first(found.get(".maxnreg")),
        cta_memory=_first(found.get(".minperctamemory")) or 0,
    )


def _shape(args: tuple[int | str, ...] | None) -> Dim3 | None:
    numbers = [a for a in args or () if isinstance(a, int)]
    if not numbers or not numbers[0]:  # `.reqnctapercluster 0`: ptxas leaves it out
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _first(args: tuple[int | str, ...] | None) -> int | None:
    return next((a for a in args or () if isinstance(a, int)), None) or None


# --- variables --------------------------------------------------------------------------------------------------------


#: Bytes of a constant bank (5.1.3.1).
_BANK = 65536


def storage_of(variable: Variable) -> Storage:
    """A variable's place and initial content (5.4.4); an array in a constant bank is all of the bank."""
    data, links = b"", list[Link]()
    if variable.bank:
        dims = (_BANK // (TYPES[variable.type].bytes * variable.vector),)
        return Storage(variable.name, "const", variable.type, _BANK, 256, variable.vector, dims, bank=variable.bank)
    if variable.init is not None and TYPES[variable.type].kind != "opaque":
        content = _Content(variable)
        data, links = bytes(content.data[: content.size]), content.links
    elif variable.type == "samplerref" and variable.init is not None:
        data = _sampler(variable.init)
    return Storage(
        name=variable.name,
        space=variable.space,
        type=variable.type,
        size=variable_size(variable),
        alignment=variable_alignment(variable),
        vector=variable.vector,
        dims=tuple(dim for dim in variable.dims if dim) if all(variable.dims) else (),
        data=data if any(data) else b"",
        links=tuple(links),
    )


def _sampler(init: Initializer) -> bytes:
    """A sampler with the fields of an initialiser (5.3)."""
    members = init if isinstance(init, list) else [init]
    named = [m for m in members if isinstance(m, Member)]
    fields = {m.name: m.value.value if isinstance(m.value, Immediate) else m.value for m in named}
    return sampler_handle(fields).to_bytes(8, "little")


class _Content:
    """The bytes of an initialiser; elements that it leaves out are zero. Braces follow the dimensions."""

    def __init__(self, variable: Variable) -> None:
        self.type = variable.type
        self.element = TYPES[variable.type].bytes
        self.size = variable_size(variable)
        self.data = bytearray(self.size)
        self.links: list[Link] = []
        dims = [dim or 0 for dim in variable.dims]
        if variable.vector > 1:
            dims.append(variable.vector)
        self.fill(0, tuple(dims), variable.init)

    def fill(self, at: int, dims: tuple[int, ...], init: Initializer | None) -> int:
        """Write one initialiser at offset `at`; the offset behind what it fills."""
        if isinstance(init, list):
            inner, step = dims[1:], self.element * prod(dims[1:])
            position = at
            for item in init:
                nested = isinstance(item, list)
                position = self.fill(position, inner if nested else (), item)
                if nested and step:
                    position = at - (at - position) // step * step
            return position
        if isinstance(init, SymbolValue) and at + self.element <= self.size:
            self.links.append(Link(at, self.element, init.name, init.offset, init.mask))
        elif isinstance(init, Immediate):
            self.data[at : at + self.element] = _number_bytes(self.type, self.element, init)
        return at + self.element


def _number_bytes(type_: str, size: int, init: Immediate) -> bytes:
    if type_ in _FLOAT_FORMAT and init.type == type_ and init.type in _BITS_FORMAT:
        return struct.pack(_BITS_FORMAT[init.type], init.value)  # the bits, so that a NaN keeps its payload
    if type_ in _FLOAT_FORMAT:
        return _pack_float(_FLOAT_FORMAT[type_], _number(init))
    return (init.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _number(init: Immediate) -> float:
    if init.type in _BITS_FORMAT:
        bits = struct.pack(_BITS_FORMAT[init.type], init.value)
        value: float = struct.unpack(_FLOAT_FORMAT[init.type], bits)[0]
        return value
    return float(init.value)


def _pack_float(form: str, value: float) -> bytes:
    try:
        return struct.pack(form, value)
    except OverflowError:
        return struct.pack(form, float("inf") if value > 0 else float("-inf"))
