"""Instructions: one reader for each shape of their text (LLVM's "Instruction Reference")."""

from __future__ import annotations

from collections.abc import Callable

from .calls import FAST, CallReader
from .nodes import Instruction, Value, Word
from .reader import Malformed
from .tokens import words
from .types import LABEL
from .values import BINARY, CASTS

ORDERINGS = words("unordered monotonic acquire release acq_rel seq_cst")
RMW = words(
    "xchg add sub and nand or xor max min umax umin fadd fsub fmax fmin uinc_wrap udec_wrap usub_cond usub_sat "
    "fmaximum fminimum"
)
#: Instructions without a result; calls and the like may have none, too.
_NO_RESULT = words("store fence ret br switch indirectbr resume unreachable")
_INT_PREDICATES = words("eq ne ugt uge ult ule sgt sge slt sle")
_FLOAT_PREDICATES = words("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true")
TERMINATORS = words("ret br switch indirectbr invoke callbr resume catchswitch catchret cleanupret unreachable")


class BodyReader(CallReader):
    def instruction(self) -> Instruction:
        """An instruction with its metadata; Malformed if it is none."""
        name, named_at = "", self.at()
        if self.texts[self.i][:1] == "%":
            name = self.word()
            self.demand("=")
        at, op = self.at(), self.texts[self.i]
        if op == "#" and self.texts[self.i + 1][:4] == "dbg_":
            return self._record()
        read = _READERS.get(op)
        if read is None:
            raise self.fail(f"{self.shown()} is no instruction" if op else "expected an instruction")
        self.i += 1
        found = Instruction(op, at, name, named_at)
        read(self, found)
        if self.texts[self.i] == ",":
            self._after(found)
        last = self.i - 1
        found.end = self.starts[last] + len(self.texts[last])
        if found.name and found.op in _NO_RESULT:
            raise Malformed(f"'{found.op}' has no result to name", last)
        return found

    def _record(self) -> Instruction:
        """`#dbg_value(…)`: what newer LLVMs have instead of calls of llvm.dbg.value."""
        at = self.at()
        self.i += 2
        found = Instruction(f"#{self.texts[self.i - 1]}", at, "", at)
        self.in_parentheses()
        found.end = self.starts[self.i - 1] + 1
        return found

    def _after(self, found: Instruction) -> None:
        """`, align 4` and `, !dbg !7`, in any order."""
        while self.take(","):
            token = self.texts[self.i]
            if token == "align":
                self.i += 1
                found.extra["align"] = self.number(), self.starts[self.i - 1]
            elif token == "addrspace" and found.op == "alloca":
                found.extra["space"] = self.starts[self.i], self.space()
            elif token[:1] == "!" and len(token) > 1:
                found.metadata.append(self.attachment())
            else:
                raise self.expected("'align' or metadata")

    def attachment(self) -> tuple[Word, Word]:
        """`!dbg !7`: the name, and the node."""
        name = self.word(), self.starts[self.i - 1]
        if self.texts[self.i][:1] != "!":
            raise self.expected("a metadata node")
        node = self.metadata_value()
        return name, (node.text, node.at)

    def _pair(self, found: Instruction) -> None:
        """`T a, b`: two operands of one type."""
        first = self.typed_value()
        self.demand(",")
        found.operands = [first, self.value(first.type)]

    def _typed_list(self, found: Instruction, count: int) -> None:
        found.operands.append(self.typed_value())
        for _ in range(count - 1):
            self.demand(",")
            found.operands.append(self.typed_value())

    def binary(self, found: Instruction) -> None:
        found.extra["flags"] = self.flags() + self.words(FAST)
        self._pair(found)

    def unary(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(FAST)
        self._typed_list(found, 1)

    def compare(self, found: Instruction) -> None:
        self.flags()
        self.words(FAST)
        predicate = self.word()
        if predicate not in (_INT_PREDICATES if found.op == "icmp" else _FLOAT_PREDICATES):
            raise Malformed(f"{found.op} has no predicate '{predicate}'", self.i - 1)
        self._pair(found)

    def cast(self, found: Instruction) -> None:
        found.extra["flags"] = self.flags() + self.words(FAST)
        self._typed_list(found, 1)
        self.demand("to")
        found.extra["type_at"] = self.at()
        found.extra["type"] = self.type()

    def select(self, found: Instruction) -> None:
        self.words(FAST)
        self._typed_list(found, 3)

    def two(self, found: Instruction) -> None:
        self._typed_list(found, 2)

    def three(self, found: Instruction) -> None:
        self._typed_list(found, 3)

    def one(self, found: Instruction) -> None:
        self._typed_list(found, 1)

    def _positions(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while self.texts[self.i] == "," and self.texts[self.i + 1][:1].isdecimal():
            self.i += 1
            found.append((self.number(), self.starts[self.i - 1]))
        if not found:
            raise self.expected("an index")
        return found

    def extract_value(self, found: Instruction) -> None:
        self._typed_list(found, 1)
        found.extra["indices"] = self._positions()

    def insert_value(self, found: Instruction) -> None:
        self._typed_list(found, 2)
        found.extra["indices"] = self._positions()

    def alloca(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(frozenset(("inalloca", "swifterror")))
        found.extra["type_at"] = self.at()
        found.extra["type"] = self.type()
        if self.texts[self.i] == "," and self._starts_type(self.texts[self.i + 1]):
            self.i += 1
            found.operands.append(self.typed_value())

    @staticmethod
    def _starts_type(token: str) -> bool:
        return token not in ("align", "addrspace") and token[:1] != "!"

    def _atomic(self, found: Instruction) -> None:
        """`syncscope("x") ordering`, where an access is atomic."""
        if self.texts[self.i] == "syncscope":
            self.i += 1
            found.extra["scope"] = self.in_parentheses(), self.starts[self.i - 1]
        found.extra["ordering"] = self.words(ORDERINGS)

    def load(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(frozenset(("atomic", "volatile")))
        found.extra["type_at"] = self.at()
        found.extra["type"] = self.type()
        self.demand(",")
        self._typed_list(found, 1)
        self._atomic(found)

    def store(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(frozenset(("atomic", "volatile")))
        self._typed_list(found, 2)
        self._atomic(found)

    def fence(self, found: Instruction) -> None:
        self._atomic(found)

    def cmpxchg(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(frozenset(("weak", "volatile")))
        self._typed_list(found, 3)
        self._atomic(found)
        if len(found.extra["ordering"]) != 2:
            raise self.expected("two orderings")

    def atomicrmw(self, found: Instruction) -> None:
        found.extra["flags"] = self.words(frozenset(("volatile",)))
        if self.texts[self.i] not in RMW:
            raise self.fail(f"atomicrmw has no operation {self.shown()}")
        found.extra["operation"] = self.word(), self.starts[self.i - 1]
        self._typed_list(found, 2)
        self._atomic(found)
        if len(found.extra["ordering"]) != 1:
            raise self.expected("an ordering")

    def getelementptr(self, found: Instruction) -> None:
        found.extra["flags"] = self.flags()
        found.extra["type_at"] = self.at()
        found.extra["type"] = self.type()
        self.demand(",")
        found.operands.append(self.typed_value())
        while self.texts[self.i] == "," and self.texts[self.i + 1][:1] != "!":
            self.i += 1
            self.take("inrange")
            found.operands.append(self.typed_value())

    def phi(self, found: Instruction) -> None:
        self.words(FAST)
        kind = self.type()
        found.extra["type"] = kind
        blocks: list[Value] = []
        while True:
            self.demand("[")
            found.operands.append(self.value(kind))
            self.demand(",")
            blocks.append(self._block_name())
            self.demand("]")
            if self.texts[self.i] != "," or self.texts[self.i + 1] != "[":
                break
            self.i += 1
        found.extra["blocks"] = blocks

    def _block_name(self) -> Value:
        if self.texts[self.i][:1] != "%":
            raise self.expected("a label")
        return self.value(LABEL)

    def _label(self) -> Value:
        self.demand("label")
        return self._block_name()

    def ret(self, found: Instruction) -> None:
        if not self.take("void"):
            found.operands.append(self.typed_value())

    def br(self, found: Instruction) -> None:
        if self.texts[self.i] == "label":
            found.extra["blocks"] = [self._label()]
            return
        found.operands.append(self.typed_value())
        self.demand(",")
        first = self._label()
        self.demand(",")
        found.extra["blocks"] = [first, self._label()]

    def switch(self, found: Instruction) -> None:
        found.operands.append(self.typed_value())
        self.demand(",")
        blocks = [self._label()]
        self.demand("[")
        while not self.take("]"):
            found.operands.append(self.typed_value())
            self.demand(",")
            blocks.append(self._label())
        found.extra["blocks"] = blocks

    def nothing(self, found: Instruction) -> None:
        """`unreachable`."""

    def va_arg(self, found: Instruction) -> None:
        found.operands.append(self.typed_value())
        self.demand(",")
        found.extra["type"] = self.type()

    def foreign(self, found: Instruction) -> None:
        """An instruction that NVVM IR does not have: what follows on its line says nothing."""
        while self.texts[self.i] and not self.begins_line():
            if self.texts[self.i] == "[":  # `callbr` and the like go on over lines
                self.skip_brackets()
            else:
                self.i += 1


_READERS: dict[str, Callable[[BodyReader, Instruction], None]] = {
    **dict.fromkeys(BINARY, BodyReader.binary),
    **dict.fromkeys(CASTS, BodyReader.cast),
    **dict.fromkeys(("icmp", "fcmp"), BodyReader.compare),
    **dict.fromkeys(("tail", "musttail", "notail"), BodyReader.tail_call),
    **dict.fromkeys(("extractelement",), BodyReader.two),
    **dict.fromkeys(("insertelement", "shufflevector"), BodyReader.three),
    **dict.fromkeys(
        ("indirectbr", "invoke", "callbr", "resume", "catchswitch", "catchret", "cleanupret", "landingpad", "catchpad",
         "cleanuppad"), BodyReader.foreign),
    "fneg": BodyReader.unary, "freeze": BodyReader.one, "select": BodyReader.select, "alloca": BodyReader.alloca,
    "extractvalue": BodyReader.extract_value, "insertvalue": BodyReader.insert_value, "load": BodyReader.load,
    "store": BodyReader.store, "fence": BodyReader.fence, "cmpxchg": BodyReader.cmpxchg,
    "atomicrmw": BodyReader.atomicrmw, "getelementptr": BodyReader.getelementptr, "phi": BodyReader.phi,
    "ret": BodyReader.ret, "br": BodyReader.br, "switch": BodyReader.switch, "unreachable": BodyReader.nothing,
    "va_arg": BodyReader.va_arg, "call": BodyReader.call,
}  # fmt: skip
