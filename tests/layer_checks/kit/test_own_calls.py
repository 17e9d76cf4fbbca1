"""Models that are told of padding, and of a past, in forms of their own."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.own_calls import in_steps, under_padding

IDS = torch.tensor([[3, 1, 4, 1, 5], [2, 6, 5, 3, 5]])
SIZES = (2, 2, 1)


class Sums(nn.Module):
    """Of each position the sum of what it sees, and what its position adds."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.randn(7, 4, dtype=torch.float64)
        self.places = torch.randn(9, 4, dtype=torch.float64)

    def sums(self, ids: Tensor, keeps: Tensor | None = None) -> Tensor:
        seen = self.tokens[ids]
        return (seen if keeps is None else seen * keeps[..., None]).cumsum(1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.sums(ids) + self.places[: ids.shape[1]]


class CountsTokens(Sums):
    first = 0

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            return super().forward(ids)
        places = (attention_mask.cumsum(-1) - 1 + self.first).clamp(min=0)
        return self.sums(ids, attention_mask) + self.places[places]


class CountsFromOne(CountsTokens):
    first = 1


class CountsPlaces(Sums):
    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.sums(ids, attention_mask) + self.places[: ids.shape[1]]


class SeesPadding(CountsTokens):
    def sums(self, ids: Tensor, keeps: Tensor | None = None) -> Tensor:
        return super().sums(ids)


class Hides(Sums):
    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        hides = torch.zeros_like(ids) if key_padding_mask is None else key_padding_mask
        return self.sums(ids, ~hides.bool()) + self.places[: ids.shape[1]]


class Keeps(Sums):
    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        return self.sums(ids, key_padding_mask) + self.places[: ids.shape[1]]


def by_place(model: Sums) -> Callable[[Tensor, int], Tensor]:
    return lambda ids, past: model.sums(ids) + model.places[past : past + ids.shape[1]]


@pytest.mark.parametrize("kind", [CountsTokens, CountsPlaces, Hides, Keeps])
def test_padding_is_hidden_in_the_form_that_a_model_has_for_it(kind: type[Sums]) -> None:
    model = kind()
    assert under_padding(model, IDS, 1e-12, by_place(model))


@pytest.mark.parametrize("kind", [CountsFromOne, SeesPadding])
def test_what_a_mask_moves_is_said(kind: type[Sums]) -> None:
    model = kind()
    with pytest.raises(AssertionError, match="not equal"):
        under_padding(model, IDS, 1e-12, by_place(model))


def test_a_model_without_padding_is_not_asked() -> None:
    with pytest.raises(CannotTakeError, match="its call takes no mask of padding"):
        under_padding(Sums(), IDS, 1e-12)


class FromAStart(Sums):
    """Keeps the sum itself; a number says where a part begins."""

    behind = 0

    def forward(self, ids: Tensor, start_pos: int = 0) -> Tensor:
        past = self.kept if start_pos else 0
        sums = self.sums(ids) + past
        self.kept = sums[:, -1:]
        return sums + self.places[start_pos + self.behind :][: ids.shape[1]]


class OneBehind(FromAStart):
    def forward(self, ids: Tensor, start_pos: int = 0) -> Tensor:
        self.behind = int(start_pos > 0)
        return super().forward(ids, start_pos)


class TokenByToken(FromAStart):
    def forward(self, ids: Tensor, start_pos: int = 0) -> Tensor:
        if start_pos and ids.shape[1] > 1:
            raise ValueError("one token at a time")
        return super().forward(ids, start_pos)


class PlacesAlone(Sums):
    def forward(self, ids: Tensor, start_pos: int = 0) -> Tensor:
        return self.sums(ids) + self.places[start_pos:][: ids.shape[1]]


@dataclass
class Cache:
    total: Tensor | float = 0.0
    length: int = 0


class WithAnObject(Sums):
    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        cache = Cache() if cache is None else cache
        sums = self.sums(ids) + cache.total
        logits = sums + self.places[cache.length :][: ids.shape[1]]
        cache.total, cache.length = sums[:, -1:], cache.length + ids.shape[1]
        return logits


class ForgetsTheLength(WithAnObject):
    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            cache.length = 0
        return super().forward(ids, cache)


class ReturnsIt(Sums):
    def forward(
        self, ids: Tensor, past: tuple[Tensor, int] | None = None, use_cache: bool = False
    ) -> tuple[Tensor, tuple[Tensor, int] | None]:
        total, length = past or (torch.zeros(1), 0)
        sums = self.sums(ids) + total
        found = sums + self.places[length:][: ids.shape[1]]
        return found, (sums[:, -1:], length + ids.shape[1]) if use_cache else None


@pytest.mark.parametrize("kind", [FromAStart, TokenByToken, WithAnObject, ReturnsIt])
def test_steps_give_what_the_whole_text_does(kind: type[Sums]) -> None:
    model = kind()
    whole = Sums.forward(model, IDS)
    steps = in_steps(model, IDS, SIZES)
    assert steps is not None
    torch.testing.assert_close(steps, whole)


@pytest.mark.parametrize("kind", [OneBehind, ForgetsTheLength])
def test_steps_show_a_past_that_is_lost(kind: type[Sums]) -> None:
    model = kind()
    steps = in_steps(model, IDS, SIZES)
    assert steps is not None
    assert not torch.allclose(steps, Sums.forward(model, IDS))


@pytest.mark.parametrize("kind", [Sums, PlacesAlone])
def test_a_model_without_a_past_is_not_asked(kind: type[Sums]) -> None:
    assert in_steps(kind(), IDS, SIZES) is None


class Refuses(WithAnObject):
    def forward(self, ids: Tensor, cache: Cache | None = None) -> Tensor:
        if cache is not None:
            raise RuntimeError("call setup first")
        return super().forward(ids)


def test_a_past_that_cannot_be_handed_on_is_not_asked() -> None:
    with pytest.raises(CannotTakeError, match="RuntimeError: call setup first"):
        in_steps(Refuses(), IDS, SIZES)
