"""ptx-lint as a function, in an empty folder."""

import pytest

from ptxtools.cli.common import exit_status
from ptxtools.cli.lint import command


@pytest.fixture
def lint(tmp_path, monkeypatch, capfdbinary):
    """Run ptx-lint in an empty folder; (status, standard output, standard error). `lint.put` makes files there."""
    monkeypatch.chdir(tmp_path)

    def lint(*arguments):
        status = exit_status(command, "ptx-lint", arguments)
        out, err = capfdbinary.readouterr()
        return status, out.decode("utf-8", "surrogateescape"), err.decode()

    def put(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    lint.put = put
    return lint
