"""Native code for tiles: valid for other CPUs, and with the same results where this machine can run it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

from ptxtools.native.code import jit
from ptxtools.native.tiles import fused, rows
from ptxtools.native.tiles import interface as tiles
from ptxtools.native.tiles.numbers import numbers
from ptxtools.native.tiles.products import PRODUCTS
from ptxtools.semantics.accumulation import Rule

from . import test_hard_sums as hard
from . import test_mma_native, test_wgmma_native

#: The functions that exist for every CPU.
NAMES = tuple(name for name in rows.NAMES if name not in fused.NAMES)
#: What code for AVX2 may use, beside what every 64-bit x86 has.
AVX2 = frozenset({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "bmi", "bmi2", "lzcnt", "fma", "f16c"})
#: CPUs whose code is not this machine's, and code of this machine that is compiled quickly.
CPUS = ("x86-64", "haswell", "avx2", "brief")


@cache
def compiled(triple: str, cpu: str, features: frozenset[str] = frozenset(), *, brief: bool = False) -> bytes:
    """Object code with what needs no more than these features."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this llvmlite has no {triple}")
    level = jit.QUICK if brief else jit.FULL
    names = ",".join(f"+{name}" for name in sorted(features))
    machine = target.create_target_machine(cpu=cpu, features=names, opt=level, reloc="pic", codemodel="small")
    text = rows.module(rows.NAMES if features else NAMES, "nounwind", features, brief=brief)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = triple
    module.verify()
    if features and not brief:
        jit.improve(module, machine)
    return bytes(machine.emit_object(module))


def test_code_for_another_architecture() -> None:
    assert len(compiled("aarch64-unknown-linux-gnu", "generic")) > 1000


def random(t: str, rows: int, k: int) -> np.ndarray:
    codes = np.random.default_rng(rows).integers(0, 1 << 16, (rows, k), dtype=np.uint16)
    if t == "bf16":
        return codes & np.uint16(0x807F) | np.uint16(0x3F80)
    return codes & np.uint16(0xBFFF)


@cache
def functions_for(cpu: str) -> dict[str, int]:
    """Addresses of the code for a plainer CPU, or of what is compiled quickly for this one."""
    if cpu == "brief":
        text = rows.module(rows.NAMES, jit.attributes(widest=True), jit.host_features(), brief=True)
        return jit.link_object(jit.compile_object(text, jit.QUICK), rows.NAMES)
    if not jit.is_x86() or (cpu != "x86-64" and not AVX2.issubset(jit.host_features())):
        pytest.skip("this machine cannot run it")
    if cpu.startswith("avx2"):
        data = compiled(str(llvm.get_default_triple()), "haswell", AVX2, brief=cpu == "avx2 brief")
        return jit.link_object(data, rows.NAMES)
    return jit.link_object(compiled(str(llvm.get_default_triple()), cpu), NAMES)


@pytest.fixture
def plainer(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are computed by the code for another CPU."""
    addresses = functions_for(cpu)
    fuses = cpu == "avx2" or (cpu == "brief" and tiles.fuses())
    monkeypatch.setattr(tiles, "addresses", lambda: addresses)
    monkeypatch.setattr(tiles, "fuses", lambda: fuses)
    monkeypatch.setattr(tiles, "functions", lambda: tiles.callable_functions(addresses))


@pytest.mark.share(12)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("make", [hard.any_bits, hard.cancellation, hard.largest_sums, hard.tiny])
@pytest.mark.parametrize("t", ["f16", "tf32", "e4m3"])
@pytest.mark.usefixtures("plainer")
def test_whole_instructions_on_plainer_cpus(cpu: str, make: Callable[[hard.Case], None], t: str) -> None:
    hard.test_wgmma(t, make, "native")
    hard.test_tcgen05(t, make, "native")


@pytest.mark.share(10)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("number", range(20))
@pytest.mark.usefixtures("plainer")
def test_every_form_on_plainer_cpus(cpu: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases from the whole table."""
    form, make, numerics = test_mma_native.CASES[(2 * number + 1) * len(test_mma_native.CASES) // 40]
    test_mma_native.test_bits_are_those_of_the_reference(form, make, numerics, monkeypatch)
    case = test_wgmma_native.CASES[(2 * number + 1) * len(test_wgmma_native.CASES) // 40]
    found, wanted = (
        test_wgmma_native.run(*case[:-1], engine=engine, numerics=case[-1]) for engine in ("native", "reference")
    )
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.share(3)
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("t", "rule"), [("f16", Rule(25, 16, "f32")), ("bf16", Rule(13, 16, "e8m13")),
                                         ("f16", Rule(25, 16, "f16"))])  # fmt: skip
def test_plainer_cpus_give_the_same(cpu: str, t: str, rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow and wide numbers; the results of NumPy are those of the machine's own code (test_product.py)."""
    addresses = functions_for(cpu)
    a, b = numbers(t, random(t, 32, 16)), numbers(t, random(t, 48, 16))
    c = np.random.default_rng(1).standard_normal((32, 48)).astype(np.float16 if rule.result == "f16" else np.float32)
    wanted = [PRODUCTS.multiply(x, y, c, rule) for x, y in ((a, b), (a.wide(), b.wide()))]
    monkeypatch.setattr(tiles, "functions", lambda: tiles.callable_functions(addresses))
    found = [PRODUCTS.multiply(x, y, c, rule) for x, y in ((a, b), (a.wide(), b.wide()))]
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(wanted[0], wanted[1])
