"""A tensor copy by its definition (5.5.3 to 5.5.7), one element after the other, and a kernel that makes one.

Nothing here is shared with the simulator: `Copy` says what a copy is, in the words of launch files, and computes which
elements it moves, and where each of their bytes lies in shared memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import ptxtools
from tests.work import HANG

Array = np.ndarray[Any, Any]

#: Type: (elements that go together, their bytes in global memory, in shared memory).
UNITS = {
    "u8": (1, 1, 1), "u16": (1, 2, 2), "u32": (1, 4, 4), "s32": (1, 4, 4), "u64": (1, 8, 8), "s64": (1, 8, 8),
    "f16": (1, 2, 2), "bf16": (1, 2, 2), "f32": (1, 4, 4), "f32.ftz": (1, 4, 4), "f64": (1, 8, 8), "tf32": (1, 4, 4),
    "tf32.ftz": (1, 4, 4), "b4x16": (16, 8, 8), "b4x16_p64": (16, 8, 16), "b6x16_p32": (16, 12, 16),
}  # fmt: skip
#: Mode: (bytes that are mixed, where the byte meant for an address of shared memory lies).
SWIZZLES: dict[str, tuple[int, Any]] = {
    "none": (0, lambda a: a), "32B": (32, lambda a: a ^ (a // 128 % 2 * 16)),
    "64B": (64, lambda a: a ^ (a // 128 % 4 * 16)),
    "128B": (128, lambda a: a ^ (a // 128 % 8 * 16)), "128B_atom_32B": (128, lambda a: a ^ (a // 128 % 4 * 32)),
    "128B_atom_32B_flip_8B": (128, lambda a: a ^ (a // 128 % 4 * 32) ^ (a // 128 % 2 * 8)),
    "128B_atom_64B": (128, lambda a: a ^ (a // 128 % 2 * 64)),
}  # fmt: skip


@dataclass
class Copy:
    """shape and at are innermost first; fields: further ones of the tensor map; info: im2col offsets, or wHalo and
    wOffset. Strides are dense."""

    type: str
    shape: tuple[int, ...]
    at: tuple[int, ...]
    mode: str = "tile"
    info: tuple[int, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.together, self.unit, self.room = UNITS[self.type]
        self.slice = {"none": 0, "16B": 16, "32B": 32}[self.fields.get("interleave", "none")]
        if self.slice:
            self.together, self.unit, self.room = 1, self.slice, self.slice
        self.steps = self.fields.get("element_strides", [1] * len(self.shape))
        self.swizzle = self.fields.get("swizzle", "none")
        self._known: tuple[str, list[list[int | None]]] = ("", [])

    @property
    def tensor_bytes(self) -> int:
        return int(np.prod(self.shape)) // self.together * self.unit

    def rows(self) -> list[list[int | None]]:
        """Offsets of the units of each row of the tile in global memory, None for what does not exist."""
        facts = f"{self} {self.steps}"
        if self._known[0] != facts:
            self._known = facts, list(self._rows())
        return self._known[1]

    def _rows(self) -> Iterator[list[int | None]]:
        if self.mode in ("tile::gather4", "tile::scatter4"):
            outer: list[tuple[int, ...]] = [(row,) for row in self.at[1:]]
        elif self.mode == "tile":
            counts = [-(-n // s) for n, s in zip(self.fields["box"], self.steps, strict=True)]
            if self.slice:
                counts[-2] = 1
            steps = [range(x, x + n * s, s) for x, n, s in zip(self.at, counts, self.steps, strict=True)]
            outer = [tuple(reversed(place)) for place in itertools.product(*reversed(steps[1:]))]
        elif self.slice:
            yield from ([self.offset(pixel)] for pixel in self.pixels(0))
            return
        else:
            outer = self.pixels(1)
        first = range(self.at[0], self.at[0] + self.width(), self.together)
        if self.mode == "tile" and self.slice:
            first = steps[0]
        for place in outer:
            yield [self.offset((x, *place)) for x in first]

    def width(self) -> int:
        """Elements of a row."""
        found: int = self.fields["box"][0] if "box" in self.fields else self.fields["channels_per_pixel"]
        return found

    def pixels(self, first: int) -> list[tuple[int, ...]]:
        """Coordinates of the pixels from dimension `first` on, by counting through the whole bounding box."""
        spatial = 1 if self.mode.startswith("im2col::w") else len(self.shape) - 2
        shift = self.info[1] if spatial == 1 and self.mode != "im2col" and self.info else 0
        low = [c + shift for c in self.fields["lower_corner"]]
        high = [self.shape[first + d] - 1 + c + shift for d, c in enumerate(self.fields["upper_corner"])]
        axes = [range(a, b + 1, s) for a, b, s in zip(low, high, self.steps[first:], strict=False)]
        start = list(self.at[first:])
        start[0] += shift
        line = list(range(start[0], high[0] + 1, self.steps[first]))  # the first line may begin off the grid
        walk: list[tuple[int, ...]] = [(w, *start[1:]) for w in line]
        middle = () if spatial == len(self.shape) - 2 else tuple(start[1:-1])
        column, halo = self.fields["pixels_per_column"], self.info[0] if self.mode.startswith("im2col::w") else 0
        for n in range(start[-1], start[-1] + 300):
            if len(walk) >= max(column, 128) + halo:
                break
            for place in itertools.product(*reversed(axes)):
                w, *rest = reversed(place)
                spot = (w, *rest, *middle) if not self.slice else (w, *rest, start[-2])
                if (n, *reversed(rest)) > (start[-1], *reversed(start[1:spatial])):
                    walk.append((*spot, n))
        if self.mode == "im2col::w::128":
            found = walk[:128] + [walk[32 * run + i] for i in range(halo) for run in (1, 2, 3, 4)]
        else:
            found = walk[: column + halo]
        if self.mode == "im2col":
            found = [(*(x + o for x, o in zip(p, self.info, strict=False)), *p[spatial:]) for p in found]
        return found

    def offset(self, at: tuple[int, ...]) -> int | None:
        if not all(0 <= x < n for x, n in zip(at, self.shape, strict=True)):
            return None
        place, scale = at[0] // self.together * self.unit, self.shape[0] // self.together * self.unit
        for x, n in zip(at[1:], self.shape[1:], strict=True):
            place, scale = place + x * scale, scale * n
        return place

    # --- shared memory ------------------------------------------------------------------------------------------------

    def places(self, row: int, units: int) -> list[list[int]]:
        """Where the bytes of each unit of a row lie in shared memory."""
        span, swizzled = SWIZZLES[self.swizzle]
        pitch = max(units * self.room, span)
        return [[swizzled(row * pitch + i * self.room + b) for b in range(self.room)] for i in range(units)]

    def counted(self) -> int:
        """Bytes that an mbarrier counts."""
        return sum(self.unit * len(row) for row in self.rows())

    def extent(self) -> int:
        """Bytes of shared memory, to a multiple of 512."""
        rows = self.rows()
        return -(-(1 + max(max(p) for p in self.places(len(rows) - 1, len(rows[-1])))) // 512) * 512

    def loaded(self, tensor: Array, room: Array) -> Array:
        """Shared memory after a load. tensor, room: bytes of the tensor, and of shared memory before it."""
        found, fill = room.copy(), np.zeros(self.unit, np.uint8)
        if self.fields.get("fill") == "nan":
            fill = np.full(self.unit // 2, 0x7FF7, np.uint16).view(np.uint8)
        for number, row in enumerate(self.rows()):
            for offset, places in zip(row, self.places(number, len(row)), strict=True):
                data = fill if offset is None else self.converted(tensor[offset : offset + self.unit])
                found[places[: self.unit]] = data
        return found

    def converted(self, data: Array) -> Array:
        if not self.type.startswith("tf32"):
            return data
        values = data.view(np.float32).astype(np.float64)
        exponents = np.frexp(values)[1] - 11
        return np.ldexp(np.round(np.ldexp(values, -exponents)), exponents).astype(np.float32).view(np.uint8)

    def stored(self, tensor: Array, room: Array, change: Any = None) -> Array:
        """The tensor after a store, or with `change(old, new)` after a reduction."""
        found = tensor.copy()
        for number, row in enumerate(self.rows()):
            for offset, places in zip(row, self.places(number, len(row)), strict=True):
                if offset is None:
                    continue
                data = room[places]
                if self.type == "b6x16_p32":
                    packed = sum((int(b) & 63) << 6 * i for i, b in enumerate(data))
                    data = np.frombuffer(packed.to_bytes(12, "little"), np.uint8)
                old = found[offset : offset + self.unit]
                found[offset : offset + self.unit] = data if change is None else change(old, data)
        return found


# --- kernels ----------------------------------------------------------------------------------------------------------


def _kernel(body: str, size: int) -> Any:
    """128 threads fill `size` bytes of shared memory from %room, thread 0 runs the body, and all store them there."""
    move = "L{0}: mad.lo.u32 %r2, %r1, 4, %s; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %room;\n    {1}\n" + (
        f"    add.u32 %r1, %r1, 128; setp.lt.u32 %p0, %r1, {size // 4}; @%p0 bra L{{0}};"
    )
    return ptxtools.loads(f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .align 64 .b8 m[128], .param .u64 room) {{
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %s, %mb, %r<8>; .reg .b64 %m, %room, %rd<8>;
    .shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 bar;
    mov.b64 %m, m; cvta.param.u64 %m, %m; ld.param.u64 %room, [room]; mov.u32 %s, tile; mov.u32 %mb, bar;
    mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0; mov.u32 %r1, %r0;
    {move.format(0, "ld.global.u32 %r3, [%rd3]; st.shared.u32 [%r2], %r3;")}
    @%p1 mbarrier.init.shared::cta.b64 [%mb], 1; fence.mbarrier_init.release.cluster;
    fence.proxy.async; bar.sync 0;
    @!%p1 bra BEHIND;
    {body}
    BEHIND: bar.sync 0; mov.u32 %r1, %r0;
    {move.format(1, "ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd3], %r3;")}
    ret; }}""")["k"]


