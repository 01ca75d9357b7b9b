"""suld, sust and sured: bytes and samples, inside and outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxtools

from .kernels import HEAD, in_registers


def run(body: str, surface: Any, device: ptxtools.Device, threads: int = 1) -> Any:
    """The 16 words that a kernel with this body leaves; %s is the surface, %o the result, %i the thread."""
    text = (
        HEAD.format(option="", globals="")
        + f""".visible .entry k(.param .u64 s, .param .u64 out) {{
  .reg .b64 %s, %o, %l<4>; .reg .b32 %i, %r<8>; .reg .b16 %h<4>; .reg .f32 %f<4>;
  ld.param.u64 %s, [s]; ld.param.u64 %o, [out]; mov.u32 %i, %tid.x;
  {in_registers(body)}
  ret; }}"""
    )
    out = np.zeros(16, np.uint32)
    device.launch(ptxtools.loads(text)["k"], 1, threads, [surface, out])
    return out


@pytest.fixture(params=["native", "reference"])
def device(request: pytest.FixtureRequest) -> ptxtools.Device:
    return ptxtools.Device(engine=request.param)


def test_loads_of_every_width(device: ptxtools.Device) -> None:
    data = np.arange(64, dtype=np.uint8).reshape(4, 16)
    surface = device.surface(device.upload(data), type="u8", channels=4, size=[4, 4])
    out = run(
        """suld.b.2d.b8.trap %h0, [%s, {5, 1}]; cvt.u32.u16 %r0, %h0; st.global.u32 [%o], %r0;
        suld.b.2d.v2.b16.trap {%h0, %h1}, [%s, {4, 2}]; st.global.v2.u16 [%o+4], {%h0, %h1};
        suld.b.2d.v4.b32.ca.trap {%r0, %r1, %r2, %r3}, [%s, {0, 3}]; st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};
        suld.b.2d.v2.b64.trap {%l0, %l1}, [%s, {0, 0}]; st.global.v2.u64 [%o+32], {%l0, %l1};""",
        surface, device,
    )  # fmt: skip
    raw = out.view(np.uint8)
    assert out[0] == data[1, 5]
    assert raw[4:8].tolist() == data[2, 4:8].tolist()
    assert raw[16:32].tolist() == data[3].tolist() and raw[32:48].tolist() == data[0].tolist()


def test_outside(device: ptxtools.Device) -> None:
    data = np.arange(1, 13, dtype=np.uint32).reshape(3, 4)
    surface = device.surface(device.upload(data), type="u32", size=[4, 3])
    out = run(
        """suld.b.2d.b32.zero %r0, [%s, {16, 0}]; suld.b.2d.b32.zero %r1, [%s, {0, -1}];
        suld.b.2d.b32.clamp %r2, [%s, {99, 99}]; suld.b.2d.b32.clamp %r3, [%s, {-8, 1}];
        st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};""",
        surface, device,
    )  # fmt: skip
    assert out[:4].tolist() == [0, 0, 12, 5]
    for body, message in (
        ("suld.b.2d.b32.trap %r0, [%s, {16, 2}];", r"surface access at \(16, 2\) of layer 0 is outside the surface"),
        ("sust.b.2d.b32.trap [%s, {2, 2}], %r0;", "at byte 2 of a row is not aligned to 4 bytes"),
        ("suld.b.1d.b32.trap %r0, [%s, {0}];", ".1d does not fit a surface of kind 2d"),
    ):
        with pytest.raises(ptxtools.Trap, match=message):
            run(body, surface, device)


def test_outside_is_a_finding_of_memcheck() -> None:
    device = ptxtools.Device("sm_80", checks="memcheck")
    surface = device.surface(device.upload(np.zeros((2, 4), np.uint32)), "2d", type="u32", size=[4, 2])
    with pytest.raises(ptxtools.Trap, match=r"surface access at \(0, 2\)") as caught:
        run("mov.b32 %r0, 7; sust.b.2d.b32.trap [%s, {0, 2}], %r0;", surface, device)
    assert caught.value.kind == "memcheck"


def test_a_texture_is_no_surface(device: ptxtools.Device) -> None:
    texture = device.texture(device.alloc(64), type="u32", size=[4, 4])
    with pytest.raises(ptxtools.Trap, match="does not fit a texture, which is not a surface"):
        run("suld.b.2d.b32.trap %r0, [%s, {0, 0}];", texture, device)


def test_stores(device: ptxtools.Device) -> None:
    buffer = device.upload(np.zeros((2, 2, 4), np.uint32))
    surface = device.surface(buffer, "a2d", type="u32", size=[4, 2, 2])
    run(
        """mov.b32 %r0, 7; shl.b32 %r1, %i, 2;
        sust.b.a2d.b32.trap [%s, {1, %r1, 1, 0}], %i;
        sust.b.a2d.b32.zero [%s, {2, 0, 0, 0}], %r0;
        sust.b.a2d.v2.b32.clamp [%s, {0, 100, 0, 0}], {%r0, %r0};""",
        surface, device, threads=4,
    )  # fmt: skip
    assert buffer.download().tolist() == [[[0, 0, 7, 7], [0] * 4], [[0] * 4, [0, 1, 2, 3]]]


def test_formatted_stores(device: ptxtools.Device) -> None:
    halves = device.upload(np.full((2, 4), 9, np.float16))
    run("mov.f32 %f0, 0f3FC00000; mov.f32 %f1, 0fC0000000; sust.p.1d.v2.b32.trap [%s, {1}], {%f0, %f1};",
        device.surface(halves, "1d", type="f16", channels=4, size=[2]), device)  # fmt: skip
    assert halves.download()[0].tolist() == [9] * 4 and halves.download()[1, :2].tolist() == [1.5, -2]
    octets = device.upload(np.zeros(3, np.uint8))
    run("mov.b32 %r0, 0x1ff; sust.p.1d.v4.b32.trap [%s, {2}], {%r0, %r0, %r0, %r0};",
        device.surface(octets, "1d", type="u8", size=[3]), device)  # fmt: skip
    assert octets.download().tolist() == [0, 0, 255]
    layers = device.upload(np.zeros((2, 3), np.uint8))
    run("mov.b32 %r0, 200; sust.p.a1d.b32.trap [%s, {1, 2}], {%r0};",
        device.surface(layers, "a1d", type="u8", size=[3, 2]), device)  # fmt: skip
    assert layers.download().tolist() == [[0, 0, 0], [0, 0, 200]]


def test_reductions(device: ptxtools.Device) -> None:
    buffer = device.upload(np.array([5, -5, 0xF0, 0x0F], np.int32))
    surface = device.surface(buffer, "1d", type="s32", size=[4])
    run(
        """sured.b.add.1d.u32.trap [%s, {0}], %i; neg.s32 %r0, %i;
        sured.b.min.1d.s32.trap [%s, {4}], %r0;
        mov.b32 %r1, 0x3c; sured.b.and.1d.b32.trap [%s, {8}], %r1; sured.p.or.1d.b32.trap [%s, {3}], %r1;
        sured.p.max.1d.b32.zero [%s, {4}], %r1;""",
        surface, device, threads=8,
    )  # fmt: skip
    assert buffer.download().tolist() == [5 + 28, -7, 0x30, 0x3F]
    wide = device.upload(np.array([1 << 40], np.uint64))
    run("mov.u64 %l0, 3; sured.b.max.1d.u64.trap [%s, {0}], %l0; sured.b.add.1d.u64.trap [%s, {0}], %l0;",
        device.surface(wide, "1d", type="u32", channels=2, size=[1]), device)  # fmt: skip
    assert wide.download()[0] == (1 << 40) + 3


def test_reductions_of_floats(device: ptxtools.Device) -> None:
    surface = device.surface(device.upload(np.zeros(4, np.float32)), "1d", type="f32", size=[4])
    with pytest.raises(ptxtools.Trap, match=r"sured\.p requires integers, but the surface has f32"):
        run("mov.b32 %r1, 1; sured.p.or.1d.b32.trap [%s, {3}], %r1;", surface, device)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_observers_are_told_of_accesses(engine: str) -> None:
    told: list[tuple[Any, ...]] = []

    class Watcher(ptxtools.Observer):
        def access(self, at: Any, access: Any) -> None:
            if access.space == "global" and at.text.startswith("su"):
                told.append((access.action, access.size, access.lanes.tolist(), access.addresses.tolist()))

        def wrote_global(self, address: int, size: int) -> None:
            told.append(("twice", address, size))

    device = ptxtools.Device(engine=engine, observers=[Watcher()])
    buffer = device.upload(np.zeros((2, 4), np.uint32))
    surface = device.surface(buffer, type="u32", size=[4, 2])
    body = """shl.b32 %r0, %i, 2; suld.b.2d.b32.zero %r1, [%s, {%r0, 1}]; sust.b.2d.b32.zero [%s, {%r0, 0}], %i;
    sust.p.2d.b32.zero [%s, {%i, 1}], %i; sured.b.add.2d.u32.trap [%s, {4, 1}], %i;"""
    run(body, surface, device, threads=5)
    rows = [[buffer.address + 16 * row + 4 * lane for lane in range(4)] for row in range(2)]
    inside = list(range(4))  # of five lanes
    assert told == [
        ("read", 4, inside, rows[1]), ("write", 4, inside, rows[0]), ("write", 4, inside, rows[1]),
        ("atomic", 4, [*inside, 4], [rows[1][1]] * 5),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_initcheck_finds_texels_that_nobody_wrote(engine: str) -> None:
    device = ptxtools.Device(engine=engine, checks="initcheck")
    surface = device.surface(device.alloc(32), type="u32", size=[8, 1])
    body = "sust.b.2d.b32.trap [%s, {8, 0}], 1; "
    body += "suld.b.2d.b32.trap %r0, [%s, {8, 0}]; suld.b.2d.b32.trap %r0, [%s, {12, 0}];"
    text = (
        HEAD.format(option="", globals="")
        + f".visible .entry k(.param .u64 s) {{ .reg .b64 %s; .reg .b32 %i, %r<8>; ld.param.u64 %s, [s]; {body} ret; }}"
    )
    reports = device.launch(ptxtools.loads(text)["k"], 1, 1, [surface]).reports
    assert ["global read of 4 bytes" in str(one) for one in reports] == [True]
