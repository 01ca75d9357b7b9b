"""Random kernels of all types: structured control flow, memory of all spaces and divergence, for what has to agree.

Values of 16, 32 and 64 bits, integers and floats, words and bytes in global, shared, local and constant memory at
addresses of many shapes, branches, loops that are left in the middle, switches, functions, barriers, atomics whose
order nobody sees, and what lanes exchange.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.native.harness import body_kernel

#: Registers of each class that statements change.
CLASSES = {"h": 4, "r": 5, "d": 3, "f": 3, "g": 2, "p": 4}
#: Operations; a letter stands for a register of its class, i for a number of 32 bits or a register.
OPERATIONS = """add.u32 r, r, i / sub.s32 r, r, i / mul.lo.s32 r, r, i / mul.hi.u32 r, r, r / mul.hi.s32 r, r, i /
mad.lo.u32 r, r, i, r / mad.hi.s32 r, r, r, r / min.s32 r, r, i / max.u32 r, r, i / and.b32 r, r, i / or.b32 r, r, r /
xor.b32 r, r, i / not.b32 r, r / neg.s32 r, r / abs.s32 r, r / shl.b32 r, r, i / shr.u32 r, r, i / shr.s32 r, r, r /
bfe.s32 r, r, i, i / bfe.u32 r, r, i, r / bfi.b32 r, r, r, i, i / popc.b32 r, r / clz.b32 r, r / brev.b32 r, r /
prmt.b32 r, r, r, i / lop3.b32 r, r, r, r, 0x6a / shf.l.wrap.b32 r, r, r, i / shf.r.clamp.b32 r, r, r, r /
sad.s32 r, r, r, r / div.u32 r, r, i / rem.s32 r, r, r / dp4a.u32.s32 r, r, r, r /
add.cc.u32 r, r, r; addc.u32 r, r, i / bfind.s32 r, r / mul24.lo.s32 r, r, i / vadd.s32.u32.s32.sat r, r, r /
szext.clamp.s32 r, r, i / slct.b32.s32 r, r, i, r / add.u64 d, d, d / sub.s64 d, d, d / mul.lo.u64 d, d, d /
mul.hi.s64 d, d, d / mad.lo.s64 d, d, d, d / mul.wide.s32 d, r, i / mad.wide.u32 d, r, i, d / min.u64 d, d, d /
max.s64 d, d, d / xor.b64 d, d, d / shl.b64 d, d, i / shr.s64 d, d, r / popc.b64 r, d / clz.b64 r, d / brev.b64 d, d /
div.u64 d, d, d / rem.s64 d, d, d / bfe.s64 d, d, i, i / abs.s64 d, d / add.s16 h, h, h / mul.lo.u16 h, h, h /
mul.wide.u16 r, h, h / min.s16 h, h, h / shr.s16 h, h, i / xor.b16 h, h, h / neg.s16 h, h / mad.lo.s16 h, h, h, h /
add.f16 h, h, h / fma.rn.f16 h, h, h, h / add.f16x2 r, r, r / fma.rn.relu.f16x2 r, r, r, r / mul.bf16x2 r, r, r /
fma.rn.bf16 h, h, h, h / max.f16x2 r, r, r / neg.f16 h, h / min.NaN.f16 h, h, h / add.f32 f, f, f / sub.rz.f32 f, f, f /
mul.ftz.f32 f, f, f / fma.rn.f32 f, f, f, f / fma.rm.f32 f, f, f, f / div.rn.f32 f, f, f / min.f32 f, f, f /
max.NaN.f32 f, f, f / neg.f32 f, f / abs.f32 f, f / sqrt.rn.f32 f, f / rcp.rn.ftz.f32 f, f / copysign.f32 f, f, f /
add.sat.f32 f, f, f / add.f64 g, g, g / fma.rn.f64 g, g, g, g / mul.rp.f64 g, g, g / min.f64 g, g, g /
div.rn.f64 g, g, g / cvt.u32.u16 r, h / cvt.s32.s16 r, h / cvt.u16.u32 h, r / cvt.s64.s32 d, r / cvt.u32.u64 r, d /
cvt.s32.s8 r, r / cvt.sat.u8.s32 r, r / cvt.rn.f32.s32 f, r / cvt.rzi.s32.f32 r, f / cvt.rni.u64.f64 d, g /
cvt.f64.f32 g, f / cvt.rn.f32.f64 f, g / cvt.rn.f16.f32 h, f / cvt.f32.f16 f, h / cvt.rn.f64.u64 g, d /
cvt.rpi.f32.f32 f, f / cvt.sat.s16.s32 h, r / cvt.rzi.u16.f32 h, f / cvt.rn.bf16x2.f32 r, f, f / mov.b32 r, f /
mov.b32 f, r / mov.b64 d, {r, r} / mov.b64 {r, r}, d / mov.b64 g, d / mov.b64 d, g / mov.b32 r, {h, h} /
mov.b32 {h, h}, r / setp.lt.u32 p, r, i / setp.ge.s32 p|p, r, i / setp.eq.f32 p, f, f / setp.ltu.f32 p, f, f /
setp.gt.s64 p, d, d / setp.ne.s16 p, h, h / setp.lt.and.s32 p, r, i, p / setp.neu.xor.f64 p, g, g, p /
setp.lo.or.u16 p, h, h, !p / setp.num.f16 p, h, h / set.lt.u32.f32 r, f, f / set.eq.f32.s32 f, r, i / and.pred p, p, p /
xor.pred p, p, p / not.pred p, p / mov.pred p, p / testp.notanumber.f32 p, f / selp.b32 r, r, i, p /
selp.b64 d, d, d, p / selp.f32 f, f, f, p / selp.b16 h, h, h, p / selp.f64 g, g, g, p / mov.u32 r, i"""
_OPERATIONS = [" ".join(text.split()) for text in OPERATIONS.split("/")]
#: Types of memory, by the class of register they are loaded into.
_TYPES = {"h": ("b16", "u8", "s8", "s16"), "r": ("b32", "u8", "s8", "u16", "s16", "s32"),
          "d": ("b64", "u32", "s32", "s8", "u16"), "f": ("f32", "b32"), "g": ("f64", "b64")}  # fmt: skip
#: Of these, what is stored.
_STORED = {"h": ("b16", "u8"), "r": ("b32", "u8", "u16"), "d": ("b64", "u32", "b16"), "f": ("f32",), "g": ("f64",)}
_BYTES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4}
_NUMBERS = (0, 1, 2, 3, 5, 8, 16, 31, 32, 33, 255, 4096, -1, -7, 0x7FFFFFFF, 0x12345678)
#: Bytes of its own that each thread has in global, shared and local memory.
OWN = 64
INPUT = 8192
#: Blocks of threads.
BLOCKS = ((32, 1, 1), (64, 1, 1), (96, 1, 1), (50, 1, 1), (128, 1, 1), (16, 4, 1), (8, 8, 2), (24, 2, 1), (1, 1, 1))
#: Registers for addresses, for counters, and for what all threads know.
_MORE = f""".local .align 16 .b8 mine[{OWN}];
    .reg .b32 %x<5>, %s<4>, %l<1>, %m<1>, %i<3>, %j<3>; .reg .b64 %y<4>, %z<3>;"""


class Writer:
    """Writes a kernel (out, in): OWN bytes of out for each thread, INPUT bytes of in; and 256 bytes, `table`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.block = BLOCKS[seed % len(BLOCKS)]
        self.labels = self.nested = self.budget = 0
        self.lines: list[str] = []
        self.leave = self.rng.random() < 0.2
        self.functions = self.rng.choice([0, 0, 2])
        self.ends: list[str] = []
        self.inside = False  # of a function

    def register(self, letter: str) -> str:
        return f"%{letter}{self.rng.randint(1, CLASSES[letter])}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def number(self) -> str:
        return str(self.rng.choice(_NUMBERS)) if self.rng.random() < 0.6 else self.register("r")

    def guard(self) -> str:
        return self.rng.choice(["", "", "", f"@{self.register('p')} ", f"@!{self.register('p')} "])

    def put(self, *lines: str) -> None:
        self.lines += lines

    def work(self) -> None:
        guard, text = self.guard(), self.rng.choice(_OPERATIONS)
        for one in text.split("; "):
            name, operands = one.split(" ", 1)
            first = [f"%{operands[:3].strip('{}')[0]}{i}" for i in self.rng.sample(range(1, 5), 2)]  # two results
            operands = re.sub(r"^{[hr], [hr]}", f"{{{first[0]}, {first[1]}}}", operands)
            operands = re.sub(r"^p\|p", "|".join(first), operands)
            filled = re.sub(r"\b[hrdfgpi]\b", lambda m: self.number() if m[0] == "i" else self.register(m[0]), operands)
            self.put(f"{guard}{name} {filled};")

    # Memory

    def place(self, space: str, size: int) -> tuple[str, str]:
        """A state space as an access names it, and an address of so many bytes that is fit to be accessed. Functions
        access constants, and what is their own."""
        if self.inside:
            space = "const" if space in ("in", "const") else "local"
        rng = self.rng
        own = size * rng.randrange(OWN // size)
        if space == "in":
            shape = rng.random()
            if shape < 0.3:
                return ".global", f"[%in+{size * rng.randrange(512 // size)}]"
            if shape < 0.65:
                number = rng.choice([i for i, step in enumerate((4, 8, 16), 1) if step % size == 0])
                return ".global", f"[%y{number}+{size * rng.randrange(256 // size)}]"
            self.put(f"and.b32 %x0, {self.register('r')}, {INPUT // size - 1}; mad.wide.u32 %y0, %x0, {size}, %in;")
            return rng.choice([".global", ".global", ""]), "[%y0]"
        if space == "const":
            if rng.random() < 0.5:
                return ".const", f"[table+{size * rng.randrange(256 // size)}]"
            self.put(f"and.b32 %x0, {self.register('r')}, {256 // size - 1}; mul.lo.u32 %x0, %x0, {size};")
            self.put("mov.u32 %x1, table; add.u32 %x0, %x0, %x1;")
            return ".const", "[%x0]"
        if rng.random() < 0.3:
            base = {"global": "%out", "shared": "%s0", "local": "%l0"}[space]
            self.put(f"and.b32 %x0, {self.register('r')}, {OWN // size - 1}; mul.lo.u32 %x0, %x0, {size};")
            if space == "global":
                self.put(f"cvt.u64.u32 %y0, %x0; add.u64 %y0, %y0, {base};")
                return ".global", "[%y0]"
            self.put(f"add.u32 %x0, %x0, {base};")
            return f".{space}", "[%x0]"
        if space == "shared":
            return rng.choice([(".shared", f"[%s0+{own}]"), (".shared", f"[%s0+{own}]"), ("", f"[%z1+{own}]")])
        if space == "local":
            return rng.choice([(".local", f"[mine+{own}]"), (".local", f"[%l0+{own}]"), ("", f"[%z2+{own}]")])
        return rng.choice([".global", ".global", ""]), f"[%out+{own}]"

    def access(self) -> None:
        rng, guard = self.rng, self.guard()
        letter = rng.choice("hrrrrdffg")
        space = rng.choice(["in", "in", "in", "const", "global", "shared", "shared", "local"])
        store = space not in ("in", "const") and rng.random() < 0.5
        t = rng.choice((_STORED if store else _TYPES)[letter])
        size = _BYTES.get(t, 8)
        count = rng.choice([1, 1, 1, 2, 4]) if size * 4 <= 16 else rng.choice([1, 1, 2]) if size == 8 else 1
        where, address = self.place(space, size * count)
        vector = {1: "", 2: ".v2", 4: ".v4"}[count]
        names = rng.sample(range(1, CLASSES[letter] + 1), count) if count <= CLASSES[letter] else []
        if not names:
            vector, names = "", [1]
        registers = ", ".join(f"%{letter}{name}" for name in names)
        registers = f"{{{registers}}}" if vector else registers
        if store:
            self.put(f"{guard}st{where}{vector}.{t} {address}, {registers};")
        else:
            self.put(f"{guard}ld{where}{vector}.{t} {registers}, {address};")

    def atomic(self) -> None:
        """On a word of the thread's own, or one of all threads whose value nobody reads before the end."""
        rng, guard = self.rng, self.guard()
        if rng.random() < 0.5:
            operation = rng.choice(["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"])
            number = ["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"].index(operation)
            self.put(f"{guard}red.shared.{operation} [sums+{4 * number}], {self.register('r')};")
            return
        t, letter = rng.choice([("b32", "r"), ("b32", "r"), ("b64", "d")])
        where, address = self.place(rng.choice(["global", "shared"]), 8)
        a, b, c = (self.register(letter) for _ in range(3))
        wide = t[1:]
        self.put(
            rng.choice(
                [
                    f"{guard}atom{where}.exch.b{wide} {a}, {address}, {b};",
                    f"{guard}atom{where}.cas.b{wide} {a}, {address}, {b}, {c};",
                    f"{guard}atom{where}.add.u{wide} {a}, {address}, {b};",
                    f"{guard}atom{where}.min.s{wide} {a}, {address}, {b};",
                    f"{guard}atom{where}.inc.u32 {self.register('r')}, {address}, 5;",
                    f"{guard}atom{where}.add.f32 {self.register('f')}, {address}, {self.register('f')};",
                ]
            )
        )

    # Control flow

    def condition(self, *, alike: bool) -> str:
        """A predicate that is the same in all threads of a CTA, or not."""
        rng = self.rng
        if alike:
            self.put(f"setp.{rng.choice(['lt', 'eq'])}.u32 %p7, %n, {rng.randint(0, 3)};")
            return "%p7"
        kind = rng.random()
        if kind < 0.4:
            return self.register("p")
        if kind < 0.7:
            self.put(f"setp.{rng.choice(['lt', 'ge'])}.u32 %p7, %t, {rng.choice([1, 7, 16, 20, 32, 40, 64])};")
        else:
            self.put(f"and.b32 %x0, {self.register('r')}, {rng.choice([1, 3, 6])}; setp.ne.u32 %p7, %x0, 0;")
        return "%p7"

    def branch(self, depth: int, *, together: bool) -> None:
        alike, other, end = self.rng.random() < 0.3, self.label(), self.label()
        self.put(f"@{self.rng.choice(['', '!'])}{self.condition(alike=alike)} bra {other};")
        self.body(depth, together=together and alike)
        if self.rng.random() < 0.6:
            self.put(f"bra {end};", f"{other}:")
            self.body(depth, together=together and alike)
            self.put(f"{end}:")
        else:
            self.put(f"{other}:")

    def switch(self, depth: int) -> None:
        name, end, count = self.label(), self.label(), self.rng.randint(2, 5)
        cases = [self.label() for _ in range(count)]
        self.put(f"rem.u32 %x0, {self.register('r')}, {count};", f"{name}: .branchtargets {', '.join(cases)};")
        self.put(f"{self.guard()}brx.idx %x0, {name};")
        for case in cases:
            self.put(f"{case}:")
            self.body(depth, together=False)
            if self.rng.random() < 0.8:
                self.put(f"bra {end};")
        self.put(f"{end}:")

    def loop(self, depth: int, *, together: bool) -> None:
        if self.nested == 3:
            return
        rng, again, end, counter, limit = self.rng, self.label(), self.label(), f"%i{self.nested}", f"%j{self.nested}"
        self.nested += 1
        alike = rng.random() < 0.5
        if alike:
            self.put(f"mov.u32 {limit}, {rng.randint(1, 9)};")
        else:
            self.put(f"and.b32 {limit}, {rng.choice(['%t', self.register('r')])}, {rng.choice([3, 7])};")
        self.put(f"mov.u32 {counter}, 0;", f"{again}:")
        self.ends.append("" if together and alike else end)  # all that come into it together leave it together
        self.body(depth, together=together and alike)
        self.ends.pop()
        self.put(f"add.u32 {counter}, {counter}, 1; setp.le.u32 %p6, {counter}, {limit}; @%p6 bra {again};", f"{end}:")
        self.nested -= 1

    def stop(self) -> None:
        """Some threads leave the loop."""
        self.put(f"@{self.condition(alike=False)} bra {self.ends[-1]};")

    def call(self) -> None:
        rng, a, b, x = self.rng, self.register("r"), self.register("d"), self.register("r")
        guard = self.guard()
        if rng.random() < 0.3:
            self.put(f"mov.u64 %y0, f0; @{self.register('p')} mov.u64 %y0, f1;")
            self.put(f"{guard}call ({x}), %y0, ({a}, {b}), shape;")
        else:
            self.put(f"{guard}call ({x}), f{rng.randrange(2)}, ({a}, {b});")

    # Threads together

    def exchange(self) -> None:
        """A barrier, bytes of another thread, and a barrier."""
        rng, size = self.rng, self.rng.choice([1, 2, 4, 4, 8, 16])
        self.put("bar.sync 0;", f"xor.b32 %x0, %s1, {rng.choice([1, 2, 16, 31, 32])}; min.u32 %x0, %x0, %s2;")
        place = f"[%x0+{size * rng.randrange(OWN // size)}]"
        self.put(f"mad.lo.u32 %x0, %x0, {OWN}, %s3;")
        self.put(
            {
                1: f"ld.shared.s8 {self.register('r')}, {place};", 2: f"ld.shared.u16 {self.register('d')}, {place};",
                4: f"ld.shared.b32 {self.register(rng.choice('rf'))}, {place};",
                8: f"ld.shared.b64 {self.register(rng.choice('dg'))}, {place};",
                16: f"ld.shared.v4.b32 {{%r1, %r4, %r2, %r3}}, {place};",
            }[size]
        )  # fmt: skip
        self.put("bar.sync 0;")

    def across(self) -> None:
        rng, r, p = self.rng, lambda: self.register("r"), self.register("p")
        mode, limits = rng.choice(
            [("bfly", 31), ("down", 31), ("idx", 31), ("up", 0), ("down", 0x1C1F), ("up", 0x1800)]
        )
        self.put(
            rng.choice(
                [
                    f"shfl.sync.{mode}.b32 {r()}|{p}, {r()}, {rng.choice([0, 1, 4, 16, 31])}, {limits}, %m0;",
                    f"shfl.sync.{mode}.b32 {self.register('f')}, {self.register('f')}, {r()}, {limits}, %m0;",
                    f"vote.sync.ballot.b32 {r()}, {p}, %m0;",
                    f"vote.sync.{rng.choice(['all', 'any', 'uni'])}.pred {p}, {self.register('p')}, %m0;",
                    f"redux.sync.{rng.choice(['add.u32', 'min.s32', 'max.u32', 'xor.b32'])} {r()}, {r()}, %m0;",
                    f"match.any.sync.b32 {r()}, {r()}, %m0;",
                    f"elect.sync {r()}|{p}, %m0;",
                    f"bar.red.popc.u32 {r()}, 0, {p};",
                    f"bar.red.{rng.choice(['and', 'or'])}.pred {p}, 0, {self.register('p')};",
                ]
            )
        )

    def statement(self, depth: int, *, together: bool) -> None:
        """together: all threads of the CTA are here."""
        self.budget -= 1
        kind = self.rng.random()
        choices: list[tuple[float, bool, Callable[[], None]]] = [
            (0.3, True, self.work),
            (0.62, True, self.access),
            (0.66, True, self.work if self.inside else self.atomic),
            (0.7, together, self.exchange),
            (0.74, together and not self.leave, self.across),
            (0.77, bool(self.functions) and not self.inside, self.call),
            (0.8, bool(self.ends and self.ends[-1]), self.stop),
            (0.88, depth > 0, lambda: self.branch(depth, together=together)),
            (0.91, depth > 0, lambda: self.switch(depth)),
            (1.0, depth > 0, lambda: self.loop(depth, together=together)),
        ]
        next(do for share, can, do in [*choices, (1.0, True, self.work)] if kind < share and can)()

    def body(self, depth: int, *, together: bool) -> None:
        for _ in range(self.rng.randint(1, 4)):
            if self.budget > 0:
                self.statement(depth - 1, together=together)

    def function(self, name: str) -> str:
        """A function of a number and a number of 64 bits; its memory is constant, or its own."""
        kept, self.lines, self.budget, self.inside = self.lines, [], 12, True
        first = "mov.u32 %l0, mine; cvta.local.u64 %z2, mine;"
        self.put(first, *self._values("%a", "%b"))
        self.body(3, together=False)
        text = "\n".join([*self.lines, "xor.b32 %c, %r2, %r3; cvt.u32.u64 %r1, %d1; add.u32 %c, %c, %r1; ret;"])
        self.lines, self.inside = kept, False
        return f""".func (.reg .b32 %c) {name} (.reg .b32 %a, .reg .b64 %b) {{
    .reg .u32 %t, %n; .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .f32 %f<8>;
    .reg .f64 %g<4>; {_MORE}
    mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x;
    {text}
}}
"""

    def _values(self, word: str, wide: str) -> list[str]:
        """Values of all registers."""
        lines = [f"mad.lo.u32 %r{i}, {word}, {self.rng.choice([7, 77777, 0x9E3779B9])}, {i};" for i in range(1, 6)]
        lines += [f"mad.wide.u32 %d{i}, {word}, 0x85EBCA6B, {wide};" for i in range(1, 4)]
        lines += [f"cvt.u16.u32 %h{i}, %r{i};" for i in range(1, 5)]
        lines += [f"cvt.rn.f32.s32 %f{i}, %r{i};" for i in range(1, 4)]
        lines += [f"cvt.rn.f64.s64 %g{i}, %d{i};" for i in range(1, 3)]
        lines += [f"setp.lt.u32 %p{i}, %t, {self.rng.choice([0, 5, 32, 50, 1000])};" for i in range(1, 5)]
        return [*lines, *(f"st.local.b64 [mine+{8 * i}], %d{1 + i % 3};" for i in range(OWN // 8))]

    def kernel(self, before_end: str = "") -> str:
        """The kernel; before_end is put where all threads come."""
        rng = self.rng
        declared = ".const .align 16 .b8 table[256];\n"
        declared += f".shared .align 16 .b8 words[{OWN * 256}];\n.shared .align 16 .b8 sums[32];\n"
        for number in range(self.functions):
            declared += self.function(f"f{number}")
        self.budget = rng.randint(10, 60)
        self.put(_MORE, "shape: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b64 _);" if self.functions else "")
        self.put("mov.u32 %x0, %tid.y; mov.u32 %x1, %ntid.x; mad.lo.u32 %s1, %x0, %x1, %t; mov.u32 %x2, %ntid.y;")
        self.put("mul.lo.u32 %x1, %x1, %x2; mov.u32 %x0, %tid.z; mad.lo.u32 %s1, %x0, %x1, %s1; mov.u32 %x0, %ntid.z;")
        self.put("mul.lo.u32 %x1, %x1, %x0; sub.u32 %s2, %x1, 1; mad.lo.u32 %x2, %n, %x1, %s1; mov.u32 %s3, words;")
        self.put(f"mad.lo.u32 %s0, %s1, {OWN}, %s3; ld.param.u64 %y0, [out]; mad.wide.u32 %out, %x2, {OWN}, %y0;")
        self.put("cvta.shared.u64 %z1, words; cvt.u64.u32 %y0, %s1; mad.wide.u32 %z1, %s1, 64, %z1;")
        self.put("activemask.b32 %m0; mov.u32 %l0, mine; cvta.local.u64 %z2, mine;")
        for number in (1, 2, 3):
            self.put(
                rng.choice(["mov.u32 %x3, %s1;", "shr.u32 %x3, %s1, 4;", "and.b32 %x3, %s1, 7;", "not.b32 %x3, %n;"])
            )
            self.put(f"and.b32 %x3, %x3, 255; mad.wide.u32 %y{number}, %x3, {2 << number}, %in;")
        self.put(*self._values("%x2", "%in"))
        self.put(*(f"st.shared.b64 [%s0+{8 * i}], %d{1 + i % 3};" for i in range(OWN // 8)))
        if self.leave:
            self.put(f"setp.gt.u32 %p7, %s1, {rng.choice([3, 31, 60])}; @%p7 ret;")
        while self.budget > 0:
            self.statement(4, together=True)
        self.put("bar.sync 0;", before_end)
        self.put(*(f"ld.shared.u32 %x0, [sums+{4 * i}]; add.u32 %r1, %r1, %x0;" for i in range(6)))
        self.put(*(f"ld.shared.b64 %y0, [%s0+{8 * i}]; xor.b64 %d1, %d1, %y0;" for i in range(OWN // 8)))
        self.put(*(f"ld.local.b64 %y0, [%l0+{8 * i}]; add.u64 %d2, %d2, %y0;" for i in range(OWN // 8)))
        self.put(*(f"xor.b32 %r1, %r1, %r{i}; mul.lo.u32 %r1, %r1, 31;" for i in range(2, 6)))
        self.put(*(f"selp.u32 %x0, {1 << i}, 0, %p{i}; add.u32 %r1, %r1, %x0;" for i in range(1, 5)))
        self.put(
            "st.global.v2.b64 [%out], {%d1, %d2};", "st.global.b64 [%out+16], %d3;", "st.global.b32 [%out+24], %r1;"
        )
        self.put(
            "st.global.v2.f32 [%out+32], {%f1, %f2};", "st.global.f32 [%out+28], %f3;", "st.global.f64 [%out+40], %g1;"
        )
        self.put("st.global.f64 [%out+48], %g2;", "st.global.v4.b16 [%out+56], {%h1, %h2, %h3, %h4};", "ret;")
        return body_kernel("\n".join(self.lines), OWN, declared)
