"""Llamas made ready for inference against the models they were made from, in float64."""

import copy

import pytest
import torch
from torch import nn

from tests.transformer_layers.comparisons import (
    relative_error,
    unit_roundoff,
    with_random_weights,
)
from transformer_layers import Llama, LlamaConfig, LlamaForInference, ready_for_inference

VOCAB, POSITIONS = 53, 29
FAMILIES = {
    "llama": {},
    "tied": {"tie_word_embeddings": True},
    "window": {"model_type": "mistral", "sliding_window": 4},
    "biases": {"model_type": "qwen2"},
    "head norm": {"model_type": "qwen3"},
    "norms behind": {"model_type": "olmo2"},
    "turned in part": {"model_type": "phi3", "partial_rotary_factor": 0.5},
}
TOLERANCES = {
    torch.float32: 1e-6,
    torch.bfloat16: 8 * unit_roundoff(torch.bfloat16),
    torch.float16: 4 * unit_roundoff(torch.float16),
    torch.int8: 16 / 127,  # a norm behind a layer makes the error of a small output large
}

LOW = [dtype for dtype in TOLERANCES if dtype != torch.float32]


def random_model(family="llama"):
    torch.manual_seed(0)
    config = LlamaConfig(
        VOCAB, 24, 44, 2, 6, 2, max_position_embeddings=POSITIONS, **FAMILIES[family]
    )
    return with_random_weights(Llama(config))


def random_ids(*shape):
    return torch.randint(VOCAB, shape)


def exact(model):
    return copy.deepcopy(model).double().eval()


@pytest.mark.parametrize(
    ("family", "dtype"),
    [*((name, torch.float32) for name in FAMILIES), *(("llama", each) for each in LOW)],
)
def test_logits_are_those_of_the_model(family, dtype):
    model = random_model(family)
    ready = ready_for_inference(model, dtype)
    for shape in [(3, 11), (5,), (0, 7)]:
        ids = random_ids(*shape)
        logits = ready(ids)
        assert logits.dtype == (torch.bfloat16 if dtype == torch.bfloat16 else torch.float32)
        assert relative_error(logits, exact(model)(ids)) <= TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("family", ["window"])
def test_logits_with_a_cache_are_those_of_the_model(dtype, family):
    model, ids = random_model(family), random_ids(2, 11)
    ready = ready_for_inference(model, dtype)
    caches = ready.new_caches(2, 11)
    pieces = [ready(piece, caches) for piece in ids.split([6, 3, 1, 1], dim=1)]
    assert relative_error(torch.cat(pieces, dim=1), exact(model)(ids)) <= TOLERANCES[dtype]


def test_generates_what_the_model_does():
    model = random_model("window")
    ready = ready_for_inference(model)
    assert isinstance(ready, LlamaForInference)
    ids = [random_ids(4), random_ids(7)]
    for ours, theirs in zip(ready.generate(ids, 9), exact(model).generate(ids, 9), strict=True):
        assert torch.equal(ours, theirs)
    ids = random_ids(2, 5)
    assert relative_error(ready.loss(ids), exact(model).loss(ids)) <= TOLERANCES[torch.float32]


@pytest.mark.usefixtures("as_users_run_it")
def test_compiles_to_one_graph_and_exports():
    dtype = torch.bfloat16
    ready = ready_for_inference(random_model(), dtype)
    torch.compiler.reset()
    compiled = torch.compile(ready, fullgraph=True, backend="aot_eager")
    for shape in ((2, 7), (1, 1)):
        ids = random_ids(*shape)
        exported = torch.export.export(ready, (ids,)).module()
        for graph in (compiled, exported):
            assert relative_error(graph(ids), ready(ids)) <= TOLERANCES[dtype]


def test_is_loaded_from_a_checkpoint_and_not_saved(tmp_path):
    model, ids = random_model(), random_ids(2, 5)
    model.save_pretrained(tmp_path / "model")
    loaded = LlamaForInference.from_pretrained(tmp_path / "model", torch.float16, ids)
    assert loaded.error == ready_for_inference(model, torch.float16, ids).error
    with pytest.raises(TypeError, match="save the model that it was made from"):
        loaded.save_pretrained(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("as_users_run_it")
def test_what_was_made_ready_before_is_refused():
    ready = ready_for_inference(random_model())
    with pytest.raises(TypeError, match=r"made ready before, with weights in torch.float32;"):
        ready_for_inference(ready)
    with pytest.raises(TypeError, match=r"model must be a Llama, got Linear"):
        LlamaForInference(nn.Linear(2, 3))
