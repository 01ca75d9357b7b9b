"""The statements of a function body, in source order. Verdicts are kept by opcode and operand values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ptxtools.diagnostics import Diagnostic, Fix, Span
from ptxtools.ir.alike import Faultless
from ptxtools.ir.nodes import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    Function,
    Immediate,
    Instruction,
    Label,
    Loc,
    Name,
    Pragma,
    Statement,
    Variable,
    Vector,
)
from ptxtools.ir.nodes import (
    Scope as ScopeNode,
)
from ptxtools.ir.positions import name_span, part_span, parts_of, word_of_opcode
from ptxtools.ir.references import operand_names
from ptxtools.isa import Need, Opcode, OpcodeError, resolve, slack
from ptxtools.isa.errors import MISSING_MODIFIER
from ptxtools.isa.index import CHAPTERS
from ptxtools.isa.targets import version_text

from . import codes
from .availability import is_gone
from .context import NARROW, NO_NARROW, Context
from .debugging import Debugging
from .declarations import BANK, check_variable, refuse_banks, same_declarator
from .edits import rewritten
from .operands import examine, signature
from .particular import particular
from .problems import Problem, describe, names_of, undeclared
from .refused import check_scope
from .values import CONSTANTS, Scope
from .written import required

if TYPE_CHECKING:
    from ptxtools.isa.lenient import Slack

#: The verdict on an opcode with given operand values: valid, invalid, or each instance must be checked.
_GOOD, _BAD, _EACH = 1, 2, 3
#: A word, and an instruction on the line below.
_LABEL_LINE = re.compile(r"[\w$%]+[ \t\r]*(//[^\n]*)?\n", re.ASCII)


#: Statements that are also directives.
_LISTS: dict[type, str] = {
    BranchTargets: ".branchtargets",
    CallTargets: ".calltargets",
    CallPrototype: ".callprototype",
}


#: Kernels that this process has found to be valid.
_faultless = Faultless()
#: Verdicts by what else they depend on, and how many may be remembered.
_verdicts: dict[tuple[object, ...], dict[tuple[object, ...], int]] = {}
_MOST_VERDICTS, _MOST_SETTINGS = 1 << 16, 64


def _verdicts_of(context: Context) -> dict[tuple[object, ...], int]:
    """The verdicts on instructions in modules with the same declarations, by opcode and operand values."""
    if context.gathered is not None:
        return {}
    setting = (*context.declared, *context.setting)
    found = _verdicts.get(setting)
    if found is None or len(found) > _MOST_VERDICTS:
        if len(_verdicts) >= _MOST_SETTINGS:
            _verdicts.clear()
        found = _verdicts[setting] = {}
    return found


class BodyChecker:
    """Checks function bodies of one module."""

    def __init__(
        self,
        context: Context,
        kinds: Mapping[int, int],
        area: Span | None = None,
        independent: Callable[[Function], tuple[str, ...]] | None = None,
    ) -> None:
        """kinds: functions that are alike (`ir.alike`). area: where instructions begin that are looked at, of all.
        independent: as of `check`."""
        self.context, self._area = context, area
        self._kinds = kinds if context.gathered is None else {}
        self._independent = independent if context.gathered is None and area is None else None
        #: The kinds of functions of which one was checked, and had no finding.
        self._clean: set[int] = set()
        #: Whether functions may have mixed values of .cta_group.
        self._groups = not context.text or "cta_group::2" in context.text
        self._cta_memory = not context.text or "%perctamemory" in context.text
        self._located = not context.text or ".loc" in context.text
        self._verdicts = _verdicts_of(context)
        self._sound: set[tuple[object, ...]] = set()
        self._last: Variable | None = None
        #: Of the statements: "kernel" in the body of an entry.
        self._place = "statement"
        self.debugging = Debugging(context)

    def known(self, function: Function) -> bool:
        """Whether a function like this one was checked, in this module or in another one with the same headers, and had
        no finding."""
        kind = self._kinds.get(id(function))
        if kind is not None and kind in self._clean:
            return True
        key = self._key(function)
        return key is not None and key in _faultless

    def passed(self, function: Function) -> None:
        """This function has no finding."""
        kind, key = self._kinds.get(id(function)), self._key(function)
        if kind is not None:
            self._clean.add(kind)
        if key is not None:
            _faultless.add(key)

    def _key(self, function: Function) -> tuple[object, ...] | None:
        """All that findings about a function depend on, if that is known."""
        text = () if self._independent is None else self._independent(function)
        return (self.context.declared, self.context.setting, *text) if text else None

    def locations(self, body: ScopeNode) -> None:
        """Look at the source locations alone, of a body that is known to be valid: they are the module's."""
        waiting = [iter(body.items)] if self._located else []
        while waiting:
            for item in waiting[-1]:
                if type(item) is Loc:
                    self.debugging.location(item)
                elif type(item) is ScopeNode:
                    waiting.append(iter(item.items))
                    break
            else:
                waiting.pop()

    def check(self, function: Function, names: Scope) -> None:
        """All statements of the body; `names` holds the parameters."""
        assert function.body is not None
        self.context.undeclared.clear()
        self._whole(function, function.body, names)

    def _whole(self, function: Function, body: ScopeNode, names: Scope) -> None:
        self._place = "kernel" if function.kind == "entry" else "statement"
        self._open(body, names)
        waiting: list[tuple[Iterator[Statement], Scope]] = [(self._items(body), names)]
        while waiting:
            items, scope = waiting[-1]
            nested = self._run(items, scope)
            if nested is None:
                waiting.pop()
                continue
            inner = Scope(scope)
            self._open(nested, inner)
            waiting.append((self._items(nested), inner))
        if self._groups:
            from .groups import check_groups

            check_groups(self.context, function)
        if self._cta_memory and function.kind == "entry":
            from .ctamemory import check_cta_memory

            check_cta_memory(self.context, function)

    def _items(self, body: ScopeNode) -> Iterator[Statement]:
        """The statements to look at."""
        if self._area is None:
            return iter(body.items)
        start, end = self._area
        return iter([item for item in body.items if type(item) is not Instruction or start <= item.span[0] < end])

    def _open(self, body: ScopeNode, names: Scope) -> None:
        """Labels are visible in their whole scope; everything else from its declaration on."""
        for item in body.items:
            if type(item) is Label:
                self._declare(item.name, item, names, item.span)

    def _run(self, items: Iterator[Statement], scope: Scope) -> ScopeNode | None:
        """Check statements up to a nested scope, which is returned; None at the end."""
        verdicts, resolved, resolve_name = self._verdicts, scope.values, scope.resolve
        location = self.debugging.location
        for item in items:
            if type(item) is not Instruction:
                if type(item) is Loc:
                    location(item)
                    continue
                if type(item) is ScopeNode:
                    return item
                self._other(item, scope)
                resolved = scope.values
                continue
            key: list[object] = [item.opcode]
            for operand in item.operands:
                kind = type(operand)
                if kind is Name:
                    name = operand.name  # type: ignore[union-attr]
                    key.append(resolved.get(name) or resolve_name(name))
                elif kind is Immediate:
                    key.append(CONSTANTS[operand.type])  # type: ignore[union-attr]
                else:
                    key.append(signature(operand, scope))
            if item.guard is not None:
                key.append("@")
                key.append(resolved.get(item.guard.name) or resolve_name(item.guard.name))
            known = tuple(key)
            verdict = verdicts.get(known)
            if verdict is not _GOOD:
                if verdict is None:
                    verdicts[known] = self._first(item, scope)
                elif verdict == _BAD or self.context.gathered is not None or item.opcode.startswith("call"):
                    self._instruction(item, scope)
                else:
                    self._same(item, scope, known)
        return None

    def _same(self, item: Instruction, scope: Scope, known: tuple[object, ...]) -> None:
        """Check an instruction whose numbers or names matter, unless one with the same operands had no finding: equal
        operands of a module are one node."""
        key = (known, *map(id, item.operands))
        if key not in self._sound:
            before = self.context.reports
            self._instruction(item, scope)
            if self.context.reports == before:
                self._sound.add(key)

    def _first(self, item: Instruction, scope: Scope) -> int:
        """Check an instruction of a new kind; returns the verdict for later ones."""
        context = self.context
        before = context.reports, context.gathered and len(context.gathered)
        each = self._instruction(item, scope)
        if context.reports != before[0]:
            return _BAD
        each = each or before[1] != (context.gathered and len(context.gathered))
        return _EACH if each else _GOOD

    # --- one instruction ----------------------------------------------------------------------------------------------

    def _instruction(self, item: Instruction, scope: Scope) -> bool:
        """Check one instruction; returns whether others with the same values must be checked, too."""
        context, known = self.context, len(self.context.diagnostics)
        try:
            return self._judge(item, scope)
        finally:
            if len(context.diagnostics) > known and "\n" in context.text[slice(*item.span)]:
                _from_first_line(context.diagnostics[known:], item.span)

    def _judge(self, item: Instruction, scope: Scope) -> bool:
        context = self.context
        if item.guard is not None:
            self._guard(item, scope)
        try:
            op = resolve(item.opcode)
        except OpcodeError as error:
            span = word_of_opcode(item, error.word)
            if item.operands and _LABEL_LINE.match(context.text, *item.span):
                context.report_label(item.opcode, span)
            else:
                context.report(error.code, error.message, span, help=error.help, section=error.section)
            return True
        if found := slack(item.opcode):
            self._overlooked(item, op, found)
        if "const[" in item.opcode:
            span = parts_of(item).opcode
            if refuse_banks(context, span) and "const[0]" not in item.opcode:
                context.require_addition(BANK, span)
        if op.family == "call":
            from .calls import check_call

            check_call(context, item, op, scope)
            self._requirements(item, op, scope)
            return True
        for problem in self._problems(item, op, scope):
            self._report(item, op, problem)
        if op.name == "st.async":
            check_scope(context, op, parts_of(item).opcode)
        self._requirements(item, op, scope)
        by_name = "spfactor" in op.mods  # its results must be in different registers
        return by_name or any(spec.range or spec.choices or spec.multiple > 1 for shape in op.shapes for spec in shape)

    def _overlooked(self, item: Instruction, op: Opcode, found: Slack) -> None:
        """A modifier too much, or one missing, that ptxas does not mind, or no longer at this version."""
        span, help = word_of_opcode(item, found.word), (f"write '{op.text}'",)
        fix = rewritten(self.context.text, item, op.text)
        if not self.context.require(f"'{found.word}'", (Need((), found.since, found.targets),), span, op.section):
            return
        if self.context.declared.version <= found.until:
            self.context.tolerate(found.message, span, section=op.section, help=help, fix=fix)
        else:
            message = f"{found.message} up to PTX {version_text(found.until)}"
            self.context.report(MISSING_MODIFIER, message, span, section=op.section, help=help, fix=fix)

    def _problems(self, item: Instruction, op: Opcode, scope: Scope) -> list[Problem]:
        """The problems of the operands. When collecting requirements, 32-bit addresses count as one (6.4.1)."""
        context = self.context
        wide = context.setting if context.gathered is None else context.setting._replace(wide_only=True, long=True)
        problems = examine(op, item.operands, scope, wide)
        if all(problem.code == codes.TOLERATED for problem in problems):
            problems += particular(op, item.operands, wide, scope)
        if not problems or context.gathered is None:
            return problems
        narrow = wide._replace(wide_only=False, long=False)
        if examine(op, item.operands, scope, narrow) or list(particular(op, item.operands, narrow, scope)):
            return problems
        for gone in (NARROW, NO_NARROW):
            context.refuse_removed("a 32-bit address", gone, item.span, section="6.4.1")
        return []

    def _guard(self, item: Instruction, scope: Scope) -> None:
        guard = item.guard
        assert guard is not None
        found = scope.resolve(guard.name)
        if found.kind == "unknown":
            problem = undeclared(guard.name, scope, -1)
            self.context.report(
                problem.code,
                problem.message,
                self._guard_span(item),
                help=problem.help,
                section="4.4",
                subjects=(problem.name,),
                past_range=problem.past_range,
            )
        elif found.type != "pred" or found.vector or found.kind not in ("reg", "sreg"):
            message = f"a guard must be a .pred register; {describe(Name(guard.name), scope)}"
            self.context.report(codes.GUARD, message, self._guard_span(item), section="9.3", subjects=(guard.name,))

    def _guard_span(self, item: Instruction) -> Span:
        return parts_of(item).guard or item.span

    def _report(self, item: Instruction, op: Opcode, problem: Problem) -> None:
        span = self.problem_span(item, problem)
        section, help, fix = problem.section or op.section, problem.help, self._fix(item, op, problem, span)
        if problem.code == codes.OPERAND_COUNT and (line := self._line_without_end(item)):
            help = (*help, f"is a ';' missing at the end of line {line}?")
        if problem.code == codes.TOLERATED:
            self.context.tolerate(problem.message, span, section=section, help=help, fix=fix)
            return
        subjects = (problem.name,) if problem.name else names_of(item, problem.operand)
        self.context.report(
            problem.code,
            problem.message,
            span,
            help=help,
            section=section,
            subjects=subjects,
            past_range=problem.past_range,
            fix=fix,
        )

    def _fix(self, item: Instruction, op: Opcode, problem: Problem, span: Span) -> Fix | None:
        if problem.better:
            return Fix(span, problem.better, f"write {problem.better}")
        if problem.space and op.space:
            return rewritten(self.context.text, item, op.text.replace(f".{op.space}", f".{problem.space}", 1))
        return None

    def _line_without_end(self, item: Instruction) -> int:
        """The line before an instruction that was read as an operand; 0 without one."""
        line_of = self.context.source.line_of
        for operand, span in zip(item.operands, parts_of(item).operands, strict=False):
            if isinstance(operand, Name) and operand.name.partition(".")[0] in CHAPTERS:
                return line_of(span[0]) - 1 if line_of(span[0]) > line_of(item.span[0]) else 0
        return 0

    def problem_span(self, item: Instruction, problem: Problem) -> Span:
        """The text that a problem is about: an operand, a part of it, or the opcode."""
        if problem.name:
            return name_span(item, problem.name, problem.operand)
        return part_span(item, problem.operand, problem.part)

    # --- version and target -------------------------------------------------------------------------------------------

    def _requirements(self, item: Instruction, op: Opcode, scope: Scope) -> None:
        context = self.context
        needs = list(op.requirements)
        if op.operand_requirements:
            needs += required(op, item.operands, scope, context.setting)
        gathering = context.gathered is not None
        lacking = [need for need in needs if gathering or _fails(need, context)]
        if lacking:
            atoms = next((need.atoms for need in lacking if need.atoms), ())
            span = word_of_opcode(item, atoms[0] if atoms else "")
            subject = f"'{''.join(atoms)}' in '{op.name}'" if atoms else f"'{op.name}'"
            if gathering or not self._is_early(item, op, lacking, subject, span):
                context.require(subject, tuple(needs), span, op.section)
        for need in op.removals:
            if gathering or is_gone(need, *context.declared[:2]):
                context.refuse_removed(f"'{op.name}'", need, parts_of(item).opcode, section=op.section)
        for name in _special_names(item, scope):
            self._special(item, name)

    def _is_early(self, item: Instruction, op: Opcode, lacking: Sequence[Need], subject: str, span: Span) -> bool:
        """Whether ptxas has the instruction for this version and target, if the manual has not: tolerated."""
        from ptxtools.isa.lenient import EARLY_OPERANDS, earlier

        if all(need.kind in EARLY_OPERANDS for need in lacking):
            message = f"'.{lacking[0].kind}' behind an address ({self.context.declared})"
            self.context.tolerate(message, span, section=op.section)
            return True
        found = earlier(op.text, len(item.operands))
        if all(_fails(Need((), row.ptx, row.targets), self.context) for row in found):
            return False
        self.context.tolerate(f"{subject} ({self.context.declared})", span, section=op.section)
        return True

    def _special(self, item: Instruction, name: str) -> None:
        from ptxtools.isa import registers

        found = registers.lookup(name)
        if found is not None:
            span = name_span(item, name)
            register = found.register
            needs = (Need((), register.ptx, (register.target,)),)
            if self.context.gathered is None and _fails(needs[0], self.context):
                from ptxtools.isa.lenient import EARLY_REGISTERS

                if EARLY_REGISTERS.fullmatch(name):
                    message = f"'{name}' ({self.context.declared})"
                    self.context.tolerate(message, span, section=register.section)
                    return
            self.context.require(f"special register '{name}'", needs, span, register.section)

    # --- other statements ---------------------------------------------------------------------------------------------

    def _other(self, item: Statement, scope: Scope) -> None:
        name = _LISTS.get(type(item))
        if name is not None:
            self.context.require_directive(name, self.context.word(item.span, name))
        if isinstance(item, Variable):
            if not same_declarator(self._last, item):
                check_variable(self.context, item, scope, in_function=True)
            self._last = item
            self._declare(item.name, item, scope, item.name_span)
        elif isinstance(item, BranchTargets):
            self._branch_targets(item, scope)
        elif isinstance(item, CallTargets):
            self._call_targets(item, scope)
        elif isinstance(item, CallPrototype):
            from .directives import check_directives
            from .functions import check_parameters

            check_parameters(self.context, item.params, item.returns, kind="prototype")
            check_directives(self.context, "prototype", "the prototype", item.directives, len(item.returns))
            self._declare(item.label, item, scope, item.span)
        elif isinstance(item, Pragma):
            from .directives import check_pragma

            check_pragma(self.context, item, place=self._place)
        elif isinstance(item, Directive):
            from .directives import check_statement_directive

            check_statement_directive(self.context, item)

    def _branch_targets(self, item: BranchTargets, scope: Scope) -> None:
        self._declare(item.label, item, scope, item.span)
        for name in item.targets:
            found = scope.resolve(name)
            if found.kind != "label":
                problem = undeclared(name, scope, 0)
                message = f"'{name}' is not a label of this scope"
                span = self.context.word(item.span, name)
                self.context.report(
                    codes.BRANCH_TARGET, message, span, help=problem.help, section="11.3.1", subjects=(name,)
                )

    def _call_targets(self, item: CallTargets, scope: Scope) -> None:
        self._declare(item.label, item, scope, item.span)
        for name in item.targets:
            if scope.resolve(name).kind != "function":
                span = self.context.word(item.span, name)
                message = f"'{name}' is not a function declared before"
                self.context.report(codes.CALL_TARGET, message, span, section="11.3.2", subjects=(name,))

    def _declare(self, name: str, item: Statement, scope: Scope, span: Span) -> None:
        earlier = scope.own(name) if not (isinstance(item, Variable) and item.count is not None) else None
        added = scope.declare(name, item)  # type: ignore[arg-type]
        earlier = earlier or added
        if earlier is None and isinstance(item, Variable) and item.count is not None:
            earlier = scope.inside(item)
        if earlier is not None and earlier is not item:
            report_redeclaration(self.context, name, span, earlier)


