"""A part of Python as LLVM IR: functions over integers and buffers.

An integer has 64 bits. A parameter is an `int`, or a buffer of bytes or of signed words of 32 bits, whose elements are
read and written by index; nobody looks whether an index is inside. There are assignments to names and elements, `if`,
`while`, `for … in range(…)`, `break`, `continue`, `return`, calls of functions of the same module, comparisons, `in` a
tuple, `and`, `or`, `not`, and `+ - * & | ^ << >>`. Names in capitals are integers of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import NoReturn

#: Parameters that are buffers.
Bytes = memoryview
Words = memoryview

_ELEMENTS = {"Bytes": ("i8", "zext"), "Words": ("i32", "sext")}
_OPERATIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARISONS = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
#: No tables of jumps and no calls of a library: the code must be whole without anything else.
_ATTRIBUTES = 'nounwind "no-jump-tables"="true" "no-builtins"'


#: The text of a module, and what its names in capitals are.
Part = tuple[str, Mapping[str, object]]


def module_ir(parts: Iterable[Part], entry: str) -> str:
    """The functions of modules, of which `entry` is the first and the only one that can be called from outside. Raises
    ValueError for what is not of the notation."""
    functions = [(one, constants) for source, constants in parts for one in ast.parse(source).body
                 if isinstance(one, ast.FunctionDef)]  # fmt: skip
    functions.sort(key=lambda one: one[0].name != entry)
    known = {one.name: _Signature(one) for one, _ in functions}
    return "\n".join(_Writer(one, known, constants, one.name == entry).text() for one, constants in functions)


class _Signature:
    """The parameters of a function: the kind of each, which is "int" or that of a buffer."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.kinds = {
            one.arg: one.annotation.id if isinstance(one.annotation, ast.Name) else "" for one in function.args.args
        }

    def types(self) -> list[str]:
        return ["ptr" if kind in _ELEMENTS else "i64" for kind in self.kinds.values()]


