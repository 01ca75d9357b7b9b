"""Containers that earlier versions wrote are read as ever; they are kept in testdata/containers."""

import pytest

from ptxtools.container import decode_all, info, link, read, write
from ptxtools.syntax import parse, print_module

from .samples import TESTDATA

FOLDER = TESTDATA / "containers"
OLDER = sorted(FOLDER.glob("*.ptxo"))
TEXT = (FOLDER / "everything.ptx").read_text()


def test_there_is_one_of_each_kind():
    kinds = ("", "-compressed", "-debug")
    assert {p.stem for p in OLDER} >= {f"format-{version}{kind}" for version in ("1.0", "2.0") for kind in kinds}


@pytest.mark.parametrize("path", OLDER, ids=lambda p: p.stem)
def test_an_older_container_is_the_same_module(path):
    original = parse(TEXT, "everything.ptx").module
    data = path.read_bytes()
    old = decode_all(read(data, path.name))
    assert old == original and print_module(old) == print_module(original)
    assert write(old) == write(original)
    assert write(link([read(data)], check_undefined=False)) == write(link([original], check_undefined=False))


@pytest.mark.parametrize("path", OLDER, ids=lambda p: p.stem)
def test_info_tells_the_format(path):
    said = info(path.read_bytes(), path.name)
    assert said["format"] == path.stem.split("-")[1]
    assert said["entries"] == info(write(parse(TEXT, "x").module))["entries"]


def test_lines_of_the_original_are_still_known():
    original = parse(TEXT, "everything.ptx").module
    old = read((FOLDER / "format-1.0-debug.ptxo").read_bytes())
    for ours, theirs in zip(old.functions, original.functions, strict=True):
        assert old.source.position(ours.span[0]) == original.source.position(theirs.span[0])
        assert old.source.name_of(ours.span[0]) == "everything.ptx"
