"""Trains a GPT-2 from the command line."""

import os
import sys

import torch.distributed as dist

from transformer_training.config import TrainingError, parse
from transformer_training.run import StoppedError, train


def main() -> int:
    """Trains; says in a sentence why it cannot. A mistake in the program is a traceback.

    Returns:
        The status: 2 for options of which no run can be made, 1 for a run that cannot begin or go
            on, 128 and the signal's number for one that a signal ended after it was saved.
    """
    try:
        config = parse()
    except TrainingError as error:
        _complain(str(error))
        return 2
    try:
        train(config)
    except (TrainingError, OSError) as error:
        _complain(str(error))
        return 1
    except StoppedError as stopped:
        _complain(f"{stopped}; the state is saved, and the same command goes on")
        return 128 + stopped.signal
    except RuntimeError as error:
        if not _is_of_a_lost_rank(error):
            raise
        _complain(
            f"the ranks cannot go on together, as when one was lost: {str(error).splitlines()[0]}; "
            "the last checkpoint stands, and the same command goes on from it"
        )
        return 1
    return 0


def _is_of_a_lost_rank(error: RuntimeError) -> bool:
    """Whether ranks could not meet or send: torch has a class for it, gloo only names itself."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _complain(text: str) -> None:
    rank = f" (rank {os.environ['RANK']})" if "RANK" in os.environ else ""
    print(f"transformer_training{rank}: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
