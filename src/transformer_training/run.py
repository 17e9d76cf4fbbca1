"""A run of training, from its texts to its model."""

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from transformer_layers.checkpoints.checkpoint import read_checkpoint
from transformer_layers.checkpoints.folder import CONFIG
from transformer_layers.checkpoints.json_file import read_json_object
from transformer_training import state as states
from transformer_training.adapters import (
    add_adapters,
    digest,
    merged_weights,
    save_adapters,
    why_not_alone,
)
from transformer_training.chat_rows import ChatRows, prepare_chats
from transformer_training.config import TrainingConfig, TrainingError
from transformer_training.estimate import estimate, require_memory
from transformer_training.log import Log, say
from transformer_training.pairs import Pairs, prepare_pairs
from transformer_training.plans.cuts import Cut, cut_of
from transformer_training.plans.plan import Trainable
from transformer_training.ranks import Ranks, ranks_of
from transformer_training.step import (
    evaluate,
    inverse_sqrt_rate,
    learning_rate,
    make_optimizer,
    train_step,
)
from transformer_training.tokens import Tokens, prepare, rows_of_step, seed_of
from transformer_training.vocabulary import begin_of, end_of

if sys.platform != "win32":
    import fcntl

_MOMENTS = ("exp_avg", "exp_avg_sq")
_FEWEST_TOKENS = 257  # of a tokenizer: the bytes, and the end of a text


