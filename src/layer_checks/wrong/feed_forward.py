# ruff: noqa: D102 - the docstring of each class says what its one method changes
"""Known wrong versions of `PositionwiseFeedForward` and `FeedForward`."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.definitions import WrongVersion
from layer_checks.wrong import activations
from layer_checks.wrong.conv1d import OutputFirst, WeightStoredAsInLinear
from transformer_layers import Conv1D


class _Positionwise(nn.Module):
    """A right one, of which each wrong version changes one step."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.linear2(self.activated(self.linear1(x))))

    def activated(self, h: Tensor) -> Tensor:
        return h.relu()

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout, self.training)


class Gelu(_Positionwise):
    """Activates with GELU."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.gelu(h)


class NoActivation(_Positionwise):
    """Is one linear map."""

    def activated(self, h: Tensor) -> Tensor:
        return h


class ActivatedTwice(_Positionwise):
    """Activates the result too."""

    def drop(self, y: Tensor) -> Tensor:
        return super().drop(y.relu())


class WithResidualAndNorm(_Positionwise):
    """Adds the input and normalizes, as the notes do."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x + super().forward(x), x.shape[-1:])


class DropsInEvaluation(_Positionwise):
    """Drops whether it trains or not."""

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout)


class DropsInside(_Positionwise):
    """Drops the activations in place of the result."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.dropout(h.relu(), self.dropout, self.training)

    def drop(self, y: Tensor) -> Tensor:
        return y


class OverTheSequence(_Positionwise):
    """Maps the mean of all positions."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mean(dim=-2, keepdim=True).expand_as(x))


class NoSecondBias(_Positionwise):
    """Has no second bias."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, d_ff, dropout)
        self.linear2.register_parameter("bias", None)


class ExchangedSizes(_Positionwise):
    """Is wide outside and narrow inside."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_ff, d_model, dropout)


class _FeedForward(nn.Module):
    """A right one, of which each wrong version changes one step."""

    linear: type[nn.Module] = Conv1D

    def __init__(self, d_model: int, d_ff: int | None = None, dropout: float = 0.1) -> None:
        super().__init__()
        d_ff = self.default_d_ff(d_model) if d_ff is None else d_ff
        self.c_fc = self.linear(d_model, d_ff)
        self.c_proj = self.linear(d_ff, d_model)
        self.dropout = dropout

    def default_d_ff(self, d_model: int) -> int:
        return 4 * d_model

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.c_proj(self.activated(self.c_fc(x))))

    def activated(self, h: Tensor) -> Tensor:
        return activations.tanh_form(h)

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout, self.training)


class ExactGelu(_FeedForward):
    """Activates with the exact GELU."""

    def activated(self, h: Tensor) -> Tensor:
        return activations.exact_form(h)


class Relu(_FeedForward):
    """Activates as the 2017 Transformer does."""

    def activated(self, h: Tensor) -> Tensor:
        return h.relu()


class NoGelu(_FeedForward):
    """Is one linear map."""

    def activated(self, h: Tensor) -> Tensor:
        return h


class GeluAtTheEnd(_FeedForward):
    """Activates the result."""

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(activations.tanh_form(self.c_proj(self.c_fc(x))))


class SizesInWrongOrder(_FeedForward):
    """Gives its sizes to a linear layer that takes them in the other order, as the notes do."""

    linear = OutputFirst


class WeightsAsInLinear(_FeedForward):
    """Holds the transposed weights."""

    linear = WeightStoredAsInLinear


class FixedWidth(_FeedForward):
    """Is 3072 wide whatever the model's width, as the notes' listing."""

    def default_d_ff(self, d_model: int) -> int:
        return 3072


class NeverDrops(_FeedForward):
    """Takes the argument and does not use it."""

    def drop(self, y: Tensor) -> Tensor:
        return y


class GPT2DropsInEvaluation(_FeedForward):
    """Drops whether it trains or not."""

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout)


class GPT2WithResidual(_FeedForward):
    """Adds the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


_NOTES = "the GPT-2 notes, FeedForward"

WRONG_POSITIONWISE = (
    WrongVersion("GELU", "activate with ReLU: GELU is GPT-2's.", Gelu),
    WrongVersion(
        "no activation",
        "activate between the two maps: without, they are one linear map.",
        NoActivation,
    ),
    WrongVersion("result activated", "activate once, between the maps.", ActivatedTwice),
    WrongVersion(
        "residual and norm inside",
        "return the two maps alone; residual and norm belong to the encoder layer.",
        WithResidualAndNorm,
        "the notes' post, PositionwiseFeedForward",
    ),
    WrongVersion(
        "dropout in evaluation",
        "drop in training only: pass the training flag.",
        DropsInEvaluation,
    ),
    WrongVersion(
        "dropout inside",
        "drop the result, not the activations.",
        DropsInside,
        "the Annotated Transformer, the_annotated_transformer.py; torch, "
        "nn.TransformerEncoderLayer, which drops in both places",
    ),
    WrongVersion(
        "positions mixed",
        "map each position by itself.",
        OverTheSequence,
    ),
    WrongVersion(
        "sizes exchanged",
        "map d_model to d_ff first and back then; only d_ff = d_model hides it.",
        ExchangedSizes,
    ),
    WrongVersion("second bias missing", "give linear2 a bias.", NoSecondBias),
)

WRONG_FEED_FORWARDS = (
    WrongVersion(
        "exact GELU",
        "activate with the tanh form: GPT-2's weights were trained with it.",
        ExactGelu,
        f"{_NOTES}; nanoGPT, model.py, https://github.com/karpathy/nanoGPT/pull/274",
    ),
    WrongVersion("ReLU", "activate with the tanh form of GELU.", Relu),
    WrongVersion(
        "no activation",
        "activate between the two maps: without, they are one linear map.",
        NoGelu,
    ),
    WrongVersion("activation at the end", "activate between the two maps.", GeluAtTheEnd),
    WrongVersion(
        "sizes in the wrong order",
        "give Conv1D the input size first; a Conv1D(nf, nx) takes the output size first.",
        SizesInWrongOrder,
        _NOTES,
    ),
    WrongVersion(
        "weights stored as nn.Linear's",
        "hold the weights as (in, out), which is how GPT-2's checkpoints store them.",
        WeightsAsInLinear,
    ),
    WrongVersion(
        "3072 for every width",
        "let the inner width follow: four times d_model.",
        FixedWidth,
        _NOTES,
    ),
    WrongVersion("dropout ignored", "apply dropout to the result in training.", NeverDrops),
    WrongVersion(
        "dropout in evaluation",
        "drop in training only: pass the training flag.",
        GPT2DropsInEvaluation,
    ),
    WrongVersion("residual inside", "return the map alone: the block adds x.", GPT2WithResidual),
)
