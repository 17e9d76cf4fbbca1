"""Gemma 3's text model, whole."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from transformer_layers.attention.context import Context, of_heads
from transformer_layers.generation.decoder import embedded
from transformer_layers.models.gemma3.block import Gemma3Block, ScaledEmbedding
from transformer_layers.models.gemma3.checkpoint import CODEC
from transformer_layers.models.gemma3.config import Gemma3Config
from transformer_layers.models.language_model import Caches, LanguageModel
from transformer_layers.models.rotary_decoder import LlamaStack
from transformer_layers.norms.rms_norm import GemmaRMSNorm
from transformer_layers.positions.rotary import RotaryPositions


class Gemma3(LanguageModel):
    r"""The text model of Gemma 3, https://arxiv.org/abs/2503.19786, section 2.

    It is Llama with other norms, two more of them in each block and those of Qwen 3, GELU for the
    gates, embeddings times :math:`\sqrt{d_\mathrm{model}}`, and windows: five of six blocks see the
    last positions alone, and rotate with a base of their own.

    The state dict has the keys of the published weights; where the head is the token embedding,
    there is no `lm_head.weight`. Every matrix starts as normal(0, 0.02), every bias as zeros, and
    every norm's weight as zeros, which is a gain of one.

    Args:
        config: The sizes and options.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes and options.
        model: The embedding, the blocks and the last norm.
        lm_head: `nn.Linear`, weight of shape `(vocab_size, hidden_size)`; None where the head is
            the embedding.
        rotary: The rotary positions of blocks that see all positions.
        local_rotary: Those of blocks with a window.

    Examples:
        >>> config = Gemma3Config(50, 12, 20, 6, 3, 1, head_dim=4, sliding_window=3)
        >>> Gemma3(config).eval()(torch.tensor([[3, 14, 15, 9, 26]])).shape
        torch.Size([1, 5, 50])
    """

    codec = CODEC

    def __init__(
        self,
        config: Gemma3Config,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(config)
        self.lm_head: nn.Linear | None = None
        with nullcontext() if device is None else torch.device(device):
            self.model = LlamaStack(
                ScaledEmbedding(config.vocab_size, config.hidden_size),
                (Gemma3Block(config, i) for i in range(config.num_hidden_layers)),
                GemmaRMSNorm(config.hidden_size, config.rms_norm_eps),
            )
            if not config.tie_word_embeddings:
                self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.rotary = RotaryPositions(
            config.head_dim, config.rope_theta, scaling=config.rope_scaling
        )
        self.local_rotary = RotaryPositions(config.head_dim, config.rope_local_base_freq)
        self.to(dtype=dtype)
        self.reset_parameters()

    @property
    def max_seq(self) -> int:
        """Longest sequence, in tokens."""
        return self.config.max_seq

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws all weights anew, as at construction; for a model that was made on the meta device.

        Examples:
            >>> config = Gemma3Config(50, 12, 20, 2, 3, 1, head_dim=4)
            >>> model = Gemma3(config, device="meta").to_empty(device="cpu")
            >>> model.reset_parameters()
        """
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=0.02)
            else:
                parameter.zero_()

    @property
    def _embedding(self) -> nn.Embedding:
        return self.model.embed_tokens

    @property
    def _blocks(self) -> nn.ModuleList:
        return self.model.layers

    def _hidden_state(self, ids: Tensor, context: Context, caches: Caches) -> Tensor:
        dtype, places = self._embedding.weight.dtype, of_heads(context.position_ids)
        everywhere, near = (each.at(places, dtype) for each in (self.rotary, self.local_rotary))
        x = embedded(ids, self._embedding)
        for i, block in enumerate(self._blocks):
            x = block(
                x,
                context._replace(
                    cache=caches[i] if caches else None,
                    rotation=everywhere if self.config.window_of(i) is None else near,
                ),
            )
        return self.model.norm(x)

    def _scores(self, hidden_state: Tensor) -> Tensor:
        weight = self._embedding.weight if self.lm_head is None else self.lm_head.weight
        logits = nn.functional.linear(hidden_state, weight)
        cap = self.config.final_logit_softcapping
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def _cache_sizes(self) -> tuple[int, int]:
        return self.config.num_key_value_heads, self.config.head_dim
