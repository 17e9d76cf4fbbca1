"""The works, and how each of their layers is called as ours is."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from survey.adapters import additive, heads_of, packed, plainly, projections, renamed, with_call
from survey.definitions import surveyed
from survey.stubs import stub

TIMESCALES = (
    "timescales run to 10000 over d/2 - 1 steps, as in tensor2tensor, not over d/2 as in the "
    "paper, and all sines stand before all cosines"
)
CONCATENATED = "all sines stand before all cosines: the paper's columns in another order"
EVEN = "even widths only; angles in float32, off by 4e-5 and more where positions are large"
LOW = "computes bfloat16 in bfloat16"
WIDE = "computes in float32 whatever it is given"


def _table(make: Any) -> Any:
    """A function of (seq, d_model) from one that gives some tensor of these sizes."""

    def positions(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
        table = make(seq, d_model).reshape(-1, d_model)[:seq]
        return table.to(torch.get_default_dtype() if dtype is None else dtype)

    return positions


def _elementwise(make: Any) -> Any:
    """A function from a class of activations."""
    return make()


# ---------------------------------------------------------------- transformers


@surveyed("transformers", "RMSNorm", "models.llama.LlamaRMSNorm", note=WIDE)
def _llama() -> Any:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    return renamed(LlamaRMSNorm, weight="weight")


@surveyed("transformers", "RMSNorm", "models.t5.T5LayerNorm", note=WIDE)
def _t5() -> Any:
    from transformers.models.t5.modeling_t5 import T5LayerNorm

    return renamed(T5LayerNorm, weight="weight")


@surveyed(
    "transformers",
    "RMSNorm",
    "models.gemma.GemmaRMSNorm",
    "variation",
    "multiplies by 1 + weight, and the weight starts at 0: the same function, kept otherwise",
)
def _gemma() -> Any:
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm

    return renamed(GemmaRMSNorm, weight="weight+1")


@surveyed(
    "transformers",
    "LayerNorm",
    "models.nemotron.NemotronLayerNorm1P",
    "defect",
    "multiplies by 1 + weight, and the weight starts at 1: the gain of a new layer is 2",
    "nemotron",
)
def _nemotron() -> Any:
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P

    def make(d_model: int, eps: float = 1e-5, bias: bool = True) -> nn.Module:
        return NemotronLayerNorm1P(d_model, eps, bias=bias)

    return renamed(make, weight="weight+1", bias="bias")


@surveyed("transformers", "LayerNorm", "models.convnext.ConvNextLayerNorm")
def _convnext() -> Any:
    from transformers.models.convnext.modeling_convnext import ConvNextLayerNorm

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        return ConvNextLayerNorm(d_model, eps=eps)

    return renamed(make, weight="weight", bias="bias")


@surveyed(
    "transformers",
    "Conv1D",
    "pytorch_utils.Conv1D",
    note="a view: input that is not contiguous is an error",
)
def _conv1d() -> Any:
    from transformers.pytorch_utils import Conv1D

    return renamed(lambda nx, nf: Conv1D(nf, nx), weight="weight", bias="bias")


@surveyed("transformers", "gelu_tanh", "activations.NewGELUActivation", note=LOW)
def _gelu_new() -> Any:
    from transformers.activations import NewGELUActivation

    return _elementwise(NewGELUActivation)


@surveyed(
    "transformers",
    "gelu_tanh",
    "activations.FastGELUActivation",
    "variation",
    "its constant has ten digits",
)
def _gelu_fast() -> Any:
    from transformers.activations import FastGELUActivation

    return _elementwise(FastGELUActivation)


@surveyed(
    "transformers",
    "gelu",
    "activations.QuickGELUActivation",
    "variation",
    "the sigmoid form, x sigmoid(1.702 x), named so",
)
def _gelu_quick() -> Any:
    from transformers.activations import QuickGELUActivation

    return _elementwise(QuickGELUActivation)


def _gpt2_config(d_model: int, num_heads: int = 1, dropout: float = 0.1, **more: Any) -> Any:
    from transformers import GPT2Config

    return GPT2Config(
        n_embd=d_model,
        n_head=num_heads,
        attn_pdrop=dropout,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        **more,
    )


@surveyed("transformers", "FeedForward", "models.gpt2.GPT2MLP")
def _gpt2_mlp() -> Any:
    from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        return GPT2MLP(4 * d_model if d_ff is None else d_ff, _gpt2_config(d_model, 1, dropout))

    names = [f"{each}.{kind}" for each in ("c_fc", "c_proj") for kind in ("weight", "bias")]
    return renamed(make, **{name.replace(".", "__"): name for name in names})


@surveyed("transformers", "CausalSelfAttention", "models.gpt2.GPT2Attention")
def _gpt2_attention() -> Any:
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        config = _gpt2_config(d_model, num_heads, dropout)
        config._attn_implementation = "sdpa"
        return GPT2Attention(config)

    names = [f"{each}.{kind}" for each in ("c_attn", "c_proj") for kind in ("weight", "bias")]
    return with_call(
        make,
        lambda module, *inputs, **named: plainly(module, *inputs, **named)[0],
        **{name.replace(".", "__"): name for name in names},
    )


@surveyed(
    "transformers",
    "sinusoidal_positions",
    "models.m2m_100.M2M100SinusoidalPositionalEmbedding",
    "variation",
    TIMESCALES + "; its docstring says that it differs",
    "timescales",
)
def _m2m() -> Any:
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    return _table(M2M100SinusoidalPositionalEmbedding.get_embedding)


# ---------------------------------------------------------------- labml-nn


@surveyed(
    "labml-nn",
    "LayerNorm",
    "normalization.layer_norm.LayerNorm",
    "defect",
    "variance as E[x^2] - E[x]^2, which cancels: NaN far from 0 in float32",
    "cancelling",
)
def _labml_layer_norm() -> Any:
    from labml_nn.normalization.layer_norm import LayerNorm

    def make(d_model: int, eps: float = 1e-5) -> nn.Module:
        return LayerNorm(d_model, eps=eps)

    return renamed(make, weight="gain", bias="bias")


@surveyed(
    "labml-nn",
    "BatchNorm1d",
    "normalization.batch_norm.BatchNorm",
    "defect",
    "keeps the graph of every step in its running averages; the variance in them is biased",
    "growing_graph",
)
def _labml_batch_norm() -> Any:
    from labml_nn.normalization.batch_norm import BatchNorm

    known = {
        "scale": "weight",
        "shift": "bias",
        "exp_mean": "running_mean",
        "exp_var": "running_var",
    }

    class Renamed(BatchNorm):
        """The same, with our names of parameters and buffers."""

        def __init__(
            self,
            num_features: int,
            eps: float = 1e-5,
            momentum: float = 0.1,
            dtype: Any = None,
            device: Any = None,
        ) -> None:
            super().__init__(num_features, eps=eps, momentum=momentum)
            self.to(dtype=dtype, device=device)

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(known.get(name, name))

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(known.get(name, name), value)

        def register_buffer(self, name: str, *args: Any, **kwargs: Any) -> None:
            super().register_buffer(known.get(name, name), *args, **kwargs)

    return Renamed


@surveyed(
    "labml-nn",
    "MultiHeadAttention",
    "transformers.mha.MultiHeadAttention",
    "variation",
    "value and output always have a bias; a row without an allowed key is NaN",
)
def _labml_attention() -> Any:
    stub("labml", instead=True)  # its tracker has changed since
    from labml_nn.transformers.mha import MultiHeadAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> nn.Module:
        return MultiHeadAttention(num_heads, d_model, dropout, bias)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        first = [each.transpose(0, 1) for each in (query, key, value)]  # sequence first
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.ndim == 2 else mask
            mask = mask.permute(1, 2, 0)
        return module(query=first[0], key=first[1], value=first[2], mask=mask).transpose(0, 1)

    return with_call(
        make, call, **projections("query.linear", "key.linear", "value.linear", "output")
    )


@surveyed(
    "labml-nn",
    "PositionwiseFeedForward",
    "transformers.feed_forward.FeedForward",
    "variation",
    "drops after the activation, and not the result",
)
def _labml_feed_forward() -> Any:
    from labml_nn.transformers.feed_forward import FeedForward

    return renamed(
        FeedForward,
        linear1__weight="layer1.weight",
        linear1__bias="layer1.bias",
        linear2__weight="layer2.weight",
        linear2__bias="layer2.bias",
    )


@surveyed("labml-nn", "sinusoidal_positions", "transformers.positional_encoding", note=EVEN)
def _labml_positions() -> Any:
    from labml_nn.transformers.positional_encoding import get_positional_encoding

    return _table(lambda seq, d_model: get_positional_encoding(d_model, max(seq, 1)))


# ---------------------------------------------------------------- norms of many works


def _norm(weight: str = "weight", bias: str | None = "bias") -> dict[str, str]:
    return {"weight": weight} if bias is None else {"weight": weight, "bias": bias}


@surveyed(
    "x-transformers",
    "RMSNorm",
    "x_transformers.RMSNorm",
    "variation",
    "no eps is added: the norm of a row is at least 1e-12",
)
def _x_rms() -> Any:
    from x_transformers.x_transformers import RMSNorm

    return renamed(lambda d_model, eps=1e-6: RMSNorm(d_model), **_norm("g", None))


@surveyed(
    "x-transformers",
    "LayerNorm",
    "x_transformers.LayerNorm",
    "variation",
    "has no bias, on purpose",
)
def _x_layer_norm() -> Any:
    from x_transformers.x_transformers import LayerNorm

    return renamed(lambda d_model, eps=1e-5, bias=True: LayerNorm(d_model), **_norm("gamma", None))


@surveyed("torchtune", "RMSNorm", "modules.RMSNorm", note=WIDE)
def _torchtune_rms() -> Any:
    stub("torchao", "sentencepiece", "datasets", "torchdata", "omegaconf", "blobfile", "kagglehub")
    from torchtune.modules.rms_norm import RMSNorm

    return renamed(RMSNorm, **_norm("scale", None))


@surveyed("litgpt", "RMSNorm", "model.RMSNorm", note=WIDE)
def _litgpt_rms() -> Any:
    stub("lightning", "lightning_utilities", "jsonargparse", "litdata", "torchmetrics")
    from litgpt.model import RMSNorm

    return renamed(lambda d_model, eps=1e-6: RMSNorm(d_model, eps=eps), **_norm(bias=None))


@surveyed("timm", "RMSNorm", "layers.RmsNorm")
def _timm_rms() -> Any:
    stub("torchvision")
    from timm.layers.norm import RmsNorm

    return renamed(RmsNorm, **_norm(bias=None))


@surveyed(
    "timm",
    "RMSNorm",
    "layers.RmsNorm",
    "defect",
    "divides by the root of the variance, n - 1 in the denominator, not of the mean square",
    "variance_for_mean_square",
    "timm-1.0.9",
)
def _timm_rms_109() -> Any:
    stub("torchvision")
    from timm.layers.norm import RmsNorm

    return renamed(RmsNorm, **_norm(bias=None))


@surveyed("timm", "LayerNorm", "layers.LayerNorm")
def _timm_layer_norm() -> Any:
    stub("torchvision")
    from timm.layers.norm import LayerNorm

    return renamed(lambda d_model, eps=1e-6: LayerNorm(d_model, eps), **_norm())


@surveyed("timm", "gelu", "layers.activations.GELU")
def _timm_gelu() -> Any:
    stub("torchvision")
    from timm.layers.activations import GELU

    return _elementwise(GELU)


@surveyed("timm", "gelu_tanh", "layers.activations.GELUTanh")
def _timm_gelu_tanh() -> Any:
    stub("torchvision")
    from timm.layers.activations import GELUTanh

    return _elementwise(GELUTanh)


@surveyed(
    "openai-whisper",
    "LayerNorm",
    "model.LayerNorm",
    "does not fit",
    "converts its input to float32, and takes no weights of float64",
)
def _whisper_norm() -> Any:
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import LayerNorm

    return renamed(lambda d_model, eps=1e-5: LayerNorm(d_model, eps), **_norm())


@surveyed("espnet", "LayerNorm", "nets.pytorch_backend.transformer.LayerNorm")
def _espnet_norm() -> Any:
    from espnet.nets.pytorch_backend.transformer.layer_norm import LayerNorm

    def make(d_model: int, eps: float = 1e-12) -> nn.Module:
        norm = LayerNorm(d_model)
        norm.eps = eps  # an attribute, and no argument
        return norm

    return renamed(make, **_norm())


@surveyed("OpenNMT-py", "RMSNorm", "modules.rmsnorm.RMSNorm", note=WIDE)
def _onmt_rms() -> Any:
    stub(
        "torchtext",
        "configargparse",
        "ctranslate2",
        "pyonmttok",
        "sacrebleu",
        "rapidfuzz",
        "waitress",
        "flask",
        "tensorboard",
        "fasttext",
        "spacy",
        "ahocorasick",
        "bitsandbytes",
    )
    from onmt.modules.rmsnorm import RMSNorm

    return renamed(RMSNorm, **_norm(bias=None))


@surveyed("torchscale", "RMSNorm", "component.rms_norm.RMSNorm", note=WIDE)
def _torchscale_rms() -> Any:
    stub("fairscale", "apex")
    from torchscale.component.rms_norm import RMSNorm

    return renamed(RMSNorm, **_norm(bias=None))


@surveyed("diffusers", "RMSNorm", "models.normalization.RMSNorm", note=WIDE)
def _diffusers_rms() -> Any:
    from diffusers.models.normalization import RMSNorm

    return renamed(lambda d_model, eps=1e-6: RMSNorm(d_model, eps), **_norm(bias=None))


@surveyed("curated-transformers", "RMSNorm", "layers.normalization.RMSNorm", note=WIDE)
def _curated_rms() -> Any:
    stub("catalogue", "curated_tokenizers")
    from curated_transformers.layers.normalization import RMSNorm

    return renamed(lambda d_model, eps=1e-6: RMSNorm(d_model, eps=eps), **_norm(bias=None))


@surveyed("curated-transformers", "gelu_tanh", "layers.activations.GELUNew", note=LOW)
def _curated_gelu() -> Any:
    stub("catalogue", "curated_tokenizers")
    from curated_transformers.layers.activations import GELUNew

    return _elementwise(GELUNew)


@surveyed(
    "xlstm",
    "LayerNorm",
    "components.ln.LayerNorm",
    "variation",
    "multiplies by 1 + weight, and the weight starts at 0; no bias unless asked for",
)
def _xlstm_norm() -> Any:
    stub("dacite", "mlstm_kernels", "rich", "omegaconf")
    from xlstm.components.ln import LayerNorm

    return renamed(
        lambda d_model, eps=1e-5, bias=True: LayerNorm(d_model, bias=bias, eps=eps),
        **_norm("weight+1"),
    )


@surveyed("open_clip_torch", "LayerNorm", "transformer.LayerNorm")
def _open_clip_norm() -> Any:
    stub("ftfy", "torchvision")
    from open_clip.transformer import LayerNorm

    return renamed(lambda d_model, eps=1e-5: LayerNorm(d_model, eps), **_norm())


@surveyed(
    "fair-esm",
    "LayerNorm",
    "modules.ESM1LayerNorm",
    note="statistics in the dtype of its input: in float16 they overflow",
)
def _esm_norm() -> Any:
    from esm.modules import ESM1LayerNorm

    return renamed(ESM1LayerNorm, **_norm())


@surveyed("fair-esm", "gelu", "modules.gelu", note=LOW)
def _esm_gelu() -> Any:
    from esm.modules import gelu

    return gelu


@surveyed(
    "bert-pytorch",
    "LayerNorm",
    "model.utils.LayerNorm",
    "defect",
    "divides by the unbiased deviation plus eps, as the Annotated Transformer does",
    "unbiased",
)
def _bert_pytorch_norm() -> Any:
    from bert_pytorch.model.utils.layer_norm import LayerNorm

    return renamed(lambda d_model, eps=1e-6: LayerNorm(d_model, eps), **_norm("a_2", "b_2"))


@surveyed("bert-pytorch", "gelu_tanh", "model.utils.GELU", note=LOW)
def _bert_pytorch_gelu() -> Any:
    from bert_pytorch.model.utils.gelu import GELU

    return _elementwise(GELU)


@surveyed(
    "bert-pytorch",
    "PreNormTransformerEncoderLayer",
    "model.transformer.TransformerBlock",
    "defect",
    "drops the residual stream itself at the end of each block, beside another "
    "norm and the GELU in place of the ReLU",
    "dropped_stream",
)
def _bert_pytorch_block() -> Any:
    from bert_pytorch.model.transformer import TransformerBlock

    def make(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        return TransformerBlock(d_model, num_heads, d_ff, dropout)

    names = {
        f"self_attention__{key}": f"attention.{place}"
        for key, place in projections(
            "linear_layers.0", "linear_layers.1", "linear_layers.2", "output_linear"
        ).items()
    }
    for ours, theirs in {"norm1": "input_sublayer.norm", "norm2": "output_sublayer.norm"}.items():
        names |= {f"{ours}__weight": f"{theirs}.a_2", f"{ours}__bias": f"{theirs}.b_2"}
    for number in "12":
        for kind in ("weight", "bias"):
            names[f"feed_forward__linear{number}__{kind}"] = f"feed_forward.w_{number}.{kind}"
    return with_call(
        make,
        lambda module, x, mask=None: module(x, heads_of(mask)),
        **names,
    )


@surveyed(
    "bert-pytorch",
    "MultiHeadAttention",
    "model.attention.MultiHeadedAttention",
    "variation",
    "blocked scores are -1e9, so that a row without an allowed key is a plain mean",
)
def _bert_pytorch_attention() -> Any:
    from bert_pytorch.model.attention.multi_head import MultiHeadedAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return MultiHeadedAttention(num_heads, d_model, dropout)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        return module(query, key, value, heads_of(mask))

    places = projections("linear_layers.0", "linear_layers.1", "linear_layers.2", "output_linear")
    return with_call(make, call, **places)


# ---------------------------------------------------------------- attention


@surveyed(
    "openai-whisper",
    "MultiHeadAttention",
    "model.MultiHeadAttention",
    "defect",
    "any mask is taken for the causal one, whatever it holds; the key has no bias, on purpose",
    "any_mask_is_causal",
)
def _whisper_attention() -> Any:
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import MultiHeadAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return MultiHeadAttention(d_model, num_heads)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        return module(query, key, additive(mask, query.dtype))[0]

    return with_call(make, call, **projections("query", "key", "value", "out"))


@surveyed(
    "openai-whisper",
    "sinusoidal_positions",
    "model.sinusoids",
    "variation",
    TIMESCALES,
    "timescales",
)
def _whisper_positions() -> Any:
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import sinusoids

    return _table(sinusoids)


@surveyed(
    "allennlp",
    "attention_weights",
    "nn.util.masked_softmax",
    "defect",
    "blocked scores are set to 0, so allowed ones far below 0 lose their weight",
    "masked_softmax",
)
def _allennlp_softmax() -> Any:
    stub("allennlp", instead=True)
    masked_softmax = _file("allennlp", "allennlp/nn/util.py").masked_softmax

    def weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        if mask is not None:
            mask = mask.expand(scores.shape)
        return masked_softmax(scores, mask)

    return weights


@surveyed(
    "monai",
    "CausalSelfAttention",
    "networks.blocks.SABlock(use_flash_attention=True)",
    "defect",
    "drops attention weights in evaluation too",
    "dropped_in_evaluation",
)
def _monai_attention() -> Any:
    from monai.networks.blocks.selfattention import SABlock

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return SABlock(
            d_model,
            num_heads,
            dropout,
            qkv_bias=True,
            causal=True,
            sequence_length=64,
            use_flash_attention=True,
        )

    return renamed(
        make,
        c_attn__weight="qkv.weight.T",
        c_attn__bias="qkv.bias",
        c_proj__weight="out_proj.weight.T",
        c_proj__bias="out_proj.bias",
    )


@surveyed("monai", "CausalSelfAttention", "networks.blocks.SABlock")
def _monai_attention_written_out() -> Any:
    from monai.networks.blocks.selfattention import SABlock

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return SABlock(d_model, num_heads, dropout, qkv_bias=True, causal=True, sequence_length=64)

    return renamed(
        make,
        c_attn__weight="qkv.weight.T",
        c_attn__bias="qkv.bias",
        c_proj__weight="out_proj.weight.T",
        c_proj__bias="out_proj.bias",
    )


@surveyed(
    "monai",
    "FeedForward",
    "networks.blocks.MLPBlock",
    "variation",
    "the exact GELU, and one more dropout, after it",
)
def _monai_mlp() -> Any:
    from monai.networks.blocks.mlp import MLPBlock

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        return MLPBlock(d_model, d_ff or 4 * d_model, dropout)

    return renamed(
        make,
        c_fc__weight="linear1.weight.T",
        c_fc__bias="linear1.bias",
        c_proj__weight="linear2.weight.T",
        c_proj__bias="linear2.bias",
    )


@surveyed(
    "speechbrain",
    "MultiHeadAttention",
    "nnet.attention.RoPEMHA",
    "defect",
    "reads its weights one way where query, key and value are equal and another way where they are "
    "not; beside rotary positions, for which heads must be even and the check does not fit",
    "two_readings",
)
def _speechbrain_rope() -> Any:
    stub("hyperpyyaml", "sentencepiece", "torchaudio", "scipy")
    from speechbrain.nnet.attention import RoPEMHA

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return RoPEMHA(d_model, num_heads, dropout)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        blocked = None if mask is None else ~mask
        return module(query, key, value, attn_mask=blocked, return_attn_weights=False)

    names = packed("in_proj", "out_proj", "_weight", "_bias")
    return with_call(make, call, **names)


@surveyed(
    "speechbrain",
    "PositionwiseFeedForward",
    "nnet.attention.PositionalwiseFeedForward",
    "variation",
    "drops after the activation, and not the result",
)
def _speechbrain_feed_forward() -> Any:
    stub("hyperpyyaml", "sentencepiece", "torchaudio", "scipy")
    from speechbrain.nnet.attention import PositionalwiseFeedForward

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        return PositionalwiseFeedForward(d_ff, input_size=d_model, dropout=dropout)

    return renamed(
        make,
        linear1__weight="ffn.0.weight",
        linear1__bias="ffn.0.bias",
        linear2__weight="ffn.3.weight",
        linear2__bias="ffn.3.bias",
    )


@surveyed("espnet", "MultiHeadAttention", "nets.pytorch_backend.transformer.MultiHeadedAttention")
def _espnet_attention() -> Any:
    from espnet.nets.pytorch_backend.transformer.attention import MultiHeadedAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return MultiHeadedAttention(num_heads, d_model, dropout)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        if mask is not None and mask.ndim == 2:
            mask = mask.unsqueeze(0)
        return module(query, key, value, mask)

    places = projections("linear_q", "linear_k", "linear_v", "linear_out")
    return with_call(make, call, **places)


@surveyed(
    "espnet",
    "PositionwiseFeedForward",
    "nets.pytorch_backend.transformer.PositionwiseFeedForward",
    "variation",
    "drops after the activation, and not the result",
)
def _espnet_feed_forward() -> Any:
    from espnet.nets.pytorch_backend.transformer.positionwise_feed_forward import (
        PositionwiseFeedForward,
    )

    def make(d_model: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        return PositionwiseFeedForward(d_model, d_ff, dropout)

    return renamed(
        make,
        linear1__weight="w_1.weight",
        linear1__bias="w_1.bias",
        linear2__weight="w_2.weight",
        linear2__bias="w_2.bias",
    )


@surveyed(
    "espnet",
    "sinusoidal_positions",
    "nets.pytorch_backend.transformer.PositionalEncoding",
    note=EVEN,
)
def _espnet_positions() -> Any:
    from espnet.nets.pytorch_backend.transformer.embedding import PositionalEncoding

    return _table(lambda seq, d_model: PositionalEncoding(d_model, 0.0, max(seq, 1)).pe)


@surveyed(
    "fair-esm",
    "MultiHeadAttention",
    "multihead_attention.MultiheadAttention",
    "does not fit",
    "joins its biases, of which there must be three",
)
def _esm_attention() -> Any:
    from esm.multihead_attention import MultiheadAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> nn.Module:
        return MultiheadAttention(d_model, num_heads, dropout=dropout, bias=bias)

    return with_call(make, _sequence_first, **projections("q_proj", "k_proj", "v_proj", "out_proj"))


def _sequence_first(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Calls a module of fairseq's line, whose masks are padding, or shared by all sequences."""
    first = [each.transpose(0, 1) for each in (query, key, value)]
    padding = shared = None
    if mask is not None and mask.ndim == 2:
        shared = additive(mask, query.dtype)
    elif mask is not None and mask.shape[-2] == 1:
        padding = ~mask[:, 0]
    elif mask is not None:
        raise NotImplementedError("takes masks of keys, or one for all sequences")
    output = module(*first, key_padding_mask=padding, attn_mask=shared, need_weights=False)
    return output[0].transpose(0, 1)


