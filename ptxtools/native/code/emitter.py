"""Writes LLVM IR: the only builder of native code.

It gives fresh names, knows the structures that native code and Python share, and emits common patterns: a scalar in all
lanes, a permutation, a loop, the jump to the next record. Text in `notation` is another way to write the same: each of
its lines is a call of a method here (`expand`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ptxtools.program.program import LANES

from . import flags, modes, notation
from .structures import WARP, located

#: A constant vector without bits.
ZERO = "zeroinitializer"


def splat(element: str, literal: object) -> str:
    """A constant with the same element everywhere, in a vector of any length."""
    return f"splat ({element} {literal})"


def vector(element: str, lanes: int = LANES) -> str:
    """The type of a vector."""
    return f"<{lanes} x {element}>"


def suffix_of(kind: str) -> str:
    """The type of an operand in the name of an intrinsic: "v16f32" for <16 x float>."""
    count, _, element = kind.strip("<>").rpartition(" x ")
    short = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}.get(element, element)
    return f"v{count}{short}" if count else short


def shuffled(kind: str, order: Iterable[int], first: str, second: str = "poison") -> str:
    """The instruction that takes these elements of two vectors, concatenated, in this order."""
    mask = ", ".join(f"i32 {i}" for i in order)
    return f"shufflevector {kind} {first}, {kind} {second}, {vector('i32', mask.count(',') + 1)} <{mask}>"


class Emitter:
    """Collects the IR of one module.

    `features` are the CPU features that generated code may use ("avx512f", "avx512dq", "f16c", ...), as
    `llvmlite.binding.get_host_cpu_features()` names them; an empty set asks for code that runs anywhere.
    brief: code that LLVM makes machine code of quickly, without paths that only save time.
    Body lines collect in `lines`: `take()` hands them over and starts the next body. Declarations and constant tables
    belong to the module and are emitted once, however often they are asked for.
    """

    def __init__(self, features: Iterable[str] = (), *, brief: bool = False) -> None:
        self.features, self.brief = frozenset(features), brief
        self.lines: list[str] = []
        self._entry: list[str] = []
        self._names = 0
        self._module: dict[str, str] = {}

    # --- lines --------------------------------------------------------------------------------------------------------

    def name(self, hint: str = "v") -> str:
        """A fresh local name, "%v17"."""
        self._names += 1
        return f"%{hint}{self._names}"

    def value(self, expression: str, name: str = "") -> str:
        """Emit `%name = expression` and return the name, a fresh one unless it is given."""
        name = name or self.name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def line(self, text: str) -> None:
        """Emit an instruction without a result, a label ("next:"), or a line outside of functions."""
        outside = text.endswith(":") or text.startswith(("define ", "declare ", "@", "}"))
        self.lines.append(text if outside else f"  {text}")

    def expand(self, text: str) -> None:
        """Emit lines in `notation`; comments behind " ;" are left out."""
        for line in text.splitlines():
            stripped = line.split(" ;")[0].strip()
            if stripped and not notation.expand(self, stripped):
                self.line(notation.with_constants(stripped))

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

    # --- structures ---------------------------------------------------------------------------------------------------

    def address(self, field: str, base: str = "", name: str = "") -> str:
        """Address of a field, "warp.pc"; base: the structure's, if that is not what it is called by (`notation`)."""
        offset, _ = located(field)
        return self.value(f"getelementptr i8, ptr {base or notation.base_of(field)}, i64 {offset}", name)

    def field(self, field: str, base: str = "", name: str = "") -> str:
        """The value of a field."""
        return self.value(f"load {located(field)[1]}, ptr {self.address(field, base)}", name)

    def set_field(self, field: str, value: str, base: str = "") -> None:
        self.line(f"store {located(field)[1]} {value}, ptr {self.address(field, base)}")

    def item(self, field: str, index: str, base: str = "", name: str = "") -> str:
        """Address of an element of a field that is an array or a vector."""
        element = located(field)[1].strip("<[]>").rpartition(" x ")[2]
        return self.value(f"getelementptr {element}, ptr {self.address(field, base)}, i32 {index}", name)

    def depth(self, frame: str, name: str = "") -> str:
        """Frame offset of a frame's address."""
        where, warp = (self.value(f"ptrtoint ptr {pointer} to i64") for pointer in (frame, "%warp"))
        distance = self.value(f"sub i64 {self.value(f'sub i64 {where}, {warp}')}, {WARP.size}")
        return self.value(f"trunc i64 {distance} to i32", name)

    def guarded(self, mask: str, guard: str = "", name: str = "") -> str:
        """Lanes of a mask whose guard holds: a slot, negated where the lowest bit is set. 0: there is none."""
        guard = guard or self.field("rec.guard")
        offset = self.value(f"and i32 {guard}, -2")
        flags = self.value(f"load i32, ptr {self.value(f'getelementptr i8, ptr %fp, i32 {offset}')}")
        turned = self.value(f"sub i32 0, {self.value(f'and i32 {guard}, 1')}")
        held = self.value(f"xor i32 {flags}, {turned}")
        none = self.value(f"icmp eq i32 {guard}, 0")
        return self.value(f"and i32 {self.value(f'select i1 {none}, i32 -1, i32 {held}')}, {mask}", name)

    # --- memory -------------------------------------------------------------------------------------------------------

    def element(self, kind: str, base: str, *parts: str) -> str:
        """Address of the element at the sum of some indices (i64)."""
        index = parts[0]
        for part in parts[1:]:
            index = self.value(f"add i64 {index}, {part}")
        return self.value(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def store_masked(self, kind: str, value: str, pointer: str, align: int, lanes: str) -> None:
        """Store the elements of a vector whose bits in `lanes` are set, where the machine has an instruction for it;
        else with what is there, which nobody else writes meanwhile."""
        flags = vector("i1", int(kind[1:].split()[0]))
        if "avx512f" in self.features and ("x i16" not in kind or "avx512bw" in self.features):
            name = f"llvm.masked.store.{suffix_of(kind)}.p0"
            self.declare(name, f"declare void @{name}({kind}, ptr, {flags})")
            self.line(f"call void @{name}({kind} {value}, ptr align {align} {pointer}, {flags} {lanes})")
            return
        old = self.value(f"load {kind}, ptr {pointer}, align {align}")
        new = self.value(f"select {flags} {lanes}, {kind} {value}, {kind} {old}")
        self.line(f"store {kind} {new}, ptr {pointer}, align {align}")

    def room(self, kind: str) -> str:
        """Memory on the stack for one value; only in functions that `function` finishes."""
        name = self.name()
        self._entry.append(f"  {name} = alloca {kind}, align 64")
        return name

    # --- vectors ------------------------------------------------------------------------------------------------------

    def spread(self, element: str, scalar: str, lanes: int = LANES, name: str = "") -> str:
        """A run-time scalar in every lane."""
        kind = vector(element, lanes)
        first = self.value(f"insertelement {kind} poison, {element} {scalar}, i32 0")
        return self.value(f"shufflevector {kind} {first}, {kind} poison, {vector('i32', lanes)} {ZERO}", name)

    @property
    def unmasked(self) -> bool:
        """Whether vectors are of 256 bits and flags of lanes have no registers, for code that is compiled well."""
        return "avx2" in self.features and "avx512f" not in self.features and not self.brief

    def shuffle(self, kind: str, order: Iterable[int], first: str, second: str = "poison", name: str = "") -> str:
        """These elements of two vectors, concatenated, in this order."""
        return self.value(shuffled(kind, order, first, second), name)

    @property
    def rounds(self) -> bool:
        """Whether conversions of 16 elements can round as they say."""
        return "avx512f" in self.features

    def toward_zero(self, whole: str) -> str:
        """<16 x i32> as f32, cut off; where nothing `rounds`, of numbers whose size is at most 2**31 - 2**7."""
        words, singles = vector("i32", 16), vector("float", 16)
        if self.rounds:
            operation = "llvm.x86.avx512.sitofp.round.v16f32.v16i32"
            return self.call(operation, singles, [(words, whole), ("i32", "11")])
        size = self.call(f"llvm.abs.{suffix_of(words)}", words, [(words, whole), ("i1", "true")])
        near = self.value(f"sitofp {words} {size} to {singles}")
        above = self.value(f"icmp sgt {words} {self.value(f'fptosi {singles} {near} to {words}')}, {size}")
        less = self.value(f"sext {vector('i1', 16)} {above} to {words}")
        bits = self.value(f"add {words} {self.value(f'bitcast {singles} {near} to {words}')}, {less}")
        sign = self.value(f"and {words} {whole}, {splat('i32', -(1 << 31))}")
        return self.value(f"bitcast {words} {self.value(f'or {words} {bits}, {sign}')} to {singles}")

    def part(self, element: str, lanes: int, whole: str, first: int, count: int) -> str:
        """Neighbouring elements of a vector, from number `first` on."""
        name = self.shuffle(vector(element, lanes), range(first, first + count), whole)
        if element == "i1" and lanes == LANES:
            self.lines[-1] = flags.Part.of(self.lines[-1], name, whole, first, count)
        return name

    def concatenate(self, element: str, parts: Sequence[str], lanes: int) -> str:
        """Vectors concatenated: a power of two of them."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(vector(element, lanes), range(2 * lanes), *pair) for pair in pairs]
            lanes *= 2
        return parts[0]

    def apply(self, intrinsic: str, kind: str, *arguments: str) -> str:
        """An intrinsic whose operands and result are of one type, "smax": `llvm.smax.v16i32`."""
        return self.call(f"llvm.{intrinsic}.{suffix_of(kind)}", kind, [(kind, argument) for argument in arguments])

    # --- control flow -------------------------------------------------------------------------------------------------

    def label(self, hint: str = "l") -> str:
        """A fresh label, not yet begun."""
        return self.name(hint + ".")[1:]

    def begin(self, label: str) -> None:
        """Start the block of this label."""
        self.line(f"{label}:")

    def branch(self, condition: str, yes: str, no: str, *, likely: bool = False) -> None:
        hint = ", !prof !0" if likely else ""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{hint}")

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def repeat(self, limit: str, step: int, inner: Callable[[str], None]) -> None:
        """for (i64 i = 0; i < limit; i += step)"""
        head, body, done = (self.label() for _ in range(3))
        counter = self.room("i64")
        self.line(f"store i64 0, ptr {counter}")
        self.jump(head)
        self.begin(head)
        now = self.value(f"load i64, ptr {counter}")
        self.branch(self.value(f"icmp ult i64 {now}, {limit}"), body, done)
        self.begin(body)
        inner(now)
        self.line(f"store i64 {self.value(f'add i64 {now}, {step}')}, ptr {counter}")
        self.jump(head)
        self.begin(done)

    def goto(self, frame: str, record: str, mask: str) -> None:
        """Go on with a record; ends the function."""
        self.tail(self.value(f"load ptr, ptr {record}"), frame, record, mask)

    def tail(self, handler: str, frame: str, record: str, mask: str) -> None:
        """Go on in another handler; ends the function."""
        self.line(f"musttail {notation.call_of(handler, frame, record, mask)}")
        self.line("ret void")

    def leave(self, status: str) -> None:
        """Back to the loop; ends the function."""
        self.set_field("ctx.status", status)
        self.line("ret void")

    # --- functions and the module -------------------------------------------------------------------------------------

    def take(self) -> str:
        """The body emitted so far; the next body starts empty."""
        lines, self.lines, self._entry = [*self._entry, *self.lines], [], []
        if self.unmasked:
            lines = flags.settle(self, lines)
        if modes.changes(lines):
            lines, declarations = modes.settle(lines)
            for symbol, text in declarations.items():
                self.declare(symbol, text)
        return "\n".join(lines)

    def function(self, name: str, parameters: str, answer: str = "") -> str:
        """The body emitted so far as a function; answer: an i32 that it returns, if any."""
        result, end = ("i32", f"ret i32 {answer}") if answer else ("void", "ret void")
        self.line(end)
        return f"define {result} @{name}({parameters}) #0 {{\n{self.take()}\n}}\n"

    def declare(self, symbol: str, text: str) -> None:
        """A module-level line for `symbol`, once."""
        self._module.setdefault(symbol, text)

    def inner_function(self, name: str, kind: str, body: Callable[[str], str]) -> str:
        """A function of this module alone, from one value of a type to another, emitted once; returns its global
        name."""
        if "@" + name not in self._module:
            outside = self.lines, self._entry
            self.lines, self._entry = [], []
            answer = body("%x")
            self.line(f"ret {kind} {answer}")
            text = f"define internal {kind} @{name}({kind} %x) #0 {{\n{self.take()}\n}}"
            self.lines, self._entry = outside
            self.declare("@" + name, text)
        return "@" + name

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
        """All module-level lines: declarations and constant tables."""
        return "\n".join(self._module.values())


def expand(text: str) -> str:
    """IR of a text in `notation`: whole functions."""
    code = Emitter()
    code.expand(text)
    return code.take()


def module_of(functions: Iterable[str], declarations: str, *attributes: str) -> str:
    """A module: functions, and the attributes of those marked #0, #1 and so on; !0 weighs branches that are likely."""
    groups = [f"attributes #{number} = {{ {group} }}" for number, group in enumerate(attributes)]
    return "\n".join([*functions, declarations, *groups, '!0 = !{!"branch_weights", i32 100000, i32 1}', ""])
