"""Renders formulas by KaTeX, when the book is built.

KaTeX comes from the PyPI package scriba-tex, V8 to run it from mini-racer. Sphinx writes each
formula as TeX; when all pages are written, each that differs is rendered once. A rendered formula
holds MathML for screen readers and its TeX, takes no tab stop and needs no script.
"""

import html
import json
import os
import re
import shutil
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.errors import ExtensionError
from sphinx.ext import mathjax
from sphinx.util import logging

from verified_book.static_files import offer_static_files

if TYPE_CHECKING:
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)

_PACKAGE = "scriba-tex"
_FILES = re.compile(r"/vendor/katex/(katex\.min\.(?:js|css)|fonts/[\w-]+\.woff2|LICENSE)$")
# What Sphinx writes for `math` and `math_block`, and MyST-NB for LaTeX that a cell shows.
_FORMULA = re.compile(
    r'(<(?P<tag>span|div) class="(?:[\w ]+ )?math notranslate nohighlight"[^>]*>\s*'
    r'(?:<span class="eqno">.*?</a></span>)?)(?P<tex>[^<]*)(?=</(?P=tag)>)',
    re.DOTALL,
)
# What is drawn where it is not the TeX that a reader copies: the same with classes in it.
_DRAWN = re.compile(r' data-tex="([^"]*)"')
_SPOKEN = re.compile(r'(<annotation encoding="application/x-tex">).*?(?=</annotation>)', re.DOTALL)
_DELIMITERS = re.compile(r"\\\((.*)\\\)|\\\[(.*)\\\]|\$\$(.*)\$\$|\$(.*)\$", re.DOTALL)
# What almost all formulas are drawn with, and what in a page says that they are.
_FONTS = {'class="katex-html"': "KaTeX_Main-Regular.woff2", "mathnormal": "KaTeX_Math-Italic.woff2"}
_RENDER = r"""
(formulas) => JSON.stringify(formulas.map(([tex, displayMode]) => {
  const trust = ({ command }) => command === "\\htmlClass";
  try { return [katex.renderToString(tex, {displayMode, trust, strict: "ignore"}), ""]; }
  catch (error) { return ["", String(error.message)]; }
}))
"""


def katex_files() -> dict[str, Path]:
    """The files of KaTeX by their names: its script, its stylesheet and its fonts."""
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = {
        match[1]: Path(str(file.locate()))
        for file in files
        if (match := _FILES.search(file.as_posix()))
    }
    if "katex.min.js" not in found:
        raise ExtensionError(
            f"book_site.postprocess: KaTeX was not found in the package {_PACKAGE}. "
            f"Remedy: python -m pip install {_PACKAGE} mini-racer"
        )
    return found


def copy_katex(app: "Sphinx") -> None:
    """Puts the stylesheet and the fonts into the site before a page names their checksum."""
    if app.builder.format != "html":
        return
    for name, source in katex_files().items():
        if name != "katex.min.js":
            target = Path(app.outdir, "_static", "katex", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def typeset(pages: dict[Path, str], site: Path) -> None:
    """Renders the formulas of pages; one that KaTeX refuses is a warning, and stays as TeX."""
    found = {
        formula
        for text in pages.values()
        for match in _FORMULA.finditer(text)
        if (formula := _formula(match))
    }
    if not found:
        return
    ordered = sorted(found)
    answers = render([(drawn, displayed) for _, displayed, drawn in ordered])
    rendered = dict(zip(ordered, answers, strict=True))
    for file, text in pages.items():

        def put(match: re.Match[str], file: Path = file) -> str:
            formula = _formula(match)
            if formula is None:
                return match[0]
            markup, error = rendered[formula]
            if error:
                name = file.relative_to(site).as_posix()
                logger.warning("%s: KaTeX cannot render %r: %s", name, formula[0], error)
                return match[0]
            written = html.escape(formula[0], quote=False)
            markup = _SPOKEN.sub(lambda found: found[1] + written, markup)
            return _DRAWN.sub("", match[1]) + markup

        pages[file] = _with_fonts(_FORMULA.sub(put, text), file, site)


def _with_fonts(text: str, file: Path, site: Path) -> str:
    """A page that asks for the fonts of its formulas at once: late ones would move its lines.

    Not where it is read from a disk, which browsers take for another site's: no font may be asked
    for there, and none is late.
    """
    fonts = site / "_static" / "katex" / "fonts"
    links = [
        f'<link rel="preload" as="font" type="font/woff2" crossorigin href="{href}">'
        for mark, name in _FONTS.items()
        if mark in text and f"fonts/{name}" not in text and (fonts / name).is_file()
        for href in [Path(os.path.relpath(fonts / name, file.parent)).as_posix()]
    ]
    if not links:
        return text
    asked = f"document.head.insertAdjacentHTML('beforeend','{''.join(links)}')"
    script = f"<script>location.protocol==='file:'||{asked}</script>"
    return text.replace("<head>", f"<head>{script}", 1)


def _formula(match: re.Match[str]) -> tuple[str, bool, str] | None:
    """The TeX of what was found, whether it is displayed, and the TeX of what is drawn."""
    tex = _undelimited(match["tex"])
    drawn = _DRAWN.search(match[1])
    return (tex, match["tag"] == "div", _undelimited(drawn[1]) if drawn else tex) if tex else None


def _undelimited(markup: str) -> str:
    tex = html.unescape(markup).strip()
    delimited = _DELIMITERS.fullmatch(tex)
    if delimited:
        tex = next(group for group in delimited.groups() if group is not None)
    return tex.strip()


def render(formulas: list[tuple[str, bool]]) -> list[tuple[str, str]]:
    """The markup of each formula and, if it has none, why.

    Args:
        formulas: TeX, and whether it is displayed.
    """
    try:
        from py_mini_racer import MiniRacer
    except ImportError:
        raise ExtensionError(
            "book_site.postprocess: formulas are rendered by V8. "
            "Remedy: python -m pip install mini-racer"
        ) from None
    script = katex_files()["katex.min.js"].read_text(encoding="utf-8")
    racer = MiniRacer()
    try:
        racer.eval(f"{script};0")
        answer = racer.eval(f"({_RENDER})({json.dumps(formulas)})")
    finally:
        racer.close()  # or its threads keep the build from ending
    return [(markup, error) for markup, error in json.loads(str(answer))]


def setup(app: "Sphinx") -> None:
    """Registers a renderer that writes TeX; where it is the only other one, Sphinx prefers it."""
    app.setup_extension("sphinx.ext.mathjax")  # its settings say how TeX is delimited
    app.add_html_math_renderer(
        "katex",
        (mathjax.html_visit_math, None),
        (mathjax.html_visit_displaymath, None),
    )
    app.connect("builder-inited", copy_katex)
    app.add_css_file("katex/katex.min.css")
    app.add_js_file("book_site_formulas.js", loading_method="defer")
    offer_static_files(app, __file__)
