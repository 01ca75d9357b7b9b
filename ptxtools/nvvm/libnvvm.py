"""NVIDIA's libnvvm. It ends its process on some inputs instead of reporting an error, so `worker.py` calls this."""

from __future__ import annotations

import ctypes
import re
from typing import Any

#: A place in what libnvvm says of a module that it does not read: lines from 1, columns from 0.
_PLACE = re.compile(r"^module(\d+) \((\d+), (\d+)\): parse (.*)", re.MULTILINE)
_MODULE = re.compile(r"\bmodule(\d+)\b")
_VERSION = re.compile(r"^\.version (\d)\.(\d)", re.MULTILINE)


class LibraryError(Exception):
    """kind, module: as of a `Refusal`."""

    def __init__(self, kind: str, message: str, module: int = -1) -> None:
        self.kind, self.message, self.module = kind, message, module
        super().__init__(message)


def lower(path: str, order: dict[str, Any], inputs: list[bytes]) -> str:
    """The PTX of the modules, linked. Raises LibraryError."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError("libdevice", f"libnvvm cannot be loaded: {error}") from None
    program = ctypes.c_void_p()
    library.nvvmCreateProgram(ctypes.byref(program))
    for number, data in enumerate(inputs):
        name = b"module%d" % number
        if library.nvvmAddModuleToProgram(program, data, ctypes.c_size_t(len(data)), name):
            raise LibraryError("parse", _log(library, program) or "libnvvm does not read the module", number)
    _add_libdevice(library, program, order["libdevice"], inputs)
    target = order["target"] or order["default"]
    options = [f"-arch=compute_{target.removeprefix('sm_')}".encode(), b"-opt=3"]
    given = (ctypes.c_char_p * len(options))(*options)
    status = library.nvvmCompileProgram(program, len(options), given)
    if status:
        raise _refusal(_log(library, program), status)
    data = _result(library.nvvmGetCompiledResultSize, library.nvvmGetCompiledResult, program)
    text = data.decode("utf-8", "surrogateescape")
    written = _VERSION.search(text)
    asked = order["asked"]
    if asked and written and asked != written[1] + written[2]:
        raise LibraryError("target", f"this libnvvm writes PTX {written[1]}.{written[2]}, not {asked[:-1]}.{asked[-1]}")
    return text


def _add_libdevice(library: Any, program: ctypes.c_void_p, path: str, inputs: list[bytes]) -> None:
    if not path or not any(b"__nv_" in data or b"\0" in data for data in inputs):
        return
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise LibraryError("libdevice", f"{path}: {error.strerror}") from None
    if library.nvvmLazyAddModuleToProgram(program, data, ctypes.c_size_t(len(data)), b"libdevice"):
        raise LibraryError("libdevice", f"{path}: not the bitcode of libdevice")


def _result(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    if size_of(program, ctypes.byref(size)) or not size.value:
        return b""
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value


def _log(library: Any, program: ctypes.c_void_p) -> str:
    log = _result(library.nvvmGetProgramLogSize, library.nvvmGetProgramLog, program)
    return log.decode("utf-8", "replace").strip()


def _refusal(log: str, status: int) -> LibraryError:
    """What libnvvm says, with the place as LLVM gives it."""
    place = _PLACE.search(log)
    if place:
        return LibraryError("parse", f"<string>:{place[2]}:{int(place[3]) + 1}: error: {place[4]}", int(place[1]))
    module = _MODULE.search(log)
    message = log or f"libnvvm reports status {status}"
    return LibraryError("target" if "-arch" in message else "unsupported", message, int(module[1]) if module else -1)
