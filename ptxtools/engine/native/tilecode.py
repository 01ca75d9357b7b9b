"""LLVM IR of the functions that `tiles` calls.

For every element the largest power of two among C and the products is found first; each term is brought to its scale
and cut off there, and the cut-off terms are added exactly: as f32 in 32-bit whole numbers, as f64 in f64.
"""

from __future__ import annotations

from collections.abc import Callable

#: Columns that one vector of the "rows" layout has; B and D must have a multiple of it.
WIDTH = 16
#: Columns of A that are added in 32 bits: 8 terms below 2**27.
_STEP = 8
_ROWS = 4
#: Columns of A that block-scaled fp4 sums exactly, and groups of them at most (K = 128).
GROUP = 16
_MOST_GROUPS = 8


class _Body:
    """Lines of one function, with fresh names; `entry`: those that stand before all others."""

    def __init__(self) -> None:
        self.entry: list[str] = []
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def value(self, text: str) -> str:
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(text if text.endswith(":") else "  " + text)

    def room(self, kind: str) -> str:
        """Memory on the stack for one value."""
        name = self.name()
        self.entry.append(f"  {name} = alloca {kind}, align 64")
        return name

    def function(self, name: str) -> str:
        lines = "\n".join([*self.entry, *self.lines, "  ret void"])
        return f"define void @{name}({_PARAMETERS}) #0 {{\n{lines}\n}}\n"


def _splat(number: str, kind: str, width: int) -> str:
    return "<" + ", ".join([f"{kind} {number}"] * width) + ">"


_f64 = {2.0**-126: "0x3810000000000000", 2.0**149: "0x4940000000000000", 2.0**-149: "0x36A0000000000000"}