class StoppedError(Exception):
    """A signal asked the run to end, and its state is saved.

    Attributes:
        signal: Which one.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.signal = number


def train(config: TrainingConfig) -> Path:
    """Trains a model, or goes on with it where a run in the same folder was ended.

    Args:
        config: What to train, on what.

    Returns:
        The folder of the trained model and its tokenizer, for the model's `from_pretrained` and
        for `load_tokenizer`.

    Raises:
        TrainingError: If the run cannot begin or go on; the last checkpoint stands.
        OSError: If something cannot be written; the last checkpoint stands.
        StoppedError: If SIGTERM or SIGINT came; the state is saved.
    """
    out = Path(config.out)
    with (
        ranks_of(config) as ranks,
        _alone(out, ranks),
        _signals() as signals,
        closing(Run(config, ranks)) as run,
    ):
        run.go_on()
        while run.step < config.steps:
            run.next_step()
            stop = ranks.any(bool(signals))
            if stop or run.step % config.checkpoint_every == 0 or run.step == config.steps:
                run.save()
            if stop and run.step < config.steps:
                raise StoppedError(signals[0] if signals else signal.SIGTERM)
        return run.finish()


class Run:
    """The parts of a run, and what is done with them at each step.

    Args:
        config: The run's.
        ranks: The processes that share it.
    """

    def __init__(self, config: TrainingConfig, ranks: Ranks) -> None:
        self.config, self.ranks, self.out = config, ranks, Path(config.out)
        self.step = 0
        self.best: float | None = None
        self.at_once = config.at_once(config.batch_size // ranks.data_ranks)
        require_memory(config, _FEWEST_TOKENS, ranks.size, ranks.device)
        self.tokens = self._prepared()
        self.rows = self.tokens.rows()
        self.sizes = config.model(self.tokens.tokenizer.vocab_size)
        require_memory(config, self.sizes.vocab_size, ranks.size, ranks.device)
        torch.manual_seed(config.seed)
        self.model = config.plan.model(self.sizes)
        self.fixed = {**config.fixed(), "texts": self.tokens.fingerprint}
        self.adapters: Any = None
        if config.start:
            weights = _weights(config)
            self.model.load_state_dict(weights)
            if config.lora_rank:
                self.fixed["weights"] = digest(weights)
                self.adapters = _adapters(config, self.model)
        self.model.to(ranks.device)
        self.loss = ranks.wrap(
            config.plan,
            self.model,
            config.compile,
            config.label_smoothing,
            recompute=config.recompute,
        )
        betas = (config.beta1, config.beta2)
        self.optimizer = make_optimizer(
            self.model, config.lr, config.weight_decay, betas, config.eps
        )
        self.log: Log | None = None

    def next_step(self) -> None:
        """Makes one step, and logs it."""
        config, step = self.config, self.step + 1
        # Whatever a step draws follows from its number, so no generator needs saving.
        torch.manual_seed(seed_of(config.seed, "step", step, self.ranks.data_rank))
        rows = rows_of_step(step, config.batch_size, self.rows, config.seed)
        lr = self._rate(step)
        loss, length = train_step(
            self.loss_of,
            self.optimizer,
            list(self._batches(self.ranks.share(rows).split(self.at_once), rows)),
            lr,
            config.clip,
            lambda: self.ranks.unsent(self.loss),
        )
        entries = {"loss": self.ranks.mean(loss).item(), "lr": lr, "grad_norm": length.item()}
        if not math.isfinite(entries["loss"] + entries["grad_norm"]):
            raise TrainingError(
                f"step {step}: the loss is {entries['loss']} and the gradient's norm "
                f"{entries['grad_norm']}; a lower --lr or --weight-decay may help. "
                f"{self._standing()}"
            )
        self.step = step
        if step % config.evaluate_every == 0 or step == config.steps:
            entries |= self._evaluate()
        if self.log:
            self.log.write(step, entries)
        if config.sample_every and (step % config.sample_every == 0 or step == config.steps):
            self._sample()

    def loss_of(self, batch: Any) -> Tensor:
        """The mean loss of a batch, in the precision that was asked for."""
        lower = self.config.precision == "bfloat16"
        with torch.autocast(self.ranks.device.type, torch.bfloat16, enabled=lower):
            return self.loss(batch)

    def _rate(self, step: int) -> float:
        config = self.config
        if config.schedule == "paper":
            width = config.plan.shape(self.sizes).features
            return inverse_sqrt_rate(step, width, config.warmup_steps)
        return learning_rate(
            step, config.steps, config.warmup_steps, config.lr, config.min_lr * config.lr
        )

    def _batches(
        self, parts: Sequence[Tensor], among: Tensor, held_out: bool = False
    ) -> Iterator[Any]:
        """This rank's batches of what all ranks learn from, or are held against."""
        for batch in self.tokens.batches(parts, among, self.ranks.data_ranks, held_out):
            yield tree_map(lambda each: each.to(self.ranks.device), batch)

    def go_on(self) -> None:
        """Takes up the last state that was saved, if one was, and says what is about to be done."""
        config, first = self.config, self.ranks.rank == 0
        found, damaged = states.load(self.out / "checkpoints", self.fixed, keeper=first)
        if first:
            for sentence in damaged:
                say(f"a checkpoint is left out: {sentence}")
        if found is not None:
            self.step, self.best = found.step, found.best
            self._put(found.tensors)
            if self.ranks.any(first and self._best_is_lost()):
                self.best = None
        if not first:
            return
        with states.replacing(self.out / "config.toml") as aside:
            aside.write_text(config.to_toml(), encoding="utf-8")
        say(config.to_toml().rstrip())
        needs = estimate(config, self.sizes.vocab_size, self.ranks.size, device=self.ranks.device)
        epochs = config.steps * config.batch_size / self.rows
        say(f"{self.tokens.said(epochs)}; {needs}")
        if self.adapters is not None and (why := why_not_alone(self.model)):
            say(f"warning: {why}; {self.out / 'final'} alone will have them, added to the model")
        say(f"going on after step {self.step:,}" if self.step else "beginning")
        tokens = config.batch_size * self.tokens.per_row
        self.log = Log(self.out, self.step, config.steps, tokens)

    def save(self) -> None:
        """Saves the state: all ranks give their parts, the first one writes."""
        tensors = {}
        for name, part in self._parts():
            full = self.ranks.collect(part, self._cut(name))
            if self.ranks.rank == 0:
                tensors[name] = full.cpu()
        if self.ranks.rank == 0:
            state = states.State(self.step, tensors, self.fixed, self.best)
            states.save(self.out / "checkpoints", state, self.config.keep)

    def finish(self) -> Path:
        """Writes the model and its tokenizer."""
        folder = self.out / "final"
        model = self._plain()
        if self.ranks.rank == 0:
            self._write(model, folder)
            say(f"the model is in {folder}")
            if self.adapters is not None and not why_not_alone(self.model):
                start = Path(self.config.start)
                base = start.absolute() if start.exists() else start
                save_adapters(self.adapters, self.out / "adapter", base)
                say(f"its adapters alone are in {self.out / 'adapter'}")
        self.ranks.wait()
        return folder

    def _write(self, model: Trainable, folder: Path) -> None:
        """Writes a model and its tokenizer, so that others end a text where it ends one."""
        model.save_pretrained(folder)
        self.tokens.tokenizer.save(folder)
        path = folder / CONFIG
        entries = read_json_object(path)
        if entries.get("eos_token_id", 0) is None:  # the model says nothing of its tokens
            tokenizer = self.tokens.tokenizer
            begin = begin_of(tokenizer) or [end_of(tokenizer)]
            ends = {"bos_token_id": begin[0], "eos_token_id": end_of(tokenizer)}
            with states.replacing(path) as aside:
                text = json.dumps(entries | ends, indent=2, sort_keys=True)
                aside.write_text(text + "\n", encoding="utf-8")

    def close(self) -> None:
        """Closes the log."""
        if self.log:
            self.log.close()

    def _prepared(self) -> Tokens | ChatRows | Pairs:
        folder, found = self.out / "tokens", None
        prepared: Callable[[TrainingConfig, Path], Tokens | ChatRows | Pairs] = prepare
        if self.config.plan.pairs:
            prepared = prepare_pairs
        elif self.config.chats:
            prepared = prepare_chats
        if self.ranks.rank == 0:
            found = prepared(self.config, folder)
        self.ranks.wait()
        return prepared(self.config, folder) if found is None else found

    def _best_is_lost(self) -> bool:
        """Whether the best model so far is damaged, or gone; says so if it is."""
        if self.best is None:
            return False
        folder = self.out / "best"
        try:
            read_checkpoint(self.config.plan.codec, folder)
        except (ValueError, OSError) as error:
            said = (
                f"{states.why_not(folder, error)}; the best model from here on is kept in {folder}"
            )
            if os.path.lexists(folder):
                said += f", what was there in {states.set_aside(folder).name}"
            say(said)
            return True
        return False

    def _evaluate(self) -> dict[str, float]:
        """The validation loss; where it is the lowest so far, the model is kept as the best."""
        config, ranks = self.config, self.ranks
        rows = self.tokens.rows(held_out=True)
        if rows < ranks.data_ranks:
            return {}
        size = min(config.batch_size, rows - rows % ranks.data_ranks)
        count = min(rows // size, config.validation_batches)
        among = torch.arange(count * size)
        parts = [ranks.share(part) for part in among.split(size)]
        batches = self._batches(parts, among, held_out=True)
        # A batch's loss has been multiplied by its share of all tokens, those of other ranks too.
        mean = evaluate(self.loss, self.loss_of, batches, scored=lambda batch: 1)
        loss = ranks.mean(mean).item()
        if loss < (math.inf if self.best is None else self.best):  # NaN is no best
            self.best = loss
            model = self._plain()
            if ranks.rank == 0:
                self._write(model, self.out / "best")
        return {"validation_loss": loss}

    def _sample(self) -> None:
        """Says how the model goes on from the prompt; whatever that raises, the step is saved."""
        model = self._plain()
        error: Exception | None = None
        if self.ranks.rank == 0:
            try:
                say(f"step {self.step:,} writes: {self._written_by(model)!r}")
            except ValueError as raised:  # of logits that are not finite; the next loss says more
                say(f"step {self.step:,} writes nothing: {raised}")
            except Exception as raised:
                error = raised
        if self.ranks.any(error is not None):
            self.save()
            raise error or TrainingError("the first rank cannot write a sample; the step is saved")

    def _written_by(self, model: Trainable) -> str:
        config = self.config
        return self.tokens.sample(model, config.prompt, config.sample_tokens, config.seed)

    def _plain(self) -> Trainable:
        """The model as one process has it, on the CPU; empty on all ranks but the first."""
        with torch.device("meta"):
            plain = self.config.plan.model(self.sizes)
        weights = {}
        if self.adapters is not None:  # each rank has them whole
            weights = merged_weights(self.model) if self.ranks.rank == 0 else {}
        else:
            for name, parameter in self.model.named_parameters():
                full = self.ranks.collect(parameter, self._cut(name))
                if self.ranks.rank == 0:
                    weights[name] = full.cpu()
        if weights:
            plain.load_state_dict(weights, assign=True)
        return plain

    def _parts(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._learning():
            yield f"weight/{name}", parameter
            for moment in _MOMENTS:
                yield f"{moment}/{name}", self.optimizer.state[parameter][moment]

    def _learning(self) -> Iterator[tuple[str, Tensor]]:
        """The weights that steps change: all, or those of the adapters."""
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                yield name, parameter

    def _cut(self, name: str) -> tuple[Cut, int] | None:
        """How ranks cut a part, a weight or one of its moments."""
        return cut_of(self.config.plan.cuts, self.model, name.rpartition("/")[2])

    def _put(self, tensors: Any) -> None:
        for _, parameter in self._learning():
            moments = {each: torch.zeros_like(parameter.detach()) for each in _MOMENTS}
            self.optimizer.state[parameter] = {"step": torch.tensor(float(self.step)), **moments}
        for name, part in self._parts():
            self.ranks.spread(tensors[name], onto=part, cut=self._cut(name))

    def _standing(self) -> str:
        last = states.last_step(self.out / "checkpoints")
        return f"The last checkpoint is that of step {last}" if last else "There is no checkpoint"


def _weights(config: TrainingConfig) -> dict[str, Tensor]:
    """The weights that a run begins with, in float32."""
    try:
        found = config.plan.model.from_pretrained(config.start)
    except (ValueError, OSError) as error:
        raise TrainingError(f"--from {config.start}: {error}") from error
    return found.float().state_dict()


def _adapters(config: TrainingConfig, model: Trainable) -> Any:
    try:
        return add_adapters(model, config.lora_rank)
    except ImportError as error:
        raise TrainingError("--lora-rank needs the package peft: pip install peft") from error


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Notes SIGTERM and SIGINT, so that a step is finished first; a second one ends at once."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alone(out: Path, ranks: Ranks) -> Iterator[None]:
    """Refuses a second run in the same folder; the lock goes with the process, however it ends."""
    if ranks.rank != 0:
        yield
        return
    _make_folders(out)
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TrainingError(f"{out}: another run is at work there") from error
        except OSError:  # not every file system has locks
            pass
        yield
    finally:
        os.close(descriptor)


def _make_folders(out: Path) -> None:
    """Finds out before the first step that what a run leaves has a place."""
    for folder in (out, *(out / name for name in ("tokens", "checkpoints", "best", "final"))):
        if folder.name in ("best", "final") and not os.path.lexists(folder):
            continue  # made when there is something to put in
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise TrainingError(
                f"{folder}: must be a folder, and something else is in its place; move that away, "
                "or give another --out"
            ) from error
        except OSError as error:
            raise TrainingError(f"--out {out}: cannot be made: {error.strerror}") from error
