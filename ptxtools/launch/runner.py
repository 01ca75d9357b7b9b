"""Run a job: upload buffers, launch in order, download buffers, check expectations, save, summarise."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, Trap, TrapKind, shown
from ptxtools.diagnostics.comments import idle_for_checkers
from ptxtools.files.reading import read_all
from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, values_of
from ptxtools.records import dataclass, field, replace
from ptxtools.sim.arena import OutOfMemory
from ptxtools.sim.device import Device, Request, RunResult
from ptxtools.sim.kernel import Kernel
from ptxtools.sim.loadable import Loadable
from ptxtools.sim.silenced import heard

from .arguments import (
    Argument,
    MulticastArgument,
    Null,
    Raw,
    Scalar,
    TensorMapArgument,
    TextureArgument,
    read_array,
)
from .bind import check_count, describe, number_bytes, parameter_block, pointer_bytes, raw_bytes
from .compare import Mismatch, Tolerance, bytes_as, check_comparable, compare, same_bytes, summary
from .elements import ELEMENTS, ElementType
from .errors import SpecError, nearest
from .job import REFUSED, BufferPlan, GlobalPlan, Job, LaunchPlan
from .output import save_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ptxtools.diagnostics.findings import Exploration, Finding, Verdict
    from ptxtools.diagnostics.suppressions import Suppressions
    from ptxtools.sim.multimem import Multicast

    Array = NDArray[Any]

#: Lines of output examined for a difference report.
_DIFF_LINES = 40
Loader = Callable[[str], Loadable]


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer after a run: its name in messages, device address, content, and the type of its elements."""

    label: str
    address: int
    array: Array
    element: ElementType


@dataclass(slots=True)
class Report:
    """The result of a job. failures: expectations not met, each a list of lines; summaries: of the buffers that kernels
    wrote; pieces: the kernels' output, call by call; failure: the expected trap, refusal or finding that
    occurred; findings: what checkers reported; memory: the buffers by name, if they are kept; notes: what a file of
    known reports has silenced, and what of it describes none."""

    failures: list[list[str]] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    results: list[RunResult] = field(default_factory=list)
    failure: LaunchError | Trap | Finding | None = None
    findings: list[Finding] = field(default_factory=list)
    memory: dict[str, Memory] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict | None:
        """That of racecheck on all launches."""
        if all(result.verdict is None for result in self.results):
            return None
        from ptxtools.diagnostics.findings import Verdict

        return Verdict.joined([result.verdict for result in self.results])

    @property
    def explored(self) -> Exploration | None:
        """What other schedules of the launches have shown, where they were asked for."""
        found = [result.explored for result in self.results if result.explored is not None]
        return type(found[0]).joined(found) if found else None

    @property
    def printed(self) -> bytes:
        """The kernels' output, byte for byte."""
        return "".join(self.pieces).encode("utf-8", "surrogateescape")

    @property
    def passed(self) -> bool:
        return not self.failures


class _Buffer:
    """A buffer on the device, and its initial content."""

    def __init__(self, plan: BufferPlan, device: Device) -> None:
        self.plan = plan
        self._arena = device.arena
        self.zero = zero = plan.content.kind == "zeros"
        size = plan.content.bytes
        try:  # refused before the host allocates it, if it does not fit the device
            place = None if size is None else self._arena.allocate(size, zero=zero)
            self.initial: Array = plan.content.array()
        except OutOfMemory as error:
            raise OutOfMemory(f"{plan.label}: {error}") from None
        except MemoryError:
            raise LaunchError(f"{plan.label}: out of memory for {size or 0:,} bytes") from None
        self.element: ElementType = plan.content.element_for(self.initial)
        self.expected = _expected_array(plan.expect, self.initial.dtype, self.element)
        self.size = self.initial.nbytes
        self.address = (place or self._arena.allocate(self.size)).address
        if not zero and self.size:
            self._arena.view(self.address, self.size)[:] = self.initial.reshape(-1).view("u1").data

    def array(self) -> Array:
        """The buffer's device memory as an array."""
        import numpy as np

        data = self._arena.view(self.address, self.size)
        return np.frombuffer(data, dtype=self.initial.dtype).reshape(self.initial.shape)


def _expected_array(path: str, got: np.dtype[Any] | None, element: ElementType) -> Array | None:
    """The array of an expectation, or None without one; raises `SpecError` if it cannot be compared with a buffer.
    got None: with an array of its own type."""
    if not path:
        return None
    expected = read_array(path)
    try:
        check_comparable(got or expected.dtype, element, expected.dtype)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None
    return expected


