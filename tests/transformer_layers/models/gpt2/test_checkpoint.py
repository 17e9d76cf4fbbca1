"""A GPT-2's config.json: the sizes in it, and the options that are refused."""

import json
import re
from functools import partial

import pytest
import torch
import transformers

from tests.transformer_layers.checkpoints.examples import entries_of, write_json
from transformer_layers import GPT2Config, load_model
from transformer_layers.checkpoints import checkpoint
from transformer_layers.models.gpt2.checkpoint import CODEC, config_text

read_config = partial(checkpoint.read_config, CODEC)

DROPOUTS = ("embd_pdrop", "attn_pdrop", "resid_pdrop")


def read(tmp_path, **entries):
    both = {**entries_of(), **entries}
    write_json(tmp_path / "config.json", {k: v for k, v in both.items() if v is not ...})
    return read_config(tmp_path / "config.json")


def refused(tmp_path, message, **entries):
    with pytest.raises(ValueError, match=f"^{re.escape(f'{tmp_path}/config.json: {message}')}$"):
        read(tmp_path, **entries)


def test_reads_the_sizes(tmp_path):
    found = read(tmp_path, **dict.fromkeys(DROPOUTS, 0.25), layer_norm_epsilon=1e-6)
    assert found == GPT2Config(
        vocab_size=5,
        n_positions=3,
        n_embd=4,
        n_layer=2,
        n_head=2,
        dropout=0.25,
        layer_norm_epsilon=1e-6,
    )


def test_what_is_left_out_is_the_default_of_transformers(tmp_path):
    write_json(tmp_path / "config.json", {"model_type": "gpt2"})
    ours, theirs = read_config(tmp_path / "config.json"), transformers.GPT2Config()
    assert ours == GPT2Config()
    names = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "layer_norm_epsilon")
    assert [getattr(ours, name) for name in names] == [getattr(theirs, name) for name in names]
    assert [ours.dropout] * 3 == [theirs.embd_pdrop, theirs.attn_pdrop, theirs.resid_pdrop]
    refused(tmp_path, "n_embd must be divisible by n_head, got n_embd=4 and n_head=12", n_head=...)


def test_reads_the_second_names_of_sizes_as_transformers_does(tmp_path):
    entries = {"hidden_size": 6, "max_position_embeddings": 7, "num_hidden_layers": 1}
    entries |= {"num_attention_heads": 3, "model_type": "gpt2", "vocab_size": 5}
    write_json(tmp_path / "config.json", entries)
    ours = read_config(tmp_path / "config.json")
    theirs = transformers.GPT2Config.from_pretrained(tmp_path)
    assert (ours.n_embd, ours.n_positions, ours.n_layer, ours.n_head) == (6, 7, 1, 3)
    assert (theirs.n_embd, theirs.n_positions, theirs.n_layer, theirs.n_head) == (6, 7, 1, 3)
    message = "num_attention_heads is another name of n_head; keep one of them"
    refused(tmp_path, message, num_attention_heads=2)


@pytest.mark.parametrize(
    "entries",
    [
        {"activation_function": "gelu_pytorch_tanh"},
        {"n_inner": 16},
        {"n_ctx": 1024, "summary_type": "cls_index", "architectures": ["GPT2Model"], "new": {}},
    ],
)
def test_ignores_what_changes_no_result(tmp_path, entries):
    found = read(tmp_path, **entries)
    assert (found.n_embd, found.n_layer) == (4, 2)


@pytest.mark.parametrize(
    "model_type",
    [
        "gpt_neo",
        ...,
    ],
)
def test_refuses_other_architectures(tmp_path, model_type):
    found = None if model_type is ... else model_type
    message = f"model_type must be 'gpt2', got {found!r}: these are the weights of another model"
    refused(tmp_path, message, model_type=model_type)


@pytest.mark.parametrize(
    ("name", "value", "computed"),
    [
        ("activation_function", "gelu", "'gelu_new' or 'gelu_pytorch_tanh'"),
        ("scale_attn_weights", False, "True"),
        ("scale_attn_by_inverse_layer_idx", True, "False"),
        ("pruned_heads", {"0": [1]}, "{} or None"),
        ("n_inner", 17, "None or 16"),
    ],
)
def test_refuses_options_that_change_the_result(tmp_path, name, value, computed):
    message = (
        f"{name} is {value!r}, which changes what the model computes, and GPT2 computes it for "
        f"{computed} only"
    )
    refused(tmp_path, message, **{name: value})


@pytest.mark.usefixtures("as_users_run_it")
def test_of_three_dropouts_one_is_taken_and_evaluation_has_none(tmp_path):
    """As `transformers` writes it for a model that was trained with three."""
    shares = {"embd_pdrop": 0.1, "attn_pdrop": 0.0, "resid_pdrop": 0.2}
    sizes = {"vocab_size": 11, "n_positions": 7, "n_embd": 12, "n_layer": 2, "n_head": 2}
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **shares)).eval()
    theirs.save_pretrained(tmp_path)
    said = (
        f"{tmp_path}/config.json: embd_pdrop = 0.1, attn_pdrop = 0.0, resid_pdrop = 0.2, and GPT2 "
        "has one dropout for all its places: in training it is 0.2, that of resid_pdrop; "
        "evaluation has none"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(said)}$"):
        ours = load_model(tmp_path)
    assert ours.config.dropout == 0.2
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    torch.testing.assert_close(ours(ids), theirs(ids).logits)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"n_layer": 0}, "n_layer must be at least 1, got 0"),
        ({"n_head": 3}, "n_embd must be divisible by n_head, got n_embd=4 and n_head=3"),
        ({"n_layer": True}, "n_layer must be an int, got True of type bool"),
        ({"n_layer": 2**31}, "n_layer must be below 2**31, got 2147483648"),
        ({"attn_pdrop": "0.1"}, "attn_pdrop must be a finite number, got '0.1'"),
        (dict.fromkeys(DROPOUTS, 2), "embd_pdrop must be between 0 and 1, got 2.0"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_refuses_wrong_values(tmp_path, entries, message):
    refused(tmp_path, message, **entries)


def test_writes_what_both_read(tmp_path):
    config = GPT2Config(
        vocab_size=11,
        n_positions=7,
        n_embd=12,
        n_layer=3,
        n_head=2,
        dropout=0.25,
        layer_norm_epsilon=1e-6,
    )
    (tmp_path / "config.json").write_text(config_text(config, torch.bfloat16))
    assert read_config(tmp_path / "config.json") == config
    theirs = transformers.GPT2Config.from_pretrained(tmp_path)
    expected = transformers.GPT2Config(
        vocab_size=11,
        n_positions=7,
        n_embd=12,
        n_layer=3,
        n_head=2,
        embd_pdrop=0.25,
        attn_pdrop=0.25,
        resid_pdrop=0.25,
        layer_norm_epsilon=1e-6,
        bos_token_id=None,
        eos_token_id=None,
        architectures=["GPT2LMHeadModel"],
        dtype="bfloat16",
    )
    assert theirs.to_dict() == expected.to_dict()


@pytest.mark.parametrize(("vocab_size", "token"), [(50257, 50256), (50258, None), (5, None)])
def test_writes_the_token_between_texts_for_gpt2s_own_vocabulary_only(vocab_size, token):
    entries = json.loads(config_text(GPT2Config(vocab_size=vocab_size), torch.float32))
    assert (entries["bos_token_id"], entries["eos_token_id"]) == (token, token)
