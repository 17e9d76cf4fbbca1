"""Where a checkpoint is: a folder, a name on the hub, one file of weights or several."""

import re
import sys
from pathlib import Path

import huggingface_hub
import pytest
import torch

from tests.transformer_layers.checkpoints.examples import (
    random_weights,
    write_folder,
    write_json,
    write_shards,
    write_tensors,
)
from transformer_layers import GPT2, load_tokenizer, train_tokenizer
from transformer_layers.checkpoints.folder import find_folder, open_weights

SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"


def read(folder):
    with open_weights(folder) as stored:
        return stored.source, {name: tensor.read() for name, tensor in stored.tensors.items()}


def refused(folder, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        read(folder)


@pytest.mark.parametrize(
    "name",
    ["./gpt2", "a/b/c", "", "a\0b"],
)
def test_what_is_neither_folder_nor_name_is_not_looked_for_on_the_hub(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    message = (
        f"there is no folder {str(name)!r}, and it is no name on the Hugging Face hub, such as "
        "'openai-community/gpt2'"
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        find_folder(name)


@pytest.mark.parametrize("name", ["openai-community/gpt2", "gpt2"])
def test_a_name_is_fetched_from_the_hub(name, monkeypatch, tmp_path):
    calls = []

    def snapshot_download(*args, **kwargs):
        calls.append((args, kwargs))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert find_folder(name) == tmp_path
    wanted = ["config.json", "generation_config.json", "model*.safetensors", INDEX]
    assert calls == [((name,), {"revision": None, "allow_patterns": wanted})]
    find_folder(name, revision="607a30d")
    assert calls[1:] == [((name,), {"revision": "607a30d", "allow_patterns": wanted})]


@pytest.mark.usefixtures("as_users_run_it")
def test_a_revision_is_of_a_name_on_the_hub(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    message = (
        f"'{tmp_path}' is a folder, which has no revision 'main'; leave it out, or pass a name on "
        "the Hugging Face hub that is no folder here"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        find_folder(tmp_path, revision="main")
    with pytest.raises(
        ValueError, match=r"^revision must name a branch, a tag or a commit, got ''"
    ):
        find_folder("gpt2", revision="")
    with pytest.raises(TypeError, match=r"^revision must be a str, got 2 of type int$"):
        find_folder("gpt2", revision=2)


def test_what_the_hub_has_not_is_told_with_its_revision(monkeypatch):
    def snapshot_download(*args, **kwargs):
        raise OSError("404 Client Error.")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    message = (
        "there is no folder 'gpt2', and the Hugging Face hub could not be asked for revision "
        "'v9' of it or does not have it: 404 Client Error."
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        find_folder("gpt2", revision="v9")


@pytest.mark.parametrize("load", [GPT2.from_pretrained, load_tokenizer])
def test_the_revision_comes_to_the_hub(load, monkeypatch, tmp_path):
    asked = []

    def snapshot_download(name, revision, allow_patterns):
        asked.append((name, revision))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    write_folder(tmp_path, random_weights())
    train_tokenizer(["low lower"], 260).save(tmp_path)
    load("gpt2", revision="607a30d")
    assert asked == [("gpt2", "607a30d")]


def test_reads_a_folder_of_links_as_the_hubs_cache_is(tmp_path):
    weights = random_weights()
    blobs = write_folder(tmp_path / "blobs", weights)
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(Path("..", "blobs", path.name))
    source, found = read(snapshot)
    assert source == snapshot / "model.safetensors"
    assert all(torch.equal(found[key], weights[key]) for key in weights)


def test_without_the_package_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = (
        "there is no folder 'gpt2'; if it is a name on the Hugging Face hub, install "
        "huggingface_hub"
    )
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        find_folder("gpt2")


def test_reads_shards(tmp_path):
    weights = random_weights()
    source, found = read(write_shards(tmp_path, weights, shards=3))
    assert source == tmp_path / INDEX
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[key], weights[key]) for key in weights)


def test_the_single_file_comes_first_as_in_transformers(tmp_path):
    old, new = random_weights(seed=0), random_weights(seed=1)
    write_shards(tmp_path, old)
    write_folder(tmp_path, new)
    assert torch.equal(read(tmp_path)[1]["wte.weight"], new["wte.weight"])


def test_refuses_a_missing_shard(tmp_path):
    write_shards(tmp_path, random_weights())
    (tmp_path / SHARDS[1]).unlink()
    message = f"{tmp_path / SHARDS[1]}: there is no such file, and {INDEX} names it"
    refused(tmp_path, FileNotFoundError, message)


def test_refuses_shards_that_were_exchanged(tmp_path):
    write_shards(tmp_path, {"a": torch.zeros(2), "b": torch.zeros(2)})
    first, second = (tmp_path / name for name in SHARDS)
    first.rename(tmp_path / "other")
    second.rename(first)
    (tmp_path / "other").rename(second)
    message = f"{first}: holds 'b', which {INDEX} says is in '{SHARDS[1]}'"
    refused(tmp_path, ValueError, message)


@pytest.mark.parametrize(
    "shard",
    ["../model.safetensors", "..\\model.safetensors", "model.bin", None],
)
def test_refuses_an_index_that_leads_elsewhere(tmp_path, shard):
    folder = tmp_path / "folder"
    write_tensors(tmp_path / "model.safetensors", {"a": torch.zeros(2)})
    folder.mkdir()
    write_json(folder / INDEX, {"weight_map": {"a": shard}})
    message = (
        f"{folder / INDEX}: places 'a' in {shard!r}, which must be the name of a .safetensors "
        "file in the same folder"
    )
    refused(folder, ValueError, message)


def test_weights_that_a_link_should_lead_to_are_not_passed_over_for_others(tmp_path):
    write_shards(tmp_path, random_weights())
    path = tmp_path / "model.safetensors"
    path.symlink_to(tmp_path / "gone")
    refused(tmp_path, FileNotFoundError, f"{path}: is a link that leads to no file")


def test_refuses_pickle_files_and_says_how_to_convert_them(tmp_path):
    name = "pytorch_model.bin"
    (tmp_path / name).write_bytes(b"not looked at")
    message = (
        f"{tmp_path}: {name} is a pickle file, which can run any code when it is read; where you "
        "trust it, let transformers convert it: AutoModelForCausalLM.from_pretrained(old)"
        ".save_pretrained(new)"
    )
    refused(tmp_path, ValueError, message)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ('{"model_type": "marian", "is_encoder_decoder": true}', "AutoModelForSeq2SeqLM"),
        ('{"model_type": "marian"}', "AutoModelForSeq2SeqLM"),
        ('{"model_type": "t5", "is_encoder_decoder": true}', "AutoModelForSeq2SeqLM"),
        ('{"model_type": "gpt2", "is_encoder_decoder": false}', "AutoModelForCausalLM"),
        ("{", "AutoModelForCausalLM"),
    ],
)
def test_the_advice_for_pickle_files_names_the_class_that_reads_the_model(tmp_path, config, name):
    (tmp_path / "pytorch_model.bin").write_bytes(b"not looked at")
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(ValueError, match=rf"convert it: {name}\.from_pretrained\(old\)\.save_pre"):
        read(tmp_path)
