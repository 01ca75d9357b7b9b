"""The contents of a container, as plain data and as text (`ptx-as --info`)."""

from __future__ import annotations

from typing import Any

from ptxtools.diagnostics import shown
from ptxtools.ir import Alias, Directive, Function, Module, Pragma, Variable

from . import elf, note
from .layout import REGISTER_CLASSES, Descriptor, alignment_of, describe, size_of
from .lazy import LazyFunction
from .reader import Container

_SECTION_TYPES = {
    elf.SHT_PROGBITS: "PROGBITS", elf.SHT_SYMTAB: "SYMTAB", elf.SHT_STRTAB: "STRTAB", elf.SHT_RELA: "RELA",
    elf.SHT_NOTE: "NOTE", elf.SHT_NOBITS: "NOBITS", elf.SHT_SYMTAB_SHNDX: "SYMTAB SECTION INDICES",
}  # fmt: skip


def info(data: bytes, name: str = "<container>") -> dict[str, Any]:
    """The contents of the container `data`, ready for JSON. Sizes and offsets are in bytes. Raises PtxError."""
    container = Container(data, name)
    return container.guarded(lambda: _info(container, len(data)))


def _info(container: Container, size: int) -> dict[str, Any]:
    module, notes = container.module(), container.notes
    major, minor = (int.from_bytes(notes[note.NT_FORMAT][1][n : n + 2], "little") for n in (0, 2))
    functions = [f for f in module.functions if f.body is not None]
    compressed = any(s.flags & elf.SHF_COMPRESSED for s in container.file.sections)
    sections = [_section(s) for s in container.file.sections[1:]]
    return {
        "file": container.name,
        "size": size,
        "format": f"{major}.{minor}",
        "tool": notes[note.NT_TOOL][1].rstrip(b"\0").decode("utf-8", "replace") if note.NT_TOOL in notes else "",
        "sha256": notes[note.NT_SHA256][1].hex(),
        "ptx": "{}.{}".format(*module.version),
        "target": module.target,
        "target_options": list(module.target_options),
        "address_size": module.address_size,
        "source": container.original_name(),
        "compressed": compressed,
        "entries": [_function(f) for f in functions if f.kind == "entry"],
        "functions": [_function(f) for f in functions if f.kind != "entry"],
        "variables": [_variable(v) for v in module.variables if v.linkage != "extern"],
        "undefined": undefined(module),
        "sections": sections,
        "symbols": len(container.symbols) - 1,
    }


def descriptor_of(function: Function) -> Descriptor:
    """The descriptor of a function, as stored in its container, or computed."""
    return function.descriptor if isinstance(function, LazyFunction) else describe(function)


def _function(function: Function) -> dict[str, Any]:
    d = descriptor_of(function)
    return {
        "name": function.name,
        "demangled": shown(function.name),
        "linkage": function.linkage,
        "params": [_parameter(p, place) for p, place in zip(function.params, d.params, strict=True)],
        "param_bytes": d.param_bytes,
        "returns": [_parameter(p, (0, size_of(p), alignment_of(p))) for p in function.returns],
        "registers": {name: d.registers[name] for name in REGISTER_CLASSES},
        "shared": d.shared,
        "local": d.local,
        "const": d.const,
        "instructions": d.instructions,
        "directives": [_directive(item) for item in function.directives],
    }


def _parameter(p: Variable, place: tuple[int, int, int]) -> dict[str, Any]:
    offset, size, alignment = place
    pointer = None if p.ptr is None else {"space": p.ptr[0] or "generic", "alignment": p.ptr[1]}
    return {"name": p.name, "type": p.type, "space": p.space, "dims": list(p.dims), "offset": offset, "size": size,
            "alignment": alignment, "pointer": pointer}  # fmt: skip


def _variable(v: Variable) -> dict[str, Any]:
    return {"name": v.name, "space": v.space, "type": v.type, "vector": v.vector, "dims": list(v.dims),
            "size": size_of(v), "alignment": alignment_of(v), "linkage": v.linkage,
            "initialised": v.init is not None}  # fmt: skip


