"""Known wrong versions of `PositionwiseFeedForward` and `FeedForward`."""

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.feed_forward import feed_forward, positionwise_feed_forward
from layer_checks.wrong import activations
from layer_checks.wrong.conv1d import OutputSizeFirst, WeightStoredAsInLinear
from transformer_layers import Conv1D

_NOTES = "the GPT-2 notes, FeedForward"


@positionwise_feed_forward.right_otherwise
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


@feed_forward.right_otherwise
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


@positionwise_feed_forward.wrong("activate with ReLU: GELU is GPT-2's.", name="GELU")
class Gelu(_Positionwise):
    """Activates with GELU."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.gelu(h)


@positionwise_feed_forward.wrong("activate between the two maps: without, they are one linear map.")
class NoActivation(_Positionwise):
    """Is one linear map."""

    def activated(self, h: Tensor) -> Tensor:
        return h


@positionwise_feed_forward.wrong("activate once, between the maps.")
class ResultActivated(_Positionwise):
    """Activates the result too."""

    def drop(self, y: Tensor) -> Tensor:
        return super().drop(y.relu())


@positionwise_feed_forward.wrong(
    "return the two maps alone; residual and norm belong to the encoder layer.",
    published="the notes' post, PositionwiseFeedForward",
)
class ResidualAndNormInside(_Positionwise):
    """Adds the input and normalizes, as the notes do."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x + super().forward(x), x.shape[-1:])


@positionwise_feed_forward.wrong("drop in training only: pass the training flag.")
class DropoutInEvaluation(_Positionwise):
    """Drops whether it trains or not."""

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout)


@positionwise_feed_forward.wrong(
    "drop the result, not the activations.",
    published="the Annotated Transformer, the_annotated_transformer.py",
)
class DropoutInside(_Positionwise):
    """Drops the activations in place of the result."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.dropout(h.relu(), self.dropout, self.training)

    def drop(self, y: Tensor) -> Tensor:
        return y


@positionwise_feed_forward.wrong(
    "drop the result alone, not the activations as well.",
    published="torch, nn.TransformerEncoderLayer, where it is meant",
)
class DropoutInsideToo(_Positionwise):
    """Drops the activations, and the result."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.dropout(h.relu(), self.dropout, self.training)


@positionwise_feed_forward.wrong(
    "drop the result once: what is kept is divided by 1 - p a single time."
)
class DroppedTwice(_Positionwise):
    """Drops the result, and drops it again."""

    def drop(self, y: Tensor) -> Tensor:
        return super().drop(super().drop(y))


@positionwise_feed_forward.wrong("apply dropout to the result in training.", name="dropout ignored")
class PositionwiseDropoutIgnored(_Positionwise):
    """Takes the argument and does not use it."""

    def drop(self, y: Tensor) -> Tensor:
        return y


@positionwise_feed_forward.wrong("drop a tenth unless dropout is given.")
class DropsHalfByDefault(_Positionwise):
    """Has another default for dropout."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.5) -> None:
        super().__init__(d_model, d_ff, dropout)


@positionwise_feed_forward.wrong(
    "leave the weights as nn.Linear draws them.", name="initialized as GPT-2's"
)
class InitializedAsGPT2(_Positionwise):
    """Starts from a standard deviation of 0.02, and from biases of zeros."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, d_ff, dropout)
        for linear in (self.linear1, self.linear2):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)


@positionwise_feed_forward.wrong("map each position by itself.")
class PositionsMixed(_Positionwise):
    """Maps the mean of all positions."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mean(dim=-2, keepdim=True).expand_as(x))


@positionwise_feed_forward.wrong(
    "map d_model to d_ff first and back then; only d_ff = d_model hides it."
)
class SizesExchanged(_Positionwise):
    """Is wide outside and narrow inside."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_ff, d_model, dropout)


@positionwise_feed_forward.wrong("give linear2 a bias.")
class SecondBiasMissing(_Positionwise):
    """Has no second bias."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__(d_model, d_ff, dropout)
        self.linear2.register_parameter("bias", None)


@feed_forward.wrong(
    "activate with the tanh form: GPT-2's weights were trained with it.",
    name="exact GELU",
    published=f"{_NOTES}; nanoGPT, model.py, https://github.com/karpathy/nanoGPT/pull/274",
)
class ExactGelu(_FeedForward):
    """Activates with the exact GELU."""

    def activated(self, h: Tensor) -> Tensor:
        return activations.exact_form(h)

    def reset_parameters(self) -> None:  # for the block that has it as a part
        for part in self.children():
            if isinstance(part, Conv1D):
                part.reset_parameters()


@feed_forward.wrong("activate with the tanh form of GELU.", name="ReLU")
class Relu(_FeedForward):
    """Activates as the 2017 Transformer does."""

    def activated(self, h: Tensor) -> Tensor:
        return h.relu()


@feed_forward.wrong(
    "activate between the two maps: without, they are one linear map.", name="no activation"
)
class NoGelu(_FeedForward):
    """Is one linear map."""

    def activated(self, h: Tensor) -> Tensor:
        return h


@feed_forward.wrong("activate between the two maps.")
class ActivationAtTheEnd(_FeedForward):
    """Activates the result."""

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(activations.tanh_form(self.c_proj(self.c_fc(x))))


@feed_forward.wrong(
    "give Conv1D the input size first; a Conv1D(nf, nx) takes the output size first.",
    published=_NOTES,
)
class SizesInTheWrongOrder(_FeedForward):
    """Gives its sizes to a linear layer that takes them in the other order, as the notes do."""

    linear = OutputSizeFirst


@feed_forward.wrong(
    "hold the weights as (in, out), which is how GPT-2's checkpoints store them.",
    name="weights stored as nn.Linear's",
)
class WeightsAsInLinear(_FeedForward):
    """Holds the transposed weights."""

    linear = WeightStoredAsInLinear


@feed_forward.wrong(
    "let the inner width follow: four times d_model.", name="3072 for every width", published=_NOTES
)
class FixedWidth(_FeedForward):
    """Is 3072 wide whatever the model's width, as the notes' listing."""

    def default_d_ff(self, d_model: int) -> int:
        return 3072


@feed_forward.wrong("apply dropout to the result in training.")
class DropoutIgnored(_FeedForward):
    """Takes the argument and does not use it."""

    def drop(self, y: Tensor) -> Tensor:
        return y


@feed_forward.wrong("drop in training only: pass the training flag.", name="dropout in evaluation")
class GPT2DropsInEvaluation(_FeedForward):
    """Drops whether it trains or not."""

    def drop(self, y: Tensor) -> Tensor:
        return functional.dropout(y, self.dropout)


@feed_forward.wrong("return the map alone: the block adds x.")
class ResidualInside(_FeedForward):
    """Adds the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@feed_forward.wrong(
    "drop the result once: what is kept is divided by 1 - p a single time.", name="dropped twice"
)
class GPT2DroppedTwice(_FeedForward):
    """Drops the result, and drops it again."""

    def drop(self, y: Tensor) -> Tensor:
        return super().drop(super().drop(y))


@feed_forward.wrong(
    "drop the result, not the activations.",
    name="dropout inside",
)
class GPT2DropoutInside(_FeedForward):
    """Drops the activations in place of the result."""

    def activated(self, h: Tensor) -> Tensor:
        return functional.dropout(super().activated(h), self.dropout, self.training)

    def drop(self, y: Tensor) -> Tensor:
        return y
