"""Mixtures of experts: a router sends each token to a few of many feed-forward layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_layers.feed_forward.gated import Activation, GatedFeedForward
from transformer_layers.validation import (
    dtype_taken_by,
    require_dtype,
    require_floating_dtype,
    require_last_axis,
    require_positive,
    require_size,
)

Router = Callable[[Tensor], tuple[Tensor, Tensor]]


class TopKRouter(nn.Module):
    r"""Chooses experts by their probabilities, https://arxiv.org/abs/2401.04088, section 2.1.

    .. math::
        p &= \mathrm{softmax}(x W_r)
        \\
        \mathrm{weights}, \mathrm{chosen} &= \mathrm{top\_k}(p)

    Renormalized, the weights of a token are divided by their sum. This is the same as a softmax
    over the chosen scores alone. With `top_k` = 1 the weight is then the constant 1, and no
    gradient reaches the router.

    Args:
        d_model: Size of the last axis of the input.
        num_experts: How many experts there are.
        top_k: How many a token is sent to.
        renormalize: Whether a token's weights add up to 1, as in Mixtral.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        scores: `nn.Linear` without bias, :math:`W_r^\top` of shape `(num_experts, d_model)`.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, or `top_k` above `num_experts`.

    Examples:
        >>> router = TopKRouter(d_model=2, num_experts=3, top_k=2)
        >>> with torch.no_grad():
        ...     _ = router.scores.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
        >>> router(torch.tensor([2.0, 1.0]))
        (tensor([0.7311, 0.2689], grad_fn=...), tensor([0, 1]))
    """

    def __init__(
        self,
        d_model: int,
        num_experts: int,
        top_k: int,
        renormalize: bool = True,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        _require_counts(num_experts, top_k)
        require_floating_dtype(dtype)
        self.d_model = d_model
        self.top_k = top_k
        self.renormalize = renormalize
        self.scores = nn.Linear(d_model, num_experts, bias=False, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        self.scores.reset_parameters()

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> tuple[Float[Tensor, "... top_k"], Int[Tensor, "... top_k"]]:
        """Chooses experts for each token.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The weights of the chosen experts, the largest first, and the experts' numbers, both of
            shape `(..., top_k)`. The softmax of float16 and bfloat16 scores is taken in float32.

        Raises:
            TypeError: If `x` is not of the parameters' dtype.
            ValueError: If the last axis of `x` is not `d_model`.
        """
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.scores))
        scores = self.scores(x)
        weights, chosen = _probabilities(scores).topk(self.top_k, dim=-1)
        if self.renormalize:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights.to(scores.dtype), chosen

    def extra_repr(self) -> str:
        """How many are chosen, for `print`."""
        return f"top_k={self.top_k}, renormalize={self.renormalize}"


class SigmoidRouter(nn.Module):
    r"""Chooses experts as DeepSeek-V3 does, https://arxiv.org/abs/2412.19437, equations 12 to 16.

    .. math::
        s &= \mathrm{sigmoid}(x W_r)
        \\
        \mathrm{chosen} &= \text{the } k \text{ experts of the largest } s_i + b_i
        \\
        \mathrm{weights}_i &= \mathrm{scale} \cdot \frac{s_i}{\sum_{j\ \mathrm{chosen}} s_j}

    The bias :math:`b` chooses, and nothing else: it is in no weight, and has no gradient. Training
    moves it by :func:`balanced_bias`. With groups, the experts stand in groups of equal size, a
    group counts as the sum of its two largest :math:`s_i + b_i`, and experts are chosen out of the
    best groups alone.

    Args:
        d_model: Size of the last axis of the input.
        num_experts: How many experts there are.
        top_k: How many a token is sent to.
        groups: Into how many groups the experts are divided.
        top_groups: Out of how many groups a token's experts are.
        renormalize: Whether the weights are divided by their sum.
        scale: What the weights are multiplied by.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        scores: `nn.Linear` without bias, :math:`W_r^\top` of shape `(num_experts, d_model)`.
        bias: The buffer :math:`b`, shape `(num_experts,)`, initially zeros.

    Raises:
        TypeError: If a size is not an int.
        ValueError: If a size is below 1, `top_k` above what the groups hold, `top_groups` above
            `groups`, the groups are not of equal size of two experts or more, or `scale` is not
            above 0.

    Examples:
        >>> router = SigmoidRouter(d_model=2, num_experts=3, top_k=1, renormalize=False)
        >>> router(torch.zeros(2))[0]
        tensor([0.5000], grad_fn=...)
        >>> _ = router.bias.copy_(torch.tensor([0.0, 0.0, 1.0]))  # chooses, and weighs nothing
        >>> router(torch.zeros(2))
        (tensor([0.5000], grad_fn=...), tensor([2]))
    """

    bias: Tensor

    def __init__(
        self,
        d_model: int,
        num_experts: int,
        top_k: int,
        groups: int = 1,
        top_groups: int = 1,
        *,
        renormalize: bool = True,
        scale: float = 1.0,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        require_size("d_model", d_model)
        _require_counts(num_experts, top_k)
        require_floating_dtype(dtype)
        require_size("groups", groups)
        require_size("top_groups", top_groups)
        if top_groups > groups:
            raise ValueError(f"top_groups must be at most groups, got {top_groups} of {groups}")
        if groups > 1 and (num_experts % groups or num_experts < 2 * groups):
            raise ValueError(
                f"groups must divide the experts into groups of two or more, got {groups} groups "
                f"of {num_experts} experts"
            )
        if top_k > num_experts // groups * top_groups:
            raise ValueError(
                f"top_k must be at most the {num_experts // groups * top_groups} experts of "
                f"{top_groups} groups, got {top_k}"
            )
        require_positive("scale", scale)
        self.d_model = d_model
        self.top_k = top_k
        self.groups = groups
        self.top_groups = top_groups
        self.renormalize = renormalize
        self.scale = scale
        self.scores = nn.Linear(d_model, num_experts, bias=False, device=device, dtype=dtype)
        self.register_buffer("bias", torch.zeros(num_experts, device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Draws the parameters anew, and sets the bias to zeros."""
        self.scores.reset_parameters()
        self.bias.zero_()

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> tuple[Float[Tensor, "... top_k"], Int[Tensor, "... top_k"]]:
        """Chooses experts for each token; see :meth:`TopKRouter.forward`."""
        require_last_axis("x", x, "d_model", self.d_model)
        require_dtype("x", x, dtype_taken_by(self.scores))
        scores = self.scores(x)
        shares = scores.to(_computing(scores.dtype)).sigmoid()
        order = shares.detach() + self.bias
        if self.groups > 1:
            grouped = order.unflatten(-1, (self.groups, -1))
            best = grouped.topk(2, dim=-1).values.sum(-1).topk(self.top_groups, dim=-1).indices
            inside = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter(-1, best, True)
            order = grouped.masked_fill(~inside[..., None], -torch.inf).flatten(-2)
        chosen = order.topk(self.top_k, dim=-1).indices
        weights = shares.gather(-1, chosen)
        if self.renormalize:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return (self.scale * weights).to(scores.dtype), chosen

    def extra_repr(self) -> str:
        """How experts are chosen, for `print`."""
        return (
            f"top_k={self.top_k}, groups={self.groups}, top_groups={self.top_groups}, "
            f"renormalize={self.renormalize}, scale={self.scale}"
        )


