"""Reader of litmus tests in the format of the paper on proxies (files `*.test`): declarations, threads, commands.

.global x;
.surfref s virtually aliases x;
d0.b0.t0 { st.weak [x], 1; fence.proxy.surface; suld.weak r0, [s]; }
assert (r0 == 1) as seen;

A thread's name has its device, its CTA and its number. `ld … == 1` keeps only executions in which that value is read.
Behind `$$` follow rows of texts that replace `$0`, `$1` …: each row is a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtools.diagnostics import Source
from ptxtools.records import replace

from .conditions import read_condition
from .instructions import Cells
from .programs import Condition, Location, State, Test, Thread
from .words import Reader, Word, beginning, refuse, words_of

_BEGINNING = re.compile(r"\.(?:global|shared|texref|surfref|conref)\b|d\d+\.b\d+\.t\d+\s*\{")
_THREAD = re.compile(r"d(\d{1,5})\.b(\d{1,5})\.t(\d{1,5})")
_PROXIES = {".texref": "texture", ".surfref": "surface", ".conref": "constant", ".global": "generic",
            ".shared": "generic"}  # fmt: skip
#: What a command says of its condition: some execution satisfies it, or all do.
_QUANTIFIERS = {"permit": "exists", "check": "exists", "assert": "forall"}
_MOST_ROWS = 1000


def is_proxy_test(text: str) -> bool:
    return _BEGINNING.match(text, beginning(text)) is not None


def read_proxy_tests(source: Source) -> list[Test]:
    """The tests of a text: one for each command and row. Raises PtxError with position and reason."""
    found: list[Test] = []
    for text in _expanded(source):
        found += _tests(text)
    return found


def _expanded(source: Source) -> Iterator[Source]:
    """The template filled with each row; lines stay where they are."""
    template, mark, rows = source.text.partition("$$")
    if not mark:
        yield source
        return
    lines = [line for line in rows.split("\n") if line.strip()]
    if not lines or len(lines) > _MOST_ROWS:
        refuse(source, f"expected 1 to {_MOST_ROWS} rows behind '$$'", (len(template), len(template) + 2))
    for line in lines:
        cells = [cell.strip() for cell in line.split("|")]
        used = {int(number) for number in re.findall(r"\$(\d{1,3})", template)}
        if max(used, default=-1) >= len(cells):
            at = source.text.index(line, len(template))
            refuse(source, f"this row has no text for '${max(used)}'", (at, at + len(line)))
        yield Source(re.sub(r"\$(\d{1,3})", lambda m, c=cells: c[int(m[1])], template), source.name)  # type: ignore[misc]


def _tests(source: Source) -> list[Test]:
    reader = Reader(source, words_of(source))
    test = Test(source.name.rsplit("/", 1)[-1].removesuffix(".test"), source)
    owners: dict[str, list[str]] = {}
    filters: list[tuple[str, int]] = []
    found: list[Test] = []
    declared: dict[int, set[str]] = {}
    while reader.next.kind != "end":
        word = reader.next
        if word.text in _PROXIES:
            _read_declaration(reader, test)
        elif _THREAD.fullmatch(word.text):
            _read_thread(reader, test, owners, filters, declared)
        elif word.text in _QUANTIFIERS:
            found.append(_read_command(reader, test, owners, filters))
        else:
            reader.fail("expected a declaration, a thread or a command")
    if not found:
        return [replace(test, filter=_filter(filters))]
    return found


def _read_declaration(reader: Reader, test: Test) -> None:
    proxy = _PROXIES[reader.take().text]
    word = reader.name("a location")
    if word.text in test.locations:
        reader.fail(f"'{word.text}' is declared twice", word)
    location = test.locations[word.text] = Location(word.text)
    if reader.accept("physically" if proxy == "generic" else "virtually"):
        reader.expect("aliases", "after it")
        other = reader.name("a location")
        if other.text not in test.locations or other.text == word.text:
            reader.fail(f"there is no location '{other.text}' before this one", other)
        location.memory = test.locations[other.text].memory
        if proxy != "generic":
            location.virtual = test.locations[other.text].virtual
    elif proxy != "generic":
        reader.fail("expected 'virtually aliases'")
    reader.expect(";", "after the declaration")


def _read_thread(
    reader: Reader, test: Test, owners: dict[str, list[str]], filters: list[tuple[str, int]],
    declared: dict[int, set[str]],
) -> None:  # fmt: skip
    match = _THREAD.fullmatch(reader.take().text)
    assert match is not None
    thread = Thread(len(test.threads), int(match[2]), -1, int(match[1]))
    test.add(thread, reader)
    reader.expect("{", "after the thread")
    cells = Cells(reader, test.locations, declared)
    cells.fixed = True
    while not reader.accept("}"):
        instruction = cells.one(thread.number)
        thread.instructions.append(instruction)
        test.check_length(thread, reader)
        results = getattr(instruction, "results", ()) or (getattr(instruction, "result", ""),)
        for register in filter(None, results):
            names = owners.setdefault(register, [])
            names += [thread.name] if thread.name not in names else []
        if reader.accept("=="):
            if not any(results):
                reader.fail("this instruction returns no value")
            filters.append((f"{thread.name}:{results[0]}", reader.number("a number")))
        reader.expect(";", "after the instruction")


def _read_command(reader: Reader, test: Test, owners: dict[str, list[str]], filters: list[tuple[str, int]]) -> Test:
    quantifier = _QUANTIFIERS[reader.take().text]
    names = {register: f"{threads[0]}:{register}" for register, threads in owners.items() if len(threads) == 1}
    for register, threads in owners.items():
        if len(threads) > 1 and register not in test.locations:
            names[register] = ""
    condition = read_condition(reader, (), test.locations, names)
    name = test.name
    if reader.accept("as"):
        word: Word = reader.name("a name")
        name = f"{name}:{word.text}"
    reader.expect(";", "after the command")
    return replace(test, name=name, quantifier=quantifier, condition=condition, filter=_filter(filters))


def _filter(filters: list[tuple[str, int]]) -> Condition | None:
    if not filters:
        return None
    text = " /\\ ".join(f"{name} == {value}" for name, value in filters)
    kept = tuple(filters)

    def decided(state: State) -> bool | None:
        if any(state.get(name, value) != value for name, value in kept):
            return False
        return True if all(name in state for name, _ in kept) else None

    return Condition(decided, tuple(name for name, _ in kept), text)
