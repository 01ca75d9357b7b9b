"""A second way to find the parts of an instruction: its text, read anew."""

import re

from ptxtools.ir import Address, Arguments, Element, Name, Negated, Pair, SymbolOffset, Vector
from ptxtools.ir.positions import Parts, Spot

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TOKEN = re.compile(r"[\w$%.:]+|\S")


def lexed(text, item):
    """Parts and spots of an instruction at its span, as `ir.positions` has them."""
    start, end = item.span
    code = COMMENT.sub(lambda found: " " * len(found[0]), text[start:end])
    tokens = [(start + found.start(), found[0]) for found in TOKEN.finditer(code)]
    guard = None
    if tokens[0][1] == "@":
        tokens = tokens[2 if item.guard.negated else 1 :]
        guard = span(tokens[:1])
        assert tokens.pop(0)[1] == item.guard.name
    count = next(n for n in range(1, len(tokens) + 1) if "".join(word for _, word in tokens[:n]) == item.opcode)
    pieces = split(tokens[count:]) if tokens[count:] else []
    spots = [spot(piece, node) for piece, node in zip(pieces, item.operands, strict=True)]
    return Parts(guard, span(tokens[:count]), tuple(spot.span for spot in spots)), spots


def span(tokens):
    return tokens[0][0], tokens[-1][0] + len(tokens[-1][1])


def split(tokens, mark=","):
    pieces, depth = [[]], 0
    for token in tokens:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[1], 0)
        if token[1] == mark and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def spot(tokens, node):
    """Nodes say what to expect; where it stands is read off the tokens."""
    whole = span(tokens)
    if isinstance(node, Name):
        assert "".join(word for _, word in tokens) == node.name
        return Spot(whole, node.name)
    if isinstance(node, (Vector, Arguments)):
        pieces = split(tokens[1:-1]) if node.items else []
        return Spot(whole, "", tuple(map(spot, pieces, node.items)))
    if isinstance(node, Pair):
        return Spot(whole, "", tuple(map(spot, split(tokens, "|"), (node.first, node.second))))
    if isinstance(node, Negated):
        return Spot(whole, "", (spot(tokens[1:], node.operand),))
    if isinstance(node, SymbolOffset):
        return Spot(whole, "", (spot(tokens[:1], Name(node.name)), Spot(span(tokens[2:]))))
    if isinstance(node, Element):
        name, inside = spot(tokens[:1], Name(node.name)), tokens[2:-1]
        if node.register is None:
            index = span(inside)
            return Spot(whole, "", (name, Spot((index[0], index[0])), Spot(index)))
        return Spot(whole, "", (name, spot(inside[:1], Name(node.register)), offset(inside)))
    return address(tokens, node) if isinstance(node, Address) else Spot(whole)


def offset(tokens):
    """What is added to the first token."""
    end = span(tokens[:1])[1]
    return Spot(span(tokens[2:]) if len(tokens) > 1 else (end, end))


def address(tokens, node):
    last = max(at for at, token in enumerate(tokens) if token[1] == "]")
    first, *rest = split(tokens[1:last])
    if isinstance(node.base, Name):
        base, added = spot(first[:1], node.base), offset(first)
    else:
        base = spot(first, node.base)
        added = Spot((base.span[1], base.span[1]))
    end = span(tokens[: last + 1])[1]
    suffix = Spot(span(tokens[last + 1 :]) if node.suffix else (end, end))
    return Spot(span(tokens), "", (base, added, *map(spot, rest, node.extra), suffix))
