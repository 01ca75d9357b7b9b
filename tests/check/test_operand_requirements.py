"""Versions and targets that depend on which operands are written, as ptxas 13.0 has them."""

import ptxtools
from tests.rows import rows

HEAD = """.version {version}
.target {target}
.address_size 64
.global .texref tx; {globals}
.visible .entry k()
{{
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .u64 %ul<9>; .reg .b16 %h<9>; .reg .pred %p<9>;
"""
INDEPENDENT = "texmode_independent"


def codes(line: str, version: str, target: str) -> list[str]:
    variables = ".global .samplerref sm;" if INDEPENDENT in target else ""
    head = HEAD.format(version=version, target=target, globals=variables)
    found = ptxtools.lint(f"{head}{line}\nret;\n}}\n")
    return [d.code for d in found if d.severity.name == "ERROR"]


MMA = "tcgen05.mma.cta_group::1.kind::f16{} [%r1], %rd1, %rd2, %r2,{} %p1{};"
LANES = " {%r1, %r2, %r3, %r4},"
FILL = ".collector::a::fill"
TEX = "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [PLACE, {%f5, %f6}];"
COMPARED = "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tx, {%f5, %f6}], %f7;"
GATHER = "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [PLACE, {%f5, %f6}];"
SWIZZLE = "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], {};"


def both(place: str) -> tuple[str, str]:
    return TEX.replace("PLACE", place), GATHER.replace("PLACE", place)


#: A line, and the settings at which it is refused for its version and target, and accepted.
ROWS = [
    # The third source of min and max is an operand of another form.
    *((f"{name}.f32 %f1, %f2, %f3, %f4;", ["8.7 sm_100", "8.8 sm_90"], ["8.8 sm_100"])
      for name in ("min", "max", "min.NaN", "max.ftz")),
    ("max.f32 %f1, %f2, %f3;", [], ["2.3 sm_20"]),
    ("cp.async.ca.shared.global [%rd1], [%rd2], 4, %p1;", ["7.4 sm_80"], ["7.5 sm_80"]),
    ("cp.async.ca.shared.global [%rd1], [%rd2], 4, %r1;", [], ["7.4 sm_80"]),
    # scale-input-d; the lanes before it are optional, too.
    *((MMA.format(collector, lanes, ""), [], ["8.8 sm_101a", "9.0 sm_110a", "9.0 sm_110f", "9.0 sm_100a"])
      for collector in ("", FILL) for lanes in ("", LANES)),
    *((MMA.format("", lanes, ", 3"), ["8.8 sm_101a", "9.0 sm_110a", "9.0 sm_110f"], ["9.0 sm_100a"])
      for lanes in ("", LANES)),
    # bfloat16 as a result, however it is rounded.
    *((f"cvt.{mode}.bf16.f32 %h1, %f1;", ["9.0 sm_75", "6.5 sm_75"], ["7.0 sm_80"])
      for mode in ("rn", "rz", "rm", "rp")),
    # A sampler beside the texture in unified mode, and one in a register in the other.
    *((line, ["4.2 sm_30", "4.3 sm_20"], ["4.3 sm_30"]) for place in ("tx, tx", "tx, %rd2", "%rd1, %rd2")
      for line in both(place)),
    *((line, [], ["4.2 sm_30", "3.1 sm_20"]) for line in both("%rd1")),
    *((line, [f"4.2 sm_30, {INDEPENDENT}", f"4.3 sm_20, {INDEPENDENT}"], [f"4.3 sm_30, {INDEPENDENT}"])
      for place in ("tx, %rd2", "%rd1, sm") for line in both(place)),
    *((line, [], [f"4.2 sm_30, {INDEPENDENT}", f"3.0 sm_20, {INDEPENDENT}"]) for line in both("tx, sm")),
    (COMPARED, ["4.2 sm_30", "4.3 sm_20"], ["4.3 sm_30"]),
    ("mov.u64 %rd1, tx;", [], ["3.1 sm_20"]),
    ("mov.u64 %rd1, sm;", [f"4.2 sm_30, {INDEPENDENT}", f"4.3 sm_20, {INDEPENDENT}"], [f"4.3 sm_30, {INDEPENDENT}"]),
    # A fifth swizzle mode.
    (SWIZZLE.format(4), ["9.0 sm_103f", "9.0 sm_100a", "9.0 sm_90a"], ["8.8 sm_103a", "9.0 sm_103a"]),
    (SWIZZLE.format(3), [], ["9.0 sm_100a"]),
]  # fmt: skip
CASES = [(line, setting, good) for line, bad, fine in ROWS for settings, good in ((bad, False), (fine, True))
         for setting in settings]  # fmt: skip


@rows(("line", "setting", "accepted"), CASES, share=3)
def test_what_is_written_decides(line: str, setting: str, accepted: bool) -> None:
    version, target = setting.split(maxsplit=1)
    found = codes(line, version, target)
    assert found == [] if accepted else found and set(found) <= {"PTX301", "PTX302"}


def test_values_are_looked_at_in_each_instruction() -> None:
    """A verdict on one instruction is not that on the next with other constants."""
    policy = "createpolicy.range.L2::evict_last.b64 %rd1, [%rd2], {}, {};"
    lines = [policy.format(*sizes) for sizes in (("0x100", "0x100"), ("0x200", "0x100"), ("5", "-1"), ("-1", "5"))]
    assert codes("\n".join([*lines, policy.format("%r1", "1")]), "9.0", "sm_90") == ["PTX225", "PTX225"]
    copy = "cp.async.ca.shared.global [%r1], [%rd2], {}, {};"
    lines = [copy.format(*sizes) for sizes in ((4, 4), (4, 5), (16, 0), (8, 8), (8, -1))]
    assert codes("\n".join(lines), "9.0", "sm_90") == ["PTX225", "PTX225"]
    swizzles = "\n".join(SWIZZLE.format(mode) for mode in (3, 4, 5))
    assert codes(swizzles, "9.0", "sm_103a") == ["PTX225"]
    assert codes(swizzles, "9.0", "sm_100a") == ["PTX302", "PTX225"]
