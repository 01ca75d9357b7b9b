"""The library: load, check, assemble and run PTX. `ptxtools` re-exports all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import Diagnostic, LaunchError, PtxError, PtxWarning, Severity, Source
from ptxtools.diagnostics.kinds import CHECKERS, TrapKind
from ptxtools.machine.providers import engines, explorers, guides, observers
from ptxtools.records import replace

if TYPE_CHECKING:
    from ptxtools import ir
    from ptxtools.ir.origins import Origins
    from ptxtools.launch.host import Module
    from ptxtools.launch.job import Job
    from ptxtools.launch.runner import Report
    from ptxtools.machine.exploring import Frontier
    from ptxtools.machine.guides import Finder, Guide, PlainGrid
    from ptxtools.machine.observers import Maker
    from ptxtools.machine.providers import Engine
    from ptxtools.model.executions import Outcomes
    from ptxtools.nvvm.lowering import Lowering
    from ptxtools.sim.device import RunResult
    from ptxtools.sim.loadable import Loadable
    from ptxtools.sim.tree import TreeModule


@cache
def _native() -> Engine:
    from ptxtools.native import run

    return run


def _reference() -> Engine:
    from ptxtools.reference import run

    return run


engines.provide("native", _native)
engines.provide("reference", _reference)


def _maker(name: str) -> Callable[[], Maker]:
    def load() -> Maker:
        from ptxtools.observe import maker_of

        return maker_of(name)

    return load


def _orders() -> Frontier:
    from ptxtools.observe.explorer import Schedules

    return Schedules()


explorers.provide("orders", _orders)


def _executions() -> Finder:
    return _guides


def _guides(plain: PlainGrid) -> Sequence[Guide]:
    """What the memory model allows of a launch."""
    from .model.guides import Place
    from .model.guides import guides as found
    from .model.kernels import Array, Launch, kernel_named
    from .model.programs import Type

    arrays = {name: Array(Type("b", 8), data) for name, _, data in plain.buffers}
    places = {name: Place(address, data) for name, address, data in (*plain.buffers, *plain.variables)}
    launch = Launch(plain.grid, plain.block, plain.arguments, arrays, None, plain.cluster, plain.shared,
                    tensors=_tensor_maps, products=_matrices)  # fmt: skip
    return found(plain.module, kernel_named(plain.module, plain.kernel), launch, places)


guides.provide("executions", _executions)

for _name in sorted(CHECKERS, key=lambda name: name is TrapKind.LEAKCHECK):  # leaks are told last
    observers.provide(_name, _maker(_name))


#: How PTX text and containers begin, and NVVM IR does not: so that nothing else is loaded to tell them apart.
_NO_NVVM = (".", "/", b".", b"/", b"\x7f")


def _readable(data: Any, what: str) -> str | bytes:
    """Text or bytes as they are, other buffers as bytes; raises TypeError for the rest."""
    from ptxtools.launch.errors import demand

    demand(data, (str, bytes, bytearray, memoryview), what, "text or bytes")
    return data if isinstance(data, (str, bytes)) else bytes(data)


# --- modules ----------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, lowering: Lowering | None = None) -> Module:
    """Load a module from a file: PTX text, a container, or NVVM IR. Raises `PtxError`, `OSError`.

    lowering: how NVVM IR becomes PTX (`ptxtools.nvvm.Lowering`).
    """
    name = os.fsdecode(path)
    from ptxtools.files.reading import read_all

    with open(name, "rb") as file:
        return loads(read_all(file), name, lowering=lowering)


def loads(data: str | bytes, name: str = "<memory>", *, lowering: Lowering | None = None) -> Module:
    """Load and check a module from text or bytes; findings show `name` as the file. Raises `PtxError`. lowering: as of
    `load`."""
    from ptxtools.launch.host import Module

    data, name = _as_ptx(_readable(data, "the argument of loads"), name, lowering)
    module = Module(read_module(data, name))
    module.loadable = _checked_before_use(module.loadable, data)
    return module


def is_nvvm(data: str | bytes) -> bool:
    """Whether these are NVVM IR, as text or bitcode."""
    if data[:256].lstrip()[:1] in _NO_NVVM:
        return False
    from ptxtools.inputs import detect
    from ptxtools.inputs.detection import is_assembly

    return is_assembly(data) if isinstance(data, str) else detect(data) in ("ll", "bc")


def _as_ptx(data: str | bytes, name: str, how: Lowering | None = None,
            target: str | None = None) -> tuple[str | bytes, str]:  # fmt: skip
    """NVVM IR as PTX text, whose name says for which target it was made; anything else as it is. target: of the device,
    where `how` names none. Raises `PtxError`."""
    if not is_nvvm(data):
        return data, name
    from ptxtools.nvvm.lowering import Lowering, lower, name_of_ptx

    how = how or Lowering()
    text = lower(data, name, how if how.target else replace(how, target=target))
    return text, name_of_ptx(name, text)


def read_module(data: str | bytes, name: str) -> ir.Module:
    """The tree of a module that is ready to run, from PTX text, a container, or a binary that embeds PTX.

    Raises `PtxError` with all errors found.
    """
    from ptxtools.inputs import detect

    data, name = _as_ptx(data, name)
    kind = "text" if isinstance(data, str) else detect(data)
    if kind not in ("ptxo", "fatbin", "elf"):
        return _defined(_checked(data, name))
    modules = modules_in(data, name)
    if len(modules) == 1 and kind == "ptxo":
        return modules[0]
    from ptxtools.container import link

    linked = link(modules)
    linked.warned = any(module.warned for module in modules)
    return linked


def _defined(module: ir.Module) -> ir.Module:
    """The module, if every symbol it uses is defined: linking finds undefined ones and their uses. Raises
    `PtxError`."""
    from ptxtools.check import undefined

    if undefined(module):
        from ptxtools.container import link

        link([module])
    return module


def modules_in(data: str | bytes, name: str, *, target: str | None = None,
               version: tuple[int, int] | None = None,
               lowering: Lowering | None = None) -> list[ir.Module]:  # fmt: skip
    """The modules in a file, checked but not linked; only a binary can embed several.

    target, version: check as if the modules declared them. lowering: as of `load`. Raises `PtxError`.
    """
    from ptxtools.inputs import detect

    data, name = _as_ptx(data, name, lowering)
    kind = "text" if isinstance(data, str) else detect(data)
    if isinstance(data, str) or kind not in ("ptxo", "fatbin", "elf"):
        return [_checked(data, name, target=target, version=version)]
    if kind != "ptxo":
        from ptxtools.inputs.fatbin import best, embedded

        return [_checked(e.text, name, target=target, version=version) for e in best(embedded(data, name))]
    from ptxtools.container import read

    module = read(data, name, canonical=canonical)
    if target is not None or version is not None:  # containers are checked when they are written
        _check(canonical(module), [], target=target, version=version)
    return [module]


def parsed(data: str | bytes, name: str) -> list[tuple[ir.Module, list[Diagnostic]]]:
    """The modules in a file, each with its syntax errors; nothing else is checked. Raises `PtxError`."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.inputs import detect
    from ptxtools.syntax import parse

    data, name = _as_ptx(data, name)
    kind = "text" if isinstance(data, str) else detect(data)
    if isinstance(data, str) or kind not in ("ptxo", "fatbin", "elf"):
        result = parse(data if isinstance(data, str) else decode(data, name), name)
        return [(result.module, result.diagnostics)]
    if kind == "ptxo":
        from ptxtools.container import read

        return [(canonical(read(data, name)), [])]
    from ptxtools.inputs.fatbin import embedded

    found = []
    for entry in embedded(data, name):
        inner = f"{name}({entry.target})" if entry.target else name
        result = parse(decode(entry.text, inner), inner)
        found.append((result.module, result.diagnostics))
    return found


