"""Every layer, with inputs that it takes: what `test_machinery.py` runs through.

To add a layer, append a `LayerCase`. Its inputs are built for a given batch and sequence length, in
float32; the axes that change with those two are the dynamic ones of `torch.export`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import transformer_layers as tl

D_MODEL = 6
KV_SEQ = 8
VOCAB_SIZE, N_POSITIONS = 10, 14


@dataclass(frozen=True)
class LayerCase:
    """A layer and what the tests need to know of it.

    Attributes:
        name: Name of the case, which the test report shows.
        make: Constructs the layer.
        inputs: Constructs its inputs from batch and sequence length, all sizes different.
        max_seq: The longest sequence that it takes; None if it takes any.
        compiled: In which mode each run compiles it: "training", "eval", "both", or "nightly" where
            another case has it, or its like, as a part; the nightly run compiles it in each mode.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int, int], tuple[Tensor, ...]]
    max_seq: int | None = None
    compiled: str = "eval"


class Apply(nn.Module):
    """Makes a layer of a function."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def sequences(batch: int, seq: int) -> tuple[Tensor, ...]:
    """One input of shape (batch, seq, d_model)."""
    return (torch.randn(batch, seq, D_MODEL),)


def tokens(batch: int, seq: int) -> tuple[Tensor, ...]:
    """One input of integers of shape (batch, seq)."""
    return (torch.randint(VOCAB_SIZE, (batch, seq)),)


def channels_first(batch: int, seq: int) -> tuple[Tensor, ...]:
    """One input of shape (batch, channels, length)."""
    return (torch.randn(batch, D_MODEL, seq),)


def attention_inputs(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Query, key, value and a mask that leaves the second query nothing to attend to."""
    mask = torch.ones(seq, KV_SEQ, dtype=torch.bool).tril(1)
    mask[1] = False
    return (
        torch.randn(batch, seq, D_MODEL),
        torch.randn(batch, KV_SEQ, D_MODEL),
        torch.randn(batch, KV_SEQ, D_MODEL),
        mask,
    )


