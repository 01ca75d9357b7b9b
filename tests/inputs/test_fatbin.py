"""PTX out of NVIDIA's binaries, and into a fatbin."""

import hashlib
import json
import shutil
import subprocess

import pytest

from ptxtools.diagnostics import PtxError
from ptxtools.inputs import detect
from ptxtools.inputs.fatbin import best, embedded, write_fatbin
from ptxtools.syntax import parse
from tests.container.samples import BINARIES

REFERENCE = embedded((BINARIES / "plain.fatbin").read_bytes(), "plain.fatbin")[0].text


@pytest.mark.parametrize("name, kind", [
    ("plain.fatbin", "fatbin"), ("lz4.fatbin", "fatbin"), ("zstd.fatbin", "fatbin"), ("object.o", "elf"),
    ("libsmall.so", "elf"),
])  # fmt: skip
def test_text_comes_out_of_every_kind_of_file(name, kind):
    data = (BINARIES / name).read_bytes()
    assert detect(data) == kind
    (entry,) = embedded(data, name)
    assert entry.text == REFERENCE
    assert (entry.target, entry.version) == ("sm_80", (9, 0))
    result = parse(entry.text.decode(), name)
    assert not result.diagnostics and [f.name for f in result.module.entries] == ["scale", "add"]


def test_an_executable():
    (entry,) = embedded((BINARIES / "program.elf").read_bytes(), "program.elf")
    assert b".entry touch(" in entry.text


def test_a_cubin_with_line_information():
    (entry,) = embedded((BINARIES / "lineinfo.cubin").read_bytes(), "lineinfo.cubin")
    assert entry.target == "sm_80"
    result = parse(entry.text.decode(), "lineinfo")
    assert not result.diagnostics and len(result.module.entries) == 2


@pytest.mark.parametrize("name", ["lineinfo-lz4.fatbin", "lineinfo-zstd.fatbin"])
def test_compressed_machine_code_with_line_information(name):
    """The PTX of a cubin inside a fatbin, when the fatbin has none of its own."""
    (entry,) = embedded((BINARIES / name).read_bytes(), name)
    assert entry.target == "sm_80"
    result = parse(entry.text.decode(), name)
    assert not result.diagnostics and [f.name for f in result.module.entries] == ["scale", "add"]


def test_a_cubin_without_ptx():
    with pytest.raises(PtxError, match="PTX803"):
        embedded((BINARIES / "bare.cubin").read_bytes(), "bare.cubin")


def test_several_entries_and_the_best():
    entries = embedded((BINARIES / "several.fatbin").read_bytes(), "several.fatbin")
    assert [e.target for e in entries] == ["sm_80", "sm_90a"]
    assert [e.target for e in best(entries)] == ["sm_90a"]
    assert [e.target for e in best(entries, "sm_80")] == ["sm_80"]


def test_an_archive_of_objects():
    data = b"!<arch>\n" + (BINARIES / "object.o").read_bytes()
    assert detect(data) == "elf" and embedded(data, "lib.a")[0].text == REFERENCE


def test_a_fatbin_of_ours_is_byte_for_byte_nvidias():
    data = write_fatbin(REFERENCE.decode(), "sm_80", (9, 0))
    assert data == (BINARIES / "plain.fatbin").read_bytes()


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100f"])
@pytest.mark.parametrize("compress", [False, True])
def test_a_fatbin_of_ours_reads_back(target, compress):
    data = write_fatbin(REFERENCE.decode(), target, (8, 8), compress=compress)
    (entry,) = embedded(data, "ours.fatbin")
    assert (entry.text, entry.target, entry.version) == (REFERENCE, target, (8, 8))
    assert not compress or len(data) < len(REFERENCE)


def test_a_fatbin_needs_a_target():
    with pytest.raises(ValueError):
        write_fatbin("", "gfx90a", (8, 0))


def recorded():
    """What NVIDIA's cuobjdump 13.5 printed about fatbins of ours."""
    return json.loads((BINARIES / "cuobjdump.json").read_text())


def made(case):
    version = tuple(case["version"])
    return write_fatbin(REFERENCE.decode(), case["target"], version, debug=case["debug"], compress=case["compress"])


@pytest.mark.parametrize("case", recorded(), ids=lambda case: case["target"])
def test_fatbins_are_those_that_cuobjdump_accepted(case):
    number, said = case["target"][3:], "\n".join(case["said"])
    assert f"arch = sm_{number}\n" in said and "code version = [{},{}]".format(*case["version"]) in said
    assert ("compressed" in case["said"]) == case["compress"] and ("has debug info" in case["said"]) == case["debug"]
    if case["sha256"] is not None:  # compressed bytes depend on the version of lz4
        assert hashlib.sha256(made(case)).hexdigest() == case["sha256"]


@pytest.mark.skipif(shutil.which("cuobjdump") is None, reason="cuobjdump is not installed: what it said is recorded")
@pytest.mark.parametrize("case", recorded(), ids=lambda case: case["target"])
def test_cuobjdump_gives_the_text_back(case, tmp_path):
    (tmp_path / "ours.fatbin").write_bytes(made(case))
    done = subprocess.run(["cuobjdump", "--dump-ptx", "ours.fatbin"], cwd=tmp_path, capture_output=True, text=True,
                          check=True)  # fmt: skip
    head, text = done.stdout.split(".version", 1)
    assert head.strip().splitlines() == case["said"] and f".version{text}".strip() == REFERENCE.decode().strip()
