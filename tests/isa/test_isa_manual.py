"""Every opcode of the manual's examples and of the test data resolves."""

import re
from pathlib import Path

from ptxtools.isa import OpcodeError, resolve
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata"
EXAMPLES = [line.split()[0] for line in (DATA / "isa" / "manual_examples.txt").read_text().splitlines()]
#: An opcode in a statement: behind `;`, a brace, a label or a guard.
OPCODE = re.compile(
    r"(?:^|[;{}])\s*(?:[$%\w]+\s*:\s*)?(?:@!?[%$\w]+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)*)(?=[\s;])(?!\s*:)", re.M
)


def test_examples_of_the_manual() -> None:
    refused = []
    for text in EXAMPLES:
        try:
            resolve(text)
        except OpcodeError as error:
            refused.append(f"{text}: {error.message}")
    assert len(EXAMPLES) > 600 and not refused


def opcodes_of(path: Path) -> set[str]:
    text = re.sub(r"//.*|/\*.*?\*/|\"[^\"]*\"", "", path.read_text())
    text = re.sub(r"\b(call(?:\.uni)?)\s[^;]*;", r"\1 f;", text)  # calls stretch over lines
    text = re.sub(r"=\s*\{[^}]*\}", "", text)  # initialisers name fields
    return set(OPCODE.findall(text))


@rows("path", sorted(DATA.rglob("*.ptx")), ids=lambda path: "/".join(path.relative_to(DATA).parts[-2:]))
def test_opcodes_of_the_test_data(path: Path) -> None:
    refused, seen = [], 0
    for text in sorted(opcodes_of(path)):
        try:
            resolve(text)
            seen += 1
        except OpcodeError as error:
            refused.append(error.message)
    assert seen and not refused
