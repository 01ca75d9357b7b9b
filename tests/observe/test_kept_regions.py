"""Regions that look at flags of bytes, and at who has touched memory: initcheck and racecheck say the same with them,
one access at a time, and without a first look."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ptxtools
from ptxtools.program.passes import pointers
from ptxtools.sim import trial

WORDS = 128
_SETUP = f""".shared .align 16 .b8 tile[{4 * WORDS}]; .shared .align 16 .b8 other[{4 * WORDS}];
.reg .b32 %t, %c, %n, %p<6>, %w<8>, %i, %k; .reg .b64 %a, %b, %o, %x<4>; .reg .pred %g, %h, %again;
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x; ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb];
ld.param.u64 %o, [po]; mad.lo.u32 %i, %c, %n, %t; mad.wide.u32 %x0, %i, 4, %a; mad.wide.u32 %x1, %i, 4, %b;
mad.wide.u32 %x2, %i, 4, %o; mad.wide.u32 %x3, %t, 4, %b; mov.u32 %k, 0;
setp.lt.u32 %g, %t, 20; setp.ne.u32 %h, %t, 9;
mov.u32 %p0, tile; mad.lo.u32 %p0, %t, 4, %p0; mov.u32 %p1, other; mad.lo.u32 %p1, %t, 4, %p1;
shr.u32 %w0, %t, 4; mov.u32 %p2, tile; mad.lo.u32 %p2, %w0, 64, %p2;
xor.b32 %w0, %t, 3; mov.u32 %p3, tile; mad.lo.u32 %p3, %w0, 4, %p3;
and.b32 %w0, %t, 15; mov.u32 %p4, other; mad.lo.u32 %p4, %w0, 4, %p4;
mov.u32 %p5, other;"""


class Writer:
    """Writes a kernel that passes words through shared memory, with barriers between what is written and read; one
    statement in some kernels is left out, or turned to other words."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self) -> str:
        return f"%w{self.random.randrange(1, 6)}"

    def guard(self) -> str:
        return self.random.choice(["", "", "", "", "@%g ", "@!%h ", "@%h "])

    def stores(self) -> list[str]:
        choose = self.random.choice
        lines = [f"ld.global.u32 {self.value()}, [{choose(['%x0', '%x0', '%x1', '%x3'])}];" for _ in range(2)]
        for place in ("%p0", "%p1"):
            guard = choose(["", "", "", self.guard()])
            lines.append(f"{guard}st.shared.u32 [{place}], {self.value()};")
        return lines

    def loads(self) -> list[str]:
        choose = self.random.choice
        lines = []
        for _ in range(choose([1, 2, 6])):
            place = choose(["%p0", "%p2", "%p2", "%p3", "%p4", "%p5"])
            offsets = [0, 4, 8, 12, 60] if place in ("%p2", "%p5") else [0, 0, 64, 128]
            value = self.value()
            lines.append(f"{self.guard()}ld.shared.u32 {value}, [{place}+{choose(offsets)}];")
            lines.append(f"add.u32 {self.value()}, {value}, {self.value()};")
        return lines

    def text(self) -> str:
        choose, rounds = self.random.choice, self.random.choice([1, 1, 2, 5])
        barrier = ["bar.sync 0;"]
        inside = [*self.stores(), *barrier, *self.loads(), *choose([barrier, barrier, []]), "add.u32 %k, %k, 1;"]
        if self.random.random() < 0.3:
            inside.insert(-1, f"{self.guard()}st.shared.u32 [%p0], {self.value()};")
        out = choose(["%x2", "%x2", "%x2", "%x2+4", "%x0", "%x3"])
        ends = [f"{self.guard()}st.global.u32 [{out}], {self.value()};"]
        if self.random.random() < 0.4:  # something is left out
            inside.pop(self.random.randrange(len(inside) - 1))
        starts = [f"mov.u32 %w{number}, {number};" for number in range(1, 6)]
        again = [f"setp.lt.u32 %again, %k, {rounds};", "@%again bra AGAIN;"]
        return "\n".join([_SETUP, *starts, "AGAIN:", *inside, *again, *ends])