class _Kernel:
    """One element type (f32 or f64), one vector width; emits what all layouts share."""

    def __init__(self, body: _Body, width: int, wide: bool) -> None:
        self.b, self.width, self.wide = body, width, wide
        self.kind = "double" if wide else "float"
        self.v = f"<{width} x {self.kind}>"
        self.d = f"<{width} x double>"
        self.i = f"<{width} x i32>"
        self.l = f"<{width} x i64>"

    def spread(self, kind: str, scalar: str) -> str:
        one = self.b.value(f"insertelement <{self.width} x {kind}> poison, {kind} {scalar}, i64 0")
        vector = f"<{self.width} x {kind}>"
        return self.b.value(f"shufflevector {vector} {one}, {vector} poison, <{self.width} x i32> zeroinitializer")

    def greater(self, x: str, y: str) -> str:
        more = self.b.value(f"fcmp ogt {self.v} {x}, {y}")
        return self.b.value(f"select <{self.width} x i1> {more}, {self.v} {x}, {self.v} {y}")

    def multiply(self, x: str, y: str) -> str:
        return self.b.value(f"fmul {self.v} {x}, {y}")

    def power_of(self, single: str) -> str:
        """2 to the exponent of the addend (f32), at least 2**-126; of what shall become f16 at least 2**-14."""
        b = self.b
        bits = b.value(f"bitcast <{self.width} x float> {single} to {self.i}")
        own = b.value(f"and {self.i} {bits}, {_splat('2139095040', 'i32', self.width)}")
        size = b.value(f"and {self.i} {bits}, {_splat('2147483647', 'i32', self.width)}")
        zero = b.value(f"icmp eq {self.i} {size}, zeroinitializer")
        low = b.value(f"icmp ult {self.i} {own}, %least.v")
        own = b.value(f"select <{self.width} x i1> {low}, {self.i} %least.v, {self.i} {own}")
        tiny = _splat("8388608", "i32", self.width)
        own = b.value(f"select <{self.width} x i1> {zero}, {self.i} {tiny}, {self.i} {own}")
        power = b.value(f"bitcast {self.i} {own} to <{self.width} x float>")
        return b.value(f"fpext <{self.width} x float> {power} to {self.d}") if self.wide else power

    def unit_of(self, most: str) -> str:
        """2**fraction / most; the exponent alone is changed."""
        b, wide = self.b, self.wide
        kind, vector = ("i64", self.l) if wide else ("i32", self.i)
        if not wide:  # far below any product, so that the addend alone decides, which `finish` sees to
            most = self.greater(most, _splat("0x3A00000000000000", "float", self.width))
        bits = b.value(f"bitcast {self.v} {most} to {vector}")
        found = b.value(f"sub {vector} %units.{kind}, {bits}")
        return b.value(f"bitcast {vector} {found} to {self.v}")

    def finish(self, total: str, most: str, products: str, addend: str) -> str:
        """The sum in units (f64), back at its size and cut off, as f32."""
        b, w = self.b, self.width
        if not self.wide:
            most = self.greater(most, _splat("0x3A00000000000000", "float", w))
            most = b.value(f"fpext {self.v} {most} to {self.d}")
        down = b.value(f"fmul {self.d} {most}, %down.v")
        exact = b.value(f"fmul {self.d} {total}, {down}")
        exact = b.value(f"fadd {self.d} {exact}, zeroinitializer")
        return self.special(self.kept(self.cut(exact), products, addend), addend)

    def special(self, single: str, addend: str) -> str:
        """An infinite addend stays; one that is NaN makes the canonical NaN."""
        b, w = self.b, self.width
        bits = b.value(f"bitcast <{w} x float> {addend} to {self.i}")
        size = b.value(f"and {self.i} {bits}, {_splat('2147483647', 'i32', w)}")
        finite = b.value(f"icmp ult {self.i} {size}, {_splat('2139095040', 'i32', w)}")
        infinite = b.value(f"icmp eq {self.i} {size}, {_splat('2139095040', 'i32', w)}")
        other = b.value(f"select <{w} x i1> {infinite}, {self.i} {bits}, {self.i} {_splat('2147483647', 'i32', w)}")
        other = b.value(f"bitcast {self.i} {other} to <{w} x float>")
        return b.value(f"select <{w} x i1> {finite}, <{w} x float> {single}, <{w} x float> {other}")

    def kept(self, single: str, products: str, addend: str) -> str:
        """Without products the addend stays as it is, however small; f64 needs no care."""
        b, w = self.b, self.width
        if self.wide:
            return single
        only = b.value(f"fcmp oeq {self.v} {products}, zeroinitializer")
        wide = b.value(f"fpext <{w} x float> {addend} to {self.d}")
        wide = b.value(f"fadd {self.d} {wide}, zeroinitializer")
        kept = self.masked(wide)
        kept = b.value(f"fptrunc {self.d} {kept} to <{w} x float>")
        return b.value(f"select <{w} x i1> {only}, <{w} x float> {kept}, <{w} x float> {single}")

    def masked(self, exact: str) -> str:
        b = self.b
        bits = b.value(f"bitcast {self.d} {exact} to {self.l}")
        kept = b.value(f"and {self.l} {bits}, %mask.v")
        lost = b.value(f"icmp ne {self.l} {bits}, {kept}")
        odd = b.value(f"select <{self.width} x i1> {lost}, {self.l} %odd.v, {self.l} zeroinitializer")
        whole = b.value(f"or {self.l} {kept}, {odd}")
        return b.value(f"bitcast {self.l} {whole} to {self.d}")

    def whole(self, number: str) -> str:
        """An f64 cut off to a whole number."""
        return self.b.value(f"call {self.d} @llvm.trunc.v{self.width}f64({self.d} {number})")

    def cut(self, exact: str) -> str:
        b, w = self.b, self.width
        single = b.value(f"fptrunc {self.d} {self.masked(exact)} to <{w} x float>")
        if not self.wide:
            return single
        size = b.value(f"call {self.d} @llvm.fabs.v{w}f64({self.d} {exact})")
        small = b.value(f"fcmp olt {self.d} {size}, {_splat(_f64[2.0**-126], 'double', w)}")
        up = b.value(f"fmul {self.d} {exact}, {_splat(_f64[2.0**149], 'double', w)}")
        whole = b.value(f"call {self.d} @llvm.trunc.v{w}f64({self.d} {up})")
        back = b.value(f"fmul {self.d} {whole}, {_splat(_f64[2.0**-149], 'double', w)}")
        least = b.value(f"fptrunc {self.d} {back} to <{w} x float>")
        return b.value(f"select <{w} x i1> {small}, <{w} x float> {least}, <{w} x float> {single}")

    def constants(self) -> None:
        """Vectors of the parameters, before all loops."""
        b = self.b
        if self.wide:  # 2**fraction / most: the sum of the biased exponents is that of 2**fraction and twice the bias
            up = b.value("zext i32 %fraction to i64")
            field = b.value(f"add i64 {up}, 2046")
            self._alias("units.i64", self.spread("i64", b.value(f"shl i64 {field}, 52")), self.l)
        else:
            field = b.value("add i32 %fraction, 254")
            self._alias("units.i32", self.spread("i32", b.value(f"shl i32 {field}, 23")), self.i)
        wide = b.value("zext i32 %fraction to i64")
        down = b.value(f"shl i64 {b.value(f'sub i64 1023, {wide}')}, 52")
        self._alias("down.v", self.spread("double", b.value(f"bitcast i64 {down} to double")), self.d)
        self._alias("mask.v", self.spread("i64", "%mask"), self.l)
        self._alias("odd.v", self.spread("i64", "%odd"), self.l)
        self._alias("least.v", self.spread("i32", "%least"), self.i)
        self._alias("keep.v", self.spread("i32", "%keep"), self.i)

    def _alias(self, name: str, value: str, kind: str) -> None:
        self.b.line(f"%{name} = freeze {kind} {value}")

    def addend(self, pointer: str) -> str:
        """C as f32; zero where it does not count."""
        b = self.b
        bits = b.value(f"load {self.i}, ptr {pointer}, align 4")
        bits = b.value(f"and {self.i} {bits}, %keep.v")
        return b.value(f"bitcast {self.i} {bits} to <{self.width} x float>")


