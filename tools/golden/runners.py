"""Where kernels run: a GPU, through the CUDA driver, or this project's engine in its place."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
Argument = Array | int


class RunnerError(Exception):
    """No machine to run on, or it refuses; the message is for the user."""


class RefusedError(RunnerError):
    """The driver does not take a module."""


class Runner(Protocol):
    """chip: the machine's name; target, version: what modules may ask for."""

    chip: str
    driver: str
    target: str
    version: str

    def load(self, text: str) -> Any:
        """A module, ready. Raises `RefusedError`."""

    def run(self, module: Any, kernel: str, ctas: int, threads: int, arguments: Sequence[Argument]) -> None:
        """Launch and wait. Arrays are copied there and back; integers are u32."""

    def unload(self, module: Any) -> None: ...


# --- the CUDA driver --------------------------------------------------------------------------------------------------

#: PTX version that a driver takes, by its CUDA version.
_VERSIONS = [
    (13010, "9.1"), (13000, "9.0"), (12090, "8.8"), (12080, "8.7"), (12050, "8.5"), (12040, "8.4"), (12030, "8.3"),
    (12020, "8.2"), (12010, "8.1"), (12000, "8.0"), (11080, "7.8"), (11040, "7.4"), (11000, "7.0"),
]  # fmt: skip
_LOG_BUFFER, _LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


class CudaRunner:
    """The first GPU of this machine."""

    def __init__(self, library: str = "libcuda.so.1") -> None:
        try:
            self._cuda = ctypes.CDLL(library)
        except OSError as error:
            raise RunnerError(f"no CUDA driver ({library}): recording needs a machine with an NVIDIA GPU") from error
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", name, len(name), device)
        self.chip = name.value.decode()
        number = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(number))
        self.driver = f"{number.value // 1000}.{number.value % 1000 // 10}"
        self.version = next((text for least, text in _VERSIONS if number.value >= least), "6.0")
        self.version = min(self.version, "9.0", key=lambda v: tuple(map(int, v.split("."))))
        capability = [self._attribute(which, device) for which in (_MAJOR, _MINOR)]
        self.target = f"sm_{capability[0]}{capability[1]}" + ("a" if capability[0] >= 9 else "")

    def _attribute(self, which: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            said = text.value.decode() if text.value else "unknown error"
            raise RunnerError(f"{name} failed: {said} ({code})")

    def load(self, text: str) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        keys = (ctypes.c_int * 2)(_LOG_BUFFER, _LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        source = ctypes.c_char_p(text.encode())
        code = self._cuda.cuModuleLoadDataEx(ctypes.byref(module), source, 2, keys, values)
        if code:
            said = log.value.decode(errors="replace").strip()
            raise RefusedError(said.splitlines()[0] if said else f"cuModuleLoadDataEx failed ({code})")
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        self._call("cuModuleUnload", module)

    def run(self, module: ctypes.c_void_p, kernel: str, ctas: int, threads: int, arguments: Sequence[Argument]) -> None:
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        buffers: list[tuple[ctypes.c_uint64, Array]] = []
        values: list[Any] = []
        try:
            for argument in arguments:
                if isinstance(argument, int):
                    values.append(ctypes.c_uint32(argument))
                    continue
                buffer = ctypes.c_uint64()
                self._call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(max(16, argument.nbytes)))
                buffers.append((buffer, argument))
                values.append(buffer)
                self._call("cuMemcpyHtoD_v2", buffer, _host(argument), ctypes.c_size_t(argument.nbytes))
            table = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
            self._call("cuLaunchKernel", function, ctas, 1, 1, threads, 1, 1, 0, None, table, None)
            self._call("cuCtxSynchronize")
            for buffer, array in buffers:
                self._call("cuMemcpyDtoH_v2", _host(array), buffer, ctypes.c_size_t(array.nbytes))
        finally:
            for buffer, _ in buffers:
                self._cuda.cuMemFree_v2(buffer)


def _host(array: Array) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


# --- the engine -------------------------------------------------------------------------------------------------------


class EngineRunner:
    """This project's engine; what it writes is no recording of a chip."""

    def __init__(self, target: str = "sm_100a", version: str = "9.0", threads: int = 1, engine: str = "native") -> None:
        self.chip, self.driver, self.target, self.version = f"ptxtools ({engine} engine)", "0", target, version
        self._threads, self._engine = threads, engine
        self._device: Any = None

    def load(self, text: str) -> Any:
        import ptxtools

        try:
            return ptxtools.loads(text)
        except ptxtools.PtxError as error:
            raise RefusedError(str(error).splitlines()[0]) from error

    def unload(self, module: Any) -> None:
        pass

    def run(self, module: Any, kernel: str, ctas: int, threads: int, arguments: Sequence[Argument]) -> None:
        import ptxtools

        device = self._device = self._device or ptxtools.Device(self.target, threads=self._threads, engine=self._engine)
        uploaded = [device.upload(a.view(np.uint8)) if not isinstance(a, int) else a for a in arguments]
        device.launch(module[kernel], (ctas,), (threads,), uploaded)
        for argument, there in zip(arguments, uploaded, strict=True):
            if not isinstance(argument, int):
                argument.view(np.uint8)[:] = there.download()
                there.free()
