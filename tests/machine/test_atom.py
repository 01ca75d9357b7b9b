"""Every operation, type, vector, space, order and scope of atom and red (9.7.13.5, 9.7.13.6), against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxtools
from tests.rows import rows
from tests.work import HANG

ENGINES = pytest.mark.parametrize("engine", ["native", "reference"])
Array = np.ndarray[Any, Any]

FORMATS: dict[str, Any] = {
    "b16": np.uint16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "b64": np.uint64, "u64": np.uint64,
    "s64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
CHANGES: dict[str, Any] = {
    "add": lambda a, b: a + b, "min": np.minimum, "max": np.maximum, "and": lambda a, b: a & b,
    "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "exch": lambda a, b: b,
    "inc": lambda a, b: np.where(a >= b, 0, a + 1), "dec": lambda a, b: np.where((a == 0) | (a > b), b, a - 1),
}  # fmt: skip
WHOLE = [
    *[(o, t) for o in ("and", "or", "xor", "exch") for t in ("b32", "b64")],
    *[("add", t) for t in ("u32", "s32", "u64")], ("inc", "u32"), ("dec", "u32"),
    *[(o, t) for o in ("min", "max") for t in ("u32", "s32", "u64", "s64")],
]  # fmt: skip
FLOATS = [("add", "f32"), ("add", "f64"), *[("add", t) for t in ("f16", "bf16", "f16x2", "bf16x2")]]
VECTORS = [
    *[("add", "f32", n) for n in (2, 4)],
    *[(o, t, n) for o in ("add", "min", "max") for t in ("f16", "bf16") for n in (2, 4, 8)],
    *[(o, t, n) for o in ("add", "min", "max") for t in ("f16x2", "bf16x2") for n in (2, 4)],
]  # fmt: skip
#: Forms with every order and scope come up, one after the other.
ORDERS = itertools.cycle(
    ("", ".relaxed.cta", ".acquire.gpu", ".release.sys", ".acq_rel.cluster", ".gpu", ".relaxed.sys", ".cta")
)
SPACES = ["global", "generic", "shared", "shared::cluster"]


def values(type_: str, count: int, seed: int) -> Array:
    """Values with ties and extremes; of floats, subnormals too."""
    rng, dtype = np.random.default_rng(seed), np.dtype(FORMATS[type_])
    if dtype.kind in "ui":
        wide = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype, endpoint=True)
        return np.where(rng.random(count) < 0.5, wide, rng.integers(0, 4, count, dtype))
    scale = float(ml_dtypes.finfo(dtype).smallest_normal)
    return np.where(rng.random(count) < 0.3, rng.normal(size=count) * scale, rng.normal(size=count)).astype(dtype)


def changed(operation: str, type_: str, old: Array, new: Array, *, flushes: bool) -> Array:
    """Memory afterwards. flushes: f32 has no subnormals, as in global memory."""
    dtype = FORMATS[type_]
    if type_ in ("f16", "bf16"):
        return np.asarray(CHANGES[operation](old.astype(np.float64), new.astype(np.float64))).astype(dtype)
    if type_ == "f32" and flushes:
        normal = np.finfo(np.float32).smallest_normal
        flush = lambda x: np.where(np.abs(x) < normal, np.copysign(np.float32(0), x), x)  # noqa: E731
        return flush(flush(old) + flush(new)).astype(dtype)
    with np.errstate(over="ignore"):
        return np.asarray(CHANGES[operation](old, new)).astype(dtype)


def run(form: str, bits: int, count: int, space: str, engine: str, memory: Array, *operands: Array, red: bool) -> Array:
    """32 threads run `form` on a piece of memory each, `count` registers of `bits` bits; the old values (of atom).

    Memory is changed in place; through the cluster window it is that of the other CTA.
    """
    size = bits * count // 8
    letter = {16: "h", 32: "r", 64: "d"}[bits]
    names = [[f"%{letter}{10 * k + i}" for i in range(count)] for k in range(len(operands) + 1)]
    lists = [one[0] if count == 1 else "{" + ", ".join(one) + "}" for one in names]
    loads = "".join(
        f"ld.global.b{bits} {name}, [%in+{32 * size * k + bits // 8 * i}];\n"
        for k, one in enumerate(names[1:]) for i, name in enumerate(one)
    )  # fmt: skip
    stores = "" if red else "".join(f"st.global.b{bits} [%out+{bits // 8 * i}], {n};\n" for i, n in enumerate(names[0]))
    place = {"global": "%mem", "generic": "%mem", "shared": "%s", "shared::cluster": "%w"}[space]
    here = "" if space == "generic" else f".{space}"
    action = form.replace("SPACE", here).replace("DST", "" if red else f"{lists[0]}, ").replace("MEM", f"[{place}]")
    text = f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 mem, .param .u64 in, .param .u64 out) {{
    .reg .pred %p; .reg .b16 %h<40>; .reg .b32 %r<40>, %t, %s, %w, %o; .reg .b64 %d<40>, %mem, %in, %out, %q;
    .shared .align 16 .b8 room[{32 * size}];
    ld.param.u64 %mem, [mem]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; mov.u32 %s, room; mad.lo.u32 %s, %t, {size}, %s; mov.u32 %o, %cluster_ctarank;
    mul.wide.u32 %q, %t, {size}; add.u64 %mem, %mem, %q; add.u64 %in, %in, %q; add.u64 %out, %out, %q;
    xor.b32 %r39, %o, 1; mapa.shared::cluster.u32 %w, %s, %r39;
    {"".join(f"ld.global.b16 %h39, [%mem+{i}]; st.shared.b16 [%s+{i}], %h39;" for i in range(0, size, 2))}
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p, %o, 0; @%p bra DONE;
    {loads} {action.replace(", ".join(["OPERANDS"]), ", ".join(lists[1:]))} {stores}
    DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p, %o, {1 if space == "shared::cluster" else 0}; @%p bra OUT;
    {
        "".join(f"ld.shared.b16 %h39, [%s+{i}]; st.global.b16 [%mem+{i}], %h39;" for i in range(0, size, 2))
        if "shared" in space
        else ""
    }
    OUT: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }}"""
    old = np.zeros(32 * size, np.uint8)
    given = np.concatenate([operand.view(np.uint8) for operand in operands])
    device = ptxtools.Device("sm_100a", engine=engine)
    device.launch(ptxtools.loads(text)["k"], 2, 32, [memory, given, old], cluster=2, timeout=HANG)
    return old


