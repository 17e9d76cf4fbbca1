"""The small document that every tool gets, in no tool's format yet.

A page has been made once, by the code of then, and shows what that code printed. Now other code
runs: the same for a right page, another for a page with a mistake.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Shows = Literal["nothing", "text", "error", "html", "latex", "figure"]

MODULE = "measured.py"
MODULE_THEN = "RATE = 0.25\n"
MODULE_NOW = "RATE = 0.125\n"


@dataclass(frozen=True)
class Cell:
    """A piece of code.

    Attributes:
        name: The heading above it, by which a failure is found again.
        shows: What kind of output the page shows below it.
        code: Its statements.
        value: An expression after them, whose value is displayed.
        aligned: Whether the page means the white space of its output.
    """

    name: str
    shows: Shows
    code: str = ""
    value: str = ""
    aligned: bool = False

    @property
    def source(self) -> str:
        """The code as a notebook has it."""
        return "\n".join(part for part in (self.code, self.value) if part)


@dataclass(frozen=True)
class Mask:
    """What an author may write where an output is known to differ from run to run.

    Attributes:
        ellipsis: The output with `...` where it differs, for tools that take this for any text.
        digits: The output for tools that compare numbers to the digits that are written.
        pattern: What to replace in both texts before they are compared, a regular expression.
        replacement: What to replace it with.
    """

    ellipsis: str
    digits: str
    pattern: str
    replacement: str


@dataclass(frozen=True)
class Page:
    """A page as it stands and the code that runs when it is checked.

    Attributes:
        name: Its file name, without the suffix.
        then: The cells that made the outputs that the page shows.
        now: The cells that run.
        masks: By the names of cells, what the author wrote in place of their outputs.
    """

    name: str
    then: tuple[Cell, ...]
    now: tuple[Cell, ...]
    masks: Mapping[str, Mask] = field(default_factory=dict)

    @property
    def cells(self) -> list[tuple[Cell, Cell]]:
        """Each cell as it was and as it is."""
        return list(zip(self.then, self.now, strict=True))

    def without(self, kinds: "Mapping[Shows, object]") -> "Page":
        """The page for a format that cannot show some kinds of output."""
        kept = [(then, now) for then, now in self.cells if then.shows not in kinds]
        return Page(
            self.name,
            tuple(then for then, _ in kept),
            tuple(now for _, now in kept),
            self.masks,
        )


RIGHT = (
    Cell("imports", "nothing", "import math\nimport numpy as np"),
    Cell("root", "text", value="round(math.sqrt(2), 4)"),
    Cell("count", "text", 'words = "the cat sat on the mat".split()', "len(words)"),
    Cell("sign", "text", value="round(math.cos(2), 4)"),
    Cell("shape", "text", value="np.zeros((2, 3)).shape"),
    Cell("array", "text", value="np.array([3.0, 5.0])"),
    Cell(
        "lines",
        "text",
        'for step, loss in enumerate([0.9, 0.5, 0.3]):\n    print("step", step, "loss", loss)',
    ),
    Cell(
        "columns",
        "text",
        'for name, count in [("cat", 12), ("horse", 7)]:\n    print(f"{name:6}{count:4}")',
        aligned=True,
    ),
    Cell(
        "summary",
        "text",
        "squares = np.arange(10) ** 2\n"
        "with np.printoptions(threshold=5, edgeitems=2):\n"
        "    print(squares)",
    ),
    Cell("total", "nothing", "total = sum(range(4))"),
    Cell("refused", "error", value='float("seven")'),
    Cell("module", "text", "import measured", "measured.RATE"),
    Cell("table", "html", "from lesson import Table", 'Table([("cat", 12), ("horse", 7)])'),
    Cell("formula", "latex", "from lesson import Formula", 'Formula(r"\\frac{1}{2}")'),
    Cell(
        "figure",
        "figure",
        "import matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots(figsize=(3, 2))\n"
        "lines = axes.plot([1, 2, 4, 3])",
    ),
)


def lay_out(folder: Path) -> None:
    """Puts the modules that the cells import next to the pages."""
    shutil.copyfile(Path(__file__).with_name("lesson.py"), folder / "lesson.py")
    (folder / MODULE).write_text(MODULE_THEN, encoding="utf-8")


def cell_at(text: str, line: int) -> str | None:
    """The name of the cell under whose heading a line (from 1) of a Markdown page stands."""
    headings = [row for row in text.split("\n")[:line] if row.startswith("## ")]
    return headings[-1].removeprefix("## ") if headings else None
