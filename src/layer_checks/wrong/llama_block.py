"""Known wrong versions of a block of Llama, made of the book's own parts."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.llama import llama
from layer_checks.checks.llama_block import BlockOfSizes, llama_block
from layer_checks.wrong.llama import (
    ParallelBlock,
    ResidualOfTheNormBlock,
    SecondNormMissingBlock,
    StaleResidualBlock,
    WithGateExchanged,
)
from transformer_layers import LayerNorm
from transformer_layers.attention.context import CacheOrContext


class StaleResidual(BlockOfSizes):
    """Loses what attention has added."""

    forward = StaleResidualBlock.forward


class ResidualOfTheNorm(BlockOfSizes):
    """Adds what the norms give."""

    forward = ResidualOfTheNormBlock.forward


class SecondNormMissing(BlockOfSizes):
    """Gives the feed-forward layer the sum as it is."""

    forward = SecondNormMissingBlock.forward


class SubLayersInParallel(BlockOfSizes):
    """Adds attention and feed-forward layer of one input."""

    forward = ParallelBlock.forward


class GateExchanged(BlockOfSizes):
    """Exchanges gate and up."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.mlp = WithGateExchanged(self.mlp)


_OF_MODELS = {version.name: version for version in llama.wrong_versions}
for _name, _block in (
    ("stale residual", StaleResidual),
    ("residual of the norm", ResidualOfTheNorm),
    ("second norm missing", SecondNormMissing),
    ("sub layers in parallel", SubLayersInParallel),
    ("gate exchanged", GateExchanged),
):
    llama_block.same_mistake(_OF_MODELS[_name], _block)


@llama_block.wrong("norm what goes into a sub-layer, not what comes out of it.")
class NormsOfTheResults(BlockOfSizes):
    """Norms what attention and feed-forward layer give, as OLMo 2 does."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        """Attends, then maps each position."""
        x = x + self.input_layernorm(self.self_attn(x, cache))
        return x + self.post_attention_layernorm(self.mlp(x))


@llama_block.wrong("give each sub-layer a norm of its own.")
class OneNormForBoth(BlockOfSizes):
    """Norms both inputs with the first gain."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        """Attends, then maps each position."""
        x = x + self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.input_layernorm(x))


@llama_block.wrong("add the input to what attention gives, too.")
class FirstResidualMissing(BlockOfSizes):
    """Goes on with attention alone."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        """Attends, then maps each position."""
        x = self.self_attn(self.input_layernorm(x), cache)
        return x + self.mlp(self.post_attention_layernorm(x))


@llama_block.wrong("divide by the root mean square: RMSNorm subtracts no mean.")
class MeanSubtracted(BlockOfSizes):
    """Has layer norms without biases."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        norm: Any = self.input_layernorm
        self.input_layernorm, self.post_attention_layernorm = (
            LayerNorm(self.self_attn.d_model, norm.eps, bias=False) for _ in range(2)
        )


@llama_block.wrong("give both norms the eps that is asked for.")
class EpsIgnored(BlockOfSizes):
    """Always adds 0.00001."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options | {"eps": 1e-5})


@llama_block.wrong("make the frequencies with the base that is asked for.")
class BaseIgnored(BlockOfSizes):
    """Always has the base 10,000."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options | {"base": 10_000.0})


@llama_block.wrong("turn queries and keys by their positions.")
class NoPositions(BlockOfSizes):
    """Turns nothing."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.self_attn.positions = None


class _WithGelu(nn.Module):
    def __init__(self, mlp: Any) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = mlp.gate_proj, mlp.up_proj, mlp.down_proj

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.down_proj(functional.gelu(self.gate_proj(x)) * self.up_proj(x))
        return gated


@llama_block.wrong("let the gate through SiLU: GELU is Gemma's.")
class GeluForSilu(BlockOfSizes):
    """Has GELU in the gate."""

    def __init__(self, *sizes: Any, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.mlp = _WithGelu(self.mlp)


@llama_block.wrong("let a position see itself and those before it alone.")
class NotCausal(BlockOfSizes):
    """Shows each position the ones behind it: those of the sequence turned round."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        """Attends, then maps each position."""
        h = self.input_layernorm(x)
        seen = self.self_attn(h, cache)
        if cache is None:
            seen = (seen + self.self_attn(h.flip(-2)).flip(-2)) / 2
        x = x + seen
        return x + self.mlp(self.post_attention_layernorm(x))


@llama_block.wrong("hand the cache to attention.")
class CacheIgnored(BlockOfSizes):
    """Begins anew in each step."""

    def forward(self, x: Tensor, cache: CacheOrContext = None) -> Tensor:
        """Attends, then maps each position."""
        return super().forward(x, None)
