"""Debug locations for a text that has none: each instruction gets its own line of the `.ll` as its source.

LLVM then writes `.loc` and `.file`, from which traps, reports and profiles name the place in the `.ll`. The text is
read only as far as that needs: where functions, labels and instructions begin and end. A text that is laid out in
another way stays as it is, or LLVM does not read the result; then it is lowered without locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A text that says something about its own sources, or metadata that would have to be merged.
_OWN = re.compile(r"!llvm\.dbg\.cu\b|!dbg\b|\bDICompileUnit\b")
#: A line up to its comment: strings are passed over whole.
_CODE = re.compile(r'(?:[^;"\n]|"[^"\n]*")*')
_STRING = re.compile(r'"[^"]*"')
_LABEL = re.compile(r'\s*(?:[-\w$.]+|"[^"]*")\s*:(?!:)\s*')
_FLAGS = re.compile(r"^(!llvm\.module\.flags\s*=\s*!\{)([^}]*)\}", re.MULTILINE)
_NAME = re.compile(r'@([-\w$.]+|"[^"]*")')
_NUMBER = re.compile(r"!(\d+)")
#: What opens and closes brackets.
_OPEN, _CLOSE = re.compile(r"[(\[{<]"), re.compile(r"[)\]}>]")


def with_lines(text: str, name: str) -> str:
    """The text with a location for each instruction; the text itself if it has locations, or no function body."""
    if _OWN.search(text):
        return text
    writer = _Writer(text)
    changed = "".join(writer.lines(text))
    if not writer.functions:
        return text
    return writer.flagged(changed) + "\n".join(writer.metadata(name)) + "\n"


class _Writer:
    """Adds the references, and keeps what they refer to."""

    def __init__(self, text: str) -> None:
        self._unit = max((int(n) for n in _NUMBER.findall(text)), default=0) + 1
        self._file, self._flag, self._type, self._none = range(self._unit + 1, self._unit + 5)
        self._next = self._unit + 5
        self.functions = 0
        self._nodes: list[str] = []

    def _node(self, content: str) -> int:
        self._nodes.append(f"!{self._next} = {content}")
        self._next += 1
        return self._next - 1

    def _function(self, head: str, line: int) -> int:
        """The node for a function that begins in a line."""
        self.functions += 1
        name = _NAME.search(head)
        shown = name[1].strip('"') if name else str(self.functions)
        return self._node(
            f'distinct !DISubprogram(name: "{shown}", scope: !{self._file}, file: !{self._file}, line: {line}, '
            f"type: !{self._type}, unit: !{self._unit}, spFlags: DISPFlagDefinition)"
        )

    def lines(self, text: str) -> Iterator[str]:
        """The lines of the text, with their ends."""
        scope = depth = 0  # of the function that the line is in, 0 outside; open brackets of a statement
        head, goes_on, place = "", False, (0, 0)
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            code = _CODE.match(line)
            end = code.end() if code else 0
            bare = _STRING.sub(lambda found: "_" * len(found[0]), line[:end])
            stripped = bare.strip()
            if not scope and not head and stripped.startswith("define"):
                place = (number, 1)
                head = " "
            if head:
                head += line[:end]
                if not stripped.endswith("{"):
                    head = "" if stripped.endswith("}") else head  # a whole function in one line stays as it is
                    yield line
                    continue
                scope, head = self._function(head, place[0]), ""
                at = bare.rindex("{")
                yield f"{line[:at]}!dbg !{scope} {line[at:]}"
                continue
            label = None if goes_on or depth else _LABEL.match(bare)
            start = label.end() if label else 0
            rest = bare[start:].strip()
            if not scope or not rest:
                yield line
            elif rest == "}" and not depth:
                scope = 0
                yield line
            else:
                if not goes_on and not depth:
                    place = (number, len(bare) - len(bare[start:].lstrip()) + 1)
                depth += len(_OPEN.findall(rest)) - len(_CLOSE.findall(rest))
                goes_on = rest.endswith((",", "=")) or depth > 0
                if goes_on:
                    yield line
                    continue
                depth = 0
                node = self._node(f"!DILocation(line: {place[0]}, column: {place[1]}, scope: !{scope})")
                cut = len(bare.rstrip())
                yield f"{line[:cut]}, !dbg !{node}{line[cut:]}"

    def flagged(self, text: str) -> str:
        """The text with the version of debug information among its flags, without which LLVM drops it."""
        changed, count = _FLAGS.subn(lambda m: f"{m[1]}{m[2]}{', ' if m[2].strip() else ''}!{self._flag}}}", text, 1)
        end = "" if text.endswith("\n") else "\n"
        return changed + end if count else f"{text}{end}!llvm.module.flags = !{{!{self._flag}}}\n"

    def metadata(self, name: str) -> Iterator[str]:
        yield f"!llvm.dbg.cu = !{{!{self._unit}}}"
        yield (
            f"!{self._unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{self._file}, "
            "emissionKind: DebugDirectivesOnly)"
        )
        yield f'!{self._flag} = !{{i32 2, !"Debug Info Version", i32 3}}'
        yield f'!{self._file} = !DIFile(filename: "{_escaped(name)}", directory: "")'
        yield f"!{self._type} = !DISubroutineType(types: !{self._none})"
        yield f"!{self._none} = !{{}}"
        yield from self._nodes


def _escaped(name: str) -> str:
    """A text as LLVM's strings have it."""
    data = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in data)
