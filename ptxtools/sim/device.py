"""A simulated device: its memory, the modules loaded into it, and launches on it."""

from __future__ import annotations

import os
import time
import weakref
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Cause, LaunchError, PtxError, Trap
from ptxtools.isa.targets import chip_of
from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, check_options, parse_checks, takes
from ptxtools.machine.providers import engines
from ptxtools.program.variant import Variant
from ptxtools.records import dataclass, replace

from . import services
from .again import Again, Ended
from .arena import DEFAULT_BYTES, Allocation, Arena
from .heap import DEFAULT_HEAP
from .image import Image
from .kernel import Dim3, Kernel
from .limits import LIMITS, OLDEST_DEFAULT, DeviceLimits, default_device, l2_bytes, limits_of, why_none
from .loadable import Loadable
from .residency import ctas_per_sm, resident_ctas
from .result import RunResult
from .runtime import Runtime
from .shape import check_block, check_grid, check_parameters, check_shared, check_stack, cluster_shape, shared_hint
from .silenced import known_reports
from .traps import locate

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from ptxtools.isa.chips import Chip
    from ptxtools.machine.guides import Guide
    from ptxtools.machine.launch import AddressSpace, Launch
    from ptxtools.machine.observers import Listeners
    from ptxtools.program.program import Program

    from .context import LaunchContext
    from .ctamemory import CtaMemory
    from .hostmap import HostMap
    from .keeping import Before, Keeper
    from .trial import How, Ways

#: Bytes of a thread's stack for recursion and indirect calls; frames of known size do not count.
DEFAULT_STACK = 8192


#: Size of the words by which the CTAs of a cooperative grid wait for each other: their size, and one that counts.
_WORKSPACE_BYTES = 8


