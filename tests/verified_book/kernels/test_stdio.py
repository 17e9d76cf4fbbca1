"""What child processes print, in a stream as ipykernel has it."""

import os
from typing import Any

import pytest

from verified_book.kernels import stdio

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no pipes to wait for")


class Stream:
    """As much of ipykernel's stream as is needed."""

    def __init__(self, watched: bool = True) -> None:
        self._fid, self.end = os.pipe()
        self.outside, self._original_stdstream_copy = os.pipe()
        self._should_watch = watched
        self._exc = None
        self.texts: list[str] = []
        self.sent: list[str] = []

    def _is_master_process(self) -> bool:
        return True

    def _watch_pipe_fd(self) -> None:
        raise NotImplementedError

    def write(self, text: str) -> int:
        self.texts.append(text)
        return len(text)

    def flush(self) -> None:
        self.sent.append("".join(self.texts))


@pytest.fixture
def streams() -> Any:
    """A class of streams that keep the order."""

    class Ordered(Stream):
        write, flush, _watch_pipe_fd = Stream.write, Stream.flush, Stream._watch_pipe_fd

    stdio.keep_order(Ordered)
    return Ordered


def texts_around(stream: Any, printed: bytes) -> list[str]:
    """What a stream has when a child prints between two writes."""
    stream.write("a")
    os.write(stream.end, printed)
    assert stream.write("c") == 1
    return stream.texts


def test_what_a_child_printed_comes_before_what_is_written_next(streams: Any):
    assert texts_around(streams(), b"b") == ["a", "b", "c"]


def test_a_flush_sends_what_a_child_printed(streams: Any):
    stream = streams()
    os.write(stream.end, b"late")
    stream.flush()
    assert stream.sent == ["late"]


def test_a_letter_that_is_read_in_parts_is_one(streams: Any):
    stream = streams()
    for byte in "é".encode() + b"\xff":  # the last one is no text
        os.write(stream.end, bytes([byte]))
        stream.flush()
    assert stream.texts == ["é", "\ufffd"]
    assert os.read(stream.outside, 99) == "é".encode() + b"\xff"  # where the process writes


def test_the_ipykernel_that_is_installed_can_be_told(monkeypatch: pytest.MonkeyPatch):
    from ipykernel.iostream import OutStream

    before = {name: vars(OutStream)[name] for name in ("write", "flush", "_watch_pipe_fd")}
    for name, function in before.items():
        monkeypatch.setattr(OutStream, name, function)  # to be given back
    stdio.keep_order_in_kernel()
    assert all(vars(OutStream)[name] is not function for name, function in before.items())
