"""PTX541 | misaligned access | 6.4.1

What: a load or store at an offset that is not a multiple of its size, at least for one thread that comes to it: of a
variable (certain), or of a pointer that the kernel is given (possible: it is not if that pointer is misaligned, too).
So for both addresses of a cp.async, for mbarriers and st.bulk (8 bytes), and for rows of ldmatrix and stmatrix (16);
discard.L2 needs a multiple of 128. Or a variable has a smaller alignment than an access of it needs (possible: it may
stand at a suitable address).
Why: misaligned accesses fault at run time.
Example:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+4];
Better:
    .shared .align 8 .b8 table[32];
    ld.shared.b64 %rd1, [table+8];
"""

from __future__ import annotations

from ptxtools.ir.positions import part_span
from ptxtools.isa.types import TYPES

from ..accesses import Access, element_bytes, rows_of
from ..arguments import is_pointer, misalignment
from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..memory import Reach, Step, variable_of
from ..registry import bodies_with, variable_accesses
from ..values import WARP, Value
from ..walk import tell

CODE = "PTX541"

#: Bytes that any variable of words is aligned to.
_LEAST = 4
_GIVEN = "possible: the pointer may be off by as much"
#: Bytes of a row of a matrix, and their alignment.
_ROW = 16
_SECTIONS = {"ldmatrix": "9.7.14.5.15", "stmatrix": "9.7.14.5.16"}
#: Bytes that discard takes, and their alignment.
_LINE = 128
#: Bytes of mbarriers and st.bulk, and the sections that say what they are aligned to.
_ALIGNED = {"mbarrier": (8, "9.7.13.15.1"), "st": (8, "9.7.9.13")}


@variable_accesses
def check(context: LintContext, line: Line, access: Access) -> None:
    if access.misaligned:
        where = f"'{access.symbol.name}{access.offset:+d}'"
        message = f"{where} is not aligned to the {access.size} bytes that '{access.op.text}' accesses"
        context.warn(CODE, message, part_span(line.item, access.operand), section="6.4.1")


@bodies_with("ld", "st", "atom", "red")
def check_arguments(context: LintContext, facts: FunctionFacts) -> None:
    seen: set[int] = set()
    for step in facts.accesses:
        access = step.access
        if access is not None and access.size > _LEAST:
            _look_at_alignment(context, step, access, seen)
        if access is not None and access.space == "shared" and step.indirect:
            thread = _thread_off(step)
            if thread is not None:
                message = f"the address of thread {thread} is no multiple of the {access.size} bytes of the access"
                context.warn(CODE, message, part_span(step.line.item, access.operand), section="6.4.1")
        if access is None or access.space not in ("", "global"):
            continue
        rest = misalignment(facts.function, access.address, access.size)
        if not rest and step.active is not None and isinstance(access.address.each, range):
            rest = _rest_of_a_thread(facts, step)
        if rest:
            message = (
                f"the address is {rest} bytes behind a multiple of {access.size}, if the pointer that the kernel is "
                "given is aligned"
            )
            context.warn(CODE, message, part_span(step.line.item, access.operand), section="6.4.1")
    tell(context, facts, CODE, "misaligned", "6.4.1")


