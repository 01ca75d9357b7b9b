"""How a kernel is lowered for a device: in what the programs of devices and of checkers differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """late: copies of single threads, and waiting for asynchronous work, are events, so that work can complete late
    (`Launch.late`); truncates: mad.f32 cuts its product off, as chips of sm_1x do (9.7.3.7); apart: shared and local
    variables have room between them, so that memcheck sees where one is left for the next."""

    late: bool = False
    truncates: bool = False
    apart: bool = False


#: What runs without checkers and seed on today's devices: the one that is worth storing.
PLAIN = Variant()
