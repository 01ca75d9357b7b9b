"""What the warning rules find in modules that compilers made: for docs/rules.md."""

from __future__ import annotations

#: How the modules came about, and how many there are of each kind.
MODULES = """\
918 different modules that compilers made: 453 by numba-cuda 0.30 (23 kernels, five types, sm_75 to sm_100, one of
five without optimisation), 380 by Triton 3.9 and Gluon (17 kernels, several types, warps and stages, sm_75 to
sm_120), 85 by nvcc 13.0 (kernels of the test data, algorithms of Thrust). A finding counts as false if the kernel
does what it should on hardware that is as the manual says, and could not be better in the way that the rule says.
Rules that are not named found nothing."""

#: Code: findings, modules with findings, findings of them that are false, and what they are.
FINDINGS = {
    "PTX510": (2, 2, 0, "code behind a branch, left over by nvcc"),
    "PTX520": (675, 7, 675, "undefined values that nvcc and Triton know to be ignored"),
    "PTX557": (5, 5, 0, "a spin lock without a fence, in the kernel's source"),
    "PTX702": (5, 5, 0, "sizes divided by 4 and 8, without optimisation"),
    "PTX703": (2, 2, 0, "`x + 1`, which Python's rules make a double, without optimisation"),
    "PTX709": (1, 1, 0, "an intrinsic of the source"),
    "PTX711": (64, 1, 0, "bytes stored with eight lanes to a bank"),
    "PTX712": (103, 4, 38, "false where a thread goes on with the next words, in a Thrust sort"),
}  # fmt: skip


def precision() -> list[str]:
    """The lines of the section about compilers' output."""
    lines = ["## Findings in compilers' output", "", MODULES, "", "| rule | findings | in modules | false | what |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| [{code}](#{code.lower()}) | {findings} | {modules} | {false} | {what} |"
        for code, (findings, modules, false, what) in FINDINGS.items()
    ]
    return lines