def load(copy: Copy, engine: str, *, dst: str = "shared::cta", **options: Any) -> tuple[Array, Array]:
    """Shared memory as the simulator leaves it, and as it should be."""
    rng = np.random.default_rng(len(copy.shape))
    tensor = rng.integers(0, 256, copy.tensor_bytes, np.uint8)
    if copy.type.startswith("tf32"):
        tensor = rng.normal(size=copy.tensor_bytes // 4).astype(np.float32).view(np.uint8)
    room = rng.integers(0, 256, copy.extent(), np.uint8)
    lines, info = _operands(copy)
    body = f"""{lines} mbarrier.arrive.expect_tx.shared::cta.b64 _, [%mb], {copy.counted()};
    cp.async.bulk.tensor.{len(copy.shape)}d.{dst}.global.{copy.mode}.mbarrier::complete_tx::bytes
        [%s], [%m, {{{", ".join(map(str, copy.at))}}}], [%mb]{info};"""
    wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%mb], 0; @!%p2 bra W;"
    device = ptxtools.Device("sm_100a", engine=engine, **options)
    map_ = _map(device, copy, device.upload(tensor))
    got = room.copy()
    device.launch(_kernel(body + wait, len(room)), 1, 128, [map_, got], timeout=HANG)
    return got, copy.loaded(tensor, room)