def check(operation: str, type_: str, count: int, space: str, engine: str, *, red: bool) -> None:
    element, packed = type_.removesuffix("x2"), 2 if type_.endswith("x2") else 1
    bits = int(element.lstrip("usbf")) * packed
    vec = f".v{count}" if count > 1 else ""
    noftz = ".noftz" if element in ("f16", "bf16") else ""
    order = next(ORDERS)
    if red:
        order = order.replace("acquire", "relaxed").replace("acq_rel", "release")
    form = f"{'red' if red else 'atom'}{order}SPACE.{operation}{noftz}{vec}.{type_} DSTMEM, OPERANDS;"
    old, new = (values(element, 32 * count * packed, seed) for seed in (1, 2))
    memory = old.copy().view(np.uint8)
    found = run(form, bits, count, space, engine, memory, new, red=red)
    wanted = changed(operation, element, old, new, flushes="shared" not in space)
    np.testing.assert_array_equal(memory, wanted.view(np.uint8))
    if not red:
        np.testing.assert_array_equal(found, old.view(np.uint8))


@ENGINES
@rows("space", SPACES, share=8)
@rows(("operation", "type_"), [*WHOLE, *FLOATS])
def test_atom(operation: str, type_: str, space: str, engine: str) -> None:
    check(operation, type_, 1, space, engine, red=False)


@ENGINES
@rows("space", SPACES, share=8)
@rows(("operation", "type_"), [(o, t) for o, t in (*WHOLE, *FLOATS) if o != "exch"])
def test_red(operation: str, type_: str, space: str, engine: str) -> None:
    check(operation, type_, 1, space, engine, red=True)


