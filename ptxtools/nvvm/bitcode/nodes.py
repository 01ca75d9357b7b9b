"""Fields of specialised nodes in their records (LLVM's MetadataLoader), for the text that the rules judge.

A record begins with flags: bit 0 for distinct nodes, the others say which layout follows. As LLVM's own disassembler
does, a field is left out that has the value it has by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .names import quoted

#: Layouts: `name form` of the values behind the flags. Forms: u number, i number with its sign in bit 0, v number in
#: two's complement, b and t truth that is false or true by itself, r node, n node counted from 0, s string, m number or
#: node, a address space, c kind of checksum, p flags of a subprogram, e kind of enumeration, - nothing to say; a
#: capital letter: always written.
_LAYOUTS = {
    7: "line U, column u, scope N, inlinedAt r, isImplicitCode b",
    14: "value I, name S",
    15: "tag u, name s, size u, align u, encoding u, flags u",
    16: "filename S, directory S, checksumkind c, checksum s, source s",
    17: "tag U, name s, file r, line u, scope r, baseType R, size u, align u, offset u, flags u, extraData r, "
        "dwarfAddressSpace a, annotations r, ptrAuth u",
    18: "tag U, name s, file r, line u, scope r, baseType r, size u, align u, offset u, flags u, elements r, "
        "runtimeLang u, vtableHolder r, templateParams r, identifier s, discriminator r, dataLocation r, associated r, "
        "allocated r, rank m, annotations r, num_extra_inhabitants u, specification r, enumKind e, bitStride r",
    19: "flags u, types R, cc u",
    20: "language U, file R, producer s, isOptimized B, flags s, runtimeVersion U, splitDebugFilename s, "
        "emissionKind U, enums r, retainedTypes r, -, globals r, imports r, dwoId u, macros r, "
        "splitDebugInlining t, "
        "debugInfoForProfiling b, nameTableKind u, rangesBaseAddress b, sysroot s, sdk s",
    21: "scope r, name s, linkageName s, file r, line u, type r, scopeLine u, containingType r, spFlags P, "
        "virtualIndex u, flags u, unit r, templateParams r, declaration r, retainedNodes r, thisAdjustment v, "
        "thrownTypes r, annotations r, targetFuncName s, keyInstructions b",
    22: "scope R, file r, line u, column u",
    23: "scope R, file r, discriminator U",
    24: "scope R, name s",
    25: "name s, type R, defaulted b",
    26: "tag u, name s, type r, defaulted b, value R",
    27: "scope r, name s, linkageName s, file r, line u, type r, isLocal B, isDefinition B, declaration r, "
        "templateParams r, align u, annotations r",
    28: "scope R, name s, file r, line u, type r, arg u, flags u, align u, annotations r",
    30: "name s, file r, line u, getter s, setter s, attributes u, type r",
    31: "tag U, scope R, entity r, line u, name s, file r, elements r",
    33: "type U, line u, name S, value s",
    34: "type u, line u, file R, nodes r",
    37: "var R, expr R",
    40: "scope R, name S, file R, line U",
    41: "tag u, name s, stringLength r, stringLengthExpression r, stringLocationExpression r, size u, align u, "
        "encoding u",
    44: "scope R, declaration r, name s, file r, line u",
    45: "count m, lowerBound m, upperBound m, stride m",
}  # fmt: skip
#: What older versions of LLVM write, by the kind and how they differ.
_OLDER = {
    "subprogram": "scope r, name s, linkageName s, file r, line u, type r, isLocal B, isDefinition B, scopeLine u, "
        "containingType r, virtuality u, virtualIndex u, flags u, isOptimized B, unit r, templateParams r, "
        "declaration r, retainedNodes r, thisAdjustment v, thrownTypes r",
    "variable": "scope r, name s, linkageName s, file r, line u, type r, isLocal B, isDefinition B, declaration r, "
        "align u",
    "unit": "gnuPubnames b",
    "value": "tag u, name s, type r, value R",
    "count": "count I, lowerBound i",
    "lower": "count m, lowerBound i",
    "module": "scope R, name s, configMacros s, includePath s, isysroot s",
    "file and module": "file r, scope R, name s, configMacros s, includePath s, apinotes s, line u, isDecl b",
}  # fmt: skip
#: The last LLVM whose compile units say "gnuPubnames" where later ones have a kind of table of names.
LAST_WITH_PUBNAMES = 7
_SUBPROGRAM, _SUBRANGE, _ENUMERATOR, _UNIT, _VALUE, _VARIABLE, _LOCAL, _MODULE = 21, 13, 14, 20, 26, 27, 28, 32
_GENERIC, _BASIC, _DERIVED, _COMPOSITE, _STRING, _NAMESPACE = 12, 15, 17, 18, 41, 24
#: Types of debug information whose sizes and offsets are metadata since LLVM 21, and the flag that says so.
_SIZES = {_BASIC: 2, _DERIVED: 2, _COMPOSITE: 4, _STRING: 2}
_CHECKSUMS = {1: "CSK_MD5", 2: "CSK_SHA1", 3: "CSK_SHA256"}
_SUBPROGRAM_FLAGS = {
    4: "LocalToUnit", 8: "Definition", 16: "Optimized", 32: "Pure", 64: "Elemental", 128: "Recursive",
    256: "MainSubprogram", 512: "Deleted", 2048: "ObjCDirect",
}  # fmt: skip
_NO_KIND = 0xFFFFFFFF  # of an enumeration
_VIRTUALITIES = ("", "Virtual", "PureVirtual")


def _layout(code: int, values: list[int], old_unit: bool) -> str | None:
    """The layout of a record; None if it is not known."""
    flags, count = values[0], len(values)
    if code == _SUBPROGRAM:
        return _LAYOUTS[code] if flags & 4 else _OLDER["subprogram"]
    if code == _SUBRANGE:
        return (_OLDER["count"], _OLDER["lower"], _LAYOUTS[45])[min(flags >> 1 & 3, 2)]
    if code == _VARIABLE and flags >> 1 == 1:
        return _OLDER["variable"]
    if code == _VALUE and count == 5:
        return _OLDER["value"]
    if code == _UNIT and old_unit:
        return _LAYOUTS[code].replace("nameTableKind u", _OLDER["unit"])
    if code == _MODULE:
        return _OLDER["module" if count == 6 else "file and module"]
    if code == _ENUMERATOR and flags & 4:
        return "-, name S, value I"
    if code == _LOCAL and not flags & 2 and count > 8:
        return None  # of LLVM 3, with a tag
    if code in _SIZES and flags & _SIZES[code]:
        return _LAYOUTS[code].replace("size u", "size m").replace("offset u", "offset m")
    return _LAYOUTS.get(code)


def fields_of(
    code: int, values: list[int], old_unit: bool, ref: Callable[[int], str], string: Callable[[int], str]
) -> Iterator[tuple[str, str]]:
    """The fields of a node, with their texts. values: its record; old_unit: whether LLVM 7 or older wrote it; ref,
    string: the text of a node and of a string, by their numbers from 1, or 0."""
    if code == _GENERIC and len(values) > 3:
        yield "tag", str(values[1])
        yield "header", quoted(string(values[3]))
        yield "operands", f"{{{', '.join(map(ref, values[4:]))}}}"
    layout = _layout(code, values, old_unit) if values else None
    if layout is None:
        return
    if code == _ENUMERATOR and values[0] & 2:
        yield "isUnsigned", "true"
    if code == _NAMESPACE and values[0] & 2:
        yield "exportSymbols", "true"
    for part, value in zip(layout.split(", "), values[1:], strict=False):
        name, _, form = part.partition(" ")
        if not form:
            continue
        text = _text(form.lower(), value, ref, string)
        if form.isupper() or text != _BY_ITSELF.get(form, text and "0"):
            yield name, text


#: What is left out, but for zeros.
_BY_ITSELF = {"b": "false", "t": "true", "r": "null", "s": '""', "m": "null", "a": "", "c": "", "e": ""}


def _text(form: str, value: int, ref: Callable[[int], str], string: Callable[[int], str]) -> str:
    if form in "bt":
        return "true" if value else "false"
    if form == "r":
        return ref(value)
    if form == "n":
        return ref(value + 1)
    if form == "s":
        return quoted(string(value))
    if form == "m":
        text = ref(value)
        return text.rpartition(" ")[2] if text[:1] == "i" else text
    if form == "i":
        return str(-(value >> 1) if value & 1 else value >> 1)
    if form == "v":
        wide = value & 0xFFFFFFFF
        return str(wide - (wide >> 31 << 32))
    if form == "e":
        return "" if value == _NO_KIND else str(value)
    if form == "a":
        return str(value - 1) if value else ""
    if form == "c":
        return _CHECKSUMS.get(value, "")
    if form == "p":
        words = [_VIRTUALITIES[min(value & 3, 2)], *(word for bit, word in _SUBPROGRAM_FLAGS.items() if value & bit)]
        return " | ".join(f"DISPFlag{word}" for word in words if word) or "0"
    return str(value)
