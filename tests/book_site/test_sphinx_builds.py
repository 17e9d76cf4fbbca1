"""A page that shows how a false claim fails, as the build says it."""

from book_site.sphinx_builds import failures_of


def test_the_failures_of_a_page_are_told_with_its_own_lines():
    text = "\n".join(
        ["# Page", "", "```{code-cell}", "1 + 1", "```", "", "```{expect-output}", "3", "```"]
    )
    log = failures_of(f"\n{text}\n\n")
    assert log.startswith(
        "page.md:7: ERROR: the output differs from the expected one\n--- expected"
    )
    assert "\n-3\n+2\n  Remedy: " in log
    assert "ERROR: 1 failed check(s) in the book" in log


def test_a_page_without_failures_says_nothing():
    assert failures_of("# Page\n\n```{code-cell}\n1 + 1\n```\n\n```{expect-output}\n2\n```") == ""
