"""No rule takes more than its share of work in long functions."""

from ptxtools.linter import lint
from ptxtools.syntax import parse
from tests.rows import rows
from tests.work import calls

HEAD = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a)
{
.reg .b32 %r<2000>; .reg .b64 %rd<100>; .reg .pred %p<100>; .shared .align 16 .b8 sh[4096];
ld.param.u64 %rd1, [a];
mov.u32 %r1, %tid.x;
"""


def straight(n: int) -> str:
    return "".join(f"add.s32 %r{i % 1900 + 2}, %r{i * 7 % 1900 + 1}, %r1;\n" for i in range(n))


def sums(n: int) -> str:
    """Each is that of the one before and a further unknown, and decides an address in the end."""
    return (
        "".join(
            f"ld.global.u32 %r{2 * i + 2}, [%rd1+{4 * i}];\nadd.s32 %r{2 * i + 3}, %r{2 * i + 1}, %r{2 * i + 2};\n"
            for i in range(n // 2)
        )
        + f"cvt.u64.u32 %rd2, %r{n + 1};\nst.shared.u32 [%rd2], %r1;\nbar.sync 0;\nld.shared.u32 %r1, [sh];\n"
    )


def accesses(n: int) -> str:
    return "".join(
        f"ld.global.u32 %r{i % 1900 + 2}, [%rd1+{i % 100 * 4}];\nst.shared.u32 [sh+{i % 1000 * 4}], %r{i % 1900 + 2};\n"
        "bar.sync 0;\n"
        for i in range(n // 3)
    )


def branches(n: int) -> str:
    return "".join(
        f"setp.lt.s32 %p{i % 99}, %r{i % 1900 + 1}, {i};\n@%p{i % 99} bra L{i};\n"
        f"add.s32 %r{i % 1900 + 2}, %r{i * 3 % 1900 + 1}, 1;\nL{i}: mov.b32 %r{(i + 5) % 1900 + 2}, %r{i % 1900 + 2};\n"
        for i in range(n // 4)
    )


def loops(n: int) -> str:
    depth = 20
    heads = [f"add.s32 %r{k + 2}, %r{k + 3}, 1;\n" for k in range(depth)]
    ends = [
        f"setp.lt.s32 %p{k}, %r{k + 2}, 7;\nst.global.u32 [%rd1+{4 * k}], %r{k + 2};\n@%p{k} bra " for k in range(depth)
    ]
    return "".join(
        "".join(f"N{nest}_{k}: {head}" for k, head in enumerate(heads))
        + "".join(f"{ends[k]}N{nest}_{k};\n" for k in reversed(range(depth)))
        for nest in range(n // (4 * depth))
    )


def buffers(n: int) -> str:
    """Places of all threads in one shared variable, filled by copies and by stores, with barriers in between."""
    return "mov.u32 %r2, sh; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3;\n" + "".join(
        f"cp.async.ca.shared.global [%r4+{i % 8 * 512}], [%rd1+{4 * i}], 4;\ncp.async.commit_group;\n"
        f"cp.async.wait_group {i % 4};\nst.shared.u32 [%r4+{(i + 1) % 8 * 512}], %r1;\nbar.sync 0;\n"
        for i in range(n // 5)
    )


def fences(n: int) -> str:
    return "".join(
        f"fence.acq_rel.gpu;\n@%p{i % 9} membar.gl;\nld.volatile.global.u32 %r2, [%rd1+{i % 9 * 4}];\n"
        f"st.global.u32 [%rd1+{i % 99 * 4}], %r2;\n"
        for i in range(n // 4)
    )


def waits_for_reading(n: int) -> str:
    """Copies whose sources are waited for alone: their destinations stay under way."""
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%rd1, {%r1, %r2}], [mb];"
    back = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [sh];"
    return ".shared .align 8 .b64 mb;\n" + "".join(
        f"{copy}\n{back}\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read {i % 4};\n" for i in range(n // 4)
    )


def products(n: int) -> str:
    sums = ", ".join(f"%r{k + 9}" for k in range(32))
    product = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{sums}}}, %rd5, %rd6, 1, 1, 1, 0, 0;\n"
    return product * n


def constant_loads(n: int) -> str:
    return "".join(
        f"ld.global.nc.u32 %r{i % 1900 + 2}, [%rd3+{4 * i}];\nst.global.u32 [%rd2+{4 * i}], %r{i % 1900 + 2};\n"
        for i in range(n // 2)
    )


def locks(n: int) -> str:
    return "".join(
        f"L{i}: atom.acquire.gpu.global.cas.b32 %r2, [%rd1+{i % 64 * 4}], 0, 1;\nsetp.ne.s32 %p1, %r2, 0;\n"
        f"@%p1 bra L{i};\nld.global.u32 %r3, [%rd1+512];\nst.global.u32 [%rd1+512], %r3;\n"
        f"st.global.u32 [%rd1+{i % 64 * 4}], 0;\n"
        for i in range(n // 6)
    )


def open_products(n: int) -> str:
    """Groups that nothing waits for."""
    return "".join(
        f"wgmma.fence.sync.aligned;\n{products(1)}wgmma.commit_group.sync.aligned;\nadd.s32 %r{i % 900 + 99}, %r1, 1;\n"
        for i in range(n // 4)
    )


SHAPES = [
    straight, sums, accesses, branches, loops, buffers, fences, waits_for_reading, products, constant_loads, locks,
    open_products,
]  # fmt: skip


@rows("body", SHAPES, ids=lambda body: body.__name__)
def test_four_times_the_function_is_four_times_the_work(body):
    small, large = (parse(f"{HEAD}{body(n)}ret;\n}}\n", "k.ptx").module for n in (480, 1920))
    assert len(large.entries[0].body.items) > 1900
    lint(small)  # what rules load
    assert calls(lambda: lint(large)) < 4.5 * calls(lambda: lint(small))


def functions(n: int) -> str:
    """Functions that differ, so that none is looked at in the place of another."""
    return "\n".join(
        f".func f{i}(.param .b32 x) {{ .reg .b32 %r<9>; ld.param.b32 %r1, [x]; add.s32 %r2, %r1, {i}; ret; }}"
        for i in range(n)
    )


def test_four_times_the_functions_are_four_times_the_work():
    head = HEAD.partition(".visible")[0]
    small, large = (parse(head + functions(n), "k.ptx").module for n in (200, 800))
    lint(small)
    assert calls(lambda: lint(large)) < 4.5 * calls(lambda: lint(small))


def test_rules_that_are_not_asked_for_do_not_run():
    module = parse(f"{HEAD}{accesses(480)}ret;\n}}\n", "k.ptx").module
    for select in ((), errors := ("PTX1", "PTX2", "PTX3", "PTX4")):
        lint(module, select=select)  # what rules load
    alone = calls(lambda: lint(module, select=errors))
    assert alone < calls(lambda: lint(module, ignore=("PTX1",))) / 3
    assert calls(lambda: lint(module, ignore=("PTX5", "PTX6", "PTX7"))) < 1.1 * alone
