"""NVVM IR is lowered and run: by both engines, from text and bitcode of both dialects, through every door."""

import io
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import numpy as np
import pytest

import ptxtools
from ptxtools.cli.assemble import command as assemble
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command as run
from ptxtools.diagnostics import Severity
from ptxtools.inputs import detect
from ptxtools.nvvm import Lowering, lower, toolkit
from tests.rows import rows

DATA = Path(__file__).parents[2] / "testdata" / "nvvm"
DIALECTS = ("kernels7.ll", "kernels18.ll")


@pytest.fixture(scope="module", params=DIALECTS)
def module(request):
    return ptxtools.load(DATA / request.param)


@pytest.fixture(params=["native", "reference"])
def device(request):
    return ptxtools.Device("sm_90", engine=request.param)


def test_kernels_compute_what_they_say(module, device):
    a, b = np.arange(100, dtype=np.float32), np.linspace(0, 1, 100, dtype=np.float32)
    out = np.zeros(100, np.float32)
    device.launch(module["vecadd"], grid=2, block=64, args=[a, b, out, 100])
    assert (out == a + b).all()

    values = np.arange(512, dtype=np.float32) % 7
    sums = np.zeros(4, np.float32)
    device.launch(module["reduce"], grid=4, block=128, args=[values, sums])
    assert (sums == values.reshape(4, 128).sum(1) * [1, 2, 4, 8]).all()

    counts, total = np.zeros(4, np.uint32), np.zeros(1, np.float32)
    device.launch(module["atomics"], grid=4, block=64, args=[counts, total])
    assert counts.tolist() == [sum(range(256)), 255, 256 % 100, 1] and total[0] == 128

    x, y = np.linspace(-2, 2, 64).astype(np.float16), np.linspace(1, 3, 64).astype(np.float16)
    result = np.zeros(64, np.float16)
    device.launch(module["halves"], grid=1, block=64, args=[x, y, result])
    assert (result == x * y + x).all()


def test_both_dialects_give_the_same_ptx():
    first, second = (lower((DATA / name).read_bytes()) for name in DIALECTS)
    assert first == second


# --- the commands -----------------------------------------------------------------------------------------------------

