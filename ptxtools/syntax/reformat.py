"""The canonical layout of a text: `ptx-lint --reformat`. Comments, names and numbers stay as they are written.

One statement a line, indented by a tab for each open brace, labels at the margin; a blank and a tab between opcode and
operands, modifiers in the manual's order; a parameter a line; of several blank lines one; comments behind neighbouring
lines in one column. A line that a comment such as `// ptx-lint: disable=PTX501` speaks of keeps its words.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain, zip_longest

from ptxtools.diagnostics import Diagnostic, Severity
from ptxtools.ir import Instruction, Module, Scope
from ptxtools.ir.references import statements
from ptxtools.isa.errors import OpcodeError
from ptxtools.isa.opcode import resolve, slack
from ptxtools.records import NamedTuple

from .faults import Fault
from .lexer import UnitLexer
from .parser import parse
from .pieces import COMMENT, Piece, Unit, unit_at, units
from .plainrows import REMARK, learned, runs_of
from .spacing import joined

#: Comments that are about their line.
_ABOUT_LINES = re.compile(r"ptx-(?:lint|run):(?!\s*disable-file)")
#: Lines that are longer than this do not move the comments of their neighbours.
_WIDEST = 80
#: What was compared before and found to be read alike, and how much of it is remembered.
_compared: set[tuple[str, str]] = set()
_MOST_COMPARED = 8
#: The lines of headers that were met before, by their texts.
_headers: dict[str, tuple[_Line, ...]] = {}
_MOST_HEADERS = 1 << 12
#: The number of a register such as %r12.
_NUMBER = re.compile(r"(?:(?<=[\s,(){}\[!@|]%[a-z])|(?<=[\s,(){}\[!@|]%[a-z][a-z]))\d+(?![\w$])", re.ASCII)
#: Characters beside plain rows that may be laid out in one step.
_FEW = 1 << 18
_LABELLED = frozenset({"BRANCHTARGETS", "CALLTARGETS", "CALLPROTOTYPE"})


class Reformatted(NamedTuple):
    """text: the canonical text, or the one that was given where it has syntax errors, which `errors` are."""

    text: str
    errors: list[Diagnostic]


class _Line(NamedTuple):
    """comment: what stands behind the code; opens: nothing but an opening brace; plain: several plain rows."""

    code: str
    comment: str = ""
    opens: bool = False
    plain: bool = False


class _DeeperError(Exception):
    """Plain rows are not in the body of a function."""


def reformat(text: str, name: str = "<stdin>") -> Reformatted:
    """The text in its canonical layout, with the line ends that it has. name: in errors.

    A text with syntax errors stays as it is. What is read from the result is what is read from the text, except for the
    order of modifiers; a text of which this cannot be said is refused, too.
    """
    quick = _quick(text)
    if quick is not None:
        return Reformatted(quick, [])
    module, found = parse(text, name)
    errors = [d for d in found if d.severity is Severity.ERROR and not d.subject]
    if errors:
        return Reformatted(text, errors)
    lines = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace("\r\n", "\n")
    try:
        canonical = "\n".join(_aligned(_lines(plain)))
    except Fault as fault:
        return Reformatted(text, [Diagnostic(fault.code, fault.message, fault.span, module.source)])
    canonical = _ended(text, canonical)
    again = parse(canonical, name)
    if not _same(module, again.module) or len(again.diagnostics) != len(found):
        message = "this text cannot be laid out anew without a change of its meaning"
        return Reformatted(text, [Diagnostic("PTX100", message, (0, 0), module.source)])
    return Reformatted(canonical.replace("\n", lines), [])


def reformat_soon(text: str) -> Iterator[None]:
    """Prepare, a step at a time, what makes `reformat` quick for a text, and for others that have much of it."""
    plain = text.replace("\r\n", "\n")
    yield from learned(plain, _Codes().of, _read_alike)
    runs = runs_of(plain, _Codes().of, _read_alike, _kept(plain))
    if len(plain) - sum(end - begin for begin, (end, _) in runs.items()) <= _FEW:
        yield
        yield from _quick_steps(text)
    yield


def _ended(text: str, canonical: str) -> str:
    """The lines with the mark at the beginning that the text has, and one end."""
    canonical = canonical and canonical.strip("\n") + "\n"
    return "\ufeff" + canonical if text.startswith("\ufeff") else canonical


def _quick(text: str) -> str | None:
    """The canonical layout of a text that mostly consists of plain rows; None if it is to be made as that of others.

    Plain statements are read alike by themselves, so the rest alone has to be compared.
    """
    steps = _quick_steps(text)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: str | None = end.value
            return result


def _quick_steps(text: str) -> Generator[None, None, str | None]:
    """What `_quick` does, a step at a time."""
    plain = text.replace("\r\n", "\n")
    runs = runs_of(plain, _Codes().of, _read_alike, _kept(plain))
    if not runs:
        return None
    yield
    try:
        lines = _lines(plain, runs)
    except (Fault, _DeeperError):
        return None
    yield
    rest, at = [], 0
    for begin, (end, _) in runs.items():
        rest.append(plain[at:begin])
        at = end
    before = "".join([*rest, plain[at:]])
    after = "\n".join(_aligned([line for line in lines if not line.plain]))
    if (before, after) not in _compared:
        yield
        found = [parse(before)]
        yield
        found.append(parse(after))
        yield
        if found[0].diagnostics or found[1].diagnostics or not _same(found[0].module, found[1].module):
            return None
        if len(_compared) >= _MOST_COMPARED:
            _compared.clear()
        _compared.add((before, after))
    yield
    canonical = _ended(text, "\n".join(_aligned(lines)))
    return canonical.replace("\n", "\r\n") if "\r\n" in text else canonical


class _Codes:
    """The lines of statements in the body of a function. Those that differ in the numbers of registers alone are laid
    out alike."""

    def __init__(self) -> None:
        self._lexer = UnitLexer()
        self._known: dict[str, list[str]] = {}

    def of(self, statement: str) -> str:
        """The line of a statement; "" where the text is something else."""
        parts, numbers = _NUMBER.split(statement), _NUMBER.findall(statement)
        shape = "0".join(parts)
        made = self._known.get(shape)
        if made is None:
            made = self._known[shape] = _NUMBER.split(self._new(shape))
        if len(made) != len(parts):
            return self._new(statement)
        return "".join(chain.from_iterable(zip_longest(made, numbers, fillvalue="")))

    def _new(self, statement: str) -> str:
        try:
            unit = unit_at(statement, 0, self._lexer, 0)
        except Fault:
            return ""
        if unit.kind != "statement" or unit.span != (0, len(statement)):
            return ""
        (line,) = _of_unit(statement, unit, "\t", False)
        return line.code


def _read_alike(before: str, after: str) -> bool:
    """Whether two texts of statements are read alike, and without errors."""
    found = [parse(f".func f()\n{{\n{text}\n}}") for text in (before, after)]
    return not any(result.diagnostics for result in found) and _same(found[0].module, found[1].module)


def canonical_opcode(text: str) -> str:
    """An opcode with its modifiers in the manual's order; as it is where no form of the manual fits."""
    try:
        found = resolve(text).text
    except OpcodeError:
        return text
    same = slack(text) is None and sorted(found.split(".")) == sorted(text.split("."))
    return found if same else text