@bodies_with("cp")
def check_copies(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            item = step.line.item
            copies = item.opcode.startswith(("cp.async.ca", "cp.async.cg")) and len(item.operands) > 2
            size = constant(facts, step.line, item.operands[2]) if copies else None
            for place, address in enumerate(step.addresses[:2] if size else ()):
                if address is None or size is None:
                    continue
                if place == 0:
                    off = _off(step, address, size)
                    message = f"the address of a thread is no multiple of the {size} bytes that are copied"
                    help: tuple[str, ...] = ()
                else:
                    off = misalignment(facts.function, address, size) != 0
                    message = f"the address is no multiple of {size} bytes, if the pointer that is given is aligned"
                    help = (_GIVEN,)
                if off:
                    context.warn(CODE, message, part_span(step.line.item, place), help=help, section="9.7.9.25.3")


@bodies_with("mbarrier", "st")
def check_others(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            size, section = _ALIGNED.get(step.family, (0, ""))
            if step.family == "st" and not step.line.item.opcode.startswith("st.bulk"):
                continue
            for place, address in enumerate(step.addresses if size else ()):
                if address is not None and _off(step, address, size):
                    message = f"the address of a thread is no multiple of {size}"
                    context.warn(CODE, message, part_span(step.line.item, place), section=section)


def _off(step: Step, address: Value, size: int) -> bool:
    """Whether some thread, or each, is certainly off at an aligned variable."""
    symbol = variable_of(step.line, address)
    if symbol is None or len(address.terms) > 1 or (symbol.align or element_bytes(symbol)) % size:
        return False
    rests = [number % size for number in address.numbers]
    active = step.active or (False,) * len(rests)
    return all(rests) or any(rest and runs for rest, runs in zip(rests, active, strict=True))


@bodies_with("ldmatrix", "stmatrix")
def check_rows(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            place = 0 if step.family == "stmatrix" else 1
            address = step.addresses[place] if step.family in _SECTIONS and place < len(step.addresses) else None
            symbol = variable_of(step.line, address) if address is not None else None
            if address is None or symbol is None or len(address.terms) > 1 or (symbol.align or 1) % _ROW:
                continue
            rows = address.numbers[: rows_of(step.line.item.opcode)]
            thread = next((at for at, number in enumerate(rows) if number % _ROW), None)
            if thread is not None:
                message = f"the row of thread {thread} is at no multiple of {_ROW} bytes"
                context.warn(CODE, message, part_span(step.line.item, place), section=_SECTIONS[step.family])


@bodies_with("discard")
def check_lines(context: LintContext, facts: FunctionFacts) -> None:
    for steps in facts.steps:
        for step in steps:
            address = step.addresses[0] if step.family == "discard" and step.addresses else None
            rest = misalignment(facts.function, address, _LINE) if address is not None else 0
            if rest:
                message = f"the address is {rest} bytes behind a multiple of {_LINE}, if what is given is aligned"
                context.warn(CODE, message, part_span(step.line.item, 0), help=(_GIVEN,), section="9.7.9.17")


def _look_at_alignment(context: LintContext, step: Step, access: Reach, seen: set[int]) -> None:
    """Whether what is declared of a variable does not suffice for an access of it."""
    symbol = variable_of(step.line, access.address)
    if symbol is None or id(symbol) in seen or symbol.linkage in ("extern", "common", "weak"):
        return
    align = symbol.align or element_bytes(symbol)
    if access.size > align and not access.size & (access.size - 1) and symbol.type in TYPES:
        seen.add(id(symbol))
        message = f"'{symbol.name}' is aligned to {align} bytes, and this accesses {access.size} at once"
        help = (f"possible: its address may suffice; declare .align {access.size}",)
        context.warn(CODE, message, part_span(step.line.item, access.operand), help=help, section="5.4.5")


def _rest_of_a_thread(facts: FunctionFacts, step: Step) -> int:
    """By how many bytes the first thread that certainly runs an access, and is off, is so."""
    access, active = step.access, step.active
    if access is None or active is None or not access.size:
        return 0
    numbers = zip(access.address.numbers[:WARP], active[:WARP], strict=True)
    rest = next((rest for number, runs in numbers if runs and (rest := number % access.size)), 0)
    return rest if rest and is_pointer(facts.function, access.address, access.size) else 0


def _thread_off(step: Step) -> int | None:
    """The first thread that certainly accesses an aligned variable where its own access is not aligned."""
    access = step.access
    symbol = variable_of(step.line, access.address) if access is not None else None
    if access is None or symbol is None or step.active is None or len(access.address.terms) > 1:
        return None
    if (symbol.align or element_bytes(symbol)) % access.size:
        return None
    numbers = enumerate(zip(access.address.numbers, step.active, strict=True))
    return next((thread for thread, (number, runs) in numbers if runs and number % access.size), None)
