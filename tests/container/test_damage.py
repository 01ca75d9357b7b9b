"""Damaged and forged containers and binaries: one clear error, within bounded time and memory, never a crash."""

import contextlib
import random
import struct
import zlib

import pytest

from ptxtools.check import check
from ptxtools.container import decode_all, elf, info, link, note, read, reader, write
from ptxtools.container.codec import decode_strings
from ptxtools.container.errors import Damage
from ptxtools.container.pool import OperandPool
from ptxtools.container.tables import encode_tables
from ptxtools.diagnostics import PtxError, Severity
from ptxtools.inputs import detect
from ptxtools.inputs.fatbin import embedded
from ptxtools.program import lower
from ptxtools.sim.tree import contents_of
from ptxtools.syntax import print_module
from tests import share
from tests.work import calls

from .samples import BINARIES, EVERYTHING, module, resealed

#: How many forged containers are tried.
#: All of them in the sweep.
MUTANTS = 500 if share.whole else 150

SMALL = """\
.version 9.0
.target sm_90
.address_size 64
.global .u32 g = 5;
.entry k(.param .u32 n) { .reg .u32 %r; ld.param.u32 %r, [n]; ret; }
"""


def refused(data):
    """The message of the error that reading gives."""
    with pytest.raises(PtxError) as error:
        decode_all(read(data, "bad.ptxo"))
    assert "Traceback" not in str(error.value) and "bad.ptxo" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("compress", [False, True])
def test_truncated_at_every_byte(compress):
    data = write(module(SMALL), compress=compress)
    for length in range(len(data)):
        refused(data[:length])


@pytest.mark.parametrize("compress", [False, True])
def test_every_byte_flipped(compress):
    data = write(module(SMALL), compress=compress)
    for at in range(len(data)):
        refused(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])


def test_bytes_behind_the_end_are_damage_too():
    assert "hash" in refused(write(module(SMALL)) + b"\0")


def test_forged_containers_never_crash():
    """Mutants whose hash was set right again reach every decoder; the seed is fixed. None of them makes work out of
    proportion to the size of the file."""
    chance, kept = random.Random(20240), []
    twice = EVERYTHING + EVERYTHING[EVERYTHING.index(".visible .entry") :].replace("kernel", "again")
    bases = [write(module(twice), compress=compress, debug=debug) for compress in (0, 1) for debug in (0, 1)]

    def read_and_use():
        try:
            forged = resealed(bytes(data))
            tree = decode_all(read(forged))
            info(forged)
        except PtxError as error:
            assert error.diagnostics[0].code in ("PTX801", "PTX802")
            return
        kept.append(tree)
        use(tree)

    for _ in range(MUTANTS):
        data = bytearray(chance.choice(bases))
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(data))
            data[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256), data[at] ^ 1 << chance.randrange(8)))
        assert calls(read_and_use) < 200_000
    assert len(kept) > MUTANTS // 8, "the mutants do not reach the decoders"


def use(tree):
    """Everything that is done with a module. What a text cannot say does not get this far."""
    print_module(tree)
    with contextlib.suppress(PtxError):
        write(link([tree]))
    contents_of(tree)
    if not any(d.severity is Severity.ERROR for d in check(tree)):
        for kernel in tree.entries:
            with contextlib.suppress(PtxError):
                lower(tree, kernel.name, lambda _: 4096)


def header_field(data, at, value, size=8):
    return resealed(data[:at] + value.to_bytes(size, "little") + data[at + size :])


def section_header(data, name):
    file = elf.parse_elf(data)
    return struct.unpack_from("<Q", data, 40)[0] + 64 * file.find(name).index


@pytest.mark.parametrize("size", [1, 1 << 32, (1 << 64) - 1])
@pytest.mark.parametrize("field", [24, 32])
def test_lying_offsets_and_sizes(field, size):
    data = write(module(SMALL))
    for name in (".ptx", ".symtab", ".strtab", ".text.k"):
        refused(header_field(data, section_header(data, name) + field, size))


@pytest.mark.parametrize("count", [0, 1, 65535])
def test_lying_section_count(count):
    refused(header_field(write(module(SMALL)), 60, count, 2))


def test_a_cycle_of_sections():
    """The tables, symbols and code are the section headers themselves."""
    data = write(module(SMALL))
    table = struct.unpack_from("<Q", data, 40)[0]
    for name in (".ptx", ".symtab", ".text.k"):
        refused(header_field(data, section_header(data, name) + 24, table))