def _same(before: Module, after: Module) -> bool:
    """Whether two trees are equal but for the order of modifiers."""
    if before == after:
        return True
    for module in (before, after):
        for function in module.functions:
            _order(function.body)
    return before == after


def _order(body: Scope | None) -> None:
    for statement in statements(body) if body is not None else ():
        if isinstance(statement, Instruction):
            statement.opcode = canonical_opcode(statement.opcode)


# --- lines ------------------------------------------------------------------------------------------------------------


#: Units behind which others stay in their line, if a comment speaks of it.
_JOINING = frozenset({"statement", "verbatim", "header", "{", "}"})


def _lines(text: str, runs: Mapping[int, tuple[int, str]] | None = None) -> list[_Line]:
    kept = _kept(text)
    lines: list[_Line] = []
    depth, prefix, last = 0, "", ""
    number = 1
    at = 0
    runs = runs or {}
    for unit in units(text, runs):
        start = unit.span[0]
        if kept:
            number += text.count("\n", at, start)
            at = start
        if unit.kind == "}":
            depth = max(depth - 1, 0)
        gap = unit.breaks > 1 and bool(lines) and not lines[-1].opens and unit.kind != "}" and not prefix
        here = unit.breaks == 0 and bool(lines)
        margin = "\t" * depth
        if unit.kind == "run":
            if depth < 1 or prefix or here:
                raise _DeeperError
            code = runs[start][1]
            if depth > 1:
                code = f"\n{code}".replace("\n\t", f"\n{margin}")[1:]
            lines += [_Line("")] * gap
            if REMARK in code:
                parts = (row.partition(REMARK) for row in code.split("\n"))
                lines += [_Line(row, comment, plain=True) for row, _, comment in parts]
            else:
                lines.append(_Line(code, plain=True))
            last = "statement"
            continue
        if unit.kind == "comment":
            comment = unit.pieces[0].text
            if here and not prefix and number in kept and not lines[-1].comment and _before_code(text, unit):
                lines[-1] = lines[-1]._replace(code=f"{lines[-1].code} {comment}")
                continue
            if here and not prefix:
                lines[-1] = lines[-1]._replace(comment=f"{lines[-1].comment} {comment}".strip())
            elif _before_code(text, unit):
                lines += [_Line("")] * gap
                prefix += f"{comment} "
            else:
                lines += [*[_Line("")] * gap, _Line(margin + prefix + comment)]
                prefix = ""
            last = unit.kind
            continue
        together = here and number in kept and last in _JOINING and not lines[-1].comment
        made = list(_of_unit(text, unit, margin, number in kept))
        if prefix:
            made[0] = made[0]._replace(code=_with_prefix(made[0].code, prefix))
        if together and not prefix:
            made[0] = made[0]._replace(code=f"{lines.pop().code} {made[0].code.strip()}")
        lines += [*[_Line("")] * gap, *made]
        if unit.kind == "{" or (unit.kind == "header" and unit.pieces[-1].text == "{"):
            depth += 1
        prefix, last = "", unit.kind
    if prefix:
        lines.append(_Line("\t" * depth + prefix.rstrip()))
    return lines


