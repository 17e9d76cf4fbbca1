"""Right layers in forms that hold weights otherwise: none is condemned, or it is said why."""

import math
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.models.llama.modeling_llama import LlamaMLP

from layer_checks import Report, check
from layer_checks.diagnosis import diagnosis


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float) -> Tensor:
    """Attention of heads: each (..., heads, seq, d_k)."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        mask = mask.unsqueeze(-3) if mask.ndim > 2 and query.ndim > 3 else mask
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1).nan_to_num()
    return functional.dropout(weights, p) @ value


class OfHeads(nn.Module):
    """What the others derive from: `project` and `combine` are theirs."""

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        self.heads, self.width, self.p, self.biased = num_heads, d_model, dropout, bias
        self.make()

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        heads = (self.heads, -1)
        projected = [
            self.project(number, x).unflatten(-1, heads).transpose(-3, -2)
            for number, x in enumerate((query, key, value))
        ]
        y = attend(*projected, mask, self.p if self.training else 0.0)
        return self.project(3, y.transpose(-3, -2).flatten(-2))


class OneLinearAHead(OfHeads):
    def make(self) -> None:
        share = self.width // self.heads
        lists = [
            nn.ModuleList([nn.Linear(self.width, share, self.biased) for _ in range(self.heads)])
            for _ in range(3)
        ]
        self.q, self.k, self.v = lists
        self.o = nn.Linear(self.width, self.width, self.biased)

    def project(self, number: int, x: Tensor) -> Tensor:
        if number == 3:
            return self.o(x)
        return torch.cat([each(x) for each in (self.q, self.k, self.v)[number]], dim=-1)


class Convolutions(OfHeads):
    def make(self) -> None:
        made = (nn.Conv1d(self.width, self.width, 1, bias=self.biased) for _ in range(4))
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = made

    def project(self, number: int, x: Tensor) -> Tensor:
        return (self.conv_q, self.conv_k, self.conv_v, self.conv_o)[number](x.mT).mT


class WeightNorm(OfHeads):
    def make(self) -> None:
        made = (
            parametrizations.weight_norm(nn.Linear(self.width, self.width, self.biased))
            for _ in range(4)
        )
        self.query_proj, self.key_proj, self.value_proj, self.output_proj = made

    def project(self, number: int, x: Tensor) -> Tensor:
        parts = (self.query_proj, self.key_proj, self.value_proj, self.output_proj)
        return parts[number](x)


class NamesThatSayNothing(OfHeads):
    """Defined in another order than the book's."""

    def make(self) -> None:
        made = (nn.Linear(self.width, self.width, self.biased) for _ in range(4))
        self.one, self.two, self.three, self.four = made

    def project(self, number: int, x: Tensor) -> Tensor:
        return (self.three, self.two, self.four, self.one)[number](x)


class AxisOfHeads(OfHeads):
    """Weights of three axes, and biases of two, as in JAX."""

    def make(self) -> None:
        share = self.width // self.heads
        into, back = (self.width, self.heads, share), (self.heads, share, self.width)
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Parameter(torch.randn(shape)) for shape in (into, into, into, back)
        )
        biases = [(self.heads, share)] * 3 + [(self.width,)]
        self.b_q, self.b_k, self.b_v, self.b_o = (
            nn.Parameter(torch.zeros(shape)) if self.biased else None for shape in biases
        )

    def project(self, number: int, x: Tensor) -> Tensor:
        weight = (self.w_q, self.w_k, self.w_v, self.w_o)[number]
        bias = (self.b_q, self.b_k, self.b_v, self.b_o)[number]
        y = x @ (weight.flatten(1) if number < 3 else weight.flatten(0, 1))
        return y if bias is None else y + bias.flatten()


FORMS = (
    OneLinearAHead,
    Convolutions,
    WeightNorm,
    NamesThatSayNothing,
    AxisOfHeads,
)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_weights_is_matched(form: type[nn.Module]) -> None:
    report = check("MultiHeadAttention", form)
    assert report, report.all
    assert report.judged
    assert "parameters" not in {each.name for each in report.contract if not each.held}


