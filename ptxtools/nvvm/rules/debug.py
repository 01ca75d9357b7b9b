"""The nodes of debug information: which there are, and their fields (16; LLVM's "Specialized Metadata Nodes")."""

from __future__ import annotations

import re
from functools import cache

from ptxtools.records import NamedTuple

from ..assembly.nodes import Node
from .context import Context

CODE = "NVVM432"
#: kind -> the fields of LLVM 7, and behind the bar those that LLVM 18 has besides. "!" marks what must be there, "~"
#: what LLVM 7 wants; "+" a kind that came after LLVM 7; "-" a field that has gone since. Two kinds of Fortran are in
#: NVIDIA's LLVM 7.
_NODES = """
DILocation: line u32, column u16, scope! node, inlinedAt ref | isImplicitCode bool
GenericDINode: tag! DW_TAG_, header str, operands list
DISubrange: count~ number, lowerBound number | upperBound number, stride number
+DIGenericSubrange: count number, lowerBound number, upperBound number, stride number
DIEnumerator: name! str, value! integer, isUnsigned bool
DIBasicType: tag DW_TAG_, name str, size u64, align u32, encoding DW_ATE_ | flags DIFlag
DIStringType: tag DW_TAG_, name str, stringLength ref, stringLengthExpression ref, size u64, align u32, encoding
  DW_ATE_ | stringLocationExpression ref
DIDerivedType: tag! DW_TAG_, name str, scope ref, file ref, line u32, baseType! ref, size u64, align u32, offset
  u64, flags DIFlag, extraData ref, dwarfAddressSpace u32 | annotations ref
DICompositeType: tag! DW_TAG_, name str, scope ref, file ref, line u32, baseType ref, size u64, align u32, offset
  u64, flags DIFlag, elements ref, runtimeLang DW_LANG_, vtableHolder ref, templateParams ref, identifier str,
  discriminator ref | dataLocation ref, associated ref, allocated ref, rank number, annotations ref
DISubroutineType: flags DIFlag, cc DW_CC_, types! ref
DIFile: filename! str, directory! str, checksumkind CSK_, checksum str, source str
DICompileUnit: language! DW_LANG_, file! node, producer str, isOptimized bool, flags str, runtimeVersion u32,
  splitDebugFilename str, emissionKind emission, enums ref, retainedTypes ref, globals ref, imports ref, macros ref,
  dwoId u64, splitDebugInlining bool, debugInfoForProfiling bool, -gnuPubnames bool | nameTableKind names,
  rangesBaseAddress bool, sysroot str, sdk str
DISubprogram: scope ref, name str, linkageName str, file ref, line u32, type ref, isLocal bool, isDefinition bool,
  scopeLine u32, containingType ref, virtuality DW_VIRTUALITY_, virtualIndex u32, thisAdjustment integer, flags
  DIFlag, isOptimized bool, unit ref, templateParams ref, declaration ref, retainedNodes ref, thrownTypes ref |
  spFlags DISPFlag, annotations ref, targetFuncName str
DILexicalBlock: scope! node, file ref, line u32, column u16
DILexicalBlockFile: scope! node, file ref, discriminator! u32
DICommonBlock: scope! ref, declaration ref, name str, file ref, line u32
DINamespace: scope! ref, name str, exportSymbols bool
DIMacro: type! DW_MACINFO_, line u32, name! str, value str
DIMacroFile: type DW_MACINFO_, line u32, file! ref, nodes ref
DIModule: scope! ref, name! str, configMacros str, includePath str, -isysroot str | apinotes str, file ref, line
  u32, isDecl bool
DITemplateTypeParameter: name str, type! ref | defaulted bool
DITemplateValueParameter: tag DW_TAG_, name str, type ref, value! ref | defaulted bool
DIGlobalVariable: name~ text, scope ref, linkageName str, file ref, line u32, type ref, isLocal bool, isDefinition
  bool, declaration ref, align u32 | templateParams ref, annotations ref
DIGlobalVariableExpression: var! ref, expr! ref
DILocalVariable: name str, arg u16, scope! node, file ref, line u32, type ref, flags DIFlag, align u32 | annotations
  ref
DILabel: scope! node, name! str, file! ref, line! u32
DIObjCProperty: name str, file ref, line u32, setter str, getter str, attributes u32, type ref
DIImportedEntity: tag! DW_TAG_, scope! ref, entity ref, file ref, line u32, name str | elements ref
+DIAssignID:
"""
#: type of a field -> its form, and its name in messages. A type that ends in "_" is a prefix of names, for which a
#: number may stand; so is one that is a flag, of which there may be several.
_FORMS = {
    "bool": (r"true|false", "true or false"),
    "str": (r'"[^"]*"', "a string"),
    "text": (r'"[^"]+"', "a string that is not empty"),
    "ref": (r"null|!.*|(?!DW_|DIFlag|true\b|false\b|[-+\d\"{]).*", "a node or null"),
    "node": (r"!.*", "a node"),
    "list": (r"\{.*\}", "a list of nodes"),
    "integer": (r"-?\d+", "an integer"),
    "number": (r"-?\d+|!.*|null", "an integer or a node"),
    "emission": (r"NoDebug|FullDebug|LineTablesOnly|DebugDirectivesOnly|[0-3]", "an emission kind"),
    "names": (r"Default|GNU|None|Apple|[0-3]", "a kind of table of names"),
    "CSK_": (r"CSK_(?:MD5|SHA1|SHA256)", "a kind of checksum"),
    "DW_VIRTUALITY_": (r"DW_VIRTUALITY_(?:none|virtual|pure_virtual)|[0-2]", "a virtuality"),
}
#: prefix -> the names behind it that both dialects have, LLVM 7 alone, and LLVM 18 alone. The lists of other prefixes
#: are long, and open to vendors.
_NAMES = {
    "DIFlag": (
        "Private Protected Public FwdDecl AppleBlock Virtual Artificial Explicit Prototyped ObjcClassComplete "
        "ObjectPointer Vector StaticMember LValueReference RValueReference SingleInheritance MultipleInheritance "
        "VirtualInheritance IntroducedVirtual BitField NoReturn TypePassByValue TypePassByReference Thunk "
        "IndirectVirtualBase",
        "BlockByrefStruct Reserved MainSubprogram Trivial FixedEnum",
        "ReservedBit4 ExportSymbols EnumClass NonTrivial BigEndian LittleEndian AllCallsDescribed",
    ),
    "DISPFlag": (
        "", "",
        "Virtual PureVirtual LocalToUnit Definition Optimized Pure Elemental Recursive MainSubprogram Deleted "
        "ObjCDirect",
    ),
    "DW_ATE_": (
        "address boolean complex_float float signed signed_char unsigned unsigned_char imaginary_float packed_decimal "
        "numeric_string edited signed_fixed unsigned_fixed decimal_float UTF UCS ASCII",
        "", "HP_\\w+",
    ),
    "DW_MACINFO_": ("define undef start_file end_file vendor_ext", "", ""),
}  # fmt: skip
_NUMBER = re.compile(r"\d+")


