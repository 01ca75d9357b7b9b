"""The SPEC of `--arg`: the text of one kernel argument.

42  0x2a  1.5  f32:1.5     a number, converted to the parameter's type, or of the type before the colon
null                       a null pointer
FILE.npy  FILE.png         a device buffer with that content
zeros:f32[1024]            likewise fill:f32[1024]=1.5, arange:s32[64], random:f32[32,32]@SEED
texture:IN,filter=linear   a texture (surface: likewise) over a buffer with content IN; fields as in launch files
bytes:HEX  @FILE           the bytes of the parameter
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ptxtools.sim.limits import MOST_PARAMETER_BYTES

from .arguments import MOST_DIGITS, Argument, BufferArgument, Content, Null, Raw, Scalar, check_number, shaped
from .elements import ELEMENTS, element_type
from .errors import SpecError, nearest
from .pictures import is_picture

FORMS = "a number, null, FILE.npy, FILE.png, zeros:, fill:, arange:, random:, texture:, surface:, bytes:HEX or @FILE"


def parse_spec(text: str) -> Argument:
    """The argument for a SPEC; raises `SpecError`. `@FILE` is read here, `FILE.npy` when the buffer is created."""
    spec = text.strip()
    if spec == "null":
        return Null()
    if spec.startswith("@"):
        return Raw(_read_bytes(spec[1:]))
    number = parse_number(spec)
    if number is not None:
        return Scalar(number)
    head, colon, rest = spec.partition(":")
    if colon and head in _HEADS:
        return _HEADS[head](rest)
    if colon and head in ELEMENTS:
        return _typed(head, rest)
    if spec.endswith(".npy") or is_picture(spec):
        return BufferArgument(content=Content("file", path=spec))
    hint = nearest(head, [*_HEADS, *ELEMENTS]) if colon else nearest(spec, ["null"])
    raise SpecError(f"'{text}' is not an argument{hint or ': use ' + FORMS}")


def parse_number(text: str) -> int | float | None:
    """An integer (decimal, 0x, 0o, 0b) or a float; None if `text` is neither. Raises `SpecError` for too many
    digits."""
    if len(text) > MOST_DIGITS and (text.lstrip("+-")[:1].isdecimal() or text.lstrip("+-")[:1] == "."):
        raise SpecError(f"'{text[:20]}…' has {len(text)} digits: no type can hold this number")
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(text, 10) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return None


def _typed(name: str, text: str) -> Scalar:
    element = element_type(name)
    number = parse_number(text)
    if number is None:
        raise SpecError(f"'{text}' is not a number, in '{name}:{text}'")
    return Scalar(check_number(number, element), element)


def _zeros(text: str) -> BufferArgument:
    return _buffer("zeros", text)


def _arange(text: str) -> BufferArgument:
    return _buffer("arange", text)


def _fill(text: str) -> BufferArgument:
    shape, equals, value = text.rpartition("=")
    number = parse_number(value)
    if not equals or number is None:
        raise SpecError(f"'fill:{text}' is not fill:TYPE[SIZE,…]=VALUE")
    made = _buffer("fill", shape, value=number)
    assert made.content is not None and made.content.element is not None
    check_number(number, made.content.element)
    return made


def _random(text: str) -> BufferArgument:
    shape, at, seed = text.partition("@")
    if at and (not seed.isdecimal() or len(seed) > MOST_DIGITS):
        raise SpecError(f"'{seed}' is not a seed, in 'random:{text}'; a seed is an integer of at least 0")
    return _buffer("random", shape, seed=int(seed or 0))


def _buffer(kind: str, text: str, *, value: int | float = 0, seed: int = 0) -> BufferArgument:
    element, shape = shaped(text)
    return BufferArgument(content=Content(kind, element, shape, value=value, seed=seed))


def parse_bytes(text: str) -> Raw:
    """`00ff` (blanks and underscores may separate) as bytes; raises `SpecError`."""
    digits = text.replace("_", "").replace(" ", "")
    try:
        return Raw(bytes.fromhex(digits))
    except ValueError:
        what = "an odd number of" if len(digits) % 2 else "other characters than"
        raise SpecError(f"'{text}' has {what} hexadecimal digits") from None


def _read_bytes(path: str) -> bytes:
    """Read as much of a file as a parameter can hold; it may be an endless device."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_PARAMETER_BYTES + 1)
            size = max(os.fstat(file.fileno()).st_size, len(data))
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) <= MOST_PARAMETER_BYTES:
        return data
    much = f"{size:,}" if size > len(data) else f"more than {MOST_PARAMETER_BYTES:,}"
    raise SpecError(f"{path}: has {much} bytes; all parameters of a kernel have at most {MOST_PARAMETER_BYTES:,}")


def _texture(prefix: str) -> Callable[[str], Argument]:
    def parse(text: str) -> Argument:
        from .textures import texture_option

        def content(spec: str) -> BufferArgument:
            found = parse_spec(spec)
            if not isinstance(found, BufferArgument):
                raise SpecError(f"'{spec}' is not valid content for a {prefix}: use FILE.png, FILE.npy or zeros:…")
            return found

        return texture_option(prefix, text, content)

    return parse


_HEADS: dict[str, Callable[[str], Argument]] = {
    "zeros": _zeros,
    "fill": _fill,
    "arange": _arange,
    "random": _random,
    "bytes": parse_bytes,
    "texture": _texture("texture"),
    "surface": _texture("surface"),
}


def parse_shape(text: str, what: str) -> tuple[int, int, int]:
    """`X[,Y[,Z]]` as three sizes; raises `SpecError`. Limits are checked at the launch."""
    parts = [part.strip() for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or not all(part.lstrip("-").isdecimal() for part in parts):
        raise SpecError(f"'{text}' is not a {what} shape: use X, X,Y or X,Y,Z")
    if any(len(part) > MOST_DIGITS for part in parts):
        raise SpecError(f"'{text[:20]}…' is not a {what} shape: a size has more than {MOST_DIGITS} digits")
    sizes = [int(part) for part in parts] + [1, 1]
    return sizes[0], sizes[1], sizes[2]


def parse_indexed(text: str, option: str, arguments: int) -> tuple[int, str]:
    """`N=FILE` of --expect and --save; raises `SpecError`."""
    number, equals, path = text.partition("=")
    if not equals or not number.strip().isdecimal() or len(number) > MOST_DIGITS or not path:
        raise SpecError(f"{option} takes N=FILE.npy, where N is the number of an argument from 0, not '{text}'")
    index = int(number)
    if index >= arguments:
        raise SpecError(f"{option} {text}: there is no argument {index}; there are {arguments}")
    return index, path
