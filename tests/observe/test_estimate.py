"""Estimates: bounds of known kernels, computed by hand from the table of rates."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.observe.estimate import Estimate, KernelEstimate, as_dict, as_json
from ptxtools.observe.profile import Profile
from ptxtools.observe.profile_html import as_html
from ptxtools.sim.limits import LIMITS
from ptxtools.sim.rates import ISSUES, RATES
from tests.rows import rows

A100 = RATES["sm_80"]
SMS = LIMITS["sm_80"].sms


def estimated(
    body: str, *args: Any, grid: int = 1, block: int = 32, engine: str = "native", target: str = "sm_80", **how: Any
) -> Estimate:
    """A kernel k(a, b): %a and %b hold its arguments, %t the thread's number in the grid, %s 4 KiB of shared memory."""
    text = f""".version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b) {{
    .shared .align 16 .b8 sh[4096]; .shared .align 8 .b64 full;
    .reg .u64 %a, %b, %d<9>; .reg .u32 %t, %s, %r<9>; .reg .f32 %f<40>; .reg .pred %p, %q;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %s, sh;
    mov.u32 %t, %tid.x; mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ntid.x; mad.lo.u32 %t, %r7, %r8, %t;
    {body}
    ret;
}}"""
    estimate = Estimate()
    device = ptxtools.Device(engine=engine, observers=[estimate], **how)
    device.launch(ptxtools.loads(text)["k"], grid, block, [*args, 0, 0][:2])
    return estimate


def one(*args: Any, **how: Any) -> KernelEstimate:
    (kernel,) = estimated(*args, **how).kernels
    return kernel


@rows("engine, count", [("native", 20), ("native", 80), ("reference", 20)])
def test_a_chain_is_bound_by_latency(engine: str, count: int) -> None:
    """Each fma waits 4 cycles for the one before; the index in front of it is one more, and nothing depends on it."""
    kernel = one("fma.rn.f32 %f1, %f1, %f1, %f1;" * count, engine=engine)
    assert kernel.bound == "latency" and kernel.complete
    assert kernel.cycles == pytest.approx(A100.alu_latency * count, abs=3)
    assert kernel.bounds["fma"] == (count + 1) * 32 / A100.fp32
    assert kernel.microseconds == kernel.cycles / A100.clock


def test_independent_instructions_are_bound_by_the_pipe() -> None:
    """8 warps in each of 4 CTAs of an SM: 200 fma of each take half a cycle of the SM's 64 lanes."""
    flood = "".join(f"fma.rn.f32 %f{n % 32}, %f{n % 32}, %f{n % 32}, %f{n % 32};" for n in range(200))
    kernel = one(flood, grid=4 * SMS, block=256)
    assert kernel.bound == "fma"
    assert kernel.cycles == 4 * 8 * 201 * 32 / A100.fp32
    assert kernel.bounds["issue"] == 4 * 8 * 202 / ISSUES
    assert (kernel.waves, kernel.sms, kernel.tail) == (1, SMS, 1)


def test_a_copy_is_bound_by_dram() -> None:
    """4 MiB read and 4 MiB written, once each."""
    x = np.ones(1 << 20, np.float32)
    copy = """mul.wide.u32 %d1, %t, 4; add.u64 %d2, %a, %d1; add.u64 %d3, %b, %d1;
        ld.global.f32 %f1, [%d2]; st.global.f32 [%d3], %f1;"""
    kernel = one(copy, x, np.zeros_like(x), grid=4096, block=256)
    assert kernel.bound == "DRAM" and kernel.margin > 2
    assert kernel.cycles == pytest.approx(2 * x.nbytes / A100.dram_bytes)
    assert kernel.microseconds == pytest.approx(2 * x.nbytes / (A100.dram * 1e3))
    assert kernel.bounds["L2"] == pytest.approx(2 * x.nbytes / A100.l2)


@rows("stride", [1, 2, 8, 32])
def test_bank_conflicts_multiply_the_time_of_shared_memory(stride: int) -> None:
    kernel = one(f"mov.u32 %r1, %tid.x; mad.lo.u32 %r1, %r1, {4 * stride}, %s;" + "ld.shared.u32 %r2, [%r1];" * 64)
    assert kernel.bounds["shared"] == 64 * stride


def test_a_load_waits_for_dram_and_a_second_one_for_l2() -> None:
    """Two dependent loads: the second one finds its sector in the L2."""
    body = "ld.global.u64 %d1, [%a]; add.u64 %d1, %d1, %a; ld.global.u64 %d2, [%d1]; add.u64 %d3, %d2, 1;"
    kernel = one(body, np.zeros(4, np.uint64))
    loads = A100.dram_latency + A100.l2_latency
    assert kernel.path == pytest.approx(loads + 3 * A100.alu_latency, abs=8)
    assert kernel.waits["global memory"] == pytest.approx(loads, abs=12)


def test_a_barrier_waits_for_the_last() -> None:
    """Warp 0 has a chain of 100 fma before the barrier, warp 1 nothing."""
    body = "setp.ge.u32 %p, %t, 32; @%p bra L;" + "fma.rn.f32 %f1, %f1, %f1, %f1;" * 100 + "L: bar.sync 0;"
    kernel = one(body, block=64)
    assert kernel.path == pytest.approx(100 * A100.alu_latency + A100.shared_latency, abs=20)
    assert set(kernel.waits) == {"barriers", "arithmetic"}
    assert kernel.waits["barriers"] == pytest.approx(100 * A100.alu_latency / 2, abs=12)