class Field(NamedTuple):
    """A field of a node. since, until: whether LLVM 7 and LLVM 18 have it; needed: whether they want it."""

    type: str
    dialects: tuple[bool, bool]
    needed: tuple[bool, bool]


@cache
def fields_of(kind: str) -> tuple[tuple[bool, bool], dict[str, Field]] | None:
    """Whether LLVM 7 and LLVM 18 have a kind of node, and its fields; None for one that neither has."""
    found = re.search(rf"^(\+?){kind}:(.*(?:\n  .*)*)", _NODES, re.M)
    if not found:
        return None
    both, _, later = found[2].partition("|")
    fields = {}
    for part, old in ((both, True), (later, False)):
        for one in filter(None, map(str.strip, part.split(","))):
            name, type = one.split()
            plain = name.strip("-!~")
            fields[plain] = Field(type, (old, name[0] != "-"), (name[-1] in "!~", name[-1] == "!"))
    return (not found[1], True), fields


@cache
def _form(type: str, modern: bool) -> tuple[re.Pattern[str], str]:
    if type in _FORMS:
        form, what = _FORMS[type]
        return re.compile(form, re.S), what
    name = rf"{type}\w+"
    if type in _NAMES:
        both, *each = _NAMES[type]
        name = rf"{type}(?:{'|'.join(f'{both} {each[modern]}'.split())})\b"
    if type.endswith("_"):
        return re.compile(rf"{name}|\d+"), f"{type}… or a number"
    return re.compile(rf"{name}(?:\s*\|\s*{name})*|\d+"), f"{type}…, several with '|' between them"


