"""Mixtures of experts, by hand and against the routers and losses of `transformers`."""

import pytest
import torch
from torch import nn
from transformers import DeepseekV3Config, MixtralConfig, Qwen3MoeConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.mixtral import modeling_mixtral as mixtral
from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3_moe

from tests.transformer_layers.comparisons import assert_same, with_random_weights
from transformer_layers import (
    GatedFeedForward,
    MixtureOfExperts,
    SigmoidRouter,
    TopKRouter,
    balanced_bias,
    load_balancing_loss,
    router_scores,
    router_z_loss,
)

D_MODEL, D_FF, EXPERTS = 6, 5, 8


def of_sums(x, layer, weights, chosen):
    """A token at a time, and for each the experts one by one."""
    found = torch.zeros_like(x)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in x.shape[:-1])).tolist():
        where = tuple(place) if isinstance(place, list) else (place,)
        for weight, expert in zip(weights[where], chosen[where].tolist(), strict=True):
            found[where] += weight * layer.experts[expert](x[where])
    return found


@pytest.mark.parametrize(("top_k", "renormalize"), [(1, False), (3, True)])
def test_the_layer_is_the_weighted_sum_of_the_chosen_experts(top_k, renormalize):
    router = TopKRouter(D_MODEL, EXPERTS, top_k, renormalize)
    layer = MixtureOfExperts(D_MODEL, D_FF, EXPERTS, top_k, router)
    layer = with_random_weights(layer).double()
    x = torch.randn(3, 4, D_MODEL, dtype=torch.float64)
    assert_same([layer(x)], [of_sums(x, layer, *router(x))])


def test_a_shared_layer_sees_every_token():
    shared = GatedFeedForward(D_MODEL, 3)
    layer = MixtureOfExperts(D_MODEL, D_FF, EXPERTS, 2, shared=shared)
    layer = with_random_weights(layer).double()
    x = torch.randn(7, D_MODEL, dtype=torch.float64)
    expected = of_sums(x, layer, *layer.router(x)) + layer.shared(x)
    assert_same([layer(x)], [expected])


def test_gradients_reach_the_router_unless_one_renormalized_weight_is_all():
    x = torch.randn(9, D_MODEL)
    for top_k, renormalize, reached in [(2, True, True), (1, False, True), (1, True, False)]:
        router = TopKRouter(D_MODEL, EXPERTS, top_k, renormalize)
        layer = with_random_weights(MixtureOfExperts(D_MODEL, D_FF, EXPERTS, top_k, router))
        layer(x).square().sum().backward()
        assert (router.scores.weight.grad.abs().max() > 1e-4) == reached


def test_an_expert_that_overflows_hurts_its_own_tokens_alone():
    layer = with_random_weights(MixtureOfExperts(D_MODEL, D_FF, 2, 1))
    with torch.no_grad():
        layer.router.scores.weight.copy_(torch.eye(2, D_MODEL) * 9)
        layer.experts[1].down_proj.weight.fill_(torch.inf)
    x = torch.eye(2, D_MODEL)
    for found in (layer(x), torch.func.vmap(layer)(x)):
        assert found[0].isfinite().all()
        assert not found[1].isfinite().any()


def theirs_with_weights_of(ours, theirs):
    """Their stacked experts, with the weights of ours."""
    with torch.no_grad():
        theirs.gate.weight.copy_(ours.router.scores.weight)
        for number, expert in enumerate(ours.experts):
            both = torch.cat([expert.gate_proj.weight, expert.up_proj.weight])
            theirs.experts.gate_up_proj[number].copy_(both)
            theirs.experts.down_proj[number].copy_(expert.down_proj.weight)
    return theirs


SIZES = {"hidden_size": D_MODEL, "num_experts_per_tok": 3, "experts_implementation": "eager"}
MIXTRAL = MixtralConfig(**SIZES, intermediate_size=D_FF, num_local_experts=EXPERTS)


def qwen(renormalize):
    return Qwen3MoeConfig(
        **SIZES, moe_intermediate_size=D_FF, num_experts=EXPERTS, norm_topk_prob=renormalize
    )


@pytest.mark.parametrize(
    ("kind", "config", "renormalize"),
    [
        (mixtral.MixtralSparseMoeBlock, MIXTRAL, True),
        (qwen3_moe.Qwen3MoeSparseMoeBlock, qwen(True), True),
        (qwen3_moe.Qwen3MoeSparseMoeBlock, qwen(False), False),
    ],
)
def test_values_and_gradients_equal_those_of_transformers(kind, config, renormalize):
    router = TopKRouter(D_MODEL, EXPERTS, 3, renormalize)
    ours = with_random_weights(MixtureOfExperts(D_MODEL, D_FF, EXPERTS, 3, router))
    theirs = theirs_with_weights_of(ours, kind(config))
    x, other = (
        torch.randn(2, 7, D_MODEL, generator=torch.Generator().manual_seed(1)) for _ in "ab"
    )
    y, z = x.clone().requires_grad_(), other.copy_(x).requires_grad_()
    found, expected = ours(y), theirs(z)
    assert_same([found], [expected], tolerance=1e-6)
    cotangent = torch.randn(found.shape)
    (found * cotangent).sum().backward()
    (expected * cotangent).sum().backward()
    gates = [torch.cat([e.gate_proj.weight.grad, e.up_proj.weight.grad]) for e in ours.experts]
    downs = [e.down_proj.weight.grad for e in ours.experts]
    assert_same(
        [y.grad, router.scores.weight.grad, torch.stack(gates), torch.stack(downs)],
        [
            z.grad,
            theirs.gate.weight.grad,
            theirs.experts.gate_up_proj.grad,
            theirs.experts.down_proj.grad,
        ],
        tolerance=1e-5,
    )


