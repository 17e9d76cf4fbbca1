"""How the frequencies of rotary positions are changed for sequences longer than those of training.

Each scaling is a value: it takes the frequencies of the pairs, the fastest first, and gives others.
The names of the numbers are those of the entry `rope_scaling` of a published `config.json`.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Real
from torch import Tensor

from transformer_layers.validation import require_positive, require_size


@runtime_checkable
class Scaling(Protocol):
    """What a scaling offers."""

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """The frequencies of the pairs, in radians a position, of those without scaling."""

    @property
    def table_factor(self) -> float:
        """What sines and cosines are multiplied by."""


@runtime_checkable
class ScalingByLength(Scaling, Protocol):
    """What a scaling offers whose frequencies depend on how long a text is."""

    def frequencies_for(
        self, length: Real[Tensor, "*batch"], frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, "*batch pairs"]:
        """The frequencies for texts of given lengths, in tokens, a row for each."""


@dataclass(frozen=True)
class LinearScaling:
    """Position interpolation: divides every position, https://arxiv.org/abs/2306.15595, eq. 4.

    Attributes:
        factor: How many times longer sequences become.

    Raises:
        ValueError: If `factor` is not greater than 0.
    """

    factor: float

    table_factor = 1.0

    def __post_init__(self) -> None:
        """Refuses a factor that no sequence has."""
        require_positive("factor", self.factor)

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Divides each frequency by the factor."""
        return frequencies / self.factor

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has, of training without the scaling.

        Returns:
            The factor times as many, or this length if it is greater.
        """
        return _longest(max_position_embeddings, self.factor, max_position_embeddings)


@dataclass(frozen=True)
class NTKScaling:
    r"""A larger base ("NTK-aware"), section 3.1 of https://arxiv.org/abs/2309.00071.

    The base becomes :math:`b' = b s^{d / (d - 2)}`. The fastest pair keeps its frequency, the
    slowest is divided by the factor :math:`s`.

    Attributes:
        factor: How many times longer sequences become.

    Raises:
        ValueError: If `factor` is not greater than 0.
    """

    factor: float

    table_factor = 1.0

    def __post_init__(self) -> None:
        """Refuses a factor that no sequence has."""
        require_positive("factor", self.factor)

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Divides the frequency of pair i by the factor to the power of 2i / (d - 2)."""
        pairs = frequencies.shape[-1]
        place = torch.arange(pairs, dtype=frequencies.dtype, device=frequencies.device)
        return frequencies * self.factor ** (-place / max(pairs - 1, 1))

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has, of training without the scaling.

        Returns:
            The factor times as many, or this length if it is greater.
        """
        return _longest(max_position_embeddings, self.factor, max_position_embeddings)


@dataclass(frozen=True)
class YaRNScaling:
    r"""NTK-by-parts and a factor for sines and cosines: YaRN, https://arxiv.org/abs/2309.00071.

    Pairs that turn more than `beta_fast` times within the length of training keep their frequency,
    those that turn less than `beta_slow` times have it divided by the factor :math:`s`, and between
    them it is blended. The blend is linear in the number of the pair, as in the authors' code and
    in `transformers`; the paper's ramp is linear in the number of turns. Sines and cosines are
    multiplied by :math:`0.1 \ln s + 1`, so that scores are by its square.

    Attributes:
        factor: How many times longer sequences become, :math:`s`.
        original_max_position_embeddings: Length of the sequences of training.
        attention_factor: What sines and cosines are multiplied by, if it is not to be computed.
        beta_fast: Turns above which a frequency is kept.
        beta_slow: Turns below which it is divided.
        mscale: In place of 1 in the factor of sines and cosines, together with the next.
        mscale_all_dim: The same for what that factor is divided by.
        truncate: Whether the blend begins and ends at whole numbers.

    Raises:
        TypeError: If the length is not an int.
        ValueError: If a number is not greater than 0.
    """

    factor: float
    original_max_position_embeddings: int
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        """Refuses numbers of which no frequencies can be made."""
        require_size("original_max_position_embeddings", self.original_max_position_embeddings)
        for name in ("factor", "beta_fast", "beta_slow"):
            require_positive(name, getattr(self, name))
        if self.attention_factor is not None:
            require_positive("attention_factor", self.attention_factor)

    @property
    def table_factor(self) -> float:
        """What sines and cosines are multiplied by."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._magnitude(self.mscale) / self._magnitude(self.mscale_all_dim)
        return self._magnitude(1.0)

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Keeps the fast ones, divides the slow ones, and blends those between."""
        pairs = frequencies.shape[-1]
        first = self._pair_that_turns(self.beta_fast, pairs, base)
        last = self._pair_that_turns(self.beta_slow, pairs, base)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * pairs - 1)
        if first == last:
            last += 0.001
        place = torch.arange(pairs, dtype=frequencies.dtype, device=frequencies.device)
        kept = 1 - ((place - first) / (last - first)).clamp(0, 1)
        # Not frequencies / factor, for the last digit of others where angles are float32.
        divided = 1.0 / (self.factor * base ** (place / pairs))
        return divided * (1 - kept) + frequencies * kept

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has.

        Returns:
            The factor times the original length, or this length if it is greater.
        """
        original = self.original_max_position_embeddings
        return _longest(max_position_embeddings, self.factor, original)

    def _magnitude(self, scale: float) -> float:
        return 0.1 * scale * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0

    def _pair_that_turns(self, times: float, pairs: int, base: float) -> float:
        """The number of the pair, not a whole one, that turns so often in the original length."""
        length = self.original_max_position_embeddings
        return pairs * math.log(length / (times * 2 * math.pi)) / math.log(base)


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3.1's: keeps fast frequencies, divides slow ones, blends between.

    No paper defines it; it is `apply_scaling` of the released code, https://github.com/meta-llama/
    llama-models, whose numbers are the defaults.

    Attributes:
        factor: How many times longer sequences become.
        low_freq_factor: Turns within the original length below which a frequency is divided.
        high_freq_factor: Turns above which it is kept.
        original_max_position_embeddings: Length of the sequences of training.

    Raises:
        TypeError: If the length is not an int.
        ValueError: If a number is not greater than 0, or `high_freq_factor` is not greater than
            `low_freq_factor`.
    """

    factor: float = 8.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192

    table_factor = 1.0

    def __post_init__(self) -> None:
        """Refuses numbers of which no frequencies can be made."""
        require_size("original_max_position_embeddings", self.original_max_position_embeddings)
        for name in ("factor", "low_freq_factor", "high_freq_factor"):
            require_positive(name, getattr(self, name))
        if not self.high_freq_factor > self.low_freq_factor:
            raise ValueError(
                "high_freq_factor must be greater than low_freq_factor, got "
                f"{self.high_freq_factor} and {self.low_freq_factor}"
            )

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Keeps the fast ones, divides the slow ones, and blends those between."""
        turns = self.original_max_position_embeddings / (2 * math.pi / frequencies)
        kept = (turns - self.low_freq_factor) / (self.high_freq_factor - self.low_freq_factor)
        kept = kept.clamp(0, 1)
        return (1 - kept) * frequencies / self.factor + kept * frequencies

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has.

        Returns:
            This length, as published models have it; the factor times the original length if it was
            left at no more than that.
        """
        original = self.original_max_position_embeddings
        if max_position_embeddings > original:
            return max_position_embeddings
        return _longest(max_position_embeddings, self.factor, original)


@dataclass(frozen=True)
class DynamicNTKScaling:
    r"""A larger base the longer a text is ("dynamic NTK").

    Section 3.3 of https://arxiv.org/abs/2309.00071, in the form of `transformers`.

    Up to the length :math:`L` of training nothing changes. A text of :math:`l` tokens beyond it has
    the base

    .. math:: b' = b \left(\frac{s l}{L} - (s - 1)\right)^{d / (d - 2)}

    Keys in a cache stay as they were turned when the text was shorter, there as here. So a text
    that is written step by step has other logits than one that is read at once.

    Attributes:
        factor: What the growth of the length is multiplied by, :math:`s`.
        original_max_position_embeddings: Length of the sequences of training, :math:`L`; a
            published config calls it `max_position_embeddings`.

    Raises:
        TypeError: If the length is not an int.
        ValueError: If a number is not greater than 0.
    """

    factor: float
    original_max_position_embeddings: int

    table_factor = 1.0

    def __post_init__(self) -> None:
        """Refuses numbers of which no frequencies can be made."""
        require_size("original_max_position_embeddings", self.original_max_position_embeddings)
        require_positive("factor", self.factor)

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Those of texts that are no longer than those of training: they stay as they are."""
        return frequencies

    def frequencies_for(
        self, length: Real[Tensor, "*batch"], frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, "*batch pairs"]:
        """The frequencies of a larger base for each text that is longer than those of training."""
        pairs, original = frequencies.shape[-1], self.original_max_position_embeddings
        longest = length.clamp(min=original).to(frequencies.dtype)[..., None]
        growth = self.factor * longest / original - (self.factor - 1)
        larger = base * growth ** (pairs / max(pairs - 1, 1))
        place = torch.arange(pairs, dtype=frequencies.dtype, device=frequencies.device)
        return 1.0 / larger ** (place / pairs)

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has, of training without the scaling.

        Returns:
            The factor times as many, or this length if it is greater.
        """
        return _longest(max_position_embeddings, self.factor, max_position_embeddings)


@dataclass(frozen=True)
class LongRoPEScaling:
    r"""Divides each frequency by a number of its own, found by a search: LongRoPE.

    https://arxiv.org/abs/2402.13753, equation 4. There are two lists of divisors: one for texts as
    long as those of training, and one for texts that are longer. Sines and cosines are multiplied
    by :math:`\sqrt{1 + \ln s / \ln L}` in both, for a factor :math:`s` above 1.

    The tokens of a text that grows beyond the length :math:`L` are all turned otherwise from then
    on. So nothing that a cache holds serves any longer: `generate` reads the whole text again.

    Attributes:
        short_factor: What each frequency is divided by in texts of up to :math:`L` tokens, the
            fastest first.
        long_factor: The same in longer ones.
        original_max_position_embeddings: Length of the sequences of training, :math:`L`.
        factor: How many times longer sequences become, :math:`s`.
        attention_factor: What sines and cosines are multiplied by, if it is not to be computed.

    Raises:
        TypeError: If the length is not an int.
        ValueError: If a number is not greater than 0, or the lists are not of one length.
    """

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    original_max_position_embeddings: int
    factor: float
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        """Refuses numbers of which no frequencies can be made."""
        require_size("original_max_position_embeddings", self.original_max_position_embeddings)
        require_positive("factor", self.factor)
        if self.attention_factor is not None:
            require_positive("attention_factor", self.attention_factor)
        for name in ("short_factor", "long_factor"):
            for divisor in getattr(self, name):
                require_positive(name, divisor)
        if len(self.short_factor) != len(self.long_factor):
            raise ValueError(
                "short_factor and long_factor must have a number for each pair of features, got "
                f"{len(self.short_factor)} and {len(self.long_factor)}"
            )

    @property
    def table_factor(self) -> float:
        """What sines and cosines are multiplied by."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.factor <= 1:
            return 1.0
        return math.sqrt(
            1 + math.log(self.factor) / math.log(self.original_max_position_embeddings)
        )

    def frequencies(
        self, frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, " pairs"]:
        """Those of texts that are no longer than those of training."""
        return self._divided(self.short_factor, frequencies, base)

    def frequencies_for(
        self, length: Real[Tensor, "*batch"], frequencies: Float[Tensor, " pairs"], base: float
    ) -> Float[Tensor, "*batch pairs"]:
        """Each frequency divided by its number in the list that is for a text's length."""
        long = self._divided(self.long_factor, frequencies, base)
        beyond = length[..., None] > self.original_max_position_embeddings
        return torch.where(beyond, long, self.frequencies(frequencies, base))

    def longest(self, max_position_embeddings: int) -> int:
        """How long sequences are at most, in tokens.

        Args:
            max_position_embeddings: The length that a config has.

        Returns:
            The factor times the original length, or this length if it is greater.
        """
        original = self.original_max_position_embeddings
        return _longest(max_position_embeddings, self.factor, original)

    def _divided(self, divisors: tuple[float, ...], frequencies: Tensor, base: float) -> Tensor:
        pairs = frequencies.shape[-1]
        if len(divisors) != pairs:
            raise ValueError(
                f"short_factor and long_factor must have a number for each of {pairs} pairs of "
                f"features that turn, got {len(divisors)}"
            )
        dtype, device = frequencies.dtype, frequencies.device
        place = torch.arange(pairs, dtype=dtype, device=device)
        # Not frequencies / divisor, for the last digit of others where angles are float32.
        return 1.0 / (torch.tensor(divisors, dtype=dtype, device=device) * base ** (place / pairs))


def _longest(length: int, factor: float, original: int) -> int:
    # Rounded, since 1.15 * 100 is 114.99999999999999.
    return max(length, int(round(factor * original, 6)))
