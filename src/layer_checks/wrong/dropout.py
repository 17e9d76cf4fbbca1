"""Known wrong versions of `dropout`, each as a function and, for `Dropout`, as a layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from layer_checks.checks.dropout import dropout, dropout_layer


def _require_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p must be between 0 and 1, got {p}")


def _kept(x: Tensor, p: float) -> Tensor:
    return torch.rand(x.shape, device=x.device) >= p


def _scaled(x: Tensor, p: float) -> Tensor:
    return x / (1 - p) if p < 1 else x  # of p = 1 nothing is kept


def _as_layer(function: Callable[[Tensor, float, bool], Tensor]) -> type[nn.Module]:
    class WrongDropout(nn.Module):
        def __init__(self, p: float = 0.5) -> None:
            super().__init__()
            self.p = p

        def forward(self, x: Tensor) -> Tensor:
            return function(x, self.p, self.training)

    WrongDropout.__name__ = WrongDropout.__qualname__ = function.__name__
    WrongDropout.__doc__ = function.__doc__
    return WrongDropout


@dropout.wrong("divide what is kept by 1 - p, so that the expected value stays.")
def not_scaled(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Leaves what is kept as it was."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) if training else x


@dropout.wrong(
    "divide by 1 - p in training and return x itself in evaluation; the 2014 paper's form "
    "multiplies by 1 - p in evaluation instead."
)
def scaled_at_test_time(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Multiplies by 1 - p in evaluation."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) if training else (1 - p) * x


@dropout.wrong("return x itself in evaluation: the division in training is all that is needed.")
def scaled_twice(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Divides by 1 - p in training and multiplies by it in evaluation."""
    _require_probability(p)
    return torch.where(_kept(x, p), _scaled(x, p), 0.0) if training else (1 - p) * x


@dropout.wrong("drop with probability p, not 1 - p.")
def p_is_the_share_kept(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Takes p for the share that is kept."""
    _require_probability(p)
    return torch.where(_kept(x, 1 - p), _scaled(x, 1 - p), 0.0) if training else x


@dropout.wrong(
    "return x itself in evaluation.",
    published="the notes' post, dropout, which has no argument for it",
)
def always_on(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Drops in evaluation too."""
    _require_probability(p)
    return torch.where(_kept(x, p), _scaled(x, p), 0.0)


@dropout.wrong(
    "with p = 1 return zeros: dividing by 1 - p gives NaN.",
    name="0/0 at p = 1",
    published="the notes' post, dropout",
)
def nan_at_one(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Computes 0/0 where everything is dropped."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) / x.new_tensor(1 - p) if training else x


@dropout.wrong(
    "refuse a p outside [0, 1], and NaN, with a ValueError.", published="the notes' post, dropout"
)
def any_p_taken(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Computes something for every number p."""
    return torch.where(_kept(x, p), _scaled(x, p), 0.0) if training else x


@dropout.wrong(
    "return the dtype of the input: a mask made by .float() makes float32 of float16.",
    published="the notes' post, dropout",
)
def always_float32(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Returns float32 whatever it was given, as the notes do for float16."""
    _require_probability(p)
    if not training:
        return x
    return torch.where(_kept(x, p), _scaled(x, p).float(), 0.0)


@dropout.wrong(
    "draw in float32: in bfloat16 no draw comes nearer to 1 than 1/256.",
    published="the notes' post, dropout",
)
def drawn_in_low_precision(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws in the dtype of the input, as the notes do."""
    _require_probability(p)
    return torch.where(torch.rand_like(x) >= p, _scaled(x, p), 0.0) if training else x


@dropout.wrong("draw for each element, not for each row.")
def whole_rows_dropped(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws once for each row."""
    _require_probability(p)
    return torch.where(_kept(x[..., :1], p), _scaled(x, p), 0.0) if training else x


@dropout.wrong("draw anew in each call: do not seed inside.")
def the_same_draws(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Seeds its generator in each call."""
    _require_probability(p)
    draws = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)).to(x.device)
    return torch.where(draws >= p, _scaled(x, p), 0.0) if training else x


@dropout.wrong("let the gradient of a dropped element be 0.")
def gradient_everywhere(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Hides the dropping from the gradient."""
    _require_probability(p)
    return x + (torch.where(_kept(x, p), _scaled(x, p), 0.0) - x).detach() if training else x


@dropout.wrong(
    "choose with torch.where: multiplied by 0, a dropped infinity is NaN.",
    published="torch, torch.nn.functional.dropout; the notes' post, dropout",
)
def infinity_times_zero(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Multiplies by the mask, which makes NaN of a dropped infinity."""
    _require_probability(p)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return x * _kept(x, p).to(x.dtype) * scale if training else x


for version in dropout.wrong_versions:
    dropout_layer.same_mistake(version, _as_layer(version.layer))
