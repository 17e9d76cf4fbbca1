"""Known wrong versions of `GPT2`, made of the book's own parts."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.gpt2 import gpt2
from layer_checks.wrong.gpt2_block import (
    DropoutInEvaluation as BlockDropoutInEvaluation,
)
from layer_checks.wrong.gpt2_block import (
    PostNorm,
    WithExactGelu,
    WithNotCausal,
)
from transformer_layers import (
    GPT2,
    Dropout,
    GPT2Block,
    GPT2Config,
    KeyValueCache,
    sinusoidal_positions,
)
from transformer_layers.attention.cache import next_positions
from transformer_layers.attention.context import CacheOrContext, context_of_pass
from transformer_layers.generation.decoder import require_ids

_GRAYKODE = "graykode/gpt-2-Pytorch, GPT2/model.py"
_NANOGPT = "nanoGPT, model.py, https://github.com/karpathy/nanoGPT/pull/274"


@gpt2.right_otherwise
class _GPT2(GPT2):
    """A right one in small steps, of which each wrong version changes one."""

    block: type[GPT2Block] = GPT2Block

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        sizes = (config.n_embd, config.n_head, config.dropout, config.layer_norm_epsilon)
        self.h = nn.ModuleList(self.block(*sizes) for _ in range(config.n_layer))
        self._initialize()

    def last_hidden_state(
        self,
        ids: Any,
        caches: Sequence[KeyValueCache] | None = None,
        *,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        **further: Any,
    ) -> Tensor:
        require_ids(self, ids, caches, len(self.h))
        seq = ids.shape[-1]
        x = self.drop(self.tokens(ids) + self.placed(seq, caches, positions))
        if (mask := self.hidden(mask)) is None:
            return self.norm(self.through(x, caches))
        context = context_of_pass(seq, caches, ids.device, mask)
        contexts = [context] * len(self.h)
        if caches:
            contexts = [context._replace(cache=each) for each in caches]
        return self.norm(self.through(x, contexts))

    def hidden(self, mask: Tensor | None) -> Tensor | None:
        return mask

    def tokens(self, ids: Tensor) -> Tensor:
        return self._embed(ids)

    def placed(
        self, seq: int, caches: Sequence[KeyValueCache] | None, positions: Tensor | None = None
    ) -> Tensor:
        if positions is not None:
            return self.positions(0, int(positions.max()) + 1)[positions]
        past = caches[0].length if caches else 0
        if not caches or caches[0].padding is None:
            return self.positions(past, seq)
        return self.positions(0, past + seq)[next_positions(seq, caches[0])]

    def positions(self, past: int, seq: int) -> Tensor:
        return self.wpe(torch.arange(past, past + seq, device=self.wpe.weight.device))

    def through(self, x: Tensor, caches: Sequence[CacheOrContext] | None) -> Tensor:
        for i, block in enumerate(self.h):
            x = block(x, None if caches is None else caches[i])
        return x

    def norm(self, x: Tensor) -> Tensor:
        return self.ln_f(x)


@gpt2.wrong("add the token embedding as it is: the factor √d_model is the 2017 Transformer's.")
class TokenEmbeddingScaled(_GPT2):
    """Multiplies the token embedding as the 2017 Transformer does."""

    def tokens(self, ids: Tensor) -> Tensor:
        return super().tokens(ids) * math.sqrt(self.config.n_embd)


@gpt2.wrong("refuse ids that are not in the vocabulary: indexing takes -1 for the last token.")
class NegativeIdsTaken(_GPT2):
    """Takes rows of the matrix by indexing, where -1 is the last one."""

    def tokens(self, ids: Tensor) -> Tensor:
        return self.wte.weight[ids]


@gpt2.wrong("add the position embedding.")
class NoPositions(_GPT2):
    """Adds no positions."""

    def positions(self, past: int, seq: int) -> Tensor:
        return torch.zeros_like(super().positions(past, seq))


@gpt2.wrong("count positions from 0.", name="positions from 1")
class PositionsFromOne(_GPT2):
    """Counts positions from 1."""

    def positions(self, past: int, seq: int) -> Tensor:
        count = torch.arange(past + 1, past + seq + 1, device=self.wpe.weight.device)
        return self.wpe(count % self.config.n_positions)


@gpt2.wrong("add the learned position embedding, wpe.")
class SinusoidalPositions(_GPT2):
    """Adds the 2017 table in place of the learned one."""

    def positions(self, past: int, seq: int) -> Tensor:
        table = sinusoidal_positions(past + seq, self.config.n_embd)
        return table[past:].to(self.wpe.weight)


@gpt2.wrong("count positions from the length of the caches.")
class PositionsRestart(_GPT2):
    """Counts from 0 whatever the caches hold."""

    def positions(self, past: int, seq: int) -> Tensor:
        return super().positions(0, seq)


@gpt2.wrong("refuse sequences longer than n_positions: for what follows nothing was learned.")
class TooLongTaken(_GPT2):
    """Uses the last position for all that come after it."""

    max_seq = None  # type: ignore[assignment]  # that is what is wrong

    def positions(self, past: int, seq: int) -> Tensor:
        count = torch.arange(past, past + seq, device=self.wpe.weight.device)
        return self.wpe(count.clamp(max=self.config.n_positions - 1))


@gpt2.wrong("hide what the mask hides from every position: padding is no text.")
class PaddingSeen(_GPT2):
    """Takes a mask and lets every position see padding."""

    def hidden(self, mask: Tensor | None) -> Tensor | None:
        return None


@gpt2.wrong("count the positions of a padded text from 0: a sum over its mask counts from 1.")
class PaddedPositionsFromOne(_GPT2):
    """Takes the sum over the mask for a position."""

    def forward(
        self,
        ids: Any,
        caches: Any = None,
        *,
        attention_mask: Tensor | None = None,
        **further: Any,
    ) -> Tensor:
        if attention_mask is None:
            return super().forward(ids, caches, **further)
        further |= {"mask": attention_mask.bool(), "positions": attention_mask.cumsum(-1)}
        return super().forward(ids, caches, **further)


@gpt2.wrong("hand each block its cache.")
class CachesIgnored(_GPT2):
    """Takes caches and does not hand them on."""

    def through(self, x: Tensor, caches: Sequence[CacheOrContext] | None) -> Tensor:
        return super().through(x, None)


@gpt2.wrong("apply the blocks in their order.")
class BlocksInReverse(_GPT2):
    """Begins with the last block."""

    def through(self, x: Tensor, caches: Sequence[CacheOrContext] | None) -> Tensor:
        for i in reversed(range(len(self.h))):
            x = self.h[i](x, None if caches is None else caches[i])
        return x


@gpt2.wrong("apply all blocks.")
class LastBlockLeftOut(_GPT2):
    """Stops one block too early."""

    def through(self, x: Tensor, caches: Sequence[CacheOrContext] | None) -> Tensor:
        for i, block in enumerate(self.h[:-1]):
            x = block(x, None if caches is None else caches[i])
        return x


@gpt2.wrong("give each layer weights of its own.")
class OneBlockForAll(_GPT2):
    """Repeats one block."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.h = nn.ModuleList(self.h[0] for _ in self.h)


