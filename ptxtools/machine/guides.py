"""Executions that the memory consistency model allows of a launch, for an engine to follow (`--memory weak`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ptxtools.records import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable

Dim3 = tuple[int, int, int]


class Step(Protocol):
    """What an instruction does to memory. at: where its text begins; reads, writes: of each element, as unsigned bytes;
    places: their device addresses, -1 in shared memory; sizes: their bytes; answer: what an operation on an mbarrier
    returns."""

    @property
    def at(self) -> int: ...
    @property
    def reads(self) -> Sequence[int]: ...
    @property
    def writes(self) -> Sequence[int]: ...
    @property
    def places(self) -> Sequence[int]: ...
    @property
    def sizes(self) -> Sequence[int]: ...
    @property
    def answer(self) -> int: ...


class Guide(Protocol):
    """One execution. steps: of each thread, by CTA and number, in program order; final: device addresses, with what is
    there in the end; outcomes: how many the launch has, each of which has one; departure: how an engine that followed
    it found another value, "" if none did."""

    departure: str

    @property
    def outcomes(self) -> int: ...

    @property
    def steps(self) -> Mapping[tuple[int, int], Sequence[Step]]: ...
    @property
    def final(self) -> Sequence[tuple[int, bytes]]: ...


@dataclass(frozen=True, slots=True)
class PlainGrid:
    """A grid without a device. text, module: the PTX and its tree; arguments: integers, or the name of a buffer or
    variable and an offset in bytes; buffers, variables: device address and bytes of each; cluster: CTAs."""

    text: str
    module: Any = field(compare=False, repr=False)
    kernel: str
    grid: Dim3
    block: Dim3
    cluster: int
    shared: int
    arguments: tuple[int | tuple[str, int], ...]
    buffers: tuple[tuple[str, int, bytes], ...]
    variables: tuple[tuple[str, int, bytes], ...]


#: Finds one execution for each outcome; none where that is too much.
Finder: TypeAlias = "Callable[[PlainGrid], Sequence[Guide]]"
