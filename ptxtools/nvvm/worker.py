"""The process that calls LLVM, which ends its process on some inputs instead of reporting an error.

A script: it is run by its path, imports nothing of ptxtools for LLVM, and gets the place of llvmlite as its argument.
Standard input has one line of JSON (`Request` in `child.py`), and then the bytes of all modules; standard output gets
one line of JSON, and then the PTX. Whatever LLVM itself has to say goes to standard error.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

#: Terminators and others that LLVM's back end takes and leaves out, or runs as something else.
_NEVER = frozenset({"invoke", "landingpad", "resume", "callbr", "indirectbr", "cleanupret", "catchret", "catchswitch",
                    "cleanuppad", "catchpad"})  # fmt: skip
#: A quoted name or string, or a block address outside of one.
_BLOCK_ADDRESS = re.compile(r'"[^"]*"|\bblockaddress\s*\(([^)]*)\)')
_OWN_TARGET = re.compile(r'"target-(cpu|features)"="[^"]*"')
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
#: A call for the handle of a variable, as LLVM prints it.
_OWN_HANDLE = "llvm.nvvm.texsurf.handle.internal.p"
_NAME = r'@(?:[-\w$.]+|"[^"]*")'
_HANDLE = re.compile(
    r"(?:(?:tail|musttail|notail) )?call i64 @llvm\.nvvm\.texsurf\.handle[\w.]*"
    rf'\(metadata (?:[^",]|"[^"]*")*, (ptr( addrspace\(\d\))? (?:{_NAME}|%[-\w$.]+))\)(?: #\d+)?'
)
#: The declaration of a function that stands for an intrinsic which LLVM does not know.
_INTEGER = re.compile(r"i(\d+)")
_UNKNOWN = re.compile(r"^\.extern \.func\b[^(\n]*(?:\([^)]*\))?\s*(llvm\.[\w.$]+)", re.MULTILINE)
_CPU = re.compile(r'"target-cpu"="(sm_(\d+)[af]?)"')


class Refused(Exception):  # noqa: N818 - what it says about the module
    """kind: what has failed; module: number of the input, -1 for none."""

    def __init__(self, kind: str, message: str, module: int = -1) -> None:
        self.kind, self.message, self.module = kind, message, module
        super().__init__(message)


def main() -> None:
    sys.path[0] = sys.argv[1]
    _no_core_file()
    order = json.loads(sys.stdin.buffer.readline())
    *inputs, shim = [sys.stdin.buffer.read(size) for size in order["sizes"]]
    answer: dict[str, Any]
    try:
        text = _by_libnvvm(order, inputs) if order["libnvvm"] else _lower(order, inputs, shim.decode())
        answer = {"done": True}
    except Refused as error:
        text, answer = "", {"done": False, "kind": error.kind, "message": error.message, "module": error.module}
    except UnicodeDecodeError:  # by llvmlite, of what it gets from LLVM
        message = "a name or text in the module is not UTF-8"
        text, answer = "", {"done": False, "kind": "parse", "message": message, "module": -1}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + text.encode("utf-8", "surrogateescape"))
    sys.stdout.buffer.flush()


def _no_core_file() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass


def _by_libnvvm(order: dict[str, Any], inputs: list[bytes]) -> str:
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from ptxtools.nvvm.libnvvm import LibraryError, lower

    try:
        return lower(order["libnvvm"], order, inputs[::2])
    except LibraryError as error:
        raise Refused(error.kind, error.message, error.module) from None


def _lower(order: dict[str, Any], inputs: list[bytes], shim: str) -> str:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    modules = [_parsed(llvm, inputs[2 * n], text, n) for n, text in enumerate(order["texts"])]
    modules = [_with_locations(llvm, inputs[2 * n + 1]) or module for n, module in enumerate(modules)]
    triple = _triple(modules)
    target = order["target"] or _own_target(modules) or order["default"]
    modules = [_rewritten(llvm, module) for module in modules]
    whole = modules[0]
    for n, module in enumerate(modules[1:], 1):
        try:
            whole.link_in(module)
        except RuntimeError as error:
            raise Refused("link", str(error), n) from None
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=target, features=f"+ptx{order['version']}", opt=order["level"]
    )
    whole.triple = triple
    if not whole.data_layout:
        whole.data_layout = str(machine.target_data)
    _add_shim(llvm, whole, shim, order["shim"])
    _add_libdevice(llvm, whole, order["libdevice"])
    _refuse_what_is_not_lowered(whole)
    _optimise(llvm, whole, machine, order["level"])
    _refuse_odd_variables(whole)
    text: str = machine.emit_assembly(whole)
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        raise Refused("unsupported", f"LLVM has no intrinsic @{unknown[1]}")
    return text


def _with_locations(llvm: Any, data: bytes) -> Any:
    """The module in a text to which locations were added; None for no text, and if they were added in wrong places."""
    try:
        return _parsed(llvm, data, True, 0) if data else None
    except Refused:
        return None


def _parsed(llvm: Any, data: bytes, text: bool, number: int) -> Any:
    try:
        module = llvm.parse_assembly(data.decode("utf-8")) if text else llvm.parse_bitcode(data)
    except RuntimeError as error:
        raise Refused("parse", str(error).partition("\n")[2] or str(error), number) from None
    try:
        module.verify()
    except RuntimeError as error:
        raise Refused("verify", str(error), number) from None
    return module


def _rewritten(llvm: Any, module: Any) -> Any:
    """The module without targets of its functions, and with the handle of a texture or surface by LLVM's own intrinsic,
    since the one with metadata ends the process unless it is spelled as LLVM does."""
    text = str(module)
    changed = _OWN_TARGET.sub(r'"named-\1"', text)
    for space in {found[2] or "" for found in _HANDLE.finditer(changed)}:
        number = space[-2:-1] or "0"
        changed += f"\ndeclare i64 @{_OWN_HANDLE}{number}(ptr{space})\n"
    changed = _HANDLE.sub(lambda m: f"call i64 @{_OWN_HANDLE}{(m[2] or '0')[-2:-1] or '0'}({m[1]})", changed)
    return module if changed == text else llvm.parse_assembly(changed)


def _triple(modules: list[Any]) -> str:
    for n, module in enumerate(modules):
        if module.triple and not module.triple.startswith(("nvptx64-", "nvptx-")):
            raise Refused("triple", f"the module is for '{module.triple}', not for nvptx64-nvidia-cuda", n)
    return next((m.triple for m in modules if m.triple), "nvptx64-nvidia-cuda")


def _own_target(modules: list[Any]) -> str:
    """The newest target that a function's attributes name."""
    found = [match for m in modules for match in _CPU.finditer(str(m))]
    return str(max(found, key=lambda match: (int(match[2]), match[1]))[1]) if found else ""


