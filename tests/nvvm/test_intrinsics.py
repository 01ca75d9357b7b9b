"""The intrinsics of NVVM IR: every form reaches PTX without errors, and computes what libnvvm's PTX computes."""

import pytest

import ptxtools
from ptxtools.nvvm import Lowering, lower
from ptxtools.nvvm.intrinsics import intrinsics
from tests.nvvm.forms import calls_of, kernels_of, module
from tests.nvvm.results import UNKNOWN_THERE, recorded, results
from tests.rows import rows


def test_the_table_has_every_form():
    """The specification lists 543 names, one of them (the handle of a texture) twice."""
    forms = intrinsics()
    assert len(forms) == 543
    assert forms["llvm.nvvm.hmma.m8n32k16.mma.f16.f32"].parameters == ("i32",) * 18 + ("float",) * 8
    assert forms["llvm.nvvm.tex.unified.2d.array.grad.v4s32.f32"].parameters == ("i64", "i32", *["float"] * 6)
    assert forms["llvm.nvvm.sust.b.3d.v2i8.zero"].parameters == ("i64", "i32", "i32", "i32", "i16", "i16")
    assert forms["llvm.nvvm.suld.1d.v2i64.trap"].result == "{i64, i64}"
    assert forms["llvm.nvvm.atomic.load.add.f64.p3f64"].modern_name == "llvm.nvvm.atomic.load.add.f64.p3"


def test_every_form_reaches_ptx():
    ptx = lower(module(kernels_of(calls_of(intrinsics().values()))), how=Lowering("sm_90", locations=False))
    assert ".extern" not in ptx and ".func" not in ptx
    words = ("wmma.mma.sync.aligned.row.col.m8n32k16.f16.f32", "fence.sc.cluster;", "barrier.cluster.arrive.relaxed;",
             "shfl.sync.bfly.b32", "vote.sync.ballot.b32", "match.all.sync.b64", "isspacep.shared::cluster",
             "isspacep.param", "sust.p.a2d.v4.b32.trap", "tld4.a.2d.v4.u32.f32", "suld.b.3d.v2.b8.zero", "membar.sys;",
             "tex.grad.a2d.v4.f32.f32", "atom.shared.add.f64", "mov.u64 \t%")  # fmt: skip
    assert [word for word in words if word not in ptx] == []


def test_results_are_those_of_libnvvm():
    """The module has no error, or it would not be loaded."""
    kernels = kernels_of(calls_of(intrinsics().values()))
    found, known = (
        results(lower(module(kernels), how=Lowering("sm_90", locations=False)), kernels, "reference"),
        recorded(),
    )
    assert [call for call, value in known.items() if value != found[call]] == []
    assert set(found) - set(known) == {name.removeprefix("llvm.nvvm.") for name in UNKNOWN_THERE}
    assert len(known) == 645


def test_results_are_those_of_the_other_engine():
    """Some of each large family: the native engine compiles each form."""
    big = ("hmma", "tex", "tld4", "suld", "sust")
    calls = calls_of(intrinsics().values())
    kernels = kernels_of([c for n, c in enumerate(calls) if c.form.name.split(".")[2] not in big or n % 73 == 0])
    ptx = lower(module(kernels), how=Lowering("sm_90", locations=False))
    assert results(ptx, kernels, "native") == results(ptx, kernels, "reference")


def test_the_modern_dialect_has_names_of_its_own():
    """Of those with pointers, only the space is part of the name there."""
    with_pointers = [form for form in intrinsics().values() if form.name != form.modern_name]
    assert len(with_pointers) == 12 + 54 + 1
    with_pointers = [form for form in with_pointers if "hmma" not in form.name or "m8n32k16.st" in form.name]
    kernels = kernels_of(calls_of(with_pointers))
    typed, modern = (lower(module(kernels, modern), how=Lowering(locations=False)) for modern in (False, True))
    assert typed == modern


def kernel(declaration, *body):
    return "\n".join(
        [f"declare {declaration}", "define ptx_kernel void @k(i32 %m, ptr %p) {", *body, "  ret void", "}\n"]
    )


SHUFFLE = "{i32, i1} @llvm.nvvm.shfl.sync.i32(i32, i32, i32, i32, i32)"


def test_an_operand_that_is_no_constant_decides_when_the_kernel_runs():
    text = kernel(SHUFFLE, "  %r = call {i32, i1} @llvm.nvvm.shfl.sync.i32(i32 -1, i32 %m, i32 %m, i32 0, i32 31)",
                  "  %v = extractvalue {i32, i1} %r, 0", "  store i32 %v, ptr %p")  # fmt: skip
    module = ptxtools.loads(text)
    device = ptxtools.Device(module.target)
    out = device.alloc(4)
    device.launch(module["k"], grid=1, block=32, args=[3, out])
    assert out.download().tolist()[:1] == [3]
    with pytest.raises(ptxtools.Trap):
        device.launch(module["k"], grid=1, block=32, args=[4, out])


REFUSED = {
    "unknown": (
        kernel("void @llvm.nvvm.nothing()", "  call void @llvm.nvvm.nothing()"),
        "no intrinsic @llvm.nvvm.nothing",
    ),
    "another type": (
        kernel("i32 @llvm.nvvm.membar(i64)", "  %x = call i32 @llvm.nvvm.membar(i64 0)"),
        "@llvm.nvvm.membar is declared as i32 (i64), not as void (i32)",
    ),
    "saturation": (
        kernel(
            "{i32, i1} @llvm.nvvm.vote.sync(i32, i32, i32)",
            "  %r = call {i32, i1} @llvm.nvvm.vote.sync(i32 -1, i32 0, i32 0)",
        ),
        "not as { i32, i1 } (i32, i32, i1)",
    ),
}


@rows("name", REFUSED)
def test_calls_that_are_refused(name):
    text, words = REFUSED[name]
    with pytest.raises(ptxtools.PtxError, match="NVVM902") as caught:
        lower(text, "k.ll")
    assert words in str(caught.value)
