"""`python -m evaluation.survey.cited`: is each work named for the mistake that it is cited for?

It reads what `make survey` recorded, so that it needs none of the works. A work counts as named
where the diagnosis of its own code says one of the mistakes that its row lists: as what the layer
behaves like, or among those that fail the same checks. Works whose difference is a variation, on
purpose or not worth a name of its own, are counted apart.
"""

from typing import Any

from evaluation.survey.__main__ import recorded

GROUPS = {
    "cited_for": "cited by a known wrong version, or a defect",
    "known_as": "variations that no known wrong version cites, and that are one",
}
# What is cited and cannot be run here, and why.
NOT_RUN = {
    "TinyTorch, LayerNorm": "computes with arrays of its own, which torch cannot differentiate",
    "tensor2tensor, get_timing_signal_1d": "is TensorFlow's",
    "openai/gpt-2, src/model.py": "is TensorFlow's",
    "GPT-J": "its rotary positions cannot be left out; GPT-NeoX, which is cited with it, was run",
    "d2l, BatchNorm": "stands in a page, and not in the package",
    "LLMs-from-scratch, issue 822": "is about a Llama, for which there are no checks",
    "transformers, loss/loss_utils.py": "is a loss, for which there are no checks",
    "the notes' own listings": "are no package; each has a wrong version after it",
}


def chosen(rows: list[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    """The rows that count: a defect does, also where no known wrong version tells it."""
    return [
        row for row in rows if row[field] or (field == "cited_for" and row["reading"] == "defect")
    ]


def named(row: dict[str, Any], field: str = "cited_for") -> bool:
    """Whether the diagnosis says a mistake that the work is cited for, or known as."""
    said = {row.get("named"), row.get("and_named"), *row.get("fails_like", ())}
    return bool(said & set(row[field]))


def line(row: dict[str, Any], field: str) -> str:
    """A row as text."""
    wanted = " or ".join(f"{name!r}" for name in row[field]) or "no known one"
    title = f"{row['work']} {row['version']}, {row['path']} as {row['layer']}"
    if "error" in row:
        return f"not run    {title}: {row['error']}"
    said = [repr(row["named"])] if row["named"] else []
    said += [f"and {row['and_named']!r}"] if row.get("and_named") else []
    said += [f"fails as {name!r}" for name in row.get("fails_like", ())]
    verdict = "named" if named(row, field) else "NOT NAMED"
    return f"{verdict:<11}{title}: {wanted}; said: {', '.join(said) or 'nothing'}"


def main() -> None:
    """Prints a line for each work, and the counts."""
    rows = recorded()["rows"]
    for field, title in GROUPS.items():
        print(title)
        wanted = chosen(rows, field)
        for row in wanted:
            print(f"  {line(row, field)}")
        ran = [row for row in wanted if "error" not in row]
        count = sum(named(row, field) for row in ran)
        print(f"  named for it: {count} of {len(ran)}; not run: {len(wanted) - len(ran)}")
    print("cited, and not in the survey")
    for work, why in NOT_RUN.items():
        print(f"  {work}: {why}")


if __name__ == "__main__":
    main()
