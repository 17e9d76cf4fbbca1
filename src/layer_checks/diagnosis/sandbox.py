"""What a reader's layer runs in: ordinary settings of torch, no output, and a limit of time."""

import ctypes
import io
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from types import FrameType

import torch


class OutOfTime(BaseException):
    """The time is over. No `Exception`, so that a layer that catches errors does not catch it."""


@contextmanager
def ordinary() -> Iterator[None]:
    """The CPU as default device, gradients, no autocast, and compiled code run as it is written."""
    with ExitStack() as stack:
        if torch.get_default_device() != torch.device("cpu"):
            stack.enter_context(torch.device("cpu"))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        # What TorchScript derives by itself once a function has run gives gradients in float32.
        stack.enter_context(torch.jit.optimized_execution(False))  # type: ignore[attr-defined]  # no stub
        if torch.is_autocast_enabled("cpu"):
            stack.enter_context(torch.autocast("cpu", enabled=False))
        if "torch._dynamo" in sys.modules:  # nothing is compiled without it, and it loads slowly
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


@contextmanager
def silent() -> Iterator[io.StringIO]:
    """Keeps what is printed from the page, and hands it over."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        yield printed


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `OutOfTime` in the block when the time is over, and again each second from then on.

    In the main thread a signal ends a sleep too, where the system has signals. Elsewhere a thread
    does it, which reaches Python's code alone.
    """
    in_main = threading.current_thread() is threading.main_thread()
    by_signal = in_main and hasattr(signal, "setitimer")
    with _alarm(seconds) if by_signal else _watch(seconds):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def over(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    handler = signal.signal(signal.SIGALRM, over)
    started = time.monotonic()
    of_others, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if of_others:  # another's limit goes on
            left = max(of_others - (time.monotonic() - started), 1e-3)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


@contextmanager
def _watch(seconds: float) -> Iterator[None]:
    ended = threading.Event()
    lock = threading.Lock()
    watched = ctypes.c_ulong(threading.get_ident())

    def interrupt() -> None:
        wait = seconds
        while not ended.wait(wait):
            with lock:
                if not ended.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(watched, ctypes.py_object(OutOfTime))
            wait = 1.0

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    finally:
        with lock:
            ended.set()
