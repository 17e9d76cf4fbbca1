"""The lines of the quickstart, with the published name, wherever its files can be had."""

import re
import shutil
from pathlib import Path

import pytest

from tests.transformer_layers.models.gpt2.published import published_files
from transformer_layers import GPT2, GPT2Config

PAGE = Path(__file__).parents[4] / "book/gpt2/quickstart.md"
PUBLISHED = 'name = "openai-community/gpt2"'


def blocks(kind):
    """The code of the page's blocks that load a model by its name."""
    found = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in found if 'name = "' in block]


def test_the_page_runs_the_published_lines_but_for_the_name():
    (published,), (executed,) = blocks("python"), blocks(r"\{code-cell\} ipython3")
    assert PUBLISHED in published
    assert published.replace(PUBLISHED, 'name = "small"') == executed
    assert len([line for line in published.splitlines() if line]) <= 9  # and one to install


def test_the_published_lines_run_on_what_the_hub_would_give(capsys, monkeypatch, tmp_path):
    # Its files for the tokenizer, and a model of the same vocabulary that has learned nothing.
    snapshot = tmp_path / "models--openai-community--gpt2" / "snapshots" / ("0" * 40)
    sizes = GPT2Config(vocab_size=50257, n_positions=32, n_embd=8, n_layer=1, n_head=2)
    GPT2(sizes).save_pretrained(snapshot)
    for path, name in zip(published_files(), ("vocab.json", "merges.txt"), strict=True):
        shutil.copy(path, snapshot / name)
    refs = tmp_path / "models--openai-community--gpt2" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (published,) = blocks("python")
    exec(published, {})
    assert capsys.readouterr().out


def test_the_published_lines_write_text(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where no folder has the model's name
    (published,) = blocks("python")
    try:
        exec(published, {})
    except FileNotFoundError as error:
        pytest.skip(f"the published weights cannot be had: {error}")
    written = capsys.readouterr().out
    assert len(written.split()) > 5
    assert "\ufffd" not in written
