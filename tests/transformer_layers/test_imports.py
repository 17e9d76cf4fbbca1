"""What is imported, and when."""

import subprocess
import sys

import pytest

import transformer_layers

LATER = {
    "GPT2ForInference": "torch.ao.nn.quantized.dynamic",
    "LlamaForInference": "torch.ao.nn.quantized.dynamic",
    "InferenceError": "torch.ao.nn.quantized.dynamic",
    "ready_for_inference": "torch.ao.nn.quantized.dynamic",
    "PublishedTokenizer": "tokenizers",
    "Tokenizer": "tokenizers",
    "load_tokenizer": "tokenizers",
    "train_tokenizer": "tokenizers",
}


def run(code):
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_layer_needs_no_quantized_layers_and_no_library_for_files():
    # They are as if they had been removed.
    code = """
import sys
import torch
for name in ("torch.ao.nn.quantized.dynamic", "tokenizers", "safetensors"):
    sys.modules[name] = None
import transformer_layers
from transformer_layers import GPT2, GPT2Config, LayerNorm
LayerNorm(3)(torch.randn(2, 3))
sizes = GPT2Config(vocab_size=5, n_positions=3, n_embd=4, n_layer=1, n_head=2)
GPT2(sizes).generate(torch.tensor([[1]]), 2)
assert "ready_for_inference" in dir(transformer_layers)
"""
    run(code)


@pytest.mark.parametrize("name", LATER)
def test_what_is_imported_later_is_there(name):
    assert name in dir(transformer_layers)
    assert name in transformer_layers.__all__
    assert getattr(transformer_layers, name).__name__ == name


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'transformer_layers' has no attribute 'BERT'"):
        transformer_layers.BERT  # noqa: B018
