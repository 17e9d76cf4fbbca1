"""The independent authorities that layers are held against, and how that is done.

Most are `torch.nn`'s own classes. Here stand those that are put together of torch's parts, and what
the checks of several layers do with any of them.
"""

import copy
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.gradients import compared_gradients, of_module, same_gradients
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    as_ours,
    built,
    counterparts,
    current_match,
    load,
    randn64,
    randomized,
    weights_of,
)
from layer_checks.kit.definitions import Candidate
from layer_checks.kit.weight_maps import to_ours, to_theirs
from transformer_layers import GPT2Config, KeyValueCache

_found_eps: ContextVar[list[float] | None] = ContextVar("found_eps", default=None)
_USUAL_EPS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-3, 1e-2, 0.0)


class Counterpart(nn.Module):
    """A layer of `torch.nn` with other names of weights, and with our meaning of a mask.

    Attributes:
        counterpart: Its name in `layer_checks.kit.weight_maps`.
        layer_name: The attribute that holds it.
    """

    counterpart: str
    layer_name: str

    def __init__(self, layer: nn.Module, std: float) -> None:
        super().__init__()
        self.add_module(self.layer_name, randomized(layer, std).double())

    def as_ours(self) -> dict[str, Tensor]:
        """The weights, as our layer names and shapes them."""
        return to_ours(self.counterpart, weights_of(self.get_submodule(self.layer_name)))

    def as_theirs(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Our weights or gradients, as this module names and shapes its parameters."""
        theirs = to_theirs(self.counterpart, tensors)
        return {f"{self.layer_name}.{name}": tensor for name, tensor in theirs.items()}


class TorchAttention(Counterpart):
    """`torch.nn.MultiheadAttention`."""

    counterpart, layer_name = "nn.MultiheadAttention", "attention"
    attention: nn.MultiheadAttention

    def __init__(self, d_model: int, num_heads: int, **options: Any) -> None:
        attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True, **options)
        super().__init__(attention, std=0.2)
        self.num_heads = num_heads

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Attends from `query` to `key` and `value`."""
        blocked = _blocked(mask, (query.shape[0], query.shape[1], key.shape[1]), self.num_heads)
        return self.attention(query, key, value, attn_mask=blocked, need_weights=False)[0]


class TorchEncoderLayer(Counterpart):
    """`torch.nn.TransformerEncoderLayer` without dropout."""

    counterpart, layer_name = "nn.TransformerEncoderLayer", "layer"
    layer: nn.TransformerEncoderLayer

    def __init__(self, d_model: int, num_heads: int, d_ff: int, norm_first: bool) -> None:
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first
        )
        super().__init__(layer, std=0.5)
        self.num_heads = num_heads

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends, then maps each position."""
        blocked = _blocked(mask, (x.shape[0], x.shape[1], x.shape[1]), self.num_heads)
        return self.layer(x, src_mask=blocked)


def _blocked(mask: Tensor | None, shape: tuple[int, ...], num_heads: int) -> Tensor | None:
    """A mask as torch means it: True is blocked, and a batch has one for each head."""
    if mask is None or mask.ndim < 3:
        return None if mask is None else ~mask
    return (~mask).expand(shape).repeat_interleave(num_heads, dim=0)


class TransposedLinear(nn.Module):
    """`torch.nn.functional.linear` with random float64 weights, the matrix held as (in, out)."""

    def __init__(self, in_features: int, out_features: int, std: float = 0.2) -> None:
        super().__init__()
        self.weight = nn.Parameter(std * randn64(in_features, out_features))
        self.bias = nn.Parameter(std * randn64(out_features))

    def forward(self, x: Tensor) -> Tensor:
        """Maps the last axis of `x`."""
        return functional.linear(x, self.weight.t(), self.bias)


class TorchPositionwiseFeedForward(nn.Module):
    """`torch.nn.Linear` twice, around a ReLU."""

    def __init__(self, d_model: int, d_ff: int, std: float) -> None:
        super().__init__()
        self.linear1 = randomized(nn.Linear(d_model, d_ff), std).double()
        self.linear2 = randomized(nn.Linear(d_ff, d_model), std).double()

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.linear2(functional.relu(self.linear1(x)))


class TorchFeedForward(nn.Module):
    """torch's linear layer twice, around the tanh form of GELU, on weights held as (in, out)."""

    def __init__(self, d_model: int, d_ff: int, std: float = 0.2) -> None:
        super().__init__()
        self.c_fc = TransposedLinear(d_model, d_ff, std)
        self.c_proj = TransposedLinear(d_ff, d_model, std)

    def forward(self, x: Tensor) -> Tensor:
        """Maps each position."""
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class TorchCausalSelfAttention(nn.Module):
    """torch's linear layer and its attention kernel, on weights held as (in, out)."""

    def __init__(self, d_model: int, num_heads: int, std: float = 0.2) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = TransposedLinear(d_model, 3 * d_model, std)
        self.c_proj = TransposedLinear(d_model, d_model, std)

    def forward(self, x: Tensor) -> Tensor:
        """Attends from each position to itself and those before it."""
        parts = self.c_attn(x).chunk(3, dim=-1)
        query, key, value = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2) for each in parts
        )
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.c_proj(heads.transpose(-3, -2).flatten(-2))