#: Loads A's vector for a row of the block, or B's: (kernel, kind "value" or "power", row, column of A) -> vector.
_Load = Callable[[str, int, str], str]


def _elements(k: _Kernel, rows: int, addends: list[str], load_a: _Load, load_b: Callable[[str, str], str]) -> list[str]:
    """Results for `rows` vectors that share B, as f32: two loops over K."""
    b = k.b
    zero = "zeroinitializer"
    largest = _loop(
        b, rows, k.v, zero,
        lambda at, now: _largest(k, rows, at, now, load_a, load_b),
    )  # fmt: skip
    own = [k.power_of(c) for c in addends]
    most = [k.greater(p, q) for p, q in zip(largest, own, strict=True)]
    units = [k.unit_of(p) for p in most]
    starts = []
    for c, unit in zip(addends, units, strict=True):
        c = b.value(f"fpext <{k.width} x float> {c} to {k.d}") if k.wide else c
        scaled = k.multiply(c, unit)
        if k.wide:
            starts.append(b.value(f"call {k.v} @llvm.trunc.v{k.width}f64({k.v} {scaled})"))
        else:
            whole = b.value(f"fptosi {k.v} {scaled} to {k.i}")
            starts.append(b.value(f"sitofp {k.i} {whole} to {k.d}"))
    totals = _loop(
        b, rows, k.d, starts,
        lambda at, now: _sums(k, rows, at, now, load_a, load_b, units),
    )  # fmt: skip
    return [k.finish(t, p, q, c) for t, p, q, c in zip(totals, most, largest, addends, strict=True)]


def _plain(k: _Kernel, rows: int, addends: list[str], load_a: _Load, load_b: Callable[[str, str], str]) -> list[str]:
    """f32 products and sums in the order of K."""

    def step(at: str, now: list[str]) -> list[str]:
        for i in range(_STEP):
            place = k.b.value(f"add i64 {at}, {i}")
            right = load_b("value", place)
            for row in range(rows):
                term = k.b.value(f"fmul contract {k.v} {load_a('value', row, place)}, {right}")
                now[row] = k.b.value(f"fadd contract {k.v} {now[row]}, {term}")
        return now

    return _loop(k.b, rows, k.v, addends, step)


