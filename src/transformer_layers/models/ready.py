"""Makes a model ready for inference, whichever it is."""

from typing import overload

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_layers.attention.grouped import GroupedQueryAttention
from transformer_layers.feed_forward.gated import GatedFeedForward
from transformer_layers.inference.products import PRODUCTS
from transformer_layers.models.gpt2.inference.model import GPT2ForInference
from transformer_layers.models.gpt2.model import GPT2
from transformer_layers.models.inference import (
    ModelForInference,
    copied,
    refuse_ready,
    replace,
)
from transformer_layers.models.llama.model import Llama
from transformer_layers.models.packed import GateInPlace, PackedAttention


class LlamaForInference(ModelForInference):
    """A Llama that computes what a :class:`Llama` does; see :class:`GPT2ForInference`."""

    kind = Llama

    def _parts(self, model: Llama, dtype: torch.dtype) -> tuple[Llama, Tensor]:
        body, product = copied(model, dtype), PRODUCTS[dtype]
        head = body.model.embed_tokens if body.lm_head is None else body.lm_head
        body.lm_head = None
        replace(body, GroupedQueryAttention, lambda layer: PackedAttention(layer, product))
        replace(body, GatedFeedForward, lambda layer: GateInPlace(layer, product))
        return body, head.weight


@overload
def ready_for_inference(
    model: GPT2, dtype: torch.dtype = ..., ids: Int[Tensor, "batch seq"] | None = ...
) -> GPT2ForInference: ...


@overload
def ready_for_inference(
    model: Llama, dtype: torch.dtype = ..., ids: Int[Tensor, "batch seq"] | None = ...
) -> LlamaForInference: ...


def ready_for_inference(
    model: GPT2 | Llama,
    dtype: torch.dtype = torch.float32,
    ids: Int[Tensor, "batch seq"] | None = None,
) -> ModelForInference:
    """Copies a model into a form that this machine's processor computes faster.

    Embeddings and norms are copied, in float32 unless said otherwise; the weights of the matrix
    products are stored anew:

    * `torch.float32`: as this machine multiplies fastest, which is timed when the first model of a
      process is made ready. Several positions are multiplied by the library that torch was built
      with, or by oneDNN, for which the weights are stored twice; a single one as a whole, or each
      thread a slice of the weight. The sums are in another order and otherwise exact.
    * `torch.bfloat16`: as (out, in), everything else in bfloat16 too. oneDNN multiplies several
      positions, and GPT-2's attention goes in blocks of 128 of them; for a single one oneDNN is
      switched off, in the whole process, since torch's own kernel reads a weight once where oneDNN
      rearranges it first.
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
        TypeError: If `model` is neither a :class:`GPT2` nor a :class:`Llama`, or was made ready
            before, or `ids` are not int64 or int32.
        ValueError: If `dtype` is another one, torch has no kernel for it on this machine, the model
            is not on the CPU, `ids` are not of two axes, hold no token, or one that the model does
            not take, or logits are NaN or infinite.

    Examples:
        >>> from transformer_layers import GPT2Config
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> ready = ready_for_inference(GPT2(config), dtype=torch.bfloat16)
        >>> ready.generate(torch.tensor([[3, 14]]), max_new_tokens=5).shape
        torch.Size([1, 7])
        >>> ready.error
        weights in torch.bfloat16: logits off by ... of their spread at most,
        by ... in the root mean square; the most likely token is the same
        at ... % of 16 positions
    """
    refuse_ready(model)
    for kind in (GPT2ForInference, LlamaForInference):
        if isinstance(model, kind.kind):
            return kind(model, dtype, ids)
    raise TypeError(f"model must be a GPT2 or a Llama, got {type(model).__name__}")
