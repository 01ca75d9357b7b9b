"""Bytes of shared memory that products and copies read, and that nothing has written or fenced."""

from ptxtools.linter import lint
from ptxtools.linter.values import Value
from ptxtools.linter.walk.computing import Described, origin, unknown
from ptxtools.syntax import parse
from tests.rows import rows

HEAD = ".version 9.0\n.target {}\n.address_size 64\n"
KERNEL = """.entry k(.param .b64 a, .param .align 64 .b8 m[128]) .reqntid {} {{
.reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .b16 %h<4>;
.shared .align 1024 .b8 s[8192];
ld.param.b64 %d1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; shl.b32 %r3, %r1, 4; add.u32 %r3, %r3, %r2;
and.b32 %r4, %r1, 31; shr.u32 %r5, %r1, 5; setp.ne.u32 %p1, %r1, 0;
"""
CODES = ("PTX515", "PTX525", "PTX527", "PTX529", "PTX541", "PTX545", "PTX566", "PTX567", "PTX612")


def found(body: str, threads: int = 128, target: str = "sm_90a") -> list[str]:
    result = parse(f"{HEAD.format(target)}{KERNEL.format(threads)}{body}\nret;\n}}\n", "k.ptx")
    assert not result.diagnostics
    return [f"{d.code} {d.help[0].partition(':')[0]}" for d in lint(result.module) if d.code in CODES]


A = "st.shared.v4.b32 [%r3], {%r1, %r1, %r1, %r1};"
B = "setp.lt.u32 %p2, %r1, {}; @%p2 st.shared.v4.b32 [%r3+2048], {{%r1, %r1, %r1, %r1}};"
FENCE = "fence.proxy.async.shared::cta; bar.sync 0;"
DESCRIBE = """shr.u32 %r6, %r2, 4; cvt.u64.u32 %d2, %r6; or.b64 %d2, %d2, 0x0000000800080000;
add.u64 %d3, %d2, 128; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
"""
MULTIPLY = """wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d2, %d3, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
"""
TRANSPOSED = MULTIPLY.replace("0, 0;", "0, 1;")
SWIZZLED = DESCRIBE + "or.b64 %d3, %d3, 0x4000000000000000;"


@rows(("body", "codes"), [
    (A + B.format(16) + FENCE + DESCRIBE + MULTIPLY, []),
    (A + B.format(8) + FENCE + DESCRIBE + MULTIPLY, ["PTX527 certain"]),
    (A + FENCE + DESCRIBE + MULTIPLY, ["PTX527 certain"]),
    (A + B.format(8) + FENCE + DESCRIBE + TRANSPOSED, []),  # what else it reads depends on the layout
    (A + B.format(8) + FENCE + SWIZZLED + MULTIPLY, []),
    (A + B.format(8) + "st.b32 [%d1], 0;" + FENCE + DESCRIBE + MULTIPLY, ["PTX527 certain"]),  # in global memory
    (A + B.format(8) + "ld.global.b64 %d4, [%d1]; st.b32 [%d4], 0;" + FENCE + DESCRIBE + MULTIPLY, []),  # anywhere
    (A + B.format(8) + "ld.global.b32 %r9, [%d1]; setp.eq.u32 %p3, %r9, 0; @%p3 bra L;" + B.format(16) + "L:" + FENCE
     + DESCRIBE + MULTIPLY, []),  # on one way
    (A.replace("%r3]", "%r3+128]") + "bar.sync 0;" + B.format(16) + FENCE + DESCRIBE + MULTIPLY, ["PTX527 certain"]),
])  # fmt: skip
def test_factors_that_nothing_has_written(body, codes):
    assert found(body) == codes


def test_some_warps_are_not_walked():
    assert found(A + FENCE + DESCRIBE + MULTIPLY, 512) == []


COPY = "cp.async.cg.shared.global [%r3], [%d1], 16; {} cp.async.wait_all;"


@rows(("body", "codes"), [
    (COPY.format("") + B.format(16) + FENCE + DESCRIBE + MULTIPLY, []),
    (COPY.format("") + "bar.sync 0;" + DESCRIBE + MULTIPLY.replace("%d3", "%d2"), ["PTX529 possible"]),
    (FENCE + "cp.async.commit_group; bar.sync 0;" + MULTIPLY, []),
])  # fmt: skip
def test_copies_and_the_fence(body, codes):
    assert found(body) == codes


BULK = """setp.lt.u32 %p2, %r1, {}; shl.b32 %r6, %r1, 2; add.u32 %r6, %r6, %r2; @%p2 st.shared.b32 [%r6], %r1;
fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra END;
cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2+{}], {};
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:
"""


@rows(("count", "first", "size", "codes"), [
    (32, 0, 128, []), (24, 0, 96, []), (24, 0, 128, ["PTX527 possible"]), (32, 64, 128, ["PTX527 possible"]),
    (32, 8128, 128, ["PTX545 certain"]),
])  # fmt: skip
def test_copies_of_what_nothing_has_written(count, first, size, codes):
    assert [one for one in found(BULK.format(count, first, size), 32) if not (first == 8128 and "527" in one)] == codes


MAP = """shl.b32 %r6, %r4, 2; add.u32 %r6, %r6, %r2; {} {}
@!%p1 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %d1; bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [s], 128;
"""


@rows(("stores", "between", "codes"), [
    ("st.shared.b32 [%r6], %r1;", "", ["PTX515 certain"]),
    ("st.shared.b32 [%r6], %r1;", "bar.warp.sync -1;", []),
    ("@!%p1 st.shared.b32 [s+8], 0;", "", []),  # the same thread
])  # fmt: skip
def test_changes_of_a_map(stores, between, codes):
    assert found(MAP.format(stores, between), 32) == codes


