"""What of the machine and of its variables the outputs depend on."""

from pathlib import Path

import pytest

from verified_book import surroundings

X86 = """\
processor\t: 0
flags\t\t: fpu sse2 avx2 fma hypervisor avx512f

processor\t: 1
flags\t\t: fpu sse2 avx2 fma hypervisor avx512f
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes the machine one whose kernel says something of its processor."""
    monkeypatch.setattr(surroundings.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(surroundings.platform, "processor", lambda: "of some make")
    monkeypatch.setattr(surroundings, "_FLAGS", tmp_path / "cpuinfo")

    def write(text: str) -> None:
        (tmp_path / "cpuinfo").write_text(text, encoding="utf-8")

    return write


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (X86, "x86_64 avx2 avx512f fma sse2"),
        ("Features\t: fp asimd evtstrm sve bf16\n", "x86_64 asimd bf16 sve"),
    ],
)
def test_a_processor_is_known_by_its_vectors(machine, text: str, kind: str):
    machine(text)
    assert surroundings.processor() == kind


def test_variables_count_where_they_are_set_to_something_unusual(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"B": "2", "A": "x y", "C": "", "D": "1", "E": "3"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("F", raising=False)
    found = surroundings.variables(["B", "A", "C", "D=1", "E=1", "F", "F=1"])
    assert found == ["A=x y", "B=2", "E=3"]
    assert surroundings.variables([]) == []
