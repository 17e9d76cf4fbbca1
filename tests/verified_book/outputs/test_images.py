"""Images in a line of text: type, size, and how they look."""

import io
import random
import sys
import warnings

import pytest
from PIL import Image, ImageDraw

from verified_book.outputs.images import described, with_digests_of


def drawing(shift: int = 0, size: tuple[int, int] = (320, 240)) -> Image.Image:
    """A picture with something to see in each corner."""
    image = Image.new("RGB", (320, 240), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((20 + shift, 20, 120 + shift, 100), fill="navy")
    draw.ellipse((180 + shift, 90, 300 + shift, 210), fill="orange")
    draw.line((0, 239 - shift, 319, 120), fill="black", width=7)
    return image.resize(size)


def encoded(image: Image.Image, format_name: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format_name, **options)
    return buffer.getvalue()


def digest(data: bytes) -> str:
    return described("image/png", data).rpartition(" ")[2]


def test_the_same_image_has_the_same_digest_however_it_is_stored():
    first = described("x", encoded(drawing()))
    for data in (
        encoded(drawing(), "JPEG", quality=80),
        encoded(drawing(size=(640, 480)).resize((320, 240))),
        encoded(drawing().convert("RGBA")),
        encoded(drawing(), "PNG", compress_level=1),
    ):
        other = described("x", data)
        assert with_digests_of(first, other) == first
    assert digest(encoded(drawing())) == digest(encoded(drawing(), compress_level=0))


def test_an_image_that_looks_otherwise_has_another_digest():
    first = described("x", encoded(drawing()))
    for image in (drawing(shift=25), drawing().rotate(180), Image.new("RGB", (320, 240), "white")):
        other = described("x", encoded(image))
        assert with_digests_of(first, other) == other != first


@pytest.mark.parametrize(
    ("svg", "line"),
    [
        ('<svg viewBox="0 0 40 30">', "image/svg+xml 40 x 30"),
        ("<?xml version='1.0'?><svg width='9' viewBox='-1,-2, 4.5,3'/>", "image/svg+xml 4.5 x 3"),
    ],
)
def test_a_drawing_has_the_size_of_its_view(svg, line):
    assert described("image/svg+xml", svg.encode("utf-8", "surrogatepass")) == line


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"no image at all", "image/png"),
        (
            b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes([0, 0, 0, 9, 0, 0, 0, 8]),
            "image/png 9 x 8",
        ),
    ],
)
def test_what_cannot_be_read_has_no_digest(data, line):
    assert described("image/png", data) == line


@pytest.mark.parametrize("format_name", ["PNG", "JPEG", "GIF"])
def test_no_damage_ends_a_build(format_name):
    data, chance = encoded(drawing(size=(40, 30)), format_name), random.Random(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow's would be the cell's stderr or fail a strict build
        for _ in range(20):
            damaged = bytearray(data)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            cut = chance.randint(0, len(damaged))
            assert described("image/x", bytes(damaged)).startswith("image/x")
            assert described("image/x", bytes(damaged[:cut])).startswith("image/x")


def test_without_pillow_there_is_no_digest(monkeypatch):
    data = {name: encoded(drawing(), name) for name in ("PNG", "JPEG")}
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert described("image/png", data["PNG"]) == "image/png 320 x 240"
    assert described("image/jpeg", data["JPEG"]) == "image/jpeg"
