"""Which variables make a kind of processor, and which kinds a machine can be."""

from collections.abc import Mapping

import pytest

from tools.processors import kinds
from tools.processors.kinds import KINDS, SWITCHES, capability, environment, why_not

NAMED = {kind.name: kind for kind in KINDS}
OTHERS = [kind for kind in KINDS if kind.switches]


@pytest.fixture
def torch_says(monkeypatch: pytest.MonkeyPatch):
    """Makes torch call a processor something, and heed its switch or not."""

    def say(own: str, heeds: bool = True) -> None:
        def of(variables: Mapping[str, str]) -> str:
            return variables.get("ATEN_CPU_CAPABILITY", own).upper() if heeds else own

        monkeypatch.setattr(kinds, "capability", of)

    return say


def test_a_kind_has_its_switches_and_no_others(monkeypatch: pytest.MonkeyPatch):
    for name in SWITCHES:
        monkeypatch.setenv(name, "of the user")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("HOME", "kept")
    for kind in KINDS:
        found = environment(kind, 2)
        assert {name: found[name] for name in SWITCHES & found.keys()} == kind.switches
        assert (found["OMP_NUM_THREADS"], found["HOME"]) == ("2", "kept")
        assert found["OMP_WAIT_POLICY"] == "PASSIVE"


def test_kinds_differ_in_what_torch_is_told():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    told = {kind.switches["ATEN_CPU_CAPABILITY"].upper(): kind.capability for kind in OTHERS}
    assert told == {name: name for name in kinds.ORDER}


@pytest.mark.parametrize(
    ("own", "possible"),
    [
        ("AVX512", ["own", "none", "avx2", "avx512"]),
        ("AVX2", ["own", "none", "avx2"]),
        ("DEFAULT", ["own", "none"]),
        ("SVE256", ["own"]),
    ],
)
def test_a_machine_can_be_what_it_is_and_what_has_less(torch_says, own: str, possible: list[str]):
    torch_says(own)
    assert [kind.name for kind in KINDS if not why_not(kind)] == possible


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("AVX512", ["none", "avx2"]),
        ("AVX2", ["none"]),
        ("DEFAULT", []),
        ("SVE256", []),
    ],
)
def test_the_kind_that_a_machine_is_can_be_left_out(torch_says, own: str, others: list[str]):
    torch_says(own)
    assert [kind.name for kind in KINDS if not why_not(kind, others=True)] == others
    assert "without a switch this processor is of this kind" in {
        why_not(kind, others=True) for kind in KINDS
    }


def test_the_reason_names_what_the_processor_has(torch_says):
    torch_says("AVX2")
    assert why_not(NAMED["avx512"]) == "this processor has AVX2 and no AVX512"
    torch_says("SVE256")
    assert why_not(NAMED["none"]).startswith("torch calls this processor SVE256, and chooses by")


def test_a_switch_that_torch_does_not_heed_is_no_kind(torch_says):
    torch_says("AVX512", heeds=False)
    assert why_not(NAMED["avx2"]) == "told to be AVX2, torch says that it is AVX512"


def test_torch_itself_heeds_the_switch_for_no_vectors():
    assert capability(environment(NAMED["none"], 1)) == "DEFAULT"
