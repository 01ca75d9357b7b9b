"""The generated code: valid for other CPUs and other architectures, and no larger than it need be."""

from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from ptxtools import isa
from ptxtools.native.code import generate, jit, keys
from ptxtools.native.code.emitter import Emitter, expand
from ptxtools.program import lower
from ptxtools.program.program import Op, Ref
from ptxtools.semantics.types import word_bits
from ptxtools.syntax import parse

from ..semantics.harness import signature
from .harness import body_kernel, lowered

BENCH = sorted((Path(__file__).parents[2] / "testdata" / "bench" / "ptx").glob("*.ptx"))
MORE = body_kernel(
    """.shared .u32 s[32]; .local .u32 l[4]; ld.u32 %r1, [%in]; atom.global.add.f32 %f1, [%in], 0f3F800000;
    atom.shared.cas.b32 %r2, [s], 0, 1; shfl.sync.up.b32 %r3|%p1, %r1, 1, 0, -1; vote.sync.ballot.b32 %r4, %p1, -1;
    match.any.sync.b32 %r5, %r1, -1; redux.sync.add.u32 %r6, %r1, -1; ld.global.v4.b16 {%h1, %h2, %h3, %h4}, [%in];
    mov.u64 %d1, l; st.local.u64 [%d1], %d1; ld.local.u8 %r7, [%d1+3]; mov.u64 %d2, %globaltimer;
    st.global.u8 [%in], %r7;
    elect.sync %r8|%p2, -1; membar.gl; nanosleep.u32 10; st.shared.v2.u32 [s+8], {%r7, %r8}; ret;""",
    4,
)


AVX2 = ["sse2", "avx", "avx2", "f16c", "fma"]
FEATURES = {"haswell": AVX2, "skylake-avx512": [*AVX2, "avx512f", "avx512dq", "avx512bw", "avx512vl"]}


def operations() -> dict[str, Op]:
    """An operation of each handler that some kernels need."""
    found: dict[str, Op] = {}
    programs = [lower(parse(path.read_text()).module, path.stem, lambda name: 0) for path in BENCH]
    for program in [*programs, lowered(MORE)]:
        for block in program.blocks:
            for op in block.ops:
                found[keys.name_of(keys.key_of(op))] = op
    return found


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("triple", "cpu", "features"),
    [
        ("aarch64-unknown-linux-gnu", "generic", ""),
        ("x86_64-unknown-linux-gnu", "x86-64", "+cx16"),
        ("x86_64-unknown-linux-gnu", "haswell", ""),
        ("x86_64-unknown-linux-gnu", "skylake-avx512", ""),
    ],
)
def test_code_for_other_cpus(triple, cpu, features):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this llvmlite has no {triple}")
    machine = target.create_target_machine(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small")
    have = FEATURES.get(cpu, []) if jit.is_x86() else []  # the assembler is this machine's
    handlers = [generate.handler_module(operations(), have, brief=brief) for brief in (False, True)]
    for text in (generate.base_module(have), *handlers):
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = triple
        module.verify()
        assert len(machine.emit_object(module)) > 1000


@pytest.mark.parametrize(
    "opcode", ["add.rz.f32", "fma.rm.f64", "cvt.rz.f32.s32", "cvt.rp.f32.u64", "cvt.rm.f64.s64", "cvt.rzi.s32.f32"]
)
def test_instructions_of_512_bits_stay_whole(opcode):
    """Where vectors of 256 bits are preferred, the compiler would have to split them, and cannot."""
    known = isa.resolve(opcode)
    types = signature(known)
    refs = [Ref(512 + 256 * i, f"b{word_bits(t)}") for i, t in enumerate((*types.outputs, *types.inputs))]
    op = Op("alu", known, tuple(refs[:1]), tuple(refs[1:]), types.outputs, types.inputs)
    text = generate.handler_module({"h": op}, FEATURES["skylake-avx512"])
    assert re.search(r"define .* @h\(.*\) #2 {", text)


def test_names_are_the_same_in_every_process_and_differ_by_key():
    ops = operations()
    assert len(ops) > 60
    assert all(name == keys.name_of(keys.key_of(op)) and name.isidentifier() for name, op in ops.items())


def accesses():
    """Loads and stores of every type, from and to registers as wide and wider, with every order."""
    for bits, letters in ((8, "usb"), (16, "usb"), (32, "usbf"), (64, "usbf")):
        for letter in letters:
            for register in ("%h1", "%r1", "%d1"):
                if max(bits, 16) > {"h": 16, "r": 32, "d": 64}[register[1]] or (letter == "f" and register[1] == "h"):
                    continue
                for space, orders in (("global", ("", ".volatile", ".relaxed.gpu", ".acquire.gpu", ".release.sys")),
                                      ("shared", ("", ".relaxed.cta", ".acquire.gpu", ".release.cta")),
                                      ("local", ("",))):  # fmt: skip
                    address = "%r8" if space != "global" else "%in"
                    for order in orders:
                        if "release" not in order:
                            yield f"ld{order}.{space}.{letter}{bits} {register}, [{address}];"
                        if "acquire" not in order:
                            yield f"st{order}.{space}.{letter}{bits} [{address}], {register};"
    for t in ("u8", "s8", "b16", "f32", "s32"):
        register = "h" if t[1:] in ("8", "16") else "r"
        pair = f"{{%{register}1, %{register}2}}"
        yield f"ld.global.v2.{t} {pair}, [%in]; st.global.v2.{t} [%in], {pair};"


def test_accesses_that_share_a_handler_have_the_same_code():
    """Whatever the type is called, and whatever says nothing of the code."""
    program = lowered(body_kernel("\n".join(accesses()) + " ret;", 4))
    texts: dict[str, dict[str, str]] = {}
    ops = [op for block in program.blocks for op in block.ops if op.kind in ("ld", "st")]
    for op in ops:
        name, features = keys.name_of(keys.key_of(op)), FEATURES["skylake-avx512"]
        text = generate.handler(Emitter(features), "h", op)
        texts.setdefault(name, {})[text] = op.opcode.text
    assert len(ops) > 280
    assert len(ops) / 3 < len(texts) < len(ops) / 2
    assert {name: [*found.values()] for name, found in texts.items() if len(found) > 1} == {}
    different = {text for found in texts.values() for text in found}
    print(f"{len(ops)} accesses, {len(texts)} handlers, {len(different)} texts")


def test_the_notation():
    text = expand("%x = get warp.ready\nset ctx.slice, %x\n%m = lanes %x\nleave STATUS_IDLE")
    assert "getelementptr i8, ptr %warp, i64 0" in text
    assert "%m = bitcast i32 %x to <32 x i1>" in text
    assert text.endswith("ret void")
    assert expand("  %a = add i32 %b, STATUS_TRAP ; a comment") == "  %a = add i32 %b, 2"
