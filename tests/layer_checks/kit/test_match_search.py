"""One of a reader's weights may hold any two or more of ours, in any order."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks import check
from layer_checks.kit.definitions import Layer
from layer_checks.kit.match_search import matches
from transformer_layers import FeedForward


class Packed(nn.Module):
    """Attention of which some projections are one: `order` has their first letters."""

    order, name, by_heads = "kv", "kv_proj", False

    def __init__(
        self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.num_heads, self.p = num_heads, dropout
        self.add_module(self.name, nn.Linear(d_model, len(self.order) * d_model, bias))
        for letter in set("qkv") - set(self.order):
            self.add_module(f"{letter}_proj", nn.Linear(d_model, d_model, bias))
        self.out_proj = nn.Linear(d_model, d_model, bias)

    def projected(self, letter: str, x: Tensor) -> Tensor:
        if letter not in self.order:
            y = self.get_submodule(f"{letter}_proj")(x).unflatten(-1, (self.num_heads, -1))
            return y.transpose(-3, -2)
        y, count, place = (
            self.get_submodule(self.name)(x),
            len(self.order),
            self.order.index(letter),
        )
        if self.by_heads:
            return y.unflatten(-1, (self.num_heads, count, -1))[..., place, :].transpose(-3, -2)
        return y.chunk(count, -1)[place].unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        query, key, value = map(self.projected, "qkv", (query, key, value))
        scores = query @ key.mT / self.scale(query)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3 if mask.ndim == 3 else 0), -torch.inf)
        weights = functional.dropout(scores.softmax(-1).nan_to_num(0.0), self.p, self.training)
        return self.out_proj((weights @ value).transpose(-3, -2).flatten(-2))

    def scale(self, query: Tensor) -> float:
        return query.shape[-1] ** 0.5


def told(report: object) -> str:
    """How the first weight was matched."""
    return report.matching.removeprefix("by order: ").split(", ")[0]


@pytest.mark.parametrize(
    ("order", "name", "by_heads", "expected"),
    [
        ("kv", "kv_proj", False, "key_proj + value_proj (packed)"),
        ("kqv", "in_proj", False, "key_proj + query_proj + value_proj (packed)"),
        ("vkq", "proj", True, "value_proj + key_proj + query_proj (packed by heads)"),
    ],
)
def test_attention_may_pack_any_two_or_all(
    order: str, name: str, by_heads: bool, expected: str
) -> None:
    made = type("Made", (Packed,), {"order": order, "name": name, "by_heads": by_heads})
    report = check("MultiHeadAttention", made)
    assert report
    assert told(report) == f"{name} <- {expected}"


def test_packed_attention_that_is_wrong_is_caught_and_named() -> None:
    class Unscaled(Packed):
        def scale(self, query: Tensor) -> float:
            return 1.0

    report = check("MultiHeadAttention", Unscaled)
    assert not report
    assert report.behaves_like.name == "not scaled"


class Fused(nn.Module):
    """A gated layer as Phi-3 has it: one projection, of which the halves are split."""

    name, gate_first, by_rows = "gate_up_proj", True, False

    def __init__(self, hidden_size: int, intermediate_size: int, bias: bool = False) -> None:
        super().__init__()
        self.add_module(self.name, nn.Linear(hidden_size, 2 * intermediate_size, bias))
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias)

    def forward(self, x: Tensor) -> Tensor:
        y = self.get_submodule(self.name)(x)
        halves = (y[..., ::2], y[..., 1::2]) if self.by_rows else y.chunk(2, -1)
        return self.down_proj(self.inner(*halves if self.gate_first else reversed(halves)))

    def inner(self, gate: Tensor, up: Tensor) -> Tensor:
        return functional.silu(gate) * up


class UpFirst(Fused):
    gate_first = False


NAMES = {f"{part}_proj.weight": "gate_up_proj.weight" for part in ("gate", "up")}


@pytest.mark.usefixtures("gated")
class TestGated:
    @pytest.mark.parametrize(
        ("name", "gate_first", "by_rows"),
        [("gate_up_proj", True, False), ("gate_up_proj", False, True), ("fc1", False, False)],
    )
    def test_both_orders_of_the_halves_are_right(
        self, name: str, gate_first: bool, by_rows: bool
    ) -> None:
        options = {"name": name, "gate_first": gate_first, "by_rows": by_rows}
        report = check("Gated", type("Made", (Fused,), options))
        assert report
        order = "gate_proj + up_proj" if gate_first else "up_proj + gate_proj"
        assert told(report) == f"{name} <- {order} (packed{' by rows' if by_rows else ''})"
        contrary = name == ("up_gate_proj" if gate_first else "gate_up_proj")
        said = f"its {name} is read in another order than that of its name"
        assert (said in report.notes) == contrary

    def test_names_tell_which_half_is_which(self) -> None:
        assert check("Gated", Fused, names=NAMES)
        assert check("Gated", UpFirst, names=dict(reversed(NAMES.items())))
        report = check("Gated", UpFirst, names=NAMES)
        assert not report
        assert report.behaves_like.name == "activation on the wrong half"

    def test_wrong_ones_are_caught(self) -> None:
        class OnTheProduct(Fused):
            def inner(self, gate: Tensor, up: Tensor) -> Tensor:
                return functional.silu(gate * up)

        class OnBoth(Fused):
            def inner(self, gate: Tensor, up: Tensor) -> Tensor:
                return functional.silu(gate) * functional.silu(up)

        report = check("Gated", OnTheProduct)
        assert not report
        assert report.behaves_like.name == "activation on the product"
        assert not check("Gated", OnBoth)

    def test_names_that_are_understood_are_not_doubted(self) -> None:
        class Apart(nn.Module):
            def __init__(self, d_model: int, d_ff: int, bias: bool = False) -> None:
                super().__init__()
                self.w1, self.w3 = (nn.Linear(d_model, d_ff, bias) for _ in range(2))
                self.w2 = nn.Linear(d_ff, d_model, bias)

            def forward(self, x: Tensor) -> Tensor:
                return self.w2(self.w1(x) * functional.silu(self.w3(x)))

        report = check("Gated", Apart)
        assert not report
        assert report.behaves_like.name == "activation on the wrong half"

    def test_modules_at_their_own_sizes(self) -> None:
        report = check("Gated", UpFirst(6, 8, bias=True))
        assert report
        assert report.results[0].name == "values at its own sizes"


@pytest.mark.parametrize(
    ("layer", "module"),
    [
        ("FeedForward", FeedForward(6, 9)),
        ("TransformerEncoderLayer", nn.TransformerEncoderLayer(6, 2, 9, batch_first=True)),
    ],
)
def test_a_right_module_is_right_at_its_own_sizes(layer: str, module: nn.Module) -> None:
    report = check(layer, module)
    assert report
    assert report.results[0].name == "values at its own sizes"


class Held(nn.Module):
    """Parameters of some names and shapes."""

    def __init__(self, num_heads: int, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.num_heads = num_heads
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))


# As many heads of queries as 4, and of keys and values 2, of 3 numbers each.
WEIGHTS = {
    "q_proj.weight": torch.randn(12, 5, generator=torch.Generator().manual_seed(0)),
    "k_proj.weight": torch.randn(6, 5, generator=torch.Generator().manual_seed(1)),
    "v_proj.weight": torch.randn(6, 5, generator=torch.Generator().manual_seed(2)),
}
GROUPED = Layer("grouped", "grouped(x)", lambda candidate: None, lambda candidate: [])


def test_projections_of_several_sizes_are_packed_in_each_way_and_taken_apart_again() -> None:
    layer = Held(4, qkv_weight=(5, 24))
    parameters = dict(layer.named_parameters())
    found = list(matches(parameters, WEIGHTS, layer=GROUPED, heads=4))
    assert len({str(match) for match in found}) == len(found) == 2 * 6  # by heads or not
    for match in found:
        held = match.weights_for(layer, WEIGHTS)
        assert held["qkv_weight"].shape == (5, 24)
        again = match.as_ours(layer, WEIGHTS, held)
        assert all(torch.equal(again[name], weight) for name, weight in WEIGHTS.items())


def test_what_no_shape_allows_is_left_out() -> None:
    parameters = {"other.weight": torch.zeros(23, 5)}
    (match,) = matches(parameters, WEIGHTS, layer=GROUPED, heads=4)
    assert match.sources == {}
    assert match.left == ("other.weight",)


def test_many_projections_of_one_size_are_no_endless_search() -> None:
    weights = {f"part{number}.weight": torch.zeros(2, 3) for number in range(40)}
    parameters = {"other.weight": torch.zeros(7, 3)}
    assert len(list(matches(parameters, weights, layer=GROUPED))) == 1
    parameters = {"other.weight": torch.zeros(40, 3)}
    assert len(list(matches(parameters, weights, layer=GROUPED))) == 150


def test_what_the_book_packs_may_be_packed_otherwise() -> None:
    class KeysAndValues(nn.Module):
        """Queries by themselves, and values before keys."""

        def __init__(self, d_model: int, num_heads: int, dropout: float = 0.1) -> None:
            super().__init__()
            self.num_heads, self.p = num_heads, dropout
            self.to_q, self.to_vk = nn.Linear(d_model, d_model), nn.Linear(d_model, 2 * d_model)
            self.to_out = nn.Linear(d_model, d_model)

        def forward(self, x: Tensor) -> Tensor:
            value, key = self.to_vk(x).chunk(2, -1)
            heads = (
                each.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2)
                for each in (self.to_q(x), key, value)
            )
            p = self.p if self.training else 0.0
            y = functional.scaled_dot_product_attention(*heads, is_causal=True, dropout_p=p)
            return functional.dropout(self.to_out(y.transpose(-3, -2).flatten(-2)), p)

    report = check("CausalSelfAttention", KeysAndValues)
    assert {result.word for result in report.law} <= {"held", "unasked"}, report
    assert "to_vk <- value of c_attn + key of c_attn (transposed, packed)" in report.matching
