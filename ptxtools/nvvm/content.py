"""What the bytes of a module are."""

from __future__ import annotations


def is_bitcode(data: bytes) -> bool:
    """Whether these are LLVM's bitcode, with its wrapper or without."""
    return data[:4] in (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
