"""Shared by all rules: the module, its declarations, and the list of findings."""

from __future__ import annotations

from ptxtools.diagnostics import Diagnostic, Fix, Requires, Severity, Source, Span
from ptxtools.ir.nodes import Module
from ptxtools.isa import Need
from ptxtools.isa.targets import FIRST_VERSION, VERSIONS, describe, version_text
from ptxtools.records import NamedTuple

from . import codes
from .availability import AnyNeed, Declared, is_gone, lack
from .problems import Setting

#: More findings help nobody.
MOST_FINDINGS = 1000


#: Targets from sm_90 on have no 32-bit addresses.
NARROW = Need((), (0, 0), ("sm_90",))
#: Tool kits from 12.0 on have no 32-bit addresses of global and generic memory, though the manual does (11.1.3).
NO_NARROW = Need((), (8, 0), ())


#: Codes about a name, the finding's first subject.
_ABOUT_NAMES = frozenset({codes.UNDECLARED, codes.BRANCH_TARGET, codes.CALL_TARGET})


#: Codes that are redundant for a variable whose declaration is wrong.
_ABOUT_TYPES = frozenset(
    {
        codes.OPERAND_TYPE,
        codes.OPERAND_SIZE,
        codes.OPERAND_KIND,
        codes.ADDRESS_REGISTER,
        codes.GUARD,
        codes.CALL_ARGUMENT,
    }
)


class Enough(Exception):  # noqa: N818 - ends a check, no error of ours
    """There are too many findings to continue."""


class Gathered(NamedTuple):
    """A requirement of a part of the module. gone: the versions and targets that removed it."""

    subject: str
    needs: tuple[AnyNeed, ...]
    span: Span
    gone: tuple[AnyNeed, ...] = ()


