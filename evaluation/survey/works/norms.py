"""Norms of public works."""

from typing import Any

import torch
from torch import Tensor, nn

from evaluation.survey.adapters import renamed, with_call
from evaluation.survey.definitions import surveyed
from evaluation.survey.stubs import stub
from evaluation.survey.works.reaching import annotated_transformer, file_of

WIDE = "computes in float32 whatever it is given"


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
    cited_for=("1 + weight",),
)
def _nemotron() -> Any:
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P

    def make(d_model: int, eps: float = 1e-5, bias: bool = True) -> nn.Module:
        return NemotronLayerNorm1P(d_model, eps, bias=bias)

    return renamed(make, weight="weight", bias="bias")  # which starts from ones, as ours does


@surveyed("transformers", "LayerNorm", "models.convnext.ConvNextLayerNorm")
def _convnext() -> Any:
    from transformers.models.convnext.modeling_convnext import ConvNextLayerNorm

    def make(d_model: int, eps: float = 1e-6) -> nn.Module:
        return ConvNextLayerNorm(d_model, eps=eps)

    return renamed(make, weight="weight", bias="bias")


@surveyed(
    "labml-nn",
    "LayerNorm",
    "normalization.layer_norm.LayerNorm",
    "defect",
    "variance as E[x^2] - E[x]^2, which cancels: NaN far from 0 in float32",
    "cancelling",
    cited_for=("E[x²] - E[x]²",),
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
    cited_for=("running averages keep the graph", "E[x²] - E[x]²", "stores the biased variance"),
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


def _norm(weight: str = "weight", bias: str | None = "bias") -> dict[str, str]:
    return {"weight": weight} if bias is None else {"weight": weight, "bias": bias}


@surveyed(
    "x-transformers",
    "RMSNorm",
    "x_transformers.RMSNorm",
    "variation",
    "no eps is added: the norm of a row is at least 1e-12",
    known_as=("no eps",),
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

    return renamed(lambda d_model: LayerNorm(d_model), **_norm("gamma", None))


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
    cited_for=("variance for mean square",),
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


@surveyed(
    "bert-pytorch",
    "LayerNorm",
    "model.utils.LayerNorm",
    "defect",
    "divides by the unbiased deviation plus eps, as the Annotated Transformer does",
    "unbiased",
    cited_for=("unbiased deviation plus eps",),
)
def _bert_pytorch_norm() -> Any:
    from bert_pytorch.model.utils.layer_norm import LayerNorm

    return renamed(lambda d_model, eps=1e-6: LayerNorm(d_model, eps), **_norm("a_2", "b_2"))


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
    known_as=("another default eps",),
)
def _keras_layer_norm() -> Any:
    import os

    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    def make(d_model: int, eps: float = 1e-3) -> nn.Module:
        layer = keras.layers.LayerNormalization(epsilon=eps, name="norm", dtype="float64")
        layer.build((None, d_model))
        return layer.to(torch.get_default_dtype())

    def call(module: Any, x: Tensor) -> Tensor:
        # Its variables hold their values themselves, and its dtype is told when it is built.
        values = [module._torch_params[each.path] for each in module.trainable_variables]
        module.dtype_policy = keras.DTypePolicy(str(x.dtype).removeprefix("torch."))
        return module.stateless_call(values, [], x)[0]

    names = {"weight": "_torch_params.norm/gamma", "bias": "_torch_params.norm/beta"}
    return with_call(make, call, **names)


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
    "TTS",
    "LayerNorm",
    "tts.layers.generic.LayerNorm",
    "does not fit",
    "normalizes the channels of (batch, channels, time), axis 1; eps is 1e-4",
)
def _tts_norm() -> Any:
    module = file_of("TTS", "TTS/tts/layers/generic/normalization.py")
    return renamed(
        lambda d_model, eps=1e-4: module.LayerNorm(d_model, eps), weight="gamma", bias="beta"
    )


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
    "palm-rlhf-pytorch",
    "LayerNorm",
    "palm.LayerNorm",
    "variation",
    "has no bias, on purpose",
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

    return renamed(lambda d_model: LayerNorm(d_model), weight="gamma")


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

    def make(d_model: int, bias: bool = True) -> nn.Module:
        return nanogpt_model.LayerNorm(d_model, bias)

    return renamed(make, **_norm())


@surveyed(
    "harvardnlp/annotated-transformer",
    "LayerNorm",
    "the_annotated_transformer.LayerNorm",
    "defect",
    "divides by the unbiased deviation plus eps",
    "unbiased_as_annotated",
    place="harvardnlp-annotated-transformer-debc9fd7",
    cited_for=("unbiased deviation plus eps", "another default eps"),
)
def _annotated_norm() -> Any:
    annotated = annotated_transformer()
    return renamed(
        lambda d_model, eps=1e-6: annotated.LayerNorm(d_model, eps), **_norm("a_2", "b_2")
    )


@surveyed(
    "torch",
    "BatchNorm1d",
    "nn.BatchNorm1d",
    note="with parameters in bfloat16, a CPU rounds its mean to bfloat16",
    cited_for=("statistics in bfloat16",),
)
def _torch_batch_norm() -> Any:
    return nn.BatchNorm1d
