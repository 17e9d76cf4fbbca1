"""What can be said of an image in a line: its type, its size, and a digest of how it looks."""

import io
import re
from itertools import pairwise

_PNG = b"\x89PNG\r\n\x1a\n"
_SIDE = 16  # of the grid on which the digest compares neighbors
_TONES = 6  # by which neighbors must differ, of 256
_DIGEST = re.compile(r"\bdigest ([0-9a-f]{64})\b")

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
    if data.startswith(_PNG):
        return str(int.from_bytes(data[16:20], "big")), str(int.from_bytes(data[20:24], "big"))
    if mime == "image/svg+xml":
        text = data.decode("utf-8", "replace")
        found = re.search(r'viewBox="[\d.\-]+ [\d.\-]+ ([\d.]+) ([\d.]+)"', text)
        return (found[1], found[2]) if found else None
    try:
        from PIL import Image

        with Image.open(io.BytesIO(data)) as image:
            return str(image.width), str(image.height)
    except (ImportError, OSError):
        return None


def _digest(data: bytes) -> str | None:
    """Which of neighboring fields of the image is darker, as 64 hexadecimal digits."""
    try:
        from PIL import Image

        with Image.open(io.BytesIO(data)) as image:
            white = Image.new("RGBA", image.size, "white")
            flat = Image.alpha_composite(white, image.convert("RGBA")).convert("L")
            small = flat.resize((_SIDE + 1, _SIDE), Image.Resampling.BOX)
    except (ImportError, OSError):
        return None
    tones = list(small.tobytes())
    rows = [tones[start : start + _SIDE + 1] for start in range(0, len(tones), _SIDE + 1)]
    bits = [left > right + _TONES for row in rows for left, right in pairwise(row)]
    number = sum(1 << place for place, bit in enumerate(bits) if bit)
    return f"{number:0{_SIDE * _SIDE // 4}x}"


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