def _from_first_line(findings: Sequence[Diagnostic], statement: Span) -> None:
    """The first line of a statement of several lines, unless the finding is only about a name."""
    for finding in findings:
        assert finding.source is not None
        if finding.code != codes.UNDECLARED and finding.line != finding.source.line_of(statement[0]):
            finding.span = (statement[0], finding.span[1])


def report_redeclaration(context: Context, name: str, span: Span, earlier: object) -> None:
    """A second declaration of a name in one scope."""
    where = getattr(earlier, "name_span", None) or getattr(earlier, "span", None)
    if where and where > span:  # a label, which is visible before its position
        span, where = where, span
    help = (f"the first one is on line {context.source.line_of(where[0])}",) if where and where != (0, 0) else ()
    context.report(codes.REDECLARED, f"'{name}' is declared twice", context.word(span, name), help=help, section="4.4")


def _fails(need: Need, context: Context) -> bool:
    from .availability import lack

    return lack("", (need,), context.declared) is not None


def _special_names(item: Instruction, scope: Scope) -> list[str]:
    names: list[str] = []
    for operand in item.operands:
        if isinstance(operand, (Name, Vector)):
            names += [name for name in operand_names(operand) if name != "_" and scope.resolve(name).kind == "sreg"]
    if item.guard is not None and scope.resolve(item.guard.name).kind == "sreg":
        names.append(item.guard.name)
    return names