@rows(("first", "second", "codes"), [
    ("st.shared.b8 [%r6], %h1;", "st.shared.b8 [%r6+1], %h1;", []),
    ("st.shared.b8 [%r6], %h1;", "st.shared.b16 [%r6], %h1;", ["PTX515 certain"]),
    ("st.shared.b8 [%r6], 0x100;", "st.shared.b8 [%r6], 0x200;", []),  # both store zero
])  # fmt: skip
def test_parts_of_words(first, second, codes):
    body = f"""cvt.u16.u32 %h1, %r1; shl.b32 %r6, %r4, 1; add.u32 %r6, %r6, %r2; setp.eq.u32 %p2, %r5, 0;
    @%p2 {first} @!%p2 {second}"""
    assert found(body, 64) == codes


DISCARD = "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1; "


@rows(("body", "codes"), [
    ("discard.global.L2 [%d1], 128; bar.warp.sync -1; ld.global.b32 %r6, [%d2];", ["PTX612 possible"]),
    ("discard.global.L2 [%d1], 128; bar.warp.sync -1; ld.global.b32 %r6, [%d2+128];", []),
    ("ld.global.b32 %r6, [%d2]; bar.warp.sync -1; discard.global.L2 [%d1], 128;", []),
    ("discard.L2 [%d1], 128; bar.warp.sync -1; st.b32 [%d2], 0; ld.b32 %r6, [%d2];", []),
    ("discard.L2 [%d1], 128; bar.warp.sync -1; @%p1 st.b32 [%d2], 0; ld.b32 %r6, [%d2];", ["PTX612 possible"]),
    ("discard.L2 [%d1], 128; bar.warp.sync -1; ld.global.b64 %d3, [%d1+128]; st.b32 [%d3], 0; ld.b32 %r6, [%d2];", []),
    ("discard.L2 [%d1+64], 128;", ["PTX541 possible"]),
    ("discard.L2 [%d1+256], 128;", []),
])  # fmt: skip
def test_memory_after_a_discard(body, codes):
    assert found(DISCARD + body, 32) == codes


def test_a_discard_beside_a_reader():
    body = DISCARD + "@!%p1 ld.global.b32 %r6, [%d1]; {} setp.eq.u32 %p3, %r1, 63; @%p3 discard.global.L2 [%d1], 128;"
    assert found(body.format(""), 64) == ["PTX515 certain"]
    assert found(body.format("bar.sync 0;"), 64) == []


PUT = "mul.wide.u32 %d2, %r1, 16; add.u64 %d2, %d2, %d1; cp.async.c{} [%r3+{}], [%d2+{}], {}; cp.async.wait_all;"


@rows(("form", "to", "of", "size", "codes"), [
    ("g.shared.global", 0, 0, 16, []), ("g.shared.global", 8, 0, 16, ["PTX541 certain"]),
    ("g.shared.global", 0, 8, 16, ["PTX541 possible"]), ("a.shared.global", 8, 0, 8, []),
    ("a.shared.global", 4, 4, 8, ["PTX541 certain", "PTX541 possible"]), ("a.shared.global", 4, 12, 4, []),
    ("a.shared.global", 0, -16, 16, []),
])  # fmt: skip
def test_alignment_of_copies(form, to, of, size, codes):
    assert found(PUT.format(form, to, of, size), 32) == codes


@rows(("body", "codes"), [
    ("ld.global.b32 %r6, [%d2+-4];", ["PTX545 possible"]),
    ("@%p1 ld.global.b32 %r6, [%d2+-4];", []),  # not the first thread
    ("setp.gt.u32 %p3, %r1, 1; @%p3 ld.global.b32 %r6, [%d2+-12];", ["PTX545 possible"]),
    ("mov.u32 %r7, %ctaid.x; mad.wide.u32 %d2, %r7, 128, %d2; ld.global.b32 %r6, [%d2+-4];", []),
    ("ld.global.b32 %r6, [%d2+4];", []),
])  # fmt: skip
def test_before_what_is_given(body, codes):
    assert found(DISCARD + body, 32) == codes


S = Value((("&s", 1),), 256)


def units() -> Value:
    """The variable's address in units of 16 bytes; what unknown values are called belongs to a walk."""
    return unknown(False, "shr.u32", S, Value((), 4))


@rows(("value", "described"), [
    (lambda: S, (256, 0, True)),
    (units, (256, 0, True)),
    (lambda: Value(units().terms, 3), (304, 0, True)),  # units of 16 bytes
    (lambda: Value(units().terms, -1), (240, 0, True)),
    (lambda: Value(units().terms, (1 << 62) + 2), (288, 1 << 62, True)),  # a sum may have both
    (lambda: unknown(False, "or.b64", units(), Value((), 1 << 32)), (256, 1 << 32, True)),
    (lambda: unknown(False, "or.b64", units(), Value((("=other", 1),), 0)), (256, 0, False)),
    (lambda: unknown(False, "or.b64", Value(units().terms, 1), Value((), 1 << 32)), (272, 1 << 32, True)),
    (lambda: unknown(False, "and.b32", units(), Value((), 0x3FFF)), (256, 0, True)),
    (lambda: Value((("=other", 1),), 0), None),
])  # fmt: skip
def test_where_descriptors_point(value, described):
    found = origin(value())
    assert described == (None if found is None else (found.address.each, found.bits, found.whole))
    assert found is None or isinstance(found, Described)
