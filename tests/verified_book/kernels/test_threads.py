"""Kernels that run beside each other do not fight for cores, unless the user wants it so."""

from pathlib import Path

import pytest

from tests.verified_book.kernels.builds import Book

pytestmark = pytest.mark.xdist_group("kernels")

NAMES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY")
SHOWN = f"import os\nprint(*(os.environ.get(name) or None for name in {NAMES}))"
TOLD = "verified_book: up to 2 kernels run beside each other, each with "


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have set them."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("preload", "jobs", "own", "shown", "told"),
    [
        (["json"], "2", "", "1 PASSIVE", "OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE; "),
        ([], "2", "3", "3 PASSIVE", "OMP_WAIT_POLICY=PASSIVE; "),
        ([], "1", "", "None None", ""),
    ],
)
def test_a_kernel_has_one_thread_where_another_runs_beside_it(
    tmp_path: Path, preload: list[str], jobs: str, own: str, shown: str, told: str
):
    book = Book(tmp_path / "book", {"verified_book_preload": preload})
    book.page("index", SHOWN)
    build = book.build("-j", jobs, OMP_NUM_THREADS=own, OMP_WAIT_POLICY="")
    assert (build.status, build.warnings) == (0, [])
    assert book.output() == shown
    assert (TOLD in build.log) == bool(told)
    assert f"{TOLD}{told}" in build.log or not told
    assert TOLD not in book.build("-j", jobs).log  # no page runs
