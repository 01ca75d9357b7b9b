"""Native code on disk: made once, found again, and nothing lost when the files are damaged or cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ptxtools.native.code import cache
from tests.work import HANG

REPOSITORY = Path(__file__).parents[2]
#: A whole process: one small kernel; prints its result and which parts of the package were imported.
PROCESS = """
import sys
sys.path.insert(0, {repository!r})
import numpy as np
from tests.native.harness import Memory, launch_of, body_kernel
from ptxtools.engine import native
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
    assert len(files(tmp_path, "pack-*")) == 1
    assert outcome(process(tmp_path)) == "1488 found"


def test_damaged_files_are_made_again(tmp_path):
    assert outcome(process(tmp_path)) == "1488 made"
    for path in files(tmp_path, "*.o"):
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
    assert [outcome(run) for run in runs] == ["1488 made"] * 2
    assert outcome(process(tmp_path)) == "1488 found"


PIECES: list[cache.Piece] = [(["a", "b"], b"first"), (["c"], b"second object")]


def test_a_pack_comes_back_as_it_was(tmp_path):
    store = cache.Store(tmp_path, "k")
    assert store.pack(["c", "a"]) is None
    store.save_pack(["a", "c"], PIECES)
    assert store.pack(["c", "a"]) == PIECES


@pytest.mark.parametrize("keep", [0, 1, 10, 20, -1])
def test_truncated_packs_are_no_packs(tmp_path, keep):
    store = cache.Store(tmp_path, "k")
    store.save_pack(["a"], PIECES)
    (path,) = store.root.glob("pack-*")
    path.write_bytes(path.read_bytes()[:keep])
    assert store.pack(["a"]) is None


@pytest.mark.parametrize("text", [b"", b"\n\n", b"00000000\n", b"zz\n1 a\n\nx", b"\xff\n\xff", b"1 a\n2 b\n"])
def test_headers_of_nonsense(tmp_path, text):
    store = cache.Store(tmp_path, "k")
    store.save_pack(["a"], PIECES)
    store.save_unit(PIECES[0])
    for path in store.root.iterdir():
        path.write_bytes(text)
    assert store.pack(["a"]) is None
    assert store.units(["a"]) == []


def test_another_generator_has_another_cache(tmp_path):
    (tmp_path / "one.py").write_text("a = 1")
    before = cache.source_state([tmp_path], installed=False)
    (tmp_path / "one.py").write_text("a = 22")
    assert cache.source_state([tmp_path], installed=False) != before
    before = cache.source_state([tmp_path], installed=True)
    os.utime(tmp_path, (1, 1))
    assert cache.source_state([tmp_path], installed=True) != before
    assert cache.source_state([tmp_path / "none"], installed=False) == []


def test_units_that_cover_most_come_first(tmp_path):
    store = cache.Store(tmp_path, "k")
    for names in (["a"], ["a", "b", "c"], ["d"], ["x"]):
        store.save_unit((names, "".join(names).encode()))
    assert [data for _, data in store.units(["a", "b", "d"])] == [b"abc", b"d"]


def test_writers_in_several_threads(tmp_path):
    store = cache.Store(tmp_path, "k")
    threads = [threading.Thread(target=store.save_pack, args=(["a"], PIECES)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.pack(["a"]) == PIECES
    assert len(list(store.root.iterdir())) == 1
