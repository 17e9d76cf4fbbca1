"""Right layers of public packages, as a user hands them to `check`.

A class that is built as ours is handed over as it stands. Of another, a small function builds it
from our arguments, with what our layer has not, such as a second dropout, turned off. Where a work
says that it differs, or `evaluation.survey` reads it as a variation of values, it is not here.
"""

import importlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.right_layers.definitions import RightLayer, declared, public
from evaluation.survey.stubs import stub

# What packages import beside their layers, and where it is missing stands for it.
MISSING = {
    "timm": ("torchvision",),
    "torchtune": (
        *("torchao", "sentencepiece", "datasets", "torchdata", "omegaconf", "blobfile"),
        "kagglehub",
    ),
    "litgpt": ("lightning", "lightning_utilities", "jsonargparse", "litdata", "torchmetrics"),
    "curated-transformers": ("catalogue", "curated_tokenizers"),
    "open_clip_torch": ("ftfy", "torchvision"),
    "OpenNMT-py": (
        *("torchtext", "configargparse", "ctranslate2", "pyonmttok", "sacrebleu", "rapidfuzz"),
        *("waitress", "flask", "tensorboard", "fasttext", "spacy", "ahocorasick", "bitsandbytes"),
    ),
    "torchscale": ("fairscale", "apex"),
    "fairseq2": (
        *("fairseq2n", "editdistance", "sacrebleu", "importlib_resources", "blobfile", "tiktoken"),
        *("torcheval", "ruamel", "polars", "retrying", "xxhash", "clusterscope"),
    ),
    "pytorch-pretrained-bert": ("boto3", "botocore"),
    "pytorch-transformers": ("boto3", "botocore", "sacremoses", "sentencepiece"),
}

