"""Every page of the site in a real browser, under a policy that forbids other hosts."""

import pytest


def found(visits, problem):
    """The pages with a problem."""
    return {name: problem(visit) for name, visit in visits.items() if problem(visit)}


def test_console_stays_silent(visits):
    assert found(visits, lambda visit: visit.messages) == {}


def test_no_request_leaves_the_host(visits):
    assert found(visits, lambda visit: visit.foreign) == {}


def test_every_request_is_answered(visits):
    assert found(visits, lambda visit: visit.refused) == {}


@pytest.mark.parametrize("problem", ["raw", "wrong", "silent", "stops"])
def test_maths_is_typeset(visits, problem):
    assert any(visit.maths["count"] for visit in visits.values())
    assert found(visits, lambda visit: visit.maths[problem]) == {}


def test_no_markup_is_left(visits):
    assert found(visits, lambda visit: visit.markup) == {}


def test_images_have_a_text_alternative(visits):
    assert found(visits, lambda visit: visit.unnamed_images) == {}


@pytest.mark.parametrize("screen", ["desktop", "phone", "narrow phone"])
def test_page_does_not_scroll_sideways(visits, screen):
    assert found(visits, lambda visit: visit.too_wide[screen]) == {}


def test_theme_follows_the_reader(visits):
    followed = {"light": "light", "dark": "dark"}
    assert {name: v.themes for name, v in visits.items() if v.themes != followed} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_background(visits, theme):
    assert found(visits, lambda visit: visit.faint[theme]) == {}