def _before_code(text: str, unit: Unit) -> bool:
    """Whether something other than a line's end follows a comment."""
    if unit.pieces[0].ends_line:
        return False
    end = text.find("\n", unit.span[1])
    rest = text[unit.span[1] : end if end >= 0 else len(text)].strip()
    return bool(rest) and not rest.startswith("//")


def _with_prefix(code: str, prefix: str) -> str:
    stripped = code.lstrip("\t")
    return code[: len(code) - len(stripped)] + prefix + stripped


def _kept(text: str) -> set[int]:
    """The lines that comments are about, which may be in a comment of their own or at a line's end."""
    if not _ABOUT_LINES.search(text):
        return set()
    found: set[int] = set()
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if _ABOUT_LINES.search(row):
            found.add(number)
            if not row.partition("//")[0].strip():
                later = (n for n in range(number + 1, len(rows) + 1) if rows[n - 1].partition("//")[0].strip())
                found.add(next(later, number))
    return found


def _of_unit(text: str, unit: Unit, margin: str, kept: bool) -> Iterator[_Line]:
    if unit.kind in ("{", "}"):
        yield _Line(margin + unit.kind, opens=unit.kind == "{")
    elif unit.kind == "verbatim":
        yield _Line(text[slice(*unit.span)].rstrip())
    elif kept:
        yield _Line(margin + text[slice(*unit.span)].strip(), opens=unit.pieces[-1].text == "{")
    elif unit.kind == "header":
        header = text[slice(*unit.span)]
        lines = _headers.get(header)
        if lines is None:
            if len(_headers) >= _MOST_HEADERS:
                _headers.clear()
            lines = _headers[header] = tuple(_header(unit.pieces))
        yield from lines
    elif _is_label(unit.pieces):
        yield _Line(joined(unit.pieces, "\t"))
    elif (words := _opcode(unit.pieces)) is not None:
        yield _Line(margin + _instruction(unit.pieces, words, margin))
    else:
        yield _Line(margin + joined(unit.pieces, margin + "\t"))


def _is_label(pieces: Sequence[Piece]) -> bool:
    return pieces[-1].text == ":" and all(p.kind in ("WORD", "CALL", ":", COMMENT) for p in pieces)


