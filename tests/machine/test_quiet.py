"""Instructions that change no value (fences, caches, policies, events), in every form; windows of spaces; .uni."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools import isa
from tests.semantics.harness import version_of
from tests.semantics.refused import is_refused
from tests.sim.tensor.test_all_forms import resolved, target_of

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
QUIET = ("fence", "membar", "prefetch", "prefetchu", "applypriority", "pmevent", "griddepcontrol", "createpolicy")

#: Instructions of sm_107 alone, which these tests do not run: they lower to nothing, as `cp.async.bulk.prefetch` does.
WITHOUT_DEVICE = {"applypriority.async.bulk", "applypriority.async.bulk.tensor"}

KERNEL = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {{
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p;
  .shared .align 8 .b32 s[32]; .local .align 8 .b32 l[4];
  ld.param.u64 %d0, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d0, %d1;
  mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; mov.b64 %d3, map; cvta.param.u64 %d3, %d3;
  st.shared.u32 [%r2], %r1; st.local.u32 [l], %r1; st.global.u32 [%d1], %r1;
{body}
  ld.shared.u32 %r3, [%r2]; ld.local.u32 %r4, [l]; ld.global.u32 %r5, [%d1];
  add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; st.global.u32 [%d1], %r3; ret; }}
"""


def statement(op: isa.Opcode) -> str:
    """The instruction with operands that fit."""
    family, mods = op.family, op.text
    if family == "fence":
        return f"{mods} [%d3], 128;" if op.operands else f"{mods};"
    if family == "prefetch":
        space = "map" if ".param" in mods else "%d3" if "tensormap" in mods else "l" if ".local" in mods else "%d1"
        return f"{mods} [{space}];"
    if family == "createpolicy":
        rest = {"cvt": "0x10000000", "fractional": "0.5"}.get(mods.split(".")[1], "[%d1], 128, 256")
        return f"{mods} %d4, {rest};"
    return {"prefetchu": f"{mods} [%d1];", "applypriority": f"{mods} [%d0], 128;", "pmevent": f"{mods} 3;"}.get(
        family, f"{mods};"
    )


def quiet(engine: str, version: str, target: str, statements: list[str]) -> list[int]:
    module = ptxtools.loads(KERNEL.format(version=version, target=target, body="\n".join(statements)))
    out = np.zeros(32, np.uint32)
    device = ptxtools.Device(target, engine=engine)
    device.launch(module["k"], 1, 32, [out, bytes(128)])
    return out.tolist()


@ENGINES
@pytest.mark.parametrize("family", QUIET)
def test_values_stay(family: str, engine: str) -> None:
    modules: dict[tuple[str, str], list[str]] = {}
    for page in isa.pages(family):
        for form in page.forms:
            for op in resolved(form).values() if form.family == family else ():
                if "const.tensormap" in op.text or is_refused(op):  # a map in constant memory: test_tensormap
                    continue
                if op.name in WITHOUT_DEVICE:
                    assert {target for need in op.requirements for target in need.targets} == {"sm_107f"}
                    print(f"not run: {op.text}")
                    continue
                target = target_of(op)
                modules.setdefault((version_of(op, target), target), []).append(statement(op))
    assert modules
    for (version, target), statements in modules.items():
        assert quiet(engine, version, target, statements) == [3 * i for i in range(32)]


WINDOWS = """.version 9.0
.target sm_90
.address_size 64
.const .align 8 .u32 c[2] = {7, 11};
.global .align 8 .u32 g[2] = {7, 12};
.visible .entry k(.param .u64 out, .param .align 8 .b8 p[8]) {
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p;
  .shared .align 8 .u32 s[2]; .local .align 8 .u32 l[2];
  ld.param.u64 %d0, [out]; mov.u32 %r0, 13; st.shared.u32 [s+4], %r0; mov.u32 %r0, 14; st.local.u32 [l+4], %r0;
BODY
  ret; }
"""
#: A space's name in cvta, its variable, and what its second word is.
SPACES = {"const": ("c", 11), "global": ("g", 12), "shared": ("s", 13), "shared::cta": ("s", 13),
          "shared::cluster": ("s", 13), "local": ("l", 14), "param": ("p", 15), "param::entry": ("p", 15)}  # fmt: skip


