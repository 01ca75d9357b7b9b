"""Kinds and causes of traps: what code asks, so that nothing depends on a message."""

import ast
import json
import pickle
from pathlib import Path

import pytest

import ptxtools
from ptxtools import Trap
from ptxtools.diagnostics import Cause, TrapKind
from ptxtools.diagnostics.kinds import CHECKERS

PACKAGE = Path(ptxtools.__file__).parent

ASSERTS = """
.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[23] = {105, 110, 100, 101, 120, 32, 105, 115, 32, 111, 117, 116, 32, 111, 102, 32, 98, 111,
                                 117, 110, 100, 115, 0};
.visible .entry k()
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd0, text;
    cvta.global.u64 %rd1, %rd0;
    mov.u32 %r0, 7;
    {
        .param .b64 a; st.param.b64 [a], %rd1;
        .param .b64 b; st.param.b64 [b], %rd1;
        .param .b32 c; st.param.b32 [c], %r0;
        .param .b64 d; st.param.b64 [d], %rd1;
        .param .b64 e; st.param.b64 [e], 1;
        call.uni __assertfail, (a, b, c, d, e);
    }
    ret;
}
"""

ACCESS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    .shared .align 8 .b8 room[64];
    ld.param.u64 %rd0, [p];
    {access}
    ret;
}}
"""

CASES = {
    "ld.shared.u32 %r0, [room+4096];": (Cause.OUT_OF_BOUNDS, "shared"),
    "ld.global.u32 %r0, [%rd0];": (Cause.OUT_OF_BOUNDS, "global"),
    "ld.u32 %r0, [%rd0];": (Cause.OUT_OF_BOUNDS, "global"),
    "st.shared.u32 [room+2], 1;": (Cause.MISALIGNED, ""),
    "trap;": (Cause.OTHER, ""),
}


def run(text, *args, **options):
    module = ptxtools.loads(text)
    with pytest.raises(Trap) as caught:
        ptxtools.Device(**options).launch(module["k"], 1, 1, args)
    return caught.value


def test_a_kind_is_a_text():
    trap = Trap("why", kind="timeout")
    assert trap.kind is TrapKind.TIMEOUT and trap.kind == "timeout" and f"{trap.kind}" == "timeout"
    assert json.dumps({"kind": trap.kind}) == '{"kind": "timeout"}' and trap.kind in {"timeout"}
    assert pickle.loads(pickle.dumps(trap.kind)) is trap.kind
    with pytest.raises(ValueError, match="tiredness"):
        Trap("why", kind="tiredness")


def test_every_checker_is_a_kind():
    assert {kind for kind in TrapKind if kind.is_checker} == set(CHECKERS)
    assert {cause.checker for cause in Cause} <= {None, *CHECKERS}


def test_what_counts_as_expected():
    assert TrapKind.DEADLOCK.meets("timeout") and TrapKind.MEMCHECK.meets("trap") and TrapKind.TRAP.meets("trap")
    assert not TrapKind.TIMEOUT.meets("deadlock") and not TrapKind.TRAP.meets("memcheck")
    assert not TrapKind.RACECHECK.meets("trap")


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("access", CASES)
def test_both_engines_say_what_was_wrong(access, engine):
    trap = run(ACCESS.format(access=access), 1 << 50, engine=engine)
    assert (trap.cause, trap.space) == CASES[access] and trap.kind is TrapKind.TRAP


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_an_assertion_is_no_bad_access_whatever_its_text_says(engine):
    """Its text holds words that messages about memory have, too."""
    trap = run(ASSERTS, checks=["memcheck"], engine=engine)
    assert "index is out of bounds" in trap.reason and trap.kind is TrapKind.TRAP and trap.cause is Cause.OTHER


def reads_reason(node):
    """Whether an expression compares, searches or cuts `….reason`."""

    def is_reason(part):
        return isinstance(part, ast.Attribute) and part.attr == "reason"

    if isinstance(node, ast.Compare):
        return any(map(is_reason, (node.left, *node.comparators)))
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return is_reason(node.value)
    return False


def test_no_code_reads_the_reason_of_a_trap():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if ".reason" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if reads_reason(node)
    ]
    assert not found


@pytest.mark.parametrize(
    "text", ["'a' in trap.reason", "t.reason.startswith('a')", "x.y.reason[:3]", "t.reason == 'a'"]
)
def test_the_search_sees_every_way(text):
    assert any(map(reads_reason, ast.walk(ast.parse(text))))
