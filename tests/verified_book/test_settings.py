"""Every option is registered, with a default that is each build's own."""

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

from verified_book import settings


def registered() -> dict[str, tuple[Any, ...]]:
    """What Sphinx is told of each option, by its name."""
    found: dict[str, tuple[Any, ...]] = {}
    app: Any = SimpleNamespace(add_config_value=lambda name, *rest: found.update({name: rest}))
    for group in vars(settings).values():
        if isinstance(group, tuple):
            settings.register(app, group)
    return found


def test_what_a_build_does_to_a_default_no_other_build_sees():
    before = deepcopy(registered())
    for default, *_ in registered().values():
        if isinstance(default, list):
            default.append("more")
        elif isinstance(default, dict):
            default["more"] = "more"
    assert registered() == before
