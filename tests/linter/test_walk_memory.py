"""Walks of one process: a kernel that is the same but for its names is walked once, one that differs each time."""

from ptxtools.ir.alike import Faultless
from ptxtools.linter import engine, facts, lint
from ptxtools.linter.walk.walker import Walker
from ptxtools.syntax import parse
from tests.rows import rows

KERNEL = """.version 8.0
.target sm_80
.address_size 64
{before}.entry {name}(.param .u64 {name}_out)
{{
    .shared .b32 {name}_s[64];
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [{name}_out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    mov.u64 %d3, {name}_s;
    add.s64 %d3, %d3, %d2;
    st.shared.u32 [%d3], %r1;
    {between}
    ld.shared.u32 %r2, [{name}_s+4];
    add.s64 %d2, %d2, %d1;
    st.global.u32 [%d2], %r2;
    ret;
}}
"""
BARRIER = "bar.sync 0;"


def walks(monkeypatch, *kernels):
    """How many walks each of some modules takes, and what is found in it."""
    monkeypatch.setattr(facts, "_walked_in_vain", Faultless())
    monkeypatch.setattr(engine, "_faultless", Faultless())
    count = []
    run = Walker.run
    monkeypatch.setattr(Walker, "run", lambda self: count.append(1) or run(self))
    found = []
    for text in kernels:
        count.clear()
        findings = lint(parse(text).module)
        found.append((len(count), {one.code for one in findings}))
    return found


def test_a_kernel_with_other_names_is_not_walked_again(monkeypatch):
    first, second = walks(monkeypatch, *(KERNEL.format(name=name, before="", between=BARRIER) for name in ("wa", "wb")))
    assert first[0] > 0 and second == (0, first[1])


def test_findings_are_found_each_time(monkeypatch):
    texts = [KERNEL.format(name=name, before="", between="") for name in ("wc", "wd", "wc")]
    found = walks(monkeypatch, *texts)
    assert all(count > 0 and "PTX515" in codes for count, codes in found) and found[0] == found[1] == found[2]


@rows("before", [".global .b32 unseen;\n", ".visible .func we_s() { ret; }\n"])
def test_a_module_that_says_more_of_its_names(before, monkeypatch):
    texts = [KERNEL.format(name="we", before=each, between=BARRIER) for each in ("", before)]
    (first, _), (second, _) = walks(monkeypatch, *texts)
    assert first > 0 and (second > 0) == ("we_s" in before)


def test_another_header_is_another_kernel(monkeypatch):
    text = KERNEL.format(name="wf", before="", between=BARRIER)
    found = walks(monkeypatch, text, text.replace("sm_80", "sm_90"), text)
    assert found[0][0] > 0 and found[1][0] > 0 and found[2][0] == 0


CALLER = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) fetch(.param .b64 a) {{ .reg .b64 %d; .reg .b32 %v;
	ld.param.b64 %d, [a]; {} %v, [%d]; st.param.b32 [r], %v; ret; }}
.entry k(.param .b64 o) .reqntid 32 {{
	.reg .b64 %d<4>; .reg .b32 %r<4>;
	ld.param.b64 %d1, [o]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 4, %d1;
	{} {{ .param .b64 x; .param .b32 y; st.param.b64 [x], %d2; call.uni (y), fetch, (x); ld.param.b32 %r2, [y]; }}
	st.global.b32 [%d2+4096], %r2; ret; }}
"""


@rows(("load", "before", "codes"), [
    ("ld.global.nc.b32", "st.global.b32 [%d2], %r1;", ["PTX547"]),
    ("ld.global.b32", "st.global.b32 [%d2], %r1;", []),
    ("ld.global.nc.b32", "st.global.b32 [%d2+256], %r1;", []),
    ("ld.global.nc.b32", "", []),
])  # fmt: skip
def test_nc_loads_of_functions(load, before, codes):
    result = parse(CALLER.format(load, before), "k.ptx")
    assert [d.code for d in [*result.diagnostics, *lint(result.module)]] == codes


@rows(("body", "codes"), [
    ("red.shared.add.u32 [v], 1;", ["PTX523"]),
    ("st.shared.b32 [v], 0; bar.warp.sync -1; red.shared.add.u32 [v], 1;", []),
    ("atom.shared.max.s32 %r1, [v], 3; red.shared.add.u32 [v], %r1;", ["PTX523"]),
    ("atom.shared.exch.b32 %r1, [v], 3; red.shared.add.u32 [v], %r1;", []),
    ("mov.u32 %r1, v; st.shared.b32 [%r1], 0; bar.warp.sync -1; red.shared.add.u32 [v], 1;", []),
])  # fmt: skip
def test_sums_that_nothing_sets(body, codes):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() .reqntid 1 { .reg .b32 %r<4>; .shared .b32 v;\n"
    result = parse(f"{head}{body} ret; }}\n", "k.ptx")
    found = [d.code for d in [*result.diagnostics, *lint(result.module)]]
    assert [code for code in found if code in ("PTX523", "PTX201")] == codes
