"""Syntax tests keep their caches to themselves: they neither use nor fill the user's."""

import pytest

from ptxtools.syntax import templates


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("syntax-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTXTOOLS_CACHE", str(folder))
        templates.store.cache_clear()
        yield folder
    templates.store.cache_clear()
