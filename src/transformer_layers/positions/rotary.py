"""Rotary positions: queries and keys are turned, so that scores depend on distances."""

import functools
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from transformer_layers.positions.scaling import Scaling, ScalingByLength
from transformer_layers.precision import at_least_float32
from transformer_layers.validation import (
    LOW_PRECISION,
    require_floating,
    require_last_axis,
    require_positive,
    require_size,
)

Layout = Literal["halves", "neighbours"]
LAYOUTS = ("halves", "neighbours")

# Tells queries or keys, of shape (..., seq, d_k), where they stand; positions are (seq,) or
# broadcast to the leading axes.
Positions = Callable[[Tensor, Tensor], Tensor]


def rotated(
    x: Float[Tensor, "*batch seq d_k"],
    cos: Float[Tensor, "*positions seq pairs"],
    sin: Float[Tensor, "*positions seq pairs"],
    layout: Layout = "halves",
) -> Float[Tensor, "*batch seq d_k"]:
    """Turns pairs of features by angles whose cosines and sines are given.

    Args:
        x: Shape `(..., seq, d_k)`; features behind the pairs stay as they are.
        cos: Shape `(..., seq, pairs)`, float32 or float64.
        sin: The same.
        layout: Which features are a pair; see :class:`RotaryPositions`.

    Returns:
        The shape and dtype of `x`.
    """
    size = 2 * cos.shape[-1]
    wide = at_least_float32(x if size == x.shape[-1] else x[..., :size])
    if layout == "halves":
        first, second = wide.chunk(2, dim=-1)
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    else:
        first, second = wide.unflatten(-1, (-1, 2)).unbind(-1)
        pairs = [first * cos - second * sin, second * cos + first * sin]
        turned = torch.stack(pairs, dim=-1).flatten(-2)
    turned = turned.to(x.dtype)
    return turned if size == x.shape[-1] else torch.cat([turned, x[..., size:]], dim=-1)


