"""`ptxtools.lint(text, …)`: what is asked for must exist."""

import pytest

import ptxtools
from ptxtools.linter import lint as lint_module
from ptxtools.syntax import parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TEXT = HEAD + ".entry k() .maxntid 2048\n{\n.reg .pred p;\nelect.sync _|p, -1;\nmov.u32 %r1, 0;\nret;\n}\n"


def codes(**options):
    return [d.code for d in ptxtools.lint(TEXT, **options)]


def test_options():
    assert codes() == ["PTX550", "PTX302", "PTX201"]
    assert codes(target="sm_90") == ["PTX550", "PTX201"]
    assert codes(target="sm_90", ptx_version="7.8") == ["PTX550", "PTX301", "PTX201"]
    assert codes(select=["PTX5"]) == codes(select="ptx5") == ["PTX550"]
    assert codes(ignore=["PTX5", "PTX201"]) == codes(ignore="PTX5,PTX201") == ["PTX302"]


@pytest.mark.parametrize(("options", "message"), [
    ({"target": "foo"}, "unknown target 'foo'"),
    ({"target": ""}, "unknown target ''"),
    ({"target": "sm_91"}, r"unknown target 'sm_91' \(did you mean"),
    ({"ptx_version": "99.9"}, "unknown PTX version '99.9'"),
    ({"ptx_version": "eight"}, "'eight' is not a version"),
    ({"select": ["PTX2", "E501"]}, "unknown code 'E501'"),
    ({"ignore": "PTX999"}, "unknown code 'PTX999'"),
])  # fmt: skip
def test_what_is_not_known(options, message):
    with pytest.raises(ValueError, match=message):
        ptxtools.lint(TEXT, **options)


@pytest.mark.parametrize("options", [{"target": 90}, {"ptx_version": 8.0}, {"select": 3}, {"ignore": [5]}])
def test_what_is_of_another_type(options):
    with pytest.raises(TypeError, match="must be"):
        ptxtools.lint(TEXT, **options)


@pytest.mark.parametrize("options", [{"target": "foo"}, {"target": ""}, {"version": (99, 9)}])
def test_of_a_module(options):
    with pytest.raises(ValueError, match="unknown"):
        lint_module(parse(TEXT, "x").module, **options)
