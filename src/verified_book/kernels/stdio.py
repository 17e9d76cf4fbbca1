"""Runs inside each Python kernel of a build: keeps what child processes print where it was printed.

A cell's own text goes to ipykernel directly; that of `os.system` and of C libraries goes through a
pipe, which a thread of ipykernel reads when it has its turn: after what the cell printed next, or
after the cell has ended, so that no page shows it. Like :mod:`verified_book.kernels.audit_hook` it
is executed as IPython's configuration and imports nothing but the standard library.
"""

import codecs
import contextlib
import os
import select
import sys
import threading
from typing import Any

_AT_ONCE = 65536


def keep_order(streams: Any) -> None:
    """Has a class of streams read their pipe before anything else is written, and at each flush.

    Args:
        streams: `ipykernel.iostream.OutStream`, before any is made.
    """
    write, flush = streams.write, streams.flush
    lock = threading.RLock()

    def is_ready(stream: Any) -> bool:
        return bool(select.select([stream._fid], [], [], 0)[0])

    def take(stream: Any) -> bool:
        """Passes on what is in the pipe; whether there will be more."""
        data = os.read(stream._fid, _AT_ONCE)
        decoder = vars(stream).setdefault(
            "_verified_book_decoder", codecs.getincrementaldecoder("utf-8")("replace")
        )
        if text := decoder.decode(data):
            write(stream, text)
        with contextlib.suppress(OSError):  # nobody listens there any more
            os.write(stream._original_stdstream_copy, data)
        return bool(data)

    def drain(stream: Any) -> None:
        if not getattr(stream, "_should_watch", False) or not stream._is_master_process():
            return  # nothing is redirected, or this is a fork, which has no thread to wait for
        with lock:
            while is_ready(stream) and take(stream):
                pass

    def watch(stream: Any) -> None:
        if stream._fid is None:
            return
        try:
            while True:
                select.select([stream._fid], [], [])
                with lock:
                    if not stream._should_watch or (is_ready(stream) and not take(stream)):
                        return
        except Exception:  # shown when the stream is closed
            stream._exc = sys.exc_info()

    def write_in_order(stream: Any, text: str) -> int | None:
        drain(stream)
        written: int | None = write(stream, text)
        return written

    def flush_in_order(stream: Any) -> None:
        drain(stream)
        flush(stream)

    streams._watch_pipe_fd, streams.write, streams.flush = watch, write_in_order, flush_in_order


def keep_order_in_kernel() -> None:
    """Does so in this process, where its ipykernel is one that can be told."""
    try:
        from ipykernel.iostream import OutStream
    except ImportError:
        return
    known = {"_watch_pipe_fd", "_is_master_process", "write", "flush"}
    if os.name == "posix" and known <= vars(OutStream).keys():
        keep_order(OutStream)
