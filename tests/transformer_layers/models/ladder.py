"""The ladder: a model against that of `transformers` with the same weights, step by step.

There is one for all models. The tests of a model inherit `Ladder`, and name in a `Reference` what
it is held against.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar
from unittest import mock

import pytest
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from tests.transformer_layers.comparisons import (
    FLOAT64_TOLERANCE,
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from transformer_layers import attention_weights, causal_mask
from transformer_layers.attention import causal
from transformer_layers.attention.kernel import fused_attention

BATCH = 3
IN_PIECES: dict[str, Callable[[int], list[int]]] = {
    "with one alone": lambda seq: [5, 1, seq - 6],
    "with none": lambda seq: [3, 0, seq - 3],
}


def steps_of(
    whole: Mapping[str, str], in_each_block: Mapping[str, str], blocks: int
) -> dict[str, list[str]]:
    """What is compared: the names of layers by what they compute.

    Args:
        whole: Those outside the blocks. What is compared is the output, or the input of one that is
            named `input of NAME`.
        in_each_block: Those in each block, with `{}` for its number.
        blocks: How many there are.
    """
    attention = {"scores": "scores of block {}", "weights": "weights of block {}"}
    inside = {**in_each_block, **attention}.items()
    return {
        **{step: [name] for step, name in {**whole, "logits": "logits"}.items()},
        **{step: [name.format(i) for i in range(blocks)] for step, name in inside},
    }


@dataclass(frozen=True, eq=False)
class Reference:
    """What a model is held against.

    Attributes:
        model: Makes the model, without dropout.
        theirs: Makes that of `transformers`, with attention of the implementation that is named.
        their_name: What it calls a layer or a weight of the model.
        their_attention: The name of its layer that returns attention's weights, with `{}` for the
            number of the block.
        steps: As `steps_of` makes them.
        canceling: Ends of the names of weights whose gradient is what is left of larger terms, so
            that much of it is rounding.
        tolerance: Relative to the largest element, in float64.
    """

    model: Callable[[], nn.Module]
    theirs: Callable[[str], nn.Module]
    their_name: Callable[[str], str]
    their_attention: str
    steps: Mapping[str, list[str]]
    canceling: tuple[str, ...] = ()
    tolerance: float = FLOAT64_TOLERANCE

    def random_model(self) -> Any:
        """The model with random weights in float64."""
        return with_random_weights(self.model()).double()

    def random_ids(self, seq: int | None = None) -> Tensor:
        """A batch of tokens; three fewer than there are positions, if it is not said how many."""
        model: Any = self.model()
        return torch.randint(model.vocab_size, (BATCH, seq or model.max_seq - 3))

    def their_model(self, model: nn.Module, implementation: str = "eager") -> Any:
        """That of `transformers` with the model's weights; eager shows attention's weights."""
        theirs = self.theirs(implementation).double()
        weights = {self.their_name(name): each for name, each in model.state_dict().items()}
        missing, unexpected = theirs.load_state_dict(weights, strict=False)
        assert not unexpected
        assert set(missing) <= {"lm_head.weight"}  # where it is the embedding
        return theirs

    def their_parameters(self, model: nn.Module, theirs: nn.Module) -> dict[str, nn.Parameter]:
        """Theirs by the model's names."""
        names = [name for name, _ in model.named_parameters()]
        return {name: theirs.get_parameter(self.their_name(name)) for name in names}