def test_a_newer_format_is_refused_and_an_older_minor_read():
    data = write(module(SMALL))
    place = data.index(struct.pack("<HH", *note.FORMAT) + b"\x09\0\0\0")
    assert "PTX802" in refused(resealed(data[:place] + struct.pack("<HH", note.FORMAT[0] + 1, 0) + data[place + 4 :]))
    newer_minor = resealed(data[:place] + struct.pack("<HH", note.FORMAT[0], 9) + data[place + 4 :])
    assert read(newer_minor) == module(SMALL)


def test_a_decompression_bomb_is_refused():
    file = elf.ElfWriter()
    file.add(elf.Section(note.SECTION, elf.SHT_NOTE, note.encode_notes(), align=4))
    bomb = struct.pack("<IIQQ", 1, 0, elf.MAX_DECOMPRESSED + 1, 1) + zlib.compress(bytes(1 << 20), 9)
    file.add(elf.Section(".ptx", elf.SHT_PROGBITS, bomb, flags=elf.SHF_COMPRESSED))
    assert "MiB" in refused(note.seal(file.finish(), 64))


def test_a_lying_compressed_size_is_refused():
    file = elf.ElfWriter()
    file.add(elf.Section(note.SECTION, elf.SHT_NOTE, note.encode_notes(), align=4))
    small = struct.pack("<IIQQ", 1, 0, 10, 1) + zlib.compress(bytes(1 << 24), 9)
    file.add(elf.Section(".ptx", elf.SHT_PROGBITS, small, flags=elf.SHF_COMPRESSED))
    refused(note.seal(file.finish(), 64))


def test_millions_of_claimed_symbols():
    data = write(module(SMALL))
    refused(header_field(data, section_header(data, ".symtab") + 32, 24 * 5_000_000))


# --- NVIDIA's binaries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain.fatbin", "lz4.fatbin", "zstd.fatbin", "lineinfo.cubin"])
def test_truncated_binaries(name):
    data = (BINARIES / name).read_bytes()
    for length in range(4, len(data), 7):
        try:
            embedded(data[:length], name)
        except PtxError as error:
            assert error.diagnostics[0].code in ("PTX801", "PTX803")


@pytest.mark.parametrize(
    "name",
    [
        "plain.fatbin",
        "lz4.fatbin",
        "zstd.fatbin",
        "several.fatbin",
        "lineinfo.cubin",
        "lineinfo-lz4.fatbin",
        "lineinfo-zstd.fatbin",
    ],
)
def test_mutated_binaries(name):
    original, chance = (BINARIES / name).read_bytes(), random.Random(name)
    for _ in range(400):
        data = bytearray(original)
        for _ in range(chance.choice((1, 2))):
            at = chance.randrange(4, min(len(data), 200)) if chance.random() < 0.7 else chance.randrange(4, len(data))
            data[at] = chance.choice((0, 255, chance.randrange(256)))
        try:
            embedded(bytes(data), name)
        except PtxError as error:
            assert error.diagnostics[0].code in ("PTX801", "PTX803")


@pytest.mark.parametrize("flag", [0x2000, 0x8000])
def test_entries_that_claim_to_be_huge(flag):
    name = "lz4.fatbin" if flag == 0x2000 else "zstd.fatbin"
    data = bytearray((BINARIES / name).read_bytes())
    struct.pack_into("<Q", data, 16 + 56, 1 << 40)
    with pytest.raises(PtxError, match="PTX801"):
        embedded(bytes(data), name)


@pytest.mark.parametrize("data, kind", [
    (b"", "text"), (b".version 9.0", "text"), (b"\x7fELF", "elf"), (b"\x50\xed\x55\xba", "fatbin"),
    (b"\0\1\2\3", "unknown"), (b"!<arch>\n", "elf"),
])  # fmt: skip
def test_detect(data, kind):
    assert detect(data) == kind


def test_detect_tells_our_elf_from_others():
    assert detect(write(module(SMALL))) == "ptxo"
    assert detect((BINARIES / "object.o").read_bytes()) == "elf"


def squeezed(*tables):
    """A container with these tables, compressed as only a bomb is."""
    file = elf.ElfWriter()
    file.add(elf.Section(note.SECTION, elf.SHT_NOTE, note.encode_notes(), align=4))
    content = elf.compressed(encode_tables(tables), 1)
    file.add(elf.Section(".ptx", elf.SHT_PROGBITS, content, flags=elf.SHF_COMPRESSED))
    return note.seal(file.finish(), 64)