@ENGINES
def test_windows(engine: str) -> None:
    """cvta, cvta.to and isspacep for every space against every other (9.7.9.17, 9.7.9.20). The windows of constants and
    kernel parameters lie in that of global memory."""
    body, wanted = [], []
    for space, (name, value) in SPACES.items():
        body.append(f"mov.u64 %d1, {name}; cvta.{space}.u64 %d2, %d1; ld.u32 %r1, [%d2+4];")
        body.append(f"st.global.u32 [%d0+{4 * len(wanted)}], %r1; cvta.to.{space}.u64 %d3, %d2;")
        wanted.append(value)
        body.append(f"sub.u64 %d3, %d3, %d1; st.global.u32 [%d0+{4 * len(wanted)}], %d3;")
        wanted.append(0)
        for other in SPACES:
            body.append(f"isspacep.{other} %p, %d2; selp.u32 %r2, 1, 0, %p;")
            body.append(f"st.global.u32 [%d0+{4 * len(wanted)}], %r2;")
            inside = {space.split(":")[0]} | ({"global"} if name in "cgp" else set())
            wanted.append(int(other.split(":")[0] in inside))
    out = np.zeros(len(wanted), np.uint32)
    kernel = ptxtools.loads(WINDOWS.replace("BODY", "\n".join(body)))["k"]
    ptxtools.Device(engine=engine).launch(kernel, 1, 1, [out, np.array([7, 15], np.uint32).tobytes()])
    assert out.tolist() == wanted


RANKS = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster 4 {
  .reg .b32 %r<12>; .reg .b64 %d<8>; .shared .align 4 .u32 s;
  ld.param.u64 %d0, [out]; mov.u32 %r0, %cluster_ctarank; mul.wide.u32 %d1, %r0, 16; add.u64 %d0, %d0, %d1;
  add.u32 %r1, %r0, 1; and.b32 %r1, %r1, 3; mov.u32 %r2, s; mov.u64 %d2, s; cvta.shared.u64 %d3, %d2;
  mapa.shared::cluster.u32 %r3, %r2, %r1; getctarank.shared::cluster.u32 %r4, %r3;
  mapa.shared::cluster.u64 %d4, %d2, %r1; getctarank.shared::cluster.u32 %r5, %r3;
  mapa.u64 %d5, %d3, %r1; getctarank.u64 %r6, %d5; getctarank.u64 %r7, %d3;
  st.global.v4.u32 [%d0], {%r4, %r5, %r6, %r7};
  barrier.cluster.arrive; barrier.cluster.wait; ret; }
"""


@ENGINES
def test_ranks_of_addresses(engine: str) -> None:
    out = np.zeros((4, 4), np.uint32)
    ptxtools.Device(engine=engine).launch(ptxtools.loads(RANKS)["k"], 4, 1, [out])
    assert out.tolist() == [[(rank + 1) % 4] * 3 + [rank] for rank in range(4)]


UNIFORM = """.version 9.0
.target sm_75
.address_size 64
.func (.param .u32 r) f(.param .u32 a) {
  .reg .b32 %q; .reg .pred %p; ld.param.u32 %q, [a]; setp.lt.u32 %p, %q, 2; @%p bra.uni SMALL;
  st.param.u32 [r], 50; ret.uni; SMALL: st.param.u32 [r], %q; ret.uni; }
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<8>; .reg .b64 %d<4>;
  ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
  ts: .branchtargets A, B, C; brx.idx.uni %r0, ts;
  A: mov.u32 %r1, 10; bra.uni E; B: mov.u32 %r1, 20; bra.uni E; C: mov.u32 %r1, 30;
  E: { .param .b32 a; .param .b32 r; st.param.b32 [a], %r0; call.uni (r), f, (a); ld.param.b32 %r2, [r]; }
  add.u32 %r1, %r1, %r2; st.global.u32 [%d0], %r1; ret.uni; }
"""


@ENGINES
def test_uniform_control_flow(engine: str) -> None:
    out = np.zeros(3, np.uint32)
    ptxtools.Device(engine=engine).launch(ptxtools.loads(UNIFORM)["k"], 3, 32, [out])
    assert out.tolist() == [10, 21, 80]
