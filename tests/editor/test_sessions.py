"""A long session of random work in several files: after each step the server answers as it does about a text that it
has just been given."""

import asyncio
import itertools
import json
import random
import re
import sys
from pathlib import Path

import pytest

from tests.work import HANG

DATA = Path(__file__).parents[2] / "testdata"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 g;\n"
SMALL = (
    HEAD
    + """// größer als \U0001f600: %r1
.func f(.reg .b32 %r1)
{
\tret;
}
.visible .entry k(.param .u64 p)
{
\t.reg .b32 %r<9>;
\t.reg .pred p1;
\tmov.u32 %r1, %tid.x; /* é */ add.s32 %r2, %r1, 1; // \U0001f600 mehr
$L1:
\t@p1 bra $L1;
\tld.global.b32 %r3, [g];
\tst.global.b32 [g], %r3;
\tret;
}
"""
)
#: What is typed, pasted or put in the place of something.
TYPED = [
    "a", ";", ",", " ", "\n", "%r1", "{", "}", "[", "]", "//", "/*", "*/", '"', ":", "@p1 ", "1", ".", "L2:", "", "",
    "mov.b32 %r1, %r2;\n", "\tadd.s32 \t%r1, %r2, 3;\n", "\tadd.s32 %r1", ".reg .b32 %q;\n", "bra $L1;", "(", "\t", "é",
    "\U0001f600", "\u2028", "\r\n", "\r", ".global .b32 h;\n", "}\n.func q()\n{\n", ".entry", "#", "\v", "\ufeff",
    "// ptx-lint: disable=PTX201\n", "ret;\n", "\tmov.b64 {%r1, %r2}, 1;\n", "x" * 3000, "\0",
    "\tadd.s32 %r1, %r1, %r2;" * 200,
]  # fmt: skip


class Client:
    """Speaks the protocol over a server's pipes. shown: the findings that were published last, by file."""

    def __init__(self, server):
        self._server, self._number, self._waiting = server, itertools.count(1), {}
        self.shown, self.changed = {}, asyncio.Event()

    @classmethod
    async def started(cls):
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "ptxtools", "lint", "--lsp")
        client = cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 26))
        client.reading = asyncio.create_task(client._read())
        await client.ask("initialize", capabilities={}, processId=None, rootUri=None)
        client.tell("initialized")
        return client

    async def _read(self):
        while head := await self._server.stdout.readline():
            length = int(head.partition(b":")[2]) if head.lower().startswith(b"content-length") else 0
            while (await self._server.stdout.readline()).strip():
                pass
            message = json.loads(await self._server.stdout.readexactly(length))
            if message.get("method") == "textDocument/publishDiagnostics":
                self.shown[message["params"]["uri"]] = message["params"]["diagnostics"]
                self.changed.set()
            elif message.get("method") == "window/logMessage":
                self.shown["log"] = message["params"]["message"]
            elif "method" not in message:
                self._waiting.pop(message["id"]).set_result(message.get("result", message.get("error")))

    def tell(self, method, **params):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def ask(self, method, **params):
        number = next(self._number)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return await answer

    def open(self, uri, text):
        self.tell("textDocument/didOpen", textDocument={"uri": uri, "languageId": "ptx", "version": 1, "text": text})

    def close(self, uri):
        self.tell("textDocument/didClose", textDocument={"uri": uri})

    async def shows(self, uri, findings):
        """Wait until these findings are shown."""
        while self.shown.get(uri) != findings:
            self.changed.clear()
            await self.changed.wait()

    async def end(self):
        await self.ask("shutdown")
        self.tell("exit")
        assert await self._server.wait() == 0
        await self.reading


