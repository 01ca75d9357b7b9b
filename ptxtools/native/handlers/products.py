"""Matrix products of a warp: mma, mma.sp, wmma.mma (9.7.14.4, 9.7.14.5, 9.7.14.6).

A loop over the eight rows of a tile computes eight columns at a time, from the tables that `operands` makes. The
floating-point arithmetic is that of `semantics.tensorcore`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ptxtools.native.code.handler import Handler
from ptxtools.program.program import LANES
from ptxtools.semantics import tensorcore
from ptxtools.semantics.algebra import Value
from ptxtools.semantics.fragments import Fragment, sparse_elements
from ptxtools.semantics.products import Part
from ptxtools.semantics.tensorcore import Factors

from .operands import Table, Tile, copied, decode, expanded, plain_b
from .scales import ScaleOf, Scales


def product(h: Handler) -> None:
    """d = a * b + c."""
    for ref in (*h.op.dst, *h.op.src):
        if ref is not None:
            h.pointer(ref)
    h.attributes = "#2"  # eight f64 are one vector of the widest kind
    t = Tile(h)
    if h.code.brief:
        h.results(_computed(t))
        return
    from . import single_products  # many modules, of which a first run's code needs none

    if not single_products.suits(t):
        h.results(_computed(t))
        return
    e, fast = h.code, single_products.SingleProduct(t)
    single, wide, after = e.label("single"), e.label("wide"), e.label("after")
    start = len(e.lines)
    e.branch(fast.usable(), single, wide, likely=True)
    ends: list[str] = []
    found: list[list[Value]] = []
    for label, compute in ((single, fast.registers), (wide, partial(_computed, t))):
        e.begin(label)
        found.append(compute())
        ends.append(e.label("end"))
        e.jump(ends[-1])
        e.begin(ends[-1])
        e.jump(after)
    e.begin(after)
    rooms = [line for line in e.lines[start:] if " = alloca " in line]  # to where the stack is laid out once
    e.lines[start:] = rooms + [line for line in e.lines[start:] if " = alloca " not in line]
    kind = f"<{LANES} x i32>"
    pairs = zip(*found, strict=True)
    h.results([e.value(f"phi {kind} [{one}, %{ends[0]}], [{other}, %{ends[1]}]") for one, other in pairs])


def _computed(t: Tile) -> list[Value]:
    """The registers of d."""
    tables = [_operands(t, part, number) for number, part in enumerate(t.product.parts)]
    addends = [_addend_tiles(t, part, number) for number, part in enumerate(t.product.parts)]
    scales = Scales(t) if t.product.scale else None
    special = _special(t) if t.chip else ""
    outputs = [_result_tiles(t, part) for part in t.product.parts]
    steps = _tile_steps(t, *tables[0]) if t.code.brief and len(tables) == 1 else None
    if steps is not None:
        _one_by_one(t, tables[0], steps, addends[0], outputs[0], special, scales)
        return _registers(t, t.product.parts[0], outputs[0])
    index, close = t.loop(8)
    for number, part in enumerate(t.product.parts):
        _rows(t, part, tables[number], addends[number], outputs[number], index, special, scales)
    close()
    if len(t.product.parts) > 1:
        return _quad_registers(t, outputs)
    return _registers(t, t.product.parts[0], outputs[0])


def _operands(t: Tile, part: Part, number: int) -> tuple[Table, Table]:
    """A, and B with its eight columns side by side."""
    product = t.product
    quads = len(product.parts) > 1
    a = decode(t, product.atype, part.a, 0, turned=False)
    b = decode(t, product.btype, part.b, t.first_b, turned=not quads)
    if product.sparse:
        a = expanded(t, a, sparse_elements(32 if product.atype == "tf32" else product.a_bits, product.m, product.k,
                                            t.selector))  # fmt: skip
    if quads:
        layouts = t.handler.op.opcode.text.split(".")  # type: ignore[union-attr]
        name = f"{number}.{'.'.join(w for w in layouts if w in ('row', 'col'))}"
        a = copied(t, a, [[a.spot(m, k) for k in range(4)] for m in range(8)], "a" + name)
        b = plain_b(t, b, part.b, "b" + name)
    return a, b


def _addend_tiles(t: Tile, part: Part, number: int) -> dict[tuple[int, int], tuple[str, str]]:
    """For each tile of C a table of 8 x 8, row by row, and its element type."""
    if len(t.product.parts) > 1:
        return {(0, 0): _quad_addend(t, part.c, number)}
    found = _tiles(t, part.c.bits)
    for (upper, block), (room, _) in found.items():
        _, register, _ = part.c.place(8 * upper, 8 * block)
        _store_tile(t, part.c, register, room)
    return found


def _tiles(t: Tile, bits: int) -> dict[tuple[int, int], tuple[str, str]]:
    """Room for the tiles of C or D, and their element type: one behind the other if they are gone through so."""
    element, blocks, uppers = f"i{bits}", t.product.n // 8, t.product.m // 8
    keys = [(upper, block) for upper in range(uppers) for block in range(blocks)]
    if not t.code.brief:
        return {key: (t.room(element, 64), element) for key in keys}
    room = t.room(element, 64 * len(keys))
    return {key: (t.at(room, element, 64 * number), element) for number, key in enumerate(keys)}


def _store_tile(t: Tile, c: Fragment, register: int, room: str) -> None:
    if c.bits == 16:
        word = t.source(t.first_c + register)
        t.code.line(f"store <32 x i32> {word}, ptr {room}, align 64")
        return
    element = f"i{c.bits}"
    pair = [t.source(t.first_c + register + i) for i in (0, 1)]
    both = t.code.shuffle(f"<32 x {element}>", (i // 2 + 32 * (i % 2) for i in range(64)), *pair)
    t.code.line(f"store <64 x {element}> {both}, ptr {room}, align 64")


def _quad_addend(t: Tile, c: Fragment, number: int) -> tuple[str, str]:
    """C of one of the four products of m8n8k4, from its lanes."""
    element = f"i{c.bits}"
    per = 32 // c.bits
    whole = t.room("i32", c.registers * LANES)
    for register in range(c.registers):
        where = t.at(whole, "i32", register * LANES)
        t.code.line(f"store <32 x i32> {t.source(t.first_c + register)}, ptr {where}, align 64")
    spots = [(register * LANES + lane) * per + bit // c.bits
             for row in c.places() for lane, register, bit in row]  # fmt: skip
    order = t.code.constant_table(f"order.c{number}.{c.bits}", "i32", spots)
    room = t.room(element, 64)
    index, close = t.loop(64)
    spot = t.code.value(f"load i32, ptr {t.at(order, 'i32', index)}")
    one = t.code.value(f"load {element}, ptr {t.at(whole, element, spot)}")
    t.code.line(f"store {element} {one}, ptr {t.at(room, element, index)}")
    close()
    return room, element


def _result_tiles(t: Tile, part: Part) -> dict[tuple[int, int], tuple[str, str]]:
    return _tiles(t, part.d.bits)


def _special(t: Tile) -> str:
    """i1: some factor is NaN or infinite."""
    A, lanes, highest = t.handler.algebra, LANES, t.highest  # noqa: N806
    if t.most:
        A, lanes, highest = t.algebra, 8, t.code.value(f"load <8 x i64>, ptr {t.most}, align 64")  # noqa: N806
    infinite = A.compare("eq", "u64", highest, A.const("u64", 0x7FF0_0000_0000_0000))
    bits = t.code.value(f"bitcast <{lanes} x i1> {infinite} to i{lanes}")
    found = t.code.value(f"icmp ne i{lanes} {bits}, 0")
    for suspect in t.suspects:
        found = t.code.value(f"or i1 {found}, {suspect}")
    return found


def _rows(
    t: Tile, part: Part, tables: tuple[Table, Table], addends: dict[tuple[int, int], tuple[str, str]],
    outputs: dict[tuple[int, int], tuple[str, str]], index: str, special: str, scales: Scales | None,
) -> None:  # fmt: skip
    """One row of every tile."""
    uppers = range(t.product.m // 8)
    a, b = tables
    offset = t.code.value(f"mul i32 {index}, {a.stride}")
    column = t.code.value(f"mul i32 {index}, 8")
    for block in range(t.product.n // 8):
        given = [_load_row(t, addends[upper, block], column) for upper in uppers]
        if t.product.kind == "float":
            scale = None if scales is None else scales.of_row(index)
            factors = _factors(t, a, b, offset, block, scale)
            computed = _float(t, factors, given, special)
        elif t.product.kind == "double":
            computed = _double(t, a, b, offset, block, given)
        else:
            computed = _integer(t, a, b, offset, block, given)
        for upper in uppers:
            room, element = outputs[upper, block]
            t.code.line(f"store <8 x {element}> {computed[upper]}, ptr {t.at(room, element, column)}, align 16")


def _tile_steps(t: Tile, a: Table, b: Table) -> tuple[int, int] | None:
    """Indices from the elements of one tile of rows of A to those of the next, and of one block of columns of B, if
    these are the same everywhere."""
    product, step = t.product, 32 if t.product.kind == "bits" else 1
    places = range(0, product.k, step)
    uppers = {
        a.spot(8 * (u + 1), k // step) - a.spot(8 * u, k // step) for u in range(product.m // 8 - 1) for k in places
    }
    blocks = {b.spot(k, 8 * (n + 1)) - b.spot(k, 8 * n) for n in range(product.n // 8 - 1) for k in places}
    return (max(uppers, default=0), max(blocks, default=0)) if max(len(uppers), len(blocks)) <= 1 else None


def _one_by_one(
    t: Tile, tables: tuple[Table, Table], steps: tuple[int, int], addends: dict[tuple[int, int], tuple[str, str]],
    outputs: dict[tuple[int, int], tuple[str, str]], special: str, scales: Scales | None,
) -> None:  # fmt: skip
    """One row of one tile after another, in a single loop; tiles lie behind one another, row by row of them."""
    e, (a, b), blocks = t.code, tables, t.product.n // 8
    total = t.room("i64", 8)
    index, close = t.loop(t.product.m * blocks)
    row, number = e.value(f"and i32 {index}, 7"), e.value(f"lshr i32 {index}, 3")
    upper, block = e.value(f"udiv i32 {number}, {blocks}"), e.value(f"urem i32 {number}, {blocks}")
    line = e.value(f"mul i32 {row}, {a.stride}")
    offset = e.value(f"add i32 {line}, {e.value(f'mul i32 {upper}, {steps[0]}')}")
    across = e.value(f"mul i32 {block}, {steps[1]}")
    place = e.value(f"shl i32 {index}, 3")
    given = [_load_row(t, addends[0, 0], place)]
    if t.product.kind == "float":
        of_row = e.value(f"add i32 {e.value(f'shl i32 {upper}, 3')}, {row}")
        factors = _factors(t, a, b, offset, 0, None if scales is None else scales.of_row(of_row), across)
        repeat = partial(_exceptional, t, tables, offset, across, total, of_row, scales)
        computed = _float(t, factors, given, special, repeat)
    elif t.product.kind == "double":
        computed = _double(t, a, b, offset, 0, given, across)
    else:
        computed = _integer(t, a, b, offset, 0, given, across)
    room, element = outputs[0, 0]
    e.line(f"store <8 x {element}> {computed[0]}, ptr {t.at(room, element, place)}, align 16")
    close()


def _load_row(t: Tile, tile: tuple[str, str], column: str) -> Value:
    room, element = tile
    return t.code.value(f"load <8 x {element}>, ptr {t.at(room, element, column)}, align 16")


def _columns(t: Tile, base: str, b: Table, element: str, k: int, block: int, across: str = "") -> Value:
    """Eight columns of B; across: indices to those of another block (i32)."""
    where = t.at(base, element, b.spot(k, 8 * block))
    where = t.at(where, element, across) if across else where
    return t.code.value(f"load <8 x {element}>, ptr {where}, align 32")


def _row_element(t: Tile, base: str, a: Table, element: str, offset: str, upper: int, k: int) -> Value:
    """The element of A at this row of a tile, for all columns."""
    where = t.at(base, element, a.spot(8 * upper, k))
    scalar = t.code.value(f"load {element}, ptr {t.at(where, element, offset)}")
    return t.algebra.broadcast(element, scalar)


def _float(
    t: Tile, factors: Factors, given: list[Value], special: str,
    repeat: Callable[[Value, Value], Value] | None = None,
) -> list[Value]:  # fmt: skip
    """Rows of one block of eight columns, by the chip's rule. repeat: corrects a single row's result (addend, result),
    in place of code for one column of A after another."""
    assert t.rule is not None
    rule, A = t.rule, t.algebra  # noqa: N806
    addends = [tensorcore.decode_addend(A, t.product, value) for value in given]
    results = tensorcore.accumulate(A, rule, t.product.k, factors, addends)
    kind = "i16" if rule.result == "f16" else "i32"
    ordinary, exceptional, after = t.code.label("fine"), t.code.label("special"), t.code.label("after")
    finite = _finite(t, addends)
    t.code.branch(t.code.value(f"or i1 {special}, {finite}"), exceptional, ordinary)
    t.code.begin(exceptional)
    if repeat is not None:
        fixed = [repeat(addends[0], results[0])]
    else:
        fixed = tensorcore.exceptional(A, rule, t.product.k, factors, addends, results)
    end = t.code.label("fixed")
    t.code.jump(end)
    t.code.begin(end)
    t.code.jump(after)
    t.code.begin(ordinary)
    t.code.jump(after)
    t.code.begin(after)
    return [
        t.code.value(f"phi <8 x {kind}> [{new}, %{end}], [{old}, %{ordinary}]")
        for new, old in zip(fixed, results, strict=True)
    ]


def _exceptional(
    t: Tile, tables: tuple[Table, Table], offset: str, across: str, room: str, row: str, scales: Scales | None,
    addend: Value, given: Value,
) -> Value:  # fmt: skip
    """`tensorcore.exceptional` as a loop over the columns of A. room: a place for the sum."""
    e, A, (a, b), columns = t.code, t.algebra, tables, range(t.product.k)  # noqa: N806
    assert t.rule is not None
    orders = [a.spot(0, k) for k in columns], [b.spot(k, 0) for k in columns]
    spots = [e.constant_table(f"spots.{'.'.join(map(str, order))}", "i32", order) for order in orders]
    e.line(f"store <8 x i64> {addend}, ptr {room}, align 64")
    k, close = t.loop(t.product.k)
    first, second = (e.value(f"load i32, ptr {t.at(table, 'i32', k)}") for table in spots)
    one = e.value(f"load i64, ptr {t.at(a.values, 'i64', e.value(f'add i32 {first}, {offset}'))}")
    line = e.value(f"load <8 x i64>, ptr {t.at(b.values, 'i64', e.value(f'add i32 {second}, {across}'))}, align 32")
    scale = None if scales is None else scales.value_at(row, k)
    so_far = e.value(f"load <8 x i64>, ptr {room}, align 64")
    more = tensorcore.add_term(A, so_far, A.broadcast("i64", one), line, scale)
    e.line(f"store <8 x i64> {more}, ptr {room}, align 64")
    close()
    return tensorcore.corrected_by(A, t.rule, e.value(f"load <8 x i64>, ptr {room}, align 64"), given)


def _finite(t: Tile, addends: Sequence[Value]) -> str:
    """i1: some addend is NaN or infinite."""
    A, some = t.algebra, None  # noqa: N806
    for c in addends:
        exponent = A.and_with("u64", c, 0x7FF0_0000_0000_0000)
        bad = A.compare("eq", "u64", exponent, A.const("u64", 0x7FF0_0000_0000_0000))
        some = bad if some is None else A.or_("pred", some, bad)
    return t.code.value(f"icmp ne i8 {t.code.value(f'bitcast <8 x i1> {some} to i8')}, 0")


def _factors(t: Tile, a: Table, b: Table, offset: str, block: int, scale: ScaleOf | None,
             across: str = "") -> Factors:  # fmt: skip
    return Factors(
        lambda upper, k: _row_element(t, a.values, a, "i64", offset, upper, k),
        lambda upper, k: _row_element(t, a.powers, a, "i64", offset, upper, k),
        lambda k: _columns(t, b.values, b, "i64", k, block, across),
        lambda k: _columns(t, b.powers, b, "i64", k, block, across),
        scale,
        t.product.blocks or 1,
    )


def _double(t: Tile, a: Table, b: Table, offset: str, block: int, given: list[Value], across: str = "") -> list[Value]:
    return tensorcore.accumulate_doubles(
        t.algebra, t.product.rounding, t.product.k,
        lambda upper, k: _row_element(t, a.values, a, "i64", offset, upper, k),
        lambda k: _columns(t, b.values, b, "i64", k, block, across), given,
    )  # fmt: skip


def _integer(t: Tile, a: Table, b: Table, offset: str, block: int, given: list[Value], across: str = "") -> list[Value]:
    step = 32 if t.product.kind == "bits" else 1  # single bits are taken as words, by which A's table counts
    return tensorcore.accumulate_whole(
        t.algebra, t.product.k // step,
        lambda upper, k: _row_element(t, a.values, a, "i32", offset, upper, k),
        lambda k: _columns(t, b.values, b, "i32", step * k, block, across), given,
        saturate=t.product.saturate, bits=t.product.bit_operation,
    )  # fmt: skip


# --- results ----------------------------------------------------------------------------------------------------------


def _registers(t: Tile, part: Part, outputs: dict[tuple[int, int], tuple[str, str]]) -> list[Value]:
    """The registers of D, from its tiles."""
    found: dict[int, Value] = {}
    for (upper, block), (room, element) in outputs.items():
        _, register, _ = part.d.place(8 * upper, 8 * block)
        if element == "i16":
            found[register] = t.code.value(f"load <32 x i32>, ptr {room}, align 64")
            continue
        whole = t.code.value(f"load <64 x {element}>, ptr {room}, align 64")
        for odd in (0, 1):
            found[register + odd] = t.code.shuffle(f"<64 x {element}>", range(odd, 2 * LANES, 2), whole)
    return [found[register] for register in sorted(found)]


def _quad_registers(t: Tile, outputs: Sequence[dict[tuple[int, int], tuple[str, str]]]) -> list[Value]:
    """The registers of D of m8n8k4, from its four products."""
    d = t.product.parts[0].d
    per = 32 // d.bits
    element = f"i{d.bits}"
    whole = t.room("i32", d.registers * LANES)
    for number, part in enumerate(t.product.parts):
        spots = [(register * LANES + lane) * per + bit // d.bits
                 for row in part.d.places() for lane, register, bit in row]  # fmt: skip
        order = t.code.constant_table(f"order.c{number}.{d.bits}", "i32", spots)
        room, _ = outputs[number][0, 0]
        index, close = t.loop(64)
        spot = t.code.value(f"load i32, ptr {t.at(order, 'i32', index)}")
        one = t.code.value(f"load {element}, ptr {t.at(room, element, index)}")
        t.code.line(f"store {element} {one}, ptr {t.at(whole, element, spot)}")
        close()
    registers = [t.at(whole, "i32", register * LANES) for register in range(d.registers)]
    return [t.code.value(f"load <32 x i32>, ptr {where}, align 64") for where in registers]
