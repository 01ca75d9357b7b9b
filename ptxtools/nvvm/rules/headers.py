"""The module as a whole: data layout, triple, dialect, version, module flags, debug information (3.15, 3.25, 3.26,
16)."""

from __future__ import annotations

import re

from ..assembly.nodes import Node, Value, Word
from ..assembly.tokens import unescaped
from .context import MODERN_FROM, Context

_TAIL = "f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
_INTS = "i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64"
#: 3.25: the supported layout, and those that are deprecated.
LAYOUT = f"e-p:64:64:64-{_INTS}-i128:128:128-{_TAIL}"
DEPRECATED_LAYOUTS = (f"e-p:32:32:32-{_INTS}-i128:128:128-{_TAIL}", f"e-p:32:32:32-{_INTS}-{_TAIL}",
                      f"e-p:64:64:64-{_INTS}-{_TAIL}")  # fmt: skip
#: 3.26
_TRIPLE = re.compile(r"nvptx64-[^-]*-cuda")
_DEPRECATED_TRIPLE = re.compile(r"nvptx-[^-]*-cuda")
#: The specification's version, and that of its debug metadata (1).
VERSION, DEBUG_VERSION = (2, 0), (3, 1)
#: Behaviours of module flags (LLVM's "Module Flags Metadata"): 1 to 7, and 8 in LLVM 18.
_BEHAVIOURS = (*range(1, 9),)
_REQUIRE, _APPENDING, _EXTREMES = 3, (5, 6), (7, 8)
_STRANGE = {"$": ("NVVM211", "comdats are not supported"), "^": ("NVVM231", "ThinLTO summaries are not supported"),
            "u": ("NVVM227", "directives for the order of uses are not supported")}  # fmt: skip


def check_headers(context: Context) -> None:
    module = context.module
    _check_layouts(context)
    _check_triples(context)
    for word in module.strange:
        code, message = _STRANGE[word[0][:1]]
        context.at_word(code, word, message)
    if context.modern and context.arch:
        context.needs(
            "NVVM104", (max(module.opaque_at, 0), max(module.opaque_at, 0) + 3), "the modern dialect", MODERN_FROM
        )
    if module.typed_at >= 0 and module.opaque_at >= 0:
        at = module.typed_at if context.modern else module.opaque_at
        message = "typed and opaque pointers are of different dialects"
        context.at_name("NVVM103", at, "*" if context.modern else "ptr", message)
    elif context.modern and module.typed_at >= 0:
        context.at_name("NVVM103", module.typed_at, "*", "the modern dialect has no typed pointers")
    elif not context.modern and module.opaque_at >= 0:
        context.at_name("NVVM103", module.opaque_at, "ptr", "the dialect of LLVM 7 has no opaque pointers")
    for name, at in module.type_uses.items():
        if name not in module.types:
            context.at_name("NVVM110", at, name, f"use of undefined type '{name}'")
    for message, at in module.steps_back + (module.gaps if not context.modern else []):
        context.at_name("NVVM117", at, "%", message)
    for word in module.numbered if context.counts_silently else ():
        message = f"the parameter {word[0]} has its number by its place: LLVM 7 does not read it here"
        context.at_word("NVVM103", word, message, "give it a name, or leave the number out")
    _check_recursion(context)
    _check_version(context)
    _check_flags(context)
    _check_debug(context)


def _check_layouts(context: Context) -> None:
    layouts = context.module.layouts
    if not layouts:
        context.error("NVVM224", (0, 0), "the module has no data layout", f'target datalayout = "{LAYOUT}"')
    for word in layouts:
        text = unescaped(word[0])
        if "ni:" in text:
            context.at_word("NVVM210", word, "non-integral pointers are not supported")
        elif text in DEPRECATED_LAYOUTS:
            context.at_word("NVVM225", word, "this data layout is deprecated", f"the supported one is {LAYOUT}")
        elif text != LAYOUT:
            context.at_word("NVVM224", word, "this data layout is not supported", f"the supported one is {LAYOUT}")


