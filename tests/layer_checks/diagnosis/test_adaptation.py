"""Layers of others, as they are: what differs in form is adapted and said, and the law holds."""

import re
import signal
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.pytorch_utils import Conv1D

from layer_checks import Report, check
from transformer_layers import CausalSelfAttention

# Statements about names and refusals, which belong to the contract.
CONTRACT = {
    "parameters",
    "state",
    "initial values",
    "uneven heads",
    "nothing allowed",
    "mask of numbers",
    "cache",
    "one sequence",
    "not contiguous",
    "leading axes",
    "empty batch",
}


def broken(report: Report) -> list[str]:
    """The names of what fails of the law."""
    return [result.name for result in report.law if not result.held and result.name not in CONTRACT]


def said(report: Report) -> str:
    return re.sub(r"\n {8}", " ", repr(report))


def test_a_norm_that_computes_in_float32_is_right() -> None:
    report = check("RMSNorm", LlamaRMSNorm)
    assert report
    assert report.in_single
    assert "computes in float32" in report.headline
    assert "held    values: equal, tolerance 2e-06 of the largest" in report.all


def test_what_is_wrong_in_float32_stays_wrong() -> None:
    class Uncentred(LlamaRMSNorm):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 1e-4

    report = check("RMSNorm", Uncentred)
    assert not report
    assert "values" in broken(report)


def test_float32_is_no_excuse_for_what_computes_in_float64() -> None:
    class SlightlyOff(nn.RMSNorm):
        def __init__(self, d_model: int, eps: float = 1e-6) -> None:
            super().__init__(d_model, eps)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 1e-8

    report = check("RMSNorm", SlightlyOff)
    assert not report
    assert not report.in_single


def test_attention_of_torch() -> None:
    report = check("MultiHeadAttention", nn.MultiheadAttention)
    assert broken(report) == []
    assert report.matching == (
        "by order: in_proj <- query_proj + key_proj + value_proj (packed), out_proj <- output_proj"
    )
    assert "built with embed_dim for d_model, batch_first=True" in report.notes
    assert "it returns a tuple, of which the first tensor is taken" in report.notes
    assert "the mask is inverted, one for each head: True blocks" in report.notes
    assert [result.name for result in report.contract if not result.held][-1] == "arguments"


def test_a_linear_layer_holds_its_weight_transposed() -> None:
    report = check("Conv1D", nn.Linear)
    assert broken(report) == []
    assert report.matching == "by order: weight <- weight (transposed)"


def test_the_conv1d_of_transformers_takes_its_sizes_the_other_way_round() -> None:
    report = check("Conv1D", Conv1D)
    assert broken(report) == []
    assert "built with nf for out_features, nx for in_features" in report.notes


def test_attention_of_transformers() -> None:
    def build(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        config = GPT2Config(
            n_embd=d_model,
            n_head=num_heads,
            attn_pdrop=dropout,
            resid_pdrop=dropout,
            attn_implementation="sdpa",
        )
        return GPT2Attention(config, layer_idx=0)

    report = check("CausalSelfAttention", build)
    assert broken(report) == []
    assert "it returns a tuple, of which the first tensor is taken" in report.notes


class Gain(nn.Module):
    """Weights in another order, with names that the book does not have, and no bias argument."""

    def __init__(self, n: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.beta, self.gain = nn.Parameter(torch.zeros(n)), nn.Parameter(torch.ones(n))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], self.gain, self.beta, self.eps)


def test_a_gain_and_a_shift_in_another_order() -> None:
    report = check("LayerNorm", Gain)
    assert report.matching == "by order: beta <- bias, gain <- weight"
    assert broken(report) == []
    assert "built with n for d_model" in report.notes


