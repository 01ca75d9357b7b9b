"""What globals, functions and aliases may be in NVVM IR (2, 3, 12.1)."""

from __future__ import annotations

import re

from ..assembly.calls import CONVENTIONS
from ..assembly.nodes import Function, Variable, Word
from ..assembly.tokens import words
from ..assembly.types import VOID, Type
from .attributes import check_function_attributes, check_parameter_attributes
from .constants import check_constant, check_initial
from .context import Context

#: 3.1
LINKAGES = words("private internal available_externally linkonce weak common linkonce_odr weak_odr external")
_OTHER_LINKAGES = frozenset(("appending", "extern_weak"))
_IGNORED_VISIBILITY = frozenset(("hidden", "protected"))  # 3.3; default says nothing
#: Conventions that lowering knows: they say kernel or function, or nothing. The others are accepted and ignored (3.2).
_MEANT = frozenset(("ccc", "ptx_kernel", "ptx_device"))
#: What names a kernel by its convention.
KERNEL_WORDS = ("ptx_kernel", "cc 71")
#: 12.1: the spaces of variables, by number.
SPACES = {0: "generic", 1: "global", 3: "shared", 4: "constant", 5: "local"}
_VARIABLE_SPACES = (0, 1, 3, 4)
_NAME = re.compile(r"@[a-zA-Z$_][a-zA-Z$_0-9]*")
#: Builtin globals (9), and whether they are supported.
BUILTIN_GLOBALS = {
    "@llvm.used": True, "@llvm.compiler.used": True, "@llvm.global_ctors": False, "@llvm.global_dtors": False,
}  # fmt: skip
#: Parts of a function that are not supported (3.12, 3.17 to 3.19), in words.
_FUNCTION_PARTS = {
    "align": "an alignment", "section": "a section", "gc": "a garbage collector", "prefix": "prefix data",
    "prologue": "prologue data", "personality": "a personality", "partition": "a partition",
}  # fmt: skip


def check_name(context: Context, name: str, at: int) -> None:
    """Names of globals (2)."""
    plain = name[1:].strip('"')
    if plain.startswith(("llvm.nvvm.", "nvvm.")):
        context.at_name("NVVM202", at, name, f"'{name}' is reserved: names of users do not begin with 'nvvm.'")
    elif plain.startswith("llvm.") or name[1:].isdecimal():
        return
    elif not _NAME.fullmatch("@" + plain):
        wrong = next((one for one in plain if not re.match(r"[a-zA-Z$_0-9]", one)), plain[:1])
        context.at_name("NVVM201", at, name, f"'{name}' is no name of NVVM IR: it contains '{wrong}'",
                        "a name consists of letters, digits, '$' and '_', and does not begin with a digit")  # fmt: skip


def _check_words(context: Context, words: list[Word]) -> None:
    """What stands before the type: linkage, preemption, visibility, storage classes, conventions."""
    for word in words:
        text = word[0]
        if text in _OTHER_LINKAGES:
            context.at_word("NVVM203", word, f"linkage '{text}' is not supported")
        elif text in ("dllimport", "dllexport"):
            context.at_word("NVVM207", word, "DLL storage classes are not supported")
        elif text.startswith("thread_local"):
            context.at_word("NVVM208", word, "thread-local variables are not supported")
        elif text in ("dso_local", "dso_preemptable"):
            context.at_word("NVVM209", word, f"'{text}' is not supported: NVVM IR has no runtime preemption specifiers")
        elif text in _IGNORED_VISIBILITY:
            context.at_word("NVVM206", word, f"visibility '{text}' is ignored")
        elif (text in CONVENTIONS or text.startswith("cc ")) and text not in _MEANT:
            check_convention(context, word)


def check_convention(context: Context, word: Word) -> None:
    if word[0] not in _MEANT and word[0] not in ("cc 71", "cc 72"):
        context.at_word("NVVM204", word, f"calling convention '{word[0]}' is ignored")