class TorchGPT2Block(nn.Module):
    """torch's norms around the two."""

    def __init__(self, d_model: int, num_heads: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.attn = TorchCausalSelfAttention(d_model, num_heads)
        self.ln_2 = nn.LayerNorm(d_model, eps, dtype=torch.float64)
        self.mlp = TorchFeedForward(d_model, 4 * d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Attends, then maps each position."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class TorchGPT2(nn.Module):
    """torch's embeddings, norms, linear layers and attention kernel."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        sizes = config.n_embd, config.n_head, config.layer_norm_epsilon
        self.wte = nn.Embedding(config.vocab_size, config.n_embd, dtype=torch.float64)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd, dtype=torch.float64)
        self.h = nn.Sequential(*(TorchGPT2Block(*sizes) for _ in range(config.n_layer)))
        self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of what follows each position."""
        x = self.wte(ids) + self.wpe.weight[: ids.shape[-1]]
        return functional.linear(self.ln_f(self.h(x)), self.wte.weight)

    def loss(self, ids: Tensor) -> Tensor:
        """The cross-entropy of each next token."""
        logits = self(ids)[..., :-1, :]
        return functional.cross_entropy(logits.flatten(0, -2), ids[..., 1:].flatten())


def as_at_the_start(module: nn.Module) -> None:
    """Gives weights the deviation 0.02, gains ones and biases zeros."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif ".ln_" in f".{name}":
                parameter.fill_(1.0)
            else:
                parameter.normal_(std=0.02)


def named_as_ours(authority: nn.Module) -> dict[str, Tensor]:
    """An authority's weights, as our layer names and shapes them."""
    return authority.as_ours() if isinstance(authority, Counterpart) else weights_of(authority)


def with_weights_of(
    authority: nn.Module, candidate: Candidate, *args: Any, **options: Any
) -> nn.Module:
    """Builds a candidate in float64 and gives it an authority's weights.

    Where a candidate has no such bias, the authority's becomes 0; where it takes no eps, the
    authority's becomes the candidate's.
    """
    match = current_match()
    if match is not None and match.absent:
        _without(authority, match.absent)
    try:
        return load(built(candidate, *args, **options).double(), named_as_ours(authority))
    except CannotTakeError as error:
        if error.argument != "eps":
            raise
    del options["eps"]
    layer = load(built(candidate, *args, **options).double(), named_as_ours(authority))
    norm: Any = authority
    norm.eps = _own_eps(layer, norm, args[0])
    if (found := _found_eps.get()) is not None:
        found.append(norm.eps)
    return layer


@contextmanager
def noticing_own_eps() -> Iterator[list[float]]:
    """Collects the eps of norms that take none, and are held against it."""
    found: list[float] = []
    token = _found_eps.set(found)
    try:
        yield found
    finally:
        _found_eps.reset(token)


def _own_eps(layer: nn.Module, norm: Any, width: int) -> float:
    """Which of the usual eps a norm has, by what it makes of small numbers."""
    with seeded(0):
        x = 1e-3 * randn64(8, width)

    @torch.no_grad()
    def distance(eps: float) -> float:
        ours, theirs = copy.deepcopy((layer, norm))  # calls leave averages behind
        theirs.eps = eps
        return float((ours(x) - theirs(x)).abs().max().nan_to_num(nan=torch.inf))

    return min(_USUAL_EPS, key=distance)


def _without(authority: nn.Module, absent: Collection[str]) -> None:
    """Gives an authority zeros for weights that we name."""
    kept = {
        name: torch.zeros_like(weight) if name in absent else weight
        for name, weight in named_as_ours(authority).items()
    }
    if isinstance(authority, Counterpart):
        kept = authority.as_theirs(kept)
    parameters = dict(authority.named_parameters())
    with torch.no_grad():
        for name, weight in kept.items():
            parameters[name].copy_(weight)


def agreeing_gradients(
    ours: nn.Module, theirs: nn.Module, *inputs: Any, atol: float = 1e-11
) -> Evidence:
    """`same_gradients`, for a layer that has an authority's weights, whatever it names them."""
    match = current_match()
    if match is not None:
        return _matched_gradients(ours, theirs, inputs, atol)
    names = counterparts(ours, named_as_ours(theirs))

    def renamed(gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
        known = {names[name]: each for name, each in gradients.items() if name in names}
        return theirs.as_theirs(known) if isinstance(theirs, Counterpart) else known

    maps = isinstance(theirs, Counterpart)
    return same_gradients(ours, theirs, *inputs, atol=atol, parameters=renamed if maps else names)


def _matched_gradients(
    ours: nn.Module, theirs: nn.Module, inputs: tuple[Any, ...], atol: float
) -> Evidence:
    """The same for weights that are packed, transposed or missing: all under our names."""
    weights = named_as_ours(theirs)
    output, of_inputs, found = of_module("ours", ours, inputs)
    other, of_their_inputs, known = of_module("theirs", theirs, inputs)
    named = as_ours(ours, weights, found)
    expected = (
        to_ours(theirs.counterpart, _inside(theirs, known))
        if isinstance(theirs, Counterpart)
        else known
    )
    return compared_gradients(
        output,
        other,
        of_inputs | {f"parameter {name}": each for name, each in named.items()},
        of_their_inputs | {f"parameter {name}": expected[name] for name in named},
        atol,
    )


def _inside(theirs: Counterpart, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    prefix = f"{theirs.layer_name}."
    return {name.removeprefix(prefix): each for name, each in tensors.items()}


def same_state(ours: nn.Module, theirs: nn.Module) -> Evidence:
    """Checks that two state dicts have the same names and shapes."""
    found = {name: tuple(each.shape) for name, each in ours.state_dict().items()}
    expected = {name: tuple(each.shape) for name, each in theirs.state_dict().items()}
    wrong = sorted({name for name, _ in found.items() ^ expected.items()})
    if wrong:
        raise AssertionError(f"not equal: missing, unknown or of another shape: {wrong}")
    return holds(True, f"{len(found)} weights of the published names and shapes")


def sequences(d_model: int, batch: int = 2, seq: int = 4) -> Tensor:
    """Random sequences in float64."""
    return randn64(batch, seq, d_model)


def in_steps(ours: nn.Module, x: Tensor, num_heads: int, lengths: list[int]) -> list[Tensor]:
    """The outputs for parts of two sequences, one after the other, with a cache."""
    seq, d_model = x.shape[-2:]
    cache = KeyValueCache(2, num_heads, seq, d_model // num_heads, dtype=torch.float64)
    # Contiguous, as a single new position is in use.
    return [ours(part.contiguous(), cache=cache) for part in x.split(lengths, dim=1)]


def steps_equal_the_whole(
    ours: nn.Module, theirs: nn.Module, d_model: int, num_heads: int
) -> Evidence:
    """Holds steps of 3, 2 and 1 positions with a cache against all six at once."""
    x = sequences(d_model, seq=6)
    steps = in_steps(ours, x, num_heads, [3, 2, 1])
    return equivalent(torch.cat(steps, dim=1), theirs(x), atol=1e-12)


def future_changes_nothing(ours: nn.Module, d_model: int, atol: float) -> Evidence:
    """Changes positions 4 and 5 of 6, and holds 0 to 3 against what they were."""
    x = sequences(d_model, seq=6)
    changed = x.clone()
    changed[:, 4:] = randn64(2, 2, d_model)
    return equivalent(ours(changed)[:, :4], ours(x)[:, :4], atol=atol)
