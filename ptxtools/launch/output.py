"""Arrays to files: a file appears complete or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .errors import SpecError
from .pictures import is_picture, write_picture

if TYPE_CHECKING:
    from typing import IO

    from numpy.typing import NDArray


def save_array(path: str, array: NDArray[Any]) -> None:
    """Write a .npy file, or a .png file by its name; raises `SpecError` when that is not possible."""

    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device cannot be replaced
            with open(path, "wb") as file:
                _write(file, path, array)
            return
        with open(temporary, "wb") as file:
            _write(file, path, array)
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _write(file: IO[bytes], path: str, array: NDArray[Any]) -> None:
    import numpy as np

    if is_picture(path):
        write_picture(file, path, array)
    else:
        np.save(file, array)
