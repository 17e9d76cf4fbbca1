"""Known wrong versions of `Llama`, made of the book's own parts."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.llama import llama
from transformer_layers import Llama, LlamaConfig, RotaryPositions
from transformer_layers.attention.context import CacheOrContext, Context, of_heads
from transformer_layers.models.rotary_decoder import LlamaBlock


@llama.right_otherwise
class _Llama(Llama):
    """A right one in small steps, of which each wrong version changes one."""

    block: type[LlamaBlock] | None = None

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        if self.block is not None:
            for layer in self.model.layers:
                layer.__class__ = self.block

    def last_norm(self, x: Tensor) -> Tensor:
        return self.model.norm(x)

    def position_ids(self, context: Context) -> Tensor:
        return context.position_ids

    def tokens(self, ids: Tensor) -> Tensor:
        return self.model.embed_tokens(ids) if ids.dtype == torch.int64 else ids

    def _hidden_state(self, ids: Tensor, context: Context, caches: Any) -> Tensor:
        x = self.tokens(ids)
        rotation = self.rotary.at(of_heads(self.position_ids(context)), x.dtype)
        context = context._replace(rotation=rotation)
        for i, block in enumerate(self.model.layers):
            x = block(x, context._replace(cache=caches[i] if caches else None))
        return self.last_norm(x)


@llama.wrong("normalize what the last block gives, before the head.")
class LastNormMissing(_Llama):
    """Gives the head the stream as it is."""

    def last_norm(self, x: Tensor) -> Tensor:
        return x


@llama.wrong("give the last norm rms_norm_eps, too.")
class EpsOfTheLastNorm(_Llama):
    """Has its own eps in the last norm."""

    def last_norm(self, x: Tensor) -> Tensor:
        norm = copy.copy(self.model.norm)
        norm.eps = 1e-6  # type: ignore[assignment]  # a module's names are any
        return norm(x)


@llama.wrong("make the frequencies with rope_theta of the config.")
class ThetaIgnored(_Llama):
    """Always has the base 10,000."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.rotary = RotaryPositions(config.d_k, 10_000.0)


@llama.wrong(
    "make the frequencies for the features of a head, head_dim: those of the model fall too slowly."
)
class FrequenciesOfTheModel(_Llama):
    """Makes frequencies for hidden_size, and takes the first ones."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        # The exponent 2i / hidden_size is that of a smaller base over 2i / d_k.
        base = config.rope_theta ** (config.d_k / config.hidden_size)
        self.rotary = RotaryPositions(config.d_k, base)


@llama.wrong(
    "turn features i and i + d_k / 2 together, as the published weights are stored.",
    name="neighbours turned",
    published="weights of Meta's files in the layout of transformers, or the other way round",
)
class NeighboursTurned(_Llama):
    """Turns features 2i and 2i + 1 together."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.rotary = RotaryPositions(config.d_k, config.rope_theta, "neighbours")


@llama.wrong("count positions from the length of the caches.", name="positions start again")
class PositionsStartAgain(_Llama):
    """Counts from 0 in each call, whatever the caches hold."""

    def position_ids(self, context: Context) -> Tensor:
        return context.position_ids - context.position_ids.min()


@llama.wrong("hide what the mask hides from every position: padding is no text.")
class PaddingSeen(_Llama):
    """Takes a mask and lets every position see padding."""

    def _hidden_state(self, ids: Tensor, context: Context, caches: Any) -> Tensor:
        return super()._hidden_state(ids, context._replace(mask=None), caches)


@llama.wrong("turn queries and keys by their positions.")
class NoPositions(_Llama):
    """Turns nothing."""

    def position_ids(self, context: Context) -> Tensor:
        return torch.zeros_like(context.position_ids)


@llama.wrong("take the embedding as it is: the factor of √hidden_size is Gemma's.")
class EmbeddingScaled(_Llama):
    """Multiplies the embedding as Gemma does."""

    def tokens(self, ids: Tensor) -> Tensor:
        return super().tokens(ids) * self.config.hidden_size**0.5


