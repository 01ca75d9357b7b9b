"""The options of ptx-lint."""

from __future__ import annotations

from typing import Any

import click

from .common import CONTEXT_SETTINGS, common_options, examples
from .linting import lint
from .settings import FORMATS

_EXAMPLES = examples(
    "ptx-lint kernel.ptx",
    "nvcc -ptx -o - kernel.cu | ptx-lint --stdin-filename kernel.ptx",
    "ptx-lint --target sm_75 --target sm_90a build/*.ptx",
    "ptx-lint --requirements kernel.ptx        # lowest .version and .target",
    "ptx-lint --format sarif kernel.ptx > findings.sarif",
    "ptx-lint --select PTX1,PTX2 --strict kernel.ptx",
    "ptx-lint --exclude third_party build     # all PTX, containers and NVVM IR below build",
    "ptx-lint --reformat kernel.ptx           # --check-format: only say which files differ",
    "ptx-lint --nvvm-dialect 7 kernel.ll",
    "ptx-lint --explain PTX301",
)


@click.command(name="ptx-lint", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Find mistakes in PTX.")  # fmt: skip
@click.argument("files", nargs=-1, metavar="[FILES OR FOLDERS]...")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Output format of findings; default: text.")
@click.option("--target", "targets", metavar="TARGET", multiple=True,
              help="Check as if the module declared this target; may be repeated.")  # fmt: skip
@click.option("--ptx-version", metavar="X.Y", help="Check as if the module declared this version.")
@click.option("--nvvm-dialect", type=click.Choice(("7", "modern")),
              help="The dialect of NVVM IR that is meant; default: the one that the text is in.")  # fmt: skip
@click.option("--stdin-filename", metavar="NAME", help="The name of standard input in findings.")
@click.option("--select", metavar="CODES", multiple=True, help="Report only these codes; prefixes work: PTX1,PTX203.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Do not report these codes; prefixes work.")
@click.option("--exclude", metavar="PATTERNS", multiple=True, help="Skip these in folders: names, or relative paths.")
@click.option("--strict", is_flag=True, default=None, help="Exit with 1 for warnings, too.")
@click.option("--exit-zero", is_flag=True, default=None, help="Exit with 0 despite findings.")
@click.option("--fix", is_flag=True, help="Apply safe fixes to the files.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, without changing it.")
@click.option("--reformat", is_flag=True, help="Write the files in the canonical layout; with --diff, only show it.")
@click.option("--check-format", is_flag=True, help="Print which files --reformat would change; exit with 1 if any.")
@click.option("--baseline", metavar="FILE", help="Only count findings that FILE does not have; it is made if missing.")
@click.option("--requirements", is_flag=True, help="Print the lowest .version and targets that accept each file.")
@click.option("--statistics", is_flag=True, help="Print counts per code instead of findings.")
@click.option(
    "--explain", metavar="CODE", help="Print the page of a code, or list the codes of a family such as PTX3, and exit."
)
@click.option("--lsp", is_flag=True, help="Be a language server on standard input and output (needs pygls).")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep findings of files seen before.")
@click.option("--config", metavar="FILE", help="Settings file; default: [tool.ptx-lint] in the nearest pyproject.toml.")
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(1),
    help="Number of processes, for files and for the functions of a large one.",
)
@common_options
def command(**options: Any) -> int:
    """Find what is wrong, hazardous, not portable or slow in PTX.

    FILES are PTX text, containers, binaries that embed PTX, or NVVM IR, which is held against its own specification;
    - is standard input; for a folder, all *.ptx, *.ptxo, *.ll and *.bc in it and below are checked, but for LLVM IR for
    other machines. The exit status is 1 if a file has an error (with --strict: any finding), 2 if one cannot be read.
    """
    return lint(options)
