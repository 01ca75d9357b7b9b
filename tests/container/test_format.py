"""The file as others see it: readelf, pyelftools, and what --info says."""

import io
import shutil
import subprocess

import pytest
from elftools.elf.elffile import ELFFile

from ptxtools.check import check
from ptxtools.container import describe_info, info, read, write
from ptxtools.container.code import flatten
from ptxtools.container.elf import (
    SHT_PROGBITS,
    STB_GLOBAL,
    STT_FUNC,
    ElfWriter,
    Section,
    Symbol,
    parse_elf,
)
from ptxtools.container.layout import describe
from ptxtools.container.magic import MACHINE
from ptxtools.container.records import KINDS
from ptxtools.syntax import parse

from .samples import EVERYTHING, PTX_FILES, TESTDATA, module

OPTIONS = [{}, {"compress": True}, {"debug": True}]
needs_readelf = pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed")


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    path = tmp_path_factory.mktemp("format") / "everything.ptxo"
    path.write_bytes(write(module()))
    return path


@needs_readelf
@pytest.mark.parametrize("options", OPTIONS)
def test_readelf_has_no_warning(tmp_path, options):
    paths = [tmp_path / f"{n}.ptxo" for n in range(2)]
    paths[0].write_bytes(write(module(), **options))
    paths[1].write_bytes(write(parse(PTX_FILES[-1].read_text(), "x").module, **options))
    for path in paths:
        done = subprocess.run(["readelf", "-a", "-W", path], capture_output=True, text=True, check=True)
        assert done.stderr == "" and "arning" not in done.stdout


@pytest.mark.parametrize("options", OPTIONS)
def test_pyelftools_agrees_with_info(options):
    data = write(module(), **options)
    said = info(data, "x.ptxo")
    assert said["compressed"] == ("compress" in options)
    with io.BytesIO(data) as file:
        parsed = ELFFile(file)
        assert parsed["e_machine"] == MACHINE
        sections = [(s.name, s["sh_offset"], s["sh_size"]) for s in parsed.iter_sections()][1:]
        assert [(s["name"], s["offset"], s["size"]) for s in said["sections"]] == sections
        symbols = {s.name: s for s in parsed.get_section_by_name(".symtab").iter_symbols() if s.name}
    assert len(symbols) == said["symbols"]
    for variable in said["variables"]:
        symbol = symbols[variable["name"]]
        assert symbol["st_size"] == variable["size"]
        binding = {"": "STB_LOCAL", "weak": "STB_WEAK"}.get(variable["linkage"], "STB_GLOBAL")
        assert symbol["st_info"]["bind"] == binding and symbol["st_info"]["type"] == "STT_OBJECT"
    for function in said["entries"] + said["functions"]:
        assert symbols[function["name"]]["st_info"]["type"] == "STT_FUNC"
    for name in said["undefined"]:
        assert symbols[name]["st_shndx"] == "SHN_UNDEF"


def test_symbols_lie_in_their_sections(container):
    with open(container, "rb") as file:
        parsed = ELFFile(file)
        for symbol in parsed.get_section_by_name(".symtab").iter_symbols():
            where = symbol["st_shndx"]
            if isinstance(where, int):
                section = parsed.get_section(where)
                assert symbol["st_value"] + symbol["st_size"] <= section["sh_size"]
                if symbol["st_info"]["type"] == "STT_OBJECT":
                    assert section["sh_addralign"] >= 1


def test_data_and_relocations(container):
    with open(container, "rb") as file:
        parsed = ELFFile(file)
        data = parsed.get_section_by_name(".const.data").data()
        assert data[:64] == bytes([3, 0, 255]) + bytes(61)
        assert data[64:80] == bytes.fromhex("0000803f00000040") + bytes(8)
        section = parsed.get_section_by_name(".global.data")
        symbols = parsed.get_section_by_name(".symtab")
        rows = [(r["r_offset"], symbols.get_symbol(r["r_info_sym"]).name, r["r_info_type"], r["r_addend"])
                for r in parsed.get_section_by_name(".rela.global.data").iter_relocations()]  # fmt: skip
        assert rows == [(0, "table", 2, 0), (8, "floats", 3, 8), (24, "table", 16, 0)]
        assert section.data()[16:24] == (12345678901234567890).to_bytes(8, "little")
        code = parsed.get_section_by_name(".rela.text.kernel")
        named = {symbols.get_symbol(r["r_info_sym"]).name for r in code.iter_relocations()}
        assert named == {"elsewhere", "table", "texture", "sampler", "something"}


