"""That a version is wrong, held apart from `check`."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import transformer_layers
from evaluation import held_out
from evaluation.held_out.__main__ import totals
from evaluation.held_out.definitions import VERSIONS

Shows = Callable[[Any], bool]


def recorded(name: str) -> Any:
    """What `check` once did with a collection."""
    return json.loads(Path(held_out.__file__).with_name(f"{name}.json").read_text())


def assert_shown(does_right: Shows) -> None:
    """Asserts that the right layer does what the version of the function's name does not."""
    version = VERSIONS[does_right.__name__.replace("_", " ")]
    torch.manual_seed(0)
    assert does_right(getattr(transformer_layers, version.layer))
    torch.manual_seed(0)
    assert not does_right(version.candidate)


def assert_each_is_told(collection: str, shown: Sequence[Shows]) -> None:
    """Asserts that each version of a collection is shown, and has a source of its own."""
    versions = {name: each for name, each in VERSIONS.items() if each.collection == collection}
    assert set(versions) == {shows.__name__.replace("_", " ") for shows in shown}
    for version in versions.values():
        assert version.what.endswith(".")
        assert re.compile(version.words)
        assert version.source
        others = [each.source for each in VERSIONS.values() if each is not version]
        assert version.source not in others


def assert_recorded(collection: str, number: int) -> None:
    """Asserts that a collection has so many versions, and its record these, with their totals."""
    names = [name for name, each in VERSIONS.items() if each.collection == collection]
    record = recorded(collection)
    assert len(names) == number
    assert [row["version"] for row in record["versions"]] == names
    assert record["totals"] == totals(record["versions"])
