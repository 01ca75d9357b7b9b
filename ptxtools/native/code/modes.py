"""Rounding modes of x86 CPUs: lines of IR that depend on the mode, and where a body has to change it.

Arithmetic is emitted as plain IR, which LLVM takes to round to nearest and may move anywhere. A body with an operation
in another mode has all of its arithmetic as constrained intrinsics instead, which LLVM keeps in their places between
changes of the mode (LLVM's reference, "Constrained Floating-Point Intrinsics"). The mode is changed before an operation
that needs another one than that before it, and is to nearest again at the end of every basic block and at every call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: MXCSR with every exception masked, by rounding mode; the engine runs in round-to-nearest.
MXCSR = {"rn": 0x1F80, "rm": 0x3F80, "rp": 0x5F80, "rz": 0x7F80}
#: The intrinsics that load and store it, and a table of its values.
LOAD, STORE, _TABLE = "llvm.x86.sse.ldmxcsr", "llvm.x86.sse.stmxcsr", "rounding_modes"
#: Features of CPUs with this register.
FEATURE = "sse2"
#: Lines in front of which the mode must be to nearest: ends of basic blocks, and calls of anything but intrinsics and
#: empty assembly.
_LEAVES = re.compile(r'\s*(br|ret|switch|unreachable)\b|.*\bcall\b(?!.*@llvm\.|.* asm "")')
_TYPE = re.compile(r"(?:<(\d+) x )?(\w+)>?")
_SHORT = {"half": "f16", "float": "f32", "double": "f64"}

Arguments = Sequence[tuple[str, str]]


def _suffix(type_: str) -> str:
    """A type in the names of intrinsics: "v32f32" for <32 x float>."""
    found = _TYPE.fullmatch(type_)
    assert found is not None, type_
    return (f"v{found[1]}" if found[1] else "") + _SHORT.get(found[2], found[2])


def _call(function: str, result: str, arguments: Arguments) -> str:
    return f"call {result} @{function}({', '.join(f'{type_} {value}' for type_, value in arguments)})"


def _declaration(function: str, result: str, arguments: Arguments) -> str:
    return f"declare {result} @{function}({', '.join(type_ for type_, _ in arguments)})"


class Rounded(str):
    """`name = operation` in plain IR, whose result depends on the rounding mode; `mode`: the one that it needs.

    Operations: fadd fsub fmul fdiv sqrt fma, and the conversions fptrunc sitofp uitofp.
    """

    mode: str
    declaration: tuple[str, str] | None
    _parts: tuple[str, str, str, Arguments]

    @classmethod
    def of(cls, name: str, operation: str, result: str, arguments: Arguments, mode: str) -> Rounded:
        """`arguments`: (type, value) pairs."""
        declaration = None
        if operation in ("sqrt", "fma"):
            function = f"llvm.{operation}.{_suffix(result)}"
            plain = _call(function, result, arguments)
            declaration = (function, _declaration(function, result, arguments))
        elif operation in ("fptrunc", "sitofp", "uitofp"):
            plain = f"{operation} {arguments[0][0]} {arguments[0][1]} to {result}"
        else:
            plain = f"{operation} {result} {', '.join(value for _, value in arguments)}"
        line = cls(f"  {name} = {plain}")
        line.mode, line.declaration, line._parts = mode, declaration, (name, operation, result, arguments)
        return line

    @classmethod
    def assembly(
        cls, name: str, template: str, constraints: str, result: str, arguments: Arguments, mode: str
    ) -> Rounded:
        """An instruction as assembly, which LLVM neither replaces nor swaps operands of."""
        operands = ", ".join(f"{type_} {value}" for type_, value in arguments)
        line = cls(f'  {name} = call {result} asm "{template}", "{constraints}"({operands})')
        line.mode, line.declaration, line._parts = mode, None, (name, "asm", result, arguments)
        return line

    def strict(self) -> tuple[str, tuple[str, str] | None]:
        """The line as a constrained intrinsic, in whatever mode the CPU is; the intrinsic and its declaration."""
        name, operation, result, arguments = self._parts
        if operation == "asm":
            return self.replace(" asm ", " asm sideeffect ", 1), None
        suffix = _suffix(result)
        if operation in ("fptrunc", "sitofp", "uitofp"):
            suffix += "." + _suffix(arguments[0][0])
        function = f"llvm.experimental.constrained.{operation}.{suffix}"
        arguments = [*arguments, ("metadata", '!"round.dynamic"'), ("metadata", '!"fpexcept.ignore"')]
        call = f"  {name} = {_call(function, result, arguments)} strictfp"
        return call, (function, _declaration(function, result, arguments))


def _table() -> str:
    values = ", ".join(f"i32 {value}" for value in MXCSR.values())
    return f"@{_TABLE} = private unnamed_addr constant [{len(MXCSR)} x i32] [{values}], align 16"


def entrance(name: str, inside: str, features: Iterable[str]) -> str:
    """A function (ptr) -> i32 that calls another one in round-to-nearest and with subnormals, whatever the mode of its
    caller."""
    head = f"define i32 @{name}(ptr %ctx) #1 {{"
    call = f"  %answer = call i32 @{inside}(ptr %ctx)"
    if FEATURE not in features:
        return f"{head}\n{call}\n  ret i32 %answer\n}}"
    return f"""\
{head}
  %outside = alloca i32
  call void @{STORE}(ptr %outside)
  call void @{LOAD}(ptr @{_TABLE})
{call}
  call void @{LOAD}(ptr %outside)
  ret i32 %answer
}}
declare void @{STORE}(ptr)
declare void @{LOAD}(ptr)
{_table()}"""


def changes(lines: Sequence[str]) -> bool:
    """Whether some line needs another mode than to nearest."""
    return any(isinstance(line, Rounded) and line.mode != "rn" for line in lines)


def settle(lines: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The lines of a body with changes of the mode inserted, and the declarations that they need."""
    declarations = {LOAD: f"declare void @{LOAD}(ptr)", "@" + _TABLE: _table()}
    done: list[str] = []
    now = "rn"
    for line in [*lines, "ret"]:
        wanted = line.mode if isinstance(line, Rounded) else "rn" if _LEAVES.match(line) else now
        if wanted != now:
            place = 4 * list(MXCSR).index(wanted)
            done.append(f"  call void @{LOAD}(ptr getelementptr (i8, ptr @{_TABLE}, i64 {place}))")
            now = wanted
        if isinstance(line, Rounded):
            text, declaration = line.strict()
            if declaration is not None:
                declarations.setdefault(*declaration)
            done.append(text)
        else:
            done.append(line)
    return done[:-1], declarations
