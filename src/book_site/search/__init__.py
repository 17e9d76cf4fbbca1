"""Sphinx extension: a search by sections, claims and names, with excerpts, also without a server.

What it looks into is written when all pages are: each section with its text, each claim, each name
of an API. The theme's dialog shows what it finds while the reader types; nothing is loaded before
it is opened. The option `book_site_search_synonyms` names what means the same.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import ExtensionMetadata

DATA = "book_site_search_data.js"
SCRIPT = "book_site_search.js"


def leave_out_the_usual_index(app: "Sphinx", env: "BuildEnvironment") -> None:
    """Spares the index of Sphinx's own search, stems of all words, which no page loads here."""
    for name in env.found_docs:
        env.metadata[name]["nosearch"] = "true"


def write_data(app: "Sphinx", exception: Exception | None) -> None:
    """Writes what the search looks into."""
    from book_site.search.entries import entries_of_claims, entries_of_page
    from book_site.site_files import text_of_site
    from verified_book.toc_order import reading_order

    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages, entries = [], []
    for name in reading_order(app.env):
        file = site / app.builder.get_target_uri(name)
        if file.is_file():
            pages.append([file.relative_to(site).as_posix(), app.env.titles[name].astext()])
            entries += [[len(pages) - 1, *entry] for entry in entries_of_page(text_of_site(file))]
    claims = site / "claims.json"
    if claims.is_file():
        published = json.loads(text_of_site(claims))["claims"]
        places = {page: index for index, (page, _) in enumerate(pages)}
        entries += entries_of_claims(published, places)
    data = {
        "pages": pages,
        "entries": entries,
        "synonyms": app.config.book_site_search_synonyms,
        "lists": app.config.book_site_search_lists,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = f"window.verifiedBookSearch({text});\n"
    site.joinpath("_static", DATA).write_text(text, encoding="utf-8")


def setup(app: "Sphinx") -> "ExtensionMetadata":
    """Runs before formulas are rendered, so that their TeX is found."""
    from book_site import __version__, settings
    from verified_book.static_files import offer_static_files

    app.setup_extension("verified_book")
    settings.register(app, settings.SEARCH)
    offer_static_files(app, __file__)
    app.add_js_file(SCRIPT, loading_method="defer")
    app.connect("env-updated", leave_out_the_usual_index)
    app.connect("build-finished", write_data, priority=930)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
