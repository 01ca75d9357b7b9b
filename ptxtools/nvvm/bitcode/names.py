"""The numbers of LLVM's bitcode and the words of its assembly for them."""

from __future__ import annotations

import re

from ..assembly.types import Type


def _each(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Attributes by number, from 1.
ATTRIBUTES = _each(
    "align alwaysinline byval inlinehint inreg minsize naked nest noalias nobuiltin nocapture "
    "noduplicate noimplicitfloat noinline nonlazybind noredzone noreturn nounwind optsize readnone "
    "readonly returned returns_twice signext alignstack ssp sspreq sspstrong sret sanitize_address "
    "sanitize_thread sanitize_memory uwtable zeroext builtin cold optnone inalloca nonnull jumptable "
    "dereferenceable dereferenceable_or_null convergent safestack argmemonly swiftself swifterror "
    "norecurse inaccessiblememonly inaccessiblemem_or_argmemonly allocsize writeonly speculatable "
    "strictfp sanitize_hwaddress nocf_check optforfuzzing shadowcallstack speculative_load_hardening "
    "immarg willreturn nofree nosync sanitize_memtag preallocated nomerge null_pointer_is_valid noundef "
    "byref mustprogress nocallback hot noprofile vscale_range swiftasync nosanitize_coverage elementtype "
    "disable_sanitizer_instrumentation nosanitize_bounds allocalign allocptr allockind presplitcoroutine "
    "fn_ret_thunk_extern skipprofile memory nofpclass optdebug writable coro_only_destroy_when_complete "
    "dead_on_unwind range sanitize_numerical_stability initializes hybrid_patchable sanitize_realtime "
    "sanitize_realtime_blocking coro_elide_safe noext nodivergencesource sanitize_type captures "
    "dead_on_return sanitize_alloc_token nocreateundeforpoison denormal_fpenv"
)
#: Linkages by number; some had other numbers in older files.
LINKAGES = {
    1: "weak", 2: "appending", 3: "internal", 4: "linkonce", 7: "extern_weak", 8: "common", 9: "private",
    10: "weak_odr", 11: "linkonce_odr", 12: "available_externally", 13: "private", 14: "private", 16: "weak",
    17: "weak_odr", 18: "linkonce", 19: "linkonce_odr",
}  # fmt: skip
VISIBILITIES = ("", "hidden", "protected")
STORAGE = ("", "dllimport", "dllexport")
THREADS = ("", "thread_local", "thread_local(localdynamic)", "thread_local(initialexec)", "thread_local(localexec)")
UNNAMED = ("", "unnamed_addr", "local_unnamed_addr")
CONVENTIONS = {
    0: "", 8: "fastcc", 9: "coldcc", 10: "ghccc", 13: "anyregcc", 14: "preserve_mostcc", 15: "preserve_allcc",
    16: "swiftcc", 17: "cxx_fast_tlscc", 18: "tailcc", 64: "x86_stdcallcc", 65: "x86_fastcallcc", 71: "ptx_kernel",
    72: "ptx_device", 75: "spir_func", 76: "spir_kernel", 77: "intel_ocl_bicc", 78: "x86_64_sysvcc", 79: "win64cc",
    80: "x86_vectorcallcc",
}  # fmt: skip

CASTS = _each("trunc zext sext fptoui fptosi uitofp sitofp fptrunc fpext ptrtoint inttoptr bitcast addrspacecast "
    "ptrtoaddr")  # fmt: skip
INT_OPERATIONS = _each("add sub mul udiv sdiv urem srem shl lshr ashr and or xor")
FLOAT_OPERATIONS = {0: "fadd", 1: "fsub", 2: "fmul", 4: "fdiv", 6: "frem"}
_WRAPPING = ((1, "nuw"), (2, "nsw"))
#: What the flags of an operation are, by bit.
FLAGS: dict[str, tuple[tuple[int, str], ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "shl", "trunc"), _WRAPPING),
    **dict.fromkeys(("udiv", "sdiv", "lshr", "ashr"), ((1, "exact"),)),
    "or": ((1, "disjoint"),), "zext": ((1, "nneg"),), "uitofp": ((1, "nneg"),), "icmp": ((1, "samesign"),),
}  # fmt: skip
ADDRESS_FLAGS = ((1, "inbounds"), (2, "nusw"), (4, "nuw"))
_FAST = ((2, "nnan"), (4, "ninf"), (8, "nsz"), (16, "arcp"), (32, "contract"), (64, "afn"), (128, "reassoc"))
_ALL_FAST = 254
PREDICATES = {
    **dict(enumerate(_each("false oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une true"))),
    **dict(enumerate(_each("eq ne ugt uge ult ule sgt sge slt sle"), 32)),
}
FIRST_INT_PREDICATE = 32
ORDERINGS = ("", "unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst")
RMW = _each("xchg add sub and nand or xor max min umax umin fadd fsub fmax fmin uinc_wrap udec_wrap usub_cond "
    "usub_sat fmaximum fminimum")  # fmt: skip
#: Records of metadata that are specialised nodes.
NODES = {
    7: "DILocation", 12: "GenericDINode", 13: "DISubrange", 14: "DIEnumerator", 15: "DIBasicType", 16: "DIFile",
    17: "DIDerivedType", 18: "DICompositeType", 19: "DISubroutineType", 20: "DICompileUnit", 21: "DISubprogram",
    22: "DILexicalBlock", 23: "DILexicalBlockFile", 24: "DINamespace", 25: "DITemplateTypeParameter",
    26: "DITemplateValueParameter", 27: "DIGlobalVariable", 28: "DILocalVariable", 29: "DIExpression",
    30: "DIObjCProperty", 31: "DIImportedEntity", 32: "DIModule", 33: "DIMacro", 34: "DIMacroFile",
    37: "DIGlobalVariableExpression", 40: "DILabel", 41: "DIStringType", 44: "DICommonBlock", 45: "DIGenericSubrange",
    46: "DIArgList", 47: "DIAssignID", 48: "DISubrangeType", 49: "DIFixedPointType",
}  # fmt: skip

_PLAIN = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")


def operation(code: int, type: Type) -> str:
    """The operation with two operands of a type. Raises IndexError if there is none."""
    if type.scalar.kind != "float":
        return INT_OPERATIONS[code]
    if code not in FLOAT_OPERATIONS:
        raise IndexError
    return FLOAT_OPERATIONS[code]


def fast_flags(bits: int) -> str:
    """The words for the flags of floating-point operations, each with a blank behind it."""
    if bits & 1 or bits & _ALL_FAST == _ALL_FAST:  # the lowest bit is that of LLVM 5 and older
        return "fast "
    return flags(bits, _FAST)


def flags(bits: int, names: tuple[tuple[int, str], ...]) -> str:
    return "".join(f"{name} " for bit, name in names if bits & bit)


def quoted(text: str | bytes) -> str:
    """A text as LLVM's strings have it."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return '"' + "".join(chr(one) if 32 <= one < 127 and one not in b'"\\' else f"\\{one:02X}" for one in data) + '"'


def name(sigil: str, text: str) -> str:
    """A name behind `@`, `%` or `$`, with quotes if it needs them."""
    return sigil + (text if _PLAIN.fullmatch(text) else quoted(text))
