"""What the READMEs tell their readers to type is found in them."""

import pytest

from tools.wheels import readme
from tools.wheels.project import EXTENSION, LAYERS


def test_the_blocks_of_python_are_one_program():
    text = "a\n```python\nx = 1\n```\nb\n```sh\nls\n```\n```python\ny = x\n```\n"
    assert readme.python(text) == "x = 1\n\ny = x\n"


def test_a_readme_without_python_is_no_success():
    with pytest.raises(ValueError, match=r"^the README has no block of Python$"):
        readme.python("```sh\nls\n```\n")


def test_the_layers_readme_has_a_program():
    program = readme.python(LAYERS.readme)
    assert "check(" in program
    assert "save_pretrained" in program


def test_the_first_page_and_what_is_said_of_it():
    page, told = readme.first_page(EXTENSION.readme)
    assert page.startswith("---\n")
    assert page.endswith("```\n")
    assert told.startswith("page.md:9: ERROR: ")
