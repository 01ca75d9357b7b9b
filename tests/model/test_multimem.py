"""Multi-addresses (8.2.3): what files of tests may say. The verdicts are those of testdata/litmus: Multi+."""

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.model.executions import run
from tests.model.suite import read
from tests.rows import rows

TEST = "PTX t\n{{ {} }}\nP0@cta 0,gpu 0 ;\n{} ;\n{}"
TWO = "x = 1; y = 2; multimem w = {x, y}"


@rows("initial, instruction, end, message", [
    (TWO, "ld.weak r1, w", "", "only multimem operations may access a multi-address"),
    (TWO + "; P0:r1 = w", "st.weak [r1], 1", "", "only multimem operations may access a multi-address"),
    (TWO, "cp.async.ca.shared.global [x], [w], 8", "", "only multimem operations may access a multi-address"),
    (TWO, "multimem.st.b64 [x], 1", "", "'x' is no multi-address"),
    (TWO, "multimem.st.relaxed.b64 [w], 1", "", "needs a scope"),
    (TWO, "multimem.st.weak.sys.b64 [w], 1", "", "is weak and has a scope"),
    (TWO, "multimem.red.or.f32 [w], 1", "", "is not modelled (section 9.7.9.14)"),
    (TWO, "multimem.red.add.v2.u32 [w], {1, 2}", "", "is not modelled (section 9.7.9.14)"),
    (TWO, "multimem.red.exch.b64 [w], 1", "", "'.exch' of"),
    (TWO, "multimem.ld_reduce.b64 r1, [w]", "", "is not modelled (section 9.7.9.14)"),
    (TWO, "multimem.st.b64 [w], 1", "exists (w == 1)", "there is no location 'w'"),
    (TWO, "multimem.st.b64 [w], 1", "locations [w;]", "there is no location 'w'"),
    (TWO, "multimem.cp.async.bulk.global.shared::cta.bulk_group [x], [y], 16", "", "'x' is no multi-address"),
    (".u64 x[2] = {1}; y = 0", "multimem.cp.async.bulk.global.shared::cta.bulk_group [x], [x], 16", "",
     "'x' is no multi-address"),
    (TWO, "multimem.cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [w], [x], 16, [y]", "",
     "is not modelled"),
    (TWO, "multimem.st.async.global.b64 [w], 1", "", "is not modelled"),
    (TWO, "multimem.red.add.e4m3x4 [w], 1", "", "is not modelled"),
    ("multimem w = {}", "multimem.st.b64 [w], 1", "", "expected a new name"),
    ("multimem w = {x, x}", "multimem.st.b64 [w], 1", "", "is no further location"),
    ("multimem w = x", "multimem.st.b64 [w], 1", "", "expected '{'"),
    (".u64 x[2] = {1}; multimem w = {x}", "multimem.st.b64 [w+16], 1", "", "leads out of the location"),
])  # fmt: skip
def test_refused(initial, instruction, end, message):
    with pytest.raises(PtxError) as caught:
        run(read(TEST.format(initial, instruction, end)))
    assert message in caught.value.diagnostics[0].message


def test_elements_and_names():
    """Places in arrays; without a condition the state has the locations, and no other name."""
    arrays = "multimem w = {x, y}; .u32 x[2] = {1, 2}; .u32 y[2] = {3, 4}"
    instructions = "multimem.red.add.u32 [w+4], 5 ;\nmultimem.ld_reduce.max.u32 r1, [w+4]"
    found = run(read(TEST.format(arrays, instructions, "")))
    assert found.names == ("P0:r1", "x", "y") and set(found.states) == {(9, 1, 3)}
    assert run(read(TEST.format(TWO, "multimem.red.xor.b64 [w], 3", "forall (x == 2 /\\ y == 1)"))).holds


@rows("type_, function, first, second, result", [
    ("e4m3x4", "add.acc::f16", 0x7E387E38, 0x38387EB8, 0x7E407F00),  # 448 + 1, 1 + 1, 448 + 448: too large; 1 - 1
    ("e4m3x4", "add", 0x01010101, 0x08818101, 0x09000002),  # subnormal numbers
    ("e5m2x4", "add.acc::f16", 0x7B3C7BBC, 0x3C3C7B3C, 0x7B407C00),  # 57344 + 57344 is infinity
    ("e5m2x4", "max", 0x7FBC3C7C, 0x3C3CBC40, 0x3C3C3C7C),  # the one that is a number
    ("e4m3x4", "min", 0xFF38B881, 0x38B8B800, 0x38B8B881),
])  # fmt: skip
def test_numbers_of_8_bits(type_, function, first, second, result):
    """By hand: e4m3 has a bias of 7 and no infinity, e5m2 one of 15 (5.2.3)."""
    operation, _, wide = function.partition(".")
    text = f"multimem.ld_reduce.{operation}{'.' + wide if wide else ''}.{type_} r1, [w]"
    initial = f".u32 x = {first}; .u32 y = {second}; multimem w = {{x, y}}"
    assert run(read(TEST.format(initial, text, f"forall (P0:r1 == {result})"))).holds
