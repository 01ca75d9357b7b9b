"""What `alone.Issued` says without a device is what happens on one: the bytes that are read, and those that become."""

from __future__ import annotations

from typing import Any

import pytest

from ptxtools.program.details import NamedOperands
from ptxtools.sim.tensor import mma
from ptxtools.sim.tensor.alone import Issued
from ptxtools.sim.tensor.memory import of, partners
from ptxtools.sim.tensor.operands import number, vector
from tests.rows import rows

from .test_mma import Product, scale_words

CASES: dict[str, dict[str, Any]] = {
    "A in shared memory": {}, "A in tensor memory": {"a_tensor": True}, "M of 64": {"m": 64, "n": 40, "lane": 16},
    "a pair": {"m": 256, "ctas": 2}, "a pair with M of 128": {"m": 128, "n": 64, "ctas": 2},
    "a pair, A in tensor memory": {"m": 256, "ctas": 2, "a_tensor": True}, "sparse": {"sparse": True},
    "a sparse pair": {"m": 128, "n": 64, "ctas": 2, "sparse": True},
    "stationary": {"m": 32, "n": 64, "stationary": True},
    "stationary and sparse": {"m": 64, "n": 64, "stationary": True, "sparse": True},
    "mn leads": {"n": 128, "a_major": True, "b_major": True}, "no swizzle": {"mode": "none"},
    "f16 sums": {"dtype": "f16"},
}  # fmt: skip


def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What of the instructions that are issued from now on differs; each appends to the list."""
    found: list[str] = []

    def issue(view: Any, work: Any, text: str, lane: int, spans: Any, cells: Any, matrices: Any) -> None:
        named = view.op.of(NamedOperands)
        operands = {name: vector(view, name, lane) if count > 1 else [number(view, name, lane)]
                    for name, (_, count) in named.sources.items()}  # fmt: skip
        ctas = int(view.op.opcode.mods["cta_group"][-1])
        group = partners(view, ctas, "", lane)
        one = Issued(view.op.opcode.text, operands, view.cta.rank % ctas)

        def bytes_at(piece: tuple[int, bool, int, int]) -> bytes:
            rank, tensor, at, size = piece
            if not tensor:
                return bytes(group[rank].shared[at : at + size])
            return of(group[rank]).cells.T.reshape(-1)[at // 4 : (at + size) // 4].tobytes()

        contents = [bytes_at(piece) for piece in one.reads]
        before = [of(cta).cells.copy() for cta in group]
        work()
        for rank, cta in enumerate(group):
            changed = (of(cta).cells != before[rank]).T.reshape(-1)
            for at, tensor, start, size in one.writes:
                assert tensor
                if at == rank:
                    changed[start // 4 : (start + size) // 4] = False
            found.append("writes elsewhere" if changed.any() else "")
        found.append("" if one.run(contents) == [bytes_at(piece) for piece in one.writes] else "another result")

    monkeypatch.setattr(mma, "issue", issue)
    return found


@rows("case", CASES, share=3)
def test_products(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(monkeypatch)
    Product("f16", "f16", **CASES[case]).run()
    assert found
    assert not any(found), found


@rows("sparse, n, ctas", [(False, 64, 1), (True, 32, 1), (False, 160, 2)])
def test_block_scales(sparse: bool, n: int, ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(monkeypatch)
    case = Product("mxf8f6f4", "e4m3", "e4m3", m=128 * ctas, n=n, ctas=ctas, sparse=sparse)
    scale_words(case, 1, 0, 0)
    case.run(more=1 << 23, modifiers=".block_scale.scale_vec::1X", scales="[%q4], [%q5], ")
    assert found
    assert not any(found), found


def test_lanes_that_are_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(monkeypatch)
    Product("f16", "f16").run(lines="mov.u32 %q6, 0x80000005; mov.u32 %q7, 0;", scales="{%q6, %q7, %q6, %q7}, ")
    assert found
    assert not any(found), found
