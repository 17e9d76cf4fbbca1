"""Tables of positions of public works."""

from typing import Any

import torch
from torch import Tensor

from evaluation.survey.definitions import surveyed
from evaluation.survey.stubs import stub
from evaluation.survey.works.reaching import annotated_transformer, d2l_torch, file_of

TIMESCALES = (
    "timescales run to 10000 over d/2 - 1 steps, as in tensor2tensor, not over d/2 as in the "
    "paper, and all sines stand before all cosines"
)

CONCATENATED = "all sines stand before all cosines: the paper's columns in another order"

EVEN = "even widths only; angles in float32, off by 4e-5 and more where positions are large"


def _table(make: Any) -> Any:
    """A function of (seq, d_model) from one that gives some tensor of these sizes."""

    def positions(seq: int, d_model: int, *, dtype: torch.dtype | None = None) -> Tensor:
        table = make(seq, d_model).reshape(-1, d_model)[:seq]
        return table.to(torch.get_default_dtype() if dtype is None else dtype)

    return positions


@surveyed(
    "transformers",
    "sinusoidal_positions",
    "models.m2m_100.M2M100SinusoidalPositionalEmbedding",
    "variation",
    TIMESCALES + "; its docstring says that it differs",
    "timescales",
    cited_for=("table of tensor2tensor",),
)
def _m2m() -> Any:
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

    return _table(M2M100SinusoidalPositionalEmbedding.get_embedding)


@surveyed("labml-nn", "sinusoidal_positions", "transformers.positional_encoding", note=EVEN)
def _labml_positions() -> Any:
    from labml_nn.transformers.positional_encoding import get_positional_encoding

    return _table(lambda seq, d_model: get_positional_encoding(d_model, max(seq, 1)))


@surveyed(
    "openai-whisper",
    "sinusoidal_positions",
    "model.sinusoids",
    "variation",
    TIMESCALES,
    "timescales",
    cited_for=("table of tensor2tensor",),
)
def _whisper_positions() -> Any:
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import sinusoids

    return _table(sinusoids)


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
    "fairseq",
    "sinusoidal_positions",
    "modules.SinusoidalPositionalEmbedding",
    "variation",
    TIMESCALES,
    "timescales",
    cited_for=("table of tensor2tensor",),
)
def _fairseq_positions() -> Any:
    stub("fairseq", instead=True)
    module = file_of("fairseq", "fairseq/modules/sinusoidal_positional_embedding.py")
    return _table(module.SinusoidalPositionalEmbedding.get_embedding)


@surveyed("d2l", "sinusoidal_positions", "torch.PositionalEncoding", note=EVEN)
def _d2l_positions() -> Any:
    d2l = d2l_torch()
    return _table(lambda seq, d_model: d2l.PositionalEncoding(d_model, 0.0, max(seq, 1)).P)


@surveyed(
    "neuralforecast", "sinusoidal_positions", "common._modules.PositionalEmbedding", note=EVEN
)
def _neuralforecast() -> Any:
    module = file_of("neuralforecast", "neuralforecast/common/_modules.py")
    return _table(lambda seq, d_model: module.PositionalEmbedding(d_model, max(seq, 1)).pe)


@surveyed(
    "diffusers",
    "sinusoidal_positions",
    "models.embeddings.get_1d_sincos_pos_embed_from_grid",
    "variation",
    CONCATENATED,
    known_as=("sines before cosines",),
)
def _diffusers_positions() -> Any:
    from diffusers.models.embeddings import get_1d_sincos_pos_embed_from_grid

    def make(seq: int, d_model: int) -> Tensor:
        return get_1d_sincos_pos_embed_from_grid(
            d_model, torch.arange(seq, dtype=torch.float64), output_type="pt"
        )

    return _table(make)


@surveyed(
    "performer-pytorch",
    "sinusoidal_positions",
    "FixedPositionalEmbedding",
    "variation",
    CONCATENATED,
    known_as=("sines before cosines",),
)
def _performer() -> Any:
    stub("axial_positional_embedding", "hyper_connections", "local_attention")
    from performer_pytorch.performer_pytorch import FixedPositionalEmbedding

    return _table(lambda seq, d_model: FixedPositionalEmbedding(d_model, max(seq, 1)).emb)


@surveyed(
    "harvardnlp/annotated-transformer",
    "sinusoidal_positions",
    "the_annotated_transformer.PositionalEncoding",
    note=EVEN,
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("even widths only", "angles in float32"),
)
def _annotated_positions() -> Any:
    annotated = annotated_transformer()
    return _table(lambda seq, d_model: annotated.PositionalEncoding(d_model, 0.0, max(seq, 1)).pe)


@surveyed(
    "SamLynnEvans/Transformer",
    "sinusoidal_positions",
    "Embed.PositionalEncoder",
    "defect",
    "doubles the numbers of columns, which are doubled already: the sine and the cosine of a pair "
    "have different wavelengths",
    "exponents_doubled",
    place="SamLynnEvans-Transformer-49e01800",
    cited_for=("both exponents doubled",),
)
def _samlynnevans() -> Any:
    import samlynnevans_embed

    return _table(
        lambda seq, d_model: samlynnevans_embed.PositionalEncoder(d_model, max(seq, 1)).pe
    )
