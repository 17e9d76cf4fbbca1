"""What is a generic mutant, and where it is tried."""

import ast

import pytest

from evaluation.mutation import mutants
from evaluation.mutation.accepted import ACCEPTED, Accepted, stale

MODULE = '''
"""A module's docstring is no code."""
import os

if TYPE_CHECKING:
    import more

LIMIT = 3
__all__ = ["LIMIT"]


@cache(1)
def several(x: "int | None", count: int = 1) -> "str":
    """A docstring is no code."""
    check(x, strict=True)
    if isinstance(x, int):
        x += 1
    if x == "key":
        raise ValueError("the words", x)
    label = "after"
    pair(x, x)
    return x < 2 and len(x) == 4


class Pair:
    size: int = 5

    @property
    def total(self):
        def inner():
            return not self.size

        return inner
'''


@pytest.fixture(autouse=True)
def source(tmp_path, monkeypatch):
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "several.py").write_text(MODULE)
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    mutants.mutants_of.cache_clear()
    yield
    mutants.mutants_of.cache_clear()


@pytest.fixture
def made():
    return mutants.mutants_of("pairs/several")


@pytest.mark.parametrize(
    ("function", "operator", "removed", "added"),
    [
        ("several", "swap_op", "return x < 2 and len(x) == 4", "return x <= 2 and len(x) == 4"),
        ("several", "swap_op", "return x < 2 and len(x) == 4", "return x < 2 or len(x) == 4"),
        ("several", "number", "return x < 2 and len(x) == 4", "return x < 3 and len(x) == 4"),
        ("several", "arg_removal", "check(x, strict=True)", "check(strict=True)"),
        ("several", "arg_removal", "check(x, strict=True)", "check(x, strict=None)"),
        ("several", "name", "check(x, strict=True)", "check(x, strict=False)"),
        ("several", "statement", "check(x, strict=True)", "pass"),
        ("several", "condition", "if isinstance(x, int):", "if not (isinstance(x, int)):"),
        ("several", "string", 'label = "after"', 'label = "AFTER"'),
        ("several", "string", 'if x == "key":', 'if x == "KEY":'),
        (
            "several",
            "arg_removal",
            'raise ValueError("the words", x)',
            'raise ValueError("the words", )',
        ),
        ("several", "augmented_assignment", "x += 1", "x = 1"),
        ("Pair.total", "remove_unary_ops", "return not self.size", "return self.size"),
        ("Pair", "number", "size: int = 5", "size: int = 6"),
        ("LIMIT", "number", "LIMIT = 3", "LIMIT = 4"),
    ],
)
def test_an_operator_is_run_over_functions_classes_and_constants(
    made, function, operator, removed, added
):
    found = [(each.function, each.operator, each.removed, each.added) for each in made]
    assert found.count((function, operator, removed, added)) == 1


def test_a_mutant_is_python_and_differs_where_it_says(made):
    assert len({ast.dump(ast.parse(each.text)) for each in made}) == len(made)
    lines = MODULE.splitlines()
    for each in made:
        assert ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(MODULE))
        assert lines[each.line - 1].strip() == each.removed.splitlines()[0]
        assert each.text.splitlines()[: each.line - 1] == lines[: each.line - 1]


def test_annotations_decorators_imports_docstrings_and_the_words_of_errors_stay(made):
    kept = ('"int | None"', '-> "str"', "@cache(1)", "@property", "import os", "if TYPE_CHECKING:")
    for each in made:
        assert all(text in each.text for text in kept)
        assert each.text.count("is no code.") == 2
        assert '__all__ = ["LIMIT"]' in each.text
        assert "len(x)" in each.text
        assert "isinstance(x, int)" in each.text
        assert each.operator != "string" or '"the words"' in each.text


def test_a_mutant_is_named_with_file_line_function_and_operator(made):
    (label,) = {each.label for each in made if each.operator == "augmented_assignment"}
    assert label == "pairs/several.py:17: several, augmented_assignment"


def test_an_accepted_mutant_is_known_by_what_it_does(made):
    one = Accepted("pairs/several:several", "number", "< 2", "< 3", "a reason")
    (found,) = [each for each in made if one.is_of(each)]
    assert found.added == "return x < 3 and len(x) == 4"
    others = [
        Accepted("pairs/several:Pair", "number", "< 2", "< 3", "another function"),
        Accepted("pairs/several:several", "string", "< 2", "< 3", "another operator"),
        Accepted("pairs/several:several", "number", "< 2", "< 4", "another number"),
        Accepted("pairs/several:several", "number", "> 2", "> 3", "other text"),
    ]
    assert not any(each.is_of(mutant) for each in others for mutant in made)
    assert [each.split(":")[-1] for each in stale([one, *others])] == [
        " no mutant has '< 3' for '< 2'",
        " no mutant has '< 3' for '< 2'",
        " no mutant has '< 4' for '< 2'",
        " no mutant has '> 3' for '> 2'",
    ]


def test_an_accepted_mutant_may_be_any_occurrence_in_its_lines():
    mutant = mutants.Mutant("m", "f", "number", 1, "f(1, 1, 1)", "f(1, 2, 1)", "")
    assert Accepted("m:f", "number", "1", "2", "a reason").is_of(mutant)
    assert not Accepted("m:f", "number", "f(1", "f(2", "a reason").is_of(mutant)


def test_every_accepted_mutant_is_one_and_has_a_reason(monkeypatch):
    monkeypatch.undo()
    assert not (found := stale(ACCEPTED)), "\n".join(found)
    assert all(each.reason for each in ACCEPTED)
