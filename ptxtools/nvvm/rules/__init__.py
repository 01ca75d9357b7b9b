"""The rules of NVVM IR, version 2.0, over the text of a module (codes NVVM1xx to NVVM4xx)."""

from .verifier import verify

__all__ = ["verify"]
