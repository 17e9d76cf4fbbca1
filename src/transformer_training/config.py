"""What a run of training is asked for: on the command line, or in a TOML file."""

import argparse
import json
import tomllib
from collections.abc import Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer_layers import GPT2Config

PARALLEL = ("none", "ddp", "fsdp", "tp", "fsdp+tp")
PRECISION = ("float32", "bfloat16")
DEVICES = ("auto", "cpu", "cuda")

# What may differ between the runs that share a folder: it says where and how the same numbers are
# computed, or how often something is written. The texts are known by their contents.
MAY_DIFFER = {
    "data",
    "out",
    "tokenizer",
    "checkpoint_every",
    "keep",
    "sample_every",
    "sample_tokens",
    "prompt",
    "evaluate_every",
    "validation_batches",
    "micro_batch",
    "parallel",
    "tensor_ranks",
    "device",
    "compile",
}


class TrainingError(Exception):
    """Why a run cannot begin or go on, in one sentence for who started it."""


def _option(default: Any, help: str, choices: Sequence[str] | None = None) -> Any:
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that a run depends on; each field is an option of the command.

    Raises:
        TrainingError: If a value is out of range, or two do not fit.

    Examples:
        >>> config = TrainingConfig(data=("book.txt",), out="run", steps=100)
        >>> config.warmup_steps, config.model(vocab_size=300).n_positions
        (10, 128)
    """

    data: tuple[str, ...] = _option((), "the text files")
    out: str = _option("", "the folder of the run; the same command again goes on from there")
    steps: int = _option(1000, "updates of the weights")
    batch_size: int = _option(16, "sequences of a step, over all ranks")
    micro_batch: int = _option(
        0, "sequences that a rank computes at once, the gradients being summed; 0: all of its own"
    )
    seq: int = _option(128, "tokens of a sequence, and positions of the model")
    lr: float = _option(1e-3, "highest learning rate")
    min_lr: float = _option(0.1, "the last learning rate, as a share of the highest")
    warmup: float = _option(0.1, "share of the steps in which the learning rate rises")
    weight_decay: float = _option(
        0.1, "of the matrices of the blocks; biases, gains and embeddings have none"
    )
    beta1: float = _option(0.9, "AdamW's memory of gradients")
    beta2: float = _option(0.95, "AdamW's memory of squared gradients")
    clip: float = _option(1.0, "longest gradient, all weights together")
    seed: int = _option(0, "of the first weights, the order of the data and dropout")
    n_layer: int = _option(4, "blocks")
    n_head: int = _option(4, "heads of a block")
    n_embd: int = _option(128, "features of a position")
    dropout: float = _option(0.0, "share that is dropped in training")
    tokenizer: str = _option("", "folder of a tokenizer; one is trained on the texts if not given")
    vocab_size: int = _option(
        0, "tokens of the tokenizer that is trained; 0: 1,024, or what a short text has"
    )
    validation: float = _option(0.1, "share of the tokens, the last ones, that is held out")
    validation_batches: int = _option(20, "batches that the validation loss is a mean of, at most")
    evaluate_every: int = _option(100, "steps between two validation losses")
    checkpoint_every: int = _option(100, "steps between two checkpoints")
    keep: int = _option(2, "checkpoints that are kept")
    sample_every: int = _option(0, "steps between two samples; 0: none")
    sample_tokens: int = _option(60, "tokens of a sample")
    prompt: str = _option("\n", "what a sample continues")
    precision: str = _option("float32", "of the products: bfloat16 by autocast", PRECISION)
    compile: bool = _option(False, "let torch.compile make one program of the model")
    parallel: str = _option("none", "how torchrun's ranks share the work", PARALLEL)
    tensor_ranks: int = _option(2, "ranks that share each matrix in fsdp+tp")
    device: str = _option("auto", "auto: a GPU where there is one", DEVICES)

    def __post_init__(self) -> None:
        """Refuses values of which no run can be made."""
        if not self.data or not all(self.data):
            raise TrainingError("--data must name one text file or more")
        if not self.out:
            raise TrainingError("--out must name the folder of the run")
        for name, least in _LEAST.items():
            if not getattr(self, name) >= least:
                given = getattr(self, name)
                raise TrainingError(f"{_flag(name)} must be at least {least}, got {given}")
        for name in ("lr", "clip"):
            if not 0 < getattr(self, name) < float("inf"):
                given = getattr(self, name)
                raise TrainingError(f"{_flag(name)} must be above 0 and finite, got {given}")
        for name in ("min_lr", "warmup", "dropout"):
            if not 0 <= getattr(self, name) <= 1:
                raise TrainingError(f"{_flag(name)} must be in [0, 1], got {getattr(self, name)}")
        for name in ("validation", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise TrainingError(f"{_flag(name)} must be in [0, 1), got {getattr(self, name)}")
        for each in fields(self):
            allowed, given = each.metadata["choices"], getattr(self, each.name)
            if allowed and given not in allowed:
                raise TrainingError(f"{_flag(each.name)} must be one of {allowed}, got {given!r}")
        try:
            self.model(vocab_size=257)
        except ValueError as error:
            raise TrainingError(str(error)) from error

    @property
    def warmup_steps(self) -> int:
        """Steps in which the learning rate rises."""
        return round(self.warmup * self.steps)

    def model(self, vocab_size: int) -> GPT2Config:
        """The sizes of the model.

        Args:
            vocab_size: Tokens of the tokenizer.
        """
        return GPT2Config(
            vocab_size=vocab_size,
            n_positions=self.seq,
            n_embd=self.n_embd,
            n_layer=self.n_layer,
            n_head=self.n_head,
            dropout=self.dropout,
        )

    def fixed(self) -> dict[str, Any]:
        """The values that a run must share with the checkpoint that it goes on from."""
        return {name: value for name, value in asdict(self).items() if name not in MAY_DIFFER}

    def to_toml(self) -> str:
        """The values as a TOML file, which `--config` reads."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in asdict(self).items())


