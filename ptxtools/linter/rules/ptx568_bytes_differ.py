"""PTX568 | expected bytes are not those of the copies | 9.7.13.15.5

What: an mbarrier expects other bytes than the bulk copies beside it bring. Certain, if no other thread adds to either.
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

from ptxtools.ir.nodes import Address, Immediate, Instruction, Name
from ptxtools.ir.positions import part_span

from ..context import LintContext
from ..facts import FunctionFacts, Line
from ..registry import bodies_with

#: What a transaction names: the mbarrier's register and offset, and the guard of the instruction.
_Key = tuple[str, int, str]

CODE = "PTX568"


@bodies_with("cp")
def check(context: LintContext, facts: FunctionFacts) -> None:
    stretches = list(facts.runs)
    homes: dict[tuple[str, int], set[int]] = {}
    for number, run in enumerate(stretches):
        for key, _, _ in _transactions(facts, run):
            homes.setdefault(key[:2], set()).add(number)
    alone = {key for key, numbers in homes.items() if len(numbers) == 1}
    for run in stretches:
        _check(context, facts, run, alone)


def _check(context: LintContext, facts: FunctionFacts, run: list[Line], alone: set[tuple[str, int]]) -> None:
    expected: dict[_Key, list[tuple[Instruction, int, int]]] = {}
    copied: dict[_Key, list[int | None]] = {}
    for key, line, size in _transactions(facts, run):
        if line.plan.family == "cp":
            copied.setdefault(key, []).append(size)
        elif size is None:
            return
        else:
            expected.setdefault(key, []).append((line.item, len(line.item.operands) - 1, size))
    for key, expects in expected.items():
        sizes = copied.get(key, [])
        if (
            key[:2] not in alone
            or not sizes
            or None in sizes
            or len({k for k in (*copied, *expected) if k[:2] == key[:2]}) > 1
        ):
            continue
        total, wanted = sum(size for size in sizes if size is not None), sum(size for _, _, size in expects)
        if total != wanted:
            item, place, _ = expects[-1]
            message = f"{wanted} bytes are expected, and the copies here bring {total}"
            context.warn(CODE, message, part_span(item, place), section="9.7.13.15.5")


def _transactions(facts: FunctionFacts, run: list[Line]) -> Iterator[tuple[_Key, Line, int | None]]:
    """Expectations and copies at mbarriers whose register is written once; None: a size that is not known."""
    for line in run:
        opcode, operands = line.item.opcode, line.item.operands
        if "expect_tx" in opcode and line.plan.family == "mbarrier":
            address, size = operands[-2], operands[-1]
        elif opcode.startswith("cp.async.bulk.") and "mbarrier::complete_tx" in opcode and len(operands) > 2:
            tensor = ".tensor." in opcode
            address = operands[2 if tensor else 3] if len(operands) > (2 if tensor else 3) else operands[-1]
            size = operands[0] if tensor else operands[2]
        else:
            continue
        if not isinstance(address, Address) or not isinstance(address.base, Name):
            continue
        if line.registers[address.base.name] in facts.rewritten:
            continue
        guard = line.item.guard
        who = "" if guard is None else f"{'!' * guard.negated}{guard.name}"
        yield (address.base.name, address.offset, who), line, size.value if isinstance(size, Immediate) else None
