"""The reference engine: a `Program` interpreted with NumPy. Slow and simple; what the native engine is held against."""

from .run import run

__all__ = ["run"]
