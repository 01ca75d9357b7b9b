"""Whether threads of a walk access memory at addresses that suit the size of what they access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.ir.nodes import Function, Variable

from ..accesses import element_bytes
from ..arguments import is_pointer
from ..memory import access_bytes
from ..values import Value

if TYPE_CHECKING:
    from ..facts import Line
    from .shadow import Touch
    from .walker import Walker


def look_at_alignment(walker: Walker, touch: Touch) -> None:
    """Whether a thread's address is no multiple of the bytes that it accesses: in a variable, or behind a pointer that
    the kernel is given, each aligned at least so (6.4.1)."""
    size, each = access_bytes(touch.line), touch.address.each
    if size < 2 or (isinstance(each, int) and not each % size):  # st.bulk has a number of bytes
        return
    numbers, mask = touch.address.numbers, touch.mask
    thread = next((at for at, number in enumerate(numbers) if mask >> at & 1 and number % size), None)
    if thread is None or not _suits(walker.program.function, touch.line, touch.address, size):
        return
    given = "" if touch.address.variable else ", if the pointer that the kernel is given is aligned"
    rest, who = numbers[thread] % size, walker.threads.name(thread)
    message = f"the address of {who} is {rest} bytes behind a multiple of {size}{given}"
    walker.report("misaligned", touch.line, touch.operand, message, sure=not given)


def _suits(function: Function, line: Line, address: Value, size: int) -> bool:
    """Whether what an address is a distance from is aligned to so many bytes."""
    if not address.variable:
        return is_pointer(function, address, size)
    symbol = line.names.lookup(address.variable)
    if not isinstance(symbol, Variable) or address.terms[0][1] != 1:
        return False
    align = symbol.align or element_bytes(symbol)
    return bool(align) and not align % size