@pytest.mark.parametrize("tables", [
    (struct.pack("<I", 1 << 24) + bytes(1 << 25), b"", b"", b"", b"", b"", b""),
    (struct.pack("<I", 1) + b"\0\0", bytes(6 << 22), struct.pack("<III", 0, 0, 1), bytes(4), b"", bytes(8), b""),
    (struct.pack("<I", 1) + b"\0\0", b"", struct.pack("<III", 1 << 24, 1 << 24, 1) + bytes(1 << 24), *[b""] * 4),
], ids=["strings", "functions", "records"])  # fmt: skip
def test_tables_that_would_fill_the_memory(tables):
    data = squeezed(*tables)
    assert calls(lambda: refused_as(data, "claims to contain")) < 5_000


def refused_as(data, why):
    assert why in refused(data)


def test_texts_that_share_too_much():
    count = 1 << 21
    shared = b"\0" + b"\xff" * (count - 1)
    table = struct.pack("<I", count) + shared + b"x" * 255 + b"\0" * count
    with pytest.raises(Damage, match="too many characters"):
        decode_strings(table)


@pytest.mark.parametrize(("name", "other"), [(b"%abcd", b"%a\nbd"), (b"ld.param.u32", b"ld.param\nu32")])
def test_names_of_two_lines(name, other):
    """Each line by itself would be a name."""
    data = write(module(SMALL.replace("%r", "%abcd")))
    assert data.count(name) == 1
    assert "invalid" in refused(resealed(data.replace(name, other)))


@pytest.mark.parametrize("arity", [1 << 14, (1 << 32) - 1])
def test_groups_of_nothing(arity):
    """Columns of no numbers: as many as a header claims."""
    group = struct.pack("<BBBxIII", 4, 0, 1, arity, 0, 0)
    with pytest.raises(Damage, match="without operands"):
        OperandPool(memoryview(struct.pack("<I", 1) + group), [""])


def test_operands_that_grow_with_every_level():
    """Forty vectors, each of which has the one before twice in it: 2 ** 40 registers."""
    names = struct.pack("<BBBxIIIB", 0, 0, 1, 0, 0, 1, 1)
    vectors = [struct.pack("<BBBxIIIBB", 4, 0, 1, 2, 0, 1, n, n) for n in range(40)]
    pool = OperandPool(memoryview(struct.pack("<I", 11) + names + b"".join(vectors[:10])), ["", "%r"])
    assert str(pool.operands[10]).count("%r") == 1024
    with pytest.raises(Damage, match="too many parts"):
        OperandPool(memoryview(struct.pack("<I", 41) + names + b"".join(vectors)), ["", "%r"])


def test_functions_that_are_no_items():
    for rows in (bytes([0, 0, 1, 0, 0, 0]) * 2, bytes([9, 0, 1, 0, 0, 0])):
        strings = struct.pack("<I", 2) + b"\0\0\0k\0"
        refused(squeezed(strings, rows, struct.pack("<III", 1, 1, 1) + b"\1\0", bytes(4), b"", bytes(8), b""))


def test_millions_of_symbols():
    """Only those that functions name are looked at."""
    file = elf.parse_elf(write(module(SMALL)))
    count = 2_000_000
    rows = bytes(file.find(".symtab").data) + bytes(24 * count)
    table = elf.SymbolTable(memoryview(rows), bytes(file.find(".strtab").data), memoryview(b""))
    assert len(table) == count + 3 and table[2].name == "k" and table[count].name == ""
    with pytest.raises(IndexError):
        table[count + 3]


def test_many_functions_in_one_place(monkeypatch):
    """Bodies that are one and the same bytes of a small file would be many in memory."""
    monkeypatch.setattr(reader, "_FREE", reader._FREE // 10)
    body = "add.u32 %r, %r, 1;" * 10_000
    names = [f"k{n}" for n in range(600)]
    small = [f".entry {name}() {{ .reg .u32 %r; ret; }}" for name in names[1:]]
    head = ".version 9.0\n.target sm_90\n.address_size 64\n"
    data = write(module(head + f".entry k0() {{ .reg .u32 %r; {body} }}\n" + "\n".join(small)), compress=True)
    file = elf.parse_elf(data)
    table = file.find(".symtab")
    symbols = {s.name: (n, s) for n, s in enumerate(file.symbols())}
    large = symbols["k0"][1]
    forged = bytearray(data)
    for name in names[1:]:
        struct.pack_into("<QQ", forged, table.offset + 24 * symbols[name][0] + 8, large.value, large.size)
    assert "overlap" in refused(resealed(bytes(forged)))
