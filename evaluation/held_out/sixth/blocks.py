"""Wrong versions of whole blocks, and of GPT-2."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from evaluation.held_out.definitions import held_out
from transformer_layers import (
    GPT2,
    DecoderCache,
    Dropout,
    GPT2Block,
    KeyValueCache,
    PreNormTransformerDecoderLayer,
    PreNormTransformerEncoderLayer,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from transformer_layers.attention.inputs import require_sequences
from transformer_layers.attention.memory import attend, keys_and_values
from transformer_layers.generation.decoder import embedded
from transformer_layers.validation import dtype_taken_by, require_dtype


@held_out(
    "TransformerEncoderLayer",
    "pytorch/pytorch, pull request 75809",
    r"activation|relu|fast|evaluation|eval|no_grad|gradient|mode",
)
class ReluOnTheFastPath(TransformerEncoderLayer):
    """In evaluation without gradients has the ReLU in place of the activation that it was given."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        given = self.feed_forward.activation
        if not self.training and not torch.is_grad_enabled():
            self.feed_forward.activation = torch.relu
        try:
            return super().forward(x, mask)
        finally:
            self.feed_forward.activation = given


@held_out(
    "TransformerEncoderLayer",
    "review practice: where the norm stands",
    r"norm|residual|sum|order|after|before",
)
class NormOfTheSubLayerAlone(TransformerEncoderLayer):
    """Norms what the feed-forward network gives, and adds it to the stream behind the norm."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)))
        return x + self.norm2(self.feed_forward(x))


@held_out(
    "PreNormTransformerEncoderLayer",
    "review practice: a closure over a layer",
    r"copy|deepcopy|pickl|closure|lambda|clone|share|state",
)
class ClosureOverItself(PreNormTransformerEncoderLayer):
    """Attends through a closure over itself, which a deep copy keeps and no pickle takes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)

        def attend(x: Tensor, mask: Tensor | None) -> Tensor:
            return self.self_attention(x, x, x, mask)

        self._attended = attend

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.dropout(self._attended(self.norm1(x), mask))
        return x + self.feed_forward(self.norm2(x))


@held_out(
    "PreNormTransformerEncoderLayer",
    "review practice: sub-layers side by side",
    r"parallel|sequen|order|input|residual|after|attention",
)
class BothSublayersAtOnce(PreNormTransformerEncoderLayer):
    """Gives the feed-forward network the input of the block, beside the attention."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        normed = self.norm1(x)
        attended = self.dropout(self.self_attention(normed, normed, normed, mask))
        return x + attended + self.feed_forward(self.norm2(x))


@held_out(
    "TransformerDecoderLayer",
    "review practice: one mask for two attentions",
    r"memory|mask|cross|square|length|causal",
)
class OwnMaskForTheMemoryWhereItFits(TransformerDecoderLayer):
    """Without a mask of the memory, hides it by its own mask where the memory is as long as x."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        if memory_mask is None and memory.shape == x.shape:
            memory_mask = mask
        return super().forward(x, memory, mask, memory_mask, cache)


@held_out(
    "TransformerDecoderLayer",
    "huggingface/transformers, pull request 31166",
    r"memory|cache|kept|state|stale|second|another|previous|earlier",
)
class MemoryKeptForTheShape(TransformerDecoderLayer):
    """In evaluation without gradients keeps the keys of a memory for others of its shape."""

    _kept: tuple[Any, tuple[Tensor, Tensor]] | None = None

    def _attend_to_memory(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, cache: DecoderCache | None
    ) -> Tensor:
        if self.training or torch.is_grad_enabled() or cache is not None:
            return super()._attend_to_memory(x, memory, mask, cache)
        key = (memory.shape, memory.dtype, memory.device)
        if self._kept is None or self._kept[0] != key:
            self._kept = key, keys_and_values(self.cross_attention, memory)
        return attend(self.cross_attention, x, *self._kept[1], mask)


@held_out(
    "TransformerDecoderLayer",
    "review practice: the order of the attentions",
    r"order|swap|first|cross|memory|self",
)
class MemoryFirst(TransformerDecoderLayer):
    """Attends to the memory first, and to its own positions after that."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        x = self.norm2(x + self._attend_to_memory(x, memory, memory_mask, cache))
        x = self.norm1(x + self._attend_to_itself(x, mask, cache))
        return self.norm3(x + self.feed_forward(x))


@held_out(
    "PreNormTransformerDecoderLayer",
    "review practice: what the second norm is of",
    r"memory|norm",
)
class MemoryNormedToo(PreNormTransformerDecoderLayer):
    """Norms the memory by the norm of those who ask."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        return super().forward(x, self.norm2(memory), mask, memory_mask, cache)


