"""The shapes in the signatures are enforced while tests run, and only then."""

import jaxtyping
import pytest
import torch

from transformer_layers import gelu


def test_a_wrong_dtype_is_caught_by_the_annotation():
    with pytest.raises(jaxtyping.TypeCheckError, match=r"Expected type: .*Float\[Tensor"):
        gelu(torch.zeros(3, dtype=torch.int64))


def test_a_result_of_another_shape_is_caught_by_the_annotation(monkeypatch):
    monkeypatch.setattr(torch, "erfc", lambda x: torch.ones(2, 3, 1))
    with pytest.raises(
        jaxtyping.TypeCheckError, match=r"^Type-check error whilst checking the return value"
    ):
        gelu(torch.zeros(3))


@pytest.mark.usefixtures("as_users_run_it")
def test_users_see_the_layers_own_errors():
    with pytest.raises(TypeError, match=r"^x must be a floating-point tensor, got torch\.int64"):
        gelu(torch.zeros(3, dtype=torch.int64))
