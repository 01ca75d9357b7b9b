"""The state of the code that decides findings, for caches."""

from __future__ import annotations

import sys

from ptxtools import cache


def code_state() -> str:
    """Changes with the code of all packages that decide findings, and with further folders of rules."""
    rules = sys.modules.get(f"{__package__}.rules")
    further = list(rules.__path__)[1:] if rules is not None else []
    return " ".join([cache.code_state("linter"), *(repr(sorted(cache.scan(folder))) for folder in further)])
