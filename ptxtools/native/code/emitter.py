"""LLVM IR as text: fresh names, lines of one function body at a time, declarations of the module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import modes


class Emitter:
    """Collects the IR of one module.

    `features` are the CPU features that generated code may use ("avx512f", "avx512dq", "f16c", ...), as
    `llvmlite.binding.get_host_cpu_features()` names them; an empty set asks for code that runs anywhere.
    Body lines collect in `lines`: `take()` hands them over and starts the next body. Declarations and constant tables
    belong to the module and are emitted once, however often they are asked for.
    """

    def __init__(self, features: Iterable[str] = ()) -> None:
        self.features = frozenset(features)
        self.lines: list[str] = []
        self._names = 0
        self._module: dict[str, str] = {}

    def name(self, hint: str = "v") -> str:
        """A fresh local name, "%v17"."""
        self._names += 1
        return f"%{hint}{self._names}"

    def value(self, expression: str) -> str:
        """Emit `%name = expression` and return the name."""
        name = self.name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def rounded(self, operation: str, result: str, arguments: Sequence[tuple[str, str]], mode: str) -> str:
        """Emit arithmetic that depends on the rounding mode, see `modes.Rounded`, and return its name."""
        name = self.name()
        line = modes.Rounded.of(name, operation, result, arguments, mode)
        if line.declaration is not None:
            self.declare(*line.declaration)
        self.lines.append(line)
        return name

    def assembly(
        self, template: str, constraints: str, result: str, arguments: Sequence[tuple[str, str]], mode: str
    ) -> str:
        """Emit an instruction that depends on the rounding mode as assembly; return its name."""
        name = self.name()
        self.lines.append(modes.Rounded.assembly(name, template, constraints, result, arguments, mode))
        return name

    def line(self, text: str) -> None:
        """Emit an instruction without a result, or a label ("next:")."""
        self.lines.append(text if text.endswith(":") else f"  {text}")

    def take(self) -> str:
        """The body emitted so far; the next body starts empty."""
        lines, self.lines = self.lines, []
        if modes.changes(lines):
            lines, declarations = modes.settle(lines)
            for symbol, text in declarations.items():
                self.declare(symbol, text)
        return "\n".join(lines)

    def declare(self, symbol: str, text: str) -> None:
        """A module-level line for `symbol`, once."""
        self._module.setdefault(symbol, text)

    def call(self, function: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an external function or intrinsic, declared on first use; arguments are (type, value) pairs."""
        types = ", ".join(type_ for type_, _ in arguments)
        self.declare(function, f"declare {result} @{function}({types})")
        operands = ", ".join(f"{type_} {value}" for type_, value in arguments)
        return self.value(f"call {result} @{function}({operands})")

    def constant_table(self, name: str, element: str, entries: Sequence[int]) -> str:
        """A private constant array `[n x element]`, aligned to a cache line; returns its global name."""
        body = ", ".join(f"{element} {entry}" for entry in entries)
        text = f"@{name} = private unnamed_addr constant [{len(entries)} x {element}] [{body}], align 64"
        self.declare("@" + name, text)
        return "@" + name

    @property
    def declarations(self) -> str:
        """Everything that stands at module level: declarations and constant tables."""
        return "\n".join(self._module.values())
