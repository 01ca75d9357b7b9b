"""File types, detected by content, and the PTX inside NVIDIA's binaries."""

from .detection import detect
from .fatbin import Embedded, best, embedded, write_fatbin

__all__ = ["Embedded", "best", "detect", "embedded", "write_fatbin"]
