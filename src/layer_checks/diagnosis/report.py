"""The diagnosis of a layer: which checks hold, and which known mistake it makes."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from layer_checks.diagnosis.calls import by_adapter
from layer_checks.diagnosis.diagnosis import Findings, diagnose
from layer_checks.diagnosis.judging import UNKNOWN
from layer_checks.diagnosis.report_html import as_html
from layer_checks.diagnosis.running import Result, in_one_line
from layer_checks.diagnosis.sandbox import OutOfTime, ordinary, silent, time_limit
from layer_checks.kit.definitions import Candidate, Kind, WrongVersion
from layer_checks.registry import layer_named

# What each kind is called in a report, in the order in which they stand there.
KINDS: Mapping[Kind, str] = {
    "law": "the law",
    "contract": "the contract",
    "start": "the initialization",
    "names": "names only",
}


_MANY = 6  # weights that a report tells one by one


@dataclass(frozen=True, repr=False)
class Report:
    """What the checks of a layer found out about a candidate. True if the law holds.

    The law is what the layer computes, values and gradients; the contract is how it is called and
    what it refuses; the initialization is its initial values and defaults; names are what is only
    called otherwise. Shows as text in a terminal, as a table in a notebook: what counts first, then
    what fails, with what holds folded.

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
        part: Which part of a composed layer differs first, in a sentence.
        judged: Whether its weights are known to be the book's, without which no law is judged.
        names_line: The call with `names=` to paste, where they are not.
        adapter_lines: An adapter to paste and fill in, where it can be built and not be called.
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
    part: str = ""
    judged: bool = True
    names_line: str = ""
    adapter_lines: str = ""

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
    def names(self) -> tuple[Result, ...]:
        """The results that are only another name, and break no contract."""
        return self._of("names")

    def __getitem__(self, name: str) -> Result:
        """The result of a check, by its name.

        Raises:
            KeyError: If no check of this layer has the name.
        """
        found = {result.name: result for result in self.results}
        if name not in found:
            raise KeyError(f"no check {name!r}; there are {', '.join(found)}")
        return found[name]

    @property
    def all(self) -> str:
        """The report as text with what holds, too, and with lines to paste for each failure."""
        return self._text(folded=False)

    @property
    def headline(self) -> str:
        """What counts, in one line."""
        held, failed, unasked = (
            sum(result.word == word for result in self.law)
            for word in ("held", "failed", "unasked")
        )
        if not self.judged:
            return (
                f"{self.layer_name}: the law could not be judged: it is not known which weight is "
                "which"
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
        if self.names:
            said += f"; other names in {len(self.names)}"
        return f"{self.layer_name}: {said}"

    def __bool__(self) -> bool:
        if not self.judged or any(result.word == "failed" for result in self.law):
            return False
        held = [result.name for result in self.law if result.held]
        valued = [result.name for result in self.law if result.name.startswith("values")]
        if all(result.asked for result in self.law):
            return bool(held)
        if not valued:  # such as dropout, whose laws are of chance
            return 2 * len(held) > len(self.law)
        return any(name in held for name in valued)

    def __repr__(self) -> str:
        return self._text(folded=True)

    def _text(self, folded: bool) -> str:
        lines = [wrapped(line, indent=8) for line in (self.headline, *self._first())]
        lines += self._to_paste()
        several = len({result.kind for result in self.results}) > 1
        for kind, name in KINDS.items():
            results = [each for each in self._of(kind) if not (folded and each.held)]
            lines += [name] if several and results else []
            for result in in_one_line(results) if folded else results:
                lines.append(wrapped(repr(result), indent=8))
                lines += [] if folded else _indented(result.example)
        lines += [wrapped(line, indent=8) for line in self._remarks(folded)]
        count = len(self.passed)
        if folded and count:
            lines.append(
                f"{_holding(count)}: print(report.all) shows {'it' if count == 1 else 'them'}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        kinds = [(name, self._of(kind)) for kind, name in KINDS.items()]
        paste = "\n".join(line.strip() for line in self._to_paste()[1:])
        return as_html(self.headline, kinds, self._first(), self._remarks(folded=True), paste)

    def _first(self) -> list[str]:
        """What it behaves like, and what to look at first."""
        lines = []
        if self.behaves_like is not None:
            lines.append(f"behaves like: {self.behaves_like!r}")
        if self.and_like is not None:
            lines.append(f"and like: {self.and_like!r}")
        others = [version for version in self.fails_like if version is not self.behaves_like]
        lines += [f"fails the same checks as: {version!r}" for version in others]
        parts = [f"look at the parts: {self.part}."] if self.part else []
        if not self.judged:
            names = "look first at the names: say which weight is which, and check it again"
            return [*lines, *parts, names]
        first = self._look_first
        if first is not None:
            at = f" It differs {first.where}." if first.where else ""
            lines.append(f"look first at {first.name}: {first.law}{at}")
        return [*lines, *parts]

    @property
    def _look_first(self) -> Result | None:
        """The failure to look at first; where nothing fails, what could not be asked of the law."""
        if self.not_run:
            return None
        wanted = [(word, kind) for word in ("failed", "unasked") for kind in ("law", "contract")]
        wanted = [*wanted[:2], ("failed", "start"), ("unasked", "law")]
        for word, kind in wanted:
            for result in self.results:
                if (result.word, result.kind) == (word, kind):
                    return result
        return None

    def _to_paste(self) -> list[str]:
        first = self._look_first
        example = first.example if first is not None else ""
        lines = _indented(self.adapter_lines or (example if self.judged else self.names_line))
        return ["to paste:", *lines] if lines else []

    def _remarks(self, folded: bool) -> list[str]:
        remarks = []
        if self.not_run:
            needed = ", which need this first" if not any(self.passed) else ""
            remarks.append(f"not run {self.not_run} checks{needed}")
        pairs = self.matching.count(" <- ")
        if folded and pairs > _MANY:
            how = self.matching.partition(":")[0]
            remarks.append(f"weights {how}, {pairs} of them: print(report.matching) shows which")
        elif self.matching:
            remarks.append(f"weights {self.matching}")
        told = "; ".join(result.text for result in self.results if result.of_form)
        remarks += [f"note    {note}" for note in self.notes if note not in told]
        return remarks

    def _of(self, kind: Kind) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.kind == kind)


def _indented(lines: str) -> list[str]:
    """Lines of code, which are never wrapped."""
    return [f"    {line}" for line in lines.splitlines()]


def _holding(count: int) -> str:
    return "1 check holds" if count == 1 else f"{count} checks hold"


def wrapped(line: str, indent: int) -> str:
    """A line in the width of a page's column, with what follows indented."""
    return textwrap.fill(line, width=70, subsequent_indent=" " * indent, break_long_words=False)


def check(
    layer_name: str,
    candidate: Candidate,
    seed: int = 0,
    *,
    names: Mapping[str, str] | None = None,
    adapter: Callable[..., Any] | None = None,
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
        adapter: For a candidate that is called in a form of its own: a function that takes it, once
            it is built, and the arguments of the book's call, and calls it. Where it can be built
            and not be called, the report shows one to fill in.
        timeout: Seconds after which the report ends with the check that has no answer.

    Returns:
        A report that shows one line for each check that fails. An error of the candidate is such a
        line too. Where it is not known which weight is which, no law is judged.

    Raises:
        TypeError: If `adapter` is no function.
        ValueError: If there is no layer of this name, `names` names what is not there, or `timeout`
            is not above 0.

    Examples:
        >>> import torch
        >>> class Mine(torch.nn.LayerNorm):
        ...     def forward(self, x):
        ...         return super().forward(x) - self.bias if self.bias is not None else x
        >>> check("LayerNorm", Mine).behaves_like
        no bias - add the bias.
        >>> def added(residual, x):  # in the place of gelu(x)
        ...     return residual + torch.nn.functional.gelu(x)
        >>> check("gelu", added, adapter=lambda function, x: function(0.0, x))
        gelu: the law holds, 10 of 10
        21 checks hold: print(report.all) shows them
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be above 0, got {timeout}")
    layer = layer_named(layer_name)
    if adapter is not None:
        candidate = by_adapter(layer, candidate, adapter)
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
        found.part,
        found.judged and all(result.text != UNKNOWN for result in found.results),
        found.names_line,
        found.adapter_lines,
    )


def _late(found: Findings, layer_name: str, timeout: float) -> Result:
    text = f"no answer within {timeout:g} s"
    if found.running is None:
        signature = layer_named(layer_name).signature
        return Result(signature, f"It is called as {signature}.", False, text)
    return Result(found.running.name, found.running.law, False, text, "law")
