"""The options of a device, a launch and a run, each described once for `ptx-run`, launch files and the library.

A field of `DeviceOptions`, `LaunchOptions` or `RunOptions` is an option. Its `Option` says where it appears besides the
library, and which values are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY
from functools import cache, wraps
from inspect import Parameter, signature
from itertools import chain
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from ptxtools.diagnostics import LaunchError
from ptxtools.diagnostics.kinds import CHECKERS
from ptxtools.records import dataclass, field, fields, replace

if TYPE_CHECKING:
    from ptxtools.diagnostics.suppressions import Suppressions

#: Values are whole numbers, seconds, words, truth values, functions, the name of a target, names of checkers, numbers
#: (x, y, z), names of files, or objects.
Kind = Literal["whole", "seconds", "word", "flag", "function", "target", "checks", "shape", "file", "objects"]
#: An int, or one to three of them, in x, y and z.
Shape = int | tuple[int, ...]

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")
P = ParamSpec("P")


@dataclass(eq=False, repr=False)  # never compared or printed, and cheap to create: ptx-run loads it each time
class Option:
    """flag: its command-line spelling, or ""; key: its launch-file key, or ""; metavar, help: for `--help`; least,
    most: bounds of a number; choices: all possible words; of: what a number counts; missing: the complaint if the
    command or the file lacks it; name, default: those of the field."""

    kind: Kind
    flag: str = ""
    key: str = ""
    metavar: str = ""
    help: str = ""
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    of: str = ""
    missing: str = ""
    shows_default: bool = False
    name: str = ""
    default: Any = None

    def problem(self, value: Any) -> str:
        """Why a number or word is invalid for the option, or "". Who reports it names the option before it."""
        if value is None or self.kind not in ("whole", "word", "seconds"):
            return ""
        if self.kind == "seconds":
            return "" if 0 < value < float("inf") else f"must be a number of seconds above 0, not {value:g}"
        if self.choices and value not in self.choices:
            return f"must be {' or '.join(self.choices)}, not '{value}'"
        if self.least is not None and value < self.least:
            return (
                f"a device cannot have {value} {self.of}" if self.of else f"must be at least {self.least}, not {value}"
            )
        if self.most is not None and value > self.most:
            return f"a device cannot have {value} {self.of}; at most {self.most}"
        return ""


def option(default: T, kind: Kind, flag: str = "", **described: Any) -> T:
    """A field that is an option."""
    made: T = field(default=default, metadata={"option": Option(kind, flag, **described)})
    return made


@cache
def options_of(holder: type) -> tuple[Option, ...]:
    """The options of a class such as `DeviceOptions`, in their order."""
    return tuple(replace(one.metadata["option"], name=one.name, default=one.default) for one in fields(holder))


def values_of(options: Any, *holders: type) -> dict[str, Any]:
    """Names and values of the options of these classes in an object, such as a launch that has more fields."""
    return {one.name: getattr(options, one.name) for holder in holders for one in options_of(holder)}


@dataclass(eq=False, repr=False)
class DeviceOptions:
    """The properties of a device. target None: the first loaded module's; memory: bytes; threads None: one per
    core; seed: shuffles, on one thread; memory_model: "weak" for accesses as late and early as the manual's chapter
    8 allows, on the reference engine; heap None: 8 MB; stack: bytes of a thread's stack for recursion, indirect
    calls and `alloca`, unless a launch says another, None: 8 KB; suppressions: a file of reports of checkers that
    are known, or what it says; on_print: gets what kernels print, as they print it; on_grid: gets each grid
    (`machine.launch.Launch`) as it begins; observers: who is told what happens to warps (`machine.observers`);
    optimise: False runs kernels as they are written, each register in a slot of its own."""

    target: str | None = option(
        None, "target", "--device", key="device", metavar="TARGET",
        help="The simulated device, such as sm_90a; default: the module's target.",
    )  # fmt: skip
    _: KW_ONLY
    sms: int = option(
        16, "whole", "--sms", key="sms", metavar="N", least=1, most=65536, of="SMs",
        help="SMs of the device; default: 16.",
    )  # fmt: skip
    memory: int | None = option(None, "whole", least=1, of="bytes of memory")
    engine: str = option(
        "native", "word", "--engine", choices=("native", "reference"), shows_default=True,
        help="Compiled handlers, or NumPy (slow, and simple).",
    )  # fmt: skip
    threads: int | None = option(
        None, "whole", "--threads", metavar="N", least=1, of="worker threads",
        help="Worker threads; default: one per core.",
    )  # fmt: skip
    seed: int | None = option(
        None, "whole", "--seed", metavar="N", least=0,
        help="Shuffle warps, CTAs and the completion of asynchronous work, repeatably: on one thread, in virtual time.",
    )  # fmt: skip
    memory_model: str = option(
        "strong", "word", "--memory", key="memory", choices=("strong", "weak"), shows_default=True,
        help="weak: loads and stores take effect as late or early as the memory consistency model allows, as --seed "
        "has it (on the reference engine).",
    )  # fmt: skip
    numerics: str = option(
        "chip", "word", "--numerics", choices=("chip", "ieee"),
        help="How tensor cores add: as those of the device do, or by f32 multiply-adds.",
    )  # fmt: skip
    tier: str = option(
        "auto", "word", "--tier", choices=("auto", "interpreter", "regions"),
        help="How the native engine runs hot code: auto: in compiled regions once that pays; interpreter: never; "
        "regions: all that can be one, from the start.",
    )  # fmt: skip
    checks: str | Iterable[str] = option(
        (), "checks", "--check", key="check", metavar="LIST",
        help=f"Run-time checkers: {', '.join(CHECKERS)} (comma-separated), or all.",
    )  # fmt: skip
    check_stop: bool = option(False, "flag", "--check-stop", help="Stop the run at memcheck's first error.")
    suppressions: str | Suppressions = option(
        "", "file", "--check-suppressions", key="check_suppressions", metavar="FILE.toml",
        help="Leave out the checkers' reports that this file describes.",
    )  # fmt: skip
    heap: int | None = option(
        None, "whole", "--heap", key="heap", metavar="BYTES", help="Device heap of malloc; default: 8 MB."
    )
    stack: int | None = option(None, "whole")
    on_print: Callable[[str], None] | None = field(default=None, metadata={"option": Option("function")})
    on_grid: Callable[[Any], None] | None = field(default=None, metadata={"option": Option("function")})
    observers: Iterable[object] = option((), "objects")
    optimise: bool = option(True, "flag")


@dataclass(eq=False, repr=False)
class LaunchOptions:
    """The properties of a launch besides its kernel and arguments. grid: in CTAs; block, the shape of a CTA: in
    threads; cluster None: the kernel's; shared: bytes; cooperative: refuse a grid that is not resident as a whole;
    stack: bytes per thread, None: the device's."""

    grid: Shape = field(metadata={"option": Option(
        "shape", "--grid", key="grid", metavar="X[,Y[,Z]]", help="CTAs of the grid.",
        missing="specify the number of CTAs",
    )})  # fmt: skip
    block: Shape = field(metadata={"option": Option(
        "shape", "--block", key="block", metavar="X[,Y[,Z]]",
        help="Threads of a CTA; not needed if the kernel has .reqntid.",
    )})  # fmt: skip
    _: KW_ONLY
    cluster: int | tuple[int, ...] | None = option(
        None, "shape", "--cluster", key="cluster", metavar="X[,Y[,Z]]", help="CTAs of a cluster."
    )
    shared: int = option(0, "whole", "--shared", key="shared", metavar="BYTES", help="Dynamic shared memory of a CTA.")
    cooperative: bool = option(
        False, "flag", "--cooperative", key="cooperative", help="Refuse a grid that is not resident as a whole."
    )
    stack: int | None = option(None, "whole", "--stack", key="stack", metavar="BYTES", help="Stack of a thread.")


