"""Which kernels' CTAs can wait for each other."""

from __future__ import annotations

import kernels
import pytest

from ptxtools.program.passes import waits
from ptxtools.program.passes.waits import independent

from .harness import lowered

HEAD = """.visible .entry k(.param .u64 a, .param .u32 n) {
    .reg .b32 %i, %j, %n, %v, %w; .reg .b64 %a, %s; .reg .pred %p, %q; .shared .b32 room[64];
    ld.param.u64 %a, [a]; ld.param.u32 %n, [n]; mov.u32 %i, 0; mov.u32 %j, 0;
"""
NEVER = {
    "no loop": "ld.volatile.global.u32 %v, [%a]; setp.ne.u32 %p, %v, 0; @%p add.u32 %v, %v, 1; st.global.u32 [%a], %v;",
    "a loop that counts": """
L:  ld.global.u32 %v, [%a]; add.u32 %w, %v, %w; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L;
    st.global.u32 [%a], %w;""",
    "what is read decides what is computed, not for how long": """
L:  ld.global.u32 %v, [%a]; setp.eq.u32 %q, %v, 3; @%q add.u32 %w, %w, 1; selp.u32 %v, 7, 8, %q; add.u32 %w, %w, %v;
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L;
    st.global.u32 [%a], %w;""",
    "as often as was read before": """
    ld.global.u32 %n, [%a];
L:  red.global.add.u32 [%a], 1; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L;""",
    "a loop on its own shared memory": """
    st.shared.u32 [room], %n;
L:  ld.shared.u32 %v, [room]; sub.u32 %v, %v, 1; st.shared.u32 [room], %v; bar.sync 0;
    setp.ne.u32 %p, %v, 0; @%p bra L;""",
    "the clock": """
L:  st.global.u32 [%a], %i; mov.u32 %i, %clock; setp.lt.u32 %p, %i, %n; @%p bra L;""",
    "atomics whose results decide nothing": """
L:  atom.global.add.u32 %v, [%a], 1; add.u32 %w, %w, %v; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra L;
    st.global.u32 [%a], %w;""",
}
PERHAPS = {
    "a flag": "L: ld.volatile.global.u32 %v, [%a]; setp.ne.u32 %p, %v, 1; @%p bra L;",
    "a weak load": "L: ld.global.u32 %v, [%a]; setp.ne.u32 %p, %v, 1; @%p bra L;",
    "a generic load": "L: ld.u32 %v, [%a]; setp.ne.u32 %p, %v, 1; @%p bra L;",
    "a lock": "L: atom.global.cas.b32 %v, [%a], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra L;",
    "what is computed from a load": """
L:  ld.acquire.gpu.global.u32 %v, [%a]; shl.b32 %w, %v, 1; xor.b32 %j, %w, 5; setp.ne.u32 %p, %j, %n; @%p bra L;""",
    "it leaves from the middle": """
L:  ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 1; @%p exit; add.u32 %i, %i, 1; bra L;""",
    "a guard that was read": """
L:  ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %q, %v, 1; @%q mov.u32 %i, 1; setp.eq.u32 %p, %i, 0; @%p bra L;""",
    "a branch inside": """
L:  ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %q, %v, 1; @%q bra S; st.global.u32 [%a+4], 1; bra N;
S:  mov.u32 %i, 1; st.global.u32 [%a+8], 1;
N:  setp.eq.u32 %p, %i, 0; @%p bra L;""",
    "by way of shared memory": """
L:  ld.volatile.global.u32 %v, [%a]; st.shared.u32 [room], %v; bar.sync 0; ld.shared.u32 %w, [room];
    setp.ne.u32 %p, %w, 1; @%p bra L;""",
    "by way of another round": """
L:  setp.eq.u32 %p, %w, 1; mov.u32 %w, %j; ld.volatile.global.u32 %j, [%a]; @%p exit; bra L;""",
    "by way of other lanes": """
L:  ld.volatile.global.u32 %v, [%a]; shfl.sync.idx.b32 %w, %v, 0, 31, -1; setp.ne.u32 %p, %w, 1; @%p bra L;""",
    "by way of a barrier": """
L:  ld.volatile.global.u32 %v, [%a]; setp.ne.u32 %q, %v, 1; bar.red.popc.u32 %w, 0, %q;
    setp.ne.u32 %p, %w, 0; @%p bra L;""",
    "by way of an outer loop": """
L:  ld.volatile.global.u32 %v, [%a]; mov.u32 %i, 0;
M:  add.u32 %i, %i, 1; st.global.u32 [%a+4], %i; setp.lt.u32 %p, %i, %n; @%p bra M;
    setp.ne.u32 %q, %v, 1; @%q bra L;""",
    "a loop that goes on behind its end": """
    bra B;
A:  setp.ne.u32 %p, %v, 1; @!%p exit;
B:  add.u32 %i, %i, 1; bra C;
D:  bra A;
C:  ld.volatile.global.u32 %v, [%a]; bra D;""",
    "a copy": """
    mov.u64 %s, room; cvt.u32.u64 %j, %s;
L:  cp.async.ca.shared.global [%j], [%a], 4; cp.async.wait_all; ld.shared.u32 %w, [room];
    setp.ne.u32 %p, %w, 1; @%p bra L;""",
    "a sleep, which the device serves": "L: ld.volatile.global.u32 %v, [%a]; nanosleep.u32 10; add.u32 %i, %i, 1;",
    "a table of ways": """
T:  .branchtargets L, E;
L:  ld.volatile.global.u32 %v, [%a]; and.b32 %v, %v, 1; brx.idx %v, T;
E:  st.global.u32 [%a], 2;""",
}


@pytest.mark.parametrize("name", NEVER)
def test_they_do_not_wait(name: str) -> None:
    assert independent(lowered(HEAD + NEVER[name] + "ret; }"))
    assert independent(lowered(HEAD + NEVER[name] + "ret; }", optimise=False))


@pytest.mark.parametrize("name", PERHAPS)
def test_they_may_wait(name: str) -> None:
    assert not independent(lowered(HEAD + PERHAPS[name] + "ret; }"))
    assert not independent(lowered(HEAD + PERHAPS[name] + "ret; }", optimise=False))


def test_functions_are_not_followed() -> None:
    text = ".func f() { .reg .b32 %r; ret; }\n" + HEAD + "call f, (); ret; }"
    assert not independent(lowered(text))


def test_long_kernels_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + NEVER["a loop that counts"] + "ret; }"
    monkeypatch.setattr(waits, "_MOST", 2)
    assert not independent(lowered(text))


@pytest.mark.parametrize("name", kernels.ALL)
def test_the_kernels_of_the_benchmark_do_not_wait(name: str) -> None:
    assert independent(lowered((kernels.PTX / f"{name}.ptx").read_text()))
