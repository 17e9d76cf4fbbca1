"""The diagnosis of a layer: which checks hold, and which known mistake it makes."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from layer_checks.diagnosis.diagnosis import Findings, diagnose
from layer_checks.diagnosis.report_html import as_html
from layer_checks.diagnosis.running import Result
from layer_checks.diagnosis.sandbox import OutOfTime, ordinary, silent, time_limit
from layer_checks.kit.definitions import Candidate, Kind, WrongVersion
from layer_checks.registry import layer_named

# What each kind is called in a report, in the order in which they stand there.
KINDS: Mapping[Kind, str] = {"law": "the law", "contract": "the contract", "start": "the start"}


@dataclass(frozen=True, repr=False)
class Report:
    """What the checks of a layer found out about a candidate. True if the law holds.

    The law is what the layer computes, values and gradients; the contract is how it is called and
    what it refuses; the start is its initial values and defaults. Shows as text in a terminal, as a
    table in a notebook.

    Attributes:
        layer_name: The layer that the candidate is to be.
        results: One for each check.
        behaves_like: The known wrong version that computes the same, None if there is none.
        not_run: How many checks were left out, since the layer cannot be built or called.
        notes: What was adapted to build and call it, in words.
        matching: How weights were matched, where not each by its own name.
        in_single: Whether it computes in float32 whatever its input is, and was compared there.
        fails_like: Known wrong versions that no value shows, which fail checks that it fails.
        and_like: The second wrong version, where only two at once compute the same.
    """

    layer_name: str
    results: tuple[Result, ...]
    behaves_like: WrongVersion | None = None
    not_run: int = 0
    notes: tuple[str, ...] = ()
    matching: str = ""
    in_single: bool = False
    fails_like: tuple[WrongVersion, ...] = ()
    and_like: WrongVersion | None = None

    @property
    def passed(self) -> tuple[Result, ...]:
        """The checks that hold."""
        return tuple(result for result in self.results if result.held)

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that do not hold, of every kind."""
        return tuple(result for result in self.results if not result.held)

    @property
    def law(self) -> tuple[Result, ...]:
        """The results on what it computes, values and gradients."""
        return self._of("law")

    @property
    def contract(self) -> tuple[Result, ...]:
        """The results on how it is called, and what it refuses."""
        return self._of("contract")

    @property
    def start(self) -> tuple[Result, ...]:
        """The results on initial values and defaults."""
        return self._of("start")

    @property
    def headline(self) -> str:
        """What counts, in one line."""
        held, failed, unasked = (
            sum(result.word == word for result in self.law)
            for word in ("held", "failed", "unasked")
        )
        if self.not_run and not held:
            return f"{self.layer_name}: the law could not be judged"
        total = len(self.law)
        if not failed and self:
            said = f"the law holds, {held} of {total}"
        elif not failed:
            said = f"the law is not settled, {held} of {total} hold"
        else:
            said = f"the law fails, {failed} of {total}"
        said += f", {unasked} could not be asked" if unasked else ""
        said += "; computes in float32" if self.in_single else ""
        for kind in ("contract", "start"):
            words = [result.word for result in self._of(kind)]
            if broken := words.count("failed"):
                said += f"; {KINDS[kind]} fails, {broken} of {len(words)}"
            elif unasked := words.count("unasked"):
                said += f"; {KINDS[kind]} could not be asked in {unasked} of {len(words)}"
        return f"{self.layer_name}: {said}"

    def __bool__(self) -> bool:
        if any(result.word == "failed" for result in self.law):
            return False
        held = [result.name for result in self.law if result.held]
        if all(result.asked for result in self.law):
            return bool(held)
        return any(name.startswith("values") for name in held)

    def __repr__(self) -> str:
        lines = [self.headline]
        several = len({result.kind for result in self.results}) > 1
        for kind, name in KINDS.items():
            results = self._of(kind)
            lines += [name] if several and results else []
            lines += map(repr, results)
        lines += self._remarks()
        return "\n".join(wrapped(line, indent=8) for line in lines)

    def _repr_html_(self) -> str:
        kinds = [(name, self._of(kind)) for kind, name in KINDS.items()]
        return as_html(self.headline, kinds, self._remarks(look_first=False))

    def _remarks(self, look_first: bool = True) -> list[str]:
        remarks = []
        if self.not_run:
            needed = ", which need this first" if not any(self.passed) else ""
            remarks.append(f"not run {self.not_run} checks{needed}")
        remarks += [f"weights {self.matching}"] if self.matching else []
        told = "; ".join(result.text for result in self.results if result.name == "arguments")
        remarks += [f"note    {note}" for note in self.notes if note not in told]
        rest = (*self.law, *self.failed)
        unheld = [
            result for word in ("failed", "unasked") for result in rest if result.word == word
        ]
        first = next(iter(unheld), None)
        if look_first and first is not None and not self.not_run:
            at = f" It differs {first.where}." if first.where else ""
            remarks.append(f"look first at {first.name}: {first.law}{at}")
        if self.behaves_like is not None:
            remarks.append(f"behaves like: {self.behaves_like!r}")
        if self.and_like is not None:
            remarks.append(f"and like: {self.and_like!r}")
        remarks += [f"fails the same checks as: {version!r}" for version in self.fails_like]
        return remarks

    def _of(self, kind: Kind) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.kind == kind)


