"""`python -m evaluation.held_out_sizes`: our models and their references at random sizes.

A line for each config tells the largest difference of each kind. The exit status is 1 if one was
beyond its bound. `--only` and `--seed` with `--configs 1` run a single config again.
"""

import argparse
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers.utils import logging

from evaluation.held_out_sizes.decoders import FAMILIES, decoder
from evaluation.held_out_sizes.differences import Row
from evaluation.held_out_sizes.rotary import rotary
from evaluation.held_out_sizes.translators import marian, of_torch

KINDS: dict[str, Callable[[random.Random], Row]] = {
    **{family: partial(decoder, family) for family in FAMILIES},
    "marian": marian,
    "torch": of_torch,
    "rotary": rotary,
}


def main() -> int:
    """Draws configs of each kind, and prints what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.held_out_sizes", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first config of each kind")
    parser.add_argument("--configs", type=int, default=30, help="how many of each kind")
    parser.add_argument("--only", choices=KINDS, action="append", help="this kind; may be repeated")
    asked = parser.parse_args()
    quiet: Any = logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    beyond = 0
    for kind in asked.only or KINDS:
        for seed in range(asked.seed, asked.seed + asked.configs):
            torch.manual_seed(seed)
            row = KINDS[kind](random.Random(f"{kind} {seed}"))
            print(f"{seed} {row}", flush=True)
            beyond += bool(row.beyond)
    print(f"{beyond or 'no'} configs beyond the bounds")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
