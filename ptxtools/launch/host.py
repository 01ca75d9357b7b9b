"""The Python interface: modules and kernels, buffers, and a device that accepts NumPy arrays."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ptxtools import sim
from ptxtools.diagnostics import LaunchError, TrapKind, shown
from ptxtools.machine.options import DeviceOptions, takes
from ptxtools.sim.device import RunResult
from ptxtools.sim.kernel import Kernel as Entry
from ptxtools.sim.kernel import Parameter
from ptxtools.sim.loadable import Storage
from ptxtools.sim.shape import dim3
from ptxtools.sim.textures.making import make
from ptxtools.sim.tree import TreeModule

from .bind import (
    POINTER,
    Packing,
    check_count,
    describe,
    number_bytes,
    packing_of,
    parameter_block,
    pointer_bytes,
    raw_bytes,
)
from .calls import Call, typed_values
from .errors import demand, nearest, whole
from .tensormaps import tensor_map

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ptxtools import ir
    from ptxtools.observe.unwritten import Unwritten

    Array = NDArray[Any]


class Kernel:
    """An entry of a module. `params`: name, type, size, alignment and offset (bytes) of each parameter."""

    __slots__ = ("entry", "module", "packing")

    def __init__(self, entry: Entry, module: Module) -> None:
        self.entry, self.module = entry, module
        self.packing: Packing | None = None  # from the first launch on

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def demangled(self) -> str:
        """The name as in the source: `name` itself, unless a compiler mangled it."""
        return shown(self.name)

    @property
    def params(self) -> tuple[Parameter, ...]:
        return self.entry.parameters

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(map(str, self.params))})>"


class Module:
    """A checked PTX module; `ir` is the module as a tree.

    `module["name"]` is the kernel of that name in the PTX, else the only one with that demangled name, with or without
    its parameters and namespaces; raises `LaunchError`.
    """

    def __init__(self, tree: ir.Module) -> None:
        self.ir = tree
        self.loadable = TreeModule(tree)
        self._kernels = {name: Kernel(entry, self) for name, entry in self.loadable.contents.kernels.items()}

    @property
    def version(self) -> tuple[int, int]:
        """The declared PTX version, such as (9, 0)."""
        return self.ir.version

    @property
    def target(self) -> str:
        """The declared target, such as "sm_90a"."""
        return self.ir.target

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The entries, in the order of the module."""
        return tuple(self._kernels.values())

    def __getitem__(self, name: str) -> Kernel:
        found = self._kernels.get(name)
        if found is not None:
            return found
        from .kernels import KernelNameError, find_name

        try:
            return self._kernels[find_name(str(name), self._kernels, prefixes=False)]
        except KernelNameError as error:
            raise LaunchError(str(error)) from None

    def __contains__(self, name: object) -> bool:
        """Whether `module[name]` is a kernel."""
        try:
            return isinstance(name, str) and self[name] is not None
        except LaunchError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<Module {self.target or '?'}: {', '.join(self._kernels) or 'no kernels'}>"


class Pointer:
    """An address inside a buffer: `buffer + 256`, `256 + buffer`. `address` is the device address."""

    __slots__ = ("buffer", "offset")
    __array_ufunc__ = None  # makes NumPy numbers defer addition to this class

    def __init__(self, buffer: Buffer, offset: int) -> None:
        offset = whole(offset, "an offset in bytes")
        if not 0 <= offset <= buffer.size:
            raise LaunchError(f"offset {offset} is outside a buffer of {buffer.size} bytes")
        self.buffer, self.offset = buffer, offset

    @property
    def address(self) -> int:
        return self.buffer.address + self.offset

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.buffer, self.offset + whole(offset, "an offset in bytes"))

    __radd__ = __add__

    def __sub__(self, offset: int) -> Pointer:
        return self + -whole(offset, "an offset in bytes")


