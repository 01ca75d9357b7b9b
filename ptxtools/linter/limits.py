"""Shared by the rules about directives of functions."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ptxtools.ir.nodes import Directive, Function


def cluster_sizes(function: Function) -> Iterator[tuple[Directive, int]]:
    """The directives that size a function's cluster, each with its number of CTAs; 0 if unspecified."""
    for item in function.directives:
        if isinstance(item, Directive) and item.name in (".reqnctapercluster", ".maxclusterrank"):
            values = [value for value in item.args if isinstance(value, int)]
            yield item, prod(values) if values else 0
