"""The table of which check catches which wrong version, and the command that prints it."""

import pytest
import torch
from bs4 import BeautifulSoup

from layer_checks import detection_table, wrong_versions
from layer_checks.detection import command
from layer_checks.detection.table import DetectionTable
from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.kit.definitions import Check, Layer, WrongVersion
from layer_checks.registry import LAYERS
from verified_book.outputs.visible_html import visible_text


def _finite(candidate: object) -> Evidence:
    return holds(candidate(torch.ones(1)).isfinite().all(), "finite")


def _doubles(candidate: object) -> Evidence:
    return equivalent(candidate(torch.ones(1)), 2.0)


CHECKS = (
    Check("finite", "It is finite.", _finite, weak=True),
    Check("doubles", "It doubles.", _doubles),
)
TABLE = DetectionTable(
    "double",
    CHECKS,
    (
        WrongVersion("triple", "take two.", lambda x: 3 * x),
        WrongVersion("infinite", "stop.", lambda x: x / 0, "Zeno, In[1]"),
    ),
    ((False, True), (True, True)),
)


def test_the_table_as_text() -> None:
    assert repr(TABLE) == (
        "               1   2\n"
        "triple         .   x\n"
        "infinite       x   x\n"
        "caught, of 2   1   2\n"
        "\n"
        "Of 2, the weak checks catch 1, the others 2.\n"
        "\n"
        " 1  finite (weak): It is finite.\n"
        " 2  doubles: It doubles."
    )
    assert TABLE.totals == {"finite": 1, "doubles": 2}


def test_the_table_of_a_page_says_what_the_text_says() -> None:
    assert visible_text(TABLE._repr_html_()) == (
        "Which check notices which wrong version of double: x where it does. "
        "Of 2, the weak checks catch 1, the others 2.\n"
        "              1  2\n"
        "triple        .  x\n"
        "infinite      x  x\n"
        "caught, of 2  1  2\n"
        "What each check states\n"
        "1 finite (weak): It is finite.\n"
        "2 doubles: It doubles.\n"
        "How each wrong version is put right\n"
        "triple: take two.\n"
        "infinite: stop. Published in Zeno, In[1].",
        True,
    )


def test_a_reader_of_rows_and_columns_hears_what_a_cell_belongs_to() -> None:
    soup = BeautifulSoup(TABLE._repr_html_(), "html.parser")
    assert soup.table.find(recursive=False).name == "caption"
    heads = [(th["scope"], th["aria-label"]) for th in soup.select("thead th")]
    assert heads == [("col", "1 finite (weak)"), ("col", "2 doubles")]
    assert [column.get("class") for column in soup.select("col")] == [None, ["weak"], None]
    assert [th["scope"] for th in soup.select("tbody th, tfoot th")] == ["row"] * 3
    rows = [[cell.get_text() for cell in row.select("td")] for row in soup.select("tbody tr")]
    assert rows == [[".", "x"], ["x", "x"]]


def test_words_of_a_table_are_no_markup() -> None:
    check = Check("a < b", 'It is "`a < b`".', _doubles)
    version = WrongVersion("a & b", "`not` & <i>so</i>.", abs)
    html = DetectionTable("less", (check,), (version,), ((True,),))._repr_html_()
    soup = BeautifulSoup(html, "html.parser")
    first, second = soup.select("details li")
    assert (first.code.text, first.text) == ("a < b", '1 a < b: It is "a < b".')
    assert (second.code.text, second.text) == ("not", "a & b: not & <i>so</i>.")
    assert [th["data-says"] for th in soup.select("th[data-says]")] == [first.text, second.text]


def test_what_any_layer_can_do_wrong_is_shown_where_it_is_asked_for() -> None:
    whole, own = detection_table("gelu", generic=True), detection_table("gelu")
    assert own.wrong_versions == wrong_versions("gelu")[:10]
    assert whole.wrong_versions == wrong_versions("gelu")
    assert whole.checks == LAYERS["gelu"].checks
    left_out = {each for each in whole.checks if each not in own.checks}
    assert {"input unchanged", "empty batch", "layout in memory"} <= {x.name for x in left_out}
    assert all(each.generic for each in left_out)
    assert all(own.totals[each.name] for each in own.checks if each.generic)


def test_the_command_prints_the_table_of_a_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["gelu"]) == 0
    out, err = capsys.readouterr()
    table = detection_table("gelu", generic=True)
    number = len(wrong_versions("gelu"))
    assert out == f"gelu\n\n{table}\n\n{number} wrong versions of 1 layers\n"
    assert err == ""


def test_the_command_fails_where_a_wrong_version_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gelu = LAYERS["gelu"]
    blind = Check("blind", "It is called.", lambda candidate: holds(True, "called"))
    flags_all = Check("flags all", "Never.", lambda candidate: holds(False, "never"))
    monkeypatch.setitem(
        LAYERS,
        "gelu",
        Layer("gelu", gelu.signature, gelu.example, gelu.probe, (blind,), gelu.wrong_versions),
    )
    assert command.main(["gelu"]) == 1
    out = capsys.readouterr().out
    assert "problem: gelu: tanh form is not caught\n" in out
    assert "problem: gelu: the check blind catches nothing\n" in out
    monkeypatch.setitem(
        LAYERS,
        "gelu",
        Layer("gelu", gelu.signature, gelu.example, gelu.probe, (flags_all,), gelu.wrong_versions),
    )
    assert command.main(["gelu"]) == 1
    expected = (
        "problem: gelu: the right layer is flagged: failed  flags all: does not hold: never\n"
    )
    assert expected in capsys.readouterr().out
