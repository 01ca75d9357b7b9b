"""Settings from a file: `[tool.ptx-lint]` of the nearest `pyproject.toml`, or a file of its own."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

SECTION = "ptx-lint"
_LISTS = ("select", "ignore", "target")
_FLAGS = ("strict", "exit-zero")
_WORDS = ("ptx-version", "format")


class ConfigError(Exception):
    """The settings cannot be used; the message names the file."""


class Config(NamedTuple):
    """Settings; None and () where the file is silent."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    strict: bool = False
    exit_zero: bool = False
    ptx_version: str | None = None
    format: str | None = None


NO_SETTINGS = Config()


def find_config(directory: str) -> str | None:
    """The nearest `pyproject.toml` at or above a directory that has our section; one without it is passed over."""
    directory = os.path.abspath(directory)
    while True:
        path = os.path.join(directory, "pyproject.toml")
        if os.path.isfile(path):
            # Reading TOML costs an import: look for the section's name first.
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    found = f"tool.{SECTION}" in file.read()
            except OSError:
                found = False
            if found:
                return path
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above


def read_config(path: str) -> Config:
    """The settings in a file. Raises ConfigError."""
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    section = table.get("tool", {}).get(SECTION) if os.path.basename(path) == "pyproject.toml" else None
    if section is None:
        section = table.get("tool", {}).get(SECTION, table)
    return _config(section, path)


def _config(section: Any, path: str) -> Config:
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: [tool.{SECTION}] is no table")
    values: dict[str, Any] = {}
    for key, value in section.items():
        if key in _LISTS:
            values[key] = _words(value, key, path)
        elif (key in _FLAGS and isinstance(value, bool)) or (key in _WORDS and isinstance(value, str)):
            values[key.replace("-", "_")] = value
        elif key in (*_FLAGS, *_WORDS):
            raise ConfigError(f"{path}: '{key}' has the wrong type")
        else:
            known = ", ".join((*_LISTS, *_FLAGS, *_WORDS))
            raise ConfigError(f"{path}: unknown setting '{key}' (known: {known})")
    return Config(**values)


def _words(value: Any, key: str, path: str) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{path}: '{key}' must be a list of words")
    return tuple(word.strip() for word in words if word.strip())