LAUNCH = """
module = "k.ll"
kernel = "vecadd"
grid = 1
block = 32
args = [{ buffer = "a" }, { buffer = "a" }, { buffer = "out" }, { value = 32 }]
[buffers.a]
arange = "f32[32]"
[buffers.out]
zeros = "f32[32]"
expect = "sum.npy"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ll").write_bytes((DATA / "kernels7.ll").read_bytes())
    (tmp_path / "bad.ll").write_text("define void @k() {\n  %a = add i32 %b, 1\n  ret void\n}\n")
    np.save(tmp_path / "sum.npy", 2 * np.arange(32, dtype=np.float32))
    return tmp_path


def test_the_commands_take_it(folder, capsys):
    vecadd = ["-k", "vecadd", "--grid", "1", "--block", "32", "--arg", "arange:f32[32]", "--arg", "arange:f32[32]",
              "--arg", "zeros:f32[32]", "--arg", "32", "--expect", "2=sum.npy"]  # fmt: skip
    assert exit_status(run, "ptx-run", ["k.ll", *vecadd]) == 0
    assert exit_status(assemble, "ptx-as", ["k.ll"]) == 0
    assert exit_status(run, "ptx-run", ["k.ptxo", *vecadd]) == 0
    capsys.readouterr()
    assert (
        exit_status(assemble, "ptx-as", ["--emit", "ptx", "k.ll", "--target", "sm_100a", "--ptx-version", "8.7"]) == 0
    )
    text = capsys.readouterr().out
    assert "\n.version 8.7\n.target sm_100a\n" in text and ".entry vecadd(" in text
    assert ptxtools.lint(text, select=["PTX1", "PTX2", "PTX3", "PTX4"]) == []


def test_the_dialect_that_is_meant(folder, capsys):
    """Pointers of the other one are an error, of text and bitcode, for the commands and for `lower`."""
    assert exit_status(run, "ptx-run", ["k.ll", "--nvvm-dialect", "7", "--list"]) == 0
    assert exit_status(assemble, "ptx-as", ["k.ll", "--nvvm-dialect", "modern"]) == 1
    assert "k.ll:19:26: error: the modern dialect has no typed pointers [NVVM103]" in capsys.readouterr().err
    modern = (DATA / "kernels18.ll").read_text()
    for data in (modern, llvmlite.binding.parse_assembly(modern).as_bitcode()):
        with pytest.raises(ptxtools.PtxError, match=r"dialect of LLVM 7 has no opaque pointers.*NVVM103"):
            lower(data, "k", Lowering(dialect="7"))
        assert lower(data, "k", Lowering(dialect="modern", locations=False))
    with pytest.raises(ValueError, match="unknown dialect '8'"):
        lower(modern, "k", Lowering(dialect="8"))


def test_numbers_of_newer_llvms_are_read():
    """Each as the bits of its type, but for strings and comments; the specification has no such number."""
    body = """define ptx_kernel void @k(ptr addrspace(1) %p, half %h, bfloat %b, float %f, double %d) {{
  %1 = fmul float %f, {0}
  %2 = fadd half %h, {1}
  %3 = fadd bfloat %b, {2}
  %4 = fmul double %d, {3} ; f0x00000000
  %5 = fpext float %1 to double
  %6 = fadd double %4, %5
  store double %6, ptr addrspace(1) %p
  store half %2, ptr addrspace(1) %p
  store bfloat %3, ptr addrspace(1) %p
  ret void
}}
"""
    new = body.format("f0x3FB8AA3B", "f0x3C01", "f0x3F81", "f0x3FF0000000000001")
    old = body.format("0x3FF7154760000000", "0xH3C01", "0xR3F81", "0x3FF0000000000001")
    assert lower(new) == lower(old) and "0f3FB8AA3B" in lower(new)
    found = [one.message for one in ptxtools.nvvm.lint(new) if one.code == "NVVM101"]
    assert len(found) == 4 and all("LLVM 23" in message for message in found)
    words = body.format("-inf", "+qnan", "+inf", "-qnan")
    old = body.format("0xFFF0000000000000", "0xH7E00", "0xR7F80", "0xFFF8000000000000")
    assert lower(words) == lower(old)
    assert [one.message[:38] for one in ptxtools.nvvm.lint(words) if one.code == "NVVM101"] == [
        "infinities and NaNs in words came with"
    ] * 4
    rounded = body.format("1.002960e+00", "1.000980e+00", "1.007810e+00", "1.5")
    old = body.format("0x3FF00C1FC0000000", "0xH3C01", "0xR3F81", "1.5")
    assert lower(rounded) == lower(old)


def test_labels_that_are_numbers_are_names_to_llvm_7(device, tmp_path):
    """`%1` is the block without a label here, and `%"1"` the one behind it."""
    text = """define void @f(i32* %p, i32 %n) {
  %c = icmp eq i32 %n, 0
  br i1 %c, label %1, label %"1"

  br label %"1"
1:
  %x = phi i32 [ 40, %0 ], [ 50, %1 ]
  %2 = add i32 %x, %n
  store i32 %2, i32* %p
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void (i32*, i32)* @f, !"kernel", i32 1}
"""
    (tmp_path / "k.ll").write_text(text)
    kernel = ptxtools.load(tmp_path / "k.ll")["f"]
    for n, expected in ((0, 50), (3, 43)):
        out = np.zeros(1, np.int32)
        device.launch(kernel, grid=1, block=1, args=[out, n])
        assert out == expected


def test_launch_files_take_it(folder, capsys):
    (folder / "case.toml").write_text(LAUNCH)
    assert exit_status(run, "ptx-run", ["--launch", "case.toml"]) == 0, capsys.readouterr().err


def test_standard_input_takes_it(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((folder / "k.ll").read_bytes())))
    assert exit_status(assemble, "ptx-as", ["--emit", "ptx", "-"]) == 0
    said = capsys.readouterr().out
    assert ".entry vecadd(" in said and '.file\t1 "<stdin>"' in said


def test_errors_have_their_place_in_the_text(folder, capsys):
    assert exit_status(assemble, "ptx-as", ["bad.ll"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("bad.ll:2:16: error: use of undefined value '%b' [NVVM901]\n")
    assert exit_status(run, "ptx-run", ["bad.ll", "--list"]) == 1
    assert capsys.readouterr().err == said


def test_the_device_chooses_the_target(folder, capsys):
    arguments = ["k.ll", "-k", "vecadd", "--grid", "1", "--block", "32", "--arg", "null", "--arg", "null", "--arg",
                 "null", "--arg", "32"]  # fmt: skip
    assert exit_status(run, "ptx-run", [*arguments, "--device", "sm_103a"]) == 1
    assert "k.ll(sm_103a):" in capsys.readouterr().err
    assert exit_status(run, "ptx-run", arguments) == 1
    assert "k.ll(sm_90):" in capsys.readouterr().err


def test_ptx_loads_nothing_of_it(folder):
    (folder / "k.ptx").write_text(lower((folder / "k.ll").read_bytes()))
    code = """import sys, ptxtools
