"""The documentation as a site (mkdocs.yml): files of the repository that pages link to come along."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)")
#: Where they are on the site.
_FILES = "files"


def on_files(files: Any, config: Any) -> Any:
    """Add what pages link to outside of docs/."""
    from mkdocs.structure.files import File

    pages = [Path(config.docs_dir) / file.src_uri for file in files.documentation_pages()]
    for name in sorted({name for page in pages if page.parent == Path(config.docs_dir) for name in links(page)}):
        content = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, f"{_FILES}/{name}.txt", content=content))
    return files


def links(page: Path) -> list[str]:
    """Files outside of docs/ that a page links to."""
    return _OUTSIDE.findall(page.read_text("utf-8"))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let such links lead to the copies."""
    return _OUTSIDE.sub(rf"]({_FILES}/\1.txt", markdown)
