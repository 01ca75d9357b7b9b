"""Reader of litmus tests in the format of herd: a name, initial values, a table of instructions, a condition.

PTX MP
{ x = 0; flag = 0; }
 P0@cta 0,gpu 0           | P1@cta 1,gpu 0           ;
 st.weak x, 1             | ld.acquire.gpu r0, flag  ;
 st.release.gpu flag, 1   | ld.weak r1, x            ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""

from __future__ import annotations

import re

from ptxtools.diagnostics import Source
from ptxtools.records import replace

from .clusters import names_other_ctas, spread
from .conditions import owned_registers, read_condition, read_location, thread_number
from .instructions import Cells
from .mbarriers import initial
from .multimem import complete_aliases, read_multi_address
from .programs import PROXIES, TENSOR_MEMORY, UNTYPED, Address, Branch, Label, Location, Test, Thread, Type, scalar_type
from .proxy_tests import is_proxy_test, read_proxy_tests
from .scope_trees import read_map, read_tree, starts_map, starts_tree
from .tensors import Engines, read_described
from .words import Reader, Word, beginning, refuse, register_name, words_of

_HEAD = re.compile(r"(?:GPU_)?PTX(?:v?[\d._]+)?(?!\w)[ \t]*([^\n{\"]*)", re.IGNORECASE)
_PRELUDE = re.compile(r'"[^"]*"|\(\*.*?\*\)|//[^\n]*|[^"{]', re.DOTALL)
_BRACE_LINE = re.compile(r"^[ \t]*\{", re.MULTILINE)
_THREADS_LINE = re.compile(r"^[ \t]*[PpTt]?\d+[ \t]*[@|;]", re.MULTILINE)
_C_TYPES = {
    "int": Type("s", 32), "unsigned": Type("u", 32), "long": Type("s", 64), "int32_t": Type("s", 32),
    "uint32_t": Type("u", 32), "int64_t": Type("s", 64), "uint64_t": Type("u", 64), "uint16_t": Type("u", 16),
    "uint8_t": Type("u", 8), "int16_t": Type("s", 16), "int8_t": Type("s", 8), "short": Type("s", 16),
    "char": Type("s", 8), "bool": Type("u", 8), "size_t": Type("u", 64), "uintptr_t": Type("u", 64),
    "intptr_t": Type("s", 64), "atomic_int": Type("s", 32), "atomic_uint": Type("u", 32), "atomic_long": Type("s", 64),
    "atomic_ulong": Type("u", 64),
}  # fmt: skip
#: Words of C beside a type, which say nothing here.
_QUALIFIERS = ("volatile", "_Atomic")
_MEMORY_SPACES = {".global": "global", ".shared": "shared", ".const": "const", "global": "global", "shared": "shared",
                  ".tmem": TENSOR_MEMORY, "tmem": TENSOR_MEMORY}  # fmt: skip
_SPACES = frozenset((*_MEMORY_SPACES, ".reg", ".pred", ".surfref", ".texref", ".conref", *_QUALIFIERS))
#: What else the place of a thread may name: other words for a level, and levels inside of a CTA.
_OTHER_LEVELS = {"block": "cta", "device": "gpu", "thread": "lane", "tid": "lane", "system": "sys"}
_ALIASES = ("aliases", "alias")
#: Bytes of an array.
MOST_BYTES = 1024
_ENDINGS = ("exists", "forall", "~", "not", "filter", "locations", "observed", "final")


def read_tests(source: Source, tensors: Engines | None = None) -> list[Test]:
    """The tests of a text: one, or those of a file in the format of the paper on proxies. Raises PtxError."""
    return read_proxy_tests(source) if is_proxy_test(source.text) else [read_litmus(source, tensors)]


def read_litmus(source: Source, tensors: Engines | None = None) -> Test:
    """The test of a text in the format of herd. tensors: finds what knows tensor maps; without it a test that copies
    with one is refused. Raises PtxError with position and reason."""
    head = _HEAD.match(source.text, beginning(source.text))
    if head is None:
        refuse(source, "a litmus test begins with 'PTX' and its name", (0, 1))
    at = head.end()
    while (match := _PRELUDE.match(source.text, at)) is not None:
        at = match.end()
    line = _BRACE_LINE.search(source.text, head.end())
    if line is not None and _THREADS_LINE.search(source.text, at, line.start()) is None:
        at = line.end() - 1  # a brace before it is part of the text in front of the initial values
    threads = _THREADS_LINE.search(source.text, head.end())
    bare = threads is not None and line is None and threads.start() < at  # without initial values
    if threads is not None and bare:
        at = threads.start()
    elif at >= len(source.text) or source.text[at] != "{":
        refuse(source, "expected '{' and initial values after the name", (max(at - 1, 0), at))
    test = Test(head.group(1).strip() or "unnamed", source, tensors=tensors)
    reader = Reader(source, words_of(source, at))
    if not bare:
        reader.take()
        _read_initial(reader, test)
    placed = _read_threads(reader, test)
    _read_rows(reader, test, placed)
    _number_ctas(reader, test)
    spread(test)
    _read_end(reader, test, placed)
    return test


# --- initial values ---------------------------------------------------------------------------------------------------


def _read_initial(reader: Reader, test: Test) -> None:
    aliases: list[tuple[Word, str, Word]] = []
    while not reader.accept("}"):
        if reader.accept(";"):
            continue
        start = reader.at
        _read_types(reader)
        types, reader.at = reader.words[start : reader.at], start
        _read_declaration(reader, test, aliases)
        while reader.accept(","):  # a further name, with the same types
            reader.words[reader.at : reader.at] = types
            _read_declaration(reader, test, aliases)
        if reader.next.text not in (";", "}"):
            reader.fail("expected ';' after the initial value")
    reader.accept(";")
    for word, proxy, other in aliases:
        target = test.locations.setdefault(other.text, Location(other.text))
        location = test.locations.setdefault(word.text, Location(word.text))
        if target.memory == word.text or location is target:
            reader.fail(f"'{word.text}' is an alias of itself", word)
        location.memory = target.memory
        if proxy != "generic":
            location.virtual = target.virtual
    complete_aliases(test.locations)


def _read_declaration(reader: Reader, test: Test, aliases: list[tuple[Word, str, Word]]) -> None:
    if reader.next.text in ("constexpr", "const") and reader.peek().kind == "word":
        _read_constant(reader)
        return
    if reader.next.text in ("multimem", ".multimem") and reader.peek().kind == "word":
        reader.take()
        read_multi_address(reader, test.locations)
        return
    start = reader.at
    type_ = _read_types(reader)
    reader.accept("*")
    thread = thread_number(reader.next)
    if thread is not None and reader.peek().text == ":":
        reader.take(), reader.take()
        _read_types(reader)
        name = register_name(reader.name("a register").text)
        test.registers[f"P{thread}:{name}"] = _initial(reader, test) if reader.accept("=", "==") else 0
        return
    owner = None
    if reader.next.text == ".shared" and reader.peek().text == "@":
        space = reader.take()
        reader.take()
        reader.accept("cta") or reader.fail("expected 'cta' and the number of the CTA whose shared memory it is")
        owner = reader.number("the number of a CTA")
        type_ = _read_types(reader) or type_
        reader.words[start : reader.at] = [space]
        reader.at = start + 1
    named = [word.text for word in reader.words[start : reader.at] if word.text in _MEMORY_SPACES]
    mbarrier = None
    if reader.next.text in ("mbarrier", ".mbarrier") and reader.peek().kind == "word":
        mbarrier = reader.take()
    map_ = mbarrier is None and reader.next.text in ("tensormap", ".tensormap") and reader.peek().kind == "word"
    if map_:
        reader.take()
    bracket = reader.accept("[")
    reader.accept("*")
    word = reader.name("a location")
    if bracket:
        reader.expect("]", "after the location")
    proxy = "generic"
    if reader.accept("@"):
        chosen = reader.name("a proxy")
        proxy = chosen.text
        if proxy not in PROXIES:
            reader.fail(f"unknown proxy '{proxy}'", chosen, f"one of {', '.join(PROXIES)}")
        if reader.next.text not in _ALIASES:
            reader.fail("expected 'aliases'")
    if reader.accept(*_ALIASES):
        aliases.append((word, proxy, reader.name("a location")))
        return
    location = test.locations.setdefault(word.text, Location(word.text))
    location.type = type_ or location.type
    location.space = "shared" if mbarrier else _MEMORY_SPACES[named[0]] if named else location.space
    location.owner = owner
    if map_:
        read_described(reader, location, lambda: _initial(reader, test))
        return
    elements = _elements(reader) if not (mbarrier or bracket) else None
    if reader.next.text in ("=", "==") and reader.peek().text == "{":
        reader.take()
        _read_array(reader, location, elements or 0)
    elif elements is not None:
        _sized(reader, word, location, elements)
    elif reader.accept("=", "=="):
        location.initial = _initial(reader, test)
        if mbarrier:
            location.initial = _expecting(reader, mbarrier, location.initial)
    elif mbarrier:
        reader.fail("expected '=' and how many arrivals the mbarrier expects")


def _read_constant(reader: Reader) -> None:
    """A name for a number, which stands for it from here on."""
    reader.take()
    _read_types(reader)
    name = reader.name("a name for a number").text
    if not reader.accept("=", "=="):
        reader.fail("expected '=' and the value of the constant")
    value = reader.number("a number")
    reader.words[reader.at :] = [
        Word("number", str(value), word.start) if word.kind == "word" and word.text == name else word
        for word in reader.words[reader.at :]
    ]


def _elements(reader: Reader) -> int | None:
    """The number of elements in brackets behind a name; 0 for empty brackets."""
    if not reader.accept("["):
        return None
    count = reader.number("a number of elements") if reader.next.text != "]" else 0
    reader.expect("]", "after the number of elements")
    return count


def _read_array(reader: Reader, location: Location, elements: int) -> None:
    """The initial values of an array, in braces; elements that have none are 0."""
    word = reader.take()
    values: list[int] = []
    while not reader.accept("}"):
        if values:
            reader.expect(",", "between initial values")
        values.append(reader.number("a number"))
    if elements and len(values) > elements:
        reader.fail(f"{len(values)} initial values for {elements} elements", word)
    type_ = _sized(reader, word, location, elements or len(values))
    mask = (1 << type_.bits) - 1
    location.initial = sum((value & mask) << at * type_.bits for at, value in enumerate(values))


def _sized(reader: Reader, word: Word, location: Location, elements: int) -> Type:
    """Make a location an array of so many elements, of 64 bits if it has no type."""
    location.type = location.type or UNTYPED
    location.size = elements * location.type.bits // 8
    if not 0 < location.size <= MOST_BYTES:
        reader.fail(f"expected an array of 1 to {MOST_BYTES} bytes", word)
    return location.type


def _expecting(reader: Reader, word: Word, count: int | Address) -> int:
    """The word of an mbarrier object that expects so many arrivals."""
    found = initial(count) if isinstance(count, int) else 0
    if not found:
        reader.fail("expected how many arrivals the mbarrier expects", word)
    return found


def _read_types(reader: Reader) -> Type | None:
    """State spaces and a type before a name."""
    found = None
    unsigned = False
    while reader.next.kind == "word" and _goes_on(reader.peek()):
        if reader.next.text.count(".") > 1:  # `.global.u32`
            reader.take_apart()
        text = reader.next.text
        type_ = scalar_type(text) or _C_TYPES.get(text)
        if type_ is None and text not in _SPACES:
            break
        unsigned = unsigned or text == "unsigned"  # also of `unsigned long`
        found = type_ or found
        reader.take()
    return replace(found, kind="u") if found and unsigned else found


def _goes_on(word: Word) -> bool:
    """Whether a name, or the thread of a register, may follow a type: what is in front of this word is no name then."""
    return word.kind in ("word", "number") or (word.kind == "sign" and word.text not in "=;}@")


def _initial(reader: Reader, test: Test) -> int | Address:
    if reader.next.kind == "number" or reader.next.text in ("-", "+"):
        return reader.number("a number")
    reader.accept("&")
    name = reader.name("a number or a location").text
    test.locations.setdefault(name, Location(name))
    return Address(name)


# --- the table --------------------------------------------------------------------------------------------------------


def _read_threads(reader: Reader, test: Test) -> bool:
    """Whether the threads have places. Else each is in a CTA of its own, unless a scope tree follows."""
    placed = False
    while True:
        word = reader.next
        number = thread_number(word)
        if number is None:
            reader.fail("expected a thread, such as 'P0@cta 0,gpu 0'")
        if any(thread.number == number for thread in test.threads):
            reader.fail(f"thread P{number} is declared twice", word)
        reader.take()
        if bool(at := reader.accept("@")) != placed and test.threads:
            reader.fail("some threads have a place and some have none", word)
        placed = at is not None
        places = {"cta": -1 if placed else len(test.threads), "cluster": -1, "gpu": 0, "sys": 0, "grid": 0,
                  "warp": 0, "lane": 0}  # fmt: skip
        if placed:
            _read_place(reader, places)
        if places["cta"] < 0:
            reader.fail("the thread's place names no CTA", word)
        test.add(Thread(number, places["cta"], places["cluster"], places["gpu"], warp=places["warp"],
                        grid=places["grid"]), reader)  # fmt: skip
        if not reader.accept("|"):
            break
    reader.expect(";", "after the threads")
    for name in test.registers:
        if int(name[1:].split(":")[0]) not in {thread.number for thread in test.threads}:
            reader.fail(f"there is no thread for the initial value of {name}")
    return placed


def _read_place(reader: Reader, places: dict[str, int]) -> None:
    """The levels behind the sign, separated by commas, signs or blanks, and maybe in brackets."""
    end = {"(": ")", "[": "]"}.get(reader.next.text)
    if end:
        reader.take()
    more = True
    while more:
        level = reader.name("'cta', 'cluster' or 'gpu'")
        text = level.text.lower()
        letters = text.rstrip("0123456789")
        digits = text[len(letters) :]
        name = _level(letters)
        if name not in places or (name == "sys" and (digits or reader.next.text) != "0"):
            reader.fail("expected 'cta', 'cluster' or 'gpu'", level)
        places[name] = int(digits[:9]) if digits else _place_number(reader)
        more = bool(reader.accept(",", "@")) or _level(reader.next.text.lower().rstrip("0123456789")) in places
        reader.accept("@")
    if end:
        reader.expect(end, "after the place of the thread")


def _level(letters: str) -> str:
    letters = letters.strip("._")
    return _OTHER_LEVELS.get(letters, letters)


def _place_number(reader: Reader) -> int:
    """`0`, `= 0`, `: 0` or `(0)`."""
    enclosed = reader.accept("(") is not None
    if not enclosed:
        reader.accept("=", ":")
    number = reader.number("a number")
    if enclosed:
        reader.expect(")", "after the number")
    return number


def _number_ctas(reader: Reader, test: Test) -> None:
    """CTAs of one number in several clusters are counted within these: give each a number within its GPU and grid."""
    ctas = {(thread.gpu, thread.grid, thread.cluster, thread.cta) for thread in test.threads}
    if len({(gpu, grid, cta) for gpu, grid, _, cta in ctas}) == len(ctas):
        return
    names = [i.text.split()[0] for thread in test.threads for i in thread.instructions if names_other_ctas(i)]
    if names or any(location.owner is not None for location in test.locations.values()):
        what = f"'{names[0]}'" if names else "'.shared @cta'"
        reader.fail(f"{what} in a test with CTAs of one number in several clusters", reader.words[0])
    order = sorted(ctas)
    for thread in test.threads:
        thread.cta = order.index((thread.gpu, thread.grid, thread.cluster, thread.cta))


def _read_rows(reader: Reader, test: Test, placed: bool) -> None:
    registers: dict[int, set[str]] = {}
    for name in test.registers:
        owner, register = name[1:].split(":")
        registers.setdefault(int(owner), set()).add(register)
    cells = Cells(reader, test.locations, registers)
    cells.maps = placed  # where threads are must be known for it
    while reader.next.kind != "end" and reader.next.text not in _ENDINGS:
        if starts_tree(reader) or starts_map(reader):
            break
        for index, thread in enumerate(test.threads):
            thread.instructions += cells.read(thread.number)
            test.check_length(thread, reader)
            if index + 1 < len(test.threads) and not reader.accept("|"):
                break
        if reader.next.text == "|":
            reader.fail("the row has more cells than there are threads")
        reader.expect(";", "after the row")
    for thread in test.threads:
        _check_labels(reader, thread)


def _check_labels(reader: Reader, thread: Thread) -> None:
    labels: set[str] = {""}
    for instruction in thread.instructions:
        if isinstance(instruction, Label) and instruction.name:
            if instruction.name in labels:
                refuse(reader.source, f"the label '{instruction.name}' is defined twice", instruction.span)
            labels.add(instruction.name)
    for instruction in thread.instructions:
        if isinstance(instruction, Branch) and instruction.label not in labels:
            refuse(reader.source, f"{thread.name} has no label '{instruction.label}'", instruction.span)


# --- the condition ----------------------------------------------------------------------------------------------------


def _read_end(reader: Reader, test: Test, placed: bool) -> None:
    threads = [thread.number for thread in test.threads]
    owners = owned_registers(test)
    while reader.next.kind != "end":
        if starts_tree(reader):
            if placed:
                reader.fail("the threads have their places already")
            read_tree(reader, test)
            placed = True
        elif starts_map(reader):
            read_map(reader, test)
        elif reader.accept("locations", "observed"):
            test.observed += _read_observed(reader, threads, test)
        elif reader.accept("filter"):
            test.filter = read_condition(reader, threads, test.named, owners)
        else:
            if test.condition is not None:
                reader.fail("expected the end of the test")
            final = reader.accept("final")
            test.quantifier, inner = ("exists", False) if final else _read_quantifier(reader)
            test.condition = read_condition(reader, threads, test.named, owners)
            if inner:
                reader.expect(")", "after the condition")
            if final and reader.accept("with"):
                _read_expectations(reader, test)
        reader.accept(";")


def _read_quantifier(reader: Reader) -> tuple[str, bool]:
    """The quantifier, and whether a parenthesis has been opened behind its sign."""
    negated = reader.accept("~", "not")
    inner = negated is not None and reader.accept("(") is not None
    quantifier = reader.accept("exists") or (None if negated else reader.accept("forall"))
    if quantifier is None:
        reader.fail("expected 'exists', 'forall' or '~exists'")
    return ("~" if negated else "") + quantifier.text, inner


def _read_expectations(reader: Reader, test: Test) -> None:
    """What a test with `final` expects of each of several models: that of "ptx" counts, the others are not ours."""
    while reader.next.kind == "word":
        model = reader.take().text
        reader.expect(":", "after the name of a model")
        quantifier, _ = _read_quantifier(reader)
        if model.lower() == "ptx":
            test.quantifier = quantifier
        if not reader.accept(";"):
            break


def _read_observed(reader: Reader, threads: list[int], test: Test) -> tuple[str, ...]:
    found = []
    reader.expect("[", "before the list")
    while not reader.accept("]"):
        if reader.accept(";", ","):
            continue
        thread = thread_number(reader.next)
        if thread is not None and reader.peek().text == ":":
            if thread not in threads:
                reader.fail(f"there is no thread P{thread}")
            reader.take(), reader.take()
            found.append(f"P{thread}:{register_name(reader.name('a register').text)}")
            continue
        found.append(read_location(reader, test.named))
    return tuple(found)
