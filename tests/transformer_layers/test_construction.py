"""How each layer is made: where, of which dtype, and again on the same memory."""

import inspect

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import transformer_layers as tl

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LAYERS = {
    tl.LayerNorm: (6,),
    tl.RMSNorm: (6,),
    tl.BatchNorm1d: (6,),
    tl.Conv1D: (6, 4),
    tl.MultiHeadAttention: (6, 2),
    tl.PositionwiseFeedForward: (6, 4),
    tl.TransformerEncoderLayer: (6, 2, 4),
    tl.PreNormTransformerEncoderLayer: (6, 2, 4),
    tl.TransformerDecoderLayer: (6, 2, 4),
    tl.PreNormTransformerDecoderLayer: (6, 2, 4),
    tl.FeedForward: (6, 4),
    tl.CausalSelfAttention: (6, 2),
    tl.GPT2Block: (6, 2),
    tl.LlamaRMSNorm: (6,),
    tl.GemmaRMSNorm: (6,),
    tl.GatedFeedForward: (6, 4),
    tl.PackedGatedFeedForward: (6, 4),
    tl.MixtureOfExperts: (6, 4, 3, 2),
    tl.TopKRouter: (6, 3, 2),
    tl.SigmoidRouter: (6, 3, 2),
    tl.GroupedQueryAttention: (6, 2, 1),
    tl.MultiHeadLatentAttention: (6, 2, 5, 3, 2, 4, 7, tl.RotaryPositions(2)),
}
WITHOUT_PARAMETERS_OR_MADE_OF_ANOTHER = {
    tl.Dropout,
    tl.GPT2,
    tl.GPT2ForInference,
    tl.Gemma3,
    tl.LlamaBlock,
    tl.LlamaForInference,
    tl.Llama,
    tl.RotaryPositions,
    tl.Transformer,
    tl.TransformerDecoder,
    tl.TransformerEncoder,
}

over_all_layers = pytest.mark.parametrize(
    ("kind", "sizes"), [pytest.param(*item, id=item[0].__name__) for item in LAYERS.items()]
)


def floating_tensors(layer: nn.Module) -> dict[str, torch.Tensor]:
    return {name: x for name, x in layer.state_dict().items() if x.is_floating_point()}


def assert_same_state(actual: nn.Module, expected: nn.Module) -> None:
    assert list(actual.state_dict()) == list(expected.state_dict())
    for name, tensor in expected.state_dict().items():
        assert torch.equal(actual.state_dict()[name], tensor), name


def test_device_and_dtype_come_last_and_by_name():
    public = [getattr(tl, name) for name in tl.__all__]
    layers = {each for each in public if isinstance(each, type) and issubclass(each, nn.Module)}
    left_out = layers - WITHOUT_PARAMETERS_OR_MADE_OF_ANOTHER - LAYERS.keys()
    assert not left_out, f"say in {__file__} with which sizes they are built"
    for kind in LAYERS:
        *_, device, dtype = inspect.signature(kind).parameters.values()
        assert [device.name, dtype.name] == ["device", "dtype"]
        for parameter in (device, dtype):
            assert parameter.kind == parameter.KEYWORD_ONLY
            assert parameter.default is None


@over_all_layers
def test_reset_after_meta_is_construction(kind, sizes):
    torch.manual_seed(1)
    expected = kind(*sizes)
    with torch.device("meta"):
        layer = kind(*sizes)
    assert all(tensor.is_meta for tensor in layer.state_dict().values())
    layer.to_empty(device="cpu")
    with torch.no_grad():
        for tensor in layer.state_dict().values():
            tensor.fill_(7)
    parameters = list(layer.parameters())
    torch.manual_seed(1)
    layer.reset_parameters()
    assert_same_state(layer, expected)
    assert all(a is b for a, b in zip(layer.parameters(), parameters, strict=True))


@over_all_layers
def test_the_device_and_the_dtype_of_every_tensor_from_the_start(kind, sizes):
    layer = kind(*sizes, device="meta")
    assert all(x.is_meta for x in (*layer.state_dict().values(), *layer.buffers()))
    made = set()

    class Recording(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            made.add(result.dtype)
            return result

    for dtype in (torch.bfloat16, torch.float64):
        made.clear()
        with Recording():
            layer = kind(*sizes, dtype=dtype)
        assert made <= {dtype, torch.int64}
        assert {x.dtype for x in floating_tensors(layer).values()} == {dtype}


@over_all_layers
def test_the_default_dtype_where_none_is_given(kind, sizes):
    torch.set_default_dtype(torch.float64)
    try:
        assert {x.dtype for x in floating_tensors(kind(*sizes)).values()} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)


@over_all_layers
def test_a_dtype_that_is_not_floating(kind, sizes):
    with pytest.raises(TypeError, match=r"^dtype must be a floating one, got torch\.int64$"):
        kind(*sizes, dtype=torch.int64)
