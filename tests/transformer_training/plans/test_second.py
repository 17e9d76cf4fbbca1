"""A model of another package is trained by its plan: alone, and shared."""

from pathlib import Path

import pytest

from tests.transformer_layers.models.second import Second, SecondConfig
from tests.transformer_training.plans.second import PLAN
from tests.transformer_training.processes import (
    TOLERANCE,
    assert_close,
    losses,
    shared,
)
from transformer_layers import GPT2Config, load_tokenizer
from transformer_training import TrainingError, costs
from transformer_training.config import parse
from transformer_training.plans import PLANS, plan_of
from transformer_training.run import train

pytestmark = pytest.mark.xdist_group("ranks")  # one process has the run to compare with

ROOT = Path(__file__).parents[3]
BEFORE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.transformer_training.plans.second import PLAN
from transformer_training.plans import PLANS
PLANS[PLAN.name] = PLAN
"""


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANS, PLAN.name, PLAN)


@pytest.fixture
def options(small: list[str]) -> list[str]:
    more = "--architecture second --n-head 4 --n-embd 16 --checkpoint-every 10 --keep 9"
    return [*small, *more.split()]


@pytest.fixture(scope="module")
def alone(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("second")
    options = "--steps 30 --batch-size 4 --seq 8 --n-layer 1 --n-head 4 --n-embd 16 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 10 --evaluate-every 10 --keep 9"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PLANS, PLAN.name, PLAN)
        command = ["--data", str(text), "--out", str(out), "--architecture", "second"]
        train(parse([*command, *options.split(), *more.split()]))
    return out


def test_it_learns_and_is_loaded(alone):
    assert losses(alone)[-1] < losses(alone)[0] - 1
    model, tokenizer = Second.from_pretrained(alone / "final"), load_tokenizer(alone / "final")
    assert model.config == SecondConfig(260, 8, 16, 1, 4, 2)
    assert model.generate(tokenizer.encode("a")[None, :3], 5).shape[1] > 5


def test_ranks_compute_what_one_process_does(options, tmp_path, alone, parent):
    shared(parent, 2, options, tmp_path / "out", "--parallel", "tp", before=BEFORE)
    assert_close(tmp_path / "out", alone, TOLERANCE)


def test_what_no_plan_has_is_refused(options):
    known = "GPT2Config, LlamaConfig, Gemma3Config, TransformerConfig, SecondConfig"
    with pytest.raises(TypeError, match=f"must be of {known}, got dict"):
        costs({}, 4)
    assert plan_of(GPT2Config()).name == "gpt2"
    with pytest.raises(TrainingError, match="--architecture/--model: invalid choice: 'x'"):
        parse([*options, "--out", "-", "--architecture", "x"])
