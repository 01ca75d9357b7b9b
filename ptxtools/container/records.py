"""Declarations and directives as records: every node but instructions, labels and plain `.loc` lines.

A record starts with the number of its kind (`KINDS`); the fields follow as docs/container.md lists them. Bodies of
functions and data images are stored elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from ptxtools.ir import (
    Alias,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DataLine,
    Directive,
    File,
    Header,
    Immediate,
    Initializer,
    Loc,
    Member,
    Pragma,
    Section,
    SymbolValue,
    Variable,
)
from ptxtools.isa.spaces import SPACES
from ptxtools.isa.types import TYPES

from .codec import Builder, Cursor, zigzag
from .errors import Damage

FUNCTION = 0
#: Parameters that are the pattern of others have no name; neither has the `_` that prototypes leave out.
_NAME = re.compile(r"[\w$%.]*", re.ASCII)
_DIRECTIVE = re.compile(r"\.\w+(?:::\w+)*", re.ASCII)
_VECTORS = (1, 2, 4, 8)
_POINTED_AT = frozenset({"", "texref", "samplerref", "surfref", *SPACES})
LINKAGE = ("", "extern", "visible", "weak", "common")
KINDS: dict[type, int] = {
    Variable: 1, Alias: 2, File: 3, Section: 4, Pragma: 5, Loc: 6, Directive: 7, Header: 8,
    BranchTargets: 9, CallTargets: 10, CallPrototype: 11,
}  # fmt: skip

#: An initialiser that stands in a data section: number of elements (None: a scalar), type of the immediates,
#: section number, offset.
ImageInit = tuple[int | None, str, int, int]

_VECTOR, _ALIGN, _DIMS, _COUNT, _INIT, _LINKAGE, _ATTRIBUTES, _PTR, _BANK, _IMAGE = (1 << n for n in range(10))


def write_record(node: Any, builder: Builder, image: ImageInit | None = None) -> None:
    """Append the kind and fields of `node`; `image` says where the initialiser of a variable stands instead."""
    kind = Section if isinstance(node, Section) else type(node)
    builder.add(KINDS[kind])
    if isinstance(node, Variable):
        write_variable(node, builder, image)
    else:
        _WRITERS[kind](node, builder)


def read_record(cursor: Cursor, image: Callable[[str, ImageInit], Initializer]) -> Any:
    """The node of a record; `image` gives the initialiser that stands in a data section."""
    kind = cursor.next()
    if kind == 1:
        return read_variable(cursor, image)
    return _READERS[kind](cursor)


# --- variables --------------------------------------------------------------------------------------------------------


def write_variable(v: Variable, b: Builder, image: ImageInit | None = None, *, named: bool = True) -> None:
    """The fields of a declaration; unnamed, it serves as the pattern of many."""
    init = v.init is not None and image is None
    present = (v.vector != 1, v.align is not None, bool(v.dims), v.count is not None, init, bool(v.linkage),
               bool(v.attributes), v.ptr is not None, v.bank is not None, image is not None)  # fmt: skip
    b.text(v.name if named else "", v.space, v.type)
    b.add(sum(1 << n for n, there in enumerate(present) if there))
    if v.vector != 1:
        b.add(v.vector)
    if v.align is not None:
        b.signed(v.align)
    if v.dims:
        b.add(len(v.dims))
        for size in v.dims:
            b.optional(size)
    if v.count is not None:
        b.signed(v.count)
    if v.init is not None and image is None:
        _write_init(v.init, b)
    if v.linkage:
        b.text(v.linkage)
    if v.attributes:
        write_attributes(v.attributes, b)
    if v.ptr is not None:
        b.text(v.ptr[0])
        b.optional(v.ptr[1])
    if v.bank is not None:
        b.signed(v.bank)
    if image is not None:
        b.optional(image[0])
        b.text(image[1])
        b.add(image[2], image[3])


def read_variable(c: Cursor, image: Callable[[str, ImageInit], Initializer] | None = None) -> Variable:
    take, strings = c.next, c.strings
    v = Variable(strings[take()], strings[take()], strings[take()])
    if v.type not in TYPES or v.space not in SPACES or not _NAME.fullmatch(v.name):
        raise Damage("a declaration of an unknown type or space")
    flags = take()
    if flags:
        _read_optional_fields(v, flags, c, image)
        _check_fields(v)
    return v


def _check_fields(v: Variable) -> None:
    """Only what a declaration in a text could say, too."""
    numbers = (v.align, v.count, v.bank, v.ptr and v.ptr[1], *v.dims)
    if (v.vector not in _VECTORS or v.linkage not in LINKAGE or (v.ptr is not None and v.ptr[0] not in _POINTED_AT)
            or any(n is not None and n < 0 for n in numbers)):  # fmt: skip
        raise Damage("an invalid declaration")


def _read_optional_fields(v: Variable, flags: int, c: Cursor,
                          image: Callable[[str, ImageInit], Initializer] | None) -> None:  # fmt: skip
    if flags & _VECTOR:
        v.vector = c.next()
    if flags & _ALIGN:
        v.align = c.signed()
    if flags & _DIMS:
        v.dims = tuple([c.optional() for _ in range(c.next())])
    if flags & _COUNT:
        v.count = c.signed()
    if flags & _INIT:
        v.init = _read_init(c)
    if flags & _LINKAGE:
        v.linkage = c.text()
    if flags & _ATTRIBUTES:
        v.attributes = read_attributes(c)
    if flags & _PTR:
        v.ptr = (c.text(), c.optional())
    if flags & _BANK:
        v.bank = c.signed()
    if flags & _IMAGE:
        if image is None:
            raise Damage("a parameter or local variable has a data image")
        v.init = image(v.type, (c.optional(), c.text(), c.next(), c.next()))


def write_variables(variables: list[Variable], b: Builder) -> None:
    b.add(len(variables))
    for variable in variables:
        write_variable(variable, b)


def read_variables(c: Cursor) -> list[Variable]:
    return [read_variable(c) for _ in range(c.next())]


def _write_init(init: Initializer, b: Builder) -> None:
    if isinstance(init, Immediate):
        b.add(0)
        b.text(init.type)
        b.signed(init.value)
    elif isinstance(init, SymbolValue):
        b.add(1)
        b.text(init.name)
        b.signed(init.offset)
        b.add(init.generic)
        b.optional(init.mask)
    elif isinstance(init, Member):
        b.add(2)
        b.text(init.name)
        b.add(isinstance(init.value, str))
        if isinstance(init.value, str):
            b.text(init.value)
        else:
            _write_init(init.value, b)
    else:
        b.add(3, len(init))
        for element in init:
            _write_init(element, b)


def _read_init(c: Cursor, depth: int = 0) -> Initializer:
    kind = c.next()
    if kind == 0:
        type_ = c.text()
        return Immediate(c.signed(), type_)
    if kind == 1:
        return SymbolValue(c.text(), c.signed(), bool(c.next()), c.optional())
    if kind == 2:
        name = c.text()
        return Member(name, c.text() if c.next() else _read_immediate(c))
    if kind == 3 and depth < 100:
        return [_read_init(c, depth + 1) for _ in range(c.next())]
    raise Damage("an initialiser of unknown kind")


def _read_immediate(c: Cursor) -> Immediate:
    value = _read_init(c)
    if not isinstance(value, Immediate):
        raise Damage("a field that is not a constant")
    return value


def write_attributes(attributes: tuple[tuple[str, tuple[int | str, ...]], ...], b: Builder) -> None:
    b.add(len(attributes))
    for name, arguments in attributes:
        b.text(name)
        b.scalars(arguments)


def read_attributes(c: Cursor) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
    return tuple([(c.text(), c.scalars()) for _ in range(c.next())])


# --- the others -------------------------------------------------------------------------------------------------------


def write_directives(directives: list[Directive | Pragma], b: Builder) -> None:
    b.add(len(directives))
    for directive in directives:
        write_record(directive, b)


def read_directives(c: Cursor) -> list[Any]:
    return [_READERS[c.next()](c) for _ in range(c.next())]


def _write_texts(texts: tuple[str, ...], b: Builder) -> None:
    b.add(len(texts))
    b.text(*texts)


def _read_texts(c: Cursor) -> tuple[str, ...]:
    return tuple([c.text() for _ in range(c.next())])


def _name(c: Cursor, pattern: re.Pattern[str] = _NAME) -> str:
    text = c.text()
    if not pattern.fullmatch(text):
        raise Damage("an invalid name")
    return text


def _write_loc(loc: Loc, b: Builder) -> None:
    for number in (loc.file, loc.line, loc.column, loc.function_offset):
        b.signed(number)
    b.add(loc.function_name is not None)
    b.text(loc.function_name or "")
    b.add(loc.inlined_at is not None)
    for number in loc.inlined_at or ():
        b.signed(number)


def _read_loc(c: Cursor) -> Loc:
    file, line, column, offset = c.signed(), c.signed(), c.signed(), c.signed()
    named, name = c.next(), c.text()
    at = (c.signed(), c.signed(), c.signed()) if c.next() else None
    return Loc(file, line, column, name if named else None, offset, at)


def _write_prototype(p: CallPrototype, b: Builder) -> None:
    b.text(p.label)
    write_variables(p.returns, b)
    write_variables(p.params, b)
    write_directives(list(p.directives), b)


def _write_file(file: File, b: Builder) -> None:
    b.signed(file.index)
    b.text(file.name)
    b.optional(file.timestamp)
    b.optional(file.size)


def _write_named_texts(node: Any, b: Builder) -> None:
    b.text(node.name if isinstance(node, Header) else node.label)
    _write_texts(node.args if isinstance(node, Header) else node.targets, b)


def _write_directive(directive: Directive, b: Builder) -> None:
    b.text(directive.name)
    b.scalars(directive.args)


def _write_section(section: Section, b: Builder) -> None:
    """Lines of one type and length are counted together; their values follow one after the other."""
    b.text(section.name)
    runs: list[tuple[str, int, list[DataLine]]] = []
    for line in section.lines:
        if not runs or runs[-1][:2] != (line.type, len(line.values)):
            runs.append((line.type, len(line.values), []))
        runs[-1][2].append(line)
    b.add(len(runs))
    for type_, length, lines in runs:
        b.text(type_)
        b.add(length, len(lines))
        # The low bit tells texts from numbers, as in every scalar.
        for line in lines:
            b.numbers += [b.strings(v) << 1 | 1 if isinstance(v, str) else zigzag(v) << 1 for v in line.values]


def _read_section(c: Cursor) -> Section:
    section = Section(c.text())
    for _ in range(c.next()):
        type_, length, count = c.text(), c.next(), c.next()
        if length == 0 and count > 1 << 16:
            raise Damage("a data section with too many empty lines")
        values = c.scalars_of(length * count)
        rows: Iterable[tuple[int | str, ...]] = zip(*[iter(values)] * length, strict=True) if values else [()] * count
        section.lines += map(DataLine, repeat(type_), rows)
    return section


_WRITERS: dict[type, Callable[[Any, Builder], None]] = {
    Alias: lambda node, b: b.text(node.name, node.target),
    File: _write_file,
    Section: _write_section,
    Pragma: lambda node, b: _write_texts(node.strings, b),
    Loc: _write_loc,
    Directive: _write_directive,
    Header: _write_named_texts,
    BranchTargets: _write_named_texts,
    CallTargets: _write_named_texts,
    CallPrototype: _write_prototype,
}

_READERS: dict[int, Callable[[Cursor], Any]] = {
    2: lambda c: Alias(_name(c), _name(c)),
    3: lambda c: File(c.signed(), c.text(), c.optional(), c.optional()),
    4: _read_section,
    5: lambda c: Pragma(_read_texts(c)),
    6: _read_loc,
    7: lambda c: Directive(_name(c, _DIRECTIVE), c.scalars()),
    8: lambda c: Header(_name(c, _DIRECTIVE), _read_texts(c)),
    9: lambda c: BranchTargets(_name(c), _read_texts(c)),
    10: lambda c: CallTargets(_name(c), _read_texts(c)),
    11: lambda c: CallPrototype(_name(c), read_variables(c), read_variables(c), read_directives(c)),
}
