"""Llama is trained by its plan: alone and shared."""

from pathlib import Path

import pytest
import torch

from tests.transformer_training.processes import (
    TOLERANCE,
    assert_close,
    losses,
    shared,
)
from transformer_layers import Llama, LlamaConfig, load_tokenizer
from transformer_training import TrainingError, costs, estimate
from transformer_training.config import parse
from transformer_training.plans.llama import activation_bytes
from transformer_training.run import train

pytestmark = pytest.mark.xdist_group("ranks")  # one process has the run to compare with

SIZES = LlamaConfig(260, 16, 48, 1, 4, 2, max_position_embeddings=8)


@pytest.fixture
def options(small: list[str]) -> list[str]:
    more = "--model llama --n-head 4 --n-kv-head 2 --n-embd 16 --checkpoint-every 10 --keep 9"
    return [*small, *more.split()]


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("llama")
    options = "--steps 30 --batch-size 4 --seq 8 --n-layer 1 --n-head 4 --n-embd 16 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 10 --evaluate-every 10 --keep 9"
    command = ["--data", str(text), "--out", str(out), "--model", "llama", "--n-kv-head", "2"]
    train(parse([*command, *options.split(), *more.split()]))
    return out


def test_it_learns_and_is_loaded(alone):
    assert losses(alone)[-1] < losses(alone)[0] - 1
    model, tokenizer = Llama.from_pretrained(alone / "final"), load_tokenizer(alone / "final")
    assert model.config == SIZES
    assert model.generate(tokenizer.encode("a")[None, :3], 5).shape[1] > 5


@pytest.mark.parametrize(("parallel", "size"), [("fsdp", 2), ("tp", 2)])
def test_ranks_compute_what_one_process_does(options, tmp_path, alone, parent, parallel, size):
    shared(parent, size, options, tmp_path / "out", "--parallel", parallel)
    assert_close(tmp_path / "out", alone, TOLERANCE)


def test_what_a_step_costs_is_derived(options):
    weights = sum(each.numel() for each in Llama(SIZES).parameters())
    assert costs(SIZES, 4).parameters == 4 * weights
    cut = 4 * (2 * 16 * 16 + 2 * 16 * 8 + 3 * 16 * 48)
    assert costs(SIZES, 4, parallel="tp", ranks=2).parameters == 4 * weights - cut // 2
    assert estimate(parse([*options, "--out", "-"]), 260).parameters == weights


def left_by_a_token(model: torch.nn.Module, ids: torch.Tensor) -> float:
    """Bytes that autograd keeps for the backward pass."""
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage, storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model.loss(ids)
    assert loss.requires_grad
    return sum(size for _, size in kept.values()) / ids.numel()


def test_what_a_token_leaves_is_what_autograd_keeps():
    """All but a twentieth: the embedding's rows and what norms keep of each position."""
    sizes = LlamaConfig(260, 64, 176, 3, 4, 2, max_position_embeddings=32)
    torch.manual_seed(0)
    found = left_by_a_token(Llama(sizes), torch.randint(260, (4, 32)))
    assert found == pytest.approx(activation_bytes(sizes), rel=0.05)


def test_what_a_llama_has_not_is_refused(options):
    with pytest.raises(TrainingError, match=r"a Llama has no dropout, got 0\.1"):
        parse([*options, "--out", "-", "--dropout", "0.1"])
    with pytest.raises(TrainingError, match="divisible by num_key_value_heads"):
        parse([*options, "--out", "-", "--n-kv-head", "3"])
    with pytest.raises(TrainingError, match="a GPT-2 has as many heads of keys as of queries"):
        parse([*options, "--out", "-", "--model", "gpt2"])
