"""Cells with the text that a reader must see below them, ordinary and odd."""

import html
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

WORDS = "mean of the layer is below and above token weights norm head".split()
ODD_LINES = [
    "```",
    "````",
    "~~~",
    ":::",
    "```{expect-output}",
    ".. expect-output::",
    ".. code-cell::",
    "---",
    "+++",
    "===",
    ":option: value",
    ":tags: [x]",
    "% comment",
    "> quoted",
    "# title",
    "- item",
    "   indented",
    "\tafter a tab",
    "trailing blanks   ",
    "$x^2$ and `code`",
    "{claim}`A1` {ref}`x`",
    "<b>bold</b> &amp;",
    "|a|b|",
    "\\alpha\\",
    "[0 1 2 ... 7 8]",
    "...",
    "\\... and \\\\...",
    "It is 7. It is 0.5.",
    "1.2.3 v1.5 0x7f 12e3456789",
    "été 日本語 עברית 🎉",
    "non\u00a0breaking",
    "''' \"\"\"",
    "a" * 300,
]
CONTROLS = {"\x07": "␇", "\x08": "␈", "\x00": "␀", "\x1a": "␚", "\x7f": "␡"}
SEPARATORS = ["\u2028", "\x85", "\f", "\v", "\x1e"]


@dataclass(frozen=True)
class Segment:
    """A cell.

    Attributes:
        text: What a reader must see below it; empty for nothing.
        tags: The tags of the cell.
        words: What a block for it has after its name.
    """

    code: str
    text: str
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


Kind = Callable[[random.Random], Segment]


def number(rng: random.Random) -> str:
    """A number as programs print them."""
    size = rng.choice([1e-8, 1e-3, 1.0, 1.0, 30.0, 1e5, 1e12])
    value = rng.uniform(-1, 1) * size
    form = rng.choice(["{:.4f}", "{!r}", "{:.3e}", "{:.0f}", "{:.0f}.", "{:+.2f}", "{:g}"])
    return form.format(value)


def line(rng: random.Random) -> str:
    """A line of an output."""
    if rng.random() < 0.3:
        return rng.choice(ODD_LINES)
    parts = [number(rng) if rng.random() < 0.4 else rng.choice(WORDS) for _ in range(5)]
    return " ".join(parts[: rng.randint(1, 5)])


def printed(rng: random.Random) -> Segment:
    lines = [line(rng) if rng.random() < 0.85 else "" for _ in range(rng.choice([1, 1, 2, 3, 8]))]
    text = "\n".join(["x", *lines, "end"] if not "".join(lines).strip() else lines)
    return Segment(f"print({text!r})", text)


def literal(rng: random.Random) -> Segment:
    values: list[object] = [
        rng.randint(-(10**9), 10**9),
        rng.uniform(-5, 5),
        complex(rng.uniform(-2, 2), rng.uniform(-2, 2)),
        rng.choice(ODD_LINES),
        [rng.randint(0, 99) for _ in range(rng.randint(0, 9))],
        {rng.choice(WORDS): rng.uniform(0, 1) for _ in range(3)},
        (rng.choice([True, False]), float("nan"), float("inf"), 0.0, -0.0),
        b"bytes \x00 \xff",
        float(rng.randint(-9, 9)),
    ]
    value = rng.choice(values)
    code = repr(value).replace("nan", "float('nan')").replace("inf", "float('inf')")
    return Segment(code, repr(value))


def array(rng: random.Random) -> Segment:
    shape = rng.choice([(3,), (2, 3), (2, 2, 2), (0,), (1, 1)])
    seed = rng.randrange(10**6)
    whole = rng.random() < 0.3
    make = f"np.random.default_rng({seed}).normal(size={shape})"
    make = f"np.round(3 * {make})" if whole else make
    value = np.random.default_rng(seed).normal(size=shape)
    value = np.round(3 * value) if whole else value
    if rng.random() < 0.5:
        return Segment(f"import numpy as np\nprint({make})", str(value))
    return Segment(f"import numpy as np\n{make}", repr(value))


def shortened(rng: random.Random) -> Segment:
    size = rng.randint(1500, 3000)
    text = repr(np.arange(size) * 1.5)
    return Segment(f"import numpy as np\nnp.arange({size}) * 1.5", text)


def raised(rng: random.Random) -> Segment:
    message = rng.choice(["no such layer", f"expected {number(rng)}", "two\nlines", "a ... b"])
    name = rng.choice(["ValueError", "KeyError", "ZeroDivisionError"])
    shown = repr(message) if name == "KeyError" else message
    return Segment(f"raise {name}({message!r})", f"{name}: {shown}", ("raises-exception",))


