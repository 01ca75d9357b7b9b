"""ptx-as: check PTX, write and link containers, and extract PTX from containers and binaries."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ptxtools.diagnostics import Diagnostic, PtxError, PtxWarning
from ptxtools.diagnostics.colour import style_for

from .common import (
    CONTEXT_SETTINGS,
    FINDINGS,
    OK,
    STDIN,
    STDIN_NAME,
    Failure,
    common_options,
    examples,
    input_names,
    print_diagnostics,
    progress,
    read_input,
    run_command,
    write_output,
)
from .dependencies import Output, check_dependency_usage, dependency_file, spelled_out, wants_dependencies
from .lowering import lowering_of, lowering_options

if TYPE_CHECKING:
    from ptxtools.ir import Module

_EXAMPLES = examples(
    "ptx-as kernel.ptx                      # kernel.ptxo",
    "ptx-as -c a.ptx b.ptx                  # a.ptxo and b.ptxo, not linked",
    "ptx-as a.ptxo b.ptx -o all.ptxo        # linked",
    "ptx-as -d all.ptxo                     # PTX text back",
    "ptx-as -d a.out                        # the PTX that nvcc embedded",
    "ptx-as --info --format json all.ptxo",
    "ptx-as a.ptx --compare b.ptx           # whatever registers and labels are called",
    "ptx-as --reduce 'ptxas {} 2>&1 | grep -q C7907' kernel.ptx -o small.ptx",
    "ptx-as - -o - < kernel.ptx | ptx-run - --list",
    "ptx-as --emit ptx kernel.ll            # NVVM IR, lowered",
)
#: Bytes of all inputs, and processors, from which worker processes pay off. Starting them takes about a tenth of a
#: second; input for the linker is written and read once more, for which two processors barely compensate.
_PARALLEL_FROM, _PROCESSORS, _PROCESSORS_TO_LINK = 2 << 20, 2, 4
#: The limit of nesting for response files.
_MAX_NESTING = 10


@click.command(name="ptx-as", context_settings=CONTEXT_SETTINGS, epilog=_EXAMPLES,
               short_help="Assemble and link PTX into containers.")  # fmt: skip
@click.argument("files", nargs=-1, metavar="FILES...")
@click.option("-o", "output", metavar="FILE", help="Output file; - is standard output. Default: the first input's "
              "name with .ptxo.")  # fmt: skip
@click.option("-c", "separate", is_flag=True, help="One container per input, not linked.")
@click.option("-g", "debug", is_flag=True, help="Keep the input's name and line numbers.")
@click.option("-d", "--disassemble", is_flag=True, help="Print the PTX text of a container, or of a fatbin, cubin or "
              "ELF file that embeds PTX.")  # fmt: skip
@click.option("--info", is_flag=True, help="Print a summary of a container's contents.")
@click.option("--compare", metavar="OTHER", help="Print how the module differs from OTHER, whatever registers and "
              "labels are called; exit with 1 if it does.")  # fmt: skip
@click.option("--reduce", "reduce_command", metavar="COMMAND", help="Make the module smaller while COMMAND, given a "
              "file's name in place of {} or at its end, ends with 0; default output: the input's name with "
              ".reduced.ptx.")  # fmt: skip
@click.option("--format", "format_", type=click.Choice(["text", "json"]), help="Format of --info; default: text.")
@click.option("--emit", type=click.Choice(["ptxo", "fatbin", "ptx"]), default="ptxo", show_default=True,
              help="Write our container, an NVIDIA fatbin that contains the PTX, or the PTX itself (without -o to "
              "standard output).")  # fmt: skip
@click.option("--strip-debug", is_flag=True, help="Leave out .loc, .file and DWARF sections.")
@click.option("--compress", is_flag=True, help="Compress the output.")
@click.option("--gc", is_flag=True, help="Drop functions and variables that no kernel reaches.")
@click.option("-j", "--jobs", metavar="N", type=click.IntRange(1), help="Inputs to check in parallel; default: by "
              "their size. With --reduce: commands to run in parallel; default: 1.")  # fmt: skip
@click.option("-MD", "-MMD", "dependencies", is_flag=True, help="Write a dependency file for make next to the output.")
@click.option("-MF", "dependency_file", metavar="FILE", help="Write the dependency file to FILE; implies -MD.")
@click.option("-MP", "phony", is_flag=True, help="Add an empty rule for each input but the first.")
@click.option("-MT", "rule_targets", metavar="TARGET", multiple=True, help="The target of the rule, verbatim; "
              "may be repeated.")  # fmt: skip
@click.option("-MQ", "quoted_targets", metavar="TARGET", multiple=True, expose_value=False, help="As -MT, with "
              "characters special to make quoted.")  # fmt: skip
@click.option("--target", metavar="TARGET", help="Check, and write, as if the modules declared this target.")
@click.option("--ptx-version", metavar="X.Y", help="Check, and write, as if the modules declared this version.")
@lowering_options
@common_options
def command(**options: Any) -> int:
    """Check PTX, then write one container; several inputs are linked. Nothing is written if there is an error.

    Inputs are PTX text, containers, binaries that embed PTX, and NVVM IR (text or bitcode), which is lowered for
    --target; @FILE reads further arguments from a file.
    """
    names = input_names(options["files"])
    _check_usage(options, names)
    try:
        return _perform(options, names)
    except PtxError as error:
        print_diagnostics(error.diagnostics, style_for(options["color"], sys.stderr), sys.stderr)
        return FINDINGS


def _perform(options: dict[str, Any], names: list[str]) -> int:
    if options["compare"]:
        from .comparing import compare_files

        return compare_files(names, options["compare"])
    if options["reduce_command"] is not None:
        from .reducing import reduce_file

        return reduce_file(names, options)
    if options["info"]:
        return _info(options, names)
    if options["disassemble"]:
        return _disassemble(options, names)
    outputs = _separate(options, names) if options["separate"] else [_linked(options, names)]
    dependencies = [dependency_file(out, options) for out in outputs] if wants_dependencies(options) else []
    for made in dependencies:
        _keep_inputs(made.path, names)
    for output in (*outputs, *dependencies):
        write_output(output.path, output.data)
        if options["verbose"] and output.path != STDIN:
            sys.stderr.write(f"{output.path}: {len(output.data)} bytes\n")
    return OK


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if any(a.startswith(("@", "-M")) for a in given):
        run_command(_WithResponseFiles(), "ptx-as", given)
    run_command(command, "ptx-as", given)


class _WithResponseFiles(click.Command):
    """The command with its arguments expanded first, so that a bad response file is reported like other usage
    errors."""

    def __init__(self) -> None:
        super().__init__("ptx-as")

    def main(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> Any:
        return command.main(spelled_out(_expanded(list(args or ())), command), *rest, **more)


def _expanded(arguments: list[str], depth: int = 0) -> list[str]:
    """Replace `@FILE` by the arguments in the file, which are quoted as in a shell."""
    import shlex

    found: list[str] = []
    for argument in arguments:
        if not argument.startswith("@") or len(argument) == 1:
            found.append(argument)
            continue
        if depth == _MAX_NESTING:
            raise Failure(f"{argument[1:]}: response files are nested too deeply")
        try:
            words = shlex.split(read_input(argument[1:]).decode("utf-8"), comments=False)
        except ValueError as error:  # an open quotation, or not text
            raise Failure(f"{argument[1:]}: not a response file: {error}") from None
        found += _expanded(words, depth + 1)
    return found


def _check_usage(options: dict[str, Any], names: list[str]) -> None:
    modes = (
        ("--info", "info"),
        ("--disassemble", "disassemble"),
        ("--compare", "compare"),
        ("--reduce", "reduce_command"),
    )
    reading = [flag for flag, name in modes if options[name] not in (None, False, "")]
    if len(reading) > 1:
        raise click.UsageError(f"{reading[0]} and {reading[1]} exclude each other")
    if options["compare"] and options["output"]:
        raise click.UsageError("-o cannot be used with --compare, which prints to standard output")
    if options["format_"] and not options["info"]:
        raise click.UsageError("--format requires --info")
    writing = [flag for flag, name in (
        ("-c", "separate"), ("-g", "debug"), ("--strip-debug", "strip_debug"), ("--compress", "compress"),
        ("--gc", "gc"), ("-MMD", "dependencies"), ("-MF", "dependency_file"), ("-MP", "phony"), ("-MT", "rule_targets"),
        ("--target", "target"),
        ("--ptx-version", "ptx_version")) if options[name]]  # fmt: skip
    if reading and writing:
        raise click.UsageError(f"{writing[0]} cannot be used with {reading[0]}")
    if options["separate"] and options["output"] and len(names) > 1:
        raise click.UsageError("-o cannot be used with -c and several inputs: each input has its own output")
    if options["separate"] and options["gc"]:
        raise click.UsageError("--gc is for linking: it cannot be used with -c")
    if options["debug"] and options["strip_debug"]:
        raise click.UsageError("-g and --strip-debug exclude each other")
    prints = options["emit"] == "ptx" and not options["separate"]
    needs_name = not (reading or prints) or options["reduce_command"] is not None
    if STDIN in names and not options["output"] and needs_name:
        raise click.UsageError("standard input needs -o: there is no input name to derive the output name from")
    check_dependency_usage(options, len(names))


# --- reading ----------------------------------------------------------------------------------------------------------


def _shown(name: str) -> str:
    return STDIN_NAME if name == STDIN else name


def _info(options: dict[str, Any], names: list[str]) -> int:
    from ptxtools.api import container_of
    from ptxtools.container import describe_info, info

    parts = []
    for name in names:
        data = info(container_of(read_input(name), _shown(name)), _shown(name))
        if options["format_"] == "json":
            import json

            parts.append(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        else:
            parts.append(describe_info(data))
    text = ("" if options["format_"] == "json" else "\n").join(parts)
    write_output(options["output"] or STDIN, text.encode("utf-8", "surrogateescape"))
    return OK


def _disassemble(options: dict[str, Any], names: list[str]) -> int:
    from ptxtools.api import disassemble

    texts = [disassemble(read_input(name), _shown(name)) for name in names]
    if len(texts) > 1:
        texts = [f"// {_shown(name)}\n{text}" for name, text in zip(names, texts, strict=True)]
    write_output(options["output"] or STDIN, "".join(texts).encode("utf-8", "surrogateescape"))
    return OK


# --- writing ----------------------------------------------------------------------------------------------------------


def _modules(options: dict[str, Any], names: list[str]) -> list[list[Module]]:
    """The checked modules of each input; the errors of all inputs are reported together."""
    from ptxtools.api import modules_in

    version = _version(options["ptx_version"])
    _check_target(options["target"])
    modules: list[list[Module]] = []
    errors: list[Diagnostic] = []
    with progress("checking", len(names), options["quiet"]) as step:
        for name in names:
            try:
                modules.append(modules_in(read_input(name), _shown(name), target=options["target"], version=version,
                                          lowering=lowering_of(options, options["target"], version)))  # fmt: skip
            except PtxError as error:
                errors += error.diagnostics
            step()
    if errors:
        raise PtxError(errors)
    return modules


def _by_workers(options: dict[str, Any], names: list[str]) -> list[list[bytes] | None]:
    """The result of `_prepared` for each input, from worker processes; None for all if those would not pay off."""
    nothing: list[list[bytes] | None] = [None] * len(names)
    jobs = min(options["jobs"] or _fitting_jobs(names, options["separate"]), len(names))
    if jobs < 2 or STDIN in names:
        return nothing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from itertools import repeat

    import ptxtools.check
    import ptxtools.syntax  # noqa: F401 - before the processes fork, so that they need not import it

    found: list[list[bytes] | None] = []
    try:
        with progress("checking", len(names), options["quiet"]) as step, ProcessPoolExecutor(jobs) as pool:
            for containers in pool.map(_prepared, names, repeat(options)):
                found.append(containers)
                step()
    except (BrokenProcessPool, OSError):  # not enough resources: process inputs one after the other
        return nothing
    return found


def _fitting_jobs(names: list[str], separate: bool) -> int:
    """One for each processor that this process may use, if there is enough work."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(names) < 2 or processors < (_PROCESSORS if separate else _PROCESSORS_TO_LINK):
        return 1
    try:
        enough = sum(os.path.getsize(name) for name in names) >= _PARALLEL_FROM
    except OSError:  # reading it will report the error
        return 1
    return processors if enough else 1


