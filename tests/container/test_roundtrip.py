"""Text → container → text: nothing is lost, and the bytes are the same everywhere."""

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest

from ptxtools.container import decode_all, read, without_debug, write
from ptxtools.container.operands import Pool
from ptxtools.ir import File, Immediate, Instruction, Loc, Module, Name, Section, Variable
from ptxtools.syntax import parse, print_module
from tests.rows import rows

from .samples import EVERYTHING, PTX_FILES, ROOT, module


@rows("path", PTX_FILES, ids=lambda p: f"{p.parent.name}-{p.stem}", share=12)
def test_real_modules_come_back_equal(path):
    original = parse(path.read_text(), path.name).module
    data = write(original)
    back = read(data)
    assert back == original
    text = print_module(back)
    assert text == print_module(original)
    again = parse(text, "again.ptx").module
    assert write(again) == data
    assert write(back) == data


@pytest.mark.parametrize("options", [{}, {"compress": True}, {"debug": True}, {"debug": True, "compress": True}])
def test_every_kind_of_node_comes_back_equal(options):
    original = module()
    data = write(original, **options)
    back = read(data)
    for ours, theirs in zip(back.items, original.items, strict=True):
        assert ours == theirs
    assert back == original and original == back
    assert write(back, **options) == data


def test_the_bytes_do_not_depend_on_the_text_around_them():
    spaced = EVERYTHING.replace("\n", "\n\n  ").replace(";", " ; // comment\n")
    assert write(module(spaced)) == write(module(EVERYTHING, "elsewhere/other name.ptx"))


def test_names_and_lines_of_the_input_are_kept_only_with_debug():
    assert b"secret.ptx" not in write(module(name="secret.ptx"))
    assert b"secret.ptx" in write(module(name="secret.ptx"), debug=True)


def test_the_bytes_are_these():
    """Same input, same bytes, on every machine. A change of these digests is a change of the format."""
    digest = hashlib.sha256(write(module())).hexdigest()
    assert digest == "93c474e8d418ed71aae7ef144c57201202e8177e7c2a4c1f28d9d0421ee3ecd4"


@pytest.mark.parametrize("seed", ["0", "1", "777"])
def test_the_bytes_do_not_depend_on_the_hash_seed(seed):
    code = (
        "import hashlib, sys; from ptxtools.container import write; from ptxtools.syntax import parse;"
        "print(hashlib.sha256(write(parse(sys.stdin.read(), 'a.ptx').module)).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-OO", "-c", code], input=EVERYTHING, text=True, capture_output=True,
                          env=environment, check=True)  # fmt: skip
    assert done.stdout.strip() == hashlib.sha256(write(module())).hexdigest()


def test_strip_debug_leaves_no_debugging_data():
    back = read(write(module(), strip_debug=True))
    assert not [i for i in back.items if isinstance(i, File) or (isinstance(i, Section) and "debug" in i.name)]
    kernel = next(f for f in back.functions if f.name == "kernel")
    assert not [s for s in kernel.body.items if isinstance(s, Loc)]
    assert back == without_debug(module())
    assert len(kernel.body.items) == len(next(f for f in module().functions if f.name == "kernel").body.items) - 2


@pytest.mark.parametrize(
    "value", [0, -1, 127, -128, 128, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**127 - 1]
)
def test_numbers_of_every_width_come_back(value):
    body = "{ .reg .b64 %rd<2>; mov.b64 %rd1, %rd0; }"
    original = module(f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{body}\n")
    function = original.functions[0]
    function.body.items.append(Instruction("mov.b64", (Name("%rd1"), Immediate(value, "s64"))))
    assert read(write(original)) == original


def test_a_pool_holds_each_operand_once():
    pool = Pool()
    first = pool.number(Immediate(5, "s64"))
    assert pool.number(Immediate(5, "s64")) == first
    assert pool.number(Immediate(5, "u64")) != first
    assert pool.number(Name("a")) == pool.number(Name("a"))


def test_parts_of_a_container_can_be_changed_without_being_decoded():
    back = read(write(module()))
    kernel = next(f for f in back.functions if f.name == "kernel")
    kernel.directives = []
    assert kernel.directives == [] and len(kernel.params) == 3
    assert replace(kernel, name="other").name == "other"
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_decode_all_decodes_everything():
    original = module()
    assert decode_all(read(write(original))) == original


def test_a_variable_that_no_file_can_hold_is_an_error():
    from ptxtools.diagnostics import PtxError

    for variable in (
        Variable("big", "global", "b64", dims=(1 << 62,)),
        Variable("long", "global", "b8", dims=(1 << 40,), init=[Immediate(1, "s64")]),
    ):
        with pytest.raises(PtxError, match="PTX805"):
            write(Module([*module().items[:3], variable]))
