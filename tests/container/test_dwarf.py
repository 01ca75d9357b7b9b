"""Debugging data of a module as DWARF readers see it."""

import io

import pytest
from elftools.elf.elffile import ELFFile

from ptxtools.container import link, write
from ptxtools.ir import DataLine, Section
from ptxtools.ir.sections import section_image
from ptxtools.syntax import parse

from .samples import BINARIES


def tree(name):
    return parse((BINARIES / "separate" / f"{name}_debug.ptx").read_text(), name).module


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("name", ["a", "b"])
def test_pyelftools_reads_names_types_and_places(name, compress):
    module = tree(name)
    data = write(module, compress=compress)
    file = ELFFile(io.BytesIO(data))
    (unit,) = file.get_dwarf_info().iter_CUs()
    assert unit.get_top_DIE().attributes["DW_AT_name"].value == f"{name}.cu".encode()
    symbols = {s.name: s for s in file.get_section_by_name(".symtab").iter_symbols()}
    programs = [d for d in unit.iter_DIEs() if d.tag == "DW_TAG_subprogram" and "DW_AT_high_pc" in d.attributes]
    assert programs
    for program in programs:
        place = symbols[_linkage_name(program)]
        low, high = (program.attributes[f"DW_AT_{end}_pc"].value for end in ("low", "high"))
        assert place["st_value"] < low < high < place["st_value"] + place["st_size"]


def _linkage_name(die):
    attributes = die.attributes
    found = attributes.get("DW_AT_linkage_name") or attributes.get("DW_AT_MIPS_linkage_name")
    return (found or attributes["DW_AT_name"]).value.decode()


def test_types_of_a_linked_module_are_found_in_their_own_unit():
    data = write(link([tree("a"), tree("b")]))
    units = list(ELFFile(io.BytesIO(data)).get_dwarf_info().iter_CUs())
    names = [u.get_top_DIE().attributes["DW_AT_name"].value for u in units]
    assert names == [b"a.cu", b"b.cu"]
    variables = [d for u in units for d in u.iter_DIEs() if d.tag == "DW_TAG_variable" and "DW_AT_type" in d.attributes]
    assert len(variables) > 3
    for variable in variables:
        assert variable.get_DIE_from_attribute("DW_AT_type").tag.endswith("_type")


def test_what_names_stand_for():
    lines = [DataLine("b16", (1, -1)), DataLine("label", ("here",)), DataLine("b8", (5,)),
             DataLine("b32", ("here", "here+3", "end-here", "unknown"))]  # fmt: skip
    values = {"here": 4, "end": 0x1234}
    image = section_image(Section(".debug_x", lines), lambda name: values.get(name, 0))
    assert image == bytes.fromhex("0100ffff 05 04000000 07000000 30120000 00000000")