def padded_attention_inputs(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Query, key, value and padding; nothing is left of the first sequence."""
    lengths = torch.arange(batch) % (KV_SEQ + 1)
    return (*attention_inputs(batch, seq)[:3], tl.padding_mask(lengths, KV_SEQ))


def masked_sequences(batch: int, seq: int) -> tuple[Tensor, ...]:
    """One input of shape (batch, seq, d_model), and a mask for each sequence."""
    lengths = torch.arange(batch) % (seq + 1)
    return torch.randn(batch, seq, D_MODEL), tl.padding_mask(lengths, seq) & tl.causal_mask(seq)


def sequences_and_memory(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Decoder input, memory, a causal mask and padding; nothing is left of the first memory."""
    lengths = torch.arange(batch) % (KV_SEQ + 1)
    return (
        torch.randn(batch, seq, D_MODEL),
        torch.randn(batch, KV_SEQ, D_MODEL),
        tl.causal_mask(seq),
        tl.padding_mask(lengths, KV_SEQ),
    )


def source_and_target(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Tokens of a source and of a target."""
    return torch.randint(VOCAB_SIZE, (batch, KV_SEQ)), torch.randint(VOCAB_SIZE, (batch, seq))


def small_gpt2() -> nn.Module:
    return tl.GPT2(tl.GPT2Config(VOCAB_SIZE, N_POSITIONS, D_MODEL, n_layer=1, n_head=2))


def small_llama(model_type: str = "llama") -> nn.Module:
    config = tl.LlamaConfig(VOCAB_SIZE, 8, 10, 1, 2, 1, 4, N_POSITIONS, model_type=model_type)
    return tl.Llama(config)


def small_transformer() -> nn.Module:
    return tl.Transformer(tl.TransformerConfig(VOCAB_SIZE, D_MODEL, 1, 2, 4))


def half_step(x: Tensor) -> Tensor:
    return tl.soft_threshold(x, 0.5)


def inputs_of_two_heads(batch: int, seq: int) -> tuple[Tensor, ...]:
    """Query, key, value and a mask, as those of attention, with heads of their own."""
    *heads, mask = attention_inputs(2 * batch, seq)
    return *(x.unflatten(0, (batch, 2)) for x in heads), mask


def sinks_of_two_heads(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    sinks = torch.tensor([0.5, -1.0], dtype=query.dtype, device=query.device)
    return tl.sink_attention(query, key, value, sinks, mask)


def capped_at_two(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    return tl.soft_capped_attention(query, key, value, 2.0, mask)


def l1_of_one(x: Tensor) -> Tensor:
    return tl.l1_penalty([x])


def l2_of_one(x: Tensor) -> Tensor:
    return tl.l2_penalty([x])


CASES = [
    LayerCase("LayerNorm", lambda: tl.LayerNorm(D_MODEL), sequences),
    LayerCase(
        "LayerNorm without bias",
        lambda: tl.LayerNorm(D_MODEL, bias=False),
        sequences,
        compiled="nightly",
    ),
    LayerCase(
        "LayerNorm without parameters",
        lambda: tl.LayerNorm(D_MODEL, elementwise_affine=False),
        sequences,
        compiled="nightly",
    ),
    LayerCase("RMSNorm", lambda: tl.RMSNorm(D_MODEL), sequences),
    LayerCase(
        "RMSNorm without a gain",
        lambda: tl.RMSNorm(D_MODEL, elementwise_affine=False),
        sequences,
        compiled="nightly",
    ),
    LayerCase("LlamaRMSNorm", lambda: tl.LlamaRMSNorm(D_MODEL), sequences, compiled="nightly"),
    LayerCase("GemmaRMSNorm", lambda: tl.GemmaRMSNorm(D_MODEL), sequences, compiled="nightly"),
    LayerCase(
        "RotaryPositions", lambda: tl.RotaryPositions(D_MODEL), sequences, compiled="nightly"
    ),
    LayerCase(
        "RotaryPositions of neighbours",
        lambda: tl.RotaryPositions(D_MODEL, 100.0, "neighbours", tl.NTKScaling(4.0), d_rotary=4),
        sequences,
    ),
    LayerCase(
        "GatedFeedForward", lambda: tl.GatedFeedForward(D_MODEL, 4), sequences, compiled="nightly"
    ),
    LayerCase(
        "PackedGatedFeedForward",
        lambda: tl.PackedGatedFeedForward(D_MODEL, 4),
        sequences,
        compiled="nightly",
    ),
    LayerCase(
        "MixtureOfExperts",
        lambda: tl.MixtureOfExperts(D_MODEL, 4, 3, 3),  # rounded scores would choose others of some
        sequences,
    ),
    LayerCase(
        "GroupedQueryAttention",
        lambda: tl.GroupedQueryAttention(D_MODEL, 4, 2, 2, tl.RotaryPositions(2)),
        sequences,
        compiled="nightly",  # as a part of Llama
    ),
    LayerCase(
        "GroupedQueryAttention with a window and norms",
        lambda: tl.GroupedQueryAttention(
            D_MODEL, 4, 2, 2, tl.RotaryPositions(2), 3, bias=True, head_norm=tl.RMSNorm
        ),
        sequences,
        compiled="nightly",  # as a part of Mistral and Qwen 3, see test_contexts.py
    ),
    LayerCase(
        "MultiHeadLatentAttention",
        lambda: tl.MultiHeadLatentAttention(D_MODEL, 4, 5, 3, 2),
        sequences,
    ),
    LayerCase(
        "MultiHeadLatentAttention with latents of queries and biases",
        lambda: tl.MultiHeadLatentAttention(D_MODEL, 4, 5, 3, 2, 4, 7, bias=True),
        sequences,
        compiled="nightly",
    ),
    LayerCase("BatchNorm1d", lambda: tl.BatchNorm1d(D_MODEL), channels_first, compiled="nightly"),
    LayerCase(
        "BatchNorm1d averaging",
        lambda: tl.BatchNorm1d(D_MODEL, momentum=None),
        channels_first,
        compiled="both",
    ),
    LayerCase(
        "BatchNorm1d without parameters and running averages",
        lambda: tl.BatchNorm1d(D_MODEL, affine=False, track_running_stats=False),
        channels_first,
        compiled="nightly",
    ),
    LayerCase("Conv1D", lambda: tl.Conv1D(D_MODEL, 4), sequences, compiled="nightly"),
    LayerCase("Dropout", lambda: tl.Dropout(0.25), sequences, compiled="nightly"),
    LayerCase("gelu", lambda: Apply(tl.gelu), sequences),
    LayerCase("gelu_tanh", lambda: Apply(tl.gelu_tanh), sequences, compiled="nightly"),
    LayerCase("soft_threshold", lambda: Apply(half_step), sequences),
    LayerCase("l1_penalty", lambda: Apply(l1_of_one), sequences, compiled="nightly"),
    LayerCase("l2_penalty", lambda: Apply(l2_of_one), sequences, compiled="nightly"),
    LayerCase(
        "scaled_dot_product_attention",
        lambda: Apply(tl.scaled_dot_product_attention),
        attention_inputs,
    ),
    LayerCase("sink_attention", lambda: Apply(sinks_of_two_heads), inputs_of_two_heads),
    LayerCase("soft_capped_attention", lambda: Apply(capped_at_two), attention_inputs),
    LayerCase(
        "MultiHeadAttention",
        lambda: tl.MultiHeadAttention(D_MODEL, 2),
        padded_attention_inputs,
        compiled="nightly",
    ),
    LayerCase(
        "PositionwiseFeedForward",
        lambda: tl.PositionwiseFeedForward(D_MODEL, 4),
        sequences,
        compiled="nightly",  # in evaluation as a part of the encoder layer whose norm comes first
    ),
    LayerCase(
        "TransformerEncoderLayer",
        lambda: tl.TransformerEncoderLayer(D_MODEL, 2, 4),
        masked_sequences,
        compiled="nightly",
    ),
    LayerCase(
        "PreNormTransformerEncoderLayer",
        lambda: tl.PreNormTransformerEncoderLayer(D_MODEL, 2, 4),
        masked_sequences,
    ),
    LayerCase(
        "TransformerDecoderLayer",
        lambda: tl.TransformerDecoderLayer(D_MODEL, 2, 4),
        sequences_and_memory,
        compiled="training",
    ),
    LayerCase(
        "PreNormTransformerDecoderLayer",
        lambda: tl.PreNormTransformerDecoderLayer(D_MODEL, 2, 4),
        sequences_and_memory,
        compiled="nightly",  # its parts as those of the post-norm layer
    ),
    LayerCase(
        "FeedForward",
        lambda: tl.FeedForward(D_MODEL, 4),
        sequences,
        compiled="nightly",  # in evaluation as a part of GPT2
    ),
    LayerCase(
        "CausalSelfAttention",
        lambda: tl.CausalSelfAttention(D_MODEL, 2),
        sequences,
        compiled="nightly",  # as a part of GPT2Block and GPT2
    ),
    LayerCase(
        "GPT2Block",
        lambda: tl.GPT2Block(D_MODEL, 2),
        sequences,
        compiled="training",  # in evaluation as a part of GPT2
    ),
    LayerCase(
        "GPT2",
        small_gpt2,
        tokens,
        max_seq=N_POSITIONS,
    ),
    LayerCase(
        "Transformer",
        small_transformer,
        source_and_target,
    ),
    LayerCase(
        "LlamaBlock",
        lambda: tl.LlamaBlock(
            tl.GroupedQueryAttention(D_MODEL, 2, 1),
            tl.GatedFeedForward(D_MODEL, 10),
            tl.LlamaRMSNorm,
        ),
        sequences,
        compiled="nightly",  # as a part of Llama
    ),
    LayerCase("Llama", small_llama, tokens, max_seq=N_POSITIONS),
    LayerCase(
        "Gemma3",
        lambda: tl.Gemma3(
            tl.Gemma3Config(VOCAB_SIZE, 8, 10, 1, 2, 1, 4, N_POSITIONS, sliding_window=3)
        ),
        tokens,
        max_seq=N_POSITIONS,
    ),
    LayerCase(
        "Llama as OLMo 2",
        lambda: small_llama("olmo2"),
        tokens,
        max_seq=N_POSITIONS,
        compiled="nightly",  # see test_contexts.py
    ),
]