def _loop(
    b: _Body, rows: int, kind: str, starts: str | list[str], step: Callable[[str, list[str]], list[str]]
) -> list[str]:
    """for (at = 0; at < %k; at += 8) with one vector carried for each row."""
    before, body = b.name()[1:], b.name()[1:]
    b.line(f"br label %{before}")
    b.line(f"{before}:")
    b.line(f"br label %{body}")
    b.line(f"{body}:")
    at, following = b.name(), b.name()
    now, after = [b.name() for _ in range(rows)], [b.name() for _ in range(rows)]
    b.line(f"{at} = phi i64 [0, %{before}], [{following}, %{body}]")
    for row in range(rows):
        start = starts if isinstance(starts, str) else starts[row]
        b.line(f"{now[row]} = phi {kind} [{start}, %{before}], [{after[row]}, %{body}]")
    for name, found in zip(after, step(at, list(now)), strict=True):
        b.line(f"{name} = freeze {kind} {found}")
    b.line(f"{following} = add i64 {at}, {_STEP}")
    more = b.value(f"icmp ult i64 {following}, %k")
    end = b.name()[1:]
    b.line(f"br i1 {more}, label %{body}, label %{end}")
    b.line(f"{end}:")
    return after


def _largest(
    k: _Kernel, rows: int, at: str, now: list[str], load_a: _Load, load_b: Callable[[str, str], str]
) -> list[str]:
    for i in range(_STEP):
        place = k.b.value(f"add i64 {at}, {i}")
        right = load_b("power", place)
        for row in range(rows):
            now[row] = k.greater(k.multiply(load_a("power", row, place), right), now[row])
    return now


def _sums(
    k: _Kernel, rows: int, at: str, now: list[str], load_a: _Load, load_b: Callable[[str, str], str], units: list[str]
) -> list[str]:
    b = k.b
    narrow: list[str | None] = [None] * rows
    for i in range(_STEP):
        place = b.value(f"add i64 {at}, {i}")
        right = load_b("value", place)
        for row in range(rows):
            term = k.multiply(load_a("value", row, place), k.multiply(right, units[row]))
            if k.wide:
                whole = b.value(f"call {k.v} @llvm.trunc.v{k.width}f64({k.v} {term})")
                now[row] = b.value(f"fadd {k.v} {now[row]}, {whole}")
                continue
            whole = b.value(f"fptosi {k.v} {term} to {k.i}")
            known = narrow[row]
            narrow[row] = whole if known is None else b.value(f"add {k.i} {known}, {whole}")
    if not k.wide:
        for row in range(rows):
            part = b.value(f"sitofp {k.i} {narrow[row]} to {k.d}")
            now[row] = b.value(f"fadd {k.d} {now[row]}, {part}")
    return now


_PARAMETERS = (
    "ptr noalias readonly %a, ptr noalias readonly %ap, ptr noalias readonly %b, ptr noalias readonly %bp, ptr %c, "
    "ptr %out, i64 %rows, i64 %columns, i64 %k, i64 %stride.c, i64 %stride.out, i32 %fraction, i64 %mask, i64 %odd, "
    "i32 %least, i32 %keep"
)


def _count(b: _Body, limit: str, step: int, inner: Callable[[str], None]) -> None:
    """for (i = 0; i < limit; i += step)"""
    head, body, done = (b.name()[1:] for _ in range(3))
    counter = b.room("i64")
    b.line(f"store i64 0, ptr {counter}")
    b.line(f"br label %{head}")
    b.line(f"{head}:")
    now = b.value(f"load i64, ptr {counter}")
    more = b.value(f"icmp ult i64 {now}, {limit}")
    b.line(f"br i1 {more}, label %{body}, label %{done}")
    b.line(f"{body}:")
    inner(now)
    b.line(f"store i64 {b.value(f'add i64 {now}, {step}')}, ptr {counter}")
    b.line(f"br label %{head}")
    b.line(f"{done}:")


