"""Native tests share a cache of their own, so that they neither use nor fill the user's."""

from __future__ import annotations

import os

import pytest

from ptxtools.native.code import library


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "native-cache"
    before = os.environ.get("PTXTOOLS_CACHE")
    os.environ["PTXTOOLS_CACHE"] = str(folder)
    library._store.clear()
    yield folder
    library._store.clear()
    if before is None:
        del os.environ["PTXTOOLS_CACHE"]
    else:
        os.environ["PTXTOOLS_CACHE"] = before
