"""`ptx-run --litmus`: output, formats, exit status."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

import ptxtools
from ptxtools.cli.common import exit_status
from ptxtools.cli.run import command
from tests.model.suite import FOLDER

MP = (FOLDER / "Chain+atom.litmus").read_text("utf-8")


def run(*arguments):
    return exit_status(command, "ptx-run", [str(argument) for argument in arguments])


@pytest.fixture
def allowed(tmp_path):
    path = tmp_path / "sb.litmus"
    path.write_text("PTX SB\n{ x=0; y=0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | st.weak y, 1 ;\n"
                    " ld.weak r0, y | ld.weak r1, x ;\nexists (P0:r0 == 0 /\\ P1:r1 == 0)\n")  # fmt: skip
    return path


def test_one_test_is_shown_with_its_states_and_a_witness(allowed, capsys):
    assert run("--litmus", allowed) == 0
    out = capsys.readouterr().out
    assert "SB: ok, allowed (sometimes), 4 executions, 4 states, model 8.x" in out
    assert "  *      1  P0:r0=0  P1:r1=0" in out and "P0: ld.weak r0, y  --fr-->  P1: st.weak y, 1" in out


def test_a_forbidden_condition_names_the_axiom_and_the_cycle(capsys):
    assert run("--litmus", FOLDER / "Chain+atom.litmus") == 0
    out = capsys.readouterr().out
    assert "forbidden (never)" in out and "Causality (8.10.6) forbids it:" in out
    assert "P0: st.release.gpu f, 1  --rf-->  P1: atom.relaxed.gpu.add r0, f, 1" in out


def test_a_condition_that_does_not_hold_is_status_1(allowed, capsys):
    allowed.write_text(allowed.read_text().replace("exists", "~exists"))
    assert run("--litmus", allowed, FOLDER / "Chain+atom.litmus") == 1
    out = capsys.readouterr().out.splitlines()
    assert "SB: FAILED" in out[0] and "Chain+atom: ok" in out[1] and out[2] == "2 tests, 1 failed"
    assert run("--litmus", "-q", allowed, FOLDER / "Chain+atom.litmus") == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_malformed_test_is_reported_and_the_others_run(allowed, tmp_path, capsys):
    bad = tmp_path / "bad.litmus"
    bad.write_text("PTX t\n{}\nP0@cta 0,gpu 0;\nld.foo r0, x;")
    assert run("--litmus", bad, allowed) == 1
    captured = capsys.readouterr()
    assert "bad.litmus:4:1" in captured.err and "SB: ok" in captured.out


def test_json_has_states_witness_and_the_broken_axioms(allowed, capsys):
    assert run("--litmus", "--format", "json", "--model", "7.5", allowed, FOLDER / "CoRR.litmus") == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["verdict"], first["observation"], first["holds"], first["model"]) == (
        "allowed",
        "sometimes",
        True,
        "7.5",
    )
    assert {"values": {"P0:r0": 0, "P1:r1": 0}, "executions": 1, "races": 1, "satisfies": True} in first["states"]
    texts = {event["text"] for event in first["witness"]["events"]}
    assert {"st.weak x, 1", "ld.weak r1, x", "initial x"} <= texts
    assert second["verdict"] == "forbidden" and second["witness"] is None
    assert second["forbidden_by"][0]["axiom"] in ("Causality", "SC-per-Location")


def test_pictures(allowed, capfdbinary):
    assert run("--litmus", "--format", "svg", allowed) == 0
    root = ElementTree.fromstring(capfdbinary.readouterr().out)
    assert root.tag.endswith("svg") and b"ld.weak r0, y" in ElementTree.tostring(root)
    assert run("--litmus", "--format", "dot", allowed) == 0
    assert capfdbinary.readouterr().out.startswith(b"digraph execution {")


def test_a_picture_shows_one_test(allowed, capsys):
    assert run("--litmus", "--format", "svg", allowed, allowed) == 2
    assert "draws one test" in capsys.readouterr().err


def test_the_model_as_cat(capsys):
    for version in ("6.0", "7.5", "8.x"):
        assert run("--litmus", "--format", "cat", "--model", version) == 0
        out = capsys.readouterr().out
        assert out.startswith("PTX\n") and "irreflexive ((rf | fr); causality) as Causality" in out
        assert ("PROXY_FENCE]" in out) == (version != "6.0")


def test_folders(tmp_path, allowed, capsys):
    assert run("--litmus", tmp_path) == 0
    assert "SB: ok" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert run("--litmus", tmp_path / "empty") == 2


def test_options_of_litmus_need_it(allowed, capsys):
    assert run(allowed, "--model", "6.0") == 2
    assert run(allowed, "--unroll", "2") == 2
    assert run("--list", allowed, "--format", "svg") == 2
    assert run(allowed, allowed) == 2
    assert run("--litmus", allowed, "--model", "9.9") == 2
    capsys.readouterr()


def test_unroll_bounds_loops(tmp_path, capsys):
    path = tmp_path / "spin.litmus"
    path.write_text(
        "PTX spin\n{ x=0; }\n P0@cta 0,gpu 0 ;\n L: ;\n add r0, r0, 1 ;\n bne r0, 5, L ;\nexists (P0:r0 == 5)\n"
    )
    assert run("--litmus", path) == 1
    assert "more than 2 times are left out" in capsys.readouterr().out
    assert run("--litmus", path, "--unroll", "5") == 0


def test_the_library():
    outcomes = ptxtools.litmus(MP, model="6.0")
    assert outcomes.holds and not outcomes.allowed and outcomes.observation == "Never"
    with pytest.raises(ptxtools.PtxError):
        ptxtools.litmus("PTX")
    with pytest.raises(ValueError, match="unknown memory model"):
        ptxtools.litmus(MP, model="5.0")