def _rows_function(name: str, wide: bool, plain: bool) -> str:
    """D in rows. Four rows are computed together."""
    b = _Body()
    k = _Kernel(b, WIDTH, wide)
    k.constants()
    step = _plain if plain else _elements

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(_ROWS)]
        lines = [b.value(f"mul i64 {place}, %k") for place in places]

        def load_a(kind: str, number: int, at: str) -> str:
            index = b.value(f"add i64 {lines[number]}, {at}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%a' if kind == 'value' else '%ap'}, i64 {index}")
            return k.spread(k.kind, b.value(f"load {k.kind}, ptr {place}"))

        def load_b(kind: str, at: str) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {at}, %columns')}, {column}")
            place = b.value(f"getelementptr {k.kind}, ptr {'%b' if kind == 'value' else '%bp'}, i64 {index}")
            return b.value(f"load {k.v}, ptr {place}, align 4")

        def place_of(base: str, stride: str, number: int) -> str:
            index = b.value(f"add i64 {b.value(f'mul i64 {places[number]}, {stride}')}, {column}")
            return b.value(f"getelementptr float, ptr {base}, i64 {index}")

        addends = [k.addend(place_of("%c", "%stride.c", i)) for i in range(_ROWS)]
        for i, result in enumerate(step(k, _ROWS, addends, load_a, load_b)):
            target = place_of("%out", "%stride.out", i)
            b.line(f"store <{WIDTH} x float> {result}, ptr {target}, align 4")

    _count(b, "%columns", WIDTH, lambda column: _count(b, "%rows", _ROWS, lambda row: block(row, column)))
    return b.function(name)


def _warp_function(name: str, wide: bool, plain: bool) -> str:
    """D as a warp has it: %c holds offsets of the registers from %out, the frame; a register is 32 elements.

    A is [row // 8][k][lane]; B is [column // 8][column % 2][k][column % 8 // 2]: four numbers for each register.
    """
    b = _Body()
    k = _Kernel(b, 32, wide)
    k.constants()
    step = _plain if plain else _elements
    quad = f"<4 x {k.kind}>"
    order = ", ".join(f"i32 {lane % 4}" for lane in range(32))

    def block(pair: str) -> None:  # two registers: element `pair % 2` of the rows' upper and lower half
        def load_a(kind: str, number: int, at: str) -> str:
            line = b.value(f"add i64 {at}, %k") if number else at
            index = b.value(f"mul i64 {line}, 32")
            place = b.value(f"getelementptr {k.kind}, ptr {'%a' if kind == 'value' else '%ap'}, i64 {index}")
            return b.value(f"load {k.v}, ptr {place}, align 4")

        def load_b(kind: str, at: str) -> str:
            line = b.value(f"add i64 {b.value(f'mul i64 {pair}, %k')}, {at}")
            index = b.value(f"mul i64 {line}, 4")
            place = b.value(f"getelementptr {k.kind}, ptr {'%b' if kind == 'value' else '%bp'}, i64 {index}")
            four = b.value(f"load {quad}, ptr {place}, align 4")
            return b.value(f"shufflevector {quad} {four}, {quad} poison, <32 x i32> <{order}>")

        tile = b.value(f"lshr i64 {pair}, 1")
        odd = b.value(f"and i64 {pair}, 1")
        first = b.value(f"add i64 {b.value(f'shl i64 {tile}, 2')}, {odd}")
        places = []
        for half in range(2):
            index = b.value(f"add i64 {first}, {2 * half}")
            offset = b.value(f"load i64, ptr {b.value(f'getelementptr i64, ptr %c, i64 {index}')}")
            places.append(b.value(f"getelementptr i8, ptr %out, i64 {offset}"))
        addends = [k.addend(place) for place in places]
        for place, result in zip(places, step(k, 2, addends, load_a, load_b), strict=True):
            b.line(f"store <32 x float> {result}, ptr {place}, align 4")

    _count(b, "%columns", 1, block)
    return b.function(name)


