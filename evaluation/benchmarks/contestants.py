"""The models that run side by side: the same random weights, computed with in several ways."""

import tempfile
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from transformer_layers import (
    GPT2,
    GPT2Config,
    Llama,
    LlamaConfig,
    Transformer,
    TransformerConfig,
    ready_for_inference,
)
from transformer_layers.models.inference import ModelForInference

THEIRS = "transformers"
OURS = "GPT2"
LLAMA = "Llama"
TRANSLATOR = "Transformer"
READY = {
    "ready, float32": torch.float32,
    "ready, bfloat16": torch.bfloat16,
    "ready, float16": torch.float16,
    "ready, int8": torch.int8,
}


@dataclass(frozen=True)
class Contestant:
    """A language model and how it is called.

    Attributes:
        model: A :class:`GPT2` or a :class:`Llama`, one made ready, or one of `transformers`.
    """

    model: nn.Module

    @property
    def _ours(self) -> bool:
        return isinstance(self.model, GPT2 | Llama | ModelForInference)

    @torch.no_grad()
    def forward(self, ids: Tensor) -> Tensor:
        """The logits at all positions."""
        if self._ours:
            return self.model(ids)
        return self.model(ids, use_cache=False).logits

    def forward_and_backward(self, ids: Tensor) -> Tensor:
        """The loss, after the gradients of all weights were computed."""
        self.model.zero_grad(set_to_none=True)
        if self._ours:
            loss = self.model.loss(ids)
        else:
            loss = self.model(ids, labels=ids, use_cache=False).loss
        loss.backward()
        return loss.detach()

    def generate(self, ids: Tensor, new: int) -> Tensor:
        """The tokens and `new` more, the most likely ones, with a cache of keys and values."""
        if self._ours:
            return self.model.generate(ids, new)
        return self.model.generate(ids, max_new_tokens=new, min_new_tokens=new, do_sample=False)


@dataclass(frozen=True)
class Translator:
    """A translation model and how it is called.

    Attributes:
        model: A :class:`Transformer` or a `MarianMTModel` of `transformers`.
    """

    model: nn.Module

    @torch.no_grad()
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """The logits at all positions of the target."""
        if isinstance(self.model, Transformer):
            return self.model(source, target)
        return self.model(input_ids=source, decoder_input_ids=target, use_cache=False).logits

    def translate(self, source: Tensor, new: int, beams: int) -> Tensor:
        """The best sequences of `new` tokens that beam search finds, without the start token."""
        if isinstance(self.model, Transformer):
            return self.model.generate(source, new, beams=beams)
        options = {"num_beams": beams, "do_sample": False, "max_new_tokens": new}
        return self.model.generate(source, **options)[:, 1:]


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


def ready_models(model: GPT2) -> dict[str, ModelForInference]:
    """The model made ready for inference, in each way."""
    return {name: ready_for_inference(model, dtype) for name, dtype in READY.items()}


def new_llama(config: LlamaConfig) -> Llama:
    """A Llama with random weights, the same in every call."""
    torch.manual_seed(0)
    return Llama(config).eval()


def new_translator(config: TransformerConfig) -> Transformer:
    """A translator with random weights, which ends no sequence before it must."""
    torch.manual_seed(0)
    model = Transformer(config).eval()
    assert model.logits_bias is not None
    model.logits_bias[0, config.end_token] = -1e4
    return model


def from_files(model: Llama | Transformer) -> nn.Module:
    """The model of `transformers` that reads what ours writes; attention by torch's kernel."""
    kind: Any = {
        Llama: transformers.LlamaForCausalLM,
        Transformer: transformers.MarianMTModel,
    }[type(model)]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return kind.from_pretrained(folder, attn_implementation="sdpa").eval()