def store(
    copy: Copy, engine: str, *, operation: str = "", change: Any = None, tensor: Array | None = None,
    room: Array | None = None, **options: Any,
) -> tuple[Array, Array]:  # fmt: skip
    """The tensor as the simulator leaves it, and as it should be, after a store or a reduction."""
    rng = np.random.default_rng(len(copy.shape))
    tensor = rng.integers(0, 256, copy.tensor_bytes, np.uint8) if tensor is None else tensor
    room = rng.integers(0, 256, copy.extent(), np.uint8) if room is None else room
    name = f"cp.reduce.async.bulk.tensor.{len(copy.shape)}d.global.shared::cta.{operation}" if operation else (
        f"cp.async.bulk.tensor.{len(copy.shape)}d.global.shared::cta"
    )  # fmt: skip
    body = f"""{name}.{copy.mode}.bulk_group [%m, {{{", ".join(map(str, copy.at))}}}], [%s];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    device = ptxtools.Device("sm_100a", engine=engine, **options)
    buffer = device.upload(tensor)
    map_ = _map(device, copy, buffer)
    device.launch(_kernel(body, len(room)), 1, 128, [map_, room.copy()], timeout=HANG)
    return buffer.download(), copy.stored(tensor, room, change)


def _operands(copy: Copy) -> tuple[str, str]:
    """Lines that set the operands of im2col modes, and those operands."""
    if not copy.info:
        return "", ""
    lines = " ".join(f"mov.b16 %h{i}, {x};" for i, x in enumerate(copy.info))
    return lines, ", {" + ", ".join(f"%h{i}" for i in range(len(copy.info))) + "}"


def _map(device: Any, copy: Copy, buffer: Any) -> Any:
    wide = {"im2col_w": True} if copy.mode.startswith("im2col::w") else {}
    return device.tensormap(buffer, type=copy.type, shape=list(copy.shape), **copy.fields, **wide)
