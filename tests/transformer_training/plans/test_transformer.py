"""The Transformer is trained on pairs by its plan: alone and shared."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.transformer_training.processes import (
    TOLERANCE,
    Parent,
    assert_close,
    shared,
)
from transformer_layers import (
    Transformer,
    TransformerConfig,
    load_model,
    load_tokenizer,
)
from transformer_training import TrainingConfig, TrainingError, costs, estimate, inverse_sqrt_rate
from transformer_training.config import parse
from transformer_training.measured import LocalRanks, _left_by
from transformer_training.pairs import random_pairs
from transformer_training.plans.transformer import PLAN, activation_bytes, matrix_weights
from transformer_training.ranks import Ranks
from transformer_training.run import Run, train

pytestmark = pytest.mark.xdist_group("ranks")  # one process has the run to compare with

SIZES = TransformerConfig(
    261,
    d_model=16,
    num_layers=1,
    num_heads=2,
    d_ff=64,
    dropout=0.0,
    start_token=260,
    end_token=259,
    padding_token=260,
    banned_tokens=(260,),
)
OPTIONS = (
    "--model transformer --steps 20 --batch-size 4 --seq 24 --n-layer 1 --n-head 2 --n-embd 16 "
    "--vocab-size 260 --checkpoint-every 5 --evaluate-every 10 --keep 9 --label-smoothing 0.1 "
    "--schedule paper --warmup 0.4 --beta2 0.98 --eps 1e-9 --weight-decay 0"
).split()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Sentences of one to seven words; their translations are the words from back to front."""
    draws, folder = random.Random(0), tmp_path_factory.mktemp("pairs")
    words = ["ka", "lo", "mi", "ru"]
    sources = [draws.choices(words, k=draws.choice([1, 1, 2, 7])) for _ in range(200)]
    for name, lines in (("a.source", sources), ("a.target", [line[::-1] for line in sources])):
        (folder / name).write_text("".join(" ".join(line) + "\n" for line in lines))
    return ["--source", str(folder / "a.source"), "--target", str(folder / "a.target")]


@pytest.fixture
def options(texts: list[str]) -> list[str]:
    return [*OPTIONS, *texts]


