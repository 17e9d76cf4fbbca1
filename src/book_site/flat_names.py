"""Names of pages without folders, for files and ids that stand side by side."""

_LETTERS = str.maketrans({"/": "-", "-": "~-", "~": "~~"})


def flat_name(page: str) -> str:
    """The name of a page without slashes; that of no other page is the same.

    No two hyphens follow each other in it, but behind a tilde: `--` can end it.

    Examples:
        >>> flat_name("attention/masks"), flat_name("attention-masks")
        ('attention-masks', 'attention~-masks')
    """
    return page.translate(_LETTERS)