def _directive(item: Directive | Pragma) -> str:
    if isinstance(item, Pragma):
        return ".pragma " + ", ".join(f'"{text}"' for text in item.strings)
    return f"{item.name} {', '.join(map(str, item.args))}".strip()


def _section(section: elf.Section) -> dict[str, Any]:
    kind = _SECTION_TYPES.get(section.type, str(section.type))
    return {"name": section.name, "type": kind, "offset": section.offset, "size": section.size}


def undefined(module: Module) -> list[str]:
    """Names that are declared but not defined, in order."""
    defined = {f.name for f in module.functions if f.body is not None}
    defined |= {v.name for v in module.variables if v.linkage != "extern"}
    defined |= {item.name for item in module.items if isinstance(item, Alias)}
    declared = [f.name for f in module.functions] + [v.name for v in module.variables]
    return [name for name in dict.fromkeys(declared) if name not in defined]


# --- as text ----------------------------------------------------------------------------------------------------------


def describe_info(data: dict[str, Any]) -> str:
    """The text of `--info`."""
    options = "".join(f", {o}" for o in data["target_options"])
    lines = [
        f"{data['file']}: container, {data['size']} bytes, format {data['format']}, {data['tool']}",
        f"  PTX {data['ptx']}, target {data['target']}{options}, {data['address_size']}-bit addresses",
        f"  sha256 {data['sha256']}",
    ]
    if data["source"] is not None:
        lines.append(f"  line numbers of {data['source']}")
    for kind, title in (("entries", "entry"), ("functions", "function")):
        for function in data[kind]:
            lines += _function_lines(title, function)
    if data["variables"]:
        lines += ["", "variables"]
        lines += [f"  {_declared(v)}  {v['size']} bytes, alignment {v['alignment']}{_notes(v)}"
                  for v in data["variables"]]  # fmt: skip
    if data["undefined"]:
        lines += ["", "undefined", *(f"  {name}" for name in data["undefined"])]
    lines += ["", "sections", "      offset       size  type      name"]
    lines += [f"  {s['offset']:10}  {s['size']:9}  {s['type'][:8]:8}  {s['name']}" for s in data["sections"]]
    return "\n".join(lines) + "\n"


def _function_lines(title: str, f: dict[str, Any]) -> list[str]:
    lines = ["", f"{title} {f['name']}" + (f" (.{f['linkage']})" if f["linkage"] else "")]
    if f["demangled"] != f["name"]:
        lines.append(f"  {f['demangled']}")
    for p in f["params"]:
        pointer = p["pointer"]
        more = "" if pointer is None else f", pointer to {pointer['space']}"
        if pointer is not None and pointer["alignment"]:
            more += f" aligned to {pointer['alignment']}"
        lines.append(f"  parameter {_declared(p)}  offset {p['offset']}, {p['size']} bytes, "
                     f"alignment {p['alignment']}{more}")  # fmt: skip
    registers = ", ".join(f"{count} {name}" for name, count in f["registers"].items() if count)
    lines.append(f"  registers: {registers or 'none'}")
    memory = [f"{f[space]} {space}" for space in ("shared", "local", "const") if f[space]]
    lines.append(f"  bytes: {f['param_bytes']} param" + "".join(f", {m}" for m in memory))
    lines.append(f"  {f['instructions']} instruction{'s' * (f['instructions'] != 1)}")
    lines += [f"  {directive}" for directive in f["directives"]]
    return lines


def _declared(v: dict[str, Any]) -> str:
    dims = "".join(f"[{'' if d is None else d}]" for d in v["dims"])
    vector = f".v{v['vector']} " if v.get("vector", 1) != 1 else ""
    return f"{vector}.{v['space']} .{v['type']} {v['name']}{dims}"


def _notes(v: dict[str, Any]) -> str:
    return (f", .{v['linkage']}" if v["linkage"] else "") + (", initialised" if v["initialised"] else "")
