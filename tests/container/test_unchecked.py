"""A container whose hash is right but whose module has errors: it was forged, and none of it runs."""

import pytest

import ptxtools
from ptxtools.container import write
from ptxtools.syntax import parse

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
FORGED = {
    "unknown name": ".visible .entry k() { add.u32 nowhere, nowhere, 1; ret; }",
    "unknown opcode": ".visible .entry k() { .reg .u32 %r; add.q32 %r, %r, 1; ret; }",
    "wrong register": ".visible .entry k() { .reg .u64 %r; add.u32 %r, %r, 1; ret; }",
    "missing label": ".visible .entry k() { bra nowhere; }",
}


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED)
def test_nothing_of_it_runs(body):
    module = ptxtools.loads(write(parse(HEAD + body, "x").module), "forged.ptxo")
    with pytest.raises(ptxtools.PtxError, match=r"forged\.ptxo"):
        ptxtools.Device("sm_90").launch(module["k"], 1, 1, [])


def test_the_commands_refuse_it(tmp_path, monkeypatch, capfd):
    from ptxtools.cli import run

    path = tmp_path / "forged.ptxo"
    path.write_bytes(write(parse(HEAD + FORGED["unknown name"], "x").module))
    monkeypatch.setenv("PTXTOOLS_CACHE", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        run.main([str(path), "--grid", "1", "--block", "1"])
    _, err = capfd.readouterr()
    assert ended.value.code == 1 and "forged.ptxo:" in err and "nowhere" in err and "Traceback" not in err
