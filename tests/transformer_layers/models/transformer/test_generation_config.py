"""What a Marian's `generation_config.json` says, or its `config.json` where there is none."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import MarianMTModel

from tests.transformer_layers.models.transformer.test_model import MASK, marian, sources
from transformer_layers import Transformer, TransformerConfig

THEIRS: Any = MarianMTModel
CONFIG, GENERATION = "config.json", "generation_config.json"


def change(path, **changed):
    both = {**(json.loads(path.read_text()) if path.exists() else {}), **changed}
    path.write_text(json.dumps({name: value for name, value in both.items() if value is not ...}))


def tokens_of(folder, beams):
    """Theirs and ours: of one folder, from the same sources."""
    theirs = THEIRS.from_pretrained(folder).eval()
    ids = sources(theirs.config)
    seen = MASK[:, 0].long()
    options = {"num_beams": beams, "length_penalty": 0.0, "do_sample": False}
    expected = theirs.generate(ids, attention_mask=seen, max_new_tokens=9, **options)[:, 1:]
    ours = Transformer.from_pretrained(folder)
    return expected, ours.generate(ids, 9, beams, source_mask=MASK)


@pytest.fixture
def favourite(tmp_path):
    """A folder of theirs, and the token that it writes most of all."""
    theirs = marian()
    theirs.final_logits_bias[0, 7] += 30.0
    theirs.save_pretrained(tmp_path)
    assert 7 in tokens_of(tmp_path, 1)[0]
    return tmp_path


@pytest.mark.parametrize("beams", [1, 4])
def test_banned_tokens_that_transformers_moves_to_the_other_file_stay_banned(favourite, beams):
    (favourite / GENERATION).unlink()
    change(favourite / CONFIG, bad_words_ids=[[7], [8]])
    THEIRS.from_pretrained(favourite).save_pretrained(favourite / "again")
    assert "bad_words_ids" not in json.loads((favourite / "again" / CONFIG).read_text())
    for folder in (favourite, favourite / "again"):
        assert Transformer.from_pretrained(folder).config.banned_tokens == (7, 8)
        expected, found = tokens_of(folder, beams)
        assert found.equal(expected)
        assert 7 not in found


@pytest.mark.parametrize("beams", [4])
@pytest.mark.parametrize(
    ("config", "generation"),
    [
        ({"bad_words_ids": [[7]]}, {"bad_words_ids": [[8], [9]]}),
        ({}, {"bad_words_ids": [[7], [0]]}),
        ({}, {"forced_eos_token_id": ...}),
        ({}, {"forced_eos_token_id": 8}),
        ({}, {"decoder_start_token_id": 4}),
        ({}, {"eos_token_id": 7}),
        ({}, {"num_beams": 6, "max_length": 3, "length_penalty": 2.0, "renormalize_logits": True}),
    ],
    ids=str,
)
def test_the_file_decides_as_in_transformers(favourite, config, generation, beams):
    change(favourite / CONFIG, **config)
    change(favourite / GENERATION, **generation)
    expected, found = tokens_of(favourite, beams)
    assert found.equal(expected)
    ours = Transformer.from_pretrained(favourite)
    ours.save_pretrained(favourite / "ours")
    assert Transformer.from_pretrained(favourite / "ours").config == ours.config
    torch.manual_seed(0)
    first = tokens_of(favourite, beams)[0]
    torch.manual_seed(0)
    assert all(each.equal(first) for each in tokens_of(favourite / "ours", beams))


@pytest.mark.parametrize("beams", [4])
@pytest.mark.parametrize(
    "config",
    [{"bad_words_ids": [[7]]}, {"forced_eos_token_id": ...}, {"forced_eos_token_id": 8}],
    ids=str,
)
def test_without_the_file_the_config_decides_as_in_transformers(favourite, config, beams):
    (favourite / GENERATION).unlink()
    change(favourite / CONFIG, **config)
    expected, found = tokens_of(favourite, beams)
    assert found.equal(expected)


REFUSED = {
    "forced_bos_token_id": 5,
    "suppress_tokens": [7],
    "min_length": 4,
    "no_repeat_ngram_size": 2,
    "repetition_penalty": 3.0,
    "sequence_bias": [[[7], -9.0]],
    "stop_strings": ["x"],
    "bad_words_ids": [[7, 8]],
    "eos_token_id": [0, 7],
    "forced_eos_token_id": [0, 7],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_generate_does_not_do_is_refused_by_its_name(favourite, name):
    change(favourite / GENERATION, **{name: REFUSED[name]})
    said = f"^{favourite / CONFIG} with {GENERATION}: {name} is "
    with pytest.raises(ValueError, match=said):
        Transformer.from_pretrained(favourite)
    (favourite / GENERATION).unlink()
    change(favourite / CONFIG, **{name: REFUSED[name]})
    with pytest.raises(ValueError, match=f"^{favourite / CONFIG}: {name} is "):
        Transformer.from_pretrained(favourite)


@pytest.mark.parametrize("beams", [1, 4])
def test_probabilities_of_the_others_sum_to_one_where_that_is_asked_for(beams, tmp_path):
    theirs = marian(forced_eos_token_id=None)
    theirs.final_logits_bias[0, :2] += torch.tensor([3.0, 6.0])
    theirs.save_pretrained(tmp_path)
    change(tmp_path / GENERATION, renormalize_logits=True, bad_words_ids=[[1]])
    expected, found = tokens_of(tmp_path, beams)
    assert found.equal(expected)
    ours = Transformer.from_pretrained(tmp_path)
    assert ours.config.renormalized
    ours.save_pretrained(tmp_path / "ours")
    assert Transformer.from_pretrained(tmp_path / "ours").config == ours.config
    expected, found = tokens_of(tmp_path / "ours", beams)
    assert found.equal(expected)


def test_a_flag_of_old_configs_is_refused(favourite):
    (favourite / GENERATION).unlink()
    change(favourite / CONFIG, force_bos_token_to_be_generated=True, bos_token_id=5)
    with pytest.raises(ValueError, match="force_bos_token_to_be_generated is True"):
        Transformer.from_pretrained(favourite)


@pytest.mark.parametrize("name", ["decoder_start_token_id", "eos_token_id"])
@pytest.mark.parametrize("file", [CONFIG, GENERATION])
def test_without_a_token_to_begin_or_end_with_there_is_an_error(favourite, file, name):
    if file == CONFIG:
        (favourite / GENERATION).unlink()
    change(favourite / file, **{name: ...})
    with pytest.raises(ValueError, match=f"{name} is missing"):
        Transformer.from_pretrained(favourite)


def test_a_file_of_another_model_is_removed_by_saving_and_one_that_agrees_stays(favourite):
    change(favourite / GENERATION, num_beams=6)
    before = (favourite / GENERATION).read_text()
    ours = Transformer.from_pretrained(favourite)
    ours.save_pretrained(favourite)
    assert (favourite / GENERATION).read_text() == before
    change(favourite / GENERATION, bad_words_ids=[[7]])
    banning = Transformer(replace(ours.config, banned_tokens=(8,)))
    banning.save_pretrained(favourite)
    assert not (favourite / GENERATION).exists()
    assert Transformer.from_pretrained(favourite).config.banned_tokens == (8,)
    assert THEIRS.from_pretrained(favourite).generation_config.bad_words_ids == [[8]]


def test_a_file_that_is_not_that_of_saved_weights_is_refused(favourite):
    ours = Transformer.from_pretrained(favourite)
    (favourite / GENERATION).unlink()
    ours.save_pretrained(favourite)
    tokens = {"decoder_start_token_id": 19, "eos_token_id": 0, "forced_eos_token_id": 0}
    change(favourite / GENERATION, **tokens)
    assert Transformer.from_pretrained(favourite).config == ours.config
    change(favourite / GENERATION, bad_words_ids=[[7]])
    said = (
        r"was saved with: banned_tokens is \(7,\), not \(\)\. If the weights are the right ones, "
        "remove config.json and generation_config.json; they hold theirs$"
    )
    with pytest.raises(ValueError, match=said):
        Transformer.from_pretrained(favourite)


def test_a_banned_end_is_saved_in_a_form_that_keeps_it(tmp_path):
    config = TransformerConfig(
        17, d_model=12, num_layers=1, num_heads=3, d_ff=16, max_seq=9, banned_tokens=(2, 5)
    )
    marians = replace(config, sines_first=True, logits_bias=True)
    for each in (config, marians, replace(marians, banned_tokens=(5,), end_token=2)):
        Transformer(each).save_pretrained(tmp_path)
        found = Transformer.from_pretrained(tmp_path).config
        assert found.banned_tokens == each.banned_tokens
        kind = json.loads((tmp_path / CONFIG).read_text())["model_type"]
        assert kind == ("marian" if each.banned_tokens == (5,) else "transformer")
