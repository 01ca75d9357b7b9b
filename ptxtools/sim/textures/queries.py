"""txq, suq and istypep (9.7.10.5, 9.7.10.6, 9.7.11.4)."""

from __future__ import annotations

import numpy as np

from ptxtools.machine.events import View, serves
from ptxtools.program.program import LANES

from .access import content, sampler_at, texture_at, textures_of
from .objects import ADDRESS_MODES, FILTERS, ORDERS, Sampler, Texture, sampler_of

_ARRAYS = ("a1d", "a2d", "acube", "a2dms")
_SRGBA = 0x10C1  # channel_order of OpenCL; it has none for sRGB of fewer channels
_SAMPLER_QUERIES = ("filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "force_unnormalized_coords")


@serves("txq", "suq")
def query(view: View) -> None:
    """An attribute of a texture, surface or sampler."""
    handles = view.source(0)
    wanted = view.op.opcode.mods["query"]  # type: ignore[union-attr]
    levels = view.source(1) if len(view.op.src) > 1 else np.zeros(LANES, np.uint32)
    answers = np.zeros(LANES, np.uint32)
    for lane in view.lanes():
        handle = int(handles[lane])
        if wanted in _SAMPLER_QUERIES:
            answers[lane] = _of_sampler(sampler_at(view, handle, lane), wanted)
        else:
            answers[lane] = _of_texture(texture_at(view, handle, lane), wanted, int(levels[lane]))
    view.result(0, answers)


def _of_texture(texture: Texture, wanted: str, level: int) -> int:
    if wanted in ("width", "height", "depth"):
        axis = ("width", "height", "depth").index(wanted)
        return texture.level_size(level)[axis] if level < texture.levels else 0
    channel = texture.channel
    layers = texture.layers // 6 if texture.kind == "acube" else texture.layers
    return {
        "channel_data_type": channel.normalized if texture.read == "normalized_float" else channel.data_type,
        "channel_order": _SRGBA if texture.srgb and texture.channels == 4 else ORDERS[texture.channels],
        "normalized_coords": int(texture.sampler.normalized),
        "array_size": layers if texture.kind in _ARRAYS else 0,
        "num_mipmap_levels": texture.levels if texture.levels > 1 else 0,
        "num_samples": texture.samples if texture.kind in ("2dms", "a2dms") else 0,
        "memory_layout": int(texture.kind == "linear"),
    }[wanted]


def _of_sampler(sampler: Sampler, wanted: str) -> int:
    if wanted == "filter_mode":
        return FILTERS[sampler.filter]
    if wanted == "force_unnormalized_coords":
        return int(sampler.force_unnormalized)
    return ADDRESS_MODES[sampler.address[int(wanted[-1])]]


@serves("istypep")
def is_type(view: View) -> None:
    """Whether an address is that of a variable of a kind, or a handle of one."""
    handles = view.source(0)
    kind = view.op.opcode.mods["kind"]  # type: ignore[union-attr]
    answers = np.zeros(LANES, np.bool_)
    for lane in view.lanes():
        place = int(handles[lane])
        if view.launch.memory.bytes(place, 8, False) is None and not textures_of(view).find(place):
            continue
        held = content(view, place, lane)
        texture = textures_of(view).find(held)
        answers[lane] = {
            "texref": texture is not None and not texture.surface,
            "surfref": texture is not None and texture.surface,
            "samplerref": sampler_of(held) is not None,
        }[kind]
    view.result(0, answers)
