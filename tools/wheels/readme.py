"""What the READMEs tell their readers to type."""

import re


def python(text: str) -> str:
    """The blocks of Python, one after the other, as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        raise ValueError("the README has no block of Python")
    return "\n".join(blocks)


def indented(text: str, after: str) -> str:
    """The indented text below a line that has certain words."""
    lines = text.partition(after)[2].split("\n\n", 1)[1].split("\n")
    end = next(number for number, line in enumerate(lines) if line and not line.startswith("    "))
    return "\n".join(line[4:] for line in lines[:end]).strip("\n") + "\n"


def first_page(text: str) -> tuple[str, str]:
    """The page of `verified_book`'s README that is red, and what it says is said of it."""
    page, _, told = indented(text, "Save this as").partition(
        "\n$ python -m verified_book check page.md\n"
    )
    return page, told