def _opcode(pieces: Sequence[Piece]) -> tuple[int, int] | None:
    """Where the words of the opcode begin and end; None if it is no instruction, or has comments among them."""
    begin = 0
    if pieces[0].text == "@":
        begin = 3 if len(pieces) > 3 and pieces[1].text == "!" else 2
    if begin >= len(pieces) or pieces[begin].kind not in ("WORD", "CALL"):
        return None
    if any(piece.kind == COMMENT for piece in pieces[: begin + 1]):
        return None
    end = begin + 1
    while end < len(pieces) and pieces[end].text.startswith("."):
        end += 1
    after = pieces[end] if end < len(pieces) else None
    labelled = after is not None and after.text == ":" and any(p.kind in _LABELLED for p in pieces)
    return None if labelled else (begin, end)


def _instruction(pieces: Sequence[Piece], words: tuple[int, int], margin: str) -> str:
    begin, end = words
    guard = "".join(piece.text for piece in pieces[:begin])
    opcode = canonical_opcode("".join(piece.text for piece in pieces[begin:end]))
    head = f"{guard} {opcode}" if guard else opcode
    operands = joined(pieces[end:], margin + "\t", instruction=True)
    return head + (operands if operands == ";" else f" \t{operands}")


# --- headers ----------------------------------------------------------------------------------------------------------


def _header(pieces: Sequence[Piece]) -> Iterator[_Line]:
    """A function's header, a parameter and a directive a line; a section's."""
    if any(piece.kind == "SECTION" for piece in pieces):
        yield _Line(joined(pieces, ""), opens=True)
        return
    for chunk, inside in _chunks(pieces):
        yield _Line("\t" * inside + joined(chunk, "\t"), opens=chunk[-1].text == "{")


def _chunks(pieces: Sequence[Piece]) -> list[tuple[list[Piece], bool]]:
    """The lines of a header, and which of them are parameters."""
    first, last = _parameters(pieces)
    chunks: list[tuple[list[Piece], bool]] = [([], False)]
    depth = 0
    for at, piece in enumerate(pieces):
        inside = first < at < last
        comment = piece.kind == COMMENT
        starts = (
            (inside and depth == 1 and (pieces[at - 1].text == "," or at == first + 1 or _behind(pieces, at)))
            or first < at == last
            or (last < at and depth == 0 and piece.text.startswith("."))
            or (piece.text == "{" and depth == 0)
            or (comment and piece.breaks > 0)
        )
        if starts and chunks[-1][0] and not (comment and piece.breaks == 0):
            chunks.append(([], inside))
        chunks[-1][0].append(piece)
        depth += (piece.text in ("(", "[")) - (piece.text in (")", "]"))
        if piece.text == "{" and last < at:
            depth = 0
    return chunks


def _behind(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a parameter begins here, behind comments."""
    before = at - 1
    while before > 0 and pieces[before].kind == COMMENT:
        before -= 1
    return before < at - 1 and pieces[before].text in (",", "(")


def _parameters(pieces: Sequence[Piece]) -> tuple[int, int]:
    """Where the brackets of the parameters stand that are not empty; (n, n) without any, n: where the name, or the
    empty list, ends."""
    depth = 0
    name = -1
    for at, piece in enumerate(pieces):
        if piece.text == "(":
            if depth == 0 and name >= 0:
                return (at, _closing(pieces, at)) if pieces[at + 1].text != ")" else (at + 1, at + 1)
            depth += 1
        elif piece.text == ")":
            depth -= 1
        elif depth == 0 and piece.kind in ("WORD", "CALL"):
            name = at
        elif depth == 0 and name >= 0 and piece.kind != COMMENT:
            break
    return name, name


def _closing(pieces: Sequence[Piece], at: int) -> int:
    depth = 0
    for index in range(at, len(pieces)):
        depth += (pieces[index].text == "(") - (pieces[index].text == ")")
        if depth == 0:
            return index
    return len(pieces) - 1


# --- comments behind code ---------------------------------------------------------------------------------------------


def _aligned(lines: Sequence[_Line]) -> Iterator[str]:
    """The text of the lines; comments behind neighbouring ones begin in the same column."""
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].comment:
            end += 1
        if end == at:
            yield lines[at].code.rstrip()
            at += 1
            continue
        widths = [len(line.code.rpartition("\n")[2].expandtabs(8)) for line in lines[at:end]]
        column = max((width for width in widths if width <= _WIDEST), default=0)
        for line, width in zip(lines[at:end], widths, strict=True):
            yield f"{line.code}{' ' * max(column - width, 0)}  {line.comment}"
        at = end