@dataclass(eq=False, repr=False)
class RunOptions:
    """The limits of a run. timeout: seconds, for all launches of a file together; max_instructions: thread-instructions
    of a grid. A run that exceeds one ends with a "timeout" trap. explore: further schedules that racecheck may run to
    see what other orders lead to."""

    _: KW_ONLY
    timeout: float | None = option(
        None, "seconds", "--timeout", key="timeout", metavar="SECONDS", help="Stop a run that takes longer."
    )
    max_instructions: int | None = option(
        None, "whole", "--max-instructions", key="max_instructions", metavar="N", least=1,
        help="Stop a run that executes more than N thread-instructions.",
    )  # fmt: skip
    explore: int | None = option(
        None, "whole", "--explore", key="explore", metavar="N", least=1,
        help="Run up to N further schedules, which reverse what this one decided; with --check racecheck.",
    )  # fmt: skip


def check_options(given: object, *described: type) -> None:
    """Raise `LaunchError` for a value that an option cannot have."""
    values_of, defaults, options = _limited(described)
    values = values_of(given)
    if not all(map(is_, values, defaults)):
        for value, default, option in zip(values, defaults, options, strict=True):
            problem = "" if value is default else option.problem(value)
            if problem:
                raise LaunchError(f"{option.name}: {problem}")


@cache
def _limited(described: tuple[type, ...]) -> tuple[Callable[[object], tuple[Any, ...]], list[Any], list[Option]]:
    """The options that cannot have every value of their type, behind what gives their values, and their defaults."""
    limited = [
        option
        for option in chain.from_iterable(map(options_of, described))
        if option.kind == "seconds" or option.choices or option.least is not None or option.most is not None
    ]
    return attrgetter(*(option.name for option in limited)), [option.default for option in limited], limited


def parse_checks(names: str | Iterable[str]) -> frozenset[str]:
    """Checkers from "memcheck,racecheck", "all" or a list of names. Raises `LaunchError` for other names."""
    words = names.split(",") if isinstance(names, str) else names
    found: set[str] = set()
    for word in (str(word).strip() for word in words):
        if word == "all":
            found.update(CHECKERS)
        elif word in CHECKERS:
            found.add(word)
        elif word:
            raise LaunchError(f"there is no checker '{word}'; there are {', '.join(CHECKERS)} and all")
    return frozenset(found)


def takes(options: Callable[P, T]) -> Callable[[Callable[[S, T], R]], Callable[Concatenate[S, P], R]]:
    """Let a method that takes options accept each of them as a separate argument."""

    def given(method: Callable[[S, T], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def made(self: S, /, *args: P.args, **named: P.kwargs) -> R:
            return method(self, options(*args, **named))

        own = signature(options)
        first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [first, *own.parameters.values()]
        made.__signature__ = signature(method).replace(parameters=parameters)  # type: ignore[attr-defined]
        return cast(Callable[Concatenate[S, P], R], made)

    return given