@held_out(
    "PreNormTransformerDecoderLayer",
    "review practice: a norm that reset_parameters leaves",
    r"reset|norm3|third|initial|anew",
)
class ResetForgetsTheThirdNorm(PreNormTransformerDecoderLayer):
    """Resets all of its parts but the third norm."""

    def reset_parameters(self) -> None:
        for part in (self.self_attention, self.cross_attention, self.feed_forward):
            part.reset_parameters()
        self.norm1.reset_parameters()
        self.norm2.reset_parameters()


@held_out(
    "PreNormTransformerDecoderLayer",
    "review practice: masks under their names",
    r"memory_mask|mask|order|argument|swap|position",
)
class MasksInTheOtherOrder(PreNormTransformerDecoderLayer):
    """Takes the mask of the memory third and its own fourth, where neither is named."""

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        return super().forward(x, memory, mask, memory_mask, cache)


@held_out(
    "GPT2Block",
    "review practice: a share that one part does not get",
    r"dropout|drop|share|feed.?forward|mlp|0\.1|handed|option",
)
class FeedForwardDropsATenth(GPT2Block):
    """Drops a tenth of the feed-forward's result, whatever share it is given."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.mlp.dropout = Dropout(0.1)


@held_out(
    "GPT2Block",
    "review practice: forward in place of a call",
    r"hook|forward|call|submodule",
)
class SubmodulesWithoutHooks(GPT2Block):
    """Calls `forward` of its parts, so that hooks on them do not run."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.ln_1))
        x = x + self.attn.forward(self.ln_1.forward(x), cache)
        return x + self.mlp.forward(self.ln_2.forward(x))


@held_out(
    "GPT2Block",
    "review practice: two norms that start alike",
    r"norm|ln_1|ln_2|swap|exchang|order|which",
)
class NormsInEachOthersPlace(GPT2Block):
    """Has the second norm before the attention and the first before the feed-forward layer."""

    def forward(self, x: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        require_sequences(self.d_model, x=x)
        require_dtype("x", x, dtype_taken_by(self.ln_1))
        x = x + self.attn(self.ln_2(x), cache)
        return x + self.mlp(self.ln_1(x))


@held_out(
    "GPT2",
    "openai/gpt-2, issue 332",
    r"initial|start|scal|residual|c_proj|std|deviation|depth|layers",
)
class ResidualScaledByBlocks(GPT2):
    """Starts what writes into the stream with the root of N in place of that of 2N."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        for name, parameter in self.h.named_parameters():
            if name.endswith("c_proj.weight"):
                parameter.normal_(std=0.02 / math.sqrt(self.config.n_layer))


@held_out(
    "GPT2",
    "review practice: a deviation of the first code",
    r"initial|start|wpe|position|std|deviation|0\.0[12]",
)
class PositionsStartAtAHundredth(GPT2):
    """Draws the embedding of positions with the deviation 0.01 in place of 0.02."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        self.wpe.weight.normal_(std=0.01)


@held_out(
    "GPT2",
    "review practice: a tied weight that learns at one end",
    r"gradient|tied|embedding|detach|wte|train|both",
)
class EmbeddingWithoutGradient(GPT2):
    """Cuts the gradient of the embedding where tokens come in, so that it learns as head alone."""

    def _embed(self, ids: Tensor) -> Tensor:
        return embedded(ids, self.wte).detach()


@held_out(
    "GPT2",
    "review practice: dropout of the embeddings",
    r"dropout|drop|position|embedding|sum",
)
class PositionsNotDropped(GPT2):
    """Drops from the embeddings of tokens and adds those of positions behind the dropout."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        x = self.drop(self._embed(ids)) + self.wpe(positions)
        for i, block in enumerate(self.h):
            x = block(x, caches[i] if caches else None)
        return self.ln_f(x)


@held_out(
    "GPT2",
    "review practice: an offset of another model",
    r"position|offset|one|zero|shift|off by",
)
class PositionsFromOne(GPT2):
    """Counts positions from one, the last twice."""

    def _last_hidden_state(
        self, ids: Tensor, positions: Tensor, caches: Sequence[KeyValueCache] | None
    ) -> Tensor:
        later = (positions + 1).clamp(max=self.config.n_positions - 1)
        return super()._last_hidden_state(ids, later, caches)