def _add_shim(llvm: Any, module: Any, text: str, functions: dict[str, list[str]]) -> None:
    """Link the functions that stand for intrinsics which LLVM lacks."""
    wanted = [f for f in module.functions if f.is_declaration and f.name in functions]
    if not wanted:
        return
    for function in wanted:
        name, type_ = functions[function.name]
        if str(function.global_value_type) != type_:
            raise Refused(
                "unsupported", f"@{function.name} is declared as {function.global_value_type}, not as {type_}"
            )
        function.name = name
    library = llvm.parse_assembly(text)
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    for name in {name for name, _ in functions.values()}:
        module.get_function(name).linkage = "internal"


def _add_libdevice(llvm: Any, module: Any, path: str) -> None:
    """Link libdevice, if one of its functions is called. Its functions become internal: they are inlined or dropped."""
    wanted = [f.name for f in module.functions if f.is_declaration and f.name.startswith("__nv_")]
    if not wanted:
        return
    if not path:
        raise Refused("libdevice", f"@{wanted[0]} is a function of libdevice, and no CUDA toolkit was found")
    library = _library(llvm, path)
    library.triple, library.data_layout = module.triple, module.data_layout
    defined = [f.name for f in library.functions if not f.is_declaration]
    missing = sorted(set(wanted) - set(defined))
    if missing:
        raise Refused("libdevice", f"{path} has no function @{missing[0]}")
    try:
        module.link_in(library)
    except RuntimeError as error:
        raise Refused("link", str(error)) from None
    for name in defined:
        module.get_function(name).linkage = "internal"


def _library(llvm: Any, path: str) -> Any:
    try:
        with open(path, "rb") as file:
            data = file.read()
        return llvm.parse_bitcode(data) if data[:4] in _BITCODE else llvm.parse_assembly(data.decode("utf-8"))
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "neither bitcode nor text of LLVM"
        raise Refused("libdevice", f"{path}: {why}") from None


def _refuse_what_is_not_lowered(module: Any) -> None:
    for variable in module.global_variables:
        if variable.name in ("llvm.global_ctors", "llvm.global_dtors"):
            raise Refused("unsupported", f"@{variable.name}: nothing runs before or after a kernel")
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode in _NEVER:
                    raise Refused("unsupported", f"'{instruction.opcode}' in @{function.name} cannot be lowered to PTX")
    address = next((found for found in _BLOCK_ADDRESS.finditer(str(module)) if found[1] is not None), None)
    if address is not None:
        raise Refused("unsupported", f"blockaddress({address[1]}) cannot be lowered to PTX")


def _refuse_odd_variables(module: Any) -> None:
    """LLVM writes types that PTX does not have for them, such as `.u3`; what is in arrays and structs is bytes."""
    for variable in module.global_variables:
        found = _INTEGER.fullmatch(str(variable.global_value_type))
        bits = int(found[1]) if found else 64
        if bits < 64 and bits not in (8, 16, 32) and (bits != 1 or variable.is_declaration):
            raise Refused("unsupported", f"@{variable.name}: a variable of type i{bits} has no PTX")


def _optimise(llvm: Any, module: Any, machine: Any, level: int) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(module, builder)


if __name__ == "__main__":
    main()
