"""Makes one stylesheet of all that pages load, with the rules that they need.

A rule is needed if every class and every id that it names stands in a page or in a script. The
name of the file holds its digest, so that no reader sees pages with the rules of former ones.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from book_site.light import icons

_LINK = re.compile(
    r'<link\b[^>]*\bhref="(?P<up>[^"]*)_static/(?P<name>[^"?#]+\.css)[^"]*"[^>]*>\s*'
)
_BUNDLE = re.compile(r"site\.[0-9a-f]{12}\.css")
_NAMES = re.compile(r'\b(?:class|id)="([^"]*)"')
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|/\*.*?\*/""", re.DOTALL)
_TOKEN = re.compile(r"""\\.|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|url\([^"')]*\)|[{};]""", re.DOTALL)
_URL = re.compile(r"""url\((["']?)(?!data:|#|[a-z]+:)([^"')?#]+)[^"')]*\1\)""")
_IMPORT = re.compile(r"""@import\s+(?:url\()?["']([^"']+)["']\)?\s*;?""")
_FAMILY = re.compile(r"font-family:\s*[\"']?([^\"';}]+)")


def bundle(pages: dict[Path, str], site: Path) -> None:
    """Puts one stylesheet in the place of all that the pages load."""
    static = site / "_static"
    sheets: list[str] = []
    for text in sorted(pages.values(), key=lambda text: -len(_LINK.findall(text))):
        for link in _LINK.finditer(text):
            name = link["name"]
            if not _BUNDLE.fullmatch(name) and name not in sheets:
                sheets.append(name)
    if not sheets:  # no page was written
        return
    former = [file for file in static.glob("site.*.css") if _BUNDLE.fullmatch(file.name)]
    css = "\n".join(_read(static, name) for name in sheets)
    css = fonts_that_are_named(needed(css, used_names(pages, static)))
    css = icons.subset(css, static, _classes(pages))
    name = f"site.{hashlib.sha256(css.encode()).hexdigest()[:12]}.css"
    static.joinpath(name).write_text(css, encoding="utf-8")
    for file, text in pages.items():
        pages[file] = _relinked(text, name)
    for old in [*former, *(static / sheet for sheet in sheets)]:
        if old.name != name:
            old.unlink(missing_ok=True)
    static.joinpath("basic.css").unlink(missing_ok=True)
    _remove_fonts(static, css)


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
    css = _COMMENT.sub(lambda match: match[1] or "", css)
    css = re.sub(r"@charset [^;]*;", "", css)
    folder = posixpath.dirname(name)

    def moved(match: re.Match[str]) -> str:
        return f'url("{posixpath.normpath(posixpath.join(folder, match[2]))}")'

    def imported(match: re.Match[str]) -> str:
        return _read(static, posixpath.normpath(posixpath.join(folder, match[1])))

    return _IMPORT.sub(imported, _URL.sub(moved, css))


def _classes(pages: dict[Path, str]) -> set[str]:
    return {
        name for text in pages.values() for found in _NAMES.findall(text) for name in found.split()
    }


def used_names(pages: dict[Path, str], static: Path) -> set[str]:
    """Every class and id of the pages, and every word of their scripts."""
    names = _classes(pages)
    for text in pages.values():
        for script in re.findall(r"<script[^>]*>(.+?)</script>", text, re.DOTALL):
            names.update(_WORD.findall(script))
    for file in static.rglob("*.js"):
        names.update(_WORD.findall(file.read_text(encoding="utf-8")))
    return names


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """The rules of a stylesheet, each with what stands between its braces.

    Examples:
        >>> list(rules('@import "a"; b{c:d} @media print{e{f:g}}'))
        [('@import "a"', None), ('b', 'c:d'), ('@media print', 'e{f:g}')]
    """
    depth = start = body = 0
    prelude = ""
    for token in _TOKEN.finditer(css):
        if token[0] == "{":
            if not depth:
                prelude, body = css[start : token.start()].strip(), token.end()
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if not depth:
                yield prelude, css[body : token.start()].strip()
                start = token.end()
        elif token[0] == ";" and not depth:
            yield css[start : token.start()].strip(), None
            start = token.end()


def needed(css: str, used: set[str]) -> str:
    """The rules whose classes and ids are all used.

    Examples:
        >>> needed(".a .b{c:d} .a,.e{f:g} @media print{.e{h:i}}", {"a"})
        '.a{f:g}'
    """
    kept = []
    for prelude, body in rules(css):
        if body is None:
            kept.append(f"{prelude};")
        elif prelude.startswith(("@media", "@supports", "@layer", "@container")):
            if inner := needed(body, used):
                kept.append(f"{prelude}{{{inner}}}")
        elif prelude.startswith("@"):
            kept.append(f"{prelude}{{{body}}}")
        else:
            selectors = [each for each in _selectors(prelude) if _names_in(each) <= used]
            if selectors and body:
                kept.append(f"{','.join(selectors)}{{{_shorter(body)}}}")
    return "\n".join(kept)


def _shorter(body: str) -> str:
    return body if "{" in body or '"' in body else re.sub(r"\s*([:;,])\s+|\s+", _space, body)


def _space(match: re.Match[str]) -> str:
    return match[1] or " "


def _selectors(prelude: str) -> list[str]:
    """The selectors of a list; commas within parentheses part none.

    Examples:
        >>> _selectors("a:is(b, c), d")
        ['a:is(b, c)', 'd']
    """
    parts, depth = [""], 0
    for character in prelude:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [" ".join(part.split()) for part in parts]


def _names_in(selector: str) -> set[str]:
    """The classes and ids that must be there for a selector to match.

    Examples:
        >>> sorted(_names_in("a.b:not(.c) > #d[e='.f']"))
        ['b', 'd']
    """
    plain = re.sub(r"\[[^\]]*\]", "", selector)
    while (inner := re.sub(r"\([^()]*\)", "", plain)) != plain:
        plain = inner
    return {name.replace("\\", "") for name in re.findall(r"[.#]((?:[\w-]|\\.)+)", plain)}


def fonts_that_are_named(css: str) -> str:
    """Leaves out the fonts that no rule names, and animations that none runs."""
    kept = list(rules(css))
    rest = " ".join(
        f"{prelude}{{{body}}}"
        for prelude, body in kept
        if not re.match(r"@font-face|@(?:-webkit-)?keyframes|:root", prelude)
    )

    def is_named(prelude: str, body: str | None) -> bool:
        if prelude.startswith("@font-face"):
            family = _FAMILY.search(body or "")
            return family is None or family[1].strip() in rest
        if "keyframes" in prelude:
            return prelude.split()[-1] in rest
        return True

    return "\n".join(
        f"{prelude};" if body is None else f"{prelude}{{{body}}}"
        for prelude, body in kept
        if is_named(prelude, body)
    )


def _remove_fonts(static: Path, css: str) -> None:
    """Removes the files of fonts that the stylesheet does not name."""
    named = {posixpath.normpath(match[2]) for match in _URL.finditer(css)}
    for file in static.rglob("*"):
        is_font = file.suffix in {".ttf", ".woff", ".woff2", ".eot"}
        if is_font and file.relative_to(static).as_posix() not in named:
            file.unlink()