def canonical(module: ir.Module) -> ir.Module:
    """The same module with positions in its canonical text, which is `module.source.text`."""
    from ptxtools.syntax import parse, print_module

    return parse(print_module(module), module.source.name if module.source else "<module>").module


def _checked(data: str | bytes, name: str, **how: Any) -> ir.Module:
    """The module in a text that has no errors."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.syntax import parse

    result = parse(data if isinstance(data, str) else decode(data, name), name)
    return _check(result.module, result.diagnostics, **how)


def _check(module: ir.Module, diagnostics: list[Diagnostic], **how: Any) -> ir.Module:
    from ptxtools.check import check

    findings = check(module, **how)
    if diagnostics:
        from .linter import without_echoes

        findings = [*diagnostics, *without_echoes(findings, diagnostics, module)]
    errors = [d for d in findings if d.severity is Severity.ERROR]
    if errors:
        from ptxtools.ir.origins import add_origins

        add_origins(errors, module)
        raise PtxError(sorted(errors, key=lambda d: d.span))
    if findings:
        import warnings

        module.warned = True
        warnings.warn(PtxWarning(findings), stacklevel=4)
    return module


def lint(
    text: str | bytes,
    *,
    target: str | None = None,
    ptx_version: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    name: str = "<memory>",
) -> list[Diagnostic]:
    """The findings of ptx-lint for a text of PTX or NVVM IR, in order.

    target, ptx_version: check as if the module declared them ("sm_90a", "8.0"). select, ignore: codes or prefixes, as
    in the options of ptx-lint. Raises `ValueError` for an unknown target, version or code.
    """
    from ptxtools.diagnostics.decode import decode
    from ptxtools.isa.targets import check_target, parse_version
    from ptxtools.launch.errors import demand
    from ptxtools.syntax import parse

    from .linter import findings_of

    text = _readable(text, "the text")
    if target is not None:
        demand(target, str, "target", "a name such as 'sm_90a'")
        check_target(target)
    if ptx_version is not None:
        demand(ptx_version, str, "ptx_version", "a text such as '8.0'")
    version = None if ptx_version is None else parse_version(ptx_version)
    chosen = {"select": _known_codes(select, "select"), "ignore": _known_codes(ignore, "ignore")}
    if is_nvvm(text):
        from ptxtools.nvvm.lint import findings_in

        return findings_in(text, name, targets=() if target is None else (target,),
                           select=chosen["select"], ignore=chosen["ignore"])  # fmt: skip
    try:
        text = text if isinstance(text, str) else decode(text, name)
    except PtxError as error:
        return error.diagnostics
    module, syntax = parse(text, name)
    return findings_of(module, syntax, targets=() if target is None else (target,), version=version,
                       select=chosen["select"], ignore=chosen["ignore"])  # fmt: skip


def _known_codes(codes: Sequence[str], what: str) -> tuple[str, ...]:
    from ptxtools.launch.errors import demand

    if isinstance(codes, str):
        codes = codes.split(",")
    demand(codes, Iterable, what, "a list of codes")
    for code in codes:
        demand(code, str, f"a code in {what}", "a text")
    if codes:
        from ptxtools.pages import check_codes

        check_codes(codes)
    return tuple(codes)


# --- containers -------------------------------------------------------------------------------------------------------


def assemble(sources: Sequence[str | bytes | Module], *, debug: bool = False) -> bytes:
    """Link one or several modules into a container. Raises `PtxError`. debug: keep names and line numbers."""
    from ptxtools.container import link, write
    from ptxtools.launch.errors import demand

    if isinstance(sources, (str, bytes, bytearray, memoryview)):
        sources = [_readable(sources, "a source")]
    demand(sources, Iterable, "sources", "a list of texts, bytes and modules")
    trees = [tree for n, source in enumerate(sources) for tree in _trees(source, n)]
    if not trees:
        raise PtxError([Diagnostic("PTX100", "there is nothing to assemble", source=Source("", "<memory>"))])
    return write(link(trees), debug=debug)


def _trees(source: str | bytes | Module, number: int) -> list[ir.Module]:
    if hasattr(source, "ir"):
        return [source.ir]
    return modules_in(_readable(source, f"source {number}"), f"<input {number}>")


def disassemble(data: bytes, name: str = "<memory>") -> str:
    """The PTX text of a container, or all PTX text embedded in a binary. Raises `PtxError`."""
    from ptxtools.container import decode_all, read
    from ptxtools.diagnostics.decode import decode
    from ptxtools.inputs import detect
    from ptxtools.inputs.fatbin import embedded
    from ptxtools.launch.errors import demand

    demand(data, (bytes, bytearray, memoryview), "a container", "bytes")
    data = bytes(data)
    if detect(data) == "ptxo":
        from ptxtools.syntax import print_module

        return print_module(decode_all(read(data, name)))
    if detect(data) not in ("fatbin", "elf"):
        text = "this is PTX text already, " if detect(data) == "text" and data.strip(b"\0 \t\r\n") else ""
        message = f"{text}neither a container nor a binary that embeds PTX"
        raise PtxError([Diagnostic("PTX803", message, source=Source("", name))])
    entries = embedded(data, name)
    texts = [decode(entry.text, name) for entry in entries]
    if len(entries) == 1:
        return texts[0]
    heads = [f"// entry {n} of {len(entries)}: {e.target or 'target unknown'}{f', {e.name}' if e.name else ''}"
             for n, e in enumerate(entries, 1)]  # fmt: skip
    return "".join(f"{head}\n{text.rstrip()}\n" for head, text in zip(heads, texts, strict=True))


def container_of(data: bytes, name: str) -> bytes:
    """The container in `data`, or one assembled from its PTX. Raises `PtxError`."""
    from ptxtools.container import link, write
    from ptxtools.inputs import detect

    return data if detect(data) == "ptxo" else write(link(modules_in(data, name), check_undefined=False))


def fatbin_of(module: ir.Module, *, debug: bool = False, compress: bool = False) -> bytes:
    """An NVIDIA fatbin that contains the module's text."""
    from ptxtools.inputs.fatbin import write_fatbin
    from ptxtools.syntax import print_module

    return write_fatbin(print_module(module), module.target, module.version, address_size=module.address_size,
                        debug=debug, compress=compress)  # fmt: skip


