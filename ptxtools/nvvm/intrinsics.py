"""The intrinsics of NVVM IR (chapter 15 of its specification), as a table.

Each line is a declaration in the dialect of LLVM 7, without `declare` and without the prefix `@llvm.nvvm.`. A name in
braces stands for each of its values in `_SETS`, the same one everywhere in the line. `%float4` and its like are the
types of 15.5. Behind `!`: operands that must be constants, with the values that they may have, and the first
architecture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product

from ptxtools.records import dataclass

PREFIX = "llvm.nvvm."

_SETS: dict[str, tuple[str, ...]] = {
    "n": ("0", "1", "3"),
    "axis": ("x", "y", "z"),
    "mnk": ("m16n16k16", "m32n8k16", "m8n32k16"),
    "ab": ("a", "b"),
    "clamp": ("clamp", "trap", "zero"),
    "rgba": ("r", "g", "b", "a"),
}

_TABLE = """
15.1
float atomic.load.add.f32.p{n}f32(float addrspace({n})*, float)
double atomic.load.add.f64.p{n}f64(double addrspace({n})*, double)
i32 atomic.load.inc.32.p{n}i32(i32 addrspace({n})*, i32)
i32 atomic.load.dec.32.p{n}i32(i32 addrspace({n})*, i32)

15.2
void barrier0()
i32 barrier0.popc(i32)
i32 barrier0.and(i32)
i32 barrier0.or(i32)
void cluster.barrier(i32) ! 0=0,1,16 sm_90
void membar.cta()
void membar.gl()
void membar.sys()
void membar(i32) ! 0=0,1,2,4

12.2.2
i1 isspacep.const(i8*)
i1 isspacep.global(i8*)
i1 isspacep.local(i8*)
i1 isspacep.shared(i8*)
i1 isspacep.cluster_shared(i8*) ! sm_90
i1 isspacep.grid_const(i8*) ! sm_70

15.4
i32 read.ptx.sreg.tid.{axis}()
i32 read.ptx.sreg.ntid.{axis}()
i32 read.ptx.sreg.ctaid.{axis}()
i32 read.ptx.sreg.nctaid.{axis}()
i32 read.ptx.sreg.warpsize()

15.5
i64 texsurf.handle.p1i64(metadata, i64 addrspace(1)*)

15.6
void bar.warp.sync(i32)
{i32, i1} shfl.sync.i32(i32, i32, i32, i32, i32) ! 1=0,1,2,3
{i32, i1} vote.sync(i32, i32, i1) ! 1=0,1,2,3
i32 match.any.sync.i32(i32, i32) ! sm_70
i32 match.any.sync.i64(i32, i64) ! sm_70
{i32, i1} match.all.sync.i32(i32, i32) ! sm_70
{i32, i1} match.all.sync.i64(i32, i64) ! sm_70

15.6.5
{8 i32} hmma.{mnk}.ld.{ab}.p{n}i32(i32 addrspace({n})*, i32, i32) ! 2=0,1 sm_70
{8 float} hmma.{mnk}.ld.c.f32.p{n}f32(float addrspace({n})*, i32, i32) ! 2=0,1 sm_70
{4 i32} hmma.{mnk}.ld.c.f16.p{n}i32(i32 addrspace({n})*, i32, i32) ! 2=0,1 sm_70
void hmma.{mnk}.st.c.f32.p{n}float(float addrspace({n})*, i32, i32, 8 float) ! 2=0,1 sm_70
void hmma.{mnk}.st.c.f16.p{n}i32(i32 addrspace({n})*, i32, i32, 4 i32) ! 2=0,1 sm_70
{4 i32} hmma.{mnk}.mma.f16.f16(i32, i32, 16 i32, 4 i32) ! 0=0,1,2,3 1=0 sm_70
{8 float} hmma.{mnk}.mma.f32.f16(i32, i32, 16 i32, 4 i32) ! 0=0,1,2,3 1=0 sm_70
{8 float} hmma.{mnk}.mma.f32.f32(i32, i32, 16 i32, 8 float) ! 0=0,1,2,3 1=0 sm_70
{4 i32} hmma.{mnk}.mma.f16.f32(i32, i32, 16 i32, 8 float) ! 0=0,1,2,3 1=0 sm_70
"""

#: The coordinates of each geometry: how many, and whether an index into layers stands before them.
_GEOMETRIES = {"1d": (1, False), "1d.array": (1, True), "2d": (2, False), "2d.array": (2, True), "3d": (3, False),
               "cube": (3, False), "cube.array": (3, True)}  # fmt: skip
#: What a texture returns (15.5.1), and what a surface has as elements (15.5.2, 15.5.3): 8 bits are passed as i16.
_TEXELS = {"v4f32": "4 float", "v4s32": "4 i32", "v4u32": "4 i32"}
_ELEMENTS = {"i8": "i16", "i16": "i16", "i32": "i32", "i64": "i64"}


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One form. name: with its prefix; result, parameters: types in the dialect of LLVM 7; constants: the values that
    an operand must have, by its number; since: the first architecture; section: of the specification."""

    name: str
    result: str
    parameters: tuple[str, ...]
    constants: dict[int, tuple[int, ...]]
    since: int
    section: str

    @property
    def modern_name(self) -> str:
        """The name in the modern dialect: of pointers, only the address space is part of it."""
        return re.sub(r"\.p(\d)(?:i\d+|f\d+|float)$", r".p\1", self.name)


