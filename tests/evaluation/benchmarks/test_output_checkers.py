"""The comparison of tools: its documents, its reading of their logs, its table. Runs no tool."""

import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.benchmarks.output_checkers import cog, verified_book
from evaluation.benchmarks.output_checkers.doctests import sessions
from evaluation.benchmarks.output_checkers.document import (
    MODULE,
    MODULE_NOW,
    RIGHT,
    Cell,
    Page,
    cell_at,
    lay_out,
)
from evaluation.benchmarks.output_checkers.mistakes import (
    MISTAKES,
    NOISES,
    NOISY,
    mistaken_pages,
    noisy_pages,
)
from evaluation.benchmarks.output_checkers.report import descriptions, summary, table
from evaluation.benchmarks.output_checkers.results import WRITTEN, collected
from evaluation.benchmarks.output_checkers.tool import NotHere, Outcome, Tool
from evaluation.benchmarks.output_checkers.tools import TOOLS
from evaluation.benchmarks.output_checkers.trials import noise_ids, trial


@pytest.fixture(scope="module")
def written():
    return json.loads(WRITTEN.read_text(encoding="utf-8"))


class Pretender(Tool):
    """A tool that flags the cells it is told to, and the module once it has changed."""

    name = "pretender"
    distribution = "pretender"
    command = "pretend"
    purpose = "Pretends, with `code`: for <tests>."
    documentation = "https://example.org/"
    marks = "`...`"

    def __init__(self, flags=None, status=None, found="1.0"):
        self.flags = flags or {}
        self.status = status
        self.found = found

    def version(self):
        if self.found is None:
            raise NotHere("not to be had")
        return self.found

    def write(self, folder, pages):
        for page in pages:
            (folder / f"{page.name}.txt").write_text(" ".join(cell.name for cell in page.now))

    def run(self, folder, names):
        outcome = Outcome(0)
        for name in names:
            flagged = self.flags.get(name)
            if (folder / MODULE).read_text() == MODULE_NOW:
                flagged = "module"
            if flagged:
                outcome.blame(name, flagged, f"{name}: {flagged}")
        outcome.status = int(bool(outcome.places)) if self.status is None else self.status
        return outcome


def cell(name):
    return next(each for each in RIGHT if each.name == name)


def test_the_written_results_have_a_verdict_of_every_tool_on_everything(written):
    assert [tool["name"] for tool in written["tools"]] == [tool.name for tool in TOOLS]
    everything = [mistake.id for mistake in MISTAKES] + noise_ids()
    allowed = {
        **{m.id: {"caught", "missed", "not expressible"} for m in MISTAKES},
        **{name: {"quiet", "false alarm", "not expressible"} for name in noise_ids()},
    }
    for tool in written["tools"]:
        assert list(tool["verdicts"]) == everything
        for name, verdict in tool["verdicts"].items():
            assert verdict["verdict"] in allowed[name] | {"not run"}
            assert bool(verdict.get("place")) == (verdict["verdict"] in ("caught", "false alarm"))
            assert bool(verdict.get("note")) == (
                verdict["verdict"] in ("not expressible", "not run")
            )
        assert tool["date"] >= "2026"


def test_the_written_results_are_of_these_mistakes(written):
    assert written["mistakes"] == [{"id": m.id, "title": m.title} for m in MISTAKES]
    assert written["noises"] == [{"id": n.id, "title": n.title} for n in NOISES]
    assert set(written["versions"]) >= {"python", "pytest", "sphinx"}


def test_the_written_results_name_no_machine_and_no_path(written):
    text = json.dumps(written)
    assert platform.node() not in text
    assert str(Path(__file__).parents[3]) not in text
    assert "/tmp" not in text
    assert "/work" not in text


def test_twenty_mistakes_each_in_one_cell():
    assert len(MISTAKES) == 20
    assert len({mistake.id for mistake in MISTAKES}) == 20
    for mistake in MISTAKES:
        changed = [was.name for was, now in mistake.page.cells if was.source != now.source]
        assert changed == ([] if mistake.module else [mistake.cell])
        assert [was.shows for was, _ in mistake.page.cells] == [now.shows for now in RIGHT]
    assert [mistake.id for mistake in MISTAKES if mistake.module] == ["stale"]


@pytest.mark.parametrize("masked", [False, True])
def test_three_noises_each_in_one_cell(masked):
    pages = noisy_pages(masked)
    assert [page.name for page in pages] == ["as-made", *(noise.id for noise in NOISES)]
    assert all(page.then == NOISY for page in pages)
    changed = [[a.name for a, b in page.cells if a != b] for page in pages]
    assert changed == [[], *([noise.cell.name] for noise in NOISES)]
    assert [bool(page.masks) for page in pages] == [masked] * 4


