"""JSON objects from files that come from elsewhere."""

import re

import pytest

from tests.transformer_layers import memory
from transformer_layers.checkpoints.json_file import parse_json_object, read_json_object


def test_reads_an_object(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes('{"a": [1, {"b": null}], "ü": 0.5}'.encode())
    assert read_json_object(path) == {"a": [1, {"b": None}], "ü": 0.5}


def test_refuses_a_missing_file_and_a_folder(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(path))}: there is no such file$"):
        read_json_object(path)
    message = f"^{re.escape(str(tmp_path))}: is a folder, and must be a regular file$"
    with pytest.raises(ValueError, match=message):
        read_json_object(tmp_path)


def test_refuses_a_file_that_is_too_large_without_reading_it(tmp_path):
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(2**31)  # takes no room: it has a hole
    before = memory.peak()
    with pytest.raises(
        ValueError, match=r"a\.json: has 2,147,483,648 bytes, and one of its kind has 8,388"
    ):
        read_json_object(path)
    assert memory.peak() - before < 2**30


NO_OBJECTS = {
    "not closed": (b'{"a": 1', "cannot be read as JSON: Expecting ',' delimiter"),
    "not UTF-8": (b'{"\xff": 1}', "cannot be read as JSON: 'utf-8' codec can't decode byte 0xff"),
    "key twice": (
        b'{"a": 1, "b": 2, "a": 1}',
        "cannot be read as JSON: the key 'a' stands there twice",
    ),
    "key twice, once escaped": (b'{"b": {"a": 1, "\\u0061": 1}}', "the key 'a' stands there twice"),
    "NaN": (b'{"a": NaN}', "cannot be read as JSON: NaN is no number in JSON"),
    "deep lists": (
        b"[" * 100_000 + b"]" * 100_000,
        "cannot be read as JSON: maximum recursion depth",
    ),
    "long number": (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read as JSON: Exceeds the limit"),
    "list": (b"[1, 2]", r"must hold a JSON object, got \[1, 2\]"),
    "long text": (b'"' + b"x" * 1000 + b'"', r"must hold a JSON object, got 'x{27}\.\.\.x{28}'$"),
}


@pytest.mark.parametrize("name", NO_OBJECTS)
def test_refuses_what_is_no_json_object(tmp_path, name):
    content, message = NO_OBJECTS[name]
    path = tmp_path / "a.json"
    with pytest.raises(ValueError, match=message) as caught:
        parse_json_object(content, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < len(str(path)) + 200
