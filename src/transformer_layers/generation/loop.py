"""Writing: prompts in, one token after another out."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_layers.generation.decoder import Decoder, require_room, require_tokens
from transformer_layers.generation.evaluation import in_evaluation
from transformer_layers.generation.sampling import next_token, require_sampling
from transformer_layers.validation import require_integers, require_size

# One tensor for prompts of the same length, a list of tensors for those of different lengths.
Prompts = TypeVar("Prompts", Tensor, list[Tensor])


def generate(  # noqa: D417  # a method of models, whose first argument is the model
    model: Decoder,
    ids: Prompts,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
) -> Prompts:
    """Continues each prompt, one token at a time.

    The keys and values of earlier positions are kept, so that each step after the first
    computes one position. Dropout is off, whatever the model's mode, which stays as it is.

    Prompts of different lengths are a list of tensors. They are computed as one batch, in which
    the shorter ones have padding in front: nothing attends to it, and a prompt's positions are
    counted from its own first token. So in float64 and float32 greedy tokens are those of each
    prompt by itself. In bfloat16 and float16 a batch rounds otherwise than a row, and where two
    tokens are nearly as likely the other one may be taken: in bfloat16 16 of 120 rows differed.

    Args:
        ids: The prompts, int64 or int32: a tensor of shape `(batch, seq)`, or a list of tensors
            of shape `(seq,)`, each with its own length.
        max_new_tokens: Number of tokens to add at most.
        temperature: What the logits are divided by before a token is drawn; 0 takes the most
            likely token.
        top_k: If given, tokens are drawn from the `top_k` most likely ones.
        top_p: If given, tokens are drawn from the fewest most likely ones whose probabilities
            sum to `top_p` or more; after `top_k`.
        generator: Source of the draws; torch's global one if not given.
        eos_token: If given, the token, or the tokens, of which the first new one ends a
            sequence, and is its last.

    Returns:
        The prompts with their new tokens. Those of a tensor are of shape
        `(batch, seq + max_new_tokens)`, or shorter if all sequences have ended before; one that
        ends before others is filled up with `eos_token`, the first of several. Those of a list
        are a list of tensors, without filling.

    Raises:
        TypeError: If `ids` are not int64 or int32, or a count or a token is no int.
        ValueError: If a shape does not fit, a prompt holds no position, the result could be
            longer than the model takes, an id is not in the vocabulary, an option is out of
            range, or the highest logit is not finite.

    Examples:
        >>> from transformer_layers import GPT2, GPT2Config
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> model = GPT2(config)
        >>> model.generate(torch.tensor([[3, 14], [15, 9]]), max_new_tokens=5).shape
        torch.Size([2, 7])
        >>> prompts = [torch.tensor([3, 14, 15]), torch.tensor([9])]
        >>> [len(each) for each in model.generate(prompts, max_new_tokens=5)]
        [8, 6]
    """
    new = model.stream(ids, max_new_tokens, temperature, top_k, top_p, generator, eos_token)
    steps: list[Tensor] = [tokens[:, None] for tokens in new]
    if isinstance(ids, Tensor):
        return torch.cat([ids, *steps], dim=1)
    if not steps:
        return [prompt.clone() for prompt in ids]
    stops = require_stops(eos_token, model.vocab_size)
    rows = zip(ids, torch.cat(steps, dim=1), strict=True)
    return [torch.cat([prompt, up_to_stop(tokens, stops)]) for prompt, tokens in rows]


def stream(  # noqa: D417  # the same
    model: Decoder,
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
) -> Iterator[Int[Tensor, " batch"]]:
    """Yields the new tokens of :func:`generate`, each as soon as it is chosen.

    Args:
        ids: See :func:`generate`, as for all arguments and errors. The errors of arguments come
            with the call, not with the first token.
        max_new_tokens: See there.
        temperature: See there.
        top_k: See there.
        top_p: See there.
        generator: See there.
        eos_token: See there.

    Returns:
        An iterator over tensors of shape `(batch,)`, a token for each prompt. A sequence that
        has ended goes on with `eos_token`, until all have.

    Examples:
        >>> from transformer_layers import GPT2, GPT2Config
        >>> config = GPT2Config(vocab_size=50, n_positions=16, n_embd=12, n_layer=2, n_head=3)
        >>> model = GPT2(config)
        >>> for tokens in model.stream(torch.tensor([[3, 14]]), max_new_tokens=2):
        ...     print(tokens.shape)
        torch.Size([1])
        torch.Size([1])
    """
    batch, padding = as_batch(ids)
    require_size("max_new_tokens", max_new_tokens, minimum=0)
    require_sampling(temperature, top_k, top_p)
    stops = require_stops(eos_token, model.vocab_size)
    total = batch.shape[1] + max_new_tokens
    require_room(model, total)
    require_tokens(batch, model.vocab_size)
    caches = model.new_caches(batch.shape[0], total, padding)
    twin = in_evaluation(model)

    def read(new: Tensor) -> Tensor:
        return twin.logits(twin.last_hidden_state(new, caches)[:, -1])

    def choose(logits: Tensor) -> Tensor:
        return next_token(logits, temperature, top_k, top_p, generator)

    return new_tokens(read, choose, batch, max_new_tokens, stops)


def new_tokens(
    read: Callable[[Int[Tensor, "batch seq"]], Float[Tensor, "batch vocab_size"]],
    choose: Callable[[Float[Tensor, "batch vocab_size"]], Int[Tensor, " batch"]],
    ids: Int[Tensor, "batch seq"],
    max_new_tokens: int,
    stops: Sequence[int] = (),
) -> Iterator[Int[Tensor, " batch"]]:
    """Yields the next token of each sequence, until there are enough or all have ended.

    Args:
        read: Takes what it has not read yet, and scores each token as the next one.
        choose: Takes a token by the scores.
        ids: The tokens so far.
        max_new_tokens: How many tokens to yield at most for each sequence.
        stops: The tokens that end a sequence; what has ended goes on with the first of them.
    """
    new = ids
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(max_new_tokens):
        with torch.no_grad():  # not around yield, where the caller's code runs
            tokens = choose(read(new)).to(ids.dtype)
        if stops:
            tokens = tokens.masked_fill(ended, stops[0])
            ended |= is_stop(tokens, stops)
        yield tokens
        if stops and ended.all():
            return
        new = tokens[:, None]


def is_stop(tokens: Int[Tensor, "*shape"], stops: Sequence[int]) -> Tensor:
    """Which tokens end a sequence, boolean of the same shape."""
    return torch.isin(tokens, torch.tensor(stops, dtype=tokens.dtype, device=tokens.device))


def up_to_stop(tokens: Int[Tensor, " new"], stops: Sequence[int]) -> Int[Tensor, " kept"]:
    """The tokens up to the first that ends the sequence, it included, or all."""
    places = is_stop(tokens, stops).nonzero() if stops else tokens[:0]
    return tokens[: places[0] + 1] if len(places) else tokens


def as_batch(
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, " batch"] | None]:
    """Prompts as one tensor; the shorter ones have padding in front.

    Args:
        ids: The prompts.

    Returns:
        The batch, and how much of each row is padding; None if the prompts are equally long.

    Raises:
        TypeError: If `ids` are neither a tensor nor a list of tensors of int64 or int32.
        ValueError: If a shape does not fit, or there is no prompt, or one without a token.
    """
    if not isinstance(ids, list | tuple) or not all(isinstance(each, Tensor) for each in ids):
        require_integers("ids", ids)  # which refuses a list of numbers
    if isinstance(ids, Tensor):
        if ids.ndim != 2 or ids.shape[1] == 0:
            raise ValueError(
                "ids must be of shape (batch, seq) with one position or more, got "
                f"{tuple(ids.shape)}; a single sequence is ids[None]"
            )
        return ids, None
    for prompt in ids:
        require_integers("each prompt", prompt)
    shapes = [tuple(prompt.shape) for prompt in ids]
    if not ids or any(len(shape) != 1 or shape[0] == 0 for shape in shapes):
        raise ValueError(
            "a list of ids must hold a prompt or more, each of shape (seq,) with one position or "
            f"more, got shapes {shapes}"
        )
    batch = pad_sequence(ids, batch_first=True, padding_side="left")
    lengths = torch.tensor([len(prompt) for prompt in ids], device=batch.device)
    padding = batch.shape[1] - lengths
    return batch, padding if padding.any() else None


def require_stops(eos_token: int | Sequence[int] | None, vocab_size: int) -> list[int]:
    """The tokens that end a sequence, as a list.

    Args:
        eos_token: One, several, or None.
        vocab_size: Number of tokens in the vocabulary.

    Raises:
        TypeError: If one is not an int.
        ValueError: If one is not in the vocabulary, or there are to be several and is none.
    """
    if eos_token is None:
        return []
    stops = list(eos_token) if isinstance(eos_token, Sequence) else [eos_token]
    for stop in stops:
        require_size("eos_token", stop, minimum=0)
    if not stops or max(stops) >= vocab_size:
        raise ValueError(
            f"eos_token must be a token or several, in [0, {vocab_size}), got {eos_token}"
        )
    return stops
