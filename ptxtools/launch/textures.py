"""Textures and surfaces of launch files and options: `[textures.t]` and `--arg texture:FILE,filter=linear`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ptxtools.sim.textures.objects import CHANNELS, KINDS

from .arguments import Content, TextureArgument, count
from .elements import element_type
from .errors import SpecError
from .job import BufferPlan, TexturePlan
from .table import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_TEXTS = ("type", "filter", "mip_filter", "read", "compare")
_WHOLES = ("channels", "layers", "levels", "samples", "pitch", "anisotropy")
_FLAGS = ("normalized", "srgb", "seamless")
#: Keys with lists as values: their name in `make`, and the kind of elements.
_LISTS: dict[str, tuple[str, type]] = {
    "size": ("size", int), "address": ("address_modes", str), "border": ("border", float),
    "level_clamp": ("level_clamp", float), "absent": ("absent", dict),
}  # fmt: skip
#: In an option a comma begins the next field; list elements are separated by slashes.
_NEXT_FIELD = re.compile(r",(?=[a-z_]+=)")


def texture_plan(name: str, kind: str, buffer: str, table: Table) -> TexturePlan:
    """The texture that a table describes. Raises `SpecError`."""
    fields: dict[str, Any] = {}
    for key in _TEXTS:
        if table.has(key):
            fields[key] = table.text(key)
    for key in _WHOLES:
        if table.has(key):
            fields[key] = table.whole(key)
    for key in _FLAGS:
        if table.has(key):
            fields[key] = table.take(key, bool)
    if table.has("level_bias"):
        fields["level_bias"] = table.take("level_bias", float)
    for key, (field, of) in _LISTS.items():
        if table.has(key):
            fields[field] = listed(table, key, of)
    return TexturePlan(name, kind, buffer, fields)


def listed(table: Table, key: str, of: type) -> list[Any]:
    """A list of whole numbers, numbers, words or tables."""
    values = table.take(key, list, [])
    kinds = (int, float) if of is float else (of,)
    if (not values and of in (int, float)) or any(isinstance(v, bool) or not isinstance(v, kinds) for v in values):
        what = "words" if of is str else "tables" if of is dict else "numbers"
        raise table.error(f"must be a list of {what}", key)
    return [of(value) for value in values]


def own_buffer(plan: TexturePlan, label: str, path: str) -> BufferPlan:
    """The buffer of a texture without one: the content of a file, or zeros for its size and type."""
    if path:
        return BufferPlan(label, Content("file", path=path))
    for key in ("type", "size"):
        if key not in plan.fields:
            raise SpecError(f"{label}: {key} is missing, with neither a buffer nor a file to provide it")
    if plan.fields["type"] not in CHANNELS or min(plan.fields["size"]) < 1 or plan.fields.get("levels", 1) != 1:
        raise SpecError(f"{label}: a texture without buffer and file requires a known type, a size, and one level")
    shape = [*plan.fields["size"]][::-1]
    if plan.kind.endswith("cube"):
        shape = [6, *shape] if plan.kind == "cube" else [6 * shape[0], *shape[1:]]
    shape += [plan.fields["channels"]] if "channels" in plan.fields else []
    element = element_type(plan.fields["type"])
    if count(tuple(shape)) * element.bytes >= 1 << 48:
        raise SpecError(f"{label}: a size of {plan.fields['size']} is too large")
    return BufferPlan(label, Content("zeros", element, tuple(shape)))


def complete(plan: TexturePlan, array: Array, type_name: str) -> dict[str, Any]:
    """The fields of a texture; type, size and channels default to the array's. Raises `SpecError`."""
    fields = dict(plan.fields)
    fields.setdefault("type", type_name)
    if "size" in fields:
        return fields
    axes, layered, _ = KINDS.get(plan.kind.removeprefix("surface"), (2, False, False))
    places = axes + layered
    if array.ndim not in (places, places + 1):
        shape = ", ".join(map(str, array.shape))
        raise SpecError(f"texture '{plan.name}': size is missing, and [{shape}] does not give it for kind {plan.kind}")
    if array.ndim > places:
        fields.setdefault("channels", array.shape[-1])
    size = list(array.shape[places - axes : places][::-1])
    if layered and plan.kind != "cube":
        size.append(array.shape[0] // 6 if plan.kind == "acube" else array.shape[0])
    return {**fields, "size": size}


def texture_option(prefix: str, text: str, content: Any) -> TextureArgument:
    """`texture:IN[,key=value…]`: the argument, with a table of its fields. content: parses IN. Raises `SpecError`."""
    first, *given = _NEXT_FIELD.split(text)
    values: dict[str, Any] = {}
    for field in given:
        key, _, value = field.partition("=")
        of = _LISTS[key][1] if key in _LISTS else None
        values[key] = [_value(v) for v in value.split("/")] if of is not None else _value(value)
    table = Table(values, f"{prefix}:{text}")
    kind = table.text("kind", "2d")
    plan = texture_plan("", ("surface" if prefix == "surface" else "") + kind, "", table)
    table.finish()
    found = content(first).content if first else None
    return TextureArgument("", plan, found)


def _value(text: str) -> Any:
    """A number, true, false, or a word."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