# Classes and functions that are handed over as they stand: layer, package, module, name, style.
AS_THEY_STAND = (
    ("gelu", "torch", "torch.nn.functional", "gelu", "A builtin, which has no signature."),
    ("gelu", "torch", "torch.nn", "GELU", "A class where ours is a function."),
    (
        "gelu",
        "timm",
        "timm.layers.activations",
        "GELU",
        "A class with an option to write in place.",
    ),
    ("gelu", "fair-esm", "esm.modules", "gelu", "The error function written out."),
    (
        *("gelu", "pytorch-transformers", "pytorch_transformers.modeling_bert", "gelu"),
        "The error function written out, in a module of old imports.",
    ),
    (
        *("gelu_tanh", "transformers", "transformers.activations", "NewGELUActivation"),
        "The formula in one line, in a class of its own.",
    ),
    (
        *("gelu_tanh", "transformers", "transformers.activations", "AccurateGELUActivation"),
        "The root of two over pi is an attribute.",
    ),
    ("gelu_tanh", "timm", "timm.layers.activations", "GELUTanh", "Torch's function in a class."),
    (
        *("gelu_tanh", "curated-transformers", "curated_transformers.layers.activations"),
        *("GELUNew", "A class over a base class of the package."),
    ),
    (
        *("gelu_tanh", "bert-pytorch", "bert_pytorch.model.utils.gelu", "GELU"),
        "The formula in one line, with torch.pow.",
    ),
    (
        *("scaled_dot_product_attention", "torch", "torch.nn.functional"),
        *("scaled_dot_product_attention", "A builtin; masks are boolean or numbers."),
    ),
    ("dropout", "torch", "torch.nn.functional", "dropout", "An option to write in place."),
    ("Dropout", "torch", "torch.nn", "Dropout", "An option to write in place."),
    ("soft_threshold", "torch", "torch.nn.functional", "softshrink", "Its threshold is lambd."),
    ("BatchNorm1d", "torch", "torch.nn", "BatchNorm1d", "Options for what ours always has."),
    ("LayerNorm", "torch", "torch.nn", "LayerNorm", "Takes a shape; an option before bias."),
    ("LayerNorm", "timm", "timm.layers.norm", "LayerNorm", "A subclass of torch's, eps 1e-6."),
    (
        "LayerNorm",
        "open_clip_torch",
        "open_clip.transformer",
        "LayerNorm",
        "A subclass of torch's.",
    ),
    (
        *("LayerNorm", "transformers", "transformers.models.convnext.modeling_convnext"),
        *("ConvNextLayerNorm", "A subclass of torch's with a keyword for the data's format."),
    ),
    ("LayerNorm", "fair-esm", "esm.modules", "ESM1LayerNorm", "Written out, eps 1e-12."),
    (
        *("LayerNorm", "pytorch-pretrained-bert", "pytorch_pretrained_bert.modeling"),
        *("BertLayerNorm", "Written out, eps 1e-12 inside the root."),
    ),
    ("RMSNorm", "torch", "torch.nn", "RMSNorm", "Its eps is that of the dtype unless given."),
    ("RMSNorm", "timm", "timm.layers.norm", "RmsNorm", "Options for device and dtype."),
    ("RMSNorm", "torchtune", "torchtune.modules.rms_norm", "RMSNorm", "Its gain is called scale."),
    ("RMSNorm", "litgpt", "litgpt.model", "RMSNorm", "The axis comes before eps."),
    ("RMSNorm", "OpenNMT-py", "onmt.modules.rmsnorm", "RMSNorm", "Computes in float32."),
    ("RMSNorm", "torchscale", "torchscale.component.rms_norm", "RMSNorm", "Its gain is optional."),
    (
        *("RMSNorm", "transformers", "transformers.models.olmo2.modeling_olmo2", "Olmo2RMSNorm"),
        "Rounded after the gain.",
    ),
    *(
        (
            "LlamaRMSNorm",
            "transformers",
            f"transformers.models.{module}.modeling_{module}",
            name,
            how,
        )
        for module, name, how in (
            ("llama", "LlamaRMSNorm", "The class that ours is named after."),
            ("mistral", "MistralRMSNorm", "A copy of Llama's under another name."),
            ("qwen2", "Qwen2RMSNorm", "A copy of Llama's with eps annotated."),
            ("phi3", "Phi3RMSNorm", "A copy of Llama's under another name."),
            ("t5", "T5LayerNorm", "Called a LayerNorm, and casts to its weight's dtype."),
        )
    ),
    *(
        (
            "GemmaRMSNorm",
            "transformers",
            f"transformers.models.{module}.modeling_{module}",
            name,
            how,
        )
        for module, name, how in (
            ("gemma", "GemmaRMSNorm", "The class that ours is named after."),
            ("gemma2", "Gemma2RMSNorm", "The same in the module of the second model."),
            ("gemma3", "Gemma3RMSNorm", "The same in the module of the third model."),
        )
    ),
)


def _found(work: str, module: str, name: str) -> Any:
    stub(*MISSING.get(work, ()))
    return getattr(importlib.import_module(module), name)


for _layer, _work, _module, _name, _style in AS_THEY_STAND:
    declared(
        RightLayer(
            f"{_work}.{_name}", _layer, _style, _work, partial(_found, _work, _module, _name)
        )
    )


# torch.


@public("torch", "gelu_tanh", "nn.GELU(approximate='tanh')")
def _gelu_tanh() -> Any:
    """An instance of a class, where ours is a function."""
    return nn.GELU(approximate="tanh")


@public("torch", "attention_weights", "scaled_dot_product_attention of the identity")
def _weights_of_identity() -> Any:
    """The weights are read off as the output where the values are the identity."""

    def weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        values = torch.eye(key.shape[-2], dtype=key.dtype)
        shape = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        q, k, v = (each.expand(*shape, *each.shape[-2:]) for each in (query, key, values))
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return weights


