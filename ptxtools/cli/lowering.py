"""The options that say how NVVM IR becomes PTX, shared by ptx-as and ptx-run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .common import CommandFunction

if TYPE_CHECKING:
    from ptxtools.nvvm import Lowering


def lowering_options(function: CommandFunction) -> CommandFunction:
    """`--libdevice`, `--backend`; the function gets `libdevice`, `backend`."""
    for option in (
        click.option("--backend", type=click.Choice(["llvm", "libnvvm"]), help="What lowers NVVM IR; default: llvm, "
                     "that of llvmlite. libnvvm is NVIDIA's, of a CUDA toolkit."),
        click.option("--libdevice", metavar="FILE", help="The library of __nv_* functions for NVVM IR; default: that "
                     "of an installed CUDA toolkit."),
    ):  # fmt: skip
        function = option(function)
    return function


def lowering_of(options: dict[str, Any], target: str | None = None,
                version: tuple[int, int] | None = None) -> Lowering | None:  # fmt: skip
    """How to lower; None if nothing is said about it."""
    if not (options["libdevice"] or options["backend"] or target or version):
        return None
    from ptxtools.nvvm import Lowering

    return Lowering(target, version, libdevice=options["libdevice"], backend=options["backend"] or "llvm")