def check_type(context: Context, type: Type, at: int, depth: int = 0) -> None:
    """Types that NVVM IR lacks (4), and spaces of pointers (12.1)."""
    if type in context.checked_types:
        return
    if type.kind in ("x86_mmx", "x86_amx", "token", "target") or type.text in ("fp128", "x86_fp80", "ppc_fp128"):
        context.at_name("NVVM228", _place(context, type, at), type.text, f"type {type} is not supported")
    elif type.kind == "vector" and type.open:
        context.at_name(
            "NVVM228",
            _place(context, type, at),
            type.text,
            f"type {type} is not supported: GPUs have no scalable vectors",
        )
    elif type.kind == "pointer" and type.space not in SPACES:
        reserved = type.space == 2 or type.space >= 101
        context.at_name("NVVM212", _place(context, type, at), type.text, f"address space {type.space} is "
                        + ("reserved for the compiler" if reserved else "not supported"), _SPACES)  # fmt: skip
    elif type.text == "bfloat" and not context.modern:
        context.at_name(
            "NVVM103", _place(context, type, at), type.text, "bfloat is not in LLVM 7: it came with LLVM 11"
        )
    else:
        before = len(context.found)
        for one in type.elements if depth < 100 else ():
            check_type(context, one, at, depth + 1)
        if len(context.found) == before:
            context.checked_types.add(type)


def _place(context: Context, type: Type, at: int) -> int:
    """Where a type is written that belongs to a place: there, or nearest to it in the line."""
    text = context.source.text
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    places = [one.start() for one in re.finditer(rf"(?<![\w.]){re.escape(type.text)}(?![\w.])",
                                                 text[begin : end if end >= 0 else len(text)])]  # fmt: skip
    return min((begin + one for one in places), key=lambda one: abs(one - at), default=at)


def check_types(context: Context) -> None:
    """The types that have names."""
    for type, at in context.module.types.values():
        if type is not None:
            check_type(context, type, at)


_SPACES = "generic is 0, global 1, shared 3, constant 4, local 5"


def check_function(context: Context, function: Function) -> None:
    intrinsic = function.name.startswith("@llvm.")
    if not intrinsic or function.defined:
        check_name(context, function.name, function.at)
    _check_words(context, function.words)
    for part, (_, at) in function.parts.items():
        if part == "comdat":
            context.at_name("NVVM211", at, part, "comdats are not supported")
        else:
            context.at_name("NVVM215", at, part, f"{_FUNCTION_PARTS[part]} of a function is not supported")
    check_type(context, function.result, function.at)
    if function.result.kind in ("label", "metadata", "function", "opaque"):
        context.at_name("NVVM111", function.at, function.name, f"a function does not return {function.result}")
    if function.result is not VOID and any(word in KERNEL_WORDS for word, _ in function.words):
        context.at_name("NVVM412", function.at, function.name, f"a kernel returns nothing, not {function.result}")
    check_parameter_attributes(context, function.result_attributes, function.result, intrinsic)
    for param in function.params:
        check_type(context, param.type, param.at)
        if param.type.kind in ("void", "label", "function") or (param.type.kind == "metadata" and not intrinsic):
            context.at_name("NVVM111", param.at, param.name, f"a parameter is not of type {param.type}")
        check_parameter_attributes(context, param.attributes, param.type, intrinsic)
    check_function_attributes(context, function.attributes, intrinsic)
    if not function.defined:
        for word in function.words:
            if word[0] in LINKAGES and word[0] != "external":
                context.at_word("NVVM203", word, f"a declaration has no linkage '{word[0]}'")
    elif intrinsic:
        context.at_name("NVVM202", function.at, function.name, f"'{function.name}' is reserved, and has no definition")


def check_variable(context: Context, variable: Variable) -> None:
    if variable.kind == "ifunc":
        context.at_name("NVVM217", variable.at, variable.name, "ifuncs are not supported")
        return
    if variable.name in BUILTIN_GLOBALS or variable.name.startswith("@llvm."):
        if not BUILTIN_GLOBALS.get(variable.name):
            context.at_name("NVVM232", variable.at, variable.name, f"'{variable.name}' is not supported")
        words = [word for word in variable.words if word[0] != "appending"]
        builtin = True
        _check_used(context, variable)
    else:
        check_name(context, variable.name, variable.at)
        words, builtin = variable.words, False
    _check_words(context, words)
    if variable.kind == "alias":
        _check_alias(context, variable)
        return
    check_type(context, variable.type, variable.at)
    if not context.sized(variable.type):
        context.at_name(
            "NVVM111", variable.at, variable.name, f"a variable is not of type {variable.type}, without size"
        )
    _check_parts(context, variable, builtin)
    _check_space(context, variable)
    if variable.initial is not None:
        check_constant(context, variable.initial)
        if variable.initial.kind == "local":
            context.at_value("NVVM110", variable.initial, "an initialiser is a constant")
        if variable.initial.kind != "metadata":
            check_initial(context, variable, variable.initial)
    elif any(word[0] in LINKAGES and word[0] != "external" for word in variable.words):
        context.at_name("NVVM203", variable.at, variable.name, "only external variables have no initialiser")
    _check_common(context, variable)


