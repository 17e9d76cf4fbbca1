"""Generic mutants that no test needs to notice, each with the reason."""

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.mutation.mutants import Mutant, mutants_of


@dataclass(frozen=True)
class Accepted:
    """A mutant that may survive, told by what it does and not by its line.

    Attributes:
        place: The module below `src` and the function, as
            `transformer_layers/models/gpt2/model:GPT2.loss`.
        operator: As in `Mutant`.
        old: Text that the mutant has changed.
        new: What it has put in its place.
        reason: Why no test needs to notice.
    """

    place: str
    operator: str
    old: str
    new: str
    reason: str

    @property
    def module(self) -> str:
        return self.place.partition(":")[0]

    def is_of(self, mutant: Mutant) -> bool:
        """Whether a mutant is the one that is meant."""
        if (self.place, self.operator) != (f"{mutant.module}:{mutant.function}", mutant.operator):
            return False
        pieces = mutant.removed.split(self.old)
        return any(
            self.old.join(pieces[:cut]) + self.new + self.old.join(pieces[cut:]) == mutant.added
            for cut in range(1, len(pieces))
        )


def stale(accepted: Iterable[Accepted]) -> list[str]:
    """Which of the accepted mutants there are not, a line for each."""
    return [
        f"{each.place}: {each.operator}: no mutant has {each.new!r} for {each.old!r}"
        for each in accepted
        if not any(each.is_of(mutant) for mutant in mutants_of(each.module))
    ]


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        "transformer_layers/positions/sinusoidal:sinusoidal_positions",
        "arg_removal",
        "arange(seq, dtype=torch.float64)",
        "arange(seq, dtype=None)",
        "Integers divided by float64 are float64.",
    ),
    Accepted(
        "transformer_layers/positions/sinusoidal:sinusoidal_positions",
        "arg_removal",
        "arange(seq, dtype=torch.float64)",
        "arange(seq, )",
        "Integers divided by float64 are float64.",
    ),
)
