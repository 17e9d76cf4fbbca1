"""Wrong activations, dropouts and penalties."""

import math
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

import transformer_layers
from evaluation.held_out.definitions import held_out
from evaluation.held_out.first.norms import widened


def _tanh_form(x: Tensor, inner: Tensor) -> Tensor:
    return (0.5 * widened(x) * (1 + torch.tanh(inner))).to(x.dtype)


@held_out("gelu_tanh", "huggingface/transformers, pull request 11514", "constant|coefficient|0.04")
def coefficients_swapped(x: Tensor) -> Tensor:
    """Puts 0.044715 where the root of 2/pi belongs, and the other way round."""
    transformer_layers.gelu_tanh(x.detach()[:0])  # its errors
    wide = widened(x)
    return _tanh_form(x, 0.044715 * (wide + math.sqrt(2 / math.pi) * wide**3))


@held_out("gelu_tanh", "hendrycks/GELUs, issue 1", "cube|square|power|exponent")
def square_for_cube(x: Tensor) -> Tensor:
    """Squares where it should cube."""
    transformer_layers.gelu_tanh(x.detach()[:0])
    wide = widened(x)
    return _tanh_form(x, math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**2))


@held_out(
    "gelu",
    "harvard-edge/cs249r_book, issue 1154: 1.702 said to come from the root of 2/pi",
    "sigm|approx",
)
def sigmoid_of_the_root(x: Tensor) -> Tensor:
    """Takes the root of 8/pi, 1.596, for the constant of the sigmoid form."""
    transformer_layers.gelu(x.detach()[:0])
    wide = widened(x)
    return (wide * torch.sigmoid(2 * math.sqrt(2 / math.pi) * wide)).to(x.dtype)


@held_out(
    "gelu",
    "Oneflow-Inc/oneflow, pull request 8693: formula and kernel differed",
    "tanh|approx|exact",
)
def tanh_form_for_wide_input(x: Tensor) -> Tensor:
    """Takes the tanh form for large tensors, the exact one for small ones."""
    form = transformer_layers.gelu_tanh if x.numel() > 1024 else transformer_layers.gelu
    return form(x)


@held_out(
    "Dropout",
    "keras-team/keras, issue 217; joaopauloschuler/neural-api, issue 6",
    "mask|same|row|sample|batch",
)
class OneMaskForTheBatch(transformer_layers.Dropout):
    """Draws one mask and uses it for every sample of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2:
            return super().forward(x)
        return x * super().forward(torch.ones_like(x[:1]))


@held_out("Dropout", "PaddlePaddle/Paddle, pull request 14036", "scal|evaluat|expect|test")
class ScaledInEvaluation(transformer_layers.Dropout):
    """Does not scale in training, and multiplies by p in evaluation, as the listing says."""

    def forward(self, x: Tensor) -> Tensor:
        kept = super().forward(x)
        return kept * (1 - self.p) if self.training else kept * self.p


@held_out(
    "dropout", "gorgonia/gorgonia, pull request 399; elixir-nx/axon, issue 367", "p = 1|NaN|zero|1"
)
def nan_where_all_is_dropped(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Gives NaN, 0/0, where p is 1."""
    y = transformer_layers.dropout(x, p, training)
    return y / y if training and p == 1 else y


@held_out(
    "Dropout", "harvard-edge/cs249r_book, tinytorch dropout: numpy.random", "generator|seed|random"
)
class DrawnByNumpy(transformer_layers.Dropout):
    """Draws with numpy, so that torch.manual_seed does not repeat it."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return super().forward(x)
        super().forward(x.detach()[:0])  # its errors
        kept = torch.from_numpy(np.random.default_rng().random(tuple(x.shape))) >= self.p
        return torch.where(kept, x, 0.0) * (1 / (1 - self.p) if self.p < 1 else 0.0)


@held_out("dropout", "v-iashin/CS231n, pull request 8", "keep|probab|1 - p|kept")
def p_is_kept(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Takes p for the probability that an element is kept."""
    transformer_layers.dropout(x.detach()[:0], p, training)
    return transformer_layers.dropout(x, 1 - p, training)


@held_out("l2_penalty", "Metta-AI/metta, pull request 1176", "gradient|detach|graph")
def of_detached_weights(parameters: Iterable[Tensor]) -> Tensor:
    """Computes the penalty of detached weights: it has a value, and no gradient."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return transformer_layers.l2_penalty([each.detach() for each in listed])


@held_out(
    "l1_penalty", "allenai/allennlp, issue 2790 and pull request 2887", "frozen|requires|grad"
)
def of_trained_weights_only(parameters: Iterable[Tensor]) -> Tensor:
    """Leaves out frozen parameters."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    trained = [each for each in listed if each.requires_grad]
    return transformer_layers.l1_penalty(trained or listed)


@held_out("l2_penalty", "glm-tools/pyglmnet, issue 141", "root|norm|square")
def norm_not_squared(parameters: Iterable[Tensor]) -> Tensor:
    """Half the norm, not half its square."""
    return 0.5 * (2 * transformer_layers.l2_penalty(parameters)).sqrt()


@held_out(
    "l2_penalty", "karpathy/nanoGPT, model.py, configure_optimizers", "bias|matri|axes|vector"
)
def of_matrices_only(parameters: Iterable[Tensor]) -> Tensor:
    """Leaves out parameters of one axis, biases and gains, where there are matrices."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    matrices = [each for each in listed if each.ndim >= 2]
    return transformer_layers.l2_penalty(matrices or listed)


@held_out("soft_threshold", "unc-optimization/FedDR, issue 1", "norm|whole|group|element|each")
def of_the_whole_norm(x: Tensor, threshold: float) -> Tensor:
    """Shrinks the whole tensor by its norm, the proximal step of another penalty."""
    transformer_layers.soft_threshold(x.detach()[:0], threshold)
    norm = widened(x).norm()
    return (widened(x) * (1 - threshold / norm.clamp(min=threshold or 1)).clamp(min=0)).to(x.dtype)


@held_out("soft_threshold", "dynamicslab/pysindy, pull request 541", "threshold|square|half")
def threshold_squared(x: Tensor, threshold: float) -> Tensor:
    """Shrinks by half the square of the threshold."""
    transformer_layers.soft_threshold(x.detach()[:0], threshold)
    return transformer_layers.soft_threshold(x, threshold**2 / 2)
