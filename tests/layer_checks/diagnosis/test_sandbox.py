"""What a reader's layer runs in, whatever the reader has set."""

import signal
import threading
import time

import pytest
import torch

from layer_checks import check
from layer_checks.diagnosis.sandbox import OutOfTime, ordinary, time_limit
from layer_checks.evidence.comparison import compare, compared_in_single
from transformer_layers import LayerNorm

needs_alarm = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no alarm")


def test_settings_of_the_reader_change_nothing() -> None:
    expected = repr(check("LayerNorm", LayerNorm))
    with torch.no_grad(), torch.device("meta"), torch.autocast("cpu", dtype=torch.bfloat16):
        assert repr(check("LayerNorm", LayerNorm)) == expected
        assert not torch.is_grad_enabled()
        assert torch.get_default_device().type == "meta"
        assert torch.is_autocast_enabled("cpu")
    with torch.inference_mode():
        assert repr(check("LayerNorm", LayerNorm)) == expected


def test_compiled_code_runs_as_it_is_written() -> None:
    compilations = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        compilations.append(graph)
        return graph

    compiled = torch.compile(lambda x: 2 * x, backend=backend)
    with ordinary():
        assert compiled(torch.ones(1)).tolist() == [2.0]
    assert compilations == []


@needs_alarm
def test_time_is_over_in_the_main_thread_and_the_signal_is_given_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(0.1):
        time.sleep(100)
    assert time.monotonic() - began < 90  # a signal ends a sleep, however busy the machine is
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_time_is_over_in_another_thread() -> None:
    ended: list[str] = []

    def work() -> None:
        try:
            with time_limit(0.1):
                while True:
                    time.sleep(0.01)
        except OutOfTime:
            ended.append("out of time")

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)  # it takes a tenth of a second
    assert ended == ["out of time"]


def test_in_single_the_largest_value_decides_what_is_allowed() -> None:
    expected = torch.tensor([0.0, 100.0], dtype=torch.float64)

    def fits(difference: float, atol: float) -> bool:
        return compare(expected + difference, expected, atol, None).failure is None

    assert not fits(1e-4, 1e-12)
    with compared_in_single():
        assert fits(1e-4, 1e-12)
        assert not fits(3e-4, 1e-12)
        assert not fits(1e-4, 0.0)  # where nothing is allowed, nothing is
        assert not fits(1e-4, 1e-6)  # a tolerance that is not float64's stays
        infinite = torch.tensor([torch.inf, 1.0], dtype=torch.float64)
        assert compare(infinite, infinite + 1e-3, 1e-12, None).failure is not None
    assert not fits(1e-4, 1e-12)
