"""Positions, decoding, and the error classes."""

import pytest

from ptxtools.diagnostics import Diagnostic, PtxError, Severity, Source, Trap
from ptxtools.diagnostics.decode import decode


def test_positions_count_from_one():
    source = Source("ab\n\ncd", "x")
    assert [source.position(n) for n in (0, 2, 3, 4, 5, 6)] == [(1, 1), (1, 3), (2, 1), (3, 1), (3, 2), (3, 3)]
    assert [source.line(n) for n in (0, 1, 2, 3, 4)] == ["", "ab", "", "cd", ""]


def test_line_without_its_carriage_return():
    source = Source("ab\r\ncd\r\n", "x")
    assert source.line(1) == "ab" and source.line(2) == "cd"
    assert source.line_span(1) == (0, 2)


def test_plain_bytes_decode():
    assert decode(b".version 8.0\n", "a") == ".version 8.0\n"


def test_byte_order_mark_is_a_character():
    assert decode(b"\xef\xbb\xbf.version 8.0", "a") == "\ufeff.version 8.0"


def test_latin_1_comments_survive():
    assert decode(b"// caf\xe9", "a") == "// café"


def test_final_nul_of_a_c_string_is_dropped():
    assert decode(b".version 8.0\n\0\0", "a") == ".version 8.0\n"


NOISE = [
    b"\xff\xfe.\0v\0", b"\xfe\xff\0.\0v", b"\xff\xfe\0\0.\0\0\0", b"\x00\x01\x02", b"a\x07b",
    b".version 8.0\n\0.target",
]  # fmt: skip


@pytest.mark.parametrize("data", NOISE)
def test_what_is_no_text_gives_one_error(data):
    with pytest.raises(PtxError) as caught:
        decode(data, "noise.bin")
    (finding,) = caught.value.diagnostics
    assert finding.code == "PTX120" and finding.file == "noise.bin"


def test_noise_is_located():
    with pytest.raises(PtxError) as caught:
        decode(b"ab\ncd\x01", "a")
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (2, 3)


def test_error_text_names_the_first_three():
    source = Source("abcdef", "a.ptx")
    findings = [Diagnostic("PTX201", f"m{n}", (n, n + 1), source) for n in range(5)]
    assert str(PtxError(findings)) == (
        "a.ptx:1:1: m0 [PTX201]; a.ptx:1:2: m1 [PTX201]; a.ptx:1:3: m2 [PTX201]; and 2 more"
    )


def test_error_text_prefers_errors():
    warning = Diagnostic("PTX501", "w", severity=Severity.WARNING)
    assert "e [PTX201]" in str(PtxError([warning, Diagnostic("PTX201", "e")]))


def test_trap_says_who_and_where():
    trap = Trap("address 0x10 is not mapped", kernel="k", cta=(1, 0, 0), thread=(3, 0, 0), file="a.ptx", line=7,
                text="\tld.global.u32 %r1, [%rd1];", details=("%rd1 = 0x10",))  # fmt: skip
    assert trap.describe().split("\n") == [
        "a.ptx:7: trap: address 0x10 is not mapped in kernel k, CTA (1,0,0), thread (3,0,0)",
        "    ld.global.u32 %r1, [%rd1];",
        "    %rd1 = 0x10",
    ]
