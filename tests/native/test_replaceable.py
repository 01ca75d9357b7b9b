"""Functions beside the handlers that are compiled quickly at first, and give way to better ones."""

import ctypes
import threading
from pathlib import Path

import pytest

from ptxtools.native.code import jit, library, replaceable, tiers
from tests.work import HANG

pytestmark = pytest.mark.skipif(not replaceable.possible(), reason="written for x86-64 and ELF")

NAMES = ("twice", "twice.more")


def module(factor):
    """Two functions, one of which calls the other."""
    return f"""define i32 @twice(i32 %x) {{
  %y = mul i32 %x, {factor}
  ret i32 %y
}}
define i32 @twice.more(i32 %x) {{
  %y = call i32 @twice(i32 %x)
  %z = add i32 %y, 1
  ret i32 %z
}}
"""


def called(address, number):
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(address)(number)


def test_better_functions_take_the_place_of_the_first():
    symbols = replaceable.symbols(NAMES)
    first = jit.link_object(jit.compile_object(replaceable.module(module(2), NAMES), jit.QUICK), symbols)
    better = jit.link_object(jit.compile_object(module(3)), NAMES)
    assert [called(first[name], 5) for name in NAMES] == [10, 11]
    replaceable.replace(first, {"twice": better["twice"]})
    assert [called(first[name], 5) for name in NAMES] == [15, 11]
    replaceable.replace(first, better)
    assert [called(first[name], 5) for name in NAMES] == [15, 16]


@pytest.fixture
def levels(tmp_path, monkeypatch):
    """Both levels with a folder of their own; compiling is noted by level. What other tests left waiting is dropped."""
    monkeypatch.setattr(tiers, "_waiting", [])
    tiers._wait()
    made = []
    compile_object = jit.compile_object
    monkeypatch.setattr(
        jit, "compile_object", lambda ir, level=jit.FULL: made.append(level) or compile_object(ir, level)
    )
    monkeypatch.setattr(tiers, "QUICK", True)
    monkeypatch.setattr(tiers, "AT_ONCE", False)
    monkeypatch.setattr(tiers, "_SECONDS", 3600.0)

    def begin():
        for name, level in (("_full", jit.FULL), ("_quick", jit.QUICK)):
            monkeypatch.setattr(library, name, library.Level(level, Path(tmp_path)))
        made.clear()
        return made

    return begin


def test_a_process_begins_with_what_is_there(levels):
    made = levels()
    found = library.functions_of(NAMES, lambda _: module(2))
    assert made == [jit.QUICK] and called(found["twice.more"], 4) == 9
    made = levels()
    library.functions_of(NAMES, lambda _: module(2))  # as another process that ends soon
    assert made == []
    tiers.settle()
    assert made == [jit.FULL, jit.FULL]  # of both that began
    assert called(found["twice.more"], 4) == 9
    made = levels()
    found = library.functions_of(NAMES, lambda _: module(2))
    assert made == [] and called(found["twice.more"], 4) == 9 and not tiers._waiting


def test_a_process_that_has_worked_for_long_enough(levels, monkeypatch):
    monkeypatch.setattr(tiers, "_SECONDS", 0.0)
    made = levels()
    replaced = threading.Event()
    replace = replaceable.replace
    monkeypatch.setattr(replaceable, "replace", lambda *given: (replace(*given), replaced.set()))
    found = library.functions_of(NAMES, lambda _: module(4))
    assert replaced.wait(HANG)
    assert made == [jit.QUICK, jit.FULL] and called(found["twice"], 4) == 16


def test_without_quick_code_there_is_one_level(levels, monkeypatch):
    monkeypatch.setattr(tiers, "QUICK", False)
    made = levels()
    library.functions_of(NAMES, lambda _: module(2))
    assert made == [jit.FULL]