@cache
def intrinsics() -> dict[str, Intrinsic]:
    """All forms by their names."""
    section = ""
    found: dict[str, Intrinsic] = {}
    for line in (*_TABLE.splitlines(), *_textures(), *_surfaces()):
        if line and line[0].isdigit():
            section = line
        elif line:
            found.update((one.name, one) for one in _forms(line, section))
    return found


def _forms(line: str, section: str) -> Iterator[Intrinsic]:
    used = [name for name in _SETS if f"{{{name}}}" in line]
    for values in product(*(_SETS[name] for name in used)):
        text = line
        for name, value in zip(used, values, strict=True):
            text = text.replace(f"{{{name}}}", value)
        yield _form(text.replace(" addrspace(0)", ""), section)


def _form(text: str, section: str) -> Intrinsic:
    head, _, rules = text.partition(" ! ")
    parts = re.fullmatch(r"(\{[^}]*\}|\S+) ([\w.]+)\((.*)\)", head)
    assert parts, text
    constants = {}
    since = 0
    for rule in rules.split():
        if rule.startswith("sm_"):
            since = int(rule[3:])
        else:
            number, _, values = rule.partition("=")
            constants[int(number)] = tuple(map(int, values.split(",")))
    result = parts[1] if parts[1][0] != "{" else "{" + ", ".join(_types(parts[1][1:-1])) + "}"
    return Intrinsic(PREFIX + parts[2], result, tuple(_types(parts[3])), constants, since, section)


def _types(text: str) -> list[str]:
    """Types separated by commas; `4 i32` is four of them."""
    found = []
    for part in filter(None, text.split(", ")):
        count, _, type_ = part.partition(" ")
        found += [type_] * int(count) if count.isdigit() else [part]
    return found


def _textures() -> Iterator[str]:
    yield "15.5.1"
    for geometry, (count, layers) in _GEOMETRIES.items():
        for texel, result in _TEXELS.items():
            before = "i64" + ", i32" * layers
            name = f"{{{result}}} tex.unified.{geometry}"
            if not geometry.startswith("cube"):
                yield f"{name}.{texel}.s32({before}, {count} i32)"
                yield f"{name}.grad.{texel}.f32({before}, {3 * count} float)"
            yield f"{name}.{texel}.f32({before}, {count} float)"
            yield f"{name}.level.{texel}.f32({before}, {count + 1} float)"
    for texel, result in _TEXELS.items():
        yield f"{{{result}}} tld4.unified.{{rgba}}.2d.{texel}.f32(i64, 2 float)"


def _surfaces() -> Iterator[str]:
    for section, formatted in (("15.5.2", None), ("15.5.3", False), ("15.5.3", True)):
        yield section
        for geometry, (count, layers) in _GEOMETRIES.items():
            if geometry.startswith("cube"):
                continue
            place = "i64" + ", i32" * (layers + count)
            for element, type_ in _ELEMENTS.items():
                for width in (1, 2) if element == "i64" else (1, 2, 4):
                    vector = f"v{width}{element}" if width > 1 else element
                    if formatted is None:
                        result = f"{{{width} {type_}}}" if width > 1 else type_
                        yield f"{result} suld.{geometry}.{vector}.{{clamp}}({place})"
                    elif not formatted:
                        yield f"void sust.b.{geometry}.{vector}.{{clamp}}({place}, {width} {type_})"
                    elif element == "i32":
                        yield f"void sust.p.{geometry}.{vector}.trap({place}, {width} {type_})"
