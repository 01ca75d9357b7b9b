"""Texture fetches in a loop on one core: samples a second."""

from __future__ import annotations

import time

import numpy as np

#: Samples a second that 2-D linear f32 has to reach.
BOUND = 20e6
_WIDTH, _THREADS, _CTAS, _ROUNDS = 256, 256, 16, 400
_TEXT = """.version 8.0
.target sm_75
.address_size 64
.visible .entry sample(.param .u64 t, .param .u64 out, .param .u32 n) {
  .reg .b64 %t, %o; .reg .f32 %f<4>, %x, %y, %sum; .reg .b32 %i, %j, %n, %a, %b; .reg .pred %p;
  ld.param.u64 %t, [t]; ld.param.u64 %o, [out]; ld.param.u32 %n, [n];
  mov.u32 %i, %tid.x; mov.u32 %a, %ctaid.x; mov.u32 %b, %ntid.x; mad.lo.u32 %i, %a, %b, %i;
  cvt.rn.f32.u32 %x, %i; mul.f32 %x, %x, 0f39000000; mul.f32 %y, %x, 0f3E99999A;
  mov.f32 %sum, 0f00000000; mov.u32 %j, 0;
again:
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%x, %y}];
  add.f32 %sum, %sum, %f0; add.f32 %x, %x, 0f3A83126F; add.f32 %y, %y, 0f3A03126F;
  add.u32 %j, %j, 1; setp.lt.u32 %p, %j, %n; @%p bra again;
  mad.wide.u32 %o, %i, 4, %o; st.global.f32 [%o], %sum; ret; }"""


def samples_a_second(**fields: object) -> float:
    """Of processor time, of the best of five launches; fields: those of the texture."""
    import ptxtools

    device = ptxtools.Device("sm_75", threads=1)
    kernel = ptxtools.loads(_TEXT)["sample"]
    image = np.random.default_rng(1).random((_WIDTH, _WIDTH), dtype=np.float32)
    texture = device.texture(device.upload(image), type="f32", size=[_WIDTH, _WIDTH], normalized=True, **fields)
    out = device.upload(np.zeros(_THREADS * _CTAS, np.float32))
    times = []
    for _ in range(5):
        start = time.process_time()
        device.launch(kernel, _CTAS, _THREADS, [texture, out, _ROUNDS])
        times.append(time.process_time() - start)
    return _THREADS * _CTAS * _ROUNDS / min(times)


def bench() -> None:
    print("Texture fetches of f32 from 2-D, one core: million samples a second")
    for name, fields in (
        ("linear, clamp", {"filter": "linear"}),
        ("linear, wrap", {"filter": "linear", "address": ["wrap"]}),
        ("point, clamp", {"filter": "point"}),
    ):
        bound = f"  (bound: at least {BOUND / 1e6:.0f})" if fields["filter"] == "linear" else ""
        print(f"  {name:14} {samples_a_second(**fields) / 1e6:6.1f}{bound}")


if __name__ == "__main__":
    bench()