@public("torch", "BatchNorm1d", "nn.LazyBatchNorm1d")
def _lazy_batch_norm() -> Any:
    """A lazy module, which learns the number of channels at its first call."""

    def make(num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> nn.Module:
        return nn.LazyBatchNorm1d(eps, momentum)

    return make


@public("torch", "MultiHeadAttention", "nn.MultiheadAttention(batch_first=True)")
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


@public("torch", "TransformerEncoderLayer", "nn.TransformerEncoderLayer")
def _encoder_layer() -> Any:
    """Batch first and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerEncoderLayer, False)


@public("torch", "PreNormTransformerEncoderLayer", "nn.TransformerEncoderLayer(norm_first=True)")
def _pre_norm_encoder_layer() -> Any:
    """Batch first, the norm first, and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerEncoderLayer, True)


@public("torch", "TransformerDecoderLayer", "nn.TransformerDecoderLayer")
def _decoder_layer() -> Any:
    """Batch first and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerDecoderLayer, False)


@public("torch", "PreNormTransformerDecoderLayer", "nn.TransformerDecoderLayer(norm_first=True)")
def _pre_norm_decoder_layer() -> Any:
    """Batch first, the norm first, and its inner dropout taken out; True blocks."""
    return _of_torch(nn.TransformerDecoderLayer, True)


@public("torch", "smoothed_cross_entropy", "nn.functional.cross_entropy")
def _cross_entropy() -> Any:
    """A function that puts all positions in one axis, with torch's names of arguments."""

    def loss(
        input: Tensor, target: Tensor, label_smoothing: float, ignore_index: int | None = None
    ) -> Tensor:
        return functional.cross_entropy(
            input.flatten(0, -2),
            target.flatten().long(),
            ignore_index=-100 if ignore_index is None else ignore_index,
            label_smoothing=label_smoothing,
        )

    return loss


@public("torch", "causal_mask", "nn.attention.bias.causal_lower_right")
def _causal_bias() -> Any:
    """A bias object of torch's, which is made a boolean tensor."""

    def mask(seq: int, past: int = 0) -> Tensor:
        from torch.nn.attention.bias import causal_lower_right

        return causal_lower_right(seq, past + seq)._materialize().bool()

    return mask


@public("torch", "l1_penalty", "linalg.vector_norm(order 1)")
def _vector_norm() -> Any:
    """The norm of order 1 of all parameters, joined to one vector."""

    def penalty(parameters: Iterable[Tensor]) -> Tensor:
        return torch.linalg.vector_norm(nn.utils.parameters_to_vector(parameters), ord=1)

    return penalty


# transformers.


def _config(name: str, **options: Any) -> Any:
    import transformers

    config = getattr(transformers, name)(**options)
    config._attn_implementation = "sdpa"
    return config


def _of_transformers(model: str, name: str) -> Any:
    return getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), name)


@public("transformers", "gelu", "GELUActivation(use_gelu_python=True)")
def _gelu_python() -> Any:
    """An instance that has its formula as an attribute."""
    return _found("transformers", "transformers.activations", "GELUActivation")(True)


@public("transformers", "Conv1D", "pytorch_utils.Conv1D")
def _conv1d() -> Any:
    """The size of the output comes first, so that a function turns the two around."""
    theirs = _found("transformers", "transformers.pytorch_utils", "Conv1D")
    return lambda in_features, out_features: theirs(out_features, in_features)


@public("pytorch-pretrained-bert", "Conv1D", "modeling_gpt2.Conv1D")
def _old_conv1d() -> Any:
    """The same of an old package, which wants contiguous input."""
    theirs = _found("pytorch-pretrained-bert", "pytorch_pretrained_bert.modeling_gpt2", "Conv1D")
    return lambda in_features, out_features: theirs(out_features, in_features)


def _gpt2_config(d_model: int, num_heads: int, dropout: float, **more: Any) -> Any:
    names = ("attn_pdrop", "resid_pdrop", "embd_pdrop")
    sizes = {"n_embd": d_model, "n_head": num_heads, **dict.fromkeys(names, dropout)}
    return _config("GPT2Config", **sizes, **more)


@public("transformers", "FeedForward", "models.gpt2.GPT2MLP")
def _gpt2_mlp() -> Any:
    """Built from a width and a config."""

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        config = _gpt2_config(d_model, 1, dropout)
        return _of_transformers("gpt2", "GPT2MLP")(d_ff or 4 * d_model, config)

    return make


