"""Messages of the Debug Adapter Protocol over a pair of file descriptors.

Nothing is kept in buffers of Python's streams: a run that goes back goes on in another process, which must find what
has not been read (`unread`).
"""

from __future__ import annotations

import io
import json
import os
import select
from typing import Any

#: The longest header and the longest message.
_HEADER, _MOST = 4096, 64 << 20


class ProtocolError(Exception):
    """What came is no message."""


class Channel:
    """Reads and writes messages. seq: number of the last one written."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self.unread, self.seq = b"", 0

    def waits(self) -> bool:
        """Whether anything has come, or the other end has closed."""
        return bool(self.unread) or bool(select.select([self._read], [], [], 0)[0])

    def receive(self) -> dict[str, Any] | None:
        """The next message; None where no more will come. Raises `ProtocolError`."""
        while b"\r\n\r\n" not in self.unread:
            if len(self.unread) > _HEADER:
                raise ProtocolError("a header without an end")
            if not self._more():
                return None
        head, _, rest = self.unread.partition(b"\r\n\r\n")
        fields = dict(line.split(b":", 1) for line in head.split(b"\r\n") if b":" in line)
        text = fields.get(b"Content-Length", b"").strip()
        if not text.isdigit() or len(text) > 9 or int(text) > _MOST:
            raise ProtocolError("a header without a Content-Length")
        size, self.unread = int(text), rest
        while len(self.unread) < size:
            if not self._more():
                return None
        data, self.unread = self.unread[:size], self.unread[size:]
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            raise ProtocolError("a message that is no JSON") from None
        if not isinstance(message, dict):
            raise ProtocolError("a message that is no object")
        return message

    def _more(self) -> bool:
        data = os.read(self._read, 65536)
        self.unread += data
        return bool(data)

    def send(self, kind: str, **fields: Any) -> None:
        """Write a message: "response" or "event"."""
        self.seq += 1
        data = json.dumps({"seq": self.seq, "type": kind, **fields}).encode()
        data = b"Content-Length: %d\r\n\r\n%s" % (len(data), data)
        while data:
            data = data[os.write(self._write, data) :]

    def event(self, name: str, **body: Any) -> None:
        self.send("event", event=name, body=body)


class Output(io.RawIOBase):
    """What the run writes, as events."""

    def __init__(self, channel: Channel, category: str) -> None:
        self._channel, self._category = channel, category

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        text = bytes(data)
        self._channel.event("output", category=self._category, output=text.decode("utf-8", "replace"))
        return len(text)
