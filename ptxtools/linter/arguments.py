"""Addresses that begin at a pointer which a kernel is given."""

from __future__ import annotations

from ptxtools.ir.nodes import Function

from .values import Value

#: Alignment of memory that is allocated on a device, in bytes: any access suits it.
_ALLOCATED = 256


def misalignment(function: Function, address: Value, size: int) -> int:
    """Bytes by which an address misses a multiple of `size`, if the pointer that a kernel is given is aligned as
    allocated memory is; 0 if it suits, or if that is not known."""
    each = address.each
    if type(each) is range:
        rest = each.start % size if size and not each.step % size else 0
    else:
        rests = {number % size for number in address.numbers} if size else {0}
        rest = rests.pop() if len(rests) == 1 else 0
    return rest if rest and is_pointer(function, address, size) else 0


def is_pointer(function: Function, address: Value, size: int) -> bool:
    """Whether an address is one pointer that a kernel is given, aligned as allocated memory is, beside a known number
    and multiples of `size`."""
    if function.kind != "entry" or not address.terms or size & (size - 1) or not 1 < size <= _ALLOCATED:
        return False
    pointers = 0
    for name, count in address.terms:
        if name[0] in "#%&" or name.startswith(("cvta.", "=")):
            if name[0] == "&" or count % size:
                return False
        elif count != 1 or not _aligned(function, name, size):
            return False
        else:
            pointers += 1
    return pointers == 1


def _aligned(function: Function, name: str, size: int) -> bool:
    """Whether a parameter is one pointer that no directive says to be less aligned."""
    parameter, _, offset = name.rpartition("+")
    found = next((one for one in function.params if one.name == parameter), None)
    if found is None or offset != "0" or found.dims:
        return False
    align = found.ptr[1] if found.ptr is not None else None
    return align is None or align == 1 or align >= size  # 1 is what nvcc writes of every pointer
