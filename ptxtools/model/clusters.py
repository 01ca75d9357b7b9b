"""Litmus tests with `mapa` or a mask of CTAs: a variable in shared memory is one in each CTA (5.1.6), and its name is
that of the CTA that the thread is in; conditions name that of CTA 1 `x@1`, and that of the CTA with the lowest number
`x`."""

from __future__ import annotations

from typing import Any

from ptxtools.records import fields, replace

from .programs import TENSOR_MEMORY, Address, Instruction, Location, Register, Test
from .words import refuse


def spread(test: Test) -> None:
    """Give each CTA its own variables, if the test uses `mapa` or a mask of CTAs. Raises PtxError."""
    uses = [i for thread in test.threads for i in thread.instructions if names_other_ctas(i)]
    if not uses:
        return
    named = uses[0].text.split()[0]
    ctas = sorted({(thread.cta, thread.gpu, thread.cluster) for thread in test.threads})
    if len({cta for cta, _, _ in ctas}) < len(ctas):
        refuse(test.source, f"'{named}' in a test with CTAs of one number on several GPUs", uses[0].span)
    shared = [location for location in test.locations.values() if location.space in ("shared", TENSOR_MEMORY)]
    if not shared:
        refuse(test.source, f"'{named}' in a test without '.shared' variables", uses[0].span,
               "declare them in front: { .shared x = 0; }")  # fmt: skip
    names: dict[int, dict[str, str]] = {cta: {} for cta, _, _ in ctas}
    for location in shared:
        if location.memory != location.name:
            refuse(test.source, f"'{named}' in a test where '{location.name}' is an alias", uses[0].span)
        size = location.size or 8
        for at, (cta, _, _) in enumerate(ctas):
            name = names[cta][location.name] = f"{location.name}@{cta}" if at else location.name
            test.locations[name] = Location(name, location.initial, location.type, size=size, space=location.space)
        for cta, gpu, cluster in ctas:
            peers = [other for other, *place in ctas if other == cta or (cluster >= 0 and place == [gpu, cluster])]
            test.locations[names[cta][location.name]].peers = tuple(names[other][location.name] for other in peers)
    for thread in test.threads:
        own = names[thread.cta]
        thread.instructions = [renamed(instruction, own) for instruction in thread.instructions]
        for register, initial in test.registers.items():
            if register.startswith(f"{thread.name}:"):
                test.registers[register] = _in_cta(initial, own)


def names_other_ctas(instruction: Instruction) -> bool:
    """Whether it names CTAs of the cluster by their numbers."""
    return getattr(instruction, "function", "") == "mapa" or getattr(instruction, "ctas", None) is not None


def renamed(instruction: Instruction, own: dict[str, str]) -> Instruction:
    """The instruction with the variables of its thread's CTA."""
    found: dict[str, Any] = {}
    for field in fields(instruction):
        value = getattr(instruction, field.name)
        if field.name == "base":
            found["base"] = value if isinstance(value, Register) else own.get(value, value)
        elif field.name == "values":
            found["values"] = tuple(_in_cta(operand, own) for operand in value)
        elif field.name == "places":
            found["places"] = tuple(
                (base if isinstance(base, Register) else own.get(base, base), offset) for base, offset in value
            )  # fmt: skip
    return replace(instruction, **found) if found else instruction


def _in_cta(operand: Any, own: dict[str, str]) -> Any:
    return Address(own.get(operand.name, operand.name)) if isinstance(operand, Address) else operand
