"""Writing: prompts in, one token after another out."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transformer_layers.generation.decoder import Decoder, require_room, require_tokens
from transformer_layers.generation.ending import (
    Stop,
    count_up_to_stop,
    ended_by,
    is_stop,
    require_stop,
    require_stops,
)
from transformer_layers.generation.evaluation import evaluating, in_evaluation
from transformer_layers.generation.sampling import next_token, penalized, require_sampling
from transformer_layers.validation import require_integers, require_size

# One tensor for prompts of the same length, a list of tensors for those of different lengths.
Prompts = TypeVar("Prompts", Tensor, list[Tensor])


@overload
def generate(
    model: Decoder,
    ids: Prompts,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: Literal[False] = False,
) -> Prompts: ...


@overload
def generate(
    model: Decoder,
    ids: Prompts,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: Literal[True],
) -> tuple[Prompts, Prompts]: ...


def generate(  # noqa: D417  # a method of models, whose first argument is the model
    model: Decoder,
    ids: Prompts,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: bool = False,
) -> Prompts | tuple[Prompts, Prompts]:
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
        min_p: If given, tokens are drawn from those whose probability is at least `min_p` times
            that of the most likely one; after `top_p`.
        repetition_penalty: What the logits of tokens that stand in the text so far, prompt
            included, are divided by where they are positive, and multiplied by where they are
            negative; before the temperature, and at temperature 0, too. 1 changes nothing.
        stop: If given, a function that is told the new tokens of a sequence after each of them,
            and says whether the last one ends it, such as :func:`stop_texts` makes. Of the same
            tokens it is to say the same.
        return_logits: Whether to return the logits, too.

    Returns:
        The prompts with their new tokens. Those of a tensor are of shape
        `(batch, seq + max_new_tokens)`, or shorter if all sequences have ended before; one that
        ends before others is filled up with `eos_token`, the first of several, or with its own
        last token if none is given. Those of a list are a list of tensors, without filling.

        With `return_logits` a pair: these, and the logits that each new token was chosen by, of
        shape `(batch, new, vocab_size)`, or a list of tensors of shape `(new, vocab_size)`. They
        are the model's own, before penalty and temperature. What fills up was not chosen by its
        logits.

    Raises:
        TypeError: If `ids` are not int64 or int32, a count or a token is no int, or `stop` is no
            function.
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
        >>> ids, logits = model.generate(prompts, max_new_tokens=5, return_logits=True)
        >>> [len(each) for each in ids]
        [8, 6]
        >>> [tuple(each.shape) for each in logits]
        [(5, 50), (5, 50)]
    """
    steps = list(
        model.stream(
            ids,
            max_new_tokens,
            temperature,
            top_k,
            top_p,
            generator,
            eos_token,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            stop=stop,
            return_logits=return_logits,
        )
    )
    columns = zip(*steps, strict=True) if return_logits else [steps]
    new = (
        [torch.stack(column, dim=1) for column in columns]
        if steps
        else _nothing(model, ids, return_logits)
    )
    tokens = new[0]
    if isinstance(ids, Tensor):
        text, logits = torch.cat([ids, tokens], dim=1), new[-1]
    else:
        stops = require_stops(eos_token, model.vocab_size)
        counts = [count_up_to_stop(row, stops, stop) for row in tokens.tolist()]
        parts = zip(ids, tokens, counts, strict=True)
        text = [torch.cat([prompt, row[:count]]) for prompt, row, count in parts]
        logits = [row[:count] for row, count in zip(new[-1], counts, strict=True)]
    return (text, logits) if return_logits else text


@overload
def stream(
    model: Decoder,
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: Literal[False] = False,
) -> Iterator[Int[Tensor, " batch"]]: ...


@overload
def stream(
    model: Decoder,
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: Literal[True],
) -> Iterator[tuple[Int[Tensor, " batch"], Float[Tensor, "batch vocab_size"]]]: ...