def shifted_cross_entropy(logits: Tensor, ids: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@cache
def both_forwards(
    reference: Reference, dtype: torch.dtype, seed: int = 0
) -> list[dict[str, Tensor]]:
    """What the layers of both models take and give, by the names of ours."""
    torch.manual_seed(seed)
    model, ids = reference.random_model(), reference.random_ids()
    theirs = reference.their_model(model).to(dtype)
    return [
        _forward(reference, model.to(dtype), ids, str),
        _forward(reference, theirs, ids, reference.their_name),
    ]


def _forward(
    reference: Reference, model: Any, ids: Tensor, name_of: Callable[[str], str]
) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    weights: list[Tensor] = []

    def note(name: str) -> Callable[..., None]:
        def hook(layer: nn.Module, inputs: Any, output: Any) -> None:
            found[f"input of {name}"] = inputs[0]
            found[name] = output[0] if isinstance(output, tuple) else output

        return hook

    def attended(query: Tensor, key: Tensor, *others: Any) -> Tensor:
        window = others[1]  # a mask where there is one, as with a sliding window
        mask = causal_mask(ids.shape[-1]) if window is None else window
        read = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
        weights.append(attention_weights(query, read, mask))
        return fused_attention(query, key, *others)

    names = {name.removeprefix("input of ") for each in reference.steps.values() for name in each}
    for name in names:
        if " " not in name and name != "logits":
            model.get_submodule(name_of(name)).register_forward_hook(note(name))
    if name_of is reference.their_name:
        for i in range(len(reference.steps["weights"])):
            attention = model.get_submodule(reference.their_attention.format(i))
            attention.register_forward_hook(lambda *called: weights.append(called[-1][1]))
    with mock.patch.object(causal, "fused_attention", attended):
        output = model(ids)
    found["logits"] = output if isinstance(output, Tensor) else output.logits
    for i, each in enumerate(weights):
        found[f"weights of block {i}"] = each
        # The logarithm of the weights is the scores, but for a number for each row; 0 for those
        # that a window hides.
        scores = each[..., causal_mask(ids.shape[-1])].log()
        found[f"scores of block {i}"] = scores.nan_to_num(neginf=0.0)
    # Positions are embedded with an axis for the batch, or without one.
    return {name: each.detach().squeeze(0) for name, each in found.items()}


@cache
def both_losses_and_gradients(
    reference: Reference, dtype: torch.dtype, seed: int = 0
) -> list[dict[str, Tensor]]:
    """The loss, and the gradient of each weight by its name."""
    torch.manual_seed(seed)
    model, ids = reference.random_model(), reference.random_ids()
    theirs = reference.their_model(model).to(dtype)
    model = model.to(dtype)
    # Their own loss is computed in float32 whatever the dtype.
    losses = [model.loss(ids), shifted_cross_entropy(theirs(ids).logits, ids)]
    parameters = [dict(model.named_parameters()), reference.their_parameters(model, theirs)]
    return [
        {
            "loss": loss.detach(),
            **dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True)),
        }
        for loss, named in zip(losses, parameters, strict=True)
    ]


DRAWS = 8
_Both = Callable[[Reference, torch.dtype, int], list[dict[str, Tensor]]]


def _draws(both: _Both, reference: Reference) -> list[list[dict[str, Tensor]]]:
    """Ours and theirs in float32, and ours in float64, of each draw."""
    return [
        [*both(reference, torch.float32, seed), both(reference, torch.float64, seed)[0]]
        for seed in range(DRAWS)
    ]


def assert_as_near_as_theirs(draws: Iterable[Sequence[Tensor]]) -> None:
    """Rounding to float32 moves ours about as much as theirs; a mistake would move it far more.

    One draw says little: either may be near by chance, on one kind of processor and not on the
    next. So the geometric means of several are compared, each error counted as four roundings at
    least. Ours was at most 3.4 times theirs on each kind that was tried, where attention's weights
    are computed once more for the gradients of query and key.

    Args:
        draws: Ours, theirs, and what is exact, of each draw.
    """
    errors = torch.tensor(
        [[relative_error(each, exact) for each in both] for *both, exact in draws],
        dtype=torch.float64,
    )
    least = 4 * unit_roundoff(torch.float32)
    ours, theirs = errors.clamp(min=least).log().mean(dim=0).exp().tolist()
    assert ours <= 8 * theirs


