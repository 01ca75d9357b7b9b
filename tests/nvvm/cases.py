"""The cases of testdata/nvvm/rules.txt."""

import re
from pathlib import Path

from ptxtools.nvvm.rules.headers import LAYOUT

DATA = Path(__file__).parents[2] / "testdata" / "nvvm"
_HEAD = f'target datalayout = "{LAYOUT}"\ntarget triple = "nvptx64-nvidia-cuda"\n'
_VERSION = "!nvvmir.version = !{!90}\n!90 = !{i32 2, i32 0, i32 3, i32 1}\n"
_TYPED = re.compile(r"(?<![\w.])(?:void|[%\w.]+|\{[^{}()*]*\}|<[^<>]*>|\[[^\[\]*]*\])(?: \((?:[^()*]|ptr)*\))?"
                    r"( addrspace\(\d+\))?\*")  # fmt: skip


def cases():
    """(name, codes, dialect, text) of every case in every dialect."""
    text = (DATA / "rules.txt").read_text()
    for part in text.split("\n== ")[1:]:
        head, _, body = part.partition("\n")
        name, codes, dialects = (one.strip() for one in head.split("|"))
        for dialect in dialects.split():
            yield name, () if codes == "legal" else tuple(codes.split()), dialect, module(body, dialect)


def module(body, dialect="7"):
    """A whole module in a dialect."""
    if "target datalayout" not in body:
        body = _HEAD + body.rstrip() + "\n"
    if "!nvvmir.version" not in body:
        body += _VERSION
    return modern(body) if dialect == "modern" else body


def modern(text):
    """The text with opaque pointers for typed ones, innermost first."""
    lines = []
    for line in text.split("\n"):
        if not re.search(r"\basm\b", line):
            before = ""
            while before != line:
                before, line = line, _TYPED.sub(r"ptr\1", line, count=1)
        lines.append(line)
    return "\n".join(lines)
