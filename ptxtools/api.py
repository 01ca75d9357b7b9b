"""The library: load, check, assemble and run PTX. `ptxtools` re-exports all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxtools import ir
from ptxtools.diagnostics import Diagnostic, LaunchError, PtxError, Severity, Source

if TYPE_CHECKING:
    from ptxtools.launch.host import Module
    from ptxtools.launch.job import Job
    from ptxtools.launch.runner import Report
    from ptxtools.sim.device import RunResult

# --- modules ----------------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> Module:
    """The module in a file: PTX text, or a container. Raises `PtxError`, `OSError`."""
    name = os.fspath(path)
    with open(name, "rb") as file:
        return loads(file.read(), name)


def loads(data: str | bytes, name: str = "<memory>") -> Module:
    """The module in a text or in bytes, checked; `name` stands in findings. Raises `PtxError`."""
    from ptxtools.launch.host import Module

    return Module(read_module(data, name))


def read_module(data: str | bytes, name: str) -> ir.Module:
    """The tree of a module ready to run: parsed and checked if it is text, else read from its container.

    Raises `PtxError` with every error that was found.
    """
    if isinstance(data, str):
        return _checked(data, name)
    from ptxtools.container import detect

    if detect(data) != "ptxo":
        from ptxtools.diagnostics.decode import decode

        return _checked(decode(data, name), name)
    from ptxtools.container import read

    return read(data, name=name)


def _checked(text: str, name: str) -> ir.Module:
    from ptxtools.check import check
    from ptxtools.syntax import parse

    result = parse(text, name)
    findings = [*result.diagnostics, *check(result.module, linking=True)]
    errors = [d for d in findings if d.severity is Severity.ERROR]
    if errors:
        raise PtxError(sorted(errors, key=lambda d: d.span))
    return result.module


def lint(text: str | bytes, *, target: str | None = None, name: str = "<memory>") -> list[Diagnostic]:
    """The findings of ptx-lint in a text, in order. target: check as if the module declared it."""
    from ptxtools.diagnostics.decode import decode
    from ptxtools.lint import lint as lint_module
    from ptxtools.syntax import parse

    try:
        text = text if isinstance(text, str) else decode(text, name)
    except PtxError as error:
        return error.diagnostics
    result = parse(text, name)
    findings = [*result.diagnostics, *lint_module(result.module, target=target)]
    return sorted(findings, key=lambda d: d.span)


# --- containers -------------------------------------------------------------------------------------------------------


def assemble(sources: Sequence[str | bytes | Module], *, debug: bool = False) -> bytes:
    """One container of one or several modules, linked. Raises `PtxError`. debug: keep names and line numbers."""
    from ptxtools.container import link, write

    if isinstance(sources, (str, bytes)):
        sources = [sources]
    trees = [_tree(source, n) for n, source in enumerate(sources)]
    if not trees:
        raise PtxError([Diagnostic("PTX100", "there is nothing to assemble", source=Source("", "<memory>"))])
    return write(link(trees) if len(trees) > 1 else trees[0], debug=debug)


def _tree(source: str | bytes | Module, number: int) -> ir.Module:
    if isinstance(source, (str, bytes)):
        return read_module(source, f"<input {number}>")
    return source.ir


def disassemble(data: bytes, name: str = "<memory>") -> str:
    """The PTX text of a container. Raises `PtxError`."""
    from ptxtools.container import read
    from ptxtools.syntax import print_module

    return print_module(read(data, name=name))


# --- running ----------------------------------------------------------------------------------------------------------


def run_job(job: Job, read: Any) -> Report:
    """Run a job (`ptxtools.launch.job`). read: the bytes of a file, by its name."""
    from ptxtools.launch.runner import run_job as run

    return run(job, lambda path: read_module(read(path), "<stdin>" if path == "-" else path))


def ptx_run(
    ptx: str | bytes | Module,
    args: Sequence[int | float | None],
    block: int | tuple[int, ...],
    grid: int | tuple[int, ...],
    shared: int = 0,
    *,
    kernel: str | None = None,
    timeout: float | None = None,
) -> RunResult:
    """Run one kernel on the memory of this process.

    args: numbers, pointers among them host addresses. kernel: its name, when the module has several. Raises
    `PtxError`, `LaunchError`; an address that this process does not have is a `Trap`.
    """
    from ptxtools.launch.raw import run_on_host

    module = ptx if not isinstance(ptx, (str, bytes)) else _remembered(ptx)
    kernels = module.kernels
    if kernel is None and len(kernels) != 1:
        raise LaunchError(f"the module has {len(kernels)} kernels; name one with kernel=")
    return run_on_host(module[kernel] if kernel else kernels[0], args, block, grid, shared, timeout)


_recent: dict[str | bytes, Module] = {}


def _remembered(ptx: str | bytes) -> Module:
    """The module of a text; the last few are kept, since emulated programs launch the same kernels again and again."""
    module = _recent.pop(ptx, None) or loads(ptx)
    _recent[ptx] = module
    while len(_recent) > 16:
        del _recent[next(iter(_recent))]
    return module
