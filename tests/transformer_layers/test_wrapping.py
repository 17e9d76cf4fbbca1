"""Layers whose parts others wrap: adapters of peft, parametrizations, hooks, fused norms."""

import copy
from collections.abc import Callable

import peft
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import fusion, parametrize

import transformer_layers as tl
from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    with_random_weights,
)
from tests.transformer_layers.layer_cases import CASES, LayerCase

pytestmark = [
    pytest.mark.usefixtures("as_users_run_it"),
    # peft says so of a layer although it was told what to do with it.
    pytest.mark.filterwarnings("ignore:Unsupported layer type.*Conv1D:UserWarning"),
]

BATCH, SEQ = 3, 5


def build(case: LayerCase) -> tuple[nn.Module, tuple[Tensor, ...]]:
    inputs = case.inputs(BATCH, SEQ)
    doubled = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    return with_random_weights(case.make()).double().eval(), doubled


def case_named(name: str) -> LayerCase:
    return next(case for case in CASES if case.name == name)


def parts_with_weights(layer: nn.Module, axes: int = 1) -> list[nn.Module]:
    parts = [part for part in layer.modules() if isinstance(getattr(part, "weight", None), Tensor)]
    return [part for part in parts if part.weight.ndim >= axes]


# Low-rank adapters

PARAMETERS = peft.LoraConfig(
    r=2,
    target_modules=[],
    target_parameters=["c_attn.weight", "c_proj.weight", "c_fc.weight"],
)
MODULES = peft.LoraConfig(r=2, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
MODULES._register_custom_module({tl.Conv1D: peft.tuners.lora.Linear})
LINEAR = peft.LoraConfig(r=2, target_modules="all-linear")

over_all_adapted = pytest.mark.parametrize(
    ("name", "config"),
    [
        pytest.param("TransformerEncoderLayer", LINEAR, id="TransformerEncoderLayer"),
        pytest.param("GPT2", PARAMETERS, id="GPT2, parameters"),
        pytest.param("GPT2", MODULES, id="GPT2, modules"),
    ],
)


def adapted(layer: nn.Module, config: peft.LoraConfig) -> peft.PeftModel:
    return peft.get_peft_model(layer, copy.deepcopy(config)).eval()


def with_random_adapters(model: peft.PeftModel) -> peft.PeftModel:
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=0.2)
    return model


@over_all_adapted
def test_merged_weights_are_the_adapted_layer(name, config):
    layer, inputs = build(case_named(name))
    keys = set(layer.state_dict())
    before = layer(*inputs)
    model = with_random_adapters(adapted(layer, config))
    expected = model(*inputs)
    assert relative_error(expected, before) > 1e-2
    merged = model.merge_and_unload()
    assert type(merged) is type(layer)
    assert set(merged.state_dict()) == keys
    assert_same([merged(*inputs)], [expected])


def test_float32_adapters_beside_bfloat16_weights():
    case, config = case_named("GPT2"), MODULES
    layer = with_random_weights(case.make()).bfloat16().eval()
    inputs = [x.bfloat16() if x.is_floating_point() else x for x in case.inputs(BATCH, SEQ)]
    expected = layer(*inputs)
    model = adapted(layer, config)
    adapters = {x.dtype for x in model.parameters() if x.requires_grad}
    assert adapters == {torch.float32}
    assert torch.equal(model(*inputs), expected)
    result = with_random_adapters(model)(*inputs)
    assert result.dtype == torch.bfloat16
    assert relative_error(result, expected) > 1e-2


@pytest.mark.parametrize(
    ("name", "config"),
    [("GPT2", MODULES), ("Llama", peft.LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))],
)
def test_an_adapter_is_saved_by_itself_or_merged(name, config, tmp_path):
    layer, (ids,) = build(case_named(name))
    fresh = copy.deepcopy(layer)
    model = with_random_adapters(adapted(layer, config)).eval()
    expected = model(ids)
    model.save_pretrained(tmp_path / "adapter")
    again = peft.PeftConfig.from_pretrained(tmp_path / "adapter")
    again._register_custom_module({tl.Conv1D: peft.tuners.lora.Linear})
    loaded = peft.PeftModel.from_pretrained(fresh, tmp_path / "adapter", config=again)
    assert_same([loaded.eval()(ids)], [expected])
    model.merge_and_unload().save_pretrained(tmp_path / "merged")
    assert_same([tl.load_model(tmp_path / "merged")(ids)], [expected])


