"""Makes the fonts of icons hold only those that the site shows, within the stylesheet."""

import base64
import io
import logging
import re
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

_FACE = re.compile(r"@font-face\{[^}]*\}")
_FILE = re.compile(r"""url\(["']?([^"')]*/fa-(solid|regular|brands)-\d+\.woff2)["']?\)""")
_SHOWN = re.compile(r"[\ue000-\uf8ff]")
_ESCAPED = re.compile(r"\\([ef][0-9a-f]{3})\b")
_CLASSES = {
    "solid": {"fa-solid", "fas", "fa"},
    "regular": {"fa-regular", "far"},
    "brands": {"fa-brands", "fab"},
}


def subset(css: str, static: Path, classes: set[str]) -> str:
    """The stylesheet with the icons that its rules show, and without the fonts of all.

    Args:
        css: The stylesheet; addresses in it are from the static folder.
        static: The static folder.
        classes: The classes of the pages: a font whose classes none has is left out.
    """
    signs = {ord(sign) for sign in _SHOWN.findall(css)}
    signs |= {int(code, 16) for code in _ESCAPED.findall(css)}

    def lighter(face: re.Match[str]) -> str:
        file = _FILE.search(face[0])
        if not file:
            return face[0]
        if not _CLASSES[file[2]] & classes or not signs:
            return ""
        content = base64.b64encode(_subset(static / file[1], signs)).decode()
        source = f'src:url("data:font/woff;base64,{content}") format("woff")'
        return re.sub(r"src:[^;}]*", lambda _: source, face[0], count=1)

    return _FACE.sub(lighter, css)


def _subset(font: Path, signs: set[int]) -> bytes:
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it would tell of every table
    try:
        whole = TTFont(font)
    except FileNotFoundError:
        raise ExtensionError(
            f"book_site.postprocess: the theme's stylesheet names {font}, which is not there. "
            "Remedy: let html_static_path bring it, or leave this extension out"
        ) from None
    with whole:
        subsetter = Subsetter(Options(layout_features=[], hinting=False, desubroutinize=True))
        subsetter.populate(unicodes=signs)
        subsetter.subset(whole)
        whole.flavor = "woff"
        written = io.BytesIO()
        whole.save(written)
    return written.getvalue()
