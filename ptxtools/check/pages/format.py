"""How pages are written: `# CODE | title | sections`, then `What:`, `Why:`, `Example:` and `Better:` parts."""

from __future__ import annotations

import re
import textwrap

_HEAD = re.compile(r"^# (PTX\d+) \| (.+?)(?: \| (.+))?$", re.M)
#: Sections of the memory consistency model -> where docs/memory-model.md explains them.
EXPLAINED = {
    "8.5": "scopes", "8.6": "proxies-and-copies", "8.7": "morally-strong", "8.8": "release-and-acquire",
    "8.10.6": "the-axioms",
}  # fmt: skip
_PART = re.compile(r"^(What|Why|Example|Better):", re.M)


def read_pages(text: str) -> dict[str, tuple[str, str]]:
    """code -> (title, page) of every page in a text."""
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head[1]: (head[2], _page(text[head.end() : end].strip(), head[3]))
        for head, end in zip(heads, ends, strict=True)
    }


def parts(page: str) -> dict[str, str]:
    """The parts of a page by name; examples without their indentation."""
    found = list(_PART.finditer(page))
    ends = [part.start() for part in found[1:]] + [len(page)]
    return {
        part[1]: textwrap.dedent(page[part.end() : end].split("\nSee:")[0]).strip("\n ")
        for part, end in zip(found, ends, strict=True)
    }


def _page(body: str, sections: str | None) -> str:
    blocks = []
    for name, part in parts(body).items():
        if name in ("Example", "Better") and "\n" in f"{part}\n" and _is_code(part):
            blocks.append(f"{name}:\n\n{textwrap.indent(part, '    ')}")
        else:
            blocks.append(textwrap.fill(f"{name}: {' '.join(part.split())}", 100))
    if sections:
        blocks.append(f"See: PTX ISA {sections}.")
        known = [EXPLAINED[one] for one in re.findall(r"[\d.]+", sections) if one in EXPLAINED]
        blocks += [f"More: docs/memory-model.md#{known[0]}"] if known else []
    return "\n\n".join(blocks)


def _is_code(part: str) -> bool:
    return part.rstrip().endswith((";", "}", ":")) or part.startswith(".")
