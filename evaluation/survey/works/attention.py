"""Attention of public works."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.survey.adapters import (
    additive,
    heads_of,
    packed,
    plainly,
    projections,
    renamed,
    with_call,
)
from evaluation.survey.definitions import surveyed
from evaluation.survey.stubs import stub
from evaluation.survey.works.configs import (
    C_ATTN,
    OURS,
    first_of,
    gpt1_config,
    gpt2_config,
    nano_config,
)
from evaluation.survey.works.reaching import annotated_transformer, d2l_torch, file_of


@surveyed("transformers", "CausalSelfAttention", "models.gpt2.GPT2Attention")
def _gpt2_attention() -> Any:
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        config = gpt2_config(d_model, num_heads, dropout)
        config._attn_implementation = "sdpa"
        return GPT2Attention(config)

    names = [f"{each}.{kind}" for each in ("c_attn", "c_proj") for kind in ("weight", "bias")]
    return with_call(
        make,
        lambda module, *inputs, **named: plainly(module, *inputs, **named)[0],
        **{name.replace(".", "__"): name for name in names},
    )


@surveyed(
    "labml-nn",
    "MultiHeadAttention",
    "transformers.mha.MultiHeadAttention",
    "variation",
    "value and output always have a bias; a row without an allowed key is NaN",
    known_as=("NaN in empty rows",),
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
    "bert-pytorch",
    "MultiHeadAttention",
    "model.attention.MultiHeadedAttention",
    "variation",
    "blocked scores are -1e9, so that a row without an allowed key is a plain mean",
    known_as=("empty rows attend to all",),
)
def _bert_pytorch_attention() -> Any:
    from bert_pytorch.model.attention.multi_head import MultiHeadedAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return MultiHeadedAttention(num_heads, d_model, dropout)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        return module(query, key, value, heads_of(mask))

    places = projections("linear_layers.0", "linear_layers.1", "linear_layers.2", "output_linear")
    return with_call(make, call, **places)


@surveyed(
    "openai-whisper",
    "MultiHeadAttention",
    "model.MultiHeadAttention",
    "defect",
    "any mask is taken for the causal one, whatever it holds; the key has no bias, on purpose",
    "any_mask_is_causal",
    cited_for=("any mask taken for causal",),
)
def _whisper_attention() -> Any:
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import MultiHeadAttention

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return MultiHeadAttention(d_model, num_heads)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        # As its forward, which takes the values from the keys' input.
        heads = [module.query(query), module.key(key), module.value(value)]
        return module.out(module.qkv_attention(*heads, additive(mask, query.dtype))[0])

    return with_call(make, call, **projections("query", "key", "value", "out"))


@surveyed(
    "allennlp",
    "attention_weights",
    "nn.util.masked_softmax",
    "defect",
    "blocked scores are set to 0, so allowed ones far below 0 lose their weight",
    "masked_softmax",
    cited_for=("masked softmax over zeros",),
)
def _allennlp_softmax() -> Any:
    stub("allennlp", instead=True)
    masked_softmax = file_of("allennlp", "allennlp/nn/util.py").masked_softmax

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
    cited_for=("dropout in evaluation",),
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
    d2l = d2l_torch()

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


@surveyed(
    "karpathy/nanoGPT",
    "CausalSelfAttention",
    "model.CausalSelfAttention",
    place="karpathy-nanoGPT-3adf61e1",
)
def _nanogpt_attention() -> Any:
    import nanogpt_model

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return nanogpt_model.CausalSelfAttention(nano_config(d_model, num_heads, dropout))

    return renamed(make, **C_ATTN)


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
        return mingpt_model.CausalSelfAttention(nano_config(d_model, num_heads, dropout))

    return renamed(make, **C_ATTN)


@surveyed(
    "harvardnlp/annotated-transformer",
    "scaled_dot_product_attention",
    "the_annotated_transformer.attention",
    "variation",
    "blocked scores are -1e9, so that a row without an allowed key is a plain mean",
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("-1e9 for -inf", "empty rows attend to all"),
)
def _annotated_attention() -> Any:
    annotated = annotated_transformer()

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        dropout_p: float = 0.0,
    ) -> Tensor:
        return annotated.attention(query, key, value, mask, nn.Dropout(dropout_p))[0]

    return attention


@surveyed(
    "harvardnlp/annotated-transformer",
    "MultiHeadAttention",
    "the_annotated_transformer.MultiHeadedAttention",
    "variation",
    "blocked scores are -1e9, so that a row without an allowed key is a plain mean",
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("empty rows attend to all",),
)
def _annotated_heads() -> Any:
    annotated = annotated_transformer()

    def make(d_model: int, num_heads: int, dropout: float = 0.0) -> nn.Module:
        return annotated.MultiHeadedAttention(num_heads, d_model, dropout)

    def call(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Tensor:
        if mask is not None and mask.ndim == 2:
            mask = mask.unsqueeze(0)
        return module(query, key, value, mask)

    places = projections(*(f"linears.{number}" for number in range(4)))
    return with_call(make, call, **places)


@surveyed(
    "torch",
    "MultiHeadAttention",
    "nn.MultiheadAttention",
    "defect",
    "a row without an allowed key is NaN or is not, by whether weights are asked for and gradients "
    "recorded; starts from Xavier's draws and biases of zeros",
    second="two_answers",
    cited_for=("initialized as nn.MultiheadAttention",),
)
def _torch_heads() -> Any:
    return nn.MultiheadAttention


@surveyed(
    "torch",
    "causal_mask",
    "nn.functional.scaled_dot_product_attention(is_causal=True)",
    "variation",
    "counts from the first key where there are fewer queries than keys, as its documentation says",
    cited_for=("aligned at the top left",),
)
def _torch_causal() -> Any:
    def causal_mask(seq: int, past: int = 0, *, device: Any = None) -> Tensor:
        keys = past + seq
        each = torch.eye(keys, device=device)  # the value of a key, which its weight multiplies
        query, key = torch.zeros(seq, 1, device=device), torch.zeros(keys, 1, device=device)
        return functional.scaled_dot_product_attention(query, key, each, is_causal=True) > 0

    return causal_mask


@surveyed(
    "torch",
    "dropout",
    "nn.functional.dropout",
    note="multiplies by 0, which makes NaN of a dropped infinity",
    cited_for=("infinity times zero",),
)
def _torch_dropout() -> Any:
    return functional.dropout


@surveyed(
    "transformers",
    "CausalSelfAttention",
    "models.openai.Attention",
    "defect",
    "blocked scores are -10,000, which real ones can fall below",
    second="crossed_mask_of_gpt1",
    cited_for=("-10,000 for -inf",),
)
def _gpt1_attention() -> Any:
    from transformers.models.openai.modeling_openai import Attention

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return Attention(d_model, 64, gpt1_config(d_model, num_heads, dropout), scale=True)

    return with_call(make, first_of, **OURS)


@surveyed(
    "pytorch-transformers",
    "CausalSelfAttention",
    "modeling_gpt2.Attention",
    "defect",
    "blocked scores are -10,000, which real ones can fall below",
    second="crossed_mask",
    cited_for=("-10,000 for -inf",),
)
def _pytorch_transformers_attention() -> Any:
    stub("boto3", "botocore", "sacremoses", "sentencepiece")
    from pytorch_transformers.modeling_gpt2 import Attention

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        config = gpt2_config(d_model, num_heads, dropout)
        config.output_attentions = False
        return Attention(d_model, 64, config, scale=True)

    return with_call(make, first_of, **OURS)


@surveyed(
    "graykode/gpt-2-Pytorch",
    "CausalSelfAttention",
    "GPT2.model.Attention",
    "variation",
    "drops nothing, and keeps its mask in the state dict",
    place="graykode-gpt-2-Pytorch-401078fd",
    cited_for=("mask in the state dict", "dropout ignored"),
)
def _graykode_attention() -> Any:
    import graykode_model

    class Attention(graykode_model.Attention):
        """The same, built from sizes."""

        def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
            super().__init__(d_model, 64, SimpleNamespace(n_head=num_heads), scale=True)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)[0]

    return Attention