def run_job(job: Job, load: Loader, *, keep: bool = False) -> Report:
    """Run a job to completion.

    load: the module of a path; keep: the report holds the buffers. Raises `SpecError`, `PtxError`, and, unless the job
    expects them, `LaunchError` and `Trap`.
    """
    report = Report()
    runner = _Runner(job, load, report)
    if not job.expect_failure:
        runner.run()
        runner.check()
        if keep:
            report.memory = runner.memory()
        return report
    try:
        runner.run()
    except (LaunchError, Trap) as error:
        if not _meets(error, job.expect_failure):
            raise
        report.failure = error
        if isinstance(error, Trap):
            from .checked import reported

            report.findings = reported(error)
        return report
    report.findings = runner.findings()
    wanted = job.expect_failure
    report.failure = next(
        (f for f in report.findings if any(TrapKind(checker).meets(wanted) for checker in f.checkers)), None
    )
    if report.failure is not None:
        return report
    others = ", ".join(sorted({str(checker) for f in report.findings for checker in f.checkers}))
    but = f"only {others} had reports" if others else "it succeeded"
    report.failures.append([f"expected the run to fail ({job.expect_failure}), but {but}"])
    return report


def _suppressions(file: str | Suppressions) -> str | Suppressions:
    """What the job's file of known reports says. Raises `SpecError`."""
    if not file or not isinstance(file, str):
        return file
    from ptxtools.diagnostics.suppressions import read_suppressions

    try:
        return read_suppressions(file)
    except LaunchError as error:
        raise SpecError(str(error)) from None


def _meets(error: LaunchError | Trap, expected: str) -> bool:
    """Whether a failure is of the expected kind."""
    if isinstance(error, LaunchError):
        return expected == REFUSED
    return error.kind.meets(expected)


