"""Settings for every test: the shapes in the layers' signatures are checked while tests run.

The hook must be installed before the first import of the packages that it names. It wraps each
function of theirs: beartype compares arguments and results with the annotation, and a mismatch is a
`jaxtyping.TypeCheckError`. Users do not have the hook. Two kinds of test therefore ask for the
fixture `as_users_run_it`, which switches the comparison off:

* tests of the layers' own errors, which a `TypeCheckError` would forestall;
* tests of `torch.compile`, `torch.export` and `torch.func`, which trace through the wrapper.

Workers that run beside each other compute with one thread each, unless OMP_NUM_THREADS says
otherwise: two on two cores with two threads each wait for one another, and take ten times as long.
"""

import os
from collections.abc import Iterator

import hypothesis
import jaxtyping
import pytest
import torch

if "PYTEST_XDIST_WORKER" in os.environ and "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that they start
    torch.set_num_threads(1)

# The same examples in every run, so that a failure is the change's. No time limit for an example,
# since torch's first calls are slow.
hypothesis.settings.register_profile("tests", derandomize=True, deadline=None)
hypothesis.settings.load_profile("tests")

collect_ignore = ["verified_book/preloaded.py"]  # imported by the processes that build books

jaxtyping.install_import_hook(
    ["transformer_layers", "transformer_training.toy_language"],
    "beartype.beartype",
)


@pytest.fixture
def as_users_run_it() -> Iterator[None]:
    """Leaves the annotated shapes unchecked, as they are outside the tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
