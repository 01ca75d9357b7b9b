"""Static facts of operations beyond opcode, operands and types (`Op.detail`), a type for each sort of them.

`operations.OPERATIONS` says which kinds of operations have which. Their text is part of the name of native handlers,
and `sim.stored` writes their fields to disk: fields are plain values, tuples and dictionaries of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

if TYPE_CHECKING:
    from ptxtools.semantics.video import Selectors

    from .program import Slot


@dataclass_transform(frozen_default=True)
class Detail:
    """What `dataclass(frozen=True)` gives, without the milliseconds that it takes to make a class: programs load these
    at every start. Fields are what a class annotates, in order, with defaults as class attributes."""

    TYPES: ClassVar[dict[str, type[Detail]]] = {}
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.FIELDS = tuple(cls.__annotations__)
        cls.TYPES[cls.__name__] = cls

    def __init__(self, *values: Any, **named: Any) -> None:
        fields, content = self.FIELDS, self.__dict__
        content.update(zip(fields, values, strict=False))
        if named or len(values) != len(fields):
            content.update(named)
            left = [name for name in fields if not hasattr(self, name)]
            if left or len(values) > len(fields) or not content.keys() <= set(fields):
                raise TypeError(f"{type(self).__name__}{fields} cannot be made of {values} and {named}")

    def values(self) -> tuple[Any, ...]:
        """Its fields in order; `Detail.TYPES[name](*values)` makes it again."""
        return tuple(getattr(self, name) for name in self.FIELDS)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Detail) and other.values() == self.values()

    def __hash__(self) -> int:
        return hash((type(self), self.values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({fields})"


# --- operations on registers ------------------------------------------------------------------------------------------


class Constant(Detail):
    """The source at `place` is the constant `value`, which the semantics may take as a Python int instead."""

    place: int
    value: int


class Suffixes(Detail):
    """Of a video instruction: suffixes of d, a and b, and which of a, b, c have a minus."""

    d: str
    a: str
    b: str
    negated: tuple[bool, bool, bool]

    def selectors(self) -> Selectors:
        from ptxtools.semantics.video import Selectors

        return Selectors(self.d, self.a, self.b, self.negated)


class Truncated(Detail):
    """Of mad.f32: the product is truncated, as on sm_1x."""


class SpecialRegister(Detail):
    """The register's name, such as "%tid.x"."""

    name: str


class MatrixProduct(Detail):
    """selector: that of the metadata of a sparse factor. numerics: how products are added, which native code fixes
    when a launch asks for it."""

    selector: int
    numerics: str = ""


class Action(Detail):
    """The action of a barrier, an mbarrier or the like; `operations.Operation.actions` lists the names."""

    name: str


# --- memory -----------------------------------------------------------------------------------------------------------


class HostMemory(Detail):
    """Of native code: the access may be to host memory."""


class ThreadCopy(Detail):
    """A cp.async of `size` bytes. rule: what the third source is, "size", "ignore" or "" (there is none). host: as
    `HostMemory`."""

    size: int
    rule: str
    host: bool = False


class Groups(Detail):
    """Groups of asynchronous copies. commit: close one; pending: wait until no more than that many are, -1: until no
    copy is; None: do not wait. read: it is enough that the sources have been read."""

    commit: bool
    pending: int | None = None
    read: bool = False


class SourceNames(Detail):
    """For each source its operand, by the manual's name, and the state space of an address or ""."""

    names: tuple[tuple[str, str], ...]


class NamedOperands(Detail):
    """Operands by the manual's names.

    sources, results: first place and number of values in `Op.src` and `Op.dst`; offsets: constants that addresses add;
    spaces: state space of an address ("generic", "shared", "tensor"). `known` holds what the function that serves the
    event works out once; it is no part of the value.
    """

    sources: dict[str, tuple[int, int]]
    results: dict[str, tuple[int, int]]
    offsets: dict[str, int]
    spaces: dict[str, str]

    @property
    def known(self) -> dict[Any, Any]:
        found: dict[Any, Any] = self.__dict__.setdefault("_known", {})
        return found


class Multicast(Detail):
    """Whether all CTAs of the cluster receive the response."""

    everyone: bool


