"""What ptxas accepts and the manual does not have is a warning (PTX610); what the manual has and no ptxas of the
version accepts is an error that says so (PTX309)."""

import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools import isa
from ptxtools.check import check, errors_of
from ptxtools.cli.assemble import command as ptx_as
from ptxtools.cli.common import exit_status
from ptxtools.cli.lint import command as ptx_lint
from ptxtools.cli.run import command as ptx_run
from ptxtools.diagnostics import Severity
from ptxtools.syntax import parse

KERNEL = """.version 9.0
.target sm_90
.address_size 64
.func (.reg .b32 a, .reg .b32 b) two(.reg .b32 x)
{ add.s32 a, x, 1; sub.sat.sat.s32 b, x, 1; ret; }
.entry k(.param .align 4 .align 8 .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %d; .reg .f32 %f<3>;
    ld.param.u64 %d, [out];
    mov.b32 %r1, 40;
    call (%r2, %r3), two, (%r1);
    st.global.v2.b32 [%d], {%r2, %r3};
    add.f32.infinite %f1, 0f3F800000, 0f40000000;
    st.global.v2.b32 [%d+8], {%ctaid.x, %ntid.x};
    st.global.f32 [%d+16], %f1;
    ret;
}
"""


def found(text: str) -> list[tuple[str, int]]:
    result = parse(text)
    return [(d.code, d.line) for d in [*result.diagnostics, *check(result.module)]]


def line(text: str, version: str = "9.0", target: str = "sm_90", size: str = ".address_size 64") -> list[str]:
    registers = ".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<4>; .reg .f64 %fd<4>; .reg .b16 %h<4>;"
    head = f".version {version}\n.target {target}\n{size}\n.global .b32 g[4];\n.shared .b32 s[4];\n"
    result = parse(f"{head}.entry k()\n{{\n{registers}\n{text}\nret;\n}}\n")
    return [d.code for d in [*result.diagnostics, *check(result.module)]]


# --- warnings ---------------------------------------------------------------------------------------------------------


def test_each_is_one_warning_at_its_place() -> None:
    assert found(KERNEL) == [("PTX610", 4), ("PTX610", 5), ("PTX610", 6), ("PTX610", 13), ("PTX610", 14)]
    module = parse(KERNEL).module
    assert errors_of(module) == []
    first, second = check(module)[:2]
    assert first.severity is Severity.WARNING
    assert KERNEL[slice(*second.span)] == ".sat" and "write 'sub.sat.s32'" in second.help[0]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_it_runs_as_ptxas_compiles_it(engine: str) -> None:
    with pytest.warns(ptxtools.PtxWarning, match="a second result") as told:
        module = ptxtools.loads(KERNEL)
    assert [d.code for d in told[0].message.diagnostics] == ["PTX610"] * 5  # type: ignore[union-attr]
    out = np.zeros(5, np.uint32)
    ptxtools.Device("sm_90", engine=engine).launch(module["k"], 1, 1, [out])
    assert out[:4].tolist() == [41, 39, 0, 1] and out[4:].view(np.float32) == 3.0


def test_every_instance_is_told(tmp_path: Path) -> None:
    text = "sub.sat.sat.s32 %r1, %r1, %r1;\n" * 5
    assert line(text) == ["PTX610"] * 5


def test_warnings_never_hide_errors() -> None:
    assert line("sub.sat.sat.s32 %r1, %r1, %r1;\n" * 1500 + "add.s32 %r1, %r1;").count("PTX220") == 1


@pytest.mark.parametrize(("opcode", "plain", "word"), [
    ("add.f32.rank", "add.f32", ".rank"), ("tex.1d.uni.v4.u32.s32", "tex.1d.v4.u32.s32", ".uni"),
    ("cvt.texref.rn.f16.f32", "cvt.rn.f16.f32", ".texref"), ("testp.finite.rank.f32", "testp.finite.f32", ".rank"),
    ("wgmma.fence.sync", "wgmma.fence.sync.aligned", ""), ("add.sat.rank.sat.s32", "add.sat.s32", ".rank"),
    ("add.sat.sat.sat.sat.sat.sat.sat.s32", "add.sat.s32", ".sat")
])  # fmt: skip
def test_opcodes_that_ptxas_takes(opcode: str, plain: str, word: str) -> None:
    assert isa.resolve(opcode) is isa.resolve(plain)
    slack = isa.slack(opcode)
    assert slack is not None and slack.word == word
    assert isa.slack(plain) is None


