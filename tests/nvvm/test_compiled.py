"""Machine code that looks at NVVM IR does what its Python says, and what it passes has no finding."""

import random
import re
from array import array

import pytest

from ptxtools.diagnostics import Source
from ptxtools.nvvm import compiled as package
from ptxtools.nvvm.assembly import nodelines
from ptxtools.nvvm.assembly.parser import Parser
from ptxtools.nvvm.compiled import buffers, code, flow, nodes, notation, scan
from ptxtools.nvvm.rules import verify
from ptxtools.nvvm.rules.annotations import find_opaque
from ptxtools.nvvm.rules.context import Context
from ptxtools.nvvm.rules.faultless import faultless
from ptxtools.nvvm.rules.shapes import Shapes

from .cases import cases, module
from .test_screen import BODY, FAULTS, KERNELS, NODE_FAULTS, NODES, QUOTED, both

LIMIT = 7


@pytest.fixture(scope="module")
def compiled():
    found = code.code(may_compile=True)
    if found is None:
        pytest.skip("there is no machine code for this machine")
    return found


def view(given):
    """What a buffer is to Python: bytes, or words."""
    return given if isinstance(given, (int, bytes, bytearray, array)) else memoryview(given).cast("i")


def in_python(function):
    """A function of the notation as it is called in machine code; texts of shapes are bytes there."""

    def call(*given):
        texts = {one for one, kind in enumerate(function.__annotations__.values()) if kind == "Bytes"}
        function(*(memoryview(one).cast("B") if at in texts and not isinstance(one, bytes) else view(one)
                   for at, one in enumerate(given)))  # fmt: skip

    return call


PYTHON = code.Code(*map(in_python, (scan.scan, flow.flow, nodes.nodes, nodes.groups)))


def judged(text, dialect, which):
    """For each function, by name, the findings about single lines; None if it does not pass."""
    source = Source(text, "k.ll")
    parser = Parser(source)
    context = Context(parser.run(), source, dialect)
    find_opaque(context)
    found = faultless(which, context, Shapes(context), parser.unread)
    return {one.name: own for one, own in zip(parser.unread, found, strict=True)}


def passed(text, dialect, which):
    """For each function, by name, whether it passes."""
    return {name: found is not None for name, found in judged(text, dialect, which).items()}


def test_functions_without_fault_are_passed(compiled):
    """Otherwise the other tests would show nothing."""
    texts = [*zip(KERNELS, ("7", "modern", "modern"), strict=True), (module(BODY), "7"), (module(QUOTED), "7")]
    for text, dialect in texts:
        found = passed(text, dialect, compiled)
        assert found and all(found.values()), found


#: Functions without a fault, of which the names are followed in other ways: loops that are entered below their heads,
#: blocks and results without written names, blocks that nothing reaches, nodes, texts in inline assembly, comments.
FINE = [
    "define i32 @f(i32, i1 %c) {\n  br i1 %c, label %2, label %e\n; <label>:2:\n  %3 = add i32 %0, 1\n  br label %e\n"
    "e:\n  %4 = phi i32 [ %3, %2 ], [ 0, %1 ]\n  ret i32 %4\n}\n",
    "define void @f(i1 %c) {\n  br label %z\na: ; none\n"
    "  %x = add i32 %y, 1\n  br i1 %c, label %b, label %a2\na2:\n"
    "  br label %z2\nb:\n  ret void\nz:\n"
    "  br label %z2\nz2:\n  %y = phi i32 [ 1, %z ], [ %x, %a2 ]\n  br label %a\n}\n",
    "define i32 @f(i32 %a) {\n  ret i32 %a\nd:\n  %x = add i32 %a, 1\n  br label %e\ne:\n  ret i32 %x\n}\n",
    'define void @f(i32 %a) {\n  %q = call i32 asm sideeffect "mov.u32 $0, %clock; // ;", "=r"()\n'
    "  switch i32 %a, label %e [\n    i32 1, label %e ; 1\n    i32 2, label %g\n  ]\n"
    "e:\n  br label %g\ng:\n  ret void\n}\n",
]


def test_names_are_followed_in_all_ways(compiled):
    for text in map(module, FINE):
        assert not verify(text)
        without = text.replace(" ; 1", "")
        assert all(passed(without, "7", compiled).values()), text


def test_machine_code_does_what_its_python_does(compiled):
    texts = [(module(BODY.replace(old, new)), "7") for old, new, _ in FAULTS]
    texts += [(module(one), "7") for one in FINE] + [(module(QUOTED), "7"), (KERNELS[0][:9000], "7")]
    texts += [(text, dialect) for _, _, dialect, text in cases()][::9]
    fine = 0
    for text, dialect in texts:
        ours = passed(text, dialect, compiled)
        assert ours == passed(text, dialect, PYTHON), text
        fine += any(ours.values())
    assert 5 < fine < len(texts)


