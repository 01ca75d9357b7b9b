"""`python -m ptxtools lint|as|run …` is the same as ptx-lint, ptx-as and ptx-run."""

from __future__ import annotations

import sys
from importlib import import_module

_COMMANDS = {"lint": "ptxtools.cli.lint", "as": "ptxtools.cli.assemble", "run": "ptxtools.cli.run"}
_USAGE = "usage: python -m ptxtools {lint,as,run} [OPTIONS] ...\n"


def main() -> None:
    """Run the command named by the first argument."""
    if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS:
        command = sys.argv.pop(1)
        import_module(_COMMANDS[command]).main()
        return
    if sys.argv[1:2] == ["--version"]:
        from .cli.common import tool_version

        sys.stdout.write(f"ptxtools {tool_version()}\n")
        return
    asked = len(sys.argv) > 1 and sys.argv[1] in ("-h", "--help")
    (sys.stdout if asked else sys.stderr).write(_USAGE)
    sys.exit(0 if asked else 2)


if __name__ == "__main__":
    main()