class TexturePlace(Detail):
    """How many sources are coordinates, level or gradients, offsets, and references to compare with."""

    coordinates: int
    extra: int = 0
    offsets: int = 0
    references: int = 0


# --- calls and resources ----------------------------------------------------------------------------------------------


class Callee(Detail):
    """Name of a function of the runtime."""

    name: str


class RegisterChange(Detail):
    """setmaxnreg: "inc" or "dec", and the registers that a thread has when the kernel starts."""

    action: str
    entry: int


class StackMove(Detail):
    """ "save", "restore" or "allocate", and of the last the alignment."""

    action: str
    alignment: int = 0


# --- what observers are shown -----------------------------------------------------------------------------------------


class Look(Detail):
    """A memory access. action: "read", "write", "atomic" or "copy" (written in a while); size: bytes of one lane;
    negated: the guard is; lanes: that many give addresses (fewer than 32 in matrix loads); function: number of the one
    that it is in."""

    action: str
    size: int
    negated: bool
    lanes: int
    function: int


class Ahead(Look):
    """Several accesses at once, `size` bytes from the first to the last, each at a multiple of `align`."""

    action: str
    size: int
    negated: bool
    lanes: int
    function: int
    align: int


class Meeting(Detail):
    """Who comes to a barrier or leaves it. what: "bar", "arrive", "warp", "fence", "cluster …" or "mbarrier …";
    negated: the guard is."""

    what: str
    negated: bool


class Guard(Detail):
    """Who runs an instruction: those for which the predicate holds; negated: does not hold."""

    negated: bool


class Counted(Detail):
    """What a "count" operation adds to a row (`program.Counter`): that of byte `row` of all of them."""

    what: str
    row: int


class Measured(Detail):
    """What a "measure" operation finds out about an access, for the row at byte `row`. space: "global" or "shared", the
    only lanes that it looks at; size: bytes of each of them; lanes: that many give addresses; writes: the access
    changes memory."""

    space: str
    size: int
    lanes: int
    writes: bool
    row: int


class Touch(Detail):
    """Registers that an operation, or the end of a block, of this kind reads and writes, by their slots; of what it
    writes in order, -1 for others, with the bytes that each gets (`widths`). guard: the one
    that says which lanes run it, -1: all; negated: it is; function: number of the one that it is in. "entry" of a
    function: what it writes are the slots that nobody has written yet, in its own frame, `above` bytes from that of the
    caller."""

    kind: str
    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    widths: tuple[int, ...]
    guard: int
    negated: bool
    function: int
    above: int = 0


class Called(Detail):
    """The number of a function that is called; -1: the address says which of `targets` (`program.Terminator`)."""

    function: int
    targets: tuple[int, ...] = ()


# --- made by the native engine ----------------------------------------------------------------------------------------


class Lanes(Detail):
    """Of a step across lanes that are all there: what it does, "order" (each lane takes the value of that lane in
    `order`, and whether that is so by `taken`) or the mode of a vote."""

    action: str
    order: tuple[int, ...] = ()
    taken: tuple[bool, ...] = ()


class Unison(Detail):
    """A whole kernel for CTAs whose warps stay whole (`native.code.unison`): its blocks, the number of the only
    barrier, -1 if it has none; slots that are the same in all lanes and never change, with their storage classes and
    values, None where the launch gives it."""

    stages: tuple[Any, ...]
    barrier: int
    constants: tuple[tuple[Slot, str, int | None], ...]


class Run(Detail):
    """Neighbouring operations as one (`native.code.runs`): steps; operands that are read from slots, and those that are
    kept in them: (number, slot, storage class); how the run goes round, or None; numbers of operands that are read and
    mostly the same in half a warp."""

    steps: tuple[Any, ...]
    read: tuple[tuple[int, Slot, str], ...]
    kept: tuple[tuple[int, Slot, str], ...]
    again: tuple[int, bool, bool] | None
    points: tuple[int, ...] = ()


class BoundedRun(Run):
    """A run over several blocks between which lie looks at its accesses (`native.code.chains`): it finds out itself
    that those are in bounds."""

    steps: tuple[Any, ...]
    read: tuple[tuple[int, Slot, str], ...]
    kept: tuple[tuple[int, Slot, str], ...]
    again: tuple[int, bool, bool] | None
    points: tuple[int, ...] = ()
