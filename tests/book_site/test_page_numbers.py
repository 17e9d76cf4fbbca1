"""Numbers within a page, and what is written again when they change."""

from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.utils import new_document

from book_site import page_numbers


class Standard:
    """What the numbering asks of Sphinx's standard domain."""

    name = "std"

    def get_numfig_title(self, node: nodes.Element) -> str | None:
        return next((child.astext() for child in node.findall(nodes.caption)), None)

    def get_enumerable_node_type(self, node: nodes.Element) -> str | None:
        return {nodes.figure: "figure", nodes.table: "table"}.get(type(node))


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(
        domains={"std": Standard()},
        toc_fignumbers={},
        found_docs={"a", "b"},
        docname="a",
        config=SimpleNamespace(book_site_page_numbers=True),
    )


def page(*ids: str, kind: type[nodes.Element] = nodes.figure) -> nodes.document:
    document = new_document("page.md", get_default_settings())
    for name in ids:
        document += kind("", nodes.caption("", "Words."), ids=[name] if name else [])
    return document


def test_each_kind_of_a_page_is_counted_from_one(env):
    document = page("x", "y", "")
    document += page("t", kind=nodes.table).children
    document += nodes.figure("", ids=["bare"])
    assert page_numbers.numbers_of(env, document) == {
        "figure": {"x": (1,), "y": (2,)},
        "table": {"t": (1,)},
    }


def test_a_changed_number_outdates_what_may_refer_to_it(env):
    app = SimpleNamespace(env=env, config=env.config)
    page_numbers.remember(app, env, [])
    page_numbers.number_page(app, page("x"))
    assert page_numbers.outdated(app, env) == []  # a page that is new
    page_numbers.remember(app, env, [])
    page_numbers.number_page(app, page("x"))
    assert page_numbers.outdated(app, env) == []
    page_numbers.number_page(app, page("new", "x"))
    assert page_numbers.outdated(app, env) == ["a", "b"]