def _fault(type: str, text: str, modern: bool) -> str:
    """What is wrong with the text of a field, "" if nothing."""
    if type[0] == "u" and type[1:].isdecimal():
        bits = int(type[1:])
        if not _NUMBER.fullmatch(text):
            return "a number without sign"
        return "" if len(text) < 22 and int(text) < 1 << bits else f"a number of {bits} bits"
    form, what = _form(type, modern)
    return "" if form.fullmatch(text) else what


def check_node(context: Context, node: Node) -> None:
    """A specialised node: its kind and its fields in this dialect."""
    if node.kind == "DIExpression":
        _check_expression(context, node)
        return
    if node.kind == "DIArgList":
        context.at_name(CODE, node.at, node.name, "a DIArgList stands in a call, and is no node of the module")
        return
    known = fields_of(node.kind)
    if known is None or not known[0][context.modern]:
        newer = " in LLVM 7" if known else ""
        context.at_name(CODE, node.at, node.name, f"there is no node {node.kind}{newer}")
        return
    for name, (text, at) in node.fields.items():
        field = known[1].get(name)
        if field is None or not field.dialects[context.modern]:
            where = "" if field is None else " in the modern dialect" if context.modern else " in LLVM 7"
            shown = f"field '{name}'" if not name.isdecimal() else "field without a name"
            context.at_name(CODE, at, text, f"{node.kind} has no {shown}{where}")
            continue
        fault = _fault(field.type, text, context.modern)
        if fault:
            context.at_name(CODE, at, text, f"'{name}' of {node.kind} is {fault}, not {text[:40]}")
    for name, field in known[1].items():
        if field.needed[context.modern] and name not in node.fields:
            context.at_name(CODE, node.at, node.name, f"{node.kind} needs the field '{name}'")
    _check_whole(context, node)


def _check_whole(context: Context, node: Node) -> None:
    """What fields say together, and what must be distinct."""
    fields = node.fields
    if node.kind == "DIFile" and ("checksum" in fields) != ("checksumkind" in fields):
        context.at_name(CODE, node.at, node.name, "DIFile has 'checksumkind' and 'checksum', or neither")
    definition = node.kind == "DISubprogram" and (
        fields["isDefinition"][0] == "true" if "isDefinition" in fields
        else "DISPFlagDefinition" in fields["spFlags"][0] if "spFlags" in fields else True
    )  # fmt: skip
    if not node.distinct and (node.kind in ("DICompileUnit", "DIAssignID") or definition):
        what = "the DISubprogram of a definition" if definition else node.kind
        context.at_name(CODE, node.at, node.name, f"{what} must be distinct")


def _check_expression(context: Context, node: Node) -> None:
    for text, at in node.fields.values():
        if not re.fullmatch(r"DW_OP_\w+|DW_ATE_\w+|\d+", text):
            context.at_name(CODE, at, text, f"{text[:40]} is no operation of a DIExpression, and no operand")
