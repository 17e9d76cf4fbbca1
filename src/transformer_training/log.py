"""What a run says while it goes: a line a step in a file, a bar on the screen."""

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_training.estimate import duration
from transformer_training.state import replacing


class Log:
    """The log of a run, of the rank that keeps it.

    Args:
        folder: The run's; the log is its `log.jsonl`.
        step: The last step that counts: later lines are of a run that was ended, and go.
        steps: Number of steps.
        tokens: Tokens of a step.

    Raises:
        OSError: If the file cannot be written.
    """

    def __init__(self, folder: Path, step: int, steps: int, tokens: int) -> None:
        path = folder / "log.jsonl"
        kept = list(_lines_up_to(path, step))
        with replacing(path) as aside:
            aside.write_text("".join(kept), encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")
        self._bar = tqdm(total=steps, initial=step, disable=None, unit="step", leave=False)
        self._steps, self._tokens = steps, tokens
        self._begun, self._first = time.perf_counter(), step
        self._board = _board(folder, step)

    def write(self, step: int, entries: dict[str, Any]) -> None:
        """Writes the line of a step: whole, or not at all when the process is killed."""
        passed = max(time.perf_counter() - self._begun, 1e-9)
        speed = self._tokens * (step - self._first) / passed
        left = passed / (step - self._first) * (self._steps - step)
        line = {"step": step, **entries, "tokens_per_second": round(speed)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._bar.set_postfix_str(f"loss {entries['loss']:.3f}, {speed:,.0f} tokens/s")
        self._bar.update()
        if self._board is not None:
            for name, value in entries.items():
                self._board.add_scalar(name, value, step)
        if "validation_loss" in entries:
            say(
                f"step {step:,} of {self._steps:,}: loss {entries['loss']:.4f}, validation "
                f"{entries['validation_loss']:.4f}, {speed:,.0f} tokens/s, {duration(left)} left"
            )

    def close(self) -> None:
        """Ends the bar and closes the file."""
        self._bar.close()
        self._file.close()
        if self._board is not None:
            self._board.close()


def say(text: str) -> None:
    """Prints a line above the bar."""
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


def _lines_up_to(path: Path, step: int) -> Iterator[str]:
    if step == 0 or not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            with suppress(ValueError, KeyError, TypeError):  # the end of a line that was cut
                if json.loads(line)["step"] <= step and line.endswith("\n"):
                    yield line


def _board(folder: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter  # seconds to import

    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
