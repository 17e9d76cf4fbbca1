"""Makes the fonts of icons hold only those that the site shows, within the stylesheet."""

import base64
import io
import logging
import re
from pathlib import Path

from sphinx.errors import ExtensionError

_FACE = re.compile(r"@font-face\{[^}]*\}")
_FILE = re.compile(r"""url\(["']?([^"')]*/fa-(solid|regular|brands)-\d+)\.(?:woff2|ttf)["']?\)""")
_SHOWN = re.compile(r"\\([ef][0-9a-f]{3})\b")
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
    signs = {int(code, 16) for code in _SHOWN.findall(css)}

    def lighter(face: re.Match[str]) -> str:
        file = _FILE.search(face[0])
        if not file:
            return face[0]
        if not _CLASSES[file[2]] & classes or not signs:
            return ""
        content = base64.b64encode(_subset(_font(static / file[1]), signs)).decode()
        source = f'src:url("data:font/woff;base64,{content}") format("woff")'
        return re.sub(r"src:[^;}]*", lambda _: source, face[0], count=1)

    return _FACE.sub(lighter, css)


def _font(path: Path) -> Path:
    """The font in a form that the site has; newer themes have it compressed only."""
    files = [path.with_name(f"{path.name}{suffix}") for suffix in (".ttf", ".woff2")]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise ExtensionError(
            f"book_site.light: the theme's stylesheet names {path.name}, of which the site has "
            f"neither {files[0].name} nor {files[1].name} in {path.parent}. "
            "Remedy: let html_static_path bring it, or take book_site.light from the extensions"
        )
    return found


def _subset(font: Path, signs: set[int]) -> bytes:
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it would tell of every table
    try:
        whole = TTFont(font)
    except ImportError:
        raise ExtensionError(
            f"book_site.light: {font.name} is compressed by Brotli. "
            "Remedy: python -m pip install brotli"
        ) from None
    with whole:
        options = Options(layout_features=[], hinting=False, desubroutinize=True)
        subsetter = Subsetter(options)
        subsetter.populate(unicodes=signs)
        subsetter.subset(whole)
        whole.flavor = "woff"
        written = io.BytesIO()
        whole.save(written)
    return written.getvalue()
