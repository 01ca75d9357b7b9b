"""Mbarriers and asynchronous copies: in kernels, against the simulator, and what is refused of them. The verdicts are
those of testdata/litmus: Mbar+, Copy+ and Bulk+."""

import numpy as np
import pytest

import ptxtools
from ptxtools.diagnostics import PtxError
from ptxtools.model import mbarriers
from ptxtools.model.executions import run
from tests.model.suite import read
from tests.rows import rows

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    .shared .align 16 .u32 buf[4];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, buf;
"""
START = "@%p1 bra $S; mbarrier.init.shared.b64 [bar], 1; $S: bar.sync 0; @%p1 bra $W;"
WAIT = "$W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra $W; "
SHOW = "ld.shared.u32 %r3, [buf+4]; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r3;"
SMALL = "cp.async.ca.shared.global [%r2], [%rd1], 16; "
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [bar]; "
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16; cp.async.bulk.commit_group; "
STALE, OWN_STALE = "exists (out[0] == 0 \\/ out[1] == 0)", "exists (out[1] == 0)"

KERNELS = [
    # what thread 0 does, what both do, the outcome that a mistake allows, whether it is allowed
    ("wait-then-barrier", f"@%p1 bra $E; {SMALL}cp.async.wait_all; $E: bar.sync 0; {SHOW}", STALE, False),
    ("barrier-then-wait", f"@%p1 bra $E; {SMALL}$E: bar.sync 0; cp.async.wait_all; {SHOW}", STALE, True),
    ("copies-arrive", f"{START}{SMALL}cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; {WAIT}{SHOW}", STALE, False),
    ("bulk-load", f"{START}mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16; {LOAD}{WAIT}{SHOW}", STALE, False),
    ("bulk-store", f"@%p1 ret; st.shared.u32 [%r2+4], 7; fence.proxy.async; {STORE}cp.async.bulk.wait_group 0;",
     OWN_STALE, False),
    ("no-proxy-fence", f"@%p1 ret; st.shared.u32 [%r2+4], 7; {STORE}cp.async.bulk.wait_group 0;", OWN_STALE, True),
]  # fmt: skip


@rows("name, body, condition, allowed", KERNELS, ids=lambda value: value if isinstance(value, str) else "")
def test_kernels(name, body, condition, allowed):
    """The model decides, and whatever the simulator does with kernel `name` is among what it allows."""
    text = HEAD + "    " + body.replace("; ", ";\n    ") + "\n    ret;\n}\n"
    found = ptxtools.litmus_kernel(text, condition, args=[np.arange(5, 9, dtype=np.uint32), np.zeros(4, np.uint32)],
                                   grid=1, block=2)  # fmt: skip
    assert found.allowed == allowed, found.states
    places = [found.names.index(f"out[{at}]") for at in (0, 1) if f"out[{at}]" in found.names]
    states = {tuple(state[place] for place in places) for state in found.states}
    out = np.zeros(4, np.uint32)
    device = ptxtools.Device("sm_90", seed=1, engine="reference")
    device.launch(ptxtools.loads(text)["k"], 1, 2, [np.arange(5, 9, dtype=np.uint32), out])
    assert tuple(int(value) for value in out[2 - len(places) : 2]) in states, name


@rows(("line", "message"), [
    ("mbarrier.init [m]", "4:20: expected ','"),
    ("mbarrier.arrive _", "4:20: expected ','"),
    ("mbarrier.arrive.acquire.cta _, [m]", "4:2: '.acquire' of"),
    ("mbarrier.arrive.expect_tx _, [m]", "4:2: expected a count of transactions"),
    ("mbarrier.test_wait _, [m], 0", "4:2: expected a register"),
    ("mbarrier.strange [m]", "4:2: 'mbarrier.strange' is not modelled"),
    ("cp.async.ca.shared.global [x], [y], 5", "4:2: expected a size of 4, 8 or 16"),
    ("cp.async.ca.shared.global [x], [y], 4, 2", "4:39: expected '|'"),
    ("cp.async.ca.shared.global [x+40000], [y], 4", "4:2: the offset leads out"),
    ("cp.async.ca.shared.global [r9], [y], 4", "4:2: this address is that of no location"),
    ("ld.weak r9, x | cp.async.ca.shared.global [r9], [y], 4", "more cells"),
    ("cp.async.wait_group -1", "4:2: expected a number of groups"),
    ("cp.async.wait_group.read 0", "is not modelled"),
    ("cp.async.bulk.shared::cluster.global [x], [y], 16", "is not modelled"),
    ("st.async.release.cluster.global.b64 [x], 1", "'.cluster' of"),
    ("st.async.release.global.v2.b64 [x], {1, 2}", "'.v2' of"),
    ("st.async.mmio.release.gpu.global.b64 [x], 1", "'.mmio' needs '.sys'"),
    ("red.async.release.global.add.u64 [x], 1", "needs a scope"),
    ("red.async.release.gpu.global.max.u64 [x], 1", "is not modelled"),
    ("cp.async.bulk.tensor.1d.shared::cluster.global [x], [y]", "is not modelled"),
    ("cp.async.bulk.global.shared::cta.bulk_group [x], [y], 8", "a multiple of 16"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [x], [y], 1600", "a reduction of 200 elements"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.f32 [x], [y], 16", "is not modelled"),
])  # fmt: skip
def test_what_is_refused(line, message):
    with pytest.raises(PtxError) as caught:
        run(read(f"PTX t\n{{ mbarrier m = 1; }}\n P0@cta 0,gpu 0 ;\n {line} ;\nexists (true)\n"))
    assert message in str(caught.value)


@rows("initial", ["mbarrier m", "mbarrier m = 0", "mbarrier m = &x", "mbarrier m = -1", ".mbarrier m = 9999999"])
def test_an_mbarrier_expects_a_number_of_arrivals(initial):
    with pytest.raises(PtxError, match="how many arrivals"):
        read(f"PTX t\n{{ {initial}; }}\n P0@cta 0,gpu 0 ;\n nop ;\nexists (true)\n")


@rows(("initial", "lines", "undefined"), [
    ("mbarrier m = 1;", "mbarrier.arrive _, [m]", 0),
    ("m = 0;", "mbarrier.arrive _, [m]", 1),
    ("m = 0;", "mbarrier.init [m], 0", 1),
    ("m = 0;", "mbarrier.init [m], 1", 0),
    ("mbarrier m = 1;", "mbarrier.inval [m]", 0),
    ("mbarrier m = 1;", "mbarrier.inval [m] ;\n mbarrier.test_wait.parity p0, [m], 0", 1),
    ("mbarrier m = 1;", "mbarrier.arrive _, [m], 2", 1),
    ("mbarrier m = 1;", "mbarrier.arrive_drop _, [m] ;\n mbarrier.arrive _, [m]", 1),
    ("mbarrier m = 1;", "mbarrier.expect_tx [m], 1048575", 0),
    ("mbarrier m = 1;", "mbarrier.expect_tx [m], 1048576", 1),
])  # fmt: skip
def test_undefined_uses_are_counted(initial, lines, undefined):
    """9.7.13.15: counts have ranges, and an object is initialised before it is used."""
    found = run(read(f"PTX t\n{{ {initial} }}\n P0@cta 0,gpu 0 ;\n {lines} ;\nexists (true)\n"))
    assert (found.executions, found.undefined) == (1, undefined)


INIT, WAIT = "mbarrier.init.shared.b64 [m], 1", "mbarrier.test_wait.parity.shared.b64 p0, [m], 0"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [m], 16"


@rows("lines", [
    (INIT, EXPECT, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [b], [a], 16, [m]", WAIT),
    (INIT, EXPECT, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [b], {1, 2}, [m]", WAIT),
    (INIT, "cp.async.ca.shared.global [b], [a], 8", "cp.async.mbarrier.arrive.noinc.shared.b64 [m]", WAIT),
])  # fmt: skip
def test_an_object_is_initialised_for_the_completion_too(lines):
    """8.9.1.1: an asynchronous operation is behind what its thread executed, so that its completion finds the object;
    whoever finds the phase complete finds the data, without a race."""
    text = f"PTX t\n{{ a = 1; b = 0; m = 0; }}\n P0@cta 0,gpu 0 ;\n{''.join(f' {line} ;{chr(10)}' for line in lines)}"
    found = run(read(f"{text} ld.weak r1, b ;\nfilter (P0:p0 == 1)\nforall (P0:r1 == 1)\n"))
    assert found.holds and found.executions and not found.undefined and not found.races


def test_the_word_of_an_mbarrier():
    """Phases, transactions before they are expected, and counts at their limits."""
    word = mbarriers.initial(2)
    state = word
    assert mbarriers.pending_count(word) == 2 and not mbarriers.is_complete(word, state)
    word = mbarriers.completed(word, 16)
    word = mbarriers.arrived(word, transactions=16)
    assert mbarriers.pending_count(word) == 1 and not mbarriers.is_complete(word, state)
    word = mbarriers.arrived(word, drops=True)
    assert mbarriers.is_complete(word, state) and mbarriers.is_parity_complete(word, 0)
    assert mbarriers.pending_count(word) == 1 and not mbarriers.is_parity_complete(word, 1)
    for _ in range(9):
        word = mbarriers.arrived(mbarriers.arrived(mbarriers.awaiting(word)))
    assert mbarriers.is_complete(word, state) and mbarriers.pending_count(word) == 1
    assert mbarriers.initial((1 << 20) - 1) and not mbarriers.initial(1 << 20)
    assert not mbarriers.arrived(mbarriers.arrived(mbarriers.initial(1), drops=True))
