""".global and .const variables that functions declare in their bodies (5.4): one of each, for whoever runs."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
SCOPES = (
    HEADER
    + """
.global .u32 g = 100;
.func (.reg .u32 r) bump()
{
    .global .u32 g = 5;
    ld.global.u32 r, [g]; add.u32 r, r, 1; st.global.u32 [g], r;
    ret;
}
.visible .entry outer(.param .u64 out)
{
    .reg .u64 %d; .reg .u32 %r;
    ld.param.u64 %d, [out]; ld.global.u32 %r, [g]; st.global.u32 [%d], %r;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .u64 %d<9>; .reg .u32 %r<9>;
    .global .u32 g = 7;
    .const .u32 c[2] = {3, 4};
    .global .u64 p = g;
    .global .u64 q = generic(c) + 4;
    ld.param.u64 %d0, [out];
    ld.global.u32 %r0, [g];
    {
        .global .u32 g = 9;
        .global .u64 q = g;
        ld.global.u32 %r1, [g];
        ld.global.u64 %d1, [q]; ld.global.u32 %r2, [%d1];
    }
    {
        .global .u32 g[2] = {11, 12};
        ld.global.u32 %r3, [g + 4];
    }
    ld.global.u64 %d2, [p]; ld.global.u32 %r4, [%d2];
    ld.global.u64 %d3, [q]; ld.u32 %r5, [%d3];
    ld.const.u32 %r6, [c];
    call (%r7), bump;
    call (%r7), bump;
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};
    st.global.v4.u32 [%d0 + 16], {%r4, %r5, %r6, %r7};
    ret;
}
"""
)
VALUES = [7, 9, 9, 12, 7, 4, 3, 7]
ENGINES = ["native", "reference"]


def launch(module: ptxtools.Module, kernel: str, engine: str = "native", count: int = 8) -> list[int]:
    out = np.zeros(count, np.uint32)
    ptxtools.Device(engine=engine).launch(module[kernel], 1, 1, [out])
    found: list[int] = out.tolist()
    return found


def forms(text: str) -> list[ptxtools.Module]:
    """The module as it is, out of a container, and out of what that disassembles to."""
    container = ptxtools.assemble(text)
    return [ptxtools.loads(d) for d in (text, container, ptxtools.disassemble(container))]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("checks", ["", "all"])
def test_a_name_means_the_variable_of_its_scope(engine: str, checks: str) -> None:
    for module in forms(SCOPES):
        device, out = ptxtools.Device(engine=engine, checks=checks), np.zeros(8, np.uint32)
        assert device.launch(module["k"], 1, 1, [out]).reports == [] and out.tolist() == VALUES
        device.launch(module["outer"], 1, 1, [out])
        assert out[0] == 100


@pytest.mark.parametrize("engine", ENGINES)
def test_it_lives_as_long_as_the_module(engine: str) -> None:
    module, device, out = ptxtools.loads(SCOPES), ptxtools.Device(engine=engine), np.zeros(8, np.uint32)
    for round_ in range(3):
        device.launch(module["k"], 1, 1, [out])
        assert out[7] == 7 + 2 * round_


def test_it_has_a_name_outside() -> None:
    module, device = ptxtools.loads(SCOPES), ptxtools.Device()
    assert device.global_(module, "k.g").download().tolist() == [7]
    assert device.global_(module, "k.g.2").download().tolist() == [9]
    assert device.global_(module, "k.g.3").download().tolist() == [11, 12]
    device.global_(module, "bump.g").upload(np.array([40], np.uint32))
    out = np.zeros(8, np.uint32)
    device.launch(module["k"], 1, 1, [out])
    assert out[7] == 42
    with pytest.raises(ptxtools.LaunchError, match=r"did you mean 'bump.g'"):
        device.global_(module, "bump.h")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_of_functions(engine: str) -> None:
    """A call table may be local (7.1, 9.7.13.6); its functions are reached through it alone."""
    text = (
        HEADER
        + """
.func (.reg .u32 r) one() { mov.u32 r, 1; ret; }
.func (.reg .u32 r) two() { mov.u32 r, 2; ret; }
.visible .entry k(.param .u64 out)
{
    .reg .u64 %d<4>; .reg .u32 %r<3>;
    .global .u64 table[2] = {one, two};
    proto: .callprototype (.reg .u32 _) _ ();
    ld.param.u64 %d0, [out];
    ld.global.u64 %d1, [table + 8]; call (%r0), %d1, (), proto;
    ld.global.u64 %d1, [table]; call (%r1), %d1, (), proto;
    st.global.v2.u32 [%d0], {%r0, %r1};
    ret;
}
"""
    )
    for module in forms(text):
        assert launch(module, "k", engine, 2) == [2, 1]


#: Both modules have a `g` of their own, and hide it in braces.
FIRST = (
    HEADER
    + """
.global .u32 g = 100;
.visible .entry first(.param .u64 out)
{
    .reg .u64 %d; .reg .u32 %r<3>;
    ld.param.u64 %d, [out];
    { .const .u32 g = 1; ld.const.u32 %r1, [g]; }
    ld.global.u32 %r2, [g];
    st.global.v2.u32 [%d], {%r1, %r2};
    ret;
}
"""
)
SECOND = FIRST.replace("= 100", "= 200").replace("= 1;", "= 2;").replace("first", "second")


@pytest.mark.parametrize("engine", ENGINES)
def test_linking_keeps_what_a_name_means_where_it_stands(engine: str) -> None:
    for module in forms(ptxtools.disassemble(ptxtools.assemble([FIRST, SECOND]))):
        assert launch(module, "first", engine, 2) == [1, 100]
        assert launch(module, "second", engine, 2) == [2, 200]


def test_linking_keeps_what_an_initialiser_in_a_body_means() -> None:
    texts = [
        HEADER
        + f"""
.global .u32 g = {value};
.visible .entry {name}(.param .u64 out)
{{
    .reg .u64 %d<2>; .reg .u32 %r;
    .global .u64 p = g;
    ld.param.u64 %d0, [out]; ld.global.u64 %d1, [p]; ld.global.u32 %r, [%d1]; st.global.u32 [%d0], %r;
    ret;
}}
"""
        for name, value in (("a", 3), ("b", 4))
    ]
    module = ptxtools.loads(ptxtools.assemble(texts))
    assert [launch(module, name, count=1) for name in "ab"] == [[3], [4]]


def test_the_command_runs_it_again_from_what_it_stored(
    tmp_path: object, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with open("k.ptx", "w") as file:
        file.write(SCOPES)
    for _ in range(2):
        assert exit_status(command, "ptx-run", ["k.ptx", "-k", "k", "--grid", "1", "--block", "1",
                                                "--arg", "zeros:u32[8]"]) == 0  # fmt: skip
        assert capfd.readouterr().out == "argument 0: u32[8] = 7 9 9 12 7 4 3 7\n"