class Buffer:
    """Device memory: `size` bytes at device address `address`, with the type and shape of the uploaded array.

    `numpy.asarray(buffer)`, and any library that reads the array interface or DLPack, gets an array over the memory
    itself, not a copy. It is read-only on a device with initcheck, which would not know what is written there.
    """

    __array_ufunc__ = None  # makes NumPy numbers defer addition to this class

    def __init__(
        self, device: Device, address: int, dtype: np.dtype[Any], shape: tuple[int, ...], *, owned: bool = True
    ) -> None:
        self._device, self._address, self._owned = device, address, owned
        self.dtype, self.shape = dtype, shape
        count = 1
        for extent in shape:
            count *= extent
        self.size = count * dtype.itemsize
        self._free = False

    @property
    def device(self) -> Device:
        return self._device

    @property
    def address(self) -> int:
        """The device address; raises `LaunchError` after `free`."""
        if self._free:
            raise LaunchError("the buffer was freed")
        return self._address

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3: an array made from it keeps the buffer alive."""
        import numpy as np

        if self.dtype != np.dtype(self.dtype.str):
            raise LaunchError(f"arrays of {self.dtype} cannot be shared: use download()")
        array = self._device.array_at(self.address, self.dtype, self.shape)
        array.flags.writeable = _unwritten(self._device) is None
        return dict(array.__array_interface__)

    def __dlpack__(self, **how: Any) -> Any:
        """A DLPack capsule, for `from_dlpack` of other libraries; how: as of `numpy.ndarray.__dlpack__`."""
        import numpy as np

        return np.asarray(self).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        """kDLCPU: the simulated device's memory is the host's."""
        return 1, 0

    def download(self) -> Array:
        """A new array with the buffer's content."""
        return self._device.array_at(self.address, self.dtype, self.shape).copy()

    def upload(self, array: Array) -> None:
        """Replace the content; the array must have as many bytes as the buffer."""
        import numpy as np

        array = np.asarray(array)
        if array.nbytes != self.size:
            raise LaunchError(f"an array of {array.nbytes} bytes does not fill a buffer of {self.size}")
        self._device.write(self.address, array)

    def free(self) -> None:
        """Free the memory. Raises `LaunchError` the second time, and for a module variable."""
        if not self._owned:
            raise LaunchError("a module variable cannot be freed")
        self._device.arena.free(self.address)
        unwritten = _unwritten(self._device)
        if unwritten is not None:
            unwritten.remove(self._address)
        self._device.runtime.textures.freed(self.address, self.size)
        self._free = True

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> Pointer:
        return Pointer(self, -whole(offset, "an offset in bytes"))

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        where = "freed" if self._free else f"at {self._address:#x}"
        return f"<Buffer {self.dtype}{list(self.shape)} {where}>"

    def _repr_html_(self) -> str:
        """For notebooks: the first elements, and a picture of two dimensions."""
        from html import escape

        if self._free:
            return f"<code>{escape(repr(self))}</code>"
        from .notebooks import array_html

        return array_html(repr(self), self.download())


class TextureHandle:
    """A texture or surface of a device, as a kernel argument; it keeps its buffer alive."""

    __slots__ = ("buffer", "device", "handle")

    def __init__(self, device: Device, handle: int, buffer: Buffer) -> None:
        self.device, self.handle, self.buffer = device, handle, buffer


class MulticastHandle:
    """A multicast object: one address for the same offset in several buffers, which it keeps alive."""

    __slots__ = ("address", "buffers", "device")

    def __init__(self, device: Device, address: int, buffers: tuple[Buffer, ...]) -> None:
        self.device, self.address, self.buffers = device, address, buffers


