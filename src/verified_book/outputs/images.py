"""What can be said of an image in a line: its type, its size, and a digest of how it looks."""

import io
import re
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

_PNG = b"\x89PNG\r\n\x1a\n"
_SIDE = 16  # of the grid on which the digest compares neighbors
_TONES = 6  # by which neighbors must differ, of 256
_VIEW_BOX = re.compile(r"""<svg\b[^>]*\bviewBox=(["'])(.*?)\1""", re.DOTALL)
_DIGEST = re.compile(r"\bdigest ([0-9a-f]{64})\b")

_Read = TypeVar("_Read")

BITS_ALLOWED = 8
"""In how many of their 256 bits the digests of two images that look alike may differ."""


def described(mime: str, data: bytes) -> str:
    """The line that stands for an image in an expected block.

    Its digest is there if Pillow is installed and can read the image.
    """
    size = _size(mime, data)
    parts = [mime]
    if size:
        parts.append(f"{size[0]} x {size[1]}")
    digest = _digest(data) if mime != "image/svg+xml" else None
    if digest:
        parts.append(f"digest {digest}")
    return " ".join(parts)


def _size(mime: str, data: bytes) -> tuple[str, str] | None:
    if data.startswith(_PNG) and len(data) >= 24:
        return str(int.from_bytes(data[16:20], "big")), str(int.from_bytes(data[20:24], "big"))
    if mime == "image/svg+xml":
        box = _VIEW_BOX.search(data.decode("utf-8", "replace"))
        numbers = re.split(r"[\s,]+", box[2].strip()) if box else []
        return (numbers[2], numbers[3]) if len(numbers) == 4 else None
    return _read(data, lambda image: (str(image.width), str(image.height)))


def _digest(data: bytes) -> str | None:
    """Which of neighboring fields of the image is darker, as 64 hexadecimal digits."""
    tones = _read(data, _tones_of)
    if tones is None:
        return None
    rows = [tones[start : start + _SIDE + 1] for start in range(0, len(tones), _SIDE + 1)]
    bits = [left > right + _TONES for row in rows for left, right in pairwise(row)]
    number = sum(1 << place for place, bit in enumerate(bits) if bit)
    return f"{number:0{_SIDE * _SIDE // 4}x}"


def _tones_of(image: Any) -> bytes:
    """The brightness of each field of a small grid."""
    from PIL import Image

    white = Image.new("RGBA", image.size, "white")
    flat = Image.alpha_composite(white, image.convert("RGBA")).convert("L")
    return flat.resize((_SIDE + 1, _SIDE), Image.Resampling.BOX).tobytes()


def _read(data: bytes, what: Callable[[Any], _Read]) -> _Read | None:
    """What Pillow says of an image; None where it is not installed or cannot read it."""
    try:
        from PIL import Image

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of images that are large or damaged
            with Image.open(io.BytesIO(data)) as image:
                return what(image)
    except Exception:  # each format has errors of its own, and so have images that are too large
        return None


def without_digests(text: str) -> str:
    """The lines of images without how they look.

    Examples:
        >>> without_digests("image/png 4 x 3 digest " + "0" * 64)
        'image/png 4 x 3'
    """
    return re.sub(rf" {_DIGEST.pattern}", "", text)


def with_digests_of(want: str, got: str) -> str:
    """`got` with the digests of `want` wherever two images look alike."""
    wanted = iter(_DIGEST.findall(want))

    def alike(match: re.Match[str]) -> str:
        other = next(wanted, match[1])
        differ = (int(other, 16) ^ int(match[1], 16)).bit_count()
        return f"digest {other if differ <= BITS_ALLOWED else match[1]}"

    return _DIGEST.sub(alike, got)
