"""What a cell records of the variables of a function."""

from dataclasses import dataclass

import numpy as np
import pytest

from book_site.symbols import record


@dataclass
class Scale:
    """A layer."""

    factor: float
    unused: str = ""

    def forward(self, x):
        size = x.shape[-1]
        y = self.factor * x / size
        return y.sum()


def inner(x):
    return x


def outer(x):
    return inner(x[0])


def test_variables_attributes_and_the_result_are_recorded():
    found = record(lambda: Scale(2.0).forward(np.ones((3, 4), np.float32)), Scale.forward, n=3)
    assert found.kinds == {
        "x": [{"shape": [3, 4], "dtype": "float32"}],
        "size": [{"type": "int"}],
        "y": [{"shape": [3, 4], "dtype": "float32"}],
        "return": [{"shape": [], "dtype": "float32"}],
        "self.factor": [{"type": "float"}],
    }
    _, about = found._repr_mimebundle_()
    assert about == {"symbols": {"kinds": found.kinds, "sizes": [["n", 3]]}}


def test_a_name_has_a_kind_for_each_function_unless_it_is_given():
    x = np.ones((3, 4))
    kinds = [{"shape": [3, 4], "dtype": "float64"}, {"shape": [4], "dtype": "float64"}]
    assert record(lambda: outer(x), outer, inner).kinds["x"] == kinds
    assert record(lambda: outer(x), outer, inner, also={"x": 1}).kinds["x"] == [{"type": "int"}]


def test_sizes_that_shapes_could_not_tell_apart_are_refused():
    for sizes in ({"batch": 2, "seq": 2}, {"batch": 1}):
        with pytest.raises(ValueError, match=f"differ from each other and from 1, got {sizes}"):
            record(lambda: None, **sizes)


def test_a_function_that_is_not_run_is_named():
    with pytest.raises(ValueError, match=r"Scale\.forward was not run"):
        record(lambda: None, Scale.forward)
