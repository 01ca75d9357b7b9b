"""The time that ptx-lint's rules need for NVVM IR, beside libnvvm's verifier for the same text.

Usage: python bench/nvvm.py LIBNVVM [FILE.ll ...]   (nvidia-nvvm on PyPI has nvidia/*/lib/libnvvm.so.4)

Without files, both dialects: the kernels of testdata/nvvm, repeated under other names up to 1 MB. Both have the text in
memory, are warm, read it, verify it, and give back what they made. They alternate, ours in one process and in two; each
line has the least times, and the median of the ratios of neighbours: of processor time, which other programs disturb
little, and of elapsed time, which means something for two processes where two cores are idle. libnvvm must accept a
text, since it ends at the first error.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.nvvm.assembly import parse  # noqa: E402
from ptxtools.nvvm.rules import verify  # noqa: E402

ROUNDS = 9
SIZE = 1_000_000
_FUNCTION = re.compile(r"^define.*?^}\n", re.S | re.M)
_VERSION = "!nvvmir.version = !{!90}\n!90 = !{i32 2, i32 0}\n"


def repeated(text: str) -> str:
    """The functions of a text again and again, with a number in the names of each copy."""
    functions = _FUNCTION.findall(text)
    names = "|".join(re.findall(r"^define[^@]*@(\w+)", text, re.M))
    head, _, _ = text.partition("define ")
    declared = "\n".join(line for line in text.split("\n") if line.startswith("declare "))
    made, size, copy = [head], 0, 0
    while size < SIZE:
        made += [re.sub(rf"@({names})\b", rf"@\1_{copy}", one) for one in functions]
        size += sum(map(len, functions))
        copy += 1
    return "".join(made) + declared + "\n" + _VERSION


class Times(NamedTuple):
    """Seconds of this process: of its processor, and elapsed."""

    processor: float
    elapsed: float

    @classmethod
    def of(cls, work: Callable[[], object]) -> Times:
        started, begun = time.perf_counter(), time.process_time()
        work()
        return cls(time.process_time() - begun, time.perf_counter() - started)


def verified(library: ctypes.CDLL, data: bytes, architecture: bytes) -> None:
    """Let libnvvm read a text and verify it."""
    program, log = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 16)
    library.nvvmCreateProgram(ctypes.byref(program))
    options = (ctypes.c_char_p * 1)(b"-arch=compute_" + architecture)
    status = library.nvvmAddModuleToProgram(program, data, ctypes.c_size_t(len(data)), b"k")
    status = status or library.nvvmVerifyProgram(program, 1, options)
    if status:
        library.nvvmGetProgramLog(program, log)
        raise SystemExit(f"libnvvm refuses the text: {log.value.decode()}")
    library.nvvmDestroyProgram(ctypes.byref(program))


def texts(files: list[str]) -> Iterator[tuple[str, str]]:
    for file in files:
        yield file, Path(file).read_text()
    if not files:
        for name in ("kernels7.ll", "kernels18.ll"):
            yield f"{name} repeated", repeated((ROOT / "testdata" / "nvvm" / name).read_text())


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    for name, text in texts(sys.argv[2:]):
        data = text.encode()
        architecture = b"100" if is_modern(text) else b"90"
        works: dict[str, Callable[[], object]] = {
            "libnvvm": partial(verified, library, data, architecture),
            "1 process": partial(verify, text),
            "2 processes": partial(verify, text, processes=2),
        }
        times: dict[str, list[Times]] = {who: [] for who in works}
        for number in range(ROUNDS + 1):
            for who, work in works.items():
                one = Times.of(work)
                if number:  # the first round warms up
                    times[who].append(one)
        print(f"{name}: {len(data)} bytes, {len(verify(text))} findings")
        for who, each in times.items():
            print(f"    {who:12}", *(_shown(kind, each, times["libnvvm"]) for kind in Times._fields), sep="  ")


def _shown(kind: str, ours: list[Times], theirs: list[Times]) -> str:
    """The least time, and the median of the ratios."""
    mine, other = ([getattr(one, kind) for one in each] for each in (ours, theirs))
    ratio = statistics.median(one / another for one, another in zip(mine, other, strict=True))
    return f"{kind} {min(mine) * 1000:.0f} ms, ratio {ratio:.2f}"


def is_modern(text: str) -> bool:
    """Whether a text has opaque pointers."""
    from ptxtools.diagnostics import Source

    module, _ = parse(Source(text, "k.ll"))
    return module.opaque_at >= 0


if __name__ == "__main__":
    main()