@dataclass(slots=True, kw_only=True)
class Request(RunOptions, LaunchOptions):
    """A requested launch. params: the parameter block."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    cluster: Dim3 | None = None
    params: bytes = b""


@dataclass(slots=True)
class Plan:
    """What launches of one kernel in one shape have in common. resident: CTAs of the grid that the device holds at a
    time; specials: special registers that hold for such launches; prints: whether the kernel may print; ways: those of
    running them under observers, once one has been."""

    image: Image
    program: Program
    cluster: Dim3
    resident: int
    specials: dict[str, int]
    numerics: str
    prints: bool
    ways: Ways | None = None


#: Plans that a device keeps.
_PLANS = 256


@dataclass(slots=True)
class Grid:
    """A grid that is about to run, as observers of the package see it. trial, again, shared: `trial.How`."""

    image: Image
    program: Program
    request: Request
    context: LaunchContext
    trial: int = 0
    again: bool = False
    shared: bool = False


class Device:
    """`sms` SMs of one architecture, and one device memory.

    The arguments are those of `DeviceOptions`. Raises `LaunchError` for invalid values.
    """

    #: Whether device addresses are host addresses.
    host_addresses = False
    #: Whether weak memory may follow an execution of the model (`guiding`), and the one that the last grid followed.
    guided = True
    guide: Guide | None = None

    @takes(DeviceOptions)
    def __init__(self, options: DeviceOptions) -> None:
        known = engines.names()
        if options.engine not in known:
            raise LaunchError(f"there is no engine '{options.engine}'; there are {' and '.join(known)}")
        check_options(options, DeviceOptions)
        self.options = options
        self.sms, self.engine, self.seed, self.numerics = options.sms, options.engine, options.seed, options.numerics
        self.weak = options.memory_model == "weak"
        if self.weak:  # which only this engine has
            self.engine, self.seed = "reference", options.seed or 0
        most = DEFAULT_BYTES if options.memory is None else options.memory
        if options.heap is not None and not 0 <= options.heap <= most:
            raise LaunchError(f"a heap of {options.heap:,} bytes does not fit: device memory has {most:,}")
        self.heap_bytes = DEFAULT_HEAP if options.heap is None else options.heap
        self.stack = DEFAULT_STACK if options.stack is None else options.stack
        self.on_print = options.on_print
        self.checks, self.check_stop = parse_checks(options.checks), bool(options.check_stop)
        self.suppressions = known_reports(options.suppressions)
        self.late = self.seed is not None or "asynccheck" in self.checks
        self.observers, self.optimise = tuple(options.observers), bool(options.optimise)
        self._interrupted = False  # whether observers are told of what happens to warps
        self._events = self._listened_to()
        # Events come one after another, in the same order each time. The reference engine has one worker.
        one = self.seed is not None or self.engine == "reference"
        #: Workers that share a grid: also one that is observed, as far as observers let them (`trial`).
        self.workers = 1 if one else options.threads or len(os.sched_getaffinity(0))
        self.threads = 1 if self.late or self._interrupted else self.workers
        self._threads_chosen = options.threads is not None
        self.runtime = Runtime(self)
        self._arena: Arena | None = None
        self._images: dict[int, tuple[Loadable, Image]] = {}  # by identity; the module stays alive with its image
        self._programs: dict[tuple[int, str, Hashable, int], Program] = {}
        self._plans: dict[Hashable, Plan] = {}
        self.again = Again()
        self.launches = 0
        #: Arrays of the host with what lies at addresses of the device, which nobody changes while the next grid runs.
        self.sources: dict[int, Any] = {}
        self._workspace: Allocation | None = None  # of cooperative grids
        self.target = ""
        self.chip: Chip | None = None  # while there is no target
        self.limits: DeviceLimits = LIMITS[OLDEST_DEFAULT]
        if options.target is not None:
            self._become(options.target)
        check_stack(self.stack, self.limits)

    @property
    def observed(self) -> bool:
        """Whether anything is told of what kernels do, or of their grids."""
        return bool(self._events) or bool(self.observers) or self.options.on_grid is not None

    def _listened_to(self) -> frozenset[str]:
        """The events that observers listen to."""
        if not self.checks and not self.observers:
            return frozenset()
        from ptxtools.machine import observers

        events = observers.events_of(self.checks, self.observers)
        self._interrupted = not events <= observers.GRIDS
        return events

    def _become(self, target: str) -> None:
        limits = limits_of(target)
        if limits is None:
            raise LaunchError(why_none(target))
        self.target, self.limits, self.chip = target, limits, chip_of(target)

    @property
    def arena(self) -> Arena:
        """Device memory, reserved on first use."""
        if self._arena is None:
            checked = "memcheck" in self.checks
            self._arena = Arena(self.options.memory, host_addresses=self.host_addresses, checked=checked)
        return self._arena

    @contextmanager
    def watched(self, observer: object, programs: dict[tuple[int, str, Hashable, int], Program]) -> Iterator[None]:
        """One observer more for a while. programs: those for observers like this one, instead of the device's own."""
        kept = self.observers, self._events, self._interrupted, self.threads, self._programs
        self.observers, self._programs = (*self.observers, observer), programs
        self._events, self.threads = self._listened_to(), 1
        try:
            yield
        finally:
            self.observers, self._events, self._interrupted, self.threads, self._programs = kept

    # --- modules ------------------------------------------------------------------------------------------------------

    def load(self, module: Loadable) -> Image:
        """The module's image in device memory, created on first use. Raises `LaunchError` for another architecture."""
        known = self._images.get(id(module))
        if known is None:
            self._check_target(module.contents.target)
            known = self._images[id(module)] = (module, Image(module.contents, self.arena))
        return known[1]

    def _check_target(self, wanted: str) -> None:
        if not self.target:
            self._become(default_device(wanted))
        if not provides(self.target, wanted):
            raise LaunchError(f"the module is for {wanted}; a device of {self.target} cannot run it")

    def program(self, module: Loadable, kernel: Kernel, *, trial: int = 0, keeps: bool = False) -> Program:
        """The kernel lowered for this device, and cached; if `trial`, for a look of that kind (`trial`); keeps: with
        events for a `keeping.Keeper`. Raises `PtxError`."""
        key = (id(module), kernel.name, self._observed_state(), 2 * trial + keeps)
        program = self._programs.get(key)
        if program is None:
            program = self._lowered(module, kernel, trial, keeps)
            self._programs[key] = program
        return program

    def _observed_state(self) -> Hashable:
        """What the events in programs depend on, beside the programs."""
        if not self._events:
            return None
        from ptxtools.machine import observers

        return observers.state_of(self.checks, self)

    def _lowered(self, module: Loadable, kernel: Kernel, trial: int, keeps: bool) -> Program:
        image, events = self.load(module), self._events
        if trial:
            from ptxtools.machine.observers import events_of

            events = events_of(self.checks, (), trial=trial)
        oldest = self.chip is not None and self.chip.architecture == "tesla"
        variant = Variant(self.late, oldest, "memcheck" in self.checks, self.optimise)
        if not events:
            return module.lower(kernel.name, image, variant)
        from ptxtools.machine import observers, registers
        from ptxtools.program.passes.instrument import instrument

        late = not trial and (self.late or not observers.WORK.isdisjoint(events))
        variant = replace(
            variant, late=late, groups="grouped" in events, fences="fence" in events,
            lines=not observers.LINES.isdisjoint(events),
            apart_registers=not observers.REGISTERS.isdisjoint(events), counts=not observers.COUNTS.isdisjoint(events),
        )  # fmt: skip
        program = module.lower(kernel.name, image, variant)
        suspects = observers.suspects_of(observers.classes_of(self.checks), self, program)
        if suspects:
            program = replace(program, suspects=suspects, cache={})
        if variant.apart_registers and not observers.touches(events, program):
            variant = replace(variant, apart_registers=False)  # nothing to be told of any register
            program = module.lower(kernel.name, image, variant)
        if "measured" in events:
            from ptxtools.program.passes.measure import measure

            if variant.lines:  # whose registers are apart: what is measured is the residency of the kernel itself
                plain = module.lower(kernel.name, image, replace(variant, lines=False, counts=False))
                program = replace(program, registers=plain.registers)
            program = measure(program)
        told = [*observers.classes_of(self.checks, trial=trial), *self.observers]
        if keeps:
            from .keeping import Keeper

            told.append(Keeper)
        interests = observers.interests_of(told, program, self)
        program = instrument(program, interests.values())
        program.cache["concerned"] = {kind: interest.concerned for kind, interest in interests.items()}
        owner = weakref.ref(self)  # no cycle: programs know themselves, and would keep the device's memory

        def with_names() -> Program:
            device = owner()
            assert device is not None
            return module.lower(kernel.name, device.load(module), replace(variant, names=True))

        registers.provide(program, with_names)
        return program

    # --- launches -----------------------------------------------------------------------------------------------------

    def run(self, module: Loadable, request: Request, *, host: HostMap | None = None) -> RunResult:
        """Run one grid, and the child grids that it launches, to completion.

        host: opens the memory of this process to the kernel (`ptx_run`). Raises `LaunchError` before it starts, `Trap`
        if it fails.
        """
        check_options(request, LaunchOptions, RunOptions)
        if request.explore is not None:
            from .exploring import explored

            return explored(self, module, request, host)
        return self.run_once(module, request, host)

    def run_once(
        self, module: Loadable, request: Request, host: HostMap | None = None, context: LaunchContext | None = None
    ) -> RunResult:
        """The same, in one schedule."""
        context = context or self.runtime.context(module)
        result = self.grid(module, request, host, context)
        self.runtime.finish(module, request, host, context, result)
        return result

    def grid(self, module: Loadable, request: Request, host: HostMap | None, context: LaunchContext) -> RunResult:
        """Run one grid, without its children. context: that of its launch."""
        plan = self._plan(module, request)
        image, program = plan.image, plan.program
        sources, self.sources = self.sources, {}  # which have what is on the device until this grid runs
        specials = self._specials(plan, request)
        slices = self._cta_memory(request)
        if slices is not None:
            specials |= slices.specials
        memory = self.memory_for(image, host)
        try:
            if not self._events:
                return self._execute(module, program, request, plan, specials, memory, context, None, self.late)
            return self._observed_grid(module, request, host, context, plan, specials, memory, sources)
        finally:
            if slices is not None:
                self.arena.free(slices.address)

    def _observed_grid(
        self, module: Loadable, request: Request, host: HostMap | None, context: LaunchContext, plan: Plan,
        specials: dict[str, int], memory: AddressSpace, sources: dict[int, Any],
    ) -> RunResult:  # fmt: skip
        """Run a grid of which observers are told, in as many looks as they take. sources: as the device's."""
        from .trial import asynchronous, observed

        kernel, image, program = request.kernel, plan.image, plan.program

        def kind_of(trial: int) -> int:
            return trial if trial > 1 or (trial and asynchronous(program)) else 0

        def run(how: How | None = None) -> RunResult:
            if how is None:
                return self._execute(module, program, request, plan, specials, memory, context, None, self.late)
            at_once, kind = bool(how.trial) and asynchronous(program), kind_of(how.trial)
            keeps = how.keeper is not None
            new = kind or how.again or keeps
            chosen = self.program(module, kernel, trial=kind, keeps=keeps) if new else program
            grid = Grid(image, chosen, request, context, how.trial, how.again, how.shared)
            listeners = self._listeners(grid, memory, how.keeper)
            late = self.late and not at_once
            return self._execute(module, chosen, request, plan, specials, memory, context, listeners, late, how.shared)

        def keeper(trial: int, before: Before) -> Keeper | None:
            from .keeping import keeper_of

            chosen = self.program(module, kernel, trial=kind_of(trial), keeps=True)
            return keeper_of(self, chosen, request.params, before.sources)

        keeps = keeper if host is None else None
        return observed(self, plan, request, context, run, keeps, sources)

    def _plan(self, module: Loadable, request: Request) -> Plan:
        """What launches like this one have in common; kept, if no observer is the user's. Raises `LaunchError`."""
        key = (
            id(module), request.kernel.name, request.grid, request.block, request.cluster, request.shared,
            request.cooperative, self._stack(request), len(request.params),
            self._observed_state(),
        )  # fmt: skip
        plan = None if self.observers else self._plans.get(key)
        if plan is None:
            plan = self._planned(module, request)
            if not self.observers:
                if len(self._plans) >= _PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        return plan

    def _planned(self, module: Loadable, request: Request) -> Plan:
        kernel, bounds = request.kernel, request.kernel.bounds
        image = self.load(module)
        check_stack(self._stack(request), self.limits)
        check_grid(request.grid, self.limits)
        check_block(request.block, bounds, self.limits)
        cluster = cluster_shape(request.cluster, request.grid, bounds, self.limits)
        check_parameters(kernel, request.params, self.limits)
        program = self.program(module, kernel)
        check_shared(program.declared_shared, request.shared, self.limits)
        resident = self._residency(program, request, cluster)
        self.runtime.prepare(program)
        return Plan(
            image=image, program=program, cluster=cluster, resident=resident,
            specials=self._alike(program, request, bounds.cluster),
            numerics=self._numerics_of_chip(program) if self.numerics == "chip" else self.numerics,
            prints="vprintf" in self.runtime.calls(program),
        )  # fmt: skip

    def _stack(self, request: Request) -> int:
        """Bytes of a thread's stack."""
        return self.stack if request.stack is None else request.stack

    def _workers(self, plan: Plan) -> int:
        """Worker threads for a launch: one for a kernel that prints, unless more are requested, so that CTAs print in
        their order."""
        return 1 if plan.prints and not self._threads_chosen else self.threads

    def _residency(self, program: Program, request: Request, cluster: Dim3) -> int:
        """CTAs of the grid that the device holds at a time. A cooperative grid must be resident as a whole."""
        threads, size = prod(request.block), prod(cluster)
        registers = min(program.registers, request.kernel.bounds.registers or program.registers)
        per_sm = ctas_per_sm(threads, registers, program.declared_shared + request.shared, self.limits)
        resident = resident_ctas(per_sm, self.sms, size)
        if resident < size:
            raise LaunchError(
                f"a cluster of {size} CTAs of this kernel does not fit on {self.sms} SMs with {per_sm} CTAs each"
            )
        ctas = prod(request.grid)
        if request.cooperative and ctas > resident:
            raise LaunchError(
                f"a cooperative grid must be resident as a whole: {ctas} CTAs, but {self.sms} SMs of {self.target} "
                f"hold {resident} of this kernel ({per_sm} each)"
            )
        return min(resident, ctas)

    def _specials(self, plan: Plan, request: Request) -> dict[str, int]:
        """Special registers that hold for the whole launch (chapter 10)."""
        self.launches += 1
        workspace = self._grid_workspace() if request.cooperative else 0
        return {
            **plan.specials,
            "%envreg1": workspace >> 32,
            "%envreg2": workspace & 0xFFFF_FFFF,
            "%gridid": self.launches,
        }

    def _alike(self, program: Program, request: Request, required: Dim3 | None) -> dict[str, int]:
        """Those that are the same in all launches of one kernel in one shape."""
        total = program.declared_shared + request.shared
        return {
            "%nsmid": self.sms,
            "%nwarpid": self.limits.warps,
            "%is_explicit_cluster": int(bool(request.cluster or required)),
            "%dynamic_smem_size": request.shared,
            "%total_smem_size": -(-total // self.limits.shared_unit) * self.limits.shared_unit,
            "%aggr_smem_size": -(-(total + self.limits.shared_reserved) // self.limits.shared_unit)
            * self.limits.shared_unit,
            "%current_graph_exec": 0,
        }

    def _cta_memory(self, request: Request) -> CtaMemory | None:
        """Memory for each CTA, if the kernel asks for it (`.minperctamemory`)."""
        least = request.kernel.bounds.cta_memory
        if not least:
            return None
        from .ctamemory import cta_memory

        return cta_memory(self.arena, least, prod(request.grid))

    def _grid_workspace(self) -> int:
        """Address of the words by which the CTAs of a cooperative grid wait for each other, all zero: kernels of CUDA
        C++ (`grid.sync()`) find it in %envreg1 (upper half) and %envreg2."""
        if self._workspace is None:
            self._workspace = self.arena.allocate(_WORKSPACE_BYTES, zero=True)
        self.arena.clear(self._workspace.address, _WORKSPACE_BYTES)
        return self._workspace.address

    def memory_for(self, image: Image, host: HostMap | None) -> AddressSpace:
        arena = self.arena
        size = arena.end - arena.base
        space = image.space
        if space is None or space.size != size or host is not None or self._events:
            space = _parts()[0](arena.host, arena.base, size, image.const)
            if host is not None:
                space.open_host, space.readable, space.mapping = True, host.allows, host.range_of
            elif not self._events:  # of whom some want to know what is accessed
                image.space = space
        return space

    def _listeners(self, grid: Grid, memory: AddressSpace, keeper: Keeper | None) -> Listeners:
        """The observers of a grid, before which the keeper of what it writes is told."""
        from functools import partial

        from ptxtools.machine.observers import Listeners

        named = [observer for watch in grid.context.watches for observer in watch.begin(grid)]
        keepers = [] if keeper is None else [keeper]
        listeners = Listeners([*keepers, *named, *self.observers], shared=grid.shared)
        listeners.trial = grid.trial
        memory.written = partial(listeners.tell, "wrote_global") if listeners.hear("wrote_global") else None
        allows = listeners.of("allows")
        memory.allowed = (lambda address, size: all(one(address, size) for one in allows)) if allows else None
        return listeners

    def _explained(
        self, trap: Trap, module: Loadable, program: Program, request: Request, context: LaunchContext
    ) -> Trap:
        """The trap with its source lines, and with what was overwritten before it."""
        locate(trap, program, context.places)
        hint = shared_hint(program, request.shared)
        if hint and trap.cause is Cause.OUT_OF_BOUNDS and trap.space == "shared":
            trap.details += (hint,)
        trap.details += self.runtime.overwritten(module, request)
        return self.runtime.checked(trap)

    def _numerics_of_chip(self, program: Program) -> str:
        """The generation of the device's tensor cores; a device without them runs no program that needs it. Raises
        `LaunchError` for a product on a chip of which nobody has published how it adds."""
        from ptxtools.program.operations import multiplies
        from ptxtools.semantics.generations import UNKNOWN, generation_of

        assert self.chip is not None
        if self.chip.architecture in UNKNOWN and multiplies(program):
            raise LaunchError(
                f"the kernel multiplies matrices: how the tensor cores of {self.target} add is not published; "
                "--numerics ieee adds in plain IEEE arithmetic"
            )
        return generation_of(self.target) or "ieee"

    def _execute(
        self, module: Loadable, program: Program, request: Request, plan: Plan, specials: dict[str, int],
        memory: AddressSpace, context: LaunchContext, listeners: Listeners | None, late: bool, shared: bool = False,
    ) -> RunResult:  # fmt: skip
        started = time.monotonic()
        launch = _parts()[1](
            program=program, memory=memory, grid=request.grid, block=request.block, cluster=plan.cluster,
            dynamic_shared=request.shared, params=request.params, resident=plan.resident, sms=self.sms,
            threads=self.workers if shared else self._workers(plan), seed=self.seed, late=late, weak=self.weak,
            max_instructions=request.max_instructions,
            deadline=None if request.timeout is None else started + request.timeout,
            numerics=plan.numerics,
            tier=self.options.tier, local_bytes=local_bytes(program, self._stack(request)), specials=specials,
            services=services.load, device=self, observers=listeners, context=context,
        )  # fmt: skip
        if program.counters:
            from ptxtools.machine.launch import no_counts
            from ptxtools.machine.measures import Cache

            launch.counts = no_counts(program)
            if "measured" in self._events:
                launch.cache = Cache(l2_bytes(self.target))
        if self.weak and self.guided and listeners is None:
            from .guiding import guide_of

            launch.guide = self.guide = guide_of(self.seed or 0, module, request, plan, self.arena)
        result = self.execute(module, request, launch, context, started)
        if launch.kept is not None and not self.observed:
            self.again.keep(module, Ended(plan, request, launch, context))
        return result

    def execute(
        self, module: Loadable, request: Request, launch: Launch, context: LaunchContext, started: float
    ) -> RunResult:
        """Let the engine run a grid, and see whether it has written where nothing is. started: `time.monotonic`."""
        program, listeners = launch.program, launch.observers
        try:
            if self.options.on_grid is not None:
                self.options.on_grid(launch)
            if listeners is not None:
                listeners.tell("grid_begun", launch)
            outcome = engines.find(self.engine)(launch)
        except Trap as trap:
            try:
                trap = self._explained(trap, module, program, request, context)
            except KeyboardInterrupt as stop:
                raise stop from trap  # what is known so far
            if listeners is not None:
                for watch in context.watches if trap.kind.is_limit else ():
                    watch.shared = False  # it is not looked at again
                listeners.tell("trapped", trap)
            raise self.runtime.with_findings(trap, context) from None
        except KeyboardInterrupt as stop:
            if isinstance(stop.__cause__, Trap):
                locate(stop.__cause__, program, context.places)
            raise
        finally:
            if listeners is not None:
                if launch.counts is not None:
                    listeners.tell("counted", launch)
                    listeners.tell("measured", launch)
                listeners.tell("grid_ended", launch)
        found = self.runtime.overwritten(module, request)
        if found:
            more = (*found, "help: --check memcheck names the instruction and the thread")
            failure = Trap("memory outside of allocations was overwritten", kernel=program.kernel,
                           cause=Cause.OVERWRITTEN, details=more)  # fmt: skip
            raise self.runtime.with_findings(self.runtime.checked(failure), context)
        return RunResult(time.monotonic() - started, outcome.instructions)


@cache
def _parts() -> tuple[type[AddressSpace], type[Launch]]:
    """What a launch is made of; imported when the first one is."""
    from ptxtools.machine.launch import AddressSpace, Launch

    return AddressSpace, Launch


def provides(device: str, wanted: str) -> bool:
    """Whether a device runs modules of a target; modules of its own target it always runs."""
    if wanted in ("", device):
        return True
    from ptxtools.isa import targets

    try:
        return targets.provides(device, wanted.replace("compute_", "sm_"))
    except ValueError as error:
        raise LaunchError(str(error)) from None


def local_bytes(program: Program, stack: int) -> int:
    """Local memory of a thread: that of the longest chain of calls, and the stack beside it if the program takes some.

    Where recursion or indirect calls leave that open: a frame of every function, and the stack beside them.
    """
    if program.max_frames:
        return program.local_bytes + (stack if program.takes_stack else 0)
    return sum(-(-function.local_bytes // 16) * 16 for function in program.functions) + stack


__all__ = ["Device", "PtxError", "Request", "RunResult", "local_bytes"]
