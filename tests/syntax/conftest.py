"""What some syntax tests are given."""

import pytest

from ptxtools.syntax import templates


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """A cache for one test: the shapes in it are those that the test made."""
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    templates.store.cache_clear()
    yield tmp_path
    templates.store.cache_clear()
