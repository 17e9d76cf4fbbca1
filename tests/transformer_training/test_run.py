"""Runs that are ended by whatever ends them, and go on as if nothing had been."""

import json
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.transformer_training.processes import Parent, losses, wait_for_step
from transformer_layers import GPT2, GPT2Config, load_model, load_tokenizer
from transformer_training import TrainingError, train
from transformer_training.__main__ import main
from transformer_training.config import parse
from transformer_training.plans import PLANS


def run(options: list[str], out: Path, *more: str) -> Path:
    return train(parse([*options, "--out", str(out), *more]))


@pytest.fixture(scope="module")
def unbroken(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing ended; its options are those of `small`, with dropout."""
    out = tmp_path_factory.mktemp("unbroken")
    options = "--steps 30 --batch-size 4 --seq 8 --n-layer 1 --n-head 2 --n-embd 8 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 5 --evaluate-every 10 --dropout 0.1"
    run(["--data", str(text), *options.split(), *more.split()], out)
    return out


@pytest.fixture
def dropping(small: list[str]) -> list[str]:
    return [*small, "--dropout", "0.1"]


def same(left: Path, right: Path) -> bool:
    """Whether two runs ended with the same bytes, and logged the same losses."""
    names = ["final/model.safetensors", "best/model.safetensors", "final/vocab.json"]
    names.append("checkpoints/step-00000030.safetensors")
    same_files = all((left / name).read_bytes() == (right / name).read_bytes() for name in names)
    return same_files and losses(left) == losses(right)


class TestWhatARunLeaves:
    def test_its_log_and_its_checkpoints(self, unbroken):
        lines = [json.loads(line) for line in (unbroken / "log.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(1, 31))
        assert [line["step"] for line in lines if "validation_loss" in line] == [10, 20, 30]
        assert {"loss", "lr", "grad_norm", "tokens_per_second"} <= lines[0].keys()
        assert abs(lines[0]["loss"] - torch.tensor(260.0).log()) < 0.02
        assert lines[-1]["loss"] < lines[0]["loss"] - 0.5
        kept = sorted(path.name for path in (unbroken / "checkpoints").iterdir())
        assert kept == ["step-00000025.safetensors", "step-00000030.safetensors"]
        best = torch.tensor([line.get("validation_loss", 9.0) for line in lines]).argmin() + 1
        assert best == 30
        assert same(unbroken, unbroken)
        assert (unbroken / "config.toml").read_text().startswith("data = [")

    @pytest.mark.parametrize("folder", ["best", "final"])
    def test_transformers_ends_a_text_where_it_does(self, unbroken, folder):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(unbroken / folder)
        model = AutoModelForCausalLM.from_pretrained(unbroken / folder)
        assert model.config.eos_token_id == tokenizer.eos_token_id == 259
        with torch.no_grad():  # now it writes the end of a text, and nothing else
            model.transformer.ln_f.weight.zero_()
            model.transformer.wte.weight[259] *= 1000
            model.transformer.ln_f.bias.copy_(model.transformer.wte.weight[259])
        given = tokenizer("ab", return_tensors="pt")
        written = model.generate(**given, max_new_tokens=5, do_sample=False, pad_token_id=0)
        assert written[0].tolist() == [*given.input_ids[0].tolist(), 259]
        load_model(unbroken / folder)

    def test_a_validation_loss_that_is_no_number_is_none_of_the_best(
        self, small, tmp_path, monkeypatch
    ):
        told = iter([torch.nan, 3.0, 2.0])
        monkeypatch.setattr(
            "transformer_training.run.evaluate", lambda *_, **__: torch.tensor(next(told))
        )
        run(small, tmp_path)
        names = [f"{folder}/model.safetensors" for folder in ("best", "final")]
        best, last = ((tmp_path / name).read_bytes() for name in names)
        assert best == last

    def test_a_model_that_transformers_loads_too(self, unbroken):
        from transformers import GPT2LMHeadModel

        folder = unbroken / "final"
        ours, theirs = GPT2.from_pretrained(folder), GPT2LMHeadModel.from_pretrained(folder)
        ids = load_tokenizer(folder).encode("abc de f")[None, :8]
        torch.testing.assert_close(ours(ids), theirs.eval()(ids).logits, rtol=1e-5, atol=1e-5)

    def test_samples_and_what_is_needed_are_said(self, small, tmp_path, capsys):
        run(small, tmp_path, "--sample-every", "15", "--steps", "30")
        said = capsys.readouterr().out
        assert "steps = 30" in said
        assert "3,032 weights; memory 47.4 KiB for them" in said
        assert said.count(" writes: '") == 2
        assert "step 10 of 30: loss" in said

    def test_samples_change_nothing(self, dropping, tmp_path, unbroken):
        run(dropping, tmp_path, "--sample-every", "7", "--keep", "9", "--checkpoint-every", "4")
        assert same(tmp_path, unbroken)
        assert len(list((tmp_path / "checkpoints").iterdir())) == 8

    @pytest.mark.parametrize("prompt", ["", "a", "abc " * 500])
    @pytest.mark.parametrize("seq", ["1", "8"])
    def test_samples_go_on_from_any_prompt(self, small, tmp_path, capsys, prompt, seq):
        options = ["--sample-every", "1", "--steps", "1", "--seq", seq, "--prompt", prompt]
        run(small, tmp_path, *options)
        assert "step 1 writes: " in capsys.readouterr().out

    def test_a_sample_that_fails_loses_no_step(self, small, tmp_path, monkeypatch):
        def failing(*arguments: object, **options: object) -> None:
            raise ZeroDivisionError

        options = ["--sample-every", "3", "--checkpoint-every", "100"]
        with monkeypatch.context() as patch:
            patch.setattr(GPT2, "generate", failing)
            with pytest.raises(ZeroDivisionError):
                run(small, tmp_path / "failed", *options)
        assert (tmp_path / "failed/checkpoints/step-00000003.safetensors").is_file()
        run(small, tmp_path / "failed", *options)
        run(small, tmp_path / "unbroken")
        assert losses(tmp_path / "failed") == losses(tmp_path / "unbroken")

    def test_micro_batches_are_the_large_batch(self, small, tmp_path):
        run(small, tmp_path / "whole")
        run(small, tmp_path / "parts", "--micro-batch", "1")
        whole, parts = losses(tmp_path / "whole"), losses(tmp_path / "parts")
        torch.testing.assert_close(whole, parts, rtol=0, atol=1e-5)

    def test_bfloat16_is_near_float32(self, small, tmp_path):
        run(small, tmp_path / "float32")
        run(small, tmp_path / "bfloat16", "--precision", "bfloat16")
        wide, low = losses(tmp_path / "float32"), losses(tmp_path / "bfloat16")
        assert wide != low
        torch.testing.assert_close(wide, low, rtol=0, atol=0.03)


class TestKilled:
    @pytest.mark.parametrize("seed", range(2))
    def test_at_a_random_moment(self, dropping, tmp_path, unbroken, parent: Parent, seed):
        draws = random.Random(seed)
        options = [*dropping, "--out", str(tmp_path)]
        for attempt, step in enumerate([0, *sorted(draws.sample(range(1, 28), 3))]):
            # So many calls after it has begun a step, however fast the machine is.
            before = (
                "import os, sys; from transformer_training.run import Run; step = Run.next_step\n"
                f"left = [{draws.randint(1, 2000)}]\n"
                "def count(frame, event, argument):\n"
                "    left[0] -= 1\n"
                "    if left[0] == 0: os.kill(os.getpid(), 9)\n"
                "def counting(self):\n"
                f"    if self.step == {step}: sys.setprofile(count)\n"
                "    step(self)\n"
                "Run.next_step = counting"
            )
            process = parent.start(options, tmp_path / f"said.{attempt}", before=before)
            assert process.wait() == -signal.SIGKILL
        run(dropping, tmp_path)
        assert same(tmp_path, unbroken)

    def test_while_a_checkpoint_is_written(self, dropping, tmp_path, unbroken, parent: Parent):
        before = (
            "import os, transformer_training.state as s; write = s.write_tensors\n"
            "def killed(path, tensors, metadata):\n"
            "    write(path, tensors, metadata)\n"
            "    if 'step-00000015' in str(path): os.truncate(path, 999); os.kill(os.getpid(), 9)\n"
            "s.write_tensors = killed"
        )
        options = [*dropping, "--out", str(tmp_path)]
        process = parent.start(options, tmp_path / "said", before=before)
        assert process.wait() == -signal.SIGKILL
        assert len(losses(tmp_path)) == 15
        run(dropping, tmp_path)
        assert same(tmp_path, unbroken)
        assert not list((tmp_path / "checkpoints").glob("*.unfinished"))

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_asked_to_end_it_saves(self, dropping, tmp_path, unbroken, parent: Parent, number):
        options = [*dropping, "--checkpoint-every", "1000", "--out", str(tmp_path)]
        before = (
            "import os; from transformer_training.run import Run; step = Run.next_step\n"
            "def asked(self):\n"
            f"    if self.step == 3: os.kill(os.getpid(), {int(number)})\n"
            "    step(self)\n"
            "Run.next_step = asked"
        )
        process = parent.start(options, tmp_path / "said", before=before)
        assert process.wait() == 128 + number
        said = process.said()
        assert f"ended by {number.name}; the state is saved, and the same command goes" in said
        reached = len(losses(tmp_path))
        assert 3 <= reached < 30
        assert (tmp_path / "checkpoints" / f"step-{reached:08}.safetensors").is_file()
        run(dropping, tmp_path)
        assert same(tmp_path, unbroken)


class TestGoingOn:
    @pytest.fixture
    def halfway(self, dropping, tmp_path, monkeypatch) -> Path:
        """A run that was lost in step 12: checkpoints of 5 and 10."""
        from transformer_training.run import Run

        step = Run.next_step

        def lost(self: Run) -> None:
            if self.step == 12:
                raise KeyboardInterrupt
            step(self)

        with monkeypatch.context() as patch:
            patch.setattr(Run, "next_step", lost)
            with pytest.raises(KeyboardInterrupt):
                run(dropping, tmp_path)
        return tmp_path

    def test_a_finished_run_stays_as_it_is(self, dropping, unbroken):
        before = (unbroken / "checkpoints/step-00000030.safetensors").stat().st_mtime_ns
        run(dropping, unbroken)
        assert (unbroken / "checkpoints/step-00000030.safetensors").stat().st_mtime_ns == before
        assert len(losses(unbroken)) == 30

    def test_from_a_damaged_checkpoint_it_takes_the_one_before(
        self, dropping, halfway, unbroken, capsys
    ):
        os.truncate(halfway / "checkpoints/step-00000010.safetensors", 5000)
        run(dropping, halfway)
        said = capsys.readouterr().out
        assert "a checkpoint is left out: " in said
        assert "going on after step 5" in said
        assert same(halfway, unbroken)

    def test_without_a_whole_checkpoint_it_says_so(self, dropping, halfway):
        for path in (halfway / "checkpoints").iterdir():
            os.truncate(path, 100)
        with pytest.raises(TrainingError, match="no checkpoint can be read; remove the folder to"):
            run(dropping, halfway)

    def test_a_file_of_another_kind_is_no_checkpoint(self, dropping, halfway, unbroken, capsys):
        path = halfway / "checkpoints/step-00000010.safetensors"
        save_file(load_file(path), path)
        run(dropping, halfway)
        assert "is no checkpoint of a run" in capsys.readouterr().out
        assert same(halfway, unbroken)

    @pytest.mark.parametrize(
        ("option", "value", "said"),
        [
            ("--lr", "0.02", "lr is 0.02, not 0.01"),
            ("--steps", "40", "steps is 40, not 30"),
            ("--n-embd", "16", "n_embd is 16, not 8"),
            ("--dropout", "0.2", "dropout is 0.2, not 0.1"),
            ("--seed", "7", "seed is 7, not 0"),
        ],
    )
    def test_another_configuration_is_refused(self, dropping, halfway, option, value, said):
        before = (halfway / "checkpoints/step-00000010.safetensors").read_bytes()
        with pytest.raises(TrainingError, match=f"was saved with another configuration: {said}; "):
            run(dropping, halfway, option, value)
        assert (halfway / "checkpoints/step-00000010.safetensors").read_bytes() == before

    def test_other_texts_are_refused(self, dropping, halfway, text):
        other = halfway / "other.txt"
        other.write_text(text.read_text() + "x")
        with pytest.raises(TrainingError, match="was made of other texts"):
            run(dropping, halfway, "--data", str(other))

    def test_how_often_it_saves_may_change(self, dropping, halfway, unbroken):
        run(dropping, halfway, "--checkpoint-every", "3", "--keep", "1")
        assert same(halfway, unbroken)

    def test_the_end_of_a_line_that_was_cut_goes(self, dropping, halfway, unbroken):
        with (halfway / "log.jsonl").open("a") as log:
            log.write('{"step": 9, "lo')
        run(dropping, halfway)
        assert same(halfway, unbroken)


class TestWhatCannotGoOn:
    def test_a_loss_that_is_no_number(self, small, tmp_path):
        with pytest.raises(TrainingError, match=r"^step \d+: the loss is .*a lower --lr or --w"):
            run(small, tmp_path, "--lr", "1e20", "--clip", "1e30", "--checkpoint-every", "1")
        (last,) = sorted((tmp_path / "checkpoints").iterdir())[-1:]
        state = load_file(last)
        assert all(tensor.isfinite().all() for tensor in state.values())

    def test_a_full_disk(self, dropping, tmp_path, unbroken, parent: Parent):
        # A file that grows past the limit is refused by the system, as on a full disk.
        before = (
            "import resource, transformer_training.state as s; write = s.write_tensors\n"
            "def limited(path, tensors, metadata):\n"
            "    size = 9000 if 'step-00000015' in str(path) else resource.RLIM_INFINITY\n"
            "    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
            "    write(path, tensors, metadata)\n"
            "s.write_tensors = limited"
        )
        process = parent.start([*dropping, "--out", str(tmp_path)], tmp_path / "said", None, before)
        assert process.wait() == 1
        last = process.said().splitlines()[-1]
        assert last.startswith("transformer_training: ")
        assert "step-00000015.safetensors: cannot be written: File too large" in last
        names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
        assert names == ["step-00000005.safetensors", "step-00000010.safetensors"]
        run(dropping, tmp_path)
        assert same(tmp_path, unbroken)

    def test_two_runs_in_one_folder(self, small, tmp_path, parent: Parent):
        options = [*small, "--steps", "3000", "--out", str(tmp_path)]
        process = parent.start(options, tmp_path / "said")
        wait_for_step(tmp_path, 1, process)
        with pytest.raises(TrainingError, match="another run is at work there"):
            run(small, tmp_path, "--steps", "3000")
        process.kill()
        assert process.wait() == -signal.SIGKILL

    def test_micro_batches_of_different_size(self, small, tmp_path):
        with pytest.raises(TrainingError, match="--micro-batch 3 must divide 4"):
            run(small, tmp_path, "--micro-batch", "3")

    def test_a_model_that_the_memory_cannot_hold(self, small, tmp_path, monkeypatch):
        def allocate(sizes: GPT2Config) -> GPT2:
            assert torch.get_default_device().type == "meta", f"allocated {sizes}"
            return GPT2(sizes)

        monkeypatch.setitem(PLANS, "gpt2", replace(PLANS["gpt2"], model=allocate))
        said = (
            r"--n-embd 10000000, --n-layer 1 and --seq 8 make a model that needs 17\.1 PiB in each "
            r"process, with gradients and AdamW's moments, and there are \d.* [GT]iB; make it sm"
        )
        with pytest.raises(TrainingError, match=said):
            run(small, tmp_path, "--n-embd", "10000000")

    def test_sequences_that_the_memory_cannot_hold(self, small, tmp_path):
        said = "--batch-size 90000000 and --seq 8 need .* TiB in each process beside the .* KiB of"
        with pytest.raises(TrainingError, match=said):
            run(small, tmp_path, "--batch-size", "90000000")

    def test_a_mistake_in_the_program_is_a_traceback(self, small, tmp_path, monkeypatch):
        def mistaken(*arguments: object) -> None:
            raise ValueError("shapes do not fit")

        monkeypatch.setattr("transformer_training.run.train_step", mistaken)
        monkeypatch.setattr("sys.argv", ["x", *small, "--out", str(tmp_path)])
        with pytest.raises(ValueError, match="shapes do not fit"):
            main()

    @pytest.mark.parametrize("world", ["1", "2"])
    def test_so_is_one_among_ranks(self, small, tmp_path, monkeypatch, world):
        def mistaken(*arguments: object) -> None:
            raise RuntimeError("shapes do not fit")

        monkeypatch.setenv("WORLD_SIZE", world)
        monkeypatch.setattr("transformer_training.__main__.train", mistaken)
        monkeypatch.setattr("sys.argv", ["x", *small, "--out", str(tmp_path)])
        with pytest.raises(RuntimeError, match="shapes do not fit"):
            main()

    def test_each_is_said_in_one_sentence(self, tmp_path, monkeypatch, capsys):
        empty = tmp_path / "empty.txt"
        empty.touch()
        command = ["x", "--data", str(empty), "--out", str(tmp_path / "run")]
        monkeypatch.setattr("sys.argv", command)
        assert main() == 1
        assert capsys.readouterr().err == f"transformer_training: --data {empty}: is empty\n"