# --- running ----------------------------------------------------------------------------------------------------------


def run_job(job: Job, read: Any, lowering: Lowering | None = None) -> Report:
    """Run a job (`ptxtools.launch.job`). read: returns the bytes of a file, given its name. lowering: as of `load`; its
    target is the job's device unless it has one."""
    from ptxtools.launch.runner import run_job as run

    def load(path: str) -> Loadable:
        return loadable(read(path), "<stdin>" if path == "-" else path, lowering, job.device.target)

    return run(job, load)


def loadable(data: bytes, name: str, lowering: Lowering | None = None, target: str | None = None) -> Loadable:
    """The module in a file as a device loads it. lowering: as of `load`; target: of the device. Raises `PtxError`."""
    from ptxtools.sim.stored import StoredModule

    converted, name = _as_ptx(data, name, lowering, target)
    data = converted if isinstance(converted, bytes) else converted.encode("utf-8", "surrogateescape")
    return StoredModule(
        data, lambda: _tree_module(data, name), lambda: _source(data, name), lambda: _origins(data, name)
    )


def _tree_module(data: bytes, name: str) -> TreeModule:
    from ptxtools.sim.tree import TreeModule

    return _checked_before_use(TreeModule(read_module(data, name)), data)


def _checked_before_use(module: TreeModule, data: str | bytes) -> TreeModule:
    """The module, checked before a kernel from a container is lowered; other modules were checked already."""
    from ptxtools.inputs import detect

    if isinstance(data, str) or detect(data) != "ptxo":
        return module
    from ptxtools.sim.unchecked import UncheckedModule

    return UncheckedModule(module, lambda tree: _check(tree, []))