@public("transformers", "CausalSelfAttention", "models.gpt2.GPT2Attention")
def _gpt2_attention() -> Any:
    """Built from a config, and returns a tuple."""

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return _of_transformers("gpt2", "GPT2Attention")(_gpt2_config(d_model, num_heads, dropout))

    return make


@public("transformers", "GPT2Block", "models.gpt2.GPT2Block")
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


@public("transformers", "GPT2", "models.gpt2.GPT2LMHeadModel")
def _gpt2_model() -> Any:
    """The model as it stands, which returns an object that has logits."""
    return lambda config: _gpt2_of(config)


@public("transformers", "GPT2", "models.gpt2.GPT2LMHeadModel's logits")
def _gpt2_logits() -> Any:
    """The same model inside a module that returns its logits alone."""

    class Logits(nn.Module):
        def __init__(self, config: Any) -> None:
            super().__init__()
            self.model = _gpt2_of(config)

        def forward(self, input_ids: Tensor) -> Tensor:
            return self.model(input_ids, use_cache=False).logits

    return Logits


@public("transformers", "PositionwiseFeedForward", "models.distilbert.FFN")
def _distilbert_ffn() -> Any:
    """Built from a config of which the activation is an entry."""

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        config = _config(
            *("DistilBertConfig",), dim=d_model, hidden_dim=d_ff, dropout=dropout, activation="relu"
        )
        return _of_transformers("distilbert", "FFN")(config)

    return make


@public("transformers", "PositionwiseFeedForward", "models.wav2vec2.Wav2Vec2FeedForward")
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


@public("transformers", "GatedFeedForward", "models.llama.LlamaMLP")
def _llama_mlp() -> Any:
    """Built from a config; the names of weights are ours."""
    return _gated("llama", "LlamaMLP", "LlamaConfig")


@public("transformers", "GatedFeedForward", "models.mistral.MistralMLP")
def _mistral_mlp() -> Any:
    """Built from a config of another model."""
    return _gated("mistral", "MistralMLP", "MistralConfig")


@public("transformers", "GatedFeedForward", "models.qwen2.Qwen2MLP")
def _qwen2_mlp() -> Any:
    """Built from a config of another model."""
    return _gated("qwen2", "Qwen2MLP", "Qwen2Config")


@public("transformers", "GatedFeedForward", "models.olmo.OlmoMLP")
def _olmo_mlp() -> Any:
    """Built from a config of another model."""
    return _gated("olmo", "OlmoMLP", "OlmoConfig")


@public("transformers", "GatedFeedForward", "models.t5.T5DenseGatedActDense")
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


@public("transformers", "PackedGatedFeedForward", "models.phi3.Phi3MLP")
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


@public("transformers", "TransformerEncoderLayer", "models.bert.BertLayer")
def _bert_layer() -> Any:
    """Parts three modules deep, built from a config with the ReLU and eps of the book."""
    return _of_bert("bert", "BertLayer", "BertConfig")


@public("transformers", "TransformerEncoderLayer", "models.roberta.RobertaLayer")
def _roberta_layer() -> Any:
    """A copy of BERT's with other defaults."""
    return _of_bert("roberta", "RobertaLayer", "RobertaConfig")


@public("transformers", "TransformerEncoderLayer", "models.electra.ElectraLayer")
def _electra_layer() -> Any:
    """A copy of BERT's with other defaults."""
    return _of_bert("electra", "ElectraLayer", "ElectraConfig")


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


@public("transformers", "TransformerEncoderLayer", "models.bart.BartEncoderLayer")
def _bart_encoder() -> Any:
    """Its projections are in another order, key first."""
    return _of_bart("bart", "BartEncoderLayer", "BartConfig", "encoder")


@public("transformers", "TransformerEncoderLayer", "models.marian.MarianEncoderLayer")
def _marian_encoder() -> Any:
    """A copy of BART's for translation."""
    return _of_bart("marian", "MarianEncoderLayer", "MarianConfig", "encoder")


