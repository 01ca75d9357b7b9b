"""PNG files as arrays, through Pillow (the extra `images`), which is loaded for the first picture.

Gray pictures are [height, width] of u8 or u16, gray with alpha is [height, width, 2], and all others are RGBA,
[height, width, 4] of u8, like texels.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any

from .errors import SpecError

if TYPE_CHECKING:
    from typing import IO

    from numpy.typing import NDArray

    Array = NDArray[Any]

MAGIC = b"\x89PNG\r\n\x1a\n"
SUFFIX = ".png"
#: Bit depth and colour type in a file's first bytes; the colour type of gray.
_HEADER = struct.Struct(">24xBB")
_GRAY = 0
#: Pillow's modes by the number of channels of 8 bits.
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def is_picture(path: str) -> bool:
    """Whether a name says that a file is or becomes a picture."""
    return path.lower().endswith(SUFFIX)


def begins_like_one(path: str) -> bool:
    """Whether a regular file has a PNG file's first bytes; a pipe can be read only once."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _pillow(path: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise SpecError(f"{path}: pictures need Pillow: pip install 'ptxtools[images]'") from None
    return Image


def read_picture(path: str) -> Array:
    """A PNG file's pixels; raises `SpecError`."""
    import warnings

    import numpy as np

    image = _pillow(path)
    try:
        with open(path, "rb") as file:
            depth, colours = _HEADER.unpack(file.read(_HEADER.size).ljust(_HEADER.size, b"\0"))
            if depth == 16 and colours != _GRAY:
                raise SpecError(f"{path}: 16-bit colours cannot be read; 16-bit gray and 8-bit colours can")
            file.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", image.DecompressionBombWarning)
                picture = image.open(file, formats=["PNG"])
                if picture.mode.startswith("I"):
                    return np.ascontiguousarray(np.asarray(picture), np.uint16)
                plain = picture.mode in ("L", "1") and "transparency" not in picture.info
                mode = "L" if plain else "LA" if picture.mode == "LA" else "RGBA"
                return np.ascontiguousarray(np.asarray(picture.convert(mode)), np.uint8)
    except (SpecError, MemoryError):
        raise
    except OSError as error:
        raise SpecError(f"{path}: {f'cannot be read: {error.strerror}' if error.strerror else error}") from None
    except Exception as error:  # Pillow's reader fails in many ways on a damaged file
        raise SpecError(f"{path}: a damaged PNG file: {error}") from None


def write_picture(file: IO[bytes], path: str, array: Array) -> None:
    """Write pixels as a PNG file; floats from 0 to 1 become 8 bits. Raises `SpecError`, `OSError`."""
    import numpy as np

    image = _pillow(path)
    given = array
    if array.dtype.kind == "f":
        held = np.clip(np.nan_to_num(array.astype(np.float64)), 0.0, 1.0)
        array = np.rint(held * 255).astype(np.uint8)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    channels = array.shape[2] if array.ndim == 3 else 1
    deep = array.dtype == np.uint16 and channels == 1
    if array.ndim not in (2, 3) or 0 in array.shape or not (deep or (array.dtype == np.uint8 and channels in _MODES)):
        shape = ", ".join(map(str, given.shape))
        raise SpecError(
            f"{path}: {given.dtype}[{shape}] is not a picture: use [height, width] or [height, width, channels] of u8 "
            "or of floats, or [height, width] of u16"
        )
    height, width = array.shape[:2]
    mode = "I;16" if deep else _MODES[channels]
    image.frombytes(mode, (width, height), np.ascontiguousarray(array).tobytes()).save(file, format="PNG")
