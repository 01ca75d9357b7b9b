"""LLVM IR that makes a dense factor of a sparse A (9.7.15.6.1, 9.7.16.10.8), both arranged as `factors` does it.

Metadata is read by a table with a word for each stored element, [group of rows][stored column][row]: where the
element's field of two bits lies, and which column each of its values means (`fields`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtools.machine.products import Array, Metadata
from ptxtools.native.code.emitter import ZERO, Emitter

from .decode import SHORT, WORD
from .factors import NO_EXPONENT, exponent_place

SCATTER = "tile_scatter"
PARAMETERS = (
    "ptr noalias readonly %values, ptr noalias readonly %exponents, i64 %groups, i64 %stored, ptr readonly %words, "
    "ptr noalias readonly %places, ptr noalias readonly %fields, ptr noalias %out, ptr noalias %outp"
)
#: Bits of a field's description: bit of the word; whether only the field's upper bit counts; columns between two
#: values; column of the first.
_HALF, _STEP, _BASE = 5, 6, 8


def fields(metadata: Metadata) -> Array:
    """Descriptions of the fields (i32)."""
    found: Array = metadata.bit | int(metadata.half) << _HALF | metadata.step << _STEP | metadata.base << _BASE
    return np.ascontiguousarray(found, np.int32)


def function(code: Emitter) -> str:
    """scatter (values, exponents, groups of rows, stored columns, metadata, offsets of words in bytes, fields, values
    and exponents of twice as many columns). Of two elements for one column the later one stays. Exponents that do not
    exist are null."""
    b = code
    k = b.value("shl i64 %stored, 1")
    powers = b.value("icmp ne ptr %exponents, null")

    def clear(group: str, column: str) -> None:
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, {k}')}, {column}")
        b.line(f"store {WORD} {ZERO}, ptr {b.element(WORD, '%out', line)}, align 64")
        _if(b, powers, lambda: b.line(
            f"store {SHORT} {_shorts(NO_EXPONENT)}, ptr {exponent_place(b, '%outp', k, group, column)}, align 32"
        ))  # fmt: skip

    def element(group: str, column: str, row: str) -> None:
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, %stored')}, {column}")
        at = b.value(f"add i64 {b.value(f'shl i64 {line}, 4')}, {row}")
        offset = b.value(f"load i32, ptr {b.element('i32', '%places', at)}")
        word = b.value(f"load i32, ptr {b.value(f'getelementptr i8, ptr %words, i32 {offset}')}")
        field = b.value(f"load i32, ptr {b.element('i32', '%fields', at)}")
        value = b.value(f"lshr i32 {word}, {b.value(f'and i32 {field}, 31')}")
        value = b.value(f"and i32 {value}, 3")
        half = b.value(f"and i32 {b.value(f'lshr i32 {field}, {_HALF}')}, 1")
        value = b.value(f"lshr i32 {value}, {half}")
        step = b.value(f"and i32 {b.value(f'lshr i32 {field}, {_STEP}')}, 3")
        place = b.value(f"add i32 {b.value(f'lshr i32 {field}, {_BASE}')}, {b.value(f'mul i32 {value}, {step}')}")
        target = b.value(f"zext i32 {place} to i64")
        own = b.value(f"load i32, ptr {b.element('i32', '%values', at)}")
        line = b.value(f"add i64 {b.value(f'mul i64 {group}, {k}')}, {target}")
        line = b.value(f"add i64 {b.value(f'shl i64 {line}, 4')}, {row}")
        b.line(f"store i32 {own}, ptr {b.element('i32', '%out', line)}")

        def exponent() -> None:
            source = exponent_place(b, "%exponents", "%stored", group, column, row)
            power = b.value(f"load i16, ptr {source}")
            b.line(f"store i16 {power}, ptr {exponent_place(b, '%outp', k, group, target, row)}")

        _if(b, powers, exponent)

    def rows(group: str) -> None:
        b.repeat(k, 1, lambda column: clear(group, column))
        b.repeat("%stored", 1, lambda column: b.repeat("16", 1, lambda row: element(group, column, row)))

    b.repeat("%groups", 1, rows)
    return b.function(SCATTER, PARAMETERS)


def _shorts(number: int) -> str:
    return f"splat (i16 {number})"


def _if(b: Emitter, condition: str, then: Callable[[], None]) -> None:
    yes, done = b.label(), b.label()
    b.branch(condition, yes, done)
    b.begin(yes)
    then()
    b.jump(done)
    b.begin(done)
