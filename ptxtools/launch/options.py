"""Convert the options of ptx-run to a `Job`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, options_of
from ptxtools.records import replace

from .arguments import Argument, BufferArgument, TextureArgument
from .compare import Tolerance
from .errors import SpecError
from .job import BufferPlan, Job, LaunchPlan, TexturePlan, text_value
from .spec import parse_indexed, parse_shape, parse_spec


def job_from_options(module: str, options: dict[str, Any]) -> Job:
    """The job described by options. Raises `SpecError`.

    Keys: kernel, args, expects, saves, rtol, atol, and the names of `LaunchOptions`.
    """
    arguments = [_spec(n, text) for n, text in enumerate(options["args"])]
    buffers, textures = _buffers(arguments), _textures(arguments)
    buffers.update((name, buffer) for name, (_, buffer) in textures.items())
    tolerance = Tolerance(options["rtol"] or 0.0, options["atol"] or 0.0)
    for text in options["expects"]:
        plan = _plan(buffers, *parse_indexed(text, "--expect", len(arguments)), "--expect", text)
        if plan.expect:
            raise SpecError(f"--expect {text}: the argument already has --expect")
        plan.expect, plan.tolerance = text.partition("=")[2], tolerance
    for text in options["saves"]:
        plan = _plan(buffers, *parse_indexed(text, "--save", len(arguments)), "--save", text)
        if plan.save:
            raise SpecError(f"--save {text}: the argument already has --save")
        plan.save = text.partition("=")[2]
    given = given_values(LaunchOptions, options)
    for option in options_of(LaunchOptions):
        if option.missing and option.name not in given:
            raise SpecError(f"{option.flag} is missing: {option.missing}")
    launch = LaunchPlan(
        module=module,
        kernel=options["kernel"] or "",
        args=arguments,
        **given,
    )
    return Job([launch], buffers, textures={name: plan for name, (plan, _) in textures.items()})


def is_given(value: Any) -> bool:
    """Whether an option was given on the command line; 0 is a valid value."""
    return value is not None and value is not False and value not in ("", ())


def given_values(described: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options (`LaunchOptions`, `RunOptions`, `DeviceOptions`) given to a command. Raises `SpecError`."""
    found: dict[str, Any] = {}
    for option in options_of(described):
        value: Any = options[option.name] if option.flag else None
        if not is_given(value):
            continue
        if option.kind == "shape":
            found[option.name] = parse_shape(value, option.name)
            continue
        if not isinstance(value, str):
            found[option.name] = value
            continue
        try:
            found[option.name] = text_value(option, value)
        except SpecError as error:
            raise SpecError(f"{option.flag}: {error}") from None
    return found


def add_options(job: Job, options: dict[str, Any]) -> None:
    """Give a job what a command says about its device and limits: checkers beside those of the job, and of two limits
    the smaller one. Raises `SpecError`."""
    given, limits = given_values(DeviceOptions, options), given_values(RunOptions, options)
    if "checks" in given:
        given["checks"] |= frozenset(job.device.checks)
    job.device = replace(job.device, **given)
    for name, limit in limits.items():
        known = getattr(job.limits, name)
        setattr(job.limits, name, limit if known is None else min(limit, known))


def _spec(index: int, text: str) -> Argument:
    try:
        return parse_spec(text)
    except SpecError as error:
        raise SpecError(f"argument {index}: {error}") from None


def _buffers(arguments: Sequence[Argument]) -> dict[str, BufferPlan]:
    """A buffer for each argument that is one; the argument gets its name."""
    buffers: dict[str, BufferPlan] = {}
    for n, argument in enumerate(arguments):
        if isinstance(argument, BufferArgument) and argument.content is not None:
            argument.name = str(n)
            buffers[argument.name] = BufferPlan(f"argument {n}", argument.content)
    return buffers


def _textures(arguments: Sequence[Argument]) -> dict[str, tuple[TexturePlan, BufferPlan]]:
    """A texture and its buffer for each argument that is one; all get the argument's number as their name."""
    found: dict[str, tuple[TexturePlan, BufferPlan]] = {}
    for n, argument in enumerate(arguments):
        if isinstance(argument, TextureArgument) and argument.plan is not None:
            from .textures import own_buffer

            argument.name = argument.plan.name = argument.plan.buffer = str(n)
            label = f"argument {n}"
            content = argument.content
            buffer = own_buffer(argument.plan, label, "") if content is None else BufferPlan(label, content)
            found[str(n)] = argument.plan, buffer
    return found


def _plan(buffers: dict[str, BufferPlan], index: int, _path: str, option: str, text: str) -> BufferPlan:
    if str(index) not in buffers:
        raise SpecError(f"{option} {text}: argument {index} is not a buffer")
    return buffers[str(index)]
