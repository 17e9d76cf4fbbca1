"""The probes of how a layer gets on with torch: what they see, and what they leave alone."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from layer_checks import check
from layer_checks.diagnosis import diagnosis
from layer_checks.diagnosis.mistake_matching import Mistakes
from layer_checks.evidence.evidence import Evidence
from layer_checks.kit import protocol_probes
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.probes import PROBES
from layer_checks.registry import LAYERS
from transformer_layers import (
    GPT2,
    Conv1D,
    GPT2Config,
    LayerNorm,
    MultiHeadAttention,
    PositionwiseFeedForward,
    gelu,
)

pytestmark = pytest.mark.usefixtures("as_users_run_it")
HERE = {name for name, each in PROBES.items() if each.run.__module__ == protocol_probes.__name__}


def run(name: str, layer: str, candidate: Candidate) -> Evidence:
    """Runs one probe on a candidate."""
    (probe,) = (each for each in LAYERS[layer].checks if each.name == name and each.generic)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return probe.run(candidate)


def test_every_layer_is_asked_what_it_can_be_asked() -> None:
    asked = {
        name: {each.name for each in layer.checks if each.generic} & HERE
        for name, layer in LAYERS.items()
    }
    of_functions = {"input of another layer", "gradient of the gradient", "zeros"}
    of_functions |= {"mapped over an axis", "autocast"}
    assert asked["MultiHeadAttention"] == HERE - {"zeros", "fewer and more axes"}
    assert asked["LayerNorm"] == HERE - {"zeros", "one tensor for several", "parts called"}
    assert asked["CausalSelfAttention"] == HERE - {"zeros", "one tensor for several", "moved"}
    assert asked["gelu"] == of_functions | {"fewer and more axes"}
    assert "fewer and more axes" not in asked["BatchNorm1d"]  # whose second axis are the features
    assert asked["attention_weights"] == of_functions | {"one tensor for several"}
    assert asked["l1_penalty"] == {
        "input of another layer",
        "one tensor for several",
        "gradient of the gradient",
    }
    # Its input is whole numbers; it knows the device of what it makes.
    assert asked["GPT2"] == {
        "mapped over an axis",
        "autocast",
        "parts called",
        "weights put in place",
        "pickled",
        "parameters kept",
    }
    assert asked["smoothed_cross_entropy"] == {"input of another layer", "gradient of the gradient"}
    assert asked["padding_mask"] == asked["causal_mask"] == set()


@pytest.mark.parametrize(
    ("layer", "candidate"),
    [
        ("LayerNorm", nn.LayerNorm),
        ("LayerNorm", nn.LayerNorm(8)),
        ("RMSNorm", nn.RMSNorm),
        ("BatchNorm1d", nn.BatchNorm1d),
        ("MultiHeadAttention", nn.MultiheadAttention),
        ("MultiHeadAttention", nn.MultiheadAttention(16, 4, batch_first=True)),
        ("TransformerEncoderLayer", nn.TransformerEncoderLayer),
        ("PreNormTransformerEncoderLayer", partial(nn.TransformerEncoderLayer, norm_first=True)),
        ("TransformerDecoderLayer", nn.TransformerDecoderLayer),
        ("Conv1D", nn.Linear),
        ("Dropout", nn.Dropout),
        ("gelu", functional.gelu),
        ("gelu", nn.GELU),
        ("soft_threshold", lambda x, threshold: functional.softshrink(x, threshold)),
        ("scaled_dot_product_attention", functional.scaled_dot_product_attention),
    ],
)
def test_layers_of_torch_fail_none_of_them(
    layer: str, candidate: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "known_mistakes", lambda *_, **__: Mistakes())  # slow
    report = check(layer, candidate)
    assert HERE & {result.name for result in report.results}
    assert [result for result in report.failed if result.name in HERE] == []


class SelfAttentionAssumed(MultiHeadAttention):
    """Takes value for what query and key are, once they are one tensor."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        return super().forward(query, key, query if query is key else value, mask)


class QueryLeftOut(MultiHeadAttention):
    """Takes query for what key and value are, once they are one tensor."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        return super().forward(key if key is value else query, key, value, mask)


@pytest.mark.parametrize("wrong", [SelfAttentionAssumed, QueryLeftOut])
def test_which_arguments_are_one_tensor_does_not_matter(wrong: Candidate) -> None:
    report = check("MultiHeadAttention", wrong)
    assert [result.name for result in report.failed] == ["one tensor for several"]


def test_an_input_that_is_a_parameter_is_an_input() -> None:
    def frozen(x: Tensor) -> Tensor:
        return gelu(x.detach() if isinstance(x, nn.Parameter) else x)

    def views_cut(x: Tensor) -> Tensor:
        return gelu(x.detach() if x._is_view() else x)

    for wrong in (frozen, views_cut):
        with pytest.raises(AssertionError, match="does not depend on the input"):
            run("input of another layer", "gelu", wrong)


def test_two_axes_are_asked_for_as_well_as_four() -> None:
    def of_three_or_more(x: Tensor) -> Tensor:
        return gelu(x if x.ndim > 2 else x[None])

    with pytest.raises(AssertionError, match="not equal: "):
        run("fewer and more axes", "gelu", of_three_or_more)


class _Once(torch.autograd.Function):
    """GELU, which refuses to be differentiated twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return gelu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        cumulative = 0.5 * (1 + torch.erf(x / 2**0.5))
        density = torch.exp(-0.5 * x.square()) / (2 * torch.pi) ** 0.5
        return gradient * (cumulative + x * density)


