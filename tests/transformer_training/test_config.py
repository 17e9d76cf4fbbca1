"""Options: on the command line, in a file, and those that no run can be made of."""

import os
from dataclasses import fields

import pytest

from transformer_training.config import TrainingConfig, TrainingError, parse

NUMBERS = [each.name for each in fields(TrainingConfig) if type(each.default) in (int, float)]


def test_the_command_line_counts_more_than_the_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('data = ["a.txt"]\nout = "run"\nsteps = 7\nlr = 1\ncompile = true\n')
    config = parse(["--config", str(path), "--steps", "9", "--no-compile"])
    assert config == TrainingConfig(data=("a.txt",), out="run", steps=9, lr=1.0, compile=False)


def test_what_is_written_is_what_is_read(tmp_path):
    path = tmp_path / "run.toml"
    config = TrainingConfig(
        data=("a b.txt", 'ä"\\.txt'), out="x\ny\x7f", lr=3e-4, compile=True, prompt="\t", seed=5
    )
    path.write_text(config.to_toml(), encoding="utf-8")
    assert parse(["--config", str(path)]) == config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step = 3", "there is no option 'step'"),
        ('steps = "3"', "steps must be of type int, got '3'"),
        ("compile = 1", "compile must be of type bool, got 1"),
        ('data = "a.txt"', "data must be of type list, got 'a.txt'"),
        ("steps = ", "is no TOML"),
        ("a = " + "[" * 100_000, "is no TOML"),
        ("steps = " + "9" * 5000, "is no TOML"),
        ("lr = 1" + "0" * 400, "lr must be of type float"),
        (None, "there is no such file"),
    ],
)
def test_files_of_options_that_are_refused(tmp_path, text, said):
    path = tmp_path / "run.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TrainingError, match=f"--config .*: {said}"):
        parse(["--data", "a.txt", "--out", "run", "--config", str(path)])


def test_a_pipe_is_no_file_of_options(tmp_path):
    os.mkfifo(tmp_path / "run.toml")
    with pytest.raises(TrainingError, match=r"--config .*: is a pipe, and must be a regular file"):
        parse(["--config", str(tmp_path / "run.toml")])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_nobody_means_are_refused_by_their_name(name):
    flag = "--" + name.replace("_", "-")
    for value in ("-1", "nan", "1e300", "9" * 5000):
        with pytest.raises(TrainingError, match=flag):
            parse(["--data", "a.txt", "--out", "run", f"{flag}={value}"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--steps 0", "--steps must be at least 1 and at most 99,999,999, got 0"),
        ("--lr 0", r"--lr must be above 0 and at most 1e\+20, got 0\.0"),
        ("--validation 1", r"--validation must be at least 0 and below 1, got 1\.0"),
        ("--n-head 3", "--n-embd and --n-head: .*128.*3"),
        ("--model llama --n-kv-head 3", "^--n-head and --n-kv-head: .*4.*3"),
    ],
)
def test_values_that_are_refused(options, said):
    with pytest.raises(TrainingError, match=said):
        parse(["--data", "a.txt", "--out", "run", *options.split()])


def test_choices_are_held_in_files_too():
    with pytest.raises(TrainingError, match=r"--precision must be one of .* got 'float8'"):
        TrainingConfig(data=("a",), out="b", precision="float8")
    with pytest.raises(TrainingError, match="--data must name one text file or more"):
        TrainingConfig(out="b")
    with pytest.raises(TrainingError, match=r"--prompt must be text .* without NUL, got"):
        TrainingConfig(data=("a",), out="b", prompt="\0")
    with pytest.raises(TrainingError, match="--out must name the folder"):
        TrainingConfig(data=("a",))