class _Writer:
    """Writes one function."""

    def __init__(self, function: ast.FunctionDef, known: Mapping[str, _Signature], constants: Mapping[str, object],
                 outside: bool) -> None:  # fmt: skip
        self._function, self._known, self._constants, self._outside = function, known, constants, outside
        self._kinds = known[function.name].kinds
        self._lines: list[str] = []
        self._locals: dict[str, None] = {}
        self._number = 0
        self._loops: list[tuple[str, str]] = []

    def text(self) -> str:
        types = known.types() if (known := self._known[self._function.name]) else []
        for name, kind in self._kinds.items():
            if kind not in _ELEMENTS:
                self._locals[name] = None
                self._add(f"store i64 %arg.{name}, ptr %{name}")
        self._all(self._function.body)
        self._add("ret i64 0")
        given = ", ".join(f"{type} noalias %arg.{name}" if type == "ptr" else f"{type} %arg.{name}"
                          for type, name in zip(types, self._kinds, strict=True))  # fmt: skip
        head = f"define {'' if self._outside else 'internal '}i64 @{self._function.name}({given}) {_ATTRIBUTES} {{"
        return "\n".join([head, *(f"  %{name} = alloca i64" for name in self._locals), *self._lines, "}"])

    def _refuse(self, node: ast.AST) -> NoReturn:
        raise ValueError(f"{self._function.name}: no meaning for {ast.dump(node)[:80]}")

    def _add(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def _made(self, line: str) -> str:
        """The name of what an instruction gives."""
        self._number += 1
        self._add(f"%.{self._number} = {line}")
        return f"%.{self._number}"

    def _label(self) -> str:
        self._number += 1
        return f".L{self._number}"

    def _begin(self, label: str) -> None:
        """A block, which what stands before it runs into."""
        self._lines += [f"  br label %{label}", f"{label}:"]

    def _leave(self, line: str) -> None:
        """An instruction that nothing follows; what is written behind it is not reached."""
        self._add(line)
        self._lines.append(f"{self._label()}:")

    # --- statements ---------------------------------------------------------------------------------------------------

    def _all(self, body: list[ast.stmt]) -> None:
        for one in body:
            self._statement(one)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self._assign(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            self._store(node.target, self._operation(node.op, self._value(node.target), self._value(node.value)))
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.While) and not node.orelse:
            self._loop(node.test, node.body, None)
        elif isinstance(node, ast.For) and not node.orelse:
            self._for(node)
        elif isinstance(node, (ast.Break, ast.Continue)):
            self._leave(f"br label %{self._loops[-1][isinstance(node, ast.Break)]}")
        elif isinstance(node, ast.Return) and node.value is not None:
            self._leave(f"ret i64 {self._value(node.value)}")
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self._value(node.value)
        else:
            self._refuse(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            made = [self._value(one) for one in value.elts]
            for each, one in zip(target.elts, made, strict=True):
                self._store(each, one)
        else:
            self._store(target, self._value(value))

    def _if(self, node: ast.If) -> None:
        yes, no, end = self._label(), self._label(), self._label()
        self._branch(node.test, yes, no)
        for label, body in ((yes, node.body), (no, node.orelse)):
            self._lines.append(f"{label}:")
            self._all(body)
            self._add(f"br label %{end}")
        self._lines.append(f"{end}:")

    def _loop(self, test: ast.expr, body: list[ast.stmt], step: str | None) -> None:
        """step: what counts on behind each round."""
        begin, inside, next_, end = self._label(), self._label(), self._label(), self._label()
        self._begin(begin)
        self._branch(test, inside, end)
        self._lines.append(f"{inside}:")
        self._loops.append((next_, end))
        self._all(body)
        self._loops.pop()
        self._begin(next_)
        if step is not None:
            self._set(step, self._made(f"add i64 {self._get(step)}, 1"))
        self._add(f"br label %{begin}")
        self._lines.append(f"{end}:")

    def _for(self, node: ast.For) -> None:
        """As in Python, but for a range of which the end does not change."""
        call, target = node.iter, node.target
        if not (isinstance(target, ast.Name) and isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                and call.func.id == "range" and 0 < len(call.args) < 3):  # fmt: skip
            self._refuse(node)
        first, last = (ast.Constant(0), *call.args)[-2:]
        self._set(target.id, self._value(first))
        self._loop(ast.Compare(target, [ast.Lt()], [last]), node.body, target.id)

    def _store(self, target: ast.expr, value: str) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript):
            type, place = self._element(target)
            self._add(f"store {type} {self._made(f'trunc i64 {value} to {type}')}, ptr {place}")
        else:
            self._refuse(target)

    def _set(self, name: str, value: str) -> None:
        self._locals[name] = None
        self._add(f"store i64 {value}, ptr %{name}")

    def _get(self, name: str) -> str:
        return self._made(f"load i64, ptr %{name}")

    # --- expressions --------------------------------------------------------------------------------------------------

    def _element(self, node: ast.Subscript) -> tuple[str, str]:
        """The type of an element and its place."""
        if not isinstance(node.value, ast.Name) or self._kinds.get(node.value.id) not in _ELEMENTS:
            self._refuse(node)
        type, _ = _ELEMENTS[self._kinds[node.value.id]]
        return type, self._made(f"getelementptr {type}, ptr %arg.{node.value.id}, i64 {self._value(node.slice)}")

    def _value(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return str(int(node.value))
        if isinstance(node, ast.Name):
            if node.id in self._locals:
                return self._get(node.id)
            constant = self._constants.get(node.id)
            if node.id.isupper() and isinstance(constant, int):
                return str(constant)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._made(f"sub i64 0, {self._value(node.operand)}")
        elif isinstance(node, ast.BinOp):
            return self._operation(node.op, self._value(node.left), self._value(node.right))
        elif isinstance(node, ast.Subscript):
            type, place = self._element(node)
            widen = next(widen for one, widen in _ELEMENTS.values() if one == type)
            return self._made(f"{widen} {type} {self._made(f'load {type}, ptr {place}')} to i64")
        elif isinstance(node, ast.Compare):
            return self._made(f"zext i1 {self._condition(node)} to i64")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._known:
            return self._call(node, node.func.id)
        self._refuse(node)

    def _call(self, node: ast.Call, name: str) -> str:
        given: list[str] = []
        for one, kind in zip(node.args, self._known[name].kinds.values(), strict=True):
            if kind not in _ELEMENTS:
                given.append(f"i64 {self._value(one)}")
            elif isinstance(one, ast.Name) and self._kinds.get(one.id) == kind:
                given.append(f"ptr %arg.{one.id}")
            else:
                self._refuse(node)
        return self._made(f"call i64 @{name}({', '.join(given)})")

    def _operation(self, op: ast.operator, left: str, right: str) -> str:
        name = _OPERATIONS.get(type(op)) or self._refuse(op)
        return self._made(f"{name} i64 {left}, {right}")

    def _branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go on at one label or the other."""
        if isinstance(node, ast.BoolOp):
            both = isinstance(node.op, ast.And)
            for one in node.values[:-1]:
                further = self._label()
                self._branch(one, further if both else yes, no if both else further)
                self._lines.append(f"{further}:")
            self._branch(node.values[-1], yes, no)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._branch(node.operand, no, yes)
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.In)
            and isinstance(node.comparators[0], ast.Tuple)
        ):
            each = [ast.Compare(node.left, [ast.Eq()], [one]) for one in node.comparators[0].elts]
            self._branch(ast.BoolOp(ast.Or(), list[ast.expr](each)), yes, no)
        else:
            self._add(f"br i1 {self._condition(node)}, label %{yes}, label %{no}")

    def _condition(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Compare):
            return self._made(f"icmp ne i64 {self._value(node)}, 0")
        left, found = self._value(node.left), "true"
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self._value(other)
            name = _COMPARISONS.get(type(op)) or self._refuse(op)
            one = self._made(f"icmp {name} i64 {left}, {right}")
            left, found = right, one if found == "true" else self._made(f"and i1 {found}, {one}")
        return found
