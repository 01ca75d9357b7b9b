"""Write arrays to files, whole or not at all."""

from __future__ import annotations

from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from ptxtools.files.writing import reason, write_whole

from .errors import SpecError
from .pictures import is_picture, write_picture

if TYPE_CHECKING:
    from numpy.typing import NDArray


def save_array(path: str, array: NDArray[Any]) -> None:
    """Write a .npy file, or a .png file by its name; raises `SpecError` if that is not possible."""
    import numpy as np

    def write(file: IO[bytes]) -> None:
        if is_picture(path):
            write_picture(file, path, array)
        elif file.seekable():
            np.save(file, array)
        else:  # a pipe, in which NumPy does not write arrays
            whole = BytesIO()
            np.save(whole, array)
            file.write(whole.getvalue())

    try:
        write_whole(path, write)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be written: {reason(error)}") from None