def table(rng: random.Random) -> Segment:
    rows = [
        [rng.choice([number(rng), rng.choice(WORDS), "a < b"]) for _ in range(3)]
        for _ in range(rng.randint(1, 4))
    ]
    cells = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    markup = f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
    code = f"from IPython.display import HTML\nHTML({markup!r})"
    return Segment(code, "\n".join("  ".join(row) for row in rows))


def latex(rng: random.Random) -> Segment:
    text = f"$\\displaystyle \\frac{{{rng.randint(1, 99)}}}{{x_{rng.randint(1, 9)}}}$"
    return Segment(f"from IPython.display import Latex\nLatex({text!r})", text)


def streams(rng: random.Random) -> Segment:
    parts = [f"{rng.choice(WORDS)} {number(rng)}" for _ in range(rng.randint(2, 4))]
    code = "import sys\n" + "\n".join(f"print({part!r}, flush=True)" for part in parts)
    return Segment(code, "\n".join(parts))


def both(rng: random.Random) -> Segment:
    first, last = line(rng), rng.randint(0, 10**6)
    return Segment(f"print({first!r})\n{last}", f"{first}\n{last}")


def colored(rng: random.Random) -> Segment:
    word, value = rng.choice(WORDS), number(rng)
    return Segment(
        f"print('\\x1b[1;31m{word}\\x1b[0m \\x1b[38;5;9m{value}\\x1b[m')", f"{word} {value}"
    )


def separated(rng: random.Random) -> Segment:
    mark = rng.choice(SEPARATORS)
    first, last = rng.choice(WORDS), rng.choice(WORDS)
    return Segment(f"print({f'{first}{mark}{last}'!a})", f"{first}\n{last}")


def controlled(rng: random.Random) -> Segment:
    char, picture = rng.choice(list(CONTROLS.items()))
    word = rng.choice(WORDS)
    # The result of an expression is shown as it is; a stream's backspaces may be carried out.
    code = f"class Shown:\n    def __repr__(self):\n        return {f'{word}{char}.'!a}\nShown()"
    return Segment(code, f"{word}{picture}.")


def silent(rng: random.Random) -> Segment:
    value = rng.choice(
        [
            "quiet = '''\n```{expect-output}\nnot a block\n```\n\n\n'''",
            "def f():\n    '''Docstring.\n\n    .. expect-output::\n\n       no\n\n"
            "    ```{expect-output}\n    no\n    ```\n    '''",
            "# ```{expect-output}\nx = 1",
            "x = 2;",
            "import sys",
        ]
    )
    return Segment(value, "")


def talkative(rng: random.Random) -> Segment:
    inner = silent(rng)
    text = line(rng)
    return Segment(f"{inner.code}\nprint({text!r})", text)


def hidden(rng: random.Random) -> Segment:
    tag = rng.choice(["remove-output", "remove-cell", "remove-stdout"])
    return Segment("print('not on the page')", "", (tag,))


def folded(rng: random.Random) -> Segment:
    made = printed(rng)
    tag = rng.choice(["hide-output", "hide-cell", "hide-input", "remove-input"])
    return Segment(made.code, made.text, (tag,))


def long(rng: random.Random) -> Segment:
    lines = [f"{index} {number(rng)}" for index in range(rng.randint(50, 200))]
    code = f"print({chr(10).join(lines)!r})"
    return Segment(code, "\n".join(lines))


def exact(rng: random.Random) -> Segment:
    rows = [
        " " * rng.randint(0, 6) + rng.choice(WORDS) + "  " + rng.choice(WORDS) for _ in range(3)
    ]
    text = "\n".join(["left edge", *rows])
    return Segment(f"print({text!r})", text, words=("exact",))


KINDS: list[tuple[int, Kind]] = [
    (8, printed),
    (5, literal),
    (5, array),
    (1, shortened),
    (2, raised),
    (2, table),
    (1, latex),
    (2, streams),
    (2, both),
    (1, colored),
    (1, separated),
    (1, controlled),
    (3, silent),
    (2, talkative),
    (1, hidden),
    (2, folded),
    (1, long),
    (1, exact),
]


def segment(rng: random.Random) -> Segment:
    """Any segment whose text says something, or nothing at all."""
    made = rng.choices([kind for _, kind in KINDS], [weight for weight, _ in KINDS])[0](rng)
    # A text of nothing but white space needs no block, and none of nothing but dots can be checked.
    return made if made.text.strip(" \n\t\u00a0") or not made.text else Segment("x = 0", "")
