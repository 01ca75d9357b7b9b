"""Machine code of ptxas, to compare what it makes of two spellings."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ptxtools.isa.targets import Target

from .setting import FILES, LINE, TYPED, module_of, where

#: Sections that hold code, constants and initial values.
_CODE = (".text", ".nv.constant", ".nv.global")
_TYPES = {**dict((*FILES, *TYPED)), "q": "b128", "x": "f16", "xx": "f16x2"}
_REGISTER = re.compile(r"%([a-z]+)(\d+)\b")
#: Loaded and stored as another type.
_STORED = {"f16": "b16", "f16x2": "b32"}
#: Registers that the surroundings use: those of a probe have lower numbers.
_POINTER, _WORD = "%rd139", "%r139"


def same(ptxas: str, setting: str, place: str, first: str, second: str) -> bool | str:
    """Whether ptxas makes the same code of two probes; its message where it refuses one."""
    texts = (first, second)
    if place == LINE:
        used = sorted({f"%{name}{number}" for text in texts for name, number in _REGISTER.findall(text)
                       if name in _TYPES})  # fmt: skip
        texts = (_surrounded(first, used), _surrounded(second, used))
    codes = [code(ptxas, setting, place, text) for text in texts]
    refused = [found for found in codes if isinstance(found, str)]
    return refused[0] if refused else codes[0] == codes[1]


def _surrounded(text: str, registers: list[str]) -> str:
    """The statement between loads and stores of its registers, without which it would be left out."""
    before = [f"ld.param.u64 {_POINTER}, [kp];"]
    after = []
    for at, name in enumerate(registers):
        found = _REGISTER.fullmatch(name)
        assert found is not None
        kind, place = _TYPES[found[1]], f"[{_POINTER}+{16 * at}]"
        if kind == "pred":
            before += [f"ld.volatile.global.b32 {_WORD}, {place};", f"setp.ne.b32 {name}, {_WORD}, 0;"]
            after += [f"selp.b32 {_WORD}, 1, 2, {name};", f"st.volatile.global.b32 {place}, {_WORD};"]
        elif kind == "b128":
            before.append(f"ld.global.b128 {name}, {place};")
            after.append(f"st.global.b128 {place}, {name};")
        else:
            stored = _STORED.get(kind, kind)
            before.append(f"ld.volatile.global.{stored} {name}, {place};")
            after.append(f"st.volatile.global.{stored} {place}, {name};")
    return " ".join([*before, text, *after])


def code(ptxas: str, setting: str, place: str, text: str) -> dict[str, bytes] | str:
    """The sections of a cubin by name, or the message of ptxas."""
    lines, _ = module_of(setting, place, [text])
    target = where(setting)[1]
    number = Target(target).number
    arch = "sm_110" + target[6:] if number == 101 else target if number >= 75 else "sm_75"
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "probe.ptx"), Path(folder, "out")
        path.write_text("\n".join(lines))
        done = subprocess.run([ptxas, f"-arch={arch}", "-O1", "-o", str(out), str(path)], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if done.returncode:
            return (done.stderr + done.stdout).partition("\n")[0].rpartition("; ")[2] or "crash"
        return {name: data for name, data in _sections(out.read_bytes()) if name.startswith(_CODE)}


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """The sections of an ELF file of 64 bits."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, of_names = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQ", cubin, table + at * size) for at in range(count)]
    names = cubin[rows[of_names][4] :]
    for name, kind, _, _, offset, length in rows:
        text = names[name : names.index(b"\0", name)].decode()
        yield text, cubin[offset : offset + length] if kind != 8 else length.to_bytes(8, "little")
