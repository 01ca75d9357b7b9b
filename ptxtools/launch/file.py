"""Launch files: convert TOML to a `Job`. Paths are relative to the file."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ptxtools.files.reading import read_all
from ptxtools.machine.options import DeviceOptions, LaunchOptions, RunOptions, options_of

from .arguments import (
    Argument,
    BufferArgument,
    Content,
    MulticastArgument,
    Null,
    Scalar,
    TensorMapArgument,
    TextureArgument,
    shaped,
)
from .compare import Tolerance
from .errors import SpecError, nearest
from .job import FAILURES, BufferPlan, GlobalPlan, Job, LaunchPlan, TexturePlan, text_value
from .spec import parse_bytes
from .table import Table
from .tensormaps import read_plan
from .textures import listed, own_buffer, texture_plan

if TYPE_CHECKING:
    from .litmus import LitmusPlan

#: Changes the values of a launch file in place.
Edit = Callable[[dict[str, Any]], None]

_CONTENTS = ("file", "zeros", "fill", "arange", "random")
#: The size of an NVLink domain.
_MOST_DEVICES = 576


def read_launch_file(path: str, module: str = "") -> Job:
    """Read a launch file; raises `SpecError`. "-" is standard input, with paths relative to the working directory.

    module: a module to run instead of the file's.
    """
    return parse_launch_file(*launch_file_text(path), module)


def launch_file_text(path: str) -> tuple[bytes, str]:
    """The content of a launch file and its name in messages. Raises `SpecError`."""
    name = "<stdin>" if path == "-" else path
    try:
        if path == "-":
            data = read_all(sys.stdin.buffer) if sys.stdin else b""
        else:
            with open(path, "rb") as file:
                data = read_all(file)
    except (OSError, ValueError) as error:
        raise SpecError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return data, name


def parse_launch_file(data: bytes, path: str, module: str = "", edit: Edit | None = None) -> Job:
    """Parse the text of a launch file, as `read_launch_file`. path: its name; edit: changes the values in it."""
    try:
        values = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and Python's own for endless numbers
        raise SpecError(f"{path}: not a TOML file: {error}") from None
    if edit is not None:
        edit(values)
    return _Reader(path, module).job(Table(values, path))


class _Reader:
    def __init__(self, path: str, module: str) -> None:
        self._folder = os.path.dirname(path)
        self._module = module

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name) if name else ""

    def job(self, top: Table) -> Job:
        self._devices = top.whole("devices", 1, 1) or 1
        if self._devices > _MOST_DEVICES:
            raise top.error(f"at most {_MOST_DEVICES} devices are allowed, not {self._devices}", "devices")
        buffers = {name: self._buffer(name, table) for name, table in top.tables("buffers")}
        job = Job(
            launches=self._launches(top),
            buffers=buffers,
            globals=[self._global(name, table) for name, table in top.tables("globals")],
            tensormaps={name: read_plan(name, table) for name, table in top.tables("tensormaps")},
            textures={name: self._texture(name, table, buffers) for name, table in top.tables("textures")},
            multicasts={name: self._multicast(table) for name, table in top.tables("multicast")},
            device=DeviceOptions(**option_values(DeviceOptions, lambda key: top)),
            limits=RunOptions(**option_values(RunOptions, lambda key: top)),
            expect_printed=self._path(top.text("expect_printed")),
            expect_failure=self._failure(top),
            litmus=_litmus(top),
        )
        job.device.suppressions = self._path(str(job.device.suppressions))
        top.finish()
        self._check_names(job, top)
        return job

    def _failure(self, top: Table) -> str:
        kind = top.text("expect_failure")
        if kind and kind not in FAILURES:
            raise top.error(f"unknown kind of failure '{kind}'{nearest(kind, FAILURES)}", "expect_failure")
        return kind

    def _launches(self, top: Table) -> list[LaunchPlan]:
        """One plan for each `[[launch]]`, with keys outside them applying to all; else one from the top level."""
        tables = top.take("launch", list)
        if tables is None:
            return [self._launch(top, top)]
        if not tables or not all(isinstance(t, dict) for t in tables):
            raise top.error("must be [[launch]] tables", "launch")
        plans = []
        for number, values in enumerate(tables):
            own = Table(values, top.file, f"launch[{number}]")
            plans.append(self._launch(own, top))
            own.finish()
        return plans

    def _launch(self, own: Table, top: Table) -> LaunchPlan:
        def at(key: str) -> Table:
            """The table for a key: the launch's, else the top level."""
            top.has(key)
            return own if own.has(key) else top

        options = option_values(LaunchOptions, at)
        for option in options_of(LaunchOptions):
            if option.missing and option.name not in options:
                raise own.error(f"{option.key} is missing")
        named = self._path(at("module").text("module"))
        module = self._module or named
        if not module:
            raise own.error("module is missing")
        return LaunchPlan(
            module=module,
            kernel=at("kernel").text("kernel"),
            args=self._arguments(at("args")),
            **options,
        )

    def _arguments(self, table: Table) -> list[Argument]:
        values = table.take("args", list, [])
        found: list[Argument] = []
        for number, value in enumerate(values):
            if not isinstance(value, dict):
                raise table.error('must be a table such as {value=42} or {buffer="a"}', f"args[{number}]")
            own = Table(value, table.file, f"{table.path}.args[{number}]" if table.path else f"args[{number}]")
            found.append(_argument(own))
            own.finish()
        return found

    def _buffer(self, name: str, table: Table) -> BufferPlan:
        number = table.whole("device", 0) or 0
        if number >= self._devices:
            raise table.error(f"there is no device {number}; devices = {self._devices}", "device")
        plan = BufferPlan(
            label=f"buffer '{name}'",
            content=self._content(table),
            expect=self._path(table.text("expect")),
            save=self._path(table.text("save")),
            tolerance=Tolerance(_tolerance(table, "rtol"), _tolerance(table, "atol")),
        )
        table.finish()
        return plan

    def _content(self, table: Table) -> Content:
        given = [key for key in _CONTENTS if table.has(key)]
        if len(given) != 1:
            what = " and ".join(given) if given else "nothing"
            raise table.error(f"requires exactly one of {', '.join(_CONTENTS)}, found {what}")
        kind = given[0]
        try:
            if kind == "file":
                return Content("file", path=self._path(table.text("file")))
            if kind in ("zeros", "arange"):
                return Content(kind, *shaped(table.text(kind)))
            return _content_table(kind, table)
        except SpecError as error:
            raise error if error.located else table.error(str(error), kind) from None

    def _global(self, name: str, table: Table) -> GlobalPlan:
        plan = GlobalPlan(name, self._path(table.text("file")), self._path(table.text("expect")))
        table.finish()
        if not plan.file and not plan.expect:
            raise table.error("requires file or expect")
        return plan

    def _texture(self, name: str, table: Table, buffers: dict[str, BufferPlan]) -> TexturePlan:
        """A texture; without a buffer it gets a new one, of the same name in another namespace."""
        plan = texture_plan(name, table.text("kind", "2d"), table.text("buffer"), table)
        own = {key: self._path(table.text(key)) for key in ("file", "save", "expect")}
        tolerance = Tolerance(_tolerance(table, "rtol"), _tolerance(table, "atol"))
        table.finish()
        if plan.buffer:
            for key, path in own.items():
                if path:
                    raise table.error("belongs in the texture's buffer, if it names one", key)
            return plan
        plan.buffer = f"texture {name}"
        try:
            buffer = own_buffer(plan, f"texture '{name}'", own["file"])
        except SpecError as error:
            raise SpecError(f"{table.file}: {error}") from None
        buffer.save, buffer.expect, buffer.tolerance = own["save"], own["expect"], tolerance
        buffers[plan.buffer] = buffer
        return plan

    def _multicast(self, table: Table) -> list[str]:
        names = listed(table, "buffers", str)
        table.finish()
        if not names:
            raise table.error("must name a buffer", "buffers")
        return names

    def _check_names(self, job: Job, top: Table) -> None:
        """What is named somewhere has a table."""

        def check(table: str, there: Collection[str], name: str, key: str) -> None:
            if name not in there:
                raise top.error(f"there is no [{table}.{name}]{nearest(name, there)}", key)

        for name, map_ in job.tensormaps.items():
            check("buffers", job.buffers, map_.buffer, f"tensormaps.{name}.buffer")
        for plan in job.textures.values():
            check("buffers", job.buffers, plan.buffer, f"textures.{plan.name}.buffer")
        for name, buffers in job.multicasts.items():
            for buffer in buffers:
                check("buffers", job.buffers, buffer, f"multicast.{name}")
        tables: dict[type, tuple[str, Collection[str]]] = {
            BufferArgument: ("buffers", job.buffers),
            MulticastArgument: ("multicast", job.multicasts),
            TensorMapArgument: ("tensormaps", job.tensormaps),
            TextureArgument: ("textures", job.textures),
        }
        for launch in job.launches:
            for argument in launch.args:
                if isinstance(argument, BufferArgument | MulticastArgument | TensorMapArgument | TextureArgument):
                    check(*tables[type(argument)], argument.name, "args")


