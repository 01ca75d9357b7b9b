"""Global annotations (13), and the variables of textures and surfaces (14.1)."""

from __future__ import annotations

from ..assembly.nodes import Function, Node, Value, Variable
from ..assembly.types import I64, VOID
from .context import Context
from .declarations import KERNEL_WORDS
from .headers import _nodes, integer
from .instructions import check_alignment

#: 13.3: property -> what it annotates, and the lowest architecture.
_DIMENSIONS = {
    f"{name}{axis}": ("kernel", arch)
    for name, arch in (("maxntid", 0), ("reqntid", 0), ("cluster_dim_", 90))
    for axis in "xyz"
}
PROPERTIES: dict[str, tuple[str, int]] = {
    **_DIMENSIONS, "cluster_max_blocks": ("kernel", 90), "minctasm": ("kernel", 0), "grid_constant": ("kernel", 70),
    "maxnreg": ("function", 0), "kernel": ("function", 0), "align": ("function", 0),
    "texture": ("variable", 0), "surface": ("variable", 0), "managed": ("variable", 0),
}  # fmt: skip
OPAQUE = ("texture", "surface")
#: Properties whose value is a count, which is not 0.
_POSITIVE = frozenset(("cluster_max_blocks", "maxnreg"))


def entity_of(node: Node) -> Value | None:
    """What a node annotates."""
    first = node.operands[0] if node.operands else None
    return first.parts[0] if first is not None and first.kind == "metadata" and first.parts else first


def find_opaque(context: Context) -> None:
    """Note the variables of textures and surfaces, which other rules ask for."""
    for node, _ in _nodes(context, "!nvvm.annotations"):
        entity = entity_of(node)
        for name in node.operands[1::2]:
            if entity is not None and entity.kind == "global" and name is not None and name.text[2:-1] in OPAQUE:
                context.opaque[entity.text] = name.text[2:-1]


def check_annotations(context: Context) -> None:
    kernels: set[str] = set()
    seen: dict[tuple[str, str], str] = {}
    nodes = _nodes(context, "!nvvm.annotations")
    for node, _ in nodes:
        entity = entity_of(node)
        if entity is not None and any(name is not None and name.text == '!"kernel"' for name in node.operands[1::2]):
            kernels.add(entity.text)
    for node, _ in nodes:
        entity = entity_of(node)
        if entity is None:  # a deleted function leaves null
            continue
        if entity.kind != "global":
            context.at_name("NVVM410", node.at, node.name, "an annotation begins with a function or a variable")
            continue
        _check_node(context, node, entity, entity.text in kernels or _by_convention(context, entity.text), seen)


def _by_convention(context: Context, name: str) -> bool:
    function = context.module.functions.get(name)
    return function is not None and any(word in KERNEL_WORDS for word, _ in function.words)


def _check_node(context: Context, node: Node, entity: Value, kernel: bool, seen: dict[tuple[str, str], str]) -> None:
    rest = node.operands[1:]
    if len(rest) % 2:
        context.at_name("NVVM410", node.at, node.name, "an annotation is a list of names and values")
    for name, value in zip(rest[::2], rest[1::2], strict=False):
        if name is None or name.extra != "string":
            context.at_name("NVVM410", node.at, node.name, "the name of a property is a string")
            continue
        _check_property(context, node, entity, name, value, kernel)
        have = seen.setdefault((entity.text, name.text), value.text if value else "null")
        if have != (value.text if value else "null") and name.text != '!"align"':
            context.at_value("NVVM413", name, f"{entity.text} has two values for {name.text[1:]}: {have} and "
                             f"{value.text if value else 'null'}")  # fmt: skip


def _check_property(
    context: Context, node: Node, entity: Value, name: Value, value: Value | None, kernel: bool
) -> None:
    text = name.text[2:-1]
    known = PROPERTIES.get(text)
    if known is None:
        context.at_value("NVVM411", name, f"there is no property {name.text[1:60]}")
        return
    kind, arch = known
    function = context.module.functions.get(entity.text)
    variable = context.module.variables.get(entity.text)
    context.needs("NVVM404", (name.at, name.end), f"the property '{text}'", arch)
    if (kind == "variable" and function is not None) or (kind != "variable" and variable is not None):
        context.at_value(
            "NVVM412",
            name,
            f"'{text}' is for {'variables' if kind == 'variable' else 'functions'}, and {entity.text} is none",
        )
        return
    if kind == "kernel" and not kernel:
        context.at_value("NVVM412", name, f"'{text}' is for kernels, and {entity.text} is none")
    if text == "grid_constant":
        _check_grid_constant(context, name, value, function)
        return
    number = integer(value)
    if (
        number is None
        or value is None
        or (value.parts[0] if value.kind == "metadata" and value.parts else value).type.text != "i32"
    ):
        context.at_value("NVVM412", value or name, f"the value of '{text}' is a constant of type i32")
        return
    if text in _POSITIVE and number == 0:
        context.at_value("NVVM412", value, f"the value of '{text}' is not 0")
    if text.startswith("cluster_dim_") and (number == 0) != (_cluster(node, text) == 0):
        context.at_value("NVVM412", value, "if one dimension of a cluster is 0, all are")
    if text == "align" and function is not None:
        check_alignment(context, (value.text, value.at), number, len(function.params), "'align'")
    if text == "kernel" and function is not None and function.result is not VOID:
        context.at_name("NVVM412", function.at, function.name, f"a kernel returns nothing, not {function.result}")
    if text in OPAQUE and variable is not None:
        _check_opaque(context, name, variable, text)


def _cluster(node: Node, text: str) -> int:
    """The product of the dimensions of a cluster that the node gives."""
    found = 1
    for name, value in zip(node.operands[1::2], node.operands[2::2], strict=False):
        if name is not None and name.text.startswith('!"cluster_dim_'):
            found *= integer(value) or 0
    return found


def _check_grid_constant(context: Context, name: Value, value: Value | None, function: Function | None) -> None:
    node = context.module.metadata.get(value.text) if value is not None else None
    listed = node.operands if node else value.parts if value is not None and value.extra == "tuple" else None
    if listed is None:
        context.at_value(
            "NVVM412", value or name, "the value of 'grid_constant' is a node with the numbers of parameters"
        )
        return
    for one in listed:
        number = integer(one)
        if number is None or (function is not None and not 1 <= number <= len(function.params)):
            context.at_value("NVVM412", one or name, "'grid_constant' lists numbers of parameters, from 1")
        elif function is not None:
            param = function.params[number - 1]
            if param.type.kind != "pointer" or not any(word.startswith("byval") for word, _ in param.attributes):
                context.at_value(
                    "NVVM412", one or name, f"parameter {number} of {function.name} is no pointer with 'byval'"
                )


def _check_opaque(context: Context, name: Value, variable: Variable, what: str) -> None:
    """A texture or surface variable (14.1)."""
    if variable.type is not I64 or variable.space != 1:
        have = f"{variable.type} in address space {variable.space}"
        context.at_name(
            "NVVM420",
            variable.at,
            variable.name,
            f"a {what} is a variable of type i64 in the global space (1), not {have}",
        )
    for other in context.module.variables.values():
        if (
            other.initial is not None
            and not other.name.startswith("@llvm.")
            and _mentions(other.initial, variable.name)
        ):
            context.at_value("NVVM421", other.initial, f"{variable.name} is a {what}: it is only used in metadata, by "
                             "llvm.nvvm.texsurf.handle, and in llvm.used")  # fmt: skip


def _mentions(value: Value, name: str) -> bool:
    return value.text == name if value.kind == "global" else any(_mentions(part, name) for part in value.parts)
