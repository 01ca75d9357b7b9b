"""Products of 512 x 512 x 512 in f16 that Triton made, by the instructions that multiply."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CASES = Path(__file__).parents[1] / "testdata" / "cases"
SIZE, TILE = 512, 128


@dataclass
class Product:
    """One launch of `tri_mm_f16_*`. args: factors, result, sizes and strides; output: index of the result."""

    folder: Path
    device: str
    shared: int
    args: list[Any]
    expected: np.ndarray
    name: str = "matmul"
    output: int = 2
    grid: tuple[int, ...] = (SIZE // TILE, SIZE // TILE)
    block: tuple[int, ...] = (128,)

    @property
    def path(self) -> Path:
        return self.folder / "kernel.ptx"

    def check(self, result: np.ndarray) -> None:
        np.testing.assert_allclose(result.astype(np.float32), self.expected, atol=2e-2)


def product(case: str) -> Product:
    """The product of a case of the test data, with random factors."""
    folder = CASES / case
    with open(folder / "case.toml", "rb") as file:
        launch = tomllib.load(file)
    chance = np.random.default_rng(1)
    a, b = ((chance.standard_normal((SIZE, SIZE)) / 8).astype(np.float16) for _ in range(2))
    args = [a, b, np.zeros((SIZE, SIZE), np.float16), *[SIZE] * 6, None, None]
    return Product(folder, launch["device"], launch["shared"], args, a.astype(np.float32) @ b.astype(np.float32))


ALL = {
    "cp.async": lambda: product("tri_mm_f16_sm80"),
    "wgmma": lambda: product("tri_mm_f16_sm90"),
    "tcgen05": lambda: product("tri_mm_f16_sm100"),
}
