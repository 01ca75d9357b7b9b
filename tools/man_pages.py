"""Manual pages of the commands, from their own help."""

from __future__ import annotations

from importlib import import_module

#: Commands, and where they are.
COMMANDS = {"ptx-lint": "lint", "ptx-as": "assemble", "ptx-run": "run"}

_STATUS = """.SH EXIT STATUS
.TP
.B 0
All is well.
.TP
.B 1
The input has findings, errors or failed expectations, the launch was refused, or the kernel trapped.
.TP
.B 2
Wrong usage, or a file that cannot be read or written.
.TP
.B 70
An internal error, which should be reported.
.TP
.B 130
Interrupted.
"""


def page(name: str) -> str:
    """The manual page of a command, as roff."""
    import click
    from click_man.core import generate_man_page

    command: click.Command = import_module(f"ptxtools.cli.{COMMANDS[name]}").command
    text: str = generate_man_page(click.Context(command, info_name=name), version="ptxtools", date=" ")
    return f"{text.rstrip()}\n{_STATUS}{_examples(command.epilog or '')}{_others(name)}"


def _examples(epilog: str) -> str:
    lines = [line.strip() for line in epilog.splitlines() if line.startswith("  ")]
    shown = "\n".join(line.replace("\\", "\\e").replace("-", "\\-") for line in lines)
    return f".SH EXAMPLES\n.nf\n{shown}\n.fi\n" if lines else ""


def _others(name: str) -> str:
    first, second = (other for other in COMMANDS if other != name)
    return f".SH SEE ALSO\n.BR {first} (1),\n.BR {second} (1)\n"