def stream(  # noqa: D417  # the same
    model: Decoder,
    ids: Int[Tensor, "batch seq"] | list[Int[Tensor, " _"]],
    max_new_tokens: int,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    eos_token: int | Sequence[int] | None = None,
    *,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop: Stop | None = None,
    return_logits: bool = False,
) -> (
    Iterator[Int[Tensor, " batch"]]
    | Iterator[tuple[Int[Tensor, " batch"], Float[Tensor, "batch vocab_size"]]]
):
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
        min_p: See there.
        repetition_penalty: See there.
        stop: See there.
        return_logits: See there.

    Returns:
        An iterator over tensors of shape `(batch,)`, a token for each prompt; with
        `return_logits` over pairs of these and their logits, of shape `(batch, vocab_size)`. A
        sequence that has ended goes on with what fills it up, until all have.

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
    require_sampling(temperature, top_k, top_p, min_p=min_p, repetition_penalty=repetition_penalty)
    stops = require_stops(eos_token, model.vocab_size)
    require_stop(stop)
    total = batch.shape[1] + max_new_tokens
    require_room(model, total)
    require_tokens(batch, model.vocab_size)
    caches = model.new_caches(batch.shape[0], total, padding)
    twin = in_evaluation(model)

    # A model whose keys serve up to some length reads a text that outgrows it once more.
    until: int | None = getattr(model, "keys_serve_until", None)
    parts: list[Tensor] = []

    def read(new: Tensor) -> Tensor:
        if until is not None:
            parts.append(new)
            if _outgrown(caches[0].length, new.shape[1], padding, until):
                new = torch.cat(parts, dim=1)
                for cache in caches:
                    cache.length = 0
        return twin.logits(twin.last_hidden_state(new, caches)[:, -1])

    def choose(logits: Tensor, text: Tensor) -> Tensor:
        if repetition_penalty != 1:
            logits = penalized(logits, _without_padding(text, padding), repetition_penalty)
        return next_token(logits, temperature, top_k, top_p, generator, min_p=min_p)

    steps = new_tokens(read, choose, batch, max_new_tokens, stops, stop)
    return steps if return_logits else (tokens for tokens, _ in steps)


def new_tokens(
    read: Callable[[Int[Tensor, "batch seq"]], Float[Tensor, "batch vocab_size"]],
    choose: Callable[
        [Float[Tensor, "batch vocab_size"], Int[Tensor, "batch text"]], Int[Tensor, " batch"]
    ],
    ids: Int[Tensor, "batch seq"],
    max_new_tokens: int,
    stops: Sequence[int] = (),
    stop: Stop | None = None,
) -> Iterator[tuple[Int[Tensor, " batch"], Float[Tensor, "batch vocab_size"]]]:
    """Yields the next token of each sequence, until there are enough or all have ended.

    With the tokens come the scores that they were chosen by, as `read` gave them.

    Args:
        read: Takes what it has not read yet, and scores each token as the next one.
        choose: Takes a token by the scores, and by the tokens so far.
        ids: The tokens so far.
        max_new_tokens: How many tokens to yield at most for each sequence.
        stops: The tokens that end a sequence; what has ended goes on with the first of them.
        stop: Says of the new tokens of a sequence whether it has ended; if there are no `stops`,
            what has ended goes on with its last token.
    """
    text, new = ids, ids
    ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(max_new_tokens):
        with torch.no_grad():  # not around yield, where the caller's code runs
            logits = read(new)
            tokens = choose(logits, text).to(ids.dtype)
        if stops or stop:
            filling = tokens.new_tensor(stops[0]) if stops else text[:, -1]
            tokens = torch.where(ended, filling, tokens)
            ended = ended | is_stop(tokens, stops)
        text = torch.cat([text, tokens[:, None]], dim=1)
        if stop:
            ended = ended_by(stop, text[:, ids.shape[1] :], ended)
        yield tokens, logits
        if (stops or stop) and ended.all():
            return
        new = tokens[:, None]


def _outgrown(past: int, new: int, padding: Int[Tensor, " batch"] | None, until: int) -> bool:
    """Whether a text that had tokens, and up to so many, has more now."""
    before = torch.tensor([past]) if padding is None else past - padding
    return bool(((before > 0) & (before <= until) & (before + new > until)).any())


def _without_padding(
    text: Int[Tensor, "batch seq"], padding: Int[Tensor, " batch"] | None
) -> Int[Tensor, "batch seq"]:
    """The same tokens, with a row's last one in the place of its padding."""
    if padding is None:
        return text
    places = torch.arange(text.shape[1], device=text.device)
    return torch.where(places < padding[:, None], text[:, -1:], text)


def _nothing(model: Decoder, ids: Tensor | list[Tensor], return_logits: bool) -> list[Tensor]:
    """No new tokens of each prompt, and the logits of none if they are asked for."""
    tokens = as_batch(ids)[0][:, :0]
    if not return_logits:
        return [tokens]
    with evaluating(model) as twin:
        return [tokens, twin(tokens)]


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
