"""`ptx-run --dap`: an editor's exchange with the debug adapter, by a client that speaks the protocol."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.observe.debug.sessions import ROOT
from tests.observe.debug.test_sessions import BACK, ENGINES, KERNEL
from tests.work import HANG


class Client:
    """The editor's side: requests, their responses, and the events in between."""

    def __init__(self, command: list[str], *, port: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ptxtools", "run", *command, "--dap", *(["0"] if port else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None and self.process.stderr is not None
        self.reader: IO[bytes] = self.process.stdout
        self.writer: IO[bytes] = self.process.stdin
        if port:
            said = re.search(rb":(\d+)$", self.process.stderr.readline().strip())
            assert said is not None
            self.socket = socket.create_connection(("127.0.0.1", int(said[1])), HANG)
            self.reader, self.writer = self.socket.makefile("rb"), self.socket.makefile("wb")
        self.seq, self.events = 0, list[dict[str, Any]]()

    def _message(self) -> dict[str, Any]:
        size = 0
        while line := self.reader.readline().strip():
            if line.startswith(b"Content-Length:"):
                size = int(line.split(b":")[1])
        assert size, "the adapter has ended"
        message: dict[str, Any] = json.loads(self.reader.read(size))
        return message

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The response to a request."""
        self.seq += 1
        data = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self.writer.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.writer.flush()
        while True:
            message = self._message()
            if message["type"] == "response":
                assert (message["request_seq"], message["command"]) == (self.seq, command)
                return message
            self.events.append(message)

    def body(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the response to a request that succeeds."""
        message = self.ask(command, **arguments)
        assert message["success"], message
        body: dict[str, Any] = message["body"]
        return body

    def event(self, name: str) -> dict[str, Any]:
        """The next event of a kind; those before it are forgotten."""
        while True:
            message = self.events.pop(0) if self.events else self._message()
            if message.get("event") == name:
                body: dict[str, Any] = message["body"]
                return body

    def outputs(self, until: str) -> str:
        """The output up to an event."""
        text = ""
        while (message := self.events.pop(0) if self.events else self._message()).get("event") != until:
            if message.get("event") == "output":
                text += message["body"]["output"]
        return text

    def lines(self, thread: int) -> list[tuple[str, int]]:
        """The stack: functions and lines."""
        frames = self.body("stackTrace", threadId=thread)["stackFrames"]
        return [(frame["name"], frame["line"]) for frame in frames]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    return [str(path), "--grid", "1", "--block", "64", "--arg", "zeros:u32[64]"]


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    made: list[Client] = []
    yield made
    for client in made:
        client.close()


def begin(client: Client, path: str, **launch: Any) -> None:
    assert client.body("initialize", adapterID="ptx")["supportsStepBack"]
    client.event("initialized")
    found = client.body("setBreakpoints", source={"path": path}, breakpoints=[{"line": 18}, {"line": 900}])
    assert [one["verified"] for one in found["breakpoints"]] == [True, False]
    assert found["breakpoints"][0]["line"] == 19
    client.body("setFunctionBreakpoints", breakpoints=[{"name": "f", "condition": "%tid.x == 3"}])
    client.body("setExceptionBreakpoints", filters=["report"])
    client.body("launch", **launch)
    client.body("configurationDone")


@BACK
@ENGINES
def test_an_exchange(command: list[str], clients: list[Client], engine: str) -> None:
    client = Client([*command, "--engine", engine], port=engine == "reference")
    clients.append(client)
    begin(client, command[0])
    stop = client.event("stopped")
    assert stop["reason"] == "breakpoint" and stop["threadId"] == 1
    assert client.lines(1) == [("f", 5), ("k", 17)]
    names = [one["name"] for one in client.body("threads")["threads"]]
    assert names == ["CTA (0,0,0) warp 0", "CTA (0,0,0) warp 1"]
    frame = client.body("stackTrace", threadId=1, levels=1)["stackFrames"][0]["id"]
    scope, device = client.body("scopes", frameId=frame)["scopes"]
    assert (scope["name"], device["name"]) == ("Registers of lane 3", "Device")
    rows = client.body("variables", variablesReference=device["variablesReference"])["variables"]
    shown = {row["name"]: row["value"] for row in rows}
    assert shown["asynchronous work"] == "no asynchronous work is pending" and shown["warps"].endswith(" lines")
    warps = client.body("variables", variablesReference=rows[0]["variablesReference"])["variables"]
    assert any("warp 1" in row["value"] for row in warps)
    registers = client.body("variables", variablesReference=scope["variablesReference"])["variables"]
    (one,) = [row for row in registers if row["name"] == "%i"]
    assert (one["value"], one["type"]) == ("3", "u32")
    lanes = client.body("variables", variablesReference=one["variablesReference"])["variables"]
    assert [row["value"] for row in lanes[:8]] == list("01234567")
    assert client.body("evaluate", expression="%i * 2 + 1", frameId=frame, context="watch")["result"] == "7"
    client.body("setVariable", variablesReference=scope["variablesReference"], name="%i", value="10")
    client.body("stepOut", threadId=1)
    assert client.event("stopped")["reason"] == "breakpoint" and client.lines(1) == [("k", 19)]
    client.body("stepBack", threadId=1)
    assert client.event("stopped")["reason"] == "step" and client.lines(1) == [("f", 6), ("k", 17)]
    repl = client.body("evaluate", expression="print %o", context="repl")["result"]
    assert repl == "%o = 31"
    client.body("reverseContinue", threadId=1)
    assert client.event("stopped")["threadId"] == 1 and client.lines(1)[0] == ("f", 5)
    client.body("stepIn", threadId=1, granularity="instruction")
    client.event("stopped")
    assert client.lines(1)[0] == ("f", 6)
    client.body("setBreakpoints", source={"path": command[0]}, breakpoints=[])
    client.body("setFunctionBreakpoints", breakpoints=[])
    client.body("continue", threadId=1)
    assert client.outputs("exited").startswith("argument 0: u32[64] = 1 4 7 31 13 16 19 22")
    client.event("terminated")
    assert client.process.wait(HANG) == 0


@ENGINES
def test_what_is_refused(command: list[str], clients: list[Client], engine: str) -> None:
    client = Client([*command, "--engine", engine])
    clients.append(client)
    begin(client, command[0], stopOnEntry=True)
    assert client.event("stopped")["reason"] == "entry"
    for name, arguments in (
        ("nonsense", {}), ("scopes", {"frameId": 99}), ("variables", {}), ("stackTrace", {"threadId": 77}),
        ("evaluate", {"expression": "1 +"}), ("evaluate", {"expression": "bogus", "context": "repl"}),
        ("setBreakpoints", {"source": 3}), ("next", {"threadId": "x"}),
    ):  # fmt: skip
        answer = client.ask(name, **arguments)
        assert not answer["success"] and answer["message"], name
    client.body("disconnect")
    assert client.process.wait(HANG) == 0


def test_a_stop_for_data(command: list[str], clients: list[Client]) -> None:
    client = Client(command)
    clients.append(client)
    begin(client, command[0])
    client.event("stopped")
    client.body("setFunctionBreakpoints", breakpoints=[])
    client.body("setDataBreakpoints", breakpoints=[{"dataId": "u32@shared[s]"}])
    client.body("continue", threadId=1)
    assert client.event("stopped")["reason"] == "breakpoint"
    client.body("setBreakpoints", source={"path": command[0]}, breakpoints=[])
    client.body("continue", threadId=1)
    stop = client.event("stopped")
    assert stop["reason"] == "data breakpoint" and stop["text"].startswith("watchpoint")
    client.body("disconnect")
    assert client.process.wait(HANG) == 0
