"""Whether operands fit an opcode: number, kind, type, size, vectors (9.2, 9.4, 9.4.1, 6.4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxtools.ir.nodes import Address, Arguments, Element, Immediate, Name, Negated, Operand, Pair, SymbolOffset, Vector
from ptxtools.isa import Opcode, OperandSpec
from ptxtools.isa.targets import parse_version
from ptxtools.isa.types import REGISTER_TYPE, TYPES, accepts

from . import codes
from .opaque import is_handle
from .problems import Problem, Setting, is_array, no_array, same_space, undeclared
from .sums import takes_sum
from .values import CONSTANTS, Scope, Signature, Value
from .vectors import VectorFit, constant_fits

#: Widths of special registers in PTX 1.x and 2.x, which are still allowed for reads (chapter 10).
_ONCE_NARROWER = {**dict.fromkeys(("%tid", "%ntid", "%ctaid", "%nctaid"), (16,)), "%gridid": (16, 32)}
#: Instructions whose scalar result may be discarded, besides forms with `sink`; elsewhere `_` is allowed only in
#: vectors and pairs.
_DISCARDING = frozenset({"atom", "setp", "lop3", "elect"})
#: Instructions on addresses in .shared::cluster that also accept variables.
_OF_CLUSTERS = frozenset({"mapa", "getctarank"})
#: Selectors of video operands (9.7.18), by the kind of the operand's specification.
_SELECTORS = {
    "select": re.compile(r"b[0-3]|h[01]"),
    "select2": re.compile(r"h[0-3]{2}"),
    "select4": re.compile(r"b[0-7]{4}"),
    "mask2": re.compile(r"h[01]|h10"),
    "mask4": re.compile(r"b(?=.)3?2?1?0?"),
}
#: Instructions, beside video, that take numbers for constants, but no address with an offset.
_NO_ADDRESS = frozenset({"clmad", "tcgen05", "wgmma", "createpolicy", "getctarank", "istypep", "mapa", "mbarrier"})
_VIDEO = "9.7.18"
#: Constants that ptxas does not hold to the manual's range: a hazard, no error.
_UNRANGED = frozenset({"lop3"})


def signature(operand: Operand, scope: Scope) -> Signature:
    """The operand reduced to values; every rule of this file treats equal signatures alike."""
    kind = type(operand)
    if kind is Name:
        name = operand.name  # type: ignore[union-attr]
        return scope.values.get(name) or scope.resolve(name)
    if kind is Immediate:
        return CONSTANTS[operand.type]  # type: ignore[union-attr]
    if kind is Address:
        base = operand.base  # type: ignore[union-attr]
        parts = tuple(signature(part, scope) for part in operand.extra)  # type: ignore[union-attr]
        return ("[]" + operand.suffix, signature(base, scope), *parts)  # type: ignore[union-attr]
    if kind is Vector:
        return ("{}", *[signature(item, scope) for item in operand.items])  # type: ignore[union-attr]
    return _rare_signature(operand, scope)


def _rare_signature(operand: Operand, scope: Scope) -> Signature:
    if isinstance(operand, Negated):
        return ("!", signature(operand.operand, scope))
    if isinstance(operand, Pair):
        return ("|", signature(operand.first, scope), signature(operand.second, scope))
    if isinstance(operand, SymbolOffset):
        return ("+", scope.resolve(operand.name))
    if isinstance(operand, Element):
        return _element(operand, scope)
    assert isinstance(operand, Arguments)
    return ("()", *[signature(item, scope) for item in operand.items])


def _element(operand: Element, scope: Scope) -> Signature:
    return ("[n]", scope.resolve(operand.name), is_array(operand, scope))


def examine(op: Opcode, operands: Sequence[Operand], scope: Scope, setting: Setting) -> list[Problem]:
    """What is wrong with the operands of `op`: nothing, or the complaints about the operand list that fits best."""
    _, best = best_fit(op, operands, scope, setting)
    if len(best) > 1 and best[0].code in (codes.OPERAND_KIND, codes.ADDRESS_FORM):
        from .exchanged import exchanged

        pair = exchanged(operands, (p.operand for p in best), lambda swap: not best_fit(op, swap, scope, setting)[1])
        if pair is not None:
            message = f"operands {pair[0] + 1} and {pair[1] + 1} of '{op.text}' are swapped"
            return [Problem(best[0].code, message, pair[0])]
    return _causes(best)


def best_fit(
    op: Opcode, operands: Sequence[Operand], scope: Scope, setting: Setting
) -> tuple[tuple[OperandSpec, ...], list[Problem]]:
    """The operand list of `op` that fits best, and what is wrong with it."""
    best: tuple[tuple[OperandSpec, ...], list[Problem]] = (op.operands, [])
    for specs in op.shapes:
        problems = _match(op, specs, operands, scope, setting)
        if not problems:
            return specs, []
        if not best[1] or _badness(problems) < _badness(best[1]):
            best = specs, problems
    return best


def _causes(problems: list[Problem]) -> list[Problem]:
    """One problem for each cause: the first of each code."""
    first: dict[str, Problem] = {}
    for problem in problems:
        key = problem.code + problem.name
        if problem.code == codes.OPERAND_KIND and codes.ADDRESS_FORM in first:
            continue
        first.setdefault(key, problem)
    return list(first.values())


#: A measure of the mismatch of an operand list: a wrong shape is worse than a wrong type.
_WEIGHT = {codes.OPERAND_COUNT: 100, codes.OPERAND_KIND: 10, codes.ADDRESS_FORM: 6, codes.VECTOR_LENGTH: 5}


def _badness(problems: list[Problem]) -> int:
    return sum(_WEIGHT.get(problem.code, 1) for problem in problems)


def _match(
    op: Opcode, specs: tuple[OperandSpec, ...], operands: Sequence[Operand], scope: Scope, setting: Setting
) -> list[Problem]:
    needed = sum(not spec.optional for spec in specs)
    if not needed <= len(operands) <= len(specs):
        return [_count_problem(op, specs, needed, operands)]
    problems: list[Problem] = []
    for index, (spec, operand) in enumerate(zip(specs, operands, strict=False)):
        fit = _Fit(op, spec, index, scope, setting)
        problems.extend(fit.check(operand))
    return problems


def _count_problem(op: Opcode, specs: tuple[OperandSpec, ...], needed: int, operands: Sequence[Operand]) -> Problem:
    wanted = str(needed) if needed == len(specs) else f"{needed} to {len(specs)}"
    plural = "" if wanted == "1" else "s"
    names = ", ".join(spec.name for spec in specs)
    place = len(specs) if len(operands) > len(specs) else -1
    message = f"'{op.text}' takes {wanted} operand{plural}, found {len(operands)}"
    return Problem(codes.OPERAND_COUNT, message, place, help=(f"operands: {names}",) if names else ())


class _Fit(VectorFit):
    """Checks one operand against one specification."""

    __slots__ = ()

    def check(self, operand: Operand) -> Iterator[Problem]:
        role = self.spec.role
        if isinstance(operand, Name) and (unknown := self._undeclared(operand)) is not None:
            yield unknown
        elif role == "addr":
            from .addresses import check_address

            yield from check_address(self.op, self.spec, self.index, operand, self.scope, self.setting)
        elif role in ("label", "args"):
            yield from self._control(operand)
        elif isinstance(operand, Vector):
            yield from self._vector(operand)
        elif isinstance(operand, Pair):
            yield from self._pair(operand)
        elif isinstance(operand, Negated):
            yield from self._negated(operand)
        elif self.spec.second is not None and not self.spec.second.optional:
            message = f"'{self.op.text}' has two results: write '{self.spec.name}|{self.spec.second.name}'"
            yield self._problem(codes.OPERAND_KIND, message)
        else:
            yield from self._scalar(operand, self.spec, None)

    # --- shapes -------------------------------------------------------------------------------------------------------

    def _control(self, operand: Operand) -> Iterator[Problem]:
        if self.spec.role == "args":
            if not isinstance(operand, Arguments):
                yield self._problem(codes.OPERAND_KIND, f"{self._what(operand)} is not a list of arguments")
            return
        wanted, what = ("targets", "a .branchtargets list") if self.op.family == "brx" else ("label", "a label")
        found = self.scope.resolve(operand.name) if isinstance(operand, Name) else None
        if found is None or found.kind != wanted:
            message = f"'{self.op.text}' requires {what}; {self._what(operand)}"
            yield self._problem(codes.BRANCH_TARGET, message)

    def _pair(self, operand: Pair) -> Iterator[Problem]:
        spec = self.spec
        if spec.second is None:
            yield self._problem(codes.OPERAND_KIND, f"'{self.op.text}' has one result in this form, found two")
            return
        for part, half, wanted in ((0, operand.first, spec), (1, operand.second, spec.second)):
            if isinstance(half, Name) and (unknown := self._undeclared(half, part)) is not None:
                yield unknown
            elif part == 0 and isinstance(half, Vector):  # `{r, g, b, a}|p` of texture fetches (9.7.10.3)
                for problem in self._vector(half):
                    inside = (problem.part,) if isinstance(problem.part, int) else ()
                    yield problem._replace(part=(part, *inside))
            else:
                yield from self._scalar(half, wanted, None if part == 0 and spec.vector else part)

    def _negated(self, operand: Negated) -> Iterator[Problem]:
        inner = operand.operand
        wanted = "negatable" if operand.operator == "!" else "minus"
        if wanted not in self.spec.kinds and not (self.spec.type == "pred" and self.spec.role == "src"):
            message = f"operand '{self.spec.name}' of '{self.op.text}' cannot be negated"
            yield self._problem(codes.NEGATION, message)
        elif (operand.operator == "!") != (self.spec.type == "pred"):
            what = "'!' negates predicates" if operand.operator == "!" else "'-' negates numbers"
            yield self._problem(codes.NEGATION, f"{what}; operand '{self.spec.name}' is .{self.spec.type}")
        elif isinstance(inner, Name) and (unknown := self._undeclared(inner)) is not None:
            yield unknown
        else:
            yield from self._scalar(inner, self.spec, None)

    # --- scalars ------------------------------------------------------------------------------------------------------

    def _scalar(self, operand: Operand, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        if isinstance(operand, Immediate):
            yield from self._constant(operand, spec, part)
        elif isinstance(operand, Name):
            yield from self._name(operand, spec, part)
        elif isinstance(operand, Element) and not is_array(operand, self.scope):
            yield no_array(operand, self.index, part)
        elif isinstance(operand, SymbolOffset) and self._is_constant(operand, spec):
            return
        elif isinstance(operand, SymbolOffset) and takes_sum(
            self.op, spec, self.scope.resolve(operand.name), self.setting
        ):
            message = f"'{operand.name}' and a constant are added in the operand '{spec.name}'"
            yield self._problem(codes.TOLERATED, message, part, ("add them by an instruction before",), "6.2")
        elif isinstance(operand, (SymbolOffset, Element)):
            yield from self._symbol(self.scope.resolve(operand.name), operand, spec, part)
        else:
            yield self._problem(codes.OPERAND_KIND, self._not_allowed(operand, spec), part)

    def _is_constant(self, operand: SymbolOffset, spec: OperandSpec) -> bool:
        """Whether the address with its offset stands where an integer constant may; ptxas takes it for one."""
        found, info = self.scope.resolve(operand.name), TYPES.get(spec.type or "")
        if self.op.family in _NO_ADDRESS or self.op.name == "red.async" or self.op.section.startswith(_VIDEO):
            return False
        return (
            {"imm", "reg"} <= spec.kinds and spec.role == "src" and not spec.vector and spec.name != "cache_policy"
            and found.kind == "memory" and found.space != "param" and not is_handle(Name(operand.name), found)
            and (self.op.family != "cvta" or self._right_space(found, spec))
            and info is not None and info.kind in ("int", "bits") and info.bits in (32, 64)
        )  # fmt: skip

    def _constant(self, operand: Immediate, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        if spec.role == "dst":
            yield self._problem(codes.OPERAND_KIND, "a constant cannot be a destination", part)
        elif "imm" not in spec.kinds:
            yield self._problem(codes.OPERAND_KIND, self._not_allowed(operand, spec), part)
        elif spec.vector and part is None:
            message = f"operand '{spec.name}' of '{self.op.text}' is a vector of {spec.vector}, found a constant"
            yield self._problem(codes.VECTOR_LENGTH, message)
        elif not constant_fits(operand.type, spec.type):
            yield self._problem(codes.CONSTANT_KIND, self._constant_message(operand, spec), part)
        elif self.op.family not in _UNRANGED:
            yield from self._bounds(operand, spec, part)

    def _bounds(self, operand: Immediate, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        wanted = ""
        if spec.type is None and operand.type in ("f32", "f64"):  # an element of another kind is the problem
            return
        value = operand.value
        if spec.type is not None and self._low_only(spec):
            value &= (1 << TYPES[spec.type].bits) - 1
        if spec.choices and value not in spec.choices:
            values = [str(value) for value in spec.choices]
            wanted = f"{', '.join(values[:-1])} or {values[-1]}" if len(values) > 1 else values[0]
        elif spec.range is not None and not spec.range[0] <= value <= spec.range[1]:
            low, high = spec.range
            wanted = str(low) if low == high else f"{low} to {high}"
        elif value % spec.multiple:
            wanted = f"a multiple of {spec.multiple}"
        if wanted:
            message = f"operand '{spec.name}' of '{self.op.text}' is {operand.value}; it must be {wanted}"
            yield self._problem(codes.CONSTANT_RANGE, message, part)

    def _low_only(self, spec: OperandSpec) -> bool:
        """Whether only the bits that its type holds count of a constant."""
        low = next((kind for kind in spec.kinds if kind.startswith("low")), "")
        _, dated, until = low.partition("<")
        return bool(low) and (not dated or self.setting.version < parse_version(until))

    def _constant_message(self, operand: Immediate, spec: OperandSpec) -> str:
        what = "an integer" if operand.type in ("s64", "u64") else "a floating-point"
        kind = TYPES[spec.type].kind if spec.type else ""
        message = f"{what} constant cannot be a .{spec.type} operand"
        if kind == "float" and spec.type in ("f32", "f64") and what == "an integer":
            return f"{message}: write it as a floating-point constant"
        if kind == "bits" and operand.type == "f64":
            return f"{message}: write its bits as a hexadecimal number, or as 0f… for 32 bits"
        return message

    def _name(self, operand: Name, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        found = self.scope.resolve(operand.name)
        if found.kind == "sink":
            if spec.role != "dst":
                yield self._problem(codes.SINK, "'_' discards a result: it is no source", part)
            elif not self._discards(spec, part) and not (part == 1 and "sink" in spec.kinds):
                yield self._problem(
                    codes.SINK, f"the result '{spec.name}' of '{self.op.text}' cannot be discarded", part
                )
        elif found.kind == "sreg":
            yield from self._special(operand, found, spec, part)
        elif found.kind == "reg":
            yield from self._register(operand, found, spec, part)
        elif found.kind == "int":  # WARP_SZ
            if "imm" not in spec.kinds or spec.role == "dst" or (spec.vector and part is None):
                yield self._problem(codes.OPERAND_KIND, self._not_allowed(operand, spec), part)
        else:
            yield from self._symbol(found, operand, spec, part)

    def _discards(self, spec: OperandSpec, part: int | None) -> bool:
        if self.op.family == "elect" and part == 1:  # what it elects is its predicate
            return False
        return self.op.family in _DISCARDING or ("sink" in spec.kinds and not spec.vector)

    def _register(self, operand: Name, found: Value, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        if "reg" not in spec.kinds:
            yield self._problem(codes.OPERAND_KIND, self._not_allowed(operand, spec), part)
        elif found.vector and part is None and "vec" in spec.kinds and not spec.vector:
            yield from self._packed_register(operand, found)
        elif found.vector and "listed" in spec.kinds:
            message = f"'{self.op.text}' takes the elements of '{spec.name}' in braces; {self._what(operand)}"
            yield self._problem(codes.OPERAND_KIND, message, part, section="6.4.3")
        elif found.vector and part is None and not self._long_enough(found, spec):
            wanted = f"a vector of {spec.vector}" if spec.vector else "a scalar"
            message = f"operand '{spec.name}' of '{self.op.text}' is {wanted}; {self._what(operand)}"
            yield self._problem(codes.VECTOR_LENGTH, message, part)
        elif not found.vector and spec.vector and part is None and not ("many" in spec.kinds and spec.vector == 1):
            message = f"operand '{spec.name}' of '{self.op.text}' is a vector of {spec.vector}; {self._what(operand)}"
            yield self._problem(codes.VECTOR_LENGTH, message, part, ("write it in braces: {…}",))
        elif found.role and not any(
            pattern.fullmatch(found.role) for kind, pattern in _SELECTORS.items() if kind in spec.kinds
        ):
            message = f"'.{found.role}' selects no part of operand '{spec.name}' of '{self.op.text}'"
            yield self._problem(codes.BAD_COMPONENT, message, part, section="9.7.18")
        elif spec.type is None and self.op.family == "isspacep" and not _holds_address(found):
            yield self._problem(codes.OPERAND_TYPE, f"{self._what(operand)}: it cannot hold an address", part)
        elif spec.type is not None and not accepts(spec.type, found.type, spec.width):
            yield self._mismatch(operand, found, spec, part)

    def _long_enough(self, found: Value, spec: OperandSpec) -> bool:
        return found.vector >= spec.vector if "many" in spec.kinds else found.vector == spec.vector

    def _packed_register(self, operand: Name, found: Value) -> Iterator[Problem]:
        wanted = TYPES[self.spec.type].bits if self.spec.type else 0
        if TYPES[found.type].bits * found.vector != wanted:
            message = f"{self._what(operand)}; '{self.op.text}' requires {wanted} bits"
            yield self._problem(codes.VECTOR_LENGTH, message)

    def _mismatch(self, operand: Operand, found: Value, spec: OperandSpec, part: int | None) -> Problem:
        assert spec.type is not None
        want = TYPES[REGISTER_TYPE.get(spec.type, spec.type)]
        have = TYPES[found.type]
        code = codes.OPERAND_TYPE
        if want.kind != "pred" != have.kind and (
            have.bits < want.bits or (have.bits > want.bits and spec.width != "wider")
        ):
            code = codes.OPERAND_SIZE
        wanted = f".{spec.type}" if spec.type == want.name else f".{want.name} (for .{spec.type})"
        wider = " or wider" if spec.width == "wider" and want.kind != "float" else ""
        message = f"{self._what(operand)}; '{self.op.text}' requires {wanted}{wider} as '{spec.name}'"
        return self._problem(code, message, part, section="9.4.1" if spec.width == "wider" else "9.4")

    def _special(self, operand: Name, found: Value, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        if spec.role == "dst":
            yield self._problem(codes.SPECIAL_REGISTER, f"special register '{operand.name}' is read-only", part)
        elif "sreg" not in spec.kinds or any(TYPES[t].kind == "float" for t in self.op.types):
            message = f"special register '{operand.name}' cannot be an operand of '{self.op.text}'"
            help = ("copy it into a register with mov first",)
            yield self._problem(codes.SPECIAL_REGISTER, message, part, help, "10")
        elif found.vector != (0 if part is not None else spec.vector) and not (found.vector and self._fills(found)):
            message = f"'{operand.name}' has {found.vector or 1} components, operand '{spec.name}' {spec.vector or 1}"
            yield self._problem(
                codes.VECTOR_LENGTH, message, part, (f"such as {operand.name}.x",) if found.vector else ()
            )
        elif not _special_fits(spec, found.type, operand.name):
            message = f"'{operand.name}' is .{found.type}; '{self.op.text}' reads .{spec.type}"
            yield self._problem(codes.OPERAND_TYPE, message, part)

    def _fills(self, found: Value) -> bool:
        """Whether the components of a special register fill an untyped register, as packed by mov."""
        spec = self.spec
        return "vec" in spec.kinds and spec.type is not None and TYPES[spec.type].bits == 32 * found.vector

    def _symbol(self, found: Value, operand: Operand, spec: OperandSpec, part: int | None) -> Iterator[Problem]:
        name = getattr(operand, "name", "")
        if found.kind == "unknown":
            yield undeclared(name, self.scope, self.index, part)
        elif found.kind == "function" and isinstance(operand, SymbolOffset):
            yield self._problem(codes.OPERAND_KIND, f"'{name}' is a function: it takes no offset", part)
        elif found.space == "param" and found.role == "local" and self.op.family == "mov":
            message = f"'{name}' is a .param variable of a function body: its address cannot be taken"
            yield self._problem(codes.PARAMETER_ACCESS, message, part, (), "7.1")
        elif found.kind not in ("memory", "function") or "symbol" not in spec.kinds:
            code = codes.OPERAND_KIND if found.kind == "memory" else codes.WRONG_KIND_OF_NAME
            help = (
                ("load it with ld, or take its address with mov",)
                if found.kind == "memory" and spec.role == "src"
                else ()
            )
            yield self._problem(code, self._not_allowed(operand, spec), part, help)
        elif is_handle(operand, found) and self.op.family == "mov" and spec.type != "u64":
            message = f"the address of a .{found.type} is a .u64; '{self.op.text}' takes another type"
            yield self._problem(codes.OPERAND_TYPE, message, part, ("write mov.u64",), "9.7.10.3")
        elif spec.type is not None and (TYPES[spec.type].kind not in ("int", "bits") or TYPES[spec.type].bits < 32):
            message = f"{self._what(operand)}, whose address is an integer; '{self.op.text}' requires .{spec.type}"
            yield self._problem(codes.OPERAND_TYPE, message, part)
        elif not self._right_space(found, spec):
            message = f"'{name}' is in .{found.space}; '{self.op.text}' requires an address in .{self.op.space}"
            yield self._problem(codes.ADDRESS_SPACE, message, part)

    def _right_space(self, found: Value, spec: OperandSpec) -> bool:
        space = self.op.space if self.op.family == "cvta" else spec.space
        if self.op.family in _OF_CLUSTERS:
            space = "shared"
        return space is None or found.kind != "memory" or same_space(space, found.space)

    # --- words --------------------------------------------------------------------------------------------------------

    def _not_allowed(self, operand: Operand, spec: OperandSpec) -> str:
        return f"{self._what(operand)}; '{self.op.text}' takes {_allowed(spec)} as '{spec.name}'"


def examine_parts(
    op: Opcode, spec: OperandSpec, index: int, part: int, operand: Operand, scope: Scope, setting: Setting
) -> Iterator[Problem]:
    """Problems of a further part inside the brackets of an address; `part` counts from the base, which is 0."""
    for problem in _Fit(op, spec, index, scope, setting).check(operand):
        yield problem._replace(part=part)


def _allowed(spec: OperandSpec) -> str:
    words = {"reg": "a register", "imm": "a constant", "sreg": "a special register", "symbol": "an address",
             "vec": "a vector"}  # fmt: skip
    kinds = [words[kind] for kind in words if kind in spec.kinds]
    return " or ".join(kinds) or "something else"


def _holds_address(found: Value) -> bool:
    info = TYPES[found.type]
    return info.kind in ("int", "bits") and info.bits in (32, 64)


def _special_fits(spec: OperandSpec, have: str, name: str) -> bool:
    wanted = spec.type
    if wanted is None:
        return True
    if TYPES[wanted].kind == "float":
        return False
    if accepts(wanted, have, spec.width):
        return True
    return TYPES[wanted].bits in _ONCE_NARROWER.get(name.partition(".")[0], ())
