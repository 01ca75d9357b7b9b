"""What is said about an opcode that no form accepts."""

import pytest

from ptxtools.isa import OpcodeError, resolve
from tests.rows import rows

CASES = [
    ("ad.s32", "PTX110", "unknown instruction 'ad'", "'mad'"),
    ("", "PTX110", "unknown instruction ''", ""),
    ("add", "PTX112", "'add' lacks '.type'", ".u16"),
    ("mul.s32", "PTX112", "lacks '.mode'", ".hi, .lo"),
    ("cvt.s32.f32", "PTX112", "lacks '.rnd'", ".rni"),
    ("add.fatz.f32", "PTX111", "'.fatz' is not a modifier of 'add'", "did you mean '.ftz'"),
    ("ld.gloal.f32", "PTX111", "'.gloal'", "'.global'"),
    ("setp.foo.s32", "PTX111", "'.foo'", "'.CmpOp' accepts .eq"),
    ("add.sat.u16", "PTX113", "'.sat' cannot be combined with 'add.u16'", "add{.sat}.type d, a, b"),
    ("add.sat.sat.s32", "PTX114", "repeats '.sat'", "add{.sat}.type"),
    ("add.s32.s32", "PTX114", "repeats '.s32'", "form:"),
    ("mul.wide.u64", "PTX113", "'.wide'", ""),
    ("and.f32", "PTX210", "'.f32' is not a type of 'and'", ".b32"),
    ("mad.hi.sat.u32", "PTX113", "'.sat'", "mad.mode.sat.s32"),
    ("cvt.f16.f32", "PTX113", "'.f16' cannot represent every '.f32'", ""),
    ("cvt.sat.u32.u8", "PTX113", "'.sat' has no effect", ""),
    ("ld.shared.v8.f32", "PTX113", "'.v8' with '.f32' needs .global or no .ss", ""),
    ("add..s32", "PTX111", "empty modifier", ""),
    ("add.s32.", "PTX111", "empty modifier", ""),
    ("tcgen05.ld.sync.aligned.16x256b.x64.b32", "PTX113", "at most 128 are allowed", ""),
]


@rows(("text", "code", "message", "help"), CASES)
def test_message(text: str, code: str, message: str, help: str) -> None:
    with pytest.raises(OpcodeError) as caught:
        resolve(text)
    error = caught.value
    assert error.code == code
    assert message in error.message
    assert help in " ".join(error.help)


def test_a_refused_opcode_is_refused_again() -> None:
    for _ in range(2):
        with pytest.raises(OpcodeError):
            resolve("add.sat.u16")


@pytest.mark.parametrize("junk", ["add.\x00", "ADD.s32", "add s32", "é.s32", "add." + "s32." * 5000, "." * 100, "mma"])
def test_junk_gives_an_opcode_error(junk: str) -> None:
    with pytest.raises(OpcodeError):
        resolve(junk)