_LEAST = {
    "steps": 1,
    "batch_size": 1,
    "micro_batch": 0,
    "seq": 1,
    "weight_decay": 0,
    "seed": 0,
    "vocab_size": 0,
    "validation_batches": 1,
    "evaluate_every": 1,
    "checkpoint_every": 1,
    "keep": 1,
    "sample_every": 0,
    "sample_tokens": 1,
    "tensor_ranks": 1,
}


def parse(arguments: Sequence[str] | None = None) -> TrainingConfig:
    """Reads the options of the command; those of a TOML file count where the command has none.

    Args:
        arguments: The command's; those of the process if not given.

    Returns:
        The configuration.

    Raises:
        TrainingError: If a value or the file is not one that a run can be made of.

    Examples:
        >>> parse(["--data", "a.txt", "b.txt", "--out", "run", "--lr", "3e-4"]).lr
        0.0003
    """
    parser = argparse.ArgumentParser(
        prog="python -m transformer_training",
        description="Trains a GPT-2 on text files. The same command again goes on where a run "
        "was ended, by whatever ended it. Under torchrun, --parallel says how ranks "
        "share the work.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file with any of these options")
    for each in fields(TrainingConfig):
        _add(parser, each)
    given = vars(parser.parse_args(arguments))
    path = given.pop("config", None)
    values = {} if path is None else _read_toml(Path(path))
    values |= {name: value for name, value in given.items() if value is not None}
    if isinstance(values.get("data"), list):
        values["data"] = tuple(values["data"])
    return TrainingConfig(**values)


def _add(parser: argparse.ArgumentParser, option: "Field[Any]") -> None:
    shown = {"help": option.metadata["help"] + f" ({option.default!r})", "default": None}
    if option.name == "data":
        parser.add_argument("--data", nargs="+", metavar="FILE", help="the text files")
    elif isinstance(option.default, bool):
        parser.add_argument(_flag(option.name), action=argparse.BooleanOptionalAction, **shown)
    else:
        kind = type(option.default)
        choices = option.metadata["choices"]
        metavar = None if choices else kind.__name__.upper()
        parser.add_argument(
            _flag(option.name), type=kind, choices=choices, metavar=metavar, **shown
        )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TrainingError(f"--config {path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TrainingError(f"--config {path}: is no TOML: {error}") from error
    defaults = {each.name: each.default for each in fields(TrainingConfig)}
    for name, value in entries.items():
        if name not in defaults:
            raise TrainingError(f"--config {path}: there is no option {name!r}")
        wanted = list if name == "data" else type(defaults[name])
        if wanted is float and type(value) is int:
            entries[name] = float(value)
        elif type(value) is not wanted:
            raise TrainingError(
                f"--config {path}: {name} must be of type {wanted.__name__}, got {value!r}"
            )
    return entries


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