def test_the_first_page_is_right():
    right, last_digit = mistaken_pages(MISTAKES[:1])
    assert right == Page("right", RIGHT, RIGHT)
    assert last_digit == MISTAKES[0].page


def test_a_format_without_figures_has_a_page_without_them():
    page = mistaken_pages([])[0].without({"figure": "no", "html": "no"})
    assert {"table", "figure"}.isdisjoint(cell.name for cell in page.now)
    assert [cell for cell in page.then if cell.shows == "text"] == [
        cell for cell in RIGHT if cell.shows == "text"
    ]


def test_every_mistake_changes_what_an_interpreter_shows(tmp_path):
    """But the four that it cannot show, the stale page, and the warning, which goes to stderr."""
    lay_out(tmp_path)
    kinds = ("html", "latex", "figure")
    pages = [page.without(dict.fromkeys(kinds)) for page in mistaken_pages(MISTAKES)]
    then = sessions(tmp_path, pages)
    now = sessions(tmp_path, [Page(page.name, page.now, page.now) for page in pages])
    same = [page.name for page, a, b in zip(pages, then, now, strict=True) if a == b]
    unshown = [m.id for m in MISTAKES if cell(m.cell).shows in kinds]
    assert same == ["right", "warning", *unshown, "stale"]


def test_a_session_has_the_code_of_now_and_the_output_of_then(tmp_path):
    lay_out(tmp_path)
    then = (
        cell("lines"),
        cell("refused"),
        cell("total"),
        Cell("product", "text", "root = 2.0", "root"),
    )
    now = (replace(then[0], code="for loss in []:\n    print(loss)"), *then[1:])
    page = Page("page", then, now, {"product": NOISES[0].mask})
    assert sessions(tmp_path, [page]) == [
        [
            (
                "lines",
                [
                    ">>> for loss in []:",
                    "...     print(loss)",
                    "step 0 loss 0.9",
                    "step 1 loss 0.5",
                    "step 2 loss 0.3",
                ],
            ),
            (
                "refused",
                [
                    '>>> float("seven")',
                    "Traceback (most recent call last):",
                    "    ...",
                    "ValueError: could not convert string to float: 'seven'",
                ],
            ),
            ("total", [">>> total = sum(range(4))"]),
            ("product", [">>> root = 2.0", ">>> root  # doctest: +ELLIPSIS", "2.828427..."]),
        ]
    ]


def test_a_line_belongs_to_the_heading_above_it():
    text = "# page\n\n## root\n\ncode\n\n## count\ncode"
    assert [cell_at(text, line) for line in range(1, 9)] == [
        *[None, None],
        *["root"] * 4,
        *["count"] * 2,
    ]


def test_the_lines_that_a_diff_of_cog_names():
    first = "--- a.md\n+++ a.md\n@@ -7,4 +7,4 @@\n same\n-1.41\n+1.42\n same\n"
    log = f"{first}@@ -30,2 +30,3 @@\n a\n+b\n"
    assert list(cog._places(log)) == [(8, "-1.41"), (9, "+1.42"), (31, "+b")]


def test_the_line_that_a_traceback_of_cog_names():
    log = 'Traceback (most recent call last):\n  File "a.md", line 6, in <module>\n    1 / 0\n'
    assert list(cog._places(log)) == [(6, 'File "a.md", line 6, in <module>')]


@pytest.fixture
def accepted(monkeypatch):
    monkeypatch.setattr(verified_book, "knows_words", lambda: True)
    text = verified_book._markdown("page", [cell("root"), cell("columns"), cell("figure")])
    assert "```{expect-output} exact\n```" in text
    assert "```{expect-output} image digest\n```" in text
    first = verified_book._fenced(cell("root"))
    return text.replace(first, f"{first}\n\n```{{expect-output}}\n1.4142\n```")


def test_our_page_gets_the_code_of_now(accepted):
    now = replace(cell("root"), value="1 / 0")
    text = verified_book._with_code(accepted, cell("root"), now, None)
    assert "{code-cell} ipython3\n1 / 0\n```\n\n```{expect-output}\n1.4142\n```" in text
    assert text.count("math.sqrt") == 0


def test_our_page_gets_what_the_author_marked(accepted):
    text = verified_book._with_code(accepted, cell("root"), cell("root"), "1.4...")
    assert text == accepted.replace("1.4142\n", "1.4...\n")


def test_our_page_must_be_as_it_was_written(accepted):
    with pytest.raises(RuntimeError, match="the cell count is not as it was written"):
        verified_book._with_code(accepted, cell("count"), cell("count"), None)


def test_today_no_words_are_asked_for(monkeypatch):
    monkeypatch.setattr(verified_book, "knows_words", lambda: False)
    assert "expect-output" not in verified_book._markdown("page", RIGHT)


