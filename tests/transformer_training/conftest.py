"""A text, the options of a small run, and the process that starts runs."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transformer_training.processes import Parent


@pytest.fixture(scope="session")
def parent() -> Iterator[Parent]:
    process = Parent()
    yield process
    process.close()


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 words of which each is one of two after the word before it."""
    draws = random.Random(0)
    words = ["".join(draws.choices("abcdefgh", k=draws.randint(2, 5))) for _ in range(30)]
    place, written = 0, []
    for i in range(2000):
        place = (3 * place + draws.randint(1, 2)) % len(words)
        written.append(words[place] + ("\n" if i % 11 == 10 else " "))
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_text("".join(written), encoding="utf-8")
    return path


@pytest.fixture
def small(text: Path) -> list[str]:
    """Options of a run of 30 steps that takes a second; `--out` is to be added."""
    options = "--steps 30 --batch-size 4 --seq 8 --n-layer 1 --n-head 2 --n-embd 8 --lr 1e-2"
    more = "--vocab-size 260 --checkpoint-every 5 --evaluate-every 10"
    return ["--data", str(text), *options.split(), *more.split()]


@pytest.fixture
def ended_if_it_waits() -> Iterator[None]:
    """What waits for a pipe is ended; no test takes a tenth of this."""

    def ended(*_: object) -> None:
        raise AssertionError("still waiting after two minutes")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
