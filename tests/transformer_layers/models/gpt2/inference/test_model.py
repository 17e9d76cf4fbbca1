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
    Conv1D,
    GPT2Config,
    KeyValueCache,
)
from transformer_layers.inference import products
from transformer_layers.inference.choices import RowKernel
from transformer_layers.inference.products import PRODUCTS
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


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


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
@pytest.mark.parametrize("shape", [(1, 7), (3, 11), (1, 1), (5,), (1,), (2, 3, 5), (0, 7), (2, 0)])
def test_logits_are_those_of_the_model(dtype, shape):
    model, ids = random_model(), random_ids(*shape)
    logits = ready_for_inference(model, dtype)(ids)
    assert logits.dtype == (torch.bfloat16 if dtype == torch.bfloat16 else torch.float32)
    assert relative_error(logits, exact(model)(ids)) <= TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [1, 3])
def test_logits_with_a_cache_are_those_of_the_model(dtype, batch):
    model, ids = random_model(), random_ids(batch, 11)
    ready = ready_for_inference(model, dtype)
    caches = ready.new_caches(batch, 11)
    pieces = [
        ready(piece, caches) for piece in (ids[:, :6], ids[:, 6:9], ids[:, 9:10], ids[:, 10:])
    ]
    assert relative_error(torch.cat(pieces, dim=1), exact(model)(ids)) <= TOLERANCES[dtype]


@pytest.mark.parametrize("by_rows", [True, False])
def test_slices_for_any_number_of_threads(by_rows, threads, monkeypatch):
    monkeypatch.setattr(products, "row_kernel", lambda *_: RowKernel(by_rows, sliced=True))
    model, ids = random_model(), random_ids(1, 7)
    ready = ready_for_inference(model)
    weight, _ = ready.head.slices
    assert len(weight) == threads
    caches = ready.new_caches(1, 7)
    logits = torch.cat([ready(ids[:, t : t + 1], caches) for t in range(7)], dim=1)
    assert relative_error(logits, exact(model)(ids)) <= TOLERANCES[torch.float32]


@pytest.mark.parametrize("by_rows", [True, False])
def test_without_slices(by_rows, monkeypatch):
    monkeypatch.setattr(products, "row_kernel", lambda *_: RowKernel(by_rows, sliced=False))
    model, ids = random_model(), random_ids(1, 7)
    ready = ready_for_inference(model)
    assert ready.head.slices is None
    caches = ready.new_caches(1, 7)
    logits = torch.cat([ready(ids[:, t : t + 1], caches) for t in range(7)], dim=1)
    assert relative_error(logits, exact(model)(ids)) <= TOLERANCES[torch.float32]


@pytest.mark.parametrize("onednn", [True, False])
def test_with_and_without_onednn(onednn, monkeypatch):
    monkeypatch.setattr(products, "onednn_is_faster", lambda _: onednn)
    model, ids = random_model(), random_ids(3, 7)
    ready = ready_for_inference(model)
    assert (ready.head.packed is not None) == onednn
    assert relative_error(ready(ids), exact(model)(ids)) <= TOLERANCES[torch.float32]


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


@pytest.mark.parametrize("source", [torch.float64, torch.bfloat16], ids=str)
def test_takes_a_model_of_any_floating_dtype(source):
    model, ids = random_model().to(source), random_ids(2, 7)
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


def test_a_column_of_zeros_in_int8():
    model = random_model()
    with torch.no_grad():
        model.h[0].mlp.c_fc.weight[:, 3] = 0.0
    ready = ready_for_inference(model, torch.int8)
    assert (ready.body.h[0].mlp.c_fc.linear.weight().q_per_channel_scales() > 0).all()
    assert ready(random_ids(2, 5)).isfinite().all()


# Attention in blocks


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (0,)])
@pytest.mark.parametrize("seq", [0, 1, 2, 5, 6, 7, 12])
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


def test_the_blocks_are_for_bfloat16():
    for dtype in DTYPES:
        attention = ready_for_inference(random_model(), dtype).body.h[1].attn
        assert isinstance(attention, BlockwiseAttention) == (dtype == torch.bfloat16)


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


def test_onednn_is_on_again_after_an_error():
    ready = ready_for_inference(random_model(), torch.bfloat16)
    with pytest.raises(ValueError, match="ids must be in"):
        ready(torch.tensor([[VOCAB]]))
    assert torch.backends.mkldnn.enabled


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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_product_is_another(dtype):
    ready = ready_for_inference(random_model(), dtype)
    assert not [module for module in ready.modules() if isinstance(module, Conv1D)]
    assert isinstance(ready.head, nn.Module)


# The model it was made from


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_can_be_copied(dtype):
    ready, ids = ready_for_inference(random_model(), dtype), random_ids(1, 5)
    twin = copy.deepcopy(ready)
    assert torch.equal(twin(ids), ready(ids))
    assert torch.equal(twin(ids[:, :1]), ready(ids[:, :1]))
    assert twin.error == ready.error


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


@pytest.mark.parametrize("seq", [5, 20])
def test_the_error_is_measured_in_spreads(seq):
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


def test_nan_in_the_copy_alone_is_told(monkeypatch):
    model, ids = random_model(), random_ids(1, 5)
    with torch.no_grad():
        model.ln_f.weight.mul_(1e38)  # float32 has room for it
        model.wte.weight.mul_(1e-38)
    product = PRODUCTS[torch.float16]

    def overflowing(weight, bias):
        return product(weight if bias is not None else weight * torch.inf, bias)

    monkeypatch.setitem(PRODUCTS, torch.float16, overflowing)
    message = "with weights in torch.float16 the logits are NaN or infinite at 5 of 5 positions"
    with pytest.raises(ValueError, match=message):
        ready_for_inference(model, torch.float16, ids)


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
        (
            {"ids": torch.zeros(0, 5, dtype=torch.long)},
            ValueError,
            r"one position or more, got \(0",
        ),
        ({"ids": torch.zeros(1, 5)}, TypeError, "ids must be a tensor of int64 or int32, got"),
        ({"ids": torch.full((1, 5), VOCAB)}, ValueError, r"ids must be in \[0, 53\)"),
        (
            {"ids": torch.zeros(1, 30, dtype=torch.long)},
            ValueError,
            "the model has 29 positions, got a sequence of 30",
        ),
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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_made_by_hand_is_the_same(dtype):
    model, ids = random_model(), random_ids(2, 5)
    ready, by_hand = ready_for_inference(model, dtype, ids), GPT2ForInference(model, dtype, ids)
    assert by_hand.error == ready.error
    assert torch.equal(by_hand(ids), ready(ids))
    assert by_hand.config == model.config
    assert not isinstance(ready, GPT2)


def test_is_loaded_from_a_checkpoint(tmp_path):
    model, ids = random_model(), random_ids(2, 5)
    model.save_pretrained(tmp_path)
    loaded = GPT2ForInference.from_pretrained(tmp_path, torch.float16, ids)
    assert loaded.error == ready_for_inference(model, torch.float16, ids).error
    assert loaded.error.dtype == torch.float16


def test_hidden_states_and_logits_are_the_steps_of_forward():
    ready, ids = ready_for_inference(random_model()), random_ids(2, 5)
    hidden = ready.last_hidden_state(ids)
    assert hidden.shape == (2, 5, WIDTH)
    assert torch.equal(ready.logits(hidden), ready(ids))
    assert torch.equal(ready.head(hidden), ready(ids))
