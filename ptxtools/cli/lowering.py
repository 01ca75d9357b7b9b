"""The options that say how NVVM IR becomes PTX, shared by ptx-as and ptx-run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common import CommandFunction

if TYPE_CHECKING:
    from ptxtools.nvvm import Lowering


def lowering_options(function: CommandFunction) -> CommandFunction:
    """`--libdevice`, `--backend`, `--nvvm-dialect`; the function gets `libdevice`, `backend`, `nvvm_dialect`."""
    import click

    for option in (
        click.option("--backend", type=click.Choice(["llvm", "libnvvm"]), help="What lowers NVVM IR; default: llvm, "
                     "that of llvmlite. libnvvm is NVIDIA's, of a CUDA toolkit."),
        click.option("--libdevice", metavar="FILE", help="The library of __nv_* functions for NVVM IR; default: that "
                     "of an installed CUDA toolkit."),
        click.option("--nvvm-dialect", type=click.Choice(["7", "modern"]), help="The dialect of NVVM IR that is meant: "
                     "pointers of the other are an error; default: the one that a module is in."),
    ):  # fmt: skip
        function = option(function)
    return function


def lowering_of(options: dict[str, Any], target: str | None = None,
                version: tuple[int, int] | None = None) -> Lowering | None:  # fmt: skip
    """How to lower; None if nothing is said about it."""
    dialect = options.get("nvvm_dialect")
    if not (options["libdevice"] or options["backend"] or dialect or target or version):
        return None
    from ptxtools.nvvm import Lowering

    return Lowering(
        target, version, libdevice=options["libdevice"], backend=options["backend"] or "llvm", dialect=dialect
    )
