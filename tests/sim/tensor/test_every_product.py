"""Each form of 9.7.14 to 9.7.16 that multiplies, as the instruction tables have it, against an independent product.

For every form so many opcodes are taken that each value of each of its slots is in one of them; wgmma's sizes are the
ends and one between. The products themselves are those of the other files; a form that none of them can make fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from ptxtools import isa
from ptxtools.isa.form import Form
from tests.machine.matrix import test_products, test_rules, test_wmma
from tests.rows import rows

from . import test_mma, test_wgmma
from .test_all_forms import SECTIONS, pages, resolved, target_of

PRODUCTS = ("wmma.mma", "mma", "wgmma.mma_async", "tcgen05.mma")


def multiplies(op: isa.Opcode) -> bool:
    """Whether it is a product that PTX still has, and some chip whose sums are known."""
    return op.name.startswith(PRODUCTS) and not op.removals and not unsimulated(op)


def unsimulated(op: isa.Opcode) -> bool:
    """Whether it needs a chip of the family of sm_107, of which nobody has published how it adds."""
    return any(need.targets and all(t.startswith("sm_107") for t in need.targets) for need in op.requirements)


def cover(ops: list[isa.Opcode]) -> Iterator[isa.Opcode]:
    """Few opcodes that have all values of all slots."""
    left = {item for op in ops for item in op.mods.items()}
    while left:
        best = max(ops, key=lambda op: len(left & set(op.mods.items())))
        left -= set(best.mods.items())
        yield best


@cache
def cases() -> list[tuple[Form, isa.Opcode]]:
    forms = [form for section in SECTIONS for page in pages(section) for form in page.forms]
    found = [(form, [op for op in resolved(form).values() if multiplies(op)]) for form in forms]
    return [(form, op) for form, ops in found if ops for op in cover(ops)]


def test_what_no_chip_runs_is_named() -> None:
    forms = {form for section in SECTIONS for page in pages(section) for form in page.forms}
    left = {(op.name, value) for form in forms for op in resolved(form).values() if op.name.startswith(PRODUCTS)
            and unsimulated(op) for value in op.mods.values() if value.startswith("collector::b") or value == "ti16"
            or "decompress" in value or "sync_restrict" in value}  # fmt: skip
    print("products of sm_107, whose sums are not published:", *sorted({value for _, value in left}))
    assert {name.partition(".")[0] for name, _ in left} == {"tcgen05"}


def name_of(value: object) -> str:
    return value.text if isinstance(value, isa.Opcode) else ""


@rows(("form", "op"), cases, ids=name_of, share=24)
def test_product(form: Form, op: isa.Opcode) -> None:
    make = {"wmma": wmma, "mma": warp, "wgmma": warpgroup, "tcgen05": fifth}[form.family]
    make(form, op)


def test_all_families_are_there() -> None:
    names = {op.name for _, op in cases()}
    assert names == {
        "wmma.mma", "mma", "wgmma.mma_async", "wgmma.mma_async.sp", "tcgen05.mma", "tcgen05.mma.sp",
        "tcgen05.mma.ws", "tcgen05.mma.ws.sp",
    }  # fmt: skip
    assert {"sp", "sp::ordered_metadata"} <= {op.mods.get("spvariant") for _, op in cases()}
    assert len(cases()) > 220


def wmma(form: Form, op: isa.Opcode) -> None:
    m = op.mods
    layouts = (m["alayout"], m["blayout"], "row")
    t = m.get("atype", "f16")
    if m["dtype"] == "s32":
        test_wmma.test_integers(m["shape"], t, layouts, m.get("op", ".satfinite" if op.has("satfinite") else ""))
    elif t == "f64":
        test_wmma.test_doubles(layouts, f".{m['rnd']}" if "rnd" in m else "")
    else:
        test_wmma.test_floats(m["shape"], (t, m["ctype"], m["dtype"]), layouts, "hopper" if t == "f16" else "ampere")


def warp(form: Form, op: isa.Opcode) -> None:
    m, text, t = op.mods, op.text, op.mods["atype"]
    if m["shape"] == "m8n8k4" and t == "f16":
        test_rules.test_m8n8k4(m["alayout"], m["blayout"], m["dtype"], m["ctype"], "turing")
    elif t == "f64":
        test_products.test_doubles(m["shape"], f".{m['rnd']}" if "rnd" in m else "")
    elif op.has("block_scale"):
        kind, vectors = m["kind"].removeprefix("kind::"), m.get("scale_vec_size", "")
        test_products.test_scaled(text, 1 if kind == "mxf8f6f4" else 4 if vectors.endswith("4X") else 2)
    else:
        narrow = t in ("e4m3", "e5m2")
        chip = "rtx_blackwell" if "kind" in m else "ada" if narrow else "hopper"
        if "spvariant" in m:
            test_products.test_sparse(text, "" if m["dtype"] == "s32" else chip)
        elif m["dtype"] == "s32":
            test_products.test_integers(text)
        else:
            test_products.test_floats(text, (chip,))


def warpgroup(form: Form, op: isa.Opcode) -> None:
    m, registers = op.mods, "a_desc" not in form.syntax
    size, k = (int(part) for part in m["shape"].removeprefix("m64n").split("k"))
    mods = ".satfinite" if op.has("satfinite") else ""
    if m["atype"] == "b1":
        test_wgmma.single_bits(size, registers)
    elif op.name.endswith(".sp"):
        test_wgmma.sparse_product(m["atype"], k, 0, registers, n=size, dtype=m["dtype"], btype=m["btype"], mods=mods)
    else:
        test_wgmma.product(m["atype"], size, dtype=m["dtype"], btype=m["btype"], registers=registers, mods=mods)


TYPES = {"f16": ("f16", "f16"), "tf32": ("tf32", "tf32"), "f8f6f4": ("e4m3", "e2m3"), "i8": ("u8", "s8"),
         "mxf8f6f4": ("e5m2", "e3m2"), "mxf4": ("e2m1", "e2m1"), "mxf4nvf4": ("e2m1", "e2m1")}  # fmt: skip


def fifth(form: Form, op: isa.Opcode) -> None:
    """disable-output-lane, where the form has it, disables none; .ashift of a sparse A moves equal rows."""
    kind, ctas = op.mods["kind"].removeprefix("kind::"), int(op.mods["cta_group"][-1])
    stationary, sparse = ".ws" in op.name, op.name.endswith(".sp")
    modifiers = op.text.partition(f"kind::{kind}")[2]
    case = test_mma.Product(
        kind, *TYPES[kind], m=128 * ctas, n=64, ctas=ctas, dtype="s32" if kind == "i8" else "f32", sparse=sparse,
        stationary=stationary, a_tensor="a_tmem" in form.syntax, same_rows=sparse and op.has("ashift"),
    )  # fmt: skip
    before = lines = ""
    if "disable_output_lane" in form.syntax:
        lines = "mov.u32 %q8, 0;"
        before = f"{{{', '.join(['%q8'] * 4 * ctas)}}}, "
    options: dict[str, str] = {"modifiers": modifiers, "before": before, "lines": lines}
    if op.has("block_scale"):
        block = op.mods.get("scale_vectorsize", "")
        factors = 1 if kind == "mxf8f6f4" else 4 if block in ("scale_vec::4X", "block16") else 2
        scale_a, scale_b = test_mma.scale_words(case, factors, 0, 0)
        wide = case.k // factors
        left, right = case.dense * np.repeat(scale_a, wide, 1), case.b * np.repeat(scale_b, wide, 1)
        found = case.run(more=1 << 23, scales="[%q4], [%q5], ", target=target_of(op), **options)
    else:
        left, right = case.dense, case.b
        if op.has("ashift") and not sparse:
            rows = np.arange(case.m)
            left = left[np.where(rows % 32 == 31, rows, rows + 1)]
        found = case.run(**options)
    np.testing.assert_array_equal(found, left @ right.T + case.c)
