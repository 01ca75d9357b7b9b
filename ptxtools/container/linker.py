"""The linker: several modules → one (11.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ptxtools.diagnostics import NO_SPAN, Diagnostic, PtxError, Source, Span
from ptxtools.ir import Alias, Function, Header, Module, Variable
from ptxtools.ir.references import initializer_names, is_runtime_function, referenced
from ptxtools.isa.targets import OPTIONS, known, provides
from ptxtools.records import replace

from .dwarf import merge_debug
from .errors import DUPLICATE, INCOMPATIBLE, MISMATCH, UNDEFINED
from .layout import alignment_of, element_bytes, size_of
from .refs import renamed_function, renamed_initializer
from .source import LinkedSource

Symbol = Variable | Function | Alias


def link(modules: Sequence[Module], *, gc: bool = False, check_undefined: bool = True) -> Module:
    """Link the modules into one.

    `.extern` names are resolved to their definitions, `.weak` ones give way, `.common` ones merge, names without
    linkage stay local (renamed where two conflict). gc drops functions and variables that no kernel reaches;
    check_undefined: require a definition of every used name, except the runtime's. Raises PtxError: undefined and
    duplicate symbols, conflicting declarations, incompatible modules.
    """
    return _Linker(modules, gc).link(check_undefined)


def is_definition(item: Symbol) -> bool:
    """Whether the item defines its name, rather than declaring that it is defined elsewhere."""
    if isinstance(item, Function):
        return item.body is not None
    return isinstance(item, Alias) or item.linkage != "extern"


def is_shared_name(item: Symbol) -> bool:
    """Whether the name is visible to other modules: entries and aliases always are (11.6)."""
    if isinstance(item, Alias) or item.linkage:
        return True
    return item.kind == "entry" if isinstance(item, Function) else False


class _Linker:
    def __init__(self, modules: Sequence[Module], gc: bool) -> None:
        self.modules = modules
        self.gc = gc
        self.errors: list[Diagnostic] = []
        #: The chosen definition of each name, and its module.
        self.defined: dict[str, tuple[Symbol, int]] = {}
        #: Items of the result by module, names already made distinct.
        self.items: list[list[Any]] = []
        self.sources: dict[int, Source] = {}

    def link(self, check_undefined: bool) -> Module:
        headers = self._headers()
        self._check()
        self.items = [list(module.items) for module in self.modules]
        if len(self.modules) > 1:
            self._separate_local_names()
            merge_debug(self.items)
        self._resolve()
        self._check()
        self._match_declarations()
        kept = self._kept()
        if check_undefined:
            self._check_undefined(kept)
        self._check()
        if len(self.modules) == 1 and not self.gc:
            return self.modules[0]
        for number, items in enumerate(self.items):
            source = self.modules[number].source
            self.sources.update((id(item), source) for item in items if source is not None)
        items = self._ordered(kept)
        return Module([*headers, *items], LinkedSource(self.sources, items))

    # --- findings -------------------------------------------------------------------------------------------------

    def _error(self, code: str, message: str, module: int, item: Any = None, *help_lines: str) -> None:
        span: Span = getattr(item, "name_span", None) or getattr(item, "span", None) or NO_SPAN
        self.errors.append(Diagnostic(code, message, span, self.modules[module].source, help=help_lines))

    def _check(self) -> None:
        if self.errors:
            raise PtxError(self.errors)

    def _file(self, module: int) -> str:
        source = self.modules[module].source
        return source.name if source else f"input {module + 1}"

    # --- headers --------------------------------------------------------------------------------------------------

    def _headers(self) -> list[Header]:
        """`.version` and `.target` are the highest required by an input."""
        version = max(m.version for m in self.modules)
        targets = list(dict.fromkeys(m.target for m in self.modules))
        strange = [t for t in targets if t and not known(t)]
        fitting = [t for t in targets if t and not strange and all(not w or provides(t, w) for w in targets)]
        if not fitting:
            which = ", ".join(f"{m.target or 'none'} in {self._file(n)}" for n, m in enumerate(self.modules))
            self._error(INCOMPATIBLE, f"no target runs the code of all inputs: {which}", 0)
        for n, module in enumerate(self.modules):
            if module.address_size != self.modules[0].address_size:
                sizes = f"{self.modules[0].address_size} bits in {self._file(0)}, {module.address_size} here"
                self._error(INCOMPATIBLE, f"address sizes differ: {sizes}", n)
        options = list(dict.fromkeys(o for m in self.modules for o in m.target_options))
        groups = [OPTIONS[o].group for o in options if o in OPTIONS]
        if len(set(groups)) != len(groups):
            self._error(INCOMPATIBLE, f"the inputs' .target options exclude each other: {', '.join(options)}", 0)
        target = (*fitting[:1], *options)
        headers = [Header(".version", (f"{version[0]}.{version[1]}",)), Header(".target", target)]
        if any(h.name == ".address_size" for m in self.modules for h in m.items if isinstance(h, Header)):
            headers.append(Header(".address_size", (str(self.modules[0].address_size),)))
        return headers

    # --- names ----------------------------------------------------------------------------------------------------

    def _separate_local_names(self) -> None:
        """Rename local names that another module also uses."""
        taken = {item.name for items in self.items for item in _symbols(items) if is_shared_name(item)}
        for n, items in enumerate(self.items):
            own = dict.fromkeys(item.name for item in _symbols(items))
            shared = {item.name for item in _symbols(items) if is_shared_name(item)}
            names = {}
            for name in own:
                if name not in shared:
                    fresh = _fresh(name, taken)
                    taken.add(fresh)
                    if fresh != name:
                        names[name] = fresh
            if names:
                self.items[n] = [_renamed(item, names) for item in items]

    def _resolve(self) -> None:
        """Choose the definition of each name: a strong one, else the first weak one, else the largest common one."""
        for n, items in enumerate(self.items):
            for item in _symbols(items):
                if is_definition(item):
                    known = self.defined.get(item.name)
                    if known is None or self._wins(item, n, *known):
                        self.defined[item.name] = item, n

    def _wins(self, item: Symbol, module: int, known: Symbol, known_module: int) -> bool:
        order = {"weak": 1, "common": 0}
        new, old = (order.get(getattr(s, "linkage", ""), 2) for s in (item, known))
        if new == old == 2:
            if isinstance(known, Alias) and isinstance(item, Alias) and item == known:
                return False
            where = self._file(known_module)
            what = "kernel" if isinstance(item, Function) and item.kind == "entry" else "symbol"
            self._error(DUPLICATE, f"{what} '{item.name}' is defined here and in {where}", module, item,
                        f"first definition in {where}")  # fmt: skip
            return False
        if new == old == 0 and isinstance(item, Variable) and isinstance(known, Variable):
            return (size_of(item), alignment_of(item)) > (size_of(known), alignment_of(known))
        return new > old

    def _match_declarations(self) -> None:
        """Every declaration must agree with the definition (11.6.1)."""
        for n, items in enumerate(self.items):
            for item in _symbols(items):
                known = self.defined.get(item.name)
                if known is None or item is known[0] or isinstance(item, Alias):
                    continue
                target = self._aliased(known[0])
                difference = "" if target is None else _difference(item, target)
                if difference:
                    where = self._file(known[1])
                    self._error(MISMATCH, f"'{item.name}' is declared differently from its definition in {where}: "
                                          f"{difference}", n, item)  # fmt: skip

    def _aliased(self, symbol: Symbol) -> Symbol | None:
        for _ in range(8):
            if not isinstance(symbol, Alias):
                return symbol
            known = self.defined.get(symbol.target)
            if known is None:
                return None
            symbol = known[0]
        return None

    # --- what stays -----------------------------------------------------------------------------------------------

    def _kept(self) -> dict[str, tuple[Symbol, int]]:
        """The definitions of the result."""
        if not self.gc:
            return dict(self.defined)
        entries = [n for n, (s, _) in self.defined.items() if isinstance(s, Function) and s.kind == "entry"]
        functions = [n for n, (s, _) in self.defined.items() if not isinstance(s, Variable) and is_shared_name(s)]
        variables = [n for n, (s, _) in self.defined.items() if isinstance(s, Variable) and s.linkage]
        pending = (entries or functions) + variables
        reached = set(pending)
        while pending:
            known = self.defined.get(pending.pop())
            for name in _names_in(known[0]) if known else ():
                if name not in reached:
                    reached.add(name)
                    pending.append(name)
        return {name: known for name, known in self.defined.items() if name in reached}

    def _check_undefined(self, kept: dict[str, tuple[Symbol, int]]) -> None:
        known = {i.name for items in self.items for i in _symbols(items)}
        reported: set[str] = set()
        for symbol, module in kept.values():
            users = referenced(symbol) if isinstance(symbol, Function) else dict.fromkeys(_names_in(symbol))
            for name, statement in users.items():
                if name in known and name not in self.defined and name not in reported:
                    if is_runtime_function(name) or self._is_given(name):
                        continue
                    reported.add(name)
                    self._error(UNDEFINED, f"undefined symbol '{name}', referenced from '{symbol.name}'", module,
                                statement or symbol)  # fmt: skip
        self._check_unused_variables(reported)
        for symbol, module in kept.values():
            if isinstance(symbol, Alias) and symbol.target not in self.defined:
                self._error(
                    UNDEFINED, f"undefined symbol '{symbol.target}', aliased by '{symbol.name}'", module, symbol
                )

    def _check_unused_variables(self, reported: set[str]) -> None:
        """As in nvlink, declared variables need a definition even if unused; functions do not."""
        if self.gc:
            return
        for module, items in enumerate(self.items):
            for v in items:
                if not isinstance(v, Variable) or v.linkage != "extern" or v.is_given:
                    continue
                if v.name not in self.defined and v.name not in reported:
                    reported.add(v.name)
                    self._error(UNDEFINED, f"undefined symbol '{v.name}', declared here", module, v)

    def _is_given(self, name: str) -> bool:
        return any(isinstance(i, Variable) and i.name == name and i.is_given
                   for items in self.items for i in _symbols(items))  # fmt: skip

    # --- the result -----------------------------------------------------------------------------------------------

    def _ordered(self, kept: dict[str, tuple[Symbol, int]]) -> list[Any]:
        """Files first, then declarations, variables, functions: each name is declared before it is used."""
        if len(self.modules) == 1:
            own = self.items[0]
            return [i for i in own if not isinstance(i, Header) and (not _is_symbol(i) or not is_definition(i)
                                                                      or i.name in kept)]  # fmt: skip
        front: list[Any] = []
        declarations: dict[str, Any] = {}
        rest: list[Any] = []
        for items in self.items:
            for item in items:
                if isinstance(item, Header):
                    continue
                if not _is_symbol(item):
                    (front if not isinstance(item, Alias) and not hasattr(item, "lines") else rest).append(item)
                elif is_definition(item):
                    if not isinstance(item, Variable) and self._stays(item, kept):
                        rest.append(item)
                elif item.name not in self.defined or item.name in kept:
                    declarations.setdefault(item.name, item)
        placed = {name: self._declaration(item) for name, item in declarations.items()}
        functions = [d for d in placed.values() if isinstance(d, Function)]
        outside = [d for name, d in placed.items() if isinstance(d, Variable) and name not in self.defined]
        return [*front, *functions, *outside, *self._variables(kept), *rest]

    def _stays(self, item: Symbol, kept: dict[str, tuple[Symbol, int]]) -> bool:
        return item.name in kept and kept[item.name][0] is item

    def _declaration(self, item: Symbol) -> Symbol:
        """The replacement of a declaration whose definition is now in the same module."""
        known = self.defined.get(item.name)
        if known is None or not isinstance(item, Function):
            return item
        copy = _declaring(known[0], item)
        source = self.sources.get(id(item))
        if source is not None:
            self.sources[id(copy)] = source
        return copy

    def _variables(self, kept: dict[str, tuple[Symbol, int]]) -> list[Variable]:
        """In input order, except that symbols named in an initialiser precede it."""
        variables: dict[str, Variable] = {name: s for name, (s, _) in kept.items() if isinstance(s, Variable)}
        order = [
            i.name for items in self.items for i in items if isinstance(i, Variable) and variables.get(i.name) is i
        ]
        done: dict[str, Variable] = {}

        def visit(name: str, depth: int = 0) -> None:
            if name in done or name not in variables or depth > 200:
                return
            for needed in initializer_names(variables[name].init):
                if needed != name:
                    visit(needed, depth + 1)
            done.setdefault(name, variables[name])

        for name in order:
            visit(name)
        return list(done.values())


def _is_symbol(item: Any) -> bool:
    return isinstance(item, (Variable, Function, Alias))


def _symbols(items: Iterable[Any]) -> list[Any]:
    return [item for item in items if _is_symbol(item)]


def _fresh(name: str, taken: set[str]) -> str:
    fresh, n = name, 0
    while fresh in taken:
        n += 1
        fresh = f"{name}${n}"
    return fresh


def _names_in(symbol: Symbol) -> list[str]:
    if isinstance(symbol, Function):
        return list(referenced(symbol))
    return [symbol.target] if isinstance(symbol, Alias) else list(initializer_names(symbol.init))


def _renamed(item: Any, names: dict[str, str]) -> Any:
    if isinstance(item, Function):
        return renamed_function(item, names, {})
    if isinstance(item, Variable):
        return replace(item, name=names.get(item.name, item.name), init=renamed_initializer(item.init, names))
    if isinstance(item, Alias):
        return replace(item, name=names.get(item.name, item.name), target=names.get(item.target, item.target))
    return item


def _declaring(definition: Symbol, item: Function) -> Function:
    """A declaration with the linkage and parameters of a definition that is now in the same module."""
    target, linkage = (definition, definition.linkage) if isinstance(definition, Function) else (item, "visible")
    return Function(item.kind, item.name, target.params, target.returns, item.directives, None, linkage,
                    item.attributes, item.variadic, item.span, item.name_span)  # fmt: skip


def _difference(item: Symbol, target: Symbol) -> str:
    """How a declaration differs from the definition; "" if it agrees."""
    if type(item) is not type(target) and isinstance(item, Variable) != isinstance(target, Variable):
        return "one is a function, the other a variable"
    if isinstance(item, Function) and isinstance(target, Function):
        return _function_difference(item, target)
    if isinstance(item, Variable) and isinstance(target, Variable):
        if item.space != target.space:
            return f".{item.space} here, .{target.space} there"
        if item.type != target.type and element_bytes(item) != element_bytes(target):
            return f"type .{item.type} here, .{target.type} there"
        if size_of(item) > size_of(target):
            return f"{size_of(item)} bytes here, {size_of(target)} there"
    return ""


def _function_difference(a: Function, b: Function) -> str:
    if a.kind != b.kind:
        return f".{a.kind} here, .{b.kind} there"
    for what, ours, theirs in (("parameter", a.params, b.params), ("return value", a.returns, b.returns)):
        if len(ours) != len(theirs):
            return f"{len(ours)} {what}s here, {len(theirs)} there"
        for n, (x, y) in enumerate(zip(ours, theirs, strict=True)):
            if size_of(x) != size_of(y) or x.space != y.space:
                return f"{what} {n} is {_describe(x)} here, {_describe(y)} there"
    return "one takes a variable number of parameters" if a.variadic != b.variadic else ""


def _describe(v: Variable) -> str:
    return f".{v.space} .{v.type}" + "".join(f"[{d if d is not None else ''}]" for d in v.dims)
