"""Gemma 3's text model, whole."""

import torch
from torch import Tensor

from transformer_layers.attention.context import Context, of_heads
from transformer_layers.generation.decoder import embedded
from transformer_layers.models.gemma3.block import stack_of
from transformer_layers.models.gemma3.checkpoint import CODEC
from transformer_layers.models.gemma3.config import Gemma3Config
from transformer_layers.models.language_model import Caches
from transformer_layers.models.rotary_decoder import RotaryDecoder
from transformer_layers.positions.rotary import RotaryPositions


class Gemma3(RotaryDecoder):
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
        super().__init__(config, stack_of, device=device, dtype=dtype)
        self.rotary = RotaryPositions(
            config.head_dim, config.rope_theta, scaling=config.rope_scaling
        )
        self.local_rotary = RotaryPositions(config.head_dim, config.rope_local_base_freq)

    @property
    def _first_gain(self) -> float:
        return 0.0

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
        logits, cap = super()._scores(hidden_state), self.config.final_logit_softcapping
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def _cache_sizes(self) -> tuple[int, int]:
        return self.config.num_key_value_heads, self.config.head_dim