def _grouped_function(name: str) -> str:
    """D in rows, for block-scaled fp4: 16 columns are summed exactly, scaled, and then aligned with other sums.

    %ap holds value and power of A's scale factors, [row][group][2]; %bp those of B, [group][2][column]; all f64.
    """
    b = _Body()
    k = _Kernel(b, WIDTH, wide=True)
    k.constants()
    vector = f"<{WIDTH} x float>"
    groups = b.value(f"lshr i64 %k, {GROUP.bit_length() - 1}")
    sums = b.room(f"[{_MOST_GROUPS * _ROWS} x {k.d}]")
    most = [b.room(k.d) for _ in range(_ROWS)]

    def one(group: str, row: str, column: str) -> None:
        at = b.value(f"mul i64 {group}, {2}")
        line = b.value(f"mul i64 {at}, %columns")
        scale_b, power_b = (
            b.value(f"load {k.d}, ptr {_element(b, 'double', '%bp', line, column, extra)}, align 8")
            for extra in ("0", "%columns")
        )
        for i in range(_ROWS):
            place = b.value(f"add i64 {row}, {i}")
            total = "zeroinitializer"
            for j in range(GROUP):
                index = b.value(f"add i64 {b.value(f'mul i64 {group}, {GROUP}')}, {j}")
                left = b.value(f"load float, ptr {_element(b, 'float', '%a', b.value(f'mul i64 {place}, %k'), index)}")
                one_left = b.value(f"insertelement {vector} poison, float {left}, i64 0")
                spread = b.value(f"shufflevector {vector} {one_left}, {vector} poison, <{WIDTH} x i32> zeroinitializer")
                address = _element(b, "float", "%b", b.value(f"mul i64 {index}, %columns"), column)
                right = b.value(f"load {vector}, ptr {address}, align 4")
                term = b.value(f"fmul contract {vector} {spread}, {right}")
                total = b.value(f"fadd contract {vector} {total}, {term}")
            wide = b.value(f"fpext {vector} {total} to {k.d}")
            pair = b.value(f"mul i64 {b.value(f'mul i64 {place}, {groups}')}, 2")
            scale_a, power_a = (
                k.spread("double", b.value(f"load double, ptr {_element(b, 'double', '%ap', pair, at, extra)}"))
                for extra in ("0", "1")
            )
            scaled = k.multiply(wide, k.multiply(scale_a, scale_b))
            slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {_ROWS}')}, {i}")
            b.line(f"store {k.d} {scaled}, ptr {b.value(f'getelementptr {k.d}, ptr {sums}, i64 {slot}')}, align 64")
            zero = b.value(f"fcmp oeq {k.d} {wide}, zeroinitializer")
            own = k.multiply(power_a, power_b)
            own = b.value(f"select <{WIDTH} x i1> {zero}, {k.d} zeroinitializer, {k.d} {own}")
            known = b.value(f"load {k.d}, ptr {most[i]}, align 64")
            b.line(f"store {k.d} {k.greater(own, known)}, ptr {most[i]}, align 64")

    def block(row: str, column: str) -> None:
        places = [b.value(f"add i64 {row}, {i}") for i in range(_ROWS)]
        addends = []
        for i, place in enumerate(places):
            address = _element(b, "float", "%c", b.value(f"mul i64 {place}, %stride.c"), column)
            addends.append(k.addend(address))
            b.line(f"store {k.d} {k.power_of(addends[i])}, ptr {most[i]}, align 64")
        _count(b, groups, 1, lambda group: one(group, row, column))
        largest = [b.value(f"load {k.d}, ptr {p}, align 64") for p in most]
        units = [k.unit_of(p) for p in largest]
        totals = [b.room(k.d) for _ in range(_ROWS)]
        for total, unit, addend in zip(totals, units, addends, strict=True):
            wide = b.value(f"fpext {vector} {addend} to {k.d}")
            b.line(f"store {k.d} {k.whole(k.multiply(wide, unit))}, ptr {total}, align 64")

        def add(group: str) -> None:
            for i, (total, unit) in enumerate(zip(totals, units, strict=True)):
                slot = b.value(f"add i64 {b.value(f'mul i64 {group}, {_ROWS}')}, {i}")
                part = b.value(f"load {k.d}, ptr {b.value(f'getelementptr {k.d}, ptr {sums}, i64 {slot}')}, align 64")
                known = b.value(f"load {k.d}, ptr {total}, align 64")
                summed = b.value(f"fadd {k.d} {known}, {k.whole(k.multiply(part, unit))}")
                b.line(f"store {k.d} {summed}, ptr {total}, align 64")

        _count(b, groups, 1, add)
        for i, place in enumerate(places):
            total = b.value(f"load {k.d}, ptr {totals[i]}, align 64")
            result = k.finish(total, largest[i], largest[i], addends[i])
            address = _element(b, "float", "%out", b.value(f"mul i64 {place}, %stride.out"), column)
            b.line(f"store {vector} {result}, ptr {address}, align 4")

    _count(b, "%columns", WIDTH, lambda column: _count(b, "%rows", _ROWS, lambda row: block(row, column)))
    return b.function(name)


