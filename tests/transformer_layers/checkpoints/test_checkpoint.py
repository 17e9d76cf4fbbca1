"""Checkpoints, read and written whole, against `transformers`."""

import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
import transformers
from transformers import GPT2LMHeadModel, GPT2Model

from tests.transformer_layers.checkpoints.examples import (
    CONFIG,
    entries_of,
    random_weights,
    read_parts,
    write_folder,
    write_parts,
)
from transformer_layers import GPT2, GPT2Config
from transformer_layers.checkpoints import checkpoint
from transformer_layers.models.gpt2.checkpoint import CODEC

read_checkpoint = partial(checkpoint.read_checkpoint, CODEC)
write_checkpoint = partial(checkpoint.write_checkpoint, CODEC)


def same(found, expected):
    assert list(found) == list(expected)
    for key, tensor in expected.items():
        assert found[key].dtype == tensor.dtype
        assert torch.equal(found[key], tensor)


def random_model_of_transformers(dtype=torch.float64, **options):
    sizes = {"vocab_size": 11, "n_positions": 7, "n_embd": 12, "n_layer": 2, "n_head": 3}
    config = transformers.GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, **options)
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.to(dtype)


def logits(model):
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
    with torch.no_grad():
        found = model(ids)
    return found if isinstance(found, torch.Tensor) else found.logits


def refused(folder, message, error=ValueError):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        read_checkpoint(folder)


# Reading


