"""A GPT-2 made ready for inference on a CPU."""

import torch
from torch import Tensor

from transformer_layers.inference.products import PRODUCTS
from transformer_layers.models.gpt2.attention import CausalSelfAttention
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.gpt2.inference.attention import BlockwiseAttention
from transformer_layers.models.gpt2.model import GPT2
from transformer_layers.models.inference import ModelForInference, copied, replace


class GPT2ForInference(ModelForInference):
    """A GPT-2 that computes what a :class:`GPT2` does, by other matrix products.

    :func:`ready_for_inference` makes it of a model, a dtype and a sample of tokens, and says how.
    It has the methods of a model that answers: it computes without gradients, and is not saved.
    What the products change is its attribute `error`, an :class:`InferenceError`.
    """

    kind = GPT2

    def _parts(self, model: GPT2, dtype: torch.dtype) -> tuple[GPT2, Tensor]:
        body, product = copied(model, dtype), PRODUCTS[dtype]
        replace(body.h, Conv1D, lambda conv: product(conv.weight, conv.bias))
        if dtype == torch.bfloat16:
            replace(body.h, CausalSelfAttention, BlockwiseAttention)
        return body, body.wte.weight
