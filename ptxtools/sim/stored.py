"""Ready kernels on disk: a run of a module that was run before needs neither parser nor checks nor lowering.

One file for each module, in the user's cache directory, keyed by the module's bytes and by the state of the code that
made it. A file that is damaged or cannot be written counts as absent. Only modules without findings are kept.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxtools import cache
from ptxtools.program.details import Detail
from ptxtools.program.program import Block, FunctionCode, LaunchConstant, Op, Program, Ref, Slot, Terminator
from ptxtools.program.variant import PLAIN, Variant
from ptxtools.records import astuple, fields, replace

from .kernel import Bounds, Kernel, Parameter
from .loadable import Body, Contents, Link, Storage

if TYPE_CHECKING:
    from ptxtools.diagnostics import Source
    from ptxtools.ir import Module
    from ptxtools.ir.origins import Origins
    from ptxtools.isa import Opcode

    from .image import Image
    from .tree import TreeModule

MOST_BYTES = 8 << 20  # of a file: larger modules are parsed again
MOST_FILES = 256


class StoredModule:
    """A module by its bytes. Stored parts are used; missing ones are created from the tree, and stored.

    parse: makes the tree; it raises `PtxError` for a module with errors. source: the text for lines of traps. origins:
    what those lines were generated from.
    """

    def __init__(
        self,
        data: bytes,
        parse: Callable[[], TreeModule],
        source: Callable[[], Source | None],
        origins: Callable[[], Origins | None] = lambda: None,
    ) -> None:
        self._parse, self.source, self._find_origins = parse, source, origins
        self._path = _path(data)
        self._tree: TreeModule | None = None
        self._programs: dict[str, Any] = {}
        found = _read(self._path)
        if found is None:
            self.contents = self._whole().contents
        else:
            contents, self._programs = found
            self.contents = contents

    def _whole(self) -> TreeModule:
        if self._tree is None:
            self._tree = self._parse()
        return self._tree

    def whole(self) -> Module:
        """The module's tree."""
        return self._whole().tree

    def bodies(self) -> list[Body]:
        """The functions that have a body."""
        return self._whole().bodies()

    def origins(self) -> Origins | None:
        """What the lines were generated from: by the tree, if it is there already."""
        return self._tree.origins() if self._tree is not None else self._find_origins()

    def lower(self, kernel: str, image: Image, variant: Variant = PLAIN) -> Program:
        """The program of a kernel, from the store if it was made for the same addresses; only plain ones are
        stored."""
        if variant != PLAIN:
            return self._whole().lower(kernel, image, variant)
        places = sorted(image.addresses.items())
        known = self._programs.get(kernel)
        if known is not None and known[0] == places:
            return decode_program(known[1])
        module = self._whole()
        program = module.lower(kernel, image)
        if not module.tree.warned:  # else the checks speak again in the next run
            self._programs[kernel] = (places, encode_program(program))
            _write(self._path, self.contents, self._programs)
        return program


# --- files ------------------------------------------------------------------------------------------------------------


def _path(data: bytes) -> str:
    digest = cache.blake2b(data, digest_size=16)
    digest.update(cache.code_state("sim").encode())
    return os.path.join(cache.directory(), "modules", f"{sys.implementation.cache_tag}-{digest.hexdigest()}.bin")


def _read(path: str) -> tuple[Contents, dict[str, Any]] | None:
    data = cache.read_sealed(path, "module", MOST_BYTES)
    try:
        if data is not None:
            contents, programs = marshal.loads(data)
            return _decode_contents(contents), programs
    except (ValueError, EOFError, TypeError, IndexError, KeyError):
        pass
    return None


def _write(path: str, contents: Contents, programs: dict[str, Any]) -> None:
    with contextlib.suppress(ValueError):
        data = marshal.dumps((_encode_contents(contents), programs))
        if len(data) <= MOST_BYTES and cache.write_sealed(path, "module", data):
            cache.prune(os.path.dirname(path), ".bin", MOST_FILES)


# --- contents ---------------------------------------------------------------------------------------------------------


def _encode_contents(contents: Contents) -> tuple[Any, ...]:
    kernels = [(k.name, [astuple(p) for p in k.parameters], astuple(k.bounds)) for k in contents.kernels.values()]
    return contents.target, kernels, [astuple(s) for s in contents.storages], contents.functions