@public("transformers", "PreNormTransformerEncoderLayer", "models.mbart.MBartEncoderLayer")
def _mbart_encoder() -> Any:
    """BART's modules with the norms inside."""
    return _of_bart("mbart", "MBartEncoderLayer", "MBartConfig", "encoder")


@public("transformers", "PreNormTransformerEncoderLayer", "models.pegasus.PegasusEncoderLayer")
def _pegasus_encoder() -> Any:
    """A copy of mBART's."""
    return _of_bart("pegasus", "PegasusEncoderLayer", "PegasusConfig", "encoder")


@public("transformers", "TransformerDecoderLayer", "models.bart.BartDecoderLayer")
def _bart_decoder() -> Any:
    """Causal by itself, unless it is given a mask, as it is here."""
    return _of_bart("bart", "BartDecoderLayer", "BartConfig", "decoder")


@public("transformers", "TransformerDecoderLayer", "models.marian.MarianDecoderLayer")
def _marian_decoder() -> Any:
    """A copy of BART's for translation."""
    return _of_bart("marian", "MarianDecoderLayer", "MarianConfig", "decoder")


@public("transformers", "PreNormTransformerDecoderLayer", "models.mbart.MBartDecoderLayer")
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


@public("transformers", "GroupedQueryAttention", "models.llama.LlamaAttention")
def _llama_attention() -> Any:
    """Wants tables of positions, and is called at angles of 0."""
    return _grouped("llama", "LlamaAttention", "LlamaConfig")


@public("transformers", "GroupedQueryAttention", "models.mistral.MistralAttention")
def _mistral_attention() -> Any:
    """Wants tables of positions, and is called at angles of 0."""
    return _grouped("mistral", "MistralAttention", "MistralConfig")


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


@public("transformers", "RotaryPositions", "models.llama.LlamaRotaryEmbedding")
def _llama_rotary() -> Any:
    """A module for the tables and a function that turns queries and keys together."""
    return _rotary("llama", "LlamaRotaryEmbedding", "LlamaConfig")


@public("transformers", "RotaryPositions", "models.gpt_neox.GPTNeoXRotaryEmbedding")
def _neox_rotary() -> Any:
    """The same, of a model that turns a part of a head by default."""
    return _rotary("gpt_neox", "GPTNeoXRotaryEmbedding", "GPTNeoXConfig")


@public("transformers", "smoothed_cross_entropy", "trainer_pt_utils.LabelSmoother")
def _label_smoother() -> Any:
    """A dataclass that is called with a model's output."""

    def loss(
        logits: Tensor, labels: Tensor, epsilon: float, padding_token: int | None = None
    ) -> Tensor:
        from transformers.trainer_pt_utils import LabelSmoother

        smoother = LabelSmoother(epsilon, -100 if padding_token is None else padding_token)
        return smoother({"logits": logits}, labels.long())

    return loss


@public("transformers", "causal_mask", "masking_utils.causal_mask_function")
def _causal_function() -> Any:
    """A function of indices, called with tensors of all of them."""

    def mask(seq: int, past: int = 0) -> Tensor:
        seen = _found("transformers", "transformers.masking_utils", "causal_mask_function")
        query, key = torch.arange(past, past + seq), torch.arange(past + seq)
        return seen(0, 0, query[:, None], key[None, :])

    return mask


@public("transformers", "sliding_window_mask", "masking_utils.sliding_window_causal_mask_function")
def _window_function() -> Any:
    """A function that makes a function of indices."""

    def mask(seq: int, window: int, past: int = 0) -> Tensor:
        from transformers.masking_utils import sliding_window_causal_mask_function

        query, key = torch.arange(past, past + seq), torch.arange(past + seq)
        seen = sliding_window_causal_mask_function(window)
        return seen(0, 0, query[:, None], key[None, :])

    return mask


@public("transformers", "sinusoidal_positions", "models.xlm.create_sinusoidal_embeddings")
def _xlm_positions() -> Any:
    """Fills a tensor that it is given, from numpy in float64."""

    def table(n_pos: int, dim: int) -> Tensor:
        make = _of_transformers("xlm", "create_sinusoidal_embeddings")
        return make(n_pos, dim, torch.empty(n_pos, dim))

    return table


