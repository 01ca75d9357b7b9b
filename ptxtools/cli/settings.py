"""Settings of ptx-lint: options first, then `[tool.ptx-lint]` of the `pyproject.toml` nearest to each file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .common import STDIN, STDIN_NAME, Failure

if TYPE_CHECKING:
    from ptxtools.linter.config import Config

FORMATS = ("text", "json", "sarif", "github")


class Settings(NamedTuple):
    """What is to be known to lint one file, and to judge its findings."""

    targets: tuple[str, ...] = ()
    version: tuple[int, int] | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    exit_zero: bool = False
    stdin_name: str = STDIN_NAME


class SettingsFinder:
    """The settings of each file. Raises click.UsageError for wrong options, Failure for wrong files."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._given = _read(options["config"]) if options["config"] else None
        self._configs: dict[str, Config] = {}
        self._settings: dict[Config, Settings] = {}
        self._select, self._ignore = _codes(options["select"]), _codes(options["ignore"])

    def for_file(self, name: str) -> Settings:
        """The settings of one file; those of standard input are looked for beside its name, if it was given one."""
        return self._of(self._config(self._options["stdin_filename"] or "" if name == STDIN else name))

    def format(self) -> str:
        """How the findings of the whole run are written; a file has a say if it stands at or above this folder."""
        found: str = self._options["format_"] or self._config("").format or "text"
        if found not in FORMATS:
            raise Failure(f"unknown format '{found}' in the settings; there are {', '.join(FORMATS)}")
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
            )
        return found


def _read(path: str) -> Config:
    from ptxtools.linter.config import ConfigError, read_config

    try:
        config = read_config(path)
        return config._replace(select=_codes(config.select), ignore=_codes(config.ignore))
    except ConfigError as error:
        raise Failure(str(error)) from None
    except click.UsageError as error:
        raise Failure(f"{path}: {error.message}") from None


def _target(name: str) -> str:
    from ptxtools.isa.targets import check_target

    try:
        return check_target(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _version(text: str) -> tuple[int, int]:
    from ptxtools.isa.targets import NEWEST, VERSIONS, version_text

    try:
        major, minor = (int(part) for part in text.split("."))
    except ValueError:
        raise click.UsageError(f"--ptx-version takes a version such as 8.0, found '{text}'") from None
    if (major, minor) not in VERSIONS:
        raise click.UsageError(f"unknown PTX version '{text}'; the newest known one is {version_text(NEWEST)}")
    return major, minor


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    """Codes, or beginnings of codes, from comma-separated words. An unknown one is a usage error."""
    codes = tuple(word.strip().upper() for value in values for word in value.split(",") if word.strip())
    if codes:
        from .pages import all_pages, near

        for code in codes:
            if code != "ALL" and not any(known.startswith(code) for known in all_pages()):
                raise click.UsageError(f"no rule has the code '{code}'{near(code)}")
    return codes
