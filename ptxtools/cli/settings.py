"""Settings of ptx-lint: options first, then `[tool.ptx-lint]` of the `pyproject.toml` nearest to each file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics.text import printable
from ptxtools.records import NamedTuple

from .common import STDIN, STDIN_NAME, Failure, usage_error

if TYPE_CHECKING:
    from ptxtools.linter.config import Config
    from ptxtools.linter.discovery import Exclusion

FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit")


class Settings(NamedTuple):
    """The settings for linting one file and judging its findings."""

    targets: tuple[str, ...] = ()
    version: tuple[int, int] | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    exit_zero: bool = False
    stdin_name: str = STDIN_NAME
    dialect: str | None = None
    cached: bool = True
    #: Codes that are not reported in this file, however they are selected.
    spared: tuple[str, ...] = ()


class SettingsFinder:
    """The settings of each file. Raises click.UsageError for bad options, Failure for bad files."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._given = _read(options["config"]) if options["config"] else None
        self._configs: dict[str, Config] = {}
        self._settings: dict[Config, Settings] = {}
        self._select, self._ignore = _codes(options["select"]), _codes(options["ignore"])

    def for_file(self, name: str) -> Settings:
        """The settings of one file; for standard input, they are searched from its given name, if any."""
        config = self._config_of(name)
        found = self._of(config)
        if config.per_file_ignores:
            from ptxtools.linter.discovery import Exclusion

            path = self._options["stdin_filename"] or "" if name == STDIN else name
            more = [
                codes for pattern, codes in config.per_file_ignores if Exclusion((pattern,), config.folder).holds(path)
            ]
            return found._replace(spared=tuple(dict.fromkeys(code for codes in more for code in codes)))
        return found

    def left_out(self, folder: str) -> Exclusion:
        """What to exclude from a searched folder, by the options or the settings there."""
        from ptxtools.linter.discovery import DEFAULT, Exclusion

        if self._options["exclude"]:
            return Exclusion(_words(self._options["exclude"]), os.getcwd())
        config = self._config(os.path.join(folder, "x"))
        return Exclusion(DEFAULT if config.exclude is None else config.exclude, config.folder)

    def _config_of(self, name: str) -> Config:
        return self._config(self._options["stdin_filename"] or "" if name == STDIN else name)

    def format(self, names: Sequence[str]) -> str:
        """The output format of the whole run: from the settings of all files if they agree, else from those of the
        working directory."""
        found: str = self._options["format_"] or ""
        if not found:
            formats = {self._config_of(name).format for name in names}
            found = (formats.pop() if len(formats) == 1 else self._config("").format) or "text"
        if found not in FORMATS:
            raise Failure(f"unknown format '{found}' in the settings; use {', '.join(FORMATS)}")
        return found

    def _config(self, name: str) -> Config:
        if self._given is not None:
            return self._given
        folder = os.path.dirname(os.path.abspath(name)) if name else os.getcwd()
        if folder not in self._configs:
            from ptxtools.linter.config import NO_SETTINGS, find_config

            path = find_config(folder)
            self._configs[folder] = _read(path) if path else NO_SETTINGS
        return self._configs[folder]

    def _of(self, config: Config) -> Settings:
        found = self._settings.get(config)
        if found is None:
            options = self._options
            version = options["ptx_version"] or config.ptx_version
            found = self._settings[config] = Settings(
                tuple(_target(name) for name in dict.fromkeys(options["targets"] or config.target)),
                _version(version) if version else None,
                self._select or config.select,
                self._ignore or config.ignore,
                config.strict if options["strict"] is None else options["strict"],
                config.exit_zero if options["exit_zero"] is None else options["exit_zero"],
                options["stdin_filename"] or STDIN_NAME,
                options["nvvm_dialect"],
                not options["no_cache"],
            )
        return found


def _read(path: str) -> Config:
    from ptxtools.linter.config import ConfigError, read_config

    try:
        config = read_config(path)
    except ConfigError as error:
        raise Failure(str(error)) from None
    select, ignore = (_known_codes(key, getattr(config, key), path) for key in ("select", "ignore"))
    spared = tuple((name, _known_codes("per-file-ignores", of, path)) for name, of in config.per_file_ignores)
    return config._replace(select=select, ignore=ignore, per_file_ignores=spared)


def _target(name: str) -> str:
    from ptxtools.isa.targets import check_target

    try:
        return check_target(name)
    except ValueError as error:
        raise usage_error(str(error)) from None


def _version(text: str) -> tuple[int, int]:
    from ptxtools.isa.targets import parse_version

    try:
        return parse_version(text)
    except ValueError as error:
        raise usage_error(f"--ptx-version: {error}") from None


def _words(values: Sequence[str]) -> tuple[str, ...]:
    """Comma-separated words."""
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    """Codes, or prefixes of codes, from comma-separated words. An unknown one is a usage error."""
    codes = tuple(word.upper() for word in _words(values))
    if codes:
        from ptxtools.pages import check_codes

        try:
            check_codes(codes)
        except ValueError as error:
            raise usage_error(str(error)) from None
    return codes


def _known_codes(key: str, values: Sequence[str], path: str) -> tuple[str, ...]:
    """The known codes in a settings file; warns of others. Raises Failure if none is left."""
    codes = tuple(value.upper() for value in values)
    if not codes:
        return ()
    from ptxtools.pages import family, unknown_code

    known = tuple(code for code in codes if code == "ALL" or family(code))
    for code in codes:
        if code not in known:
            warn(f"{path}: {unknown_code(code)}")
    if not known and key == "select":
        raise Failure(f"{path}: 'select' has no known code")
    return known


def warn(message: str) -> None:
    """A warning about the settings or the arguments of ptx-lint."""
    sys.stderr.write(f"ptx-lint: warning: {printable(message)}\n")
