"""Models made ready for inference against the model they were made from, in float64."""

import copy
import re
import threading

import pytest
import torch
from torch import nn
from torch.ao.nn.quantized import dynamic

from tests.transformer_layers.comparisons import (
    relative_error,
    unit_roundoff,
    with_random_weights,
)
from transformer_layers import (
    GPT2,
    CausalSelfAttention,
    GPT2Config,
    KeyValueCache,
)
from transformer_layers.models.gpt2.inference import attention as blockwise
from transformer_layers.models.gpt2.inference.attention import BlockwiseAttention
from transformer_layers.models.gpt2.inference.model import GPT2ForInference
from transformer_layers.models.inference import InferenceError
from transformer_layers.models.ready import ready_for_inference

VOCAB, POSITIONS, WIDTH = 53, 29, 15
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int8]

# Of the largest logit. In float32 only the order of the sums differs. In bfloat16 the weights and
# every result are rounded, in float16 the weights, in int8 the weights and what they multiply.
TOLERANCES = {
    torch.float32: 1e-6,
    torch.bfloat16: 4 * unit_roundoff(torch.bfloat16),
    torch.float16: 2 * unit_roundoff(torch.float16),
    torch.int8: 4 / 127,
}


def random_model(**sizes):
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCAB, "n_positions": POSITIONS, "n_embd": WIDTH, **sizes}
    return with_random_weights(GPT2(GPT2Config(n_layer=2, n_head=3, **sizes)))


def random_ids(*shape):
    return torch.randint(VOCAB, shape)


def exact(model):
    return copy.deepcopy(model).double().eval()


