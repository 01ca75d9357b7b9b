"""Arrays to files: a file appears complete or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import SpecError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def save_array(path: str, array: NDArray[Any]) -> None:
    """Write a .npy file; raises `SpecError` when that is not possible."""
    import numpy as np

    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device cannot be replaced
            with open(path, "wb") as file:
                np.save(file, array)
            return
        with open(temporary, "wb") as file:
            np.save(file, array)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
