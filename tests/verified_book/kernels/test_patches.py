"""What stands in the place of names of other packages, and for how long."""

import json

import pytest
from sphinx.errors import ExtensionError

from verified_book.kernels.patches import Replacements


def test_names_stand_for_something_else_until_they_are_restored():
    replaced, before = Replacements(), (json.dumps, json.decoder.JSONDecoder)
    replaced.put({"json.dumps": 1, "json.decoder.JSONDecoder": 2})
    replaced.put({"json.dumps": 3})
    during = json.dumps, json.decoder.JSONDecoder
    replaced.restore()
    assert during == (3, 2)
    assert (json.dumps, json.decoder.JSONDecoder) == before
    replaced.restore()
    assert json.dumps is before[0]


def test_a_package_without_the_name_is_left_as_it_was():
    before = json.dumps
    message = "does not know this version of json: it has no json.decoder.no_such_name"
    with pytest.raises(ExtensionError, match=message):
        Replacements().put({"json.dumps": 1, "json.decoder.no_such_name": 2})
    assert json.dumps is before