def _source(data: bytes, name: str) -> Source | None:
    """The text that the module's line numbers refer to."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.inputs import detect

    if detect(data) in ("ptxo", "fatbin", "elf"):
        return read_module(data, name).source
    return Source(decode(data, name), name)


def _origins(data: bytes, name: str) -> Origins | None:
    """The source locations of a module that has run before; it was checked then."""
    from ptxtools.inputs import detect
    from ptxtools.ir.origins import origins_of

    if detect(data) in ("ptxo", "fatbin", "elf"):
        return origins_of(read_module(data, name))
    if b".loc" not in data:
        return None
    return origins_of(parsed(data, name)[0][0])


def litmus(text: str, *, model: str = "8.x", unroll: int = 2, name: str = "<memory>") -> Outcomes:
    """What the memory consistency model (8) allows of a litmus test, in the format that `ptx-run --litmus` reads.

    model: "6.0", "7.5" or "8.x"; unroll: how often one instruction is executed before a path is given up. Raises
    PtxError for a malformed test, ValueError for an unknown model, and for a text that holds several tests.
    """
    found = litmus_tests(text, model=model, unroll=unroll, name=name)
    if len(found) != 1:
        raise ValueError(f"the text holds {len(found)} tests: litmus_tests runs all of them")
    return found[0]


def litmus_tests(text: str, *, model: str = "8.x", unroll: int = 2, name: str = "<memory>") -> list[Outcomes]:
    """As `litmus`, for a text that may hold several tests: a `*.test` file has one for each of its commands."""
    from .model.executions import run
    from .model.litmus import read_tests

    return [run(test, model, unroll) for test in read_tests(Source(text, name), _tensor_maps)]


def _tensor_maps() -> Any:
    from .launch.litmus import TensorMaps

    return TensorMaps()


def _matrices() -> Any:
    from .sim.tensor import plain

    return plain


def litmus_kernel(
    ptx: str | bytes,
    condition: str,
    *,
    args: Sequence[Any] = (),
    grid: int | tuple[int, ...] = 1,
    block: int | tuple[int, ...] = 1,
    kernel: str = "",
    threads: Sequence[tuple[int, int]] | None = None,
    filter: str = "",
    cluster: int = 0,
    shared: int = 0,
    model: str = "8.x",
    unroll: int = 2,
    name: str = "<memory>",
) -> Outcomes:
    """What the memory consistency model allows of a kernel.

    condition: as in a litmus test, over registers (`P0:%r1`, threads numbered in the order of `threads`) and memory
    (`out[3]`): "exists (out[0] == 1)"; filter: executions that count. args: integers and NumPy arrays, which have the
    names of their parameters; the arrays are read only. threads: (CTA, thread of it) of those that run, None: all of
    the launch, of which there may be 16. cluster: CTAs of a cluster; shared: bytes of dynamic shared memory; unroll:
    how often one instruction is executed before a path is given up.
    Raises PtxError, with the position, for what is not modelled; ValueError for an unknown model.
    """
    from .model.kernels import kernel_named

    module = read_module(ptx, name)
    found = kernel_named(module, kernel)
    arrays: dict[str, tuple[str, bytes]] = {}
    arguments: list[int | tuple[str, int]] = []
    for number, value in enumerate(args):
        if isinstance(value, int):
            arguments.append(value)
            continue
        own = found.params[number].name if number < len(found.params) else f"argument {number}"
        kind = {"i": "s", "b": "u"}.get(value.dtype.kind, value.dtype.kind)
        arrays[own] = (f"{kind}{8 * value.dtype.itemsize}", value.tobytes())
        arguments.append((own, 0))
    shapes = [(*size, 1, 1)[:3] if isinstance(size, tuple) else (size, 1, 1) for size in (grid, block)]
    return _litmus_of(
        module, found, shapes, arguments, arrays, condition, filter, threads, cluster, shared, model, unroll
    )


def litmus_launch(path: str, *, model: str = "8.x", unroll: int = 2) -> Outcomes:
    """As `litmus_kernel`, of a launch file with a `[litmus]` table. Raises PtxError, and SpecError for the file."""
    from .files.reading import read_all
    from .launch.errors import SpecError
    from .launch.file import read_launch_file
    from .launch.litmus import plain_launch
    from .model.kernels import bounds_of, kernel_named

    job = read_launch_file(path)
    if job.litmus is None:
        raise SpecError(f"{path}: has no [litmus] table")
    plain = plain_launch(job)
    plan, table = plain.plan, job.litmus
    try:
        with open(plan.module, "rb") as file:
            module = read_module(read_all(file), plan.module)
    except OSError as error:
        raise SpecError(f"{plan.module}: cannot be read: {error.strerror or error}") from None
    found = kernel_named(module, plan.kernel)
    block = plan.block or next((sizes for name, sizes in bounds_of(found) if name == ".reqntid"), None)
    if block is None:
        raise SpecError(f"{path}: kernel {found.name} needs a block shape")
    cluster = plan.cluster if isinstance(plan.cluster, int) else prod(plan.cluster or (0,))
    return _litmus_of(module, found, [plan.grid, block], plain.arguments, plain.arrays, table.condition, table.filter,
                      table.threads, cluster, plan.shared, model, unroll, plain.maps, plain.multicasts)  # fmt: skip


def _litmus_of(
    module: ir.Module, kernel: ir.Function, shapes: Sequence[Any], arguments: Sequence[int | tuple[str, int]],
    arrays: dict[str, tuple[str, bytes]], condition: str, filter_: str, threads: Sequence[tuple[int, int]] | None,
    cluster: int, shared: int, model: str, unroll: int, maps: Mapping[str, Any] | None = None,
    multicasts: Mapping[str, Sequence[str]] | None = None,
) -> Outcomes:  # fmt: skip
    from .model.executions import run
    from .model.kernels import Array, Launch, element_named, kernel_test

    held = {name: Array(element_named(element), data) for name, (element, data) in arrays.items()}
    launch = Launch(shapes[0], shapes[1], arguments, held, threads, cluster, shared, maps or {}, multicasts or {},
                    _tensor_maps, _matrices)  # fmt: skip
    return run(kernel_test(module, kernel, launch, condition, filter_), model, unroll)


def ptx_run(
    ptx: str | bytes | Module,
    args: Sequence[int | float | None],
    block: int | tuple[int, ...],
    grid: int | tuple[int, ...],
    shared: int = 0,
    *,
    kernel: str | None = None,
    **options: Any,
) -> RunResult:
    """Run one kernel on the memory of this process.

    args: numbers; pointers are host addresses. kernel: its name, if the module has several. options: all others of
    `Device.launch`, such as timeout. Raises `PtxError`, `LaunchError`; an address that is not mapped in this process is
    a `Trap`.
    """
    from ptxtools.launch.host import Module
    from ptxtools.launch.raw import run_on_host

    module = ptx if isinstance(ptx, Module) else _remembered(_readable(ptx, "ptx"))
    kernels = module.kernels
    if kernel is None and len(kernels) != 1:
        raise LaunchError(f"the module has {len(kernels)} kernels; name one with kernel=")
    return run_on_host(module[kernel] if kernel else kernels[0], args, block, grid, shared=shared, **options)


_recent: dict[str | bytes, Module] = {}


def _remembered(ptx: str | bytes) -> Module:
    """The module in a text. The last few are kept, since emulated programs launch the same kernels again and again."""
    module = _recent.pop(ptx, None) or loads(ptx)
    _recent[ptx] = module
    while len(_recent) > 16:
        del _recent[next(iter(_recent))]
    return module
