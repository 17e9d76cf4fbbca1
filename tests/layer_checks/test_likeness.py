"""What is known of the wrong versions does not depend on who was checked before."""

import pytest
from torch import nn

from layer_checks import check, likeness
from layer_checks.registry import layer_named


@pytest.fixture
def nothing_known():
    for kept in (likeness._failures, likeness._known, likeness._right_fingerprint):
        kept.cache_clear()


@pytest.mark.usefixtures("nothing_known")
def test_a_candidate_with_weights_of_its_own_layout_leaves_nothing_behind():
    assert check("Conv1D", nn.Linear).matching == "by order: weight <- weight (transposed)"
    for version in layer_named("Conv1D").wrong_versions:
        assert check("Conv1D", version.layer).behaves_like is version
