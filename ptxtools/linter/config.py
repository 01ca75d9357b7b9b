"""Settings from a file: `[tool.ptx-lint]` in the nearest `pyproject.toml`, or a separate file."""

from __future__ import annotations

import os
from typing import Any

from ptxtools.records import NamedTuple

SECTION = "ptx-lint"
_LISTS = ("select", "ignore", "target", "exclude")
_FLAGS = ("strict", "exit-zero")
_WORDS = ("ptx-version", "format")
_TABLES = ("per-file-ignores",)


class ConfigError(Exception):
    """The settings cannot be used; the message names the file."""


class Config(NamedTuple):
    """Settings; None and () if the file does not set them."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    strict: bool = False
    exit_zero: bool = False
    ptx_version: str | None = None
    format: str | None = None
    exclude: tuple[str, ...] | None = None
    #: Patterns of files, as for `exclude`, each with the codes that are not reported there.
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: The file's folder, to which path patterns are relative.
    folder: str = ""


NO_SETTINGS = Config()


def find_config(directory: str) -> str | None:
    """The nearest `pyproject.toml` at or above a directory that has our section; files without it are skipped."""
    directory = os.path.abspath(directory)
    while True:
        path = os.path.join(directory, "pyproject.toml")
        if os.path.isfile(path) and _may_be_ours(path):
            return path
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def _may_be_ours(path: str) -> bool:
    """Whether a `pyproject.toml` has our section or cannot be read, in which case reading the settings reports why."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        # Reading TOML costs an import: look for the section's name first.
        text = data.decode("utf-8")
        return SECTION in text and _section(_parsed(text, path)) is not None
    except (OSError, UnicodeDecodeError, ConfigError):
        return True


def read_config(path: str) -> Config:
    """The settings in a file. Raises ConfigError."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: not UTF-8 text: byte {error.object[error.start]:#04x} at offset {error.start}"
        ) from None
    table = _parsed(text, path)
    section = _section(table)
    return _config(table if section is None else section, path)


def _parsed(text: str, path: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None


def _section(table: dict[str, Any]) -> Any:
    """Our section; None if there is none."""
    tools = table.get("tool")
    return tools.get(SECTION) if isinstance(tools, dict) else None


def _config(section: Any, path: str) -> Config:
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: [tool.{SECTION}] is not a table")
    values: dict[str, Any] = {"folder": os.path.dirname(os.path.abspath(path))}
    for key, value in section.items():
        if key in _LISTS:
            values[key] = _words(value, key, path)
        elif (key in _FLAGS and isinstance(value, bool)) or (key in _WORDS and isinstance(value, str)):
            values[key.replace("-", "_")] = value
        elif key in _TABLES and isinstance(value, dict):
            values[key.replace("-", "_")] = tuple((name, _words(codes, key, path)) for name, codes in value.items())
        elif key in (*_FLAGS, *_WORDS, *_TABLES):
            raise ConfigError(f"{path}: '{key}' has the wrong type")
        else:
            known = ", ".join((*_LISTS, *_FLAGS, *_WORDS, *_TABLES))
            raise ConfigError(f"{path}: unknown setting '{key}' (known: {known})")
    return Config(**values)


def _words(value: Any, key: str, path: str) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{path}: '{key}' must be a list of words")
    return tuple(word.strip() for word in words if word.strip())
