"""Records what libnvvm says of the cases of testdata/nvvm/rules.txt, beside what the specification says.

Usage: python tools/nvvm_verdicts.py LIBNVVM [--write]   (nvidia-nvvm on PyPI has nvidia/*/lib/libnvvm.so.4)

Without --write the verdicts are printed. libnvvm ends its process on some modules, so each has a process of its own.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.nvvm.cases import DATA, cases  # noqa: E402

#: The architecture for each dialect.
_ARCHITECTURES = {"7": b"-arch=compute_90", "modern": b"-arch=compute_100"}


def verdict(library: str, text: str, dialect: str) -> str:
    """ "accepted", "refused" or "crash"."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(into, b"refused" if _status(library, text, dialect) else b"accepted")
        os._exit(0)
    os.close(into)
    os.waitpid(child, 0)
    said = os.read(out, 16).decode()
    os.close(out)
    return said or "crash"


def _status(library: str, text: str, dialect: str) -> int:
    nvvm = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    nvvm.nvvmCreateProgram(ctypes.byref(program))
    data = text.encode()
    options = (ctypes.c_char_p * 1)(_ARCHITECTURES[dialect])
    status = nvvm.nvvmAddModuleToProgram(program, data, len(data), b"k")
    return int(status or nvvm.nvvmVerifyProgram(program, 1, options))


def main() -> None:
    library = next(one for one in sys.argv[1:] if not one.startswith("-"))
    lines = ["# What libnvvm's verifier says of the cases of rules.txt: made by tools/nvvm_verdicts.py."]
    lines += [f"{name} | {dialect} | {verdict(library, text, dialect)}" for name, _, dialect, text in cases()]
    if "--write" in sys.argv:
        (DATA / "libnvvm.txt").write_text("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