def option_values(options: Any, at: Callable[[str], Table]) -> dict[str, Any]:
    """The values of options (`DeviceOptions`) in a file. at: the table for a key. Raises `SpecError`."""
    found: dict[str, Any] = {}
    for option in options_of(options):
        table = at(option.key) if option.key else None
        if table is None or not table.has(option.key):
            continue
        if option.kind == "shape":
            found[option.name] = table.shape(option.key)
        elif option.kind == "whole":
            found[option.name] = table.whole(option.key, None, option.least or 0)
        elif option.kind == "flag":
            found[option.name] = table.take(option.key, bool)
        elif option.kind == "seconds":
            found[option.name] = table.take(option.key, float)
        else:
            text = table.text(option.key)
            try:
                found[option.name] = text_value(option, text)
            except SpecError as error:
                raise table.error(str(error), option.key) from None
        problem = option.problem(found[option.name])
        if problem:
            raise table.error(problem, option.key)
    return found


def _tolerance(table: Table, key: str) -> float:
    value: float = table.take(key, float, 0.0)
    if not 0 <= value < float("inf"):
        raise table.error(f"must be 0 or more, and finite, not {value:g}", key)
    return value


def _content_table(kind: str, table: Table) -> Content:
    own = table.table(kind)
    assert own is not None
    element, shape = shaped(own.text("type"))
    value: Any = 0
    if kind == "fill":
        if not own.has("value"):
            raise own.error("value is missing")
        value = own.values["value"]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise own.error(f"must be a number, not {value!r}", "value")
        from .arguments import check_number

        check_number(value, element)
    seed = (own.whole("seed", 0) or 0) if kind == "random" else 0
    own.finish()
    return Content(kind, element, shape, value=value, seed=seed)


def _argument(table: Table) -> Argument:
    given = [key for key in ("buffer", "value", "bytes", "null", "tensormap", "texture", "multicast") if table.has(key)]
    if len(given) != 1:
        table.finish()
        raise table.error("requires exactly one of buffer, value, bytes, null, tensormap, texture, multicast")
    kind = given[0]
    if kind == "buffer":
        return BufferArgument(table.text("buffer"), table.take("offset", int, 0))
    if kind == "tensormap":
        return TensorMapArgument(table.text("tensormap"))
    if kind == "texture":
        return TextureArgument(table.text("texture"))
    if kind == "multicast":
        return MulticastArgument(table.text("multicast"), table.take("offset", int, 0))
    if kind == "bytes":
        digits = table.text("bytes")
        try:
            return parse_bytes(digits)
        except SpecError as error:
            raise table.error(str(error), "bytes") from None
    if kind == "null":
        if table.values["null"] is not True:
            raise table.error("must be true", "null")
        return Null()
    value = table.values["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise table.error(f"must be a number, not {value!r}", "value")
    return Scalar(value)


def _litmus(top: Table) -> LitmusPlan | None:
    if not top.has("litmus"):
        return None
    from .litmus import read_litmus_table

    return read_litmus_table(top.table("litmus"))
