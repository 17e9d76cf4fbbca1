"""Released language models as rows of a table, which a program reads off config and modules.

A row begins with a config of `transformers`: the defaults of its class, and what the published
`config.json` has otherwise. Our own reading of a `config.json` makes the model of it, on the meta
device, where weights take no memory. What no number of the config says, such as where the norms
stand, is asked of the modules themselves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from transformer_layers.feed_forward.experts import MixtureOfExperts
from transformer_layers.feed_forward.gated import GatedFeedForward
from transformer_layers.generation.decoder import cache_bytes
from transformer_layers.models.load import MODELS

NONE = "\u2013"
"""What a cell holds of that which a model has not: a dash."""


@dataclass(frozen=True)
class Release:
    """A model that was released, by its config.

    Attributes:
        hub: Its name on the Hugging Face hub.
        kind: The class of its config in `transformers`.
        otherwise: What its `config.json` has otherwise than the defaults of the class.
    """

    hub: str
    kind: str
    otherwise: Mapping[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where its `config.json` is published."""
        return f"https://huggingface.co/{self.hub}/blob/main/config.json"

    def config(self) -> Any:
        """The config, of the class in `transformers`."""
        return getattr(transformers, self.kind)(**self.otherwise)


def _turned(base: float) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base}}


RELEASES = {
    "GPT-2": Release("openai-community/gpt2", "GPT2Config"),
    "Llama 2 7B": Release(
        "meta-llama/Llama-2-7b-hf",
        "LlamaConfig",
        {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5},
    ),
    "Mistral 7B": Release(
        "mistralai/Mistral-7B-v0.1",
        "MistralConfig",
        {"max_position_embeddings": 32_768, "rms_norm_eps": 1e-5},
    ),
    "Mixtral 8x7B": Release(
        "mistralai/Mixtral-8x7B-v0.1", "MixtralConfig", {"max_position_embeddings": 32_768}
    ),
    "Phi-3 mini": Release(
        "microsoft/Phi-3-mini-4k-instruct", "Phi3Config", {"sliding_window": 2047}
    ),
    "Qwen 2 7B": Release(
        "Qwen/Qwen2-7B",
        "Qwen2Config",
        {
            "vocab_size": 152_064,
            "hidden_size": 3584,
            "intermediate_size": 18_944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "max_position_embeddings": 131_072,
            **_turned(1e6),
        },
    ),
    "Qwen 3 8B": Release(
        "Qwen/Qwen3-8B",
        "Qwen3Config",
        {
            "intermediate_size": 12_288,
            "num_hidden_layers": 36,
            "num_key_value_heads": 8,
            "max_position_embeddings": 40_960,
            **_turned(1e6),
        },
    ),
    "Qwen 3 30B": Release(
        "Qwen/Qwen3-30B-A3B",
        "Qwen3MoeConfig",
        {
            "head_dim": 128,
            "num_hidden_layers": 48,
            "max_position_embeddings": 40_960,
            "norm_topk_prob": True,
            **_turned(1e6),
        },
    ),
    "OLMo 2 7B": Release(
        "allenai/OLMo-2-1124-7B",
        "Olmo2Config",
        {
            "vocab_size": 100_352,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
            **_turned(5e5),
        },
    ),
    "Gemma 3 1B": Release(
        "google/gemma-3-1b-pt",
        "Gemma3TextConfig",
        {
            "vocab_size": 262_144,
            "hidden_size": 1152,
            "intermediate_size": 6912,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "max_position_embeddings": 32_768,
            "sliding_window": 512,
        },
    ),
}
"""Ten models, each of another family, with the names that readers know them by."""


def read(config: Any) -> tuple[Any, Any]:
    """Our class for a config, and our own config, read as a `config.json` is.

    Args:
        config: A config of `transformers`.

    Returns:
        The class of the model, and its sizes and options.

    Raises:
        KeyError: If no class computes the family.
        ValueError: If its class does not compute an option.
    """
    kind: Any = MODELS[config.model_type]
    return kind, kind.codec.config_of(config.to_dict(), Path("config.json"))


@dataclass(frozen=True)
class Row:
    """What a model is made of, and its sizes.

    Attributes:
        norm: The class of its norms, without what names the family.
        gain: What multiplies what is normed, and what is added.
        rounded: Whether bfloat16 rounds before the gain or after it.
        order: Where a block norms: before its layers, after them, or on both sides.
        heads_normed: What norms queries and keys.
        positions: How it knows places.
        feed_forward: What each position goes through by itself.
        window: How many tokens a token reads at most, and in which blocks.
        biases: Which maps have one.
        head: Whether the matrix that makes logits is its own, or tied to the embedding.
        blocks: How many.
        width: Features of a position.
        queries: Heads of queries.
        keys: Heads of keys and values.
        d_k: Features of a head.
        d_ff: Features between the maps of a feed-forward layer, or of an expert.
        longest: Tokens of the longest text.
        cache: Bytes of the caches for a token.
        parameters: All of them.
        active: Those that compute a token: all but the experts that it is not sent to.
    """

    norm: str
    gain: str
    rounded: str
    order: str
    heads_normed: str
    positions: str
    feed_forward: str
    window: str
    biases: str
    head: str
    blocks: int
    width: int
    queries: int
    keys: int
    d_k: int
    d_ff: int
    longest: int
    cache: int
    parameters: int
    active: int


