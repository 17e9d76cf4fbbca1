"""Right layers of torch and transformers, as a user hands them to `check`.

A class that is built as ours is handed over as it stands. Of another, a small function builds it
from our arguments, with what our layer has not, such as a second dropout, turned off. The survey
has those of other works.
"""

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Build = Callable[[], Any]

# For each name, the layer of ours that it is, and what imports it and gives what `check` is handed.
RIGHT: dict[str, tuple[str, Build]] = {}


def right(layer: str, name: str) -> Callable[[Build], Build]:
    """Declares a function that gives a right layer; its docstring tells what is peculiar in it."""

    def add(build: Build) -> Build:
        RIGHT[name] = layer, build
        return build

    return add


# Handed over as they stand, beside those of tests/layer_checks/test_torch_layers.py.
AS_THEY_STAND = {
    "gelu": ("torch.nn.GELU",),
    "gelu_tanh": (
        "transformers.activations.NewGELUActivation",
        "transformers.activations.AccurateGELUActivation",
    ),
    "soft_threshold": ("torch.nn.functional.softshrink",),
    "BatchNorm1d": ("torch.nn.BatchNorm1d",),
    "LayerNorm": ("transformers.models.convnext.modeling_convnext.ConvNextLayerNorm",),
    "RMSNorm": ("torch.nn.RMSNorm", "transformers.models.olmo2.modeling_olmo2.Olmo2RMSNorm"),
    "LlamaRMSNorm": (
        "transformers.models.llama.modeling_llama.LlamaRMSNorm",
        "transformers.models.t5.modeling_t5.T5LayerNorm",
    ),
    "GemmaRMSNorm": ("transformers.models.gemma.modeling_gemma.GemmaRMSNorm",),
}


