"""What models made ready for inference on a CPU have in common, and the error that it brings."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.generation import loop
from transformer_layers.generation.evaluation import evaluating
from transformer_layers.generation.loss import next_token_loss
from transformer_layers.inference.kernels import kernels
from transformer_layers.inference.products import PRODUCTS
from transformer_layers.models.language_model import Caches, LanguageModel

_Module = TypeVar("_Module", bound=nn.Module)
_Ready = TypeVar("_Ready", bound="ModelForInference")

_Method = TypeVar("_Method", bound=Callable[..., Any])

# So many of the sample's positions are computed one at a time, as in generation.
SINGLE_POSITIONS = 8


@dataclass(frozen=True, repr=False)
class InferenceError:
    """How far the logits of a model made ready for inference are from the model's own.

    The unit of `largest` and `rms` is the spread of the logits: their standard deviation over the
    vocabulary, at each position its own.

    Attributes:
        dtype: What the weights are stored as.
        largest: Largest error of a logit.
        rms: Root of the mean square of the errors.
        unchanged: Share of the positions whose most likely token is the same.
        positions: Number of positions that were compared.

    Examples:
        >>> InferenceError(torch.bfloat16, largest=0.066, rms=0.012, unchanged=0.75, positions=128)
        weights in torch.bfloat16: logits off by 0.066 of their spread at most,
        by 0.012 in the root mean square; the most likely token is the same
        at 75 % of 128 positions
    """

    dtype: torch.dtype
    largest: float
    rms: float
    unchanged: float
    positions: int

    def __repr__(self) -> str:
        return (
            f"weights in {self.dtype}: logits off by {self.largest:.2g} of their spread at most,\n"
            f"by {self.rms:.2g} in the root mean square; the most likely token is the same\n"
            f"at {100 * self.unchanged:.4g} % of {self.positions} positions"
        )


def _reads_as(method: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Gives a method the docstring of another."""

    def documented(own: _Method) -> _Method:
        own.__doc__ = method.__doc__
        return own

    return documented


