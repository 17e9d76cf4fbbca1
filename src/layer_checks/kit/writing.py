"""What a language model writes, held against its own logits."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from layer_checks.evidence.evidence import Evidence, equivalent, holds
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import load, same, weights_of

_SEQ, _NEW, _ROWS, _DRAWS = 3, 5, 24, 3000
# Of these tokens are prompts; one that is none of them ends what is written.
_OF_PROMPTS = 6
_PROMPT = (1,)  # any will do where the logits are fixed, and the shortest takes the least time
# Of 11 tokens. top_p counts others before the division by a temperature, or before top_k.
_PROBABILITIES = (0.4, 0.25, 0.15, 0.1, 0.05, *[0.05 / 6] * 6)


class Writing(nn.Module):
    """An oracle of what writes: a language model of eleven tokens, whose weights can be set."""

    def vary(self) -> None:
        """Draws weights that make more of tokens than of positions.

        Then other tokens follow on other prompts.
        """
        raise NotImplementedError

    def fix_logits(self, logits: Tensor) -> None:
        """Takes weights with which the logits are these after any prompt.

        Args:
            logits: Shape `(11,)`.
        """
        raise NotImplementedError


def continued(model: nn.Module, ids: Tensor, eos_token: int | None = None) -> Tensor:
    """The prompts with the tokens of the highest logits, which are computed anew in each step.

    Args:
        model: Maps tokens to logits.
        ids: The prompts.
        eos_token: With what a row ends, and is filled up from then on.
    """
    model.eval()
    ended = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(_NEW):
        with torch.no_grad():
            new = model(ids)[:, -1].argmax(dim=-1)
        if eos_token is not None:
            new = new.masked_fill(ended, eos_token)
            ended |= new == eos_token
        ids = torch.cat([ids, new[:, None]], dim=1)
        if ended.all():
            break
    return ids


def written(model: Any, ids: Tensor, max_new_tokens: int = _NEW, **options: Any) -> Tensor:
    """What `generate` makes of prompts, and `stream` as well, where there is one.

    Args:
        model: What writes.
        ids: The prompts.
        max_new_tokens: How many tokens are added.
        **options: Further arguments of both.

    Raises:
        AssertionError: If the two differ.
        CannotTakeError: If there is no `generate`, or not with these options.
    """
    _require(model, "generate", "max_new_tokens", *options)
    greedily = {} if "temperature" in options else _greedily(model.generate)
    with seeded(1):
        result = model.generate(ids, max_new_tokens=max_new_tokens, **options, **greedily)
    if hasattr(model, "stream"):
        _require(model, "stream", "max_new_tokens", *options)
        with seeded(1):
            steps = list(model.stream(ids, max_new_tokens=max_new_tokens, **options))
        equivalent(torch.stack(steps, dim=1), result[:, ids.shape[1] :])
    return result


def written_past(model: Any, ids: Tensor, positions: int) -> Evidence:
    """Checks that a model whose positions are used up refuses, stops, or reads the last tokens.

    Args:
        model: What writes.
        ids: The prompts, fewer tokens than there are positions.
        positions: How many there are.

    Raises:
        AssertionError: If other tokens follow.
        CannotTakeError: If there is no `generate`, or it can only draw.
    """
    _require(model, "generate", "max_new_tokens")
    greedily = _greedily(model.generate)
    try:
        with seeded(1):
            found = model.generate(ids, max_new_tokens=positions, **greedily)
    except Exception:  # of any kind, as people refuse
        return holds(True, "it refuses")
    model.eval()
    expected = ids
    while expected.shape[1] < found.shape[1]:
        with torch.no_grad():
            new = model(expected[:, -positions:])[:, -1].argmax(dim=-1)
        expected = torch.cat([expected, new[:, None]], dim=1)
    return equivalent(found, expected)


def rows_ending_apart(theirs: Writing) -> tuple[Tensor, int]:
    """Gives an oracle weights with which rows end in three or more different steps.

    Args:
        theirs: What is given weights: the same ones for one seed of torch's generator.

    Returns:
        The prompts, and the token with which they end, which they do not hold.

    Raises:
        RuntimeError: If weights were drawn 200 times, and rows ended so with none of them.
    """
    weights, ids, eos_token = _ending_apart(theirs, torch.initial_seed())
    load(theirs, weights)
    return ids.clone(), eos_token


@lru_cache(maxsize=4)  # it takes longer than all that is asked then
def _ending_apart(theirs: Writing, seed: int) -> tuple[dict[str, Tensor], Tensor, int]:
    with seeded(seed):
        for _ in range(200):
            theirs.vary()
            ids = torch.randint(_OF_PROMPTS, (_ROWS, _SEQ))
            new = continued(theirs, ids)[:, _SEQ:]
            for eos_token in range(_OF_PROMPTS, len(_PROBABILITIES)):
                ends = new == eos_token
                steps = ends.int().argmax(dim=1)[ends.any(dim=1)]
                goes_on = continued(theirs, with_an_end(ids, eos_token))[:, _SEQ] != eos_token
                if len(steps.unique()) > 2 and goes_on.double().mean() > 0.5:
                    return weights_of(theirs), ids, eos_token
    raise RuntimeError("weights were drawn 200 times, and rows ended in three steps with none")


def with_an_end(ids: Tensor, eos_token: int) -> Tensor:
    """The prompts, with `eos_token` in front, and at the end of every other one."""
    ids = ids.clone()
    ids[:, 0] = eos_token
    ids[::2, -1] = eos_token
    return ids


def fix_logits(model: nn.Module, theirs: Writing) -> None:
    """Gives a model weights with which the logits are the same ones after any prompt.

    Args:
        model: What is given the weights.
        theirs: Its oracle, whose weights are changed and copied.
    """
    theirs.fix_logits(torch.tensor(_PROBABILITIES).log()[torch.randperm(len(_PROBABILITIES))])
    load(model, weights_of(theirs))


def drawn_from_nucleus(model: Any, top_p: float, top_k: int | None = None) -> Evidence:
    """Checks that tokens are drawn from the most likely ones at temperature 2.

    Args:
        model: What writes, with fixed logits.
        top_p: The probability that they have.
        top_k: Of how many tokens.

    Raises:
        AssertionError: If another token is drawn, or one of them too often or too rarely.
    """
    with torch.no_grad():
        logits = model.eval()(torch.tensor([_PROMPT]))[0, -1]
    expected = _nucleus(logits, 2.0, top_p, top_k)
    found = _shares_drawn(model, top_p, top_k)
    others = found[expected == 0].sum()
    holds(others == 0, "no token is drawn but the most likely ones")
    # Six standard errors of a share of a half.
    return equivalent(found, expected, atol=6 * 0.5 / math.sqrt(_DRAWS))


def drawn_from_ties(model: Any, theirs: Writing) -> Evidence:
    """Checks that of tokens that are as likely as the last of `top_k`, none is left out.

    Args:
        model: What writes.
        theirs: Its oracle, whose weights are changed and copied.

    Raises:
        AssertionError: If others are drawn than the three likeliest, of which two are equal.
    """
    likeliest = _fix_few(model, theirs, (1.0, 0.0, 0.0))
    return same(_tokens_drawn(model, temperature=1.0, top_k=2), set(likeliest))


def drawn_to_the_boundary(model: Any, theirs: Writing) -> Evidence:
    """Checks that of four equal tokens two are drawn where `top_p` is 0.5.

    Args:
        model: What writes.
        theirs: Its oracle, whose weights are changed and copied.

    Raises:
        AssertionError: If another number of them is drawn.
    """
    likeliest = _fix_few(model, theirs, (0.0, 0.0, 0.0, 0.0))
    drawn = _tokens_drawn(model, temperature=1.0, top_p=0.5)
    holds(drawn <= set(likeliest), "no token is drawn but the most likely ones")
    return same(len(drawn), 2)


def drawn_near_temperature_zero(model: Any, theirs: Writing) -> Evidence:
    """Checks that near temperature 0 the most likely token is drawn, as at 0.

    Args:
        model: What writes.
        theirs: Its oracle, whose weights are changed and copied.

    Raises:
        AssertionError: If another one is drawn.
    """
    likeliest, _ = _fix_few(model, theirs, (2.0, 1.0))
    model.float()
    for temperature in (1e-6, 1e-39):  # 2 / 1e-39 is more than float32 has
        evidence = same(_tokens_drawn(model, temperature=temperature), {likeliest})
    return evidence


def _fix_few(model: nn.Module, theirs: Writing, highest: Sequence[float]) -> list[int]:
    """Gives a model logits of which these are far above all others; returns their tokens."""
    tokens = torch.randperm(len(_PROBABILITIES))[: len(highest)]
    logits = torch.full((len(_PROBABILITIES),), -1e4, dtype=torch.float64)
    logits[tokens] = torch.tensor(highest, dtype=torch.float64)
    theirs.fix_logits(logits)
    load(model, weights_of(theirs))
    return [int(token) for token in tokens]


def _tokens_drawn(model: Any, **options: Any) -> set[int]:
    many = torch.tensor([_PROMPT]).expand(200, -1)  # one of three is left out once in 10**20 times
    return set(written(model, many, 1, **options)[:, -1].tolist())


def drawn_from_generator(model: Any) -> Evidence:
    """Checks that a generator that is handed over, and no other one, decides what is drawn.

    Args:
        model: What writes, with fixed logits.

    Raises:
        AssertionError: If equal seeds give other tokens, or other seeds the same, or if torch's
            global generator is used or moved.
        CannotTakeError: If there is no `generate`, or none that takes a generator.
    """
    for method in ("generate", "stream") if hasattr(model, "stream") else ("generate",):
        _require(model, method, "max_new_tokens", "temperature", "generator")
        generators = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
        first, again, other = (
            _drawn_from(model, method, generator, global_seed)
            for generator, global_seed in zip(generators, (1, 2, 1), strict=True)
        )
        holds(torch.equal(first, again), f"{method} draws the same with generators of one seed")
        following = _drawn_from(model, method, generators[0], 1)
        for drawn in (other, following):
            holds(not torch.equal(first, drawn), f"{method} draws anew with another state")
    return holds(True, "equal seeds draw equal tokens, and other seeds other ones")


def _drawn_from(model: Any, method: str, generator: torch.Generator, global_seed: int) -> Tensor:
    prompts = torch.tensor([_PROMPT]).expand(_ROWS, -1)
    options = {"max_new_tokens": _NEW, "temperature": 1.0, "generator": generator}
    with seeded(global_seed):
        before = torch.get_rng_state()
        found = getattr(model, method)(prompts, **options)
        drawn = found if isinstance(found, Tensor) else torch.stack(list(found), dim=1)
        still = torch.equal(torch.get_rng_state(), before)
    holds(still, f"{method} leaves torch's global generator as it is")
    return drawn


def told_by_writing(model: Any, theirs: Writing) -> Iterator[Tensor]:
    """What tells mistakes in writing apart.

    Args:
        model: A model with dropout.
        theirs: Its oracle, of which it is given the weights.
    """
    ids, eos_token = rows_ending_apart(theirs)
    load(model, weights_of(theirs))
    yield model.train().generate(ids, max_new_tokens=_NEW)
    for prompts in (ids, with_an_end(ids, eos_token)):
        yield model.generate(prompts, max_new_tokens=_NEW, eos_token=eos_token)
    fix_logits(model, theirs)
    for top_k in (None, 4):
        yield (_shares_drawn(model, 0.75, top_k) > 0).double()


def _greedily(generate: Callable[..., Tensor]) -> dict[str, Any]:
    """What has others' `generate` take the highest logits, which the book's does by default.

    Raises:
        CannotTakeError: If it draws by default, and takes nothing that would have it not draw.
    """
    takes = inspect.signature(generate).parameters
    named = {name: value for name, value in _GREEDY.items() if name in takes}
    if "temperature" in takes and takes["temperature"].default == 0:
        return {}
    if not named and takes.keys() & _OF_DRAWS:
        raise CannotTakeError(f"its generate draws, and takes no {' or '.join(_GREEDY)}")
    return dict([*named.items()][:1])


# With which others' models write the tokens of the highest logits; one of them is enough.
_GREEDY = {"greedy": True, "do_sample": False, "sample": False, "top_k": 1}
_OF_DRAWS = {"temperature", "top_p"}


def _require(model: Any, method: str, *names: str) -> None:
    if not hasattr(model, method):
        raise CannotTakeError(f"it has no {method}")
    known = inspect.signature(getattr(model, method)).parameters
    if missing := [name for name in names if name not in known]:
        raise CannotTakeError(f"its {method} takes no {' or '.join(missing)}")


def _nucleus(logits: Tensor, temperature: float, top_p: float, top_k: int | None) -> Tensor:
    """The probabilities, counted out: divide, take the first `top_k`, add up to `top_p`."""
    shares = [float(each) for each in (logits / temperature).softmax(dim=-1)]
    order = sorted(range(len(shares)), key=lambda token: -shares[token])[:top_k]
    total = sum(shares[token] for token in order)
    chosen: list[int] = []
    while sum(shares[token] for token in chosen) < top_p * total:
        chosen.append(order[len(chosen)])
    probabilities = torch.zeros(len(shares), dtype=torch.float64)
    probabilities[chosen] = torch.tensor(shares, dtype=torch.float64)[chosen]
    return probabilities / probabilities.sum()


def _shares_drawn(model: Any, top_p: float, top_k: int | None) -> Tensor:
    options = {"top_p": top_p} if top_k is None else {"top_p": top_p, "top_k": top_k}
    many = torch.tensor([_PROMPT]).expand(_DRAWS, -1)
    drawn = written(model, many, 1, temperature=2.0, **options)[:, -1]
    return torch.bincount(drawn, minlength=len(_PROBABILITIES)).double() / _DRAWS
