"""The options that say how NVVM IR becomes PTX, shared by ptx-as and ptx-run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .common import CommandFunction

if TYPE_CHECKING:
    from ptxtools.nvvm import Lowering


def lowering_options(function: CommandFunction) -> CommandFunction:
    """`--libdevice`; the function gets `libdevice`."""
    for option in (
        click.option("--libdevice", metavar="FILE", help="The library of __nv_* functions for NVVM IR; default: that "
                     "of an installed CUDA toolkit."),
    ):  # fmt: skip
        function = option(function)
    return function


def lowering_of(options: dict[str, Any], target: str | None = None,
                version: tuple[int, int] | None = None) -> Lowering | None:  # fmt: skip
    """How to lower; None if nothing is said about it."""
    if not (options["libdevice"] or target or version):
        return None
    from ptxtools.nvvm import Lowering

    return Lowering(target, version, libdevice=options["libdevice"])
