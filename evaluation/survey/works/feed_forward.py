"""Feed-forward layers of public works, and the Conv1D that some are made of."""

from typing import Any

from torch import nn

from evaluation.survey.adapters import renamed
from evaluation.survey.definitions import surveyed
from evaluation.survey.stubs import stub
from evaluation.survey.works.configs import C_ATTN, gpt2_config, nano_config
from evaluation.survey.works.reaching import annotated_transformer


@surveyed(
    "transformers",
    "Conv1D",
    "pytorch_utils.Conv1D",
    note="a view: input that is not contiguous is an error",
    cited_for=("view of strides",),
)
def _conv1d() -> Any:
    from transformers.pytorch_utils import Conv1D

    return renamed(lambda nx, nf: Conv1D(nf, nx), weight="weight", bias="bias")


@surveyed("transformers", "FeedForward", "models.gpt2.GPT2MLP")
def _gpt2_mlp() -> Any:
    from transformers.models.gpt2.modeling_gpt2 import GPT2MLP

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        return GPT2MLP(4 * d_model if d_ff is None else d_ff, gpt2_config(d_model, 1, dropout))

    names = [f"{each}.{kind}" for each in ("c_fc", "c_proj") for kind in ("weight", "bias")]
    return renamed(make, **{name.replace(".", "__"): name for name in names})


@surveyed(
    "labml-nn",
    "PositionwiseFeedForward",
    "transformers.feed_forward.FeedForward",
    "variation",
    "drops after the activation, and not the result",
    known_as=("dropout inside",),
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


@surveyed(
    "monai",
    "FeedForward",
    "networks.blocks.MLPBlock",
    "variation",
    "the exact GELU, and one more dropout, after it",
    known_as=("exact GELU",),
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
    "PositionwiseFeedForward",
    "nnet.attention.PositionalwiseFeedForward",
    "variation",
    "drops after the activation, and not the result",
    known_as=("dropout inside",),
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


@surveyed(
    "espnet",
    "PositionwiseFeedForward",
    "nets.pytorch_backend.transformer.PositionwiseFeedForward",
    "variation",
    "drops after the activation, and not the result",
    known_as=("dropout inside",),
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
    "pytorch-pretrained-bert",
    "Conv1D",
    "modeling_gpt2.Conv1D",
    note="a view: input that is not contiguous is an error",
    known_as=("view of strides",),
)
def _pretrained_conv1d() -> Any:
    stub("boto3", "botocore")
    from pytorch_pretrained_bert.modeling_gpt2 import Conv1D

    return renamed(lambda nx, nf: Conv1D(nf, nx), weight="weight", bias="bias")


@surveyed(
    "diffusers",
    "FeedForward",
    "models.attention.FeedForward(activation_fn='gelu-approximate')",
    "variation",
    "drops after the activation, and not the result",
    known_as=("dropout inside",),
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
    "karpathy/nanoGPT",
    "FeedForward",
    "model.MLP",
    "variation",
    "the exact GELU: a model of its own may have it; GPT-2's weights want the other "
    "(pull request 274)",
    place="karpathy-nanoGPT-3adf61e1",
    cited_for=("exact GELU",),
)
def _nanogpt_mlp() -> Any:
    import nanogpt_model

    def make(d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> nn.Module:
        mlp = nanogpt_model.MLP(nano_config(d_model, 1, dropout))
        if d_ff not in (None, 4 * d_model):  # its own width is four times the outer one
            mlp.c_fc, mlp.c_proj = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        return mlp

    return renamed(
        make,
        **{
            name.replace("c_attn", "c_fc"): place.replace("c_attn", "c_fc")
            for name, place in C_ATTN.items()
        },
    )


@surveyed(
    "harvardnlp/annotated-transformer",
    "PositionwiseFeedForward",
    "the_annotated_transformer.PositionwiseFeedForward",
    "variation",
    "drops after the activation, and not the result",
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("dropout inside",),
)
def _annotated_feed_forward() -> Any:
    annotated = annotated_transformer()
    return renamed(
        annotated.PositionwiseFeedForward,
        linear1__weight="w_1.weight",
        linear1__bias="w_1.bias",
        linear2__weight="w_2.weight",
        linear2__bias="w_2.bias",
    )


@surveyed(
    "torch",
    "PositionwiseFeedForward",
    "nn.TransformerEncoderLayer's feed-forward part",
    "variation",
    "drops after the activation, and the result as well",
    cited_for=("dropout inside too",),
)
def _torch_feed_forward() -> Any:
    class FeedForward(nn.Module):
        """The maps of an encoder layer, and its own way through them."""

        def __init__(
            self,
            d_model: int,
            d_ff: int,
            dropout: float = 0.1,
            device: Any = None,
            dtype: Any = None,
        ) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(
                d_model, 1, d_ff, dropout, device=device, dtype=dtype
            )
            self.linear1, self.linear2 = layer.linear1, layer.linear2
            self.dropout, self.dropout2 = layer.dropout, layer.dropout2
            self.activation = layer.activation

        forward = nn.TransformerEncoderLayer._ff_block

    return FeedForward


@surveyed(
    "graykode/gpt-2-Pytorch",
    "Conv1D",
    "GPT2.model.Conv1D",
    "variation",
    "takes the size of its output first; a view: input that is not contiguous is an error",
    place="graykode-gpt-2-Pytorch-401078fd",
    cited_for=("output size first", "view of strides"),
)
def _graykode_conv1d() -> Any:
    import graykode_model

    return graykode_model.Conv1D
