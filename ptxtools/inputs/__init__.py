"""File types, detected by content, and the PTX inside NVIDIA's binaries."""

from .detection import detect

__all__ = ["detect"]
