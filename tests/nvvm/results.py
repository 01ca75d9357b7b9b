"""Runs the kernels of `forms.py`, and keeps what each call computed; `tools/nvvm_results.py` records it of libnvvm."""

import zlib
from pathlib import Path

import numpy as np

import ptxtools

from .forms import DATA, GEOMETRIES, HANDLES, SLOT

RECORDED = Path(__file__).parents[2] / "testdata" / "nvvm" / "results.txt"
#: libnvvm has the name in its specification only: it calls an undefined function, or refuses it.
UNKNOWN_THERE = ("llvm.nvvm.isspacep.cluster_shared",)


def recorded():
    """The recorded checksums, as of `results`."""
    lines = (line.split() for line in RECORDED.read_text().splitlines())
    return {call: int(value, 16) for value, call in lines}


#: Of a texture, of a surface to load from, of one to store into: width, height or layers, depth or layers.
_SIZES = {
    "texture": {"1d": [8], "1d.array": [8, 2], "2d": [8, 8], "2d.array": [8, 8, 2], "3d": [8, 8, 4], "cube": [8, 8],
                "cube.array": [8, 8, 2]},
    "load": dict(zip(GEOMETRIES, ([128], [128, 2], [128, 2], [128, 2, 2], [128, 2, 2]), strict=False)),
    "store": dict(zip(GEOMETRIES, ([4608], [4608, 2], [4608, 2], [4608, 2, 2], [4608, 2, 2]), strict=False)),
}  # fmt: skip


def results(ptx, kernels, engine="native"):
    """A checksum of what each call stored, by its text, and one of the surfaces after each kernel that stores."""
    module = ptxtools.loads(ptx)
    device = ptxtools.Device(module.target, engine=engine)
    random = np.random.default_rng(1)
    handles, surfaces = [], []
    for what, geometry, texel in HANDLES:
        made, buffer = _made(device, random, what, geometry, texel)
        handles.append(made)
        if what == "store":
            surfaces.append(buffer)
    device.bind(module, "tex", handles[0])
    table = device.upload(np.array([made.handle for made in handles], np.uint64))
    data = device.upload(random.integers(-4, 5, 2 * DATA).astype(np.float16).view(np.uint32))
    found = {}
    for name, calls in kernels.items():
        out = device.upload(np.zeros(SLOT * len(calls), np.uint8))
        device.launch(module[name], grid=1, block=32, args=[out, data, table])
        for call, slot in zip(calls, out.download().reshape(-1, SLOT), strict=True):
            found[str(call)] = zlib.crc32(slot.tobytes())
        if name.startswith("sust"):
            found[name] = zlib.crc32(b"".join(surface.download().tobytes() for surface in surfaces))
    return found


def _made(device, random, what, geometry, texel):
    """A texture or surface, and its buffer."""
    kind = f"a{geometry[:-6]}" if geometry.endswith(".array") else geometry
    size = _SIZES[what][geometry]
    count = int(np.prod(size)) * (6 if "cube" in kind else 1)
    if what == "texture":
        texels = random.integers(-50, 50, 4 * count)
        kinds = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}
        buffer = device.upload(texels.astype(kinds[texel]))
        filter_ = "linear" if texel == "f32" else "point"
        return device.texture(buffer, kind, type=texel, channels=4, size=size, filter=filter_), buffer
    words = random.integers(0, 1 << 32, count, dtype=np.uint32) if what == "load" else np.zeros(count, np.uint32)
    buffer = device.upload(words)
    return device.surface(buffer, kind, type="u32", channels=1, size=size), buffer