@pytest.mark.parametrize("opcode", [
    "mul.rank.lo.s32", "add.s32.s32", "add.foo.s32", "tcgen05.rank.ld.sync.aligned.32x32b.x2.b32",
    "tcgen05.alloc.cta_group::1.sync.b32", "mma.sync.m16n8k8.row.col.f16.f16.f16.f16", "testp.f32", "xor.b64.texref",
    "add.ftz.ftz.f32", "rank.add.f32", "add.f32.acc::f16.acc::f16", "add.f32.rank.box_dim", "ret.finite.normal",
])  # fmt: skip
def test_opcodes_that_it_refuses(opcode: str) -> None:
    with pytest.raises(isa.OpcodeError):
        isa.resolve(opcode)


@pytest.mark.parametrize(("text", "version", "target", "codes"), [
    ("fence.acquire.gpu;", "8.5", "sm_80", ["PTX610"]), ("fence.acquire.gpu;", "8.6", "sm_90", []),
    ("fence.acquire.gpu;", "8.5", "sm_62", ["PTX301"]), ("nanosleep.u32 %r1;", "6.2", "sm_70", ["PTX610"]),
    ("nanosleep.u32 %r1;", "6.1", "sm_70", ["PTX301"]), ("bar.sync 0, 32;", "1.5", "sm_13", ["PTX610"]),
    ("bar.sync 0;", "1.5", "sm_13", []), ("ld.shared::cta.b32 %r1, [s];", "7.8", "sm_21", ["PTX610"]),
    ("addc.u64 %rd1, %rd2, %rd3;", "3.0", "sm_20", ["PTX610"]), ("div.rn.f64 %fd1, %fd2, %fd3;", "1.3", "sm_13",
                                                                  ["PTX610"]),
    ("mov.b32 %r1, %envreg3;", "2.0", "sm_20", ["PTX610"]), ("mov.b32 %r1, %envreg3;", "2.1", "sm_20", []),
])  # fmt: skip
def test_what_ptxas_has_before_the_manual(text: str, version: str, target: str, codes: list[str]) -> None:
    assert line(text, version, target, ".address_size 64" if version >= "2.3" else "") == codes


@pytest.mark.parametrize(("target", "types", "codes"), [
    ("sm_100a", "e4m3.e5m2", ["PTX610"]), ("sm_103a", "e5m2.e4m3", ["PTX610"]), ("sm_110f", "e4m3.e4m3", ["PTX610"]),
    ("sm_100a", "e4m3.e2m1", ["PTX302"]), ("sm_120a", "e4m3.e5m2", []), ("sm_100", "e4m3.e5m2", ["PTX302"]),
])  # fmt: skip
def test_kind_f8f6f4_of_two_8_bit_formats(target: str, types: str, codes: list[str]) -> None:
    text = (f".version 9.0\n.target {target}\n.address_size 64\n.entry k()\n{{\n.reg .f32 f<4>; .reg .b32 r<4>;\n"
            f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{types}.f32 {{f0, f1, f2, f3}}, {{r0, r1, r2, r3}}, "
            "{r0, r1}, {f0, f1, f2, f3};\nret;\n}\n")  # fmt: skip
    assert [code for code, _ in found(text)] == codes