@gpt2.wrong("normalize the last block's output before the head.")
class NoFinalNorm(_GPT2):
    """Scores what the last block gives."""

    def norm(self, x: Tensor) -> Tensor:
        return x


@gpt2.wrong("give the last norm layer_norm_epsilon too.")
class EpsNotInTheFinalNorm(_GPT2):
    """Lets the last norm have its own eps."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.ln_f = nn.LayerNorm(config.n_embd)


@gpt2.wrong(
    "score with the token embedding itself: a copy goes its own way in training.",
    published="LLMs-from-scratch, of a Llama, https://github.com/rasbt/LLMs-from-scratch/issues/822",
)
class HeadNotTied(_GPT2):
    """Has a head of its own, which starts as a copy."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        with torch.no_grad():
            self.lm_head.weight.copy_(self.wte.weight)

    def logits(self, hidden_state: Tensor) -> Tensor:
        return self.lm_head(hidden_state)


@gpt2.wrong(
    "leave the logits in the dtype of the weights.",
    published="transformers, loss/loss_utils.py, for the loss",
)
class LogitsInFloat32(_GPT2):
    """Gives float32 logits whatever its dtype."""

    def logits(self, hidden_state: Tensor) -> Tensor:
        return super().logits(hidden_state).float()


@gpt2.wrong("hold the logits at a position against the token at the next one.", published=_GRAYKODE)
class LossNotShifted(_GPT2):
    """Holds each logit against the token that it has seen."""

    def loss(self, ids: Tensor, labels: Tensor | None = None, **further: Any) -> Tensor:
        labels = ids if labels is None else labels
        return functional.cross_entropy(self(ids).flatten(0, -2), labels.flatten().long())