class Hard(nn.Module):
    """An eps that is written into the formula."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, 1e-6)


def test_an_eps_that_nobody_can_set_is_taken_as_it_is() -> None:
    report = check("LayerNorm", Hard)
    assert report
    assert "it takes no eps: where values are compared, its own is taken" in report.notes
    assert {"values", "gradients"} <= {result.name for result in report.law if result.held}
    texts = {result.name: result.word for result in report.results}
    assert texts["large mean"] == "unasked"
    assert texts["default eps"] == "failed"


def test_names_given_by_hand() -> None:
    report = check("LayerNorm", Gain, names={"weight": "gain", "bias": "beta"})
    assert report.matching == "names=: gain <- weight, beta <- bias"
    assert broken(report) == []
    # A wrong mapping is what was asked for.
    assert "values" in broken(check("LayerNorm", Gain, names={"weight": "beta", "bias": "gain"}))


def test_wrong_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"names= has \['gain'\]; the weights of the book: \['b"):
        check("LayerNorm", Gain, names={"gain": "gain"})
    with pytest.raises(ValueError, match=r"names= has \['scale'\]; the layer's parameters: \['b"):
        check("LayerNorm", Gain, names={"weight": "scale"})


class Packed(nn.Module):
    """Key, query and value of one nn.Linear, in this order."""

    def __init__(self, dim: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)

    def parts(self, x: Tensor) -> list[Tensor]:
        key, query, value = self.to_qkv(x).chunk(3, dim=-1)
        heads = (self.heads, -1)
        return [each.unflatten(-1, heads).transpose(-3, -2) for each in (query, key, value)]

    def forward(self, x: Tensor) -> Tensor:
        p = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(*self.parts(x), is_causal=True, dropout_p=p)
        return functional.dropout(self.to_out(y.transpose(-3, -2).flatten(-2)), p)


def test_packed_projections_are_found_by_trying() -> None:
    report = check("CausalSelfAttention", Packed)
    assert broken(report) == []
    order = "key of c_attn + query of c_attn + value of c_attn (transposed, packed)"
    assert f"to_qkv <- {order}" in report.matching
    assert "without c_attn.bias, taken as 0" in report.matching


def test_a_packed_layer_that_is_wrong_is_not_made_right() -> None:
    class Unscaled(Packed):
        def parts(self, x: Tensor) -> list[Tensor]:
            query, key, value = super().parts(x)
            return [2 * query, key, value]

    report = check("CausalSelfAttention", Unscaled)
    assert {"values", "gradients"} <= set(broken(report))


class Configured(nn.Module):
    """Sizes from a configuration, arguments as in nanoGPT."""

    def __init__(self, config: object) -> None:
        super().__init__()
        width = config.n_embd
        self.inner = CausalSelfAttention(width, config.n_head, config.dropout)
        self.register_buffer("seen", torch.ones(config.block_size), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def test_a_configuration_is_made() -> None:
    report = check("CausalSelfAttention", Configured)
    assert broken(report) == []
    assert "built with a config that has the sizes under each name" in report.notes
    assert (
        report.matching == "by order: inner.c_attn <- query of c_attn + key of c_attn + value "
        "of c_attn (packed), inner.c_proj <- c_proj"
    )


class ValuesFirst(nn.Module):
    """Arguments in the order of values, keys, query."""

    def __init__(self, embed_size: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_size, heads, batch_first=True)

    def forward(self, values: Tensor, keys: Tensor, query: Tensor, mask: Tensor) -> Tensor:
        blocked = None if mask is None else ~mask.bool()
        if blocked is not None and blocked.ndim == 3:
            shape = (len(query), query.shape[1], keys.shape[1])
            heads = self.attention.num_heads
            blocked = blocked.expand(shape).repeat_interleave(heads, dim=0)
        return self.attention(query, keys, values, attn_mask=blocked)[0]


def test_arguments_are_given_by_name_whatever_their_order() -> None:
    report = check("MultiHeadAttention", ValuesFirst)
    assert {result.name for result in report.law if result.word == "failed"} <= CONTRACT
    unasked = [result for result in report.law if not result.asked]
    assert "it takes no dropout" in unasked[-1].text
    assert "called with values for value, keys for key" in report.notes


class TestInstances:
    def test_at_its_own_sizes_and_anew(self) -> None:
        instance = nn.LayerNorm(7, eps=1e-3)
        weight = nn.init.normal_(instance.weight).clone()
        report = check("LayerNorm", instance)
        assert report
        assert [result.name for result in report.results[:3]] == [
            "values at its own sizes",
            "gradients at its own sizes",
            "parameters",
        ]
        assert torch.equal(instance.weight, weight)

    def test_a_wrong_instance_of_a_right_class(self) -> None:
        instance = nn.MultiheadAttention(8, 2, batch_first=True)
        instance.head_dim, instance.num_heads = 2, 4
        instance.forward = lambda query, key, value: (
            2 * nn.MultiheadAttention.forward(instance, query, key, value)[0]
        )
        assert not check("MultiHeadAttention", instance)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_scripted(self) -> None:
        report = check("LayerNorm", torch.jit.script(nn.LayerNorm(8)))
        assert report, report
        assert report.not_run >= 8
        assert repr(report).count("not run") == 1
        assert "its class cannot be built anew: pass a function that builds it" in report.notes


def gelu(x: Tensor) -> Tensor:
    return functional.gelu(x)


def edits(x: Tensor) -> Tensor:
    y = functional.gelu(x.clone())
    x.zero_()
    return y


def prints(x: Tensor) -> Tensor:
    print("step")
    return functional.gelu(x)


def never(x: Tensor) -> Tensor:
    while True:
        try:
            signal.raise_signal(signal.SIGALRM)  # the time is over while it computes
        except Exception:
            continue


class Halt(BaseException):
    pass


def halts(x: Tensor) -> Tensor:
    raise Halt("enough")


class TestWhatAFunctionMayDo:
    def test_numpy(self) -> None:
        report = check("gelu", lambda x: np.asarray(functional.gelu(x).detach().double()))
        assert not report
        assert "it returns an array of numpy, which has no gradient" in report.notes

    def test_an_input_that_is_edited(self) -> None:
        report = check("gelu", edits)
        assert report
        assert "it changes its input: it is given copies" in report.notes
        assert "input unchanged" in [each.name for each in report.failed]

    def test_printing(self, capsys: pytest.CaptureFixture[str]) -> None:
        report = check("gelu", prints)
        assert report
        assert capsys.readouterr().out == ""
        assert re.search(r"note    prints \d+ lines, not shown", repr(report))

    def test_an_end_of_the_program(self) -> None:
        report = check("gelu", lambda x: sys.exit("bye"))
        assert not report
        assert said(report).splitlines()[:2] == [
            "gelu: the law could not be judged",
            "failed  gelu(x): SystemExit: bye",
        ]
        assert "failed  gelu(x): Halt: enough" in repr(check("gelu", halts))

    @pytest.mark.parametrize("end", [SystemExit(3), Halt("enough")])
    def test_an_end_of_the_program_in_a_layer(self, end: BaseException) -> None:
        class Ends(nn.LayerNorm):
            def forward(self, input: Tensor) -> Tensor:
                raise end

        report = check("LayerNorm", Ends)
        assert not report
        assert f"{type(end).__name__}: {end}" in repr(report)
        compiled = torch.compile(gelu, fullgraph=True, backend="eager")
        assert compiled(torch.ones(2)).equal(gelu(torch.ones(2)))  # nothing still watches torch

    @pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no such signal")
    def test_no_answer(self) -> None:
        calls = []

        def counted(x: Tensor) -> Tensor:
            calls.append(x)
            return never(x)

        report = check("gelu", counted, timeout=1000)
        assert len(calls) == 1  # one limit for all that is asked
        assert not report
        assert "failed  gelu(x): no answer within 1000 s" in repr(report)

    def test_a_user_can_interrupt(self) -> None:
        def interrupted(x: Tensor) -> Tensor:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            check("gelu", interrupted)


def test_a_time_limit_is_above_0() -> None:
    with pytest.raises(ValueError, match=r"^timeout must be above 0, got 0$"):
        check("gelu", gelu, timeout=0)
