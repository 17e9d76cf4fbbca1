"""Each defect a second time, on the work itself, in float64 and without a check of ours.

A function here builds the work's layer, feeds it a few numbers and reads a few: what a page of the
book reproduces in its own lines, and compares. `derived` runs all of them.
"""

import math
import sys
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn

from evaluation.survey.definitions import PLACES
from evaluation.survey.stubs import stub
from evaluation.survey.works.configs import gpt1_config, gpt2_config
from evaluation.survey.works.reaching import annotated_transformer, file_of

DERIVED: dict[str, tuple[str, str, Callable[[], dict[str, float]]]] = {}

Measure = Callable[[], dict[str, float]]


def measured(work: str, place: str = "") -> Callable[[Measure], Measure]:
    """Declares a function that measures a work's layer."""

    def declared(measure: Measure) -> Measure:
        DERIVED[measure.__name__] = (work, place, measure)
        return measure

    return declared


def derived(only: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """What each function measured, or why it did not; of these works, or of all."""
    found: dict[str, dict[str, Any]] = {}
    for name, (work, place, measure) in DERIVED.items():
        if only and work not in only:
            continue
        torch.manual_seed(0)
        if place:
            _forget(work)
            sys.path.insert(0, str(PLACES / place))
        try:
            found[name] = {"work": work, "place": place, **measure()}
        except Exception as error:  # a work can fail in any way
            found[name] = {"work": work, "error": f"{type(error).__name__}: {error}"}
        if place:
            sys.path.pop(0)
            _forget(work)
    return found


def _forget(work: str) -> None:
    for name in list(sys.modules):
        if name.split(".")[0] == work:
            del sys.modules[name]


@measured("allennlp")
def masked_softmax() -> dict[str, float]:
    """Sums of the weights of two allowed scores beside a blocked one."""
    stub("allennlp", instead=True)
    softmax = file_of("allennlp", "allennlp/nn/util.py").masked_softmax
    mask = torch.tensor([[True, True, False]])

    def total(score: float) -> float:
        scores = torch.tensor([[score, score, 0.0]], dtype=torch.float64)
        return softmax(scores, mask).sum().item()

    return {"sum at -10": total(-10.0), "sum at -30": total(-30.0), "sum at -800": total(-800.0)}


@measured("monai")
def dropped_in_evaluation() -> dict[str, float]:
    """How far two calls in evaluation are apart, with the kernel and without."""
    from monai.networks.blocks.selfattention import SABlock

    def apart(kernel: bool) -> float:
        layer = SABlock(12, 3, 0.5, use_flash_attention=kernel).double().eval()
        x = torch.randn(2, 8, 12, dtype=torch.float64)
        return (layer(x) - layer(x)).abs().max().item()

    return {"with the kernel": apart(True), "written out": apart(False)}


@measured("transformers")
def nemotron() -> dict[str, float]:
    """The root mean square of a new norm's result, and of one in a new model."""
    from transformers import NemotronConfig, NemotronModel
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P

    x = torch.randn(100, 64, dtype=torch.float64)
    config = NemotronConfig(
        vocab_size=8,
        hidden_size=64,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
    )
    norms = {"alone": NemotronLayerNorm1P(64), "in a new model": NemotronModel(config).norm}
    return {name: norm.double()(x).square().mean().sqrt().item() for name, norm in norms.items()}


@measured("speechbrain")
def two_readings() -> dict[str, float]:
    """How far the output moves when the key moves by 1e-12."""
    stub("hyperpyyaml", "sentencepiece", "torchaudio", "scipy")
    from speechbrain.nnet.attention import RoPEMHA

    layer = RoPEMHA(8, 2, dropout=0.0).double().eval()
    x = torch.randn(1, 5, 8, dtype=torch.float64)
    here = layer(x, x, x, return_attn_weights=False)
    there = layer(x, x + 1e-12, x, return_attn_weights=False)
    return {"moved": (here - there).abs().max().item(), "by": 1e-12}


@measured("openai-whisper")
def any_mask_is_causal() -> dict[str, float]:
    """What a mask that blocks nothing changes, by the kernel and written out."""
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import MultiHeadAttention, disable_sdpa

    layer = MultiHeadAttention(8, 2).double().eval()
    x, nothing = torch.randn(1, 5, 8, dtype=torch.float64), torch.zeros(5, 5, dtype=torch.float64)
    by_kernel = (layer(x, mask=nothing)[0] - layer(x)[0]).abs().max().item()
    with disable_sdpa():
        written_out = (layer(x, mask=nothing)[0] - layer(x)[0]).abs().max().item()
    return {"by the kernel": by_kernel, "written out": written_out}


@measured("bert-pytorch")
def dropped_stream() -> dict[str, float]:
    """What share of a stream of ones 12 blocks keep whose sub-layers add nothing."""
    from bert_pytorch.model.transformer import TransformerBlock

    x = torch.ones(50, 20, 16, dtype=torch.float64)
    for _ in range(12):
        block = TransformerBlock(16, 2, 8, 0.1).double()
        for parameter in block.parameters():
            nn.init.zeros_(parameter)
        x = block(x, torch.ones(1, 1, 20, 20))
    return {"kept": (x != 0).double().mean().item(), "expected": 0.9**12}


@measured("timm", "timm-1.0.9")
def variance_for_mean_square() -> dict[str, float]:
    """What a row of ones becomes, and a row of numbers around 10."""
    stub("torchvision")
    import timm
    from timm.layers.norm import RmsNorm

    if timm.__version__ != "1.0.9":
        raise ImportError(f"timm {timm.__version__}")
    norm = RmsNorm(4).double()
    ones = norm(torch.ones(1, 4, dtype=torch.float64))
    around = norm(torch.tensor([[9.0, 10.0, 10.0, 11.0]], dtype=torch.float64))
    return {"a row of ones": ones[0, 0].item(), "10 among 9, 10, 10, 11": around[0, 1].item()}


@measured("labml-nn")
def growing_graph() -> dict[str, float]:
    """How many nodes hang on the running mean after 50 steps, and after 100."""
    from labml_nn.normalization.batch_norm import BatchNorm

    norm, linear = BatchNorm(3), nn.Linear(3, 3)
    counts = {}
    for step in range(1, 101):
        norm(linear(torch.randn(4, 3)))
        if step in (50, 100):
            counts[f"nodes after {step} steps"] = float(_nodes(norm.exp_mean))
    return counts


def _nodes(tensor: torch.Tensor) -> int:
    seen, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [after for after, _ in node.next_functions]
    return len(seen)


@measured("labml-nn")
def cancelling() -> dict[str, float]:
    """How far a normalized row is off at a mean of 1,000 in float32, and where it is NaN."""
    from labml_nn.normalization.layer_norm import LayerNorm

    x = torch.randn(1000, 64)
    right = nn.functional.layer_norm(x.double(), (64,))
    layer = LayerNorm(64)
    return {
        "off at 1,000": (layer(x + 1000) - right).abs().max().item(),
        "rows with NaN at 10,000": layer(x + 10000).isnan().any(-1).double().mean().item(),
    }


@measured("bert-pytorch")
def unbiased() -> dict[str, float]:
    """How far the normalized (1, 0, 0, 0) is from the right one."""
    from bert_pytorch.model.utils.layer_norm import LayerNorm

    x = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    right = nn.functional.layer_norm(x, (4,), eps=1e-6)
    return {"off": (LayerNorm(4).double()(x) - right).abs().max().item()}


@measured("harvardnlp/annotated-transformer", "harvardnlp-annotated-transformer-debc9fd7")
def unbiased_as_annotated() -> dict[str, float]:
    """The same of the work that it follows."""
    x = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    right = nn.functional.layer_norm(x, (4,), eps=1e-6)
    found = annotated_transformer().LayerNorm(4).double()(x)
    return {"off": (found - right).abs().max().item()}


@measured("SamLynnEvans/Transformer", "SamLynnEvans-Transformer-49e01800")
def exponents_doubled() -> dict[str, float]:
    """Over how many positions the cosine of the second pair turns once, of 512 columns."""
    from samlynnevans_embed import PositionalEncoder

    table = PositionalEncoder(512, 2).pe[0].double()
    turn = 2 * math.pi
    # At position 1, a column has the sine or the cosine of its frequency.
    return {
        "sine": turn / table[1, 2].asin().item(),
        "cosine": turn / table[1, 3].acos().item(),
        "the paper, both": turn * 10000 ** (2 / 512),
    }


@measured("openai-whisper")
def timescales() -> dict[str, float]:
    """The slowest wave's timescale, of 512 columns, there and by the paper's formula."""
    stub("numba", "tiktoken", "more_itertools", "ffmpeg")
    from whisper.model import sinusoids

    slowest = sinusoids(2, 512)[1, 255].double()  # the sine of 1 / timescale
    return {"whisper": 1 / slowest.asin().item(), "the paper": 10000 ** (510 / 512)}


@measured("pytorch-transformers")
def crossed_mask() -> dict[str, float]:
    """What weight the first token gives the second, which is blocked, in GPT-2."""
    stub("boto3", "botocore", "sacremoses", "sentencepiece")
    from pytorch_transformers.modeling_gpt2 import Attention

    config = gpt2_config(1, 1, 0.0)
    config.output_attentions = False
    return {"ahead": _weight_ahead(Attention(1, 2, config, scale=True))}


@measured("transformers")
def crossed_mask_of_gpt1() -> dict[str, float]:
    """The same in GPT-1."""
    from transformers.models.openai.modeling_openai import Attention

    return {"ahead": _weight_ahead(Attention(1, 2, gpt1_config(1, 1, 0.0), scale=True))}


def _weight_ahead(layer: nn.Module) -> float:
    # One feature: the queries are 200, and keys and values are the tokens, -60 and 1.
    weights = {
        "c_attn.weight": [[0.0, 1.0, 1.0]],
        "c_attn.bias": [200.0, 0.0, 0.0],
        "c_proj.weight": [[1.0]],
        "c_proj.bias": [0.0],
    }
    tensors = {name: torch.tensor(values) for name, values in weights.items()}
    layer.load_state_dict(tensors, strict=False)
    x = torch.tensor([[[-60.0], [1.0]]], dtype=torch.float64)
    first = layer.double().eval()(x)[0][0, 0].item()  # -60 where it sees itself alone, 1 if not
    return (first + 60) / 61


@measured("torch")
def two_answers() -> dict[str, float]:
    """What share of the output for a sequence of padding is NaN, in four calls of one layer."""
    layer = nn.MultiheadAttention(14, 2, batch_first=True).double().eval()
    x, blocked = torch.randn(1, 5, 14, dtype=torch.float64), torch.ones(1, 5, dtype=torch.bool)
    found = {}
    for gradients in (True, False):
        for weights in (True, False):
            with torch.set_grad_enabled(gradients):
                y, _ = layer(x, x, x, blocked, need_weights=weights)
            name = f"{'gradients' if gradients else 'no gradients'}, "
            name += "weights" if weights else "no weights"
            found[name] = y.isnan().double().mean().item()
    return found


if __name__ == "__main__":
    for _name, _numbers in derived(sys.argv[1:]).items():
        print(_name, _numbers)