@pytest.mark.parametrize("form", [OneLinearAHead, AxisOfHeads])
def test_a_wrong_layer_in_such_a_form_is_wrong(form: type[nn.Module]) -> None:
    class Unscaled(form):
        def project(self, number: int, x: Tensor) -> Tensor:
            y = super().project(number, x)
            return y * 1.5 if number == 0 else y

    report = check("MultiHeadAttention", Unscaled)
    assert not report
    assert "values" in {each.name for each in report.law if each.word == "failed"}, report.headline


def test_words_for_lists_and_axes() -> None:
    matching = check("MultiHeadAttention", OneLinearAHead).matching
    assert "q.* <- query_proj" in matching
    matching = check("MultiHeadAttention", AxisOfHeads).matching
    assert "w_q <- query_proj.weight (transposed, with an axis for the heads)" in matching


class Network(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.into, self.back, self.p = *self.made(d_model, d_ff), dropout

    def made(self, d_model: int, d_ff: int) -> tuple[nn.Module, nn.Module]:
        return nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        y = self.back(functional.relu(self.into(x)))
        return functional.dropout(y, self.p, self.training)


class Lazy(Network):
    def made(self, d_model: int, d_ff: int) -> tuple[nn.Module, nn.Module]:
        return nn.LazyLinear(d_ff), nn.LazyLinear(d_model)


class FormerWeightNorm(Network):
    def made(self, d_model: int, d_ff: int) -> tuple[nn.Module, nn.Module]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            into, back = super().made(d_model, d_ff)
            return nn.utils.weight_norm(into), nn.utils.spectral_norm(back)


class Unsure(Network):
    """A gain of its own, of which no form of the book's layer knows."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, d_ff, dropout)
        self.speed = nn.Parameter(torch.full((d_ff,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        y = self.back(functional.relu(self.into(x) * self.speed))
        return functional.dropout(y, self.p, self.training)


def test_lazy_parameters_get_their_shapes_from_a_call() -> None:
    report = check("PositionwiseFeedForward", Lazy)
    assert report, report.all
    assert "lazy: called once, so that its parameters have shapes" in report.notes


def test_norms_of_weights_are_taken_off() -> None:
    report = check("PositionwiseFeedForward", FormerWeightNorm)
    assert report, report.all
    assert "weights are parametrized: what is checked are the weights themselves" in report.notes


def half_built(d_model: int, eps: float = 1e-5, bias: bool = True) -> nn.Module:
    return nn.LayerNorm(d_model, eps, bias=bias).bfloat16()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("candidate", "note"),
    [
        (half_built, "parameters in bfloat16: they are converted to float32"),
        (lambda *args, **kwargs: torch.jit.script(nn.LayerNorm(*args, **kwargs)), ""),
        (lambda *args, **kwargs: torch.compile(nn.LayerNorm(*args, **kwargs)), ""),
    ],
    ids=["bfloat16", "scripted", "compiled"],
)
def test_a_norm_made_by_a_function(candidate: Callable[..., nn.Module], note: str) -> None:
    report = check("LayerNorm", candidate)
    assert report, report.all
    assert not note or note in report.notes


class TestRefusals:
    """What cannot be checked ends in one sentence with a remedy."""

    def sentence(self, report: Report) -> str:
        assert not report
        assert "the law could not be judged" in report.headline
        return report.results[0].text

    def test_a_lazy_module(self) -> None:
        module = nn.Sequential(nn.LazyLinear(10), nn.ReLU(), nn.LazyLinear(6))
        assert self.sentence(check("PositionwiseFeedForward", module)) == (
            "its lazy parameters have no shape yet: call it once on an input, then check it"
        )

    def test_a_configuration_that_asks_for_more(self) -> None:
        class Configured(nn.Module):
            def __init__(self, config: object) -> None:
                super().__init__()
                self.groups = config.number_of_groups

        assert self.sentence(check("LayerNorm", Configured)) == (
            "AttributeError: the configuration has no 'number_of_groups': pass a function that "
            "takes our arguments, and builds it"
        )

    def test_what_cannot_be_adapted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*args: object, **kwargs: object) -> None:
            raise KeyError("speed")

        monkeypatch.setattr(diagnosis, "matches", broken)
        report = check("PositionwiseFeedForward", Unsure)
        assert not report
        assert report.notes == (
            "it could not be adapted, KeyError: 'speed': pass a function that builds it",
        )

    def test_weights_of_which_nobody_knows_which_is_which(self) -> None:
        report = check("PositionwiseFeedForward", Unsure)
        assert not report
        assert not report.judged
        assert report.headline == (
            "PositionwiseFeedForward: the law could not be judged: it is not known which weight "
            "is which"
        )
        assert report.behaves_like is None
        assert not [each.name for each in report.law if each.word == "failed"]
        assert report.names_line.startswith(
            'check("PositionwiseFeedForward", Unsure, names={"linear1.weight": "into.weight", '
        )
        assert report.names_line in repr(report)


def test_attention_that_its_model_masks() -> None:
    def build(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        config = GPT2Config(
            n_embd=d_model,
            n_head=num_heads,
            attn_pdrop=dropout,
            resid_pdrop=dropout,
            attn_implementation="eager",
        )
        return GPT2Attention(config, layer_idx=0)

    report = check("CausalSelfAttention", build)
    assert report, report.all
    assert "it is given a causal mask of 0 and -inf, as its model gives one" in report.notes


def test_a_part_of_transformers_gets_the_flags_of_its_own_configuration() -> None:
    assert check("GatedFeedForward", LlamaMLP)


class PaddingAlone(nn.Module):
    """An encoder layer whose only mask is one of padding, of which True blocks."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, dropout, batch_first=True)

    def forward(self, src: Tensor, src_key_padding_mask: Tensor | None = None) -> Tensor:
        return self.inner(src, src_key_padding_mask=src_key_padding_mask)


def test_a_mask_of_padding_alone() -> None:
    report = check("TransformerEncoderLayer", PaddingAlone)
    assert "the mask is one of padding, for each key: True blocks" in report.notes
    assert {each.text for each in report.law if not each.asked} == {
        "its mask is one of padding alone"
    }
    assert not [each.name for each in report.law if each.word == "failed"]


class KeptAlone(PaddingAlone):
    """True in its mask keeps a token, and no number will do."""

    def forward(self, src: Tensor, attention_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]  # another name
        hidden = None if attention_mask is None else attention_mask.logical_not()
        if attention_mask is not None and attention_mask.dtype != torch.bool:
            raise TypeError("a mask of True and False is wanted")
        return self.inner(src, src_key_padding_mask=hidden)


class KeptByItsName(PaddingAlone):
    """Its mask has torch's name for one in which True blocks; here it keeps."""

    def forward(self, src: Tensor, src_key_padding_mask: Tensor | None = None) -> Tensor:
        hidden = None if src_key_padding_mask is None else ~src_key_padding_mask
        return self.inner(src, src_key_padding_mask=hidden)


def test_a_mask_of_padding_in_which_true_keeps() -> None:
    report = check("TransformerEncoderLayer", KeptAlone)
    assert "the mask is one of padding, for each key: True keeps" in report.notes
    assert not [each.name for each in report.law if each.word == "failed"]


def test_a_mask_with_torchs_name_may_not_keep() -> None:
    assert "padding" in {
        each.name
        for each in check("TransformerEncoderLayer", KeptByItsName).law
        if each.word == "failed"
    }


class TestNamesOnly:
    def test_an_assertion_in_place_of_a_value_error(self) -> None:
        class Asserting(NamesThatSayNothing):
            def __init__(self, d_model: int, num_heads: int, *args: float, **kwargs: float):
                assert d_model % num_heads == 0
                super().__init__(d_model, num_heads, *args, **kwargs)

        report = check("MultiHeadAttention", Asserting)
        assert {"parameters", "uneven heads"} <= {each.name for each in report.names}
        assert "other names in" in report.headline

    def test_other_arguments_and_parameters(self) -> None:
        class Gamma(nn.Module):
            def __init__(self, dim: int, eps: float = 1e-5, bias: bool = True) -> None:
                super().__init__()
                self.gamma = nn.Parameter(torch.ones(dim))
                self.beta = nn.Parameter(torch.zeros(dim)) if bias else None
                self.eps = eps

            def forward(self, x: Tensor) -> Tensor:
                return functional.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.eps)

        report = check("LayerNorm", Gamma)
        assert {each.name: each.text for each in report.names} == {
            "parameters": "no weight, no bias, unknown gamma, unknown beta"
        }
        assert "the contract" not in report.headline
