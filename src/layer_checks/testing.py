"""An assertion on a layer, for the tests of those who wrote it."""

from collections.abc import Mapping

from layer_checks.diagnosis.report import Report, check
from layer_checks.kit.definitions import Candidate


def assert_layer(
    layer_name: str,
    candidate: Candidate,
    seed: int = 0,
    *,
    names: Mapping[str, str] | None = None,
    timeout: float = 120.0,
    contract: bool = False,
    start: bool = False,
) -> Report:
    """Asserts that a layer keeps the law: no tolerance is yours to choose.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        candidate: As for `check`.
        seed: Seed of the random weights and inputs.
        names: As for `check`.
        timeout: As for `check`.
        contract: Whether it must keep the book's contract too.
        start: Whether it must have the book's initial values and defaults too.

    Returns:
        The report.

    Raises:
        AssertionError: If it does not; the message is the report.
        ValueError: As `check` does.

    Examples:
        >>> import torch
        >>> assert_layer("LayerNorm", torch.nn.LayerNorm).headline
        'LayerNorm: the law holds, ...'
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    report = check(layer_name, candidate, seed, names=names, timeout=timeout)
    wanted = [*(report.contract if contract else ()), *(report.start if start else ())]
    if not report or not all(result.held for result in wanted):
        raise AssertionError(repr(report))
    return report