@surveyed(
    "fairseq",
    "sinusoidal_positions",
    "modules.SinusoidalPositionalEmbedding",
    "variation",
    TIMESCALES,
    "timescales",
)
def _fairseq_positions() -> Any:
    stub("fairseq", instead=True)
    module = _file("fairseq", "fairseq/modules/sinusoidal_positional_embedding.py")
    return _table(module.SinusoidalPositionalEmbedding.get_embedding)


@surveyed("fairseq", "gelu_tanh", "modules.gelu.gelu_accurate", note=LOW)
def _fairseq_gelu() -> Any:
    return _file("fairseq", "fairseq/modules/gelu.py").gelu_accurate


def _file(work: str, path: str) -> Any:
    """A module of a work, without what its package imports."""
    import importlib.metadata
    import importlib.util

    found = importlib.metadata.distribution(work).locate_file(path)
    spec = importlib.util.spec_from_file_location("surveyed_file", str(found))
    if spec is None or spec.loader is None:
        raise ImportError(f"no file {path} of {work}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@surveyed(
    "torchscale",
    "MultiHeadAttention",
    "component.multihead_attention.MultiheadAttention",
    note="its softmax is in float32",
)
def _torchscale_attention() -> Any:
    stub("fairscale", "apex")
    from torchscale.component.multihead_attention import MultiheadAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        args = SimpleNamespace(multiway=False, xpos_rel_pos=False, layernorm_eps=1e-5)
        args.flash_attention = False
        return MultiheadAttention(args, d_model, num_heads, dropout, self_attention=True)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        padding = shared = None
        if mask is not None and mask.ndim == 2:
            shared = additive(mask, query.dtype)
        elif mask is not None and mask.shape[-2] == 1:
            padding = ~mask[:, 0]
        elif mask is not None:
            raise NotImplementedError("takes masks of keys, or one for all sequences")
        return module(query, key, value, key_padding_mask=padding, attn_mask=shared)[0]

    return with_call(make, call, **projections("q_proj", "k_proj", "v_proj", "out_proj"))