def test_what_is_passed_has_its_findings(compiled, monkeypatch):
    monkeypatch.setattr(package, "LOADED", 0)
    both_ways = 0
    for name, _, dialect, text in cases():
        screened, read = both(text, dialect=dialect)
        assert screened == read, (name, dialect)
        both_ways += bool(read) and any(passed(text, dialect, compiled).values())
    assert both_ways > 50
    # Each line with a finding has its own, in functions that are passed.
    text = KERNELS[2] + KERNELS[2].partition("!llvm.module")[0].replace("@add_kernel", "@other")
    screened, read = both(text)
    assert screened == read and sum("NVVM230" in one for one in read) > 3


def test_faults_of_names_do_not_pass_in_silence(compiled):
    for old, new, code_ in FAULTS:
        found = judged(module(BODY.replace(old, new)), "7", compiled)["@f"]
        assert found == [] if code_ is None else found is None or code_ in {one.code for one in found}, new


def lines_of(text, how):
    """What is found of lines with nodes; as text, since a name may stand in any order of groups. how: the code."""
    made = object.__new__(nodelines.NodeLines)
    made._begin, made._region, made._known = 3, text, {}
    if how is None:
        made._find()
    else:
        assert made._scan(how, text, len(text))
    known = sorted((one.key, one.kind, one.names) for one in made._known.values())
    return made.refers, made.passed, known


def test_nodes_are_found_in_the_same_lines(compiled):
    rng = random.Random(4)
    texts = [
        NODES,
        "",
        "\n",
        "!1",
        "!",
        "!1 = !{}\n!2 = !{}",
        "}\n\n!1 = !{}\n!22 = !{}\n; c\n!4 = !{null, !1}\n!5 = !{null, !1}",
    ]
    words = re.findall(r"!\d+|\w+|\n|.", NODES)
    for _ in range(150):
        made = list(words)
        for _ in range(rng.randrange(1, 12)):
            made[rng.randrange(len(made))] = rng.choice(
                [
                    *words,
                    '"',
                    '""',
                    "ine: 123456789)",
                    "Kind: 5,",
                    "lity: 5,",
                    "ize: 1234567890,",
                    ": 12345,",
                    ": 7)",
                    "!",
                ]
            )
        texts.append("".join(made))
    for text in texts:
        (refers, *found), (mentions, *expected) = lines_of(text, compiled), lines_of(text, None)
        # A string may have what looks like a node.
        assert found == expected and (refers == mentions if text.count('"') == NODES.count('"') else refers <= mentions)
    for text in texts[::10]:
        assert lines_of(text, PYTHON) == lines_of(text, compiled)


def test_large_texts_are_scanned(compiled, monkeypatch):
    monkeypatch.setattr(package, "LOADED", 0)
    for old, new, found in [("", "", None), *NODE_FAULTS]:
        text = module("define void @f() {\n  ret void, !dbg !3\n}\n" + NODES.replace(old, new))
        screened, read = both(text)
        assert screened == read and bool(read) == bool(found), (new, screened, read)


def test_tables_that_are_full_leave_functions_out(compiled, monkeypatch):
    """Here each line is another shape, and each line of metadata another node."""
    bodies = ("".join(f"  %v{n} = add i32 %a, {n}\n" for n in range(at, at + 200)) for at in (0, 200))
    text = module("".join(f"define void @f{n}(i32 %a) {{\n{body}  ret void\n}}\n" for n, body in enumerate(bodies)))
    assert not verify(text) and all(passed(text, "7", compiled).values())
    monkeypatch.setattr(buffers, "_FEWEST", 1)
    found = passed(text, "7", compiled)
    assert not all(found.values()) and found == passed(text, "7", PYTHON)
    made = object.__new__(nodelines.NodeLines)
    mentions = "\n".join(f"!{n}" for n in range(100))
    made._begin, made._region, made._known = 0, mentions, {}
    assert not made._scan(compiled, mentions, len(mentions))


#: Blocks of which each goes on or leaves, and all that leave meet; and an instruction where they meet.
LEAVES = "define i32 @f(i1 %c, i32 %a) {{\n  %v = add i32 %a, 1\n  br label %b0\n{}end:\n  ret i32 {}\n}}\n"
LEAVE = "b{0}:\n  %x{0} = add i32 %v, {0}\n  br i1 %c, label %end, label %b{1}\n"


