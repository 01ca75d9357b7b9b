"""llvmlite: text IR to object code, object code to addresses. Nothing here knows what the code is for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import llvmlite.binding as llvm

_lock = threading.RLock()
_state: dict[str, object] = {}

#: Levels of LLVM's code generator. At `FULL`, passes that help masked vector code; more of them cost time and gain
#: nothing. `QUICK` makes code that is 3 to 6 times as slow, in less than half of the time.
QUICK, FULL = 0, 1
#: CPUs that have 512-bit instructions but work on 256 bits at a time: what is stored can be loaded again sooner.
_HALF_WIDTH = frozenset({"znver4"})


def host_features() -> frozenset[str]:
    """CPU features of this machine, by LLVM's names."""
    found = _state.get("features")
    if found is None:
        found = frozenset(name for name, on in llvm.get_host_cpu_features().items() if on)
        _state["features"] = found
    return found  # type: ignore[return-value]


def host_cpu() -> str:
    """This machine's CPU, by LLVM's name."""
    return str(_state.get("cpu") or llvm.get_host_cpu_name())


def aim_at(cpu: str, features: Iterable[str]) -> None:
    """Compile for a CPU with only these features; to be called before anything is compiled."""
    if any(name.startswith("machine") for name in _state):
        raise RuntimeError("code was already made for this CPU")
    _state["cpu"], _state["features"] = cpu, frozenset(features)


def attributes(*, widest: bool = False) -> str:
    """Attributes of generated functions: vectors as wide as the machine prefers, or as wide as it has."""
    width = 256 if host_cpu() in _HALF_WIDTH and not widest else 512
    return f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'


def vector_bytes() -> int:
    """Bytes in all vector registers, as generated functions use them."""
    if "avx512f" in host_features():
        return 32 * (32 if host_cpu() in _HALF_WIDTH else 64)
    return 16 * (32 if "avx2" in host_features() else 16)


def _initialise() -> None:
    if "ready" not in _state:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        _state["ready"] = True


def _machine(level: int = FULL) -> llvm.TargetMachine:
    machine = _state.get(f"machine {level}")
    if machine is None:
        features = ",".join(("+" + name) for name in sorted(host_features()))
        if is_x86():
            if "avx2" in host_features() and "avx512f" not in host_features():  # words one by one take longer
                features += ",+fast-gather"
            features += ",-vzeroupper,+cx16"  # every 64-bit x86 of the last 15 years has cmpxchg16b
        target = llvm.Target.from_default_triple()
        machine = target.create_target_machine(
            cpu=host_cpu(), features=features, opt=level, reloc="pic", codemodel="small"
        )
        _state[f"machine {level}"] = machine
    return machine


def is_x86() -> bool:
    return str(llvm.get_default_triple()).startswith(("x86", "i386", "i686"))


def compile_object(ir: str, level: int = FULL) -> bytes:
    """Object code of a module; raises RuntimeError with LLVM's message when the text is no valid IR."""
    with _lock:
        _initialise()
        machine = _machine(level)
        context = llvm.create_context()
        module = llvm.parse_assembly(ir, context)
        module.verify()
        if level != QUICK:
            improve(module, machine)
        return bytes(machine.emit_object(module))


def is_idle() -> bool:
    """Whether no other thread compiles anything."""
    if not _lock.acquire(blocking=False):
        return False
    _lock.release()
    return True


def improve(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Run the passes of code that is compiled well."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)


def version() -> str:
    """What the object code depends on besides the CPU."""
    import llvmlite

    return f"{llvmlite.__version__} {llvm.llvm_version_info} {llvm.get_default_triple()}"


def link_object(data: bytes, symbols: Iterable[str], others: Mapping[str, int] | None = None) -> dict[str, int]:
    """Load object code into this process; addresses of its functions. RuntimeError when it cannot be linked.
    others: functions outside of it that it may call.

    Each object is a library of its own, so two of them may define the same name.
    """
    with _lock:
        _initialise()
        jit = _state.get("jit")
        if jit is None:
            jit = _state["jit"] = llvm.create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)
        libraries: list[object] = _state.setdefault("libraries", [])  # type: ignore[assignment]
        number = _state["number"] = int(_state.get("number", 0)) + 1  # type: ignore[call-overload]
        builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
        for name, address in (others or {}).items():
            builder.import_symbol(name, address)
        names = list(symbols)
        for name in names:
            builder.export_symbol(name)
        library = builder.link(jit, f"ptxtools{number}")
        libraries.append(library)  # keeps the loaded code alive
        return {name: int(library[name]) for name in names}
