"""The small models of the pages: the same on every page, whatever a page has drawn before."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from transformer_layers import GPT2, GPT2Config
from transformer_training.toy_language.ablations import ABLATIONS
from transformer_training.toy_language.language import VERBS, WORDS, draw, encode, kind

N_POSITIONS = 11  # the longest text has eleven words


@contextmanager
def by_itself(seed: int) -> Iterator[torch.dtype]:
    """Seeds torch, in float64 on one thread of the CPU, leaves all as it was, gives the dtype."""
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    alone = torch.random.fork_rng(devices=[])
    with alone, torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
        try:
            torch.manual_seed(seed)
            # In float32 the rounding of one processor's kernels grows, in 800 updates, to
            # another model than that of the next processor.
            torch.set_default_dtype(torch.float64)
            torch.set_num_threads(1)  # sums in another order would be other sums
            yield dtype
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)


def trained_model(
    without: str | None = None,
    *,
    kinds: Sequence[str] = VERBS,
    n_layer: int = 1,
    n_head: int = 1,
    n_embd: int = 32,
    steps: int = 800,
    batch: int = 66,
    lr: float = 5e-3,
    lr_decay: bool = True,
    seed: int = 0,
) -> GPT2:
    """Trains a small GPT-2 on kinds of text, with a part taken out if one is named.

    It is the same model wherever it is trained: it is seeded by itself and trained in float64, so
    that its weights agree to some 1e-5 between processors. Torch's generators are left as they
    were. The model comes back in torch's default dtype.

    Args:
        without: The part that is taken out before training, a name in `ABLATIONS`; none if not
            given.
        kinds: The kinds of text that it learns, as many texts of each.
        n_layer: Number of blocks.
        n_head: Number of heads, a divisor of `n_embd`.
        n_embd: Width of the stream.
        steps: Updates.
        batch: Texts of each update, as many of each kind.
        lr: Learning rate of AdamW.
        lr_decay: Whether the rate falls in a straight line to zero over the second half of the
            updates. At a constant rate a model that has learned a kind can lose it again.
        seed: Of the first weights and of the texts.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: If no part, or no kind, has the name, or none is named to train on.

    Examples:
        >>> trained_model(steps=0).config.n_embd
        32
    """
    if without is not None and without not in ABLATIONS:
        raise ValueError(f"the parts are {', '.join(ABLATIONS)}; got {without!r}")
    if not kinds:
        raise ValueError("name at least one kind of text to train on")
    with by_itself(seed) as dtype:
        config = GPT2Config(
            vocab_size=len(WORDS),
            n_positions=N_POSITIONS,
            n_embd=n_embd,
            n_layer=n_layer,
            n_head=n_head,
            dropout=0.0,
        )
        model = GPT2(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 2:
                    parameter.mul_(5)  # so small a model starts sooner with larger weights
        if without is not None:
            ABLATIONS[without](model)
        learning = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.AdamW(learning, lr=lr, fused=True)

        def factor(step: int) -> float:
            return min(1.0, 2.0 * (1.0 - step / steps)) if lr_decay and steps else 1.0

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        for _ in range(steps):
            loss = model.loss(draw(kinds, batch // len(kinds)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        trained = model.eval().to(dtype)  # here, where no inference mode makes it untrainable
    return trained


@torch.no_grad()
def share_right(model: GPT2, name: str) -> float:
    """The share of a kind's texts in which the model scores the right word highest of the choices.

    Args:
        model: A model of the language.
        name: Of the kind; all of its texts are asked.

    Returns:
        The share, from 0 to 1; by chance it is `kind(name).chance`.

    Raises:
        ValueError: If no kind has the name.

    Examples:
        >>> share_right(trained_model(steps=100), "and")
        1.0
    """
    asked = kind(name)
    choices = encode(" ".join(asked.choices))
    scores = model(asked.prompts)[:, -1, choices]
    return (choices[scores.argmax(dim=-1)] == asked.right).double().mean().item()