@pytest.fixture(scope="module")
def alone(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("transformer")
    train(parse([*OPTIONS, *texts, "--out", str(out)]))
    return out


def log_lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def close(left: Path, right: Path) -> None:
    assert_close(left, right)
    validated = [
        [line["validation_loss"] for line in log_lines(out) if "validation_loss" in line]
        for out in (left, right)
    ]
    assert len(validated[0]) == 2
    torch.testing.assert_close(*validated, rtol=0, atol=TOLERANCE)


def test_it_learns_by_the_papers_rates_and_is_loaded(alone):
    lines = log_lines(alone)
    assert [line["step"] for line in lines] == list(range(1, 21))
    assert lines[-1]["loss"] < lines[0]["loss"] - 1
    rates = [inverse_sqrt_rate(step, d_model=16, warmup=8) for step in range(1, 21)]
    assert [line["lr"] for line in lines] == rates
    model, tokenizer = load_model(alone / "final"), load_tokenizer(alone / "final")
    assert model.config == SIZES
    assert isinstance(model, Transformer)
    source = torch.tensor([*tokenizer.encode("ka lo"), tokenizer.end_of_text])
    written = model.generate(source[None], 12, beams=2)[0]
    assert written.max() <= model.config.end_token
    assert (Transformer.from_pretrained(alone / "best").embedding.weight != 0).any()


@pytest.mark.parametrize(("parallel", "micro_batch"), [("ddp", "1"), ("fsdp", "0")])
def test_ranks_compute_what_one_process_does(
    options, tmp_path, alone, parent: Parent, parallel, micro_batch
):
    out = tmp_path / "out"
    shared(parent, 2, options, out, "--parallel", parallel, "--micro-batch", micro_batch)
    close(out, alone)


def test_each_token_of_a_step_counts_as_much(options, tmp_path):
    """The loss of a step is torch's over all its tokens, whatever batches they come in."""
    config = parse([*options, "--out", str(tmp_path), "--micro-batch", "1"])
    run = Run(config, Ranks(0, 1, torch.device("cpu")))
    rows = torch.arange(4)
    (batch,) = run.tokens.batches([rows], rows)
    assert batch.share == 1
    model = run.model
    logits = model(batch.source_ids, model.shifted(batch.target_ids), batch.source_mask)
    flat = logits.flatten(0, 1), batch.target_ids.flatten()
    expected = cross_entropy(*flat, ignore_index=260, label_smoothing=0.1)
    found = [run.loss_of(each) for each in run.tokens.batches(rows.split(1), rows)]
    assert len({each.target_ids.shape for each in run.tokens.batches(rows.split(1), rows)}) > 1
    torch.testing.assert_close(torch.stack(found).mean(), expected)
    run.loss.eval()  # and validation is without smoothing
    found = [run.loss_of(each) for each in run.tokens.batches(rows.split(1), rows)]
    torch.testing.assert_close(torch.stack(found).mean(), cross_entropy(*flat, ignore_index=260))


def test_samples_translate_the_prompt_or_the_first_that_is_held_out(options, tmp_path, capsys):
    more = ["--steps", "2", "--sample-every", "1", "--warmup", "0.5", "--out"]
    train(parse([*options, *more, str(tmp_path / "first")]))
    train(parse([*options, *more, str(tmp_path / "second"), "--prompt", "ka " * 99]))
    assert capsys.readouterr().out.count("writes: '") == 4


def test_what_a_transformer_has_not_is_refused(options):
    for more, said in (
        ("--n-kv-head 1", "a Transformer has as many heads of keys as of queries, got n_kv_head"),
        ("--parallel tp", "--parallel tp: ranks cannot share the matrices of --model transformer"),
    ):
        with pytest.raises(TrainingError, match=said):
            parse([*options, "--out", "-", *more.split()])
    with pytest.raises(ValueError, match="ranks cannot share the matrices of this model, got 'tp'"):
        costs(SIZES, 4, 8, parallel="tp", ranks=2)
    with pytest.raises(ValueError, match="seq must be given"):
        costs(SIZES, 4)
    uneven = TransformerConfig(261, d_model=16, num_layers=1, num_heads=2, decoder_layers=3)
    with pytest.raises(ValueError, match=r"as many layers in the decoder .* got 3 and 1"):
        costs(uneven, 4, 8)


def test_what_a_step_costs_is_derived(options):
    count = sum(each.numel() for each in Transformer(SIZES).parameters())
    assert costs(SIZES, 4, 8).parameters == 4 * count
    three = TransformerConfig(261, d_model=16, num_layers=3, num_heads=2, d_ff=64)
    assert costs(three, 4, 8).parameters == 4 * sum(
        each.numel() for each in Transformer(three).parameters()
    )
    assert estimate(parse([*options, "--out", "-"]), 260).parameters == count


@pytest.fixture(scope="module")
def local() -> Iterator[LocalRanks]:
    with LocalRanks() as ranks:
        yield ranks


def test_two_ranks_hold_and_send_what_is_derived(local):
    sizes: dict[str, Any] = {"seq": 32, "n_embd": 64, "n_layer": 2, "n_head": 4, "batch_size": 8}
    config = TrainingConfig(
        out="-",
        device="cpu",
        architecture="transformer",
        source=("-",),
        target=("-",),
        parallel="ddp",
        **sizes,
    )
    derived = costs(config.model(500), 8, 32, parallel="ddp", ranks=2)
    first, _ = local.measure(2, config, 500)
    assert first.parameters == derived.parameters
    assert first.gradients == derived.gradients
    assert first.optimizer == derived.optimizer
    assert first.flops == derived.flops
    assert first.activations == pytest.approx(derived.activations, rel=0.02)
    assert first.sent == pytest.approx(derived.sent, rel=0.05)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_a_token_leaves_is_what_autograd_keeps(precision):
    sizes = TransformerConfig(301, 96, 3, 4, 176, dropout=0.0, padding_token=300)
    torch.manual_seed(0)
    model = Transformer(sizes)
    batch = random_pairs(300, 4, 24)
    low = precision == "bfloat16"
    with _left_by(model) as storages, torch.autocast("cpu", torch.bfloat16, enabled=low):
        assert PLAN.loss(model, batch, 0.1).requires_grad
    found = sum(storages.values()) - (2 * matrix_weights(sizes) if low else 0)
    assert found / (4 * 24) == pytest.approx(activation_bytes(sizes, precision), rel=0.02)
