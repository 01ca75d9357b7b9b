"""A large module is checked in several processes: the findings are those of one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ptxtools.cli import checking
from ptxtools.linter import engine, findings_of, processes
from ptxtools.syntax import parse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
#: Errors and warnings of functions, of instructions, of directives and of the module.
KERNEL = """.shared .align 4 .b8 room{n}[64];
.visible .entry k{n}(.param .u64 p) .maxntid 2000 {{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %q;
    ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %q, %r2, 0;
    @%q bar.sync 0;
    add.u32 %r3, %r1, 4294967296;
    st.shared.u32 [room{n}+{n}], %r3; add.f32 %r4, %r3, %nowhere; .local .b8 idle[4];
    cp.async.ca.shared.global [%r1], [%d1], 4;
    ret;
}}
"""


@pytest.fixture(autouse=True)
def small_modules_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LARGE", 0)


def kernels(count: int) -> str:
    return HEAD + "".join(KERNEL.format(n=n) for n in range(count))


def test_findings_are_the_same_in_any_number_of_processes() -> None:
    module, syntax = parse(kernels(7), "many.ptx")
    alone = findings_of(module, syntax)
    assert len({finding.code for finding in alone}) > 5, alone
    for number in (2, 3, 5, 12):
        shared = findings_of(module, syntax, processes=number)
        assert shared == alone and all(finding.source is module.source for finding in shared)
    targets = ["sm_75", "sm_90a"]
    assert findings_of(module, targets=targets, processes=2) == findings_of(module, targets=targets)


def test_a_process_that_ends_early_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module, syntax = parse(kernels(3), "many.ptx")
    alone, here, check = findings_of(module, syntax), os.getpid(), engine.check

    def fragile(*args: object, **options: object) -> object:
        if os.getpid() != here:
            os._exit(9)
        return check(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "check", fragile)
    assert findings_of(module, syntax, processes=3) == alone


def test_an_error_in_any_process_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    module = parse(kernels(3), "many.ptx").module
    children: list[int] = []
    fork = os.fork

    def counted() -> int:
        child = fork()
        if child:
            children.append(child)
        return child

    monkeypatch.setattr(os, "fork", counted)
    monkeypatch.setattr(engine, "check", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        findings_of(module, processes=3)
    assert children
    for child in children:  # none is left behind
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_copies_of_functions_are_no_reason_for_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = ".entry kernel{n}()\n{{\n    .reg .b32 %r<2>;\n" + "    mov.b32 %r1, 0;\n" * 40 + "    ret;\n}}\n"
    module = parse(HEAD + "".join(kernel.format(n=n) for n in range(20))).module
    forked: list[int] = []
    monkeypatch.setattr(processes, "together", lambda works, shared: forked.append(len(works)) or [w() for w in works])
    monkeypatch.setattr(engine, "LARGE", 43)
    findings_of(module, processes=2)
    assert not forked
    monkeypatch.setattr(engine, "LARGE", 42)
    findings_of(module, processes=2)
    assert forked == [2]


def test_shares_are_whole_and_even() -> None:
    chance = random.Random(3)
    for _ in range(100):
        pieces = [chance.randint(1, 40) for _ in range(chance.randint(0, 60))]
        before = [chance.choice((0.0, 0.1, 0.4, 2.0)) for _ in range(chance.randint(2, 5))]
        shares = [pieces[share] for share in processes.shares(pieces, before)]
        assert [one for share in shares for one in share] == pieces and len(shares) == len(before)
        ends = [sum(share) + own * sum(pieces) for share, own in zip(shares, before, strict=True) if share]
        assert not ends or max(ends) - min(ends) <= 80, (shares, before)


def test_large_files_get_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "available", lambda: 3)
    large = bytes(checking._LARGE)
    counts = [checking._processes(data, wanted) for data in (b"", large) for wanted in (None, 1, 2, 9)]
    assert counts == [1, 1, 1, 1, 3, 1, 2, 3]
