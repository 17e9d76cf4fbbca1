"""Activations of public works."""

from typing import Any

import torch

from evaluation.survey.definitions import surveyed
from evaluation.survey.stubs import stub
from evaluation.survey.works.reaching import file_of

LOW = "computes bfloat16 in bfloat16"


def _elementwise(make: Any) -> Any:
    """A function from a class of activations."""
    return make()


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
    cited_for=("constant of ten digits",),
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
    known_as=("sigmoid form",),
)
def _gelu_quick() -> Any:
    from transformers.activations import QuickGELUActivation

    return _elementwise(QuickGELUActivation)


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


@surveyed("curated-transformers", "gelu_tanh", "layers.activations.GELUNew", note=LOW)
def _curated_gelu() -> Any:
    stub("catalogue", "curated_tokenizers")
    from curated_transformers.layers.activations import GELUNew

    return _elementwise(GELUNew)


@surveyed("fair-esm", "gelu", "modules.gelu", note=LOW)
def _esm_gelu() -> Any:
    from esm.modules import gelu

    return gelu


@surveyed("bert-pytorch", "gelu_tanh", "model.utils.GELU", note=LOW)
def _bert_pytorch_gelu() -> Any:
    from bert_pytorch.model.utils.gelu import GELU

    return _elementwise(GELU)


@surveyed("fairseq", "gelu_tanh", "modules.gelu.gelu_accurate", note=LOW)
def _fairseq_gelu() -> Any:
    return file_of("fairseq", "fairseq/modules/gelu.py").gelu_accurate


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


@surveyed("pytorch-transformers", "gelu", "modeling_bert.gelu", note=LOW)
def _pytorch_transformers() -> Any:
    stub("boto3", "botocore", "sacremoses", "sentencepiece")
    from pytorch_transformers.modeling_bert import gelu

    return gelu


@surveyed("recbole", "gelu", "model.layers.FeedForward.gelu", note=LOW)
def _recbole() -> Any:
    stub("recbole", "colorlog", "colorama", "pandas", "ray", "texttable", "thop", "tensorboard")
    stub("torch.utils.tensorboard", instead=True)
    layers = file_of("recbole", "recbole/model/layers.py")
    block = layers.FeedForward(4, 4, 0.0, "gelu", 1e-12)
    return block.gelu


@surveyed(
    "megatron-core",
    "gelu_tanh",
    "fusions.fused_bias_gelu.bias_gelu",
    "variation",
    "its constant has eight digits",
    cited_for=("constant of ten digits",),
)
def _megatron() -> Any:
    stub("transformer_engine", "apex")
    module = file_of("megatron-core", "megatron/core/fusions/fused_bias_gelu.py")
    return lambda x: module.bias_gelu(torch.zeros((), dtype=x.dtype), x)


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
