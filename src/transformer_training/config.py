"""What a run of training is asked for: on the command line, or in a TOML file."""

import argparse
import json
import reprlib
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from transformer_layers.checkpoints.checkpoint import read_config
from transformer_layers.checkpoints.folder import CONFIG, find_folder
from transformer_layers.checkpoints.json_file import read_json_object, shown
from transformer_layers.checkpoints.regular_file import read_regular
from transformer_training.plans import PLANS, plans_by_type
from transformer_training.plans.plan import Plan

PARALLEL = ("none", "ddp", "fsdp", "tp", "fsdp+tp")
PRECISION = ("float32", "bfloat16")
SCHEDULES = ("cosine", "paper")
DEVICES = ("auto", "cpu", "cuda")

# What may differ between the runs that share a folder: it says where and how the same numbers are
# computed, or how often something is written. The texts are known by their contents.
MAY_DIFFER = {
    "data",
    "chats",
    "source",
    "target",
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
    "recompute",
}


_LONGEST_FILE = 1 << 20  # bytes of a TOML file


class TrainingError(Exception):
    """Why a run cannot begin or go on, in one sentence for who started it."""


@dataclass(frozen=True)
class _Range:
    """The numbers that an option may have, from the least to the most; NaN is not among them."""

    least: int | float
    most: int | float
    without_least: bool = False
    without_most: bool = False

    def __contains__(self, value: int | float) -> bool:
        above = value > self.least if self.without_least else value >= self.least
        return above and (value < self.most if self.without_most else value <= self.most)

    def __str__(self) -> str:
        first, last = (
            f"{end:,}" if isinstance(end, int) else f"{end:g}" for end in (self.least, self.most)
        )
        return (
            f"{'above' if self.without_least else 'at least'} {first} and "
            f"{'below' if self.without_most else 'at most'} {last}"
        )


# A checkpoint's name has eight digits; sizes of as many can be multiplied in 64 bits.
_COUNT = _Range(1, 99_999_999)
_COUNT_OR_NONE = _Range(0, 99_999_999)
_SEED = _Range(0, 2**64 - 1)  # torch's
_SHARE = _Range(0.0, 1.0)
_SHARE_BELOW_ONE = _Range(0.0, 1.0, without_most=True)
# AdamW divides the rate by 1 - beta1, 1e-16 or more, and float32 ends at 3.4e38.
_RATE = _Range(0.0, 1e20, without_least=True)
_DECAY = _Range(0.0, 1e20)
_LENGTH = _Range(0.0, 1e38, without_least=True)
_SMALL = _Range(0.0, 1.0, without_least=True)


_LR, _MIN_LR = 1e-3, 0.1

_OTHER_FLAGS = {"architecture": ("--model",), "start": ("--from",)}
# Which options say how large a model is; one that is begun with says so itself.
_SIZES = ("n_layer", "n_head", "n_kv_head", "n_embd", "vocab_size")