def _module(body: str) -> str:
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 po) {{
  {body}
  ret;
}}"""


def outcome(text: str, seed: int, checks: str, **options: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    threads, ctas = int(rng.choice([32, 48, 64, 128])), int(rng.choice([1, 2, 3]))
    device = ptxtools.Device(checks=checks, threads=1, **options)
    words = rng.integers(1 << 30, size=512).astype(np.uint32)
    one, out = device.upload(words), device.alloc(words.nbytes)
    other = device.upload(words) if rng.random() < 0.7 else device.alloc(words.nbytes)
    where = [one, other, one if rng.random() < 0.2 else out]
    result = device.launch(ptxtools.loads(text)["k"], ctas, threads, where)
    found = [(one.checker, one.line, one.message.partition(":")[0], one.count) for one in result.reports]
    return found, str(result.verdict), result.instructions


@pytest.mark.share(20)
@pytest.mark.parametrize("checks", ["initcheck", "racecheck", "memcheck,initcheck,racecheck"])
@pytest.mark.parametrize("seed", range(300))
def test_reports_are_those_of_one_access_at_a_time(seed: int, checks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _module(Writer(seed).text())
    found = outcome(text, seed, checks, tier="regions")
    assert found == outcome(text, seed, checks, tier="interpreter")
    monkeypatch.setattr(trial, "looks", lambda *what: [])
    assert found == outcome(text, seed, checks, tier="interpreter")


POINTERS = """
.reg .b64 %a, %b, %c, %x, %y; .reg .b32 %t, %w; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %c, [po];
cvta.to.global.u64 %x, %a; mad.wide.u32 %x, %t, 4, %x; ld.global.u32 %w, [%x];
"""


@pytest.mark.parametrize(
    ("more", "read", "written"),
    [
        ("mad.wide.u32 %y, %t, 4, %c; st.global.u32 [%y], %w;", {0}, {16}),
        ("setp.eq.u32 %p, %t, 3; selp.b64 %y, %a, %c, %p; st.global.u32 [%y], %w;", {0}, {0, 16}),
        ("mov.u64 %x, %b; ld.global.u32 %w, [%x+8]; st.global.u32 [%c], %w;", {0, 8}, {16}),
        ("red.global.add.u32 [%b], %w;", {0}, {8}),
    ],
)
def test_pointers_are_followed_to_parameters(more: str, read: set[int], written: set[int]) -> None:
    device = ptxtools.Device(checks="racecheck", threads=1)
    kernel = ptxtools.loads(_module(POINTERS + more))["k"]
    program = device.program(kernel.module.loadable, kernel, trial=1)
    assert pointers.pointers_of(program) == (read, written)


def test_what_is_written_through_unknown_pointers_leaves_no_guess() -> None:
    device = ptxtools.Device(checks="racecheck", threads=1)
    kernel = ptxtools.loads(_module(POINTERS + "ld.global.u64 %y, [%b]; st.global.u32 [%y], %w;"))["k"]
    assert pointers.pointers_of(device.program(kernel.module.loadable, kernel, trial=1)) is None


def test_a_wrong_guess_is_noticed_and_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pointer that is stored through leads beyond its own buffer, into one that is only read."""
    text = "mad.wide.u32 %y, %t, 4, %c; add.s64 %y, %y, %b; st.global.u32 [%y], %w;"
    module = _module(POINTERS.replace("ld.param.u64 %b, [pb];", "ld.param.u64 %b, [distance];") + text)
    kernel = ptxtools.loads(module.replace(".param .u64 po", ".param .u64 po, .param .u64 distance"))["k"]
    device = ptxtools.Device(checks="racecheck", threads=1)
    words = np.arange(1024, dtype=np.uint32)
    source, out = device.upload(words), device.upload(words)
    looks: list[int] = []
    run = trial.attempt

    def attempt(given: Any, context: Any, run_one: Any, *rest: Any) -> Any:
        def noted(how: trial.How) -> Any:
            looks.append(how.trial)
            return run_one(how)

        return run(given, context, noted, *rest)

    monkeypatch.setattr(trial, "attempt", attempt)
    for distance, wanted in ((0, [1]), (source.address - out.address + 2048, [1, 1]), (0, [1])):
        looks.clear()
        result = device.launch(kernel, 1, 64, [source, source, out, distance])
        assert (looks, result.reports, str(result.verdict)) == (
            wanted,
            [],
            "race-free in every schedule of this launch",
        )
    assert np.asarray(source.download()).view(np.uint32)[512:576].tolist() == list(range(64))
