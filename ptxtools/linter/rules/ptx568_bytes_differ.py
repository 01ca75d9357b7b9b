"""PTX568 | expected bytes are not those of the copies | 9.7.13.15.5

What: an mbarrier expects other bytes than the bulk copies beside it bring, or than a response of
clusterlaunchcontrol has; or, in a cluster of two CTAs, other bytes than come at the mbarrier of its CTA. Certain, if
no other thread adds to either.
Why: its phase never ends, or ends before the data has come.
Example:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<4>; .reg .b64 %d<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.arrive.expect_tx.shared.b64 %d2, [%r2], 128;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 64, [%r2];
        ret;
    }
Better:
    .version 9.0
    .target sm_90
    .address_size 64
    .entry k(.param .b64 x) {
        .reg .b32 %r<4>; .reg .b64 %d<3>; .shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
        mov.b32 %r1, s; mov.b32 %r2, bar; ld.param.b64 %d1, [x];
        mbarrier.arrive.expect_tx.shared.b64 %d2, [%r2], 64;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 64, [%r2];
        ret;
    }
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtools.ir.nodes import Address, Instruction, Name
from ptxtools.ir.positions import part_span

from ..constants import constant
from ..context import LintContext
from ..facts import FunctionFacts
from ..memory import Step
from ..registry import bodies_with
from ..values import Value
from ..walk import tell

#: Where an mbarrier is: its register and offset, or, if the register is written more than once, what it holds.
_Place = tuple[object, int]
#: What a transaction names: the mbarrier, and the guard of the instruction.
_Key = tuple[_Place, str]

CODE = "PTX568"


@bodies_with("cp", "mbarrier")
def check(context: LintContext, facts: FunctionFacts) -> None:
    tell(context, facts, CODE, "bytes differ", "9.7.13.15.5")
    if any(_is_sent_elsewhere(step.line.item.opcode) for steps in facts.steps for step in steps):
        return  # another CTA may bring the rest
    if "clusterlaunchcontrol" in facts.families:
        return  # a response, too, brings bytes: walks know of it
    stretches = [list(_transactions(facts, steps)) for steps in facts.steps]
    homes: dict[_Place, set[int]] = {}
    for number, run in enumerate(stretches):
        for (place, _), _, _ in run:
            homes.setdefault(place, set()).add(number)
    alone = {key for key, numbers in homes.items() if len(numbers) == 1}
    for run in stretches:
        _check(context, run, alone)


def _is_sent_elsewhere(opcode: str) -> bool:
    """Whether an instruction brings bytes to mbarriers of other CTAs of the cluster."""
    if opcode.startswith("cp."):
        return ".multicast::cluster" in opcode or ".shared::cluster.shared::cta" in opcode or ".cta_group::2" in opcode
    return opcode.startswith(("st.async", "red.async"))


def _check(context: LintContext, run: list[tuple[_Key, Step, int | None]], alone: set[_Place]) -> None:
    expected: dict[_Key, list[tuple[Instruction, int, int]]] = {}
    copied: dict[_Key, list[int | None]] = {}
    for key, step, size in run:
        if step.family == "cp":
            copied.setdefault(key, []).append(size)
        elif size is None:
            return
        else:
            expected.setdefault(key, []).append((step.line.item, len(step.line.item.operands) - 1, size))
    for key, expects in expected.items():
        sizes = copied.get(key, [])
        if (
            key[0] not in alone
            or not sizes
            or None in sizes
            or len({k for k in (*copied, *expected) if k[0] == key[0]}) > 1
        ):
            continue
        total, wanted = sum(size for size in sizes if size is not None), sum(size for _, _, size in expects)
        if total != wanted:
            item, place, _ = expects[-1]
            message = f"{wanted} bytes are expected, and the copies here bring {total}"
            context.warn(CODE, message, part_span(item, place), section="9.7.13.15.5")


def _transactions(facts: FunctionFacts, steps: list[Step]) -> Iterator[tuple[_Key, Step, int | None]]:
    """Expectations and copies at mbarriers that are told apart; None: a size that is not known."""
    for step in steps:
        opcode, operands = step.line.item.opcode, step.line.item.operands
        if "expect_tx" in opcode and step.family == "mbarrier":
            where, size = len(operands) - 2, operands[-1]
        elif opcode.startswith("cp.async.bulk.") and "mbarrier::complete_tx" in opcode and len(operands) > 2:
            tensor = ".tensor." in opcode
            where = min(2 if tensor else 3, len(operands) - 1)
            size = operands[0] if tensor else operands[2]
        else:
            continue
        place = _place(facts, step, where)
        if place is not None:
            guard = step.line.item.guard
            who = "" if guard is None else f"{'!' * guard.negated}{guard.name}"
            yield (place, who), step, constant(facts, step.line, size)


def _place(facts: FunctionFacts, step: Step, where: int) -> _Place | None:
    address = step.line.item.operands[where]
    if not isinstance(address, Address) or not isinstance(address.base, Name):
        return None
    value: Value | None = step.addresses[where]
    if value is not None and value.variable and len(value.terms) == 1 and isinstance(value.each, int):
        return value.terms, value.each
    if step.line.registers[address.base.name] not in facts.rewritten:
        return address.base.name, address.offset
    return None
