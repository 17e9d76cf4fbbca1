"""Whole layers of public works: attention and a feed-forward network together."""

from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from evaluation.survey.adapters import heads_of, projections, renamed, with_call
from evaluation.survey.definitions import surveyed
from evaluation.survey.works.configs import first_of, gpt1_config, nano_config
from evaluation.survey.works.reaching import annotated_transformer


@surveyed(
    "bert-pytorch",
    "PreNormTransformerEncoderLayer",
    "model.transformer.TransformerBlock",
    "defect",
    "drops the residual stream itself at the end of each block, beside another "
    "norm and the GELU in place of the ReLU",
    "dropped_stream",
    cited_for=("residual stream dropped",),
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
    "harvardnlp/annotated-transformer",
    "TransformerEncoderLayer",
    "the_annotated_transformer.EncoderLayer",
    "defect",
    "has the LayerNorm whose deviation is unbiased; beside it, its text says post-norm and its "
    "code is pre-norm, and it drops inside the feed-forward network too",
    second="unbiased_as_annotated",
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("pre-norm", "unbiased deviation plus eps"),
)
def _annotated_encoder() -> Any:
    annotated = annotated_transformer()

    def make(d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1) -> nn.Module:
        attention = annotated.MultiHeadedAttention(num_heads, d_model, dropout)
        feed_forward = annotated.PositionwiseFeedForward(d_model, d_ff, dropout)
        return annotated.EncoderLayer(d_model, attention, feed_forward, dropout)

    names = {
        f"self_attention__{key}": f"self_attn.{place}"
        for key, place in projections(*(f"linears.{number}" for number in range(4))).items()
    }
    for number in (1, 2):
        norm = f"sublayer.{number - 1}.norm"
        names |= {f"norm{number}__weight": f"{norm}.a_2", f"norm{number}__bias": f"{norm}.b_2"}
        for kind in ("weight", "bias"):
            names[f"feed_forward__linear{number}__{kind}"] = f"feed_forward.w_{number}.{kind}"

    def call(module: Any, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return module(x, mask.unsqueeze(0) if mask is not None and mask.ndim == 2 else mask)

    return with_call(make, call, **names)


def _of_gpt2(transposed: str = "") -> dict[str, str]:
    """Where the weights of a block are that has GPT-2's names."""
    names = {}
    for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
        ours = part.replace(".", "__")
        names[f"{ours}__weight"] = f"{part}.weight{transposed}"
        names[f"{ours}__bias"] = f"{part}.bias"
    for norm in ("ln_1", "ln_2"):
        for kind in ("weight", "bias"):
            names[f"{norm}__{kind}"] = f"{norm}.{kind}"
    return names


@surveyed(
    "transformers",
    "GPT2Block",
    "models.openai.Block",
    "defect",
    "has the attention whose blocked scores are -10,000; beside it, it is GPT-1's, which is "
    "post-norm",
    second="crossed_mask_of_gpt1",
    cited_for=("post-norm",),
)
def _gpt1_block() -> Any:
    from transformers.models.openai.modeling_openai import Block

    def make(d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5) -> nn.Module:
        config = gpt1_config(d_model, num_heads, dropout)
        config.layer_norm_epsilon = eps
        return Block(64, config, scale=True)

    return with_call(make, first_of, **_of_gpt2())


@surveyed(
    "karpathy/nanoGPT",
    "GPT2Block",
    "model.Block",
    "variation",
    "the exact GELU, as its MLP; its eps cannot be chosen",
    place="karpathy-nanoGPT-3adf61e1",
    cited_for=("exact GELU",),
)
def _nanogpt_block() -> Any:
    import nanogpt_model

    def make(d_model: int, num_heads: int, dropout: float = 0.1) -> nn.Module:
        return nanogpt_model.Block(nano_config(d_model, num_heads, dropout))

    return renamed(make, **_of_gpt2(transposed=".T"))


@surveyed(
    "graykode/gpt-2-Pytorch",
    "GPT2Block",
    "GPT2.model.Block",
    "variation",
    "drops nothing",
    place="graykode-gpt-2-Pytorch-401078fd",
    cited_for=("dropout ignored",),
)
def _graykode_block() -> Any:
    import graykode_model

    def make(d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5) -> nn.Module:
        config = SimpleNamespace(n_embd=d_model, n_head=num_heads, layer_norm_epsilon=eps)
        return graykode_model.Block(64, config, scale=True)

    return with_call(make, first_of, **_of_gpt2())


@surveyed(
    "transformers",
    "GPT2Block",
    "models.gpt_neox.GPTNeoXLayer",
    "variation",
    "both sub-layers start from the input, on purpose; asked without its rotary positions",
    cited_for=("sub-layers in parallel",),
)
def _gpt_neox() -> Any:
    from transformers import GPTNeoXConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXLayer

    class Block(GPTNeoXLayer):
        """The same, built from sizes, and called at angles of 0."""

        def __init__(
            self, d_model: int, num_heads: int, dropout: float = 0.1, eps: float = 1e-5
        ) -> None:
            config = GPTNeoXConfig(
                hidden_size=d_model,
                num_attention_heads=num_heads,
                intermediate_size=4 * d_model,
                hidden_act="gelu_new",
                hidden_dropout=dropout,
                attention_dropout=dropout,
                layer_norm_eps=eps,
            )
            config._attn_implementation = "sdpa"
            super().__init__(config, 0)

        def forward(self, x: Tensor) -> Tensor:
            batched = x if x.ndim == 3 else x.unsqueeze(0)
            angles = batched.new_zeros(1, batched.shape[-2], self.attention.rotary_ndims)
            result = super().forward(batched, position_embeddings=(angles.cos(), angles.sin()))
            return result.reshape(x.shape)

    return Block
