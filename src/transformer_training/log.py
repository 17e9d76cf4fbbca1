"""What a run says while it goes: a line a step in a file, a bar on the screen."""

import importlib.util
import sys
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tqdm import tqdm

from transformer_layers.checkpoints.regular_file import require_regular
from transformer_training.estimate import duration
from transformer_training.lines import entries_of, line_of
from transformer_training.state import replacing, set_aside, why_not

_LONGEST = 1 << 16  # bytes of a line, at most
_SHOWN = 5  # gaps that are named


class Log:
    """The log of a run, of the rank that keeps it; it says which steps a damaged log has lost.

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
        kept = _lines_up_to(path, step)
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
        self._file.write(line_of(line))
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


def _lines_up_to(path: Path, step: int) -> list[str]:
    """The lines of the steps that count, each as it was written; says which there are not."""
    found: dict[int, str] = {}
    damage, unread = "", False
    try:
        require_regular(path)
        with path.open("rb") as file:
            while line := file.readline(_LONGEST):
                if len(line) == _LONGEST:  # without a line break, as a file of zeros
                    raise ValueError(f"{path}: has a line of more than {_LONGEST:,} bytes")
                try:
                    found.setdefault(entries_of(line)["step"], line.decode())
                except (ValueError, KeyError):  # the end of a line that was cut, or damage
                    unread = True
    except FileNotFoundError:
        damage = f"{path}: leads nowhere" if path.is_symlink() else ""
    except (ValueError, OSError) as error:
        damage = why_not(path, error)
    missing = [each for each in range(1, step + 1) if each not in found]
    lacks = f"{path}: has no whole line of {_steps(missing)}, and goes on without" * bool(missing)
    kept = ""
    if damage or (missing and unread):
        kept = f"what was there is kept as {set_aside(path).name}"
    if damage or missing:
        say("; ".join(filter(None, [damage, lacks, kept])))
    return [found[each] for each in range(1, step + 1) if each in found]


def _steps(numbers: Sequence[int]) -> str:
    """Names steps in a few words.

    Examples:
        >>> _steps([3, 4, 5, 9])
        'steps 3 to 5, step 9'
    """
    # Neighbors in a run of steps have the same distance from their places in the list.
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda at: at[1] - at[0])]
    named = [f"steps {run[0]:,} to {run[-1]:,}" if run[1:] else f"step {run[0]:,}" for run in runs]
    more = [f"{len(named) - _SHOWN:,} more"] if len(named) > _SHOWN else []
    return ", ".join([*named[:_SHOWN], *more])


def _board(folder: Path, step: int) -> Any:
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter  # seconds to import

    return SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
