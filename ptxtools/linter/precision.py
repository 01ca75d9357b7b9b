"""What the warning rules find in modules that compilers made: for docs/rules.md. tools/findings.py counts it."""

from __future__ import annotations

#: How the modules came about, and how many there are of each kind.
MODULES = """\
1,697 different modules that compilers made: 864 by Triton 3.9 (13 kernels, four types, one, four and eight warps, sm_75
to sm_120), 576 by numba-cuda 0.30 (22 kernels, five types, sm_75 to sm_120, one of six without optimisation), 93 by
nvcc 13.0 (kernels of the test data, ten algorithms of CUB, cooperative groups, cuda::barrier and cuda::pipeline,
clusters, bulk copies, and 30 small kernels, for up to five targets; four modules without optimisation), 144 of the test
data (by nvcc, Triton and Gluon), 20 by LLVM from NVVM IR. `python tools/corpus/make.py FOLDER` makes such modules with
the compilers that a machine has, `python tools/findings.py --table FOLDERS` counts. A finding counts as false if the
kernel does what it should on hardware that is as the manual says, and could not be better in the way that the rule
says. Rules that are not named found nothing.

Seven modules are programs with bugs on purpose, and one kernel of numba-cuda's adds to a word that another CTA stores:
what is found there is true."""

#: Code: findings, modules with findings, findings of them that are false, and what they are.
FINDINGS = {
    "PTX507": (5, 5, 0, "a program with bugs on purpose"),
    "PTX508": (8, 8, 0, "a word that one CTA stores and others add to"),
    "PTX515": (2, 2, 0, "a program with bugs on purpose; a word that all threads load before one stores it"),
    "PTX516": (5, 5, 0, "a program with bugs on purpose"),
    "PTX520": (3, 1, 3, "undefined values that Triton knows to be ignored"),
    "PTX559": (2, 1, 2, "a reduction of coalesced threads, which computes its lanes"),
    "PTX597": (6, 6, 0, "programs with bugs on purpose"),
    "PTX701": (535, 10, 0, "pointers to shared memory in a pipeline; the others without optimisation"),
    "PTX702": (103, 36, 0, "divisions by 2, 4 and 16, without optimisation"),
    "PTX706": (15, 9, 0, "one barrier behind another, and a fence behind itself"),
    "PTX709": (1, 1, 0, "an intrinsic of the source"),
    "PTX710": (3, 3, 0, "an address converted twice, and a number widened for nothing"),
    "PTX711": (622, 10, 0, "rows that 8 or 16 lanes read in a column; bytes and halves with eight lanes to a bank"),
    "PTX713": (12, 4, 0, "the table of a polynomial"),
    "PTX714": (5, 4, 0, "arrays whose indices are data"),
    "PTX715": (48, 43, 0, "kernels for f64; a constant that Python's rules make a double"),
    "PTX716": (36, 14, 0, "strides and sizes that are arguments"),
    "PTX718": (290, 84, 0, "kernels of one warp by Triton"),
    "PTX719": (1, 1, 0, "an absolute value, without optimisation"),
    "PTX721": (432, 139, 0, "Triton's atomic operations, which have .acq_rel if nothing else is said"),
    "PTX722": (1, 1, 0, "a barrier of a cluster with nothing to order"),
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