class _Runner:
    def __init__(self, job: Job, load: Loader, report: Report) -> None:
        self._job, self._load, self._report = job, load, report
        self._modules: dict[str, Loadable] = {}
        self._kernels: dict[tuple[str, str], Kernel] = {}
        self._buffers: dict[str, _Buffer] = {}
        self._textures: dict[str, int] = {}
        self._multicasts: dict[str, Multicast] = {}
        self._tensormaps: dict[str, bytes] = {}
        self._globals: list[tuple[GlobalPlan, Array | None]] = []

    def run(self) -> None:
        job = self._job
        for plan in job.launches:
            self._module(plan.module)
        kernels = [self._kernel(plan) for plan in job.launches]
        own = {"on_print": self._printed, "suppressions": _suppressions(job.device.suppressions)}
        self._device = Device(**(values_of(job.device, DeviceOptions) | own))
        for path in self._modules:
            self._device.load(self._modules[path])
        self._set_globals()
        for plan, kernel in zip(job.launches, kernels, strict=True):
            check_count(kernel, len(plan.args), self._modules[plan.module].contents.kernels.values())
        self._buffers = {name: _Buffer(plan, self._device) for name, plan in job.buffers.items()}
        self._make_tensormaps()
        self._make_textures()
        for name, buffers in job.multicasts.items():
            parts = [(self._buffers[buffer].address, self._buffers[buffer].size) for buffer in buffers]
            self._multicasts[name] = self._device.runtime.multicasts.add(parts)
        self._device.sources = {one.address: one.initial for one in self._buffers.values() if not one.zero}
        limits = job.limits
        end = None if limits.timeout is None else time.monotonic() + limits.timeout
        for plan, kernel in zip(job.launches, kernels, strict=True):
            left = None if end is None else max(end - time.monotonic(), 1e-3)
            self._launch(plan, kernel, replace(limits, timeout=left))

    def _module(self, path: str) -> Loadable:
        if path not in self._modules:
            self._modules[path] = self._load(path)
        return self._modules[path]

    def _kernel(self, plan: LaunchPlan) -> Kernel:
        return find_kernel(self._modules[plan.module], plan.kernel, plan.module)

    def _launch(self, plan: LaunchPlan, kernel: Kernel, limits: RunOptions) -> None:
        values = [self._value(n, argument, kernel) for n, argument in enumerate(plan.args)]
        block = plan.block or kernel.bounds.reqntid
        if block is None:
            raise SpecError(
                f"{plan.module}: kernel {shown(kernel.name)} needs a block shape: specify the threads of a CTA"
            )
        request = Request(
            kernel=kernel, params=parameter_block(kernel, values),
            **(values_of(plan, LaunchOptions) | values_of(limits, RunOptions) | {"block": block}),
        )  # fmt: skip
        result = self._device.run(self._modules[plan.module], request)
        self._report.results.append(result)

    def _printed(self, text: str) -> None:
        self._report.pieces.append(text)
        if self._job.device.on_print is not None:
            self._job.device.on_print(text)

    def _value(self, index: int, argument: Argument, kernel: Kernel) -> bytes:
        parameter = kernel.parameters[index]
        if isinstance(argument, Scalar):
            return number_bytes(argument.value, index, parameter, argument.type)
        if isinstance(argument, Raw):
            return raw_bytes(argument.data, index, parameter)
        if isinstance(argument, Null):
            return pointer_bytes(0, index, parameter)
        if isinstance(argument, TensorMapArgument):
            return raw_bytes(self._tensormaps[argument.name], index, parameter)
        if isinstance(argument, MulticastArgument):
            made = self._multicasts[argument.name]
            if not 0 <= argument.offset <= made.size:
                raise LaunchError(f"{describe(index, parameter)}: offset {argument.offset} is outside the object")
            return pointer_bytes(made.address + argument.offset, index, parameter)
        if isinstance(argument, TextureArgument):
            return pointer_bytes(self._textures[argument.name], index, parameter)
        buffer = self._buffers[argument.name]
        if not 0 <= argument.offset <= buffer.size:
            raise LaunchError(f"{describe(index, parameter)}: offset {argument.offset} is outside {buffer.plan.label}")
        return pointer_bytes(buffer.address + argument.offset, index, parameter)

    def _make_tensormaps(self) -> None:
        if not self._job.tensormaps:
            return
        from .tensormaps import tensor_map

        for plan in self._job.tensormaps.values():
            address = self._buffers[plan.buffer].address + plan.offset
            try:
                self._tensormaps[plan.name] = tensor_map(address, **plan.fields)
            except LaunchError as error:
                raise LaunchError(f"tensor map '{plan.name}': {error}") from None

    def _make_textures(self) -> None:
        """Textures by name; one that is called like a .texref or .surfref variable is bound to it."""
        if not self._job.textures:
            return
        from ptxtools.sim.textures.making import make

        from .textures import complete

        for plan in self._job.textures.values():
            buffer = self._buffers[plan.buffer]
            fields = complete(plan, buffer.initial, buffer.element.name)
            try:
                texture = make(plan.kind, buffer.address, buffer.size, **fields)
            except LaunchError as error:
                raise LaunchError(f"texture '{plan.name}': {error}") from None
            handle = self._textures[plan.name] = self._device.runtime.textures.add(texture)
            for module in self._modules.values():
                image = self._device.load(module)
                if plan.name in image.variables and image.variables[plan.name].type in ("texref", "surfref"):
                    self._device.arena.view(image.addresses[plan.name], 8)[:] = handle.to_bytes(8, "little")

    # --- module variables ---------------------------------------------------------------------------------------------

    def _variable(self, name: str) -> tuple[int, int]:
        """Device address and bytes of a module variable."""
        known: list[str] = []
        for module in self._modules.values():
            image = self._device.load(module)
            if name in image.variables:
                return image.addresses[name], image.variables[name].size
            known += image.variables
        raise SpecError(f"the module has no variable '{name}'{nearest(name, known)}")

    def _set_globals(self) -> None:
        for plan in self._job.globals:
            address, size = self._variable(plan.name)
            if plan.file:
                array = read_array(plan.file)
                if array.nbytes != size:
                    raise SpecError(f"{plan.file}: has {array.nbytes} bytes; variable '{plan.name}' has {size}")
                self._device.arena.view(address, size)[:] = array.tobytes()
            self._globals.append((plan, _expected_array(plan.expect, None, ELEMENTS["u8"])))

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare, save and summarise. A save happens whether or not expectations are met."""
        self._report.findings = self.findings()
        self._note_silenced()
        for finding in self._report.findings:
            self._report.failures.append([line.removeprefix("    ") for line in str(finding).splitlines()])
        for buffer in self._buffers.values():
            self._finish(buffer, not self._job.has_outputs)
        for plan, expected in self._globals:
            if expected is not None:
                address, size = self._variable(plan.name)
                if expected.nbytes != size:
                    differs = f"variable '{plan.name}' differs from {plan.expect}"
                    sizes = f"expected {expected.nbytes} bytes, but it has {size}"
                    self._report.failures.append([f"{differs}: {sizes}"])
                    continue
                got, element = bytes_as(bytes(self._device.arena.view(address, size)), expected)
                self._expect(got, element, expected, Tolerance(), f"variable '{plan.name}'", plan.expect)
        if self._job.expect_printed:
            self._check_printed(self._job.expect_printed)

    def memory(self) -> dict[str, Memory]:
        """Copies of the buffers."""
        return {name: Memory(b.plan.label, b.address, b.array().copy(), b.element) for name, b in self._buffers.items()}

    def findings(self) -> list[Finding]:
        """What checkers found in all launches; blocks of the heap count as leaked that are in use in the end."""
        found = [f for result in self._report.results for f in result.reports]
        if TrapKind.LEAKCHECK not in self._device.checks:
            return found
        from ptxtools.observe.leakcheck import NEVER_FREED, leaks

        in_use = leaks(self._device)
        for module in self._modules.values() if in_use else ():
            in_use = heard(self._device, in_use, module.source())[0]
        return [f for f in found if f.kind != NEVER_FREED] + in_use

    def _note_silenced(self) -> None:
        """Comments that silence nothing; how much the file of known reports has silenced, and what of it describes
        none."""
        for source in (
            filter(None, [module.source() for module in self._modules.values()]) if self._device.checks else ()
        ):
            for (start, _), why in idle_for_checkers(source):
                place = ":".join(map(str, (source.name_of(start), *source.position(start))))
                self._report.notes.append(f"{place}: this comment silences nothing: {why}")
        known = self._device.suppressions
        if known is None:
            return
        count = sum(len(result.silenced) for result in self._report.results)
        if count:
            self._report.notes.append(f"{known.name}: {count:,} report{'s' * (count > 1)} silenced")
        self._report.notes += known.unused(self._device.checks)

    def _finish(self, buffer: _Buffer, summarise: bool) -> None:
        plan, array = buffer.plan, buffer.array()
        if buffer.expected is not None:
            self._expect(array, buffer.element, buffer.expected, plan.tolerance, plan.label, plan.expect)
        if plan.save:
            save_array(plan.save, array)
        if summarise and not same_bytes(array, buffer.initial):
            self._report.summaries.append(f"{plan.label}: {summary(array, buffer.element)}")

    def _expect(
        self, got: Array, element: ElementType, expected: Array, tolerance: Tolerance, label: str, path: str
    ) -> None:
        try:
            found = compare(got, element, expected, tolerance)
        except SpecError as error:
            self._report.failures.append([f"{label} differs from {path}: {error}"])
            return
        if found is not None:
            self._report.failures.append(_differs(found, tolerance, label, path))

    def _check_printed(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                expected = read_all(file)
        except OSError as error:
            raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
        got = self._report.printed
        if expected != got:
            self._report.failures.append([f"the kernel's output differs from {path}", *text_difference(expected, got)])


def _differs(found: Mismatch, tolerance: Tolerance, label: str, path: str) -> list[str]:
    head = f"{label} differs from {path}: {found.wrong} of {found.total} elements are not equal {tolerance}"
    return [head, *found.lines()]


def text_difference(expected: bytes, got: bytes) -> list[str]:
    """The first lines that differ. Only part of the output is examined, since a full comparison takes quadratic
    time."""
    from difflib import unified_diff

    parts = [text.decode("utf-8", "backslashreplace").splitlines() for text in (expected, got)]
    same = next((n for n, (a, b) in enumerate(zip(*parts, strict=False)) if a != b), min(map(len, parts)))
    start = max(same - 1, 0)
    old, new = (part[start : start + _DIFF_LINES] for part in parts)
    lines = list(unified_diff(old, new, "expected", "got", n=1, lineterm=""))[2:]
    if not lines:
        return ["only the line endings differ"]
    return [f"from line {start + 1} on:", *lines[1:12]]


def find_kernel(module: Loadable, name: str, path: str) -> Kernel:
    """The entry matching `name` (`find_name`), or the only one; raises `SpecError`, which lists the entries."""
    entries = module.contents.kernels
    if name in entries:
        return entries[name]
    if not name and len(entries) == 1:
        return next(iter(entries.values()))
    if not entries:
        raise SpecError(f"{path}: there is no kernel (.entry) in the module")
    from .kernels import KernelNameError, find_name, listed

    if name:
        try:
            return entries[find_name(name, entries)]
        except KernelNameError as error:
            raise SpecError(f"{path}: {error}") from None
    raise SpecError(f"{path}: there are {len(entries)} kernels; name one with -k: {listed(entries)}")


__all__ = ["ELEMENTS", "Report", "find_kernel", "run_job"]