def row_of(model: Any) -> Row:
    """What a table says of a model.

    Args:
        model: The model, on the meta device.

    Returns:
        The row.

    Examples:
        >>> from transformer_layers import Llama, LlamaConfig
        >>> config = LlamaConfig(11, 24, 40, 3, 4, 2, sliding_window=5, model_type="mistral")
        >>> row = row_of(Llama(config, device="meta", dtype=torch.bfloat16))
        >>> row.norm, row.order, row.window, row.keys, row.cache
        ('RMSNorm', 'before', '5', 2, 144)
    """
    blocks = _blocks(model)
    attentions = [_layers(block)[0] for block in blocks]
    feed_forward = _layers(blocks[0])[1]
    norm: Any = next(each for each in blocks[0].children() if _is_norm(each))
    width = norm.weight.shape[0]
    heads = attentions[0].num_heads
    parameters = sum(each.numel() for each in model.parameters())
    return Row(
        **_norms(norm),
        order=order(blocks[0], width),
        heads_normed=_heads_normed(attentions[0]),
        positions=_positions(model),
        feed_forward=_feed_forward(feed_forward),
        window=_window([getattr(each, "window", None) for each in attentions]),
        biases=_biases(blocks[0]),
        head="own" if getattr(model, "lm_head", None) is not None else "tied",
        blocks=len(blocks),
        width=width,
        queries=heads,
        keys=getattr(attentions[0], "num_kv_heads", heads),
        d_k=getattr(attentions[0], "d_k", width // heads),
        d_ff=_d_ff(feed_forward),
        longest=model.max_seq,
        cache=cache_bytes(model),
        parameters=parameters,
        active=parameters - sum(map(_unused, model.modules())),
    )


def row_of_config(config: Any) -> Row:
    """What a table says of the model of a config, in bfloat16.

    A large model takes long to make even without memory. Where its blocks are alike, models of one
    and of two blocks are made, and what the second block adds is counted for each further one.

    Args:
        config: A config of `transformers`.

    Returns:
        The row.

    Raises:
        KeyError: If no class computes the family.
        ValueError: If its class does not compute an option.

    Examples:
        >>> row = row_of_config(transformers.MistralConfig())
        >>> row.blocks, row.window, row.keys, row.cache, f"{row.parameters:,}"
        (32, '4,096', 8, 131072, '7,241,732,096')
    """
    kind, sizes = read(config)
    name = "n_layer" if hasattr(sizes, "n_layer") else "num_hidden_layers"
    blocks = getattr(sizes, name)
    of_block = {(_window_of(sizes, i), _has_experts(sizes, i)) for i in range(blocks)}
    if blocks <= 2 or len(of_block) > 1:
        return row_of(kind(sizes, device="meta", dtype=torch.bfloat16))
    one, two = (
        row_of(kind(replace(sizes, **{name: few}), device="meta", dtype=torch.bfloat16))
        for few in (1, 2)
    )
    grown = {
        each: getattr(two, each) + (blocks - 2) * (getattr(two, each) - getattr(one, each))
        for each in ("cache", "parameters", "active")
    }
    return replace(two, blocks=blocks, **grown)


def _window_of(sizes: Any, block: int) -> int | None:
    return sizes.window_of(block) if hasattr(sizes, "window_of") else None


def _has_experts(sizes: Any, block: int) -> bool:
    return bool(hasattr(sizes, "has_experts") and sizes.has_experts(block))


def order(block: nn.Module, width: int) -> str:
    """Where a block norms, by what its parts take and give when it runs.

    Args:
        block: The block, on the meta device.
        width: Features of a position.

    Returns:
        "before" its layers, "after" them, or on "both" sides.

    Raises:
        ValueError: If it is none of these.
    """
    norms: list[tuple[Tensor, Tensor]] = []  # what each takes and gives
    layers: list[tuple[Tensor, Tensor]] = []

    def note(part: nn.Module, taken: Any, given: Tensor) -> None:
        (norms if _is_norm(part) else layers).append((taken[0], given))

    handles = [part.register_forward_hook(note) for part in block.children()]
    dtype = next(block.parameters()).dtype
    with torch.no_grad():
        block(torch.empty(1, 2, width, device="meta", dtype=dtype))
    for handle in handles:
        handle.remove()
    before = all(any(taken is given for _, given in norms) for taken, _ in layers)
    after = all(any(given is taken for taken, _ in norms) for _, given in layers)
    found = {(True, False): "before", (False, True): "after", (True, True): "both"}
    if len(layers) != 2 or (before, after) not in found:
        raise ValueError(f"the block norms in another order: {type(block).__name__}")
    return found[before, after]


def _blocks(model: Any) -> list[nn.Module]:
    return list(next(each for each in model.modules() if isinstance(each, nn.ModuleList)))


def _is_norm(part: nn.Module) -> bool:
    weight = getattr(part, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 1


def _layers(block: nn.Module) -> Any:
    """The attention and the feed-forward layer of a block."""
    found = [each for each in block.children() if not _is_norm(each)]
    return sorted(found, key=lambda layer: not hasattr(layer, "num_heads"))


def _norms(norm: nn.Module) -> dict[str, str]:
    """Runs a norm of the same class to see what its weight does, and where bfloat16 rounds."""
    generator = torch.Generator().manual_seed(0)
    draw = torch.randn(2, 64, generator=generator)
    kind: Callable[..., nn.Module] = type(norm)
    ours = kind(64, device="cpu", dtype=torch.bfloat16)
    x, other = draw.bfloat16()
    with torch.no_grad():
        plain = ours(x)  # the gain is 1
        weight: Any = ours.weight
        weight.zero_()
        one = bool(ours(x).any())  # it is there without the weight
        weight.copy_(other)
        gain = 1 + other if one else other
        before = bool(ours(x).equal(plain * gain))
    name = type(norm).__name__
    return {
        "norm": "RMSNorm" if name.endswith("RMSNorm") else name,
        "gain": ("1 + w" if one else "w") + (", b" if hasattr(norm, "bias") else ""),
        "rounded": "before" if before else "after",
    }


def _heads_normed(attention: Any) -> str:
    if isinstance(getattr(attention, "q_norm", nn.Identity()), nn.Identity):
        return NONE
    return "each" if attention.norms_heads else "all"


def _positions(model: Any) -> str:
    rotary = getattr(model, "rotary", None)
    if rotary is None:
        return f"table of {model.wpe.num_embeddings:,}"
    local = getattr(model, "local_rotary", None)
    said = f"turn, base {rotary.base:,.0f}"
    if rotary.d_rotary < rotary.d_k:
        said += f", {rotary.d_rotary} of {rotary.d_k} features"
    return said if local is None else f"{said}; with a window {local.base:,.0f}"


def _feed_forward(layer: nn.Module) -> str:
    if isinstance(layer, MixtureOfExperts):
        router: Any = layer.router
        return f"{router.top_k} of {len(layer.experts)} experts, {_feed_forward(layer.experts[0])}"
    if isinstance(layer, GatedFeedForward):
        name = getattr(layer.activation, "__name__", "")
        return {"silu": "SiLU gate", "gelu_tanh": "GELU gate"}[name]
    return "GELU"


def _d_ff(layer: Any) -> int:
    if isinstance(layer, MixtureOfExperts):
        return _d_ff(layer.experts[0])
    if isinstance(layer, GatedFeedForward):
        return layer.down_proj.in_features
    return int(layer.c_proj.weight.shape[0])  # Conv1D has (in, out)


def _window(windows: Sequence[int | None]) -> str:
    sizes = {size for size in windows if size is not None}
    if not sizes:
        return NONE
    said = ", ".join(f"{size:,}" for size in sorted(sizes))
    having = sum(size is not None for size in windows)
    return said if having == len(windows) else f"{said} in {having} of {len(windows)} blocks"


def _biases(block: nn.Module) -> str:
    names = {False: set(), True: set()}  # type: dict[bool, set[str]]
    for name, part in block.named_modules():
        weight = getattr(part, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2:
            biased = getattr(part, "bias", None) is not None
            names[biased].add(name.split(".")[-1].removesuffix("_proj"))
    if not names[True]:
        return NONE
    return ", ".join(sorted(names[True], key="qkvo".find)) if names[False] else "all maps"


def _unused(part: nn.Module) -> int:
    """Parameters of a layer's experts that a token is not sent to."""
    if not isinstance(part, MixtureOfExperts):
        return 0
    router: Any = part.router
    one = sum(each.numel() for each in part.experts[0].parameters())
    return (len(part.experts) - router.top_k) * one


def as_html(label: str, heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table that scrolls in a frame of its own, beside its first column.

    Args:
        label: What it shows, for readers who hear it.
        heads: Those of the columns.
        lines: The cells of each line; the first is its name, as HTML.

    Returns:
        One element.
    """
    top = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(f"<td>{escape(each)}</td>" for each in cells)
        + "</tr>"
        for name, *cells in lines
    )
    return (
        f'<div class="wide-table" role="group" tabindex="0" aria-label="{escape(label)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
