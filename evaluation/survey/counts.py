"""`python -m evaluation.survey.counts`: how many layers of the survey are right, and keep the law.

It reads what `make survey` recorded. A layer that is read as the same as ours is right, and must
keep the law; what of the law could not be asked counts apart. One that does not fit is not judged.
"""

from collections import Counter
from typing import Any

from evaluation.survey.__main__ import recorded


def breaks_the_law(row: dict[str, Any]) -> bool:
    """Whether something of the law was asked, and does not hold."""
    return any(
        each["kind"] == "law" and not each["held"] and each.get("asked", True)
        for each in row["results"]
    )


def main() -> None:
    """Prints the counts."""
    record = recorded()
    rows = [row for row in record["rows"] if "error" not in row]
    works = len({row["work"] for row in rows})
    print(f"{record['date']}, torch {record['torch']}: {len(rows)} layers of {works} works")
    for reading, count in Counter(row["reading"] for row in rows).most_common():
        print(f"{count:4} {reading}")
    right = [row for row in rows if row["reading"] == "same"]
    broken = [f"{row['work']}, {row['path']}" for row in right if breaks_the_law(row)]
    print(f"right, and break the law: {len(broken)} of {len(right)} {', '.join(broken)}".rstrip())
    slowest = max(rows, key=lambda row: row["seconds"])
    seconds, layer = slowest["seconds"], slowest["path"]
    print(f"the slowest check: {seconds} s, {slowest['work']}, {layer} as {slowest['layer']}")


if __name__ == "__main__":
    main()
