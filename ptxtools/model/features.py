"""What the older models have no words for. A test that uses it is refused under them."""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.diagnostics import NO_SPAN, Diagnostic, PtxError, Span

from . import MODELS
from .programs import (
    Barrier,
    Copy,
    CopyGroup,
    Fence,
    GridControl,
    Instruction,
    Mbarrier,
    Memory,
    Multimem,
    Product,
    ProxyFence,
    RemoteStore,
    TensorCore,
    TensorMap,
    Test,
)


def refuse_unknown(test: Test, version: str) -> None:
    """Raises PtxError if the test needs a later model."""
    _check_spaces(test)
    known = MODELS.index(version)
    found = [(what, since, span) for what, since, span in _needs(test) if MODELS.index(since) > known]
    if found:
        what, since, span = found[0]
        message = f"the model of PTX {version} has no {what}; the one of {since} has"
        raise PtxError([Diagnostic("PTX100", message, span, test.source)])


def _check_spaces(test: Test) -> None:
    """A proxy fence that is limited to a state space needs to know those of all locations; that of the executing CTA,
    which CTA's shared memory they are in (9.7.13.4)."""
    for thread in test.threads:
        for fence in thread.instructions:
            if not (isinstance(fence, ProxyFence | Fence) and fence.space):
                continue
            one_sided = isinstance(fence, Fence) or bool(fence.order)
            for name, location in test.locations.items():
                message = ""
                if location.members:  # what is there are its locations
                    continue
                if not location.space:
                    message = f"this fence needs the state space of '{name}'"
                elif (fence.space, location.space) == ("shared::cta", "shared") and (
                    test.owner(name) is None if one_sided
                    else len({(user.gpu, user.grid, user.cta) for user in test.users(name)}) > 1
                ):  # fmt: skip
                    message = f"this fence needs to know which CTA's shared memory '{name}' is in"
                if message:
                    help_: tuple[str, ...] = ()
                    if not location.space:
                        help_ = (f"declare it: '.global {name} = …' or '.shared {name} = …'",)
                    elif one_sided:
                        help_ = (f"declare it: '.shared @cta 0 {name} = …'",)
                    raise PtxError([Diagnostic("PTX100", message, fence.span, test.source, help=help_)])


def _needs(test: Test) -> Iterator[tuple[str, str, Span]]:
    """(what, the first model that has it, where)."""
    for thread in test.threads:
        for instruction in thread.instructions:
            for what, since in _needs_of(instruction):
                yield what, since, instruction.span
    if any(location.memory != location.name for location in test.locations.values()):
        yield "aliases (8.2.2)", "7.5", NO_SPAN


def _needs_of(instruction: Instruction) -> Iterator[tuple[str, str]]:
    if isinstance(instruction, Mbarrier | Copy | CopyGroup):
        yield "mbarriers and asynchronous copies (8.9.1.1)", "7.5"
    if isinstance(instruction, RemoteStore):
        yield "asynchronous stores (9.7.9.12)", "8.x"
    if isinstance(instruction, GridControl):
        yield "dependent grids (9.7.13.13)", "8.x"
    if isinstance(instruction, TensorCore):
        yield "tensor memory (9.7.16)", "8.x"
    if isinstance(instruction, Product):
        yield "products of warpgroups (9.7.15)", "8.x"
    if isinstance(instruction, Multimem):
        yield "multi-addresses (8.2.3)", "8.x"
    if isinstance(instruction, TensorMap):
        yield "tensor maps (5.5.8)", "8.x"
    if isinstance(instruction, Copy | CopyGroup) and instruction.bulk:
        yield "bulk copies (9.7.9.25.4)", "8.x"
    if isinstance(instruction, Mbarrier) and (instruction.kind.endswith("_tx") or instruction.transactions is not None):
        yield "transactions of mbarriers (9.7.13.15.5)", "8.x"
    proxy = getattr(instruction, "proxy", "generic")
    if proxy != "generic" or isinstance(instruction, ProxyFence):
        yield "proxies (8.6)", "8.x" if proxy in ("async", "tensormap") else "7.5"
    if getattr(instruction, "scope", "") == "cluster":
        yield "cluster scope (8.5)", "8.x"
    if isinstance(instruction, Barrier) and instruction.place == "cluster":
        yield "barriers of a cluster (8.9.4)", "8.x"
    if getattr(instruction, "function", "") == "mapa":
        yield "shared memory of other CTAs (9.7.9.23)", "8.x"
    if isinstance(instruction, Fence) and instruction.order in ("acquire", "release"):
        yield "one-sided fences (8.4)", "8.x"
    if isinstance(instruction, Memory) and instruction.mmio:
        yield "mmio operations (8.4.1)", "8.x"
