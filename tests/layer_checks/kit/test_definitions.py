"""How checks and wrong versions are declared."""

import pytest
import torch

from layer_checks.evidence.evidence import Evidence, equivalent
from layer_checks.kit.definitions import Candidate, Family, Layer, in_words


def layer_named(name: str) -> Layer:
    return Layer(name, f"{name}(x)", example=lambda candidate: candidate, probe=lambda _: [])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("EpsOutsideTheRoot", "eps outside the root"),
        ("GPT2Block", "gpt2 block"),
        ("_base_1000", "base 1000"),
    ],
)
def test_a_name_in_words(name: str, words: str) -> None:
    assert in_words(name) == words


def test_a_check_is_declared_at_its_function() -> None:
    double = layer_named("double")

    @double.check("It is twice one.", weak=True)
    def of_one(candidate: Candidate) -> Evidence:
        return equivalent(candidate(1.0), 2.0)

    @double.check("It is twice any.", name="of 0 to 2")
    def of_three(candidate: Candidate) -> Evidence:
        return equivalent(candidate(torch.arange(3)), [0, 2, 4])

    found = [(each.name, each.law, each.run, each.weak) for each in double.checks]
    assert found == [
        ("of one", "It is twice one.", of_one, True),
        ("of 0 to 2", "It is twice any.", of_three, False),
    ]


def test_a_wrong_version_is_declared_at_its_class() -> None:
    double, triple = layer_named("double"), layer_named("triple")

    @double.right_otherwise
    class Right:
        pass

    @double.wrong("take it twice.")
    class TakenOnce(Right):
        pass

    @double.wrong("take it twice.", name="taken x times", published="Zeno, In[1]")
    def squared(x: float) -> float:
        return x * x

    found = [(each.name, each.advice, each.layer, each.published) for each in double.wrong_versions]
    assert found == [
        ("taken once", "take it twice.", TakenOnce, None),
        ("taken x times", "take it twice.", squared, "Zeno, In[1]"),
    ]
    assert double.right_ones == (Right,)
    triple.same_mistake(double.wrong_versions[1], abs)
    (version,) = triple.wrong_versions
    assert version.layer is abs
    assert (version.name, version.advice, version.published) == found[1][:2] + found[1][3:]


def test_the_layers_of_a_family_share_checks() -> None:
    double, triple = layer_named("double"), layer_named("triple")
    both = Family({double: lambda each: (each, 2.0), triple: lambda each: (each, 3.0)})

    @both.check({double: "It is twice one.", triple: "It is three times one."}, name="of 1")
    def of_one(view: tuple[Candidate, float]) -> Evidence:
        candidate, times = view
        return equivalent(candidate(1.0), times)

    @both.check("It has a value.", weak=True)
    def a_value(view: tuple[Candidate, float]) -> Evidence:
        return equivalent(0.0, 0.0)

    for layer, law, times in ((double, "It is twice one.", 2), (triple, "It is three times o", 3)):
        first, second = layer.checks
        assert (first.name, first.weak) == ("of 1", False)
        assert first.law.startswith(law)
        assert first.run(lambda x, times=times: times * x).error == 0.0
        with pytest.raises(AssertionError, match="not equal"):
            first.run(lambda x: x)
        assert (second.name, second.law, second.weak) == ("a value", "It has a value.", True)
