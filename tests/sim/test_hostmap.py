"""What `ptx_run` finds of the process's memory: by Linux's question, and in the text of the map."""

from __future__ import annotations

import ctypes
import errno
import mmap
import random

import pytest

from ptxtools.sim import hostmap
from ptxtools.sim.hostmap import HostMap

PAGE = mmap.PAGESIZE


def refuse(file, address):
    raise OSError(errno.ENOTTY, "unknown")


@pytest.fixture(params=["question", "text"])
def host(request, monkeypatch):
    if request.param == "text":
        monkeypatch.setattr(hostmap, "_query", refuse)
    return HostMap()


def address_of(area: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


def protect(address: int, size: int, rights: int) -> None:
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), rights) == 0


@pytest.fixture
def pages():
    """Four pages: two to write, one to read, one for nobody."""
    area = mmap.mmap(-1, 4 * PAGE)
    at = address_of(area)
    protect(at + 2 * PAGE, PAGE, mmap.PROT_READ)
    protect(at + 3 * PAGE, PAGE, 0)
    yield at
    area.close()


def test_rights(host, pages) -> None:
    assert host.allows(pages, 2 * PAGE, True)
    assert host.range_of(pages + PAGE)[1] == pages + 2 * PAGE
    assert host.allows(pages + 2 * PAGE, PAGE, False)
    assert not host.allows(pages + 2 * PAGE, 1, True)
    assert host.range_of(pages + 2 * PAGE) is None
    assert not host.allows(pages + 3 * PAGE, 1, False)


def test_accesses_that_end_in_another_mapping(host, pages) -> None:
    assert host.allows(pages + 2 * PAGE - 4, 8, False)
    assert not host.allows(pages + 2 * PAGE - 4, 8, True)
    assert not host.allows(pages + 3 * PAGE - 4, 8, False)


def test_the_first_access_may_end_in_another_mapping(host, pages) -> None:
    assert not host.allows(pages + 3 * PAGE - 4, 8, False)
    assert host.allows(pages + 3 * PAGE - 4, 4, False)


@pytest.mark.parametrize("address", [0, 8, 1 << 46, (1 << 64) - PAGE, (1 << 64) - 4])
def test_addresses_of_nobody(host, address) -> None:
    assert not host.allows(address, 8, False)
    assert host.range_of(address) is None


def test_memory_that_comes_to_be_during_a_launch_is_found(host, pages) -> None:
    assert not host.allows(pages + 3 * PAGE, 4, True)
    protect(pages + 2 * PAGE, 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE)
    assert host.allows(pages + 2 * PAGE, 2 * PAGE, True)
    assert host.range_of(pages + 2 * PAGE)[1] >= pages + 4 * PAGE


def test_neighbours_with_the_same_rights_are_one_range(host) -> None:
    """More of them than are looked at at once: two mappings that differ in what no access notices."""
    area = mmap.mmap(-1, 64 * PAGE)
    at = address_of(area)
    for number in range(0, 64, 2):
        protect(at + number * PAGE, PAGE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    assert host.range_of(at + 5 * PAGE) is None
    assert host.allows(at + 5 * PAGE, PAGE, True)
    first, end = host.range_of(at + 5 * PAGE)
    assert first <= at < at + 16 * PAGE < end
    assert host.allows(at, 64 * PAGE, True)


def test_both_ways_find_the_same_mappings(monkeypatch) -> None:
    """In memory of the test's own: the rest of the process's may change between the two."""
    area = mmap.mmap(-1, 64 * PAGE)
    at = address_of(area)
    rng = random.Random(1)
    for number in range(64):
        protect(at + number * PAGE, PAGE, rng.choice([0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE]))
    probes = [at + number * PAGE + more for number in range(1, 64) for more in (-1, 0, 1)]
    by_question = [HostMap().allows(probe, 1, write) for probe in probes for write in (False, True)]
    monkeypatch.setattr(hostmap, "_query", refuse)
    in_text = [HostMap().allows(probe, 1, write) for probe in probes for write in (False, True)]
    assert by_question == in_text
    assert True in in_text
    assert False in in_text
