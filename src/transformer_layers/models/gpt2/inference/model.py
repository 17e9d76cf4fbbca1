"""A GPT-2 made ready for inference on a CPU."""

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_layers.attention.cache import KeyValueCache
from transformer_layers.generation.evaluation import evaluating
from transformer_layers.inference.kernels import kernels
from transformer_layers.inference.products import PRODUCTS
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.inference.attention import BlockwiseAttention
from transformer_layers.models.gpt2.model import GPT2

_Module = TypeVar("_Module", bound=nn.Module)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

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


class _Body(GPT2):
    """A model whose products are others, that of the head too."""

    def __init__(self, model: GPT2, dtype: torch.dtype) -> None:
        with torch.device("meta"):
            super().__init__(model.config)
        kept = torch.bfloat16 if dtype == torch.bfloat16 else torch.float32
        copies = {name: x.detach().to(kept, copy=True) for name, x in model.state_dict().items()}
        self.load_state_dict(copies, assign=True)
        product = PRODUCTS[dtype]
        _replace(self.h, Conv1D, lambda conv: product(conv.weight, conv.bias))
        if dtype == torch.bfloat16:
            _replace(self.h, CausalSelfAttention, BlockwiseAttention)
        self.head = product(self.wte.weight.T, None)
        self.requires_grad_(False)

    def last_hidden_state(
        self,
        ids: Int[Tensor, "*batch seq"],
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "*batch seq n_embd"]:
        with kernels(self.wte.weight.dtype, ids.numel()):
            return super().last_hidden_state(ids, caches)

    def logits(
        self, hidden_state: Float[Tensor, "*batch seq n_embd"]
    ) -> Float[Tensor, "*batch seq vocab_size"]:
        with kernels(hidden_state.dtype, hidden_state.shape[:-1].numel()):
            return self.head(hidden_state)


def _of_body(
    method: Callable[Concatenate[GPT2, _Arguments], _Result], name: str = ""
) -> Callable[Concatenate["GPT2ForInference", _Arguments], _Result]:
    """A method of :class:`GPT2`, done by the body."""

    def by_body(
        self: "GPT2ForInference", /, *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Result:
        return getattr(self.body, name or method.__name__)(*arguments, **options)

    functools.update_wrapper(by_body, method)
    return by_body


class GPT2ForInference(nn.Module):
    """A GPT-2 that computes what a :class:`GPT2` does, by other matrix products.

    :func:`ready_for_inference` makes it, and says what of. It has the methods of a model that
    answer: it computes without gradients, and is not saved.

    Args:
        model: See :func:`ready_for_inference`, as for the other arguments and the errors.
        dtype: See there.
        ids: See there.

    Attributes:
        error: The measured :class:`InferenceError`.
        config: The sizes.
        body: Embeddings, blocks, norm and head, each of its own copies.
        head: Maps what the last norm returns to logits.
    """

    def __init__(
        self,
        model: GPT2,
        dtype: torch.dtype = torch.float32,
        ids: Int[Tensor, "batch seq"] | None = None,
    ) -> None:
        super().__init__()
        _require_ready_to_be(model, dtype)
        ids = _random_ids(model.config) if ids is None else ids
        if ids.ndim != 2 or ids.numel() == 0:
            raise ValueError(
                "ids must be of shape (batch, seq) with one position or more, got "
                f"{tuple(ids.shape)}; a single sequence is ids[None]"
            )
        with evaluating(model) as twin:
            expected = _logits(twin, ids)
        self.body = _Body(model, dtype)
        self.eval()
        self.error = _error(dtype, _logits(self.body, ids), expected)

    @property
    def config(self) -> GPT2Config:
        """The sizes."""
        return self.body.config

    @property
    def head(self) -> nn.Module:
        """Maps what the last norm returns to logits."""
        return self.body.head

    forward = _of_body(GPT2.forward)
    last_hidden_state = _of_body(GPT2.last_hidden_state)
    logits = _of_body(GPT2.logits)
    loss = _of_body(GPT2.loss, "loss")
    generate = _of_body(GPT2.generate)
    stream = _of_body(GPT2.stream)
    new_caches = _of_body(GPT2.new_caches)

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | os.PathLike[str],
        dtype: torch.dtype = torch.float32,
        ids: Int[Tensor, "batch seq"] | None = None,
        *,
        revision: str | None = None,
    ) -> "GPT2ForInference":
        """Loads a published checkpoint and makes it ready.

        Args:
            name_or_folder: See :meth:`GPT2.from_pretrained`, as for the errors.
            dtype: See :func:`ready_for_inference`.
            ids: See there.
            revision: See :meth:`GPT2.from_pretrained`.

        Returns:
            The model.
        """
        return cls(GPT2.from_pretrained(name_or_folder, revision=revision), dtype, ids)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Refuses: the weights are no longer those of a checkpoint.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            f"a model that was made ready for inference is not written to {os.fspath(folder)!r}; "
            "save the model that it was made from"
        )


