"""The models that run side by side: one set of random weights, six ways to compute with it."""

from dataclasses import dataclass

import torch
import transformers
from torch import Tensor, nn

from transformer_layers import GPT2, GPT2Config, GPT2ForInference, ready_for_inference

THEIRS = "transformers"
OURS = "GPT2"
READY = {
    "ready, float32": torch.float32,
    "ready, bfloat16": torch.bfloat16,
    "ready, float16": torch.float16,
    "ready, int8": torch.int8,
}


@dataclass(frozen=True)
class Contestant:
    """A model and how it is called.

    Attributes:
        model: A :class:`GPT2`, one made ready, or a `GPT2LMHeadModel` of `transformers`.
    """

    model: nn.Module

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """The logits at all positions."""
        if isinstance(self.model, GPT2 | GPT2ForInference):
            return self.model(ids)
        return self.model(ids, use_cache=False).logits

    def forward_and_backward(self, ids: Tensor) -> Tensor:
        """The loss, after the gradients of all weights were computed."""
        self.model.zero_grad(set_to_none=True)
        if isinstance(self.model, GPT2 | GPT2ForInference):
            loss = self.model.loss(ids)
        else:
            loss = self.model(ids, labels=ids, use_cache=False).loss
        loss.backward()
        return loss.detach()

    def generate(self, ids: Tensor, new: int) -> Tensor:
        """The tokens and `new` more, the most likely ones, with a cache of keys and values."""
        if isinstance(self.model, GPT2 | GPT2ForInference):
            return self.model.generate(ids, new)
        return self.model.generate(ids, max_new_tokens=new, min_new_tokens=new, do_sample=False)


def new_model(config: GPT2Config) -> GPT2:
    """A model with random weights, the same in every call."""
    torch.manual_seed(0)
    return GPT2(config).eval()


def with_transformers(model: GPT2) -> nn.Module:
    """The model of `transformers` with the same weights, and its attention by torch's kernel."""
    sizes = model.config
    config = transformers.GPT2Config(
        vocab_size=sizes.vocab_size,
        n_positions=sizes.n_positions,
        n_embd=sizes.n_embd,
        n_layer=sizes.n_layer,
        n_head=sizes.n_head,
        attn_pdrop=sizes.dropout,
        embd_pdrop=sizes.dropout,
        resid_pdrop=sizes.dropout,
        bos_token_id=sizes.vocab_size - 1,
        eos_token_id=sizes.vocab_size - 1,
        pad_token_id=sizes.vocab_size - 1,
        attn_implementation="sdpa",
    )
    with torch.device("meta"):
        theirs = transformers.GPT2LMHeadModel(config)
    theirs.transformer.load_state_dict(model.state_dict(), assign=True)
    theirs.tie_weights()
    theirs.loss_type = "ForCausalLM"  # it would choose it by itself, with a warning
    return theirs.eval()


def ready_models(model: GPT2) -> dict[str, GPT2ForInference]:
    """The model made ready for inference, in each way."""
    return {name: ready_for_inference(model, dtype) for name, dtype in READY.items()}
