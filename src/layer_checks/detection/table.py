"""Which check catches which wrong version."""

from dataclasses import dataclass

from layer_checks.detection.html import as_html
from layer_checks.diagnosis import kept_results
from layer_checks.diagnosis.report import wrapped
from layer_checks.kit.definitions import Check, WrongVersion
from layer_checks.registry import layer_named


@dataclass(frozen=True, repr=False)
class DetectionTable:
    """Which check of a layer catches which of its wrong versions.

    Shows as text in a terminal, as a table in a notebook.

    Attributes:
        layer_name: The layer.
        checks: The columns, weak checks first.
        wrong_versions: The rows.
        caught: For each row, for each column, whether the check fails for the wrong version.
    """

    layer_name: str
    checks: tuple[Check, ...]
    wrong_versions: tuple[WrongVersion, ...]
    caught: tuple[tuple[bool, ...], ...]

    @property
    def totals(self) -> dict[str, int]:
        """How many wrong versions each check catches, by the check's name."""
        columns = zip(*self.caught, strict=True)
        return {each.name: sum(column) for each, column in zip(self.checks, columns, strict=True)}

    @property
    def not_caught(self) -> tuple[WrongVersion, ...]:
        """The wrong versions that pass every check that is not weak."""
        return tuple(
            version
            for version, row in zip(self.wrong_versions, self.caught, strict=True)
            if not any(
                found and not each.weak for found, each in zip(row, self.checks, strict=True)
            )
        )

    def __repr__(self) -> str:
        label = f"caught, of {len(self.wrong_versions)}"
        width = max(len(text) for text in (label, *(each.name for each in self.wrong_versions)))
        numbers = "".join(f"{number:>4}" for number in range(1, len(self.checks) + 1))
        lines = [f"{'':<{width}}{numbers}"]
        for version, row in zip(self.wrong_versions, self.caught, strict=True):
            marks = "".join(f"{'x' if caught else '.':>4}" for caught in row)
            lines.append(f"{version.name:<{width}}{marks}")
        totals = "".join(f"{total:>4}" for total in self.totals.values())
        lines += [f"{label:<{width}}{totals}", "", self._summary(), ""]
        for number, each in enumerate(self.checks, start=1):
            weak = " (weak)" if each.weak else ""
            lines.append(wrapped(f"{number:>2}  {each.name}{weak}: {each.law}", indent=4))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(
            self.layer_name, self.checks, self.wrong_versions, self.caught, self._summary()
        )

    def _summary(self) -> str:
        caught = len(self.wrong_versions) - len(self.not_caught)
        by_weak = sum(
            any(found and each.weak for found, each in zip(row, self.checks, strict=True))
            for row in self.caught
        )
        return (
            f"Of {len(self.wrong_versions)}, the weak checks catch {by_weak}, the others {caught}."
        )


def detection_table(layer_name: str, seed: int = 0, *, generic: bool = False) -> DetectionTable:
    """Holds every known wrong version of a layer against every check of it, weak ones included.

    Args:
        layer_name: The layer's name in `transformer_layers`.
        seed: Seed of the random weights and inputs.
        generic: Whether mistakes that any layer can make are among the rows. Without them, a check
            that all layers share is a column where it catches something.

    Returns:
        The table.

    Raises:
        ValueError: If there is no layer of this name.
    """
    layer = layer_named(layer_name)
    rows = tuple(version for version in layer.wrong_versions if generic or not version.generic)
    columns = {
        each: [not kept_results.run(each, version.layer, seed).held for version in rows]
        for each in layer.checks
    }
    shown = {each: found for each, found in columns.items() if not each.generic or any(found)}
    caught = tuple(zip(*shown.values(), strict=True))
    return DetectionTable(layer_name, tuple(shown), rows, caught)
