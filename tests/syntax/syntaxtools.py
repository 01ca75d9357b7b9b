"""What the syntax tests share."""

from dataclasses import fields, is_dataclass
from pathlib import Path

from ptxtools.ir.positions import parts_of, spot_of
from ptxtools.syntax import parse, print_module

ROOT = Path(__file__).resolve().parents[2]
TESTDATA = ROOT / "testdata"
FILES = sorted(TESTDATA.rglob("*.ptx"))
BENCH = sorted((TESTDATA / "bench" / "ptx").glob("*.ptx"))

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"


def file_id(path):
    return path.relative_to(TESTDATA).as_posix().removeprefix("cases/").removesuffix("/kernel.ptx")


def both(text):
    """The result of both ways to parse, which must not differ in anything."""
    plain, cached = parse(text, cache=False), parse(text)
    assert describe(plain) == describe(cached)
    assert plain.module == cached.module
    assert spans(plain.module) == spans(cached.module)
    return cached


def describe(result):
    return [(d.code, d.message, d.span, d.help, d.fix) for d in result.diagnostics]


def spans(node):
    """The spans of all nodes below this one, in order."""
    if is_dataclass(node):
        found = []
        for field in fields(node):
            value = getattr(node, field.name)
            if field.compare:
                found += spans(value)
            elif field.name == "layout":
                found.append(positions_in(node))
            elif field.name not in ("source", "extent"):
                found.append((type(node).__name__, field.name, value))
        return found
    if isinstance(node, (list, tuple)):
        return [span for item in node for span in spans(item)]
    return []


def positions_in(item):
    """Where guard, opcode and operands of an instruction stand, with all parts of them."""
    parts = parts_of(item)
    spots = [spot_of(operand, span) for operand, span in zip(item.operands, parts.operands, strict=True)]
    return parts, item.layout.pieces, spots


def module(text):
    """The module of a valid text; it survives printing."""
    result = both(text)
    assert describe(result) == []
    again = parse(print_module(result.module))
    assert again.diagnostics == []
    assert again.module == result.module
    return result.module


def item(text):
    """The only module-scope item of a valid text."""
    (found,) = module(text).items
    return found


def body(text):
    """The items of a function body."""
    return module(f".entry k()\n{{\n{text}\n}}\n").items[0].body.items


def statement(text):
    (found,) = body(text)
    return found


def operands(text):
    """The operands of an instruction `op text;`."""
    return statement(f"op {text};").operands


def operand(text):
    (found,) = operands(text)
    return found


def errors(text, count=None):
    """(code, marked text, message) of each mistake, in order."""
    result = both(text)
    found = [(d.code, text[slice(*d.span)], d.message) for d in result.diagnostics]
    if count is not None:
        assert len(found) == count, found
    return found


def error(text):
    return errors(text, 1)[0]


def body_error(text):
    return error(f".entry k()\n{{\n{text}\n\tret;\n}}\n.global .u32 after;\n")