@pytest.mark.parametrize(("groups", "renormalize"), [(1, True), (4, False)])
def test_the_sigmoid_router_is_that_of_deepseek(groups, renormalize):
    top_groups = max(1, groups // 2)
    config = DeepseekV3Config(
        hidden_size=D_MODEL,
        moe_intermediate_size=D_FF,
        n_routed_experts=EXPERTS,
        num_experts_per_tok=2,
        n_group=groups,
        topk_group=top_groups,
        norm_topk_prob=renormalize,
        routed_scaling_factor=1.7,
        n_shared_experts=1,
        experts_implementation="eager",
    )
    router = SigmoidRouter(
        D_MODEL, EXPERTS, 2, groups, top_groups, renormalize=renormalize, scale=1.7
    )
    shared = GatedFeedForward(D_MODEL, D_FF)
    ours = with_random_weights(MixtureOfExperts(D_MODEL, D_FF, EXPERTS, 2, router, shared))
    router.bias.copy_(torch.linspace(-0.5, 0.5, EXPERTS))
    theirs = theirs_with_weights_of(ours, DeepseekV3MoE(config))
    theirs.gate.e_score_correction_bias.copy_(router.bias)
    theirs.shared_experts.load_state_dict(shared.state_dict())
    x = torch.randn(3, 11, D_MODEL)
    assert_same([ours(x)], [theirs(x)], tolerance=1e-6)


def test_renormalizing_is_a_softmax_of_the_chosen_scores():
    router = TopKRouter(D_MODEL, EXPERTS, 3).double()
    x = torch.randn(50, D_MODEL, dtype=torch.float64)
    weights, chosen = router(x)
    assert_same([weights], [router.scores(x).gather(-1, chosen).softmax(-1)])


def test_the_balance_of_even_routing_is_1_and_of_a_collapse_is_experts_by_choices():
    even = 50 * torch.eye(EXPERTS)
    assert load_balancing_loss(even, 1).item() == pytest.approx(1)
    collapsed = torch.zeros(5, EXPERTS)
    collapsed[:, :2] = 50
    assert load_balancing_loss(collapsed, 2).item() == pytest.approx(EXPERTS / 2)


@pytest.mark.parametrize("masked", [False, True])
def test_their_balance_of_one_layer_is_ours_times_the_choices(masked):
    scores = torch.randn(4, 9, EXPERTS)
    mask = torch.arange(9) < torch.tensor([[3], [9], [1], [6]]) if masked else None
    theirs = mixtral.load_balancing_loss_func(
        (scores.flatten(0, 1),), EXPERTS, 2, None if mask is None else mask.long()
    )
    assert_same([load_balancing_loss(scores, 2, mask)], [theirs / 2], tolerance=1e-6)


def test_the_z_loss_is_the_mean_of_squares_and_leaves_padding_out():
    scores = torch.randn(3, 5, EXPERTS)
    mask = torch.rand(3, 5) < 0.5
    mask[0, 0] = True
    expected = scores.logsumexp(-1).square()
    assert_same([router_z_loss(scores)], [expected.mean()], tolerance=1e-6)
    assert_same([router_z_loss(scores, mask)], [expected[mask].mean()], tolerance=1e-6)


def test_the_bias_moves_toward_experts_with_few_tokens_until_they_have_as_many():
    router = SigmoidRouter(D_MODEL, EXPERTS, 2)
    with torch.no_grad():
        router.scores.weight.mul_(8)[0] += 0.5
    x = torch.rand(4000, D_MODEL)

    def spread():
        counts = torch.bincount(router(x)[1].flatten(), minlength=EXPERTS)
        return (counts.max() / counts.float().mean()).item()

    before = spread()
    for _ in range(2000):
        router.bias.copy_(balanced_bias(router.bias, router(x)[1], 1e-3))
    assert before > 2
    assert spread() < 1.1


def test_scores_are_collected_of_each_router_and_gradients_flow_through_them():
    layers = nn.Sequential(*(MixtureOfExperts(D_MODEL, D_FF, EXPERTS, 2) for _ in range(3)))
    x = torch.randn(2, 5, D_MODEL)
    with router_scores(layers) as scores:
        layers(x)
    layers(x)
    assert [tuple(each.shape) for each in scores] == [(2, 5, EXPERTS)] * 3
    sum(load_balancing_loss(each, 2) for each in scores).backward()
    assert layers[0].router.scores.weight.grad.any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_softmax_of_low_precision_is_in_float32(dtype):
    router = TopKRouter(D_MODEL, EXPERTS, 2, renormalize=False).to(dtype)
    x = torch.randn(40, D_MODEL, dtype=dtype)
    weights, chosen = router(x)
    exact = router.scores(x).double().softmax(-1).gather(-1, chosen)
    assert weights.dtype == dtype
    assert_same([weights.double()], [exact.to(dtype).double()], tolerance=1e-12)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MixtureOfExperts(6, 5, 4, 5), "top_k must be at most num_experts, got 5 of 4"),
        (lambda: SigmoidRouter(6, 4, 1, 3), "groups must divide the experts into groups of two"),
        (lambda: SigmoidRouter(6, 4, 3, 2, 1), "at most the 2 experts of 1 groups, got 3"),
        (lambda: MixtureOfExperts(6, 5, 4, 2)(torch.zeros(3, 5)), "a last axis of d_model = 6"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
