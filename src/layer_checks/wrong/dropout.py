"""Known wrong versions of `dropout`, each as a function and, for `Dropout`, as a layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from layer_checks.definitions import WrongVersion


def _require_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"p must be between 0 and 1, got {p}")


def _kept(x: Tensor, p: float) -> Tensor:
    return torch.rand(x.shape, device=x.device) >= p


def _scaled(x: Tensor, p: float) -> Tensor:
    return x / (1 - p) if p < 1 else x  # of p = 1 nothing is kept


def not_scaled(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Leaves what is kept as it was."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) if training else x


def scaled_at_test_time(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Multiplies by 1 - p in evaluation."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) if training else (1 - p) * x


def scaled_twice(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Divides by 1 - p in training and multiplies by it in evaluation."""
    _require_probability(p)
    return torch.where(_kept(x, p), _scaled(x, p), 0.0) if training else (1 - p) * x


def share_kept(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Takes p for the share that is kept."""
    _require_probability(p)
    return torch.where(_kept(x, 1 - p), _scaled(x, 1 - p), 0.0) if training else x


def always_on(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Drops in evaluation too."""
    _require_probability(p)
    return torch.where(_kept(x, p), _scaled(x, p), 0.0)


def nan_at_one(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Computes 0/0 where everything is dropped."""
    _require_probability(p)
    return torch.where(_kept(x, p), x, 0.0) / x.new_tensor(1 - p) if training else x


def any_p(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Computes something for every number p."""
    return torch.where(_kept(x, p), _scaled(x, p), 0.0) if training else x


def always_float32(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Returns float32 whatever it was given, as the notes do for float16."""
    _require_probability(p)
    if not training:
        return x
    return torch.where(_kept(x, p), _scaled(x, p).float(), 0.0)


def drawn_in_low_precision(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws in the dtype of the input, as the notes do."""
    _require_probability(p)
    return torch.where(torch.rand_like(x) >= p, _scaled(x, p), 0.0) if training else x


def whole_rows(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Draws once for each row."""
    _require_probability(p)
    return torch.where(_kept(x[..., :1], p), _scaled(x, p), 0.0) if training else x


def same_draws(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Seeds its generator in each call."""
    _require_probability(p)
    draws = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    return torch.where(draws >= p, _scaled(x, p), 0.0) if training else x


def gradient_everywhere(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Hides the dropping from the gradient."""
    _require_probability(p)
    return x + (torch.where(_kept(x, p), _scaled(x, p), 0.0) - x).detach() if training else x


def infinity_times_zero(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Multiplies by the mask, which makes NaN of a dropped infinity."""
    _require_probability(p)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return x * _kept(x, p).to(x.dtype) * scale if training else x


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


WRONG_DROPOUTS = (
    WrongVersion(
        "not scaled",
        "divide what is kept by 1 - p, so that the expected value stays.",
        not_scaled,
    ),
    WrongVersion(
        "scaled at test time",
        "divide by 1 - p in training and return x itself in evaluation; the 2014 paper's form "
        "multiplies by 1 - p in evaluation instead.",
        scaled_at_test_time,
    ),
    WrongVersion(
        "scaled twice",
        "return x itself in evaluation: the division in training is all that is needed.",
        scaled_twice,
    ),
    WrongVersion("p is the share kept", "drop with probability p, not 1 - p.", share_kept),
    WrongVersion(
        "always on",
        "return x itself in evaluation.",
        always_on,
        "the notes' post, dropout, which has no argument for it",
    ),
    WrongVersion(
        "0/0 at p = 1",
        "with p = 1 return zeros: dividing by 1 - p gives NaN.",
        nan_at_one,
        "the notes' post, dropout",
    ),
    WrongVersion(
        "any p taken",
        "refuse a p outside [0, 1], and NaN, with a ValueError.",
        any_p,
        "the notes' post, dropout",
    ),
    WrongVersion(
        "always float32",
        "return the dtype of the input: a mask made by .float() makes float32 of float16.",
        always_float32,
        "the notes' post, dropout",
    ),
    WrongVersion(
        "drawn in low precision",
        "draw in float32: in bfloat16 no draw comes nearer to 1 than 1/256.",
        drawn_in_low_precision,
        "the notes' post, dropout",
    ),
    WrongVersion("whole rows dropped", "draw for each element, not for each row.", whole_rows),
    WrongVersion("the same draws", "draw anew in each call: do not seed inside.", same_draws),
    WrongVersion(
        "gradient everywhere",
        "let the gradient of a dropped element be 0.",
        gradient_everywhere,
    ),
    WrongVersion(
        "infinity times zero",
        "choose with torch.where: multiplied by 0, a dropped infinity is NaN.",
        infinity_times_zero,
        "torch, torch.nn.functional.dropout; the notes' post, dropout",
    ),
)

WRONG_DROPOUT_LAYERS = tuple(
    WrongVersion(version.name, version.advice, _as_layer(version.layer), version.published)
    for version in WRONG_DROPOUTS
)
