"""Tensor maps (5.5): their values, their 128 bytes, and the boxes of elements that tensor copies move."""

from .descriptor import BYTES, TYPES, ElementType, TensorMap, TensorMapError

__all__ = ["BYTES", "TYPES", "ElementType", "TensorMap", "TensorMapError"]
