"""Arguments to bytes: each converted to its parameter's type and put at its offset in the parameter block."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from ptxtools.diagnostics import LaunchError, shown
from ptxtools.diagnostics.text import join_words
from ptxtools.records import NamedTuple
from ptxtools.sim.kernel import Kernel, Parameter

from .elements import ElementType

_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
#: The float type whose bits a float gives for an untyped parameter.
_FLOAT_OF_BITS = {"b16": "f16", "b32": "f32", "b64": "f64"}


def describe(index: int, parameter: Parameter) -> str:
    return f"argument {index} ({parameter})"


def parameter_block(kernel: Kernel, values: Sequence[bytes]) -> bytes:
    """The parameter block of one value per parameter; padding is zero."""
    dense = b"".join(values)
    if len(dense) == kernel.parameter_bytes:  # most often
        return dense
    block = bytearray(kernel.parameter_bytes)
    for parameter, value in zip(kernel.parameters, values, strict=True):
        block[parameter.offset : parameter.offset + parameter.size] = value
    return bytes(block)


#: Codes of `struct` for the types of parameters.
_CODES = {name: code[1:] for name, code in _FLOATS.items()} | {
    f"{letter}{bits}": code.lower() if letter == "s" else code
    for letter in "usb"
    for bits, code in ((8, "B"), (16, "H"), (32, "I"), (64, "Q"))
}
#: What a `Packing` takes beside numbers.
POINTER, NUMBER = -1, 0


class Packing(NamedTuple):
    """Parameter blocks in one step. pack: of numbers, addresses, and bytes for arrays; raises `struct.error` or
    OverflowError for what is no plain value of its type. takes: for each parameter POINTER, NUMBER, or the size of an
    array."""

    pack: Callable[..., bytes]
    takes: tuple[int, ...]


def packing_of(kernel: Kernel) -> Packing:
    """What makes the parameter blocks of a kernel; it takes nothing if there are parameters of other types."""
    codes, takes, end = ["<"], [], 0
    for one in kernel.parameters:
        code = f"{one.size}s" if one.array else _CODES.get(one.type)
        if code is None or one.offset < end:
            return Packing(bytes, ())
        codes += [f"{one.offset - end}x", code]
        takes.append(one.size if one.array else POINTER if one.pointer else NUMBER)
        end = one.offset + one.size
    return Packing(struct.Struct("".join(codes)).pack, tuple(takes))


def check_count(kernel: Kernel, given: int, others: Iterable[Kernel] = ()) -> None:
    """Raise `LaunchError` unless there is one argument for each parameter; the message names those of `others` that
    fit."""
    wanted = len(kernel.parameters)
    if given != wanted:
        names = ", ".join(str(p) for p in kernel.parameters)
        takes = f"takes {_arguments(wanted)}" + (f" ({names})" if names else "")
        fitting = [shown(other.name) for other in others if len(other.parameters) == given and other is not kernel]
        one = len(fitting) == 1
        names = join_words(fitting[:3], "and") + (" and others" if len(fitting) > 3 else "")
        hint = ""
        if fitting:
            from shlex import quote

            hint = f"; kernel{'' if one else 's'} {names} take{'s' if one else ''} {given}: -k {quote(fitting[0])}"
        raise LaunchError(f"kernel {shown(kernel.name)} {takes}, {given} given{hint}")


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


def pointer_bytes(address: int, index: int, parameter: Parameter) -> bytes:
    """An address as a parameter; raises `LaunchError` if the parameter cannot hold one."""
    if not parameter.pointer:
        raise LaunchError(f"{describe(index, parameter)} is not a pointer: it cannot take a buffer or null")
    if address >> (8 * parameter.size):
        raise LaunchError(f"{describe(index, parameter)} is too small for the address {address:#x}")
    return address.to_bytes(parameter.size, "little")


def raw_bytes(data: bytes, index: int, parameter: Parameter) -> bytes:
    """The bytes of a parameter; raises `LaunchError` if their number differs."""
    if len(data) != parameter.size:
        raise LaunchError(f"{describe(index, parameter)} has {parameter.size} bytes, not {len(data)}")
    return data


def number_bytes(value: int | float, index: int, parameter: Parameter, type_: ElementType | None = None) -> bytes:
    """A number converted to the parameter's type, or to `type_`; raises `LaunchError` if that is not possible."""
    if parameter.array:
        raise LaunchError(f"{describe(index, parameter)} is passed by value: it requires {parameter.size} bytes")
    if type_ is not None:
        return _typed(value, index, parameter, type_)
    name = parameter.type
    if isinstance(value, float) and name in _FLOAT_OF_BITS:
        name = _FLOAT_OF_BITS[name]
    if name in _FLOATS:
        return _float(value, name, index, parameter)
    if name[0] not in "usb" or not name[1:].isdigit():
        raise LaunchError(f"{describe(index, parameter)} cannot be given as a number")
    return _integer(value, index, parameter)


def _integer(value: int | float, index: int, parameter: Parameter) -> bytes:
    bits = 8 * parameter.size
    if isinstance(value, float):
        if not value.is_integer():
            raise LaunchError(f"{describe(index, parameter)} is an integer, not {value}; f32:{value} gives the bits")
        value = int(value)
    if not -(1 << bits) < value < 1 << bits:
        raise LaunchError(f"{value} does not fit {describe(index, parameter)}")
    return (value & ((1 << bits) - 1)).to_bytes(parameter.size, "little")


def _float(value: int | float, name: str, index: int, parameter: Parameter) -> bytes:
    try:
        return struct.pack(_FLOATS[name], value)
    except OverflowError:
        raise LaunchError(f"{value} is too large for {describe(index, parameter)}") from None


def _typed(value: int | float, index: int, parameter: Parameter, type_: ElementType) -> bytes:
    """A value with an explicit type: its bits, which must be as wide as the parameter."""
    if type_.bytes != parameter.size:
        raise LaunchError(f"{describe(index, parameter)} has {parameter.size} bytes; {type_.name} has {type_.bytes}")
    if type_.name in _FLOATS:
        return _float(value, type_.name, index, parameter)
    if type_.kind != "f":
        return _integer(value, index, parameter)
    import numpy as np

    from .elements import encode

    return encode(np.array([value], dtype=np.float64), type_).tobytes()
