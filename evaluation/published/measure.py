"""What a published model says of a text, and how far its logits are from `transformers`'."""

import math
import os
from dataclasses import dataclass

import torch
from torch import Tensor

from evaluation.experiments.prose import PROMPT, SAMPLE_TOKENS, SEED, TEMPERATURE
from transformer_layers import GPT2, PublishedTokenizer, Tokenizer, load_tokenizer
from transformer_training.step import evaluate
from transformer_training.tokens import number_of_rows, sequences


@dataclass(frozen=True)
class Measured:
    """What was measured of a model.

    Attributes:
        difference: The largest difference of a logit from that of `transformers`, both in float64,
            relative to the largest logit.
        nats_a_token: The mean loss of the text's tokens, each in a row of as many as the model has
            positions.
        nats_a_byte: The same loss by the bytes of the text, which models with other tokens share.
        perplexity: e to the power of the loss.
        sample: What the model wrote after a prompt.
    """

    difference: float
    nats_a_token: float
    nats_a_byte: float
    perplexity: float
    sample: str


def measure(name_or_folder: str | os.PathLike[str], text: str) -> Measured:
    """Measures a published GPT-2.

    Args:
        name_or_folder: A name on the Hugging Face hub, which needs a network, or a folder with the
            model's and the tokenizer's files.
        text: Prose, longer than the model has positions.

    Raises:
        OSError: If there are no such files, or no network.
        ValueError: If the files are not those of a GPT-2, or the text is too short.
    """
    model, tokenizer = GPT2.from_pretrained(name_or_folder), load_tokenizer(name_or_folder)
    ids, seq = tokenizer.encode(text), model.config.n_positions
    if len(ids) <= seq:
        raise ValueError(f"the text needs more than {seq} tokens, got {len(ids)}")
    rows = number_of_rows(ids, seq)
    targets = ids[1 : rows * seq + 1]
    loss = evaluate(model, model.loss, sequences(ids, torch.arange(rows), seq).split(1)).item()
    tokens_a_byte = len(targets) / len(tokenizer.decode(targets).encode())
    return Measured(
        difference=_difference(model, name_or_folder, ids[:seq]),
        nats_a_token=loss,
        nats_a_byte=loss * tokens_a_byte,
        perplexity=math.exp(loss),
        sample=_sample(model.eval(), tokenizer),
    )


@torch.no_grad()
def _difference(model: GPT2, name_or_folder: str | os.PathLike[str], ids: Tensor) -> float:
    from transformers import GPT2LMHeadModel  # two seconds to import

    theirs = GPT2LMHeadModel.from_pretrained(name_or_folder).double()
    theirs.train(False)
    expected = theirs(ids[None]).logits[0]
    dtype = model.wte.weight.dtype
    found = model.eval().double()(ids)
    model.to(dtype)
    return ((found - expected).abs().max() / expected.abs().max()).item()


def _sample(model: GPT2, tokenizer: Tokenizer | PublishedTokenizer) -> str:
    draws = torch.Generator().manual_seed(SEED)
    prompt = tokenizer.encode(PROMPT)[None]
    tokens = min(SAMPLE_TOKENS, model.config.n_positions - prompt.shape[-1])
    [ids] = model.generate(prompt, tokens, temperature=TEMPERATURE, generator=draws)
    return tokenizer.decode(ids)
