"""Heads of functions and nodes of metadata that are alike but for names: the rules judge one of them."""

from __future__ import annotations

from itertools import chain

from ..assembly.nodes import Function, Node
from ..assembly.parser import Parser
from .context import Context
from .debug import check_node
from .declarations import check_function


def distinct(parser: Parser) -> bool:
    """Whether nothing that was passed over has the name of something else."""
    module = parser.module
    names = [head.symbol[0] for head in chain.from_iterable(same[1:] for same in parser.heads.values())]
    if parser.nodes:
        names += chain.from_iterable(group.names[1:] for group in parser.nodes.groups())
    given, taken = set(names), (module.functions, module.variables, module.metadata)
    return len(given) == len(names) and all(given.isdisjoint(known) for known in taken)


def read_heads(context: Context, parser: Parser) -> set[str]:
    """Add the functions whose heads were passed over. The names of those that are known to be without fault, but for
    their names."""
    module, alike = context.module, set()
    for first, *others in parser.heads.values():
        if not others:
            continue
        known = module.functions.get(first.symbol[0])
        faultless = known is not None and known.at == first.symbol[1] and _faultless(context, known)
        for head in others:
            passed = faultless and known is not None and (context.modern or not head.numbered)
            made = head.like(known) if passed and known is not None else None
            if made is None:
                parser.read_head(head)
            else:
                module.functions[made.name] = made
                parser.unread.append(made)
                alike.add(made.name)
    parser.unread.sort(key=lambda one: one.body or (0, 0))
    return alike


def read_nodes(context: Context, parser: Parser) -> set[str]:
    """Add the nodes that were passed over. The names of those without fault, which say no more than that they are
    there."""
    if parser.nodes is None:
        return set()
    metadata, groups = context.module.metadata, parser.nodes.groups()
    alike: set[str] = set()
    named = {word for one in context.module.named.values() for word, _ in one.nodes}
    defined = parser.nodes.refers <= metadata.keys() | set(chain.from_iterable(group.names for group in groups))
    for group in groups:
        known = metadata.get(group.names[0])
        others = group.names[1:]
        if defined and known is not None and named.isdisjoint(others) and _fits(context, known):
            metadata.update(dict.fromkeys(others, Node("", known.at, group.kind)))
            alike.update(others)
        else:
            parser.read_lines(parser.nodes.others(group))
    return alike


def _fits(context: Context, node: Node) -> bool:
    """Whether the rules find nothing in a node."""
    before = len(context.found)
    if node.kind:
        check_node(context, node)
    fits = len(context.found) == before
    del context.found[before:]
    return fits


def _faultless(context: Context, function: Function) -> bool:
    """Whether the rules find nothing in a head."""
    before = len(context.found)
    check_function(context, function)
    faultless = len(context.found) == before
    del context.found[before:]
    return faultless and all(word in context.module.groups for word, _ in function.attributes if word[:1] == "#")