@ENGINES
@rows("red", [False, True], share=8)
@rows(("operation", "type_", "count"), VECTORS)
def test_vectors(operation: str, type_: str, count: int, red: bool, engine: str) -> None:
    check(operation, type_, count, "global", engine, red=red)


@ENGINES
@rows("space", SPACES, share=3)
@rows("type_", ["b16", "b32", "b64"])
def test_compare_and_swap(type_: str, space: str, engine: str) -> None:
    """Half of the threads guess what is there."""
    bits = int(type_[1:])
    old, new = (values(type_, 32, seed) for seed in (1, 2))
    guess = np.where(np.arange(32) % 2 == 0, old, old ^ FORMATS[type_](4))
    memory = old.copy().view(np.uint8)
    form = f"atom{next(ORDERS)}SPACE.cas.{type_} DSTMEM, OPERANDS;"
    found = run(form, bits, 1, space, engine, memory, guess, new, red=False)
    np.testing.assert_array_equal(memory.view(old.dtype), np.where(guess == old, new, old))
    np.testing.assert_array_equal(found.view(old.dtype), old)


@ENGINES
@rows("operation", ["cas", "exch"], share=3)
@rows("space", SPACES)
def test_128_bits(operation: str, space: str, engine: str) -> None:
    """One half alone does not match."""
    rng = np.random.default_rng(3)
    old, new = (rng.integers(0, 1 << 63, (32, 2), np.uint64) for _ in range(2))
    guess = old.copy()
    guess[1::3, 0] ^= np.uint64(1)
    guess[2::3, 1] ^= np.uint64(1)
    operands = {"cas": "%x1, %x2", "exch": "%x2"}[operation]
    form = f""".reg .b128 %x<3>; mov.b128 %x1, {{%d10, %d11}}; mov.b128 %x2, {{%d20, %d21}};
    atom{next(ORDERS)}SPACE.{operation}.b128 %x0, MEM, {operands}; mov.b128 {{%d0, %d1}}, %x0; //"""
    memory = old.copy().view(np.uint8).reshape(-1)
    found = run(form + "OPERANDS\n", 64, 2, space, engine, memory, guess.reshape(-1), new.reshape(-1), red=False)
    swapped = np.where((guess == old).all(axis=1)[:, None], new, old) if operation == "cas" else new
    np.testing.assert_array_equal(memory.view(np.uint64).reshape(32, 2), swapped)
    np.testing.assert_array_equal(found.view(np.uint64).reshape(32, 2), old)


@ENGINES
@pytest.mark.parametrize(("address", "reason"), [("%a+2", "not aligned to 4"), ("%a+4096", "out of bounds")])
def test_addresses_are_checked(address: str, reason: str, engine: str) -> None:
    text = f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 a) {{ .reg .b32 %r; .reg .b64 %a; ld.param.u64 %a, [a];
    atom.global.add.u32 %r, [{address}], 1; ret; }}"""
    device = ptxtools.Device("sm_100a", engine=engine, checks="memcheck")
    (finding,) = device.launch(ptxtools.loads(text)["k"], 1, 1, [np.zeros(1024, np.uint32)]).reports
    assert reason in finding.message


@ENGINES
@pytest.mark.parametrize(
    "operation",
    [
        "red.global.add.v4.f32 [%a+4080], {%f, %f, %f, %f};",
        "atom.global.add.v4.f32 {%f, %f, %f, %f}, [%a+4080], {%f, %f, %f, %f};",
    ],
)
def test_checkers_see_whole_vectors(operation: str, engine: str) -> None:
    """Sixteen bytes from 4080 on end 8 bytes behind a buffer of 4088."""
    text = f""".version 8.7
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 a) {{ .reg .f32 %f; .reg .b64 %a; ld.param.u64 %a, [a]; mov.f32 %f, 0f3F800000;
    {operation} ret; }}"""
    device = ptxtools.Device("sm_100a", engine=engine, checks="memcheck")
    (finding,) = device.launch(ptxtools.loads(text)["k"], 1, 1, [np.zeros(1022, np.uint32)]).reports
    assert "16 bytes" in finding.message
