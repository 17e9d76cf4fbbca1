"""What a reader's layer runs in, whatever the reader has set."""

import signal
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from layer_checks import check
from layer_checks.diagnosis import sandbox
from layer_checks.diagnosis.sandbox import OutOfTime, ordinary, silent, time_limit
from layer_checks.evidence.comparison import compare, compared_in_single
from transformer_layers import LayerNorm

pytestmark = pytest.mark.usefixtures("as_users_run_it")
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


def test_what_is_printed_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with silent() as printed:
        print("one")
    assert printed.getvalue() == "one\n"
    assert capsys.readouterr().out == ""


@needs_alarm
def test_time_is_over_in_the_main_thread_and_the_signal_is_given_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(0.1):
        time.sleep(100)
    assert time.monotonic() - began < 90  # a signal ends a sleep, however busy the machine is
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@needs_alarm
def test_a_limit_that_another_has_set_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[tuple[float, ...]] = []

    def setitimer(which: int, *seconds: float) -> tuple[float, float]:
        assert which == signal.ITIMER_REAL
        set_to.append(seconds)
        return (50.0, 2.0)  # what is left of another's, and its interval

    clock = iter([100.0, 107.0])
    monkeypatch.setattr(signal, "setitimer", setitimer)
    monkeypatch.setattr(sandbox, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with time_limit(10.0):
        assert set_to == [(10.0, 1.0)]
    assert set_to[1:] == [(0.0,), (43.0, 2.0)]


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
