"""A run requested by options or a launch file: device, module, buffers, launches, expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxtools.diagnostics import LaunchError, TrapKind
from ptxtools.isa.targets import FIRST_VERSION
from ptxtools.machine.options import DeviceOptions, LaunchOptions, Option, RunOptions, parse_checks
from ptxtools.records import dataclass, field

from .arguments import Argument, Content
from .compare import Tolerance
from .errors import SpecError, nearest

if TYPE_CHECKING:
    from ptxtools.sim.kernel import Dim3

    from .litmus import LitmusPlan
    from .tensormaps import TensorMapPlan

#: The `expect_failure` of a launch that must be refused.
REFUSED = "launch-error"
#: The values of `expect_failure`.
FAILURES = (*(kind.value for kind in TrapKind if kind is not TrapKind.INTERRUPTED), REFUSED)


@dataclass(slots=True)
class BufferPlan:
    """A device buffer. label: its name in messages; expect, save: paths or ""."""

    label: str
    content: Content
    expect: str = ""
    save: str = ""
    tolerance: Tolerance = field(default_factory=Tolerance)


@dataclass(slots=True)
class GlobalPlan:
    """A module variable that is set before the first launch (`file`) or checked after the last (`expect`)."""

    name: str
    file: str = ""
    expect: str = ""


@dataclass(slots=True)
class TexturePlan:
    """A texture or surface over a buffer. fields: arguments of `ptxtools.sim.textures.making.make`."""

    name: str
    kind: str
    buffer: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class LaunchPlan(LaunchOptions):
    """One launch. kernel "": the module's only entry. block None: the kernel's `.reqntid`."""

    module: str
    grid: Dim3
    block: Dim3 | None = None  # type: ignore[assignment]
    kernel: str = ""
    args: list[Argument] = field(default_factory=list)


@dataclass(slots=True)
class Job:
    """A complete run."""

    launches: list[LaunchPlan]
    buffers: dict[str, BufferPlan] = field(default_factory=dict)
    globals: list[GlobalPlan] = field(default_factory=list)
    tensormaps: dict[str, TensorMapPlan] = field(default_factory=dict)
    textures: dict[str, TexturePlan] = field(default_factory=dict)
    multicasts: dict[str, list[str]] = field(default_factory=dict)
    device: DeviceOptions = field(default_factory=DeviceOptions)
    limits: RunOptions = field(default_factory=RunOptions)
    expect_printed: str = ""
    expect_failure: str = ""
    litmus: LitmusPlan | None = None

    @property
    def has_outputs(self) -> bool:
        """Whether anything is compared or saved; otherwise the buffers that kernels wrote are summarised."""
        checked = any(b.expect or b.save for b in self.buffers.values()) or any(g.expect for g in self.globals)
        return checked or bool(self.expect_printed)


def known_device(name: str) -> str:
    """The name, if it is a target or ""; raises `SpecError`. `Device` checks whether it is simulated."""
    if not name or name in FIRST_VERSION:
        return name
    raise SpecError(f"there is no device '{name}'{nearest(name, FIRST_VERSION)}")


def text_value(option: Option, text: str) -> Any:
    """The value of an option given as text; raises `SpecError`."""
    if option.kind == "target":
        return known_device(text) or None
    if option.kind == "checks":
        try:
            return parse_checks(text)
        except LaunchError as error:
            raise SpecError(str(error)) from None
    return text
