"""The Python interface: modules, devices, arguments, results, failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxtools
from tests.rows import rows

HEADER = ".version 7.8\n.target sm_75\n.address_size 64\n"

SCALE = (
    HEADER
    + """
.visible .entry scale(.param .u64 x, .param .u64 out, .param .f32 by, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %d<6>;
    ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; ld.param.f32 %f1, [by]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.u32 %d3, %r5, 4;
    add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
    ld.global.f32 %f2, [%d4];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%d5], %f3;
done:
    ret;
}
"""
)

#: Stores its parameters, one 8-byte word each, so that conversions can be seen.
ECHO = (
    HEADER
    + """
.visible .entry echo(.param .u64 out, .param .%s v)
{
    .reg .b64 %%d<3>; .reg .b%d %%v;
    ld.param.u64 %%d1, [out]; ld.param.b%d %%v, [v];
    st.global.b%d [%%d1], %%v;
    ret;
}
"""
)

VARIABLES = (
    HEADER
    + """
.const .f32 table[4] = {1.0, 2.0, 3.0, 4.0};
.global .u32 counter = 7;
.global .align 16 .v2 .f32 pairs[2];
.global .u64 where = counter;
.visible .entry bump(.param .u64 out)
{
    .reg .b32 %r<3>; .reg .f32 %f<2>; .reg .b64 %d<3>;
    ld.param.u64 %d1, [out];
    ld.global.u64 %d2, [where];
    ld.global.u32 %r1, [%d2]; add.u32 %r2, %r1, 1; st.global.u32 [counter], %r2;
    ld.const.f32 %f1, [table+8]; st.global.f32 [%d1], %f1;
    ret;
}
"""
)

ENDLESS = HEADER + ".visible .entry endless()\n{\nagain:\n    bra again;\n}\n"


@pytest.fixture(scope="module")
def scale() -> ptxtools.Kernel:
    return ptxtools.loads(SCALE)["scale"]


def echo(type_: str, value: object) -> int:
    bits = int("".join(c for c in type_ if c.isdigit()))
    module = ptxtools.loads(ECHO % (type_, bits, bits, bits))
    out = np.zeros(1, np.uint64)
    ptxtools.Device().launch(module["echo"], 1, 1, [out, value])
    return int(out[0])


# --- modules ----------------------------------------------------------------------------------------------------------


def test_modules_say_what_they_hold() -> None:
    module = ptxtools.loads(SCALE)
    assert (module.version, module.target) == ((7, 8), "sm_75")
    assert [k.name for k in module.kernels] == ["scale"] == list(module)
    assert "scale" in module and "other" not in module and len(module) == 1
    params = module["scale"].params
    assert [(p.name, p.type, p.size, p.alignment, p.offset) for p in params] == [
        ("x", "u64", 8, 8, 0), ("out", "u64", 8, 8, 8), ("by", "f32", 4, 4, 16), ("n", "u32", 4, 4, 20),
    ]  # fmt: skip
    assert "scale" in repr(module) and "scale" in repr(module["scale"])


def test_an_unknown_kernel_names_the_nearest() -> None:
    with pytest.raises(ptxtools.LaunchError, match="did you mean 'scale'"):
        ptxtools.loads(SCALE)["scal"]


def test_modules_come_from_files_bytes_and_containers(tmp_path) -> None:
    (tmp_path / "k.ptx").write_text(SCALE)
    data = ptxtools.assemble([SCALE])
    (tmp_path / "k.bin").write_bytes(data)
    for module in (
        ptxtools.load(tmp_path / "k.ptx"), ptxtools.load(str(tmp_path / "k.bin")), ptxtools.loads(SCALE.encode()),
        ptxtools.loads(data),
    ):  # fmt: skip
        assert [k.name for k in module.kernels] == ["scale"]


def test_errors_in_a_module_are_findings() -> None:
    with pytest.raises(ptxtools.PtxError) as caught:
        ptxtools.loads(SCALE.replace("mul.f32", "mul.f33").replace("[x]", "[y]"), "bad.ptx")
    codes = [d.code for d in caught.value.diagnostics]
    assert len(codes) >= 2 and all(d.file == "bad.ptx" for d in caught.value.diagnostics)


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02", b"\x7fELF", "", "garbage", "\ufeff"])
def test_input_that_is_no_module(data: str | bytes) -> None:
    with pytest.raises(ptxtools.PtxError):
        ptxtools.loads(data)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ptxtools.load(tmp_path / "none.ptx")


def test_assemble_and_disassemble() -> None:
    data = ptxtools.assemble([SCALE])
    text = ptxtools.disassemble(data)
    assert ".entry scale" in text
    assert ptxtools.assemble([text]) == data
    assert ptxtools.assemble(SCALE) == data


def test_lint_is_a_function() -> None:
    assert ptxtools.lint(SCALE) == []
    findings = ptxtools.lint(SCALE.replace("[x]", "[y]"))
    assert findings and all(isinstance(f, ptxtools.Diagnostic) for f in findings)
    assert any(f.requires for f in ptxtools.lint(SCALE.replace("7.8", "6.2")))


# --- launches ---------------------------------------------------------------------------------------------------------


def test_arrays_go_in_and_come_back(scale) -> None:
    x = np.arange(100, dtype=np.float32)
    out = np.zeros_like(x)
    result = ptxtools.Device().launch(scale, 4, 32, [x, out, 1.5, 100])
    assert np.array_equal(out, x * np.float32(1.5))
    assert result.instructions >= 1000 and result.seconds > 0
    assert (result.printed, result.reports) == ("", [])


def test_the_same_array_twice_is_one_buffer(scale) -> None:
    x = np.arange(10, dtype=np.float32)
    ptxtools.Device().launch(scale, 1, 32, [x, x, 2, 10])
    assert np.array_equal(x, 2 * np.arange(10))


def test_read_only_arrays_are_not_written(scale) -> None:
    x, out = np.ones(10, np.float32), np.zeros(10, np.float32)
    out.flags.writeable = False
    ptxtools.Device().launch(scale, 1, 32, [x, out, 2, 10])
    assert not out.any()


def test_arrays_that_are_not_contiguous(scale) -> None:
    x = np.arange(20, dtype=np.float32)
    out = np.zeros((10, 2), np.float32)
    ptxtools.Device().launch(scale, 1, 32, [x[::2], out[:, 1], 2, 10])
    assert np.array_equal(out[:, 1], 2 * x[::2]) and not out[:, 0].any()


def test_buffers_keep_type_and_shape(scale) -> None:
    device = ptxtools.Device()
    x = device.upload(np.arange(12, dtype=np.float32).reshape(3, 4))
    out = device.alloc(48)
    device.launch(scale, 1, 32, [x, out, 3.0, 12])
    assert out.download().dtype == np.uint8 and out.size == 48
    assert np.array_equal(out.download().view(np.float32), 3 * np.arange(12))
    assert x.download().shape == (3, 4)
    x.upload(np.zeros(12, np.float32))
    assert not x.download().any()
    with pytest.raises(ptxtools.LaunchError):
        x.upload(np.zeros(11, np.float32))


def test_buffer_arithmetic(scale) -> None:
    device = ptxtools.Device()
    x = device.upload(np.arange(8, dtype=np.float32))
    device.launch(scale, 1, 32, [x + 16, x + 8 + 8 - 16, 10, 4])
    assert x.download().tolist() == [40, 50, 60, 70, 4, 5, 6, 7]
    assert (x + 4).address == x.address + 4
    for offset in (33, -1):
        with pytest.raises(ptxtools.LaunchError, match="outside a buffer of 32 bytes"):
            x + offset


def test_freed_buffers_cannot_be_used(scale) -> None:
    device = ptxtools.Device()
    x = device.alloc(64)
    pointer = x + 4
    x.free()
    for use in (x.free, x.download, lambda: device.launch(scale, 1, 1, [x, x, 1, 1]), lambda: pointer.address):
        with pytest.raises(ptxtools.LaunchError, match="freed"):
            use()


def test_buffers_of_another_device(scale) -> None:
    x = ptxtools.Device().alloc(64)
    with pytest.raises(ptxtools.LaunchError, match="another device"):
        ptxtools.Device().launch(scale, 1, 1, [x, x, 1, 1])


@pytest.mark.parametrize("options", [{"shared": 1.5}, {"shared": -1}, {"timeout": 0}, {"timeout": float("nan")}])
def test_impossible_launches(scale, options: dict) -> None:
    x = np.zeros(10, np.float32)
    with pytest.raises(ptxtools.LaunchError):
        ptxtools.Device().launch(scale, 1, 1, [x, x, 1, 1], **options)


def test_big_endian_arrays_are_refused(scale) -> None:
    x, swapped = np.zeros(10, np.float32), np.ones(10, ">f4")
    with pytest.raises(ptxtools.LaunchError, match="little-endian"):
        ptxtools.Device().launch(scale, 1, 1, [swapped, x, 1, 1])


def test_launches_leave_no_memory_behind(scale) -> None:
    device = ptxtools.Device()
    x = np.zeros(10, np.float32)
    for _ in range(3):
        device.launch(scale, 1, 1, [x, x, 1, 1])
    with pytest.raises(ptxtools.LaunchError):
        device.launch(scale, 0, 1, [x, x, 1, 1])
    assert device.arena.live() == []


def test_device_memory_can_run_out() -> None:
    device = ptxtools.Device(memory=1 << 20)
    with pytest.raises(ptxtools.LaunchError, match="out of device memory"):
        device.alloc(1 << 21)


def test_module_variables() -> None:
    module, device = ptxtools.loads(VARIABLES), ptxtools.Device()
    counter = device.global_(module, "counter")
    assert counter.download().tolist() == [7] and counter.download().dtype == np.uint32
    assert device.global_(module, "table").download().tolist() == [1, 2, 3, 4]
    assert device.global_(module, "pairs").download().shape == (2, 2)
    assert device.global_(module, "where").download().tolist() == [counter.address]
    out = np.zeros(1, np.float32)
    device.launch(module["bump"], 1, 1, [out])
    assert out[0] == 3 and counter.download().tolist() == [8]
    counter.upload(np.array([20], np.uint32))
    device.launch(module["bump"], 1, 1, [out])
    assert counter.download().tolist() == [21]
    with pytest.raises(ptxtools.LaunchError, match="did you mean 'counter'"):
        device.global_(module, "countr")
    with pytest.raises(ptxtools.LaunchError):
        counter.free()


@rows(
    ("type_", "value", "bits"),
    [
        ("u32", 5, 5),
        ("u32", -1, 0xFFFFFFFF),
        ("s32", -2, 0xFFFFFFFE),
        ("u64", -1, 2**64 - 1),
        ("u32", True, 1),
        ("u32", 3.0, 3),
        ("f32", 1.5, 0x3FC00000),
        ("f32", 2, 0x40000000),
        ("f64", 1.5, 0x3FF8000000000000),
        ("b32", 1.5, 0x3FC00000),
        ("b64", 1.5, 0x3FF8000000000000),
        ("b32", 7, 7),
        ("b16", 1.5, 0x3E00),
        ("f32", np.float32(0.1), 0x3DCCCCCD),
        ("u32", np.int8(-1), 0xFFFFFFFF),
        ("u32", b"\x01\x02\x03\x04", 0x04030201),
        ("u64", None, 0),
    ],
)
def test_conversion_of_scalars(type_: str, value: object, bits: int) -> None:
    assert echo(type_, value) == bits


@pytest.mark.parametrize(
    ("type_", "value", "says"),
    [
        ("u32", 1.5, "is an integer, not 1.5"),
        ("u32", 2**32, "does not fit"),
        ("u32", -(2**32), "does not fit"),
        ("f32", 1e300, "too large"),
        ("u32", np.zeros(1), "is not a pointer"),
        ("u32", b"\x01", "has 4 bytes, not 1"),
        ("f64", None, "is not a pointer"),
        ("u32", "7", "a str cannot be passed"),
        ("u32", 1j, "a complex cannot be passed"),
        ("u32", float("nan"), "is an integer"),
        ("u64", np.array([{}], dtype=object), "Python objects"),
    ],
)
def test_arguments_that_do_not_fit(type_: str, value: object, says: str) -> None:
    with pytest.raises(ptxtools.LaunchError) as caught:
        echo(type_, value)
    assert says in str(caught.value) and "argument 1" in str(caught.value)


def test_ml_dtypes_arrays_are_arrays() -> None:
    import ml_dtypes

    module = ptxtools.loads(ECHO % ("b16", 16, 16, 16))
    out = np.zeros(1, ml_dtypes.bfloat16)
    ptxtools.Device().launch(module["echo"], 1, 1, [out, 0x3FC0])
    assert float(out[0]) == 1.5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"args": []}, "takes 4 arguments"),
        ({"args": [None] * 5}, "takes 4 arguments"),
        ({"grid": 0}, "grid 0,1,1"),
        ({"grid": (1, 1, 70000)}, "grid 1,1,70000"),
        ({"grid": 1.5}, "grid 1.5"),
        ({"block": 2048}, "block 2048,1,1"),
        ({"block": (32, 32, 2)}, "2048 threads"),
        ({"cluster": 2}, "has no clusters"),
        ({"shared": 1 << 20}, "shared memory"),
        ({"shared": -1}, "-1 bytes"),
        ({"grid": 10_000, "cooperative": True}, "resident as a whole"),
    ],
)
def test_refused_launches(scale, change: dict, says: str) -> None:
    options = {"grid": 1, "block": 32, "args": [None, None, 0, 0], **change}
    with pytest.raises(ptxtools.LaunchError) as caught:
        ptxtools.Device("sm_75").launch(scale, **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "sm_82"}, {"target": "sm_71"}, {"target": "sm_75a"}, {"target": "gfx90"}, {"sms": 0},
        {"engine": "fast"}, {"threads": 0}, {"memory": -1}, {"checks": ["mem"]}, {"numerics": "exact"},
        {"seed": -1}, {"target": ""},
    ],
)  # fmt: skip
def test_impossible_devices(options: dict) -> None:
    with pytest.raises(ptxtools.LaunchError):
        ptxtools.Device(**options)


def test_modules_of_another_architecture(scale) -> None:
    newer = ptxtools.loads(SCALE.replace("7.8", "8.0").replace("sm_75", "sm_90a"))["scale"]
    x = np.ones(4, np.float32)
    for target in ("sm_75", "sm_90", "sm_100a"):
        with pytest.raises(ptxtools.LaunchError, match="the module is for sm_90a"):
            ptxtools.Device(target).launch(newer, 1, 4, [x, x, 2, 4])
    ptxtools.Device("sm_90a").launch(scale, 1, 4, [x, x, 2, 4])
    assert x.tolist() == [2] * 4
    device = ptxtools.Device()
    device.launch(newer, 1, 4, [x, x, 2, 4])
    assert device.target == "sm_90a"


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_traps_say_where(engine: str) -> None:
    module = ptxtools.loads(SCALE, "scale.ptx")
    x = np.ones(4, np.float32)
    device = ptxtools.Device(engine=engine)
    with pytest.raises(ptxtools.Trap) as caught:
        device.launch(module["scale"], 3, 2, [x, None, 2, 4])
    trap = caught.value
    assert (trap.kernel, trap.kind, trap.file) == ("scale", "trap", "scale.ptx")
    line = SCALE.splitlines()[trap.line - 1]
    assert "st.global.f32" in line and "st.global.f32" in trap.text
    assert trap.cta == (0, 0, 0) and trap.thread == (0, 0, 0)
    assert f"scale.ptx:{trap.line}: trap:" in str(trap)
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_endless_kernel_ends_with_the_timeout(engine: str) -> None:
    kernel = ptxtools.loads(ENDLESS)["endless"]
    for _ in range(2):  # the first launch may have to wait until native code is made
        with pytest.raises(ptxtools.Trap) as caught:
            ptxtools.Device(engine=engine).launch(kernel, 1, 32, [], timeout=0.3)
        assert caught.value.kind in ("timeout", "deadlock")


def test_a_device_is_usable_after_a_trap(scale) -> None:
    device = ptxtools.Device()
    x = np.ones(4, np.float32)
    with pytest.raises(ptxtools.Trap):
        device.launch(scale, 1, 4, [x, None, 2, 4])
    device.launch(scale, 1, 4, [x, x, 2, 4])
    assert x.tolist() == [2] * 4


# --- ptx_run ----------------------------------------------------------------------------------------------------------


def test_host_memory() -> None:
    x = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(x)
    for _ in range(2):
        result = ptxtools.ptx_run(SCALE, [x.ctypes.data, out.ctypes.data, 2.0, 1000], 128, 8)
    assert np.array_equal(out, 2 * x) and result.instructions > 0


def test_host_memory_that_appeared_later() -> None:
    import ctypes
    import mmap

    for size in (1 << 16, 1 << 22, 1 << 24):
        area = mmap.mmap(-1, size)
        view = np.frombuffer(area, np.float32)
        view[:4] = [1, 2, 3, 4]
        address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        ptxtools.ptx_run(SCALE, [address, address + size - 16, 3.0, 4], 4, 1)
        assert view[-4:].tolist() == [3, 6, 9, 12]


def test_module_variables_beside_host_memory() -> None:
    out = np.zeros(1, np.float32)
    ptxtools.ptx_run(VARIABLES, [out.ctypes.data], 1, 1)
    assert out[0] == 3


@pytest.mark.parametrize("address", [0, 8, 1 << 46, (1 << 64) - 8, (1 << 64) - 4])
def test_memory_that_the_process_does_not_have(address: int) -> None:
    out = np.zeros(4, np.float32)
    for args in ([address, out.ctypes.data, 1.0, 1], [out.ctypes.data, address, 1.0, 1]):
        with pytest.raises(ptxtools.Trap):
            ptxtools.ptx_run(SCALE, args, 1, 1)


def test_read_only_host_memory_is_not_written() -> None:
    import ctypes
    import mmap

    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ)
    out = np.zeros(4, np.float32)
    address = np.frombuffer(area, np.uint8).ctypes.data
    ptxtools.ptx_run(SCALE, [address, out.ctypes.data, 1.0, 4], 4, 1)
    with pytest.raises(ptxtools.Trap):
        ptxtools.ptx_run(SCALE, [out.ctypes.data, address, 1.0, 4], 4, 1)
    assert ctypes.sizeof(ctypes.c_void_p) == 8


def test_host_memory_that_is_read_only_since_the_last_run_is_not_written() -> None:
    import ctypes
    import mmap

    area = mmap.mmap(-1, mmap.PAGESIZE)
    address = np.frombuffer(area, np.uint8).ctypes.data
    x = np.ones(4, np.float32)
    ptxtools.ptx_run(SCALE, [x.ctypes.data, address, 1.0, 4], 4, 1)
    protect = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ) == 0
    with pytest.raises(ptxtools.Trap):
        ptxtools.ptx_run(SCALE, [x.ctypes.data, address, 1.0, 4], 4, 1)
    assert area[:4] == np.float32(1).tobytes()


# --- the package ------------------------------------------------------------------------------------------------------


def test_importing_the_package_is_light() -> None:
    code = "import sys, ptxtools; print([m for m in ('numpy', 'llvmlite', 'click', 'ply', 'rich') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_the_package_names_what_it_has() -> None:
    for name in ptxtools.__all__:
        assert getattr(ptxtools, name) is not None
    assert set(ptxtools.__all__) <= set(dir(ptxtools))
    assert isinstance(ptxtools.__version__, str)
    with pytest.raises(AttributeError):
        ptxtools.nothing  # noqa: B018


# --- arguments of wrong types, and impossible devices -----------------------------------------------------------------


def wrong(call, *says):
    with pytest.raises(TypeError) as caught:
        call()
    assert all(text in str(caught.value) for text in says), caught.value


def test_wrong_types_are_named_at_the_boundary() -> None:
    wrong(lambda: ptxtools.loads(3), "must be text or bytes, not an int")
    wrong(lambda: ptxtools.loads(None), "not None")
    wrong(lambda: ptxtools.load(3), "int")
    wrong(lambda: ptxtools.lint(3), "the text must be text or bytes")
    wrong(lambda: ptxtools.lint(SCALE, target=90), "target must be a name such as 'sm_90a', not an int")
    wrong(lambda: ptxtools.assemble(3), "sources must be a list")
    wrong(lambda: ptxtools.assemble([SCALE, 3]), "source 1 must be text or bytes")
    wrong(lambda: ptxtools.disassemble("text"), "must be bytes, not a str")
    wrong(lambda: ptxtools.ptx_run(3, [], 1, 1), "ptx must be text or bytes")
    wrong(lambda: ptxtools.Device(90), "target must be a name such as 'sm_90a', or None, not an int")
    wrong(lambda: ptxtools.Device(sms="x"), "sms must be a whole number, not a str")
    wrong(lambda: ptxtools.Device(sms=True), "sms must be a whole number, not a bool")
    wrong(lambda: ptxtools.Device(sms=1.5), "sms must be a whole number, not a float")
    wrong(lambda: ptxtools.Device(memory="1G"), "memory must be a whole number")
    wrong(lambda: ptxtools.Device(checks=3), "checks must be a list of names")
    wrong(lambda: ptxtools.Device(engine=None), "engine must be a word, not None")
    wrong(lambda: ptxtools.Device(on_print="x"), "on_print must be a function")


def test_wrong_types_in_calls_of_a_device() -> None:
    device, module = ptxtools.Device("sm_80"), ptxtools.loads(SCALE)
    array = np.zeros(4, np.float32)
    buffer = device.upload(array)
    wrong(lambda: device.alloc("x"), "nbytes must be a whole number")
    wrong(lambda: device.alloc(1.5), "nbytes must be a whole number")
    wrong(lambda: device.tensormap(array, type="f32", shape=[4]), "must be a Buffer", "not a ndarray")
    wrong(lambda: device.texture(array, type="f32", size=[4, 1]), "must be a Buffer", "not a ndarray")
    wrong(lambda: device.texture(buffer, 2, type="f32", size=[4, 1]), "kind must be a word")
    wrong(lambda: device.multicast([array]), "must be a Buffer")
    wrong(lambda: device.multicast(3), "must be a list of buffers")
    wrong(lambda: device.global_(SCALE, "x"), "a module must be the result of ptxtools.load, not a str")
    wrong(lambda: device.bind(module, "t", 3), "must be a texture or surface")
    wrong(lambda: buffer + 1.5, "an offset in bytes must be a whole number")
    wrong(lambda: device.launch(module["scale"], 1, 1, 3), "args must be a list")


def test_numpy_integers_are_whole_numbers() -> None:
    device = ptxtools.Device("sm_80", sms=np.int64(2), memory=np.uint32(1 << 20))
    assert device.sms == 2 and device.alloc(np.int8(100)).size == 100


def test_bytes_in_any_shape() -> None:
    data = bytearray(ptxtools.assemble([memoryview(SCALE.encode())]))
    assert "scale" in ptxtools.disassemble(data) and len(ptxtools.loads(data).kernels) == 1
    assert ptxtools.lint(bytearray(SCALE.encode())) == ptxtools.lint(SCALE)


def test_an_unknown_target_is_an_error_of_lint() -> None:
    with pytest.raises(ValueError, match=r"unknown target 'sm_9O' \(did you mean"):
        ptxtools.lint(SCALE, target="sm_9O")


def test_device_memory_is_as_large_as_asked_for() -> None:
    device = ptxtools.Device("sm_80", memory=10)
    assert device.alloc(10).size == 10
    with pytest.raises(ptxtools.LaunchError, match="out of device memory"):
        device.alloc(1)
    with pytest.raises(ptxtools.LaunchError, match="out of device memory"):
        ptxtools.Device("sm_80", memory=10).alloc(100)


def test_a_heap_fits_into_device_memory() -> None:
    with pytest.raises(ptxtools.LaunchError, match="a heap of 4,096 bytes does not fit: device memory has 1,024"):
        ptxtools.Device("sm_80", memory=1024, heap=4096)


UNUSED = HEADER + ".extern .func f();\n.visible .entry k()\n{\n%s\nret;\n}\n"


def test_a_function_that_is_declared_extern_and_not_used_need_not_be_there() -> None:
    """As for nvlink, which wants every variable, though; text and container are alike."""
    module = ptxtools.loads(UNUSED % "")
    ptxtools.Device("sm_80").launch(module["k"], 1, 1, [])
    with pytest.raises(ptxtools.PtxError, match=r"<memory>:7:1: undefined symbol 'f', referenced from 'k'"):
        ptxtools.loads(UNUSED % "call f;")
    with pytest.raises(ptxtools.PtxError, match="undefined symbol 'x'"):
        ptxtools.loads(UNUSED % "" + ".extern .global .u32 x;\n")


@pytest.mark.parametrize("debug", [False, True])
def test_traps_out_of_containers_quote_the_instruction(debug: bool) -> None:
    text = (
        HEADER + ".visible .entry k()\n{\n.reg .b64 %d;\nmov.b64 %d, 0;\nst.global.v2.u32 [%d+16], {7, 8};\nret;\n}\n"
    )
    module = ptxtools.loads(ptxtools.assemble([text], debug=debug))
    with pytest.raises(ptxtools.Trap) as caught:
        ptxtools.Device("sm_80").launch(module["k"], 1, 1, [])
    assert caught.value.text == "st.global.v2.u32 [%d+16], {7, 8}"
