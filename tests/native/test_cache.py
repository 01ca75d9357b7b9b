"""Native code on disk: made once, found again, and nothing lost when the files are damaged or cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ptxtools import cache
from ptxtools.native.code import objects
from tests.work import HANG

REPOSITORY = Path(__file__).parents[2]
#: A whole process: one small kernel; prints its result and which parts of the package were imported.
PROCESS = """
import sys
sys.path.insert(0, {repository!r})
import numpy as np
from tests.native.harness import Memory, launch_of, body_kernel
from ptxtools import native
memory = Memory()
out = memory.put(np.zeros(32, np.uint32))
launch = launch_of(body_kernel("mul.lo.u32 %r1, %t, 3; st.global.u32 [%out], %r1; ret;", 4), memory, [out, out])
for name in [n for n in sys.modules if n.startswith("ptxtools.semantics")]:
    del sys.modules[name]
native.run(launch)
made = "ptxtools.native.code.generate" in sys.modules or "ptxtools.semantics.integer" in sys.modules
print(memory.get(out, np.uint32, 32).sum(), "made" if made else "found")
"""


def process(folder: Path | str) -> subprocess.Popen[str]:
    code = PROCESS.format(repository=str(REPOSITORY))
    environment = {**os.environ, "PTXTOOLS_CACHE": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(run: subprocess.Popen[str]) -> str:
    out, err = run.communicate(timeout=HANG)
    assert run.returncode == 0, err
    return out.strip()


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(f"native-*/{pattern}"))


def test_a_second_process_finds_what_the_first_made(tmp_path):
    assert outcome(process(tmp_path)) == "1488 made"
    assert len(files(tmp_path, "*.pack")) == 1
    assert outcome(process(tmp_path)) == "1488 found"


def test_damaged_files_are_made_again(tmp_path):
    assert outcome(process(tmp_path)) == "1488 made"
    for path in files(tmp_path, "*"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    assert outcome(process(tmp_path)) == "1488 made"
    assert outcome(process(tmp_path)) == "1488 found"


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert outcome(process(blocked)) == "1488 made"


def test_processes_that_start_together(tmp_path):
    runs = [process(tmp_path) for _ in range(2)]
    outcomes = {outcome(run) for run in runs}  # one may begin when the other has ended
    assert "1488 made" in outcomes <= {"1488 made", "1488 found"}
    assert outcome(process(tmp_path)) == "1488 found"


PIECES: list[objects.Piece] = [(["a", "b"], b"first"), (["c"], b"second object")]


def test_a_pack_comes_back_as_it_was(tmp_path):
    store = objects.Store(tmp_path, "k")
    assert store.pack(["c", "a"]) is None
    store.save_pack(["a", "c"], PIECES)
    assert store.pack(["c", "a"]) == PIECES


@pytest.mark.parametrize("keep", [0, 1, 10, 20, -1])
def test_truncated_packs_are_no_packs(tmp_path, keep):
    store = objects.Store(tmp_path, "k")
    store.save_pack(["a"], PIECES)
    (path,) = store.root.glob("*.pack")
    path.write_bytes(path.read_bytes()[:keep])
    assert store.pack(["a"]) is None


@pytest.mark.parametrize("text", [b"", b"\n\n", b"00000000\n", b"zz\n1 a\n\nx", b"\xff\n\xff", b"1 a\n2 b\n"])
def test_headers_of_nonsense(tmp_path, text):
    store = objects.Store(tmp_path, "k")
    store.save_pack(["a"], PIECES)
    store.save_unit(PIECES[0])
    for path in store.root.iterdir():
        path.write_bytes(text)
    assert store.pack(["a"]) is None
    assert store.units(["a"]) == []


@pytest.mark.parametrize("maker", cache.MAKERS)
def test_a_change_in_any_file_that_takes_part_makes_another_cache(tmp_path, monkeypatch, maker):
    package = Path(cache.__file__).parent
    copy = tmp_path / "ptxtools"
    for path in package.rglob("*.py"):
        place = copy / path.relative_to(package)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())
    monkeypatch.setattr(cache, "_PACKAGE", str(copy))

    def state() -> str:
        monkeypatch.setattr(cache, "_states", {})
        return cache.code_state(maker)

    before = state()
    for name in cache.MAKERS[maker]:
        changed = copy / f"{name}.py" if (copy / f"{name}.py").exists() else sorted((copy / name).rglob("*.py"))[-1]
        changed.write_text(changed.read_text() + "#\n")
        after = state()
        assert after != before, name
        before = after


def test_units_that_cover_most_come_first(tmp_path):
    store = objects.Store(tmp_path, "k")
    for names in (["a"], ["a", "b", "c"], ["d"], ["x"]):
        store.save_unit((names, "".join(names).encode()))
    assert [data for _, data in store.units(["a", "b", "d"])] == [b"abc", b"d"]


def test_writers_in_several_threads(tmp_path):
    store = objects.Store(tmp_path, "k")
    threads = [threading.Thread(target=store.save_pack, args=(["a"], PIECES)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.pack(["a"]) == PIECES
    assert len(list(store.root.iterdir())) == 1