def ready_for_inference(
    model: GPT2, dtype: torch.dtype = torch.float32, ids: Int[Tensor, "batch seq"] | None = None
) -> GPT2ForInference:
    """Copies a model into a form that this machine's processor computes faster.

    Embeddings and norms are copied, in float32 unless said otherwise; the weights of the matrix
    products are stored anew:

    * `torch.float32`: twice. oneDNN multiplies several positions, where torch has it; MKL, or
      whatever library torch was built with, multiplies a single one, each thread a slice of the
      weight. The sums are in another order and otherwise exact.
    * `torch.bfloat16`: as (out, in), everything else in bfloat16 too. oneDNN multiplies several
      positions, and attention in blocks of 128 of them; for a single one oneDNN is switched off,
      in the whole process, since torch's own kernel reads a weight once where oneDNN rearranges
      it first.
    * `torch.float16`: by FBGEMM, which multiplies float32 by float16 and sums up in float32.
    * `torch.int8`: by FBGEMM or what torch has in its place: each column of a weight is rounded
      to 127 steps to either side of 0, each input of a product to 128 steps.

    In float32 and bfloat16 the model compiles to one graph and exports, with torch's own products.
    The weights that FBGEMM packs are in no graph: `torch.compile` breaks it at each of them, and
    `torch.export` cannot hold them.

    The last two are dynamic quantization, which torch 2.13 still has and will remove. Its
    successor, torchao, is a package of its own; on a CPU it is slower than float32 unless the model
    is compiled.

    Args:
        model: The model, on the CPU; it is not changed.
        dtype: What the weights are stored as.
        ids: A sample of tokens to measure the error on, int64 or int32 of shape `(batch, seq)`;
            up to 128 random ones if not given. The last 8 positions are computed one at a time.

    Returns:
        A model of the same interface, in evaluation mode. Its attribute `error` tells what the
        change did to the logits.

    Raises:
        TypeError: If `model` is no :class:`GPT2`, or was made ready before, or `ids` are not
            int64 or int32.
        ValueError: If `dtype` is another one, torch has no kernel for it on this machine, the model
            is not on the CPU, `ids` are not of two axes, hold no token, or one that the model does
            not take, or logits are NaN or infinite.

    Examples:
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> ready = ready_for_inference(GPT2(config), dtype=torch.bfloat16)
        >>> ready.generate(torch.tensor([[3, 14]]), max_new_tokens=5).shape
        torch.Size([1, 7])
        >>> ready.error
        weights in torch.bfloat16: logits off by ... of their spread at most,
        by ... in the root mean square; the most likely token is the same
        at ... % of 16 positions
    """
    return GPT2ForInference(model, dtype, ids)


def _replace(
    model: nn.Module, kind: type[_Module], replacement: Callable[[_Module], nn.Module]
) -> None:
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, kind):
                setattr(parent, name, replacement(child))


def _require_ready_to_be(model: GPT2, dtype: torch.dtype) -> None:
    if isinstance(model, GPT2ForInference):
        raise TypeError(
            f"model was made ready before, with weights in {model.error.dtype}; pass the one that "
            "it was made from"
        )
    if not isinstance(model, GPT2):
        raise TypeError(f"model must be a GPT2, got {type(model).__name__}")
    if dtype not in PRODUCTS:
        raise ValueError(f"dtype must be one of {', '.join(map(str, PRODUCTS))}, got {dtype}")
    devices = sorted({parameter.device.type for parameter in model.parameters()})
    if devices != ["cpu"]:
        raise ValueError(
            f"model must be on the CPU, whose kernels it is made ready for; it is on "
            f"{', '.join(devices)}. Move it with model.cpu()"
        )


def _random_ids(config: GPT2Config) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    seq = min(config.n_positions, 128)
    return torch.randint(config.vocab_size, (1, seq), generator=generator)


def _logits(model: GPT2, ids: Tensor) -> Tensor:
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