def _option(default: Any, help: str, allowed: _Range | Collection[str] | None = None) -> Any:
    return field(default=default, metadata={"help": help, "allowed": allowed})


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

    data: tuple[str, ...] = _option((), "the text files of a language model")
    out: str = _option("", "the folder of the run; the same command again goes on from there")
    steps: int = _option(1000, "updates of the weights", _COUNT)
    batch_size: int = _option(16, "sequences of a step, over all ranks", _COUNT)
    micro_batch: int = _option(
        0,
        "sequences that a rank computes at once, the gradients being summed; 0: all of its own. "
        "ddp sends gradients once a step, fsdp for each part, so that no rank holds them whole",
        _COUNT_OR_NONE,
    )
    seq: int = _option(
        128,
        "tokens of a sequence, and positions of the model; of a translator the most of a source "
        "and of a target, longer pairs being left out",
        _COUNT,
    )
    lr: float = _option(_LR, "highest learning rate", _RATE)
    min_lr: float = _option(_MIN_LR, "the last learning rate, as a share of the highest", _SHARE)
    warmup: float = _option(0.1, "share of the steps in which the learning rate rises", _SHARE)
    weight_decay: float = _option(
        0.1,
        "of the matrices of the blocks and of a head that is not the embedding; biases, gains and "
        "embeddings have none",
        _DECAY,
    )
    schedule: str = _option(
        "cosine",
        "of the learning rate, after its rise; paper: equation 3 of arXiv 1706.03762, which "
        "follows from --n-embd and --warmup alone, without --lr and --min-lr",
        SCHEDULES,
    )
    beta1: float = _option(0.9, "AdamW's memory of gradients", _SHARE_BELOW_ONE)
    beta2: float = _option(0.95, "AdamW's memory of squared gradients", _SHARE_BELOW_ONE)
    eps: float = _option(1e-8, "what AdamW adds to the root of the second", _SMALL)
    label_smoothing: float = _option(
        0.0, "probability that a translator gives to all tokens alike in training", _SHARE
    )
    clip: float = _option(1.0, "longest gradient, all weights together", _LENGTH)
    seed: int = _option(0, "of the first weights, the order of the data and dropout", _SEED)
    start: str = _option(
        "",
        "folder of a published or saved model to begin with, whose sizes, and whose tokenizer if "
        "no other is given, are the run's",
    )
    lora_rank: int = _option(
        0,
        "rank of adapters of the blocks' matrices, which learn in the place of all weights of "
        "--from; 0: none",
        _COUNT_OR_NONE,
    )
    architecture: str = _option("", "the model; that of --from, or gpt2, if not given", PLANS)
    n_layer: int = _option(4, "blocks", _COUNT)
    n_head: int = _option(4, "heads of a block", _COUNT)
    n_kv_head: int = _option(
        0, "heads of keys of a block; 0: as many as of queries", _COUNT_OR_NONE
    )
    n_embd: int = _option(128, "features of a position", _COUNT)
    dropout: float = _option(0.0, "share that is dropped in training", _SHARE)
    tokenizer: str = _option("", "folder of a tokenizer; one is trained on the texts if not given")
    vocab_size: int = _option(
        0,
        "tokens of the tokenizer that is trained; 0: 1,024, or what a short text has",
        _COUNT_OR_NONE,
    )
    validation: float = _option(
        0.1, "share of the tokens, the last ones, that is held out", _SHARE_BELOW_ONE
    )
    validation_batches: int = _option(
        20, "batches that the validation loss is a mean of, at most", _COUNT
    )
    evaluate_every: int = _option(100, "steps between two validation losses", _COUNT)
    checkpoint_every: int = _option(100, "steps between two checkpoints", _COUNT)
    keep: int = _option(2, "checkpoints that are kept", _COUNT)
    sample_every: int = _option(0, "steps between two samples; 0: none", _COUNT_OR_NONE)
    sample_tokens: int = _option(60, "tokens of a sample", _COUNT)
    prompt: str = _option("\n", "what a sample continues; nothing: as a text begins")
    precision: str = _option("float32", "of the products: bfloat16 by autocast", PRECISION)
    compile: bool = _option(False, "let torch.compile make one program of the model")
    recompute: bool = _option(
        False, "keep a block's input alone for the backward pass: less memory, a third more work"
    )
    parallel: str = _option("none", "how torchrun's ranks share the work", PARALLEL)
    tensor_ranks: int = _option(2, "ranks that share each matrix in fsdp+tp", _COUNT)
    device: str = _option("auto", "auto: a GPU where there is one", DEVICES)
    chats: tuple[str, ...] = _option(
        (),
        "the chats of a language model, whose answers alone it learns: a JSON object a line, with "
        "messages, or with prompt and completion",
    )
    source: tuple[str, ...] = _option((), "the texts that a translator reads, a sentence a line")
    target: tuple[str, ...] = _option((), "their translations, line by line, as many files")

    def __post_init__(self) -> None:
        """Refuses values of which no run can be made."""
        if not self.out:
            raise TrainingError("--out must name the folder of the run")
        for each in fields(self):
            _require(each, getattr(self, each.name))
        if not self.architecture:
            name = self._plan_of_start().name if self.start else "gpt2"
            object.__setattr__(self, "architecture", name)
        self._require_texts()
        self._require_fitting()
        if self.start:
            self._require_start()
            return
        try:
            self.model(vocab_size=257)
        except ValueError as error:
            raise TrainingError(f"{self._blamed()}: {error}") from error

    def _plan_of_start(self) -> Plan:
        """The plan of the model to begin with, by what its `config.json` says that it is."""
        try:
            path = find_folder(self.start) / CONFIG
            found = read_json_object(path).get("model_type")
        except (ValueError, OSError) as error:
            raise TrainingError(f"--from {self.start}: {error}") from error
        plans = plans_by_type()
        if not isinstance(found, str) or found not in plans:
            raise TrainingError(
                f"--from {self.start}: {path}: model_type is {shown(found)}, and the language "
                f"models that can be trained are of {', '.join(plans)}"
            )
        return plans[found]

    def _require_start(self) -> None:
        """Refuses a model to begin with that is none, and options that it leaves no choice of."""
        if self.plan.pairs:
            raise TrainingError("--from is for language models, and --model transformer is none")
        defaults = {each.name: each.default for each in fields(self)}
        given = [_flag(name) for name in _SIZES if getattr(self, name) != defaults[name]]
        if given:
            raise TrainingError(
                f"--from {self.start}: the model has its own sizes; leave out {' and '.join(given)}"
            )
        longest = self.plan.shape(self._begun).max_seq
        if longest is not None and self.seq > longest:
            raise TrainingError(
                f"--seq {self.seq}: the model in --from {self.start} has {longest} positions"
            )

    @cached_property
    def _begun(self) -> Any:
        """The sizes of the model to begin with, with the dropout of this run."""
        try:
            sizes = read_config(self.plan.codec, find_folder(self.start) / CONFIG)
        except (ValueError, OSError) as error:
            other = ""
            if "model_type" in str(error):
                other = f"; --model is {self.architecture}, and can be left out"
            raise TrainingError(f"--from {self.start}: {error}{other}") from error
        names = {each.name for each in fields(sizes)}
        if "dropout" in names:
            # At 0 nothing is dropped; else the model's own shares in single places stay.
            none = {"attention_dropout": None, "activation_dropout": 0.0}
            others = {} if self.dropout else {k: v for k, v in none.items() if k in names}
            return replace(sizes, dropout=self.dropout, **others)
        if self.dropout:
            raise TrainingError(f"--dropout {self.dropout}: the model in --from has no dropout")
        return sizes

    def _require_texts(self) -> None:
        """Refuses texts of another kind than the model learns from."""
        texts = {flag: names for flag, names in self.texts.items() if names and all(names)}
        name = self.architecture
        if self.plan.pairs and (self.data or self.chats or len(texts) < 2):
            raise TrainingError(
                f"--model {name} learns from --source and --target, one text file or more each, "
                f"and not from --data or --chats; got {_named(self)}"
            )
        if not self.plan.pairs and (self.source or self.target):
            raise TrainingError(
                f"--source and --target are what a translator learns from, and --model {name} is "
                f"a language model, which learns from --data or --chats; got {_named(self)}"
            )
        if self.data and self.chats:
            raise TrainingError("a run learns from --data or from --chats, and both are given")
        if not texts:
            raise TrainingError("--data must name one text file or more, or --chats one of chats")
        if self.chats and not (self.start or self.tokenizer):
            raise TrainingError(
                "--chats needs --from or --tokenizer, a folder whose tokenizer has a chat template"
            )
        if len(self.source) != len(self.target):
            raise TrainingError(
                "--source and --target must name as many files, got "
                f"{len(self.source)} and {len(self.target)}"
            )

    def _require_fitting(self) -> None:
        """Refuses options that mean nothing beside others."""
        if self.label_smoothing and not self.plan.pairs:
            raise TrainingError(
                f"--label-smoothing is for translators, and --model {self.architecture} is none"
            )
        if self.parallel in ("tp", "fsdp+tp") and not self.plan.cuts:
            raise TrainingError(
                f"--parallel {self.parallel}: ranks cannot share the matrices of --model "
                f"{self.architecture}; give ddp or fsdp"
            )
        if self.lora_rank and not self.start:
            raise TrainingError("--lora-rank needs --from: adapters go with a model that is there")
        if self.lora_rank and self.parallel not in ("none", "ddp"):
            raise TrainingError(
                f"--lora-rank: ranks cannot share the matrices that have adapters, as --parallel "
                f"{self.parallel} does; give none or ddp"
            )
        if self.schedule == "paper" and (self.lr, self.min_lr) != (_LR, _MIN_LR):
            raise TrainingError(
                "--schedule paper takes no --lr and no --min-lr: the learning rate follows from "
                "--n-embd and --warmup"
            )
        if self.schedule == "paper" and self.warmup_steps < 1:
            raise TrainingError(
                f"--schedule paper needs a step or more in which the rate rises, and --warmup "
                f"{self.warmup} of {self.steps} is none"
            )

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """The text files that the run learns from, by their options."""
        if self.plan.pairs:
            return {"--source": self.source, "--target": self.target}
        return {"--chats": self.chats} if self.chats else {"--data": self.data}

    @property
    def warmup_steps(self) -> int:
        """Steps in which the learning rate rises."""
        return round(self.warmup * self.steps)

    @property
    def plan(self) -> Plan:
        """How the model is made, stored and shared."""
        return PLANS[self.architecture]

    def model(self, vocab_size: int) -> Any:
        """The sizes of the model.

        Args:
            vocab_size: Tokens of the tokenizer.
        """
        if not self.start:
            return self.plan.sizes_of(**self._sizes(vocab_size))
        known = self.plan.shape(self._begun).vocab_size
        if vocab_size > known:
            raise TrainingError(
                f"the tokenizer has {vocab_size:,} tokens, and the model in --from {self.start} "
                f"{known:,}"
            )
        return self._begun

    def _sizes(self, vocab_size: int) -> dict[str, Any]:
        return {
            "vocab_size": vocab_size,
            "seq": self.seq,
            "n_layer": self.n_layer,
            "n_head": self.n_head,
            "n_kv_head": self.n_kv_head,
            "n_embd": self.n_embd,
            "dropout": self.dropout,
        }

    def _blamed(self) -> str:
        """The options of which no model can be made: those without which one can."""
        for name, flags in (("dropout", "--dropout"), ("n_kv_head", "--n-head and --n-kv-head")):
            try:
                self.plan.sizes_of(
                    **{**self._sizes(vocab_size=257), name: type(getattr(self, name))()}
                )
            except ValueError:
                continue
            return flags
        return "--n-embd and --n-head"

    def fixed(self) -> dict[str, Any]:
        """The values that a run must share with the checkpoint that it goes on from."""
        return {name: value for name, value in asdict(self).items() if name not in MAY_DIFFER}

    def at_once(self, share: int) -> int:
        """How many sequences a rank computes at once.

        Args:
            share: Sequences of a step that are the rank's.

        Raises:
            TrainingError: If the micro-batches would differ in size.
        """
        size = min(self.micro_batch or share, share)
        if share % size:
            raise TrainingError(
                f"--micro-batch {size} must divide {share}, the sequences of a step on each rank"
            )
        return size

    def to_toml(self) -> str:
        """The values as a TOML file, which `--config` reads."""
        return "".join(f"{name} = {_toml(value)}\n" for name, value in asdict(self).items())


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
    parser = _Parser(
        prog="python -m transformer_training",
        description="Trains a language model on text files, or a translator on pairs of them. The "
        "same command again goes on where a run was ended, by whatever ended it. Under torchrun, "
        "--parallel says how ranks share the work.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file with any of these options")
    for each in fields(TrainingConfig):
        _add(parser, each)
    given = vars(parser.parse_args(arguments))
    path = given.pop("config", None)
    values = {} if path is None else _read_toml(Path(path))
    values |= {name: value for name, value in given.items() if value is not None}
    for each in fields(TrainingConfig):
        if isinstance(each.default, tuple) and each.name in values:
            values[each.name] = tuple(values[each.name])
    return TrainingConfig(**values)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in a sentence, as all of the command does."""

    def error(self, message: str) -> NoReturn:
        raise TrainingError(f"{message}; --help lists the options")


def _add(parser: argparse.ArgumentParser, option: "Field[Any]") -> None:
    shown = {"help": option.metadata["help"] + f" ({option.default!r})", "default": None}
    if isinstance(option.default, tuple):
        shown["help"] = option.metadata["help"]
        parser.add_argument(_flag(option.name), nargs="+", metavar="FILE", **shown)
    elif isinstance(option.default, bool):
        parser.add_argument(_flag(option.name), action=argparse.BooleanOptionalAction, **shown)
    else:
        kind = type(option.default)
        allowed = option.metadata["allowed"]
        choices = None if isinstance(allowed, _Range) else allowed
        metavar = None if choices else kind.__name__.upper()
        flags = [_flag(option.name), *_OTHER_FLAGS.get(option.name, ())]
        parser.add_argument(*flags, type=kind, choices=choices, metavar=metavar, **shown)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        content = read_regular(path, _LONGEST_FILE)
    except (OSError, ValueError) as error:
        raise TrainingError(f"--config {error}") from error
    try:
        entries = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise TrainingError(f"--config {path}: is no TOML: {error}") from error
    defaults = {each.name: each.default for each in fields(TrainingConfig)}
    for name, value in entries.items():
        if name not in defaults:
            raise TrainingError(f"--config {path}: there is no option {name!r}")
        wanted = list if isinstance(defaults[name], tuple) else type(defaults[name])
        if wanted is float and type(value) is int and abs(value) < 2**1023:
            entries[name] = float(value)
        elif type(value) is not wanted:
            raise TrainingError(
                f"--config {path}: {name} must be of type {wanted.__name__}, got {_shown(value)}"
            )
    return entries


def _require(option: "Field[Any]", value: Any) -> None:
    """Refuses a number out of range, a word that is none of the choices, and what no text has."""
    flag, allowed = _flag(option.name), option.metadata["allowed"]
    if allowed is not None and value != option.default and value not in allowed:
        wanted = allowed if isinstance(allowed, _Range) else f"one of {tuple(allowed)}"
        raise TrainingError(f"{flag} must be {wanted}, got {_shown(value)}")
    for text in value if isinstance(value, list | tuple) else (value,):
        if isinstance(option.default, str | tuple) and not _is_text(text):
            raise TrainingError(
                f"{flag} must be text that UTF-8 can write, without NUL, got {_shown(text)}"
            )


def _named(config: TrainingConfig) -> str:
    """Which of the options that name texts are given."""
    given = [
        _flag(name) for name in ("data", "chats", "source", "target") if any(getattr(config, name))
    ]
    return " and ".join(given) or "none of them"


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and "\0" not in value and value.encode() is not None
    except UnicodeEncodeError:  # bytes of the command line that are no UTF-8
        return False


def _shown(value: object) -> str:
    """A value in an error: Python refuses to print an int of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    return reprlib.repr(value)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
