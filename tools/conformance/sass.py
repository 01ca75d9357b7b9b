"""Evaluates machine code of ptxas: integer instructions of one thread, sm_75 to sm_121, as nvdisasm writes them.

The instruction set is not documented. What stands here was read from code of statements whose results the manual
says, and holds for all that ptxas makes of them without optimisation. What is not here is refused.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

WORD, DOUBLE = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
#: Most instructions that a thread executes.
_LIMIT = 4000
_LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", re.MULTILINE)
_SECTION = re.compile(r"^\.text\.([\w$]+):$", re.MULTILINE)
_GUARDED = re.compile(r"@(!?U?P[T\d]+)\s+(.*)")
_REGISTER = re.compile(r"U?R(Z|\d+)$")
_PREDICATE = re.compile(r"!?U?P(T|\d)$")
_CONSTANT = re.compile(r"c\[0x0\]\[(?:(R\w+)\+?)?(0x[0-9a-f]+)?\]$")
_PLACE = re.compile(r"\[(R\w+?)(?:\.64|\.U32)?(?:\+(UR\w+))?(?:\+(-?0x[0-9a-f]+))?\]$")
#: Where the parameters of a kernel are in bank 0, by the target's number from which on they are there.
_PARAMETERS = {100: 0x380, 90: 0x210, 0: 0x160}
#: What computes nothing.
_IDLE = ("NOP", "BSSY", "BSYNC", "WARPSYNC", "DEPBAR")
#: Modifiers that the code below looks at, or that say nothing about a result.
_KNOWN = frozenset((
    "64", "U64", "S64", "U32", "S32", "U16", "S16", "U8", "S8", "128", "32", "E", "X", "W", "L", "R", "HI", "LO", "LUT",
    "MOV", "SHL", "IADD", "WIDE", "SX32", "SH", "AND", "OR", "XOR", "EX", "EQ", "NE", "LT", "LE", "GT", "GE", "4A",
    "2A", "16x2", "U16x2", "S16x2", "ISAT", "MMA", "SYS",
))  # fmt: skip
#: The same instruction for registers that all threads share.
_SHARED = re.compile(
    r"U(?=(MOV|IADD3|IMAD|LOP3|PRMT|SHF|SEL|ISETP|LEA|FLO|POPC|BREV|SGXT|BMSK|PLOP3|IABS|VIADD|VIMNMX|LDC)\b)"
)

Modifiers: TypeAlias = tuple[str, ...]
Executor: TypeAlias = "Callable[[Thread, Modifiers, tuple[str, ...]], None]"


class UnsupportedError(Exception):
    """An instruction, or an operand, that is not known here."""


def kernels(nvdisasm: str, cubin: bytes) -> dict[str, list[str]]:
    """The instructions of each kernel of a cubin."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cubin")
        path.write_bytes(cubin)
        text = subprocess.run([nvdisasm, "-c", str(path)], capture_output=True, text=True, check=False).stdout
    parts = _SECTION.split(text)
    return {name: _LINE.findall(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@cache
def _parts(text: str) -> tuple[str, Modifiers, tuple[str, ...]]:
    """Mnemonic, modifiers and operands."""
    opcode, _, rest = text.partition(" ")
    name, *modifiers = _SHARED.sub("", opcode).split(".")
    return name, tuple(modifiers), tuple(part.strip() for part in re.split(r",(?![^\[]*\])", rest))


class Thread:
    """One thread of a kernel. memory: bytes by address; parameters: of the kernel; number: %tid.x."""

    def __init__(self, target: int, memory: dict[int, int], parameters: bytes, number: int) -> None:
        self.memory, self.parameters, self.number = memory, parameters, number
        self.base = next(base for least, base in _PARAMETERS.items() if target >= least)
        self.registers: dict[str, int] = {}
        self.predicates: dict[str, bool] = {}

    def run(self, code: list[str]) -> None:
        """Execute straight code up to its end. Raises UnsupportedError at what is not known."""
        for text in code[:_LIMIT]:
            if found := _GUARDED.match(text):
                if not self.predicate(found[1]):
                    continue
                text = found[2]
            name, modifiers, operands = _parts(text)
            if name == "EXIT":
                return
            if name in _IDLE:
                continue
            execute = _EXECUTE.get(name)
            if execute is None or not _KNOWN.issuperset(modifiers):
                raise UnsupportedError(text)
            try:
                execute(self, modifiers, operands)
            except (ValueError, IndexError, KeyError) as error:
                raise UnsupportedError(text) from error
        raise UnsupportedError("the code has no end")

    # --- operands -----------------------------------------------------------------------------------------------------

    def read(self, text: str, wide: bool = False) -> int:
        """A register, constant or number, without its sign."""
        text = re.sub(r"\.(reuse|64)", "", text)
        if _REGISTER.match(text):
            return self.pair(text) if wide else self.registers[text] if text[-1] != "Z" else 0
        if found := _CONSTANT.match(text):
            offset = (self.read(found[1]) if found[1] else 0) + int(found[2] or "0", 16) - self.base
            size = 8 if wide else 4
            return int.from_bytes(self.parameters[offset : offset + size], "little") if offset >= 0 else 0
        return int(text, 16) & (DOUBLE if wide else WORD)

    def value(self, text: str, wide: bool = False) -> int:
        """An operand with its sign; that of -x is 2^n - x, which carries if x is 0."""
        full = 1 << (64 if wide else 32)
        if text[0] == "-" and not text.startswith("-0x"):
            return full - self.value(text[1:], wide)
        if text[0] == "~":
            return full - 1 - self.value(text[1:], wide)
        if text[0] == "|":
            return abs(signed(self.read(text.strip("|"))))
        return self.read(text, wide)

    def pair(self, name: str) -> int:
        if name[-1] == "Z":
            return 0
        return self.registers[name] | self.registers[_next(name)] << 32

    def predicate(self, text: str) -> bool:
        name = text.lstrip("!")
        if name.endswith(".SIGN"):
            value = bool(self.read(name.removesuffix(".SIGN")) >> 31)
        else:
            value = name in ("PT", "UPT") or self.predicates[name]
        return value != text.startswith("!")

    def write(self, name: str, value: int, words: int = 1) -> None:
        for _ in range(words if name[-1] != "Z" else 0):
            self.registers[name] = value & WORD
            name, value = _next(name), value >> 32

    def decide(self, name: str, value: int) -> None:
        if name not in ("PT", "UPT"):
            self.predicates[name] = bool(value)

    def address(self, text: str) -> int:
        found = _PLACE.search(text)
        if found is None:
            raise UnsupportedError(text)
        return (self.pair(found[1]) + (self.pair(found[2]) if found[2] else 0) + int(found[3] or "0", 16)) & DOUBLE


def _next(name: str, by: int = 1) -> str:
    found = re.fullmatch(r"(U?R)(\d+)", name)
    assert found is not None
    return f"{found[1]}{int(found[2]) + by}"


def _split(operands: tuple[str, ...]) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The register that is written, the predicates behind it, and what is read."""
    end = next(at for at in range(1, len(operands) + 1) if at == len(operands) or not _PREDICATE.match(operands[at]))
    return operands[0], operands[1:end], operands[end:]


def _size(modifiers: Modifiers) -> int:
    """Bytes of an access."""
    return next((size for name, size in (("U8", 1), ("S8", 1), ("U16", 2), ("S16", 2), ("64", 8), ("128", 16))
                 if name in modifiers), 4)  # fmt: skip


# --- moves and memory -------------------------------------------------------------------------------------------------


def _mov(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    wide = "64" in modifiers
    thread.write(operands[0], thread.read(operands[1], wide), 1 + wide)


def _halves_of_number(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    """HFMA2 as a move of a number: -0 * 0 + (high, low)."""
    if operands[1:3] != ("-RZ", "RZ"):
        raise ValueError
    thread.write(operands[0], int.from_bytes(struct.pack("<ee", float(operands[4]), float(operands[3])), "little"))


def _zero(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    if operands[1] != "SRZ":
        raise ValueError
    thread.write(operands[0], 0, 1 if "32" in modifiers else 2)


def _special(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    thread.write(operands[0], {"SR_TID.X": thread.number}[operands[1]])


def _ldc(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    words, start = _size(modifiers) // 4, re.search(r"0x[0-9a-f]+\]$", operands[1])
    assert start is not None
    for word in range(words):
        at = operands[1][: start.start()] + hex(int(start[0][:-1], 16) + 4 * word) + "]"
        thread.write(operands[0] if not word else _next(operands[0], word), thread.read(at))


def _ldg(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    size, at = _size(modifiers), thread.address(operands[1])
    value = int.from_bytes(bytes(thread.memory[at + byte] for byte in range(size)), "little")
    value = signed(value, 8 * size) if {"S8", "S16"} & set(modifiers) else value
    thread.write(operands[0], value, max(1, size // 4))


def _stg(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    size, at = _size(modifiers), thread.address(operands[0])
    value = thread.read(operands[1], size == 8)
    thread.memory.update((at + byte, value >> 8 * byte & 255) for byte in range(size))


# --- sums and products ------------------------------------------------------------------------------------------------


def _sum(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, carries, sources = _split(operands)
    wide = "64" in modifiers
    values = [source for source in sources if not _PREDICATE.match(source)]
    total = sum(thread.value(source, wide) for source in values)
    if "X" in modifiers:
        total += sum(thread.predicate(source) for source in sources[len(values) :])
    if "ISAT" in modifiers:
        total = _saturated(thread, values)
    thread.write(into, total, 1 + wide)
    for count, carry in enumerate(carries, 1):
        thread.decide(carry, total >> (64 if wide else 32) >= count)


def _saturated(thread: Thread, operands: Sequence[str]) -> int:
    """A sum of signed words; -x of the least one is beyond them, too."""
    total = 0
    for operand in operands:
        negative = operand[0] == "-" and not operand.startswith("-0x")
        value = signed(thread.value(operand[negative:]))
        total += -value if negative else value
    return max(-(1 << 31), min((1 << 31) - 1, total))


def _halves(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    """VIADD, of words or of two halves."""
    a, b = (thread.value(operand) for operand in operands[1:3])
    if {"16x2", "U16x2"} & set(modifiers):
        thread.write(operands[0], (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) << 16))
    elif "ISAT" in modifiers:
        thread.write(operands[0], _saturated(thread, operands[1:3]))
    else:
        thread.write(operands[0], a + b)


def _imad(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, carries, sources = _split(operands)
    if any(carry not in ("PT", "UPT") for carry in carries) and "WIDE" not in modifiers:
        raise ValueError
    a, b = (thread.value(source) & WORD for source in sources[:2])
    product = a * b if "U32" in modifiers else signed(a) * signed(b)
    wide = bool({"WIDE", "HI"} & set(modifiers))
    total = (product & DOUBLE if "WIDE" in modifiers else product) + thread.value(sources[2], wide)
    total += thread.predicate(sources[3]) if "X" in modifiers else 0
    thread.write(into, total >> 32 if "HI" in modifiers else total, 1 + ("WIDE" in modifiers))
    for carry in carries:
        thread.decide(carry, total >> 64)


def _lea(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, carries, sources = _split(operands)
    if "HI" not in modifiers:
        shifted = thread.read(sources[0].lstrip("-")) << int(sources[2], 16) & WORD
        shifted = (1 << 32) - shifted if sources[0][0] == "-" else shifted
        last = 3
    elif "SX32" in modifiers:
        shifted, last = (signed(thread.value(sources[0])) & DOUBLE) << int(sources[2], 16) >> 32 & WORD, 3
    else:
        both = thread.value(sources[0]) & WORD | (thread.value(sources[2]) & WORD) << 32
        shifted, last = both << int(sources[3], 16) >> 32 & WORD, 4
    total = shifted + thread.value(sources[1]) + (thread.predicate(sources[last]) if "X" in modifiers else 0)
    thread.write(into, total)
    for carry in carries:
        thread.decide(carry, total >> 32)


def _dot(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    a, b, c = (thread.value(operand) for operand in operands[1:4])
    kinds, first = modifiers[-2:], 2 if "HI" in modifiers else 0
    total = c
    for at in range(4 if modifiers[0] == "4A" else 2):
        factors = []
        for word, kind, place in ((a, kinds[0], at), (b, kinds[1], at + first)):
            bits = int(kind[1:])
            part = word >> bits * place & (1 << bits) - 1
            factors.append(signed(part, bits) if kind[0] == "S" else part)
        total += factors[0] * factors[1]
    thread.write(operands[0], total)


# --- bits -------------------------------------------------------------------------------------------------------------


def _lop3(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, tests, sources = _split(operands)
    a, b, c = (thread.value(source) for source in sources[:3])
    table, value = int(sources[3], 16), 0
    for row in range(8):
        if table >> row & 1:
            value |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    thread.write(into, value)
    for test in tests:
        thread.decide(test, value & WORD or thread.predicate(sources[4]))


def _plop3(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    a, b, c = (thread.predicate(operand) for operand in operands[2:5])
    for into, table in zip(operands, operands[5:], strict=False):
        thread.decide(into, int(table, 16) >> (a << 2 | b << 1 | c) & 1)


def _prmt(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    a, selector, c = (thread.value(operand) & WORD for operand in operands[1:4])
    if modifiers:
        raise ValueError
    value = 0
    for place in range(4):
        chosen = selector >> 4 * place & 15
        byte = (a | c << 32) >> 8 * (chosen & 7) & 255
        value |= (255 * (byte >> 7) if chosen & 8 else byte) << 8 * place
    thread.write(operands[0], value)


def _shf(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    low, by, high = (thread.value(operand) & WORD for operand in operands[1:4])
    bits = 64 if {"U64", "S64"} & set(modifiers) else 32
    by = by % bits if "W" in modifiers else min(by, bits)
    both = low | high << 32
    if modifiers[0] == "L":
        value = both << by & DOUBLE
    else:
        value = (signed(both, 64) if {"S32", "S64"} & set(modifiers) else both) >> by
    thread.write(operands[0], value >> 32 if "HI" in modifiers else value)


def _flo(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, _, sources = _split(operands)
    value = thread.value(sources[0]) & WORD
    value = ~value & WORD if "U32" not in modifiers and value >> 31 else value
    place = value.bit_length() - 1
    thread.write(into, 31 - place if value and "SH" in modifiers else place)


def _sgxt(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    value, bits = (thread.value(operand) & WORD for operand in operands[1:3])
    bits = bits % 32 if "W" in modifiers else min(bits, 32)
    low = value & (1 << bits) - 1
    thread.write(operands[0], signed(low, bits) if bits and "U32" not in modifiers else low)


def _bmsk(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    start, width = (thread.value(operand) & WORD for operand in operands[1:3])
    start, width = (at % 32 if "W" in modifiers else min(at, 32) for at in (start, width))
    thread.write(operands[0], (1 << width) - 1 << start)


def _of_one(compute: Callable[[int], int]) -> Executor:
    def execute(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
        thread.write(operands[0], compute(thread.value(operands[1]) & WORD))

    return execute


# --- comparisons ------------------------------------------------------------------------------------------------------


def _sel(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    wide = "64" in modifiers
    chosen = operands[1] if thread.predicate(operands[3]) else operands[2]
    thread.write(operands[0], thread.value(chosen, wide), 1 + wide)


def _isetp(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    wide = bool({"64", "U64", "S64"} & set(modifiers))
    bits = 64 if wide else 32
    a, b = (thread.value(operand, wide) % (1 << bits) for operand in operands[2:4])
    if not {"U32", "U64"} & set(modifiers):
        a, b = signed(a, bits), signed(b, bits)
    equal = "EX" not in modifiers or thread.predicate(operands[5])  # what the lower words say if these are equal
    name = modifiers[0]
    found = {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}[name]
    found = equal if "EX" in modifiers and a == b else found
    other = thread.predicate(operands[4])
    for into, value in ((operands[0], found), (operands[1], not found)):
        joined = {"AND": value and other, "OR": value or other, "XOR": value != other}
        thread.decide(into, joined[next(each for each in joined if each in modifiers)])


def _minmax(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    """Of two or three numbers, or of two halves each; VIADDMNMX adds the first two."""
    into, _, sources = _split(operands)
    if "RELU" in modifiers:
        raise ValueError
    values = [source for source in sources if not _PREDICATE.match(source)]
    orders = [thread.predicate(source) for source in sources[len(values) :]]
    numbers = [thread.value(value) for value in values]
    bits = 16 if {"U16x2", "S16x2"} & set(modifiers) else 32
    result = 0
    for start in range(0, 32, bits):
        parts = [number >> start & (1 << bits) - 1 for number in numbers]
        if not {"U32", "U16x2"} & set(modifiers):
            parts = [signed(part, bits) for part in parts]
        chosen = parts[0]
        for at, part in enumerate(parts[1:]):
            least = orders[min(at, len(orders) - 1)]
            chosen = min(chosen, part) if least else max(chosen, part)
        result |= (chosen & (1 << bits) - 1) << start
    thread.write(into, result)


def _added_minmax(thread: Thread, modifiers: Modifiers, operands: tuple[str, ...]) -> None:
    into, _, sources = _split(operands)
    if modifiers and modifiers != ("U32",):
        raise ValueError
    a, b, c = (thread.value(source) for source in sources[:3])
    total, other = (a + b & WORD, c & WORD) if modifiers else (signed(a + b), signed(c))
    thread.write(into, min(total, other) if thread.predicate(sources[3]) else max(total, other))


_EXECUTE: dict[str, Executor] = {
    "MOV": _mov, "HFMA2": _halves_of_number, "R2UR": _mov, "CS2R": _zero, "S2R": _special, "S2UR": _special,
    "LDC": _ldc, "LDCU": _ldc, "LDG": _ldg, "STG": _stg, "IADD3": _sum, "IADD": _sum, "VIADD": _halves,
    "IMAD": _imad, "LEA": _lea, "IDP": _dot,
    "LOP3": _lop3, "PLOP3": _plop3, "PRMT": _prmt, "SHF": _shf, "FLO": _flo, "SGXT": _sgxt, "BMSK": _bmsk,
    "IABS": _of_one(lambda value: abs(signed(value))), "POPC": _of_one(int.bit_count),
    "BREV": _of_one(lambda value: int(f"{value:032b}"[::-1], 2)), "SEL": _sel, "ISETP": _isetp,
    "IMNMX": _minmax, "VIMNMX": _minmax, "VIMNMX3": _minmax, "VIADDMNMX": _added_minmax,
}  # fmt: skip
