"""Llama, whole."""

import torch
from torch import Tensor

from transformer_layers.attention.context import Context, of_heads
from transformer_layers.models.language_model import Caches
from transformer_layers.models.llama.block import stack_of
from transformer_layers.models.llama.checkpoint import CODEC
from transformer_layers.models.llama.config import LlamaConfig
from transformer_layers.models.rotary_decoder import RotaryDecoder
from transformer_layers.positions.rotary import RotaryPositions
from transformer_layers.positions.scaling import LongRoPEScaling


class Llama(RotaryDecoder):
    r"""Llama and its relatives: a stack of blocks that predicts each next token.

    It is GPT-2 with four changes: rotary positions, RMSNorm, gated feed-forward layers, and fewer
    heads of keys than of queries. https://arxiv.org/abs/2302.13971, section 2.2, has the first
    three, https://arxiv.org/abs/2307.09288, section 2.2, the fourth. By its config it is Llama 2 or
    3, Mistral, Mixtral, Qwen 2 or 3, OLMo 2, or Phi-3 (see :class:`LlamaConfig`).

    .. math::
        x_0 &= E[\mathrm{ids}]
        \\
        x_i &= \mathrm{Block}_i(x_{i-1}), \qquad i = 1, \dots, N
        \\
        \mathrm{logits} &= \mathrm{RMSNorm}(x_N)\, W^\top

    The state dict has the keys of the published weights; where the head is the token embedding,
    there is no `lm_head.weight`. Every matrix starts as normal(0, 0.02), every bias as zeros, every
    gain as ones.

    Args:
        config: The sizes and options.
        device: Of the parameters; torch's default device if not given.
        dtype: Of the parameters; torch's default dtype if not given.

    Attributes:
        config: The sizes and options.
        model: The embedding, the blocks and the last norm.
        lm_head: `nn.Linear`, weight of shape `(vocab_size, hidden_size)`; None where the head is
            the embedding.
        rotary: The rotary positions of all blocks.

    Examples:
        >>> import tempfile
        >>> config = LlamaConfig(50, 12, 20, 2, 3, 1, max_position_embeddings=16)
        >>> model = Llama(config).eval()
        >>> ids = torch.tensor([[3, 14, 15, 9, 26]])
        >>> model(ids).shape
        torch.Size([1, 5, 50])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save_pretrained(folder)
        ...     Llama.from_pretrained(folder)(ids).equal(model(ids))
        True
        >>> print(Llama(LlamaConfig(), device="meta").extra_repr())
        6,738,415,616 parameters, vocab_size=32000, hidden_size=4096, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=32
    """

    codec = CODEC

    def __init__(
        self,
        config: LlamaConfig,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(config, stack_of, device=device, dtype=dtype)
        self.rotary = RotaryPositions(
            config.d_k, config.rope_theta, scaling=config.rope_scaling, d_rotary=config.d_rotary
        )

    @property
    def keys_serve_until(self) -> int | None:
        """How long a text can get before nothing serves that caches hold; None if they always do.

        It is the length of training of :class:`LongRoPEScaling`, which turns all keys of a longer
        text otherwise.
        """
        scaling = self.rotary.scaling
        if isinstance(scaling, LongRoPEScaling):
            return scaling.original_max_position_embeddings
        return None

    def _hidden_state(self, ids: Tensor, context: Context, caches: Caches) -> Tensor:
        if self.keys_serve_until is not None and context.past:
            _require_keys_that_serve(context.position_ids, self.keys_serve_until)
        dtype = self._embedding.weight.dtype
        rotation = self.rotary.at(of_heads(context.position_ids), dtype)
        return self.model(ids, context._replace(rotation=rotation), caches)

    def _cache_sizes(self) -> tuple[int, int]:
        return self.config.kv_heads, self.config.d_k


def _require_keys_that_serve(position_ids: Tensor, until: int) -> None:
    """Refuses to go on with the keys of a text that grows beyond the length they serve for."""
    if torch.compiler.is_compiling() or position_ids.is_meta or position_ids.numel() == 0:
        return  # there are no values to look at
    before, after = position_ids.amin(-1), position_ids.amax(-1) + 1
    outgrown = (before > 0) & (before <= until) & (after > until)
    if outgrown.any():
        raise ValueError(
            f"the caches hold keys for texts of up to {until} tokens, and a text would have "
            f"{int(after.max())}, all of whose keys are turned otherwise: read the whole text again"
        )
