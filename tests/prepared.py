"""What workers would each make at the same time when they start, made once before."""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def prepare(config: pytest.Config) -> None:
    """Compiled test modules with pytest's rewritten assertions, and the compiled package. Without this, four workers on
    two cores spend most of their first minute on it. How pytest does it is not public: where it does it otherwise, the
    workers do it themselves.
    """
    compileall.compile_dir(ROOT / "ptxtools", quiet=2)
    try:
        from _pytest.assertion import rewrite

        state = config.stash[rewrite.assertstate_key]
        for path in _files(config):
            folder = rewrite.get_cache_dir(path)
            compiled = folder / (path.name[:-3] + rewrite.PYC_TAIL)
            if rewrite._read_pyc(path, compiled) is None and rewrite.try_makedirs(folder):
                source, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, code, source, compiled)
    except (ImportError, AttributeError, TypeError, KeyError, SyntaxError):
        return


def _files(config: pytest.Config) -> list[Path]:
    """The test modules that were asked for."""
    found: set[Path] = set()
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        found |= {path} if path.is_file() else set(path.rglob("test_*.py"))
    return sorted(found)


def wanted(config: pytest.Config) -> bool:
    """Whether workers are going to start that will find what is made here."""
    kept = not sys.dont_write_bytecode or sys.pycache_prefix is not None
    return kept and bool(getattr(config.option, "numprocesses", None))