def position(text, offset):
    """Line, and code units of UTF-16, of an offset; of one within \\r\\n that of its end."""
    if text[offset - 1 : offset + 1] == "\r\n" and offset:
        offset -= 1
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return {"line": before.count("\n"), "character": len(before.rpartition("\n")[2].encode("utf-16-le")) // 2}


def offset_of(text, place):
    """The offset of a position, the end of its line if it is beyond that."""
    starts = [0, *(end.end() for end in re.finditer("\r\n|\r|\n", text)), len(text)]
    begin, end = starts[place["line"] : place["line"] + 2]
    row = text[begin:end].rstrip("\r\n").encode("utf-16-le")
    return begin + len(row[: 2 * place["character"]].decode("utf-16-le", "ignore"))


class File:
    """A text as the client has it."""

    def __init__(self, client, uri, text):
        self.client, self.uri, self.text, self.version, self.before = client, uri, text, 1, []
        client.open(uri, text)

    def change(self, *edits):
        """Replace spans by texts, one after another, in one message."""
        changes = []
        self.before.append(self.text)
        for begin, end, new in edits:
            places = {"start": position(self.text, begin), "end": position(self.text, end)}
            begin, end = begin - self.within(begin), end - self.within(end)
            changes.append({"range": places, "text": new})
            self.text = self.text[:begin] + new + self.text[end:]
        self._tell(changes)

    def within(self, offset):
        """Whether an offset is inside of an end of a line: no position is there."""
        return bool(offset) and self.text[offset - 1 : offset + 1] == "\r\n"

    def undo(self):
        """The text before, as one change of the whole or of what differs."""
        if self.before:
            self.text = self.before.pop()
            self._tell([{"text": self.text}])

    def apply(self, edits):
        """Edits that the server made: none of them reaches into another."""
        spans = [(*(offset_of(self.text, e["range"][end]) for end in ("start", "end")), e["newText"]) for e in edits]
        if spans:
            self.change(*sorted(spans, reverse=True))

    def _tell(self, changes):
        self.version += 1
        known = {"uri": self.uri, "version": self.version}
        self.client.tell("textDocument/didChange", textDocument=known, contentChanges=changes)


def questions(numbers, text):
    """Requests whose answers depend on the text alone."""
    places = [position(text, numbers.randrange(len(text) + 1)) for _ in range(4)]
    words = [n for n in range(len(text)) if text.startswith(("%r", "k(", "$L1", "g]", "add", ".b32"), n)]
    places += [position(text, numbers.choice(words) + 1) for _ in range(6) if words]
    for place in places:
        yield "hover", {"position": place}
        yield "definition", {"position": place}
        yield "references", {"position": place, "context": {"includeDeclaration": numbers.random() < 0.5}}
        yield "completion", {"position": place}
    yield "documentSymbol", {}
    yield "foldingRange", {}
    yield "semanticTokens/full", {}
    yield "semanticTokens/range", {"range": ordered(places[:2])}
    yield "formatting", {"options": {"tabSize": 4, "insertSpaces": False}}
    if words:
        yield "rename", {"position": places[-1], "newName": numbers.choice(["%x", "%r1", "h7", "%tid", "1"])}


def ordered(places):
    first, last = sorted(places, key=lambda place: (place["line"], place["character"]))
    return {"start": first, "end": last}


def without_names(answer, uri):
    """An answer about a file, without its name, and without the name of an answer."""
    text = json.dumps(answer).replace(uri, "URI")
    found = json.loads(text)
    if isinstance(found, dict):
        found.pop("resultId", None)
    return found


async def compare(client, fresh, file, name, numbers, settled):
    """Ask both servers the same about a text that one of them has just got."""
    fresh.open(name, file.text)
    asked = list(questions(numbers, file.text))
    if settled:
        everything = {"start": {"line": 0, "character": 0}, "end": position(file.text, len(file.text))}
        hints = await fresh.ask("textDocument/inlayHint", textDocument={"uri": name}, range=everything)
        await client.shows(file.uri, fresh.shown[name])
        asked += [("codeAction", {"range": everything, "context": {"diagnostics": []}})]
        assert await client.ask("textDocument/inlayHint", textDocument={"uri": file.uri}, range=everything) == hints
    for method, params in asked:
        both = [
            (one.ask(f"textDocument/{method}", textDocument={"uri": uri}, **params), uri)
            for one, uri in ((client, file.uri), (fresh, name))
        ]
        answers = [without_names(await answer, uri) for answer, uri in both]
        assert answers[0] == answers[1], (method, params, file.text)
    fresh.close(name)


async def work(client, fresh, numbers, steps):
    """Random steps, each of which is followed by the comparison."""
    texts = [SMALL, SMALL.replace("\n", "\r\n"), (DATA / "bench/ptx/reduce.ptx").read_text("utf-8"), "", HEAD * 3]
    files = [File(client, f"file:///file{n}.ptx", text) for n, text in enumerate(texts)]
    for step in range(steps):
        place = numbers.randrange(len(files))
        file = files[place]
        kind = numbers.choice(
            ["type"] * 6 + ["word"] * 3 + ["paste", "undo", "undo", "format", "rename", "reopen", "several"]
        )
        size = len(file.text)
        if kind == "type":
            at = numbers.randrange(size + 1)
            file.change((at, min(size, at + numbers.choice([0, 0, 1, 2, 5, 20])), numbers.choice(TYPED)))
        elif kind == "word":  # letter by letter: what comes between is not compared
            at = numbers.randrange(size + 1)
            for letter in numbers.choice(TYPED)[:30]:
                at -= file.within(at)
                file.change((at, at, letter))
                at += 1
        elif kind == "paste":
            at = file.text.find("\n", numbers.randrange(size + 1)) + 1
            file.change((at, at, numbers.choice(texts)))
        elif kind == "undo":
            file.undo()
        elif kind == "format":
            options = {"tabSize": 4, "insertSpaces": False}
            file.apply(
                await client.ask("textDocument/formatting", textDocument={"uri": file.uri}, options=options) or []
            )
        elif kind == "rename" and "%r1" in file.text:
            at = position(file.text, file.text.index("%r1") + 1)
            this = {"uri": file.uri}
            made = await client.ask("textDocument/rename", textDocument=this, position=at, newName="%r77")
            file.apply(made.get("changes", {}).get(file.uri, []))
        elif kind == "reopen":
            client.close(file.uri)
            files[place] = file = File(client, file.uri, numbers.choice(texts))
        elif kind == "several":
            file.change(*((0, 0, numbers.choice(TYPED)) for _ in range(3)))
        if len(file.text) > 40_000:
            client.close(file.uri)
            files[place] = file = File(client, file.uri, numbers.choice(texts))
        await compare(client, fresh, file, f"file:///fresh{step}.ptx", numbers, settled=step % 4 == 3)
    assert [one.shown.get("log") for one in (client, fresh)] == [None, None]


def session(seed, steps):
    async def run():
        client, fresh = await Client.started(), await Client.started()
        await work(client, fresh, random.Random(seed), steps)
        await client.end()
        await fresh.end()

    asyncio.run(asyncio.wait_for(run(), HANG))


@pytest.mark.parametrize("seed", range(2))
def test_a_session_of_random_work(seed):
    session(seed, 25)


def test_a_client_that_does_not_ask_again_gets_no_older_hints():
    """What is published may be the same before and after a change whose hints are not known."""

    async def run():
        client = await Client.started()
        text = HEAD + ".visible .entry k()\n{\n\t.reg .b32 %r<4>;\n\tadd.s32 %r1, %r1, 1;\n\tret;\n}\n"
        file = File(client, "file:///k.ptx", text)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
        before, after, fresh = "add.s32", [], []
        for word in ("sub.s32", "redux.sync.add.s32", "?", "redux.sync.min.s32", "sub.s32"):
            place = file.text.index(before)
            file.change((place, place + len(before), before := word))
            after.append(await client.ask("textDocument/inlayHint", textDocument={"uri": file.uri}, range=whole))
            client.open(uri := f"file:///fresh{len(fresh)}.ptx", file.text)
            fresh.append(await client.ask("textDocument/inlayHint", textDocument={"uri": uri}, range=whole))
        await client.end()
        return after, fresh

    after, fresh = asyncio.run(asyncio.wait_for(run(), HANG))
    assert after == fresh and [] in fresh and any(fresh)