def _check_used(context: Context, variable: Variable) -> None:
    """`llvm.used` and `llvm.compiler.used` are lists of pointers to symbols (9)."""
    initial, code = variable.initial, "NVVM232"
    if not BUILTIN_GLOBALS.get(variable.name):
        return
    if variable.type.kind != "array" or variable.type.elements[0].kind != "pointer":
        at = _place(context, variable.type, variable.at)
        context.at_name(code, at, variable.type.text, f"'{variable.name}' is an array of pointers")
    elif initial is not None and initial.kind != "aggregate":
        context.at_value(code, initial, f"'{variable.name}' lists pointers")
    elif initial is not None and all(word != "appending" for word, _ in variable.words):
        context.at_name(code, variable.at, variable.name, f"'{variable.name}' has the linkage 'appending'")
    elif initial is not None:
        for value in initial.parts:
            inner = value
            while inner.kind == "expression" and inner.parts:
                inner = inner.parts[0]
            if inner.kind != "global":
                context.at_value(code, value, f"'{variable.name}' lists symbols, and this is none")


def _check_common(context: Context, variable: Variable) -> None:
    if any(word == "common" for word, _ in variable.words) and variable.initial is not None:
        zero = variable.initial.text in ("zeroinitializer", "null", "0", "false")
        if not zero and variable.space != 3:
            context.at_value("NVVM203", variable.initial, "a common variable is zero at first")
        if variable.kind == "constant":
            context.at_name("NVVM203", variable.at, variable.name, "a common variable is no constant")


def _check_parts(context: Context, variable: Variable, builtin: bool) -> None:
    for part, (value, at) in variable.parts.items():
        if part == "comdat":
            context.at_name("NVVM211", at, part, "comdats are not supported")
        elif part == "section" and not (builtin and value == '"llvm.metadata"'):
            context.at_name("NVVM213", at, part, "a section of a variable is not supported",
                            'only "llvm.metadata" is, of the builtin variables')  # fmt: skip
        elif part == "align" and (value <= 0 or value & (value - 1)):
            context.at_name("NVVM111", at, part, f"an alignment is a power of two, not {value}")
        elif part in ("partition", "code_model"):
            context.at_name("NVVM213", at, part, f"'{part}' is not supported")
    for word in variable.attributes:
        context.at_word("NVVM222", word, "attributes of variables are not supported")


def _check_space(context: Context, variable: Variable) -> None:
    space = variable.space
    if space not in _VARIABLE_SPACES and space in SPACES:
        context.at_name("NVVM212", variable.space_at, "addrspace", f"a variable is not in the {SPACES[space]} space",
                        "variables are in global (1), shared (3) or constant (4)")  # fmt: skip
    elif space not in _VARIABLE_SPACES:
        reserved = "reserved for the compiler" if space == 2 or space >= 101 else "not supported"
        context.at_name("NVVM212", variable.space_at, "addrspace", f"address space {space} is {reserved}", _SPACES)
    if space == 3 and variable.initial is not None and variable.initial.text not in ("undef", "poison"):
        context.at_value("NVVM214", variable.initial, "a shared variable has no initial value", "write 'undef'")


def _check_alias(context: Context, variable: Variable) -> None:
    value = variable.initial
    while value is not None and value.kind == "expression" and value.parts:
        value = value.parts[0]
    target = value.text if value is not None else ""
    other = context.module.variables.get(target)
    if other is not None and other.kind == "alias":
        return
    function = context.module.functions.get(target)
    if function is None:
        context.at_name("NVVM216", variable.at, variable.name, "an alias stands for a function, and nothing else")
        return
    if target in kernels(context):
        context.at_name(
            "NVVM216", variable.at, variable.name, f"an alias does not stand for a kernel, and {target} is one"
        )
    if variable.initial is not None:
        check_constant(context, variable.initial)


def kernels(context: Context) -> set[str]:
    """The names of the kernels: by annotation, and by calling convention."""
    found, module = context.kernel_names, context.module
    if found:
        return found
    for name, function in module.functions.items():
        if any(word in KERNEL_WORDS for word, _ in function.words):
            found.add(name)
    annotations = module.named.get("!nvvm.annotations")
    for node_name, _ in annotations.nodes if annotations else ():
        node = module.metadata.get(node_name)
        entity = node.operands[0] if node and node.operands else None
        if node and entity and any(one is not None and one.text == '!"kernel"' for one in node.operands):
            found.add(entity.text)
    return found
