"""GitLab's code quality report and JUnit XML, held against what their readers demand."""

import json
from xml.etree import ElementTree

import jsonschema

from ptxtools.diagnostics import Diagnostic, Severity, Source
from ptxtools.diagnostics.services import to_gitlab, to_junit

SOURCE = Source("one two\nadd a, b;\nadd a, b;\n", "dir/a & <b>.ptx")
ERROR = Diagnostic("PTX301", '50% of <a> & \x01 "b"', (8, 11), SOURCE, help=("do that",), section="9.7.1.1")
WARNING = Diagnostic("PTX501", "plain", (18, 21), SOURCE, Severity.WARNING)

#: "Code Quality report format" of GitLab's documentation.
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^(?!\\./|/)"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}


def test_gitlab():
    issues = json.loads(to_gitlab([ERROR, WARNING]))
    jsonschema.validate(issues, GITLAB)
    assert [issue["severity"] for issue in issues] == ["critical", "minor"]
    assert issues[0]["location"] == {"path": "dir/a & <b>.ptx", "lines": {"begin": 2, "end": 2}}
    assert json.loads(to_gitlab([])) == []


def test_gitlab_fingerprints_differ_and_do_not_depend_on_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    same = [Diagnostic("PTX501", "m", span, SOURCE) for span in ((8, 11), (18, 21))]
    first, second = (issue["fingerprint"] for issue in json.loads(to_gitlab(same)))
    assert first != second
    moved = Source("\n\n" + SOURCE.text, str(tmp_path / "dir" / "a & <b>.ptx"))
    assert json.loads(to_gitlab([Diagnostic("PTX501", "m", (10, 13), moved)]))[0]["fingerprint"] == first


def test_junit():
    text = to_junit([("a.ptx", [ERROR, WARNING]), ("fine.ptx", [])], [("gone.ptx", "gone.ptx: cannot be read")])
    root = ElementTree.fromstring(text.encode())
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == ("testsuites", "4", "2", "1")
    for suite in root:
        assert suite.tag == "testsuite" and int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
        assert all(case.get("name") and case.get("classname") for case in suite)
    failure = root.find("testsuite/testcase/failure")
    assert failure.get("message") == '50% of <a> & \ufffd "b"' and "help: do that" in failure.text
    assert root[1].find("testcase").get("name") == "no findings"