def test_verdicts_are_read_from_the_runs():
    found = trial(Pretender({"sign": "sign", "timing": "timing"}))
    verdicts = found["verdicts"]
    assert verdicts["sign"] == {"verdict": "caught", "place": "sign: sign"}
    assert verdicts["count"] == {"verdict": "missed"}
    assert verdicts["stale"] == {"verdict": "caught", "place": "right: module"}
    for name in ("timing", "timing, marked"):
        assert verdicts[name] == {"verdict": "false alarm", "place": "timing: timing"}
    assert verdicts["address, marked"] == {"verdict": "quiet"}
    assert list(verdicts) == [mistake.id for mistake in MISTAKES] + noise_ids()


def test_what_a_format_has_no_place_for_is_not_tried():
    tool = Pretender({"formula": "formula"})
    tool.cannot_show = {"latex": "no formulas"}
    tool.cannot_mark = "no marks"
    verdicts = trial(tool)["verdicts"]
    assert verdicts["formula"] == {"verdict": "not expressible", "note": "no formulas"}
    assert verdicts["timing, marked"] == {"verdict": "not expressible", "note": "no marks"}
    assert verdicts["timing"] == {"verdict": "quiet"}


def test_a_tool_that_is_not_here_is_not_run():
    found = trial(Pretender(found=None))
    assert found["version"] == ""
    assert list(found["verdicts"].values()) == [
        {"verdict": "not run", "note": "not to be had"} for _ in range(26)
    ]


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (Pretender({"right": "root"}), "the right page is red"),
        (Pretender({"as-made": "timing"}), "the right page is red"),
        (Pretender({"sign": "root"}), "sign: .* but sign is to blame"),
        (Pretender({"sign": "sign"}, status=0), "exit status 0"),
        (Pretender(status=1), "exit status 1"),
    ],
)
def test_a_run_that_proves_nothing_stops_the_trial(tool, message):
    with pytest.raises(RuntimeError, match=message):
        trial(tool)


def test_tools_that_are_not_tried_keep_their_results():
    first, second = Pretender(), Pretender({"sign": "sign"})
    second.name = "second"
    before = collected([first, second])
    first.found = "2.0"
    second.found = "2.0"
    after = collected([first, second], ["second"], before)
    assert [tool["version"] for tool in after["tools"]] == ["1.0", "2.0"]
    with pytest.raises(ValueError, match="no earlier results of 'second'"):
        collected([first, second], ["pretender"], {**before, "tools": before["tools"][:1]})
    with pytest.raises(ValueError, match="of other mistakes"):
        collected([first, second], ["second"], {**before, "noises": []})


def test_the_table_has_a_row_for_everything_and_a_column_for_every_tool(written):
    html = table(written)
    assert html.count("<tr>") == html.count("</tr>") == 1 + 20 + 1 + 6
    assert html.count("<td>") == 26 * (1 + len(TOOLS))
    for tool in written["tools"]:
        assert f"<th>{tool['name']}<br>{tool['version']}</th>" in html
    assert "another dtype (<code>3.</code>, now <code>3</code>)" in html


def test_the_table_says_what_the_results_say():
    absent = Pretender(found=None)
    absent.name = "<absent>"
    results = collected([Pretender({"sign": "sign", "timing": "timing"}), absent])
    html = table(results)
    no = '<td><span title="not to be had">not run</span></td>'
    assert f"<tr><td>a sign lost</td><td>caught</td>{no}</tr>" in html
    assert f"<tr><td>an integer off by one</td><td><strong>missed</strong></td>{no}</tr>" in html
    assert "<tr><th>caught, of 20</th><th>2</th><th>not run</th></tr>" in html
    timing = "no mistake: a timing, as printed"
    assert f"<tr><td>{timing}</td><td><strong>alarm</strong></td>{no}</tr>" in html
    assert "<th>&lt;absent&gt;<br></th>" in html
    assert summary(results).split("\n") == [
        "pretender            1.0        caught 2, missed 18, false alarms 2",
        "<absent>             not run    caught not run, missed not run, false alarms 0",
    ]


def test_below_it_stands_what_each_tool_is_for():
    absent = Pretender(found=None)
    absent.documentation = ""
    lines = descriptions(collected([Pretender(), absent])).split("\n")
    purpose = "Pretends, with <code>code</code>: for &lt;tests&gt;."
    assert lines[1].startswith(
        f'<li><strong><a href="https://example.org/">pretender</a></strong>: {purpose} '
        "Run as <code>pretend</code>, "
    )
    assert lines[1].endswith("Marking noise: <code>...</code>.</li>")
    assert lines[2].startswith(f"<li><strong>pretender</strong>: {purpose} Not run. ")


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
def test_every_tool_is_described(tool):
    assert tool.purpose.endswith(".")
    assert ": for " in tool.purpose
    assert tool.documentation.startswith("https://") or tool.name == "verified_book"
    assert tool.marks or tool.cannot_mark
