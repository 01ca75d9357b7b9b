"""How long the language server takes after a keystroke in a file of 20,000 lines: `python -m bench.editor`.

A client types in the middle of the file and asks at once, as an editor does. Milliseconds from the change being sent:
the median, and the longest, of the answers to each request, and of what is published; first of the server's processor
time, then on the clock. Hints and code actions come with all findings, which wait until the text rests; formatting lays
out the whole text. `python -m bench.editor LINES` takes files of so many lines.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from typing import Any, NamedTuple

from .kernels import megabyte

LINES, STROKES = 20_000, 12
URI = "file:///k.ptx"


def one_function(count: int) -> str:
    """A kernel of so many lines."""
    head = ".version 9.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .b32 %r<999>;\n.reg .f32 %f<999>;\n"
    add, fma = "add.s32 %r{}, %r{}, {};\n", "fma.rn.f32 %f{}, %f{}, %f{}, %f1;\n"
    lines = [(add if n % 2 else fma).format(n % 990, n * 7 % 990, n % 50) for n in range(count)]
    return head + "".join(lines) + "ret;\n}\n"


def many_functions(count: int) -> str:
    """Kernels of together so many lines: 266 for 20,000."""
    text = megabyte(count * 50)
    end = 0
    while text.count("\n", 0, end) < count:
        end = text.index("\n}\n", end) + 3
    return text[:end]


class Times(NamedTuple):
    """Seconds."""

    processor: float
    clock: float

    def since(self, begin: Times) -> Times:
        return Times(self.processor - begin.processor, self.clock - begin.clock)


class Client:
    """Speaks to a server over its pipes, and decodes only the JSON: what a client makes of it does not count."""

    def __init__(self, server: asyncio.subprocess.Process) -> None:
        assert server.stdin is not None and server.stdout is not None
        self._input, self._output = server.stdin, server.stdout
        self._number = 0
        self._pid = server.pid
        self._waiting: dict[int, asyncio.Future[tuple[Times, Any]]] = {}
        #: When findings were published, by the version of the text.
        self.times: dict[int, list[Times]] = {}

    def now(self) -> Times:
        """The server's processor time, and the clock. Of another process, Linux tells the former by this clock's number
        (clock_getcpuclockid)."""
        return Times(time.clock_gettime(~self._pid << 3 | 2), time.perf_counter())

    async def read(self) -> None:
        """Note what comes, and when, until the server ends."""
        while head := await self._output.readline():
            length = 0
            while head.strip():
                name, _, value = head.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
                head = await self._output.readline()
            body = await self._output.readexactly(length)
            at = self.now()
            message = json.loads(body)
            if message.get("method") == "textDocument/publishDiagnostics":
                self.times.setdefault(message["params"].get("version") or 0, []).append(at)
            elif "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"])
                self._waiting.pop(message["id"]).set_result((at, message["result"]))

    def tell(self, method: str, **params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, **params: Any) -> tuple[Times, Any]:
        """When the answer came, and the answer."""
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return await answer

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def requests(text: str, line: int, register: dict[str, int]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Methods and parameters by what they are called here. line: the edited one; register: where one is named in it."""
    around = {"start": {"line": line - 30, "character": 0}, "end": {"line": line + 30, "character": 0}}
    layout = {"options": {"tabSize": 4, "insertSpaces": False}}
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "hover": ("hover", {"position": register}),
        "completion": ("completion", {}),
        "definition": ("definition", {"position": register}),
        "references": ("references", {"position": register, "context": {"includeDeclaration": True}}),
        "highlights": ("documentHighlight", {"position": register}),
        "words of 60 lines": ("semanticTokens/range", {"range": around}),
        "words that changed": ("semanticTokens/full/delta", {"previousResultId": "1"}),
        "folding": ("foldingRange", {}),
        "outline": ("documentSymbol", {}),
        "hints of 60 lines": ("inlayHint", {"range": around}),
        "code actions": ("codeAction", {"range": around, "context": {"diagnostics": []}}),
        "formatting": ("formatting", layout),
    }
    return {name: (f"textDocument/{method}", params) for name, (method, params) in found.items()}


async def measure(text: str) -> dict[str, list[Times]]:
    command = (sys.executable, "-m", "ptxtools", "lint", "--lsp")
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 26)
    client = Client(server)
    reading = asyncio.create_task(client.read())
    able = {"workspace": {"inlayHint": {"refreshSupport": True}}}
    await client.ask("initialize", capabilities=able, processId=None, rootUri=None)
    client.tell("initialized")
    client.tell("textDocument/didOpen", textDocument={"uri": URI, "languageId": "ptx", "version": 1, "text": text})
    line = text.count("\n", 0, text.index(";\n", len(text) // 2))
    words = text.split("\n")[line]
    column, register = words.index(";"), {"line": line, "character": words.index("%") + 1}
    this = {"uri": URI}
    _, coloured = await client.ask("textDocument/semanticTokens/full", textDocument=this)
    await asyncio.sleep(3)
    found: dict[str, list[Times]] = {}
    version = 1
    for name, (method, params) in requests(text, line, register).items():
        for _ in range(STROKES):
            version += 1
            place = {"line": line, "character": column}
            column += 1
            if "previousResultId" in params:
                params["previousResultId"] = coloured["resultId"]
            whole = {"textDocument": this, "position": {"line": line, "character": column}} | params
            change = {"range": {"start": place, "end": place}, "text": " "}
            begin = client.now()
            known = {"uri": URI, "version": version}
            client.tell("textDocument/didChange", textDocument=known, contentChanges=[change])
            at, answer = await client.ask(method, **whole)
            if "previousResultId" in params:
                coloured = answer
            found.setdefault(name, []).append(at.since(begin))
            if version % 4 == 0:
                await asyncio.sleep(2)
                times = client.times.get(version, [])
                if times:
                    found.setdefault("errors are shown", []).append(times[0].since(begin))
    await client.ask("shutdown")
    client.tell("exit")
    await server.wait()
    await reading
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    for title, text in (("one function", one_function(count)), ("many functions", many_functions(count))):
        print(f"{title}, {text.count(chr(10))} lines, {len(text)} bytes: processor time, and on the clock")
        for name, found in asyncio.run(measure(text)).items():
            shown = [
                f"{statistics.median(s) * 1000:5.0f} ms, at most {max(s) * 1000:5.0f} ms"
                for s in zip(*found, strict=True)
            ]
            print(f"  {name:18} {'   '.join(shown)}")


if __name__ == "__main__":
    main()
