"""A commented launch file for a kernel (`ptx-run --new-launch`), with guessed values that have been tried."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, Trap, shown
from ptxtools.isa.types import TYPES
from ptxtools.records import dataclass, field, replace
from ptxtools.sim.limits import default_device, limits_of

from .elements import ELEMENTS, ElementType
from .errors import SpecError
from .file import parse_launch_file
from .roles import Role, roles_of

if TYPE_CHECKING:
    from ptxtools.ir import Module
    from ptxtools.machine.events import View
    from ptxtools.machine.launch import Launch
    from ptxtools.machine.observers import Access
    from ptxtools.sim.kernel import Dim3, Kernel, Parameter

    from .job import Job

#: Threads of a CTA that are tried where the kernel does not say how many.
_THREADS = (128, 64, 32)
#: Bytes of a buffer of which nobody knows yet how large it must be.
_ROOMY = 1 << 20
#: Thread-instructions of a try.
_MOST = 20_000_000
#: A tensor map is an array of 128 bytes; and the elements of a box along each dimension.
_MAP_BYTES, _MAP_BOX = 128, 16

Run = Callable[["Job"], object]


@dataclass(slots=True)
class Template:
    """text: the launch file; problem: why a run of it fails, or ""."""

    text: str
    problem: str


@dataclass(slots=True)
class _Guess:
    """Values for a launch. block: of a CTA; shared: dynamic, in bytes; number: of all integers; sizes: bytes of buffers
    by parameter, `_ROOMY` for others; plain: buffers hold zeros."""

    block: Dim3
    shared: int
    number: int
    sizes: dict[int, int] = field(default_factory=dict)
    plain: bool = True


class _Extents:
    """An observer: bytes from the start of each buffer that a kernel reaches, by parameter."""

    def __init__(self, pointers: dict[int, Parameter]) -> None:
        self._pointers = pointers
        self.reach = dict.fromkeys(pointers, 0)

    def grid_begun(self, launch: Launch) -> None:
        params = launch.params
        self._starts = {n: int.from_bytes(params[p.offset : p.offset + p.size], "little")
                        for n, p in self._pointers.items()}  # fmt: skip

    def access(self, at: View, access: Access) -> None:
        if access.space == "global" and access.addresses.size:
            for address in (access.addresses.min(), access.addresses.max()):
                self.wrote_global(int(address), access.size)

    def wrote_global(self, address: int, size: int) -> None:
        for number, start in self._starts.items():
            if start <= address < start + _ROOMY:
                self.reach[number] = max(self.reach[number], address + size - start)


def new_launch(module: Module, kernel: Kernel, path: str, run: Run) -> Template:
    """A launch file for an entry. path: of the module, from the file; run: runs a job.

    Several guesses are tried on one CTA or cluster until one runs without a trap.
    """
    plan = _Plan(module, kernel, path)
    first: tuple[_Guess, str] | None = None
    for rough in plan.guesses():
        extents = _Extents(plan.pointers)
        problem = plan.problem(rough, run, [extents])
        if problem:
            first = first or (rough, problem)
            continue
        unknown = prod(rough.block)
        sizes = {n: extents.reach[n] or unknown * plan.element(n).bytes for n in plan.pointers}
        for guess in (replace(rough, sizes=sizes, plain=False), replace(rough, sizes=sizes), rough):
            if not plan.problem(guess, run):
                return Template(plan.text(guess), "")
    assert first is not None
    return Template(plan.text(*first), first[1])


class _Plan:
    def __init__(self, module: Module, kernel: Kernel, path: str) -> None:
        self._kernel, self._path = kernel, path
        self._roles = roles_of(module, kernel.name)
        bounds = kernel.bounds
        given = bounds.reqntid or bounds.maxntid
        self._blocks = [given] if given else [(threads, 1, 1) for threads in _THREADS]
        self._cluster = bounds.cluster or (1, 1, 1)
        self._shared = [0]
        if any(v.space == "shared" and v.linkage == "extern" for v in module.variables):
            limits = limits_of(default_device(module.target))
            self._shared = sorted({limits.shared_default, limits.shared_cta} if limits else self._shared)
        self.pointers = {n: p for n, p in enumerate(kernel.parameters) if p.pointer and self._roles[n].pointer}
        self._maps = {n: p for n, p in enumerate(kernel.parameters)
                      if p.array and p.size == _MAP_BYTES and self._roles[n].dims}  # fmt: skip
        self._names = _names(kernel)

    def guesses(self) -> Iterator[_Guess]:
        """In the order in which they are tried."""
        for block in self._blocks:
            for shared in self._shared:
                for number in dict.fromkeys((prod(block), 32, 1, 0)):
                    yield _Guess(block, shared, number)

    def problem(self, guess: _Guess, run: Run, observers: list[object] | None = None) -> str:
        """Why a run with these values fails, or ""."""
        job = parse_launch_file(self.text(guess).encode(), "<new>")
        job.limits.max_instructions = _MOST
        job.device.observers = observers or ()
        try:
            run(job)
        except (LaunchError, Trap, SpecError) as error:
            return str(error).splitlines()[0]
        return ""

    def element(self, number: int) -> ElementType:
        """What accesses through a parameter say about the elements behind it."""
        return _element(self._roles[number])

    # --- the file -----------------------------------------------------------------------------------------------------

    def text(self, guess: _Guess, problem: str = "") -> str:
        blocks = [self._head(problem), self._shape(guess), self._arguments(guess)]
        blocks += [self._buffer(n, guess) for n in self.pointers]
        blocks += [self._map(n) for n in self._maps]
        return "\n".join("".join(f"{line}\n" for line in block) for block in blocks)

    def _head(self, problem: str) -> list[str]:
        lines = [f"# A launch of {shown(self._kernel.name)}: ptx-run --launch THIS_FILE"]
        if problem:
            return [*lines, "# The values are guesses, and with them the run fails:", f"#     {problem}"]
        return [*lines, "# The values are guesses with which the kernel runs; set the ones that you mean."]

    def _shape(self, guess: _Guess) -> list[str]:
        bounds = self._kernel.bounds
        rows = [
            (f"module  = {_quoted(self._path)}", ""),
            (f"kernel  = {_quoted(self._kernel.name)}", ""),
            (f"grid    = {_listed(self._cluster)}", "CTAs"),
            (f"block   = {_listed(guess.block)}", "threads of a CTA" + _bound(bounds.reqntid, bounds.maxntid)),
        ]
        if bounds.cluster:
            rows.append((f"cluster = {_listed(self._cluster)}", "CTAs of a cluster, as the kernel demands"))
        dynamic = "dynamic shared memory of a CTA, in bytes"
        rows.append((f"shared  = {guess.shared}", dynamic) if guess.shared else ("# shared  = 0", dynamic))
        rows += [
            ('# device  = "sm_90a"', "the simulated device; default: the module's target"),
            ('# check   = "memcheck,racecheck"', "run-time checkers, or all"),
            ("# timeout = 60", "seconds"),
        ]
        return [text for text, _ in rows[:2]] + list(_aligned(rows[2:]))

    def _arguments(self, guess: _Guess) -> list[str]:
        rows = []
        for number, parameter in enumerate(self._kernel.parameters):
            rows.append((f"    {self._argument(number, parameter, guess)},", f"{number}: {parameter}"))
        return ["args = [", *_aligned(rows), "]"] if rows else ["args = []"]

    def _argument(self, number: int, parameter: Parameter, guess: _Guess) -> str:
        name = _quoted(self._names[number])
        if number in self.pointers:
            return f"{{buffer={name}}}"
        if number in self._maps:
            return f"{{tensormap={name}}}"
        if parameter.array or (parameter.type not in ELEMENTS and not parameter.type.startswith("b")):
            return f'{{bytes="{"00" * parameter.size}"}}'
        value = 1.0 if parameter.type.startswith("f") else min(guess.number, (1 << 8 * parameter.size - 1) - 1)
        return f"{{value={value}}}"

    def _buffer(self, number: int, guess: _Guess) -> list[str]:
        role, name, element = self._roles[number], self._names[number], self.element(number)
        count = -(-guess.sizes.get(number, _ROOMY) // element.bytes)
        shape = f"{element.name}[{count}]"
        uses = " and ".join(word for word, used in (("read", role.reads), ("written", role.writes)) if used)
        what = f"# {uses or 'not accessed directly'}; also file, zeros, fill, arange, random"
        lines = [f"[buffers.{name}]", what, _content(role, element, shape, number, guess.plain)]
        if role.writes or not role.reads:
            lines += [f'# expect = "{name}.npy"', "# rtol   = 0.0", f'# save   = "{name}.out.npy"']
        return lines

    def _map(self, number: int) -> list[str]:
        name, dims = self._names[number], self._roles[number].dims
        sizes = [_MAP_BOX] * dims
        strides = [2 * _MAP_BOX**n for n in range(1, dims)]
        return [
            f"[buffers.{name}]", f'zeros = "f16[{_MAP_BOX**dims}]"', "",
            f"[tensormaps.{name}]", "# innermost dimension first; strides in bytes, of dimension 1 and up",
            f'buffer  = "{name}"', 'type    = "f16"', f"shape   = {_listed(sizes)}", f"strides = {_listed(strides)}",
            f"box     = {_listed(sizes)}", '# swizzle = "128B"',
        ]  # fmt: skip


def _names(kernel: Kernel) -> list[str]:
    """A name for each parameter that is a bare key of TOML: its own, without the kernel's in front."""
    found: list[str] = []
    for number, parameter in enumerate(kernel.parameters):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", parameter.name.removeprefix(f"{kernel.name}_"))
        found.append(name if name and name not in found else f"argument_{number}")
    return found


def _element(role: Role) -> ElementType:
    names = [_stored(name) for name in role.types]
    known = [name for name in names if name in ELEMENTS]
    floats = [name for name in known if ELEMENTS[name].kind == "f"]
    return ELEMENTS[(floats or known or ["u8"])[0]]


def _stored(name: str) -> str:
    """The element type for a type of accesses: of `.b32` the unsigned integer; half2 and the like by their halves."""
    if name.startswith("b") and name[1:].isdigit():
        return f"u{min(TYPES[name].bits, 64)}"
    return name.removesuffix("x2")


def _content(role: Role, element: ElementType, shape: str, seed: int, plain: bool) -> str:
    if plain or not role.reads:
        return f'zeros  = "{shape}"'
    if element.kind == "f":
        return f'random = {{type="{shape}", seed={seed}}}'
    return f'arange = "{shape}"'


def _bound(required: object, most: object) -> str:
    return ", as the kernel demands" if required else ": the most that the kernel allows" if most else ""


def _aligned(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Lines with their comments below one another."""
    wide = max(len(text) for text, _ in rows)
    for text, comment in rows:
        yield f"{text:<{wide}}  # {comment}" if comment else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(values: Any) -> str:
    return f"[{', '.join(map(str, values))}]"