def test_what_takes_many_looks_is_left_to_python(compiled, monkeypatch):
    monkeypatch.setattr(package, "LOADED", 0)
    for count, fine in ((20, True), (3000, False)):
        blocks = "".join(LEAVE.format(n, n + 1) for n in range(count)) + f"b{count}:\n  br label %end\n"
        assert passed(module(LEAVES.format(blocks, "%v")), "7", compiled) == {"@f": fine}
        assert not verify(module(LEAVES.format(blocks, "%x0")))
        assert [one.code for one in verify(module(LEAVES.format(blocks, "%x9")))] == ["NVVM115"]


def test_texts_that_are_not_ascii_are_left_alone(compiled, monkeypatch):
    monkeypatch.setattr(package, "LOADED", 0)
    text = module(BODY.replace("entry:", "entry: ; \u00e9"))
    assert not verify(text) and not verify(text.replace("\u00e9", "e"))
    assert [one.code for one in verify(text.replace("ret i32 %r", "ret i32 %q"))] == ["NVVM110"]


def test_small_texts_do_not_ask_for_machine_code(monkeypatch):
    monkeypatch.setattr(code, "code", lambda may_compile: pytest.fail("asked"))
    assert not verify(module(BODY))


def test_what_cannot_be_kept_is_not_made(tmp_path, monkeypatch):
    """Nor is what cannot be read taken for code."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(code, "machine_code", lambda *_: pytest.fail("made"))
    for one in (code._loaded, code._compiled):
        monkeypatch.setattr(code, one.__name__, one.__wrapped__)
    assert code._compiled() is False and code._loaded() is None
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    assert code._loaded() is None


def test_without_memory_that_can_be_executed_there_is_no_code(compiled, monkeypatch):
    class Refusing:
        def __init__(self, *_, **__):
            self.mprotect = type("Refused", (), {"__call__": lambda *_: -1, "argtypes": None})()

    assert code.cache.read_sealed(code._path(), code._key(), 1 << 20)
    monkeypatch.setattr(code.ctypes, "CDLL", Refusing)
    monkeypatch.setattr(code, "_loaded", code._loaded.__wrapped__)
    assert code._loaded() is None


# --- the notation -----------------------------------------------------------------------------------------------------

SOURCE = '''
def entry(data: Bytes, words: Words, count: int) -> int:
    """What all statements do."""
    found, last = 0, LIMIT
    for i in range(count):
        if data[i] == 0 or (data[i] > 200 and not words[i]):
            continue
        if words[i] < -5:
            break
        found += helper(data, words, i) * (words[i] != 3)
    while last:
        last -= 1
        found ^= last << 3 | found >> 2
        if found & 1 and 0 <= last < 4:
            words[last] = -found
        elif last == 5:
            data[1] = data[1] + 300
        else:
            words[count - 1] += 1
    words[0] = found & 65535
    return 0


def helper(data: Bytes, words: Words, i: int) -> int:
    while i > 2:
        i -= 2
    if i == 1:
        return data[i] - words[i]
    return -i
'''


def test_the_notation_means_what_it_means_in_python(compiled):
    names = {"LIMIT": LIMIT}
    exec(f"from __future__ import annotations\n{SOURCE}", names)
    native = code._function(code.machine_code([(SOURCE, names)], "entry"))
    for seed in range(40):
        data = bytearray((seed * 37 + at * 91) % 256 for at in range(9))
        words = array("i", [(seed * 13 + at * 7) % 11 - 5 for at in range(9)])
        other, others = bytearray(data), array("i", words)
        native(data, words, 9)
        other_ = [*other]
        other_[1] = other[1]
        names["entry"](_Wrapped(other), others, 9)
        assert words == others and data == other


class _Wrapped:
    """Bytes that take what does not fit as machine code does."""

    def __init__(self, data):
        self._data = data

    def __getitem__(self, at):
        return self._data[at]

    def __setitem__(self, at, value):
        self._data[at] = value & 255


@pytest.mark.parametrize(
    "body", ["x = [1]", "x = y", "x = 1.5", "data[0:1] = 2", "x = data", "for i in count:\n  pass", "x = words[0] / 2",
             "x = unknown(1)", "return", "a.b = 1"]
)  # fmt: skip
def test_what_is_not_of_the_notation_is_refused(body):
    text = "def entry(data: Bytes, words: Words, count: int) -> int:\n" + "".join(
        f" {one}\n" for one in body.split("\n")
    )
    with pytest.raises(ValueError, match="no meaning"):
        notation.module_ir([(text, {})], "entry")
