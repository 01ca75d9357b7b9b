"""PTX out of NVIDIA's binaries, and into a fatbin."""

import pytest

from ptxtools.container import best, detect, embedded, write_fatbin
from ptxtools.diagnostics import PtxError
from ptxtools.syntax import parse

from .samples import BINARIES

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