def _check_triples(context: Context) -> None:
    triples = context.module.triples
    if not triples:
        context.error("NVVM226", (0, 0), "the module has no target triple", 'target triple = "nvptx64-nvidia-cuda"')
    for word in triples:
        text = unescaped(word[0])
        if _DEPRECATED_TRIPLE.fullmatch(text):
            context.at_word(
                "NVVM225", word, "32-bit targets are deprecated", 'the supported triple is "nvptx64-nvidia-cuda"'
            )
        elif not _TRIPLE.fullmatch(text):
            context.at_word("NVVM226", word, f"target triple {word[0][:60]} is not supported",
                            'triples are "nvptx64-*-cuda", where * is any name')  # fmt: skip
    if len(context.module.layouts) == 1 and len(triples) == 1:
        wide = "p:32:" not in context.module.layouts[0][0]
        if wide != triples[0][0].startswith('"nvptx64') and triples[0][0].startswith('"nvptx'):
            context.at_word("NVVM226", triples[0], "the triple and the data layout disagree on the size of pointers")


def _check_recursion(context: Context) -> None:
    """Structs that contain themselves."""
    for name, (type, at) in context.module.types.items():
        waiting, seen = [type] if type else [], set()
        while waiting:
            one = waiting.pop()
            if one.text == name:
                context.at_name("NVVM111", at, name, f"type '{name}' contains itself")
                break
            if one in seen or one.kind in ("pointer", "function"):
                continue
            seen.add(one)
            made = context.module.types.get(one.text, (None, 0))[0] if one.kind == "named" else None
            waiting += [made] if made else one.elements


def _nodes(context: Context, name: str) -> list[tuple[Node, Word]]:
    """The nodes that a named metadata lists."""
    named = context.module.named.get(name)
    found = []
    for word in named.nodes if named else ():
        node = context.module.metadata.get(word[0])
        if node is not None:
            found.append((node, word))
    return found


def integer(value: Value | None) -> int | None:
    """The number that a constant i32 in metadata is."""
    if value is not None and value.kind == "metadata" and value.parts:
        value = value.parts[0]
    if value is None or value.kind != "int" or value.type.kind != "int" or not value.text.lstrip("-").isdecimal():
        return None
    return int(value.text) if len(value.text) < 20 else None


def _check_version(context: Context) -> None:
    """The version of NVVM IR (1, 3.15). That of the debug metadata has had minor versions since."""
    nodes = _nodes(context, "!nvvmir.version")
    if not nodes:
        message = "the module has no version of NVVM IR: it is of version 1.0, with which 2.0 is not compatible"
        context.error("NVVM218", (0, 0), message, "!nvvmir.version = !{!0} and !0 = !{i32 2, i32 0, i32 3, i32 1}")
    for node, word in nodes:
        numbers = [integer(one) for one in node.operands]
        if (
            len(numbers) not in (2, 4)
            or None in numbers
            or any(one and one.type.text != "i32" for one in node.operands)
        ):
            context.at_name("NVVM218", node.at, node.name, "a version of NVVM IR is two or four constants of type i32")
        elif tuple(numbers[:2]) != VERSION:
            context.at_word(
                "NVVM218",
                _place(node, word, 0 if numbers[0] != VERSION[0] else 1),
                f"version {numbers[0]}.{numbers[1]} of NVVM IR is not compatible with 2.0",
            )
        elif len(numbers) == 4 and numbers[2] != DEBUG_VERSION[0]:
            context.at_word(
                "NVVM218",
                _place(node, word, 2),
                f"version {numbers[2]}.{numbers[3]} of the debug metadata is not known",
            )


def _place(node: Node, word: Word, number: int) -> Word:
    """Where an operand of a node stands; the word that names the node, if it has none."""
    value = node.operands[number] if number < len(node.operands) else None
    if value is None:
        return word
    inner = value.parts[0] if value.parts else value
    return inner.text, inner.at


