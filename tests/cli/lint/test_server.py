"""`--lsp` without what it needs; tests/editor drives the server."""

import sys


def test_without_pygls_it_says_what_to_install(lint, monkeypatch):
    monkeypatch.delitem(sys.modules, "ptxtools.editor.server", raising=False)
    monkeypatch.setitem(sys.modules, "pygls.exceptions", None)
    status, out, err = lint("--lsp")
    assert (status, out) == (2, "") and "pip install 'ptxtools[lsp]'" in err