class Device(sim.Device):
    """A simulated GPU: `sms` SMs of architecture `target` (None: that of the first module launched).

    memory: bytes of device memory; engine: "native" or "reference"; threads: worker threads (None: one per core); seed:
    shuffle warps, CTAs and the completion of asynchronous work, the same way each time, on one thread; heap: bytes of
    the heap of `malloc` (None: 8 MB); stack: bytes of a thread's stack for recursion, indirect calls and `alloca`
    (None: 8 KB); on_print: called with kernels' output as it is printed; numerics: tensor cores add
    like the target's ("chip"), or by a chain of f32 multiply-adds ("ieee"); tier: whether the native engine runs code
    in compiled regions: loops once that pays ("auto"), none ("interpreter"), or all of it from the start ("regions").

    observers: objects that are told what happens to warps (`ptxtools.Observer`); optimise: False runs kernels as they
    are written, each register in a slot of its own.

    checks: names of run-time checkers, whose reports are in `RunResult.reports`; check_stop: memcheck's first error is
    a `Trap`; suppressions: a file of reports that are known, or what `read_suppressions` of
    `ptxtools.diagnostics.suppressions` has read. Raises `LaunchError` for invalid values.
    """

    @takes(DeviceOptions)
    def __init__(self, options: DeviceOptions) -> None:
        super().__init__(**typed_values(DeviceOptions, options))

    @takes(Call)
    def launch(self, call: Call) -> RunResult:
        """Run a kernel to completion and copy arrays back.

        grid, block, cluster: an int or up to three, in CTAs and threads; shared: bytes of dynamic shared memory;
        cooperative: refuse a grid that is not resident as a whole; stack: bytes per thread (default: the device's);
        timeout: seconds; max_instructions: thread-instructions after which the run ends with a "timeout" trap. args:
        one per parameter; an array is uploaded, and copied back if it is writable (the same array twice is one buffer,
        views are separate buffers); a `Buffer`, `buffer + offset`, None, a number, bytes.

        Raises `LaunchError` before anything runs, and `Trap` if the kernel fails; arrays are then unchanged.
        """
        params = self._packed(call)
        if params is not None:
            result = self._like_before(call, params)
            if result is not None:
                return result
        kernel = call.kernel
        if not isinstance(kernel, Kernel):
            raise LaunchError(f'{type(kernel).__name__} is not a kernel: use module["name"]')
        self.load(kernel.module.loadable)
        if type(call.args) is not list:
            demand(call.args, Iterable, "args", "a list with one argument for each parameter")
        args, parameters = list(call.args), kernel.params
        check_count(kernel.entry, len(args))
        uploads = _Uploads(self)
        try:
            params = parameter_block(kernel.entry, [uploads.value(n, arg, parameters[n]) for n, arg in enumerate(args)])
            result = self._like_before(call, params)
            if result is None:
                result = self.run(kernel.module.loadable, call.request(params))
                if kernel.packing is None:
                    kernel.packing = packing_of(kernel.entry)
            uploads.copy_back()
        finally:
            uploads.free()
        return result

    def _packed(self, call: Call) -> bytes | None:
        """The parameter block of a call with numbers, bytes and buffers of the right sorts; else None."""
        kernel, args = call.kernel, call.args
        packing = kernel.packing if type(kernel) is Kernel else None
        if packing is None or type(args) is not list or len(args) != len(packing.takes):
            return None
        values: list[Any] = []
        for arg, sort in zip(args, packing.takes, strict=True):
            kind = type(arg)
            if kind is Buffer:
                if sort is not POINTER or arg._free or arg._device is not self:
                    return None
                arg = arg._address
            elif kind is bytes:
                if len(arg) != sort:
                    return None
            elif kind is not int and kind is not float:
                return None
            values.append(arg)
        try:
            return packing.pack(*values)
        except (struct.error, OverflowError):  # which is looked at again
            return None

    def _like_before(self, call: Call, params: bytes) -> RunResult | None:
        """Launch what differs from an earlier launch in its parameters (`sim.again`); None where that is not so."""
        if type(call.shared) is not int or not call.has_only_sizes():
            return None
        if type(self).run is not Device.run:  # which is told of each launch
            return None
        grid, block = dim3(call.grid, "grid"), dim3(call.block, "block")
        return self.again.run(self, call.kernel.module.loadable, call.kernel.entry, grid, block, call.shared, params)

    # --- memory -------------------------------------------------------------------------------------------------------

    def alloc(self, nbytes: int) -> Buffer:
        """A buffer of `nbytes` bytes of u8, initially zero; raises `OutOfMemory` (a `LaunchError`).

        initcheck treats it as uninitialised.
        """
        import numpy as np

        nbytes = whole(nbytes, "nbytes")
        if nbytes < 0:
            raise LaunchError(f"a buffer cannot have {nbytes} bytes")
        address = self.arena.allocate(nbytes, zero=True).address
        unwritten = _unwritten(self)
        if unwritten is not None:
            unwritten.add(address, nbytes)
        return Buffer(self, address, np.dtype(np.uint8), (nbytes,))

    def upload(self, array: Array) -> Buffer:
        """A buffer with the content, type and shape of an array."""
        import numpy as np

        array = np.asarray(array)
        _check_dtype(array, "the array")
        address = self.arena.allocate(array.nbytes).address
        self.write(address, array)
        return Buffer(self, address, array.dtype, array.shape)

    def write(self, address: int, array: Array) -> None:
        """Copy an array's elements, in C order, to a device address."""
        import numpy as np

        if array.nbytes:
            np.copyto(self.array_at(address, array.dtype, array.shape), array)
            unwritten = _unwritten(self)
            if unwritten is not None:
                unwritten.written(address, array.nbytes)

    def array_at(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Device memory as an array; writes to it go to device memory."""
        import numpy as np

        count = 1
        for extent in shape:
            count *= extent
        self.runtime.grid_before = None  # the host has waited for it
        return np.frombuffer(self.arena.view(address, count * dtype.itemsize), dtype=dtype).reshape(shape)

    def tensormap(self, buffer: Buffer | Pointer, **fields: Any) -> bytes:
        """A tensor map over a tensor in device memory: 128 bytes, an argument for a kernel.

        fields: those of launch files: type, shape (innermost first), strides (bytes, of dimension 1 and up; default
        dense), box, element_strides, swizzle, interleave, fill; for im2col maps lower_corner, upper_corner,
        channels_per_pixel, pixels_per_column and im2col_w instead of box. Raises `LaunchError`.
        """
        _demand_memory(buffer, "a tensor map")
        try:
            return tensor_map(buffer.address, **fields)
        except (TypeError, ValueError) as error:
            raise LaunchError(f"tensor map: {error}") from None

    def texture(self, buffer: Buffer | Pointer, kind: str = "2d", **fields: Any) -> TextureHandle:
        """A texture over a buffer, or a surface with a kind such as "surface2d"; an argument for a kernel.

        kind: 1d 2d 3d linear a1d a2d cube acube 2dms a2dms; fields: those of launch files: type, channels, size,
        filter, address, normalized, read, border, layers, levels, mip_filter, samples, pitch. Raises `LaunchError`.
        """
        _demand_memory(buffer, "a texture")
        demand(kind, str, "kind", "a word such as '2d'")
        owner = buffer if isinstance(buffer, Buffer) else buffer.buffer
        if "address" in fields:
            fields["address_modes"] = fields.pop("address")
        room = owner.size - (buffer.address - owner.address)
        try:
            made = make(kind, buffer.address, room, **fields)
        except TypeError as error:
            raise LaunchError(f"texture: {error}".replace("make() ", "")) from None
        return TextureHandle(self, self.runtime.textures.add(made), owner)

    def surface(self, buffer: Buffer | Pointer, kind: str = "2d", **fields: Any) -> TextureHandle:
        """A surface over a buffer: a texture that kernels write. kind: 1d 2d 3d a1d a2d."""
        return self.texture(buffer, f"surface{kind}", **fields)

    def multicast(self, buffers: Sequence[Buffer]) -> MulticastHandle:
        """A multicast object over buffers of the same size, one per device of a set; an argument for a kernel."""
        demand(buffers, Iterable, "buffers", "a list of buffers")
        buffers = list(buffers)
        for buffer in buffers:
            demand(buffer, Buffer, "an element of buffers", "a Buffer")
        made = self.runtime.multicasts.add([(buffer.address, buffer.size) for buffer in buffers])
        return MulticastHandle(self, made.address, tuple(buffers))

    def bind(self, module: Module, name: str, texture: TextureHandle) -> None:
        """Bind a texture or surface to a module's .texref or .surfref variable."""
        _demand_module(module)
        demand(texture, TextureHandle, "the second argument of bind", "a texture or surface of this device")
        image = self.load(module.loadable)
        variable = image.variables.get(name)
        if variable is None or variable.type not in ("texref", "surfref"):
            raise LaunchError(f"the module has no .texref or .surfref variable '{name}'")
        self.arena.view(image.addresses[name], 8)[:] = texture.handle.to_bytes(8, "little")

    def global_(self, module: Module, name: str) -> Buffer:
        """The buffer of a module-scope .global or .const variable; raises `LaunchError` if there is none."""
        _demand_module(module)
        demand(name, str, "a variable", "a name")
        image = self.load(module.loadable)
        variable = image.variables.get(name)
        if variable is None:
            raise LaunchError(f"the module has no variable '{name}'{nearest(name, image.variables)}")
        dtype, shape = _variable_type(variable)
        return Buffer(self, image.addresses[name], dtype, shape, owned=False)


class _Uploads:
    """The arrays of one launch on the device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._arrays: dict[int, tuple[Any, int]] = {}

    def value(self, index: int, arg: Any, parameter: Parameter) -> bytes:
        """The bytes of one parameter."""
        if type(arg) is Buffer and arg.device is self._device:  # most often
            return pointer_bytes(arg.address, index, parameter)
        if isinstance(arg, (int, float)):
            return number_bytes(arg, index, parameter)
        if arg is None:
            return pointer_bytes(0, index, parameter)
        if isinstance(arg, (Buffer, Pointer)):
            owner = arg.device if isinstance(arg, Buffer) else arg.buffer.device
            if owner is not self._device:
                raise LaunchError(f"{describe(index, parameter)}: the buffer belongs to another device")
            return pointer_bytes(arg.address, index, parameter)
        if isinstance(arg, MulticastHandle):
            return pointer_bytes(arg.address, index, parameter)
        if isinstance(arg, TextureHandle):
            if arg.device is not self._device:
                raise LaunchError(f"{describe(index, parameter)}: the texture belongs to another device")
            return pointer_bytes(arg.handle, index, parameter)
        if isinstance(arg, (bytes, bytearray, memoryview)):
            return raw_bytes(bytes(arg), index, parameter)
        return self._numpy_value(index, arg, parameter)

    def _numpy_value(self, index: int, arg: Any, parameter: Parameter) -> bytes:
        import numpy as np

        if isinstance(arg, np.ndarray):
            return pointer_bytes(self._address_of(arg, describe(index, parameter)), index, parameter)
        if isinstance(arg, np.void):
            return raw_bytes(arg.tobytes(), index, parameter)
        if isinstance(arg, np.generic) and arg.dtype.kind != "c":
            number = int(arg) if arg.dtype.kind in "iub" else float(arg)
            return number_bytes(number, index, parameter)
        shared = _shared(arg, describe(index, parameter))
        if shared is not None:
            return pointer_bytes(self._address_of(shared, describe(index, parameter), arg), index, parameter)
        raise LaunchError(
            f"{describe(index, parameter)}: a {type(arg).__name__} cannot be passed; "
            "use a NumPy array, a Buffer, a number, None or bytes"
        )

    def _address_of(self, array: Array, what: str, owner: object = None) -> int:
        """Where an array lies on the device. owner: the object whose memory it is, if not its own."""
        key = id(array if owner is None else owner)
        known = self._arrays.get(key)
        if known is None:
            _check_dtype(array, what)
            address = self._device.arena.allocate(array.nbytes).address
            known = self._arrays[key] = (array, address)
            self._device.write(address, array)
            self._device.sources[address] = array
        return known[1]

    def copy_back(self) -> None:
        if not self._arrays:
            return
        import numpy as np

        for array, address in self._arrays.values():
            if array.flags.writeable and array.nbytes:
                np.copyto(array, self._device.array_at(address, array.dtype, array.shape))

    def free(self) -> None:
        self._device.sources = {}
        for _, address in reversed(self._arrays.values()):
            self._device.arena.free(address, reuse=True)


def _unwritten(device: sim.Device) -> Unwritten | None:
    """Which bytes of a device's buffers nobody has written, where initcheck is on."""
    if TrapKind.INITCHECK not in device.checks:
        return None
    from ptxtools.observe.unwritten import unwritten_of

    return unwritten_of(device)


def _shared(value: Any, what: str) -> Array | None:
    """An array over the memory of another library's, by the array interface or DLPack; None if it has neither. Raises
    `LaunchError` where results could not be copied back."""
    import numpy as np

    try:
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        if not hasattr(value, "__dlpack__"):
            return None
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{what}: the memory of this {type(value).__name__} cannot be shared: {error}") from None
    if not array.flags.writeable:
        raise LaunchError(f"{what}: DLPack gives the memory of this {type(value).__name__} for reading only: copy it")
    return array


def _demand_memory(value: Any, what: str) -> None:
    demand(value, (Buffer, Pointer), f"the memory of {what}", "a Buffer or an address inside one (from device.upload)")


def _demand_module(value: Any) -> None:
    demand(value, Module, "a module", "the result of ptxtools.load")


def _check_dtype(array: Array, what: str) -> None:
    if array.dtype.hasobject:
        raise LaunchError(f"{what}: an array of Python objects cannot be copied")
    if not array.dtype.isnative:
        raise LaunchError(f"{what}: the device is little-endian; convert the array: astype(dtype.newbyteorder('<'))")


def _variable_type(variable: Storage) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """NumPy type and shape of a variable; `.bN` elements are unsigned."""
    import numpy as np

    from ptxtools.isa.types import TYPES

    info = TYPES[variable.type]
    letter = {"float": "f", "int": "i" if info.signed else "u"}.get(info.kind, "u")
    dtype = np.dtype(f"{letter}{info.bytes}") if info.bytes in (1, 2, 4, 8) else np.dtype(np.uint8)
    count = variable.size // dtype.itemsize
    shape = list(variable.dims)
    if variable.vector > 1:
        shape.append(variable.vector)
    product = 1
    for extent in shape:
        product *= extent
    return dtype, tuple(shape) if product == count and shape else (count,)
