"""Every option of the site's extensions: its name, its default and what it does."""

from verified_book.settings import Setting, register

__all__ = ["INTERACTIVE", "LEFT_OUT", "NOTEBOOKS", "PAGE_NUMBERS", "SEARCH", "SYMBOLS", "register"]

NOTEBOOKS = (
    Setting(
        "book_site_notebook_link",
        "Download this page as a notebook",
        (str,),
        "html",
        "The words of the link below a page with cells, where the theme has no download menu; "
        "empty for none.",
    ),
    Setting(
        "book_site_notebook_start",
        "",
        (str,),
        "html",
        "What each notebook says first, as Markdown; `{install}` stands for what to install.",
    ),
    Setting(
        "book_site_notebook_install",
        "",
        (str,),
        "html",
        "What `pip install` needs for a notebook. A first cell, off until a reader switches it on, "
        "installs it.",
    ),
    Setting(
        "book_site_notebook_packages",
        {},
        (dict,),
        "html",
        "Words that cells have which need one more package, each with the package.",
    ),
)

PAGE_NUMBERS = (
    Setting(
        "book_site_page_numbers",
        True,
        (bool,),
        "env",
        "Whether figures and exercises are numbered within their page, and not through the book.",
    ),
)

SEARCH = (
    Setting(
        "book_site_search_synonyms",
        [],
        (list, tuple),
        "",
        "Words that mean the same to the search: lists of words or phrases.",
    ),
    Setting(
        "book_site_search_lists",
        [],
        (list, tuple),
        "",
        "Beginnings of the addresses of pages that gather what others tell: they come after those.",
    ),
)

LEFT_OUT = (
    Setting(
        "book_site_leaves_out",
        ["**/*.map"],
        (list, tuple),
        "",
        "Patterns, from the site's `_static` folder, of files that no page needs. "
        "They are removed, and the tags that load them.",
    ),
)

INTERACTIVE = (
    Setting(
        "book_site_interactive",
        {},
        (dict,),
        "html",
        "The figures that a reader moves: the scripts that each needs, from the site's `_static` "
        "folder, in the order in which they are loaded.",
    ),
    Setting(
        "book_site_interactive_inline",
        50_000,
        (int,),
        "html",
        "So many characters of a figure's data a page may hold. Longer ones get a file of their "
        "own, which is loaded when a reader starts the figure.",
    ),
)

SYMBOLS = (
    Setting(
        "book_site_symbols",
        "equation-code",
        (str,),
        "env",
        "The class of containers that hold an equation and its source, whose symbols and variables "
        "the directive `symbols` ties.",
    ),
)
