"""The command that prints how long a check takes."""

import pytest

from layer_checks.diagnosis import timings


def test_a_line_for_each_layer(capsys: pytest.CaptureFixture[str]) -> None:
    assert timings.main(["gelu", "causal_mask"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["checks", "wrong", "right", "wrong"]
    assert [line.split()[0] for line in lines] == ["gelu", "causal_mask"]
    assert all(line.endswith(" s") for line in lines)


def test_an_unknown_layer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert timings.main(["Gelu"]) == 2
    assert "no layer 'Gelu'" in capsys.readouterr().err
