"""Hold ptx-lint against ptxas on damaged modules: real ones, with mistakes as hands and generators make them.

Usage: python tools/fuzz_ptxas.py [--ptxas PATH] [--seconds N] [--seed N] [--most N] [FILES]...

Each module is damaged in one or two places, and the verdicts are compared, with the line of the first error. What
differs beyond the reviewed lists is printed with the number that makes it again (`--seed N --seconds 0`). Without files
the short modules of testdata are taken. ptx-lint must not fail on any of them.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from conformance.oracle import Oracle  # noqa: E402
from conformance.record import Record  # noqa: E402
from conformance.replay import deviations, differences  # noqa: E402
from conformance.setting import LINES  # noqa: E402

from ptxtools.syntax.words import CLASSES  # noqa: E402

REVIEWED = ROOT / "testdata" / "conformance" / "deviations"
#: Modules with more characters take ptxas too long.
LONGEST = 6000
TOKEN = re.compile(r'"[^"\n]*"|[A-Za-z_$%][\w$%]*|\.[A-Za-z_][\w:]*|\d[\w.]*|\s+|.')
OPERAND = re.compile(r"(?<=[ \t,(])[^,;()]+(?=[,;)])")
HEADER = re.compile(r"\.version\s+(\S+)\s+\.target\s+(\w+)")
CONSTANTS = [
    "0", "1", "-1", "33", "64", "256", "65536", "4294967295", "4294967296", "18446744073709551615", "1.5", "-1.0",
    "0f3F800000", "0d3FF0000000000000", "0x", "08", "1U", "1/0", "(1+2)", "!1", "WARP_SZ", "_", "%tid.x", "%laneid",
    "%clock64", "%r99999", "undeclared", "{%r1}", "[%r1]", "!%p1",
]  # fmt: skip
MARKS = [";", ",", ":", "{", "}", "[", "]", "(", ")", "@", "<", ">", "=", "+", "|", "!", "-", ".", "\\"]

Damage = Callable[[random.Random, list[str], list[str]], None]


def kind(token: str) -> str:
    """What a token may be mistaken for."""
    if token[0] == ".":
        return CLASSES.get(token, ".")
    return (
        "%"
        if token[0] == "%"
        else "a"
        if token[0].isalpha() or token[0] in "_$"
        else "0"
        if token[0].isdigit()
        else "?"
    )


def token(rng: random.Random, lines: list[str], words: list[str]) -> None:
    """One token is dropped, doubled, misspelt, or another one."""
    at = rng.randrange(len(lines))
    tokens = TOKEN.findall(lines[at])
    place = rng.choice([i for i, text in enumerate(tokens) if text.strip()])
    old, what = tokens[place], rng.randrange(7)
    if what == 0:
        tokens[place] = ""
    elif what == 1:
        tokens[place] += old if rng.random() < 0.5 else f" {old}"
    elif what == 2 and len(old) > 1:
        cut = rng.randrange(1, len(old))
        tokens[place] = (
            old[: cut - 1] + rng.choice([old[cut] + old[cut - 1], old[cut], "x" + old[cut]]) + old[cut + 1 :]
        )
    elif what == 3:
        tokens[place] = rng.choice(words)
    elif what == 4:
        tokens[place] += rng.choice(MARKS)
    else:
        alike = [word for word in (*words, *CLASSES) if kind(word) == kind(old)]
        tokens[place] = rng.choice([*alike, old])
    lines[at] = "".join(tokens)


def operand(rng: random.Random, lines: list[str], _: list[str]) -> None:
    """One operand is dropped, doubled, exchanged with another one of the module, or a constant."""
    at = rng.randrange(len(lines))
    found = list(OPERAND.finditer(lines[at]))
    if not found:
        return
    match, others = rng.choice(found), OPERAND.findall("\n".join(lines))
    new = rng.choice(["", f"{match[0]},{match[0]}", rng.choice(others), rng.choice(CONSTANTS), rng.choice(CONSTANTS)])
    lines[at] = lines[at][: match.start()] + new + lines[at][match.end() :]


def line(rng: random.Random, lines: list[str], _: list[str]) -> None:
    """One line is dropped, doubled, or stands elsewhere."""
    at, to, what = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(4)
    if what != 1:
        text = lines.pop(at)
    if what != 0:
        lines.insert(at + 1 if what == 2 else to, text if what != 1 else lines[at])


DAMAGES: tuple[Damage, ...] = (token, token, token, operand, operand, line)


def damaged(rng: random.Random, text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    words = [word for word in TOKEN.findall(text) if word.strip()]
    for _ in range(rng.choice([1, 1, 1, 2])):
        rng.choice(DAMAGES)(rng, lines, words)
    return "\n".join(lines) + "\n"


def modules(names: list[str], oracle: Oracle) -> list[str]:
    """Texts without comments that ptxas takes."""
    paths = [Path(name) for name in names] or sorted((ROOT / "testdata").glob("**/*.ptx"))
    texts = [re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in paths]
    short = [text for text in texts if (names or len(text) < LONGEST) and "\\n" not in text]
    declared = [(text, HEADER.search(text)) for text in short]
    return [text for text, found in declared if found and oracle.accepts("/".join(found.groups()), [text])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first number")
    parser.add_argument("--most", type=int, default=40, help="differences that are shown")
    arguments = parser.parse_args()
    oracle, reviewed = Oracle(arguments.ptxas), deviations(REVIEWED)
    texts = modules(arguments.files, oracle)
    counts: Counter[str] = Counter()
    end, number = time.monotonic() + arguments.seconds, arguments.seed
    while number == arguments.seed or time.monotonic() < end:
        rng = random.Random(number)
        text = rng.choice(texts)
        module, declared = damaged(rng, text), HEADER.search(text)
        assert declared is not None
        setting, probe = f"{declared[1]}/{declared[2]}", module.replace("\n", "\\n")
        verdict = oracle.ask(setting, LINES, [probe])[0]
        record = Record(setting, LINES, "module", probe, verdict.accepted, verdict.requires, verdict.crashed)
        found = [d for d in differences([record]) if not any(review.covers(d) for review in reviewed)]
        counts["crash" if verdict.crashed else "differ" if found else "accept" if verdict.accepted else "refuse"] += 1
        for difference in found:
            if counts["differ"] <= arguments.most:
                before = [line for line in text.split("\n") if line.strip()]
                print(f"--- {number}: ptxas {'accepts' if verdict.accepted else verdict.requires or 'refuses'}",
                      *verdict.messages[:2], sep="\n    ptxas: ")  # fmt: skip
                print(*(f"    ours: {d.line} {d.code} {d.message}" for d in difference.said[:4]), sep="\n")
                print(*list(unified_diff(before, module.split("\n"), n=0, lineterm=""))[2:12], sep="\n")
        number += 1
    print(", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