def _check_flags(context: Context) -> None:
    """Module flags are verified (7.1)."""
    seen: set[str] = set()
    for node, _ in _nodes(context, "!llvm.module.flags"):
        behaviour = integer(node.operands[0]) if node.operands else None
        if len(node.operands) != 3:
            context.at_name("NVVM233", node.at, node.name, "a module flag is a behaviour, a name and a value")
        elif behaviour not in _BEHAVIOURS:
            context.at_word(
                "NVVM233",
                _place(node, (node.name, node.at), 0),
                "the behaviour of a module flag is a number from 1 to 8",
            )
        elif not _is_string(node.operands[1]):
            context.at_word("NVVM233", _place(node, (node.name, node.at), 1), "the name of a module flag is a string")
        else:
            _check_flag(context, node, behaviour, seen)


def _check_flag(context: Context, node: Node, behaviour: int | None, seen: set[str]) -> None:
    """The value that a behaviour wants; names occur once, but for those of requirements. seen: names."""
    _, name, value = node.operands
    shown = name.text[1:60] if name is not None else ""
    if behaviour != _REQUIRE and shown in seen:
        context.at_word("NVVM233", _place(node, (node.name, node.at), 1), f"there are two module flags {shown}")
    elif behaviour != _REQUIRE:
        seen.add(shown)
    a_node = value is not None and value.kind == "metadata" and value.extra in ("node", "tuple")
    what = ""
    if behaviour in (_REQUIRE, *_APPENDING) and not a_node:
        what = "a node"
    elif behaviour in _EXTREMES and integer(value) is None:
        what = "an integer"
    if what:
        context.at_word("NVVM233", _place(node, (node.name, node.at), 2),
                        f"the value of a module flag with behaviour {behaviour} is {what}")  # fmt: skip


def _is_string(value: Value | None) -> bool:
    return value is not None and value.kind == "metadata" and value.extra == "string"


def _check_debug(context: Context) -> None:
    """Debug information (16): one compile unit, the flag "Debug Info Version", the version with four numbers."""
    units = _nodes(context, "!llvm.dbg.cu")
    if not units:
        return
    _, first = units[0]
    for node, word in units:
        if node.kind != "DICompileUnit":
            context.at_word("NVVM430", word, "!llvm.dbg.cu lists nodes of the kind DICompileUnit")
        elif "emissionKind" in node.fields and node.fields["emissionKind"][0] not in _EMISSIONS:
            context.at_word("NVVM430", node.fields["emissionKind"], "the emission kind is none of NoDebug, "
                            "FullDebug and DebugDirectivesOnly")  # fmt: skip
    if len(units) > 1:
        context.at_word("NVVM430", units[1][1], f"there are {len(units)} compile units, and only one is supported")
    flags = [node for node, _ in _nodes(context, "!llvm.module.flags") if len(node.operands) == 3
             and node.operands[1] and node.operands[1].text == '!"Debug Info Version"']  # fmt: skip
    if not flags:
        context.at_word("NVVM430", first, 'debug information needs the module flag "Debug Info Version"')
    for flag in flags:
        if integer(flag.operands[2]) != 3:
            context.at_word("NVVM430", _place(flag, (flag.name, flag.at), 2), 'the value of "Debug Info Version" is 3')
        elif integer(flag.operands[0]) != 1:
            context.at_word(
                "NVVM431",
                _place(flag, (flag.name, flag.at), 0),
                'the behaviour of "Debug Info Version" should be 1 (Error)',
            )
    versions = _nodes(context, "!nvvmir.version")
    if not any(len(node.operands) == 4 for node, _ in versions):
        context.at_word("NVVM430", first, "debug information needs its version in !nvvmir.version",
                        "!{i32 2, i32 0, i32 3, i32 1}")  # fmt: skip


#: Values of emissionKind: LLVM 7's LineTablesOnly is DebugDirectivesOnly's neighbour, and is lowered like it.
_EMISSIONS = ("NoDebug", "FullDebug", "LineTablesOnly", "DebugDirectivesOnly", "0", "1", "2", "3")