# Values


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 11), (1,), (0, 7)])
def test_logits_are_those_of_the_model(dtype, shape):
    model, ids = random_model(), random_ids(*shape)
    logits = ready_for_inference(model, dtype)(ids)
    assert logits.dtype == (torch.bfloat16 if dtype == torch.bfloat16 else torch.float32)
    assert relative_error(logits, exact(model)(ids)) <= TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_logits_with_a_cache_are_those_of_the_model(dtype):
    batch = 3
    model, ids = random_model(), random_ids(batch, 11)
    ready = ready_for_inference(model, dtype)
    caches = ready.new_caches(batch, 11)
    pieces = [
        ready(piece, caches) for piece in (ids[:, :6], ids[:, 6:9], ids[:, 9:10], ids[:, 10:])
    ]
    assert relative_error(torch.cat(pieces, dim=1), exact(model)(ids)) <= TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_generates(dtype):
    model, ids = random_model(), random_ids(3, 4)
    ready = ready_for_inference(model, dtype)
    tokens = ready.generate(ids, 9)
    assert tokens.shape == (3, 13)
    if dtype == torch.float32:
        assert torch.equal(tokens, exact(model).generate(ids, 9))
    draws = [
        ready.generate(ids[:1], 9, temperature=1.0, generator=torch.Generator().manual_seed(1))
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert relative_error(ready.loss(ids), exact(model).loss(ids)) <= TOLERANCES[dtype]


def test_takes_a_model_of_another_dtype():
    model, ids = random_model().to(torch.bfloat16), random_ids(2, 7)
    ready = ready_for_inference(model)
    assert relative_error(ready(ids.int()), exact(model)(ids)) <= TOLERANCES[torch.float32]


def test_int8_rounds_each_column_of_a_weight_by_itself():
    model = random_model()
    columns = torch.logspace(-3, 3, 3 * WIDTH)
    with torch.no_grad():
        model.h[0].attn.c_attn.weight.mul_(columns)
    product = ready_for_inference(model, torch.int8).body.h[0].attn.c_attn
    rounded = product.linear.weight().dequantize().T
    error = (rounded - model.h[0].attn.c_attn.weight).abs()
    step = model.h[0].attn.c_attn.weight.abs().amax(dim=0) / 127
    assert (error <= 0.501 * step).all()
    assert (error.amax(dim=0) > 0.1 * step).all()


# Attention in blocks


@pytest.mark.parametrize("leading", [(), (2, 3)])
@pytest.mark.parametrize("seq", [1, 5, 12])
def test_attention_in_blocks_is_that_of_the_layer(leading, seq, monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 5)
    layer = with_random_weights(CausalSelfAttention(WIDTH, 3)).double().eval()
    x = torch.randn(*leading, seq, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        assert relative_error(BlockwiseAttention(layer)(x), layer(x)) <= 1e-12


def test_attention_in_blocks_after_others(monkeypatch):
    monkeypatch.setattr(blockwise, "BLOCK", 3)
    layer = with_random_weights(CausalSelfAttention(WIDTH, 3)).double().eval()
    x = torch.randn(2, 17, WIDTH, dtype=torch.float64)
    cache = KeyValueCache(2, 3, 20, WIDTH // 3, dtype=torch.float64)
    with torch.no_grad():
        pieces = [BlockwiseAttention(layer)(each, cache) for each in x.split([4, 1, 7, 5], dim=1)]
        assert relative_error(torch.cat(pieces, dim=1), layer(x)) <= 1e-12
    assert cache.length == 17


# Kernels


def test_onednn_is_off_for_a_single_bfloat16_position_only():
    ready, seen = ready_for_inference(random_model(), torch.bfloat16), []
    for layer in (ready.body.h[1].mlp.c_fc, ready.head):
        layer.register_forward_hook(lambda *_: seen.append(torch.backends.mkldnn.enabled))
    for shape in ((1, 1), (1, 2), (2, 1), (1,)):
        ready(random_ids(*shape))
    assert seen == [False, False, True, True, True, True, False, False]
    assert torch.backends.mkldnn.enabled
    ready, seen = ready_for_inference(random_model()), []
    ready.head.register_forward_hook(lambda *_: seen.append(torch.backends.mkldnn.enabled))
    ready(random_ids(1, 1))
    assert seen == [True]


def test_onednn_is_on_after_threads_that_generate():
    ready, ids = ready_for_inference(random_model(), torch.bfloat16), random_ids(1, 3)
    expected, found = ready.generate(ids, 12), []
    threads = [
        threading.Thread(target=lambda: found.append(ready.generate(ids, 12))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.backends.mkldnn.enabled
    assert len(found) == 8
    assert all(torch.equal(each, expected) for each in found)


# The model it was made from


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8], ids=str)
def test_the_model_is_not_changed(dtype):
    model = random_model().train()
    model.h[0].eval()
    before = {name: (x, x.clone()) for name, x in model.state_dict(keep_vars=True).items()}
    modes = [module.training for module in model.modules()]
    ready = ready_for_inference(model, dtype)
    with torch.no_grad():
        for x in (*ready.parameters(), *ready.buffers()):
            x.zero_()
    for name, x in model.state_dict(keep_vars=True).items():
        assert x is before[name][0]
        assert torch.equal(x, before[name][1])
        assert x.requires_grad
    assert [module.training for module in model.modules()] == modes


# Graphs


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_compiles_to_one_graph_and_exports(dtype):
    ready = ready_for_inference(random_model(), dtype)
    torch.compiler.reset()
    compiled = torch.compile(ready, fullgraph=True, backend="aot_eager")
    for shape in ((2, 7), (1, 1)):
        ids = random_ids(*shape)
        exported = torch.export.export(ready, (ids,)).module()
        for graph in (compiled, exported):
            assert relative_error(graph(ids), ready(ids)) <= TOLERANCES[dtype]


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("dtype", [torch.float16, torch.int8], ids=str)
def test_where_no_graph_can_hold_the_weights_it_says_so(dtype):
    ready, ids = ready_for_inference(random_model(), dtype), random_ids(1, 5)
    torch.compiler.reset()
    said = f"a weight in {dtype} is no tensor that a graph could hold"
    with pytest.raises(RuntimeError, match=said):
        torch.export.export(ready, (ids,))
    with pytest.raises(torch._dynamo.exc.Unsupported, match=said):
        torch.compile(ready, fullgraph=True, backend="aot_eager")(ids)
    torch.compiler.reset()
    assert torch.equal(torch.compile(ready, backend="aot_eager")(ids), ready(ids))  # in pieces


# The error


def test_the_error_is_measured_in_spreads():
    seq = 20
    model, ids = random_model(), random_ids(2, seq)
    ready = ready_for_inference(model, torch.bfloat16, ids)
    caches = ready.new_caches(2, seq)
    sizes = [seq - 8] * (seq > 8) + [1] * min(seq, 8)
    actual = torch.cat([ready(piece, caches) for piece in ids.split(sizes, dim=1)], dim=1)
    expected = exact(model)(ids)
    largest, squares, same = 0.0, 0.0, 0
    for ours, theirs in zip(actual.flatten(0, 1), expected.flatten(0, 1), strict=True):
        spread = (theirs - theirs.mean()).square().mean().sqrt()
        largest = max(largest, ((ours - theirs).abs().max() / spread).item())
        squares += ((ours - theirs) / spread).square().mean().item() / (2 * seq)
        same += int(ours.argmax() == theirs.argmax())
    # The model that was measured against computes in float32.
    assert ready.error.largest == pytest.approx(largest, rel=1e-3)
    assert ready.error.rms == pytest.approx(squares**0.5, rel=1e-3)
    assert ready.error.unchanged == same / (2 * seq)
    assert ready.error.positions == 2 * seq


def test_the_error_of_a_sample_that_is_not_given():
    model = random_model()
    errors = [ready_for_inference(model, dtype).error for dtype in DTYPES]
    assert [error.dtype for error in errors] == DTYPES
    assert all(error.positions == POSITIONS for error in errors)
    float32, bfloat16, float16, int8 = (error.rms for error in errors)
    assert 0 < float32 < 1e-6 < float16 < 1e-3 < bfloat16 < 1e-2 < int8 < 0.2
    assert ready_for_inference(model, torch.int8).error == errors[-1]  # on the same sample
    assert ready_for_inference(random_model(n_positions=200)).error.positions == 128


def test_the_error_reads_as_a_sentence():
    error = InferenceError(torch.int8, largest=0.34567, rms=0.0625, unchanged=0.65625, positions=64)
    assert str(error) == (
        "weights in torch.int8: logits off by 0.35 of their spread at most,\n"
        "by 0.062 in the root mean square; the most likely token is the same\n"
        "at 65.62 % of 64 positions"
    )


@pytest.mark.usefixtures("as_users_run_it")
def test_nan_is_told():
    model, ids = random_model(), random_ids(1, 5)
    with torch.no_grad():
        model.wpe.weight[3] = torch.nan
    message = (
        "the model's own logits are NaN or infinite at 2 of 5 positions, so that there is nothing "
        "to compare; look for such weights, or too large ones"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ready_for_inference(model, ids=ids)


# Errors


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"dtype": torch.float64},
            ValueError,
            "dtype must be one of torch.float32, torch.bfloat16, torch.float16, torch.int8, got "
            "torch.float64",
        ),
        (
            {"ids": torch.zeros(5, dtype=torch.long)},
            ValueError,
            r"ids must be of shape \(batch, seq\) with one position or more, got \(5,\); a single "
            r"sequence is ids\[None\]",
        ),
        ({"ids": torch.full((1, 5), VOCAB)}, ValueError, r"ids must be in \[0, 53\)"),
    ],
)
def test_errors_of_the_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        ready_for_inference(random_model(), **arguments)


