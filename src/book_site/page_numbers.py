"""Sphinx extension: figures and exercises are numbered within their page.

Sphinx numbers them through the book, so that one more exercise in the first chapter renames those
of all others, and it reads every page's doctree again in each build to count. The numbers of a page
are found here when the page is read.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.util.typing import ExtensionMetadata

from book_site import __version__, patches, settings
from verified_book.patches import report, require

Numbers = dict[str, dict[str, tuple[int, ...]]]
"""The numbers of a page, by kind and by id, as Sphinx keeps them."""

_BEFORE = "book_site_page_numbers_before"
_assign_through_the_book = TocTreeCollector.assign_figure_numbers


def numbers_of(env: BuildEnvironment, doctree: nodes.document) -> Numbers:
    """The figures, tables and exercises of a page, each kind from 1."""
    numbers: Numbers = {}
    for node in doctree.findall(nodes.Element):
        kind = _kind(env, node)
        if kind and node["ids"]:
            of_kind = numbers.setdefault(kind, {})
            of_kind[node["ids"][0]] = (len(of_kind) + 1,)
    return numbers


def _kind(env: BuildEnvironment, node: nodes.Element) -> str | None:
    """What Sphinx would count a node as: "figure", "exercise"; None for what has no title."""
    for domain in env.domains.values():
        if domain.name == "std" and not domain.get_numfig_title(node):  # type: ignore[attr-defined]
            continue
        if kind := domain.get_enumerable_node_type(node):
            return str(kind)
    return None


def number_page(app: Sphinx, doctree: nodes.document) -> None:
    """Numbers a page that was read."""
    if app.config.book_site_page_numbers:
        app.env.toc_fignumbers[app.env.docname] = numbers_of(app.env, doctree)


def remember(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Keeps the numbers of the last build, to see which have changed."""
    setattr(env, _BEFORE, dict(env.toc_fignumbers))


def take_over(
    app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment
) -> None:
    """Takes the numbers of pages that another process has read."""
    for docname in docnames:
        if docname in other.toc_fignumbers:
            env.toc_fignumbers[docname] = other.toc_fignumbers[docname]


def outdated(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """All pages, if a number has changed to which any of them may refer."""
    before: dict[str, Numbers] = getattr(env, _BEFORE, {})
    if not app.config.book_site_page_numbers:
        return []  # Sphinx says which
    changed = any(env.toc_fignumbers.get(name) != old for name, old in before.items())
    return sorted(env.found_docs) if changed else []


def assign_figure_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Sphinx's own count, in books that have not chosen this extension."""
    if getattr(env.config, "book_site_page_numbers", False):
        return []
    return _assign_through_the_book(self, env)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Takes the place of Sphinx's count."""
    require(patches.TABLE)
    settings.register(app, settings.PAGE_NUMBERS)
    TocTreeCollector.assign_figure_numbers = assign_figure_numbers  # type: ignore[method-assign]
    app.connect("builder-inited", lambda app: report(patches.TABLE))
    app.connect("env-before-read-docs", remember)
    app.connect(
        "doctree-read", number_page, priority=900
    )  # when other extensions have added theirs
    app.connect("env-merge-info", take_over)
    app.connect("env-updated", outdated)
    return {
        "version": __version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