def _prepared(name: str, options: dict[str, Any]) -> list[bytes] | None:
    """The output for one input (`-c`), or its modules as containers for the linker; None if there is any finding.

    Runs in a worker process. The caller checks an input with errors again, and reports them.
    """
    from ptxtools.api import modules_in
    from ptxtools.container import write

    version = _version(options["ptx_version"])
    warnings.simplefilter("error", PtxWarning)
    try:
        modules = modules_in(read_input(name), name, target=options["target"], version=version,
                             lowering=lowering_of(options, options["target"], version))  # fmt: skip
        if options["separate"]:
            return [_encode(modules[0], options)] if len(modules) == 1 else None
        return [write(module, debug=True) for module in modules]
    except (PtxError, PtxWarning, Failure):
        return None


def _version(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    from ptxtools.isa.targets import parse_version

    try:
        return parse_version(text)
    except ValueError as error:
        raise click.UsageError(f"--ptx-version: {error}") from None


def _check_target(name: str | None) -> None:
    from ptxtools.isa.targets import Target

    try:
        known = name is None or Target(name).known
    except ValueError:
        known = False
    if not known:
        raise click.UsageError(f"--target: unknown target '{name}'; write it like sm_90a")


def _linked(options: dict[str, Any], names: list[str]) -> Output:
    from ptxtools.container import link

    path = options["output"] or (STDIN if options["emit"] == "ptx" else _output_name(names[0], options["emit"]))
    _keep_inputs(path, names)
    ready = _by_workers(options, names)
    try:
        linked = link(_united(options, names, ready), gc=options["gc"])
    except PtxError:
        if not any(ready):
            raise
        # Report errors for the texts themselves: a container has only their lines.
        linked = link(_united(options, names, [None] * len(names)), gc=options["gc"])
    return Output(path, _encode(linked, options), tuple(names))


def _united(options: dict[str, Any], names: list[str], ready: list[list[bytes] | None]) -> list[Module]:
    """The modules of all inputs, in order; ready: the containers that workers made for some of them."""
    from ptxtools.api import canonical
    from ptxtools.container import read

    rest = iter(_modules(options, [name for name, done in zip(names, ready, strict=True) if done is None]))
    modules: list[Module] = []
    for name, done in zip(names, ready, strict=True):
        modules += next(rest) if done is None else [read(data, _shown(name), canonical=canonical) for data in done]
    return modules


def _separate(options: dict[str, Any], names: list[str]) -> list[Output]:
    paths = [options["output"] or _output_name(name, options["emit"]) for name in names]
    for n, path in enumerate(paths):
        if path in paths[:n]:
            raise Failure(f"{names[paths.index(path)]} and {names[n]} would both be written to {path}")
        _keep_inputs(path, names)
    ready = _by_workers(options, names)
    rest = iter(_modules(options, [name for name, done in zip(names, ready, strict=True) if done is None]))
    outputs = []
    for name, path, done in zip(names, paths, ready, strict=True):
        if done is None:
            modules = next(rest)
            if len(modules) > 1:
                raise Failure(f"{name} embeds {len(modules)} modules, which -c does not link: omit -c")
            done = [_encode(modules[0], options)]
        outputs.append(Output(path, done[0], (name,)))
    return outputs


def _output_name(name: str, suffix: str) -> str:
    return f"{os.path.splitext(name)[0]}.{suffix}"


def _keep_inputs(path: str, names: list[str]) -> None:
    for name in names:
        if STDIN not in (path, name) and os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise Failure(f"{path} is an input and would be overwritten; choose another output file")


def _encode(module: Module, options: dict[str, Any]) -> bytes:
    from ptxtools.api import fatbin_of
    from ptxtools.container import declared_as, without_debug, write

    wanted = options["target"], _version(options["ptx_version"])
    if options["emit"] == "ptx":
        return _text(module, options, *wanted).encode("utf-8", "surrogateescape")
    module = declared_as(module, *wanted)
    if options["emit"] == "fatbin":
        module = without_debug(module) if options["strip_debug"] else module
        return fatbin_of(module, debug=options["debug"], compress=options["compress"])
    return write(module, debug=options["debug"], strip_debug=options["strip_debug"], compress=options["compress"])


def _text(module: Module, options: dict[str, Any], target: str | None, version: tuple[int, int] | None) -> str:
    """The PTX of a module: the text that it was read from, or lowered to, if it is still that."""
    from ptxtools.container import declared_as, without_debug
    from ptxtools.syntax import print_module

    same = (target or module.target) == module.target and (version or module.version) == module.version
    if same and module.source and not (module.source.joined or options["gc"] or options["strip_debug"]):
        return module.source.text
    module = declared_as(module, target, version)
    return print_module(without_debug(module) if options["strip_debug"] else module)


if __name__ == "__main__":
    main()