def _from(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


for _layer, _paths in AS_THEY_STAND.items():
    for _path in _paths:
        _module, _, _name = _path.rpartition(".")
        right(_layer, _path)(partial(_from, _module, _name))


# torch.


@right("gelu_tanh", "torch.nn.GELU(approximate='tanh')")
def _gelu_tanh() -> Any:
    """An instance of a class, where ours is a function."""
    return nn.GELU(approximate="tanh")


@right("BatchNorm1d", "torch.nn.LazyBatchNorm1d")
def _lazy_batch_norm() -> Any:
    """A lazy module, which learns the number of channels at its first call."""

    def make(num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> nn.Module:
        return nn.LazyBatchNorm1d(eps, momentum)

    return make


@right("MultiHeadAttention", "torch.nn.MultiheadAttention(batch_first=True)")
def _multi_head() -> Any:
    """Packed weights, True for blocked keys, and a tuple of output and mean weights."""

    def make(d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> nn.Module:
        return nn.MultiheadAttention(d_model, num_heads, dropout, bias, batch_first=True)

    return make


def _of_torch(kind: Any, norm_first: bool) -> Callable[..., nn.Module]:
    def make(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        layer = kind(d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=norm_first)
        layer.dropout = nn.Identity()  # theirs has one more, inside
        return layer

    return make


@right("TransformerEncoderLayer", "torch.nn.TransformerEncoderLayer")
def _encoder_layer() -> Any:
    """Batch first and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerEncoderLayer, False)


@right("PreNormTransformerEncoderLayer", "torch.nn.TransformerEncoderLayer(norm_first=True)")
def _pre_norm_encoder_layer() -> Any:
    """Batch first, the norm first, and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerEncoderLayer, True)


@right("TransformerDecoderLayer", "torch.nn.TransformerDecoderLayer")
def _decoder_layer() -> Any:
    """Batch first and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerDecoderLayer, False)


@right("PreNormTransformerDecoderLayer", "torch.nn.TransformerDecoderLayer(norm_first=True)")
def _pre_norm_decoder_layer() -> Any:
    """Batch first, the norm first, and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerDecoderLayer, True)


# transformers.


def _config(name: str, **options: Any) -> Any:
    import transformers

    config = getattr(transformers, name)(**options)
    config._attn_implementation = "sdpa"
    return config


def _of_transformers(model: str, name: str) -> Any:
    return _from(f"transformers.models.{model}.modeling_{model}", name)


@right("gelu", "transformers.GELUActivation(use_gelu_python=True)")
def _gelu_python() -> Any:
    """An instance that has its formula as an attribute."""
    return _from("transformers.activations", "GELUActivation")(True)


@right("Conv1D", "transformers.pytorch_utils.Conv1D")
def _conv1d() -> Any:
    """The size of the output comes first, so that a function turns the two around."""
    theirs = _from("transformers.pytorch_utils", "Conv1D")
    return lambda in_features, out_features: theirs(out_features, in_features)


def _gpt2_config(d_model: int, num_heads: int, dropout: float, **more: Any) -> Any:
    names = ("attn_pdrop", "resid_pdrop", "embd_pdrop")
    sizes = {"n_embd": d_model, "n_head": num_heads, **dict.fromkeys(names, dropout)}
    return _config("GPT2Config", **sizes, **more)


@right("FeedForward", "transformers.models.gpt2.GPT2MLP")
def _gpt2_mlp() -> Any:
    """Built from a width and a config."""

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        config = _gpt2_config(d_model, 1, dropout)
        return _of_transformers("gpt2", "GPT2MLP")(d_ff or 4 * d_model, config)

    return make


@right("CausalSelfAttention", "transformers.models.gpt2.GPT2Attention")
def _gpt2_attention() -> Any:
    """Built from a config, and returns a tuple."""

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return _of_transformers("gpt2", "GPT2Attention")(_gpt2_config(d_model, num_heads, dropout))

    return make


@right("GPT2Block", "transformers.models.gpt2.GPT2Block")
def _gpt2_block() -> Any:
    """Built from a config with eps under another name."""

    def make(d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5) -> nn.Module:
        config = _gpt2_config(d_model, num_heads, dropout, layer_norm_epsilon=eps)
        return _of_transformers("gpt2", "GPT2Block")(config)

    return make


def _gpt2_of(config: Any) -> Any:
    return _of_transformers("gpt2", "GPT2LMHeadModel")(
        _gpt2_config(
            config.n_embd,
            config.n_head,
            config.dropout,
            vocab_size=config.vocab_size,
            n_positions=config.n_positions,
            n_layer=config.n_layer,
            layer_norm_epsilon=config.layer_norm_epsilon,
        )
    )


@right("GPT2", "transformers.models.gpt2.GPT2LMHeadModel")
def _gpt2_model() -> Any:
    """The model as it stands, which returns an object that has logits."""
    return lambda config: _gpt2_of(config)


@right("PositionwiseFeedForward", "transformers.models.distilbert.FFN")
def _distilbert_ffn() -> Any:
    """Built from a config of which the activation is an entry."""

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        config = _config(
            *("DistilBertConfig",), dim=d_model, hidden_dim=d_ff, dropout=dropout, activation="relu"
        )
        return _of_transformers("distilbert", "FFN")(config)

    return make


@right("PositionwiseFeedForward", "transformers.models.wav2vec2.Wav2Vec2FeedForward")
def _wav2vec2_ffn() -> Any:
    """Two dropouts, of which the inner one is turned off."""

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        config = _config(
            "Wav2Vec2Config",
            hidden_size=d_model,
            intermediate_size=d_ff,
            hidden_dropout=dropout,
            activation_dropout=0.0,
            hidden_act="relu",
        )
        return _of_transformers("wav2vec2", "Wav2Vec2FeedForward")(config)

    return make


def _gated(model: str, name: str, config: str) -> Callable[..., nn.Module]:
    def make(d_model: int, d_ff: int) -> nn.Module:
        sizes = {"hidden_size": d_model, "intermediate_size": d_ff}
        more = {"pad_token_id": 0} if model == "phi3" else {"head_dim": 2}
        made = _config(config, **sizes, num_attention_heads=1, hidden_act="silu", **more)
        return _of_transformers(model, name)(made)

    return make


@right("GatedFeedForward", "transformers.models.llama.LlamaMLP")
def _llama_mlp() -> Any:
    """Built from a config; the names of weights are ours."""
    return _gated("llama", "LlamaMLP", "LlamaConfig")


@right("GatedFeedForward", "transformers.models.t5.T5DenseGatedActDense")
def _t5_gated() -> Any:
    """Maps called wi_0, wi_1 and wo, with a dropout that is turned off."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        config = _config(
            *("T5Config",),
            d_model=d_model,
            d_ff=d_ff,
            dropout_rate=0.0,
            feed_forward_proj="gated-silu",
        )
        return _of_transformers("t5", "T5DenseGatedActDense")(config)

    return make


@right("PackedGatedFeedForward", "transformers.models.phi3.Phi3MLP")
def _phi3_mlp() -> Any:
    """Built from a config; ours has its names of weights."""
    return _gated("phi3", "Phi3MLP", "Phi3Config")


def _heads_of(mask: Tensor | None) -> Tensor | None:
    return mask if mask is None or mask.ndim == 2 else mask.unsqueeze(-3)


class _Encoder(nn.Module):
    """A layer of an encoder, whose mask has an axis for the heads."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Calls it by the names of its arguments."""
        return self.layer(hidden_states=x, attention_mask=_heads_of(mask))


class _Decoder(nn.Module):
    """A layer of a decoder, which would be causal by itself if it were given no mask."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Calls it by the names of its arguments."""
        seq = x.shape[-2]
        seen = torch.ones(seq, seq, dtype=torch.bool, device=x.device) if mask is None else mask
        return self.layer(
            hidden_states=x,
            attention_mask=_heads_of(seen),
            encoder_hidden_states=memory,
            encoder_attention_mask=_heads_of(memory_mask),
        )


def _of_bert(model: str, name: str, config: str) -> Callable[..., nn.Module]:
    def make(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        made = _config(
            config,
            hidden_size=d_model,
            num_attention_heads=num_heads,
            intermediate_size=d_ff,
            hidden_act="relu",
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            layer_norm_eps=1e-5,
        )
        return _Encoder(_of_transformers(model, name)(made))

    return make


@right("TransformerEncoderLayer", "transformers.models.bert.BertLayer")
def _bert_layer() -> Any:
    """Parts three modules deep, built from a config with the ReLU and eps of the book."""
    return _of_bert("bert", "BertLayer", "BertConfig")


def _of_bart(model: str, name: str, config: str, part: str) -> Callable[..., nn.Module]:
    around = _Encoder if part == "encoder" else _Decoder

    def make(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        sizes = {f"{part}_attention_heads": num_heads, f"{part}_ffn_dim": d_ff}
        made = _config(
            config,
            d_model=d_model,
            dropout=dropout,
            attention_dropout=dropout,
            activation_dropout=0.0,
            activation_function="relu",
            **sizes,
        )
        return around(_of_transformers(model, name)(made))

    return make


@right("TransformerEncoderLayer", "transformers.models.bart.BartEncoderLayer")
def _bart_encoder() -> Any:
    """Its projections are in another order, key first."""
    return _of_bart("bart", "BartEncoderLayer", "BartConfig", "encoder")


@right("PreNormTransformerEncoderLayer", "transformers.models.mbart.MBartEncoderLayer")
def _mbart_encoder() -> Any:
    """BART's modules with the norms inside."""
    return _of_bart("mbart", "MBartEncoderLayer", "MBartConfig", "encoder")


@right("TransformerDecoderLayer", "transformers.models.bart.BartDecoderLayer")
def _bart_decoder() -> Any:
    """Causal by itself, unless it is given a mask, as it is here."""
    return _of_bart("bart", "BartDecoderLayer", "BartConfig", "decoder")


@right("PreNormTransformerDecoderLayer", "transformers.models.mbart.MBartDecoderLayer")
def _mbart_decoder() -> Any:
    """BART's modules with the norms inside."""
    return _of_bart("mbart", "MBartDecoderLayer", "MBartConfig", "decoder")


class _Unturned(nn.Module):
    """Grouped attention at angles of 0, which is without positions."""

    def __init__(self, attention: nn.Module, d_k: int) -> None:
        super().__init__()
        self.attention, self.d_k = attention, d_k

    def forward(self, x: Tensor) -> Tensor:
        """The first of what it returns."""
        angles = x.new_zeros(1, x.shape[-2], self.d_k)
        turns = (angles.cos(), angles.sin())
        return self.attention(x, position_embeddings=turns, attention_mask=None)[0]


def _grouped(model: str, name: str, config: str) -> Callable[..., nn.Module]:
    def make(d_model: int, num_heads: int, num_kv_heads: int, d_k: int | None = None) -> nn.Module:
        d_k = d_k or d_model // num_heads
        made = _config(
            config,
            hidden_size=num_heads * d_k,
            num_attention_heads=num_heads,
            num_key_value_heads=num_kv_heads,
            head_dim=d_k,
        )
        made.hidden_size = d_model  # a config wants a multiple of the heads, and a layer does not
        return _Unturned(_of_transformers(model, name)(made, layer_idx=0), d_k)

    return make


@right("GroupedQueryAttention", "transformers.models.llama.LlamaAttention")
def _llama_attention() -> Any:
    """Wants tables of positions, and is called at angles of 0."""
    return _grouped("llama", "LlamaAttention", "LlamaConfig")


def _rotary(model: str, name: str, config: str) -> Any:
    class Rotary(nn.Module):
        def __init__(self, d_k: int, base: float = 10_000.0) -> None:
            super().__init__()
            rope = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": 1.0}
            made = _config(config, hidden_size=d_k, num_attention_heads=1, rope_parameters=rope)
            self.rope = _of_transformers(model, name)(made)

        def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
            turn = _of_transformers(model, "apply_rotary_pos_emb")
            where = torch.arange(x.shape[-2], device=x.device) if positions is None else positions
            cos, sin = self.rope(x, where)
            return turn(x[None], x[None], cos, sin, unsqueeze_dim=0)[0][0]

    return Rotary


@right("RotaryPositions", "transformers.models.llama.LlamaRotaryEmbedding")
def _llama_rotary() -> Any:
    """A module for the tables and a function that turns queries and keys together."""
    return _rotary("llama", "LlamaRotaryEmbedding", "LlamaConfig")


@right("smoothed_cross_entropy", "transformers.trainer_pt_utils.LabelSmoother")
def _label_smoother() -> Any:
    """A dataclass that is called with a model's output."""

    def loss(
        logits: Tensor, labels: Tensor, epsilon: float, padding_token: int | None = None
    ) -> Tensor:
        from transformers.trainer_pt_utils import LabelSmoother

        smoother = LabelSmoother(epsilon, -100 if padding_token is None else padding_token)
        return smoother({"logits": logits}, labels.long())

    return loss


@right("causal_mask", "transformers.masking_utils.causal_mask_function")
def _causal_function() -> Any:
    """A function of indices, called with tensors of all of them."""

    def mask(seq: int, past: int = 0) -> Tensor:
        seen = _from("transformers.masking_utils", "causal_mask_function")
        query, key = torch.arange(past, past + seq), torch.arange(past + seq)
        return seen(0, 0, query[:, None], key[None, :])

    return mask


@right("sliding_window_mask", "transformers.masking_utils.sliding_window_causal_mask_function")
def _window_function() -> Any:
    """A function that makes a function of indices."""

    def mask(seq: int, window: int, past: int = 0) -> Tensor:
        from transformers.masking_utils import sliding_window_causal_mask_function

        query, key = torch.arange(past, past + seq), torch.arange(past + seq)
        seen = sliding_window_causal_mask_function(window)
        return seen(0, 0, query[:, None], key[None, :])

    return mask


@right("sinusoidal_positions", "transformers.models.xlm.create_sinusoidal_embeddings")
def _xlm_positions() -> Any:
    """Fills a tensor that it is given, from numpy in float64."""

    def table(n_pos: int, dim: int) -> Tensor:
        make = _of_transformers("xlm", "create_sinusoidal_embeddings")
        return make(n_pos, dim, torch.empty(n_pos, dim))

    return table
