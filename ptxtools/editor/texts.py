"""Open texts as the client has them: changes are applied here, by the protocol's ends of lines."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.workspace import TextDocument

from .positions import Positions


class OpenText(TextDocument):
    """A text with the positions in it, which the next change and the answers share.

    pygls goes through all lines for each change, and counts more characters as ends of lines than the protocol does.
    """

    @classmethod
    def of(cls, other: TextDocument) -> OpenText:
        """The same text. One that is not open is that of its file, or empty: it may have been closed meanwhile."""
        try:
            text = other.source
        except (OSError, ValueError):
            text = ""
        return cls(other.uri, text, other.version, other.language_id, position_codec=other.position_codec)

    @property
    def encoding(self) -> str:
        """The one of columns, by the protocol's name: pygls has its own or the client's word for it."""
        return str(getattr(self.position_codec.encoding, "value", self.position_codec.encoding))

    @property
    def places(self) -> Positions:
        known = self.__dict__.get("_places")
        if known is None or known.text != self.source:
            known = self._places = Positions(self.source, self.encoding)
        return known

    def apply_change(self, change: lsp.TextDocumentContentChangeEvent) -> None:
        if isinstance(change, lsp.TextDocumentContentChangePartial):
            start, end = self.places.span(change.range)
            text = self.source
            self._source = text[:start] + change.text + text[max(start, end) :]
        else:
            self._source = change.text
