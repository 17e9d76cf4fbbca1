"""Twenty mistakes of the kinds that happen in books, and three noises that are none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluation.benchmarks.output_checkers.document import RIGHT, Cell, Mask, Page


@dataclass(frozen=True)
class Mistake:
    """A change of the code after which the page shows what is no longer true.

    Attributes:
        id: A short name.
        title: What is wrong, for a reader.
        cell: The cell that prints something else now.
        code: Its statements now; those of the right page if None.
        value: The expression that it displays now; that of the right page if None.
        module: Whether the change is not in the page but in a module that it imports.
    """

    id: str
    title: str
    cell: str
    code: str | None = None
    value: str | None = None
    module: bool = False

    @property
    def page(self) -> Page:
        """The document with this one mistake."""
        return Page(self.id, RIGHT, tuple(map(self._now, RIGHT)))

    def _now(self, cell: Cell) -> Cell:
        if cell.name != self.cell:
            return cell
        code = cell.code if self.code is None else self.code
        value = cell.value if self.value is None else self.value
        return replace(cell, code=code, value=value)


@dataclass(frozen=True)
class Noise:
    """A difference between two runs that is no mistake.

    Attributes:
        id: A short name.
        title: What differs, for a reader.
        cell: The cell when the page was made.
        value: The expression that it displays now.
        mask: What an author may write who knows of it.
    """

    id: str
    title: str
    cell: Cell
    value: str
    mask: Mask


def _lines(losses: str) -> str:
    return f'for step, loss in enumerate({losses}):\n    print("step", step, "loss", loss)'


MISTAKES = (
    Mistake(
        "last-digit",
        "the last digit of a float (1.4142, now 1.4143)",
        "root",
        value="round(math.sqrt(2) + 1e-4, 4)",
    ),
    Mistake("count", "an integer off by one", "count", value="len(words) + 1"),
    Mistake("sign", "a sign lost", "sign", value="round(-math.cos(2), 4)"),
    Mistake("shape", "another shape", "shape", value="np.zeros((3, 2)).shape"),
    Mistake("dtype", "another dtype (`3.`, now `3`)", "array", value="np.array([3, 5])"),
    Mistake("missing-line", "a line of output is missing", "lines", _lines("[0.9, 0.5]")),
    Mistake("extra-line", "a line of output too many", "lines", _lines("[0.9, 0.5, 0.3, 0.2]")),
    Mistake(
        "columns",
        "columns that are aligned otherwise",
        "columns",
        'for name, count in [("cat", 12), ("horse", 7)]:\n    print(f"{name:6} {count}")',
    ),
    Mistake(
        "swallowed",
        "a wrong value where the page shows the `...` that numpy printed",
        "summary",
        "squares = np.arange(10) ** 2\n"
        "squares[2] = 5\n"
        "with np.printoptions(threshold=5, edgeitems=3):\n"
        "    print(squares)",
    ),
    Mistake("no-output", "nothing printed where the page shows output", "count", value=""),
    Mistake("new-output", "output where the page shows none", "total", value="total"),
    Mistake(
        "warning",
        "a warning on stderr that was not there",
        "count",
        'import warnings\nwords = "the cat sat on the mat".split()\n'
        'warnings.warn("two words are the same", stacklevel=1)',
    ),
    Mistake("raises", "an exception in place of a value", "root", value="round(math.sqrt(-2), 4)"),
    Mistake("other-exception", "an exception of another type", "refused", value="float(None)"),
    Mistake(
        "other-message", "another message of the same exception", "refused", value='float("eight")'
    ),
    Mistake(
        "table",
        "a cell of a table (HTML)",
        "table",
        value='Table([("cat", 12), ("horse", 8)])',
    ),
    Mistake("formula", "a formula (LaTeX)", "formula", value='Formula(r"\\frac{1}{3}")'),
    Mistake(
        "figure-data",
        "other data in a figure of the same size",
        "figure",
        "import matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots(figsize=(3, 2))\n"
        "lines = axes.plot([1, 3, 4, 2])",
    ),
    Mistake(
        "no-figure",
        "a figure is missing",
        "figure",
        "import matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots(figsize=(3, 2))\n"
        "lines = axes.plot([1, 2, 4, 3])\n"
        "plt.close(figure)",
    ),
    Mistake(
        "stale", "a stale page: a module that it imports changed, it did not", "module", module=True
    ),
)

NOISES = (
    Noise(
        "last-bits",
        "the last bits of a float (a relative 1e-16)",
        Cell("product", "text", "root = 2 ** 0.5", "root * root * root"),
        "2 * root",
        Mask("2.828427...", "2.828427", r"(\d\.\d{6})\d+", r"\1"),
    ),
    Noise(
        "address",
        "an address in memory",
        Cell("address", "text", value='print("<Model object at 0x7f3c1e0d5b80>")'),
        'print("<Model object at 0x7fa9c44e1d30>")',
        Mask("<Model object at 0x...>", "<Model object at 0x...>", r"0x[0-9a-f]+", "ADDRESS"),
    ),
    Noise(
        "timing",
        "a timing",
        Cell("timing", "text", value='print("fitted in 1.24 s")'),
        'print("fitted in 1.31 s")',
        Mask("fitted in ... s", "fitted in ... s", r"\d+\.\d+ s", "TIME"),
    ),
)

NOISY = tuple(noise.cell for noise in NOISES)


def noisy_pages(masked: bool) -> list[Page]:
    """The document of the noises as it was made, and with each of them by itself.

    Args:
        masked: Whether the author has marked in each output what differs from run to run.
    """
    masks = {noise.cell.name: noise.mask for noise in NOISES} if masked else {}
    pages = [Page("as-made", NOISY, NOISY, masks)]
    for noise in NOISES:
        now = [replace(c, value=noise.value) if c is noise.cell else c for c in NOISY]
        pages.append(Page(noise.id, NOISY, tuple(now), masks))
    return pages


def mistaken_pages(mistakes: Sequence[Mistake]) -> list[Page]:
    """The right document, and with each of these mistakes by itself."""
    return [Page("right", RIGHT, RIGHT), *(mistake.page for mistake in mistakes)]
