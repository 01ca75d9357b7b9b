"""What is known of all threads of a CTA at once (`lockstep`): contents that grow evenly along its axes, and comparisons
of these.

A content is a sum: a scalar, and a multiple of the thread's place along each axis. The scalars are computed once for
the CTA. Sums wrap as the instructions do; where their true value matters (an address made of 32 bits, a comparison),
they must not wrap anywhere in the CTA, which `Facts.exact` demands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxtools.native.code.emitter import Emitter
from ptxtools.native.code.runs import Step
from ptxtools.records import NamedTuple
from ptxtools.semantics.types import bits_of

#: A number that is known when code is made, or the name of an integer of the content's width.
Part = int | str
#: The scalar, and what the content grows by along x, y and z.
Parts = tuple[Part, Part, Part, Part]
#: Sums are exact below these: of two addends of 64 bits, and of steps along an axis of at most 1024 threads.
_LARGE, _STEEP = 60, 40
#: Integers by the ends of opcodes.
_SIGNED, _UNSIGNED = {"s32": 32, "s64": 64}, {"u32": 32, "u64": 64}
#: Comparisons: what holds where they do not, and what they are with both sides negated.
_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_UNSIGNED_TESTS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


class Linear(NamedTuple):
    """The content of a register of 32 or 64 bits: `parts[0] + parts[1] * x + parts[2] * y + parts[3] * z`."""

    bits: int
    parts: Parts

    @property
    def same(self) -> bool:
        """Whether it is the same in all threads."""
        return self.parts[1:] == (0, 0, 0)


class Range(NamedTuple):
    """Threads from one place along x to another (i64), none where the second is less."""

    first: str
    last: str


class Pred(NamedTuple):
    """A predicate: an i1 that says whether all threads have it, one whether none has; how x compares with a number, if
    that is what it says. same: it is the same in all threads."""

    every: str
    nobody: str
    test: tuple[str, Part] | None = None
    same: bool = False


Form = Linear | Pred


class UnknownError(Exception):
    """Nothing of the sort can be said."""


class Facts:
    """Finds forms, as scalar code. demand: emits that nothing is done unless an i1 holds; edges: i64, the last places
    along the three axes."""

    def __init__(self, code: Emitter, demand: Callable[[str], None], edges: tuple[str, str, str]) -> None:
        self.code, self.demand, self.edges = code, demand, edges

    # --- scalars ------------------------------------------------------------------------------------------------------

    def wrapped(self, number: int, bits: int) -> int:
        """A number as an integer of so many bits."""
        half = 1 << bits - 1
        return (number + half) % (2 * half) - half

    def add(self, a: Part, b: Part, bits: int = 64) -> Part:
        if isinstance(a, int) and isinstance(b, int):
            return self.wrapped(a + b, bits)
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self.code.value(f"add i{bits} {a}, {b}")

    def sub(self, a: Part, b: Part, bits: int = 64) -> Part:
        if isinstance(a, int) and isinstance(b, int):
            return self.wrapped(a - b, bits)
        return a if b == 0 else self.code.value(f"sub i{bits} {a}, {b}")

    def mul(self, a: Part, b: Part, bits: int = 64) -> Part:
        if isinstance(a, int) and isinstance(b, int):
            return self.wrapped(a * b, bits)
        if 0 in (a, b):
            return 0
        if 1 in (a, b):
            return b if a == 1 else a
        return self.code.value(f"mul i{bits} {a}, {b}")

    def wide(self, part: Part, *, signed: bool) -> Part:
        """An integer of 32 bits as one of 64."""
        if isinstance(part, int):
            return part if signed else part % (1 << 32)
        return self.code.value(f"{'sext' if signed else 'zext'} i32 {part} to i64")

    def narrowed(self, part: Part, bits: int) -> Part:
        """An integer of 64 bits as one of so many."""
        if bits == 64:
            return part
        return self.wrapped(part, 32) if isinstance(part, int) else self.code.value(f"trunc i64 {part} to i32")

    def both(self, a: str, b: str) -> str:
        return b if a == "true" else a if b == "true" else self.code.value(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return b if a == "false" else a if b == "false" else self.code.value(f"or i1 {a}, {b}")

    def inverse(self, a: str) -> str:
        return {"true": "false", "false": "true"}.get(a) or self.code.value(f"xor i1 {a}, true")

    def compare(self, relation: str, a: Part, b: Part) -> str:
        """i1: two integers of 64 bits are so."""
        return self.code.value(f"icmp {relation} i64 {a}, {b}")

    def least(self, a: Part, b: Part) -> str:
        return self.code.call("llvm.smin.i64", "i64", [("i64", str(a)), ("i64", str(b))])

    def most(self, a: Part, b: Part) -> str:
        return self.code.call("llvm.smax.i64", "i64", [("i64", str(a)), ("i64", str(b))])

    # --- sums ---------------------------------------------------------------------------------------------------------

    def total(self, a: Linear, b: Linear, *, less: bool = False) -> Linear:
        """The sum, or the difference."""
        what = self.sub if less else self.add
        one, x, y, z = (what(p, q, a.bits) for p, q in zip(a.parts, b.parts, strict=True))
        return Linear(a.bits, (one, x, y, z))

    def product(self, a: Linear, b: Linear) -> Linear:
        """The product of two contents, of which one is the same everywhere."""
        if not b.same:
            a, b = b, a
        if not b.same:
            raise UnknownError
        one, x, y, z = (self.mul(part, b.parts[0], a.bits) for part in a.parts)
        return Linear(a.bits, (one, x, y, z))

    def small(self, form: Linear) -> None:
        """Demand that sums of 64 bits do not wrap where this one is an addend."""
        for part, most in zip(form.parts, (_LARGE, _STEEP, _STEEP, _STEEP), strict=True):
            if isinstance(part, int) and abs(part) >= 1 << most:
                raise UnknownError
            if isinstance(part, str):
                self.demand(self.compare("ult", self.add(part, 1 << most), 2 << most))

    def extremes(self, form: Linear, along: Range | None = None) -> tuple[Part, Part]:
        """The least and the greatest value in the CTA of a sum of 64 bits that does not wrap; along: of some of it."""
        low = high = form.parts[0]
        for axis, part in enumerate(form.parts[1:]):
            if part == 0:
                continue
            if axis == 0 and along is not None:
                ends = [self.mul(part, end) for end in along]
            else:
                ends = [0, self.mul(part, self.edges[axis])]
            if isinstance(part, str):
                ends = [self.least(*ends), self.most(*ends)]
            elif part < 0:
                ends.reverse()
            low, high = self.add(low, ends[0]), self.add(high, ends[1])
        return low, high

    def exact(self, form: Linear, t: str) -> Linear:
        """As a sum of 64 bits that has the value which the content has as a number of a type, in all threads."""
        signed = t in _SIGNED
        if form.bits == 64:
            self.small(form)
            if not signed:
                self.demand(self.compare("sge", self.extremes(form)[0], 0))
            return form
        first = self.wide(form.parts[0], signed=signed)
        x, y, z = (self.wide(part, signed=True) for part in form.parts[1:])
        wide = Linear(64, (first, x, y, z))
        if not form.same:
            low, high = self.extremes(wide)
            least, most = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
            self.demand(self.both(self.compare("sge", low, least), self.compare("sle", high, most)))
        return wide

    # --- comparisons --------------------------------------------------------------------------------------------------

    def test(self, relation: str, a: Linear, b: Linear) -> Pred:
        """A comparison of sums of 64 bits that do not wrap."""
        difference = self.total(a, b, less=True)
        first, x, y, z = difference.parts
        if (x, y, z) in ((1, 0, 0), (-1, 0, 0)):
            bound = self.sub(0, first) if x == 1 else first
            return self.of_range(relation if x == 1 else _MIRRORED[relation], bound)
        low, high = self.extremes(difference)
        return Pred(*self._extent(relation, low, high))

    def _extent(self, relation: str, low: Part, high: Part) -> tuple[str, str]:
        """Whether all numbers between two are so, compared with 0, and whether none is."""
        if relation in ("lt", "gt", "le", "ge"):
            near, far = (high, low) if relation in ("lt", "le") else (low, high)
            return self.compare(f"s{relation}", near, 0), self.compare(f"s{_OPPOSITE[relation]}", far, 0)
        zero = self.both(self.compare("eq", low, 0), self.compare("eq", high, 0))
        none = self.either(self.compare("sgt", low, 0), self.compare("slt", high, 0))
        return (zero, none) if relation == "eq" else (none, zero)

    def of_range(self, relation: str, bound: Part) -> Pred:
        """x compared with a number."""
        if relation == "ne":
            found = self.of_range("eq", bound)
            return Pred(found.nobody, found.every, (relation, bound))
        held = self.range(relation, bound)
        every = self.both(self.compare("eq", held.first, 0), self.compare("eq", held.last, self.edges[0]))
        return Pred(every, self.compare("sgt", held.first, held.last), (relation, bound))

    def range(self, relation: str, bound: Part) -> Range:
        """The places along x that are so, compared with a number; not for "ne"."""
        first: Part = 0
        last: Part = self.edges[0]
        if relation in ("gt", "ge", "eq"):
            first = self.most(self.add(bound, int(relation == "gt")), 0)
        if relation in ("lt", "le", "eq"):
            last = self.least(self.add(bound, -int(relation == "lt")), last)
        return Range(str(first), str(last))

    def where(self, pred: Pred, *, negated: bool) -> Range | None:
        """The places along x where a predicate holds, or does not, if they are in a row."""
        if pred.test is None:
            return None
        relation, bound = pred.test
        relation = _OPPOSITE[relation] if negated else relation
        return None if relation == "ne" else self.range(relation, bound)

    def negation(self, pred: Pred) -> Pred:
        test = None if pred.test is None else (_OPPOSITE[pred.test[0]], pred.test[1])
        return Pred(pred.nobody, pred.every, test, pred.same)

    def common(self, a: Range | None, b: Range | None) -> Range | None:
        """The places in both ranges."""
        if a is None or b is None:
            return b if a is None else a
        return Range(self.most(a.first, b.first), self.least(a.last, b.last))

    # --- instructions -------------------------------------------------------------------------------------------------

    def of_step(self, step: Step, sources: Sequence[Form | None]) -> Form | None:
        """The form of the result of a step that all lanes make, if it follows from those of its sources."""
        if step.kind == "copy":
            return sources[0]
        if step.kind != "alu" or step.detail is not None or None in sources:
            return None
        base, _, rest = step.text.partition(".")
        predicates = [form for form in sources if isinstance(form, Pred)]
        if predicates:
            return self._logic(base, predicates) if len(predicates) == len(sources) else None
        forms = [form for form in sources if isinstance(form, Linear)]
        return self._of_words(base, rest.split("."), step, forms)

    def _logic(self, base: str, predicates: list[Pred]) -> Pred | None:
        if base == "not":
            return self.negation(predicates[0])
        if base in ("and", "or") and len(predicates) == 2:
            a, b = predicates
            first, second = (self.both, self.either) if base == "and" else (self.either, self.both)
            return Pred(first(a.every, b.every), second(a.nobody, b.nobody), same=a.same and b.same)
        return None

    def _of_words(self, base: str, modifiers: list[str], step: Step, forms: list[Linear]) -> Form | None:
        t = modifiers[-1]
        if base == "cvt":
            return self._converted(step, forms[0]) if len(modifiers) == 2 else None
        if base == "setp" and len(modifiers) == 2 and len(forms) == 2 and len(step.targets) == 1:
            relation = _UNSIGNED_TESTS.get(modifiers[0], modifiers[0])
            if relation in _OPPOSITE and t in _SIGNED | _UNSIGNED:
                return self.test(relation, *(self.exact(form, t) for form in forms))
            return None
        if base == "shl" and forms[1].same and isinstance(forms[1].parts[0], int):
            amount = forms[1].parts[0]
            return self.product(forms[0], _number(forms[0].bits, 1 << amount)) if 0 <= amount < 31 else None
        if t not in _SIGNED | _UNSIGNED:
            return None
        if base in ("add", "sub") and len(modifiers) == 1:
            return self.total(*forms, less=base == "sub")
        if base in ("mul", "mad") and len(modifiers) == 2 and modifiers[0] in ("lo", "wide"):
            if modifiers[0] == "wide":
                if not (forms[0].same or forms[1].same):
                    return None
                forms[:2] = [self.exact(form, t) for form in forms[:2]]
            try:
                made = self.product(*forms[:2])
            except UnknownError:
                return None
            return made if base == "mul" else self.total(made, forms[2])
        return None

    def _converted(self, step: Step, form: Linear) -> Linear | None:
        source, target = step.sources[0][2], step.targets[0][2]
        if any(t not in _SIGNED | _UNSIGNED or step_bits != bits_of(t) for t, step_bits in ((source, form.bits),)):
            return None
        if target not in _SIGNED | _UNSIGNED:
            return None
        if bits_of(target) == form.bits:
            return form
        if form.bits == 32:
            return self.exact(form, source)
        one, x, y, z = (self.narrowed(part, 32) for part in form.parts)
        return Linear(32, (one, x, y, z))


def _number(bits: int, value: int) -> Linear:
    return Linear(bits, (value, 0, 0, 0))