class Context:
    """One check of one module for one version and target."""

    def __init__(self, module: Module, target: str | None = None, version: tuple[int, int] | None = None) -> None:
        self.module = module
        self.source = module.source or Source("", "<module>")
        self.text = self.source.text
        #: Names in statements that could not be read: whether they are declared is not known.
        self.unread = set().union(*module.unread.values())
        #: Labels that lack their colon.
        self._labels: set[str] = set()
        wanted = version or module.version
        name = target or module.target
        self.forced_target, self.forced_version = target, version
        self.declared = Declared(
            wanted if wanted in VERSIONS else (0, 0), name if name in FIRST_VERSION else "", bool(target or version),
            "map_f64_to_f32" in module.target_options,
        )  # fmt: skip
        wide_only = is_gone(NARROW, *self.declared[:2])
        independent = "texmode_independent" in module.target_options
        long = is_gone(NO_NARROW, *self.declared[:2])
        bits = 64 if long and not module.has_address_size else module.address_size
        self.setting = Setting(bits, wide_only, long, independent, self.declared.version)
        self.diagnostics: list[Diagnostic] = []
        #: What ptxas accepts and the manual does not have: warnings.
        self.tolerated: list[Diagnostic] = []
        #: Names of this function that were reported as undeclared.
        self.undeclared: set[str] = set()
        #: Variables whose type has been found wrong; for a range, without the number.
        self.ill_typed: set[str] = set()
        #: Requirements that the module meets.
        self._met: set[tuple[AnyNeed, ...]] = set()
        #: Findings so far, including redundant ones.
        self.reports = 0
        #: Functions with conflicting declarations; further findings about them are redundant.
        self.inconsistent: set[str] = set()
        #: If this is a list, requirements are collected instead of checked.
        self.gathered: list[Gathered] | None = None

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        help: tuple[str, ...] = (),
        section: str | None = None,
        requires: Requires | None = None,
        subjects: tuple[str, ...] = (),
        past_range: bool = False,
        fix: Fix | None = None,
    ) -> None:
        """Add an error finding; raises Enough after very many. subjects: the names that it is about; past_range: the
        first of them is past the end of a declared range such as `r<4>`.

        An undeclared name is redundant if its declaration could not be read, or if it was reported in the same
        function; so is a misfit of a name whose type is wrong.
        """
        self.reports += 1
        if code in _ABOUT_NAMES and subjects and self._known(code, subjects[0], past_range, span):
            return
        if self.ill_typed and code in _ABOUT_TYPES:
            bases = [name.rstrip("0123456789") for name in subjects]
            if not self.ill_typed.isdisjoint([*subjects, *bases]):
                return
        if len(self.diagnostics) >= MOST_FINDINGS:
            message = f"more than {MOST_FINDINGS} errors; the rest was not checked"
            self.diagnostics.append(Diagnostic(codes.TOO_MANY, message, span, self.source))
            raise Enough
        self.diagnostics.append(
            Diagnostic(
                code, message, span, self.source, help=help, section=section, requires=requires, fix=fix,
                subject=subjects[0] if subjects else "",
            )
        )  # fmt: skip

    def tolerate(
        self,
        message: str,
        span: Span,
        *,
        section: str | None = None,
        help: tuple[str, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add a warning, unless there are too many: ptxas accepts this, and the manual does not have it."""
        self.reports += 1
        if len(self.tolerated) < MOST_FINDINGS:
            message = f"{message}: ptxas accepts it, the manual does not have it"
            self.tolerated.append(
                Diagnostic(
                    codes.TOLERATED, message, span, self.source, Severity.WARNING, section=section, help=help, fix=fix
                )
            )

    def _unread_at(self, span: Span) -> set[str]:
        """The names in statements that could not be read and may declare something for a place: those outside of
        functions, and those of the same function."""
        if self.module.braces_wrong:
            return self.unread
        bodies = [f.body.span for f in self.module.functions if f.body is not None]

        def around(offset: int) -> Span | None:
            return next((body for body in bodies if body[0] < offset < body[1]), None)

        here = around(span[0])
        return self._labels.union(*(names for at, names in self.module.unread.items() if around(at) in (None, here)))

    def report_label(self, name: str, span: Span) -> None:
        """Report a word alone on its line, before an instruction: a label without its colon. Its uses are valid."""
        self.diagnostics[:] = [d for d in self.diagnostics if (d.code, d.subject) != (codes.UNDECLARED, name)]
        self.unread.add(name)
        self._labels.add(name)
        fix = Fix((span[1], span[1]), ":", "make it a label")
        message = f"missing ':' after the label {name}"
        self.diagnostics.append(Diagnostic(codes.MISSING_MARK, message, span, self.source, fix=fix, section="4.3.1"))

    def _known(self, code: str, name: str, past_range: bool, span: Span) -> bool:
        base = name.rstrip("0123456789")
        if (name in self.unread or base in self.unread) and not self._unread_at(span).isdisjoint((name, base)):
            return True
        if code != codes.UNDECLARED:
            return False
        # A range `%r<4>` that is too short, or missing, is one mistake.
        key = base if name[0] == "%" or past_range else name
        known = key in self.undeclared
        self.undeclared.add(key)
        return known

    def word(self, span: Span, word: str) -> Span:
        """Where a word stands inside the span of a directive."""
        from .locate import word_span  # only findings need it

        return word_span(self.text, span, word) if self.text else span

    def require(self, subject: str, needs: tuple[AnyNeed, ...], span: Span, section: str | None = None) -> bool:
        """Report if the declared version or target lacks `subject`; returns whether it has it."""
        if self.gathered is not None:
            self.gathered.append(Gathered(subject, needs, span))
            return True
        if needs in self._met:
            return True
        found = lack(subject, needs, self.declared)
        if found is None:
            self._met.add(needs)
            return True
        code = codes.NEEDS_VERSION if found.version else codes.NEEDS_TARGET
        self.report(code, found.message, span, section=section, requires=found.requires)
        return False

    def require_directive(self, name: str, span: Span) -> bool:
        """As `require`, for a directive of the table."""
        from ptxtools.isa.directives import DIRECTIVES

        info = DIRECTIVES[name]
        return self.require(name, (Need((), info.ptx, (info.target,)),), span, info.section)

    def require_addition(self, subject: str, span: Span) -> bool:
        """As `require`, for a smaller addition to a directive (`isa.directives.ADDITIONS`)."""
        from ptxtools.isa.directives import ADDITIONS

        info = ADDITIONS[subject]
        return self.require(subject, (Need((), info.ptx, (info.target,)),), span, info.section)

    def refuse_removed(
        self,
        subject: str,
        need: AnyNeed,
        span: Span,
        message: str = "",
        *,
        code: str = codes.REMOVED,
        help: tuple[str, ...] = (),
        section: str | None = None,
    ) -> bool:
        """Report a feature that was removed (`need`) in the declared version for the declared target; returns whether
        it remains."""
        if self.gathered is not None:
            self.gathered.append(Gathered(subject, (), span, (need,)))
            return True
        if not is_gone(need, *self.declared[:2]):
            return True
        where = f" for target {describe(need.targets)}" if need.targets else ""
        message = message or f"{subject} was removed in PTX ISA {version_text(need.ptx)}{where}"
        self.report(code, message, span, help=help, section=section)
        return False