@pytest.mark.parametrize(("text", "codes"), [
    ("st.global.v2.b32 [%rd1], {%tid.x, %r1};", ["PTX610"]), ("ld.global.v2.b32 {%tid.x, %r1}, [%rd1];", ["PTX251"]),
    ("add.u32 %r1, %tid.x, %r2;", ["PTX251"]), ("mov.v4.u32 {%r1, %r2, %r3, %r4}, %laneid;", ["PTX226"]),
    ("atom.global.add.u32 %r1, [%rd1].unified, %r2;", ["PTX610"]), ("ld.shared.u32 %r1, [%r1].unified;", ["PTX240"]),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, %rd1;", ["PTX610"]),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes %rd2, [g], 16, [%rd1];", ["PTX240"]),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.sys [s], [g], 16, [%rd1];", ["PTX610"]),
])  # fmt: skip
def test_operands_that_ptxas_takes(text: str, codes: list[str]) -> None:
    assert line(text) == codes


@pytest.mark.parametrize(("text", "codes"), [
    ("add.u16 %h1, %h1, %r1+1;", ["PTX610"]), ("add.u16 %h1, %h1, %rd1+1;", ["PTX203"]),
    ("st.u64 [%rd1], %rd2+1;", ["PTX610"]), ("add.u64 %rd1, %rd1, %r1+1;", ["PTX203"]),
    ("add.f64 %fd1, %fd1, %r1+1;", ["PTX203"]),
    ("stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {%tid.x, %r1};", ["PTX610"]),
    ("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%tid.x}, {%r0}, {%r0, %r1};", ["PTX251"]),
    ("alloca.u64 %rd1, %rd2, 16;", []), ("alloca.u64 %rd1, %rd2, 24;", ["PTX225"]),
    ("alloca.u64 %rd1, %rd2, 0;", ["PTX225"]),
])  # fmt: skip
def test_sums_special_registers_and_alignments(text: str, codes: list[str]) -> None:
    assert line(text) == codes


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_sums_of_32_and_64_bits(engine: str) -> None:
    """Of 32 bits, 16 are cut off where a shorter operand is wanted."""
    text = """.version 9.0
.target sm_90
.address_size 64
.entry k(.param .u64 out)
{
    .reg .b64 d, a, b; .reg .b32 t; .reg .b16 h; .reg .pred p;
    ld.param.u64 d, [out];
    mov.u32 t, %tid.x;
    mul.wide.u32 a, t, 16;
    add.u64 d, d, a;
    mad.lo.u32 t, t, 70000, 65530;
    setp.gt.s16 p, t+1, 0;
    selp.s16 h, 7, t+9, p;
    cvt.u64.u16 b, h;
    st.global.u64 [d], b;
    and.b64 a, a, a+16;
    st.global.u64 [d+8], a+0x7fffffff;
    ret;
}
"""
    with pytest.warns(ptxtools.PtxWarning):
        module = ptxtools.loads(text)
    out = np.zeros((32, 2), np.uint64)
    ptxtools.Device("sm_90", engine=engine).launch(module["k"], 1, 32, [out])
    values = [70000 * lane + 65530 for lane in range(32)]
    positive = [0 < (value + 1) % 65536 < 32768 for value in values]
    assert 5 < sum(positive) < 27
    assert out[:, 0].tolist() == [7 if good else (v + 9) % 65536 for v, good in zip(values, positive, strict=True)]
    assert out[:, 1].tolist() == [(16 * lane & 16 * lane + 16) + 0x7FFFFFFF for lane in range(32)]


@pytest.mark.parametrize(("module", "codes"), [
    (".global .b32;", ["PTX610"]), (".visible .const .align 8 .v2 .f32;", ["PTX610"]), (".global .v4 .b64;",
                                                                                    ["PTX423", "PTX610"]),
    (".global .align 3 .b32;", ["PTX424", "PTX610"]), (".global .b32 x<0>, y;", ["PTX610"]),
    (".entry j() { .reg .b32; .local .f32 x<0>; ret; }", ["PTX610", "PTX610"]),
    (".local .b32;", ["PTX610"]), (".local .b32 x<0>;", ["PTX421"]), (".global .pred;", ["PTX610"]),
    (".global .pred x<0>;", ["PTX422", "PTX610"]), (".entry j() { .extern .global .b32; ret; }",
                                                      ["PTX420", "PTX610"]), (".global .b32 = 1;", ["PTX100"]),
    ('.file 1 "a.cu", 5', ["PTX610"]), ('.file 1 "a.cu", 5, 7', []), ('.file 1 "a.cu", 5,', ["PTX100"]),
    (".shared .attribute(.managed) .b32 x<3>;", ["PTX610"]), (".shared .attribute(.managed) .b32 x;", ["PTX425"]),
    (".entry j() { .param .v2 .b32 x[2]; ret; }", []), (".entry j() { .param .v2 .b32 x; ret; }", ["PTX423"]),
])  # fmt: skip
def test_declarations_that_ptxas_takes(module: str, codes: list[str]) -> None:
    text = f".version 9.0\n.target sm_90\n.address_size 64\n{module}\n.entry k() {{ ret; }}\n"
    result = parse(text)
    assert sorted(d.code for d in [*result.diagnostics, *check(result.module)]) == codes