@llama.wrong("refuse ids that are not in the vocabulary: indexing takes -1 for the last token.")
class NegativeIdsTaken(_Llama):
    """Takes rows of the matrix by indexing, where -1 is the last one."""

    def last_hidden_state(self, ids: Any, caches: Any = None, **further: Any) -> Tensor:
        embedded = self.model.embed_tokens.weight[ids]
        return super().last_hidden_state(None, caches, inputs_embeds=embedded)


class StaleResidualBlock(LlamaBlock):
    """Loses what attention has added."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        h = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(h))


@llama.wrong("add the feed-forward layer to the sum with attention, not to the block's input.")
class StaleResidual(_Llama):
    """Loses what attention has added."""

    block = StaleResidualBlock


class ResidualOfTheNormBlock(LlamaBlock):
    """Adds what the norms give."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = self.input_layernorm(x)
        x = x + self.self_attn(x, cache)
        x = self.post_attention_layernorm(x)
        return x + self.mlp(x)


@llama.wrong("add x itself: the norm stands inside the residual branch.")
class ResidualOfTheNorm(_Llama):
    """Adds what the norms give."""

    block = ResidualOfTheNormBlock


class SecondNormMissingBlock(LlamaBlock):
    """Gives the feed-forward layer the sum as it is."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(x)


@llama.wrong("normalize the input of the feed-forward layer, too.")
class SecondNormMissing(_Llama):
    """Gives the feed-forward layer the sum as it is."""

    block = SecondNormMissingBlock


class ParallelBlock(LlamaBlock):
    """Adds attention and feed-forward layer of one input."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        attention = self.self_attn(self.input_layernorm(x), cache)
        return x + attention + self.mlp(self.post_attention_layernorm(x))


@llama.wrong("give the feed-forward layer what attention has added to: the two are no branches.")
class SubLayersInParallel(_Llama):
    """Adds attention and feed-forward layer of one input."""

    block = ParallelBlock


class WithGateExchanged(nn.Module):
    """A feed-forward layer in which gate and up have changed places."""

    def __init__(self, mlp: Any) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    def forward(self, x: Tensor) -> Tensor:
        exchanged: Tensor = self.down_proj(self.gate_proj(x) * functional.silu(self.up_proj(x)))
        return exchanged


@llama.wrong("let SiLU act on the gate, not on what it lets pass.")
class GateExchanged(_Llama):
    """Exchanges gate and up."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        for layer in self.model.layers:
            layer.mlp = WithGateExchanged(layer.mlp)


@llama.wrong("give each block its own weights: [block] * n is one block n times.")
class OneBlock(_Llama):
    """Has one block, several times."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        first = self.model.layers[0]
        self.model.layers = nn.ModuleList([first] * config.num_hidden_layers)


@llama.wrong("score with the token embedding where tie_word_embeddings says so.")
class HeadNotTied(_Llama):
    """Starts a head as the embedding is, and lets it be."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        self.drawn = copy.deepcopy(self.model.embed_tokens.weight.detach())

    def _scores(self, hidden_state: Tensor) -> Tensor:
        if self.lm_head is not None:
            return super()._scores(hidden_state)
        return functional.linear(hidden_state, self.drawn.to(hidden_state))


@llama.wrong("keep tables of angles out of the state dict: register_buffer(..., persistent=False).")
class TablesStored(_Llama):
    """Stores the frequencies with the weights, as files of 2023 do."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        steps = torch.arange(0, config.d_k, 2) / config.d_k
        self.register_buffer("inv_freq", config.rope_theta**-steps)


@llama.wrong("score each token as the one that follows the position before it.")
class LossOfTheSameToken(_Llama):
    """Compares each position with the token that stands there."""

    def loss(self, ids: Any, *further: Any, **options: Any) -> Tensor:
        return functional.cross_entropy(self(ids).flatten(0, -2), ids.flatten())


@llama.wrong(
    "give the logits of each position: those of the last are enough to write, not to learn."
)
class LastLogitsAlone(_Llama):
    """Gives the last position's logits."""

    def forward(self, ids: Any, caches: Any = None, **further: Any) -> Tensor:
        return super().forward(ids, caches, **further)[..., -1:, :]


@llama.wrong("draw matrices with standard deviation 0.02.")
class AsTorchStarts(_Llama):
    """Starts as torch's layers do."""

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.reset_parameters()