def _halves_function(name: str) -> str:
    """f16 at %a (%k of them, a multiple of 16) as f32 at %out, and the powers of the numbers at %ap."""
    b = _Body()
    w = WIDTH
    short, word, single = f"<{w} x i16>", f"<{w} x i32>", f"<{w} x float>"

    def constant(number: int) -> str:
        return _splat(str(number), "i32", w)

    def block(at: str) -> None:
        code = b.value(f"load {short}, ptr {_element(b, 'i16', '%a', at)}, align 2")
        bits = b.value(f"zext {short} {code} to {word}")
        sign = b.value(f"shl {word} {b.value(f'and {word} {bits}, {constant(0x8000)}')}, {constant(16)}")
        size = b.value(f"shl {word} {b.value(f'and {word} {bits}, {constant(0x7FFF)}')}, {constant(13)}")
        # The exponent's bias differs by 112; subnormal numbers become normal ones.
        scaled = b.value(f"fmul {single} {b.value(f'bitcast {word} {size} to {single}')}, {_splat(_2_112, 'float', w)}")
        finite = b.value(f"icmp ult {word} {size}, {constant(0x7C00 << 13)}")
        special = b.value(f"or {word} {size}, {constant(0x7F80_0000)}")
        plain = b.value(f"bitcast {single} {scaled} to {word}")
        whole = b.value(f"select <{w} x i1> {finite}, {word} {plain}, {word} {special}")
        value = b.value(f"or {word} {whole}, {sign}")
        own = b.value(f"and {word} {whole}, {constant(0x7F80_0000)}")
        least = constant((127 - 14) << 23)
        low = b.value(f"icmp ult {word} {own}, {least}")
        own = b.value(f"select <{w} x i1> {low}, {word} {least}, {word} {own}")
        zero = b.value(f"icmp eq {word} {size}, zeroinitializer")
        own = b.value(f"select <{w} x i1> {zero}, {word} zeroinitializer, {word} {own}")
        b.line(f"store {word} {value}, ptr {_element(b, 'float', '%out', at)}, align 4")
        b.line(f"store {word} {own}, ptr {_element(b, 'float', '%ap', at)}, align 4")

    _count(b, "%k", w, block)
    lines = "\n".join([*b.entry, *b.lines, "  ret void"])
    return f"define void @{name}(ptr %a, ptr %out, ptr %ap, i64 %k) #0 {{\n{lines}\n}}\n"


#: 2**112 as f32, in the notation of LLVM.
_2_112 = "0x46F0000000000000"


def _element(b: _Body, kind: str, base: str, *parts: str) -> str:
    """Address of the element at the sum of some indices."""
    index = parts[0]
    for part in parts[1:]:
        index = b.value(f"add i64 {index}, {part}")
    return b.value(f"getelementptr {kind}, ptr {base}, i64 {index}")


def _declarations() -> str:
    lines = []
    for width in (WIDTH, 32):
        kind = f"<{width} x double>"
        lines += [f"declare {kind} @llvm.{f}.v{width}f64({kind})" for f in ("fabs", "trunc")]
    return "\n".join(lines) + "\n"


_FORMS = {"narrow": (False, False), "wide": (True, False), "plain": (False, True)}
HALVES = "tile_halves"
NAMES = (*(f"tile_{layout}_{form}" for layout in ("rows", "warp") for form in _FORMS), "tile_rows_grouped", HALVES)


def module(attributes: str) -> str:
    """All functions as LLVM IR."""
    functions = [_grouped_function("tile_rows_grouped"), _halves_function(HALVES)]
    for form, (wide, plain) in _FORMS.items():
        functions.append(_rows_function(f"tile_rows_{form}", wide, plain))
        functions.append(_warp_function(f"tile_warp_{form}", wide, plain))
    return _declarations() + "\n".join(functions) + f"\nattributes #0 = {{ {attributes} }}\n"
