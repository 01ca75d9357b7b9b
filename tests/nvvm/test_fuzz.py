"""Changed texts and damaged bitcode go through the commands: results or errors with a place, and nothing else."""

import random
import re
import tarfile
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from ptxtools.cli.common import exit_status
from ptxtools.cli.lint import command as lint
from ptxtools.cli.run import command as run
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata" / "nvvm"
KERNEL = ["-k", "vecadd", "--grid", "1", "--block", "32", "--arg", "zeros:f32[32]", "--arg", "zeros:f32[32]",
          "--arg", "zeros:f32[32]", "--arg", "32", "--max-instructions", "20000", "--engine", "reference"]  # fmt: skip
WORDS = ["poison", "ptr", "i7", "<4 x i1>", "fp128", "token", "4294967295", "-1", "volatile", "#dbg_value", "\0", "é"]
#: Words that mostly leave a text valid.
INSTEAD = [("add", "sub", "mul", "udiv", "shl"), ("fadd", "fsub", "fmul", "fdiv"), ("slt", "ult", "sge", "eq"),
           ("32", "64", "0", "7"), ("%x", "%y"), ("%i", "%n"), ("float", "double"), ("add", "atomicrmw")]  # fmt: skip


@cache
def texts():
    return [(DATA / f"kernels{dialect}.ll").read_text() for dialect in (7, 18)]


@cache
def bitcode():
    with tarfile.open(DATA / "bitcode.tar.xz") as archive:
        cases = [archive.extractfile(member).read() for member in archive]
    return [llvm.parse_assembly(text).as_bitcode() for text in texts()] * 20 + cases


def changed(rng):
    """A text with a few words exchanged."""
    words = re.findall(r"[%@!]?[\w.]+|\s+|.", rng.choice(texts()), re.S)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(words))
        alike = next((group for group in INSTEAD if words[at] in group), ())
        words[at] = rng.choice(alike) if alike else rng.choice([words[at] * 2, rng.choice(words), rng.choice(WORDS)])
    return "".join(words).encode()


def exchanged(rng):
    """A text with a few words exchanged for others of their kind: mostly a module that runs."""
    words = re.findall(r"[%@!]?[\w.]+|\s+|.", rng.choice(texts()), re.S)
    places = [(at, group) for at, word in enumerate(words) for group in INSTEAD if word in group]
    for at, group in rng.sample(places, 2):
        words[at] = rng.choice(group)
    return "".join(words).encode()


def damaged(rng):
    """Bitcode with a few bits flipped, bytes replaced, or without its end."""
    data = bytearray(rng.choice(bitcode()))
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randrange(8, len(data)), rng.random()
        if kind < 0.7:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 0.95:
            data[at : at + 4] = rng.randbytes(4)
        else:
            del data[at:]
    return bytes(data)


MAKERS = {"changed.ll": changed, "exchanged.ll": exchanged, "damaged.bc": damaged}


@rows("name, seed", [(name, seed) for seed in range(40) for name in MAKERS], share=20)
def test_what_is_wrong_is_an_error_with_a_place(name, seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(MAKERS[name](random.Random(seed)))
    status = exit_status(lint, "ptx-lint", [name])
    said = capsys.readouterr()
    assert status in (0, 1) and not said.err
    assert status == 0 or re.search(rf"^{name}(\([^)]*\))?:\d+:\d+: ", said.out, re.M), said.out
    # 2: no such kernel, or a trap
    status = exit_status(run, "ptx-run", [name, *KERNEL])
    said = capsys.readouterr()
    assert status in (0, 1, 2) and "Traceback" not in said.err
    if status == 1 and "NVVM9" in said.err:
        assert re.match(rf"{name}(\([^)]*\))?:\d+:\d+: error: ", said.err), said.err
    assert status == 0 or "error: " in said.err
