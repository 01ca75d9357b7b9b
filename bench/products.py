"""Products of 512 x 512 x 512 in f16 that Triton made, by the instructions that multiply."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ptxtools

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

    def bound(self, device: ptxtools.Device) -> tuple[list[Any], Callable[[], np.ndarray]]:
        """Arguments for one launch, and what gives its result."""
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in self.args]
        return args, lambda: args[self.output]

    def check(self, result: np.ndarray) -> None:
        np.testing.assert_allclose(result.astype(np.float32), self.expected, atol=2e-2)


def _case(name: str) -> tuple[Path, dict[str, Any], np.ndarray, np.ndarray]:
    """The folder of a case, its launch file, and random factors."""
    folder = CASES / name
    with open(folder / "case.toml", "rb") as file:
        launch = tomllib.load(file)
    chance = np.random.default_rng(1)
    a, b = ((chance.standard_normal((SIZE, SIZE)) / 8).astype(np.float16) for _ in range(2))
    return folder, launch, a, b


def product(case: str) -> Product:
    """The product of a case of the test data, with random factors."""
    folder, launch, a, b = _case(case)
    args = [a, b, np.zeros((SIZE, SIZE), np.float16), *[SIZE] * 6, None, None]
    return Product(folder, launch["device"], launch["shared"], args, a.astype(np.float32) @ b.astype(np.float32))


@dataclass
class TensorMapProduct(Product):
    """One launch of `tri_td_mm_*`, which copies through tensor maps. args: A and B, both with K columns."""

    name: str = "matmul_td"

    def bound(self, device: ptxtools.Device) -> tuple[list[Any], Callable[[], np.ndarray]]:
        a, b = (device.upload(factor) for factor in self.args)
        c = device.upload(np.zeros((SIZE, SIZE), np.float16))
        args: list[Any] = []
        for matrix in (a, b, c):
            box = [64, TILE]
            args.append(device.tensormap(matrix, type="f16", shape=[SIZE, SIZE], box=box, swizzle="128B"))
            args += [SIZE, SIZE, SIZE, 1]
        return [*args, SIZE, SIZE, SIZE, None, None], lambda: c.download().reshape(SIZE, SIZE)


def tensor_map_product(case: str) -> TensorMapProduct:
    """The product of such a case, with random factors."""
    folder, launch, a, b = _case(case)
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    return TensorMapProduct(folder, launch["device"], launch["shared"], [a, b], expected)


ALL = {
    "cp.async": lambda: product("tri_mm_f16_sm80"),
    "wgmma": lambda: product("tri_mm_f16_sm90"),
    "tcgen05": lambda: product("tri_mm_f16_sm100"),
    "tma-wgmma": lambda: tensor_map_product("tri_td_mm_sm90"),
    "tma-tcgen05": lambda: tensor_map_product("tri_td_mm_sm100"),
}
