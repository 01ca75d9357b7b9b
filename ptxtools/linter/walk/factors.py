"""What products of a walk read of shared memory: rows by ldmatrix, and factors through descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtools.isa.descriptors import variant_of

from ..accesses import rows_of
from ..values import THREADS, WARP, Value, shortest
from .barriers import first_of
from .computing import Described, Op, differs, origin, truth
from .shadow import OWNER, Place

if TYPE_CHECKING:
    from .memory import Memory
    from .walker import Group

#: Bytes that a product reads of each factor at least, from where its descriptor says: eight rows, or part of one row
#: where the rows are swizzled (bits 61 to 63).
_ROWS, _ROW, _SWIZZLE = 128, 32, 61
#: Groups of eight rows that the first factor has at least.
_EIGHTS = 8
#: Bits of a descriptor: bytes between parts of a row, and between groups of eight rows, in units of 16.
_LEADING, _STRIDE, _FIELD = 16, 32, 0x3FFF
#: Bit of a descriptor that says that it has an address instead of the first of them.
_ABSOLUTE = 52
#: What tells the shared memory of one CTA from that of the other one of a pair.
_PEER = 3 << OWNER
_HALVES = (0xFFFFFFFF, 0xFFFFFFFF << WARP)


class Factors:
    """The products of a walk, and what they read."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.walker = memory, memory.walker

    def rows(self, group: Group, op: Op, mask: int) -> None:
        """ldmatrix, stmatrix: each lane gives the address of a row of 16 bytes, as many as there are matrices."""
        operand, kind = (0, "stores") if op.family == "stmatrix" else (1, "reads")
        given = sum(((1 << rows_of(op.opcode)) - 1) << half for half in (0, WARP))
        place = self.memory.place_of(group, op, operand, "shared")
        if place is not None and ".m8n8" in op.opcode and mask & given:
            self.memory.touch(group, op, operand, place, 16, mask & given, kind, False)
        elif kind == "stores":
            self.memory.unseen()

    def look_at_sums(self, group: Group, op: Op) -> None:
        """Whether a product certainly adds to registers that nothing has written."""
        scale = self.operand(group, op, "scale_d")
        if scale is None or truth(scale) != -1 or group.stack or self.walker.assumed:
            return
        missing = next((key for key in op.into if key not in group.registers), None)
        if missing is not None:
            message = f"'{missing[1]}' is added to, and nothing has written it"
            self.walker.report("unwritten register", op.line, None, message, name=missing[1])

    def look_at_descriptors(self, group: Group, op: Op, mask: int) -> None:
        """Whether all threads of a warpgroup give a product the same descriptors (9.7.15.5.2)."""
        threads = self.memory.threads
        if threads.apart or group.doubtful or self.walker.assumed:
            return
        for place, spec in enumerate(op.line.plan.specs[: len(op.line.item.operands)]):
            value = self.operand(group, op, spec.name) if spec.name.endswith("_desc") else None
            if value is not None and differs(value):
                start = origin(value)
                value = start.address if start is not None else None
            if value is None or isinstance(value.each, int) or differs(value):
                continue
            unit = 16 if value.variable else 1  # of an address
            for part in (mask,) if threads.group else (mask & half for half in _HALVES):
                numbers, first = [number // unit for number in value.numbers], first_of(part)
                other = next((at for at in range(THREADS) if part >> at & 1 and numbers[at] != numbers[first]), None)
                if other is not None:
                    message = (
                        f"{threads.name(other)} gives this product another descriptor than {threads.name(first)}: it "
                        "is one for the whole warpgroup"
                    )
                    self.walker.report("part of a warpgroup", op.line, place, message)
                    return

    def operand(self, group: Group, op: Op, wanted: str) -> Value | None:
        """A register among the operands, by the name that the manual gives it."""
        names = [spec.name for spec in op.line.plan.specs]
        place = names.index(wanted) if wanted in names else len(op.line.item.operands)
        operand = op.line.item.operands[place] if place < len(op.line.item.operands) else None
        key = next((key for key in op.reads if key[1] == getattr(operand, "name", None)), None)
        return self.walker.value(group, key) if key is not None else None

    def read(self, group: Group, op: Op, mask: int, token: int) -> None:
        """What a product, or a copy to tensor memory, reads of shared memory through descriptors."""
        for place, spec in enumerate(op.line.plan.specs[: len(op.line.item.operands)]):
            value = self.operand(group, op, spec.name) if spec.name.endswith("_desc") else None
            start = origin(value) if value is not None else None
            where = self.memory.placed(start.address, "shared", op.line) if start is not None else None
            if where is None or start is None:
                continue
            size = _ROW if start.bits >> _SWIZZLE else _ROWS
            if size == _ROWS and spec.name.startswith("a") and start.bits >> _STRIDE & _FIELD == _ROWS >> 4:
                size *= _EIGHTS  # one group of eight rows is behind the other
            self.memory.proxies.read(op, place, where.address, size, mask, "proxy of a matrix")
            self.memory.touch(group, op, place, where, size, mask, "reads", False, None, True, token)
            if self.memory.all_seen and isinstance(where.address.each, int):
                self.memory.bytes.factor(op.line, place, where.address, self._reach(group, op, spec.name, start))
            if ".cta_group::2" in op.opcode and self.memory.threads.kind == "cluster":
                peer = Value(where.address.terms, shortest(iter([number ^ _PEER for number in where.address.numbers])))
                self.memory.touch(
                    group, op, place, Place(where.space, peer), size, mask, "reads", False, None, True, token
                )

    def _reach(self, group: Group, op: Op, name: str, start: Described) -> frozenset[int]:
        """The bytes behind its start that are certainly read of a factor: without swizzling, of groups of eight rows
        two parts of 16 bytes each row where K is the leading dimension (9.7.15.5.1, 9.7.16.10.6)."""
        if not start.whole or start.bits >> _SWIZZLE or start.bits >> _ABSOLUTE & 1:
            return frozenset()
        rows, leading = self._rows(group, op, name)
        reach = set(range(_ROWS))
        for eight in range(rows // 8):
            for part in range(2 if leading else 1):
                first = eight * (start.bits >> _STRIDE & _FIELD) * 16 + part * (start.bits >> _LEADING & _FIELD) * 16
                reach.update(range(first, first + _ROWS))
        return frozenset(reach)

    def _rows(self, group: Group, op: Op, name: str) -> tuple[int, bool]:
        """Rows of a factor (columns of the second one) that are certainly read, and whether K is its leading
        dimension; 0 if that is not known."""
        opcode, first = op.line.plan.op, name.startswith("a")
        if opcode is None:
            return 0, False
        if op.family == "wgmma":
            shape = next((word for word in op.opcode.split(".") if word.startswith("m64n")), "m64n0k0")
            plain = all(self._number(group, op, f"imm_trans_{side}") in (0, None) for side in "ab")
            rows = 64 if first else int(shape[4:].partition("k")[0])
            return (rows, True) if plain else (0, False)
        described = self.operand(group, op, "idesc") if op.opcode.startswith("tcgen05.mma") else None
        if described is None or described.constant is None:
            return 0, False
        value, variant = described.constant, variant_of(opcode, wide=False)
        if value >> (15 if first else 16) & 1 or variant.ctas != 1 or variant.kind.startswith("mx"):
            return 0, False
        return (value >> 24 & 31) << 4 if first else (value >> 17 & 63) << 3, True

    def _number(self, group: Group, op: Op, name: str) -> int | None:
        """An operand by the manual's name, as a number; None if it is absent."""
        names = [spec.name for spec in op.line.plan.specs]
        return self.memory.size_at(group, op, names.index(name)) if name in names else None
