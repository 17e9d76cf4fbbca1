"""GPT-2, whole."""

import math
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from transformer_layers.attention.context import Context
from transformer_layers.models.gpt2.block import GPT2Block
from transformer_layers.models.gpt2.checkpoint import CODEC
from transformer_layers.models.gpt2.config import GPT2Config
from transformer_layers.models.gpt2.conv1d import Conv1D
from transformer_layers.models.language_model import Caches, LanguageModel
from transformer_layers.regularization.dropout import Dropout


class GPT2(LanguageModel):
    r"""GPT-2: a stack of blocks that predicts each next token.

    It is the `model` of `src/model.py` in https://github.com/openai/gpt-2, described in section
    2.3 of "Language Models are Unsupervised Multitask Learners".

    .. math::
        x_0 &= W_{te}[\mathrm{ids}] + W_{pe}[0, 1, 2, \dots]
        \\
        x_i &= \mathrm{Block}_i(x_{i-1}), \qquad i = 1, \dots, N
        \\
        \mathrm{logits} &= \mathrm{LayerNorm}_f(x_N)\, W_{te}^\top

    The head is the token embedding itself, so there is no weight for it. The state dict has the
    keys of the published weights. Every weight matrix starts as normal(0, 0.02), those that write
    into the residual stream (`c_proj`) as normal(0, :math:`0.02 / \sqrt{2N}`) as the paper says;
    every bias starts as zeros, every gain as ones. In training dropout acts on the sum of the
    embeddings and in three places of each block.

    Args:
        config: The sizes.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes.
        wte: Token embedding, :math:`W_{te}`, weight of shape `(vocab_size, n_embd)`.
        wpe: Position embedding, :math:`W_{pe}`, weight of shape `(n_positions, n_embd)`.
        h: The blocks, a list of :class:`GPT2Block`.
        ln_f: `torch.nn.LayerNorm` of the last block's output.

    Examples:
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> model = GPT2(config).eval()
        >>> ids = torch.tensor([[3, 14, 15, 9, 26]])
        >>> model(ids).shape
        torch.Size([1, 5, 50])
        >>> print(GPT2(GPT2Config(), device="meta").extra_repr())
        124,439,808 parameters, vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12,
        n_head=12
    """

    codec = CODEC
    shown_sizes = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")

    def __init__(
        self,
        config: GPT2Config,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(config)
        with nullcontext() if device is None else torch.device(device):
            self.wte = nn.Embedding(config.vocab_size, config.n_embd)
            self.wpe = nn.Embedding(config.n_positions, config.n_embd)
            self.drop = Dropout(config.dropout)
            eps = config.layer_norm_epsilon
            self.h = nn.ModuleList(
                GPT2Block(config.n_embd, config.n_head, config.dropout, eps)
                for _ in range(config.n_layer)
            )
            self.ln_f = nn.LayerNorm(config.n_embd, eps)
        self.to(dtype=dtype)
        self._initialize()

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.config.n_positions

    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
            >>> model = GPT2(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        for layer in self.modules():
            if isinstance(layer, Conv1D | nn.LayerNorm):
                layer.reset_parameters()
        self._initialize()

    @torch.no_grad()
    def _initialize(self) -> None:
        # 2N sums add up in the residual stream: each term gets 1 / (2N) of the
        # variance. Conv1D has drawn the other matrices already.
        self.wte.weight.normal_(std=0.02)
        self.wpe.weight.normal_(std=0.02)
        for name, parameter in self.h.named_parameters():
            if name.endswith("c_proj.weight"):
                parameter.normal_(std=0.02 / math.sqrt(2 * self.config.n_layer))

    @property
    def _embedding(self) -> nn.Embedding:
        return self.wte

    @property
    def _blocks(self) -> nn.ModuleList:
        return self.h

    def _hidden_state(self, ids: Tensor, context: Context, caches: Caches) -> Tensor:
        positions = context.position_ids
        x = self.drop(self._embed(ids) + self.wpe(positions))
        for i, block in enumerate(self.h):
            x = block(x, context._replace(cache=caches[i] if caches else None))
        return self.ln_f(x)

    def _scores(self, hidden_state: Tensor) -> Tensor:
        return nn.functional.linear(hidden_state, self.wte.weight)

    def _cache_sizes(self) -> tuple[int, int]:
        return self.config.n_head, self.config.n_embd // self.config.n_head