@pytest.mark.usefixtures("as_users_run_it")
def test_errors_of_the_model():
    with pytest.raises(TypeError, match="model must be a GPT2 or a Llama, got Linear"):
        ready_for_inference(nn.Linear(2, 3))
    ready = ready_for_inference(random_model(), torch.bfloat16)
    with pytest.raises(TypeError, match=r"made ready before, with weights in torch.bfloat16;"):
        ready_for_inference(ready)
    model = random_model()
    model.ln_f.to("meta")
    with pytest.raises(ValueError, match=r"it is on cpu, meta. Move it with model.cpu\(\)"):
        ready_for_inference(model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8], ids=str)
def test_error_where_torch_cannot_quantize(dtype, monkeypatch):
    def refuse(self, weight, bias):
        raise RuntimeError("Didn't find engine")

    monkeypatch.setattr(dynamic.Linear, "set_weight_bias", refuse)
    with pytest.raises(ValueError, match=f"has no products by weights of {dtype} on this machine"):
        ready_for_inference(random_model(), dtype)


def test_is_not_saved(tmp_path):
    ready = ready_for_inference(random_model())
    assert isinstance(ready, GPT2ForInference)
    with pytest.raises(TypeError, match="save the model that it was made from"):
        ready.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# What it is


def test_is_loaded_from_a_checkpoint(tmp_path):
    model, ids = random_model(), random_ids(2, 5)
    model.save_pretrained(tmp_path)
    loaded = GPT2ForInference.from_pretrained(tmp_path, torch.float16, ids)
    assert loaded.error == ready_for_inference(model, torch.float16, ids).error
    assert loaded.error.dtype == torch.float16