def wrapped(line: str, indent: int) -> str:
    """A line in the width of a page's column, with what follows indented."""
    return textwrap.fill(line, width=70, subsequent_indent=" " * indent, break_long_words=False)


def check(
    layer_name: str,
    candidate: Candidate,
    seed: int = 0,
    *,
    names: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> Report:
    """Runs a layer's checks on a class, a function or a module and says which mistake it makes.

    What differs from the book's layer in form is adapted, and the report says so: names and order
    of arguments, names, order, layout and packing of weights, what a mask means, a tuple as result.
    A name that is known is believed; where none is, what gives the right values on other inputs is
    taken. A layer that computes in float32 whatever its input is, is compared in float32.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        candidate: A class that is built with the layer's arguments, a function that builds one, a
            module, or a function where the book's layer is one.
        seed: Seed of the random weights and inputs.
        names: For names of weights in the book, those of the candidate's; several for one that
            holds them packed, in their order there.
        timeout: Seconds after which the report ends with the check that has no answer.

    Returns:
        A report that shows one line for each check. An error of the candidate is such a line too.

    Raises:
        ValueError: If there is no layer of this name, `names` names what is not there, or `timeout`
            is not above 0.

    Examples:
        >>> import torch
        >>> class Mine(torch.nn.LayerNorm):
        ...     def forward(self, x):
        ...         return super().forward(x) - self.bias if self.bias is not None else x
        >>> check("LayerNorm", Mine).behaves_like
        no bias - add the bias.
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be above 0, got {timeout}")
    layer = layer_named(layer_name)
    found = Findings()
    late: tuple[Result, ...] = ()
    with ordinary(), silent() as printed:
        try:
            with time_limit(timeout):
                diagnose(layer, candidate, names, seed, found)
        except OutOfTime:
            late = (_late(found, layer_name, timeout),)
            found.not_run = max(0, sum(not one.weak for one in layer.checks) - len(found.results))
    notes = list(found.notes)
    if printed.getvalue():
        lines = len(printed.getvalue().splitlines())
        notes.append(f"prints {lines} line{'s' if lines > 1 else ''}, not shown")
    return Report(
        layer_name,
        found.results + late,
        found.mistakes.behaves_like,
        found.not_run,
        tuple(notes),
        found.matching,
        found.in_single,
        found.mistakes.fails_like,
        found.mistakes.and_like,
    )


def _late(found: Findings, layer_name: str, timeout: float) -> Result:
    text = f"no answer within {timeout:g} s"
    if found.running is None:
        signature = layer_named(layer_name).signature
        return Result(signature, f"It is called as {signature}.", False, text)
    return Result(found.running.name, found.running.law, False, text, "law")