# Packages of the survey.


@public("timm", "GatedFeedForward", "layers.SwiGLU")
def _timm_swiglu() -> Any:
    """Options for bias, norm and dropout, of which only the bias is set."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        return _found("timm", "timm.layers.mlp", "SwiGLU")(d_model, d_ff, bias=False)

    return make


@public("timm", "PackedGatedFeedForward", "layers.GluMlp(gate_last=False)")
def _timm_glu() -> Any:
    """The size inside counts both halves."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        theirs = _found("timm", "timm.layers.mlp", "GluMlp")
        options = {"act_layer": nn.SiLU, "gate_last": False, "bias": False}
        return theirs(d_model, 2 * d_ff, **options)

    return make


@public("timm", "smoothed_cross_entropy", "loss.LabelSmoothingCrossEntropy")
def _timm_loss() -> Any:
    """A module that is built for each smoothing, over one axis of positions."""

    def loss(logits: Tensor, labels: Tensor, epsilon: float) -> Tensor:
        theirs = _found("timm", "timm.loss.cross_entropy", "LabelSmoothingCrossEntropy")
        return theirs(epsilon)(logits.flatten(0, -2), labels.flatten().long())

    return loss


@public("torchtune", "GatedFeedForward", "modules.FeedForward")
def _torchtune_feed_forward() -> Any:
    """Is handed its maps, by keyword."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        theirs = _found("torchtune", "torchtune.modules.feed_forward", "FeedForward")
        return theirs(
            gate_proj=nn.Linear(d_model, d_ff, bias=False),
            down_proj=nn.Linear(d_ff, d_model, bias=False),
            up_proj=nn.Linear(d_model, d_ff, bias=False),
        )

    return make


@public("torchtune", "RotaryPositions", "modules.RotaryPositionalEmbeddings")
def _torchtune_rotary() -> Any:
    """Pairs of neighbours, as in the paper, from a table, with the sequence before the heads."""

    class Rotary(nn.Module):
        def __init__(self, d_k: int, base: int = 10_000) -> None:
            super().__init__()
            theirs = _found(
                *("torchtune", "torchtune.modules.position_embeddings"),
                "RotaryPositionalEmbeddings",
            )
            self.rope = theirs(d_k, max_seq_len=8192, base=base)

        def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
            rows = x.reshape(-1, x.shape[-2], 1, x.shape[-1])
            where = None
            if positions is not None:
                where = positions.expand(x.shape[:-1]).reshape(rows.shape[:2])
            return self.rope(rows, input_pos=where).reshape(x.shape)

    return Rotary


def _litgpt_config(**options: Any) -> Any:
    return _found("litgpt", "litgpt.config", "Config")(n_layer=1, n_head=1, **options)


@public("litgpt", "GatedFeedForward", "model.LLaMAMLP")
def _litgpt_mlp() -> Any:
    """Built from a dataclass; maps called fc_1, fc_2 and proj."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        config = _litgpt_config(
            n_embd=d_model, intermediate_size=d_ff, bias=False, mlp_class_name="LLaMAMLP"
        )
        return _found("litgpt", "litgpt.model", "LLaMAMLP")(config)

    return make


@public("litgpt", "GemmaRMSNorm", "model.RMSNorm(add_unit_offset=True)")
def _litgpt_gemma() -> Any:
    """An option adds one to a weight that starts at one, and is set to zero here."""

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        norm = _found("litgpt", "litgpt.model", "RMSNorm")(d_model, eps=eps, add_unit_offset=True)
        nn.init.zeros_(norm.weight)
        return norm

    return make