# Parametrizations


class Twice(nn.Module):
    """Computes a weight anew at each call, and counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, weight: Tensor) -> Tensor:
        self.calls += 1
        return 2 * weight


@pytest.mark.parametrize("name", ["LayerNorm", "MultiHeadAttention", "GPT2", "Llama"])
def test_a_parametrized_weight(name):
    layer, inputs = build(case_named(name))
    doubled = copy.deepcopy(layer)
    with torch.no_grad():
        for part in parts_with_weights(doubled):
            part.weight.mul_(2)
    for part in parts_with_weights(layer):
        parametrize.register_parametrization(part, "weight", Twice())
    assert_same([layer(*inputs)], [doubled(*inputs)])
    repr(layer)


@pytest.mark.parametrize("name", ["MultiHeadAttention", "PositionwiseFeedForward", "GPT2Block"])
def test_a_matrix_is_computed_once_a_call(name):
    layer, inputs = build(case_named(name))
    matrices = parts_with_weights(layer, axes=2)
    counts = [Twice() for _ in matrices]
    for part, count in zip(matrices, counts, strict=True):
        parametrize.register_parametrization(part, "weight", count)
        count.calls = 0
    layer(*inputs)
    assert [count.calls for count in counts] == [1] * len(matrices)


# Hooks, and others in a part's place

PROJECTIONS = {
    "MultiHeadAttention": ["query_proj", "key_proj", "value_proj"],
    "Conv1D": [""],
    "GPT2Block": ["ln_1", "ln_2"],
}


def to_float32(part: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(x.float() for x in inputs)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_hook_may_convert_the_input_first(name):
    layer, inputs = build(case_named(name))
    expected = layer(*inputs)
    layer.float()
    with pytest.raises(TypeError, match=r"^\w+ is torch.float64 but the layer's parameters are"):
        layer(*inputs)
    for part in PROJECTIONS[name]:
        layer.get_submodule(part).register_forward_pre_hook(to_float32)
    assert relative_error(layer(*inputs), expected) <= 64 * unit_roundoff(torch.float32)


class InInt8(nn.Module):
    """A map by a weight of integers, which takes any floating dtype."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        weight = part.weight if isinstance(part, tl.Conv1D) else part.weight.T
        self.scale = weight.abs().max().item() / 127
        steps = (weight / self.scale).round().to(torch.int8)
        self.weight = nn.Parameter(steps, requires_grad=False)
        self.bias = part.bias

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.scale * self.weight.to(x.dtype)) + self.bias.to(x.dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "wrap"),
    [
        ("MultiHeadAttention", torch.float32, InInt8),
        ("FeedForward", torch.float64, nn.Sequential),
    ],
)
def test_another_module_in_a_projections_place(name, dtype, wrap: Callable[..., nn.Module]):
    layer, inputs = build(case_named(name))
    expected = layer(*inputs)
    layer.to(dtype)
    for part_name, part in list(layer.named_children()):
        if hasattr(part, "weight"):
            setattr(layer, part_name, wrap(part))
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    assert relative_error(layer(*inputs), expected) <= (1e-5 if wrap is nn.Sequential else 0.1)
    repr(layer)


# Norms fused into the map before them


def trained_batch_norm(features: int) -> tl.BatchNorm1d:
    norm = with_random_weights(tl.BatchNorm1d(features, eps=0.1)).double()
    nn.init.normal_(norm.running_mean)
    nn.init.uniform_(norm.running_var, 0.5, 2.0)
    return norm.eval()


def test_a_batch_norm_is_fused_into_the_linear_layer_before_it():
    linear, norm = nn.Linear(5, 7).double().eval(), trained_batch_norm(7)
    x = torch.randn(3, 5, dtype=torch.float64)
    fused = fusion.fuse_linear_bn_eval(linear, norm)
    assert_same([fused(x)], [norm(linear(x))])