ptxtools.load('k.ptx')
from ptxtools.cli import assemble, lint, run
for module, options in ((lint, ["-q"]), (assemble, ["-o", "k.ptxo"]), (run, ["--list"])):
    module.command.main(["k.ptx", *options], standalone_mode=False)
sys.stdout.write(str([m for m in sys.modules if 'nvvm' in m]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]")


def test_the_check_of_text_loads_no_reader_of_bitcode_and_no_lowering(folder):
    code = """import sys
from ptxtools.cli import lint
lint.command.main(["k.ll", "-q"], standalone_mode=False)
others = ("llvmlite", "numpy", "ptxtools.nvvm.bitcode", "ptxtools.nvvm.lowering", "ptxtools.check", "ptxtools.syntax")
assert "ptxtools.nvvm.rules.screen" in sys.modules
sys.stdout.write(str([m for m in sys.modules if m.startswith(others)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]")


# --- what a module says, and what is asked for ------------------------------------------------------------------------

PLAIN = "define void @k() {\n  ret void\n}\n"


def target_line(ptx):
    return next(line for line in ptx.splitlines() if line.startswith(".target"))


def test_a_module_may_name_its_target():
    named = PLAIN.replace("{", "#0 {") + 'attributes #0 = { "target-cpu"="sm_86" "target-features"="+ptx78" }\n'
    assert target_line(lower(named)) == ".target sm_86"
    assert target_line(lower(named, how=Lowering("sm_120a"))) == ".target sm_120a"
    assert target_line(lower(PLAIN)) == ".target sm_90"


HEAD = 'target triple = "nvptx64-nvidia-cuda"\n'
#: What cannot be lowered, and words of the message.
REFUSED = {
    "another machine": ('target triple = "x86_64-linux-gnu"\n' + PLAIN, "NVVM903", "x86_64-linux-gnu"),
    "unknown target": (PLAIN, "NVVM903", "sm_107a", Lowering("sm_107a")),
    "unknown version": (PLAIN, "NVVM903", "PTX 9.5", Lowering(version=(9, 5))),
    "version too old": (PLAIN, "NVVM902", "PTX version 7.8", Lowering("sm_90a", (7, 8))),
    "broken rule": ("define i32 @k(i1 %c) {\n  br i1 %c, label %x, label %y\nx:\n  %a = add i32 1, 1\n  br label %y\n"
                    "y:\n  ret i32 %a\n}\n", "NVVM901", "does not dominate"),
    "not UTF-8": (b"; caf\xe9\n" + PLAIN.encode(), "NVVM901", "0xe9"),
    "a name that is not UTF-8": (PLAIN + 'declare void @"\\84"()\n', "NVVM901", "is not UTF-8"),
    "a NUL": ("; \0\n" + PLAIN, "NVVM901", "NUL"),
    "damaged bitcode": (b"BC\xc0\xde" + bytes(40), "NVVM901", ""),
    "thread-local": ("@x = thread_local global i32 0\ndefine ptr @k() {\n  ret ptr @x\n}\n", "NVVM902", "@k"),
    "an exception": ("declare i32 @p(...)\ndeclare void @f()\ndefine void @k() personality ptr @p {\n"
                     "  invoke void @f() to label %a unwind label %b\na:\n  ret void\nb:\n"
                     "  %l = landingpad { ptr, i32 } cleanup\n  ret void\n}\n", "NVVM902", "'invoke' in @k"),
    "a constructor": ("@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, "
                      "ptr @k, ptr null }]\n" + PLAIN, "NVVM902", "@llvm.global_ctors"),
    "a variable of an odd width": ("@odd = addrspace(1) global i3 0\ndefine i3 @k() {\n  %v = load i3, ptr "
                                   "addrspace(1) @odd\n  store i3 1, ptr addrspace(1) @odd\n  ret i3 %v\n}\n",
                                   "NVVM902", "i3"),
    "a block address": ("define ptr @k() {\n  br label %b\nb:\n  ret ptr blockaddress(@k, %b)\n}\n", "NVVM902",
                        "blockaddress(@k, %b)"),
    "an exchange of 128 bits": ("define i128 @k(ptr %p, i128 %v) {\n  %a = atomicrmw xchg ptr %p, i128 %v seq_cst\n"
                                "  ret i128 %a\n}\n", "NVVM902", "exchange of i128 with the ordering seq_cst"),
    "an atomic load of 128 bits": ("define i128 @k(ptr %p) {\n  %a = load atomic i128, ptr %p seq_cst, align 16\n"
                                   "  ret i128 %a\n}\n", "NVVM902", "load of i128 with the ordering seq_cst"),
    "an intrinsic of another target": (
        "declare void @llvm.nvvm.tcgen05.fence.before.thread.sync()\ndefine void @k() {\n"
        "  call void @llvm.nvvm.tcgen05.fence.before.thread.sync()\n  ret void\n}\n",
        "NVVM902", "tcgen05.fence.before.thread.sync"),
}  # fmt: skip


@pytest.mark.parametrize("ordering", ["seq_cst seq_cst", "acq_rel monotonic"])
def test_a_comparing_exchange_of_128_bits_has_all_its_ptx(ordering):
    text = (
        "define ptx_kernel void @k(ptr %p, i128 %a, i128 %b) {\n"
        f"  %r = cmpxchg ptr %p, i128 %a, i128 %b {ordering}\n"
        "  %v = extractvalue { i128, i1 } %r, 0\n  store i128 %v, ptr %p\n  ret void\n}\n"
    )
    made = lower(text, how=Lowering("sm_90"))
    assert "cas.b128" in made and ("fence.sc" in made) == ("seq_cst" in ordering)
    assert not [one for one in ptxtools.lint(made) if one.severity is Severity.ERROR]


def test_an_exchange_of_128_bits_has_its_place():
    text = REFUSED["an exchange of 128 bits"][0]
    with pytest.raises(ptxtools.PtxError) as caught:
        lower(text, "k.ll")
    assert (caught.value.diagnostics[0].line, caught.value.diagnostics[0].column) == (2, 8)
    assert "atom.acq_rel.sys.exch.b128" in lower(text.replace("seq_cst", "acq_rel")).replace("global.", "")


@rows("name", REFUSED)
def test_what_is_refused(name):
    data, code, words, *how = REFUSED[name]
    with pytest.raises(ptxtools.PtxError) as caught:
        lower(data, "k.ll", *how)
    (finding,) = caught.value.diagnostics
    assert finding.code == code and words in finding.message and finding.file == "k.ll"


# --- libraries and several modules  -----------------------------------------------------------------------------------


def called(text):
    """What the kernel of caller.ll writes."""
    x, arch = np.full(1, 1.5, np.float32), np.zeros(1, np.int32)
    module = ptxtools.loads(text)
    ptxtools.Device(module.target).launch(module["call"], grid=1, block=1, args=[x, arch])
    return x[0], arch[0]


def test_a_library_is_linked_and_what_is_unused_of_it_dropped():
    text = lower((DATA / "caller.ll").read_bytes(), how=Lowering("sm_80", libdevice=str(DATA / "library.ll")))
    assert called(text) == (3, 800)
    assert "__nv_" not in text and ".extern" not in text and "thrice" not in text


def test_the_option_names_the_library(tmp_path, capsys):
    caller, library = str(DATA / "caller.ll"), str(DATA / "library.ll")
    assert exit_status(assemble, "ptx-as", ["--emit", "ptx", "--libdevice", library, caller]) == 0
    assert called(capsys.readouterr().out) == (3, 900)
    arguments = ["--grid", "1", "--block", "1", "--arg", "fill:f32[1]=4", "--arg", "zeros:s32[1]"]
    assert exit_status(run, "ptx-run", [caller, "--libdevice", library, *arguments]) == 0
    assert capsys.readouterr().out == "argument 0: f32[1] = 8\nargument 1: s32[1] = 900\n"


def test_a_library_that_is_missing_or_is_none(tmp_path, monkeypatch):
    (tmp_path / "empty.ll").write_text("; nothing\n")
    (tmp_path / "text.bc").write_text("no library")
    caller = (DATA / "caller.ll").read_bytes()
    for name, words in (("empty.ll", "has no function @__nv_architecture"), ("text.bc", "neither bitcode nor text"),
                        ("absent.bc", "No such file")):  # fmt: skip
        with pytest.raises(ptxtools.PtxError, match=rf"{name}.*{words}.*NVVM905"):
            lower(caller, how=Lowering(libdevice=str(tmp_path / name)))
    monkeypatch.setattr("ptxtools.nvvm.toolkit.libdevice", lambda: "")
    with pytest.raises(ptxtools.PtxError, match=r"@__nv_\w+ is a function of libdevice, and no CUDA toolkit"):
        lower(caller)


def test_modules_link_by_llvm_and_by_the_linker():
    modules = [(DATA / name).read_bytes() for name in ("caller.ll", "library.ll")]
    assert called(lower(modules, ["caller.ll", "library.ll"], Lowering("sm_90"))) == (3, 900)
    library = lower(modules[1], "library.ll").encode()
    with pytest.raises(ptxtools.PtxError, match=r"twice.*NVVM904"):
        lower([modules[1], modules[1]])
    first = PLAIN.replace("@k()", "@f()").encode() + b"\n"
    second = b"declare void @f()\ndefine void @k() {\n  call void @f()\n  ret void\n}\n"
    assert ptxtools.loads(ptxtools.assemble([second, first, library])).ir is not None


# --- libnvvm ----------------------------------------------------------------------------------------------------------


def test_libnvvm_lowers_where_it_is_installed(capsys):
    """What is not run here is printed."""
    if not toolkit.libnvvm():
        with capsys.disabled():
            sys.stdout.write("\nnot run, because libnvvm is not installed: lowering by libnvvm\n")
        return
    text = (DATA / "caller.ll").read_text() + "!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0}\n"
    how = Lowering("sm_90", libdevice=str(DATA / "library.ll"), backend="libnvvm")
    ptx = lower(text.replace("__nv_twice", "twice").replace("__nv_arch", "arch"), "caller.ll", how)
    assert "NVIDIA NVVM Compiler" in ptx and ".extern .func" in ptx and ".entry call(" in ptx
    with pytest.raises(ptxtools.PtxError, match=r"^bad.ll:3:16: .*%b.*NVVM901"):
        lower(REFUSED_BY_BOTH, "bad.ll", Lowering(backend="libnvvm"))
    with pytest.raises(ptxtools.PtxError, match=r"this libnvvm writes PTX .*, not 7.0.*NVVM903"):
        lower(text.replace("__nv_", ""), "k.ll", Lowering(version=(7, 0), backend="libnvvm"))
    with pytest.raises(ptxtools.PtxError, match="NVVM903"):
        lower(text.replace("__nv_", ""), "k.ll", Lowering("sm_20", backend="libnvvm"))


REFUSED_BY_BOTH = 'target triple = "nvptx64-nvidia-cuda"\ndefine void @k() {\n  %a = add i32 %b, 1\n  ret void\n}\n'


def test_a_library_that_is_not_libnvvm_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("ptxtools.nvvm.toolkit.libnvvm", lambda: "")
    with pytest.raises(ptxtools.PtxError, match=r"libnvvm was not found.*NVVM905"):
        lower(PLAIN, "k.ll", Lowering(backend="libnvvm"))
    (tmp_path / "libnvvm.so").write_text("no library")
    monkeypatch.setattr("ptxtools.nvvm.toolkit.libnvvm", lambda: str(tmp_path / "libnvvm.so"))
    with pytest.raises(ptxtools.PtxError, match=r"libnvvm cannot be loaded.*NVVM905"):
        lower(PLAIN, "k.ll", Lowering(backend="libnvvm"))
    with pytest.raises(ValueError, match="unknown back end 'gcc'; there is llvm and libnvvm"):
        lower(PLAIN, "k.ll", Lowering(backend="gcc"))


# --- recognition ------------------------------------------------------------------------------------------------------

KINDS = {
    "ll": ['target triple = "x"', "; a comment", "\n\n  ; ptx\n.version", "define void @f()", "@x = global i32 0",
           '@"a b" = global i32 0', "%t = type { i32 }", "!0 = !{}", "$c = comdat any", "attributes #0 = {",
           'source_filename = "x"', "module asm", "declare void @f()", "\ufefftarget datalayout"],
    "text": [".version 8.0", "// ; x\n.version", "/* ; */", "", "@p bra x;", "@%p bra x;", "%r1", "target", "defined",
             "add.s32 a, b, c;"],
}  # fmt: skip


@rows("kind, text", [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_content_tells_what_a_file_is(kind, text):
    assert detect(text.encode()) == kind


def test_bitcode_is_told_by_its_first_bytes():
    assert detect(b"BC\xc0\xde") == detect(b"\xde\xc0\x17\x0b") == "bc"


BY_VALUE = """target triple = "nvptx64-nvidia-cuda"
%S = type { i32, [2 x i32] }
declare void @f(%S* nocapture byval align 4, [4 x { i32, float }] addrspace(5)*) ; %S* byval
declare void @g([2 x i32*]* sret, i32)
define void @k(%S* byval align 8 %p, i32* %q) {
  %byval = load i32, i32* %q
  call void @f(%S* byval align 4 %p, [4 x { i32, float }] addrspace(5)* null)
  %r = alloca [2 x i32*]
  call void @g([2 x i32*]* sret %r, i32 %byval)
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void (%S*, i32*)* @k, !"kernel", i32 1}
"""


def test_parameters_by_value_have_their_types_from_their_pointers():
    """As LLVM 7 writes them; later LLVMs demand `byval(%S)`."""
    ptx = lower(BY_VALUE, how=Lowering("sm_90"))
    assert ".param .align 8 .b8 k_param_0[12]" in ptx and ".param .align 4 .b8 \tparam0[12];" in ptx
    assert not [one for one in ptxtools.lint(ptx) if one.code == "PTX262"]


#: Constant expressions that later LLVMs lack, and what they are.
CONSTANTS = [
    ("mul nsw (i32 6, i32 7)", 42),
    ("select (i1 fcmp olt (float 1.0, float 2.0), i32 3, i32 4)", 3),
    ("sub (i32 6, i32 shl (i32 1, i32 2))", 2),
    ("zext (i8 trunc (i32 and (i32 263, i32 or (i32 2, i32 1)) to i8) to i32)", 3),
    ("extractelement (<2 x i32> mul (<2 x i32> <i32 1, i32 2>, <2 x i32> <i32 5, i32 6>), i32 1)", 12),
    ("zext (i1 icmp eq (i64 and (i64 ptrtoint ([4 x i32] addrspace(1)* @g to i64), i64 3), i64 0) to i32)", 1),
    ("load i32, i32 addrspace(1)* getelementptr ([4 x i32], [4 x i32] addrspace(1)* @g, i64 0, i64 shl (i64 1, i64 1))",
     9),
]  # fmt: skip


def test_constant_expressions_of_llvm_7_are_lowered(tmp_path):
    """With the lines of the text, which has one statement for each."""
    body = ""
    for at, (expression, _) in enumerate(CONSTANTS):
        value = expression if expression.startswith("load") else f"add i32 0, {expression} ; mul (i32"
        body += f"  %v{at} = {value}\n  %p{at} = getelementptr i32, i32 addrspace(1)* %out, i64 {at}\n"
        body += f"  store i32 %v{at}, i32 addrspace(1)* %p{at}\n"
    text = ("@g = addrspace(1) global [4 x i32] [i32 7, i32 8, i32 9, i32 10]\n"
            f"define ptx_kernel void @k(i32 addrspace(1)* %out) {{\n{body}  ret void\n}}\n")  # fmt: skip
    (tmp_path / "k.ll").write_text(text)
    ptx, out = lower(text, how=Lowering("sm_90")), np.zeros(len(CONSTANTS), np.int32)
    ptxtools.Device("sm_90").launch(ptxtools.load(tmp_path / "k.ll")["k"], grid=1, block=1, args=[out])
    assert list(out) == [value for _, value in CONSTANTS]
    assert f".loc\t1 {3 * len(CONSTANTS) + 2} " in ptx  # the last store
    for where in ("%v = phi i32 [ mul (i32 1, i32 2), %a ]", "%v = add <1 x i32> <i32 mul (i32 1, i32 2)>, undef"):
        with pytest.raises(ptxtools.PtxError, match="mul constexprs are no longer supported"):
            lower(f"define void @f() {{\na:\n  br label %b\nb:\n  {where}\n  ret void\n}}\n")
