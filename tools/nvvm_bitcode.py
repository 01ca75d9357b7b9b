"""Records the cases of testdata/nvvm/rules.txt as bitcode, and what the rules find in LLVM's own disassembly of it.

Usage: python tools/nvvm_bitcode.py LLVM_AS LLVM_DIS   (of an LLVM with typed pointers, such as 14, for its dialect)

Modern bitcode is llvmlite's. Cases that LLVM does not assemble are left out. LLVM ends its process on some texts, so
each has a process of its own.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from ptxtools.nvvm.rules import verify  # noqa: E402
from tests.nvvm.cases import DATA, cases  # noqa: E402

_BY_LLVMLITE = """
import sys, llvmlite.binding as llvm
data = sys.stdin.buffer.read()
if sys.argv[1] == "assemble":
    sys.stdout.buffer.write(llvm.parse_assembly(data.decode()).as_bitcode())
else:
    sys.stdout.write(str(llvm.parse_bitcode(data)))
"""


def through(data: bytes, *command: str) -> bytes:
    """The output of a program; nothing if it fails."""
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    return b"" if done.returncode else done.stdout


def main() -> None:
    assembler, disassembler = sys.argv[1:]
    lines = ["# What the rules find in LLVM's disassembly of bitcode.tar.xz: made by tools/nvvm_bitcode.py."]
    with tarfile.open(DATA / "bitcode.tar.xz", "w:xz") as archive:
        for name, _, dialect, text in cases():
            own = dialect == "7"
            assemble = (assembler, "-") if own else (sys.executable, "-c", _BY_LLVMLITE, "assemble")
            disassemble = (disassembler, "-") if own else (sys.executable, "-c", _BY_LLVMLITE, "disassemble")
            data = through(text.encode(), *assemble)
            if not data:
                continue
            codes = sorted(one.code for one in verify(through(data, *disassemble).decode(), dialect=dialect))
            lines.append(f"{name} | {dialect} | {' '.join(codes)}".rstrip())
            member = tarfile.TarInfo(str(len(lines) - 2))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (DATA / "bitcode.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
