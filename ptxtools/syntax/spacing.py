"""Where blanks and line ends stand between the words of one statement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .pieces import COMMENT, Piece

_WORD_END = re.compile(r"[\w$%\".)]$")
_WORD_START = re.compile(r"[\w$%\".]")


def joined(pieces: Sequence[Piece], margin: str, *, instruction: bool = False) -> str:
    """The words with canonical blanks. margin: of lines after the first one. instruction: operands, not a declaration.

    Line ends stay behind commas and opening brackets, before closing ones, and beside comments.
    """
    registers = any(piece.text == ".reg" for piece in pieces[:3])
    parts: list[str] = []
    brackets = 0
    for index, piece in enumerate(pieces):
        before = pieces[index - 1] if index else None
        if before is not None:
            if _breaks(before, piece):
                parts.append("\n" + margin)
            elif _apart(before, piece, instruction, registers, brackets > 0, index):
                parts.append(" ")
        parts.append(piece.text)
        brackets += (piece.text == "[") - (piece.text == "]")
    return "".join(parts)


def _breaks(before: Piece, piece: Piece) -> bool:
    if before.ends_line:
        return True
    if not piece.breaks:
        return False
    return COMMENT in (before.kind, piece.kind) or before.text in (",", "(", "{") or piece.text in (")", "}")


def _apart(before: Piece, piece: Piece, instruction: bool, registers: bool, bracketed: bool, index: int) -> bool:
    """Whether a blank stands between two words."""
    left, right = before.text, piece.text
    if COMMENT in (before.kind, piece.kind):
        return right not in (",", ";")
    if right in (",", ";", ")", "]", "}") or left in ("(", "[", "{", "!", "@", "~"):
        return False
    if left == "," or (left == ":" and index == 2):
        return True
    if right == ":" and index == 1:
        return False
    pair = (left, right)
    if registers and ("<" in pair or ">" in pair):
        return left == ">"
    if right == "[":
        return not (left == "]" or _WORD_END.search(left))
    if right == "(":
        if left.startswith("."):
            return left != ".attribute"
        return left in (")", "_", "=") or (not _WORD_END.search(left) and piece.apart)
    if instruction and ("|" in pair or (left == "]" and right.startswith("."))):
        return False
    if bracketed and ("+" in pair or "-" in pair):
        return False
    if "=" in pair:
        return True
    if (_WORD_END.search(left) or left in ("]", "}", ">")) and _WORD_START.match(right):
        return True
    return piece.apart
