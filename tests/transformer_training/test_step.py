"""One step of training, against the closed form, the large batch and another library."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from transformer_layers import GPT2, GPT2Config
from transformer_training.chats import rows_side_by_side
from transformer_training.step import (
    clip_gradients,
    evaluate,
    inverse_sqrt_rate,
    learning_rate,
    make_optimizer,
    train_step,
)

CONFIG = GPT2Config(vocab_size=61, n_positions=11, n_embd=12, n_layer=2, n_head=3, dropout=0.0)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def weights(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.detach().clone() for name, each in model.named_parameters()}


def test_two_steps_are_the_closed_form():
    layer = nn.Linear(3, 2)
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    before = weights(layer)
    optimizer = make_optimizer(layer, lr=1.0, weight_decay=0.3, betas=(0.8, 0.9), eps=0.5)
    expected, m, v = dict(before), dict.fromkeys(before, 0.0), dict.fromkeys(before, 0.0)
    for t, lr in ((1, 0.1), (2, 0.05)):
        error = x @ expected["weight"].T + expected["bias"] - y
        gradients = {"weight": 2 * error.T @ x / 10, "bias": 2 * error.sum(0) / 10}
        for name, g in gradients.items():
            m[name] = 0.8 * m[name] + 0.2 * g
            v[name] = 0.9 * v[name] + 0.1 * g**2
            decay = 0.3 if name == "weight" else 0.0
            shrunk = expected[name] * (1 - lr * decay)
            m_hat, v_hat = m[name] / (1 - 0.8**t), v[name] / (1 - 0.9**t)
            expected[name] = shrunk - lr * m_hat / (v_hat.sqrt() + 0.5)
        loss, length = train_step(
            lambda rows: (layer(rows) - y).square().mean(), optimizer, [x], lr
        )
        assert_close(loss, error.square().mean())
        assert_close(length, sum(g.square().sum() for g in gradients.values()).sqrt())
    assert_close(weights(layer), expected)


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(61, (6, 9))
    ends = torch.tensor([9, 2, 4, 2, 7, 3])
    return ids, ids.masked_fill(torch.arange(9) >= ends[:, None], -100)


def scored(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return (batch[1][:, 1:] != -100).sum()


def gradient_of_a_step(parts: list, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    model = GPT2(CONFIG)
    optimizer = make_optimizer(model, lr=1.0, weight_decay=0.1)
    loss, _ = train_step(lambda batch: model.loss(*batch), optimizer, parts, 1e-2, **options)
    return loss, torch.cat([each.grad.flatten() for each in model.parameters()])


@pytest.mark.parametrize("rows", [1, 4])
def test_micro_batches_of_unequal_counts_are_the_large_batch(rows: int):
    ids, labels = padded()
    parts = list(zip(ids.split(rows), labels.split(rows), strict=True))
    whole = gradient_of_a_step([(ids, labels)])
    assert_close(gradient_of_a_step(parts, scored=scored), whole, rtol=0, atol=1e-12)
    mean_of_means = gradient_of_a_step(parts)[1]
    assert (mean_of_means - whole[1]).norm() > 0.1 * whole[1].norm()


def test_what_scores_nothing_is_refused():
    ids, labels = padded()
    nothing = (ids, torch.full_like(labels, -100))
    with pytest.raises(ValueError, match=r"must score a token or more, got counts \[21, 0\]"):
        gradient_of_a_step([(ids, labels), nothing], scored=scored)
    with pytest.raises(ValueError, match="mean_over_ranks is for the counts"):
        gradient_of_a_step([(ids, labels)], mean_over_ranks=lambda count: count)


def test_ranks_that_score_unequal_counts_are_the_large_batch():
    # The first rank has one micro-batch of three rows, the second three of one.
    ids, labels = padded()
    parts = list(zip(ids.split([3, 1, 1, 1]), labels.split([3, 1, 1, 1]), strict=True))
    half = scored((ids, labels)) / 2  # the mean over both of what each scores
    found = [
        gradient_of_a_step(share, scored=scored, mean_over_ranks=lambda _: half)
        for share in (parts[:1], parts[1:])
    ]
    mean = tuple(torch.stack(each).mean(dim=0) for each in zip(*found, strict=True))
    assert_close(mean, gradient_of_a_step([(ids, labels)]), rtol=0, atol=1e-12)


def test_ten_steps_are_those_of_transformers_and_torch():
    from transformers import GPT2Config as TheirConfig
    from transformers import GPT2LMHeadModel

    ours = GPT2(CONFIG)
    theirs = GPT2LMHeadModel(
        TheirConfig(
            vocab_size=61, n_positions=11, n_embd=12, n_layer=2, n_head=3,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
        )
    ).double()  # fmt: skip
    theirs.transformer.load_state_dict(ours.state_dict())
    decaying = [p for n, p in theirs.named_parameters() if p.ndim == 2 and ".h." in n]
    others = [p for n, p in theirs.named_parameters() if not (p.ndim == 2 and ".h." in n)]
    their_optimizer = torch.optim.AdamW(
        [{"params": decaying, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        their_optimizer, lambda i: learning_rate(i + 1, 10, warmup=3, highest=1.0, last=0.1)
    )
    our_optimizer = make_optimizer(ours, lr=1.0, weight_decay=0.1)
    for step in range(1, 11):
        ids = torch.randint(61, (4, 10))
        lr = learning_rate(step, 10, warmup=3, highest=3e-3, last=3e-4)
        loss, length = train_step(ours.loss, our_optimizer, ids.chunk(2), lr, clip=1.0)
        # Their loss shifts the labels; the last token has no position of its own in ours.
        logits = theirs(ids[:, :-1]).logits
        their_loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        their_optimizer.zero_grad()
        their_loss.backward()
        assert_close(length, nn.utils.clip_grad_norm_(theirs.parameters(), 1.0))
        their_optimizer.step()
        schedule.step()
        assert_close(loss, their_loss.detach(), rtol=1e-9, atol=1e-10)
    assert_close(weights(ours), weights(theirs.transformer), rtol=1e-7, atol=1e-9)


def test_what_decays():
    model = GPT2(CONFIG)
    names = {id(each): name for name, each in model.named_parameters()}
    decaying, others = make_optimizer(model, lr=0.1, weight_decay=0.2).param_groups[::-1]
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.2, 0.0)
    layers = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    matrices = {f"h.{i}.{layer}.weight" for i in range(2) for layer in layers}
    assert {names[id(each)] for each in decaying["params"]} == matrices
    assert {names[id(each)] for each in others["params"]} == set(names.values()) - matrices


def test_the_learning_rate_rises_in_a_line_and_falls_in_half_a_cosine():
    rates = [learning_rate(step, 12, warmup=4, highest=2.0, last=0.2) for step in range(1, 13)]
    assert_close(rates[:4], [0.5, 1.0, 1.5, 2.0])
    assert_close(rates[7], 1.1)
    assert_close(rates[-1], 0.2)
    falls = torch.tensor(rates[3:]).diff()
    assert (falls < 0).all()
    assert_close(falls, falls.flip(0))
    assert learning_rate(1, 3, warmup=0, highest=2.0, last=2.0) == 2.0


def test_the_papers_rate_rises_in_a_line_and_falls_as_a_root():
    rates = torch.tensor([inverse_sqrt_rate(step, 512, 4000) for step in range(1, 16_001)])
    assert_close(rates[:4000], rates[0] * torch.arange(1.0, 4001))
    assert_close(rates[3999:] / rates[3999], (4000 / torch.arange(4000.0, 16_001)).sqrt())
    assert_close(rates.max(), torch.tensor((512 * 4000) ** -0.5))
    assert rates.argmax() == 3999  # step 4,000, since the first is step 1
    assert inverse_sqrt_rate(1, 512, 1) == 512**-0.5


@pytest.mark.parametrize("longest", [0.1, 1e9])
def test_a_gradient_that_is_too_long_is_shortened(longest: float):
    ours, theirs = GPT2(CONFIG), GPT2(CONFIG)
    theirs.load_state_dict(ours.state_dict())
    ids = torch.randint(61, (2, 9))
    for model in (ours, theirs):
        model.loss(ids).backward()
    length = clip_gradients(make_optimizer(ours, 0.1, 0.1), longest)
    assert_close(length, nn.utils.clip_grad_norm_(theirs.parameters(), longest))
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(mine.grad, its.grad)


def test_dropout_is_off_in_evaluation_and_on_after_it():
    config = GPT2Config(61, 11, n_embd=12, n_layer=1, n_head=3, dropout=0.5)
    model = GPT2(config)
    batches = torch.randint(61, (4, 11)).split(2)
    loss = evaluate(model, model.loss, batches)
    assert all(each.training for each in model.modules())
    assert not loss.requires_grad
    model.eval()
    assert_close(loss, torch.stack([model.loss(each) for each in batches]).mean().detach())


@pytest.mark.parametrize("sizes", [[4, 2], [6]])
def test_the_mean_of_unequal_batches_is_that_of_all_scored_tokens(sizes: list[int]):
    ids, labels = padded()
    parts = list(zip(ids.split(sizes), labels.split(sizes), strict=True))
    model = GPT2(CONFIG)
    model.h[0].mlp.c_fc.weight.data.mul_(50)  # so that losses differ
    loss = evaluate(model, lambda batch: model.loss(*batch), parts, scored=scored)
    assert_close(loss, model.loss(ids, labels).detach(), rtol=0, atol=1e-12)
    # Where all tokens are scored, a batch says how many they are.
    loss = evaluate(model, model.loss, iter(ids.split(sizes)))
    assert_close(loss, model.loss(ids).detach(), rtol=0, atol=1e-12)


def test_a_batch_says_how_many_of_its_tokens_are_scored():
    ids, labels = padded()
    rows = zip(ids, labels, strict=True)
    batches = [rows_side_by_side([[row]], seq=9) for row in rows]
    model = GPT2(CONFIG)
    loss = evaluate(model, lambda batch: batch.loss(model), batches)
    assert_close(loss, model.loss(ids, labels).detach(), rtol=0, atol=1e-12)


def test_what_cannot_be_evaluated_is_refused():
    ids, labels = padded()
    model = GPT2(CONFIG)
    nothing = (ids, torch.full_like(labels, -100))

    def loss_of(batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return model.loss(*batch)

    with pytest.raises(TypeError, match=r"scored must be given .* got a batch of tuple"):
        evaluate(model, loss_of, [(ids, labels)])
    assert all(each.training for each in model.modules())
    with pytest.raises(ValueError, match=r"each batch must score a token .* counts \[21, 0\]"):
        evaluate(model, lambda batch: torch.zeros(()), [(ids, labels), nothing], scored=scored)
    with pytest.raises(ValueError, match=r"got counts \[\]"):
        evaluate(model, loss_of, [])