class Ladder:
    """The tests; a class that derives from it has the reference."""

    reference: ClassVar[Reference]

    def test_every_step_equals_that_of_transformers_in_float64(self) -> None:
        ours, theirs = both_forwards(self.reference, torch.float64)
        for name in (name for names in self.reference.steps.values() for name in names):
            assert_same([ours[name]], [theirs[name]], self.reference.tolerance)

    def test_every_step_is_as_exact_as_that_of_transformers_in_float32(self) -> None:
        draws = _draws(both_forwards, self.reference)
        for name in (name for names in self.reference.steps.values() for name in names):
            assert draws[0][0][name].dtype == torch.float32
            assert_as_near_as_theirs([[each[name] for each in draw] for draw in draws])

    def test_the_loss_and_every_gradient_equal_those_of_transformers_in_float64(self) -> None:
        ours, theirs = both_losses_and_gradients(self.reference, torch.float64)
        gradients = [name for name in ours if name != "loss"]
        for names in (["loss"], gradients):
            expected = [theirs[name] for name in names]
            assert_same([ours[name] for name in names], expected, self.reference.tolerance)

    def test_the_loss_and_every_gradient_are_as_exact_in_float32(self) -> None:
        draws = _draws(both_losses_and_gradients, self.reference)
        for name in draws[0][0]:
            if not name.endswith(self.reference.canceling):
                assert_as_near_as_theirs([[each[name] for each in draw] for draw in draws])

    def test_logits_and_their_gradients_equal_those_of_transformers(self) -> None:
        model, ids = self.reference.random_model(), self.reference.random_ids()
        theirs = self.reference.their_model(model, "sdpa")
        parameters = list(self.reference.their_parameters(model, theirs).values())
        expected = values_and_gradients(lambda ids: theirs(ids).logits, [ids], parameters)
        actual = values_and_gradients(model, [ids], list(model.parameters()))
        assert_same(actual, expected, self.reference.tolerance)

    def test_the_last_hidden_state_is_what_the_head_scores(self) -> None:
        model, ids = self.reference.random_model(), self.reference.random_ids()
        hidden_state = model.last_hidden_state(ids)
        expected = self.reference.their_model(model).base_model(ids).last_hidden_state
        assert_same([hidden_state], [expected], self.reference.tolerance)
        assert torch.equal(model.logits(hidden_state), model(ids))

    @pytest.mark.parametrize("pieces", IN_PIECES)
    def test_with_a_cache_logits_keys_and_values_equal_those_of_transformers(
        self, pieces: str
    ) -> None:
        model, ids = self.reference.random_model(), self.reference.random_ids()
        theirs, their_cache = self.reference.their_model(model), DynamicCache()
        caches = model.new_caches(BATCH, ids.shape[1])
        for piece in ids.split(IN_PIECES[pieces](ids.shape[1]), dim=1):
            if piece.numel() == 0:  # theirs refuses it
                assert model(piece, caches).shape == (BATCH, 0, model.vocab_size)
                continue
            expected = theirs(piece, past_key_values=their_cache, use_cache=True).logits
            assert_same([model(piece, caches)], [expected], self.reference.tolerance)
        their_layers: Any = their_cache.layers
        for ours, their_layer in zip(caches, their_layers, strict=True):
            expected = [their_layer.keys, their_layer.values]
            nothing = expected[0][:, :, :0]
            assert_same(ours.append(nothing, nothing), expected, self.reference.tolerance)

    def test_greedy_tokens_are_those_of_transformers(self) -> None:
        model, ids = self.reference.random_model(), self.reference.random_ids(seq=7)
        expected = self.reference.their_model(model).generate(
            ids,
            attention_mask=torch.ones_like(ids),  # else it takes each token 0 for padding
            max_new_tokens=model.max_seq - 7,
            do_sample=False,
            pad_token_id=0,
        )
        assert torch.equal(model.generate(ids, model.max_seq - 7), expected)