class RotaryPositions(nn.Module):
    r"""Rotary position embedding, https://arxiv.org/abs/2104.09864, equations 14, 15 and 34.

    .. math::
        \begin{pmatrix} y_a \\ y_b \end{pmatrix} =
        \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i
        \end{pmatrix}
        \begin{pmatrix} x_a \\ x_b \end{pmatrix},
        \qquad \theta_i = \mathrm{base}^{-2i / d}

    Features `a` and `b` are pair `i`, and `m` is the position. The inner product of a query at `m`
    and a key at `n`, both turned, depends on the positions by `m - n` alone. Which features are a
    pair is the layout: the paper's pairs are neighbours, `2i` and `2i + 1`; those of Llama as
    `transformers` has it, and of GPT-NeoX, are a half apart, `i` and `i + d / 2`.
    :func:`halves_of_neighbours` maps one to the other.

    There are no parameters and no buffers. Angles are computed in float64 at each call, and sines
    and cosines are float32 for float16 and bfloat16 input, which is turned in float32 and returned
    in its own dtype. Other implementations, `transformers` among them, compute angles in float32,
    which rounds them the more the further a position is: with 128 features and base 500,000 a
    cosine is off by up to some 6e-4 within 8,192 positions, and 9e-3 within 131,072. For their
    digits, take `angles=torch.float32`; in a model that is loaded, set `model.rotary.angles`.

    Args:
        d_k: Features of a head.
        base: Of the frequencies, greater than 1.
        layout: "halves" or "neighbours".
        scaling: Changes the frequencies for longer sequences, such as :class:`LinearScaling`; none
            if not given.
        d_rotary: How many features turn, the first of a head; all if not given.
        angles: The dtype of frequencies and angles, float64 or float32.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If `d_rotary` is odd or above `d_k`, `base` is not greater than 1, the layout is
            none of the two, or `angles` none of the two dtypes.

    Examples:
        >>> rotary = RotaryPositions(2, base=10_000.0)
        >>> rotary(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
        tensor([[1.0000, 0.0000],
                [0.5403, 0.8415]])
        >>> query, key = torch.randn(2, 1, 2)
        >>> near = rotary(query, torch.tensor([5])) @ rotary(key, torch.tensor([3])).T
        >>> far = rotary(query, torch.tensor([105])) @ rotary(key, torch.tensor([103])).T
        >>> torch.allclose(near, far, atol=1e-5)
        True
    """

    def __init__(
        self,
        d_k: int,
        base: float = 10_000.0,
        layout: Layout = "halves",
        scaling: Scaling | None = None,
        *,
        d_rotary: int | None = None,
        angles: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        require_size("d_k", d_k)
        d_rotary = d_k if d_rotary is None else d_rotary
        require_size("d_rotary", d_rotary)
        if d_rotary % 2 or d_rotary > d_k:
            raise ValueError(
                f"features turn in pairs: d_rotary must be even and at most d_k = {d_k}, got "
                f"{d_rotary}"
            )
        require_positive("base", base)
        if base <= 1:
            raise ValueError(f"base must be greater than 1, got {base}")
        if layout not in LAYOUTS:
            raise ValueError(f"layout must be 'halves' or 'neighbours', got {layout!r}")
        if angles not in (torch.float64, torch.float32):
            raise ValueError(f"angles must be torch.float64 or torch.float32, got {angles}")
        self.d_k = d_k
        self.d_rotary = d_rotary
        self.base = base
        self.layout: Layout = layout
        self.scaling = scaling
        self.angles = angles
        self.frequencies()  # refuses a scaling for another number of pairs

    def frequencies(
        self,
        device: torch.device | str | None = None,
        length: Real[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch pairs"]:
        """The angle by which each pair turns from one position to the next, in radians.

        Args:
            device: Where the result is to be.
            length: How many tokens each text has, for a scaling that depends on it; those of the
                texts of training, or fewer, if not given.

        Returns:
            Shape `(..., d_rotary / 2)` for lengths of shape `(...)`, the fastest first, in float64
            where the device has it, or in float32 if angles are to be.
        """
        # Metal has no float64.
        dtype = torch.float32 if torch.device(device or "cpu").type == "mps" else self.angles
        even = torch.arange(0, self.d_rotary, 2, dtype=dtype, device=device)
        plain = 1.0 / self.base ** (even / self.d_rotary)
        if self.scaling is None:
            return plain
        if length is not None and isinstance(self.scaling, ScalingByLength):
            return self.scaling.frequencies_for(length, plain, self.base)
        return self.scaling.frequencies(plain, self.base)

    def at(
        self, positions: Real[Tensor, "*batch seq"], dtype: torch.dtype | None = None
    ) -> Callable[[Tensor], Tensor]:
        """The rotation by position ids, made once for all queries and keys that stand there.

        Where the scaling depends on the length of a text, that is the greatest position id of each
        row and one.

        Args:
            positions: Shape `(seq,)`, or one that broadcasts to the leading axes of what is turned.
            dtype: Of what is turned; torch's default one if not given.

        Returns:
            A function of what is turned; its sines and cosines are float64 for float64, and else
            float32.

        Raises:
            TypeError: If positions are neither integers nor float32 or float64.
        """
        if positions.dtype in LOW_PRECISION or positions.dtype in (torch.bool, torch.complex64):
            raise TypeError(
                f"positions must be integers, float32 or float64, got {positions.dtype}, in which "
                "neighboring positions become one; convert them before, not after"
            )
        dtype = torch.get_default_dtype() if dtype is None else dtype
        wide = torch.promote_types(dtype, torch.float32)
        by_length = isinstance(self.scaling, ScalingByLength) and positions.shape[-1] > 0
        length = positions.amax(-1) + 1 if by_length else None
        frequencies = self.frequencies(positions.device, length)
        angles = positions[..., None].to(frequencies.dtype) * frequencies[..., None, :]
        factor = 1.0 if self.scaling is None else self.scaling.table_factor
        cos, sin = (angles.cos() * factor).to(wide), (angles.sin() * factor).to(wide)
        return functools.partial(rotated, cos=cos, sin=sin, layout=self.layout)

    def forward(
        self,
        x: Float[Tensor, "*batch seq d_k"],
        positions: Real[Tensor, "*positions seq"] | None = None,
    ) -> Float[Tensor, "*batch seq d_k"]:
        """Turns queries or keys by their positions.

        Args:
            x: Shape `(..., seq, d_k)`.
            positions: Integers of shape `(seq,)`, or one that broadcasts to `x.shape[:-1]`;
                0, 1, 2, ... if not given.

        Returns:
            The shape and dtype of `x`.

        Raises:
            TypeError: If `x` is not floating point, or positions are of a dtype without all
                integers.
            ValueError: If a shape does not fit.
        """
        require_last_axis("x", x, "d_k", self.d_k)
        require_floating("x", x)
        if x.ndim < 2:
            raise ValueError(f"x must be of shape (..., seq, d_k), got {tuple(x.shape)}")
        if positions is None:
            positions = torch.arange(x.shape[-2], device=x.device)
        _require_places(positions, x)
        return self.at(positions, x.dtype)(x)

    def extra_repr(self) -> str:
        """The arguments, for `print`."""
        parts = [f"{self.d_k}", f"base={self.base:g}", f"layout={self.layout!r}"]
        parts += [f"scaling={self.scaling}"] if self.scaling is not None else []
        parts += [f"d_rotary={self.d_rotary}"] if self.d_rotary != self.d_k else []
        parts += [f"angles={self.angles}"] if self.angles != torch.float64 else []
        return ", ".join(parts)


def halves_of_neighbours(
    weight: Float[Tensor, "features ..."], d_k: int
) -> Float[Tensor, "features ..."]:
    """Reorders what makes queries or keys for neighbours, so that halves give the same scores.

    Within each head, features 0, 2, 4, ... come first and 1, 3, 5, ... after them. It is `permute`
    of `convert_llama_weights_to_hf.py` in `transformers`, for weights and biases alike.

    Args:
        weight: The rows of a projection's weight, or its bias; shape `(heads * d_k, ...)`.
        d_k: Features of a head, an even number.

    Returns:
        The same rows in another order.

    Raises:
        ValueError: If the rows are no whole heads of pairs.

    Examples:
        >>> halves_of_neighbours(torch.arange(8.0), d_k=4)
        tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    _require_whole_heads(weight, d_k)
    pairs = weight.unflatten(0, (-1, d_k // 2, 2))
    return pairs.transpose(1, 2).flatten(0, 2)


def neighbours_of_halves(
    weight: Float[Tensor, "features ..."], d_k: int
) -> Float[Tensor, "features ..."]:
    """Undoes :func:`halves_of_neighbours`.

    Args:
        weight: See there, as for the errors.
        d_k: See there.

    Returns:
        The rows in the order for neighbours.

    Examples:
        >>> neighbours_of_halves(torch.tensor([0.0, 2.0, 1.0, 3.0]), d_k=4)
        tensor([0., 1., 2., 3.])
    """
    _require_whole_heads(weight, d_k)
    halves = weight.unflatten(0, (-1, 2, d_k // 2))
    return halves.transpose(1, 2).flatten(0, 2)


def _require_whole_heads(weight: Tensor, d_k: int) -> None:
    require_size("d_k", d_k)
    if d_k % 2 or weight.ndim == 0 or weight.shape[0] % d_k:
        raise ValueError(
            f"d_k must be even and divide the first axis, got d_k = {d_k} and the shape "
            f"{tuple(weight.shape)}"
        )


def _require_places(positions: Tensor, x: Tensor) -> None:
    shape, target = tuple(positions.shape), tuple(x.shape[:-1])
    fits = 0 < len(shape) <= len(target) and all(
        size in (1, wanted) for size, wanted in zip(reversed(shape), reversed(target), strict=False)
    )
    if not fits or shape[-1] != target[-1]:
        raise ValueError(
            f"positions must be of shape (seq,) = ({target[-1]},), or broadcast to {target}, got "
            f"{shape}"
        )
