"""What goes wrong in the server is told to the client, which shows it where users look for it.

Standard error is not read by all clients: once the pipe is full, a server that writes to it stands still.
"""

from __future__ import annotations

import logging

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer


class ToClient(logging.Handler):
    """Sends what pygls logs. A request that is refused has its answer: that is not told again."""

    def __init__(self, server: LanguageServer) -> None:
        super().__init__(logging.WARNING)
        self._server, self._sending = server, False

    def emit(self, record: logging.LogRecord) -> None:
        refused = record.exc_info and isinstance(record.exc_info[1], JsonRpcInvalidParams)
        if refused or self._sending or self._server.protocol.writer is None:
            return
        self._sending = True  # what goes wrong here is not told
        try:
            self._server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, self.format(record)))
        finally:
            self._sending = False


def log_to_client(server: LanguageServer) -> None:
    """Send the client what pygls logs, instead of writing it to standard error."""
    logger = logging.getLogger("pygls")
    logger.addHandler(ToClient(server))
    logger.propagate = False