class MixtureOfExperts(nn.Module):
    r"""Feed-forward layers of which each token uses a few, https://arxiv.org/abs/1701.06538.

    .. math::
        y = \sum_{e\ \mathrm{chosen}} \mathrm{weight}_e\, \mathrm{FeedForward}_e(x)
            \; [\, + \mathrm{Shared}(x)]

    It is equation 1 there, with the experts and the router of https://arxiv.org/abs/2401.04088,
    section 2.1. No token is dropped, however many are sent to one expert.

    Each expert computes its own tokens, in one product. Where a graph is traced, on the meta
    device and inside `torch.func`'s transforms, nobody knows which these are: there each expert
    computes all tokens, and those that were not sent to it count nothing.

    Args:
        d_model: Size of the last axis of input and output.
        d_ff: Size between the maps of an expert.
        num_experts: How many experts there are.
        top_k: How many a token is sent to.
        router: Maps tokens to weights and numbers of experts, as :class:`TopKRouter`, which is made
            if not given.
        shared: A layer that every token goes through as well; none if not given.
        activation: Of the experts' gates.
        device: Of the parameters; torch's default one if not given.
        dtype: Of the parameters; torch's default one if not given.

    Attributes:
        router: The router.
        experts: `nn.ModuleList` of :class:`GatedFeedForward`.
        shared: The layer for every token, or None.

    Raises:
        TypeError: If a size is not an int, or `activation` is not a function.
        ValueError: If a size is below 1, or `top_k` above `num_experts`.

    Examples:
        >>> layer = MixtureOfExperts(d_model=8, d_ff=16, num_experts=4, top_k=2)
        >>> layer(torch.randn(3, 5, 8)).shape
        torch.Size([3, 5, 8])
        >>> x = torch.randn(8)
        >>> weights, chosen = layer.router(x)
        >>> by_hand = sum(w * layer.experts[e](x) for w, e in zip(weights, chosen))
        >>> torch.allclose(layer(x), by_hand, atol=1e-6)
        True
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_experts: int,
        top_k: int,
        router: nn.Module | None = None,
        shared: nn.Module | None = None,
        activation: Activation = nn.functional.silu,
        *,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _require_counts(num_experts, top_k)
        require_floating_dtype(dtype)
        self.d_model = d_model
        if router is None:
            router = TopKRouter(d_model, num_experts, top_k, device=device, dtype=dtype)
        self.router = router
        self.experts = nn.ModuleList(
            GatedFeedForward(d_model, d_ff, activation, device=device, dtype=dtype)
            for _ in range(num_experts)
        )
        self.shared = shared

    def reset_parameters(self) -> None:
        """Draws the parameters anew."""
        for layer in (self.router, *self.experts, self.shared):
            reset = getattr(layer, "reset_parameters", None)
            if reset is not None:
                reset()

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Maps the last axis of `x`.

        Args:
            x: Shape `(..., d_model)`.

        Returns:
            The shape of `x`.

        Raises:
            TypeError: If `x` is not of the parameters' dtype.
            ValueError: If the last axis of `x` is not `d_model`.
        """
        require_last_axis("x", x, "d_model", self.d_model)
        weights, chosen = self.router(x)
        known = not (torch.compiler.is_compiling() or chosen.is_meta or _transformed())
        y = (self._own_tokens if known else self._all_tokens)(x, weights, chosen)
        return y if self.shared is None else y + self.shared(x)

    def _own_tokens(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        tokens = x.reshape(-1, self.d_model)
        order = chosen.flatten().argsort(stable=True)  # the first expert's tokens come first
        rows = order // chosen.shape[-1]
        counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        # Experts without a token compute none, so that each parameter has a gradient.
        parts = zip(self.experts, tokens[rows].split(counts), strict=True)
        found = torch.cat([expert(part) for expert, part in parts])
        found = found * weights.flatten()[order, None].to(found.dtype)
        return found.new_zeros(tokens.shape).index_add(0, rows, found).reshape(x.shape)

    def _all_tokens(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        of_all = weights.new_zeros((*weights.shape[:-1], len(self.experts)))
        of_all = of_all.scatter(-1, chosen, weights)
        parts = []
        for number, expert in enumerate(self.experts):
            sent = (chosen == number).any(dim=-1, keepdim=True)
            found = expert(x)
            weighted = of_all[..., number, None].to(found.dtype) * found
            parts.append(torch.where(sent, weighted, 0.0))  # also where an expert overflows
        return torch.stack(parts).sum(dim=0)


def load_balancing_loss(
    scores: Float[Tensor, "... num_experts"],
    top_k: int,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, ""]:
    r"""How unevenly a router spreads its tokens, https://arxiv.org/abs/2101.03961, equation 4.

    .. math::
        L = N \sum_{i=1}^{N} f_i P_i

    Here :math:`f_i` is the share of the choices that fell on expert :math:`i`, and :math:`P_i` the
    mean of its probability. Even routing gives 1 and a collapse onto one expert :math:`N / k` at
    most. It is taken for each layer by itself. `transformers` counts each of a token's `top_k`
    choices as a whole, so that even routing gives k there, and it pools the layers before it
    multiplies: two layers that collapse onto different experts look even.

    Args:
        scores: A router's, before the softmax, shape `(..., num_experts)`.
        top_k: How many experts a token is sent to.
        mask: True where a token counts, shape `(...)`; all if not given.

    Returns:
        The loss, at least float32. Its gradient goes through the probabilities alone.

    Raises:
        ValueError: If `top_k` is below 1 or above the number of experts.

    Examples:
        >>> load_balancing_loss(10 * torch.eye(4), top_k=1)
        tensor(1.)
        >>> load_balancing_loss(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), top_k=1)
        tensor(1.9998)
    """
    _require_counts(scores.shape[-1], top_k)
    p = _probabilities(scores)
    chosen = torch.zeros_like(p).scatter(-1, p.topk(top_k, dim=-1).indices, 1.0)
    shares, means = _mean(chosen.detach() / top_k, mask), _mean(p, mask)
    return scores.shape[-1] * (shares * means).sum()


def router_z_loss(
    scores: Float[Tensor, "... num_experts"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, ""]:
    r"""Keeps a router's scores small, https://arxiv.org/abs/2202.08906, equation 5.

    .. math::
        L = \frac{1}{B} \sum_{i=1}^{B} \Bigl(\log \sum_{j=1}^{N} e^{s_{ij}}\Bigr)^2

    Args:
        scores: A router's, before the softmax, shape `(..., num_experts)`.
        mask: True where a token counts, shape `(...)`; all if not given.

    Returns:
        The loss, at least float32.

    Examples:
        >>> router_z_loss(torch.zeros(5, 4)).sqrt()  # ln 4
        tensor(1.3863)
    """
    sums = scores.to(_computing(scores.dtype)).logsumexp(dim=-1, keepdim=True)
    return _mean(sums.square(), mask).squeeze(-1)


def balanced_bias(
    bias: Float[Tensor, " num_experts"], chosen: Int[Tensor, "... top_k"], rate: float
) -> Float[Tensor, " num_experts"]:
    """The bias of a :class:`SigmoidRouter` after a step, https://arxiv.org/abs/2408.15664.

    It is algorithm 1 there: an expert with more tokens than the mean is chosen less by `rate`, one
    with fewer more.

    Args:
        bias: Before the step.
        chosen: The experts of the step's tokens.
        rate: By how much a bias moves.

    Returns:
        The new bias.

    Examples:
        >>> balanced_bias(torch.zeros(3), torch.tensor([[0], [0], [1]]), rate=0.001)
        tensor([-0.0010,  0.0000,  0.0010])
    """
    counts = torch.bincount(chosen.flatten(), minlength=len(bias)).to(bias.dtype)
    return bias + rate * (counts.mean() - counts).sign()


@contextmanager
def router_scores(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collects what the routers of a model score, one tensor for each call of a router.

    Args:
        model: A model with routers, each with a layer `scores`.

    Yields:
        The list, which forward passes inside the context fill in the order of the calls. Gradients
        flow through the scores, so that losses of them can be added to the model's own.

    Examples:
        >>> layer = MixtureOfExperts(d_model=8, d_ff=16, num_experts=4, top_k=2)
        >>> with router_scores(layer) as scores:
        ...     _ = layer(torch.randn(3, 5, 8))
        >>> [each.shape for each in scores]
        [torch.Size([3, 5, 4])]
    """
    found: list[Tensor] = []
    layers = [
        each.scores for each in model.modules() if isinstance(each, TopKRouter | SigmoidRouter)
    ]
    hooks = [layer.register_forward_hook(lambda *call: found.append(call[-1])) for layer in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _require_counts(num_experts: int, top_k: int) -> None:
    require_size("num_experts", num_experts)
    require_size("top_k", top_k)
    if top_k > num_experts:
        raise ValueError(f"top_k must be at most num_experts, got {top_k} of {num_experts}")


def _computing(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _probabilities(scores: Tensor) -> Tensor:
    return scores.softmax(dim=-1, dtype=_computing(scores.dtype))


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over all axes but the last, of the tokens that count."""
    if mask is None:
        return x.flatten(0, -2).mean(dim=0) if x.ndim > 1 else x
    counted = torch.where(mask[..., None], x, 0.0)
    return counted.flatten(0, -2).sum(dim=0) / mask.sum()


def _transformed() -> bool:
    """Whether a transform of `torch.func` runs, inside which values are not to be read."""
    return torch._C._functorch.maybe_current_level() is not None
