"""Machine code of the other modules: made by llvmlite once, kept in the cache directory, and called without llvmlite,
whose import takes longer than the check of 1 MB. Where that does not work, there is none."""

from __future__ import annotations

import ctypes
import marshal
import mmap
import os
import platform
import sys
from collections.abc import Callable, Iterable
from functools import cache as once
from typing import TYPE_CHECKING, Any

from ptxtools import cache
from ptxtools.records import NamedTuple

from . import flow, nodes, scan

if TYPE_CHECKING:
    from .notation import Part

#: A processor that every one of its kind can do the work of.
_CPU = "x86-64"
_MOST_BYTES = 1 << 20


class Code(NamedTuple):
    """The functions, which take what those of Python take."""

    scan: Callable[..., None]
    flow: Callable[..., None]
    nodes: Callable[..., None]
    groups: Callable[..., None]


#: For each function its module, and those whose functions are called.
_MODULES = {"scan": (scan,), "flow": (flow,), "nodes": (nodes, scan), "groups": (nodes, scan)}


def code(may_compile: bool) -> Code | None:
    """The functions in machine code; None where there are none. may_compile: whether they may be made, which takes a
    few tenths of a second."""
    found = _loaded()
    if found is None and may_compile and _compiled():
        _loaded.cache_clear()
        found = _loaded()
    return found


@once
def _loaded() -> Code | None:
    if sys.platform != "linux" or platform.machine() != "x86_64" or sys.byteorder != "little":
        return None
    data = cache.read_sealed(_path(), _key(), _MOST_BYTES)
    if data is None:
        return None
    try:
        return Code(*map(_function, marshal.loads(data)))
    except (OSError, ValueError, TypeError, EOFError):  # no memory that can be executed
        return None


@once
def _compiled() -> bool:
    """Make the code. Whether a later process finds it, too: what cannot be kept is not worth the time."""
    if sys.platform != "linux" or not cache.write_sealed(_path(), "", b""):
        return False
    try:
        parts = [
            machine_code([(_text(module), vars(module)) for module in modules], name)
            for name, modules in _MODULES.items()
        ]
    except (ImportError, OSError, RuntimeError, ValueError):
        return False
    return cache.write_sealed(_path(), _key(), marshal.dumps(parts))


def _path() -> str:
    return os.path.join(cache.directory(), "nvvm-lint", "code.bin")


def _key() -> str:
    here = os.path.dirname(__file__)
    return repr([sorted(cache.scan(folder)) for folder in (here, os.path.join(here, os.pardir, "rules"))])


def _text(module: object) -> str:
    with open(str(vars(module)["__file__"]), encoding="utf-8") as file:
        return file.read()


def machine_code(parts: Iterable[Part], entry: str) -> bytes:
    """What a function of modules is in machine code, with all that it calls; it begins with the function. Raises
    ValueError if it is not whole without other things, RuntimeError for what LLVM refuses."""
    import llvmlite.binding as llvm

    from .notation import module_ir

    text = module_ir(parts, entry)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu=_CPU, features="", opt=1, reloc="pic", codemodel="small")
    context = llvm.create_context()  # must live as long as the module
    made = llvm.parse_assembly(text, context)
    made.verify()
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(made, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))
    file = llvm.ObjectFileRef.from_data(machine.emit_object(made))
    found = {one.name(): bytes(one.data()) for one in file.sections() if one.size()}
    if any(name.startswith((b".rela.text", b".rodata")) for name in found):
        raise ValueError("the code is not whole")
    return found[b".text"]


def _function(code: bytes) -> Callable[..., None]:
    """A function of its code, which stays in memory."""
    memory = mmap.mmap(-1, len(code), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(address, len(memory), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "mprotect")
    _kept.append(memory)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64)
    function = prototype(address)

    def call(*given: Any) -> None:
        function(*map(_argument, given))

    return call


_kept: list[mmap.mmap] = []


def _argument(given: Any) -> object:
    """A number, bytes, or a buffer that can be written, as C takes it."""
    if isinstance(given, int):
        return ctypes.c_int64(given)
    if isinstance(given, bytes):
        return ctypes.c_char_p(given)
    return ctypes.byref(ctypes.c_char.from_buffer(given)) if len(given) else None