@pytest.mark.parametrize(("module", "version", "target", "codes"), [
    (".common .global .b32 x;", "5.0", "sm_13", ["PTX610"]), (".common .global .b32 x;", "4.3", "sm_13", ["PTX301"]),
    (".common .global .b32 x;", "5.0", "sm_20", []), (".extern .entry g();", "2.3", "sm_20", ["PTX301"]),
    (".extern .entry g();", "3.0", "sm_20", []),
    (".func h() { ret; } .entry j() { .reg .b64 d; mov.b64 d, h; ret; }", "2.0", "sm_20", ["PTX301"]),
    (".func h() { ret; } .entry j() { .reg .b64 d; mov.b64 d, h; ret; }", "2.1", "sm_20", []),
    (".global .surfref s; .entry j() { .reg .b16 h; .reg .b32 x; suld.b.1d.b8.zero h, [s, {x}]; ret; }", "2.0", "sm_13",
     ["PTX610"]),
    (".global .surfref s; .entry j() { .reg .b16 h; .reg .b32 x; suld.b.1d.b8.zero h, [s, {x}]; ret; }", "1.5", "sm_13",
     ["PTX301"]),
])  # fmt: skip
def test_parts_of_modules_at_old_versions(module: str, version: str, target: str, codes: list[str]) -> None:
    text = f".version {version}\n.target {target}\n{module}\n.entry k() {{ ret; }}\n"
    assert [code for code, _ in found(text)] == codes


@pytest.mark.parametrize("align", [".align 8 .align 4", ".align 4 .align 2 .align 8"])
def test_an_alignment_that_is_dropped_is_an_error(align: str) -> None:
    assert line(f".shared {align} .b32 x;") == ["PTX108"]
    assert line(".shared .align 4 .align 8 .b32 x;") == ["PTX610"]


# --- what every ptxas refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [
    ".global .b32 x[1+2];", ".shared .b32 x[(3)];", ".global .b32 x[2][4-1];", ".global .b32 %laneid;",
    ".const .b32 %tid;", ".shared .b32 %envreg3;", ".func %laneid() { ret; }", ".extern .func %clock();",
    ".entry %laneid() { ret; }", ".func f(.param .b8 x[2*2]) { ret; }", ".entry j(.param .b8 x[1+1]) { ret; }",
])  # fmt: skip
def test_what_every_ptxas_refuses_says_so(declared: str) -> None:
    module = parse(f".version 9.0\n.target sm_90\n.address_size 64\n{declared}\n.entry k() {{ ret; }}\n").module
    [finding] = check(module)
    assert finding.code == "PTX309" and "every ptxas" in finding.message and finding.line == 4


@pytest.mark.parametrize("declared", [
    ".global .b32 x[0x3];", ".global .b32 x[/* 1+2 */ 3];", ".global .b32 %foo;", ".extern .global .b32 %laneid;",
    ".visible .global .b32 %laneid;", ".func f(.reg .b32 %laneid) { ret; }", ".global .b32 x[2][3] = {{1+2}};",
])  # fmt: skip
def test_what_it_takes(declared: str) -> None:
    assert found(f".version 9.0\n.target sm_90\n.address_size 64\n{declared}\n.entry k() {{ ret; }}\n") == []


