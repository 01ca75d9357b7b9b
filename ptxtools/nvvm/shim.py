"""Intrinsics of NVVM IR that LLVM lacks or has otherwise, written as functions of LLVM's own intrinsics.

A module that declares such an intrinsic gets its function instead, which is inlined before anything is optimised. An
operand that says what to do is a `switch` there, which constants decide; with a value that the specification does not
have, the thread traps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ptxtools.records import dataclass

from .intrinsics import Intrinsic, intrinsics

#: The prefix of the functions.
OURS = "ptxtools.nvvm."
#: What the names of these intrinsics begin with, behind the common prefix.
_LACKED = re.compile(
    r"llvm\.nvvm\.(?:cluster\.barrier|membar|isspacep\.cluster_shared|isspacep\.grid_const|shfl\.sync\.i32|vote\.sync|"
    r"match\.all\.sync\.i(?:32|64)|hmma\..*)"
)
_MENTIONED = re.compile(rb"llvm\.nvvm\.[\w.]+")
_LAYOUTS = ("row", "col")


@dataclass(frozen=True, slots=True)
class Shim:
    """text: a module with the functions; functions: name and type of the function for each intrinsic."""

    text: str
    functions: dict[str, tuple[str, str]]


def mentioned(text: bytes) -> frozenset[str]:
    """The names in a text that may be those of such intrinsics."""
    return frozenset(name.decode() for name in set(_MENTIONED.findall(text)) if _LACKED.fullmatch(name.decode()))


@cache
def shim(names: frozenset[str] | None = None) -> Shim:
    """The functions for these intrinsics, or for all."""
    functions, parts, used = {}, [], dict[str, str]()
    if names is not None and not names:
        return Shim("", {})
    for form in intrinsics().values():
        if not _LACKED.fullmatch(form.name) or not (names is None or names & {form.name, form.modern_name}):
            continue
        name = OURS + form.modern_name.removeprefix("llvm.nvvm.")
        types = [_opaque(type_) for type_ in form.parameters]
        functions[form.name] = functions[form.modern_name] = (name, f"{_spaced(form.result)} ({', '.join(types)})")
        parameters = ", ".join(f"{type_} %{n}" for n, type_ in enumerate(types))
        body = "\n".join(_Body(form, types, used).lines())
        parts.append(f"define {form.result} @{name}({parameters}) alwaysinline convergent {{\n{body}\n}}")
    parts += [f"declare {kind.partition('(')[0]}@{name}({kind.partition('(')[2]}" for name, kind in used.items()]
    return Shim("\n".join(parts) + "\n", functions)


def _opaque(type_: str) -> str:
    return re.sub(r"^\w+( addrspace\(\d\))?\*$", r"ptr\1", type_)


def _spaced(type_: str) -> str:
    """A type as LLVM prints it."""
    return f"{{ {type_[1:-1]} }}" if type_[0] == "{" else type_


class _Body:
    """The instructions of one function."""

    def __init__(self, form: Intrinsic, types: list[str], used: dict[str, str]) -> None:
        self._form, self._types, self._used = form, types, used
        self._count = 0

    def lines(self) -> Iterator[str]:
        name = self._form.name.removeprefix("llvm.nvvm.")
        if name.startswith("hmma."):
            yield from self._hmma(*name.split(".")[1:])
        elif name == "membar":
            calls = {0: "membar.gl", 1: "membar.cta", 2: "membar.sys", 4: "fence.sc.cluster"}
            yield from self._switch("%0", {value: self._plain(callee) for value, callee in calls.items()})
        elif name == "cluster.barrier":
            calls = {0: "arrive", 1: "wait", 16: "arrive.relaxed"}
            which = {value: self._plain(f"barrier.cluster.{callee}") for value, callee in calls.items()}
            yield from self._switch("%0", which)
        elif name == "isspacep.cluster_shared":
            yield f"  %r = {self._call('isspacep.shared.cluster', 'i1', ['ptr %0'])}"
            yield "  ret i1 %r"
        elif name == "isspacep.grid_const":
            code = "{ .reg .pred p; isspacep.param p, $1; selp.u32 $0, 1, 0, p; }"
            yield f'  %i = call i32 asm "{code}", "=r,l"(ptr %0)'
            yield "  %r = icmp ne i32 %i, 0"
            yield "  ret i1 %r"
        elif name == "shfl.sync.i32":
            operands = ["i32 %0", "i32 %2", "i32 %3", "i32 %4"]
            modes = {n: f"shfl.sync.{mode}.i32p" for n, mode in enumerate(("idx", "up", "down", "bfly"))}
            yield from self._switch("%1", {n: self._returned(callee, operands) for n, callee in modes.items()})
        elif name == "vote.sync":
            yield from self._switch(
                "%1", {n: self._vote(mode) for n, mode in enumerate(("all", "any", "uni", "ballot"))}
            )
        else:
            yield from self._returned(f"{name}p", [f"{type_} %{n}" for n, type_ in enumerate(self._types)])

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _call(self, callee: str, result: str, operands: list[str]) -> str:
        types = ", ".join(operand.rpartition(" ")[0] for operand in operands)
        self._used[f"llvm.nvvm.{callee}"] = f"{result} ({types})"
        return f"call {result} @llvm.nvvm.{callee}({', '.join(operands)})"

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _switch(self, value: str, cases: dict[int, list[str]]) -> Iterator[str]:
        """One case for each value; all others trap."""
        self._used["llvm.trap"] = "void ()"
        yield f"  switch i32 {value}, label %never [ {' '.join(f'i32 {n}, label %case{n}' for n in cases)} ]"
        for n, lines in cases.items():
            yield f"case{n}:"
            yield from lines
        yield from ("never:", "  call void @llvm.trap()", "  unreachable")

    def _plain(self, callee: str) -> list[str]:
        return [f"  {self._call(callee, 'void', [])}", "  ret void"]

    def _returned(self, callee: str, operands: list[str]) -> list[str]:
        name, result = self._name(), self._form.result
        return [f"  {name} = {self._call(callee, result, operands)}", f"  ret {result} {name}"]

    def _vote(self, mode: str) -> list[str]:
        """The result is the mask for ballot, the truth value for the others; the rest of it is undefined."""
        element, type_ = (0, "i32") if mode == "ballot" else (1, "i1")
        first, whole = self._name(), self._name()
        return [
            f"  {first} = {self._call(f'vote.{mode}.sync', type_, ['i32 %0', 'i1 %2'])}",
            f"  {whole} = insertvalue {{i32, i1}} zeroinitializer, {type_} {first}, {element}",
            f"  ret {{i32, i1}} {whole}",
        ]

    # --- matrices (15.6.5) --------------------------------------------------------------------------------------------

    def _hmma(self, shape: str, what: str, *rest: str) -> Iterator[str]:
        space = self._types[0][3:]
        if what == "mma":
            yield from self._multiply(shape, *rest)
            return
        fragment, type_ = rest[0], "f32" if rest[1] == "f32" else "f16"
        suffix = f"stride.{type_}.p{space[-2] if space else 0}"
        make = self._load if what == "ld" else self._store
        kind = f"load.{fragment}" if what == "ld" else "store.d"
        cases = {n: make(f"wmma.{shape}.{kind}.{layout}.{suffix}") for n, layout in enumerate(_LAYOUTS)}
        yield from self._switch("%2", cases)

    def _load(self, callee: str) -> list[str]:
        return self._repacked(callee, [f"{self._types[0]} %0", "i32 %1"])

    def _store(self, callee: str) -> list[str]:
        lines: list[str] = []
        values = self._unpacked(range(3, len(self._types)), lines)
        return [*lines, f"  {self._call(callee, 'void', [f'{self._types[0]} %0', *values, 'i32 %1'])}", "  ret void"]

    def _multiply(self, shape: str, result: str, added: str) -> Iterator[str]:
        yield "  %saturates = icmp ne i32 %1, 0"
        yield "  br i1 %saturates, label %never, label %plain"
        yield "plain:"
        lines: list[str] = []
        operands = self._unpacked(range(2, len(self._types)), lines)
        yield from lines
        layouts = [f"{a}.{b}" for a in _LAYOUTS for b in _LAYOUTS]
        cases = {
            n: self._repacked(f"wmma.{shape}.mma.{layout}.{result}.{added}", operands)
            for n, layout in enumerate(layouts)
        }
        yield from self._switch("%0", cases)

    def _unpacked(self, numbers: range, lines: list[str]) -> list[str]:
        """Operands as LLVM takes them: a pair of halves is a vector there."""
        found = []
        for n in numbers:
            if self._types[n] == "i32":
                name = self._name()
                lines.append(f"  {name} = bitcast i32 %{n} to <2 x half>")
                found.append(f"<2 x half> {name}")
            else:
                found.append(f"{self._types[n]} %{n}")
        return found

    def _repacked(self, callee: str, operands: list[str]) -> list[str]:
        """A call, and its result as NVVM IR has it."""
        result = self._form.result
        if "float" in result:
            return self._returned(callee, operands)
        whole, made = self._name(), "poison"
        count = result.count("i32")
        theirs = f"{{{', '.join(['<2 x half>'] * count)}}}"
        lines = [f"  {whole} = {self._call(callee, theirs, operands)}"]
        for n in range(count):
            pair, word, next_ = self._name(), self._name(), self._name()
            lines += [
                f"  {pair} = extractvalue {theirs} {whole}, {n}",
                f"  {word} = bitcast <2 x half> {pair} to i32",
                f"  {next_} = insertvalue {result} {made}, i32 {word}, {n}",
            ]
            made = next_
        return [*lines, f"  ret {result} {made}"]