class _EditsWhatItSaved(torch.autograd.Function):
    """Twice the input, and a gradient that is twice as large each time."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.factor = torch.tensor(2.0, dtype=x.dtype)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        result = ctx.factor * gradient
        ctx.factor.mul_(2)
        return result


def test_a_layer_may_refuse_to_be_differentiated_twice_but_not_be_wrong_the_second_time() -> None:
    evidence = run("gradient of the gradient", "gelu", lambda x: _Once.apply(x))
    assert evidence.text == "holds: it refuses to be differentiated twice"
    with pytest.raises(AssertionError, match="not equal: largest difference"):
        run("gradient of the gradient", "gelu", lambda x: gelu(_EditsWhatItSaved.apply(x) / 2))


def test_values_that_are_asked_for_cannot_be_mapped() -> None:
    class Scaled(LayerNorm):
        def forward(self, x: Tensor) -> Tensor:
            largest = x.abs().max().item() or 1.0
            return super().forward(x) * (largest / largest)

    with pytest.raises(RuntimeError, match="vmap"):
        run("mapped over an axis", "LayerNorm", Scaled)


def test_what_is_written_at_places_of_another_dtype_is_refused_under_autocast() -> None:
    class InPlaces(PositionwiseFeedForward):
        def forward(self, x: Tensor) -> Tensor:
            result = torch.zeros_like(x)
            result[torch.ones(x.shape[:-1], dtype=torch.bool)] = super().forward(x).flatten(0, -2)
            return result

    with pytest.raises(RuntimeError, match="destination dtypes match"):
        run("autocast", "PositionwiseFeedForward", InPlaces)


def test_a_part_that_is_not_called_is_named() -> None:
    class ByItsWeight(MultiHeadAttention):
        def forward(self, *args: Any, **kwargs: Any) -> Tensor:
            part = self.output_proj
            self._modules["output_proj"] = nn.Identity()
            try:
                joined = super().forward(*args, **kwargs)
            finally:
                self._modules["output_proj"] = part
            return functional.linear(joined, part.weight, part.bias)

    with pytest.raises(
        AssertionError, match=r"^not equal: no call of output_proj, whose hooks wait$"
    ):
        run("parts called", "MultiHeadAttention", ByItsWeight)


def test_the_parts_of_torchs_modules_are_torchs() -> None:
    class Wrapped(nn.Module):
        """Holds `nn.MultiheadAttention`, which uses the weight of its `out_proj` by itself."""

        def __init__(self, d_model: int, num_heads: int, **_: Any) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

        def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
            return self.inner(query, key, value)[0]

    evidence = run("parts called", "MultiHeadAttention", Wrapped)
    assert evidence.text == "holds: 1 parts are called"


def test_a_head_that_is_tied_once_is_stale_after_other_weights_were_assigned() -> None:
    class TiedOnce(GPT2):
        def __init__(self, config: GPT2Config) -> None:
            super().__init__(config)
            self.heads = [self.wte.weight]

        def logits(self, hidden_state: Tensor) -> Tensor:
            return hidden_state @ self.heads[0].T

    with pytest.raises(AssertionError, match="not equal: largest difference"):
        run("weights put in place", "GPT2", TiedOnce)
    run("copies", "GPT2", TiedOnce)


def test_a_class_may_be_defined_anywhere_and_what_it_holds_must_be_picklable() -> None:
    class Local(LayerNorm):
        """As it is."""

    class Locked(LayerNorm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.lock = threading.Lock()

    run("pickled", "LayerNorm", Local)
    with pytest.raises(AssertionError, match=r"^not equal: cannot pickle .*lock"):
        run("pickled", "LayerNorm", Locked)


def test_what_torch_itself_does_not_pickle_is_left_to_torch() -> None:
    class Normed(Conv1D):
        def __init__(self, in_features: int, out_features: int) -> None:
            super().__init__(in_features, out_features)
            nn.utils.parametrizations.weight_norm(self)

    evidence = run("pickled", "Conv1D", Normed)
    assert evidence.text == "holds: torch itself pickles no parametrized module"


def test_what_is_left_out_of_a_pickle_is_missed() -> None:
    class Forgets(LayerNorm):
        def __getstate__(self) -> dict[str, Any]:
            return self.__dict__ | {"eps": 1.0}

    with pytest.raises(AssertionError, match="not equal: largest difference"):
        run("pickled", "LayerNorm", Forgets)


def test_a_call_may_not_thaw_what_is_frozen() -> None:
    class Thaws(Conv1D):
        def forward(self, x: Tensor) -> Tensor:
            self.bias.requires_grad_(True)
            return super().forward(x)

    with pytest.raises(
        AssertionError, match=r"^not equal: bias: another object, or no longer frozen$"
    ):
        run("parameters kept", "Conv1D", Thaws)


def _holding(change: Callable[[Tensor, Tensor], Tensor]) -> Candidate:
    class Holding(LayerNorm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.tables = {"ones": torch.ones(1)}

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(change(x, self.tables["ones"]))

    return Holding


def test_a_tensor_that_is_moved_in_each_call_is_not_left_behind() -> None:
    run("moved", "LayerNorm", _holding(lambda x, ones: x * ones.to(x)))
    with pytest.raises(AssertionError, match=r"^not equal: .*device"):
        run("moved", "LayerNorm", _holding(lambda x, ones: x * ones))


def test_a_right_layer_with_other_habits_passes() -> None:
    class Checkpointed(PositionwiseFeedForward):
        """Makes its hidden state anew in the backward pass, and keeps a tensor of counts."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)

    report = check("PositionwiseFeedForward", Checkpointed)
    assert report
    assert [result for result in report.failed if result.name in HERE] == []
