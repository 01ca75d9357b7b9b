"""PTX555 | unknown pragma | 11.4.7

What: a pragma of an entry or a body that no version of ptxas knows.
Why: it is ignored; often it is a spelling mistake.
Example:
    .entry k() .pragma "nounrol"; { ret; }
Better:
    .entry k() .pragma "nounroll"; { ret; }
"""

from __future__ import annotations

from ptxtools.ir.nodes import Function, Pragma
from ptxtools.isa.directives import PRAGMAS

from ..context import LintContext
from ..facts import FunctionFacts
from ..registry import bodies, directives

CODE = "PTX555"


@directives
def check_head(context: LintContext, function: Function) -> None:
    for item in function.directives:
        if isinstance(item, Pragma):
            _check(context, item)


@bodies
def check_body(context: LintContext, facts: FunctionFacts) -> None:
    for item in facts.others:
        if isinstance(item, Pragma):
            _check(context, item)


def _check(context: LintContext, item: Pragma) -> None:
    for text in item.strings:
        word, *arguments = text.split() or [""]
        if word not in PRAGMAS or (arguments and PRAGMAS[word].least is None):
            message = f'unknown pragma "{text}": it is ignored'
            context.warn(CODE, message, item.span, section="11.4.7")
