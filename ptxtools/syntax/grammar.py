"""The grammar of PTX: the units of the text, and the nodes made from them.

A unit is a directive, a declaration, a function header up to its `{`, a label or an instruction. `reader` cuts the text
into units and keeps track of the nesting, so that scopes need no recursion and an error stays within its unit.

`@rule` attaches the productions to the functions; PLY turns them into tables (`tables`). No production ends with
something that may be empty, so that every symbol knows where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ptxtools.diagnostics import Fix, Span
from ptxtools.ir import (
    Address,
    Alias,
    Arguments,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DataLine,
    Directive,
    Element,
    File,
    Function,
    Guard,
    Header,
    Immediate,
    Instruction,
    Label,
    Loc,
    Member,
    Name,
    Negated,
    Pair,
    Pragma,
    Scope,
    Section,
    SymbolOffset,
    SymbolValue,
    Vector,
)
from ptxtools.ir.layout import guarded, layout_of

from . import constants, declarations
from .constants import ConstantError
from .faults import Fault
from .limits import MOST_RANGE_LABELS
from .placed import Placed, listed, spans_of
from .words import TUNING

_VERSION = re.compile(r"\d+\.\d+", re.ASCII)

_F = TypeVar("_F", bound=Callable[..., None])

PRECEDENCE = (
    ("right", "?", ":"),
    ("left", "OR"),
    ("left", "AND"),
    ("left", "|"),
    ("left", "^"),
    ("left", "&"),
    ("left", "EQ", "NE"),
    ("left", "<", ">", "LE", "GE"),
    ("left", "SHL", "SHR"),
    ("left", "+", "-"),
    ("left", "*", "/", "%"),
    ("right", "UNARY"),
)


def rule(productions: str) -> Callable[[_F], _F]:
    """Attach grammar text to an action in a way that survives `python -OO`."""

    def attach(function: _F) -> _F:
        function.productions = productions  # type: ignore[attr-defined]
        return function

    return attach


_COMPONENTS = frozenset({".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a"})


class Actions:
    """The actions of the grammar. `ends` maps the start of each token of the unit to its end."""

    ends: dict[int, int]

    # --- units --------------------------------------------------------------------------------------------------------

    @rule("""unit : header | file | loc | pragma ';' | alias ';' | section | label | targets ';' | prototype ';'
                  | variables ';' | function ';' | definition | instruction ';' | data""")
    def p_unit(self, p: Any) -> None:
        p[0] = p[1]

    @rule("header : VERSION NUMBER | ADDRESS_SIZE NUMBER")
    def p_header(self, p: Any) -> None:
        if p[1] == ".version" and not _VERSION.fullmatch(p[2]):
            raise Fault("PTX103", f"'{p[2]}' is not a version", self._span(p, 2), ("write major.minor, such as 8.7",))
        p[0] = Header(p[1], (p[2],), self._whole(p))

    @rule("header : TARGET names")
    def p_target(self, p: Any) -> None:
        p[0] = Header(p[1], tuple(p[2]), self._whole(p))

    @rule("""file : FILE integer STRING | FILE integer STRING ',' integer
                  | FILE integer STRING ',' integer ',' integer""")
    def p_file(self, p: Any) -> None:
        """A time stamp without a size is what ptxas takes, too."""
        timestamp, size = (p[i] if len(p) > i else None for i in (5, 7))
        p[0] = File(p[2], p[3][1:-1], timestamp, size, self._whole(p))

    @rule("loc : LOC integer integer integer")
    def p_loc(self, p: Any) -> None:
        p[0] = Loc(p[2], p[3], p[4], span=self._whole(p))

    @rule("""loc : LOC integer integer integer ',' WORD section_offset ',' WORD integer integer integer""")
    def p_loc_inlined(self, p: Any) -> None:
        self._keyword(p, 6, "function_name")
        self._keyword(p, 9, "inlined_at")
        name, offset = p[7]
        p[0] = Loc(p[2], p[3], p[4], name, offset, (p[10], p[11], p[12]), self._whole(p))

    @rule("loc : LOC_INTERMEDIATE integer integer integer")
    def p_loc_intermediate(self, p: Any) -> None:
        p[0] = Directive(p[1], (p[2], p[3], p[4]), self._whole(p))

    @rule("""section_offset : WORD | DOTWORD | WORD '+' integer | DOTWORD '+' integer""")
    def p_section_offset(self, p: Any) -> None:
        p[0] = (p[1], p[3] if len(p) > 2 else 0)

    @rule("pragma : PRAGMA strings")
    def p_pragma(self, p: Any) -> None:
        p[0] = Pragma(tuple(p[2]), self._whole(p))

    @rule("alias : ALIAS WORD ',' WORD")
    def p_alias(self, p: Any) -> None:
        p[0] = Alias(p[2], p[4], self._whole(p))

    @rule("section : SECTION DOTWORD '{'")
    def p_section(self, p: Any) -> None:
        p[0] = Section(p[2], [], self._whole(p))

    @rule("label : WORD ':'")
    def p_label(self, p: Any) -> None:
        p[0] = Label(self._plain(p, 1), self._span(p, 1))

    @rule("targets : WORD ':' BRANCHTARGETS label_list")
    def p_branch_targets(self, p: Any) -> None:
        p[0] = BranchTargets(self._plain(p, 1), tuple(p[4]), self._whole(p))

    @rule("targets : WORD ':' CALLTARGETS names")
    def p_call_targets(self, p: Any) -> None:
        p[0] = CallTargets(self._plain(p, 1), tuple(p[4]), self._whole(p))

    @rule("""prototype : WORD ':' CALLPROTOTYPE signature""")
    def p_prototype(self, p: Any) -> None:
        returns, (name, place), params = p[4]
        if name != "_":
            raise Fault("PTX108", f"a prototype must be named _, not '{name}'", place)
        p[0] = CallPrototype(self._plain(p, 1), returns, params, [], self._whole(p))

    @rule("prototype : prototype tuning")
    def p_prototype_tuning(self, p: Any) -> None:
        p[0] = p[1]
        p[0].directives.append(p[2])
        p[0].span = self._whole(p)

    # --- data of .section (11.5.2) ------------------------------------------------------------------------------------

    @rule("data : TYPE data_values")
    def p_data(self, p: Any) -> None:
        if p[1] not in (".b8", ".b16", ".b32", ".b64"):
            raise Fault("PTX108", f"a section contains .b8, .b16, .b32 and .b64 data, not {p[1]}", self._span(p, 1))
        p[0] = DataLine(p[1][1:], tuple(p[2]))

    @rule("""data_value : NUMBER | '-' NUMBER""")
    def p_data_integer(self, p: Any) -> None:
        """Kept as written: 0xffffffffffffffff is not a negative number here."""
        at = len(p) - 1
        value: Immediate = self._fold(p, at, constants.literal, p[at])
        self._fold(p, at, constants.as_integer, value)
        p[0] = value.value if at == 1 else -value.value

    @rule("data_value : WORD | DOTWORD")
    def p_data_name(self, p: Any) -> None:
        p[0] = p[1]

    @rule("""data_value : WORD '+' integer | DOTWORD '+' integer | WORD '-' WORD""")
    def p_data_sum(self, p: Any) -> None:
        p[0] = f"{p[1]}{p[2]}{p[3]}"

    # --- declarations (5.4) -------------------------------------------------------------------------------------------

    @rule("variables : specifiers declarators")
    def p_variables(self, p: Any) -> None:
        found = declarations.Specifiers(p[1], self._whole(p)).check()
        p[0] = [found.variable(name, self._whole(p)) for name in p[2]]

    @rule("variables : specifiers")
    def p_variables_unnamed(self, p: Any) -> None:
        """ptxas takes it."""
        found = declarations.Specifiers(p[1], self._whole(p)).check()
        p[0] = [found.variable(declarations.Declarator(""), self._whole(p))]

    @rule("""first_specifier : LINKAGE | SPACE | ALIGN NUMBER
             specifier : LINKAGE | SPACE | ALIGN NUMBER | VECTOR | TYPE | PTR""")
    def p_specifier(self, p: Any) -> None:
        if p[1] == ".ptr" and not any(symbol.type == "(" for symbol in p.stack):
            raise Fault("PTX108", "'.ptr' is allowed only in parameters of entries", self._span(p, 1))
        value = self._integer(p, 2) if len(p) > 2 else p[1][1:]
        p[0] = (p.slice[1].type, value, self._span(p, 1))

    @rule("""first_specifier : SPACE '[' integer ']'
             specifier : SPACE '[' integer ']'""")
    def p_specifier_bank(self, p: Any) -> None:
        p[0] = ("BANK", (p[1][1:], p[3]), self._span(p, 1))

    @rule("""first_specifier : attributes
             specifier : attributes""")
    def p_specifier_attributes(self, p: Any) -> None:
        p[0] = ("ATTRIBUTE", *p[1])

    @rule("attributes : ATTRIBUTE '(' attribute_list ')'")
    def p_attributes(self, p: Any) -> None:
        p[0] = (tuple(p[3]), self._span(p, 1))

    @rule("""attribute : DOTWORD | DOTWORD '(' integers ')'""")
    def p_attribute(self, p: Any) -> None:
        p[0] = (p[1], tuple(p[3]) if len(p) > 2 else ())

    @rule("declarator : declared | declared '=' initializer")
    def p_declarator(self, p: Any) -> None:
        if len(p) > 2 and p[1].range is not None:
            raise Fault("PTX108", f"the range '{p[1].name}<{p[1].range}>' cannot have an initialiser", p[1].span)
        p[0] = p[1] if len(p) == 2 else p[1]._replace(init=p[3])

    @rule("declared : WORD")
    def p_declared(self, p: Any) -> None:
        p[0] = declarations.Declarator(self._plain(p, 1), self._span(p, 1))

    @rule("declared : WORD '<' integer '>'")
    def p_declared_range(self, p: Any) -> None:
        p[0] = declarations.Declarator(self._plain(p, 1), self._span(p, 1), range=p[3])

    @rule("declared : WORD dimensions")
    def p_declared_array(self, p: Any) -> None:
        p[0] = declarations.Declarator(self._plain(p, 1), self._span(p, 1), dims=tuple(p[2]))

    @rule("dimension : '[' ']' | '[' expression ']'")
    def p_dimension(self, p: Any) -> None:
        p[0] = None if len(p) == 3 else self._fold(p, 2, constants.as_integer, p[2])

    # --- initialisers (5.4.4) -----------------------------------------------------------------------------------------

    @rule("initializer : expression | symbol_value")
    def p_initializer(self, p: Any) -> None:
        p[0] = p[1]

    @rule("initializer : '{' '}' | '{' initializer_list '}'")
    def p_initializer_list(self, p: Any) -> None:
        p[0] = p[2] if len(p) == 4 else []

    @rule("initializer : NUMBER '(' symbol_value ')' | NUMBER '(' expression ')'")
    def p_initializer_mask(self, p: Any) -> None:
        mask = self._fold(p, 1, constants.literal, p[1])
        if isinstance(p[3], SymbolValue):
            self._fold(p, 1, constants.mask_shift, mask)
            p[0] = SymbolValue(p[3].name, p[3].offset, p[3].generic, mask.value)
        else:
            p[0] = self._fold(p, 1, constants.masked, mask, p[3])

    @rule("initializer : WORD '=' WORD | WORD '=' expression")
    def p_initializer_member(self, p: Any) -> None:
        p[0] = Member(p[1], p[3])

    @rule("symbol_value : WORD | WORD '+' expression")
    def p_symbol_value(self, p: Any) -> None:
        p[0] = SymbolValue(p[1], self._offset(p, 3))

    @rule("symbol_value : WORD '(' WORD ')' | WORD '(' WORD ')' '+' expression")
    def p_symbol_value_generic(self, p: Any) -> None:
        self._keyword(p, 1, "generic")
        p[0] = SymbolValue(p[3], self._offset(p, 6), True)

    # --- functions (7.1, 11.2) ----------------------------------------------------------------------------------------

    @rule("function : function_start signature")
    def p_function(self, p: Any) -> None:
        kind, linkage, attributes = p[1]
        returns, (name, place), params = p[2]
        if kind == "entry" and (returns or attributes):
            what = "returns nothing" if returns else "takes no .attribute"
            raise Fault("PTX108", f"a kernel {what}", self._span(p, 2 if returns else 1))
        variadic = bool(params) and params[-1].dims[:1] == (None,)
        p[0] = Function(
            kind, name, params, returns, [], None, linkage, attributes, variadic, self._whole(p), place
        )  # fmt: skip

    @rule("function : function tuning")
    def p_function_tuning(self, p: Any) -> None:
        p[0] = p[1]
        p[0].directives.append(p[2])
        p[0].span = self._whole(p)

    @rule("definition : function '{'")
    def p_definition(self, p: Any) -> None:
        p[0] = p[1]
        brace = self._span(p, 2)
        p[0].body = Scope([], brace)

    @rule("""function_start : ENTRY | FUNC | LINKAGE ENTRY | LINKAGE FUNC | ENTRY attributes | FUNC attributes
                            | LINKAGE ENTRY attributes | LINKAGE FUNC attributes""")
    def p_function_start(self, p: Any) -> None:
        words = [p[i] for i in range(1, len(p))]
        attributes = words.pop()[0] if isinstance(words[-1], tuple) else ()
        p[0] = (words[-1][1:], words[0][1:] if len(words) == 2 else "", attributes)

    @rule("""signature : WORD | WORD parameter_list | parameter_list WORD | parameter_list WORD parameter_list""")
    def p_signature(self, p: Any) -> None:
        at = 1 if isinstance(p[1], str) else 2
        p[0] = (p[1] if at == 2 else [], (self._plain(p, at), self._span(p, at)), p[at + 1] if len(p) > at + 1 else [])

    @rule("parameter_list : '(' ')' | '(' parameter_items ')'")
    def p_parameter_list(self, p: Any) -> None:
        p[0] = p[2] if len(p) == 4 else []

    @rule("parameter : specifiers declared")
    def p_parameter(self, p: Any) -> None:
        span = self._whole(p)
        p[0] = declarations.Specifiers(p[1], span).check().variable(p[2], span)

    @rule("tuning : TUNING | TUNING integers")
    def p_tuning(self, p: Any) -> None:
        most, given = TUNING[p[1][1:]], p[2] if len(p) == 3 else []
        if not min(most, 1) <= len(given) <= most:
            wants = ("no argument", "one argument", "", "one to three arguments")[most]
            raise Fault("PTX108", f"{p[1]} takes {wants}", self._span(p, 1))
        p[0] = Directive(p[1], tuple(given), self._whole(p))

    @rule("tuning : LANGUAGE languages")
    def p_tuning_language(self, p: Any) -> None:
        p[0] = Directive(p[1], tuple(p[2]), self._whole(p))

    @rule("language : STRING | integer")
    def p_language(self, p: Any) -> None:
        p[0] = p[1]

    @rule("tuning : pragma ';'")
    def p_tuning_pragma(self, p: Any) -> None:
        p[0] = p[1]

    # --- instructions (4.3.2) -----------------------------------------------------------------------------------------

    @rule("instruction : opcode | opcode operand_list | call_opcode call_operands")
    def p_instruction(self, p: Any) -> None:
        (opcode, pieces), whole = p[1], self._whole(p)
        operands: list[Placed] = p[2] if len(p) == 3 else []
        layout = layout_of(whole[0], pieces, [operand.spans[0] for operand in operands])
        p[0] = Instruction(opcode, tuple([operand.measured() for operand in operands]), None, whole, layout)

    @rule("instruction : guard instruction")
    def p_guarded(self, p: Any) -> None:
        if p[2].guard is not None:
            raise Fault("PTX108", "an instruction has one guard", self._span(p, 1))
        p[0], whole = p[2], self._whole(p)
        guard, name = p[1]
        offset = name - whole[0]
        usual = 0 if offset == 1 + guard.negated else offset
        p[0].layout = guarded(p[2].layout, usual, p[2].place[0] - whole[0])
        p[0].guard, p[0].place = guard, whole

    @rule("guard : '@' WORD | '@' '!' WORD")
    def p_guard(self, p: Any) -> None:
        p[0] = Guard(p[len(p) - 1], len(p) == 4), p.lexpos(len(p) - 1)

    @rule("""opcode : WORD | opcode modifier
             call_opcode : CALL | call_opcode modifier""")
    def p_opcode(self, p: Any) -> None:
        text, pieces = p[1] if len(p) == 3 else ("", [])
        p[0] = text + p[len(p) - 1], [*pieces, self._span(p, len(p) - 1)]

    @rule("modifier : DOTWORD | TYPE | SPACE | VECTOR | LINKAGE | ALIGN")
    def p_modifier(self, p: Any) -> None:
        p[0] = p[1]

    @rule("call_operand : WORD")
    def p_call_name(self, p: Any) -> None:
        p[0] = Placed(Name(p[1]), (self._whole(p),))

    @rule("call_operand : '(' ')' | '(' operand_list ')'")
    def p_call_arguments(self, p: Any) -> None:
        p[0] = listed(Arguments, p[2] if len(p) == 4 else [], self._whole(p))

    # --- operands (6) -------------------------------------------------------------------------------------------------

    @rule("operand : plain | address")
    def p_operand(self, p: Any) -> None:
        p[0] = p[1]

    @rule("operand : expression")
    def p_constant(self, p: Any) -> None:
        p[0] = Placed(p[1], (self._whole(p),))

    @rule("plain : WORD")
    def p_name(self, p: Any) -> None:
        p[0] = Placed(Name(p[1]), (self._whole(p),))

    @rule("plain : WORD DOTWORD")
    def p_component(self, p: Any) -> None:
        """A component after a blank: `%tid .x`."""
        if p[2] not in _COMPONENTS:
            raise Fault("PTX119", f"'{p[2]}' is no component of a vector", self._span(p, 2), (".x, .y, .z or .w",))
        p[0] = Placed(Name(p[1] + p[2]), (self._whole(p),))

    @rule("plain : '{' operand_list '}'")
    def p_vector(self, p: Any) -> None:
        p[0] = listed(Vector, p[2], self._whole(p))

    @rule("operand : plain '|' plain")
    def p_pair(self, p: Any) -> None:
        p[0] = Placed(Pair(p[1].node, p[3].node), (self._whole(p), *p[1].spans, *p[3].spans))

    @rule("operand : '!' WORD | '-' WORD")
    def p_negated(self, p: Any) -> None:
        p[0] = Placed(Negated(Name(p[2]), p[1]), (self._whole(p), self._span(p, 2)))

    @rule("operand : WORD '+' expression")
    def p_symbol_offset(self, p: Any) -> None:
        p[0] = Placed(SymbolOffset(p[1], self._offset(p, 3)), (self._whole(p), self._span(p, 1), self._span(p, 3)))

    @rule("operand : WORD '[' expression ']'")
    def p_element(self, p: Any) -> None:
        index = self._span(p, 3)
        element = Element(p[1], self._fold(p, 3, constants.as_integer, p[3]))
        p[0] = Placed(element, (self._whole(p), self._span(p, 1), (index[0], index[0]), index))

    @rule("operand : WORD '[' WORD ']' | WORD '[' WORD '+' expression ']' | WORD '[' WORD '-' expression ']'")
    def p_element_register(self, p: Any) -> None:
        index = self._offset(p, 5) if len(p) > 5 else 0
        element = Element(p[1], -index if len(p) > 5 and p[4] == "-" else index, p[3])
        spans = self._whole(p), self._span(p, 1), self._span(p, 3), self._optional(p, 5 if len(p) > 5 else 0, 3)
        p[0] = Placed(element, spans)

    @rule("""address : brackets | brackets DOTWORD""")
    def p_address(self, p: Any) -> None:
        address, (_, *spans) = p[1]
        if len(p) == 3:
            if p[2] != ".unified":
                raise Fault("PTX108", f"only .unified may follow an address, not {p[2]}", self._span(p, 2))
            address.suffix = p[2][1:]
        p[0] = Placed(address, (self._whole(p), *spans, self._optional(p, 2 if len(p) == 3 else 0, 1)))

    @rule("brackets : '[' base ']' | '[' base ',' operand_list ']'")
    def p_brackets(self, p: Any) -> None:
        (base, offset, spans), extra = p[2], p[4] if len(p) == 6 else []
        address = Address(base, offset, tuple([part.node for part in extra]))
        p[0] = Placed(address, (self._whole(p), *spans, *spans_of(extra)))

    @rule("base : WORD | WORD '+' expression")
    def p_base(self, p: Any) -> None:
        spans = self._span(p, 1), self._optional(p, 3 if len(p) == 4 else 0, 1)
        p[0] = (Name(p[1]), self._offset(p, 3), spans)

    @rule("base : WORD '-' expression")
    def p_base_minus(self, p: Any) -> None:
        minus = self._span(p, 2)
        fix = Fix(minus, "+-", "add the negative offset")
        raise Fault("PTX109", "an offset must be added, not subtracted (6.4.1)", minus, (f"write [{p[1]}+-…]",), fix)

    @rule("base : expression")
    def p_base_constant(self, p: Any) -> None:
        self._fold(p, 1, constants.as_integer, p[1])
        p[0] = (p[1], 0, (self._span(p, 1), self._optional(p, 0, 1)))

    # --- constant expressions (4.5.4) ---------------------------------------------------------------------------------

    @rule("expression : NUMBER")
    def p_literal(self, p: Any) -> None:
        p[0] = self._fold(p, 1, constants.literal, p[1])

    @rule("expression : '(' expression ')'")
    def p_parentheses(self, p: Any) -> None:
        p[0] = p[2]

    @rule("""expression : '+' expression %prec UNARY
                        | '-' expression %prec UNARY
                        | '!' expression %prec UNARY
                        | '~' expression %prec UNARY""")
    def p_unary(self, p: Any) -> None:
        p[0] = self._fold(p, 0, constants.unary, p[1], p[2])

    @rule("expression : '(' TYPE ')' expression %prec UNARY")
    def p_cast(self, p: Any) -> None:
        p[0] = self._fold(p, 0, constants.cast, p[2][1:], p[4])

    @rule("""expression : expression '+' expression | expression '-' expression
                        | expression '*' expression | expression '/' expression | expression '%' expression
                        | expression SHL expression | expression SHR expression
                        | expression '<' expression | expression '>' expression
                        | expression LE expression | expression GE expression
                        | expression EQ expression | expression NE expression
                        | expression '&' expression | expression '^' expression | expression '|' expression
                        | expression AND expression | expression OR expression""")
    def p_binary(self, p: Any) -> None:
        p[0] = self._fold(p, 0, constants.binary, p[2], p[1], p[3])

    @rule("expression : expression '?' expression ':' expression")
    def p_conditional(self, p: Any) -> None:
        p[0] = self._fold(p, 0, constants.conditional, p[1], p[3], p[5])

    @rule("integer : NUMBER")
    def p_integer(self, p: Any) -> None:
        p[0] = self._integer(p, 1)

    # --- lists --------------------------------------------------------------------------------------------------------

    @rule("""names : WORD | names ',' WORD
             strings : string | strings ',' string
             integers : integer | integers ',' integer
             languages : language | languages ',' language
             data_values : data_value | data_values ',' data_value
             specifiers : first_specifier | specifiers specifier
             attribute_list : attribute | attribute_list ',' attribute
             declarators : declarator | declarators ',' declarator
             dimensions : dimension | dimensions dimension
             initializer_list : initializer | initializer_list ',' initializer
             parameter_items : parameter | parameter_items ',' parameter
             operand_list : operand | operand_list ',' operand
             call_operands : call_operand | call_operands ',' call_operand""")
    def p_list(self, p: Any) -> None:
        if len(p) == 2:
            p[0] = [p[1]]
        else:
            p[0] = p[1]
            p[0].append(p[len(p) - 1])

    @rule("string : STRING")
    def p_string(self, p: Any) -> None:
        p[0] = p[1][1:-1]

    @rule("label_list : label_range | label_list ',' label_range")
    def p_label_list(self, p: Any) -> None:
        p[0] = p[1] if len(p) == 2 else p[1] + p[3]

    @rule("label_range : WORD | WORD '<' integer '>'")
    def p_label_range(self, p: Any) -> None:
        count = p[3] if len(p) == 5 else 0
        if count > MOST_RANGE_LABELS:
            raise Fault("PTX104", f"a range of {count} labels is too large", self._span(p, 1))
        p[0] = [p[1]] if len(p) == 2 else [f"{p[1]}{i}" for i in range(count)]

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _span(self, p: Any, i: int) -> Span:
        """The span of symbol `i`."""
        begin, last = p.lexspan(i)
        return begin, self.ends[last]

    def _whole(self, p: Any) -> Span:
        """The span of the whole right-hand side."""
        return p.lexspan(1)[0], self.ends[p.lexspan(len(p) - 1)[1]]

    def _optional(self, p: Any, i: int, before: int) -> Span:
        """Where symbol `i` stands; for 0 the end of the symbol `before`, without a length."""
        if i:
            return self._span(p, i)
        end = self._span(p, before)[1]
        return end, end

    def _fold(self, p: Any, i: int, function: Callable[..., Any], *operands: Any) -> Any:
        """Evaluate; errors are reported at symbol `i`, or at the whole right-hand side (0)."""
        try:
            return function(*operands)
        except ConstantError as error:
            raise Fault(error.code, error.message, self._span(p, i) if i else self._whole(p), error.help) from None

    def _integer(self, p: Any, i: int) -> int:
        value: Immediate = self._fold(p, i, constants.literal, p[i])
        return int(self._fold(p, i, constants.as_integer, value))

    def _offset(self, p: Any, i: int) -> int:
        return int(self._fold(p, i, constants.as_integer, p[i])) if len(p) > i else 0

    def _plain(self, p: Any, i: int) -> str:
        name: str = p[i]
        if "." in name:
            raise Fault("PTX108", f"a declared name cannot have a dot: '{name}'", self._span(p, i))
        return name

    def _keyword(self, p: Any, i: int, word: str) -> None:
        if p[i] != word:
            raise Fault("PTX100", f"expected {word}, found '{p[i]}'", self._span(p, i))