class ModelForInference(nn.Module, ABC):
    """A language model that computes what another does, by other matrix products.

    :func:`ready_for_inference` makes it, and says what of. It has the methods of a model that
    answer: it computes without gradients, and is not saved.

    Args:
        model: See :func:`ready_for_inference`, as for the other arguments and the errors.
        dtype: See there.
        ids: See there.

    Attributes:
        kind: The class of the model that it is made from.
        error: The measured :class:`InferenceError`.
        body: Embeddings, blocks and norm, each of its own copies.
        head: Maps what the last norm returns to logits.
    """

    kind: ClassVar[type[nn.Module]]

    def __init__(
        self,
        model: Any,
        dtype: torch.dtype = torch.float32,
        ids: Int[Tensor, "batch seq"] | None = None,
    ) -> None:
        super().__init__()
        _require_ready_to_be(self.kind, model, dtype)
        ids = _random_ids(model) if ids is None else ids
        if ids.ndim != 2 or ids.numel() == 0:
            raise ValueError(
                "ids must be of shape (batch, seq) with one position or more, got "
                f"{tuple(ids.shape)}; a single sequence is ids[None]"
            )
        with evaluating(model) as twin:
            expected = _logits(twin, ids)
        self.body, head_weight = self._parts(model, dtype)
        self.head = PRODUCTS[dtype](head_weight.T, None)
        self.eval().requires_grad_(False)
        self.error = _error(dtype, _logits(self, ids), expected)

    @abstractmethod
    def _parts(self, model: Any, dtype: torch.dtype) -> tuple[Any, Tensor]:
        """A copy whose products are others, and the weight of its head, (vocab_size, d_model)."""

    @property
    def config(self) -> Any:
        """The sizes."""
        return self.body.config

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return self.body.vocab_size

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.body.max_seq

    @property
    def keys_serve_until(self) -> int | None:
        """As `Llama.keys_serve_until` has it; None for other models."""
        return getattr(self.body, "keys_serve_until", None)

    @_reads_as(LanguageModel.forward)
    def forward(  # noqa: D102, it reads as another
        self,
        ids: Int[Tensor, "*batch seq"] | None,
        caches: Caches = None,
        *,
        mask: Bool[Tensor, "batch *q_seq length"] | None = None,
        positions: Int[Tensor, "*rows seq"] | None = None,
        inputs_embeds: Float[Tensor, "*batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        further = {"mask": mask, "positions": positions, "inputs_embeds": inputs_embeds}
        return self.logits(self.last_hidden_state(ids, caches, **further))

    @_reads_as(LanguageModel.last_hidden_state)
    def last_hidden_state(  # noqa: D102, it reads as another
        self,
        ids: Int[Tensor, "*batch seq"] | None,
        caches: Caches = None,
        *,
        mask: Bool[Tensor, "batch *q_seq length"] | None = None,
        positions: Int[Tensor, "*rows seq"] | None = None,
        inputs_embeds: Float[Tensor, "*batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*batch seq d_model"]:
        further = {"mask": mask, "positions": positions, "inputs_embeds": inputs_embeds}
        computed = 0 if inputs_embeds is None else inputs_embeds.shape[:-1].numel()
        computed = computed if ids is None else ids.numel()
        with kernels(next(self.body.parameters()).dtype, computed):
            return self.body.last_hidden_state(ids, caches, **further)

    @_reads_as(LanguageModel.logits)
    def logits(  # noqa: D102, it reads as another
        self, hidden_state: Float[Tensor, "*batch seq d_model"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        with kernels(hidden_state.dtype, hidden_state.shape[:-1].numel()):
            return self.head(hidden_state)

    @_reads_as(LanguageModel.new_caches)
    def new_caches(  # noqa: D102, it reads as another
        self, batch: int, max_seq: int, padding: Int[Tensor, " batch"] | None = None
    ) -> list[KeyValueCache]:
        return self.body.new_caches(batch, max_seq, padding)

    loss = next_token_loss
    generate = loop.generate
    stream = loop.stream

    @classmethod
    def from_pretrained(
        cls: type[_Ready],
        name_or_folder: str | os.PathLike[str],
        dtype: torch.dtype = torch.float32,
        ids: Int[Tensor, "batch seq"] | None = None,
        *,
        revision: str | None = None,
    ) -> _Ready:
        """Loads a published checkpoint and makes it ready.

        Args:
            name_or_folder: As of the model's own `from_pretrained`, as for the errors.
            dtype: See :func:`ready_for_inference`.
            ids: See there.
            revision: As of the model's own `from_pretrained`.

        Returns:
            The model.
        """
        kind: Any = cls.kind
        return cls(kind.from_pretrained(name_or_folder, revision=revision), dtype, ids)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Refuses: the weights are no longer those of a checkpoint.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"a model that was made ready for inference is not written to {os.fspath(folder)!r}; "
            "save the model that it was made from"
        )


def copied(model: Any, dtype: torch.dtype) -> Any:
    """A copy to replace the products of, whose weights are stored in another dtype.

    Args:
        model: The model, made of its `config`.
        dtype: What the products' weights will be stored as.

    Returns:
        A model of the same class: in bfloat16 for that dtype, and in float32 for all others.
    """
    with torch.device("meta"):
        twin = type(model)(model.config)
    kept = torch.bfloat16 if dtype == torch.bfloat16 else torch.float32
    copies = {name: x.detach().to(kept, copy=True) for name, x in model.state_dict().items()}
    twin.load_state_dict(copies, assign=True)
    return twin


def replace(
    model: nn.Module, kind: type[_Module], replacement: Callable[[_Module], nn.Module]
) -> None:
    """Replaces each layer of a kind in a model.

    Args:
        model: The model, which is changed.
        kind: The class of the layers.
        replacement: Makes of a layer what stands in its place.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, kind):
                setattr(parent, name, replacement(child))


def refuse_ready(model: Any) -> None:
    """Refuses a model that was made ready before.

    Raises:
        TypeError: If it was.
    """
    if isinstance(model, ModelForInference):
        raise TypeError(
            f"model was made ready before, with weights in {model.error.dtype}; pass the one that "
            "it was made from"
        )


def _require_ready_to_be(kind: type[nn.Module], model: Any, dtype: torch.dtype) -> None:
    refuse_ready(model)
    if not isinstance(model, kind):
        raise TypeError(f"model must be a {kind.__name__}, got {type(model).__name__}")
    if dtype not in PRODUCTS:
        raise ValueError(f"dtype must be one of {', '.join(map(str, PRODUCTS))}, got {dtype}")
    devices = sorted({parameter.device.type for parameter in model.parameters()})
    if devices != ["cpu"]:
        raise ValueError(
            f"model must be on the CPU, whose kernels it is made ready for; it is on "
            f"{', '.join(devices)}. Move it with model.cpu()"
        )


def _random_ids(model: Any) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    seq = min(model.max_seq, 128)
    return torch.randint(model.vocab_size, (1, seq), generator=generator)


def _logits(model: Any, ids: Tensor) -> Tensor:
    # The last positions one at a time: other kernels compute them.
    batch, seq = ids.shape
    caches = model.new_caches(batch, seq)
    first = max(seq - SINGLE_POSITIONS, 0)
    pieces = [ids[:, :first], *ids[:, first:].split(1, dim=1)]
    return torch.cat([model(piece, caches) for piece in pieces if piece.numel()], dim=1)


def _error(dtype: torch.dtype, actual: Tensor, expected: Tensor) -> InferenceError:
    _require_finite("the model's own logits", expected)
    _require_finite(f"with weights in {dtype} the logits", actual)
    spread = expected.double().std(dim=-1, correction=0, keepdim=True)
    smallest = torch.finfo(torch.float64).tiny  # logits may all be the same
    error = (actual.double() - expected.double()) / spread.clamp(min=smallest)
    same = actual.argmax(dim=-1) == expected.argmax(dim=-1)
    return InferenceError(
        dtype=dtype,
        largest=error.abs().max().item(),
        rms=error.square().mean().sqrt().item(),
        unchanged=same.double().mean().item(),
        positions=same.numel(),
    )


def _require_finite(whose: str, logits: Tensor) -> None:
    finite = logits.isfinite().all(dim=-1)
    if not finite.all():
        raise ValueError(
            f"{whose} are NaN or infinite at {(~finite).sum()} of {finite.numel()} positions, so "
            "that there is nothing to compare; look for such weights, or too large ones"
        )
