"""docs/container.md tells the truth: its example is assembled and compared byte by byte."""

import re

import pytest

from ptxtools.container import write
from ptxtools.container.codec import decode_strings
from ptxtools.container.elf import parse_elf
from ptxtools.container.errors import EXPLANATIONS
from ptxtools.container.records import KINDS
from ptxtools.container.tables import decode_tables

from .samples import ROOT, module

PAGE = (ROOT / "docs" / "container.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example():
    (text,) = re.findall(r"```ptx\n(.*?)```", PAGE, re.S)
    return write(module(text))


def test_the_hex_dump_is_the_example(example):
    rows = [row for block in re.findall(r"```hex\n(.*?)```", PAGE, re.S) for row in block.splitlines()]
    assert len(rows) > 30
    for row in rows:
        place, _, content = row.partition("  ")
        at, wanted = int(place, 16), bytes.fromhex(content)
        assert example[at : at + len(wanted)] == wanted, row


def test_the_size_is_that_of_the_example(example):
    assert f"gives {len(example):,} bytes" in PAGE


def test_the_numbered_strings_are_those_of_the_example(example):
    listed = dict(re.findall(r"(\d+) `([^`]+)`", PAGE.split("`strings`, from")[1].split("\n\n")[0]))
    texts = decode_strings(bytes(decode_tables(parse_elf(example).find(".ptx").data)["strings"]))
    assert texts == ["", *(listed[str(n)] for n in range(1, len(listed) + 1))]


def test_every_kind_of_record_is_listed():
    table = PAGE.split("### `records`")[1].split("###")[0]
    listed = {int(n) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for n in row.split(",")}
    assert {0, *KINDS.values()} <= listed


def test_codes_of_the_page_exist():
    assert set(re.findall(r"PTX8\d\d", PAGE)) <= set(EXPLANATIONS)