@public("litgpt", "RotaryPositions", "model.apply_rope")
def _litgpt_rotary() -> Any:
    """Two functions, one for the tables and one that turns, inside a module."""

    class Rotary(nn.Module):
        def __init__(self, d_k: int, base: int = 10_000) -> None:
            super().__init__()
            self.tables = _found("litgpt", "litgpt.model", "build_rope_cache")(8192, d_k, base=base)

        def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
            where = torch.arange(x.shape[-2]) if positions is None else positions
            rows = x.reshape(-1, *x.shape[-2:])
            where = where.expand(x.shape[:-1]).reshape(rows.shape[:2])
            cos, sin = (table[where].to(x.dtype) for table in self.tables)
            turn = _found("litgpt", "litgpt.model", "apply_rope")
            return turn(rows, cos, sin).reshape(x.shape)

    return Rotary


@public("curated-transformers", "RMSNorm", "layers.normalization.RMSNorm")
def _curated_rms() -> Any:
    """Its eps is keyword-only and must be given."""

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        module = "curated_transformers.layers.normalization"
        return _found("curated-transformers", module, "RMSNorm")(d_model, eps=eps)

    return make


@public("curated-transformers", "GatedFeedForward", "layers.feedforward.PointwiseFeedForward")
def _curated_feed_forward() -> Any:
    """Keyword-only options; its up map is called intermediate."""

    def make(d_model: int, d_ff: int) -> nn.Module:
        module = "curated_transformers.layers.feedforward"
        return _found("curated-transformers", module, "PointwiseFeedForward")(
            activation=nn.SiLU(),
            hidden_width=d_model,
            intermediate_width=d_ff,
            use_bias=False,
            use_gate=True,
        )

    return make


@public("diffusers", "RMSNorm", "models.normalization.RMSNorm")
def _diffusers_rms() -> Any:
    """Its eps must be given, its gain and bias are options."""

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        return _found("diffusers", "diffusers.models.normalization", "RMSNorm")(d_model, eps)

    return make


@public("fairseq2", "RMSNorm", "nn.RMSNorm")
def _fairseq2_rms() -> Any:
    """Its bias must be said to be none."""

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        return _found("fairseq2", "fairseq2.nn", "RMSNorm")(d_model, bias=False, eps=eps)

    return make


@public("espnet", "LayerNorm", "nets.pytorch_backend.transformer.LayerNorm")
def _espnet_norm() -> Any:
    """A subclass of torch's that transposes for another axis; its eps is an attribute."""

    def make(nout: int, eps: float = 1e-5) -> nn.Module:
        module = "espnet.nets.pytorch_backend.transformer.layer_norm"
        norm: nn.Module = _found("espnet", module, "LayerNorm")(nout)
        norm.eps = eps  # type: ignore[assignment]
        return norm

    return make


@public("espnet", "MultiHeadAttention", "nets.pytorch_backend.transformer.MultiHeadedAttention")
def _espnet_attention() -> Any:
    """The number of heads comes first, and its mask has an axis for the batch."""

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        module = "espnet.nets.pytorch_backend.transformer.attention"
        theirs = _found("espnet", module, "MultiHeadedAttention")

        class Attention(theirs):  # type: ignore[misc, valid-type]
            def forward(
                self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
            ) -> Tensor:
                mask = mask.unsqueeze(0) if mask is not None and mask.ndim == 2 else mask
                return super().forward(query, key, value, mask)

        return Attention(num_heads, d_model, dropout)

    return make


@public("espnet", "padding_mask", "nets.pytorch_backend.nets_utils.make_pad_mask")
def _espnet_padding() -> Any:
    """True for padding, from a list or a tensor of lengths."""

    def mask(lengths: Tensor, maxlen: int) -> Tensor:
        make = _found("espnet", "espnet.nets.pytorch_backend.nets_utils", "make_pad_mask")
        return make(lengths, maxlen=maxlen)

    return mask


@public("monai", "CausalSelfAttention", "networks.blocks.SABlock")
def _monai_attention() -> Any:
    """A packed map with a bias, a buffer for the mask, and the product of einsum."""

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        theirs = _found("monai", "monai.networks.blocks.selfattention", "SABlock")
        return theirs(d_model, num_heads, dropout, qkv_bias=True, causal=True, sequence_length=2048)

    return make