@pytest.mark.parametrize(("text", "code"), [
    ("mov.u32 %r1, g;", "PTX309"), ("mov.u32 %r1, g[1];", "PTX309"), ("mov.u32 %r1, s;", ""), ("mov.u64 %rd1, g;", ""),
    ("ld.global.b32 %r1, [%r2];", "PTX242"), ("ld.shared.b32 %r1, [%r2];", ""),
    ("cvta.global.u32 %r1, %r2;", "PTX242"),
])  # fmt: skip
def test_addresses_of_32_bits_ended_with_ptx_8(text: str, code: str) -> None:
    assert line(text, "8.0", "sm_80") == ([code] if code else [])
    assert line(text, "7.8", "sm_80") == []


def test_address_size_32_ended_with_ptx_8() -> None:
    assert line("mov.u32 %r1, g;", "8.0", "sm_80", ".address_size 32") == ["PTX309"]
    assert line("mov.u32 %r1, g;", "7.8", "sm_80", ".address_size 32") == []


def test_a_release_store_names_its_scope() -> None:
    assert line("st.async.release.b32 [%rd1], %r1;", "9.0", "sm_100") == ["PTX309"]
    assert line("st.async.release.sys.b32 [%rd1], %r1;", "9.0", "sm_100") == []


# --- the commands -----------------------------------------------------------------------------------------------------


def test_the_commands_accept_it_and_warn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL)
    assert exit_status(ptx_lint, "ptx-lint", [str(path)]) == 0
    assert exit_status(ptx_lint, "ptx-lint", ["--strict", str(path)]) == 1
    capfd.readouterr()
    assert exit_status(ptx_as, "ptx-as", [str(path), "-o", str(tmp_path / "k.ptxo")]) == 0
    out, err = capfd.readouterr()
    assert out == "" and err.count("[PTX610]") == 5 and "k.ptx:4:31: warning: " in err
    np.save(tmp_path / "wanted.npy", np.array([41, 39, 0, 1, 0x4040_0000], np.uint32))
    arguments = ["--grid", "1", "--block", "1", "--arg", "zeros:u32[5]", "--expect", f"0={tmp_path}/wanted.npy"]
    for file, warned in (("k.ptx", 5), ("k.ptxo", 4)) * 2:  # a container keeps the last alignment only
        assert exit_status(ptx_run, "ptx-run", [str(tmp_path / file), *arguments]) == 0
        assert capfd.readouterr().err.count("[PTX610]") == warned


def test_several_inputs_in_worker_processes_warn_too(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ptx").write_text(KERNEL.replace("k(", f"{name}(").replace("two", f"two{name}"))
    command = [sys.executable, "-m", "ptxtools", "as", "-c", "-j", "2", "a.ptx", "b.ptx"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr.count("[PTX610]") == 10
    assert (tmp_path / "a.ptxo").exists() and (tmp_path / "b.ptxo").exists()


def test_python_can_make_it_an_error() -> None:
    with warnings.catch_warnings(), pytest.raises(ptxtools.PtxWarning):
        warnings.simplefilter("error", ptxtools.PtxWarning)
        ptxtools.loads(KERNEL)


def test_warnings_and_errors_go_to_other_processes() -> None:
    """Whole by pickle; pytest-xdist rebuilds a warning from its text."""
    text = ".version 7.0\n.target sm_80\n.global .b32;\n"
    with pytest.warns(ptxtools.PtxWarning) as told:
        ptxtools.loads(text)
    warning = told[0].message
    assert isinstance(warning, ptxtools.PtxWarning)
    again = pickle.loads(pickle.dumps(warning))
    assert str(again) == str(warning) and [d.line for d in again.diagnostics] == [3]
    assert str(ptxtools.PtxWarning(*warning.args)) == str(warning)
    with pytest.raises(ptxtools.PtxError) as caught:
        ptxtools.loads(".version 7.0\n.target sm_80\n.nothing\n")
    assert [d.line for d in pickle.loads(pickle.dumps(caught.value)).diagnostics] == [3]