def test_copies_and_mbarriers() -> None:
    """The thread that waits at the mbarrier goes on when the copy's latency is over."""
    body = """.reg .u32 %m; mov.u32 %m, full; mov.u64 %d1, 0;
    mbarrier.init.shared.b64 [%m], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%m], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%a], 512, [%m];
L:  mbarrier.try_wait.parity.shared.b64 %p, [%m], 0; @!%p bra L;"""
    kernel = one("setp.ne.u32 %q, %t, 0; @%q exit;" + body, np.zeros(128, np.float32), target="sm_90")
    assert kernel.path == pytest.approx(RATES["sm_90"].dram_latency, abs=60)
    assert kernel.waits["mbarriers"] > 0.9 * RATES["sm_90"].dram_latency
    assert any("bulk and tensor copies" in note for note in kernel.notes)


def test_tensor_products_by_shape_and_type() -> None:
    """16 x 8 x 16 products: 2048 multiplications, at 1024 a cycle."""
    body = ".reg .b32 %h<6>;" + (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%h0, %h1, %h2, %h3}, {%h4, %h5}, "
        "{%f0, %f1, %f2, %f3};"
    ) * 10  # fmt: skip
    kernel = one(body, grid=SMS, block=128)
    assert kernel.bounds["tensor"] == 4 * 10 * 16 * 8 * 16 / A100.tensor
    assert kernel.path == pytest.approx(10 * A100.tensor_latency, abs=8)


def test_waves_and_tail() -> None:
    """1024 threads: two CTAs on an SM; one CTA more than two waves make a third, and one SM has five CTAs."""
    kernel = one("add.u32 %r1, %t, 1;", grid=4 * SMS + 1, block=1024)
    assert (kernel.ctas_per_sm, kernel.waves, kernel.sms) == (2, 3, SMS)
    assert kernel.tail == pytest.approx(5 * SMS / (4 * SMS + 1))
    assert kernel.bounds["latency"] == 3 * kernel.path


def test_long_paths_are_scaled_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three instructions of the chain are followed: the path is scaled by those that were executed."""
    whole = one("fma.rn.f32 %f1, %f1, %f1, %f1;" * 90)
    monkeypatch.setattr("ptxtools.observe.estimate.MOST", 60)
    for engine in ("native", "reference"):
        part = one("fma.rn.f32 %f1, %f1, %f1, %f1;" * 90, engine=engine)
        assert (part.complete, part.instructions) == (False, 60)
        assert part.path == pytest.approx(whole.path, rel=0.05)


def test_both_engines_agree() -> None:
    body = """setp.ge.u32 %p, %t, 32; @%p bra L; fma.rn.f32 %f1, %f1, %f1, %f1; L: bar.sync 0;
        mad.wide.u32 %d1, %t, 4, %a; ld.global.f32 %f2, [%d1]; st.shared.f32 [%s], %f2; bar.sync 0;"""
    both = [
        as_dict(estimated(body, np.zeros(1024, np.float32), grid=8, block=128, engine=e))
        for e in ("native", "reference")
    ]
    assert both[0] == both[1]


def test_chips_without_published_rates_are_refused() -> None:
    with pytest.raises(ptxtools.LaunchError, match="no published rates of sm_87; an estimate knows sm_70, "):
        estimated("", target="sm_87")


def test_json() -> None:
    estimate = estimated("bar.sync 0;", grid=3)
    (kernel,) = json.loads(as_json(estimate))["kernels"]
    assert kernel["bound"] == "latency" and kernel["cycles"] == estimate.kernels[0].cycles
    assert set(RATES) <= set(LIMITS)


def test_the_page_of_a_profile_shows_the_time_by_reason() -> None:
    profile, estimate = Profile(), Estimate()
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a) { .reg .u64 %a, %b;"
    text += "ld.param.u64 %a, [a]; ld.global.u64 %b, [%a]; st.global.u64 [%a], %b; bar.sync 0; ret; }"
    device = ptxtools.Device(observers=[profile, estimate])
    device.launch(ptxtools.loads(text)["k"], 2, 64, [np.zeros(1, np.uint64)])
    page = as_html(profile, lambda name: None, estimate)
    (kernel,) = estimate.kernels
    assert f"in a model: {kernel.cycles:,.0f} cycles, " in page
    assert f"<td>{kernel.waits['global memory']:,.0f}</td>" in page
    assert kernel.waits["global memory"] == pytest.approx(A100.dram_latency, rel=0.5)
    assert any("as it is written" in note for note in profile.kernels[0].notes)
    assert "in a model" not in as_html(profile, lambda name: None)


@rows(
    "body",
    ["", "trap;", "mov.u32 %r1, 0; trap;", "L: bra L;", "bar.sync 0; @%p exit; trap;"],
)
def test_what_ends_early_has_an_estimate_or_none(body: str) -> None:
    for engine in ("native", "reference"):
        estimate, text = (
            Estimate(),
            f""".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k() {{ .reg .u32 %r<3>; .reg .pred %p; {body} ret; }}""",
        )
        device = ptxtools.Device(engine=engine, observers=[estimate])
        try:
            device.launch(ptxtools.loads(text)["k"], 2, 40, [], max_instructions=20_000)
        except ptxtools.Trap:
            assert body
        for kernel in estimate.kernels:
            assert kernel.cycles > 0 and json.loads(as_json(estimate))
