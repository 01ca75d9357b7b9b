"""What the warning rules find in modules that compilers made: for docs/rules.md."""

from __future__ import annotations

#: How the modules came about, and how many there are of each kind.
MODULES = """\
1,052 different modules that compilers made: 453 by numba-cuda 0.30 (23 kernels, five types, sm_75 to sm_100, one of
five without optimisation), 381 by Triton 3.9 and Gluon (17 kernels, several types, warps and stages, sm_75 to
sm_120), 218 by nvcc 13.0 (kernels of the test data, algorithms of Thrust and CUB, and 19 small programs for six
targets each: sorting, transforms, graphs, hashing, images, linear algebra). A finding counts as false if the kernel
does what it should on hardware that is as the manual says, and could not be better in the way that the rule says.
Rules that are not named found nothing.

PTX720 came later and was not run over these modules. It finds nothing in the
299 of the test data; when each kernel there with a loop is given a `.maxnreg` just below what PTX720 counts, above 24,
ptxas 13.0 spills in nine of ten and refuses the tenth (C7602)."""

#: Code: findings, modules with findings, findings of them that are false, and what they are.
FINDINGS = {
    "PTX510": (7, 7, 0, "code behind a branch, left over by nvcc"),
    "PTX515": (6, 6, 6, "a kernel for CTAs of 16 threads, which no directive says"),
    "PTX520": (3, 1, 3, "undefined values that Triton knows to be ignored"),
    "PTX545": (6, 6, 6, "the same kernel for CTAs of 16 threads"),
    "PTX557": (5, 5, 0, "a spin lock without a fence, in the kernel's source"),
    "PTX702": (5, 5, 0, "sizes divided by 4 and 8, without optimisation"),
    "PTX703": (2, 2, 0, "`x + 1`, which Python's rules make a double, without optimisation"),
    "PTX709": (1, 1, 0, "an intrinsic of the source"),
    "PTX711": (64, 1, 0, "bytes stored with eight lanes to a bank"),
    "PTX712": (1, 1, 0, "a double in each row of a matrix"),
    "PTX713": (3, 1, 0, "the table of a polynomial"),
    "PTX714": (10, 9, 0, "arrays whose indices are data"),
    "PTX715": (28, 21, 0, "kernels for f64; a constant that Python's rules make a double"),
    "PTX716": (39, 20, 0, "strides and sizes that are arguments"),
    "PTX718": (22, 8, 0, "kernels of one warp by Triton"),
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
