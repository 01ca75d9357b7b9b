"""Expressions: values, ranks of operators, and what is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ptxtools.observe.debug.expressions import ExpressionError, Lane, decode, encode, evaluate
from ptxtools.observe.debug.looking import numbers, value_text
from tests.rows import rows


class View:
    """A warp with the registers of a test, and 16 bytes of memory."""

    warp = 3
    memory = bytes(range(1, 17))

    class launch:  # noqa: N801 - stands for an attribute
        device = context = None
        block, grid = (64, 1, 1), (2, 1, 1)

        class program:  # noqa: N801
            shared = (("sums", 8, 4),)

    class cta:  # noqa: N801
        place, window, rank = (1, 0, 0), 0, 0

    def thread(self, lane: int) -> tuple[int, int, int]:
        return lane, 0, 0

    def register(self, name: str) -> Any:
        import numpy as np

        return {"%r1": np.arange(32, dtype=np.int32) - 5, "%f1": np.full(32, 0.5, np.float32)}[name]

    def fetch(self, address: int, size: int, space: str, *, lane: int) -> bytes:
        return self.memory[address : address + size]


LANE = Lane(cast(Any, View()), 2)
VALUES = [
    ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-7 / 2", -3), ("-7 % 4", -3), ("1 << 4 | 1", 17), ("~0", -1), ("!0", True),
    ("0x10 == 16 && 2 > 1", True), ("3 < 2 || 0", False), ("%r1", -3), ("%r1 * 2 == -6", True), ("%f1 + 1", 1.5),
    ("%tid.x", 2), ("%ctaid.x + %warpid * 10", 31), ("%laneid", 2), ("u8[0]", 1), ("u16@shared[2]", 0x0403),
    ("u32[%laneid * 2]", 0x08070605), ("sums", 8), ("u8[sums + 1]", 10), ("1e2 + .5 * 0" .replace(".5", "0.5"), 100.0),
]  # fmt: skip
REFUSED = [
    "", "1 +", "(1", "1)", "1 2", "%r99", "nothing", "1 / 0", "1.5 << 2", "u32@nowhere[0]", "u32[1.5]", "u32[-4]",
    "u32[0", "$", "(" * 5000, "-" * 5000 + "1",
]  # fmt: skip


@rows("text, value", VALUES)
def test_values(text: str, value: Any) -> None:
    found = evaluate(text, LANE)
    assert found == value and isinstance(found, type(value))


@rows("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, LANE)


@rows(
    "type_, value",
    [("u32", 7), ("s8", -3), ("f16", 1.5), ("bf16", -2.0), ("f64", 0.1), ("e4m3", 448.0), ("b128", 1 << 100)],
)
def test_memory_holds_what_was_put_there(type_: str, value: Any) -> None:
    assert decode(encode(value, type_), type_) == value


def test_formats() -> None:
    assert [value_text(-2, form, 16) for form in ("", "x", "d", "u", "t", "o")] == [
        "-2", "0xfffe", "-2", "65534", "0b1111111111111110", "0o177776",
    ]  # fmt: skip
    assert value_text(65, "c") == "65 'A'" and value_text(2.5, "x") == "0x2" and value_text(float("inf"), "x") == "inf"
    assert numbers("0-2,5", 31) == [0, 1, 2, 5]
    for text in ("", "3-1", "32", "a"):
        with pytest.raises(ExpressionError):
            numbers(text, 31)
