"""Which kernel a name means."""

from pathlib import Path

import numpy as np
import pytest

import ptxtools
from ptxtools.launch.kernels import KernelNameError, find_name
from tests.rows import rows

LINES = Path(__file__).parents[2] / "testdata" / "lineinfo" / "lines.ptx"
FLOATS, INTS = "_ZN2ns4fillIfLi4EEEvPT_S1_", "_ZN2ns4fillIiLi2EEEvPT_S1_"
KERNELS = ["_Z4sumsPKfPfi", "_Z4hangPi", FLOATS, INTS, "plain", "plainer", "_ZN12_GLOBAL__N_15innerEPFivE", "_Z4overf",
           "_Z4overi", "_RNvC6_123foo3bar"]  # fmt: skip


@rows(
    ("wanted", "found"),
    [
        (FLOATS, FLOATS),
        ("plain", "plain"),
        ("void ns::fill<float, 4>(float*, float)", FLOATS),
        ("ns::fill<float, 4>(float*, float)", FLOATS),
        ("ns::fill<float,4>( float *,float )", FLOATS),
        ("ns::fill<int, 2>", INTS),
        ("fill<int,2>", INTS),
        ("sums", "_Z4sumsPKfPfi"),
        ("over(int)", "_Z4overi"),
        ("(anonymous namespace)::inner(int (*)())", "_ZN12_GLOBAL__N_15innerEPFivE"),
        ("inner", "_ZN12_GLOBAL__N_15innerEPFivE"),
        ("123foo::bar", "_RNvC6_123foo3bar"),
        ("bar", "_RNvC6_123foo3bar"),
        # beginnings
        ("ns::fill<f", FLOATS),
        ("fill<i", INTS),
        ("_Z4h", "_Z4hangPi"),
        ("plaine", "plainer"),
        ("hang(", "_Z4hangPi"),
    ],
)
def test_names(wanted, found):
    assert find_name(wanted, KERNELS) == found


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("over", "'over' matches 2 kernels: over(float) [_Z4overf], over(int) [_Z4overi]"),
        (
            "ns::fill",
            f"'ns::fill' matches 2 kernels: void ns::fill<float, 4>(float*, float) [{FLOATS}], void ns::fill",
        ),
        ("p", "'p' matches 2 kernels: plain, plainer"),
        ("hung", "there is no kernel 'hung'; did you mean 'hang'?"),
        (
            "zzzzzz",
            "there is no kernel 'zzzzzz'; there are: sums(float const*, float*, int) [_Z4sumsPKfPfi], hang(int*) [",
        ),
        (" ", "there is no kernel ' '; there are: "),
    ],
)
def test_names_that_mean_no_kernel_or_several(wanted, says):
    with pytest.raises(KernelNameError) as caught:
        find_name(wanted, KERNELS)
    assert str(caught.value).startswith(says)


def test_without_kernels():
    with pytest.raises(KernelNameError, match=r"^there is no kernel 'x'; there are: none$"):
        find_name("x", [])


def test_a_long_list_is_cut():
    with pytest.raises(KernelNameError, match=r"kernel11 and 28 more$"):
        find_name("kernel", [f"kernel{n}" for n in range(40)])


def test_from_python_exact_names_and_demangled_ones_but_no_beginnings():
    module = ptxtools.load(LINES)
    assert module["sums"].name == module["sums(float const*, float*, int)"].name == "_Z4sumsPKfPfi"
    assert module["sums"].demangled == "sums(float const*, float*, int)"
    assert "sums" in module and FLOATS in module and "sum" not in module and "fill" not in module and 7 not in module
    with pytest.raises(ptxtools.LaunchError, match="no kernel 'sum'; did you mean 'sums'"):
        module["sum"]


def test_launch_files_take_them(tmp_path):
    from ptxtools.cli.common import exit_status
    from ptxtools.cli.run import command

    (tmp_path / "case.toml").write_text(
        f'module = "{LINES}"\nkernel = "fill<int, 2>"\ngrid = [1, 1, 1]\nblock = [1, 1, 1]\n'
        'args = [{buffer="out"}, {value=7}]\n[buffers.out]\nzeros = "s32[4]"\nexpect = "out.npy"\n'
    )
    np.save(tmp_path / "out.npy", np.array([7, 7, 0, 0], np.int32))
    assert exit_status(command, "ptx-run", ["--launch", str(tmp_path / "case.toml")]) == 0
