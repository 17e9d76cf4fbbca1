"""A model that is kept is the one that would be trained, and never another."""

import pytest
import torch

from transformer_training import kept
from transformer_training.toy_language import share_right, trained_model
from transformer_training.toy_translation import trained_translator


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    states = (first.state_dict(), second.state_dict())
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.mark.parametrize("without", [None, "norms"])
def test_a_kept_model_is_the_trained_one(folder, monkeypatch, without):
    first, found = (trained_model(without, steps=3) for _ in range(2))
    monkeypatch.delenv(kept.FOLDER)
    assert same(trained_model(without, steps=3), first)
    assert same(first, found)
    assert not found.training
    assert share_right(found, "or") == share_right(first, "or")


def test_so_is_a_translator(folder):
    assert same(*(trained_translator(steps=20, checkpoints=2) for _ in range(2)))
    assert len(list(folder.glob("*.safetensors"))) == 1


def test_nobody_trains_what_is_kept(folder, monkeypatch):
    trained_model(steps=3)
    monkeypatch.setattr(torch.optim.AdamW, "step", None)
    trained_model(steps=3)
    with pytest.raises(TypeError):
        trained_model(steps=4)


@pytest.mark.parametrize("other", [{"seed": 1}, {"without": "norms"}, {"kinds": ("or",)}])
def test_other_arguments_are_another_model(folder, other):
    assert not same(trained_model(steps=3), trained_model(**{"steps": 3, **other}))


def test_each_call_returns_a_model_of_its_own_that_can_be_trained(folder):
    trained_model(steps=3)
    with torch.inference_mode():
        first, second = (trained_model(steps=3) for _ in range(2))
    with torch.no_grad():
        first.wte.weight.zero_()
    assert second.wte.weight.any()
    assert not second.wte.weight.is_inference()


@pytest.mark.parametrize("damage", [b"", None])
def test_a_damaged_file_is_trained_anew(folder, damage):
    first = trained_model(steps=3)
    (file,) = folder.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-5] if damage is None else damage)
    assert same(trained_model(steps=3), first)


@pytest.mark.parametrize("changed", ["sources", "processor"])
def test_what_makes_a_model_makes_its_name(folder, monkeypatch, changed):
    trained_model(steps=3)
    if changed == "sources":
        monkeypatch.setattr(kept, "_sources", lambda: "others")
    else:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "another")
    trained_model(steps=3)
    assert len(list(folder.glob("*.safetensors"))) == 2