@gpt2.wrong("convert the logits to float32 before the loss.")
class LossInBfloat16(_GPT2):
    """Sums up in the dtype of the logits."""

    def loss(self, ids: Tensor, labels: Tensor | None = None, **further: Any) -> Tensor:
        labels = ids if labels is None else labels
        logits = self(ids[..., :-1]).flatten(0, -2)
        return functional.cross_entropy(logits, labels[..., 1:].flatten().long())


@gpt2.wrong("shift once: either the logits and the targets, or the targets when they are cut.")
class LossShiftedTwice(_GPT2):
    """Holds each logit against the token after the next."""

    def loss(self, ids: Tensor, labels: Tensor | None = None, **further: Any) -> Tensor:
        labels = ids if labels is None else labels
        return functional.cross_entropy(
            self(ids[..., :-2]).flatten(0, -2), labels[..., 2:].flatten().long()
        )


@gpt2.wrong(
    "normalize the input of each sub-layer, not the sum: x + f(LayerNorm(x)).",
    name="post-norm",
    published="GPT-1, where it is meant",
)
class PostNormBlocks(_GPT2):
    """Normalizes after each residual sum, as GPT-1."""

    block = PostNorm


@gpt2.wrong(
    "activate with the tanh form: GPT-2's weights were trained with it.",
    name="exact GELU",
    published=_NANOGPT,
)
class ExactGeluBlocks(_GPT2):
    """Activates with the exact GELU."""

    block = WithExactGelu


@gpt2.wrong("mask the scores: a position must not see what follows it.")
class NotCausal(_GPT2):
    """Lets every position see all others."""

    block = WithNotCausal


@gpt2.wrong("drop in training only: pass the training flag.")
class DropoutInEvaluation(_GPT2):
    """Drops whether it trains or not."""

    block = BlockDropoutInEvaluation


@gpt2.wrong("apply dropout to the sum of the embeddings too.", published=_GRAYKODE)
class EmbeddingsNotDropped(_GPT2):
    """Drops in the blocks alone."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.drop = Dropout(0.0)


@gpt2.wrong(
    "draw both embeddings with standard deviation 0.02; nn.Embedding draws with 1.",
    name="embeddings of deviation 1",
    published=_GRAYKODE,
)
class EmbeddingsOfStdOne(_GPT2):
    """Takes nn.Embedding as it comes."""

    def _initialize(self) -> None:
        super()._initialize()
        self.wte.reset_parameters()
        self.wpe.reset_parameters()


@gpt2.wrong(
    "draw every c_proj with standard deviation 0.02 / √(2N).",
    published=f"{_GRAYKODE}; openai/gpt-2, src/model.py",
)
class ProjectionsNotScaled(_GPT2):
    """Draws all matrices alike."""

    @torch.no_grad()
    def _initialize(self) -> None:
        super()._initialize()
        for name, parameter in self.h.named_parameters():
            if name.endswith("c_proj.weight"):
                parameter.normal_(std=0.02)


@gpt2.wrong(
    "draw each block anew: copies of one block start with the same weights.", published=_GRAYKODE
)
class BlocksAlikeAtTheStart(_GPT2):
    """Starts with copies of one block."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.h = nn.ModuleList(copy.deepcopy(self.h[0]) for _ in self.h)
