"""Every kind of trap, and every kind of waiting that a deadlock report can name, read off the source.

A kind is the message as the source has it, with "…" for what varies. Traps are made by `….trap(message, …)` and
`Trap(message, …)`; waits by `….wait(key, message, …)` of operations, and by the two modules that write the reports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "ptxtools"
FOLDERS = ("program", "machine", "native", "reference", "sim")
#: Where messages of waits are put together, and the functions that do it.
_REPORTS = ("native/loop/hangs.py", "reference/deadlocks.py")
#: What the native code's stop codes mean.
_FAULTS = "native/loop/faults.py"
#: Functions that make messages.
_MAKERS = ("trap", "Trap", "interrupted", "wait", "_note")
#: Functions that are given a message: they make no kind of their own.
_PASSED_ON = re.compile(r"…|…: …")


def _text(node: ast.expr | None) -> str | None:
    """A string as the source has it, "…" for each field; None for what is no string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
        return re.sub("…+", "…", "".join(map(str, parts)))
    return None


def _texts(node: ast.expr | None, function: ast.AST, made_by_calls: int = 2) -> Iterator[str]:
    """Strings that an argument may be: written there, either side of a condition, given to a variable before or to a
    constant of a module, or what a function of the package returns; made_by_calls: how many functions deep."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body, function, made_by_calls)
        yield from _texts(node.orelse, function, made_by_calls)
    elif isinstance(node, ast.Name):
        for found in (*ast.walk(function), *_constants()):
            if isinstance(found, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == node.id for t in found.targets
            ):
                yield from (text for text in [_text(found.value)] if text)
    elif isinstance(node, ast.Call):
        for made_by in _functions().get(_name(node), ()) if made_by_calls else ():
            for inner in ast.walk(made_by):
                if isinstance(inner, ast.Return):
                    yield from (text for text in _texts(inner.value, made_by, made_by_calls - 1) if text)
    else:
        text = _text(node)
        if text is not None:
            yield text


@cache
def _calls() -> list[tuple[str, ast.Module, list[tuple[ast.Call, ast.AST]]]]:
    """Each module with the calls that make messages, and the function that each is in."""
    return [
        (
            name,
            tree,
            [
                (node, function)
                for function in ast.walk(tree)
                if isinstance(function, ast.FunctionDef | ast.Lambda)
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and _name(node) in _MAKERS
            ],
        )
        for name, tree in _trees()
        if any(f"{maker}(" in (PACKAGE / name).read_text() for maker in _MAKERS)
    ]


@cache
def _trees() -> list[tuple[str, ast.Module]]:
    paths = [path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())) for path in paths]


def _name(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


@cache
def _constants() -> list[ast.Assign]:
    """What modules give to names in capitals."""
    return [
        node for _, tree in _trees() for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper()
    ]  # fmt: skip


@cache
def _functions() -> dict[str, list[ast.FunctionDef]]:
    """Functions of modules, by name."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for _, tree in _trees():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
    return found


@cache
def traps() -> set[str]:
    """Messages of traps."""
    found: set[str] = set()
    for name, tree, calls in _calls():
        for call, function in calls:
            if _name(call) in ("trap", "Trap", "interrupted") and call.args:
                found.update(_texts(call.args[0], function))
        if name == _FAULTS:
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and node.name in _reasons(tree):
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Return):
                            found.update(_texts(inner.value, node))
    return {kind for kind in found if "\n" not in kind and not _PASSED_ON.fullmatch(kind)}


def _reasons(tree: ast.Module) -> set[str]:
    table = next(n for n in tree.body if isinstance(n, ast.AnnAssign) and getattr(n.target, "id", "") == "_REASONS")
    assert isinstance(table.value, ast.Dict)
    return {value.id for value in table.value.values if isinstance(value, ast.Name)}


@cache
def waits() -> set[str]:
    """What threads can wait for: messages of waits, as reports show them."""
    found: set[str] = set()
    for name, tree, calls in _calls():
        for call, function in calls:
            if _name(call) == "wait" and len(call.args) > 1:
                found.update(f"for {text}" for text in _texts(call.args[1], function))
                if isinstance(call.args[1], ast.Call):
                    found.update(f"for {text}" for text in _told(tree, _name(call.args[1])))
            elif name in _REPORTS and _name(call) == "_note":
                for argument in call.args[3:]:
                    found.update(_texts(argument, function))
    return {re.sub("…+", "…", kind) for kind in found if kind != "for …" and "\n" not in kind}


def _told(tree: ast.Module, name: str) -> Iterator[str]:
    """What str() of an object of a class says."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__str__":
                    for inner in ast.walk(method):
                        if isinstance(inner, ast.Return):
                            yield from _texts(inner.value, method)


def pattern(kind: str) -> re.Pattern[str]:
    """What a message of a kind looks like."""
    return re.compile(".*".join(map(re.escape, kind.split("…"))), re.DOTALL)
