"""Trains a GPT-2 from the command line."""

import os
import sys

from transformer_training.config import TrainingError, parse
from transformer_training.run import StoppedError, train


def main() -> int:
    """Trains; says in a sentence why it cannot.

    Returns:
        The status: 1 for a run that cannot begin or go on, 128 and the signal's number for one that
        a signal ended after it was saved.
    """
    try:
        train(parse())
    except (TrainingError, ValueError, OSError) as error:
        _complain(str(error))
        return 1
    except StoppedError as stopped:
        _complain(f"{stopped}; the state is saved, and the same command goes on")
        return 128 + stopped.signal
    except RuntimeError as error:
        if "WORLD_SIZE" not in os.environ:
            raise
        _complain(
            f"the ranks cannot go on together, as when one was lost: {str(error).splitlines()[0]}; "
            "the last checkpoint stands, and the same command goes on from it"
        )
        return 1
    return 0


def _complain(text: str) -> None:
    rank = f" (rank {os.environ['RANK']})" if "RANK" in os.environ else ""
    print(f"transformer_training{rank}: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
