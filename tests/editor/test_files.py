"""The files for editors: they name what is there, and the grammar marks the words of real kernels."""

import json
import re
import tomllib
from pathlib import Path

from ptxtools.isa.index import CHAPTERS
from tests.syntax.syntaxtools import FILES

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "editors" / "vscode"


def read(name):
    return json.loads((CODE / name).read_text())


def test_the_extension_names_files_that_are_there():
    package = read("package.json")
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (CODE / name).is_file()
    assert read(grammar["path"])["scopeName"] == grammar["scopeName"]
    assert '"--lsp"' in (CODE / package["main"]).read_text()


def test_the_grammar_finds_every_opcode_of_a_kernel():
    """Its patterns are in a dialect that Python's expressions share."""
    patterns = read("syntaxes/ptx.tmLanguage.json")["patterns"]
    assert all(re.compile(pattern.get("match", pattern.get("begin"))) for pattern in patterns)
    (opcode,) = [p["match"] for p in patterns if "captures" in p]
    text = next(path for path in FILES if path.stat().st_size > 4000).read_text()
    lines = [line for line in text.split("\n") if re.match(r"\t(@\S+ )?[a-z]\w*[. ;]", line)]
    assert len(lines) > 20
    for line in lines:
        assert re.search(opcode, line)[2] in CHAPTERS, line


def test_helix_settings_are_toml():
    page = (ROOT / "docs" / "editors.md").read_text()
    block = page.split("`languages.toml`:\n\n")[1]
    settings = tomllib.loads("\n".join(line.strip() for line in block.split("\n")))
    assert settings["language-server"]["ptx"]["args"] == ["--lsp"]
