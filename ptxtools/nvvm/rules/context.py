"""What the rules share: the module, the dialect, the target, and the findings so far."""

from __future__ import annotations

from ptxtools.diagnostics import Diagnostic, Requires, Severity, Source, Span

from ..assembly import types
from ..assembly.nodes import Module, Value, Word
from ..assembly.tokens import word_end
from ..assembly.types import Type
from ..dialects import MODERN
from .levels import IGNORED, SECTIONS

#: The lowest architecture of the modern dialect (1).
MODERN_FROM = 100
_MOST_NESTED = 100


class Context:
    """dialect: one of `DIALECTS`; arch: the number of the target (90), 0 if none was asked for; asked: whether the
    dialect was, or else follows from the module."""

    def __init__(self, module: Module, source: Source, dialect: str, arch: int = 0, asked: bool = False) -> None:
        self.asked = asked
        self.module, self.source, self.dialect, self.arch = module, source, dialect, arch
        self.found: list[Diagnostic] = []
        #: The variables that are textures or surfaces, and which.
        self.opaque: dict[str, str] = {}
        #: Types without a fault; the kernels; the groups of attributes that intrinsics and that others use.
        self.checked_types: set[Type] = set()
        self.kernel_names: set[str] = set()
        self.intrinsic_groups: set[str] = set()
        self.used_groups: set[str] = set()

    @property
    def modern(self) -> bool:
        return self.dialect == MODERN

    @property
    def counts_silently(self) -> bool:
        """Whether numbers of parameters and blocks are not written, as in texts of LLVM 7. A module without pointers,
        which is in both dialects, may have them, and bitcode has no text of its own."""
        as_written = not getattr(self.source, "disassembled", False)
        return as_written and not self.modern and (self.asked or self.module.typed_at >= 0)

    def error(self, code: str, span: Span, message: str, *help: str, requires: str = "") -> None:
        """A finding; its severity is that of the rule. requires: the lowest target."""
        severity = Severity.WARNING if code in IGNORED else Severity.ERROR
        needs = Requires(None, (requires,)) if requires else None
        self.found.append(Diagnostic(code, message, span, self.source, severity, needs, SECTIONS.get(code), help))

    def at_word(self, code: str, word: Word, message: str, *help: str) -> None:
        self.error(code, (word[1], word[1] + len(word[0])), message, *help)

    def at_value(self, code: str, value: Value, message: str, *help: str) -> None:
        self.at_name(code, value.at, value.text, message, *help)

    def at_name(self, code: str, at: int, name: str, message: str, *help: str) -> None:
        """name: what stands at the place; if it is written otherwise there, the finding marks the word."""
        end = at + len(name) if self.source.text.startswith(name, at) else word_end(self.source.text, at)
        self.error(code, (at, end), message, *help)

    def needs(self, code: str, span: Span, what: str, arch: int) -> None:
        """Report what the target, if one is known, is too old for."""
        if self.arch and self.arch < arch:
            self.error(code, span, f"{what} needs compute_{arch} or later", requires=f"sm_{arch}")

    def resolved(self, type: Type) -> Type:
        """A named type as what it stands for; itself if that is not known."""
        for _ in range(_MOST_NESTED):
            if type.kind != "named":
                return type
            made = self.module.types.get(type.text, (None, 0))[0]
            if made is None:
                return type
            type = made
        return type

    def sized(self, type: Type, depth: int = 0) -> bool:
        """Whether a value of this type can be in memory."""
        type = self.resolved(type)
        if depth > _MOST_NESTED or type.kind in ("void", "label", "metadata", "token", "function", "opaque", "named"):
            return False
        if type.kind in ("array", "vector", "struct"):
            return all(self.sized(one, depth + 1) for one in type.elements)
        return True

    def pointer(self, to: Type, space: int) -> Type:
        """A pointer as this dialect writes it."""
        return types.opaque_pointer(space) if self.modern else types.pointer(to, space)
