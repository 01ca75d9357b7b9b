"""Decode bytes to PTX text, with one clear error for anything else."""

from __future__ import annotations

from .diagnostic import Diagnostic, PtxError
from .source import Source

#: The code of "this is not PTX text".
NOT_TEXT = "PTX120"

_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
#: Control characters that no text editor writes. Form feed, vertical tab and Ctrl-Z do occur in old sources.
_NOISE = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1a") | {127})


def decode(data: bytes, name: str) -> str:
    """The text of a PTX file: UTF-8 (a byte order mark is its first character), else Latin-1 (bytes of old comments).

    Raises PtxError with one PTX120 finding for binary data and for UTF-16 or UTF-32.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            raise _refusal(name, f"the file is {encoding} text; PTX is read as UTF-8", "")
    data = _without_final_nul(data)
    # bytes.translate with a delete set runs at memory speed: no scan in Python on the usual path.
    if len(data.translate(None, _NOISE)) != len(data):
        at = next(n for n, byte in enumerate(data) if byte in _NOISE)
        what = f"byte 0x{data[at]:02x} at offset {at} is not text"
        raise _refusal(name, f"the file is not PTX text: {what}", data[:at].decode("utf-8", "replace"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def encode(text: str, like: bytes) -> bytes:
    """The bytes of a changed text in the encoding of `like`, from which it was decoded, with its final NULs. Of an
    unchanged text these are the bytes themselves."""
    content = _without_final_nul(like)
    try:
        content.decode("utf-8")
        encoding = "utf-8"
    except UnicodeDecodeError:
        encoding = "latin-1"
    return text.encode(encoding) + like[len(content) :]


def _without_final_nul(data: bytes) -> bytes:
    """PTX extracted from a C string or a fatbin often ends with its terminator and padding."""
    return data.rstrip(b"\0") if data.endswith(b"\0") and data.strip(b"\0") else data


def _refusal(name: str, message: str, text_before: str) -> PtxError:
    at = len(text_before)
    source = Source(text_before, name)
    return PtxError([Diagnostic(NOT_TEXT, message, (at, at), source, section="4.1")])