@pytest.mark.parametrize(
    ("prefix", "masks", "head"), [("", True, False), ("transformer.", False, True)]
)
def test_reads_every_form_that_was_published(tmp_path, prefix, masks, head):
    weights = random_weights(dtype=torch.bfloat16)
    stored = {prefix + key: tensor for key, tensor in weights.items()}
    if masks:
        for i in range(CONFIG.n_layer):
            mask = torch.ones(1, 1, 3, 3, dtype=torch.uint8).tril()
            stored[f"{prefix}h.{i}.attn.bias"] = mask
            stored[f"{prefix}h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    if head:
        stored["lm_head.weight"] = weights["wte.weight"].clone()
    same(read_checkpoint(write_folder(tmp_path, stored))[1], weights)


def test_refuses_a_head_that_is_not_tied(tmp_path):
    weights = random_weights()
    head = weights["wte.weight"].clone()
    head[4, 3] += 1e-6 * head[4, 3].abs()
    write_folder(tmp_path, {**weights, "lm_head.weight": head})
    message = (
        f"{tmp_path / 'model.safetensors'}: lm_head.weight is not the same as wte.weight, and the "
        "model has one weight for both"
    )
    refused(tmp_path, message)


# A config in the weights' file


def write_and_edit(folder, **changes):
    """What we write, with other entries in the config beside the weights."""
    write_checkpoint(folder, CONFIG, random_weights())
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_refuses_another_config_than_the_weights_were_saved_with(tmp_path):
    write_and_edit(tmp_path, n_head=4, layer_norm_epsilon=1e-6)
    message = (
        f"{tmp_path / 'config.json'}: not the config that model.safetensors was saved with: "
        "n_head is 4, not 2, layer_norm_epsilon is 1e-06, not 1e-05. If the weights are the right "
        "ones, remove config.json; they hold theirs"
    )
    refused(tmp_path, message)
    (tmp_path / "config.json").unlink()
    assert read_checkpoint(tmp_path)[0] == CONFIG


def test_what_was_changed_on_purpose_counts_and_is_told(tmp_path):
    write_and_edit(tmp_path, layer_norm_epsilon=1e-6)
    counts = "layer_norm_epsilon is 1e-06, not 1e-05"
    path = tmp_path / "config.json"
    said = f"{path}: was changed since model.safetensors was saved, and counts: {counts}"
    with pytest.warns(UserWarning, match=f"^{re.escape(said)}$"):
        config, weights = read_checkpoint(tmp_path)
    assert config == replace(CONFIG, layer_norm_epsilon=1e-6)
    same(weights, random_weights())


def test_a_config_that_a_killed_process_did_not_come_to_is_found(tmp_path):
    write_and_edit(tmp_path, n_head=4)
    left = tmp_path / ".unfinished-abcdefgh" / "config.json"
    left.parent.mkdir()
    left.write_text(json.dumps(entries_of(CONFIG)))
    assert read_checkpoint(tmp_path)[0] == CONFIG
    left.write_text(json.dumps(entries_of(CONFIG) | {"n_head": 1}))
    with pytest.raises(ValueError, match="n_head is 4, not 2"):
        read_checkpoint(tmp_path)


def test_reads_again_when_the_config_was_replaced_meanwhile(tmp_path, monkeypatch):
    write_and_edit(tmp_path, n_head=4)
    path = tmp_path / "config.json"
    right = json.dumps(entries_of(CONFIG))
    monkeypatch.setattr(checkpoint.time, "sleep", lambda _: path.write_text(right))
    assert read_checkpoint(tmp_path)[0] == CONFIG


# Writing


def test_writes_weights_that_are_not_contiguous_or_share_memory(tmp_path):
    weights = random_weights()
    expected = {key: tensor.clone() for key, tensor in weights.items()}
    name = "h.1.mlp.c_fc.weight"
    weights[name] = weights[name].T.contiguous().T
    weights["h.1.ln_1.weight"] = weights["h.0.ln_1.weight"]
    expected["h.1.ln_1.weight"] = expected["h.0.ln_1.weight"]
    weights["ln_f.weight"] = torch.ones(1).expand(4)
    expected["ln_f.weight"] = torch.ones(4)
    flat = torch.cat([weights["h.0.ln_2.weight"], weights["h.0.ln_2.bias"]])
    weights["h.0.ln_2.weight"], weights["h.0.ln_2.bias"] = flat[:4], flat[4:]
    write_checkpoint(tmp_path, CONFIG, weights)
    same(read_checkpoint(tmp_path)[1], expected)


def cannot_write(tmp_path, message, weights, config=CONFIG, error=ValueError):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        write_checkpoint(tmp_path / "new", config, weights)
    assert not (tmp_path / "new").exists()


def test_refuses_to_write_what_does_not_fit(tmp_path):
    weights = random_weights()
    wider = GPT2Config(vocab_size=5, n_positions=3, n_embd=6, n_layer=2, n_head=2)
    cannot_write(
        tmp_path,
        "weights: wte.weight has the shape (5, 4), and the sizes of the config need (5, 6)",
        weights,
        wider,
    )
    missing = {key: tensor for key, tensor in weights.items() if key != "wpe.weight"}
    message = "weights: wpe.weight is missing, which a GPT-2 of n_layer = 2 has"
    cannot_write(tmp_path, message, missing)
    mixed = {**weights, "ln_f.bias": weights["ln_f.bias"].double()}
    message = (
        "weights: wte.weight is torch.float32 and ln_f.bias is torch.float64; convert all weights "
        "to one dtype"
    )
    cannot_write(tmp_path, message, mixed)
    meta = {key: tensor.to("meta") for key, tensor in weights.items()}
    message = "weights: on the meta device there are no values to write"
    cannot_write(tmp_path, message, meta)


@pytest.mark.parametrize("which", ["weights", "config"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, which):
    write_checkpoint(tmp_path, CONFIG, random_weights(seed=0))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    where, broken = (checkpoint, "write_tensors") if which == "weights" else (Path, "write_text")
    whole = getattr(where, broken)

    def half(*args, **kwargs):
        whole(*args, **kwargs)
        raise OSError("no space left")

    monkeypatch.setattr(where, broken, half)
    message = f"{tmp_path / 'model.safetensors'} and config.json cannot be written: no space left"
    with pytest.raises(OSError, match=f"{re.escape(message)}$"):
        write_checkpoint(tmp_path, CONFIG, random_weights(seed=1))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# Against transformers


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_checkpoint_of_transformers_survives_the_round_trip_byte_for_byte(tmp_path, dtype):
    random_model_of_transformers(dtype).save_pretrained(tmp_path / "theirs")
    GPT2.from_pretrained(tmp_path / "theirs").save_pretrained(tmp_path / "ours")
    theirs, ours = ((tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    their_header, their_data = read_parts(theirs.read_bytes())
    header, data = read_parts(ours.read_bytes())
    assert data == their_data
    metadata = header.pop("__metadata__")
    assert metadata.keys() - their_header.pop("__metadata__") == {"config.json", "sha256"}
    assert list(header.items()) == list(their_header.items())
    # Without our metadata it is the same file to the last byte, its padding too.
    text = json.dumps({"__metadata__": {"format": "pt"}} | header, separators=(",", ":")).encode()
    write_parts(tmp_path / "again", text.ljust(8 * math.ceil(len(text) / 8)), data)
    assert (tmp_path / "again").read_bytes() == theirs.read_bytes()


def test_transformers_reads_what_we_write_and_gives_the_same_logits(tmp_path):
    theirs = random_model_of_transformers(layer_norm_epsilon=0.1)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = GPT2.from_pretrained(tmp_path / "theirs")
    torch.testing.assert_close(logits(ours), logits(theirs), rtol=0, atol=1e-12)
    ours.save_pretrained(tmp_path / "ours")
    back, report = GPT2LMHeadModel.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert all(not found for found in report.values()), report
    assert back.dtype == torch.float64
    assert torch.equal(logits(back.eval()), logits(theirs))


def test_reads_the_other_forms_of_transformers(tmp_path):
    whole = random_model_of_transformers(torch.float32)
    expected = read_checkpoint_of(whole, tmp_path / "whole")
    without_head = GPT2Model(whole.config)
    without_head.load_state_dict(whole.transformer.state_dict())
    same(read_checkpoint_of(without_head, tmp_path / "without_head"), expected)
    same(read_checkpoint_of(whole, tmp_path / "shards", max_shard_size="4KB"), expected)
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    stray = json.loads((tmp_path / "shards" / "model.safetensors.index.json").read_text())
    assert stray.keys() == {"metadata", "weight_map"}


def read_checkpoint_of(model, folder, **options):
    model.save_pretrained(folder, **options)
    return read_checkpoint(folder)[1]