def test_an_opcode_stands_in_the_file_once(container):
    assert container.read_bytes().count(b"ld.param.u64\0") == 1


def test_info_describes_the_kernel(container):
    said = info(container.read_bytes(), "x.ptxo")
    (kernel,) = said["entries"]
    assert [(p["offset"], p["size"], p["alignment"]) for p in kernel["params"]] == [(0, 8, 8), (8, 17, 8), (28, 4, 4)]
    assert kernel["params"][0]["pointer"] == {"space": "global", "alignment": 16}
    assert kernel["param_bytes"] == 32
    assert kernel["registers"] == {"pred": 3, "b16": 0, "b32": 16, "b64": 10, "b128": 0}
    assert (kernel["shared"], kernel["local"]) == (132, 12)
    assert kernel["directives"] == [".maxntid 256, 1, 1", ".minnctapersm 2"]
    assert said["undefined"] == ["vprintf", "something", "never", "dynamic", "elsewhere"]
    assert (said["ptx"], said["target"], said["target_options"]) == ("9.0", "sm_90", ["debug", "texmode_independent"])


@pytest.mark.parametrize("path", [None, *PTX_FILES[::12]], ids=lambda p: p.parent.name if p else "sample")
def test_stored_figures_are_those_of_the_tree(path):
    """The descriptor in the file equals what counting the decoded function gives."""
    data = write(parse(path.read_text() if path else EVERYTHING, "x").module)
    for function in read(data).functions:
        stored, counted = function.descriptor, describe(function)
        counted.instructions = stored.instructions
        assert stored == counted


def test_info_as_text(container):
    text = describe_info(info(container.read_bytes(), "x.ptxo"))
    for line in ("entry kernel (.visible)", "  registers: 3 pred, 16 b32, 10 b64", "variables", "undefined", "sections",
                 "  bytes: 32 param, 132 shared, 12 local", "  .maxntid 256, 1, 1"):  # fmt: skip
        assert line in text.splitlines(), line


def test_sizes_stay_small():
    """At most 60 % of the text, at most 25 % compressed, for a module of some size."""
    largest = max(TESTDATA.glob("cases/*/kernel.ptx"), key=lambda p: p.stat().st_size)
    text = largest.read_text()
    tree = parse(text, "x").module
    assert len(write(tree)) <= 0.6 * len(text)
    assert len(write(tree, compress=True)) <= 0.25 * len(text)


def test_the_sample_uses_everything():
    """The sample of these tests has every kind of statement and item that a container can hold."""
    tree = module(EVERYTHING)
    kinds = {type(i) for i in tree.items}
    for function in tree.functions:
        kinds |= {type(d) for d in function.directives}
        if function.body is not None:
            kinds |= {type(s) for _, s in flatten(function.body)}
    assert set(KINDS) <= kinds


def test_the_sample_is_valid():
    """Otherwise what is tested on it might be impossible."""
    assert not check(module())


def test_more_sections_than_a_short_number_counts(tmp_path):
    """Beyond 0xff00 sections ELF keeps the count, and what symbols refer to, elsewhere."""
    file, count = ElfWriter(), 0xFF20
    for n in range(count):
        file.add(Section(".text.f" if n else ".note.x", SHT_PROGBITS, b"x"))
    file.add_symbols([Symbol("low", STT_FUNC, STB_GLOBAL, 5, 0, 1), Symbol("high", STT_FUNC, STB_GLOBAL, count, 0, 1)])
    data = file.finish()
    back = parse_elf(data)
    assert len(back.sections) == count + 4
    assert {s.name: s.section for s in back.symbols()} == {"": 0, "low": 5, "high": count}
    parsed = ELFFile(io.BytesIO(data))
    assert parsed.num_sections() == count + 4 and parsed.get_section(count).name == ".text.f"
    if shutil.which("readelf"):
        path = tmp_path / "many"
        path.write_bytes(data)
        done = subprocess.run(["readelf", "-hs", path], capture_output=True, text=True, check=True)
        assert done.stderr == "" and str(count) in done.stdout
