"""The benchmarks run and say what they measured; no time is held against another here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evaluation.benchmarks import __main__ as benchmarks
from evaluation.benchmarks import memory, profiled, timing
from evaluation.benchmarks.contestants import (
    LLAMA,
    OURS,
    READY,
    THEIRS,
    TRANSLATOR,
    Contestant,
    Translator,
    from_files,
    new_llama,
    new_model,
    new_translator,
    with_transformers,
)
from evaluation.benchmarks.measure import FULL, QUICK

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmarks") / "results.json"
    command = [sys.executable, "-m", "evaluation.benchmarks", "--quick", "--threads=1"]
    command.append(f"--output={path}")
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(path.read_text()), finished.stdout


def written():
    return json.loads((ROOT / "evaluation" / "benchmarks" / "results.json").read_text())


def all_timings(results):
    others = results["llama"], results["translator"]
    return [timed for each in (results, *others) for timed in each["timings"]]


def check_structure(results, plan, threads):
    everyone = [THEIRS, OURS, *READY]
    tasks = [("forward", seq, everyone) for seq in plan.forward]
    tasks += [("generate", plan.new, everyone)]
    tasks += [("forward and backward", plan.backward, [THEIRS, OURS])]
    everyone = [THEIRS, LLAMA, next(iter(READY))]
    tasks += [("forward", seq, everyone) for seq in plan.forward]
    tasks += [("generate", plan.new, everyone)]
    both = [THEIRS, TRANSLATOR]
    tasks += [("forward", plan.forward[0], both), ("translate", plan.new, both)]
    assert [
        (timed["task"], timed["positions"], [result["contestant"] for result in timed["results"]])
        for timed in all_timings(results)
    ] == tasks
    for timed in all_timings(results):
        for result in timed["results"]:
            ratio = result["ratio"]
            assert 0 < ratio["lower"] <= ratio["median"] <= ratio["upper"]
        assert set(timed["results"][0]["ratio"].values()) == {1.0}
    rates = results["limits"]["matrix_products"]
    assert {rate["threads"] for rate in rates} == set(range(1, threads + 1))
    assert all(rate["gflops"] > 0 for rate in rates)
    assert [error["contestant"] for error in results["errors"]] == list(READY)
    assert all(list(peak["bytes"]) == [THEIRS, OURS] for peak in results["peak_memory"])
    rows = results["profile"]["rows"]
    asked = [*(("forward", seq) for seq in plan.forward), ("generate", plan.new)]
    assert [(row["task"], row["positions"]) for row in rows] == 2 * asked
    for row, name in zip(rows, [OURS] * len(asked) + [LLAMA] * len(asked), strict=True):
        assert list(row["seconds"]) == [THEIRS, name]
        assert all(spent["products"] > 0 for spent in row["seconds"].values())
    assert [row["positions"] for row in results["attention_memory"]] == list(plan.growth)
    assert results["machine"]["threads"] == threads


def test_a_quick_run(quick):
    results, printed = quick
    check_structure(results, QUICK, threads=1)
    for name in (THEIRS, OURS, LLAMA, TRANSLATOR, *READY):
        assert name in printed
    assert results["machine"]["processor"] in printed


def test_the_profile_alone_leaves_the_rest_of_the_results_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"machine": 1, "profile": None}))
    command = ["benchmarks", "--quick", "--profile", "--threads=1", f"--output={path}"]
    monkeypatch.setattr(sys, "argv", command)
    benchmarks.main()
    results = json.loads(path.read_text())
    assert results["machine"] == 1
    assert len(results["profile"]["rows"]) == 8


def test_the_written_results_are_of_a_full_run():
    check_structure(written(), FULL, threads=2)
    assert written()["model"]["parameters"] == 124_439_808


def test_the_written_ratios_are_within_the_limits():
    allowed = {
        ("forward", OURS): 0.97,
        ("generate", OURS): 0.91,
        ("forward and backward", OURS): 1.0,
        ("translate", TRANSLATOR): 0.95,
        ("forward", "ready, bfloat16"): 0.5,
        ("generate", "ready, float16"): 0.7,
    }
    # Where a processor's libraries multiply alike, exact products gain little.
    over = [
        (timed["task"], timed["positions"], result["contestant"], result["ratio"]["median"])
        for timed in all_timings(written())
        for result in timed["results"]
        if result["ratio"]["median"] > allowed.get((timed["task"], result["contestant"]), 1.1)
    ]
    assert over == []


def test_ratios_are_taken_round_by_round():
    reference = [1.0, 10.0, 100.0, 1000.0, 10000.0]
    ratio = timing.ratio([0.5, 6.0, 70.0, 800.0, 9000.0], reference)
    assert (ratio.lower, ratio.median, ratio.upper) == pytest.approx((0.6, 0.7, 0.8))


def test_time_goes_to_what_was_called():
    a, queries = torch.randn(256, 256), torch.randn(1, 2, 64, 16)

    def products():
        for _ in range(20):
            a @ a

    def attention():
        torch.nn.functional.scaled_dot_product_attention(queries, queries, queries)

    found = profiled.parts(products)
    assert found.products > found.attention == 0
    found = profiled.parts(attention)
    assert found.attention > 0 == found.products
    found = profiled.parts(lambda: a.exp())
    assert found.others > 0 == found.products + found.attention


def test_allocated_bytes_are_counted():
    def twice_a_kilobyte():
        first = torch.empty(256)
        second = torch.empty(256)
        del first, second
        torch.empty(128)

    assert memory.allocated(twice_a_kilobyte) == 2048


def test_both_models_compute_the_same():
    model = new_model(QUICK.config)
    ours, theirs = Contestant(model), Contestant(with_transformers(model))
    ids = torch.randint(QUICK.config.vocab_size, (1, 11))
    torch.testing.assert_close(ours.forward(ids), theirs.forward(ids), rtol=0, atol=1e-5)
    assert torch.equal(ours.generate(ids, 7), theirs.generate(ids, 7))
    loss = ours.forward_and_backward(ids)
    gradient = model.wte.weight.grad.clone()
    torch.testing.assert_close(theirs.forward_and_backward(ids), loss)
    torch.testing.assert_close(theirs.model.transformer.wte.weight.grad, gradient)


def test_both_llamas_compute_the_same():
    model = new_llama(QUICK.llama)
    ours, theirs = Contestant(model), Contestant(from_files(model))
    ids = torch.randint(QUICK.llama.vocab_size, (1, 11))
    torch.testing.assert_close(ours.forward(ids), theirs.forward(ids), rtol=0, atol=1e-5)
    assert torch.equal(ours.generate(ids, 7), theirs.generate(ids, 7))


def test_both_translators_compute_the_same_and_as_many_tokens_as_asked():
    model = new_translator(QUICK.translator)
    ours, theirs = Translator(model), Translator(from_files(model))
    source, target = torch.randint(QUICK.translator.vocab_size - 1, (2, 1, 9))
    found, expected = ours.forward(source, target), theirs.forward(source, target)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    translation = ours.translate(source, 7, beams=3)
    assert translation.shape == (1, 7)
    assert torch.equal(translation, theirs.translate(source, 7, beams=3))