@surveyed(
    "d2l",
    "MultiHeadAttention",
    "torch.MultiHeadAttention",
    "does not fit",
    "masks are lengths of keys; blocked scores are -1e6; no biases unless asked for",
)
def _d2l_attention() -> Any:
    d2l = _d2l()

    def make(d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> nn.Module:
        module = d2l.MultiHeadAttention(d_model, num_heads, dropout, bias)
        x = torch.zeros(1, 1, d_model, dtype=torch.float32)
        with torch.device("cpu"):
            module(x, x, x, None)  # lazy maps learn their sizes
        return module

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        lengths = None
        if mask is not None:
            lengths = mask.sum(-1)
            if not torch.equal(torch.arange(mask.shape[-1]) < lengths[..., None], mask):
                raise NotImplementedError("masks are lengths")
            if mask.ndim == 2:
                lengths = lengths.expand(query.shape[0], -1)
            elif mask.shape[-2] == 1:
                lengths = lengths[:, 0]
        return module(query, key, value, lengths)

    return with_call(make, call, **projections("W_q", "W_k", "W_v", "W_o"))


def _d2l() -> Any:
    stub("matplotlib_inline", "gym", "pandas", "torchvision", "PIL", "syne_tune", "scipy")
    from d2l import torch as d2l

    return d2l


@surveyed("d2l", "sinusoidal_positions", "torch.PositionalEncoding", note=EVEN)
def _d2l_positions() -> Any:
    d2l = _d2l()
    return _table(lambda seq, d_model: d2l.PositionalEncoding(d_model, 0.0, max(seq, 1)).P)


@surveyed(
    "segment-anything",
    "MultiHeadAttention",
    "modeling.transformer.Attention",
    "does not fit",
    "takes no mask",
)
def _segment_anything() -> Any:
    stub("torchvision")
    from segment_anything.modeling.transformer import Attention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return Attention(d_model, num_heads)

    return renamed(make, **projections("q_proj", "k_proj", "v_proj", "out_proj"))


@surveyed("fairseq2", "RMSNorm", "nn.RMSNorm")
def _fairseq2() -> Any:
    stub(
        "fairseq2n",
        "editdistance",
        "mypy_extensions",
        "sacrebleu",
        "importlib_resources",
        "blobfile",
        "tiktoken",
        "packaging_",
        "torcheval",
        "ruamel",
        "polars",
        "retrying",
        "xxhash",
        "clusterscope",
    )
    from fairseq2.nn import RMSNorm

    return renamed(
        lambda d_model, eps=1e-6: RMSNorm(d_model, bias=False, eps=eps), **_norm(bias=None)
    )


@surveyed(
    "keras",
    "LayerNorm",
    "layers.LayerNormalization (torch backend)",
    "variation",
    "eps is 1e-3 unless given",
)
def _keras_layer_norm() -> Any:
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    def make(d_model: int, eps: float = 1e-3) -> nn.Module:
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        layer = keras.layers.LayerNormalization(epsilon=eps, name="norm", dtype=dtype)
        layer.build((None, d_model))
        return layer

    names = {"weight": "_torch_params.norm/gamma", "bias": "_torch_params.norm/beta"}
    return renamed(make, **names)


@surveyed(
    "sentence-transformers",
    "LayerNorm",
    "models.LayerNorm",
    "does not fit",
    "takes a dictionary of features",
)
def _sentence_transformers() -> Any:
    stub("scipy", "sklearn")
    from sentence_transformers.models import LayerNorm

    return LayerNorm


@surveyed("transformer-lens", "gelu_tanh", "utilities.gelu_new", note=LOW)
def _lens_gelu() -> Any:
    stub(
        "fancy_einsum",
        "wandb",
        "better_abc",
        "datasets",
        "rich",
        "transformers_stream_generator",
        "pandas",
    )
    from transformer_lens.utilities.activation_functions import gelu_new

    return gelu_new


@surveyed(
    "pytorch-pretrained-bert",
    "LayerNorm",
    "modeling.BertLayerNorm",
    note="statistics in the dtype of its input: in float16 they overflow",
)
def _pretrained_bert() -> Any:
    stub("boto3", "botocore")
    from pytorch_pretrained_bert.modeling import BertLayerNorm

    return renamed(lambda d_model, eps=1e-12: BertLayerNorm(d_model, eps), **_norm())


@surveyed(
    "pytorch-pretrained-bert",
    "Conv1D",
    "modeling_gpt2.Conv1D",
    note="a view: input that is not contiguous is an error",
)
def _pretrained_conv1d() -> Any:
    stub("boto3", "botocore")
    from pytorch_pretrained_bert.modeling_gpt2 import Conv1D

    return renamed(lambda nx, nf: Conv1D(nf, nx), **_norm())


@surveyed("pytorch-transformers", "gelu", "modeling_bert.gelu", note=LOW)
def _pytorch_transformers() -> Any:
    stub("boto3", "botocore", "sacremoses", "sentencepiece")
    from pytorch_transformers.modeling_bert import gelu

    return gelu


@surveyed(
    "neuralforecast", "sinusoidal_positions", "common._modules.PositionalEmbedding", note=EVEN
)
def _neuralforecast() -> Any:
    module = _file("neuralforecast", "neuralforecast/common/_modules.py")
    return _table(lambda seq, d_model: module.PositionalEmbedding(d_model, max(seq, 1)).pe)


@surveyed("recbole", "gelu", "model.layers.FeedForward.gelu", note=LOW)
def _recbole() -> Any:
    stub("recbole", "colorlog", "colorama", "pandas", "ray", "texttable", "thop", "tensorboard")
    stub("torch.utils.tensorboard", instead=True)
    layers = _file("recbole", "recbole/model/layers.py")
    block = layers.FeedForward(4, 4, 0.0, "gelu", 1e-12)
    return block.gelu


@surveyed(
    "diffusers",
    "sinusoidal_positions",
    "models.embeddings.get_1d_sincos_pos_embed_from_grid",
    "variation",
    CONCATENATED,
)
def _diffusers_positions() -> Any:
    from diffusers.models.embeddings import get_1d_sincos_pos_embed_from_grid

    def make(seq: int, d_model: int) -> Tensor:
        return get_1d_sincos_pos_embed_from_grid(
            d_model, torch.arange(seq, dtype=torch.float64), output_type="pt"
        )

    return _table(make)


@surveyed(
    "diffusers",
    "FeedForward",
    "models.attention.FeedForward(activation_fn='gelu-approximate')",
    "variation",
    "drops after the activation, and not the result",
)
def _diffusers_feed_forward() -> Any:
    from diffusers.models.attention import FeedForward

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        return FeedForward(
            d_model,
            dropout=dropout,
            activation_fn="gelu-approximate",
            inner_dim=d_ff or 4 * d_model,
        )

    return renamed(
        make,
        c_fc__weight="net.0.proj.weight.T",
        c_fc__bias="net.0.proj.bias",
        c_proj__weight="net.2.weight.T",
        c_proj__bias="net.2.bias",
    )


@surveyed(
    "TTS",
    "LayerNorm",
    "tts.layers.generic.LayerNorm",
    "does not fit",
    "normalizes the channels of (batch, channels, time), axis 1; eps is 1e-4",
)
def _tts_norm() -> Any:
    module = _file("TTS", "TTS/tts/layers/generic/normalization.py")
    return renamed(
        lambda d_model, eps=1e-4: module.LayerNorm(d_model, eps), weight="gamma", bias="beta"
    )


@surveyed(
    "megatron-core",
    "gelu_tanh",
    "fusions.fused_bias_gelu.bias_gelu",
    "variation",
    "its constant has eight digits",
)
def _megatron() -> Any:
    stub("transformer_engine", "apex")
    module = _file("megatron-core", "megatron/core/fusions/fused_bias_gelu.py")
    return lambda x: module.bias_gelu(torch.zeros((), dtype=x.dtype), x)


@surveyed(
    "vit-pytorch",
    "RMSNorm",
    "na_vit.RMSNorm",
    "does not fit",
    "has a gain for each head, in the layout of attention",
)
def _vit_rms() -> Any:
    stub("torchvision")
    from vit_pytorch.na_vit import RMSNorm

    return renamed(lambda d_model, eps=1e-6: RMSNorm(1, d_model), weight="gamma")


@surveyed(
    "performer-pytorch",
    "sinusoidal_positions",
    "FixedPositionalEmbedding",
    "variation",
    CONCATENATED,
)
def _performer() -> Any:
    stub("axial_positional_embedding", "hyper_connections")
    from performer_pytorch.performer_pytorch import FixedPositionalEmbedding

    return _table(lambda seq, d_model: FixedPositionalEmbedding(d_model, max(seq, 1)).emb)


@surveyed(
    "palm-rlhf-pytorch", "LayerNorm", "palm.LayerNorm", "variation", "has no bias, on purpose"
)
def _palm() -> Any:
    stub(
        "accelerate_",
        "lion_pytorch",
        "pytorch_warmup",
        "adam_atan2_pytorch",
        "hl_gauss_pytorch",
    )
    from palm_rlhf_pytorch.palm import LayerNorm

    return renamed(lambda d_model, eps=1e-5, bias=True: LayerNorm(d_model), weight="gamma")


@surveyed(
    "karpathy/nanoGPT",
    "LayerNorm",
    "model.LayerNorm",
    "variation",
    "eps is 1e-5, and cannot be chosen",
    place="karpathy-nanoGPT-3adf61e1",
)
def _nanogpt_norm() -> Any:
    import nanogpt_model

    def make(d_model: int, eps: float = 1e-5, bias: bool = True) -> nn.Module:
        return nanogpt_model.LayerNorm(d_model, bias)

    return renamed(make, **_norm())


def _nano_config(d_model: int, num_heads: int = 1, dropout: float = 0.1) -> Any:
    return SimpleNamespace(
        n_embd=d_model,
        n_head=num_heads,
        dropout=dropout,
        attn_pdrop=dropout,
        resid_pdrop=dropout,
        bias=True,
        block_size=64,
        n_layer=2,
    )


C_ATTN = {
    "c_attn__weight": "c_attn.weight.T",
    "c_attn__bias": "c_attn.bias",
    "c_proj__weight": "c_proj.weight.T",
    "c_proj__bias": "c_proj.bias",
}


@surveyed(
    "karpathy/nanoGPT",
    "CausalSelfAttention",
    "model.CausalSelfAttention",
    place="karpathy-nanoGPT-3adf61e1",
)
def _nanogpt_attention() -> Any:
    import nanogpt_model

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return nanogpt_model.CausalSelfAttention(_nano_config(d_model, num_heads, dropout))

    return renamed(make, **C_ATTN)


@surveyed(
    "karpathy/nanoGPT",
    "FeedForward",
    "model.MLP",
    "variation",
    "the exact GELU: a model of its own may have it; GPT-2's weights want the other "
    "(pull request 274)",
    place="karpathy-nanoGPT-3adf61e1",
)
def _nanogpt_mlp() -> Any:
    import nanogpt_model

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        if d_ff not in (None, 4 * d_model):
            raise TypeError(f"is four times as wide inside, not {d_ff}")
        return nanogpt_model.MLP(_nano_config(d_model, 1, dropout))

    return renamed(
        make,
        **{
            name.replace("c_attn", "c_fc"): place.replace("c_attn", "c_fc")
            for name, place in C_ATTN.items()
        },
    )


@surveyed(
    "karpathy/minGPT",
    "CausalSelfAttention",
    "mingpt.model.CausalSelfAttention",
    place="karpathy-minGPT-37baab71",
)
def _mingpt_attention() -> Any:
    stub("mingpt")
    import mingpt_model

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return mingpt_model.CausalSelfAttention(_nano_config(d_model, num_heads, dropout))

    return renamed(make, **C_ATTN)


@surveyed(
    "karpathy/minGPT",
    "gelu_tanh",
    "mingpt.model.NewGELU",
    note=LOW,
    place="karpathy-minGPT-37baab71",
)
def _mingpt_gelu() -> Any:
    stub("mingpt")
    import mingpt_model

    return _elementwise(mingpt_model.NewGELU)
