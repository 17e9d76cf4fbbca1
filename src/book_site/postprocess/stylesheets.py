"""Makes one stylesheet of all that pages load, with the rules that they need.

A rule is needed if every class and every id that it names stands in a page or in a script. The
name of the file holds its digest, so that no reader sees pages with the rules of former ones.
"""

import hashlib
import posixpath
import re
from pathlib import Path

import lightningcss

from book_site.postprocess import icons

_LINK = re.compile(
    r'<link\b[^>]*\bhref="(?P<up>[^"]*)_static/(?P<name>[^"?#]+\.css)[^"]*"[^>]*>\s*'
)
_BUNDLE = re.compile(r"site\.[0-9a-f]{12}\.css")
_CLASSES = re.compile(r'\b(?:class|id)="([^"]*)"')
_SCRIPT = re.compile(r"<script[^>]*>(.+?)</script>", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_NAME = re.compile(r"[.#]((?:[\w-]|\\.)+)")
_URL = re.compile(r"""url\((["']?)(?!data:|#|[a-z]+:)([^"')?#]+)[^"')]*\1\)""")
_IMPORT = re.compile(r"""@import\s+(?:url\()?["']([^"']+)["']\)?\s*;?""")
_FONTS = {".ttf", ".woff", ".woff2", ".eot"}


def bundle(pages: dict[Path, str], static: Path) -> None:
    """Puts one stylesheet in the place of all that the pages load."""
    sheets: list[str] = []
    for text in sorted(pages.values(), key=lambda text: -len(_LINK.findall(text))):
        for link in _LINK.finditer(text):
            name = link["name"]
            if not _BUNDLE.fullmatch(name) and name not in sheets:
                sheets.append(name)
    if not sheets:  # no page was written
        return
    css = "\n".join(_read(static, name) for name in sheets)
    classes = {
        name
        for text in pages.values()
        for found in _CLASSES.findall(text)
        for name in found.split()
    }
    css = icons.subset(needed(css, classes | _words_of_scripts(pages, static)), static, classes)
    name = f"site.{hashlib.sha256(css.encode()).hexdigest()[:12]}.css"
    for former in static.rglob("*.css"):
        former.unlink()
    static.joinpath(name).write_text(css, encoding="utf-8")
    for file, text in pages.items():
        pages[file] = _relinked(text, name)
    named = {posixpath.normpath(match[2]) for match in _URL.finditer(css)}
    for file in static.rglob("*"):
        if file.suffix in _FONTS and file.relative_to(static).as_posix() not in named:
            file.unlink()


def _relinked(text: str, name: str) -> str:
    """A page that loads the bundle where it loaded its first stylesheet."""
    first = _LINK.search(text)
    if first is None:
        return text
    tag = f'<link rel="stylesheet" href="{first["up"]}_static/{name}" />\n'
    return text[: first.start()] + tag + _LINK.sub("", text[first.end() :])


def _read(static: Path, name: str) -> str:
    """A stylesheet with those that it imports; addresses in it are from the static folder."""
    css = static.joinpath(name).read_text(encoding="utf-8")
    css = re.sub(r"@charset [^;]*;", "", css)
    folder = posixpath.dirname(name)

    def moved(match: re.Match[str]) -> str:
        return f'url("{posixpath.normpath(posixpath.join(folder, match[2]))}")'

    def imported(match: re.Match[str]) -> str:
        return _read(static, posixpath.normpath(posixpath.join(folder, match[1])))

    return _IMPORT.sub(imported, _URL.sub(moved, css))


def _words_of_scripts(pages: dict[Path, str], static: Path) -> set[str]:
    scripts = [script for text in pages.values() for script in _SCRIPT.findall(text)]
    scripts += [file.read_text(encoding="utf-8") for file in static.rglob("*.js")]
    return {word for script in scripts for word in _WORD.findall(script)}


def needed(css: str, used: set[str]) -> str:
    """The rules with a selector whose classes and ids are all used.

    Examples:
        >>> needed(".a .b{top:0} .a,.e{left:0} @media print{.e{left:0}}", {"a"})
        '.a,.e{left:0}'
    """
    named = {name.replace("\\", "") for name in _NAME.findall(css)}
    return lightningcss.process_stylesheet(css, unused_symbols=named - used, error_recovery=True)