def _decode_contents(encoded: tuple[Any, ...]) -> Contents:
    target, kernels, storages, functions = encoded
    return Contents(
        target,
        {name: Kernel(name, tuple(Parameter(*p) for p in params), Bounds(*bounds)) for name, params, bounds in kernels},
        tuple(_storage(*storage) for storage in storages),
        functions,
    )


def _storage(*values: Any) -> Storage:
    return replace(Storage(*values), links=tuple(Link(*link) for link in values[-1]))


# --- programs ---------------------------------------------------------------------------------------------------------


class StoredOpcode:
    """An opcode by its text; resolved only if more than the text is needed."""

    __slots__ = ("_opcode", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._opcode: Opcode | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._opcode is None:
            from ptxtools.isa import resolve

            self._opcode = resolve(self.text)
        return getattr(self._opcode, name)


def encode_program(program: Program) -> tuple[Any, ...]:
    """A program as nested tuples of plain values."""
    return (
        program.kernel,
        [([_encode_op(op) for op in block.ops], _encode_terminator(block.terminator)) for block in program.blocks],
        [_encode_function(function) for function in program.functions],
        *[getattr(program, field.name) for field in fields(Program)[3:]],
    )


def _encode_ref(ref: Ref | None) -> tuple[int, str] | None:
    return None if ref is None else (ref.slot, ref.type)


def _encode_op(op: Op | None) -> tuple[Any, ...] | None:
    if op is None:
        return None
    return (
        op.kind,
        None if op.opcode is None else op.opcode.text,
        [_encode_ref(ref) for ref in op.dst],
        [_encode_ref(ref) for ref in op.src],
        op.dst_types,
        op.src_types,
        _encode_ref(op.guard),
        op.negated,
        op.imm,
        op.space,
        None if op.detail is None else (type(op.detail).__name__, op.detail.values()),
        op.where,
    )


def _encode_terminator(end: Terminator) -> tuple[Any, ...]:
    return (
        end.kind, _encode_ref(end.guard), end.negated, end.target, end.other, end.targets, _encode_ref(end.index),
        end.callee, _encode_op(end.op), end.where, end.uniform,
    )  # fmt: skip


def _encode_function(code: FunctionCode) -> tuple[Any, ...]:
    named = {field.name: getattr(code, field.name) for field in fields(FunctionCode)}
    return (*(named | {"launch_constants": [astuple(constant) for constant in code.launch_constants]}).values(),)


def decode_program(encoded: tuple[Any, ...]) -> Program:
    """The program that `encode_program` made into tuples. Equal opcodes and slots are one object."""
    return _Decoder().program(encoded)


def _function(*values: Any) -> FunctionCode:
    code = FunctionCode(*values)
    return replace(code, launch_constants=[LaunchConstant(*c) for c in values[5]])


class _Decoder:
    def __init__(self) -> None:
        self._opcodes: dict[str | None, Any] = {None: None}
        self._refs: dict[tuple[int, str] | None, Ref | None] = {None: None}

    def program(self, encoded: tuple[Any, ...]) -> Program:
        kernel, blocks, functions, *rest = encoded
        return Program(
            kernel,
            [Block([self.op(op) for op in ops], self.terminator(end)) for ops, end in blocks],
            [_function(*function) for function in functions],
            *rest,
        )

    def ref(self, encoded: tuple[Slot, str] | None) -> Ref | None:
        try:
            return self._refs[encoded]
        except KeyError:
            assert encoded is not None
            made = self._refs[encoded] = Ref(*encoded)
            return made

    def op(self, encoded: tuple[Any, ...]) -> Op:
        kind, text, dst, src, dst_types, src_types, guard, negated, imm, space, detail, where = encoded
        opcode = self._opcodes.get(text)
        if opcode is None and text is not None:
            opcode = self._opcodes[text] = StoredOpcode(text)
        ref = self.ref
        return Op(
            kind, opcode, tuple(map(ref, dst)), tuple(map(ref, src)), dst_types, src_types, ref(guard), negated, imm,
            space, None if detail is None else self.detail(detail), where,
        )  # fmt: skip

    def detail(self, encoded: tuple[str, tuple[Any, ...]]) -> Detail:
        name, values = encoded
        return Detail.TYPES[name](*values)

    def terminator(self, encoded: tuple[Any, ...]) -> Terminator:
        kind, guard, negated, target, other, targets, index, callee, op, where, uniform = encoded
        made = None if op is None else self.op(op)
        return Terminator(
            kind, self.ref(guard), negated, target, other, targets, self.ref(index), callee, made, where, uniform
        )
