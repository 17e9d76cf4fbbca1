"""Parallel readers end with their build, and a build that loses one says so."""

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sphinx.errors import SphinxError

from tests.verified_book.forks import CONTEXT
from verified_book.kernels import parallel_tasks

pytestmark = pytest.mark.xdist_group("kernels")


def in_a_process(target: Callable[[Connection], None]) -> tuple[object, int | None]:
    """What a function sends from a process of its own, and how that ends."""
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=target, args=(theirs,))
    process.start()
    theirs.close()
    found = ours.recv()
    process.join(60)
    return found, process.exitcode


def outcome(*tasks: Callable[[], object]) -> str:
    """The error of tasks, of which two run at once."""
    watched = parallel_tasks.WatchedTasks(2)
    try:
        for task in tasks:
            watched.add_task(lambda arguments, task=task: task(), ["a", "b"])
            for begun in watched._precvs:  # the next one is handed out when these have ended
                watched._procs[begun].join()
        watched.join()
    except SphinxError as error:
        return str(error)
    return "all is well"


def fails() -> None:
    raise ValueError("mine")


def lose_one(pipe: Connection) -> None:
    pipe.send(
        [
            outcome(lambda: 1, lambda: 2, lambda: 3),
            outcome(lambda: 1, lambda: os.kill(os.getpid(), signal.SIGKILL)),
            outcome(fails, lambda: 2, lambda: 3, lambda: 4),
        ]
    )


def test_a_reader_that_dies_or_fails_ends_the_build_with_a_sentence():
    found, status = in_a_process(lose_one)
    assert found == [
        "all is well",
        "the process that read a, b has died (killed by SIGKILL); build again, with fewer jobs if "
        "memory is short",
        "ValueError: mine",
    ]
    assert status == 0


def test_chunks_have_every_page_once_and_end_in_single_ones():
    names = [f"page{i}" for i in range(91)]
    chunks = parallel_tasks.shrinking_chunks(names, 8)
    assert [name for chunk in chunks for name in chunk] == names
    sizes = [len(chunk) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-8:] == [1] * 8


def test_long_pages_are_read_first(tmp_path: Path) -> None:
    for name, size in (("a", 3), ("b", 9), ("c", 5)):
        (tmp_path / name).write_text("x" * size)
    pages = ["a", "b", "c"]
    parallel_tasks.longest_first(pages, lambda page: str(tmp_path / page))
    assert pages == ["b", "c", "a"]
