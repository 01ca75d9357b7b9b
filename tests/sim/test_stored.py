"""Ready kernels on disk: used when they fit, made again when they do not, never in the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.api import loadable
from ptxtools.diagnostics import PtxError
from ptxtools.sim import Device, stored
from ptxtools.sim.device import Request
from ptxtools.sim.stored import StoredModule, decode_program, encode_program

CASES = Path(__file__).parents[2] / "testdata" / "cases"
TEXT = """.version 7.8
.target sm_75
.address_size 64
.const .u32 table[3] = {5, 6, 7};
.global .u32 counter = 7;
.global .u64 here = counter;
.visible .entry bump(.param .u64 p) .maxntid 64, 1, 1
{
    .reg .b32 %r<4>; .reg .b64 %d<3>;
    ld.const.u32 %r1, [table+4];
    ld.global.u32 %r2, [counter];
    add.u32 %r3, %r1, %r2;
    ld.param.u64 %d1, [p];
    st.global.u32 [%d1], %r3;
    ret;
}
"""
DATA = TEXT.encode()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "modules"


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, nothing may be parsed."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("ptxtools.api.read_module", refuse)


def run(module: StoredModule, device: Device | None = None) -> int:
    device = device or Device()
    device.load(module)
    kernel = module.contents.kernels["bump"]
    out = device.arena.allocate(4)
    params = out.address.to_bytes(8, "little")
    device.run(module, Request(kernel=kernel, grid=(1, 1, 1), block=(1, 1, 1), params=params))
    return int.from_bytes(device.arena.view(out.address, 4), "little")


def test_the_second_time_nothing_is_parsed(cache: Path, request: pytest.FixtureRequest) -> None:
    assert run(loadable(DATA, "k.ptx")) == 13
    assert len(list(cache.iterdir())) == 1
    request.getfixturevalue("no_parser")
    module = loadable(DATA, "k.ptx")
    assert run(module) == 13
    assert module.contents.kernels["bump"].bounds.maxntid == (64, 1, 1)
    with pytest.raises(AssertionError, match="parsed"):
        loadable(DATA + b"\n", "k.ptx")


def test_traps_find_their_line_without_the_parser(request: pytest.FixtureRequest) -> None:
    run(loadable(DATA, "k.ptx"))
    request.getfixturevalue("no_parser")
    module, device = loadable(DATA, "k.ptx"), Device()
    with pytest.raises(ptxtools.Trap) as caught:
        device.run(
            module, Request(kernel=module.contents.kernels["bump"], grid=(1, 1, 1), block=(1, 1, 1), params=bytes(8))
        )
    assert caught.value.file == "k.ptx"
    assert "st.global.u32" in TEXT.splitlines()[(caught.value.line or 0) - 1]


def test_other_addresses_make_another_program() -> None:
    run(loadable(DATA, "k.ptx"))
    device = Device()
    device.arena.allocate(5000)
    assert run(loadable(DATA, "k.ptx"), device) == 13


@pytest.mark.parametrize(
    "damage", [lambda d: b"", lambda d: d[:50], lambda d: b"\xff" * 100, lambda d: b"\xe9\1\0\0\0"]
)
def test_damaged_files_are_made_again(cache: Path, damage) -> None:
    run(loadable(DATA, "k.ptx"))
    (path,) = cache.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert run(loadable(DATA, "k.ptx")) == 13


def test_without_a_cache_folder_it_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "file"))
    assert run(loadable(DATA, "k.ptx")) == 13


def test_modules_with_errors_are_not_kept(cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(PtxError):
            loadable(DATA.replace(b"add.u32", b"add.u33"), "k.ptx")
    assert not cache.exists()


def test_old_files_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST_FILES", 2)
    for n in range(4):
        run(loadable(DATA + b"\n" * n, "k.ptx"))
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("name", ["cu_calls_sm75", "cu_reduce_cg_sm80", "cu_vm_sm75", "tri_sort_sm75"])
def test_programs_survive(name: str) -> None:
    module, device = ptxtools.load(CASES / name / "kernel.ptx"), Device()
    for kernel in module.kernels:
        program = device.program(module.loadable, kernel.entry)
        encoded = encode_program(program)
        assert encode_program(decode_program(encoded)) == encoded


def test_opcodes_are_resolved_when_needed() -> None:
    opcode = stored.StoredOpcode("add.sat.s32")
    assert opcode.text == "add.sat.s32"
    assert (opcode.name, opcode.has("sat")) == ("add", True)
    with pytest.raises(AttributeError):
        opcode.__iter__  # noqa: B018
    assert np.array([opcode], dtype=object)[0] is opcode
